/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/xdr.h"

int reader_raw(struct reader *r, size_t count, uint8_t **ret_bytes)
{
    if (reader_left(r) < count)
        return -EBADMSG;
    *ret_bytes = r->pos;
    r->pos += count;
    return 0;
}

int reader_opaque(struct reader *r, uint32_t max, uint8_t **ret_bytes, uint32_t *ret_count)
{
    uint32_t count;
    int ret = reader_u32(r, &count);
    if (ret < 0)
        return ret;
    if (count > max)
        return -E2BIG;

    ret = reader_raw(r, ((size_t)count + 3) & ~(size_t)3, ret_bytes);
    if (ret == 0)
        *ret_count = count;
    return ret;
}

int reader_str(struct reader *r, uint32_t max, char **ret_text)
{
    uint8_t *bytes;
    uint32_t count;
    int ret = reader_opaque(r, max, &bytes, &count);
    if (ret < 0)
        return ret;
    if (count && memchr(bytes, 0, count))
        return -EBADMSG;

    char *text = (char *)bytes - 4; /* over the length word: room for the NUL */
    memmove(text, bytes, count);
    text[count] = 0;
    *ret_text = text;
    return 0;
}

void writer_fini(struct writer *w)
{
    if (w->on_heap)
        free(w->data);
    *w = (struct writer){ .failed = true };
}

static bool writer_grow(struct writer *w, size_t needed)
{
    size_t capacity = MAX(needed, MIN(w->capacity * 2, (size_t)WRITER_BYTES_MAX));
    uint8_t *data = needed > WRITER_BYTES_MAX ? NULL
                                              : realloc(w->on_heap ? w->data : NULL, capacity);
    if (!data)
        return false;
    if (!w->on_heap && w->used)
        memcpy(data, w->data, w->used);
    w->data = data;
    w->capacity = capacity;
    w->on_heap = true;
    return true;
}

uint8_t *writer_room(struct writer *w, size_t count)
{
    size_t needed;
    if (w->failed)
        return NULL;
    if (add_overflows(w->used, count, &needed) ||
        (needed > w->capacity && !writer_grow(w, needed))) {
        w->failed = true;
        return NULL;
    }
    uint8_t *room = w->data + w->used;
    w->used = needed;
    return room;
}

void writer_opaque(struct writer *w, const void *bytes, uint32_t count)
{
    uint32_t padding = -count & 3;
    uint8_t *room;
    writer_u32(w, count);
    room = writer_room(w, (size_t)count + padding);
    if (!room)
        return;
    if (count)
        memcpy(room, bytes, count);
    memset(room + count, 0, padding);
}

void writer_str(struct writer *w, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length > WRITER_BYTES_MAX)
        w->failed = true;
    else
        writer_opaque(w, text, (uint32_t)length);
}

void writer_patch_u32(struct writer *w, size_t offset, uint32_t value)
{
    uint32_t raw = __builtin_bswap32(value);
    if (w->failed)
        return;
    assert(offset + 4 <= w->used);
    memcpy(w->data + offset, &raw, 4);
}
