/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fiber synchronisation. A lock is handed over: who unlocks makes the first waiter its owner, so
 * nobody overtakes and a woken waiter never has to try again.
 *
 * Threads that are no fibers (workers, native threads) may use all of it too: they block. */
#include "core/sync.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "core/env.h"
#include "core/lane.h"
#include "core/log.h"

/* --- plain mutexes ---------------------------------------------------------------------------- */

void hold_begin(pthread_mutex_t *mutex)
{
    int ret = pthread_mutex_lock(mutex);
    assert(ret == 0);
    holds_held++;
}

void hold_end(pthread_mutex_t **mutex)
{
    holds_held--;
    int ret = pthread_mutex_unlock(*mutex);
    assert(ret == 0);
}

static void unhold(pthread_mutex_t *mutex)
{
    hold_end(&mutex);
}

/* Who owns a lock: the fiber, or for a thread an address of its own that is no fiber. */
static struct fiber *owner_self(void)
{
    static _Thread_local char thread;
    struct fiber *fiber = fiber_self();
    return fiber ? fiber : (struct fiber *)(void *)&thread;
}

static _Noreturn void sync_misuse(const char *what)
{
    fiber_misuse(fiber_self(), what, NULL);
}

/* --- waiters: on the stack of whoever waits --------------------------------------------------- */

struct fwaiter {
    TAILQ_ENTRY(fwaiter) next;
    struct fiber *fiber; /* NULL: a thread, which waits for `woken` */
    struct fiber *owner; /* what a lock calls it */
    sem_t woken;
    bool is_writer, is_queued;
};

static void waiter_begin(struct fwaiter *waiter, struct fwaiters *waiters)
{
    waiter->fiber = fiber_self();
    waiter->owner = owner_self();
    if (!waiter->fiber && lane_current)
        sync_misuse("would block its lane (a simulated worker)");
    if (!waiter->fiber)
        sem_init(&waiter->woken, 0, 0);
    waiter->is_queued = true;
    TAILQ_INSERT_TAIL(waiters, waiter, next);
}

static void waiter_end(struct fwaiter *waiter)
{
    if (!waiter->fiber)
        sem_destroy(&waiter->woken);
}

static void waiter_wait(struct fwaiter *waiter, const char *why)
{
    if (waiter->fiber)
        fiber_wait(why);
    else
        while (sem_wait(&waiter->woken) < 0)
            assert(errno == EINTR);
}

/* false: the time came first. */
static bool waiter_wait_until(struct fwaiter *waiter, const char *why, uint64_t until_ns)
{
    if (waiter->fiber)
        return fiber_wait_until(why, until_ns);
    struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
                              .tv_nsec = (long)(until_ns % NS_PER_S) };
    while (sem_clockwait(&waiter->woken, CLOCK_MONOTONIC, &until) < 0)
        if (errno == ETIMEDOUT)
            return false;
    return true;
}

/* Takes it off its list. It may be gone as soon as it is woken. */
static void waiter_wake(struct fwaiter *waiter, struct fwaiters *waiters)
{
    TAILQ_REMOVE(waiters, waiter, next);
    waiter->is_queued = false;
    if (waiter->fiber)
        fiber_done(waiter->fiber);
    else
        sem_post(&waiter->woken);
}

/* Counts the locks that this fiber holds (n: 1 or -1); it must not end with any. */
static void locks_count(int n)
{
    struct fiber *fiber = fiber_self();
    if (fiber)
        fiber->locks += (unsigned)n;
}

/* --- fmutex ----------------------------------------------------------------------------------- */

void fmutex_init(struct fmutex *mutex)
{
    pthread_mutex_init(&mutex->guard, NULL);
    mutex->owner = NULL;
    TAILQ_INIT(&mutex->waiters);
}

void fmutex_fini(struct fmutex *mutex)
{
    if (mutex->owner)
        sync_misuse("destroys a locked fmutex");
    pthread_mutex_destroy(&mutex->guard);
}

bool fmutex_trylock(struct fmutex *mutex)
{
    HOLD(&mutex->guard);
    if (mutex->owner)
        return false;
    mutex->owner = owner_self();
    locks_count(1);
    return true;
}

void fmutex_lock(struct fmutex *mutex)
{
    struct fwaiter waiter = { .is_writer = true };
    struct fiber *self = owner_self();
    if (holds_held)
        sync_misuse("locks an fmutex while it holds a plain mutex");
    {
        HOLD(&mutex->guard);
        if (mutex->owner == self)
            sync_misuse("locks an fmutex that it has locked");
        locks_count(1);
        if (!mutex->owner) {
            mutex->owner = self;
            return;
        }
        waiter_begin(&waiter, &mutex->waiters);
    }
    waiter_wait(&waiter, "fmutex");
    waiter_end(&waiter);
    assert(mutex->owner == self);
}

void fmutex_unlock(struct fmutex *mutex)
{
    HOLD(&mutex->guard);
    if (mutex->owner != owner_self())
        sync_misuse("unlocks an fmutex that it has not locked");
    locks_count(-1);
    struct fwaiter *waiter = TAILQ_FIRST(&mutex->waiters);
    mutex->owner = waiter ? waiter->owner : NULL;
    if (waiter)
        waiter_wake(waiter, &mutex->waiters);
}

/* --- frwlock: strictly in order of arrival, so neither side starves --------------------------- */

void frwlock_init(struct frwlock *lock)
{
    pthread_mutex_init(&lock->guard, NULL);
    lock->readers = 0;
    lock->writer = NULL;
    TAILQ_INIT(&lock->waiters);
}

void frwlock_fini(struct frwlock *lock)
{
    if (lock->writer || lock->readers)
        sync_misuse("destroys a locked frwlock");
    pthread_mutex_destroy(&lock->guard);
}

static void frwlock_lock(struct frwlock *lock, bool is_writer)
{
    struct fwaiter waiter = { .is_writer = is_writer };
    if (holds_held)
        sync_misuse("locks an frwlock while it holds a plain mutex");
    {
        HOLD(&lock->guard);
        if (lock->writer == owner_self())
            sync_misuse("locks an frwlock that it has locked for writing");
        locks_count(1);
        bool is_free = TAILQ_EMPTY(&lock->waiters) && !lock->writer;
        if (is_free && is_writer && lock->readers == 0) {
            lock->writer = owner_self();
            return;
        }
        if (is_free && !is_writer) {
            lock->readers++;
            return;
        }
        waiter_begin(&waiter, &lock->waiters);
    }
    waiter_wait(&waiter, is_writer ? "frwlock write" : "frwlock read");
    waiter_end(&waiter);
}

void frwlock_read(struct frwlock *lock)
{
    frwlock_lock(lock, false);
}

void frwlock_write(struct frwlock *lock)
{
    frwlock_lock(lock, true);
}

/* Lets in the first waiter if it is a writer, else all readers up to the first writer. */
static void frwlock_admit_locked(struct frwlock *lock)
{
    for (struct fwaiter *waiter; (waiter = TAILQ_FIRST(&lock->waiters));) {
        if (lock->writer || (waiter->is_writer && lock->readers > 0))
            return;
        if (waiter->is_writer)
            lock->writer = waiter->owner;
        else
            lock->readers++;
        waiter_wake(waiter, &lock->waiters);
    }
}

void frwlock_unlock(struct frwlock *lock)
{
    HOLD(&lock->guard);
    if (lock->writer == owner_self())
        lock->writer = NULL;
    else if (lock->readers > 0 && !lock->writer)
        lock->readers--;
    else
        sync_misuse("unlocks an frwlock that it has not locked");
    locks_count(-1);
    frwlock_admit_locked(lock);
}

/* --- fcond ------------------------------------------------------------------------------------ */

void fcond_init(struct fcond *cond)
{
    TAILQ_INIT(&cond->waiters);
}

void fcond_wait(struct fcond *cond, pthread_mutex_t *mutex, const char *why)
{
    struct fwaiter waiter;
    waiter_begin(&waiter, &cond->waiters);
    unhold(mutex);
    waiter_wait(&waiter, why);
    waiter_end(&waiter);
    hold_begin(mutex);
}

int fcond_wait_until(struct fcond *cond, pthread_mutex_t *mutex, const char *why, uint64_t until_ns)
{
    struct fwaiter waiter;
    waiter_begin(&waiter, &cond->waiters);
    unhold(mutex);
    bool woken = waiter_wait_until(&waiter, why, until_ns);
    hold_begin(mutex);
    if (!woken && waiter.is_queued) {
        TAILQ_REMOVE(&cond->waiters, &waiter, next);
        waiter_end(&waiter);
        return -ETIMEDOUT;
    }
    if (!woken) { /* woken meanwhile, under the mutex that we had to wait for: take that wake */
        unhold(mutex);
        waiter_wait(&waiter, why);
        hold_begin(mutex);
    }
    waiter_end(&waiter);
    return 0;
}

void fcond_wake_one(struct fcond *cond)
{
    struct fwaiter *waiter = TAILQ_FIRST(&cond->waiters);
    if (waiter)
        waiter_wake(waiter, &cond->waiters);
}

void fcond_wake_all(struct fcond *cond)
{
    while (!TAILQ_EMPTY(&cond->waiters))
        fcond_wake_one(cond);
}

/* --- fgroup ----------------------------------------------------------------------------------- */

struct leg {
    struct fgroup *group;
    fiber_fn *fn;
    void *arg;
};

void fgroup_init(struct fgroup *group, unsigned bound)
{
    fgroup_init_owned(group, bound, NULL, NULL);
}

void fgroup_init_owned(struct fgroup *group, unsigned bound, fgroup_release_fn *release,
                       void *owner)
{
    pthread_mutex_init(&group->guard, NULL);
    group->running = 0;
    group->refs = 1;
    group->bound = bound;
    group->release = release;
    group->owner = owner;
    fcond_init(&group->done);
}

static void fgroup_unref(struct fgroup *group, bool is_leg)
{
    bool is_last;
    {
        HOLD(&group->guard);
        if (is_leg) {
            group->running--;
            fcond_wake_all(&group->done);
        }
        is_last = --group->refs == 0;
    }
    if (!is_last)
        return;
    pthread_mutex_destroy(&group->guard);
    if (group->release)
        group->release(group->owner);
}

void fgroup_fini(struct fgroup *group)
{
    if (group->running && !group->release)
        sync_misuse("ends a group whose legs still run");
    fgroup_unref(group, false);
}

static void leg_run(void *arg)
{
    struct leg leg = *(struct leg *)arg;
    free(arg);
    leg.fn(leg.arg);
    fgroup_unref(leg.group, true);
}

int fgroup_start(struct fgroup *group, const char *name, fiber_fn *fn, void *arg)
{
    struct leg *leg = malloc(sizeof(*leg));
    if (!leg)
        return -ENOMEM;
    *leg = (struct leg){ .group = group, .fn = fn, .arg = arg };
    {
        HOLD(&group->guard);
        while (group->bound && group->running >= group->bound)
            fcond_wait(&group->done, &group->guard, "group's bound");
        group->running++;
        group->refs++;
    }
    int ret = fiber_start(name, leg_run, leg);
    if (ret < 0) {
        free(leg);
        fgroup_unref(group, true);
    }
    return ret;
}

void fgroup_wait(struct fgroup *group, fgroup_decided_fn *decided, void *arg)
{
    HOLD(&group->guard);
    while (group->running > 0 && !(decided && decided(arg)))
        fcond_wait(&group->done, &group->guard, "legs");
}
