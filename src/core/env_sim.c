/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* env simulated: one lane, a clock that jumps to the next timer when nothing can run, randomness
 * from a seed. The network is in env_sim_net.c. The same seed gives the same order of everything.
 *
 * Files are real; each call on file data takes a seeded moment first. A hop's function runs on the
 * loop's own stack after such a moment, so it is no fiber there either.
 *
 * Descriptors of the real world (signals, /dev/fuse) may be waited for; while one is, the clock
 * goes with the real one, and nothing is promised about the order. */
#include "core/env_sim.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "core/log.h"

enum {
    REAL_FDS_MAX = 256,
    EPOCH_S = 1893456000, /* 2030-01-01 00:00:00 UTC */
    TURN_NS =
        1000, /* what a turn of busy fibers takes, so that who yields in a loop sees time go */
};

struct sim_job {
    struct timer timer;
    STAILQ_ENTRY(sim_job) next;
    hop_fn *fn;
    void *arg;
    struct fiber *fiber;
};

struct sim_real_waiter {
    TAILQ_ENTRY(sim_real_waiter) next;
    struct fiber *fiber;
    int fd;
    short events, ready;
};

static struct {
    uint64_t now_ns;
    unsigned short random[3];
    STAILQ_HEAD(, sim_job) jobs;
    TAILQ_HEAD(, sim_real_waiter) real_waiters;
} sim;

/* --- clock, randomness ------------------------------------------------------------------------ */

static int sim_probe(uint64_t seed)
{
    sim.now_ns = NS_PER_S;
    for (unsigned i = 0; i < 3; i++)
        sim.random[i] = (unsigned short)(seed >> 16 * i);
    sim.random[0] ^= (unsigned short)(seed >> 48);
    for (unsigned i = 0; i < 8; i++)
        (void)jrand48(sim.random); /* the first few of neighbouring seeds are alike */
    STAILQ_INIT(&sim.jobs);
    TAILQ_INIT(&sim.real_waiters);
    sim_net_reset();
    return 0;
}

static uint64_t sim_now_ns(void)
{
    return sim.now_ns;
}

static struct timespec sim_wallclock(void)
{
    return (struct timespec){ .tv_sec = EPOCH_S + (time_t)(sim.now_ns / NS_PER_S),
                              .tv_nsec = (long)(sim.now_ns % NS_PER_S) };
}

uint32_t sim_random(uint32_t below)
{
    return (uint32_t)((uint64_t)(uint32_t)jrand48(sim.random) * below >> 32);
}

static void sim_random_bytes(void *bytes, size_t n)
{
    unsigned char *at = bytes;
    while (n--)
        *at++ = (unsigned char)sim_random(256);
}

static void sim_sleep_off_fiber(uint64_t ns)
{
    sim.now_ns += ns;
}

/* --- the lane --------------------------------------------------------------------------------- */

static int sim_lane_open(struct lane *lane)
{
    (void)lane;
    return 0;
}

static void sim_lane_close(struct lane *lane)
{
    (void)lane;
    STAILQ_INIT(&sim.jobs); /* on stacks of abandoned fibers */
    TAILQ_INIT(&sim.real_waiters);
    sim_net_reset();
}

static void sim_lane_kick(struct lane *lane)
{
    (void)lane; /* nothing outside the lane's thread wakes anybody */
}

static bool sim_run_jobs(void)
{
    bool any = false;
    for (struct sim_job *job; (job = STAILQ_FIRST(&sim.jobs)); any = true) {
        STAILQ_REMOVE_HEAD(&sim.jobs, next);
        struct fiber *fiber = job->fiber;
        job->fn(job->arg);
        fiber_done(fiber);
    }
    return any;
}

/* Looks at the real descriptors that are waited for, until until_ns of our clock, which follows. */
static void sim_poll_real(uint64_t until_ns)
{
    struct pollfd pollfds[REAL_FDS_MAX];
    struct sim_real_waiter *waiter, *next;
    nfds_t n = 0;
    TAILQ_FOREACH(waiter, &sim.real_waiters, next)
    pollfds[n++] = (struct pollfd){ .fd = waiter->fd, .events = waiter->events };
    uint64_t left_ns = until_ns > sim.now_ns ? until_ns - sim.now_ns : 0,
             start_ns = env_real_now_ns();
    struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S),
                             .tv_nsec = (long)(left_ns % NS_PER_S) };
    int ready = ppoll(pollfds, n, until_ns == UINT64_MAX ? NULL : &left, NULL);
    uint64_t took_ns = env_real_now_ns() - start_ns;
    sim.now_ns += until_ns == UINT64_MAX ? took_ns : MIN(took_ns, left_ns);
    if (ready <= 0)
        return;
    n = 0;
    for (waiter = TAILQ_FIRST(&sim.real_waiters); waiter; waiter = next) {
        next = TAILQ_NEXT(waiter, next);
        waiter->ready = pollfds[n++].revents;
        if (!waiter->ready)
            continue;
        TAILQ_REMOVE(&sim.real_waiters, waiter, next);
        fiber_done(waiter->fiber);
    }
}

static _Noreturn void sim_is_stuck(struct lane *lane)
{
    struct fiber *fiber;
    LIST_FOREACH(fiber, &lane->live, live)
    log_critical("core", 0, "fiber \"%s\" waits for: %s", fiber->name, fiber->why);
    log_critical("core", 0, "the simulation is stuck: no fiber can run and no timer is armed");
    abort();
}

static void sim_lane_turn(struct lane *lane, uint64_t until_ns)
{
    if (sim_run_jobs())
        return;
    if (!TAILQ_EMPTY(&sim.real_waiters))
        sim_poll_real(until_ns);
    else if (until_ns == UINT64_MAX)
        sim_is_stuck(lane);
    else
        sim.now_ns = until_ns ? MAX(sim.now_ns, until_ns) : sim.now_ns + TURN_NS;
}

static int sim_wait_fd(int fd, short events, uint64_t until_ns)
{
    struct sim_real_waiter waiter = { .fiber = fiber_self(), .fd = fd, .events = events }, *other;
    int n = 0;
    TAILQ_FOREACH(other, &sim.real_waiters, next)
    n++;
    if (n == REAL_FDS_MAX)
        return -ENOMEM;
    TAILQ_INSERT_TAIL(&sim.real_waiters, &waiter, next);
    if (!until_ns)
        fiber_wait("descriptor");
    else if (!fiber_wait_until("descriptor", until_ns)) {
        TAILQ_REMOVE(&sim.real_waiters, &waiter, next);
        return -ETIMEDOUT;
    }
    return waiter.ready & POLLNVAL ? -EBADF : waiter.ready;
}

/* --- hop and file data ------------------------------------------------------------------------ */

static void sim_job_due(struct timer *timer)
{
    struct sim_job *job = container_of(timer, struct sim_job, timer);
    STAILQ_INSERT_TAIL(&sim.jobs, job, next);
}

static void sim_hop(struct pool *pool, hop_fn *fn, void *arg)
{
    (void)pool;
    struct sim_job job = {
        .timer.expire = sim_job_due, .fn = fn, .arg = arg, .fiber = fiber_self()
    };
    lane_timer_add(lane_current, &job.timer, sim.now_ns + (1 + sim_random(100)) * NS_PER_US);
    fiber_wait("worker");
}

static void sim_moment(uint32_t us)
{
    env_sleep((1 + sim_random(us)) * NS_PER_US);
}

static ssize_t sim_readv_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                              int flags)
{
    sim_moment(flags & ENV_DIRECT ? 200 : 20);
    return env_direct_readv_file(fd, iov, count, offset);
}

static ssize_t sim_writev_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                               int flags, int rwf_flags)
{
    sim_moment(flags & ENV_DIRECT ? 200 : 20);
    return env_direct_writev_file(fd, iov, count, offset, rwf_flags);
}

static int sim_fsync(int fd, bool data_only)
{
    sim_moment(5000);
    return env_direct_fsync(fd, data_only);
}

const struct env_ops env_sim = {
    .kind = ENV_SIM,
    .name = "sim",
    .probe = sim_probe,
    .lane_open = sim_lane_open,
    .lane_close = sim_lane_close,
    .lane_turn = sim_lane_turn,
    .lane_kick = sim_lane_kick,
    .now_ns = sim_now_ns,
    .wallclock = sim_wallclock,
    .random = sim_random_bytes,
    .sleep_off_fiber = sim_sleep_off_fiber,
    .hop = sim_hop,
    .wait_fd = sim_wait_fd,
    .readv_file = sim_readv_file,
    .writev_file = sim_writev_file,
    .fsync = sim_fsync,
    .resolve = sim_resolve,
    .listen = sim_listen,
    .local_address = sim_local_address,
    .accept = sim_accept,
    .connect = sim_connect,
    .send = sim_send,
    .recv = sim_recv,
    .recv_all = sim_recv_all,
    .shutdown = sim_shutdown,
    .close = sim_close,
    .tcp_options = sim_tcp_options,
    .peer_creds = sim_peer_creds,
};
