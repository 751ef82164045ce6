/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* XDR (RFC 4506) over memory: a reader of hostile bytes, a writer that grows.
 *
 *     struct reader r = reader_of(bytes, count);
 *     ret = reader_u32(&r, &flags);                 // -EBADMSG: too short
 *
 *     uint8_t room[512];
 *     struct writer w = writer_into(room, sizeof(room));
 *     writer_u32(&w, 7);                            // failures stick; writer_ok tells at the end
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/auto.h"
#include "core/uuid.h"

struct reader {
    uint8_t *pos; /* mutable: reader_str moves text over its own length word to end it with a NUL */
    uint8_t *end;
};

static inline struct reader reader_of(void *bytes, size_t count)
{
    return (struct reader){ .pos = bytes, .end = (uint8_t *)bytes + count };
}
static inline size_t reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->pos);
}
static inline must_check int reader_u32(struct reader *r, uint32_t *ret_value)
{
    uint32_t raw;
    if (reader_left(r) < 4)
        return -EBADMSG;
    memcpy(&raw, r->pos, 4);
    r->pos += 4;
    *ret_value = __builtin_bswap32(raw);
    return 0;
}
static inline must_check int reader_i32(struct reader *r, int32_t *ret_value)
{
    return reader_u32(r, (uint32_t *)ret_value);
}
static inline must_check int reader_u64(struct reader *r, uint64_t *ret_value)
{
    uint64_t raw;
    if (reader_left(r) < 8)
        return -EBADMSG;
    memcpy(&raw, r->pos, 8);
    r->pos += 8;
    *ret_value = __builtin_bswap64(raw);
    return 0;
}
static inline must_check int reader_i64(struct reader *r, int64_t *ret_value)
{
    return reader_u64(r, (uint64_t *)ret_value);
}
static inline must_check int reader_gfid(struct reader *r, gfid_t *ret_gfid)
{
    if (reader_left(r) < sizeof(*ret_gfid))
        return -EBADMSG;
    memcpy(ret_gfid, r->pos, sizeof(*ret_gfid));
    r->pos += sizeof(*ret_gfid);
    return 0;
}
/* count bytes without a length word, no padding; *ret_bytes points into the input. */
must_check int reader_raw(struct reader *r, size_t count, uint8_t **ret_bytes) nowait;
/* opaque<max>: *ret_bytes points into the input. -EBADMSG; -E2BIG: longer than max. */
must_check int reader_opaque(struct reader *r, uint32_t max, uint8_t **ret_bytes,
                             uint32_t *ret_count) nowait;
/* string<max>: NUL-terminated in place. -EBADMSG also for an inner NUL. Changes the input. */
must_check int reader_str(struct reader *r, uint32_t max, char **ret_text) nowait;

struct writer {
    uint8_t *data;
    size_t used, capacity;
    bool on_heap; /* grown: writer_fini frees */
    bool failed;  /* no memory, or over WRITER_BYTES_MAX */
};

enum { WRITER_BYTES_MAX = 64 << 20 };

static inline struct writer writer_into(void *room, size_t bytes)
{
    return (struct writer){ .data = room, .capacity = bytes };
}
static inline bool writer_ok(const struct writer *w)
{
    return !w->failed;
}
void writer_fini(struct writer *w) nowait;
/* Room for count more bytes at the end, already counted as used; NULL when failed. */
uint8_t *writer_room(struct writer *w, size_t count) nowait;

static inline void writer_u32(struct writer *w, uint32_t value)
{
    uint32_t raw = __builtin_bswap32(value);
    uint8_t *to = writer_room(w, 4);
    if (to)
        memcpy(to, &raw, 4);
}
static inline void writer_u64(struct writer *w, uint64_t value)
{
    uint64_t raw = __builtin_bswap64(value);
    uint8_t *to = writer_room(w, 8);
    if (to)
        memcpy(to, &raw, 8);
}
static inline void writer_raw(struct writer *w, const void *bytes, size_t count)
{
    uint8_t *to = writer_room(w, count);
    if (to && count)
        memcpy(to, bytes, count);
}
static inline void writer_gfid(struct writer *w, const gfid_t *gfid)
{
    writer_raw(w, gfid, sizeof(*gfid));
}
/* Length word, bytes, zero padding to four. */
void writer_opaque(struct writer *w, const void *bytes, uint32_t count) nowait;
void writer_str(struct writer *w, const char *text) nowait; /* NULL writes "" */
/* Overwrites the word at an offset already written (lengths known later). */
void writer_patch_u32(struct writer *w, size_t offset, uint32_t value) nowait;
