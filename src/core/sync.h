/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fiber synchronisation: waiting parks the fiber, not the thread. All work across lanes. FIFO.
 *
 *     FLOCK(&txn->mutex);                      // released at the end of the block
 */
#pragma once

#include <pthread.h>
#include <sys/queue.h>

#include "core/auto.h"
#include "core/fiber.h"

struct fwaiter;
TAILQ_HEAD(fwaiters, fwaiter);

struct fmutex {
    pthread_mutex_t guard;
    struct fiber *owner;
    struct fwaiters waiters;
};
void fmutex_init(struct fmutex *mutex) nowait;
void fmutex_fini(struct fmutex *mutex) nowait;
void fmutex_lock(struct fmutex *mutex);
must_check bool fmutex_trylock(struct fmutex *mutex) nowait;
void fmutex_unlock(struct fmutex *mutex) nowait;

struct frwlock {
    pthread_mutex_t guard;
    unsigned readers;
    struct fiber *writer;
    struct fwaiters waiters;
};
void frwlock_init(struct frwlock *lock) nowait;
void frwlock_fini(struct frwlock *lock) nowait;
void frwlock_read(struct frwlock *lock);
void frwlock_write(struct frwlock *lock);
void frwlock_unlock(struct frwlock *lock) nowait;

/* A condition over state that a plain mutex protects: fcond_wait lets the mutex go while parked.
 * The mutex must have been taken with hold_begin/HOLD. */
struct fcond {
    struct fwaiters waiters; /* protected by the user's mutex */
};
void fcond_init(struct fcond *cond) nowait;
void fcond_wait(struct fcond *cond, pthread_mutex_t *mutex, const char *why);
/* 0, or -ETIMEDOUT at until_ns of env's clock. */
must_check int fcond_wait_until(struct fcond *cond, pthread_mutex_t *mutex, const char *why,
                                uint64_t until_ns);
void fcond_wake_one(struct fcond *cond) nowait; /* caller holds the mutex */
void fcond_wake_all(struct fcond *cond) nowait; /* caller holds the mutex */

/* Legs: start some, wait for all or until a predicate over their results holds.
 *
 * Where legs may outlive the waiter (decided), the group lives in memory of an owner that all
 * share, and is made by fgroup_init_owned: `release(owner)` is called when the last of (who calls
 * fgroup_fini, legs) is through with it. Else fgroup_fini finds no leg running. */
typedef void fgroup_release_fn(void *owner);
struct fgroup {
    pthread_mutex_t guard;
    unsigned running, bound, refs;
    struct fcond done;
    fgroup_release_fn *release;
    void *owner;
};
typedef bool fgroup_decided_fn(void *arg);
void fgroup_init(struct fgroup *group, unsigned bound /* 0: none */) nowait;
void fgroup_init_owned(struct fgroup *group, unsigned bound, fgroup_release_fn *release,
                       void *owner) nowait;
void fgroup_fini(struct fgroup *group) nowait;
/* Runs fn(arg) as a leg; parks while the bound is reached. */
must_check int fgroup_start(struct fgroup *group, const char *name, fiber_fn *fn, void *arg);
/* Until no leg runs, or decided(arg) holds (asked whenever a leg ends). decided may be NULL. */
void fgroup_wait(struct fgroup *group, fgroup_decided_fn *decided, void *arg);

static inline void fmutex_auto(struct fmutex **mutex)
{
    fmutex_unlock(*mutex);
}
#define FLOCK(mutex_)                                                                              \
    __attribute__((cleanup(fmutex_auto), unused)) struct fmutex *HOLD_CAT(                         \
        flocked_, __LINE__) = (fmutex_lock(mutex_), (mutex_))
