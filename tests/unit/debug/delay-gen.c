/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/delay-gen: what is ordered waits, others do not wait for it. */
#include "../features/fixture.h"

#include <errno.h>

extern const struct xlator_type xlator_debug_delay_gen;

static uint64_t time_of_op(struct fixture *fx, enum fop op)
{
    struct call call = call_of(NULL, "");
    struct some_args some;
    union fop_reply reply = { 0 };

    some_args_init(&some, fx, op);
    uint64_t before = env_now_ns();
    check_equal(fop_call(fx->top, &call, op, &some.args, &reply), 0);
    uint64_t took = env_now_ns() - before;
    fop_reply_fini(op, &reply);
    some_args_fini(&some, op);
    return took;
}

static void what_is_named_waits(void)
{
    struct fixture *fx = fixture_new(
        &xlator_debug_delay_gen,
        (const char *[]){ "delay-percentage", "100", "delay-duration", "30000", "enable", "stat",
                          NULL });
    check(time_of_op(fx, FOP_STAT) >= 30 * NS_PER_MS);
    check(time_of_op(fx, FOP_LOOKUP) < 30 * NS_PER_MS);
    check_equal(fixture_count(fx, FOP_STAT), 1);
    check_equal(atoi(fixture_dumped(fx, "delayed")), 1);
    fixture_free(fx);
}

struct one {
    struct fixture *fx;
    unsigned *done;
};

static void one_stat(void *arg)
{
    struct one *one = arg;
    (void)time_of_op(one->fx, FOP_STAT);
    ++*one->done;
}

static void waits_overlap(void)
{
    struct fixture *fx = fixture_new(
        &xlator_debug_delay_gen,
        (const char *[]){ "delay-percentage", "100", "delay-duration", "100000", NULL });
    unsigned done = 0;
    struct one one = { fx, &done };
    uint64_t before = env_now_ns();

    for (int i = 0; i < 20; i++)
        check_equal(fiber_start("stat", one_stat, &one), 0);
    await_count(&done, 20);
    check(env_now_ns() - before < 20 * 100 * NS_PER_MS / 2);
    check_equal(atoi(fixture_dumped(fx, "delayed")), 20);
    fixture_free(fx);
}

static void never_is_never(void)
{
    struct fixture *fx = fixture_new(
        &xlator_debug_delay_gen,
        (const char *[]){ "delay-percentage", "0", "delay-duration", "5000000", NULL });
    for (enum fop op = 0; op < FOP_COUNT; op++)
        (void)time_of_op(fx, op);
    check_equal(atoi(fixture_dumped(fx, "delayed")), 0);
    check_equal(fx->count, FOP_COUNT);
    fixture_free(fx);
}

static void wrong_orders_are_refused(void)
{
    struct fixture *fx;
    check_equal(fixture_try(&xlator_debug_delay_gen, (const char *[]){ "enable", "nonsense", NULL },
                            &fx), -EINVAL);
    check_equal(fixture_try(&xlator_debug_delay_gen,
                            (const char *[]){ "delay-duration", "-5", NULL }, &fx), -EINVAL);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(what_is_named_waits, ALL),
    FIBER_CASE(waits_overlap, ALL),
    FIBER_CASE(never_is_never, PLAIN_ONLY),
    FIBER_CASE(wrong_orders_are_refused, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
