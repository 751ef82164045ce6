/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attributes and entries in the kernel's form.
 *
 *     return entry_reply(req, &out.stat);       // a LOOKUP-like answer; counts the look-up
 */
#pragma once

#include "xlators/mount/fuse/request.h"

void attr_fill(const struct fuse *fuse, const struct iatt *stat, struct fuse_attr *ret_attr) nowait;
uint64_t attr_ino(const struct fuse *fuse, const struct iatt *stat) nowait;
/* Seconds as the kernel wants them. */
void timeout_fill(double seconds, uint64_t *ret_seconds, uint32_t *ret_nsec) nowait;

/* Fills in an entry for the inode of stat, and counts a look-up of it: *ret_inode is referenced.
 * -EIO: stat names no file. */
must_check int entry_fill(struct request *req, const struct iatt *stat,
                          struct fuse_entry_out *ret_entry, struct inode **ret_inode);
int entry_reply(struct request *req, const struct iatt *stat);
int attr_reply(struct request *req, const struct iatt *stat);

/* What the kernel leaves to us (HANDLE_KILLPRIV_V2): the mode without set-user-id and set-group-id,
 * as Linux does it. */
uint32_t mode_without_privileges(const struct iatt *stat, const struct call *call) nowait;
/* Takes them away when stat has them. fd may be NULL. *stat follows. */
must_check int privileges_drop(struct request *req, struct inode *inode, struct fd *fd,
                               struct iatt *stat);
