/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/buf.h"

#include "backends.h"

#include <errno.h>
#include <pthread.h>

#include "core/lane.h"

enum { LIMIT = 32 << 20 };
static unsigned running, order[64], order_count;

static uint64_t used_bytes(void)
{
    struct buf_stats stats;
    buf_get_stats(&stats);
    return stats.used_bytes;
}

static void classes_fit(void)
{
    static const size_t sizes[] = { 0, 1, 4096, 4097, 32768, 32769, 131072, 131073, 1 << 20 };
    static const uint32_t expected[] = { 4096, 4096, 4096, 32768, 32768, 131072, 131072, 1 << 20,
                                         1 << 20 };
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        AUTO(buf) buf = buf_get(sizes[i]);
        check_equal(buf->capacity, expected[i]);
        check_equal((uintptr_t)buf->data % 4096, 0);
        memset(buf->data, 0x5a, buf->capacity);
        AUTO(buf) again = buf_ref(buf);
        check_equal(again->refs, 2);
    }
    check_equal(used_bytes(), 0);
}

static void buffers_do_not_overlap(void)
{
    static struct buf *bufs[600];
    static const size_t sizes[] = { 4096, 32768, 4096, 131072, 100, 1 << 20 };
    unsigned count = 0;
    for (uint64_t bytes = 0; count < 600; count++) {
        size_t size = sizes[count % 6];
        if (bytes + size > LIMIT / 2)
            break;
        bufs[count] = buf_get(size);
        memset(bufs[count]->data, (int)count, bufs[count]->capacity);
        bytes += bufs[count]->capacity;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned char *data = bufs[i]->data;
        for (uint32_t j = 0; j < bufs[i]->capacity; j++)
            check(data[j] == (unsigned char)i);
        buf_unref(bufs[i]);
    }
    check_equal(used_bytes(), 0);
}

/* The arena full of one class serves another as soon as that is all free. */
static void extents_change_their_class(void)
{
    static struct buf *bufs[LIMIT / 4096];
    for (unsigned round = 0; round < 3; round++) {
        uint32_t size = round % 2 ? 131072 : 4096;
        unsigned count = LIMIT / size;
        for (unsigned i = 0; i < count; i++)
            bufs[i] = buf_get(size);
        check_equal(used_bytes(), LIMIT);
        for (unsigned i = 0; i < count; i++)
            buf_unref(bufs[i]);
    }
    struct buf_stats stats;
    buf_get_stats(&stats);
    check_equal(stats.arena_bytes, LIMIT);
    check_equal(stats.used_bytes, 0);
}

static void gets_one(void *arg)
{
    AUTO(buf) buf = buf_get(1 << 20);
    order[order_count++] = (unsigned)(uintptr_t)arg;
    running--;
}

static void exhaustion_parks_in_order(void)
{
    struct buf *bufs[LIMIT >> 20];
    struct buf_stats before, after;
    buf_get_stats(&before);
    for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++)
        bufs[i] = buf_get(1 << 20);
    order_count = running = 0;
    for (unsigned i = 0; i < 10; i++) {
        running++;
        check_equal(fiber_start("waiter", gets_one, (void *)(uintptr_t)i), 0);
    }
    env_sleep(5 * NS_PER_MS);
    check_equal(running, 10);
    buf_unref(bufs[0]);
    while (running > 0)
        env_sleep(NS_PER_MS);
    for (unsigned i = 0; i < 10; i++)
        check_equal(order[i], i);
    for (unsigned i = 1; i < ARRAY_SIZE(bufs); i++)
        buf_unref(bufs[i]);
    buf_get_stats(&after);
    check_equal(after.waits, before.waits + 10);
    check_equal(after.used_bytes, 0);
}

static void gets_two_mib(void *arg)
{
    (void)arg;
    struct payload payload = { .segs = 0 };
    check_equal(payload_alloc(&payload, 2 << 20), 0);
    order[order_count++] = 0;
    payload_fini(&payload);
    running--;
}

/* What is free is not enough for the first in line: the second, for whom it is, must wait too. */
static void small_request_does_not_overtake(void)
{
    struct buf *bufs[LIMIT >> 20];
    for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++)
        bufs[i] = buf_get(1 << 20);
    order_count = 0;
    running = 2;
    check_equal(fiber_start("large", gets_two_mib, NULL), 0);
    fiber_yield();
    buf_unref(bufs[0]);
    check_equal(fiber_start("small", gets_one, (void *)1), 0);
    env_sleep(2 * NS_PER_MS);
    check_equal(running, 2);
    buf_unref(bufs[1]);
    while (running > 0)
        env_sleep(NS_PER_MS);
    check_equal(order[0], 0);
    check_equal(order[1], 1);
    for (unsigned i = 2; i < ARRAY_SIZE(bufs); i++)
        buf_unref(bufs[i]);
}

static void allocates_large(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        struct payload payload = { .segs = 0 };
        check_equal(payload_alloc(&payload, 12 << 20), 0);
        fiber_yield();
        payload_fini(&payload);
    }
    running--;
}

/* Each wants 12 of 32 MiB: taken piece by piece, they would wait for each other. */
static void large_payloads_do_not_deadlock(void)
{
    unsigned lanes = lanes_grow(1);
    running = 0;
    for (unsigned i = 0; i < 8; i++) {
        running++;
        check_equal(fiber_start_on(lane_get(i % lanes), "large", allocates_large, NULL), 0);
    }
    while (running > 0)
        env_sleep(NS_PER_MS);
    check_equal(used_bytes(), 0);
}

static void *frees_later(void *arg)
{
    usleep(5000);
    buf_unref(arg);
    return NULL;
}

static void thread_blocks_and_gets(void *arg)
{
    pthread_t thread;
    check_equal(pthread_create(&thread, NULL, frees_later, arg), 0);
    AUTO(buf) buf = buf_get(1 << 20);
    check(buf);
    pthread_join(thread, NULL);
}

static void workers_wait_too(void)
{
    struct buf *bufs[LIMIT >> 20];
    for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++)
        bufs[i] = buf_get(1 << 20);
    hop(pool_default(), thread_blocks_and_gets, bufs[0]);
    for (unsigned i = 1; i < ARRAY_SIZE(bufs); i++)
        buf_unref(bufs[i]);
    check_equal(used_bytes(), 0);
}

static void payload_holds_what_it_is_given(void)
{
    enum { BYTES = (2 << 20) + 5000 };
    unsigned char *in = malloc(BYTES), *out = malloc(BYTES);
    for (unsigned i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(i * 7 >> 3);
    struct payload payload = { .segs = 0 }, copy = { .segs = 0 };
    check_equal(payload_alloc(&payload, BYTES), 0);
    check_equal(payload.segs, 3);
    check_equal(payload.buf[2]->capacity, 32768);
    check_equal(payload.bytes, BYTES);
    payload_copy_in(&payload, in);
    payload_ref(&copy, &payload);
    payload_fini(&payload);
    payload_copy_out(&copy, out);
    check_equal(memcmp(in, out, BYTES), 0);
    payload_truncate(&copy, (1 << 20) + 1);
    check_equal(copy.segs, 2);
    check_equal(copy.bytes, (1 << 20) + 1);
    check_equal(used_bytes(), 2 << 20);
    payload_truncate(&copy, 1 << 20);
    check_equal(copy.segs, 1);
    payload_add_borrowed(&copy, in, 10);
    check_equal(copy.bytes, (1 << 20) + 10);
    payload_fini(&copy);
    check_equal(payload_alloc(&payload, PAYLOAD_BYTES_MAX + 1), -E2BIG);
    check_equal(payload_alloc(&payload, 0), 0);
    check_equal(payload.segs, 0);
    check_equal(used_bytes(), 0);
    free(in);
    free(out);
}

/* Resident memory of the process, in bytes. */
static uint64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long all, resident;
    check_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
    fclose(file);
    return (uint64_t)resident * 4096;
}

static void idle_memory_goes_back_to_the_kernel(void)
{
    if (UNDER_SANITIZER)
        return;
    struct buf *bufs[LIMIT >> 20];
    buf_tidy();
    buf_tidy();
    uint64_t before = resident_bytes();
    for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++) {
        bufs[i] = buf_get(1 << 20);
        memset(bufs[i]->data, 1, 1 << 20);
    }
    check(resident_bytes() >= before + LIMIT);
    for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++)
        buf_unref(bufs[i]);
    check(buf_tidy()); /* used in this period: kept */
    check(resident_bytes() >= before + LIMIT);
    check(!buf_tidy());
    check(resident_bytes() < before + (2 << 20));
}

static const struct fiber_case cases[] = {
    FIBER_CASE(classes_fit, ALL),
    FIBER_CASE(buffers_do_not_overlap, ALL),
    FIBER_CASE(extents_change_their_class, ALL),
    FIBER_CASE(exhaustion_parks_in_order, ALL),
    FIBER_CASE(small_request_does_not_overtake, ALL),
    FIBER_CASE(large_payloads_do_not_deadlock, ALL),
    FIBER_CASE(workers_wait_too, REAL),
    FIBER_CASE(payload_holds_what_it_is_given, ALL),
    FIBER_CASE(idle_memory_goes_back_to_the_kernel, ALL),
};

int main(void)
{
    buf_set_limit(LIMIT);
    return on_backends(cases, ARRAY_SIZE(cases));
}
