/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel connection over io_uring, where the administrator has allowed it (fuse.enable_uring).
 *
 *     entry's fiber:  register -> request -> handler -> commit and fetch -> request -> ...
 *
 * The kernel has a queue for each processor, and serves a queue with the entries that were given to
 * it. A fiber waits on an entry, serves the request that comes, and hands the answer back with the
 * same command that waits for the next; all of it goes through the lane's own ring, so that a
 * request costs no system call of its own. INIT, FORGET and INTERRUPT still come over /dev/fuse.
 *
 *     if (fuse->flags & WIRE_INIT_OVER_IO_URING) ring_start(fuse);    // after INIT was answered */
#pragma once

#include "xlators/mount/fuse/state.h"

struct request;
struct ring_entry;

/* Gives every queue its entries. The kernel sends nothing until every queue has one. */
void ring_start(struct fuse *fuse);
/* A request that waits for other requests (a lock) must not be what they wait for: its queue gets
 * an entry more, unless it has one to spare. */
void ring_entry_replace(struct ring_entry *entry);
/* The answer; it is sent when the request's fiber is through. (EIO where it has no room.) */
void ring_reply(struct ring_entry *entry, const struct fuse_out_header *out,
                const struct iovec *iov, int count) nowait;
/* Sends the answer now, from another fiber: the request's own must not touch the entry any more. */
void ring_entry_take_over(struct ring_entry *entry);
