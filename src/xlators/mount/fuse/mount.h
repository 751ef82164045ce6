/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mount(2) and umount2(2) of a FUSE file system, by root. These calls are the kernel's own
 * interface of this front door and block; they run on a worker.
 *
 *     struct mount_request request = { .mountpoint = "/mnt", .source = "server:/volume", ... };
 *     ret = mount_do(&request);       // request.fd is open, request.error says what failed
 */
#pragma once

#include <stdint.h>

#include "xlators/mount/fuse/fuse.h"

struct mount_request {
    const char *mountpoint, *source;
    const char *options; /* --fuse-mountopts; NULL: none */
    bool read_only, acl;
    uint32_t max_read;
    int fd;       /* result: the connection */
    uint64_t dev; /* result: st_dev of the mount */
    char *path;   /* result, owned: the mount point as the mount table shows it */
    char *error;  /* FUSE_ERROR_SIZE */
};
must_check int mount_do(struct mount_request *request);
/* One more descriptor of the same connection. */
must_check int mount_clone(int fd);

/* Writes back what the kernel holds, and unmounts. 0: it is gone, or was. -EBUSY: it is in use.
 * force: requests in flight are given up, nothing is written back, the tree is detached. */
must_check int mount_undo(const char *mountpoint, uint64_t dev, bool force);

/* Words of mount(8) in options: those that are flags of mount(2) go to *flags, what is for mount(8)
 * alone is dropped, the rest is appended to data (comma before each). -E2BIG: data is too small. */
must_check int mount_options_split(const char *options, unsigned long *flags, char *data,
                                   size_t size) nowait;
