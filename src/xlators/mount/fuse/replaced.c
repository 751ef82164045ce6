/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/mount/fuse/replaced.h"

#include <errno.h>
#include <fcntl.h>

#include "core/env.h"

enum {
    TRIES_MAX = 100
};
#define LIFETIME_NS NS_PER_S

/* Under fuse->mutex. A slot is free when its time is over and it holds nothing. */
static struct replaced *slot_of_locked(struct fuse *fuse, int32_t pid)
{
    for (unsigned i = 0; i < FUSE_REPLACED_MAX; i++)
        if (fuse->replaced[i].until_ns && fuse->replaced[i].pid == pid)
            return &fuse->replaced[i];
    return NULL;
}

static struct replaced *slot_free_locked(struct fuse *fuse)
{
    for (unsigned i = 0; i < FUSE_REPLACED_MAX; i++)
        if (!fuse->replaced[i].until_ns)
            return &fuse->replaced[i];
    return NULL;
}

/* *ret_fd: what it held, to be closed without the mutex. */
static void slot_end_locked(struct fuse *fuse, struct replaced *slot, struct fd **ret_fd)
{
    *ret_fd = slot->fd;
    *slot = (struct replaced){};
    fuse->replaced_count--;
}

/* Ends the first slot that is over at now_ns. false: there is none. */
static bool slot_expire(struct fuse *fuse, uint64_t now_ns)
{
    AUTO(fd) fd = NULL;

    HOLD(&fuse->mutex);
    for (unsigned i = 0; i < FUSE_REPLACED_MAX; i++) {
        struct replaced *slot = &fuse->replaced[i];
        if (slot->until_ns && slot->until_ns <= now_ns) {
            slot_end_locked(fuse, slot, &fd);
            return true;
        }
    }
    return false;
}

void replaced_drop_all(struct fuse *fuse)
{
    while (slot_expire(fuse, UINT64_MAX))
        ;
}

static void expire_run(void *arg)
{
    struct fuse *fuse = arg;

    env_sleep(LIFETIME_NS);
    while (slot_expire(fuse, env_now_ns()))
        ;
    fuse_fiber_leave(fuse);
}

static bool slot_make(struct fuse *fuse, int32_t pid, uint32_t flags)
{
    HOLD(&fuse->mutex);
    struct replaced *slot = slot_of_locked(fuse, pid);
    if (slot && slot->fd)
        return false;
    bool is_new = !slot;
    if (is_new)
        slot = slot_free_locked(fuse);
    if (!slot)
        return false; /* many at once: the others see ESTALE */
    if (is_new)
        fuse->replaced_count++;
    *slot = (struct replaced){ .pid = pid, .flags = flags, .until_ns = env_now_ns() + LIFETIME_NS };
    return is_new;
}

void replaced_note(struct request *req, uint32_t flags)
{
    struct fuse *fuse = req->fuse;

    /* what O_TRUNC does must not be done before the kernel has allowed it */
    if ((flags & O_TRUNC) || !slot_make(fuse, (int32_t)req->in.pid, flags))
        return;
    fuse_fiber_enter(fuse);
    if (fiber_start("fuse replaced", expire_run, fuse) < 0)
        fuse_fiber_leave(fuse); /* it ends with the mount */
}

static bool slot_wanted(struct fuse *fuse, int32_t pid, uint32_t *ret_flags)
{
    if (fuse->replaced_count == 0)
        return false;
    HOLD(&fuse->mutex);
    struct replaced *slot = slot_of_locked(fuse, pid);
    if (!slot || slot->fd)
        return false;
    *ret_flags = slot->flags;
    return true;
}

static void slot_fill(struct fuse *fuse, int32_t pid, struct fd *fd)
{
    HOLD(&fuse->mutex);
    struct replaced *slot = slot_of_locked(fuse, pid);
    if (slot && !slot->fd)
        slot->fd = fd_ref(fd);
}

static int file_open(struct request *req, const gfid_t *gfid, uint32_t flags)
{
    AUTO(inode) inode = inode_get(req->fuse->xl->graph->inodes, gfid);
    AUTO(fd) fd = inode ? fd_new(inode, flags, req->call.pid) : NULL;
    if (!fd)
        return -ENOMEM;
    struct open_args args = { .inode = inode, .fd = fd, .flags = flags };
    struct open_reply out = {};
    int ret = fop_open(fuse_child(req->fuse), &req->call, &args, &out);

    open_reply_fini(&out);
    if (ret >= 0)
        slot_fill(req->fuse, (int32_t)req->in.pid, fd);
    return ret;
}

int replaced_lookup(struct request *req, const struct lookup_args *args, struct iatt *stat)
{
    uint32_t flags;

    if (!slot_wanted(req->fuse, (int32_t)req->in.pid, &flags))
        return 0;
    for (int i = 0; i < TRIES_MAX && S_ISREG(stat->mode); i++) {
        int ret = file_open(req, &stat->gfid, flags);
        if (ret != -ESTALE && ret != -ENOENT)
            break; /* open, or refused for a reason that OPEN shall tell */
        struct lookup_reply out = {};
        ret = fop_lookup(fuse_child(req->fuse), &req->call, args, &out);
        *stat = out.stat;
        lookup_reply_fini(&out);
        if (ret < 0)
            return ret;
    }
    return 0;
}

struct fd *replaced_take(struct request *req, const struct inode *inode, uint32_t flags)
{
    struct fuse *fuse = req->fuse;
    struct fd *fd = NULL;

    if (fuse->replaced_count == 0)
        return NULL;
    HOLD(&fuse->mutex);
    struct replaced *slot = slot_of_locked(fuse, (int32_t)req->in.pid);
    if (slot && slot->fd && slot->fd->inode == inode && slot->flags == flags)
        slot_end_locked(fuse, slot, &fd);
    return fd;
}
