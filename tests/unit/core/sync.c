/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/sync.h"

#include "backends.h"

#include <errno.h>
#include <pthread.h>

#include "core/lane.h"

static _Atomic unsigned running;
static unsigned order[64], order_count;

static void start(const char *name, fiber_fn *fn, void *arg)
{
    running++;
    check_equal(fiber_start(name, fn, arg), 0);
}

static void start_on(unsigned lane, const char *name, fiber_fn *fn, void *arg)
{
    running++;
    check_equal(fiber_start_on(lane_get(lane), name, fn, arg), 0);
}

static void wait_for_all(void)
{
    while (running > 0)
        env_sleep(NS_PER_MS);
}

/* --- fmutex ----------------------------------------------------------------------------------- */

static struct fmutex mutex;
static unsigned inside, counter;

static void notes_its_turn(void *arg)
{
    FLOCK(&mutex);
    order[order_count++] = (unsigned)(uintptr_t)arg;
    fiber_yield();
    running--;
}

static void mutex_is_first_come_first_served(void)
{
    fmutex_init(&mutex);
    order_count = 0;
    fmutex_lock(&mutex);
    for (unsigned i = 0; i < 20; i++)
        start("waiter", notes_its_turn, (void *)(uintptr_t)i);
    fiber_yield();
    check(!fmutex_trylock(&mutex));
    fmutex_unlock(&mutex);
    check(!fmutex_trylock(&mutex)); /* it was handed to the first waiter, nobody overtakes */
    wait_for_all();
    for (unsigned i = 0; i < 20; i++)
        check_equal(order[i], i);
    check(fmutex_trylock(&mutex));
    fmutex_unlock(&mutex);
    fmutex_fini(&mutex);
}

static void counts_exclusively(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 300; i++) {
        FLOCK(&mutex);
        check_equal(inside++, 0);
        if (i % 16 == 0)
            fiber_yield();
        counter++;
        inside--;
    }
    running--;
}

static void counts_exclusively_on_a_worker(void *arg)
{
    for (unsigned i = 0; i < 300; i++) {
        FLOCK(&mutex);
        check_equal(inside++, 0);
        counter++;
        inside--;
    }
    *(bool *)arg = true;
}

static void hops_and_counts(void *arg)
{
    (void)arg;
    bool is_done = false;
    hop(pool_default(), counts_exclusively_on_a_worker, &is_done);
    check(is_done);
    running--;
}

static void mutex_excludes_across_lanes_and_workers(void)
{
    unsigned lanes = lanes_grow(4);
    fmutex_init(&mutex);
    counter = inside = 0;
    for (unsigned i = 0; i < 12; i++)
        start_on(i % lanes, "counter", counts_exclusively, NULL);
    for (unsigned i = 0; i < 3; i++)
        start("hopper", hops_and_counts, NULL);
    wait_for_all();
    check_equal(counter, 15 * 300);
    fmutex_fini(&mutex);
}

/* --- frwlock ---------------------------------------------------------------------------------- */

static struct frwlock rwlock;
static unsigned readers_inside, readers_most;

static void reads(void *arg)
{
    frwlock_read(&rwlock);
    order[order_count++] = (unsigned)(uintptr_t)arg;
    readers_inside++;
    readers_most = MAX(readers_most, readers_inside);
    env_sleep(2 * NS_PER_MS);
    readers_inside--;
    frwlock_unlock(&rwlock);
    running--;
}

static void writes(void *arg)
{
    frwlock_write(&rwlock);
    order[order_count++] = (unsigned)(uintptr_t)arg;
    check_equal(readers_inside, 0);
    env_sleep(2 * NS_PER_MS);
    check_equal(readers_inside, 0);
    frwlock_unlock(&rwlock);
    running--;
}

static void writer_is_not_starved_by_readers(void)
{
    frwlock_init(&rwlock);
    order_count = readers_inside = readers_most = 0;
    start("r0", reads, (void *)0);
    start("r1", reads, (void *)1);
    fiber_yield();
    start("w2", writes, (void *)2);
    fiber_yield();
    start("r3", reads, (void *)3);
    start("r4", reads, (void *)4);
    start("w5", writes, (void *)5);
    wait_for_all();
    check_equal(order_count, 6);
    check_equal(order[2], 2);
    check_equal(order[5], 5);
    check_equal(readers_most, 2);
    frwlock_fini(&rwlock);
}

static int64_t balance;

static void mixes(void *arg)
{
    unsigned id = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < 200; i++) {
        if ((i + id) % 4 == 0) {
            frwlock_write(&rwlock);
            check_equal(balance, 0);
            balance++;
            if (i % 8 == 0)
                fiber_yield();
            balance--;
        } else {
            frwlock_read(&rwlock);
            check_equal(balance, 0);
            if (i % 16 == 1)
                fiber_yield();
            check_equal(balance, 0);
        }
        frwlock_unlock(&rwlock);
    }
    running--;
}

static void rwlock_excludes_across_lanes(void)
{
    unsigned lanes = lanes_grow(4);
    frwlock_init(&rwlock);
    balance = 0;
    for (unsigned i = 0; i < 12; i++)
        start_on(i % lanes, "mixer", mixes, (void *)(uintptr_t)i);
    wait_for_all();
    frwlock_fini(&rwlock);
}

/* --- fcond ------------------------------------------------------------------------------------ */

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static struct fcond cond;
static unsigned items, eaten;

static void eats(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 100; i++) {
        HOLD(&plain);
        while (items == 0)
            fcond_wait(&cond, &plain, "an item");
        items--;
        eaten++;
    }
    running--;
}

static void cooks(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 200; i++) {
        {
            HOLD(&plain);
            items++;
            fcond_wake_one(&cond);
        }
        if (i % 8 == 0)
            fiber_yield();
    }
    running--;
}

static void condition_loses_no_wake(void)
{
    unsigned lanes = lanes_grow(4);
    fcond_init(&cond);
    items = eaten = 0;
    for (unsigned i = 0; i < 8; i++)
        start_on(i % lanes, "eater", eats, NULL);
    for (unsigned i = 0; i < 4; i++)
        start_on((i + 1) % lanes, "cook", cooks, NULL);
    wait_for_all();
    check_equal(eaten, 800);
}

static void *feeds(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 100; i++) {
        HOLD(&plain);
        items++;
        fcond_wake_all(&cond);
    }
    return NULL;
}

static void native_threads_wake_fibers(void)
{
    pthread_t thread;
    fcond_init(&cond);
    items = eaten = 0;
    start("eater", eats, NULL);
    check_equal(pthread_create(&thread, NULL, feeds, NULL), 0);
    wait_for_all();
    pthread_join(thread, NULL);
    check_equal(eaten, 100);
}

static void wakes_all_later(void *arg)
{
    (void)arg;
    env_sleep(3 * NS_PER_MS);
    HOLD(&plain);
    fcond_wake_all(&cond);
    running--;
}

static void waits_patiently(void *arg)
{
    (void)arg;
    HOLD(&plain);
    check_equal(fcond_wait_until(&cond, &plain, "test", env_now_ns() + 60 * NS_PER_S), 0);
    running--;
}

static void condition_times_out(void)
{
    fcond_init(&cond);
    {
        HOLD(&plain);
        uint64_t start_ns = env_now_ns();
        check_equal(fcond_wait_until(&cond, &plain, "none", start_ns + 2 * NS_PER_MS), -ETIMEDOUT);
        check(env_now_ns() - start_ns >= 2 * NS_PER_MS);
        check(TAILQ_EMPTY(&cond.waiters));
    }
    start("waiter", waits_patiently, NULL);
    start("waiter", waits_patiently, NULL);
    start("waker", wakes_all_later, NULL);
    wait_for_all();
}

/* Time-outs that come at about the time of the wake: each waiter returns once, either way. */
static unsigned results[2];

static void waits_shortly(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 300; i++) {
        HOLD(&plain);
        int ret = fcond_wait_until(&cond, &plain, "race", env_now_ns() + i % 5 * 30 * NS_PER_US);
        check(ret == 0 || ret == -ETIMEDOUT);
        results[ret == 0]++;
    }
    running--;
}

static void wakes_often(void *arg)
{
    (void)arg;
    while (running > 1) {
        {
            HOLD(&plain);
            fcond_wake_one(&cond);
        }
        env_sleep(20 * NS_PER_US);
    }
    running--;
}

static void timeout_and_wake_race_to_one_result(void)
{
    unsigned lanes = lanes_grow(3);
    fcond_init(&cond);
    results[0] = results[1] = 0;
    for (unsigned i = 0; i < 6; i++)
        start_on(i % lanes, "waiter", waits_shortly, NULL);
    start_on(lanes - 1, "waker", wakes_often, NULL);
    wait_for_all();
    check_equal(results[0] + results[1], 6 * 300);
}

/* --- fgroup ----------------------------------------------------------------------------------- */

struct legs {
    struct fgroup group;
    unsigned done, most, now, released;
    uint64_t takes_ns[8];
};

struct leg_arg {
    struct legs *legs;
    uint64_t takes_ns;
};

static void leg(void *arg)
{
    struct leg_arg *self = arg;
    self->legs->now++;
    self->legs->most = MAX(self->legs->most, self->legs->now);
    env_sleep(self->takes_ns);
    self->legs->now--;
    self->legs->done++;
}

static void group_waits_for_all_within_its_bound(void)
{
    struct legs legs = { .done = 0 };
    struct leg_arg args[10];
    fgroup_init(&legs.group, 3);
    for (unsigned i = 0; i < 10; i++) {
        args[i] = (struct leg_arg){ &legs, (1 + i % 3) * NS_PER_MS };
        check_equal(fgroup_start(&legs.group, "leg", leg, &args[i]), 0);
    }
    fgroup_wait(&legs.group, NULL, NULL);
    check_equal(legs.done, 10);
    check_equal(legs.most, 3);
    fgroup_fini(&legs.group);
}

static bool may_end;

static void late_leg(void *arg)
{
    struct leg_arg *self = arg;
    while (!may_end)
        env_sleep(NS_PER_MS);
    self->legs->done++;
}

static bool two_are_done(void *arg)
{
    return ((struct legs *)arg)->done >= 2;
}

static void is_released(void *owner)
{
    ((struct legs *)owner)->released++;
}

static void late_leg_outlives_the_waiter(void)
{
    static struct legs legs;
    static struct leg_arg args[3];
    legs = (struct legs){ .done = 0 };
    fgroup_init_owned(&legs.group, 0, is_released, &legs);
    may_end = false;
    for (unsigned i = 0; i < 3; i++) {
        args[i] = (struct leg_arg){ &legs, NS_PER_MS };
        check_equal(fgroup_start(&legs.group, "leg", i == 1 ? late_leg : leg, &args[i]), 0);
    }
    fgroup_wait(&legs.group, two_are_done, &legs);
    check_equal(legs.done, 2);
    fgroup_fini(&legs.group);
    check_equal(legs.released, 0);
    may_end = true;
    env_sleep(100 * NS_PER_MS);
    check_equal(legs.done, 3);
    check_equal(legs.released, 1);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(mutex_is_first_come_first_served, ALL),
    FIBER_CASE(mutex_excludes_across_lanes_and_workers, REAL),
    FIBER_CASE(writer_is_not_starved_by_readers, ALL),
    FIBER_CASE(rwlock_excludes_across_lanes, ALL),
    FIBER_CASE(condition_loses_no_wake, ALL),
    FIBER_CASE(native_threads_wake_fibers, REAL),
    FIBER_CASE(condition_times_out, ALL),
    FIBER_CASE(timeout_and_wake_race_to_one_result, REAL),
    FIBER_CASE(group_waits_for_all_within_its_bound, ALL),
    FIBER_CASE(late_leg_outlives_the_waiter, ALL),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
