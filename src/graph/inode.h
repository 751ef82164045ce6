/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inodes and open files as the process knows them (DESIGN section 7): identities with a place for
 * translators' state. Names and attributes are the brick's to decide and are not kept here.
 *
 *     AUTO(inode) inode = inode_get(table, &gfid);
 *     struct state *state = slot_get(&inode->slots, xl);
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "core/auto.h"
#include "core/uuid.h"

struct xlator;
struct inode_table;

/* State of translators, by translator: a short list (most inodes have none). The mutex protects the
 * list, not what it points to. */
struct slot {
    const struct xlator *xl;
    void *state;
};
struct slots {
    pthread_mutex_t mutex;
    struct slot *list;
    uint32_t count, room;
};
void *slot_get(struct slots *slots, const struct xlator *xl) nowait; /* or NULL */
/* Stores state unless there is one already: returns what is stored now (the caller frees its own
 * when that is another); NULL: no memory. */
void *slot_add(struct slots *slots, const struct xlator *xl, void *state) nowait;
/* Takes the state out (NULL: none). */
void *slot_take(struct slots *slots, const struct xlator *xl) nowait;

struct inode {
    gfid_t gfid;                /* fixed */
    struct inode_table *table;
    _Atomic uint32_t refs;
    _Atomic uint32_t type;      /* S_IFMT bits when known, 0 before */
    _Atomic uint64_t lookups; /* a front door's count (FUSE nlookup); it holds one ref while > 0 */
    struct slots slots;         /* ended by xlator_type.forget */
    struct inode *next;         /* in its hash chain */
};

must_check int inode_table_new(struct inode_table **ret_table);
void inode_table_free(struct inode_table *table); /* asserts that none is left referenced */
/* Shared reference to the inode of that gfid, made when needed. NULL: no memory. */
struct inode *inode_get(struct inode_table *table, const gfid_t *gfid) nowait;
struct inode *inode_find(struct inode_table *table, const gfid_t *gfid) nowait; /* NULL: unknown */
struct inode *inode_ref(struct inode *inode) nowait;
/* May run translators' forget hooks (which must not wait). */
void inode_unref(struct inode *inode) nowait;
AUTO_DEFINE(inode, inode_unref)
uint64_t inode_table_count(struct inode_table *table) nowait;
/* Calls fn on every inode, referenced meanwhile. */
void inode_table_each(struct inode_table *table, void (*fn)(struct inode *inode, void *arg),
                      void *arg);

struct fd {
    struct inode *_Atomic inode; /* NULL only between fd_new for create and fd_bind */
    _Atomic uint32_t refs;
    uint32_t flags;              /* open flags, Linux numbers */
    int32_t pid;
    bool anonymous;              /* stands for "any descriptor of this inode" (wire: -2) */
    bool is_dir;
    struct slots slots;          /* ended by xlator_type.release */
};

/* inode may be NULL (create: the gfid is known only afterwards). NULL: no memory. */
struct fd *fd_new(struct inode *inode, uint32_t flags, int32_t pid) nowait;
struct fd *fd_anonymous(struct inode *inode) nowait;
/* create's leaf tells which inode was opened; first one wins. */
void fd_bind(struct fd *fd, struct inode *inode) nowait;
struct fd *fd_ref(struct fd *fd) nowait;
/* The last one runs release hooks, which may wait: call on a fiber, with no lock held. */
void fd_unref(struct fd *fd);
AUTO_DEFINE(fd, fd_unref)
