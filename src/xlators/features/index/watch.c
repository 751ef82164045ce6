/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "xlators/features/index/index.h"

/* Whether key begins with one of the comma-separated words (spec/disk.md 3.5). */
static bool listed(const char *list, const char *key)
{
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ", ");
        if (length && strncmp(at, key, length) == 0)
            return true;
        at += length;
        at += *at != '\0';
    }
    return false;
}

static bool watched(const struct index *index, enum kind_id kind, const char *key)
{
    if (kind == KIND_DIRTY)
        return listed(index->watch_dirty, key);
    return listed(index->watch_pending, key) || listed(index->watch64, key);
}

static bool all_zero(const struct dict_value *value)
{
    const uint8_t *bytes = value->data;
    for (uint32_t i = 0; i < value->bytes; i++)
        if (bytes[i])
            return false;
    return true;
}

enum watch_says watch_values(const struct index *index, enum kind_id kind,
                             const struct dict *values)
{
    enum watch_says says = WATCH_NOTHING;
    const struct dict_value *value;
    const char *key;

    for (uint32_t i = 0; (key = dict_at(values, i, &value)) != NULL; i++) {
        if (value->type != DICT_PTR || !watched(index, kind, key))
            continue;
        if (!all_zero(value))
            return WATCH_NONZERO;
        says = WATCH_ZERO;
    }
    return says;
}
