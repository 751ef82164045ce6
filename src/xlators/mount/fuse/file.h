/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How files are opened.
 *
 *     AUTO(fd) fd = fd_new(inode, fuse_child_flags(fuse, in->flags), pid);
 *     out.open_flags = fuse_open_flags(fuse, fd->flags);
 */
#pragma once

#include "xlators/mount/fuse/state.h"

/* What the child is to open: with the kernel's write-back cache pages are read and written behind
 * the application's back. */
uint32_t fuse_child_flags(const struct fuse *fuse, uint32_t flags) nowait;
/* FOPEN_ bits for a file opened with these flags. */
uint32_t fuse_open_flags(const struct fuse *fuse, uint32_t flags) nowait;
