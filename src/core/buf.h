/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Payload buffers: reference-counted, page-aligned, from an arena, never from malloc (DESIGN 6).
 *
 *     struct buf *buf = buf_get(bytes);            // parks while the arena is exhausted
 *     payload_add(&out->payload, TAKE(buf), 0, bytes);
 */
#pragma once

#include <stdint.h>
#include <sys/uio.h>

#include "core/auto.h"

enum {
    BUF_BYTES_MIN = 4096,
    BUF_BYTES_MAX = 1 << 20,
    PAYLOAD_SEGS_MAX = 18, /* 16 MiB and a piece at either end */
    PAYLOAD_BYTES_MAX = 16 * BUF_BYTES_MAX,
};

struct buf {
    void *data;        /* page-aligned */
    uint32_t capacity; /* of its class: 4 KiB, 32 KiB, 128 KiB, 1 MiB */
    uint32_t class_;
    _Atomic uint32_t refs;
    struct buf *next; /* in its free list */
};

/* A buffer of at least bytes (<= BUF_BYTES_MAX). Never NULL: parks the fiber while the arena is at
 * its limit and empty; on a native thread blocks. */
struct buf *buf_get(size_t bytes);
struct buf *buf_ref(struct buf *buf) nowait;
void buf_unref(struct buf *buf) nowait; /* NULL is fine */
AUTO_DEFINE(buf, buf_unref)

struct buf_stats {
    uint64_t arena_bytes, used_bytes, limit_bytes, waits;
};
void buf_get_stats(struct buf_stats *ret_stats) nowait;
void buf_set_limit(uint64_t bytes) nowait; /* default 256 MiB */

/* A message's bulk bytes: references to pieces of buffers, in order. Zero-initialised is empty. */
struct payload {
    uint32_t segs;
    uint32_t bytes;
    struct iovec iov[PAYLOAD_SEGS_MAX]; /* into buf[i] */
    struct buf *buf[PAYLOAD_SEGS_MAX];  /* NULL: borrowed memory that outlives the call */
};

/* Takes over the caller's reference of buf. Aborts when full. */
void payload_add(struct payload *payload, struct buf *buf, uint32_t offset, uint32_t bytes) nowait;
/* Borrowed memory (a guest's iovec): nothing is freed. */
void payload_add_borrowed(struct payload *payload, void *data, uint32_t bytes) nowait;
/* Room for bytes in fresh buffers: whole MiB ones, then what fits. -E2BIG: over the maximum. */
must_check int payload_alloc(struct payload *payload, uint32_t bytes);
/* Keeps the first bytes only. */
void payload_truncate(struct payload *payload, uint32_t bytes) nowait;
/* References the same buffers. */
void payload_ref(struct payload *to, const struct payload *from) nowait;
void payload_fini(struct payload *payload) nowait;
void payload_copy_out(const struct payload *payload, void *to) nowait;  /* all bytes */
void payload_copy_in(struct payload *payload, const void *from) nowait; /* all bytes */
