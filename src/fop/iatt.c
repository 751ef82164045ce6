/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fop/iatt.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "core/auto.h"

/* --- wire form ------------------------------------------------------------------------------- */
struct iatt_wire { /* all big-endian; spec/wire.md 3.3 */
    uint8_t gfid[16];
    uint64_t flags, ino, dev, rdev, size, blocks, attributes, attributes_mask;
    int64_t atime, mtime, ctime, btime;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec, btime_nsec;
    uint32_t nlink, uid, gid, blksize, mode;
} __attribute__((packed));
static_assert(sizeof(struct iatt_wire) == IATT_WIRE_BYTES, "iattx is 148 bytes");

#define BE64(x) __builtin_bswap64((uint64_t)(x))
#define BE32(x) __builtin_bswap32((uint32_t)(x))

void iatt_to_wire(const struct iatt *iatt, uint8_t wire[IATT_WIRE_BYTES])
{
    struct iatt_wire w = {
        .flags = BE64(iatt->flags), .ino = BE64(iatt->ino), .dev = BE64(iatt->dev),
        .rdev = BE64(iatt->rdev), .size = BE64(iatt->size), .blocks = BE64(iatt->blocks),
        .attributes = BE64(iatt->attributes), .attributes_mask = BE64(iatt->attributes_mask),
        .atime = (int64_t)BE64(iatt->atime.sec), .mtime = (int64_t)BE64(iatt->mtime.sec),
        .ctime = (int64_t)BE64(iatt->ctime.sec), .btime = (int64_t)BE64(iatt->btime.sec),
        .atime_nsec = BE32(iatt->atime.nsec), .mtime_nsec = BE32(iatt->mtime.nsec),
        .ctime_nsec = BE32(iatt->ctime.nsec), .btime_nsec = BE32(iatt->btime.nsec),
        .nlink = BE32(iatt->nlink), .uid = BE32(iatt->uid), .gid = BE32(iatt->gid),
        .blksize = BE32(iatt->blksize), .mode = BE32(iatt->mode),
    };
    memcpy(w.gfid, &iatt->gfid, sizeof(w.gfid));
    memcpy(wire, &w, sizeof(w));
}

void iatt_from_wire(struct iatt *iatt, const uint8_t wire[IATT_WIRE_BYTES])
{
    struct iatt_wire w;
    memcpy(&w, wire, sizeof(w));
    *iatt = (struct iatt){
        .flags = BE64(w.flags), .ino = BE64(w.ino), .dev = BE64(w.dev), .rdev = BE64(w.rdev),
        .size = BE64(w.size), .blocks = BE64(w.blocks), .attributes = BE64(w.attributes),
        .attributes_mask = BE64(w.attributes_mask),
        .atime = { (int64_t)BE64(w.atime), BE32(w.atime_nsec) },
        .mtime = { (int64_t)BE64(w.mtime), BE32(w.mtime_nsec) },
        .ctime = { (int64_t)BE64(w.ctime), BE32(w.ctime_nsec) },
        .btime = { (int64_t)BE64(w.btime), BE32(w.btime_nsec) },
        .nlink = BE32(w.nlink), .uid = BE32(w.uid), .gid = BE32(w.gid),
        .blksize = BE32(w.blksize), .mode = BE32(w.mode),
    };
    memcpy(&iatt->gfid, w.gfid, sizeof(w.gfid));
}

/* --- from the backend ------------------------------------------------------------------------ */
void iatt_from_stat(struct iatt *iatt, const struct stat *st, const gfid_t *gfid)
{
    uint64_t needed = ((uint64_t)st->st_size + 511) / 512;

    *iatt = (struct iatt){
        .gfid = *gfid,
        .flags = IATT_BRICK,
        .ino = gfid_ino(gfid),
        .dev = st->st_dev,
        .rdev = ((uint64_t)major(st->st_rdev) << 32) | minor(st->st_rdev),
        .size = (uint64_t)st->st_size,
        .blocks = MIN((uint64_t)st->st_blocks, needed),
        .atime = { st->st_atim.tv_sec, (uint32_t)st->st_atim.tv_nsec },
        .mtime = { st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec },
        .ctime = { st->st_ctim.tv_sec, (uint32_t)st->st_ctim.tv_nsec },
        .nlink = (uint32_t)st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .blksize = (uint32_t)st->st_blksize,
        .mode = st->st_mode,
    };
}

uint32_t iatt_dtype(uint32_t mode)
{
    return (mode & S_IFMT) >> 12; /* DT_x is S_IFx shifted, by definition of IFTODT */
}

/* --- directory entries ----------------------------------------------------------------------- */
enum { CHUNK_BYTES = 16 * 1024 };

struct chunk { /* entries lie one behind the other; chunks form a list */
    struct chunk *next;
    size_t used;
    _Alignas(16) uint8_t room[];
};

static void *chunk_take(struct dirents *list, size_t bytes)
{
    struct chunk *chunk = list->chunks;
    size_t room = CHUNK_BYTES - sizeof(struct chunk);

    bytes = (bytes + 15) & ~(size_t)15;
    if (!chunk || room - chunk->used < bytes) {
        chunk = malloc(CHUNK_BYTES);
        if (!chunk)
            return NULL;
        chunk->next = list->chunks;
        chunk->used = 0;
        list->chunks = chunk;
    }
    void *at = chunk->room + chunk->used;
    chunk->used += bytes;
    return at;
}

int dirents_add(struct dirents *list, const char *name, uint64_t ino, uint64_t off, uint32_t type,
                const struct iatt *stat, struct dirent_entry **ret_entry)
{
    size_t name_bytes = strlen(name) + 1;
    size_t head = (sizeof(struct dirent_entry) + name_bytes + 7) & ~(size_t)7;
    struct dirent_entry *entry;

    if (name_bytes > 4096)
        return -ENAMETOOLONG;
    entry = chunk_take(list, head + (stat ? sizeof(*stat) : 0));
    if (!entry)
        return -ENOMEM;
    *entry = (struct dirent_entry){ .ino = ino, .off = off, .type = type };
    memcpy(entry->name, name, name_bytes);
    if (stat) {
        entry->stat = (struct iatt *)(void *)((uint8_t *)entry + head);
        *entry->stat = *stat;
    }
    if (list->first)
        *list->last = entry;
    else
        list->first = entry;
    list->last = &entry->next;
    list->count++;
    list->bytes += 32 + name_bytes + (stat ? IATT_WIRE_BYTES + 12 : 0);
    if (ret_entry)
        *ret_entry = entry;
    return 0;
}

void dirents_fini(struct dirents *list)
{
    for (struct dirent_entry *entry = list->first; entry; entry = entry->next)
        dict_unref(entry->dict);
    for (struct chunk *chunk = list->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    memset(list, 0, sizeof(*list));
}

/* --- lists of locks -------------------------------------------------------------------------- */
int locklist_add(struct locklist *list, const struct lock *lock, const char *client_uid,
                 uint32_t flags)
{
    size_t uid_bytes = strlen(client_uid) + 1;
    struct lockinfo_entry *entry = calloc(1, sizeof(*entry) + uid_bytes);

    if (!entry)
        return -ENOMEM;
    entry->lock = *lock;
    entry->flags = flags;
    memcpy(entry->client_uid, client_uid, uid_bytes);
    if (list->first)
        *list->last = entry;
    else
        list->first = entry;
    list->last = &entry->next;
    list->count++;
    return 0;
}

void locklist_fini(struct locklist *list)
{
    for (struct lockinfo_entry *entry = list->first, *next; entry; entry = next) {
        next = entry->next;
        free(entry);
    }
    memset(list, 0, sizeof(*list));
}
