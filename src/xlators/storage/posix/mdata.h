/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* trusted.glusterfs.mdata: the times that clients' clocks gave (spec/disk.md 1.7). Kept in memory
 * per inode, shown in every iatt, and stored within MDATA_DELAY.
 *
 *     mdata_touch(posix, node, call, xdata, TIMES_CTIME | TIMES_MTIME);    // after the write
 */
#pragma once

#include "xlators/storage/posix/node.h"
#include "xlators/storage/posix/object.h"

enum { MDATA_BYTES = 57 };
#define MDATA_DELAY_NS NS_PER_S

void mdata_encode(const struct mdata *mdata, uint8_t bytes[MDATA_BYTES]) nowait;
/* -EINVAL: not such a value. */
must_check int mdata_decode(const void *bytes, size_t count, struct mdata *ret_mdata) nowait;

/* Reads the stored times unless they are known; call before anything below. */
void mdata_load(struct posix *posix, struct node *node, const struct object *object);
/* Known without asking the disk. */
bool mdata_is_known(struct posix *posix, struct node *node) nowait;
/* Puts the times into an iatt, where there are any. */
void mdata_show(struct posix *posix, struct node *node, struct iatt *iatt) nowait;
/* An operation changed these of the object's times (TIMES_CTIME...). What the call itself says
 * (call->times) wins over what the operation usually changes. */
void mdata_touch(struct posix *posix, struct node *node, const struct call *call,
                 const struct dict *xdata, uint32_t times) nowait;
/* The same for a parent: call->times' parent bits; usually ctime and mtime. */
void mdata_touch_parent(struct posix *posix, struct node *node, const struct call *call,
                        const struct dict *xdata) nowait;
/* Explicit times: setattr's. Stored when the operation is done (mdata_store). */
void mdata_set(struct posix *posix, struct node *node, const struct call *call,
               const struct iatt *stat, int32_t valid) nowait;
/* The value for a new object: true when it gets one. */
bool mdata_fresh(struct posix *posix, const struct call *call, const struct dict *xdata,
                 struct mdata *ret_mdata) nowait;
/* The object was made with (or without, NULL) these times. */
void mdata_born(struct node *node, const struct mdata *mdata) nowait;
/* Somebody else's times (heal, rebalance): the later of each. fresh_only: only when there are
 * none. */
void mdata_merge(struct posix *posix, struct node *node, const struct mdata *mdata,
                 bool fresh_only) nowait;
/* The xattr's bytes as they are or will be on disk; false: there is none. */
bool mdata_value(struct posix *posix, struct node *node, uint8_t bytes[MDATA_BYTES]) nowait;
/* Stores what is newer than the disk; inside hop. */
void mdata_store(struct posix *posix, struct node *node);
bool mdata_is_dirty(struct node *node) nowait;
/* Stores everything (stop). */
void mdata_store_all(struct posix *posix);
