/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* bare_server SOCKET FILE: the prototype that our brick is measured against. Answers READ requests
 * of version 400 on one unix connection with the file's bytes and nothing else: no table of fds, no
 * credentials, no attributes (they are zero). One io_uring, receive by SQE, pread in place, one
 * sendmsg for all replies of a turn: what perf-lab calls "io_uring net + inline pread". */
#include <endian.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BLOCK = 4096,
    BATCH = 64,
    HEAD = 4 + 24 + 172,
    OFFSET_AT = 4 + 72 + 8 + 24,
    ROOM = 64 << 10
};

static uint8_t heads[BATCH][HEAD], blocks[BATCH][BLOCK] __attribute__((aligned(4096)));

static void put32(uint8_t *to, uint32_t value)
{
    value = htobe32(value);
    memcpy(to, &value, 4);
}

static void answer(int file, const uint8_t *request, unsigned slot, struct iovec iov[2])
{
    uint64_t offset;
    uint8_t *head = heads[slot];

    memcpy(&offset, request + OFFSET_AT, 8);
    ssize_t got = pread(file, blocks[slot], BLOCK, (off_t)be64toh(offset));
    memset(head, 0, HEAD);
    put32(head, 0x80000000u | (uint32_t)(HEAD - 4 + got));
    memcpy(head + 4, request + 4, 4); /* xid */
    put32(head + 8, 1);
    put32(head + 28, (uint32_t)got);  /* op_ret */
    put32(head + 28 + 8 + 148, (uint32_t)got);
    put32(head + HEAD - 8, 0xffffffffu);
    iov[0] = (struct iovec){ head, HEAD };
    iov[1] = (struct iovec){ blocks[slot], (size_t)got };
}

static void send_all(int fd, struct iovec *iov, unsigned count)
{
    while (count) {
        struct msghdr message = { .msg_iov = iov, .msg_iovlen = count };
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0)
            exit(1);
        while (count && (size_t)sent >= iov->iov_len) {
            sent -= (ssize_t)iov->iov_len;
            iov++;
            count--;
        }
        if (count) {
            iov->iov_base = (uint8_t *)iov->iov_base + sent;
            iov->iov_len -= (size_t)sent;
        }
    }
}

/* Answers what is whole in room; returns the bytes used up. */
static size_t serve(int fd, int file, const uint8_t *room, size_t used)
{
    struct iovec iov[2 * BATCH];
    size_t at = 0;
    unsigned slot = 0;

    while (used - at >= 4) {
        uint32_t mark;
        memcpy(&mark, room + at, 4);
        size_t bytes = 4 + (be32toh(mark) & 0x7fffffff);
        if (used - at < bytes)
            break;
        answer(file, room + at, slot, iov + 2 * slot);
        at += bytes;
        if (++slot == BATCH) {
            send_all(fd, iov, 2 * slot);
            slot = 0;
        }
    }
    send_all(fd, iov, 2 * slot);
    return at;
}

static ssize_t receive(struct io_uring *ring, int fd, void *to, size_t bytes)
{
    struct io_uring_cqe *cqe;
    io_uring_prep_recv(io_uring_get_sqe(ring), fd, to, bytes, 0);
    io_uring_submit_and_wait(ring, 1);
    if (io_uring_wait_cqe(ring, &cqe) < 0)
        return -1;
    ssize_t got = cqe->res;
    io_uring_cqe_seen(ring, cqe);
    return got;
}

int main(int argc, char **argv)
{
    static uint8_t room[ROOM];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct io_uring ring;

    if (argc != 3)
        return 64;
    int file = open(argv[2], O_RDONLY), listener = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
    if (file < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 1) < 0 || io_uring_queue_init(64, &ring, 0) < 0) {
        perror("bare_server");
        return 1;
    }
    int fd = accept(listener, NULL, NULL);
    for (size_t used = 0;;) {
        ssize_t got = receive(&ring, fd, room + used, sizeof(room) - used);
        if (got <= 0)
            return 0;
        used += (size_t)got;
        size_t done = serve(fd, file, room, used);
        memmove(room, room + done, used - done);
        used -= done;
    }
}
