/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* open(2) of a name over which others rename without pause.
 *
 * Linux looks the name up and then asks to open what it found. When that was replaced in between it
 * tries once more, and then tells the program ESTALE, who has done nothing wrong: a name that is
 * replaced is never missing. So the second look-up opens the file itself, trying until look-up and
 * open meet the same file, and the OPEN that follows gets what is open already.
 *
 *     OPEN    -> gone: replaced_note(fuse, pid, flags)
 *     LOOKUP  -> replaced_lookup(req, ...)              // the same thread, at once
 *     OPEN    -> replaced_take(fuse, pid, inode, flags) */
#pragma once

#include "xlators/mount/fuse/request.h"

/* An OPEN of that thread found its file gone. */
void replaced_note(struct request *req, uint32_t flags);
/* After a look-up that succeeded: where the thread's OPEN failed a moment ago, args are asked again
 * until the file that *stat shows is open. Otherwise nothing happens. */
must_check int replaced_lookup(struct request *req, const struct lookup_args *args,
                               struct iatt *stat);
/* The file that is open for this OPEN, owned; NULL: none. */
struct fd *replaced_take(struct request *req, const struct inode *inode, uint32_t flags) nowait;
/* At the end of the mount. */
void replaced_drop_all(struct fuse *fuse);
