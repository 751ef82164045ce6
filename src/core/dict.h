/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A dictionary of typed values, as the protocol carries them (spec/wire.md 3.1, 3.2). Reference-
 * counted; small (a flat table). NULL stands for "none" and may be passed to every getter.
 *
 *     ret = dict_set_bytes(dict, "trusted.gfid", gfid, 16);
 *     const struct dict_value *value = dict_get(dict, "gfid-req");
 */
#pragma once

#include <stdint.h>

#include "core/auto.h"
#include "core/uuid.h"

enum dict_type { /* the numbers of spec/wire.md 3.2 */
    DICT_STR_OLD = 1,
    DICT_INT = 2,
    DICT_UINT = 3,
    DICT_DOUBLE = 4,
    DICT_STR = 5,
    DICT_PTR = 6,
    DICT_GFUUID = 7,
    DICT_IATT = 8,  /* 148 bytes, kept as on the wire */
    DICT_MDATA = 9, /* 36 bytes, kept as on the wire */
};

enum {
    DICT_PAIRS_MAX = 4096,
    DICT_KEY_BYTES_MAX = 1024, /* with the NUL */
    DICT_BYTES_MAX = 4 << 20,
};

struct dict_value {
    enum dict_type type;
    uint32_t bytes;     /* of data: STR counts its NUL; INT, UINT, DOUBLE 8 (host order) */
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
    };
    const void *data;   /* for the others; followed by a NUL byte that is not counted */
};

struct dict;
struct dict *dict_new(void) nowait; /* NULL: no memory */
struct dict *dict_ref(struct dict *dict) nowait;
void dict_unref(struct dict *dict) nowait;
AUTO_DEFINE(dict, dict_unref)
/* A dict of its own with the same values (NULL gives an empty one). */
struct dict *dict_copy(const struct dict *dict) nowait;
uint32_t dict_count(const struct dict *dict) nowait;

/* Setters copy; an existing key is replaced. -ENOMEM, -E2BIG (limits), -EINVAL (empty key). */
must_check int dict_set(struct dict *dict, const char *key, enum dict_type type, const void *data,
                        uint32_t bytes) nowait;
must_check int dict_set_int(struct dict *dict, const char *key, int64_t value) nowait;
must_check int dict_set_uint(struct dict *dict, const char *key, uint64_t value) nowait;
must_check int dict_set_str(struct dict *dict, const char *key, const char *value) nowait;
must_check int dict_set_bytes(struct dict *dict, const char *key, const void *data, uint32_t bytes)
    nowait; /* DICT_PTR */
must_check int dict_set_gfid(struct dict *dict, const char *key, const gfid_t *gfid) nowait;
void dict_remove(struct dict *dict, const char *key) nowait;

const struct dict_value *dict_get(const struct dict *dict, const char *key) nowait; /* or NULL */
/* Liberal: INT, UINT, or text of a number. -ENOENT, -EINVAL. */
must_check int dict_get_int(const struct dict *dict, const char *key, int64_t *ret_value) nowait;
/* NUL-terminated text of STR, STR_OLD, PTR; NULL when absent or with an inner NUL. */
const char *dict_get_str(const struct dict *dict, const char *key) nowait;
/* GFUUID, or 16 bytes of PTR. -ENOENT, -EINVAL. */
must_check int dict_get_gfid(const struct dict *dict, const char *key, gfid_t *ret_gfid) nowait;

/* Pairs in insertion order: for (i = 0; (key = dict_at(dict, i, &value)); i++). */
const char *dict_at(const struct dict *dict, uint32_t index, const struct dict_value **ret_value)
    nowait;
