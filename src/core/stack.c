/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fiber stacks: mapped with guard pages, kept for reuse, given back when idle.
 *
 *     map                                                     map + guard + stack_bytes()
 *     | guard pages | ........ stack, grows down ........ | struct fiber |
 *
 * Guard pages are the light ones of Linux 6.13 where there are such (no mapping of their own, of
 * which a process may have 65530), else PROT_NONE. */
#include "core/lane.h"

#include <assert.h>
#include <sys/mman.h>

#if CORE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum {
    STACKS_KEPT = 8,
    BATCH = LANE_STACKS_MAX / 2
};

static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fiber *pool_first;
static unsigned pool_count, pool_low;
static _Atomic uint64_t alive;

size_t stack_bytes(void)
{
    return (size_t)FIBER_STACK_BYTES * (CORE_ASAN || CORE_TSAN ? 4 : 1);
}

char *stack_low(const struct fiber *fiber)
{
    return fiber->map + STACK_GUARD_BYTES;
}

void *stack_top(const struct fiber *fiber)
{
    return (void *)((uintptr_t)fiber & ~(uintptr_t)63);
}

bool stack_is_guard(const struct fiber *fiber, const void *address)
{
    const char *byte = address;
    return byte >= fiber->map && byte < fiber->map + STACK_GUARD_BYTES;
}

uint64_t fiber_count(void)
{
    return alive;
}

static struct fiber *stack_map(void)
{
    size_t bytes = STACK_GUARD_BYTES + stack_bytes();
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    (void)madvise(map, bytes, MADV_NOHUGEPAGE); /* refused where the kernel has none: fine */
    if (madvise(map, STACK_GUARD_BYTES, MADV_GUARD_INSTALL) < 0 &&
        mprotect(map, STACK_GUARD_BYTES, PROT_NONE) < 0) {
        munmap(map, bytes);
        return NULL;
    }
    struct fiber *fiber = (void *)(map + bytes - ((sizeof(*fiber) + 63) & ~(size_t)63));
    fiber->map = map;
#if CORE_ASAN
    __lsan_register_root_region(stack_low(fiber), stack_bytes());
#endif
    return fiber;
}

static void stack_unmap(struct fiber *fiber)
{
#if CORE_ASAN
    __lsan_unregister_root_region(stack_low(fiber), stack_bytes());
    __asan_unpoison_memory_region(stack_low(fiber), stack_bytes());
#endif
    munmap(fiber->map, STACK_GUARD_BYTES + stack_bytes());
}

/* Moves up to n stacks from the process's pool to the lane. */
static void pool_take(struct lane *lane, unsigned n)
{
    pthread_mutex_lock(&pool_mutex);
    while (n-- && pool_first) {
        struct fiber *fiber = pool_first;
        pool_first = fiber->next;
        pool_count--;
        fiber->next = lane->stacks;
        lane->stacks = fiber;
        lane->stacks_count++;
    }
    pool_low = MIN(pool_low, pool_count);
    pthread_mutex_unlock(&pool_mutex);
}

static void pool_give(struct fiber *fiber)
{
    pthread_mutex_lock(&pool_mutex);
    fiber->next = pool_first;
    pool_first = fiber;
    pool_count++;
    pthread_mutex_unlock(&pool_mutex);
}

static struct fiber *lane_pop(struct lane *lane)
{
    struct fiber *fiber = lane->stacks;
    if (fiber) {
        lane->stacks = fiber->next;
        lane->stacks_count--;
        lane->stacks_low = MIN(lane->stacks_low, lane->stacks_count);
    }
    return fiber;
}

struct fiber *stack_get(struct lane *lane)
{
    if (__atomic_fetch_add((uint64_t *)&alive, 1, __ATOMIC_RELAXED) >= FIBERS_MAX) {
        __atomic_fetch_sub((uint64_t *)&alive, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    struct lane own = { .stacks = NULL }, *from = lane ? lane : &own;
    if (!from->stacks)
        pool_take(from, lane ? BATCH : 1);
    struct fiber *fiber = lane_pop(from);
    if (!fiber)
        fiber = stack_map();
    if (!fiber)
        __atomic_fetch_sub((uint64_t *)&alive, 1, __ATOMIC_RELAXED);
    return fiber;
}

void stack_put(struct lane *lane, struct fiber *fiber)
{
    assert(fiber->state == FIBER_DEAD);
    __atomic_fetch_sub((uint64_t *)&alive, 1, __ATOMIC_RELAXED);
#if CORE_ASAN
    __asan_unpoison_memory_region(stack_low(fiber), stack_bytes() - sizeof(*fiber));
#endif
    fiber->next = lane->stacks;
    lane->stacks = fiber;
    if (++lane->stacks_count > LANE_STACKS_MAX)
        for (unsigned i = 0; i < BATCH; i++)
            pool_give(lane_pop(lane));
}

/* Takes what the period never needed off the process's pool and unmaps it. */
static bool pool_tidy(void)
{
    struct fiber *idle = NULL;
    pthread_mutex_lock(&pool_mutex);
    for (; pool_low > 0 && pool_first; pool_low--) {
        struct fiber *fiber = pool_first;
        pool_first = fiber->next;
        pool_count--;
        fiber->next = idle;
        idle = fiber;
    }
    bool more = pool_count > 0;
    pool_low = pool_count;
    pthread_mutex_unlock(&pool_mutex);
    while (idle) {
        struct fiber *fiber = idle;
        idle = fiber->next;
        stack_unmap(fiber);
    }
    return more;
}

bool stack_tidy(struct lane *lane)
{
    unsigned idle = lane->stacks_low > STACKS_KEPT ? lane->stacks_low - STACKS_KEPT : 0;
    while (idle-- > 0)
        stack_unmap(lane_pop(lane));
    lane->stacks_low = lane->stacks_count;
    bool more = lane->index == 0 && pool_tidy();
    return more || lane->stacks_count > STACKS_KEPT;
}

void stack_drop_all(struct lane *lane)
{
    for (struct fiber *fiber; (fiber = lane_pop(lane));)
        stack_unmap(fiber);
    pool_low = pool_count;
    (void)pool_tidy(); /* everything goes: nothing is left to come back for */
}
