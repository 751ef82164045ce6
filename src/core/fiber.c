/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fibers: switching, parking, waking. The order of the words in a fiber's state is in core/lane.h.
 *
 * A parking fiber announces itself PARKED before it leaves the processor. Whoever wakes it then may
 * queue it at once: only its own lane runs it, and that lane is busy leaving it. */
#include "core/fiber.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "core/lane.h"
#include "core/log.h"

#if CORE_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if CORE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* boost-context's C symbols */
struct transfer {
    void *context, *data;
};
extern struct transfer jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *stack_top, size_t bytes, void (*entry)(struct transfer transfer));

_Thread_local struct lane *lane_current;
_Thread_local unsigned holds_held;

struct fiber *fiber_self(void)
{
    return lane_current ? lane_current->current : NULL;
}

const char *fiber_name(const struct fiber *fiber)
{
    return fiber->name;
}

_Noreturn void fiber_misuse(const struct fiber *fiber, const char *what, const char *detail)
{
    log_critical("core", 0, "fiber \"%s\" %s%s%s", fiber && fiber->name ? fiber->name : "?", what,
                 detail ? ": " : "", detail ? detail : "");
    abort();
}

/* --- switching -------------------------------------------------------------------------------- */

static void leave_loop(struct lane *lane, struct fiber *fiber)
{
    (void)lane, (void)fiber;
#if CORE_ASAN
    __sanitizer_start_switch_fiber(&lane->asan_fake_stack, stack_low(fiber), stack_bytes());
#endif
#if CORE_TSAN
    if (!fiber->tsan_fiber) {
        fiber->tsan_fiber = __tsan_create_fiber(0);
        __tsan_set_fiber_name(fiber->tsan_fiber, fiber->name);
    }
    lane->tsan_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->tsan_fiber, 0);
#endif
}

static void back_in_loop(struct lane *lane)
{
    (void)lane;
#if CORE_ASAN
    __sanitizer_finish_switch_fiber(lane->asan_fake_stack, NULL, NULL);
#endif
}

static void arrive_on_fiber(struct lane *lane, struct fiber *fiber)
{
    (void)lane, (void)fiber;
#if CORE_ASAN
    const void *low;
    __sanitizer_finish_switch_fiber(fiber->asan_fake_stack, &low, &lane->asan_stack_bytes);
    lane->asan_stack = (void *)(uintptr_t)low;
#endif
}

/* ends: the fiber does not come back. */
static void leave_fiber(struct lane *lane, struct fiber *fiber, bool ends)
{
    (void)lane, (void)fiber, (void)ends;
#if CORE_ASAN
    __sanitizer_start_switch_fiber(ends ? NULL : &fiber->asan_fake_stack, lane->asan_stack,
                                   lane->asan_stack_bytes);
#endif
#if CORE_TSAN
    __tsan_switch_to_fiber(lane->tsan_fiber, 0);
#endif
}

/* Back to the lane's loop, until it runs the fiber again. */
static void switch_out(struct fiber *fiber)
{
    struct lane *lane = fiber->lane;
    leave_fiber(lane, fiber, false);
    struct transfer transfer = jump_fcontext(lane->context, NULL);
    lane->context = transfer.context;
    arrive_on_fiber(lane, fiber);
}

static _Noreturn void fiber_entry(struct transfer transfer)
{
    struct fiber *fiber = transfer.data;
    struct lane *lane = fiber->lane;
    lane->context = transfer.context;
    arrive_on_fiber(lane, fiber);
    fiber->fn(fiber->arg);
    if (holds_held)
        fiber_misuse(fiber, "ends with a plain mutex held", NULL);
    if (fiber->locks)
        fiber_misuse(fiber, "ends with a fiber lock held", NULL);
    fiber->state = FIBER_DEAD;
    leave_fiber(lane, fiber, true);
    jump_fcontext(lane->context, NULL);
    abort(); /* not reached: the loop does not run the dead */
}

void fiber_end(struct lane *lane, struct fiber *fiber)
{
#if CORE_TSAN
    if (fiber->tsan_fiber)
        __tsan_destroy_fiber(fiber->tsan_fiber);
    fiber->tsan_fiber = NULL;
#endif
    LIST_REMOVE(fiber, live);
    stack_put(lane, fiber);
}

void fiber_run(struct lane *lane, struct fiber *fiber)
{
    if (!fiber->is_listed) {
        LIST_INSERT_HEAD(&lane->live, fiber, live);
        fiber->is_listed = true;
    }
    unsigned old = atomic_fetch_add_explicit(&fiber->state, FIBER_RUNNING - FIBER_READY,
                                             memory_order_acq_rel);
    assert((old & FIBER_STATE) == FIBER_READY);
    lane->current = fiber;
    leave_loop(lane, fiber);
    struct transfer transfer = jump_fcontext(fiber->context, fiber);
    back_in_loop(lane);
    lane->current = NULL;
    fiber->context = transfer.context;
    if (fiber->state == FIBER_DEAD)
        fiber_end(lane, fiber);
}

/* --- starting --------------------------------------------------------------------------------- */

int fiber_start_on(struct lane *lane, const char *name, fiber_fn *fn, void *arg)
{
    struct fiber *fiber = stack_get(lane_current);
    if (!fiber)
        return -ENOMEM;
    char *map = fiber->map;
    *fiber = (struct fiber){ .map = map, .lane = lane, .name = name, .fn = fn, .arg = arg };
    fiber->context = make_fcontext(stack_top(fiber),
                                   (size_t)((char *)stack_top(fiber) - stack_low(fiber)),
                                   fiber_entry);
    fiber->state = FIBER_READY;
    lane_post(lane, fiber);
    return 0;
}

int fiber_start(const char *name, fiber_fn *fn, void *arg)
{
    return fiber_start_on(lane_current ? lane_current : lane_get(0), name, fn, arg);
}

/* --- parking and waking ----------------------------------------------------------------------- */

/* Leaves until `token` is there, or the fiber is put back without it (expired): false. */
static bool fiber_leave(struct fiber *fiber, unsigned state, unsigned token, const char *why)
{
    if (holds_held)
        fiber_misuse(fiber, "parks while it holds a plain mutex", why);
    unsigned old = fiber->state;
    while (!(old & token))
        if (atomic_compare_exchange_weak(&fiber->state, &old, (old & ~FIBER_STATE) | state)) {
            fiber->why = why;
            switch_out(fiber);
            fiber->why = NULL;
            break;
        }
    return atomic_fetch_and(&fiber->state, ~token) & token;
}

static struct fiber *fiber_must_self(const char *why)
{
    struct fiber *fiber = fiber_self();
    if (!fiber) {
        log_critical("core", 0, "a thread that is no fiber parks: %s", why);
        abort();
    }
    return fiber;
}

static void fiber_timer_expire(struct timer *timer)
{
    fiber_expire(container_of(timer, struct fiber, timer));
}

static bool fiber_leave_until(unsigned state, unsigned token, const char *why, uint64_t until_ns)
{
    struct fiber *fiber = fiber_must_self(why);
    fiber->timer.expire = fiber_timer_expire;
    lane_timer_add(fiber->lane, &fiber->timer, until_ns);
    bool woken = fiber_leave(fiber, state, token, why);
    (void)lane_timer_remove(fiber->lane, &fiber->timer); /* it may have run: both are fine */
    return woken;
}

void fiber_park(const char *why)
{
    (void)fiber_leave(fiber_must_self(why), FIBER_PARKED, FIBER_WOKEN, why);
}

int fiber_park_until(const char *why, uint64_t until_ns)
{
    return fiber_leave_until(FIBER_PARKED, FIBER_WOKEN, why, until_ns) ? 0 : -ETIMEDOUT;
}

void fiber_wait(const char *why)
{
    (void)fiber_leave(fiber_must_self(why), FIBER_WAITING, FIBER_DONE, why);
}

bool fiber_wait_until(const char *why, uint64_t until_ns)
{
    return fiber_leave_until(FIBER_WAITING, FIBER_DONE, why, until_ns);
}

static void fiber_notify(struct fiber *fiber, unsigned parked, unsigned token)
{
    unsigned old = fiber->state, new;
    do {
        if ((old & FIBER_STATE) == FIBER_DEAD)
            fiber_misuse(fiber, "is woken after its end", NULL);
        if (old & token)
            fiber_misuse(fiber, "is woken twice", fiber->why);
        new = old | token;
        if ((old & FIBER_STATE) == parked)
            new = (new & ~(unsigned)FIBER_STATE) | FIBER_READY;
    } while (!atomic_compare_exchange_weak(&fiber->state, &old, new));
    if ((old & FIBER_STATE) == parked)
        lane_post(fiber->lane, fiber);
}

void fiber_wake(struct fiber *fiber)
{
    fiber_notify(fiber, FIBER_PARKED, FIBER_WOKEN);
}

void fiber_done(struct fiber *fiber)
{
    fiber_notify(fiber, FIBER_WAITING, FIBER_DONE);
}

void fiber_expire(struct fiber *fiber)
{
    unsigned old = fiber->state;
    while ((old & FIBER_STATE) == FIBER_PARKED || (old & FIBER_STATE) == FIBER_WAITING)
        if (atomic_compare_exchange_weak(&fiber->state, &old,
                                         (old & ~(unsigned)FIBER_STATE) | FIBER_READY)) {
            lane_ready(fiber->lane, fiber);
            return;
        }
}

void fiber_yield(void)
{
    struct fiber *fiber = fiber_must_self("yield");
    if (holds_held)
        fiber_misuse(fiber, "parks while it holds a plain mutex", "yield");
    atomic_fetch_sub(&fiber->state, FIBER_RUNNING - FIBER_READY);
    lane_ready(fiber->lane, fiber);
    switch_out(fiber);
}

/* --- the message of an overflowing stack ------------------------------------------------------ */

static void say(const char *text)
{
    ssize_t ret = write(STDERR_FILENO, text, strlen(text));
    (void)ret; /* there is nobody left to tell */
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
    (void)context;
    struct fiber *fiber = fiber_self();
    if (fiber && stack_is_guard(fiber, info->si_addr)) {
        say("fiber \"");
        say(fiber->name);
        say("\" overflows its stack\n");
    }
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigaction(signal, &action, NULL); /* the instruction faults again, and ends the process */
}

void fiber_install_overflow_handler(void)
{
    struct sigaction action = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}
