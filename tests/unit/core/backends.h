/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a test's cases once per backend of env, each case as the main fiber.
 *
 *     static void sleeps_end_in_order(void) { ... on a fiber ... assert_int_equal(...); }
 *     int main(void) { return on_backends(cases, ARRAY_SIZE(cases)); }
 *
 * A failing cmocka assertion longjmps, which must not leave a fiber's stack: there use check(). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/auto.h"
#include "core/env.h"
#include "core/fiber.h"

#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#define check_equal(value, expected)                                                               \
    do {                                                                                           \
        long long value_ = (long long)(value), expected_ = (long long)(expected);                  \
        if (value_ != expected_) {                                                                 \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #value, value_,   \
                    expected_);                                                                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#if defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 2
#elif defined(__SANITIZE_ADDRESS__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

enum {
    ALL = 7,
    REAL = 3,
    URING_ONLY = 1,
    PLAIN_ONLY = 2,
    SIM_ONLY = 4
};
struct fiber_case {
    const char *name;
    void (*fn)(void);
    int backends;
};
#define FIBER_CASE(fn, backends)                                                                   \
    {                                                                                              \
#fn, fn, backends                                                                          \
    }

static inline void fiber_case_main(void *arg)
{
    ((const struct fiber_case *)arg)->fn();
    lanes_stop();
}

static inline void fiber_case_run(void **state)
{
    check_equal(lanes_run(fiber_case_main, *state), 0);
}

static inline int on_backends(const struct fiber_case *cases, size_t count)
{
    static const char *const names[] = { "uring", "plain", "sim" };
    int failed = 0;
    const char *only = getenv("ONLY_BACKEND"), *only_case = getenv("ONLY_CASE");
    for (int backend = 0; backend < 3; backend++) {
        struct CMUnitTest *tests = calloc(count, sizeof(*tests));
        size_t n = 0;
        if (only && strcmp(only, names[backend]) != 0) {
            free(tests);
            continue;
        }
        int ret = env_init(names[backend], 1);
        if (ret < 0) {
            fprintf(stderr, "# skipped: no %s here: %s\n", names[backend], strerror(-ret));
            free(tests);
            continue;
        }
        for (size_t i = 0; i < count; i++)
            if (cases[i].backends & 1 << backend &&
                (!only_case || strcmp(only_case, cases[i].name) == 0))
                tests[n++] = (struct CMUnitTest){
                    .name = cases[i].name,
                    .test_func = fiber_case_run,
                    .initial_state = (void *)(uintptr_t)&cases[i],
                };
        fprintf(stderr, "# %s\n", names[backend]);
        failed += _cmocka_run_group_tests(names[backend], tests, n, NULL, NULL);
        free(tests);
    }
    return failed;
}
