/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sample.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers ---------------------------------------------------------------------------------- */

static uint64_t state = 1;

void sample_seed(uint64_t seed)
{
    state = seed * 2 + 1;
}

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1dull;
}

static uint64_t below(uint64_t n)
{
    return (next() >> 16) % n;
}

uint64_t sample_u64(void)
{
    return below(8) == 0 ? 0 : below(8) == 0 ? UINT64_MAX : next() >> below(64);
}

void draw_u32(uint32_t *value)
{
    *value = (uint32_t)sample_u64();
}

void draw_i32(int32_t *value)
{
    *value = (int32_t)sample_u64();
}

void draw_u64(uint64_t *value)
{
    *value = sample_u64();
}

void draw_eof(bool *value)
{
    *value = below(2);
}

void draw_fdnum(int64_t *value)
{
    *value = (int64_t)sample_u64();
}

/* --- text ------------------------------------------------------------------------------------- */

static char *letters(uint64_t count)
{
    char *text = malloc(count + 1);
    assert(text);
    for (uint64_t i = 0; i < count; i++) {
        char letter = (char)(1 + below(255));
        text[i] = letter == '/' ? '_' : letter;
    }
    text[count] = '\0';
    return text;
}

void draw_name(const char **name)
{
    *name = letters(1 + below(below(4) == 0 ? 255 : 20));
}

void draw_optional(const char **name)
{
    *name = below(4) == 0 ? NULL : letters(below(20));
}

void draw_text(char **text)
{
    *text = letters(below(below(8) == 0 ? 5000 : 40));
}

/* --- structures ------------------------------------------------------------------------------- */

static void fill(void *to, size_t bytes)
{
    uint8_t *at = to;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)next();
}

static void draw_value(struct dict *dict, const char *key)
{
    static const uint32_t sizes[] = { [DICT_GFUUID] = 16, [DICT_IATT] = IATT_WIRE_BYTES,
                                      [DICT_MDATA] = 36 };
    enum dict_type type = 1 + below(9);
    uint8_t data[256];
    uint32_t bytes = type >= DICT_GFUUID ? sizes[type] : (uint32_t)below(sizeof(data));
    int ret;

    fill(data, sizeof(data));
    if (type == DICT_INT)
        ret = dict_set_int(dict, key, (int64_t)sample_u64());
    else if (type == DICT_UINT)
        ret = dict_set_uint(dict, key, sample_u64());
    else if (type == DICT_DOUBLE)
        ret = dict_set(dict, key, DICT_DOUBLE, &(double){ (double)below(1000) / 8 }, 8);
    else
        ret = dict_set(dict, key, type, data, bytes);
    assert(ret == 0);
}

void draw_dict(struct dict **dict)
{
    char key[32];
    *dict = below(4) == 0 ? NULL : dict_new();
    for (uint64_t i = *dict ? below(6) : 0; i > 0; i--) {
        snprintf(key, sizeof(key), "user.%llu", (unsigned long long)below(1000));
        draw_value(*dict, key);
    }
}

void draw_iatt(struct iatt *iatt)
{
    memset(iatt, 0, sizeof(*iatt));
    fill(&iatt->gfid, sizeof(iatt->gfid));
    uint64_t *const wide[] = { &iatt->flags, &iatt->ino, &iatt->dev, &iatt->rdev, &iatt->size,
                               &iatt->blocks, &iatt->attributes, &iatt->attributes_mask };
    uint32_t *const narrow[] = { &iatt->nlink, &iatt->uid, &iatt->gid, &iatt->blksize,
                                 &iatt->mode };
    struct iatt_time *const times[] = { &iatt->atime, &iatt->mtime, &iatt->ctime, &iatt->btime };
    for (size_t i = 0; i < ARRAY_SIZE(wide); i++)
        draw_u64(wide[i]);
    for (size_t i = 0; i < ARRAY_SIZE(narrow); i++)
        draw_u32(narrow[i]);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        times[i]->sec = (int64_t)sample_u64();
        draw_u32(&times[i]->nsec);
    }
}

void draw_lock(struct lock *lock)
{
    memset(lock, 0, sizeof(*lock));
    draw_u32(&lock->type);
    draw_u32(&lock->whence);
    draw_u64(&lock->start);
    draw_u64(&lock->len);
    draw_u32(&lock->pid);
    lock->owner.bytes = (uint32_t)below(LKOWNER_BYTES_MAX + 1);
    fill(lock->owner.data, lock->owner.bytes);
}

void draw_lease(struct lease *lease)
{
    draw_u32(&lease->cmd);
    draw_u32(&lease->type);
    draw_u32(&lease->flags);
    fill(lease->id, sizeof(lease->id));
}

void draw_locklist(struct locklist *list)
{
    for (uint64_t i = below(4); i > 0; i--) {
        struct lock lock;
        char *uid = letters(below(60));
        draw_lock(&lock);
        int ret = locklist_add(list, &lock, uid, (uint32_t)sample_u64());
        assert(ret == 0);
        free(uid);
    }
}

static void draw_entries(struct dirents *list, bool with_stat)
{
    for (uint64_t i = below(below(8) == 0 ? 400 : 5); i > 0; i--) {
        struct dirent_entry *entry;
        struct iatt stat;
        const char *name;
        draw_name(&name);
        draw_iatt(&stat);
        int ret = dirents_add(list, name, sample_u64(), sample_u64(), (uint32_t)below(16),
                              with_stat ? &stat : NULL, &entry);
        assert(ret == 0);
        if (with_stat)
            draw_dict(&entry->dict);
        free((char *)(uintptr_t)name);
    }
}

void draw_dirents(struct dirents *list)
{
    draw_entries(list, false);
}

void draw_direntsp(struct dirents *list)
{
    draw_entries(list, true);
}

void draw_statfs(struct fsstat *statfs)
{
    uint64_t *words = (uint64_t *)statfs;
    static_assert(sizeof(*statfs) == 11 * 8, "eleven words");
    for (int i = 0; i < 11; i++)
        draw_u64(&words[i]);
}

void draw_bytes(struct fop_bytes *bytes)
{
    memset(bytes, 0, sizeof(*bytes));
    bytes->bytes = (uint32_t)below(sizeof(bytes->data) + 1);
    fill(bytes->data, bytes->bytes);
}

void draw_payload(struct payload *payload)
{
    uint32_t count = (uint32_t)below(below(4) == 0 ? 300000 : 10000);
    uint8_t *data = malloc(count + 1);
    assert(data);
    fill(data, count);
    int ret = payload_alloc(payload, count);
    assert(ret == 0);
    payload_copy_in(payload, data);
    free(data);
}

/* --- the same? -------------------------------------------------------------------------------- */

bool same_name(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool same_text(const char *a, const char *b)
{
    return same_name(a ? a : "", b ? b : "");
}

static bool same_value(const struct dict_value *a, const struct dict_value *b)
{
    if (a->type != b->type || a->bytes != b->bytes)
        return false;
    if (a->type == DICT_INT || a->type == DICT_UINT || a->type == DICT_DOUBLE)
        return a->u64 == b->u64;
    return a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0;
}

bool same_dict(const struct dict *a, const struct dict *b)
{
    const struct dict_value *value;
    const char *key;

    if (dict_count(a) != dict_count(b))
        return false;
    for (uint32_t i = 0; (key = dict_at(a, i, &value)) != NULL; i++) {
        const struct dict_value *other = dict_get(b, key);
        if (!other || !same_value(value, other))
            return false;
    }
    return true;
}

static bool same_time(struct iatt_time a, struct iatt_time b)
{
    return a.sec == b.sec && a.nsec == b.nsec;
}

bool same_iatt(const struct iatt *a, const struct iatt *b)
{
    return gfid_equal(&a->gfid, &b->gfid) && a->flags == b->flags && a->ino == b->ino &&
           a->dev == b->dev && a->rdev == b->rdev && a->size == b->size &&
           a->blocks == b->blocks && a->attributes == b->attributes &&
           a->attributes_mask == b->attributes_mask && same_time(a->atime, b->atime) &&
           same_time(a->mtime, b->mtime) && same_time(a->ctime, b->ctime) &&
           same_time(a->btime, b->btime) && a->nlink == b->nlink && a->uid == b->uid &&
           a->gid == b->gid && a->blksize == b->blksize && a->mode == b->mode;
}

bool same_lock(const struct lock *a, const struct lock *b)
{
    return a->type == b->type && a->whence == b->whence && a->start == b->start &&
           a->len == b->len && a->pid == b->pid && lkowner_equal(&a->owner, &b->owner);
}

bool same_locklist(const struct locklist *a, const struct locklist *b)
{
    const struct lockinfo_entry *left = a->first, *right = b->first;
    for (; left && right; left = left->next, right = right->next)
        if (!same_lock(&left->lock, &right->lock) || left->flags != right->flags ||
            strcmp(left->client_uid, right->client_uid) != 0)
            return false;
    return left == right && a->count == b->count;
}

bool same_dirents(const struct dirents *a, const struct dirents *b)
{
    const struct dirent_entry *left = a->first, *right = b->first;
    for (; left && right; left = left->next, right = right->next) {
        if (left->ino != right->ino || left->off != right->off || left->type != right->type ||
            strcmp(left->name, right->name) != 0 || !left->stat != !right->stat ||
            !same_dict(left->dict, right->dict))
            return false;
        if (left->stat && !same_iatt(left->stat, right->stat))
            return false;
    }
    return left == right && a->count == b->count;
}

bool same_bytes(const struct fop_bytes *a, const struct fop_bytes *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

bool same_payload(const struct payload *a, const struct payload *b)
{
    if (a->bytes != b->bytes)
        return false;
    uint8_t *left = malloc(a->bytes + 1), *right = malloc(b->bytes + 1);
    assert(left && right);
    payload_copy_out(a, left);
    payload_copy_out(b, right);
    bool same = memcmp(left, right, a->bytes) == 0;
    free(left);
    free(right);
    return same;
}
