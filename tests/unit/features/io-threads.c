/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* performance/io-threads: operations pass; thread-count is how many blocking calls run at once. */
#include "fixture.h"

#include <errno.h>
#include <unistd.h>

extern const struct xlator_type xlator_performance_io_threads;

static unsigned running, running_max, finished, wanted;

static void block(void *arg)
{
    (void)arg;
    unsigned now = __atomic_add_fetch(&running, 1, __ATOMIC_ACQ_REL);
    unsigned seen = __atomic_load_n(&running_max, __ATOMIC_ACQUIRE);
    while (now > seen && !__atomic_compare_exchange_n(&running_max, &seen, now, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    /* until so many are here as there may be, and a while longer for one too many */
    for (int ms = 0; ms < 5000 && __atomic_load_n(&running_max, __ATOMIC_ACQUIRE) < wanted; ms++)
        usleep(1000);
    usleep(10000);
    __atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL);
}

static void hopper(void *arg)
{
    (void)arg;
    hop(pool_default(), block, NULL);
    finished++;
}

/* The most that ran at once, of many that want to; `expected` is waited for. */
static unsigned at_once(unsigned expected)
{
    enum { HOPS = 60 };
    running = running_max = finished = 0;
    wanted = expected;
    for (int i = 0; i < HOPS; i++)
        check_equal(fiber_start("hopper", hopper, NULL), 0);
    await_count(&finished, HOPS);
    return running_max;
}

static void thread_count_sizes_the_pool_live(void)
{
    struct fixture *fx = fixture_new(&xlator_performance_io_threads,
                                     (const char *[]){ "thread-count", "3", NULL });
    check_equal(at_once(3), 3);
    check_equal(fixture_reconfigure(fx, (const char *[]){ "thread-count", "12", NULL }), 0);
    check_equal(at_once(12), 12);
    check_equal(fixture_reconfigure(fx, (const char *[]){ "thread-count", "1", NULL }), 0);
    check_equal(at_once(1), 1);
    check_equal(fixture_reconfigure(fx, NULL), 0); /* the default */
    check_equal(at_once(16), 16);
    fixture_free(fx);
}

static void counts_out_of_range_are_refused(void)
{
    struct fixture *fx;
    static const char *const wrong[] = { "0", "65", "-1", "many" };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        check_equal(fixture_try(&xlator_performance_io_threads,
                                (const char *[]){ "thread-count", wrong[i], NULL }, &fx), -EINVAL);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(thread_count_sizes_the_pool_live, PLAIN_ONLY),
    FIBER_CASE(counts_out_of_range_are_refused, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
