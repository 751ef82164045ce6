/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GETATTR, STATX, SETATTR, ACCESS, STATFS. */
#include "xlators/mount/fuse/attr.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "core/env.h"

enum {
    BLOCK_BYTES = 128 * 1024
}; /* st_blksize: what programs size their buffers by */

#define STATX_BTIME_BIT 0x800u
#define STATX_BASIC_BITS 0x7ffu

/* --- forms ------------------------------------------------------------------------------------ */
uint64_t attr_ino(const struct fuse *fuse, const struct iatt *stat)
{
    uint64_t ino = gfid_is_null(&stat->gfid) ? stat->ino : gfid_ino(&stat->gfid);

    return fuse->options.ino32 ? (ino ^ ino >> 32) & 0xffffffff : ino;
}

static unsigned rdev_major(const struct iatt *stat)
{
    return (unsigned)(stat->rdev >> 32);
}

static unsigned rdev_minor(const struct iatt *stat)
{
    return (unsigned)(stat->rdev & 0xffffffff);
}

/* The kernel's 32-bit form of a device number. */
static uint32_t rdev_encode(const struct iatt *stat)
{
    unsigned major = rdev_major(stat), minor = rdev_minor(stat);
    return (minor & 0xff) | major << 8 | (minor & ~0xffu) << 12;
}

void attr_fill(const struct fuse *fuse, const struct iatt *stat, struct fuse_attr *ret_attr)
{
    *ret_attr = (struct fuse_attr){
        .ino = attr_ino(fuse, stat),
        .size = stat->size,
        .blocks = stat->blocks,
        .atime = (uint64_t)stat->atime.sec,
        .mtime = (uint64_t)stat->mtime.sec,
        .ctime = (uint64_t)stat->ctime.sec,
        .atimensec = stat->atime.nsec,
        .mtimensec = stat->mtime.nsec,
        .ctimensec = stat->ctime.nsec,
        .mode = stat->mode,
        .nlink = stat->nlink,
        .uid = stat->uid,
        .gid = stat->gid,
        .rdev = rdev_encode(stat),
        .blksize = BLOCK_BYTES,
    };
}

void timeout_fill(double seconds, uint64_t *ret_seconds, uint32_t *ret_nsec)
{
    double whole = floor(seconds);

    *ret_seconds = (uint64_t)whole;
    *ret_nsec = (uint32_t)((seconds - whole) * NS_PER_S);
}

int attr_reply(struct request *req, const struct iatt *stat)
{
    struct fuse_attr_out out = {};

    timeout_fill(req->fuse->options.attribute_timeout, &out.attr_valid, &out.attr_valid_nsec);
    attr_fill(req->fuse, stat, &out.attr);
    return request_reply(req, &out, sizeof(out));
}

/* --- GETATTR, STATX --------------------------------------------------------------------------- */
static int stat_by_fd(struct request *req, struct fd *fd, struct iatt *ret_stat)
{
    struct fstat_args args = { .fd = fd };
    struct fstat_reply out = {};
    int ret = fop_fstat(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.stat;
    fstat_reply_fini(&out);
    return ret;
}

static int stat_by_inode(struct request *req, struct iatt *ret_stat)
{
    struct stat_args args = { .inode = request_inode(req) };
    struct stat_reply out = {};
    int ret = fop_stat(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.stat;
    stat_reply_fini(&out);
    return ret;
}

/* The kernel does not always say through which handle it asks. For what was removed while it is
 * open any of them is the only way. */
static bool is_gone(int ret)
{
    return ret == -ESTALE || ret == -ENOENT;
}

static int stat_get(struct request *req, struct fd *fd, struct iatt *ret_stat)
{
    if (fd)
        return stat_by_fd(req, fd, ret_stat);
    int ret = stat_by_inode(req, ret_stat);
    if (!is_gone(ret))
        return ret;
    AUTO(fd) open = handle_fd_of(req->fuse, request_inode(req));
    return open ? stat_by_fd(req, open, ret_stat) : ret;
}

int getattr_run(struct request *req)
{
    const struct fuse_getattr_in *in = request_in(req);
    struct fd *fd = in->getattr_flags & FUSE_GETATTR_FH ? handle_of(in->fh)->fd : NULL;
    struct iatt stat;
    int ret = stat_get(req, fd, &stat);

    return ret < 0 ? ret : attr_reply(req, &stat);
}

static struct wire_sx_time sx_time(const struct iatt_time *time)
{
    return (struct wire_sx_time){ .sec = time->sec, .nsec = time->nsec };
}

static void statx_fill(const struct fuse *fuse, const struct iatt *stat, struct wire_statx_out *out)
{
    timeout_fill(fuse->options.attribute_timeout, &out->attr_valid, &out->attr_valid_nsec);
    out->mask = STATX_BASIC_BITS | (stat->flags & IATT_BTIME ? STATX_BTIME_BIT : 0);
    out->blksize = BLOCK_BYTES;
    out->attributes = stat->attributes;
    out->attributes_mask = stat->attributes_mask;
    out->nlink = stat->nlink;
    out->uid = stat->uid;
    out->gid = stat->gid;
    out->mode = (uint16_t)stat->mode;
    out->ino = attr_ino(fuse, stat);
    out->size = stat->size;
    out->blocks = stat->blocks;
    out->atime = sx_time(&stat->atime);
    out->btime = sx_time(&stat->btime);
    out->ctime = sx_time(&stat->ctime);
    out->mtime = sx_time(&stat->mtime);
    out->rdev_major = rdev_major(stat);
    out->rdev_minor = rdev_minor(stat);
}

int statx_run(struct request *req)
{
    const struct wire_statx_in *in = request_in(req);
    struct fd *fd = in->getattr_flags & FUSE_GETATTR_FH ? handle_of(in->fh)->fd : NULL;
    struct wire_statx_out out = {};
    struct iatt stat;
    int ret = stat_get(req, fd, &stat);

    if (ret < 0)
        return ret;
    statx_fill(req->fuse, &stat, &out);
    return request_reply(req, &out, sizeof(out));
}

/* --- SETATTR ---------------------------------------------------------------------------------- */
static int size_set(struct request *req, struct fd *fd, uint64_t size, struct iatt *ret_stat)
{
    struct xlator *child = fuse_child(req->fuse);
    int ret;

    if (fd) {
        struct ftruncate_args args = { .fd = fd, .offset = size };
        struct ftruncate_reply out = {};
        ret = fop_ftruncate(child, &req->call, &args, &out);
        *ret_stat = out.poststat;
        ftruncate_reply_fini(&out);
    } else {
        struct truncate_args args = { .inode = request_inode(req), .offset = size };
        struct truncate_reply out = {};
        ret = fop_truncate(child, &req->call, &args, &out);
        *ret_stat = out.poststat;
        truncate_reply_fini(&out);
    }
    return ret;
}

static int attributes_set_by_fd(struct request *req, struct fd *fd, int32_t valid,
                                const struct iatt *stat, struct iatt *ret_stat)
{
    struct fsetattr_args args = { .fd = fd, .stat = *stat, .valid = valid };
    struct fsetattr_reply out = {};
    int ret = fop_fsetattr(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.poststat;
    fsetattr_reply_fini(&out);
    return ret;
}

static int attributes_set(struct request *req, struct inode *inode, struct fd *fd, int32_t valid,
                          const struct iatt *stat, struct iatt *ret_stat)
{
    if (fd)
        return attributes_set_by_fd(req, fd, valid, stat, ret_stat);
    struct setattr_args args = { .inode = inode, .stat = *stat, .valid = valid };
    struct setattr_reply out = {};
    int ret = fop_setattr(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.poststat;
    setattr_reply_fini(&out);
    if (!is_gone(ret))
        return ret;
    AUTO(fd) open = handle_fd_of(req->fuse, inode);
    return open ? attributes_set_by_fd(req, open, valid, stat, ret_stat) : ret;
}

static bool is_in_group(const struct call *call, uint32_t gid)
{
    if (call->gid == gid)
        return true;
    for (uint32_t i = 0; i < call->group_count; i++)
        if (call->groups[i] == gid)
            return true;
    return false;
}

/* As local file systems do: set-group-id without group-execute stays only for the group's
 * members. */
uint32_t mode_without_privileges(const struct iatt *stat, const struct call *call)
{
    uint32_t mode = stat->mode;

    if (!S_ISREG(mode))
        return mode;
    mode &= ~(uint32_t)S_ISUID;
    if ((mode & S_IXGRP) || !is_in_group(call, stat->gid))
        mode &= ~(uint32_t)S_ISGID;
    return mode;
}

/* The kernel holds a mode that is old now. Attributes alone, which waits for nobody. */
static void kernel_forget_attributes(struct request *req, const struct inode *inode)
{
    struct fuse_notify_inval_inode_out what = { .ino = inode_nodeid(inode), .off = -1 };
    struct fuse_out_header out = { .len = sizeof(out) + sizeof(what),
                                   .error = FUSE_NOTIFY_INVAL_INODE };
    struct iovec iov[] = { { &out, sizeof(out) }, { &what, sizeof(what) } };

    (void)env_writev(req->fuse->devices[0].fd, iov, 2); /* it does not know the inode: as good */
}

int privileges_drop(struct request *req, struct inode *inode, struct fd *fd, struct iatt *stat)
{
    if ((stat->mode & (S_ISGID | S_IXGRP)) == S_ISGID)
        request_groups(req);
    uint32_t mode = mode_without_privileges(stat, &req->call);
    if (mode == stat->mode)
        return 0;

    /* not in the name of the caller, who may write the file without owning it */
    uint32_t uid = req->call.uid;
    struct iatt set = { .mode = mode & 07777 };
    req->call.uid = 0;
    int ret = attributes_set(req, inode, fd, VALID_MODE, &set, stat);
    req->call.uid = uid;
    if (ret == 0 && (inode || (fd && fd->inode)))
        kernel_forget_attributes(req, inode ? inode : fd->inode);
    return ret;
}

static struct iatt_time time_now(void)
{
    struct timespec now = env_wallclock();
    return (struct iatt_time){ .sec = now.tv_sec, .nsec = (uint32_t)now.tv_nsec };
}

/* The protocol's valid bits as ours (without the size's), and the values. */
static int32_t setattr_read(const struct fuse_setattr_in *in, struct iatt *stat)
{
    static const struct {
        uint32_t theirs;
        int32_t ours;
    } bits[] = {
        { FATTR_MODE, VALID_MODE },
        { FATTR_UID, VALID_UID },
        { FATTR_GID, VALID_GID },
        { FATTR_ATIME | FATTR_ATIME_NOW, VALID_ATIME },
        { FATTR_MTIME | FATTR_MTIME_NOW, VALID_MTIME },
        { FATTR_CTIME, VALID_CTIME },
    };
    int32_t valid = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++)
        if (in->valid & bits[i].theirs)
            valid |= bits[i].ours;
    stat->mode = in->mode & 07777;
    stat->uid = in->uid;
    stat->gid = in->gid;
    stat->atime = (struct iatt_time){ .sec = (int64_t)in->atime, .nsec = in->atimensec };
    stat->mtime = (struct iatt_time){ .sec = (int64_t)in->mtime, .nsec = in->mtimensec };
    stat->ctime = (struct iatt_time){ .sec = (int64_t)in->ctime, .nsec = in->ctimensec };
    if (in->valid & FATTR_ATIME_NOW)
        stat->atime = time_now();
    if (in->valid & FATTR_MTIME_NOW)
        stat->mtime = time_now();
    return valid;
}

static int setattr_size(struct request *req, const struct fuse_setattr_in *in, struct fd *fd,
                        struct iatt *ret_stat)
{
    if (in->valid & FATTR_LOCKOWNER)
        request_owner(req, in->lock_owner);
    int ret = size_set(req, fd, in->size, ret_stat);
    if (ret == 0 && (in->valid & FATTR_KILL_SUIDGID))
        ret = privileges_drop(req, request_inode(req), fd, ret_stat);
    return ret;
}

int setattr_run(struct request *req)
{
    const struct fuse_setattr_in *in = request_in(req);
    struct fd *fd = in->valid & FATTR_FH ? handle_of(in->fh)->fd : NULL;
    struct iatt set = {}, stat = {};
    int32_t valid = setattr_read(in, &set);
    int ret = 0;

    if (in->valid & FATTR_SIZE) {
        ret = setattr_size(req, in, fd, &stat);
        if (in->valid & FATTR_MTIME_NOW) /* the truncation has set it */
            valid &= ~VALID_MTIME;
    }
    if (ret == 0 && (valid || !(in->valid & FATTR_SIZE)))
        ret = attributes_set(req, request_inode(req), fd, valid, &set, &stat);
    return ret < 0 ? ret : attr_reply(req, &stat);
}

/* --- ACCESS, STATFS --------------------------------------------------------------------------- */
int access_run(struct request *req)
{
    const struct fuse_access_in *in = request_in(req);
    struct access_args args = { .inode = request_inode(req), .mask = in->mask };
    struct access_reply out = {};
    int ret = fop_access(fuse_child(req->fuse), &req->call, &args, &out);

    access_reply_fini(&out);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

int statfs_run(struct request *req)
{
    struct statfs_args args = { .inode = request_inode(req) };
    struct statfs_reply reply = {};
    int ret = fop_statfs(fuse_child(req->fuse), &req->call, &args, &reply);
    const struct fsstat *stat = &reply.statfs;
    struct fuse_statfs_out out = { .st = {
                                       .blocks = stat->blocks,
                                       .bfree = stat->bfree,
                                       .bavail = stat->bavail,
                                       .files = stat->files,
                                       .ffree = stat->ffree,
                                       .bsize = (uint32_t)stat->bsize,
                                       .namelen = (uint32_t)stat->namemax,
                                       .frsize = (uint32_t)(stat->frsize ? stat->frsize
                                                                         : stat->bsize),
                                   } };

    statfs_reply_fini(&reply);
    return ret < 0 ? ret : request_reply(req, &out, sizeof(out));
}
