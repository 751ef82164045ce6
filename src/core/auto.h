/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scope-bound clean-up, and the few macros that every file uses.
 *
 *     AUTO(dict) dict = dict_new();      // dict_unref(dict) at the end of the block
 *     HOLD(&table->mutex);               // unlocked at the end of the block
 *     *ret_dict = TAKE(dict);            // ownership goes out, dict becomes NULL
 */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define must_check __attribute__((warn_unused_result))
#define nowait /* never parks the fiber, and callers rely on it */
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

/* AUTO(x) declares a `struct x *` that AUTO_DEFINE's function ends at the end of the block. */
#define AUTO(type) __attribute__((cleanup(type##_auto), unused)) struct type *
#define AUTO_DEFINE(type, end)                                                                     \
    static inline void type##_auto(struct type **object)                                           \
    {                                                                                              \
        end(*object);                                                                              \
    }

#define TAKE(pointer)                                                                              \
    ({                                                                                             \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

static inline void free_auto(void *pointer)
{
    extern void free(void *);
    free(*(void **)pointer);
}
#define AUTO_FREE __attribute__((cleanup(free_auto)))

static inline void close_auto(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define AUTO_FD __attribute__((cleanup(close_auto))) int
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })

/* HOLD: a plain mutex over a few lines that never park (checked: a fiber that parks aborts). */
void hold_begin(pthread_mutex_t *mutex) nowait;
void hold_end(pthread_mutex_t **mutex) nowait;
#define HOLD_CAT_(a, b) a##b
#define HOLD_CAT(a, b) HOLD_CAT_(a, b)
#define HOLD(mutex_)                                                                               \
    __attribute__((cleanup(hold_end), unused)) pthread_mutex_t *HOLD_CAT(held_, __LINE__) =        \
        (hold_begin(mutex_), (mutex_))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(ptr, type, member)                                                            \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define add_overflows(a, b, sum) __builtin_add_overflow(a, b, sum)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Relaxed counters: a reader may lag, nothing is lost. */
static inline void count_add(_Atomic uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add((uint64_t *)counter, n, __ATOMIC_RELAXED);
}
