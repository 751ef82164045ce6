/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of pointers in insertion order, searched by a hash of the key first: dicts of the
 * protocol hold a handful of pairs, and at DICT_PAIRS_MAX a search is still some microseconds. One
 * allocation a pair, key and value together. Its maker changes a dict, before others share it. */
#include "core/dict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_INLINE = 12 };

struct pair {
    uint32_t hash;
    uint32_t key_bytes;      /* with the NUL */
    struct dict_value value; /* data points behind the key */
    char key[];
};

struct dict {
    _Atomic uint32_t refs;
    uint32_t count, capacity;
    uint32_t bytes; /* of keys and values */
    struct pair **pairs;
    struct pair *inline_pairs[SLOTS_INLINE];
};

struct dict *dict_new(void)
{
    struct dict *dict = malloc(sizeof(*dict));

    if (!dict)
        return NULL;
    dict->refs = 1;
    dict->count = 0;
    dict->bytes = 0;
    dict->capacity = SLOTS_INLINE;
    dict->pairs = dict->inline_pairs;
    return dict;
}

struct dict *dict_ref(struct dict *dict)
{
    if (dict)
        __atomic_fetch_add((uint32_t *)&dict->refs, 1, __ATOMIC_RELAXED);
    return dict;
}

void dict_unref(struct dict *dict)
{
    if (!dict || __atomic_sub_fetch((uint32_t *)&dict->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (uint32_t i = 0; i < dict->count; i++)
        free(dict->pairs[i]);
    if (dict->pairs != dict->inline_pairs)
        free(dict->pairs);
    free(dict);
}

uint32_t dict_count(const struct dict *dict)
{
    return dict ? dict->count : 0;
}

static bool is_number(enum dict_type type)
{
    return type == DICT_INT || type == DICT_UINT || type == DICT_DOUBLE;
}

static uint32_t key_hash(const char *key, size_t bytes) /* FNV-1a */
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)key[i]) * 16777619u;
    return hash;
}

/* The index of key, or count. */
static uint32_t find(const struct dict *dict, const char *key, size_t key_bytes, uint32_t hash)
{
    for (uint32_t i = 0; i < dict->count; i++) {
        const struct pair *pair = dict->pairs[i];
        if (pair->hash == hash && pair->key_bytes == key_bytes &&
            memcmp(pair->key, key, key_bytes) == 0)
            return i;
    }
    return dict->count;
}

static uint32_t pair_bytes(const struct pair *pair)
{
    return pair->key_bytes + pair->value.bytes;
}

static int grow(struct dict *dict)
{
    if (dict->count < dict->capacity)
        return 0;
    uint32_t capacity = dict->capacity * 2;
    bool was_inline = dict->pairs == dict->inline_pairs;
    struct pair **pairs = realloc(was_inline ? NULL : dict->pairs, capacity * sizeof(*pairs));
    if (!pairs)
        return -ENOMEM;
    if (was_inline)
        memcpy(pairs, dict->inline_pairs, sizeof(dict->inline_pairs));
    dict->pairs = pairs;
    dict->capacity = capacity;
    return 0;
}

static struct pair *pair_new(const char *key, size_t key_bytes, uint32_t hash, enum dict_type type,
                             const void *data, uint32_t bytes)
{
    struct pair *pair = malloc(sizeof(*pair) + key_bytes + (size_t)bytes + 1);

    if (!pair)
        return NULL;
    pair->hash = hash;
    pair->key_bytes = (uint32_t)key_bytes;
    pair->value = (struct dict_value){ .type = type, .bytes = bytes };
    memcpy(pair->key, key, key_bytes);
    if (is_number(type)) {
        memcpy(&pair->value.u64, data, sizeof(pair->value.u64));
        return pair;
    }
    char *to = pair->key + key_bytes;
    if (bytes > 0)
        memcpy(to, data, bytes);
    to[bytes] = '\0';
    pair->value.data = to;
    return pair;
}

/* What a type of fixed size must have; 0: any. */
static uint32_t fixed_bytes(enum dict_type type)
{
    switch (type) {
    case DICT_INT:
    case DICT_UINT:
    case DICT_DOUBLE:
        return 8;
    case DICT_GFUUID:
        return 16;
    case DICT_IATT:
        return 148;
    case DICT_MDATA:
        return 36;
    default:
        return 0;
    }
}

int dict_set(struct dict *dict, const char *key, enum dict_type type, const void *data,
             uint32_t bytes)
{
    size_t key_bytes = strlen(key) + 1;
    if (key_bytes == 1 || type < DICT_STR_OLD || type > DICT_MDATA)
        return -EINVAL;
    if (fixed_bytes(type) != 0 && fixed_bytes(type) != bytes)
        return -EINVAL;
    if (key_bytes > DICT_KEY_BYTES_MAX || bytes > DICT_BYTES_MAX)
        return -E2BIG;

    uint32_t hash = key_hash(key, key_bytes);
    uint32_t index = find(dict, key, key_bytes, hash);
    struct pair *old = index < dict->count ? dict->pairs[index] : NULL;
    uint32_t total = dict->bytes - (old ? pair_bytes(old) : 0) + (uint32_t)key_bytes + bytes;
    if (total > DICT_BYTES_MAX || (!old && dict->count == DICT_PAIRS_MAX))
        return -E2BIG;
    if (!old && grow(dict) < 0)
        return -ENOMEM;
    struct pair *pair = pair_new(key, key_bytes, hash, type, data, bytes);
    if (!pair)
        return -ENOMEM;

    dict->pairs[index] = pair;
    dict->bytes = total;
    if (!old)
        dict->count++;
    free(old);
    return 0;
}

int dict_set_int(struct dict *dict, const char *key, int64_t value)
{
    return dict_set(dict, key, DICT_INT, &value, sizeof(value));
}

int dict_set_uint(struct dict *dict, const char *key, uint64_t value)
{
    return dict_set(dict, key, DICT_UINT, &value, sizeof(value));
}

int dict_set_str(struct dict *dict, const char *key, const char *value)
{
    size_t bytes = strlen(value) + 1;

    return bytes > DICT_BYTES_MAX ? -E2BIG : dict_set(dict, key, DICT_STR, value, (uint32_t)bytes);
}

int dict_set_bytes(struct dict *dict, const char *key, const void *data, uint32_t bytes)
{
    return dict_set(dict, key, DICT_PTR, data, bytes);
}

int dict_set_gfid(struct dict *dict, const char *key, const gfid_t *gfid)
{
    return dict_set(dict, key, DICT_GFUUID, gfid->bytes, sizeof(gfid->bytes));
}

struct dict *dict_copy(const struct dict *dict)
{
    struct dict *copy = dict_new();
    const struct dict_value *value;
    const char *key;

    for (uint32_t i = 0; copy && (key = dict_at(dict, i, &value)); i++) {
        const void *data = is_number(value->type) ? (const void *)&value->u64 : value->data;
        if (dict_set(copy, key, value->type, data, value->bytes) < 0) {
            dict_unref(copy);
            copy = NULL;
        }
    }
    return copy;
}

static struct pair *lookup(const struct dict *dict, const char *key)
{
    if (!dict || dict->count == 0)
        return NULL;
    size_t key_bytes = strlen(key) + 1;
    uint32_t index = find(dict, key, key_bytes, key_hash(key, key_bytes));
    return index < dict->count ? dict->pairs[index] : NULL;
}

void dict_remove(struct dict *dict, const char *key)
{
    struct pair *pair = lookup(dict, key);
    if (!pair)
        return;

    uint32_t index = find(dict, key, pair->key_bytes, pair->hash);
    dict->count--;
    dict->bytes -= pair_bytes(pair);
    memmove(&dict->pairs[index], &dict->pairs[index + 1],
            (dict->count - index) * sizeof(*dict->pairs));
    free(pair);
}

const struct dict_value *dict_get(const struct dict *dict, const char *key)
{
    struct pair *pair = lookup(dict, key);

    return pair ? &pair->value : NULL;
}

static const char *value_text(const struct dict_value *value)
{
    if (value->type != DICT_STR && value->type != DICT_STR_OLD && value->type != DICT_PTR)
        return NULL;
    size_t length = strlen(value->data); /* a NUL follows the data */
    return length + 1 >= value->bytes ? value->data : NULL;
}

int dict_get_int(const struct dict *dict, const char *key, int64_t *ret_value)
{
    const struct dict_value *value = dict_get(dict, key);
    if (!value)
        return -ENOENT;
    if (value->type == DICT_INT || value->type == DICT_UINT) {
        *ret_value = value->i64;
        return 0;
    }

    const char *text = value_text(value);
    if (!text || *text == '\0')
        return -EINVAL;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return -EINVAL;
    *ret_value = number;
    return 0;
}

const char *dict_get_str(const struct dict *dict, const char *key)
{
    const struct dict_value *value = dict_get(dict, key);

    return value ? value_text(value) : NULL;
}

int dict_get_gfid(const struct dict *dict, const char *key, gfid_t *ret_gfid)
{
    const struct dict_value *value = dict_get(dict, key);

    if (!value)
        return -ENOENT;
    if ((value->type != DICT_GFUUID && value->type != DICT_PTR) || value->bytes != 16)
        return -EINVAL;
    memcpy(ret_gfid->bytes, value->data, 16);
    return 0;
}

const char *dict_at(const struct dict *dict, uint32_t index, const struct dict_value **ret_value)
{
    if (!dict || index >= dict->count)
        return NULL;
    *ret_value = &dict->pairs[index]->value;
    return dict->pairs[index]->key;
}
