/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel's numbers stand for: nodeid an inode (its address; the root is 1), fh a handle.
 * The kernel names only what we gave it and it did not give back: an inode lives while its count of
 * look-ups is not zero, a handle until RELEASE. */
#include <stdlib.h>

#include "xlators/mount/fuse/state.h"

/* --- inodes ----------------------------------------------------------------------------------- */
uint64_t inode_nodeid(const struct inode *inode)
{
    return gfid_is_root(&inode->gfid) ? FUSE_ROOT_ID : (uint64_t)(uintptr_t)inode;
}

struct inode *nodeid_inode(const struct fuse *fuse, uint64_t nodeid)
{
    return nodeid == FUSE_ROOT_ID ? fuse->root : (struct inode *)(uintptr_t)nodeid;
}

/* The step from zero takes a reference, the step to zero gives it back; the caller holds one of its
 * own meanwhile, so both orders of a concurrent pair are right. */
void inode_lookups_add(struct inode *inode)
{
    if (atomic_fetch_add(&inode->lookups, 1) == 0)
        inode_ref(inode);
}

void inode_lookups_drop(struct inode *inode, uint64_t count)
{
    uint64_t before = atomic_load(&inode->lookups);
    uint64_t after;

    do {
        after = before - MIN(before, count);
    } while (!atomic_compare_exchange_weak(&inode->lookups, &before, after));
    if (before > 0 && after == 0)
        inode_unref(inode);
}

/* --- open files ------------------------------------------------------------------------------- */
struct handle *handle_new(struct fuse *fuse, struct fd *fd)
{
    struct handle *handle = calloc(1, sizeof(*handle));
    if (!handle)
        return NULL;
    handle->fd = fd;
    pthread_mutex_init(&handle->mutex, NULL);
    HOLD(&fuse->handles_mutex);
    TAILQ_INSERT_TAIL(&fuse->handles, handle, link);
    return handle;
}

void handle_free(struct fuse *fuse, struct handle *handle)
{
    {
        HOLD(&fuse->handles_mutex);
        TAILQ_REMOVE(&fuse->handles, handle, link);
    }
    for (struct handle_owner *owner = handle->owners, *next; owner; owner = next) {
        next = owner->next;
        free(owner);
    }
    pthread_mutex_destroy(&handle->mutex);
    fd_unref(handle->fd);
    free(handle);
}

struct fd *handle_fd_of(struct fuse *fuse, const struct inode *inode)
{
    struct handle *handle;

    HOLD(&fuse->handles_mutex);
    TAILQ_FOREACH(handle, &fuse->handles, link)
    if (handle->fd->inode == inode)
        return fd_ref(handle->fd);
    return NULL;
}

/* --- fibers --------------------------------------------------------------------------------- */
void fuse_fiber_enter(struct fuse *fuse)
{
    HOLD(&fuse->mutex);
    fuse->running++;
}

void fuse_fiber_leave(struct fuse *fuse)
{
    HOLD(&fuse->mutex);
    fuse->running--;
    fcond_wake_all(&fuse->changed);
}
