/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* env on io_uring: one ring a lane, nobody else touches it. What a fiber asks for is queued; the
 * lane's turn submits it all with one system call and reaps everything that is there.
 *
 * Choices by measurement: a buffered write is never an SQE (a kernel worker would take it); a small
 * read that is in the page cache is cheaper as preadv2(RWF_NOWAIT), at any depth (64 at once: 1.9
 * us of processor time against 2.7); sends try at once. */
#include <assert.h>
#include <liburing.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "core/env_internal.h"
#include "core/log.h"

/* newer than liburing 2.3's headers may be */
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif
#ifndef IORING_SETUP_TASKRUN_FLAG
#define IORING_SETUP_TASKRUN_FLAG (1U << 9)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif
#ifndef IORING_SQ_TASKRUN
#define IORING_SQ_TASKRUN (1U << 2)
#endif
#ifndef IORING_SETUP_SQE128
#define IORING_SETUP_SQE128 (1U << 10)
#endif
enum { OP_URING_CMD = 46, COMMAND_OFFSET = 48 }; /* of the command's data in a 128-byte entry */

enum {
    SQ_ENTRIES = 256,
    CQ_ENTRIES = 4096,
    SHIFT_MAX = 4,
    READS_AFTER_MISS = 7
};

struct uring {
    struct io_uring ring;
    int kick;
    bool is_kick_armed, has_taskrun_flag;
    unsigned in_flight;    /* of fibers */
    unsigned reads_missed; /* so many go straight to the ring */
};

/* An operation in flight, on its fiber's stack. */
struct uring_op {
    struct fiber *fiber;
    int res;
    bool is_done;
};

/* --- the ring --------------------------------------------------------------------------------- */

/* FUSE's commands need entries of 128 bytes; where it may not use the ring there is no need. */
static bool uring_has_commands(void)
{
    static _Atomic int answer = -1;
    if (answer < 0) {
        char enabled = 'N';
        int fd = open("/sys/module/fuse/parameters/enable_uring", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, &enabled, 1) != 1)
            enabled = 'N';
        if (fd >= 0)
            close(fd);
        answer = enabled == 'Y' || enabled == '1';
    }
    return answer;
}

/* The sizes are halved up to SHIFT_MAX times where memory is short. */
static int ring_open(struct io_uring *ring, unsigned shift, bool *ret_has_taskrun_flag)
{
    static const unsigned tries[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        0,
    };
    unsigned i = 0;
    int ret;
    do { /* older kernels lack flags; newer ones count the ring against RLIMIT_MEMLOCK */
        unsigned flags = tries[i] | (uring_has_commands() ? IORING_SETUP_SQE128 : 0);
        struct io_uring_params params = { .flags = flags | IORING_SETUP_CQSIZE,
                                          .cq_entries = CQ_ENTRIES >> shift };
        ret = io_uring_queue_init_params(SQ_ENTRIES >> shift, ring, &params);
        *ret_has_taskrun_flag = tries[i] & IORING_SETUP_TASKRUN_FLAG;
    } while ((ret == -EINVAL && ++i < ARRAY_SIZE(tries)) ||
             (ret == -ENOMEM && ++shift <= SHIFT_MAX));
    unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
    if (ret == 0 && (ring->features & needed) != needed) {
        io_uring_queue_exit(ring);
        ret = -ENOSYS;
    }
    return ret;
}

/* A filter may let io_uring_setup through and refuse io_uring_enter: try both. */
static int uring_probe(uint64_t seed)
{
    (void)seed;
    struct io_uring ring;
    struct io_uring_cqe *cqe;
    bool has_flag;
    int ret = ring_open(&ring, SHIFT_MAX, &has_flag); /* small: its memory is freed only later */
    if (ret < 0)
        return ret;
    io_uring_prep_nop(io_uring_get_sqe(&ring));
    ret = io_uring_submit(&ring);
    if (ret == 1)
        ret = io_uring_wait_cqe(&ring, &cqe);
    io_uring_queue_exit(&ring);
    return MIN(ret, 0);
}

/* The kick's eventfd is polled, edge by edge, and never read. */
static void uring_arm_kick(struct uring *uring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
    if (!sqe)
        return; /* the next turn tries again, after it has submitted */
    io_uring_prep_poll_multishot(sqe, uring->kick, POLLIN);
    io_uring_sqe_set_data(sqe, uring);
    uring->is_kick_armed = true;
}

static int uring_lane_open(struct lane *lane)
{
    struct uring *uring = calloc(1, sizeof(*uring));
    if (!uring)
        return -ENOMEM;
    uring->kick = (int)env_call(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int ret = uring->kick < 0 ? uring->kick : ring_open(&uring->ring, 0, &uring->has_taskrun_flag);
    if (ret < 0) {
        if (uring->kick >= 0)
            close(uring->kick);
        free(uring);
        return ret;
    }
    (void)io_uring_register_ring_fd(&uring->ring); /* only spares the kernel a look-up */
    lane->backend = uring;
    return 0;
}

static void uring_lane_close(struct lane *lane)
{
    struct uring *uring = lane->backend;
    if (uring->in_flight) { /* of abandoned fibers, whose stacks are about to go */
        struct io_uring_sync_cancel_reg all = { .flags = IORING_ASYNC_CANCEL_ANY |
                                                         IORING_ASYNC_CANCEL_ALL,
                                                .fd = -1,
                                                .timeout = { .tv_sec = 1 } };
        (void)io_uring_register_sync_cancel(&uring->ring, &all); /* an older kernel: exit does it */
    }
    io_uring_queue_exit(&uring->ring);
    close(uring->kick);
    free(uring);
    lane->backend = NULL;
}

static void uring_lane_kick(struct lane *lane)
{
    struct uring *uring = lane->backend;
    uint64_t one = 1;
    long ret = env_call(write(uring->kick, &one, sizeof(one)));
    assert(ret == sizeof(one));
}

static void uring_complete(struct uring *uring, const struct io_uring_cqe *cqe)
{
    void *data = io_uring_cqe_get_data(cqe);
    if (!data)
        return; /* a cancellation's own answer */
    if (data == uring) {
        uring->is_kick_armed = cqe->flags & IORING_CQE_F_MORE;
        return;
    }
    struct uring_op *op = data;
    op->res = cqe->res;
    op->is_done = true;
    uring->in_flight--;
    fiber_done(op->fiber);
}

static void uring_reap(struct uring *uring)
{
    struct io_uring_cqe *cqe;
    unsigned head, n = 0;
    io_uring_for_each_cqe(&uring->ring, head, cqe)
    {
        uring_complete(uring, cqe);
        n++;
    }
    io_uring_cq_advance(&uring->ring, n);
}

/* Is there anything for which the kernel must be entered, though we do not wait? */
static bool uring_must_enter(struct uring *uring)
{
    if (!uring->has_taskrun_flag || io_uring_sq_ready(&uring->ring))
        return true;
    unsigned flags = __atomic_load_n(uring->ring.sq.kflags, __ATOMIC_RELAXED);
    return flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static int uring_wait(struct uring *uring, uint64_t until_ns)
{
    struct io_uring_cqe *cqe;
    if (until_ns == UINT64_MAX)
        return io_uring_submit_and_wait(&uring->ring, 1);
    uint64_t now_ns = env_real_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct __kernel_timespec left = { .tv_sec = (long long)(left_ns / NS_PER_S),
                                      .tv_nsec = (long long)(left_ns % NS_PER_S) };
    return io_uring_submit_and_wait_timeout(&uring->ring, &cqe, 1, &left, NULL);
}

static void uring_lane_turn(struct lane *lane, uint64_t until_ns)
{
    struct uring *uring = lane->backend;
    if (!uring->is_kick_armed)
        uring_arm_kick(uring);
    int ret = 0;
    if (until_ns)
        ret = uring_wait(uring, until_ns);
    else if (uring_must_enter(uring))
        ret = io_uring_submit_and_get_events(&uring->ring);
    /* EBUSY, EAGAIN: completions must be reaped first, or memory is short: the next turn submits */
    if (ret < 0 && ret != -ETIME && ret != -EINTR && ret != -EBUSY && ret != -EAGAIN) {
        log_critical("core", ret, "io_uring fails");
        abort();
    }
    uring_reap(uring);
}

/* --- operations ------------------------------------------------------------------------------- */

static struct io_uring_sqe *uring_sqe(struct uring *uring)
{
    struct io_uring_sqe *sqe;
    while (!(sqe = io_uring_get_sqe(&uring->ring))) {
        int ret = io_uring_submit(&uring->ring);
        if (ret < 0)
            fiber_yield(); /* the turn reaps, which makes room */
    }
    return sqe;
}

static struct uring *uring_self(void)
{
    return lane_current->backend;
}

static void uring_queue(struct uring *uring, struct io_uring_sqe *sqe, struct uring_op *op)
{
    *op = (struct uring_op){ .fiber = fiber_self() };
    io_uring_sqe_set_data(sqe, op);
    uring->in_flight++;
}

/* Parks until the operation is done: its result. */
static int uring_do(struct io_uring_sqe *sqe, const char *why)
{
    struct uring_op op;
    uring_queue(uring_self(), sqe, &op);
    fiber_wait(why);
    assert(op.is_done);
    return op.res;
}

static int uring_do_until(struct io_uring_sqe *sqe, const char *why, uint64_t until_ns)
{
    struct uring *uring = uring_self();
    struct uring_op op;
    uring_queue(uring, sqe, &op);
    if (!fiber_wait_until(why, until_ns)) {
        sqe = uring_sqe(uring);
        io_uring_prep_cancel(sqe, &op, 0);
        io_uring_sqe_set_data(sqe, NULL);
        fiber_wait(why); /* the operation itself always answers */
        if (op.res == -ECANCELED)
            return -ETIMEDOUT;
    }
    return op.res;
}

static int uring_wait_fd(int fd, short events, uint64_t until_ns)
{
    int ret;
    do {
        struct io_uring_sqe *sqe = uring_sqe(uring_self());
        io_uring_prep_poll_add(sqe, fd, (unsigned)events);
        ret = until_ns ? uring_do_until(sqe, "descriptor", until_ns) : uring_do(sqe, "descriptor");
    } while (ret == -EINTR);
    if (ret >= 0 && ret & POLLNVAL)
        return -EBADF;
    return ret;
}

static int uring_command(const struct env_command *command)
{
    struct io_uring_sqe *sqe = uring_sqe(uring_self());
    memset(sqe, 0, COMMAND_OFFSET);
    sqe->opcode = OP_URING_CMD;
    sqe->fd = command->fd;
    memcpy(&sqe->off, &command->op, sizeof(command->op)); /* cmd_op shares its place */
    sqe->addr = (uintptr_t)command->iov;
    sqe->len = command->iov_count;
    memcpy((char *)sqe + COMMAND_OFFSET, command->data, sizeof(command->data));
    return uring_do(sqe, "command");
}

/* --- file data -------------------------------------------------------------------------------- */

struct file_job {
    int fd, count, rwf_flags;
    const struct iovec *iov;
    uint64_t offset;
    ssize_t ret;
};

static void read_job(void *arg)
{
    struct file_job *job = arg;
    job->ret = env_direct_readv_file(job->fd, job->iov, job->count, job->offset);
}

static void write_job(void *arg)
{
    struct file_job *job = arg;
    job->ret = env_direct_writev_file(job->fd, job->iov, job->count, job->offset, job->rwf_flags);
}

/* Out of the page cache, or -EAGAIN. A miss says that the next few will probably miss as well. */
static ssize_t uring_read_cached(struct uring *uring, const struct file_job *job)
{
    uint64_t bytes = env_iov_bytes(job->iov, job->count);
    if (bytes > ENV_INLINE_READ_MAX)
        return -EAGAIN;
    if (uring->reads_missed > 0) {
        uring->reads_missed--;
        return -EAGAIN;
    }
    ssize_t ret = env_call(preadv2(job->fd, job->iov, job->count, (off_t)job->offset, RWF_NOWAIT));
    if (ret == (ssize_t)bytes || ret == 0)
        return ret; /* all of it, or the end of the file */
    if (ret > 0 || ret == -EOPNOTSUPP)
        ret = -EAGAIN;
    if (ret == -EAGAIN)
        uring->reads_missed = READS_AFTER_MISS;
    return ret;
}

static ssize_t uring_readv_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                                int flags)
{
    struct uring *uring = uring_self();
    struct file_job job = { .fd = fd, .iov = iov, .count = count, .offset = offset };
    ssize_t ret = flags & ENV_DIRECT ? -EAGAIN : uring_read_cached(uring, &job);
    if (ret != -EAGAIN)
        return ret;
    struct io_uring_sqe *sqe = uring_sqe(uring);
    io_uring_prep_readv(sqe, fd, iov, (unsigned)count, offset);
    ret = uring_do(sqe, "file read");
    if (ret != -EAGAIN && ret != -EINTR)
        return ret;
    hop(pool_default(), read_job, &job); /* opened O_NONBLOCK: the ring takes it at its word */
    return job.ret;
}

static ssize_t uring_writev_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                                 int flags, int rwf_flags)
{
    struct file_job job = {
        .fd = fd, .iov = iov, .count = count, .offset = offset, .rwf_flags = rwf_flags
    };
    bool is_buffered = !(flags & ENV_DIRECT) && !(rwf_flags & (RWF_SYNC | RWF_DSYNC));
    if (is_buffered && env_iov_bytes(iov, count) <= ENV_INLINE_WRITE_MAX) {
        write_job(&job);
        return job.ret;
    }
    if (!is_buffered) {
        struct io_uring_sqe *sqe = uring_sqe(uring_self());
        io_uring_prep_writev2(sqe, fd, iov, (unsigned)count, offset, rwf_flags);
        ssize_t ret = uring_do(sqe, "file write");
        if (ret != -EAGAIN && ret != -EINTR)
            return ret;
    }
    hop(pool_default(), write_job, &job);
    return job.ret;
}

static int uring_fsync(int fd, bool data_only)
{
    struct io_uring_sqe *sqe = uring_sqe(uring_self());
    io_uring_prep_fsync(sqe, fd, data_only ? IORING_FSYNC_DATASYNC : 0);
    int ret = uring_do(sqe, "fsync");
    return ret == -EINTR ? env_direct_fsync(fd, data_only) : ret;
}

/* --- sockets ---------------------------------------------------------------------------------- */

/* A receive that filled its buffer is probably followed by another that finds data: those try at
 * once. Else the SQE goes with the turn, which is a system call anyway. */
static ssize_t uring_recv(int fd, void *buffer, size_t bytes)
{
    struct fiber *fiber = fiber_self();
    ssize_t ret = -EAGAIN;
    if (fiber->is_hot)
        ret = env_call(recv(fd, buffer, bytes, MSG_DONTWAIT));
    while (ret == -EAGAIN || ret == -EINTR) {
        struct io_uring_sqe *sqe = uring_sqe(uring_self());
        io_uring_prep_recv(sqe, fd, buffer, bytes, 0);
        ret = uring_do(sqe, "receive");
        if (ret == -EAGAIN)                     /* a kernel that takes O_NONBLOCK at its word */
            (void)uring_wait_fd(fd, POLLIN, 0); /* a failure shows in the next try */
    }
    fiber->is_hot = ret == (ssize_t)bytes;
    return ret;
}

static ssize_t uring_recvmsg(int fd, struct msghdr *message)
{
    ssize_t ret = env_call(recvmsg(fd, message, MSG_DONTWAIT));
    while (ret == -EAGAIN || ret == -EINTR) {
        struct io_uring_sqe *sqe = uring_sqe(uring_self());
        io_uring_prep_recvmsg(sqe, fd, message, MSG_WAITALL);
        ret = uring_do(sqe, "receive");
        if (ret == -EAGAIN)
            (void)uring_wait_fd(fd, POLLIN, 0);
    }
    return ret;
}

static ssize_t uring_recv_all(int fd, const struct iovec *iov, int count)
{
    uint64_t got = 0, bytes = env_iov_bytes(iov, count);
    struct iovec window[ENV_WINDOW];
    while (got < bytes) {
        struct msghdr message = { .msg_iov = window };
        message.msg_iovlen = (size_t)env_iov_window(iov, count, got, window);
        ssize_t ret = uring_recvmsg(fd, &message);
        if (ret == 0)
            break;
        if (ret < 0)
            return ret;
        got += (uint64_t)ret;
    }
    return (ssize_t)got;
}

static ssize_t uring_sendmsg(int fd, struct msghdr *message)
{
    ssize_t ret = env_call(sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL));
    while (ret == -EAGAIN || ret == -EINTR) {
        struct io_uring_sqe *sqe = uring_sqe(uring_self());
        io_uring_prep_sendmsg(sqe, fd, message, MSG_WAITALL | MSG_NOSIGNAL);
        ret = uring_do(sqe, "send");
        if (ret == -EAGAIN)
            (void)uring_wait_fd(fd, POLLOUT, 0);
    }
    return ret;
}

static ssize_t uring_send(int fd, const struct iovec *iov, int count)
{
    uint64_t sent = 0, bytes = env_iov_bytes(iov, count);
    struct iovec window[ENV_WINDOW];
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)iov,
                              .msg_iovlen = (size_t)MIN(count, IOV_MAX) };
    while (sent < bytes) {
        ssize_t ret = uring_sendmsg(fd, &message);
        if (ret < 0)
            return ret;
        sent += (uint64_t)ret;
        if (sent < bytes) {
            message.msg_iovlen = (size_t)env_iov_window(iov, count, sent, window);
            message.msg_iov = window;
        }
    }
    return (ssize_t)sent;
}

const struct env_ops env_uring = {
    .kind = ENV_URING,
    .name = "uring",
    .probe = uring_probe,
    .lane_open = uring_lane_open,
    .lane_close = uring_lane_close,
    .lane_turn = uring_lane_turn,
    .lane_kick = uring_lane_kick,
    .now_ns = env_real_now_ns,
    .wallclock = env_real_wallclock,
    .random = env_real_random,
    .sleep_off_fiber = env_direct_sleep,
    .hop = pool_hop,
    .wait_fd = uring_wait_fd,
    .readv_file = uring_readv_file,
    .writev_file = uring_writev_file,
    .fsync = uring_fsync,
    .command = uring_command,
    .has_commands = uring_has_commands,
    .resolve = env_socket_resolve,
    .listen = env_socket_listen,
    .local_address = env_socket_local_address,
    .accept = env_socket_accept,
    .connect = env_socket_connect,
    .send = uring_send,
    .recv = uring_recv,
    .recv_all = uring_recv_all,
    .shutdown = env_socket_shutdown,
    .close = env_socket_close,
    .tcp_options = env_socket_tcp_options,
    .peer_creds = env_socket_peer_creds,
};
