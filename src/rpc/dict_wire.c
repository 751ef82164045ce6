/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Both decoders read hostile bytes: counts and lengths are checked against what is there before
 * anything is allocated; the dict's own limits bound the rest. */
#include "rpc/dict_wire.h"

#include <stdio.h>

/* --- gfx_dict --------------------------------------------------------------------------------- */

enum { PAIR_BYTES_MIN = 4 + 4 + 4 + 4 }; /* key length, a key, type, an empty value */

static int decode_number(struct reader *r, const char *key, enum dict_type type, struct dict *dict)
{
    uint64_t raw;
    int ret = reader_u64(r, &raw);

    return ret < 0 ? ret : dict_set(dict, key, type, &raw, sizeof(raw));
}

static int decode_fixed(struct reader *r, const char *key, enum dict_type type, uint32_t bytes,
                        struct dict *dict)
{
    uint8_t *data;
    int ret = reader_raw(r, bytes, &data);

    return ret < 0 ? ret : dict_set(dict, key, type, data, bytes);
}

static int decode_opaque(struct reader *r, const char *key, enum dict_type type, struct dict *dict)
{
    uint32_t bytes;
    uint8_t *data;
    int ret = reader_opaque(r, DICT_BYTES_MAX, &data, &bytes);

    return ret < 0 ? ret : dict_set(dict, key, type, data, bytes);
}

static int decode_value(struct reader *r, const char *key, uint32_t type, struct dict *dict)
{
    switch (type) {
    case DICT_INT:
    case DICT_UINT:
    case DICT_DOUBLE:
        return decode_number(r, key, type, dict);
    case DICT_STR_OLD:
    case DICT_STR:
    case DICT_PTR:
        return decode_opaque(r, key, type, dict);
    case DICT_GFUUID:
        return decode_fixed(r, key, type, 16, dict);
    case DICT_IATT:
        return decode_fixed(r, key, type, 148, dict);
    case DICT_MDATA:
        return decode_fixed(r, key, type, 36, dict);
    default:
        return -EBADMSG;
    }
}

static int decode_pair(struct reader *r, struct dict *dict)
{
    uint32_t key_bytes, type;
    uint8_t *key;
    int ret = reader_opaque(r, DICT_KEY_BYTES_MAX, &key, &key_bytes);
    if (ret < 0)
        return ret;
    if (key_bytes < 2 || memchr(key, '\0', key_bytes) != key + key_bytes - 1)
        return -EBADMSG;
    ret = reader_u32(r, &type);
    return ret < 0 ? ret : decode_value(r, (const char *)key, type, dict);
}

/* The header tells the pairs' size and count; both must fit what follows. */
static int decode_header(struct reader *r, uint32_t *ret_bytes, uint32_t *ret_count)
{
    uint32_t bytes, count, pairs;
    int ret = reader_u32(r, &bytes);
    if (ret == 0)
        ret = reader_u32(r, &count);
    if (ret == 0)
        ret = reader_u32(r, &pairs);
    if (ret < 0)
        return ret;

    if (count == UINT32_MAX) /* NULL */
        count = 0;
    if (pairs != count || bytes > reader_left(r))
        return -EBADMSG;
    if (count > DICT_PAIRS_MAX || bytes > 2 * DICT_BYTES_MAX)
        return -E2BIG;
    if ((uint64_t)count * PAIR_BYTES_MIN > reader_left(r))
        return -EBADMSG;
    *ret_bytes = bytes;
    *ret_count = count;
    return 0;
}

int dict_decode(struct reader *r, struct dict **ret_dict)
{
    uint32_t bytes, count;
    int ret = decode_header(r, &bytes, &count);
    if (ret < 0)
        return ret;
    if (count == 0) {
        *ret_dict = NULL;
        return 0;
    }

    AUTO(dict) dict = dict_new();
    if (!dict)
        return -ENOMEM;
    for (uint32_t i = 0; i < count && ret == 0; i++)
        ret = decode_pair(r, dict);
    if (ret < 0)
        return ret == -EINVAL ? -EBADMSG : ret;
    *ret_dict = TAKE(dict);
    return 0;
}

static size_t padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

static size_t value_bytes(const struct dict_value *value)
{
    switch (value->type) {
    case DICT_STR_OLD:
    case DICT_STR:
    case DICT_PTR:
        return 4 + padded(value->bytes);
    default:
        return value->bytes; /* all multiples of four */
    }
}

static size_t pairs_bytes(const struct dict *dict)
{
    const struct dict_value *value;
    const char *key;
    size_t bytes = 0;

    for (uint32_t i = 0; (key = dict_at(dict, i, &value)); i++)
        bytes += 4 + padded(strlen(key) + 1) + 4 + value_bytes(value);
    return bytes;
}

size_t dict_encoded_bytes(const struct dict *dict)
{
    return 12 + pairs_bytes(dict);
}

static void encode_value(struct writer *w, const struct dict_value *value)
{
    switch (value->type) {
    case DICT_INT:
    case DICT_UINT:
    case DICT_DOUBLE:
        writer_u64(w, value->u64);
        break;
    case DICT_STR_OLD:
    case DICT_STR:
    case DICT_PTR:
        writer_opaque(w, value->data, value->bytes);
        break;
    default:
        writer_raw(w, value->data, value->bytes);
    }
}

void dict_encode(struct writer *w, const struct dict *dict)
{
    uint32_t count = dict_count(dict);
    const struct dict_value *value;
    const char *key;

    writer_u32(w, (uint32_t)pairs_bytes(dict));
    writer_u32(w, dict ? count : UINT32_MAX);
    writer_u32(w, count);
    for (uint32_t i = 0; (key = dict_at(dict, i, &value)); i++) {
        writer_opaque(w, key, (uint32_t)strlen(key) + 1);
        writer_u32(w, value->type);
        encode_value(w, value);
    }
}

/* --- legacy ----------------------------------------------------------------------------------- */

static int decode_legacy_pair(struct reader *r, struct dict *dict)
{
    uint32_t key_length, value_length;
    uint8_t *key, *value;
    int ret = reader_u32(r, &key_length);
    if (ret == 0)
        ret = reader_u32(r, &value_length);
    if (ret < 0)
        return ret;
    if (key_length == 0 || key_length >= DICT_KEY_BYTES_MAX)
        return -EBADMSG;

    ret = reader_raw(r, (size_t)key_length + 1, &key);
    if (ret == 0)
        ret = reader_raw(r, value_length, &value);
    if (ret < 0)
        return ret;
    if (memchr(key, '\0', key_length + 1) != key + key_length)
        return -EBADMSG;
    return dict_set(dict, (const char *)key, DICT_STR_OLD, value, value_length);
}

int dict_decode_legacy(const uint8_t *bytes, uint32_t count, struct dict **ret_dict)
{
    enum { LEGACY_PAIR_BYTES_MIN = 4 + 4 + 1 + 1 };
    struct reader r = reader_of((void *)(uintptr_t)bytes, count); /* only read here */
    uint32_t pairs;

    if (count == 0) {
        *ret_dict = NULL;
        return 0;
    }
    int ret = reader_u32(&r, &pairs);
    if (ret < 0)
        return ret;
    if (pairs > DICT_PAIRS_MAX)
        return -E2BIG;
    if ((uint64_t)pairs * LEGACY_PAIR_BYTES_MIN > reader_left(&r))
        return -EBADMSG;

    AUTO(dict) dict = dict_new();
    if (!dict)
        return -ENOMEM;
    for (uint32_t i = 0; i < pairs && ret == 0; i++)
        ret = decode_legacy_pair(&r, dict);
    if (ret < 0)
        return ret == -EINVAL ? -EBADMSG : ret;
    *ret_dict = TAKE(dict);
    return 0;
}

enum { NUMBER_TEXT_BYTES = 32 };

/* The value as legacy dicts carry it: numbers and uuids as text. Returns its bytes. */
static uint32_t legacy_value(const struct dict_value *value, char text[static UUID_TEXT_SIZE],
                             const void **ret_data)
{
    int length;

    *ret_data = text;
    switch (value->type) {
    case DICT_INT:
        length = snprintf(text, NUMBER_TEXT_BYTES, "%lld", (long long)value->i64);
        return (uint32_t)length + 1;
    case DICT_UINT:
        length = snprintf(text, NUMBER_TEXT_BYTES, "%llu", (unsigned long long)value->u64);
        return (uint32_t)length + 1;
    case DICT_DOUBLE:
        length = snprintf(text, NUMBER_TEXT_BYTES, "%.17g", value->f64);
        return (uint32_t)length + 1;
    case DICT_GFUUID: {
        gfid_t gfid;
        memcpy(&gfid, value->data, sizeof(gfid));
        gfid_format(&gfid, text);
        return UUID_TEXT_SIZE;
    }
    default:
        *ret_data = value->data;
        return value->bytes;
    }
}

void dict_encode_legacy(struct writer *w, const struct dict *dict)
{
    static const uint8_t zeros[3];
    const struct dict_value *value;
    const char *key;

    if (!dict) {
        writer_u32(w, 0);
        return;
    }
    size_t length_at = w->used, start = length_at + 4;
    writer_u32(w, 0);
    writer_u32(w, dict_count(dict));
    for (uint32_t i = 0; (key = dict_at(dict, i, &value)); i++) {
        char text[UUID_TEXT_SIZE];
        const void *data;
        uint32_t bytes = legacy_value(value, text, &data);
        writer_u32(w, (uint32_t)strlen(key));
        writer_u32(w, bytes);
        writer_raw(w, key, strlen(key) + 1);
        writer_raw(w, data, bytes);
    }
    if (!writer_ok(w))
        return;
    writer_patch_u32(w, length_at, (uint32_t)(w->used - start));
    writer_raw(w, zeros, padded(w->used - start) - (w->used - start));
}
