/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel asked directly, blocking: for threads that are no fibers, and for what never waits. */
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/env_internal.h"

uint64_t env_real_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

struct timespec env_real_wallclock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

void env_real_random(void *bytes, size_t n)
{
    char *at = bytes;
    while (n > 0) {
        long got = env_call(getrandom(at, MIN(n, (size_t)256), 0));
        if (got < 0)
            abort(); /* a kernel without getrandom(2) is none we run on */
        at += got;
        n -= (size_t)got;
    }
}

void env_direct_sleep(uint64_t ns)
{
    struct timespec left = { .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

int env_direct_wait_fd(int fd, short events, uint64_t until_ns)
{
    struct pollfd pollfd = { .fd = fd, .events = events };
    for (;;) {
        struct timespec left = { 0 };
        uint64_t now_ns = env_real_now_ns();
        if (until_ns > now_ns) {
            left.tv_sec = (time_t)((until_ns - now_ns) / NS_PER_S);
            left.tv_nsec = (long)((until_ns - now_ns) % NS_PER_S);
        }
        int ret = ppoll(&pollfd, 1, until_ns ? &left : NULL, NULL);
        if (ret > 0)
            return pollfd.revents & POLLNVAL ? -EBADF : pollfd.revents;
        if (ret == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

ssize_t env_direct_readv_file(int fd, const struct iovec *iov, int count, uint64_t offset)
{
    return env_call(preadv(fd, iov, count, (off_t)offset));
}

ssize_t env_direct_writev_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                               int rwf_flags)
{
    return env_call(pwritev2(fd, iov, count, (off_t)offset, rwf_flags));
}

int env_direct_fsync(int fd, bool data_only)
{
    return (int)env_call(data_only ? fdatasync(fd) : fsync(fd));
}

static int resolve_error(int ret)
{
    switch (ret) {
    case EAI_SYSTEM:
        return errno ? -errno : -EIO;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_FAMILY:
        return -EAFNOSUPPORT;
    default:
        return -ENOENT;
    }
}

int env_direct_resolve(const char *host, uint16_t port, int family,
                       struct env_address *ret_addresses, int max)
{
    struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM }, *list;
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    hints.ai_flags = AI_NUMERICSERV | (host ? 0 : AI_PASSIVE);
    int ret = getaddrinfo(host, service, &hints, &list);
    if (ret != 0)
        return resolve_error(ret);
    int count = 0;
    for (struct addrinfo *info = list; info && count < max; info = info->ai_next) {
        if (info->ai_addrlen > sizeof(ret_addresses->sockaddr))
            continue;
        struct env_address *address = &ret_addresses[count++];
        *address = (struct env_address){ .bytes = info->ai_addrlen };
        memcpy(&address->sockaddr, info->ai_addr, info->ai_addrlen);
    }
    freeaddrinfo(list);
    return count ? count : -ENOENT;
}
