/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the brick keeps in memory of an inode: the slot of storage/posix.
 *
 *     struct node *node = node_get(posix, inode);      // borrowed while inode is referenced
 */
#pragma once

#include "xlators/storage/posix/posix.h"

/* A backend descriptor that several operations use at once; closed with the last of them. */
struct desc {
    int fd;
    _Atomic uint32_t refs;
};
struct desc *desc_new(int fd); /* takes fd over; NULL: no memory, fd is closed */
struct desc *desc_ref(struct desc *desc) nowait;
void desc_unref(struct desc *desc); /* may close */
AUTO_DEFINE(desc, desc_unref)

struct mdata { /* the times that a client's clock gave (spec/disk.md 1.7) */
    struct iatt_time ctime, mtime, atime;
};
enum mdata_state { MDATA_UNKNOWN, MDATA_ABSENT, MDATA_PRESENT };

enum node_desc { NODE_DIR, NODE_IO, NODE_IO_DIRECT, NODE_DESCS };

struct node {
    struct inode *inode;            /* whose slot this is: not referenced by it */
    _Atomic uint32_t opens;         /* open files of clients */
    _Atomic bool is_unlinked;       /* its last name is gone, the inode lives in unlink/ */
    _Atomic bool has_handle;        /* seen: .glusterfs/aa/bb/gfid is right */
    _Atomic bool is_recent;         /* used since it was last passed over for eviction */
    struct fmutex append;           /* one write and its stats as one step */

    pthread_mutex_t mutex;          /* over what follows; never held across a wait */
    struct desc *desc[NODE_DESCS];  /* directory; anonymous reads and writes */
    enum mdata_state mdata_state;
    bool is_dirty;                  /* mdata is newer than the disk's; in posix->dirty */
    struct mdata mdata;
    bool last_valid;
    struct iatt last;               /* as the latest write or read of this inode left it */

    bool is_kept, is_listed;        /* in posix->kept, posix->dirty: under posix->mutex */
    TAILQ_ENTRY(node) kept_link, dirty_link;
};

/* NULL: no memory. */
struct node *node_get(struct posix *posix, struct inode *inode) nowait;
struct node *node_find(struct posix *posix, struct inode *inode) nowait; /* NULL: none yet */
/* Keeps the inode (and so its node) among the NODES_KEPT_MAX latest. */
void node_keep(struct posix *posix, struct node *node);
/* A shared reference, or NULL. */
struct desc *node_desc(struct node *node, enum node_desc which) nowait;
/* Stores a descriptor for others; a shared reference to what is stored now. NULL: no memory. */
struct desc *node_set_desc(struct posix *posix, struct node *node, enum node_desc which, int fd);
/* Attributes changed other than by the data operations: what those remember is old. */
void node_changed(struct node *node) nowait;
/* The object is gone or is another now: forget what was known. */
void node_reset(struct posix *posix, struct node *node);
void node_free(struct node *node);
/* At stop: lets all kept inodes go. */
void nodes_drop(struct posix *posix);
