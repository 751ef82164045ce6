/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attributes of an inode and the other fixed structures that operations carry (spec/wire.md
 * 3.3). */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "core/dict.h"
#include "core/uuid.h"

enum iatt_flags {
    IATT_TYPE = 1, IATT_MODE = 2, IATT_NLINK = 4, IATT_UID = 8, IATT_GID = 0x10, IATT_ATIME = 0x20,
    IATT_MTIME = 0x40, IATT_CTIME = 0x80, IATT_INO = 0x100, IATT_SIZE = 0x200, IATT_BLOCKS = 0x400,
    IATT_BTIME = 0x800, IATT_GFID = 0x1000,
    IATT_BRICK = 0x17ff, /* what a genuine brick sends */
};

struct iatt_time {
    int64_t sec;
    uint32_t nsec;
};

struct iatt {
    gfid_t gfid;
    uint64_t flags; /* enum iatt_flags */
    uint64_t ino, dev, rdev; /* rdev: (major << 32) | minor */
    uint64_t size, blocks;
    uint64_t attributes, attributes_mask;
    struct iatt_time atime, mtime, ctime, btime;
    uint32_t nlink, uid, gid, blksize;
    uint32_t mode; /* whole st_mode */
};

/* setattr's valid bits */
enum iatt_valid {
    VALID_MODE = 1, VALID_UID = 2, VALID_GID = 4, VALID_SIZE = 8, VALID_ATIME = 0x10,
    VALID_MTIME = 0x20, VALID_CTIME = 0x40,
};

enum { LKOWNER_BYTES_MAX = 128 };
struct lkowner {
    uint32_t bytes;
    uint8_t data[LKOWNER_BYTES_MAX];
};
static inline bool lkowner_equal(const struct lkowner *a, const struct lkowner *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

enum lock_type { RANGE_READ = 0, RANGE_WRITE = 1, RANGE_UNLOCK = 2 }; /* wire.md 3.4 */
struct lock {                 /* flock of the wire */
    uint32_t type, whence;
    uint64_t start, len;      /* len 0: to the end */
    uint32_t pid;
    struct lkowner owner;
};

struct lease {
    uint32_t cmd, type, flags;
    uint8_t id[16];
};

struct fsstat { /* statvfs, 11 words */
    uint64_t bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax;
};

struct dirent_entry {
    struct dirent_entry *next;
    uint64_t ino, off;
    uint32_t type;        /* DT_* */
    struct iatt *stat;    /* readdirp: never NULL there (all zero: not known); readdir: NULL */
    struct dict *dict;    /* readdirp, owned */
    char name[];
};

/* A list of directory entries, in order. Zero-initialised is empty. Entries live in chunks. */
struct dirents {
    struct dirent_entry *first, **last;
    uint32_t count;
    uint64_t bytes;       /* what the entries take on the wire, about */
    void *chunks;
};
/* Appends a copy; stat may be NULL; *ret_entry for filling in stat later. -ENOMEM. */
must_check int dirents_add(struct dirents *list, const char *name, uint64_t ino, uint64_t off,
                           uint32_t type, const struct iatt *stat, struct dirent_entry **ret_entry);
void dirents_fini(struct dirents *list);

struct lockinfo_entry {
    struct lockinfo_entry *next;
    struct lock lock;
    uint32_t flags;
    char client_uid[];
};
struct locklist {
    struct lockinfo_entry *first, **last;
    uint32_t count;
};
must_check int locklist_add(struct locklist *list, const struct lock *lock, const char *client_uid,
                            uint32_t flags);
void locklist_fini(struct locklist *list);

/* From a backend stat: everything but gfid and ino (= gfid_ino) and nlink correction. Blocks are
 * capped to what the size needs (wire.md 3.3). */
void iatt_from_stat(struct iatt *iatt, const struct stat *st, const gfid_t *gfid) nowait;
/* DT_* of a mode, and back from an iatt's mode. */
uint32_t iatt_dtype(uint32_t mode) nowait;
/* iattx as on the wire (148 bytes), e.g. for DICT_IATT values. */
enum { IATT_WIRE_BYTES = 148 };
void iatt_to_wire(const struct iatt *iatt, uint8_t wire[IATT_WIRE_BYTES]) nowait;
void iatt_from_wire(struct iatt *iatt, const uint8_t wire[IATT_WIRE_BYTES]) nowait;
