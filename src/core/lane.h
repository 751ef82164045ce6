/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What core's own files know of fibers and lanes; others use core/fiber.h.
 *
 *     struct fiber *fiber = fiber_self();
 *     ... leave `fiber` where the completion finds it ...
 *     fiber_wait("disk");                      // ended by fiber_done(fiber), and by nothing else
 *
 * fiber_wait/fiber_done is a second pair beside fiber_park/fiber_wake, for what env, hop and the
 * fiber locks do inside: a fiber_wake meant for a later fiber_park does not disturb it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "core/auto.h"
#include "core/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#define CORE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define CORE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CORE_TSAN 1
#endif
#endif
#ifndef CORE_ASAN
#define CORE_ASAN 0
#endif
#ifndef CORE_TSAN
#define CORE_TSAN 0
#endif

enum {
    FIBERS_MAX = 100000,
    LANE_AWAY_MS = 10,   /* a lane that did not look at its events for so long is counted */
    LANE_TIDY_S = 5,     /* what was idle for so long is given back to the kernel */
    LANE_STACKS_MAX = 64 /* kept per lane; the others go to the process's pool */
};

/* A fiber's state: one of these, and the tokens of wakes that came. */
enum {
    FIBER_DEAD,    /* also what unused memory reads as */
    FIBER_READY,   /* in a ready queue or an inbox */
    FIBER_RUNNING, /* READY + 1 */
    FIBER_PARKED,  /* in fiber_park: FIBER_WOKEN ends it */
    FIBER_WAITING, /* in fiber_wait: FIBER_DONE ends it */
    FIBER_STATE = 7,
    FIBER_WOKEN = 8,
    FIBER_DONE = 16,
};

/* --- timers: one heap a lane ------------------------------------------------------------------ */
struct timer {
    struct timer *child, *next,
        *prev;             /* pairing heap; prev: sibling, or parent of the first child */
    uint64_t at_ns, order; /* order: of starting, for equal times */
    void (*expire)(struct timer *timer); /* on the lane's thread, the lane's mutex held */
    bool is_armed;
};

/* --- fibers: the struct is at the top of the fiber's stack ------------------------------------ */
struct fiber {
    _Atomic unsigned state;
    unsigned locks;     /* fiber locks held */
    struct fiber *next; /* in a ready queue, an inbox, a stack pool */
    struct lane *lane;
    const char *name, *why;
    fiber_fn *fn;
    void *arg;
    void *context; /* of boost-context, while it does not run */
    char *map;     /* guard pages, then the stack, then this struct */
    LIST_ENTRY(fiber) live;
    bool is_listed, is_hot; /* hot: the last receive filled its buffer, more is likely there */
    struct timer timer;
    void *asan_fake_stack, *tsan_fiber;
};
LIST_HEAD(fibers, fiber);

struct fiber_queue {
    struct fiber *first, **last;
};

struct lane {
    unsigned index;
    pthread_t thread;
    struct fiber *current;
    void *context; /* of the loop, while a fiber runs */
    struct fiber_queue ready;
    unsigned ready_count;
    _Atomic(struct fiber *) inbox; /* pushed by others, newest first */
    _Atomic bool is_asleep;        /* about to wait, or waiting: an inbox push must kick it */
    void *backend;                 /* of env's backend: a ring, an epoll set */
    pthread_mutex_t mutex;         /* timers */
    struct timer *timers;
    uint64_t timer_order;
    struct fiber *stacks;              /* kept for reuse */
    unsigned stacks_count, stacks_low; /* low: fewest since the last tidying */
    struct fibers live;                /* started and not ended */
    uint64_t tidy_at_ns;               /* 0: nothing to tidy */
    _Atomic uint64_t away_count, turns, switches;
    void *asan_stack;
    size_t asan_stack_bytes;
    void *asan_fake_stack, *tsan_fiber;
    int start_ret;
    _Atomic bool is_started;
};

/* fiber.c */
void fiber_wait(const char *why);
/* false: the time came first, and nobody may call fiber_done any more. */
must_check bool fiber_wait_until(const char *why, uint64_t until_ns);
void fiber_done(struct fiber *fiber) nowait;
/* A wait's time is over: puts the fiber back, unless it was woken already. On its own lane. */
void fiber_expire(struct fiber *fiber) nowait;
void fiber_run(struct lane *lane, struct fiber *fiber);
void fiber_end(struct lane *lane, struct fiber *fiber); /* frees a dead one */
/* Logs the fiber's name and what it did wrong, and aborts. */
_Noreturn void fiber_misuse(const struct fiber *fiber, const char *what, const char *detail);
extern _Thread_local struct lane *lane_current;
extern _Thread_local unsigned holds_held;

/* stack.c */
struct fiber *stack_get(struct lane *lane) nowait; /* NULL: limit or memory; lane may be NULL */
void stack_put(struct lane *lane, struct fiber *fiber) nowait;
/* Gives back what was not used since the last call; true: there may be more to do later. */
bool stack_tidy(struct lane *lane);
void stack_drop_all(struct lane *lane); /* the lane's, then the process's */
size_t stack_bytes(void) nowait;
char *stack_low(const struct fiber *fiber) nowait; /* lowest usable byte */
void *stack_top(const struct fiber *fiber) nowait;
bool stack_is_guard(const struct fiber *fiber, const void *address) nowait;
enum {
    STACK_GUARD_BYTES = 16 * 1024
};

/* lane.c */
void lane_ready(struct lane *lane, struct fiber *fiber) nowait; /* this lane's thread only */
void lane_post(struct lane *lane, struct fiber *fiber) nowait;  /* any thread */
void lane_timer_add(struct lane *lane, struct timer *timer, uint64_t at_ns) nowait;
bool lane_timer_remove(struct lane *lane, struct timer *timer) nowait; /* true: was armed */
enum {
    LANE_THREAD_STACK_BYTES = 512 * 1024
}; /* untouched pages cost nothing */
must_check int lane_thread_create(pthread_t *ret_thread, const char *name, size_t stack_size,
                                  void *(*fn)(void *), void *arg);

/* pool.c: ends all worker threads (of every pool); they start again on demand */
void pools_stop(void);
/* buf.c: as stack_tidy */
bool buf_tidy(void) nowait;
