/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* read_depth [--bare] SOCKET BRICK FILE DEPTH SECONDS PID
 *
 * Reads 4 KiB at random offsets of one file over one unix connection with DEPTH requests in flight,
 * refilling in one send whatever it reaped, and prints what the server (process PID) paid:
 *     operations, CPU microseconds of the server per operation
 * It speaks the wire protocol by itself (spec: READ of version 400), so that the same load drives
 * our brick, and with --bare the prototype of bare_server.c, which answers the same messages
 * without a file system's bookkeeping. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    PROGRAM_FOP = 1298437, VERSION_FOP = 400, PROGRAM_SHAKE = 14398633, VERSION_SHAKE = 2,
    PROC_SETVOLUME = 1, PROC_OPEN = 11, PROC_READ = 12, PROC_LOOKUP = 27,
    BLOCK = 4096, FILE_BYTES = 64 << 20, DEPTH_MAX = 256, MESSAGE_BYTES = 4096, IATT = 148,
    REPLY_HEAD = 24,
};

struct message {
    uint8_t bytes[MESSAGE_BYTES];
    size_t used;
};

static uint32_t next_xid = 2;

static void die(const char *what)
{
    fprintf(stderr, "read_depth: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- composing -------------------------------------------------------------------------------- */
static void put(struct message *m, const void *bytes, size_t count)
{
    memcpy(m->bytes + m->used, bytes, count);
    m->used += count;
}

static void put32(struct message *m, uint32_t value)
{
    value = htobe32(value);
    put(m, &value, 4);
}

static void put64(struct message *m, uint64_t value)
{
    value = htobe64(value);
    put(m, &value, 8);
}

static void put_opaque(struct message *m, const void *bytes, uint32_t count)
{
    static const uint8_t zeros[4];
    put32(m, count);
    put(m, bytes, count);
    put(m, zeros, (4 - count % 4) % 4);
}

static void begin(struct message *m, uint32_t program, uint32_t version, uint32_t procedure)
{
    m->used = 4; /* the record mark, known at the end */
    put32(m, next_xid++);
    put32(m, 0);
    put32(m, 2);
    put32(m, program);
    put32(m, version);
    put32(m, procedure);
    put32(m, 390040); /* AUTH v3: pid, uid, gid, flags, ctime, groups, lock owner */
    put32(m, 40);
    put32(m, 100);
    put32(m, 0);
    put32(m, 0);
    put32(m, 0);
    put32(m, 0);
    put64(m, 0);
    put32(m, 0);
    put_opaque(m, "own", 4);
    put32(m, 0);
    put32(m, 0);
}

static void end(struct message *m)
{
    uint32_t mark = htobe32(0x80000000u | (uint32_t)(m->used - 4));
    memcpy(m->bytes, &mark, 4);
}

static void put_null_dict(struct message *m)
{
    put32(m, 0);
    put32(m, 0xffffffffu);
    put32(m, 0);
}

/* --- one call at a time, for the beginning ---------------------------------------------------- */
static void read_exactly(int fd, void *to, size_t count)
{
    for (size_t got = 0; got < count;) {
        ssize_t n = read(fd, (uint8_t *)to + got, count - got);
        if (n <= 0)
            die("connection");
        got += (size_t)n;
    }
}

/* The reply's body, after the 24 bytes of its head. */
static size_t call(int fd, struct message *m, uint8_t *body, size_t room)
{
    uint32_t mark;
    uint8_t head[REPLY_HEAD];

    end(m);
    if (write(fd, m->bytes, m->used) != (ssize_t)m->used)
        die("send");
    read_exactly(fd, &mark, 4);
    size_t bytes = be32toh(mark) & 0x7fffffff;
    if (bytes < REPLY_HEAD || bytes - REPLY_HEAD > room)
        die("reply size");
    read_exactly(fd, head, REPLY_HEAD);
    read_exactly(fd, body, bytes - REPLY_HEAD);
    uint32_t op_ret;
    memcpy(&op_ret, body, 4);
    if (be32toh(op_ret) == 0xffffffffu) {
        memcpy(&op_ret, body + 4, 4);
        errno = (int)be32toh(op_ret);
        die("the brick refuses");
    }
    return bytes - REPLY_HEAD;
}

static void put_pair(struct message *m, const char *key, const char *value)
{
    put32(m, (uint32_t)strlen(key));
    put32(m, (uint32_t)strlen(value) + 1);
    put(m, key, strlen(key) + 1);
    put(m, value, strlen(value) + 1);
}

static void shake_hands(int fd, const char *brick)
{
    struct message dict = { .used = 0 }, m;
    uint8_t body[65536];

    put32(&dict, 3);
    put_pair(&dict, "remote-subvolume", brick);
    put_pair(&dict, "process-uuid", "read-depth");
    put_pair(&dict, "fops-version", "1298437");
    begin(&m, PROGRAM_SHAKE, VERSION_SHAKE, PROC_SETVOLUME);
    put_opaque(&m, dict.bytes, (uint32_t)dict.used);
    call(fd, &m, body, sizeof(body));
}

/* A dict's bytes behind its length word, in a reply at `at`. */
static size_t dict_bytes(const uint8_t *at)
{
    uint32_t size;
    memcpy(&size, at, 4);
    return 12 + ((be32toh(size) + 3) & ~3u);
}

static void look_up(int fd, const char *name, uint8_t gfid[16])
{
    static const uint8_t null[16], root[16] = { [15] = 1 };
    struct message m;
    uint8_t body[65536];

    begin(&m, PROGRAM_FOP, VERSION_FOP, PROC_LOOKUP);
    put(&m, null, 16);
    put(&m, root, 16);
    put32(&m, 0);
    put_opaque(&m, name, (uint32_t)strlen(name));
    put_null_dict(&m);
    call(fd, &m, body, sizeof(body));
    memcpy(gfid, body + 8 + dict_bytes(body + 8), 16);
}

static uint64_t open_file(int fd, const uint8_t gfid[16])
{
    struct message m;
    uint8_t body[65536];
    uint64_t number;

    begin(&m, PROGRAM_FOP, VERSION_FOP, PROC_OPEN);
    put(&m, gfid, 16);
    put32(&m, O_RDWR);
    put_null_dict(&m);
    call(fd, &m, body, sizeof(body));
    memcpy(&number, body + 8 + dict_bytes(body + 8), 8);
    return be64toh(number);
}

/* --- the load --------------------------------------------------------------------------------- */
static size_t put_read(struct message *m, const uint8_t gfid[16], uint64_t number)
{
    size_t start = m->used;
    struct message one;

    begin(&one, PROGRAM_FOP, VERSION_FOP, PROC_READ);
    put(&one, gfid, 16);
    put64(&one, number);
    put64(&one, (uint64_t)(random() % (FILE_BYTES / BLOCK)) * BLOCK);
    put32(&one, BLOCK);
    put32(&one, O_RDWR);
    put_null_dict(&one);
    end(&one);
    put(m, one.bytes, one.used);
    return m->used - start;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* CPU of all threads of a process, in microseconds (schedstat counts nanoseconds on a CPU). */
static double cpu_us(int pid)
{
    char command[128], line[128];
    double total = 0;
    snprintf(command, sizeof(command), "cat /proc/%d/task/*/schedstat", pid);
    FILE *pipe = popen(command, "r");
    while (pipe && fgets(line, sizeof(line), pipe))
        total += strtod(line, NULL) / 1000;
    if (!pipe || pclose(pipe) != 0)
        die("schedstat");
    return total;
}

static void send_reads(int fd, unsigned count, const uint8_t gfid[16], uint64_t number)
{
    static struct { struct message m; uint8_t more[DEPTH_MAX * 256]; } room;
    room.m.used = 0;
    while (count--)
        put_read(&room.m, gfid, number);
    for (size_t sent = 0; sent < room.m.used;) {
        ssize_t n = write(fd, room.m.bytes + sent, room.m.used - sent);
        if (n < 0)
            die("send");
        sent += (size_t)n;
    }
}

/* Counts whole replies in what was received; the rest is moved to the front. */
static unsigned reap(uint8_t *room, size_t *used)
{
    unsigned replies = 0;
    size_t at = 0;
    while (*used - at >= 4) {
        uint32_t mark;
        memcpy(&mark, room + at, 4);
        size_t bytes = 4 + (be32toh(mark) & 0x7fffffff);
        if (*used - at < bytes)
            break;
        uint32_t op_ret;
        memcpy(&op_ret, room + at + 4 + REPLY_HEAD, 4);
        if (be32toh(op_ret) != BLOCK)
            die("a read was short");
        at += bytes;
        replies++;
    }
    memmove(room, room + at, *used - at);
    *used -= at;
    return replies;
}

static uint64_t load(int fd, const uint8_t gfid[16], uint64_t number, unsigned depth,
                     double seconds)
{
    static uint8_t room[4 << 20];
    size_t used = 0;
    uint64_t operations = 0;
    double until = now_s() + seconds;
    unsigned in_flight = depth;

    send_reads(fd, depth, gfid, number);
    while (in_flight) {
        ssize_t n = read(fd, room + used, sizeof(room) - used);
        if (n <= 0)
            die("connection");
        used += (size_t)n;
        unsigned replies = reap(room, &used);
        operations += replies;
        in_flight -= replies;
        if (replies && now_s() < until) {
            send_reads(fd, replies, gfid, number);
            in_flight += replies;
        }
    }
    return operations;
}

int main(int argc, char **argv)
{
    int bare = argc > 1 && strcmp(argv[1], "--bare") == 0;
    if (argc != 7 + bare) {
        fprintf(stderr, "usage: read_depth [--bare] SOCKET BRICK FILE DEPTH SECONDS PID\n");
        return 64;
    }
    argv += bare;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), pid = atoi(argv[6]);
    unsigned depth = (unsigned)atoi(argv[4]);
    uint8_t gfid[16] = { 0 };
    uint64_t number = 0;

    if (depth < 1 || depth > DEPTH_MAX ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        die(argv[1]);
    if (!bare) {
        shake_hands(fd, argv[2]);
        look_up(fd, argv[3], gfid);
        number = open_file(fd, gfid);
    }
    (void)load(fd, gfid, number, depth, 0.5); /* warm */
    double before = cpu_us(pid), start = now_s();
    uint64_t operations = load(fd, gfid, number, depth, strtod(argv[5], NULL));
    printf("%lu operations, %.2f us of server CPU each, %.0f a second\n", (unsigned long)operations,
           (cpu_us(pid) - before) / (double)operations, (double)operations / (now_s() - start));
    return 0;
}
