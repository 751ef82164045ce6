/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Worker threads for kernel calls that may wait and have no asynchronous form. Threads start on
 * demand and end when idle. A job is a part of the stack of the fiber that waits for it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "core/env_internal.h"
#include "core/log.h"

enum {
    POOL_THREADS_MAX = 256,
    POOL_DEFAULT_THREADS = 16,
    POOL_IDLE_S = 10
};

struct job {
    STAILQ_ENTRY(job) next;
    hop_fn *fn;
    void *arg;
    struct fiber *fiber;
};

struct pool {
    const char *name;
    pthread_mutex_t mutex;
    pthread_cond_t work, ended;
    STAILQ_HEAD(, job) jobs;
    unsigned queued; /* jobs */
    unsigned threads_max, threads, idle;
    bool is_ending;
    LIST_ENTRY(pool) all;
};

static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, pool) all = LIST_HEAD_INITIALIZER(all);
static struct pool *default_pool;

/* --- workers ---------------------------------------------------------------------------------- */

/* The next job; NULL: this thread is not needed any more. */
static struct job *pool_next_locked(struct pool *pool)
{
    bool is_late = false;
    while (STAILQ_EMPTY(&pool->jobs)) {
        if (pool->is_ending || is_late)
            return NULL;
        if (pool->threads > pool->threads_max)
            break;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += POOL_IDLE_S;
        pool->idle++;
        is_late = pthread_cond_timedwait(&pool->work, &pool->mutex, &until) == ETIMEDOUT;
        pool->idle--;
    }
    if (pool->threads > pool->threads_max) { /* it was made smaller: what waits is the others' */
        pthread_cond_signal(&pool->work);
        return NULL;
    }
    struct job *job = STAILQ_FIRST(&pool->jobs);
    STAILQ_REMOVE_HEAD(&pool->jobs, next);
    pool->queued--;
    return job;
}

static void *pool_worker(void *arg)
{
    struct pool *pool = arg;
    pthread_mutex_lock(&pool->mutex);
    for (struct job *job; (job = pool_next_locked(pool));) {
        pthread_mutex_unlock(&pool->mutex);
        struct fiber *fiber = job->fiber;
        job->fn(job->arg);
        if (holds_held)
            fiber_misuse(fiber, "left a plain mutex locked on a worker", pool->name);
        fiber_done(fiber); /* the job is gone */
        pthread_mutex_lock(&pool->mutex);
    }
    if (--pool->threads == 0)
        pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static void pool_grow_locked(struct pool *pool)
{
    pthread_t thread;
    int ret = lane_thread_create(&thread, pool->name, LANE_THREAD_STACK_BYTES, pool_worker, pool);
    if (ret == 0) {
        pthread_detach(thread);
        pool->threads++;
    } else if (pool->threads == 0) {
        log_critical("core", ret, "cannot start the first worker thread of pool %s", pool->name);
        abort();
    }
}

void pool_hop(struct pool *pool, hop_fn *fn, void *arg)
{
    struct job job = { .fn = fn, .arg = arg, .fiber = fiber_self() };
    {
        HOLD(&pool->mutex);
        STAILQ_INSERT_TAIL(&pool->jobs, &job, next);
        pool->queued++;
        if (pool->queued <= pool->idle) /* an idle one that was signalled counts until it runs */
            pthread_cond_signal(&pool->work);
        else if (pool->threads < pool->threads_max)
            pool_grow_locked(pool);
    }
    fiber_wait("worker");
}

void hop(struct pool *pool, hop_fn *fn, void *arg)
{
    if (fiber_self())
        env_ops->hop(pool, fn, arg);
    else
        fn(arg);
}

/* --- pools ------------------------------------------------------------------------------------ */

int pool_new(const char *name, unsigned threads, struct pool **ret_pool)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return -ENOMEM;
    pool->name = name;
    pool->threads_max = MAX(1u, MIN(threads, (unsigned)POOL_THREADS_MAX));
    STAILQ_INIT(&pool->jobs);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, &attr);
    pthread_cond_init(&pool->ended, &attr);
    pthread_condattr_destroy(&attr);
    HOLD(&all_mutex);
    LIST_INSERT_HEAD(&all, pool, all);
    *ret_pool = pool;
    return 0;
}

static void pool_end_threads(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->work);
    while (pool->threads > 0)
        pthread_cond_wait(&pool->ended, &pool->mutex);
    pool->is_ending = false;
    pthread_mutex_unlock(&pool->mutex);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pool_end_threads(pool);
    assert(STAILQ_EMPTY(&pool->jobs));
    {
        HOLD(&all_mutex);
        LIST_REMOVE(pool, all);
    }
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->ended);
    free(pool);
}

void pool_resize(struct pool *pool, unsigned threads)
{
    HOLD(&pool->mutex);
    pool->threads_max = MAX(1u, MIN(threads, (unsigned)POOL_THREADS_MAX));
    pthread_cond_broadcast(&pool->work); /* those too many leave */
}

static void pool_default_new(void)
{
    if (pool_new("worker", POOL_DEFAULT_THREADS, &default_pool) < 0)
        abort(); /* some hundred bytes, once */
}

struct pool *pool_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, pool_default_new);
    return default_pool;
}

void pools_stop(void)
{
    HOLD(&all_mutex);
    struct pool *pool;
    LIST_FOREACH(pool, &all, all)
    pool_end_threads(pool);
}
