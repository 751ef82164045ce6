/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* env on epoll and system calls, where io_uring is refused.
 *
 * A fiber that waits for a descriptor arms it once (EPOLLONESHOT) for all who wait for it on this
 * lane. Nothing is remembered about a descriptor afterwards, so its number may be closed and used
 * again behind our back. What may wait for the disk goes to a worker. */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>

#include "core/env_internal.h"

enum {
    EVENTS_PER_TURN = 64,
    FDS_STEP = 256
};

struct plain_waiter {
    LIST_ENTRY(plain_waiter) next;
    struct fiber *fiber;
    short events, ready;
};
LIST_HEAD(plain_waiters, plain_waiter);

struct plain {
    int epoll, kick;
    bool has_pwait2;
    unsigned fds_count;
    struct plain_waiters *fds; /* who waits, by descriptor */
};

/* --- lanes ------------------------------------------------------------------------------------ */

static int plain_probe(uint64_t seed)
{
    (void)seed;
    return 0;
}

static void plain_free(struct plain *plain)
{
    if (plain->epoll >= 0)
        close(plain->epoll);
    if (plain->kick >= 0)
        close(plain->kick);
    free(plain->fds);
    free(plain);
}

static int plain_lane_open(struct lane *lane)
{
    struct plain *plain = calloc(1, sizeof(*plain));
    if (!plain)
        return -ENOMEM;
    plain->has_pwait2 = true;
    plain->epoll = (int)env_call(epoll_create1(EPOLL_CLOEXEC));
    plain->kick = (int)env_call(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    /* edge-triggered and never read: every kick is an edge */
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = -1 };
    int ret = MIN(plain->epoll, plain->kick);
    if (ret >= 0)
        ret = (int)env_call(epoll_ctl(plain->epoll, EPOLL_CTL_ADD, plain->kick, &event));
    if (ret < 0)
        plain_free(plain);
    else
        lane->backend = plain;
    return ret;
}

static void plain_lane_close(struct lane *lane)
{
    plain_free(lane->backend);
    lane->backend = NULL;
}

static void plain_lane_kick(struct lane *lane)
{
    struct plain *plain = lane->backend;
    uint64_t one = 1;
    long ret = env_call(write(plain->kick, &one, sizeof(one)));
    assert(ret == sizeof(one));
}

/* --- waiting for descriptors ------------------------------------------------------------------ */

static uint32_t waiters_events(struct plain_waiters *waiters)
{
    uint32_t events = 0;
    struct plain_waiter *waiter;
    LIST_FOREACH(waiter, waiters, next)
    events |= (uint32_t)waiter->events; /* POLLIN and POLLOUT are EPOLLIN and EPOLLOUT */
    return events;
}

/* Arms the descriptor for all who wait. 1: it is always ready (a regular file). */
static int plain_arm(struct plain *plain, int fd)
{
    struct epoll_event event = { .events = waiters_events(&plain->fds[fd]) | EPOLLONESHOT,
                                 .data.fd = fd };
    int ret = (int)env_call(epoll_ctl(plain->epoll, EPOLL_CTL_MOD, fd, &event));
    if (ret == -ENOENT)
        ret = (int)env_call(epoll_ctl(plain->epoll, EPOLL_CTL_ADD, fd, &event));
    return ret == -EPERM ? 1 : ret;
}

static int plain_reserve(struct plain *plain, int fd)
{
    if (fd < 0)
        return -EBADF;
    if ((unsigned)fd < plain->fds_count)
        return 0;
    unsigned count = ((unsigned)fd / FDS_STEP + 1) * FDS_STEP;
    struct plain_waiters *fds = calloc(count, sizeof(*fds));
    if (!fds)
        return -ENOMEM;
    for (unsigned i = 0; i < plain->fds_count; i++) {
        fds[i] = plain->fds[i];
        if (!LIST_EMPTY(&fds[i])) /* a list's first points back at its head */
            LIST_FIRST(&fds[i])->next.le_prev = &LIST_FIRST(&fds[i]);
    }
    free(plain->fds);
    plain->fds = fds;
    plain->fds_count = count;
    return 0;
}

static int plain_wait_fd(int fd, short events, uint64_t until_ns)
{
    struct plain *plain = lane_current->backend;
    struct plain_waiter waiter = { .fiber = fiber_self(), .events = events };
    int ret = plain_reserve(plain, fd);
    if (ret < 0)
        return ret;
    LIST_INSERT_HEAD(&plain->fds[fd], &waiter, next);
    ret = plain_arm(plain, fd);
    if (ret != 0) {
        LIST_REMOVE(&waiter, next);
        return ret < 0 ? ret : events;
    }
    if (!until_ns)
        fiber_wait("descriptor");
    else if (!fiber_wait_until("descriptor", until_ns)) {
        assert(!waiter.ready); /* same thread: the event would have come first */
        LIST_REMOVE(&waiter, next);
        return -ETIMEDOUT;
    }
    return waiter.ready;
}

/* Ends the waits that `events` concerns. */
static void plain_wake(struct plain_waiters *waiters, uint32_t events)
{
    struct plain_waiter *waiter, *next;
    for (waiter = LIST_FIRST(waiters); waiter; waiter = next) {
        next = LIST_NEXT(waiter, next);
        if (!(events & ((uint32_t)waiter->events | EPOLLERR | EPOLLHUP)))
            continue;
        LIST_REMOVE(waiter, next);
        waiter->ready = (short)(events & ~(uint32_t)EPOLLONESHOT);
        fiber_done(waiter->fiber);
    }
}

static void plain_event(struct plain *plain, const struct epoll_event *event)
{
    int fd = event->data.fd;
    if (fd < 0)
        return; /* a kick: the loop looks at its inbox anyway */
    plain_wake(&plain->fds[fd], event->events);
    if (!LIST_EMPTY(&plain->fds[fd]) && plain_arm(plain, fd) != 0)
        plain_wake(&plain->fds[fd], EPOLLERR); /* their next try meets the error */
}

static int plain_wait(struct plain *plain, struct epoll_event *events, uint64_t until_ns)
{
    uint64_t now_ns = until_ns && until_ns != UINT64_MAX ? env_real_now_ns() : 0;
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    if (plain->has_pwait2) {
        struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S),
                                 .tv_nsec = (long)(left_ns % NS_PER_S) };
        int n = epoll_pwait2(plain->epoll, events, EVENTS_PER_TURN,
                             until_ns == UINT64_MAX ? NULL : &left, NULL);
        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return n;
        plain->has_pwait2 = false; /* an old kernel, or a filter that does not know the call */
    }
    uint64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS;
    return epoll_wait(plain->epoll, events, EVENTS_PER_TURN,
                      until_ns == UINT64_MAX ? -1 : (int)MIN(left_ms, (uint64_t)60000));
}

static void plain_lane_turn(struct lane *lane, uint64_t until_ns)
{
    struct plain *plain = lane->backend;
    struct epoll_event events[EVENTS_PER_TURN];
    int n = plain_wait(plain, events, until_ns);
    assert(n >= 0 || errno == EINTR);
    for (int i = 0; i < n; i++)
        plain_event(plain, &events[i]);
}

static int plain_close(int fd)
{
    struct plain *plain = lane_current ? lane_current->backend : NULL;
    if (plain && fd >= 0 && (unsigned)fd < plain->fds_count && !LIST_EMPTY(&plain->fds[fd]))
        fiber_misuse(LIST_FIRST(&plain->fds[fd])->fiber, "waits for a descriptor that is closed",
                     NULL);
    return env_socket_close(fd);
}

/* --- file data -------------------------------------------------------------------------------- */

struct file_job {
    int fd, count, rwf_flags;
    const struct iovec *iov;
    uint64_t offset;
    bool data_only;
    ssize_t ret;
};

static void readv_job(void *arg)
{
    struct file_job *job = arg;
    job->ret = env_direct_readv_file(job->fd, job->iov, job->count, job->offset);
}

static void writev_job(void *arg)
{
    struct file_job *job = arg;
    job->ret = env_direct_writev_file(job->fd, job->iov, job->count, job->offset, job->rwf_flags);
}

static void fsync_job(void *arg)
{
    struct file_job *job = arg;
    job->ret = env_direct_fsync(job->fd, job->data_only);
}

static ssize_t plain_readv_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                                int flags)
{
    uint64_t bytes = env_iov_bytes(iov, count);
    if (!(flags & ENV_DIRECT) && bytes <= ENV_INLINE_READ_MAX) {
        ssize_t ret = env_call(preadv2(fd, iov, count, (off_t)offset, RWF_NOWAIT));
        if (ret == (ssize_t)bytes || ret == 0)
            return ret; /* all of it was in the cache, or it is the end of the file */
        if (ret < 0 && ret != -EAGAIN && ret != -EOPNOTSUPP)
            return ret;
    }
    struct file_job job = { .fd = fd, .iov = iov, .count = count, .offset = offset };
    hop(pool_default(), readv_job, &job);
    return job.ret;
}

static ssize_t plain_writev_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                                 int flags, int rwf_flags)
{
    if (!(flags & ENV_DIRECT) && !(rwf_flags & (RWF_SYNC | RWF_DSYNC)) &&
        env_iov_bytes(iov, count) <= ENV_INLINE_WRITE_MAX)
        return env_direct_writev_file(fd, iov, count, offset, rwf_flags);
    struct file_job job = {
        .fd = fd, .iov = iov, .count = count, .offset = offset, .rwf_flags = rwf_flags
    };
    hop(pool_default(), writev_job, &job);
    return job.ret;
}

static int plain_fsync(int fd, bool data_only)
{
    struct file_job job = { .fd = fd, .data_only = data_only };
    hop(pool_default(), fsync_job, &job);
    return (int)job.ret;
}

const struct env_ops env_plain = {
    .kind = ENV_PLAIN,
    .name = "plain",
    .probe = plain_probe,
    .lane_open = plain_lane_open,
    .lane_close = plain_lane_close,
    .lane_turn = plain_lane_turn,
    .lane_kick = plain_lane_kick,
    .now_ns = env_real_now_ns,
    .wallclock = env_real_wallclock,
    .random = env_real_random,
    .sleep_off_fiber = env_direct_sleep,
    .hop = pool_hop,
    .wait_fd = plain_wait_fd,
    .readv_file = plain_readv_file,
    .writev_file = plain_writev_file,
    .fsync = plain_fsync,
    .resolve = env_socket_resolve,
    .listen = env_socket_listen,
    .local_address = env_socket_local_address,
    .accept = env_socket_accept,
    .connect = env_socket_connect,
    .send = env_socket_send,
    .recv = env_socket_recv,
    .recv_all = env_socket_recv_all,
    .shutdown = env_socket_shutdown,
    .close = plain_close,
    .tcp_options = env_socket_tcp_options,
    .peer_creds = env_socket_peer_creds,
};
