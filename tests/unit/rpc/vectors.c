/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records captured from genuine 10.3 programs (tests/wire-vectors): what they say is read as such,
 * and written back to the same bytes; our own requests are those that a genuine client sent. */
#include "../core/backends.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>

#include "fop/fop_codec.h"
#include "graph/inode.h"
#include "rpc/client.h"
#include "rpc/dict_wire.h"
#include "rpc/mgmt.h"

enum { RECORD_MAX = 16384, RECORDS_MAX = 64, HEADER = 4, REPLY_HEADER = 28, CREDS = 28 };
enum { FOP_PROGRAM = 1298437 };

struct record {
    char name[32]; /* GETSPEC */
    bool is_reply;
    uint32_t bytes, bulk; /* bytes listed; bulk bytes that follow, not listed */
    uint8_t data[RECORD_MAX];
};
static struct record records[RECORDS_MAX];
static unsigned record_count;

/* --- reading the files ------------------------------------------------------------------------ */

static int digit(int c)
{
    return isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

static void read_line(const char *line)
{
    struct record *record = record_count ? &records[record_count - 1] : NULL;
    unsigned bulk = 0;
    const char *at;
    if (line[0] == '[') {
        record = &records[record_count++];
        check(record_count <= RECORDS_MAX);
        record->is_reply = strncmp(line, "[REPLY", 6) == 0;
        check_equal(sscanf(strchr(line, ' ') + 1, "%31[^]]", record->name), 1);
        at = strstr(line, "the last ");
        if (at && sscanf(at, "the last %u", &bulk) == 1)
            record->bulk = bulk;
        return;
    }
    at = strchr(line, ':');
    if (line[0] == '#' || !at)
        return;
    for (at += 2; isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]); at += 2) {
        check(record->bytes < RECORD_MAX);
        record->data[record->bytes++] = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
    }
}

static void read_file(const char *directory, const char *name)
{
    char path[4096], line[4096];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
        exit(1);
    }
    while (fgets(line, sizeof(line), file))
        read_line(line);
    fclose(file);
}

static void read_files(const char *directory)
{
    static const char *const names[] = {
        "01-getspec.hex", "02-dump-portbybrick.hex", "03-brick-dump-ping.hex", "04-setvolume.hex",
        "05-lookup-root.hex", "06-lookup-enoent.hex", "07-create.hex", "08-write-4k.hex",
        "09-read-4k.hex", "10-readdirp.hex", "11-lk-setxattr.hex", "12-signin-callbacks.hex",
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        read_file(directory, names[i]);
    check_equal(record_count, 35);
}

static struct record *find(const char *name, bool is_reply, unsigned nth)
{
    for (unsigned i = 0; i < record_count; i++)
        if (records[i].is_reply == is_reply && strcmp(records[i].name, name) == 0 && nth-- == 0)
            return &records[i];
    fprintf(stderr, "no record %s\n", name);
    abort();
}

/* The next record with the same xid as a call: its reply. */
static const struct record *reply_of(const struct record *call)
{
    check(call + 1 < records + record_count && call[1].is_reply);
    check(memcmp(call->data + 4, call[1].data + 4, 4) == 0);
    return call + 1;
}

/* 0, 0, 0 is an empty dict, 0, -1, 0 none: they mean the same, and we write the second. */
static bool is_no_dict(const struct record *record, const struct writer *w, uint32_t at)
{
    at &= ~3u;
    return at >= 4 && at + 8 <= MIN(record->bytes, w->used) &&
           memcmp(record->data + at - 4, "\0\0\0\0\0\0\0\0\0\0\0\0", 12) == 0 &&
           memcmp(w->data + at - 4, "\0\0\0\0\xff\xff\xff\xff\0\0\0\0", 12) == 0;
}

static void same_bytes(const struct record *record, const struct writer *w, const char *what)
{
    check(writer_ok(w));
    for (uint32_t i = 0; i < MIN(record->bytes, w->used); i++)
        if (record->data[i] != w->data[i] && !is_no_dict(record, w, i)) {
            fprintf(stderr, "%s %s: byte %#x is %02x, not %02x\n", record->name, what, i,
                    w->data[i], record->data[i]);
            abort();
        }
    check_equal(w->used, record->bytes);
}

/* A copy, since decoding changes strings in place. The record mark is checked. */
static struct reader reader_of_record(const struct record *record, uint8_t copy[RECORD_MAX])
{
    uint32_t mark;
    memcpy(copy, record->data, record->bytes);
    struct reader r = reader_of(copy, record->bytes);
    check_equal(reader_u32(&r, &mark), 0);
    check_equal(mark, 0x80000000u | (record->bytes - HEADER + record->bulk));
    return r;
}

static void write_mark(struct writer *w, const struct record *record)
{
    writer_u32(w, 0x80000000u | (record->bytes - HEADER + record->bulk));
}

/* --- headers ---------------------------------------------------------------------------------- */

static void every_header_is_read_and_written_back(void)
{
    uint8_t copy[RECORD_MAX], room[RECORD_MAX];
    for (unsigned i = 0; i < record_count; i++) {
        const struct record *record = &records[i];
        struct reader r = reader_of_record(record, copy);
        struct writer w = writer_into(room, sizeof(room));
        write_mark(&w, record);
        if (record->is_reply) {
            uint32_t xid;
            int accept;
            check_equal(rpc_decode_reply(&r, &xid, &accept), 0);
            rpc_encode_reply(&w, xid, RPC_SUCCESS);
        } else {
            struct rpc_header header;
            struct rpc_cred cred;
            check_equal(rpc_decode_call(&r, &header, &cred), 0);
            rpc_encode_call(&w, header.xid, header.program, header.version, header.procedure,
                            &cred);
        }
        writer_raw(&w, r.pos, reader_left(&r));
        same_bytes(record, &w, "header");
    }
}

static void credentials_say_what_the_capture_says(void)
{
    uint8_t copy[RECORD_MAX];
    struct rpc_header header;
    struct rpc_cred cred;
    struct reader r = reader_of_record(find("WRITE", false, 0), copy);
    check_equal(rpc_decode_call(&r, &header, &cred), 0);
    check_equal(header.xid, 27);
    check_equal(header.program, FOP_PROGRAM);
    check_equal(header.version, 400);
    check_equal(header.procedure, 13);
    check_equal(cred.flavor, RPC_AUTH_V3);
    check_equal(cred.pid, 22451);
    check_equal(cred.flags, 3);
    check_equal(cred.ctime_nsec, 904073118);
    check_equal(cred.ctime_sec, 1796083212);
    check_equal(cred.lk_owner_bytes, 4);
    check(memcmp(cred.lk_owner, "\xb3\x57\0\0", 4) == 0);
}

/* --- operations ------------------------------------------------------------------------------- */

static struct inode_table *inodes;

/* What a brick makes of the names in a request, and a client of its arguments. */
static void bind_refs(enum fop op, union fop_args *args, const struct fop_refs *refs,
                 struct inode *inode[3], struct fd *fd[2])
{
    for (uint32_t i = 0; i < refs->gfids; i++)
        inode[i] = gfid_is_null(&refs->gfid[i]) ? NULL : inode_get(inodes, &refs->gfid[i]);
    for (uint32_t i = 0; i < refs->fds; i++) {
        AUTO(inode) of = inode_get(inodes, &refs->fd_gfid[i]);
        fd[i] = fd_new(of, 0, 0);
    }
    fop_bind(op, args, inode, fd);
}

static void unbind_refs(struct inode *inode[3], struct fd *fd[2])
{
    for (int i = 0; i < 3; i++)
        inode_unref(inode[i]);
    for (int i = 0; i < 2; i++)
        fd_unref(fd[i]);
}

static void bulk_fill(struct payload *payload, uint32_t bytes)
{
    uint8_t *data = malloc(bytes);
    for (uint32_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(7 * i);
    check_equal(payload_alloc(payload, bytes), 0);
    payload_copy_in(payload, data);
    free(data);
}

static void request_there_and_back(enum fop op, const struct record *record, union fop_args *args)
{
    uint8_t copy[RECORD_MAX], room[RECORD_MAX];
    struct reader r = reader_of_record(record, copy);
    struct writer w = writer_into(room, sizeof(room));
    struct inode *inode[3] = { NULL };
    struct fd *fd[2] = { NULL };
    struct payload bulk = { 0 };
    struct rpc_header header;
    struct rpc_cred cred;
    struct fop_refs refs;
    check_equal(rpc_decode_call(&r, &header, &cred), 0);
    write_mark(&w, record);
    writer_raw(&w, record->data + HEADER, (size_t)(r.pos - copy) - HEADER);
    if (record->bulk)
        bulk_fill(&bulk, record->bulk);
    check_equal(fop_decode_args(op, &r, record->bulk ? &bulk : NULL, args, &refs), 0);
    check_equal(bulk.bytes, 0); /* moved */
    bind_refs(op, args, &refs, inode, fd);
    fop_encode_args(op, args, refs.fd, &w);
    same_bytes(record, &w, "request");
    unbind_refs(inode, fd);
}

/* op_errno of a success carries leftovers of the genuine brick: it means nothing, but 2 at an end.
 * */
static void forget_leftovers(struct record *record)
{
    uint8_t *op_ret = record->data + REPLY_HEADER;
    if ((op_ret[0] & 0x80) == 0 && op_ret[7] != 2)
        memset(op_ret + 4, 0, 4);
}

static int reply_there_and_back(enum fop op, const struct record *of, union fop_reply *reply)
{
    uint8_t copy[RECORD_MAX], room[RECORD_MAX];
    struct record record = *of;
    forget_leftovers(&record);
    struct reader r = reader_of_record(&record, copy);
    struct writer w = writer_into(room, sizeof(room));
    struct payload bulk = { 0 };
    uint32_t xid;
    int accept, result;
    check_equal(rpc_decode_reply(&r, &xid, &accept), 0);
    write_mark(&w, &record);
    rpc_encode_reply(&w, xid, RPC_SUCCESS);
    if (record.bulk)
        bulk_fill(&bulk, record.bulk);
    check_equal(fop_decode_reply(op, &r, record.bulk ? &bulk : NULL, reply, &result), 0);
    check_equal(reader_left(&r), 0);
    fop_encode_reply(op, result, reply, &w);
    same_bytes(&record, &w, "reply");
    return result;
}

static void every_operation_is_read_and_written_back(void)
{
    unsigned seen = 0;
    check_equal(inode_table_new(&inodes), 0);
    for (unsigned i = 0; i < record_count; i++) {
        enum fop op = fop_of_name(strcmp(records[i].name, "READ") == 0    ? "readv"
                                  : strcmp(records[i].name, "WRITE") == 0 ? "writev"
                                                                          : records[i].name);
        union fop_args args;
        union fop_reply reply = { 0 };
        if (op == FOP_COUNT || records[i].is_reply)
            continue;
        request_there_and_back(op, &records[i], &args);
        fop_args_fini(op, &args);
        (void)reply_there_and_back(op, reply_of(&records[i]), &reply);
        fop_reply_fini(op, &reply);
        seen++;
    }
    check_equal(seen, 9);
    inode_table_free(inodes);
}

static void values_are_what_the_capture_says(void)
{
    union fop_args args;
    union fop_reply reply = { 0 };
    check_equal(inode_table_new(&inodes), 0);
    const struct record *call = find("LOOKUP", false, 1);
    request_there_and_back(FOP_LOOKUP, call, &args);
    check(args.lookup.name && strlen(args.lookup.name) > 0);
    fop_args_fini(FOP_LOOKUP, &args);
    check_equal(reply_there_and_back(FOP_LOOKUP, reply_of(call), &reply), -ENOENT);
    fop_reply_fini(FOP_LOOKUP, &reply);

    call = find("READ", false, 0);
    check_equal(reply_there_and_back(FOP_READV, reply_of(call), &reply), 4096);
    check_equal(reply.readv.payload.bytes, 4096);
    check(reply.readv.eof);
    check_equal(reply.readv.stat.size, 4096);
    fop_reply_fini(FOP_READV, &reply);

    call = find("READDIRP", false, 0);
    check_equal(reply_there_and_back(FOP_READDIRP, reply_of(call), &reply),
                reply.readdirp.entries.count);
    check(reply.readdirp.entries.count >= 1);
    fop_reply_fini(FOP_READDIRP, &reply);
    call = find("READDIRP", false, 1);
    check_equal(reply_there_and_back(FOP_READDIRP, reply_of(call), &reply), 0);
    check(reply.readdirp.eof);
    fop_reply_fini(FOP_READDIRP, &reply);

    call = find("LK", false, 0);
    request_there_and_back(FOP_LK, call, &args);
    check_equal(args.lk.lock.start, 10);
    check_equal(args.lk.lock.len, 100);
    check_equal(args.lk.lock.type, RANGE_WRITE);
    fop_args_fini(FOP_LK, &args);
    inode_table_free(inodes);
}

static void dicts_of_the_handshake_are_read_and_written_back(void)
{
    uint8_t copy[RECORD_MAX], room[RECORD_MAX], *bytes;
    struct rpc_header header;
    struct rpc_cred cred;
    uint32_t count;
    AUTO(dict) dict = NULL;
    const struct record *record = find("SETVOLUME", false, 0);
    struct reader r = reader_of_record(record, copy);
    struct writer w = writer_into(room, sizeof(room));
    check_equal(rpc_decode_call(&r, &header, &cred), 0);
    writer_raw(&w, record->data, (size_t)(r.pos - copy));
    check_equal(reader_opaque(&r, 65536, &bytes, &count), 0);
    check_equal(reader_left(&r), 0);
    check_equal(dict_decode_legacy(bytes, count, &dict), 0);
    check(dict_get_str(dict, "process-uuid") != NULL);
    check(strcmp(dict_get_str(dict, "fops-version"), "1298437") == 0);
    dict_encode_legacy(&w, dict);
    same_bytes(record, &w, "dict");
}

/* --- our requests, against a peer that knows the captured ones -------------------------------- */

/* Expects the call, with any xid, and answers with the captured reply. */
static void play(int fd, const struct record *call)
{
    uint8_t got[RECORD_MAX];
    struct iovec iov = { got, call->bytes };
    check_equal(env_recv_all(fd, &iov, 1), call->bytes);
    for (uint32_t i = 0; i < call->bytes; i++)
        if (got[i] != call->data[i] && !(i >= 4 && i < 8)) {
            fprintf(stderr, "our %s: byte %#x is %02x, not %02x\n", call->name, i, got[i],
                    call->data[i]);
            abort();
        }
    struct record reply = *reply_of(call);
    memcpy(reply.data + 4, got + 4, 4);
    iov = (struct iovec){ reply.data, reply.bytes };
    check_equal(env_send(fd, &iov, 1), reply.bytes);
}

static int peer_listener;

static void peer(void *arg)
{
    int fd = env_accept(peer_listener, NULL);
    (void)arg;
    check(fd >= 0);
    play(fd, find("GETSPEC", false, 0));
    play(fd, find("DUMP", false, 0));
    play(fd, find("PORTBYBRICK", false, 0));
    play(fd, find("SIGNIN", false, 0));
    static const char *const callbacks[] = { "FETCHSPEC", "CACHE_INVALIDATION",
                                             "INODELK_CONTENTION" };
    for (size_t i = 0; i < ARRAY_SIZE(callbacks); i++) {
        struct record *record = find(callbacks[i], false, 0);
        struct iovec iov = { record->data, record->bytes };
        check_equal(env_send(fd, &iov, 1), record->bytes);
    }
    char byte;
    check(env_recv(fd, &byte, 1) <= 0);
    env_close(fd);
}

static uint32_t heard[3], heard_bytes[3];
static unsigned heard_count;

static void on_callback(struct rpc_client *client, const struct rpc_header *header,
                        struct reader *body)
{
    (void)client;
    check_equal(header->program, 52743234);
    heard[heard_count] = header->procedure;
    heard_bytes[heard_count++] = (uint32_t)reader_left(body);
}

/* "brick = b'/x'" of the PORTBYBRICK and SIGNIN records: a string at the begin of the body */
static void text_of(const struct record *record, char *text, size_t size, uint32_t *ret_after)
{
    uint8_t copy[RECORD_MAX];
    struct rpc_header header;
    struct rpc_cred cred;
    char *found;
    struct reader r = reader_of_record(record, copy);
    check_equal(rpc_decode_call(&r, &header, &cred), 0);
    check_equal(reader_str(&r, 4096, &found), 0);
    snprintf(text, size, "%s", found);
    if (ret_after)
        check_equal(reader_u32(&r, ret_after), 0);
}

static void signin_as_captured(struct rpc_client *client)
{
    char brick[256];
    const struct record *record = find("SIGNIN", false, 0);
    uint32_t port, pid;
    text_of(record, brick, sizeof(brick), &port);
    struct reader r = reader_of((void *)(uintptr_t)(record->data + record->bytes - 4), 4);
    check_equal(reader_u32(&r, &pid), 0);
    check_equal(glusterd_signin(client, brick, (uint16_t)port, (int32_t)pid, 0), 0);
}

static void our_requests_are_those_of_a_genuine_client(void)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct env_address address = { .bytes = sizeof(in) };
    struct rpc_client_config config = { .name = "client", .callback = on_callback };
    struct rpc_client *client;
    struct rpc_peer_programs programs;
    AUTO_FREE char *spec = NULL;
    char brick[256];
    uint16_t port;
    memcpy(&address.sockaddr, &in, sizeof(in));
    peer_listener = env_listen(&address, 5);
    check(peer_listener >= 0);
    check_equal(env_local_address(peer_listener, &address), 0);
    check_equal(fiber_start("peer", peer, NULL), 0);
    check_equal(rpc_client_new(&config, &client), 0);
    check_equal(rpc_client_connect(client, &address, RPC_BIND_ANY, 0), 0);

    const struct getspec getspec = { .key = "/test", .flags = GETSPEC_CLIENT };
    check_equal(glusterd_getspec(client, &getspec, 0, &spec, NULL), 0);
    check(strncmp(spec, "volume test-client-0\n", 21) == 0);
    check_equal(rpc_peer_programs(client, 0, &programs), 0);
    check(rpc_peer_has(&programs, RPC_PORTMAP_PROGRAM, RPC_PORTMAP_VERSION));
    check(!rpc_peer_has(&programs, FOP_PROGRAM, 400));
    text_of(find("PORTBYBRICK", false, 0), brick, sizeof(brick), NULL);
    check_equal(glusterd_port_of_brick(client, brick, 0, &port), 0);
    check(port >= 49152);
    signin_as_captured(client);
    for (int i = 0; i < 1000 && heard_count < 3; i++)
        env_sleep(NS_PER_MS);
    check_equal(heard_count, 3);
    check_equal(heard[0], 1);
    check_equal(heard_bytes[0], 0);
    check_equal(heard[1], 5);
    check_equal(heard[2], 10);
    rpc_client_free(client);
    env_close(peer_listener);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(every_header_is_read_and_written_back, PLAIN_ONLY),
    FIBER_CASE(credentials_say_what_the_capture_says, PLAIN_ONLY),
    FIBER_CASE(every_operation_is_read_and_written_back, PLAIN_ONLY),
    FIBER_CASE(values_are_what_the_capture_says, PLAIN_ONLY),
    FIBER_CASE(dicts_of_the_handshake_are_read_and_written_back, PLAIN_ONLY),
    FIBER_CASE(our_requests_are_those_of_a_genuine_client, PLAIN_ONLY),
};

int main(int argc, char **argv)
{
    const char *directory = getenv("WIRE_VECTORS");
    read_files(argc > 1 ? argv[1] : directory ? directory : "tests/wire-vectors");
    return on_backends(cases, ARRAY_SIZE(cases));
}
