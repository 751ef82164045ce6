/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's FUSE protocol: <linux/fuse.h>, and what is newer than the oldest header we build
 * with (7.38). Names of ours, so that a newer header does no harm.
 *
 *     uint64_t flags = in->flags | (uint64_t)in->flags2 << 32;
 *     if (flags & WIRE_INIT_DIRECT_IO_ALLOW_MMAP) ... */
#pragma once

#include <linux/fuse.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_MINOR_MIN = 23, /* RENAME2: Linux 3.15 */
    WIRE_MINOR = 45,     /* the newest that we know */

    WIRE_STATX = 52,
    WIRE_COPY_FILE_RANGE_64 = 53,

    WIRE_OPEN_PASSTHROUGH = 1 << 7,
    WIRE_SETXATTR_IN_COMPAT = 8, /* bytes of fuse_setxattr_in without SETXATTR_EXT */
    WIRE_WRITE_HEADERS = 80,     /* fuse_in_header and fuse_write_in: what follows is the data */
    WIRE_HEADER = 40,
};

#define WIRE_INIT_DIRECT_IO_ALLOW_MMAP (1ull << 36)
#define WIRE_INIT_PASSTHROUGH (1ull << 37)
#define WIRE_INIT_OVER_IO_URING (1ull << 41)

struct wire_sx_time {
    int64_t sec;
    uint32_t nsec;
    int32_t reserved;
};

struct wire_statx_in {
    uint32_t getattr_flags;
    uint32_t reserved;
    uint64_t fh;
    uint32_t sx_flags;
    uint32_t sx_mask;
};

struct wire_statx_out {
    uint64_t attr_valid;
    uint32_t attr_valid_nsec;
    uint32_t flags;
    uint64_t spare[2];
    uint32_t mask, blksize;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, spare0;
    uint64_t ino, size, blocks, attributes_mask;
    struct wire_sx_time atime, btime, ctime, mtime;
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t spare2[14];
};

struct wire_copy_file_range_out {
    uint64_t bytes_copied;
};

_Static_assert(sizeof(struct fuse_in_header) == WIRE_HEADER, "wire size");
_Static_assert(sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in) == WIRE_WRITE_HEADERS,
               "wire size");
_Static_assert(sizeof(struct fuse_init_in) == 64 && sizeof(struct fuse_init_out) == 64,
               "wire size");
_Static_assert(sizeof(struct wire_statx_out) == 288, "wire size");
_Static_assert(sizeof(struct fuse_entry_out) == 128, "wire size");
