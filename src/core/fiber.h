/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fibers: straight-line code that waits without holding a thread; lanes: the threads they run on.
 *
 *     fiber_start("reader", reader, conn);     // runs reader(conn) on this lane, soon
 *     fiber_park("reply");  ...  fiber_wake(f) // from any fiber, lane, worker or native thread
 *
 * A fiber never changes its lane (DESIGN section 3). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/auto.h"

struct fiber;
struct lane;
typedef void fiber_fn(void *arg);

enum {
    FIBER_STACK_BYTES = 64 * 1024, /* four times that under a sanitizer */
    LANES_MAX = 64,
};

/* The fiber that runs, or NULL on a worker or native thread. */
struct fiber *fiber_self(void) nowait;
const char *fiber_name(const struct fiber *fiber) nowait;
/* Starts fn(arg) on this lane. name: static. -ENOMEM: no stack (limit reached). */
must_check int fiber_start(const char *name, fiber_fn *fn, void *arg) nowait;
/* The same on another lane, from anywhere. */
must_check int fiber_start_on(struct lane *lane, const char *name, fiber_fn *fn, void *arg) nowait;
/* Parks until fiber_wake. A wake that comes first is remembered (one); two abort. `why` is static
 * and shows in dumps. Aborts when a HOLD mutex is held. */
void fiber_park(const char *why);
/* Parks until woken (0) or env's clock reaches until_ns (-ETIMEDOUT). After a time-out the caller
 * must make sure that nobody wakes it any more (take itself off the list first). */
must_check int fiber_park_until(const char *why, uint64_t until_ns);
void fiber_wake(struct fiber *fiber) nowait;
/* Lets others run first. */
void fiber_yield(void);

/* Fibers alive now, for dumps. */
uint64_t fiber_count(void) nowait;
/* For daemons: a fiber that runs off its stack is named on stderr before the process dies. */
void fiber_install_overflow_handler(void);

/* Lane 0 is the thread that calls lanes_run; others are made by lanes_grow. */
struct lane *lane_self(void) nowait;
struct lane *lane_get(unsigned index) nowait;
unsigned lane_index(const struct lane *lane) nowait;
unsigned lanes_count(void) nowait;
/* Makes sure that there are at least n lanes (capped at LANES_MAX); returns how many there are. */
unsigned lanes_grow(unsigned n) nowait;
/* Runs main_fn(arg) as the first fiber on the calling thread and returns its loop when
 * lanes_stop was called (all other lanes joined; fibers still parked are abandoned). */
must_check int lanes_run(fiber_fn *main_fn, void *arg);
void lanes_stop(void) nowait;

struct lane_stats {           /* sums over all lanes */
    uint64_t turns, switches; /* of loops; from loops into fibers */
    uint64_t aways;           /* times that a lane did not look at its events for over 10 ms */
};
void lanes_get_stats(struct lane_stats *ret_stats) nowait;

/* Parks the fiber and runs fn(arg) on a worker thread, where env_ calls act directly and block.
 * Called on a worker or native thread, runs it in place. */
struct pool;
must_check int pool_new(const char *name, unsigned threads, struct pool **ret_pool);
void pool_free(struct pool *pool);
void pool_resize(struct pool *pool, unsigned threads) nowait;
struct pool *pool_default(void) nowait; /* 16 threads at most, started on demand */
typedef void hop_fn(void *arg);
void hop(struct pool *pool, hop_fn *fn, void *arg);
