/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzz target where its code runs in earnest: on a stack of a fiber's size.
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *     {
 *         return on_small_stack(one_input, data, size);
 *     }
 *
 * One thread with such a stack serves all inputs, one at a time. */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#include "core/fiber.h"

enum { SMALL_STACK_BYTES = 4 * FIBER_STACK_BYTES }; /* as fibers have under a sanitizer */

typedef int fuzz_fn(const uint8_t *data, size_t size);

static struct {
    sem_t asked, answered;
    fuzz_fn *fn;
    const uint8_t *data;
    size_t size;
    int ret;
    bool is_started;
} small_stack;

static void *small_stack_run(void *arg)
{
    (void)arg;
    for (;;) {
        sem_wait(&small_stack.asked);
        small_stack.ret = small_stack.fn(small_stack.data, small_stack.size);
        sem_post(&small_stack.answered);
    }
    return NULL;
}

static void small_stack_start(void)
{
    pthread_attr_t attr;
    pthread_t thread;

    sem_init(&small_stack.asked, 0, 0);
    sem_init(&small_stack.answered, 0, 0);
    pthread_attr_init(&attr);
    int ret = pthread_attr_setstacksize(&attr, SMALL_STACK_BYTES);
    assert(ret == 0);
    ret = pthread_create(&thread, &attr, small_stack_run, NULL);
    assert(ret == 0);
    pthread_attr_destroy(&attr);
    small_stack.is_started = true;
}

static inline int on_small_stack(fuzz_fn *fn, const uint8_t *data, size_t size)
{
    if (!small_stack.is_started)
        small_stack_start();
    small_stack.fn = fn;
    small_stack.data = data;
    small_stack.size = size;
    sem_post(&small_stack.asked);
    while (sem_wait(&small_stack.answered) < 0)
        ; /* libFuzzer's alarm */
    return small_stack.ret;
}
