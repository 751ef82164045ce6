/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who holds locks through which handle, so that close(2) and the last close give them back.
 *
 *     handle_owner_remove(handle, owner);     // FLUSH: the process closes, all its locks are off
 *     handle_unlock_all(req, handle);         // RELEASE: flock(2) and open-file-description locks
 */
#pragma once

#include "xlators/mount/fuse/request.h"

enum {
    LK_GET = 0,
    LK_SET = 1,
    LK_SET_WAIT = 2
}; /* lk_args.cmd */

/* true: that owner had taken locks through this handle. */
bool handle_owner_remove(struct handle *handle, uint64_t owner) nowait;
/* Unlocks for the owners that are left. */
void handle_unlock_all(struct request *req, struct handle *handle);
/* Somebody on this mount has locked the file since we know it. */
bool inode_was_locked(const struct fuse *fuse, struct inode *inode) nowait;
