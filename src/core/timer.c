/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A lane's timers: a pairing heap, so that arming cannot fail for want of memory.
 *
 *     root -child-> a <-> b <-> c      siblings through next and prev; a's prev is root
 *                   |
 *                   child ...          nothing below is due before what it hangs on
 *
 * The lane's mutex protects its heap: another lane may stop one of its timers. */
#include "core/lane.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/env_internal.h"

static bool is_before(const struct timer *a, const struct timer *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static struct timer *heap_meld(struct timer *a, struct timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (is_before(b, a)) {
        struct timer *first = b;
        b = a;
        a = first;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next)
        b->next->prev = b;
    a->child = b;
    return a;
}

/* Melds a list of siblings: in pairs, then the pairs from the last to the first. */
static struct timer *heap_join(struct timer *first)
{
    struct timer *pairs = NULL, *root = NULL;
    while (first) {
        struct timer *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        a = heap_meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct timer *pair = pairs;
        pairs = pair->next;
        pair->next = NULL;
        root = heap_meld(root, pair);
    }
    return root;
}

static void heap_remove(struct timer **root, struct timer *timer)
{
    struct timer *below = heap_join(timer->child);
    if (timer == *root) {
        *root = below;
        return;
    }
    if (timer->prev->child == timer)
        timer->prev->child = timer->next;
    else
        timer->prev->next = timer->next;
    if (timer->next)
        timer->next->prev = timer->prev;
    *root = heap_meld(*root, below);
}

static void timer_add_locked(struct lane *lane, struct timer *timer, uint64_t at_ns)
{
    assert(!timer->is_armed);
    timer->at_ns = at_ns;
    timer->order = lane->timer_order++;
    timer->child = timer->next = timer->prev = NULL;
    timer->is_armed = true;
    lane->timers = heap_meld(lane->timers, timer);
}

void lane_timer_add(struct lane *lane, struct timer *timer, uint64_t at_ns)
{
    pthread_mutex_lock(&lane->mutex);
    timer_add_locked(lane, timer, at_ns);
    bool is_next = lane->timers == timer;
    pthread_mutex_unlock(&lane->mutex);
    if (is_next && lane != lane_current)
        env_ops->lane_kick(lane); /* it may be asleep until a later time */
}

bool lane_timer_remove(struct lane *lane, struct timer *timer)
{
    pthread_mutex_lock(&lane->mutex);
    bool was_armed = timer->is_armed;
    if (was_armed)
        heap_remove(&lane->timers, timer);
    timer->is_armed = false;
    pthread_mutex_unlock(&lane->mutex);
    return was_armed;
}

uint64_t lane_timers_next(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    uint64_t at_ns = lane->timers ? lane->timers->at_ns : UINT64_MAX;
    pthread_mutex_unlock(&lane->mutex);
    return at_ns;
}

void lane_timers_expire(struct lane *lane, uint64_t now_ns)
{
    pthread_mutex_lock(&lane->mutex);
    while (lane->timers && lane->timers->at_ns <= now_ns) {
        struct timer *timer = lane->timers;
        heap_remove(&lane->timers, timer);
        timer->is_armed = false;
        timer->expire(timer);
    }
    pthread_mutex_unlock(&lane->mutex);
}

void lane_timers_drop(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    while (lane->timers) {
        struct timer *timer = lane->timers;
        heap_remove(&lane->timers, timer);
        timer->is_armed = false;
    }
    pthread_mutex_unlock(&lane->mutex);
}

/* --- timers that start a fiber ---------------------------------------------------------------- */

struct env_timer {
    struct timer timer;
    struct lane *lane;
    fiber_fn *fn;
    void *arg;
};

static void env_timer_expire(struct timer *timer)
{
    struct env_timer *env_timer = container_of(timer, struct env_timer, timer);
    if (fiber_start_on(env_timer->lane, "timer", env_timer->fn, env_timer->arg) < 0)
        timer_add_locked(env_timer->lane, timer,
                         timer->at_ns + 10 * NS_PER_MS); /* it must not be lost */
}

int env_timer_start(uint64_t after_ns, fiber_fn *fn, void *arg, struct env_timer **ret_timer)
{
    struct env_timer *timer = malloc(sizeof(*timer));
    if (!timer)
        return -ENOMEM;
    *timer = (struct env_timer){
        .timer.expire = env_timer_expire,
        .lane = lane_current ? lane_current : lane_get(0),
        .fn = fn,
        .arg = arg,
    };
    *ret_timer = timer;
    lane_timer_add(timer->lane, &timer->timer, env_now_ns() + after_ns);
    return 0;
}

bool env_timer_cancel(struct env_timer *timer)
{
    if (!timer)
        return false;
    bool was_armed = lane_timer_remove(timer->lane, &timer->timer);
    free(timer);
    return was_armed;
}
