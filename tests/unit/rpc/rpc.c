/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Both ends of the RPC layer against one another, and against bytes that no honest peer sends. */
#include "../core/backends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/sync.h"
#include "rpc/client.h"
#include "rpc/conn.h"
#include "rpc/server.h"

enum { PROGRAM = 400100, VERSION = 7 };
enum { ECHO, STORE, FETCH, SLOW, HANG, COUNTED, HOLE, LOCK };

/* --- a program to talk to --------------------------------------------------------------------- */

static unsigned char stored[8 << 20];
static uint32_t stored_bytes;
static bool stored_aligned, are_strangers;
static int running, running_max, connects, disconnects;
static struct fiber *hanging;
static struct rpc_cred seen;

static void serve_echo(struct rpc_request *req)
{
    uint8_t *bytes;
    uint32_t count;
    seen = req->cred;
    if (reader_opaque(&req->body, 1 << 20, &bytes, &count) < 0 || reader_left(&req->body))
        return rpc_reply_error(req, RPC_GARBAGE_ARGS);
    writer_opaque(rpc_reply_begin(req), bytes, count);
    rpc_reply_send(req, NULL);
}

/* body: word 7, bytes of text, text, padding; then bulk */
static void serve_store(struct rpc_request *req)
{
    uint32_t seven, text;
    if (reader_u32(&req->body, &seven) < 0 || reader_u32(&req->body, &text) < 0 || seven != 7 ||
        reader_left(&req->body) != ((text + 3) & ~3u))
        return rpc_reply_error(req, RPC_GARBAGE_ARGS);
    stored_bytes = req->payload.bytes;
    payload_copy_out(&req->payload, stored);
    stored_aligned = req->payload.segs && (uintptr_t)req->payload.iov[0].iov_base % 4096 == 0;
    writer_u32(rpc_reply_begin(req), stored_bytes);
    rpc_reply_send(req, NULL);
}

/* what was stored: word 7, word 0, bulk */
static void serve_fetch(struct rpc_request *req)
{
    struct payload payload = { 0 };
    check_equal(payload_alloc(&payload, stored_bytes), 0);
    payload_copy_in(&payload, stored);
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, 7);
    writer_u32(w, 0);
    rpc_reply_send(req, &payload);
    payload_fini(&payload);
}

static void serve_slow(struct rpc_request *req)
{
    running++;
    running_max = MAX(running_max, running);
    env_sleep(20 * NS_PER_MS);
    running--;
    (void)rpc_reply_begin(req);
    rpc_reply_send(req, NULL);
}

static void serve_hang(struct rpc_request *req)
{
    hanging = fiber_self();
    fiber_park("test");
    writer_u32(rpc_reply_begin(req), 99);
    rpc_reply_send(req, NULL);
}

static const struct rpc_procedure procedures[] = {
    [ECHO] = { "ECHO", serve_echo },
    [STORE] = { "STORE", serve_store, .payload_fixed = 8, .payload_size_at = 4 },
    [FETCH] = { "FETCH", serve_fetch },
    [SLOW] = { "SLOW", serve_slow },
    [HANG] = { "HANG", serve_hang },
    [COUNTED] = { "COUNTED", serve_echo, .flags = RPC_INLINE },
    [LOCK] = { "LOCK", serve_slow, .flags = RPC_BLOCKING },
};
static const struct rpc_program program = { PROGRAM, VERSION, "Test", procedures,
                                            ARRAY_SIZE(procedures) };

static void on_connect(struct rpc_conn *conn)
{
    check(rpc_conn_user(conn) == NULL);
    if (!are_strangers)
        rpc_conn_set_user(conn, "known");
    connects++;
}

static void on_disconnect(struct rpc_conn *conn)
{
    check(!rpc_conn_is_open(conn));
    disconnects++;
}

/* --- a server and a client of it -------------------------------------------------------------- */

struct pair {
    struct rpc_server *server;
    struct rpc_client *client;
    struct env_address address;
};
static int lost, callbacks[16], callback_count;
static struct rpc_cred cred = { .flavor = RPC_AUTH_V2, .pid = 4711, .uid = 1, .gid = 2 };

static void on_lost(struct rpc_client *client)
{
    check(!rpc_client_is_connected(client));
    lost++;
}

static void on_callback(struct rpc_client *client, const struct rpc_header *header,
                        struct reader *body)
{
    (void)client;
    check_equal(header->program, RPC_CALLBACK_PROGRAM);
    check_equal(header->xid, callback_count + 1);
    check_equal(reader_left(body), 4);
    callbacks[callback_count++ % 16] = (int)header->procedure;
}

static struct env_address loopback(uint16_t port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct env_address address = { .bytes = sizeof(in) };
    memcpy(&address.sockaddr, &in, sizeof(in));
    return address;
}

static struct rpc_client *client_of(const struct env_address *address, uint64_t ping_ns)
{
    struct rpc_client_config config = { .name = "client", .disconnected = on_lost,
                                        .callback = on_callback, .ping_timeout_ns = ping_ns };
    struct rpc_client *client;
    check_equal(rpc_client_new(&config, &client), 0);
    check_equal(rpc_client_connect(client, address, RPC_BIND_ANY, 0), 0);
    return client;
}

static struct pair pair_new(unsigned outstanding_max, uint64_t ping_ns)
{
    struct pair pair = { 0 };
    struct env_address any = loopback(0);
    struct rpc_server_config config = { .name = "server", .outstanding_max = outstanding_max,
                                        .connected = on_connect, .disconnected = on_disconnect };
    lost = callback_count = connects = disconnects = running = running_max = 0;
    check_equal(rpc_server_new(&config, &pair.server), 0);
    check_equal(rpc_server_register(pair.server, &program), 0);
    check_equal(rpc_server_register(pair.server, &program), -EEXIST);
    check_equal(rpc_server_listen(pair.server, &any), 0);
    check_equal(rpc_server_address(pair.server, &pair.address), 0);
    pair.client = client_of(&pair.address, ping_ns);
    return pair;
}

static void pair_free(struct pair *pair)
{
    rpc_client_free(pair->client);
    rpc_server_stop(pair->server);
    rpc_server_free(pair->server);
    check_equal(connects, disconnects);
}

static int call_text(struct rpc_client *client, uint32_t procedure, const char *text)
{
    AUTO(rpc_call) call = rpc_call_new(client, PROGRAM, VERSION, procedure, &cred);
    uint8_t *bytes;
    uint32_t count;
    writer_opaque(rpc_call_writer(call), text, (uint32_t)strlen(text));
    int ret = rpc_call_run(call);
    if (ret < 0)
        return ret;
    check_equal(reader_opaque(&call->body, 1 << 20, &bytes, &count), 0);
    check_equal(count, strlen(text));
    check(memcmp(bytes, text, count) == 0);
    return 0;
}

static int call_plain(struct rpc_client *client, uint32_t number, uint32_t version,
                      uint32_t procedure, int *ret_accept)
{
    AUTO(rpc_call) call = rpc_call_new(client, number, version, procedure, &cred);
    int ret = rpc_call_run(call);
    *ret_accept = call->accept;
    return ret;
}

/* --- calls ------------------------------------------------------------------------------------ */

static void a_call_is_answered(void)
{
    struct pair pair = pair_new(0, 0);
    cred.group_count = 3;
    memcpy(cred.groups, (uint32_t[]){ 10, 20, 30 }, 12);
    check_equal(call_text(pair.client, ECHO, "hello"), 0);
    check_equal(seen.pid, 4711);
    check_equal(seen.group_count, 3);
    check_equal(seen.groups[2], 30);
    check_equal(seen.lk_owner_bytes, 4); /* the pid, little-endian */
    check(memcmp(seen.lk_owner, (uint8_t[]){ 0x67, 0x12, 0, 0 }, 4) == 0);
    cred.group_count = 0;
    check_equal(call_text(pair.client, COUNTED, ""), 0);
    pair_free(&pair);
}

static void bodies_of_every_size_pass(void)
{
    struct pair pair = pair_new(0, 0);
    char *text = malloc((1 << 20) + 1);
    for (uint32_t bytes = 1; bytes <= 1 << 20; bytes = bytes * 3 + 1) {
        memset(text, 'a' + (int)(bytes % 26), bytes);
        text[bytes] = 0;
        check_equal(call_text(pair.client, ECHO, text), 0);
    }
    free(text);
    pair_free(&pair);
}

static void store(struct rpc_client *client, uint32_t bytes, uint32_t text, bool borrowed)
{
    AUTO(rpc_call) call = rpc_call_new(client, PROGRAM, VERSION, STORE, &cred);
    struct writer *w = rpc_call_writer(call);
    struct payload payload = { 0 };
    uint8_t *data = malloc(bytes + 1);
    uint32_t got;
    for (uint32_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8) + bytes);
    if (borrowed) {
        payload_add_borrowed(&payload, data, bytes);
    } else {
        check_equal(payload_alloc(&payload, bytes), 0);
        payload_copy_in(&payload, data);
    }
    writer_u32(w, 7);
    writer_u32(w, text);
    memset(writer_room(w, (text + 3) & ~3u), 0, (text + 3) & ~3u);
    rpc_call_add_payload(call, &payload);
    check_equal(rpc_call_run(call), 0);
    check_equal(reader_u32(&call->body, &got), 0);
    check_equal(got, bytes);
    check(memcmp(stored, data, bytes) == 0);
    check(!bytes || stored_aligned);
    payload_fini(&payload);
    free(data);
}

static int fetch(struct rpc_client *client, uint32_t room)
{
    AUTO(rpc_call) call = rpc_call_new(client, PROGRAM, VERSION, FETCH, &cred);
    uint8_t *data = malloc(stored_bytes + 1);
    call->bulk_fixed = 8;
    call->bulk_size_at = 4;
    call->bulk_max = room;
    int ret = rpc_call_run(call);
    if (ret == 0) {
        check_equal(call->bulk.bytes, stored_bytes);
        payload_copy_out(&call->bulk, data);
        check(memcmp(stored, data, stored_bytes) == 0);
        check(!stored_bytes || (uintptr_t)call->bulk.iov[0].iov_base % 4096 == 0);
    }
    free(data);
    return ret;
}

static void bulk_lands_aligned_both_ways(void)
{
    static const uint32_t sizes[] = { 0, 1, 3, 511, 4096, 16000, 16384, 20000, 131072, 1 << 20,
                                      (1 << 20) + 5, 5 << 20 };
    struct pair pair = pair_new(0, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        store(pair.client, sizes[i], i * 5, i % 2);
        check_equal(fetch(pair.client, sizes[i] + 100), 0);
    }
    store(pair.client, 30000, 40000, false); /* a body that is not in the input buffer either */
    check_equal(fetch(pair.client, 30000), 0);
    check_equal(lost, 0);
    pair_free(&pair);
}

static void more_bulk_than_was_asked_for_ends_the_connection(void)
{
    struct pair pair = pair_new(0, 0);
    store(pair.client, 5000, 0, false);
    check_equal(fetch(pair.client, 4999), -ENOTCONN);
    check_equal(call_text(pair.client, ECHO, "x"), -ENOTCONN);
    pair_free(&pair);
    check_equal(lost, 1);
}

static void errors_are_those_of_the_protocol(void)
{
    struct pair pair = pair_new(0, 0);
    int accept;
    check_equal(call_plain(pair.client, 12345, 1, 0, &accept), -EREMOTEIO);
    check_equal(accept, RPC_PROG_UNAVAIL);
    check_equal(call_plain(pair.client, PROGRAM, 1, 0, &accept), -EREMOTEIO);
    check_equal(accept, RPC_PROG_MISMATCH);
    check_equal(call_plain(pair.client, PROGRAM, VERSION, HOLE, &accept), -EREMOTEIO);
    check_equal(accept, RPC_PROC_UNAVAIL);
    check_equal(call_plain(pair.client, PROGRAM, VERSION, 1000, &accept), -EREMOTEIO);
    check_equal(accept, RPC_PROC_UNAVAIL);
    check_equal(call_plain(pair.client, PROGRAM, VERSION, STORE, &accept), -EREMOTEIO);
    check_equal(accept, RPC_GARBAGE_ARGS);
    rpc_server_set_insecure(pair.server, true);
    check_equal(call_plain(pair.client, PROGRAM, VERSION, ECHO, &accept), -EREMOTEIO);
    check_equal(accept, -1);
    rpc_server_set_insecure(pair.server, false);
    check_equal(call_text(pair.client, ECHO, "still here"), 0);
    pair_free(&pair);
}

/* --- many at once ----------------------------------------------------------------------------- */

struct crowd {
    struct rpc_client *client;
    struct fgroup group;
    uint32_t procedure;
};

static void one_of_the_crowd(void *arg)
{
    struct crowd *crowd = arg;
    int accept;
    if (crowd->procedure == ECHO)
        for (int i = 0; i < 50; i++)
            check_equal(call_text(crowd->client, ECHO, "many"), 0);
    else
        check_equal(call_plain(crowd->client, PROGRAM, VERSION, crowd->procedure, &accept), 0);
}

static void crowd_run(struct rpc_client *client, uint32_t procedure, int size)
{
    struct crowd crowd = { .client = client, .procedure = procedure };
    fgroup_init(&crowd.group, 0);
    for (int i = 0; i < size; i++)
        check_equal(fgroup_start(&crowd.group, "crowd", one_of_the_crowd, &crowd), 0);
    fgroup_wait(&crowd.group, NULL, NULL);
    fgroup_fini(&crowd.group);
}

static void many_fibers_share_a_connection(void)
{
    struct pair pair = pair_new(0, 0);
    crowd_run(pair.client, ECHO, 100);
    pair_free(&pair);
}

static void outstanding_requests_are_bounded_but_pings_pass(void)
{
    struct pair pair = pair_new(4, 0);
    crowd_run(pair.client, SLOW, 40);
    check_equal(running_max, 4);
    running_max = 0;
    crowd_run(pair.client, LOCK, 40); /* these may wait for one another */
    check_equal(running_max, 40);
    pair_free(&pair);
}

static void lane_crowd(void *arg)
{
    struct crowd *crowd = arg;
    crowd_run(crowd->client, ECHO, 20);
}

struct lane_job {
    struct crowd *crowd;
    pthread_mutex_t *mutex;
    struct fcond *cond;
    int *left;
};

static void lane_job(void *arg)
{
    struct lane_job *job = arg;
    lane_crowd(job->crowd);
    HOLD(job->mutex);
    --*job->left;
    fcond_wake_all(job->cond);
}

static void calls_come_from_every_lane(void)
{
    struct pair pair = pair_new(0, 0);
    unsigned lanes = lanes_grow(3);
    struct crowd crowd = { .client = pair.client };
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct fcond cond;
    int left = (int)lanes;
    fcond_init(&cond);
    struct lane_job job = { &crowd, &mutex, &cond, &left };
    for (unsigned i = 0; i < lanes; i++)
        check_equal(fiber_start_on(lane_get(i), "job", lane_job, &job), 0);
    {
        HOLD(&mutex);
        while (left)
            fcond_wait(&cond, &mutex, "lanes");
    }
    pair_free(&pair);
}

/* --- ends ------------------------------------------------------------------------------------- */

static struct rpc_call *hang_call;
static int hang_ret = 1, late_ret = 1;
static uint32_t late_value;

static void hang_late(struct rpc_call *call, int ret)
{
    late_ret = ret;
    if (ret == 0)
        check_equal(reader_u32(&call->body, &late_value), 0);
}

static void hang_fiber(void *arg)
{
    AUTO(rpc_call) call = rpc_call_new(arg, PROGRAM, VERSION, HANG, &cred);
    hang_call = call;
    call->late = hang_late;
    hang_ret = rpc_call_run(call);
    hang_call = NULL;
}

static void hang_begin(struct pair *pair)
{
    hanging = NULL;
    hang_ret = late_ret = 1;
    check_equal(fiber_start("hang", hang_fiber, pair->client), 0);
    while (!hanging)
        env_sleep(NS_PER_MS);
}

static void a_cancelled_call_ends_at_once_and_its_answer_goes_to_late(void)
{
    struct pair pair = pair_new(0, 0);
    hang_begin(&pair);
    rpc_call_cancel(hang_call);
    env_sleep(NS_PER_MS);
    check_equal(hang_ret, -EINTR);
    check_equal(late_ret, 1);
    fiber_wake(hanging);
    while (late_ret == 1)
        env_sleep(NS_PER_MS);
    check_equal(late_ret, 0);
    check_equal(late_value, 99);
    check_equal(call_text(pair.client, ECHO, "x"), 0);
    pair_free(&pair);
}

static void a_lost_connection_fails_what_is_pending(void)
{
    struct pair pair = pair_new(0, 0);
    hang_begin(&pair);
    rpc_client_disconnect_wait(pair.client);
    env_sleep(NS_PER_MS);
    check_equal(hang_ret, -ENOTCONN);
    check_equal(late_ret, 1); /* the caller knows already */
    check_equal(lost, 1);
    fiber_wake(hanging);
    check_equal(rpc_client_connect(pair.client, &pair.address, RPC_BIND_HIGH, 0), 0);
    check_equal(rpc_client_generation(pair.client), 2);
    check_equal(rpc_client_connect(pair.client, &pair.address, RPC_BIND_HIGH, 0), -EISCONN);
    check_equal(call_text(pair.client, ECHO, "again"), 0);
    pair_free(&pair);
}

static void a_call_has_a_deadline(void)
{
    struct pair pair = pair_new(0, 0);
    uint64_t begin = env_now_ns();
    hanging = NULL;
    AUTO(rpc_call) call = rpc_call_new(pair.client, PROGRAM, VERSION, HANG, &cred);
    call->until_ns = begin + 30 * NS_PER_MS;
    check_equal(rpc_call_run(call), -ETIMEDOUT);
    check(env_now_ns() - begin >= 30 * NS_PER_MS);
    while (!hanging) /* a slow machine */
        env_sleep(NS_PER_MS);
    fiber_wake(hanging);
    check_equal(call_text(pair.client, ECHO, "x"), 0);
    pair_free(&pair);
}

static void an_answer_that_never_comes_fails_the_call(void)
{
    struct pair pair = pair_new(0, 0);
    rpc_client_set_timeouts(pair.client, 300 * NS_PER_MS, 0);
    hang_begin(&pair);
    env_sleep(2500 * NS_PER_MS);
    check_equal(hang_ret, -ENOTCONN);
    fiber_wake(hanging);
    check_equal(lost, 0);
    pair_free(&pair);
}

static void a_server_stops_under_load(void)
{
    struct pair pair = pair_new(2, 0);
    hang_begin(&pair);
    struct fiber *first = hanging;
    rpc_client_disconnect(pair.client);
    env_sleep(20 * NS_PER_MS);
    fiber_wake(first); /* its reply has nowhere to go */
    pair_free(&pair);
}

/* --- pings, callbacks ------------------------------------------------------------------------- */

static void pings_are_answered_while_a_call_waits(void)
{
    struct pair pair = pair_new(1, 200 * NS_PER_MS);
    struct rpc_client_stats stats;
    hang_begin(&pair);
    env_sleep(1000 * NS_PER_MS);
    check_equal(hang_ret, 1);
    rpc_client_get_stats(pair.client, &stats);
    check(stats.last_ping_ns > 0 || env_kind() == ENV_SIM); /* virtual time may stand still */
    check(stats.received_bytes > 4 * 40); /* one about every 200 ms */
    fiber_wake(hanging);
    pair_free(&pair);
}

static int mute_listener;

static void mute_fiber(void *arg)
{
    char bytes[100];
    int fd = env_accept(mute_listener, NULL);
    (void)arg;
    while (fd >= 0 && env_recv(fd, bytes, sizeof(bytes)) > 0)
        ;
    env_close(fd);
}

static void a_mute_peer_is_given_up(void)
{
    struct env_address address = loopback(0);
    int accept;
    lost = 0;
    mute_listener = env_listen(&address, 5);
    check(mute_listener >= 0);
    check_equal(env_local_address(mute_listener, &address), 0);
    check_equal(fiber_start("mute", mute_fiber, NULL), 0);
    struct rpc_client *client = client_of(&address, 200 * NS_PER_MS);
    uint64_t begin = env_now_ns();
    check_equal(call_plain(client, PROGRAM, VERSION, ECHO, &accept), -ENOTCONN);
    check(env_now_ns() - begin < 2 * NS_PER_S);
    check(env_now_ns() - begin >= 200 * NS_PER_MS);
    rpc_client_free(client);
    check_equal(lost, 1);
    env_close(mute_listener);
}

static void send_callbacks(struct rpc_conn *conn, void *arg)
{
    for (uint32_t i = 1; i <= 5; i++)
        check_equal(rpc_callback(conn, RPC_CALLBACK_PROGRAM, RPC_CALLBACK_VERSION, i, arg, 4), 0);
}

static void callbacks_arrive_in_order(void)
{
    struct pair pair = pair_new(0, 0);
    check_equal(call_text(pair.client, ECHO, "x"), 0);
    rpc_server_each(pair.server, send_callbacks, "abcd");
    while (callback_count < 5)
        env_sleep(NS_PER_MS);
    for (int i = 0; i < 5; i++)
        check_equal(callbacks[i], i + 1);
    pair_free(&pair);
}

/* --- raw bytes -------------------------------------------------------------------------------- */

/* DUMP's PING from AUTH_NONE */
static const char ping[] = "\0\0\0\5\0\0\0\0\0\0\0\2\7\x5b\xb8\x6d\0\0\0\1\0\0\0\2"
                           "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
static const char pong[] = "\x80\0\0\x24\0\0\0\5\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                           "\0\0\0\0\0\0\0\0\0\0\0\0";
enum { PING_BYTES = sizeof(ping) - 1, PONG_BYTES = sizeof(pong) - 1, DEAF_BYTES_MAX = 24 << 20 };

static int raw_connect(struct pair *pair)
{
    int fd = env_connect(&pair->address, NULL, 0);
    check(fd >= 0);
    return fd;
}

static void raw_send(int fd, const void *bytes, size_t count)
{
    struct iovec iov = { (void *)(uintptr_t)bytes, count };
    check_equal(env_send(fd, &iov, 1), count);
}

static void expect_pong(int fd)
{
    char bytes[PONG_BYTES];
    struct iovec iov = { bytes, sizeof(bytes) };
    check_equal(env_recv_all(fd, &iov, 1), sizeof(bytes));
    check(memcmp(bytes, pong, sizeof(bytes)) == 0);
}

static void fragments_are_put_together(void)
{
    struct pair pair = pair_new(0, 0);
    int fd = raw_connect(&pair);
    for (size_t piece = 1; piece < PING_BYTES; piece += 3) {
        for (size_t at = 0; at < PING_BYTES; at += piece) {
            size_t count = MIN(piece, PING_BYTES - at);
            uint8_t mark[4] = { at + count == PING_BYTES ? 0x80 : 0, 0, 0, (uint8_t)count };
            raw_send(fd, mark, 4);
            raw_send(fd, ping + at, count);
        }
        expect_pong(fd);
    }
    env_close(fd);
    pair_free(&pair);
}

static void expect_closed(struct pair *pair, const void *bytes, size_t count)
{
    char byte;
    int fd = raw_connect(pair);
    raw_send(fd, bytes, count);
    ssize_t ret = env_recv(fd, &byte, 1);
    check(ret == 0 || ret == -ECONNRESET);
    env_close(fd);
}

static void oversized_records_end_the_connection(void)
{
    struct pair pair = pair_new(0, 0);
    expect_closed(&pair, "\xbf\xff\xff\xff", 4);         /* 1 GiB */
    expect_closed(&pair, "\x81\x20\0\1", 4);             /* a byte over the limit */
    expect_closed(&pair, "\x01\x20\0\1", 4);             /* so in the first fragment, */
    expect_closed(&pair, "\0\0\0\4abcd\x7f\0\0\0", 12); /* or in the next */
    pair_free(&pair);
}

static void bad_headers_end_the_connection(void)
{
    struct pair pair = pair_new(0, 0);
    expect_closed(&pair, "\x80\0\0\0", 4);
    expect_closed(&pair, "\x80\0\0\4\0\0\0\1", 8);
    expect_closed(&pair, pong, PONG_BYTES); /* a reply to nothing, at a server */
    check_equal(call_text(pair.client, ECHO, "others live on"), 0);
    pair_free(&pair);
}

static void another_rpc_version_is_not_answered(void)
{
    struct pair pair = pair_new(0, 0);
    char bytes[2 * (4 + PING_BYTES)] = "\x80\0\0\x28";
    memcpy(bytes + 4, ping, PING_BYTES);
    memcpy(bytes + 4 + PING_BYTES, bytes, 4 + PING_BYTES);
    bytes[4 + 11] = 3;
    int fd = raw_connect(&pair);
    raw_send(fd, bytes, sizeof(bytes));
    expect_pong(fd); /* of the second; the first one's xid would be the same, but no bytes follow */
    env_shutdown(fd);
    char byte;
    check(env_recv(fd, &byte, 1) <= 0);
    env_close(fd);
    pair_free(&pair);
}

static void a_stranger_may_not_send_much(void)
{
    are_strangers = true;
    struct pair pair = pair_new(0, 0);
    store(pair.client, 100000, 0, false);
    AUTO(rpc_call) call = rpc_call_new(pair.client, PROGRAM, VERSION, ECHO, &cred);
    memset(writer_room(rpc_call_writer(call), 200000), 0, 200000);
    check_equal(rpc_call_run(call), -ENOTCONN);
    expect_closed(&pair, "\0\3\0\0", 4); /* 192 KiB of a first fragment */
    pair_free(&pair);
    are_strangers = false;
}

/* How many calls the server takes from a peer that reads no answers, until it takes no more. */
static size_t send_until_held_up(int fd)
{
    static char batch[100 * (4 + PING_BYTES)];
    size_t sent = 0;
    for (size_t at = 0; at < sizeof(batch); at += 4 + PING_BYTES) {
        memcpy(batch + at, "\x80\0\0\x28", 4);
        memcpy(batch + at + 4, ping, PING_BYTES);
    }
    for (int idle = 0; idle < 100 && sent < DEAF_BYTES_MAX;) {
        size_t at = sent % sizeof(batch);
        ssize_t ret = send(fd, batch + at, sizeof(batch) - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        check(ret > 0 || errno == EAGAIN);
        sent += ret > 0 ? (size_t)ret : 0;
        idle = ret > 0 ? 0 : idle + 1;
        env_sleep(NS_PER_MS);
    }
    return sent / (4 + PING_BYTES);
}

static void a_peer_that_reads_no_answers_is_held_up(void)
{
    for (int strangers = 0; strangers < 2; strangers++) {
        are_strangers = strangers;
        struct pair pair = pair_new(0, 0);
        int fd = raw_connect(&pair);
        size_t calls = send_until_held_up(fd);
        check(calls < DEAF_BYTES_MAX / (4 + PING_BYTES) - 100);
        check_equal(call_text(pair.client, ECHO, "others live on"), 0);
        while (calls--) /* and nothing was lost */
            expect_pong(fd);
        env_close(fd);
        pair_free(&pair);
    }
    are_strangers = false;
}

static void a_busy_port_is_said(void)
{
    struct pair pair = pair_new(0, 0);
    check_equal(rpc_server_listen(pair.server, &pair.address), -EADDRINUSE);
    pair_free(&pair);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(a_call_is_answered, ALL),
    FIBER_CASE(bodies_of_every_size_pass, ALL),
    FIBER_CASE(bulk_lands_aligned_both_ways, ALL),
    FIBER_CASE(more_bulk_than_was_asked_for_ends_the_connection, ALL),
    FIBER_CASE(errors_are_those_of_the_protocol, REAL), /* ports of the simulator are its own */
    FIBER_CASE(many_fibers_share_a_connection, ALL),
    FIBER_CASE(outstanding_requests_are_bounded_but_pings_pass, ALL),
    FIBER_CASE(calls_come_from_every_lane, REAL),
    FIBER_CASE(a_cancelled_call_ends_at_once_and_its_answer_goes_to_late, ALL),
    FIBER_CASE(a_lost_connection_fails_what_is_pending, ALL),
    FIBER_CASE(a_call_has_a_deadline, ALL),
    FIBER_CASE(an_answer_that_never_comes_fails_the_call, ALL),
    FIBER_CASE(a_server_stops_under_load, ALL),
    FIBER_CASE(pings_are_answered_while_a_call_waits, ALL),
    FIBER_CASE(a_mute_peer_is_given_up, ALL),
    FIBER_CASE(callbacks_arrive_in_order, ALL),
    FIBER_CASE(fragments_are_put_together, ALL),
    FIBER_CASE(bad_headers_end_the_connection, ALL),
    FIBER_CASE(another_rpc_version_is_not_answered, ALL),
    FIBER_CASE(a_stranger_may_not_send_much, ALL),
    FIBER_CASE(a_peer_that_reads_no_answers_is_held_up, REAL), /* by its kernel's buffers */
    FIBER_CASE(a_busy_port_is_said, ALL),
    FIBER_CASE(oversized_records_end_the_connection, ALL),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
