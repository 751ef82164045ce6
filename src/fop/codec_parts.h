/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pieces from which gen.py composes the codec: one pair a structure of spec/wire.md 3. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fop/fop_codec.h"
#include "fop/iatt.h"
#include "rpc/dict_wire.h"
#include "rpc/xdr.h"

enum {
    DIRENTS_MAX = 65536,        /* in one reply */
    LOCKLIST_MAX = 65536,
    WIRE_LKOWNER_MAX = 1024,
    EOF_ERRNO = 2,              /* op_errno of a success that reaches the end */
    PEER_ERRNO_MAX = 1023,
};

/* --- results -------------------------------------------------------------------------------- */
static inline void encode_result(struct writer *w, int ret, bool eof)
{
    writer_u32(w, ret < 0 ? (uint32_t)-1 : (uint32_t)ret);
    writer_u32(w, ret < 0 ? (uint32_t)-ret : eof ? EOF_ERRNO : 0);
}

/* A peer's errno is hostile input: what is no errno becomes EIO. */
static inline int decode_result(struct reader *r, int *ret_result, bool *ret_eof)
{
    int32_t op_ret, op_errno;
    int ret = reader_i32(r, &op_ret);
    if (ret == 0)
        ret = reader_i32(r, &op_errno);
    if (ret < 0)
        return ret;
    if (op_ret >= 0)
        *ret_result = op_ret;
    else
        *ret_result = op_errno >= 1 && op_errno <= PEER_ERRNO_MAX ? -op_errno : -EIO;
    *ret_eof = op_ret >= 0 && op_errno == EOF_ERRNO;
    return 0;
}

/* --- what names inodes and fds ---------------------------------------------------------------- */
static inline void encode_inode(struct writer *w, const struct inode *inode)
{
    writer_gfid(w, inode ? inode_gfid(inode) : &gfid_null);
}
static inline void encode_fd_gfid(struct writer *w, const struct fd *fd)
{
    writer_gfid(w, fd ? fd_gfid(fd) : &gfid_null);
}

/* --- iattx ------------------------------------------------------------------------------------ */
static inline void encode_iatt(struct writer *w, const struct iatt *iatt)
{
    uint8_t *to = writer_room(w, IATT_WIRE_BYTES);
    if (to)
        iatt_to_wire(iatt, to);
}
static inline int decode_iatt(struct reader *r, struct iatt *iatt)
{
    uint8_t *wire;
    int ret = reader_raw(r, IATT_WIRE_BYTES, &wire);
    if (ret == 0)
        iatt_from_wire(iatt, wire);
    return ret;
}

/* --- flock, lease, statfs -------------------------------------------------------------------- */
static inline void encode_lock(struct writer *w, const struct lock *lock)
{
    writer_u32(w, lock->type);
    writer_u32(w, lock->whence);
    writer_u64(w, lock->start);
    writer_u64(w, lock->len);
    writer_u32(w, lock->pid);
    writer_opaque(w, lock->owner.data, lock->owner.bytes);
}
static inline int decode_lock(struct reader *r, struct lock *lock)
{
    uint8_t *owner = NULL;
    uint32_t owner_bytes = 0;
    int ret = reader_u32(r, &lock->type);
    if (ret == 0)
        ret = reader_u32(r, &lock->whence);
    if (ret == 0)
        ret = reader_u64(r, &lock->start);
    if (ret == 0)
        ret = reader_u64(r, &lock->len);
    if (ret == 0)
        ret = reader_u32(r, &lock->pid);
    if (ret == 0)
        ret = reader_opaque(r, WIRE_LKOWNER_MAX, &owner, &owner_bytes);
    if (ret < 0)
        return ret;
    lock->owner.bytes = MIN(owner_bytes, (uint32_t)LKOWNER_BYTES_MAX);
    if (lock->owner.bytes)
        memcpy(lock->owner.data, owner, lock->owner.bytes);
    return 0;
}

static inline void encode_lease(struct writer *w, const struct lease *lease)
{
    writer_u32(w, lease->cmd);
    writer_u32(w, lease->type);
    writer_raw(w, lease->id, sizeof(lease->id));
    writer_u32(w, lease->flags);
}
static inline int decode_lease(struct reader *r, struct lease *lease)
{
    uint8_t *id;
    int ret = reader_u32(r, &lease->cmd);
    if (ret == 0)
        ret = reader_u32(r, &lease->type);
    if (ret == 0)
        ret = reader_raw(r, sizeof(lease->id), &id);
    if (ret < 0)
        return ret;
    memcpy(lease->id, id, sizeof(lease->id));
    return reader_u32(r, &lease->flags);
}

static inline void encode_statfs(struct writer *w, const struct fsstat *st)
{
    const uint64_t words[] = { st->bsize, st->frsize, st->blocks, st->bfree, st->bavail, st->files,
                               st->ffree, st->favail, st->fsid, st->flag, st->namemax };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        writer_u64(w, words[i]);
}
static inline int decode_statfs(struct reader *r, struct fsstat *st)
{
    uint64_t *const words[] = { &st->bsize, &st->frsize, &st->blocks, &st->bfree, &st->bavail,
                                &st->files, &st->ffree, &st->favail, &st->fsid, &st->flag,
                                &st->namemax };
    int ret = 0;
    for (size_t i = 0; i < ARRAY_SIZE(words) && ret == 0; i++)
        ret = reader_u64(r, words[i]);
    return ret;
}

/* --- text, opaque, payload ------------------------------------------------------------------- */
static inline int decode_text(struct reader *r, char **ret_text)
{
    char *text;
    int ret = reader_str(r, FOP_TEXT_BYTES_MAX, &text);
    if (ret < 0)
        return ret;
    *ret_text = strdup(text);
    return *ret_text ? 0 : -ENOMEM;
}

static inline void encode_bytes(struct writer *w, const struct fop_bytes *bytes)
{
    writer_opaque(w, bytes->data, bytes->bytes);
}
static inline int decode_bytes(struct reader *r, struct fop_bytes *bytes)
{
    uint8_t *data = NULL;
    uint32_t count = 0;
    int ret = reader_opaque(r, sizeof(bytes->data), &data, &count);
    if (ret == 0 && count)
        memcpy(bytes->data, data, count);
    bytes->bytes = count;
    return ret;
}

/* The payload that travelled beside the body becomes the operation's. What a transport left inside
 * the body (too small to have landed apart) is borrowed from there. Its size must be what the body
 * announced. */
static inline int take_payload(struct reader *r, struct payload *from, uint32_t size,
                               struct payload *to)
{
    if (from && from->bytes) {
        if (from->bytes != size || reader_left(r) != 0)
            return -EBADMSG;
        *to = *from;
        memset(from, 0, sizeof(*from));
        return 0;
    }
    if (reader_left(r) != size)
        return -EBADMSG;
    if (size)
        payload_add_borrowed(to, r->pos, size);
    r->pos += size;
    return 0;
}

/* --- lists ----------------------------------------------------------------------------------- */
static inline void encode_locklist(struct writer *w, const struct locklist *list)
{
    for (const struct lockinfo_entry *e = list->first; e; e = e->next) {
        writer_u32(w, 1);
        encode_lock(w, &e->lock);
        writer_str(w, e->client_uid);
        writer_u32(w, e->flags);
    }
    writer_u32(w, 0);
}
static inline int decode_locklist(struct reader *r, struct locklist *list)
{
    for (;;) {
        struct lock lock = {};
        uint32_t more, flags;
        char *uid;
        int ret = reader_u32(r, &more);
        if (ret < 0 || more == 0)
            return ret;
        if (list->count >= LOCKLIST_MAX)
            return -E2BIG;
        ret = decode_lock(r, &lock);
        if (ret == 0)
            ret = reader_str(r, 4096, &uid);
        if (ret == 0)
            ret = reader_u32(r, &flags);
        if (ret == 0)
            ret = locklist_add(list, &lock, uid, flags);
        if (ret < 0)
            return ret;
    }
}

static inline void encode_entry(struct writer *w, const struct dirent_entry *e)
{
    uint32_t name_bytes = (uint32_t)strlen(e->name);
    writer_u32(w, 1);
    writer_u64(w, e->ino);
    writer_u64(w, e->off);
    writer_u32(w, name_bytes);
    writer_u32(w, e->type);
    writer_opaque(w, e->name, name_bytes);
}
static inline void encode_dirents(struct writer *w, const struct dirents *list)
{
    for (const struct dirent_entry *e = list->first; e; e = e->next)
        encode_entry(w, e);
    writer_u32(w, 0);
}
static inline void encode_direntsp(struct writer *w, const struct dirents *list)
{
    static const struct iatt unknown;
    for (const struct dirent_entry *e = list->first; e; e = e->next) {
        encode_entry(w, e);
        encode_iatt(w, e->stat ? e->stat : &unknown);
        dict_encode(w, e->dict);
    }
    writer_u32(w, 0);
}

/* One entry's fixed part and name; *ret_more is false at the end of the list. */
static inline int decode_entry(struct reader *r, struct dirents *list, bool with_stat,
                               bool *ret_more, struct dirent_entry **ret_entry)
{
    static const struct iatt unknown;
    uint32_t more, name_bytes, type;
    uint64_t ino, off;
    char *name;
    int ret = reader_u32(r, &more);
    *ret_more = more != 0;
    if (ret < 0 || more == 0)
        return ret;
    if (list->count >= DIRENTS_MAX)
        return -E2BIG;
    ret = reader_u64(r, &ino);
    if (ret == 0)
        ret = reader_u64(r, &off);
    if (ret == 0)
        ret = reader_u32(r, &name_bytes);
    if (ret == 0)
        ret = reader_u32(r, &type);
    if (ret == 0)
        ret = reader_str(r, 1024, &name);
    if (ret < 0)
        return ret;
    if (name[0] == '\0' || strchr(name, '/'))
        return -EBADMSG; /* no directory holds such a name */
    return dirents_add(list, name, ino, off, type, with_stat ? &unknown : NULL, ret_entry);
}
static inline int decode_dirents(struct reader *r, struct dirents *list)
{
    struct dirent_entry *entry;
    bool more = true;
    int ret = 0;
    while (ret == 0 && more)
        ret = decode_entry(r, list, false, &more, &entry);
    return ret;
}
static inline int decode_direntsp(struct reader *r, struct dirents *list)
{
    struct dirent_entry *entry;
    bool more = true;
    int ret = 0;
    while (ret == 0 && more) {
        ret = decode_entry(r, list, true, &more, &entry);
        if (ret == 0 && more)
            ret = decode_iatt(r, entry->stat);
        if (ret == 0 && more)
            ret = dict_decode(r, &entry->dict);
    }
    return ret;
}
