/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GETLK, SETLK, SETLKW: fcntl(2) locks and flock(2), which is a lock of the whole file for the
 * wire.
 *
 * The kernel names an owner: of fcntl locks the process's table of files, of flock and
 * open-file-description locks the open file. The first kind ends with FLUSH of that owner, the
 * second with RELEASE, for which a handle keeps its owners. */
#include "xlators/mount/fuse/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* --- owners ----------------------------------------------------------------------------------- */
static int handle_owner_add(struct handle *handle, uint64_t owner, bool is_flock)
{
    HOLD(&handle->mutex);
    for (struct handle_owner *at = handle->owners; at; at = at->next)
        if (at->owner == owner && at->is_flock == is_flock)
            return 0;
    struct handle_owner *added = malloc(sizeof(*added));
    if (!added)
        return -ENOMEM;
    *added = (struct handle_owner){ .owner = owner, .is_flock = is_flock, .next = handle->owners };
    handle->owners = added;
    return 0;
}

bool handle_owner_remove(struct handle *handle, uint64_t owner)
{
    HOLD(&handle->mutex);
    for (struct handle_owner **at = &handle->owners; *at; at = &(*at)->next) {
        struct handle_owner *found = *at;
        if (found->owner == owner) {
            *at = found->next;
            free(found);
            return true;
        }
    }
    return false;
}

static const char was_locked; /* what an inode's slot then points to */

bool inode_was_locked(const struct fuse *fuse, struct inode *inode)
{
    return slot_get(&inode->slots, fuse->xl) == &was_locked;
}

static int inode_mark_locked(const struct fuse *fuse, struct inode *inode)
{
    if (inode_was_locked(fuse, inode))
        return 0;
    return slot_add(&inode->slots, fuse->xl, (void *)&was_locked) ? 0 : -ENOMEM;
}

/* --- the operation ---------------------------------------------------------------------------- */
/* The kernel's last byte included, OFFSET_MAX for "to the end", as start and length. */
static void lock_read(const struct fuse_lk_in *in, struct lock *lock)
{
    lock->type = in->lk.type;
    lock->whence = SEEK_SET;
    lock->start = in->lk.start;
    lock->len = in->lk.end >= INT64_MAX ? 0 : in->lk.end - in->lk.start + 1;
    lock->pid = in->lk.pid;
}

static int lock_do(struct request *req, struct fd *fd, uint32_t cmd, bool is_flock,
                   const struct lock *lock, struct lock *ret_lock)
{
    AUTO(dict) xdata = is_flock ? dict_new() : NULL;
    struct lk_args args = {
        .fd = fd, .cmd = cmd, .type = lock->type, .lock = *lock, .xdata = xdata
    };
    struct lk_reply out = {};

    /* for our bricks: the wire itself does not tell flock from fcntl */
    if (is_flock && (!xdata || dict_set_int(xdata, "mortar.flock", 1) < 0))
        return -ENOLCK;
    args.lock.owner = req->call.owner;
    int ret = fop_lk(fuse_child(req->fuse), &req->call, &args, &out);
    *ret_lock = out.lock;
    lk_reply_fini(&out);
    return ret;
}

int getlk_run(struct request *req)
{
    const struct fuse_lk_in *in = request_in(req);
    struct lock lock = {}, found;

    lock_read(in, &lock);
    request_owner(req, in->owner);
    int ret = lock_do(req, handle_of(in->fh)->fd, LK_GET, false, &lock, &found);
    if (ret < 0)
        return ret;
    struct fuse_lk_out out = { .lk = { .type = found.type, .pid = found.pid } };
    if (found.type != F_UNLCK) {
        out.lk.start = found.start;
        out.lk.end = found.len ? found.start + found.len - 1 : INT64_MAX;
    }
    return request_reply(req, &out, sizeof(out));
}

static bool is_unlocking_locked(const struct fuse *fuse, const struct inode *inode)
{
    const struct unlocking *unlocking;

    LIST_FOREACH(unlocking, &fuse->unlocking, link)
    if (unlocking->inode == inode)
        return true;
    return false;
}

/* close(2) does not wait for RELEASE; a program that closes and then locks must not find its own
 * former lock. */
static void unlocking_wait(struct fuse *fuse, const struct inode *inode)
{
    HOLD(&fuse->mutex);
    while (is_unlocking_locked(fuse, inode) && !fuse->stopping)
        fcond_wait(&fuse->changed, &fuse->mutex, "fuse: unlock");
}

static int lock_set(struct request *req, uint32_t cmd)
{
    const struct fuse_lk_in *in = request_in(req);
    struct handle *handle = handle_of(in->fh);
    struct lock lock = {}, unused;
    int ret = 0;

    lock_read(in, &lock);
    request_owner(req, in->owner);
    if (lock.type != F_UNLCK) {
        unlocking_wait(req->fuse, handle->fd->inode);
        /* before it is granted: whatever happens then, the last close gives it back */
        ret = inode_mark_locked(req->fuse, handle->fd->inode);
        if (ret == 0)
            ret = handle_owner_add(handle, in->owner, in->lk_flags & FUSE_LK_FLOCK);
    }
    if (ret == 0)
        ret = lock_do(req, handle->fd, cmd, in->lk_flags & FUSE_LK_FLOCK, &lock, &unused);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

int setlk_run(struct request *req)
{
    return lock_set(req, LK_SET);
}

int setlkw_run(struct request *req)
{
    const struct fuse_lk_in *in = request_in(req);
    return lock_set(req, in->lk.type == F_UNLCK ? LK_SET : LK_SET_WAIT);
}

static void unlocking_end(struct fuse *fuse, struct unlocking *unlocking)
{
    HOLD(&fuse->mutex);
    LIST_REMOVE(unlocking, link);
    fcond_wake_all(&fuse->changed);
}

void handle_unlock_all(struct request *req, struct handle *handle)
{
    struct lock whole = { .type = F_UNLCK }, unused;
    struct unlocking unlocking = { .inode = handle->fd->inode };

    if (!handle->owners)
        return;
    {
        HOLD(&req->fuse->mutex);
        LIST_INSERT_HEAD(&req->fuse->unlocking, &unlocking, link);
    }
    for (struct handle_owner *owner = handle->owners; owner; owner = owner->next) {
        request_owner(req, owner->owner);
        /* a failure is the brick's loss of the file, and of its locks */
        (void)lock_do(req, handle->fd, LK_SET, owner->is_flock, &whole, &unused);
    }
    unlocking_end(req->fuse, &unlocking);
}
