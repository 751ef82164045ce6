/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lanes: threads with a loop each. A turn of the loop: run every fiber that was ready at its start,
 * submit once what they asked for, reap everything that is there, look at the timers.
 *
 * Others hand a fiber over by pushing it on the lane's inbox. Whoever finds the lane asleep (or
 * about to be) kicks it; a lane that is awake costs no system call. */
#include "core/lane.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/env_internal.h"
#include "core/log.h"

enum {
    ALTSTACK_BYTES = 16 * 1024
};

static struct lane
    lanes[LANES_MAX]; /* never freed: a timer may be cancelled after its lane's end */
static _Atomic unsigned count;
static pthread_mutex_t grow_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_stopping;

/* --- the table of lanes ----------------------------------------------------------------------- */

static void lane_init(struct lane *lane, unsigned index)
{
    *lane = (struct lane){ .index = index };
    lane->ready.last = &lane->ready.first;
    pthread_mutex_init(&lane->mutex, NULL);
    LIST_INIT(&lane->live);
}

struct lane *lane_self(void)
{
    return lane_current;
}

struct lane *lane_get(unsigned index)
{
    if (index == 0 && count == 0) { /* before lanes_run: what is posted waits for it */
        HOLD(&grow_mutex);
        if (count == 0) {
            lane_init(&lanes[0], 0);
            count = 1;
        }
    }
    return index < count ? &lanes[index] : NULL;
}

unsigned lane_index(const struct lane *lane)
{
    return lane->index;
}

unsigned lanes_count(void)
{
    return count;
}

void lanes_get_stats(struct lane_stats *ret_stats)
{
    *ret_stats = (struct lane_stats){ .turns = 0 };
    for (unsigned i = 0; i < count; i++) {
        ret_stats->turns += lanes[i].turns;
        ret_stats->switches += lanes[i].switches;
        ret_stats->aways += lanes[i].away_count;
    }
}

/* --- ready fibers and the inbox --------------------------------------------------------------- */

void lane_ready(struct lane *lane, struct fiber *fiber)
{
    fiber->next = NULL;
    *lane->ready.last = fiber;
    lane->ready.last = &fiber->next;
    lane->ready_count++;
}

static struct fiber *lane_pop(struct lane *lane)
{
    struct fiber *fiber = lane->ready.first;
    if (!fiber)
        return NULL;
    lane->ready.first = fiber->next;
    if (!lane->ready.first)
        lane->ready.last = &lane->ready.first;
    lane->ready_count--;
    return fiber;
}

void lane_post(struct lane *lane, struct fiber *fiber)
{
    if (lane == lane_current) {
        lane_ready(lane, fiber);
        return;
    }
    struct fiber *first = lane->inbox;
    do
        fiber->next = first;
    while (!atomic_compare_exchange_weak(&lane->inbox, &first, fiber));
    if (lane->is_asleep && atomic_exchange(&lane->is_asleep, false))
        env_ops->lane_kick(lane);
}

/* The inbox is newest first: turned round on its way to the ready queue. */
static void lane_empty_inbox(struct lane *lane)
{
    if (!atomic_load_explicit(&lane->inbox, memory_order_relaxed))
        return;
    struct fiber *newest = atomic_exchange(&lane->inbox, NULL), *oldest = NULL;
    while (newest) {
        struct fiber *fiber = newest;
        newest = fiber->next;
        fiber->next = oldest;
        oldest = fiber;
    }
    while (oldest) {
        struct fiber *fiber = oldest;
        oldest = fiber->next;
        lane_ready(lane, fiber);
    }
}

/* --- the loop --------------------------------------------------------------------------------- */

static void lane_run_ready(struct lane *lane)
{
    unsigned n = lane->ready_count;
    for (unsigned i = 0; i < n; i++)
        fiber_run(lane, lane_pop(lane));
    atomic_fetch_add_explicit(&lane->switches, n, memory_order_relaxed);
}

/* Gives idle memory back, at most every LANE_TIDY_S and only while there is some. */
static void lane_tidy(struct lane *lane, uint64_t now_ns)
{
    if (env_ops->kind == ENV_SIM)
        return;
    if (lane->tidy_at_ns == 0 && lane->ready_count)
        lane->tidy_at_ns = now_ns + LANE_TIDY_S * NS_PER_S;
    if (lane->tidy_at_ns == 0 || now_ns < lane->tidy_at_ns)
        return;
    bool more = stack_tidy(lane);
    if (lane->index == 0 && buf_tidy())
        more = true;
    lane->tidy_at_ns = more ? now_ns + LANE_TIDY_S * NS_PER_S : 0;
}

static void lane_wait(struct lane *lane)
{
    uint64_t until_ns = lane_timers_next(lane);
    if (lane->tidy_at_ns)
        until_ns = MIN(until_ns, lane->tidy_at_ns);
    lane->is_asleep = true;
    if (lane->inbox || is_stopping)
        until_ns = 0;
    env_ops->lane_turn(lane, until_ns);
    lane->is_asleep = false;
}

static void lane_loop(struct lane *lane)
{
    uint64_t now_ns = env_ops->now_ns();
    while (!is_stopping) {
        lane_empty_inbox(lane);
        lane_tidy(lane, now_ns);
        lane_run_ready(lane);
        uint64_t then_ns = now_ns;
        now_ns = env_ops->now_ns();
        if (now_ns - then_ns > LANE_AWAY_MS * NS_PER_MS)
            count_add(&lane->away_count, 1);
        if (lane->ready_count)
            env_ops->lane_turn(lane, 0);
        else
            lane_wait(lane);
        count_add(&lane->turns, 1);
        now_ns = env_ops->now_ns();
        lane_timers_expire(lane, now_ns);
    }
}

/* Opens the backend on this thread, which becomes the lane. */
static int lane_begin(struct lane *lane)
{
    lane_current = lane;
    int ret = env_ops->lane_open(lane);
    if (ret < 0)
        lane_current = NULL;
    return ret;
}

/* Fibers that are still parked are abandoned; nothing refers to their stacks any more. */
static void lane_abandon(struct lane *lane)
{
    lane_timers_drop(lane);
    lane_empty_inbox(lane);
    for (struct fiber *fiber; (fiber = lane_pop(lane));)
        if (!fiber->is_listed) {
            LIST_INSERT_HEAD(&lane->live, fiber, live);
            fiber->is_listed = true;
        }
    for (struct fiber *fiber; (fiber = LIST_FIRST(&lane->live));) {
        fiber->state = FIBER_DEAD;
        fiber_end(lane, fiber);
    }
}

static void *lane_altstack_open(void)
{
    stack_t stack = { .ss_sp = malloc(ALTSTACK_BYTES), .ss_size = ALTSTACK_BYTES };
    if (stack.ss_sp)
        sigaltstack(&stack, NULL);
    return stack.ss_sp;
}

static void lane_altstack_close(void *memory)
{
    stack_t stack = { .ss_flags = SS_DISABLE };
    if (memory)
        sigaltstack(&stack, NULL);
    free(memory);
}

static void lane_run(struct lane *lane)
{
    void *altstack = lane_altstack_open(); /* for the message of an overflowing fiber */
    lane_loop(lane);
    lane_altstack_close(altstack);
}

static void *lane_thread(void *arg)
{
    struct lane *lane = arg;
    lane->start_ret = lane_begin(lane);
    bool is_good = lane->start_ret == 0;
    lane->is_started = true;
    if (!is_good)
        return NULL;
    lane_run(lane);
    lane_current = NULL;
    return NULL;
}

/* Signals are the business of whoever opened them: lanes and workers get none. */
int lane_thread_create(pthread_t *ret_thread, const char *name, size_t stack_size,
                       void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stack_size);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = -pthread_create(ret_thread, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (ret == 0)
        pthread_setname_np(*ret_thread, name);
    return ret;
}

static int lane_start(struct lane *lane)
{
    int ret = lane_thread_create(&lane->thread, "lane", LANE_THREAD_STACK_BYTES, lane_thread, lane);
    if (ret < 0)
        return ret;
    while (!lane->is_started)
        sched_yield(); /* a thread's start and a ring: well under a millisecond */
    if (lane->start_ret < 0)
        pthread_join(lane->thread, NULL);
    return lane->start_ret;
}

unsigned lanes_grow(unsigned n)
{
    if (env_ops->kind == ENV_SIM)
        return count; /* one lane: order is all that a simulation has */
    HOLD(&grow_mutex);
    for (unsigned i = count; i < MIN(n, (unsigned)LANES_MAX) && !is_stopping; i++) {
        lane_init(&lanes[i], i);
        int ret = lane_start(&lanes[i]);
        if (ret < 0) {
            log_warn("core", ret, "cannot start lane %u: going on with %u", i, count);
            break;
        }
        count = i + 1;
    }
    return count;
}

static void lanes_end(void)
{
    for (unsigned i = 1; i < count; i++) {
        env_ops->lane_kick(&lanes[i]);
        pthread_join(lanes[i].thread, NULL);
    }
    pools_stop(); /* jobs live on the stacks of the fibers that wait for them */
    for (unsigned i = 0; i < count; i++)
        env_ops->lane_close(&lanes[i]);
    for (unsigned i = 0; i < count; i++)
        lane_abandon(&lanes[i]);
    for (unsigned i = 0; i < count; i++)
        stack_drop_all(&lanes[i]);
    count = 0;
}

int lanes_run(fiber_fn *main_fn, void *arg)
{
    assert(!lane_current);
    struct lane *lane = lane_get(0);
    int ret = lane_begin(lane);
    if (ret < 0 && env_give_way(ret)) /* probed well, and then others took what there was */
        ret = lane_begin(lane);
    if (ret < 0)
        return ret;
    is_stopping = false;
    ret = fiber_start("main", main_fn, arg);
    if (ret == 0)
        lane_run(lane);
    lanes_end();
    lane_current = NULL;
    return ret;
}

void lanes_stop(void)
{
    is_stopping = true;
    for (unsigned i = 0; i < count; i++)
        if (&lanes[i] != lane_current)
            env_ops->lane_kick(&lanes[i]);
}
