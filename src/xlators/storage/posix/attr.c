/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* STAT, FSTAT, SETATTR, FSETATTR, READLINK, ACCESS, STATFS. */
#include <errno.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>

#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/xattr.h"

/* --- STAT, FSTAT ------------------------------------------------------------------------------ */
/* On the lane, when the kernel has it in its caches: -EAGAIN asks for a worker. */
static int stat_cached(struct posix *posix, const struct stat_args *in, struct stat_reply *out)
{
    char path[HANDLE_PATH_SIZE];
    struct stat st;

    struct node *node = node_find(posix, in->inode);
    if (!node || !mdata_is_known(posix, node) || in->xdata)
        return -EAGAIN;
    AUTO(desc) dir = dir_get_cached(posix, in->inode);
    if (dir) {
        int ret = env_fstat(dir->fd, &st);
        if (ret == 0)
            iatt_fill(posix, node, &st, &out->stat);
        return ret;
    }
    handle_path(&in->inode->gfid, path);
    AUTO_FD fd = env_openat2(handle_dir_fd(posix, &in->inode->gfid), path,
                             O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_CACHED);
    if (fd < 0 || env_fstat(fd, &st) < 0 || (S_ISLNK(st.st_mode) && st.st_nlink == 1))
        return -EAGAIN;
    iatt_fill(posix, node, &st, &out->stat);
    return 0;
}

static int stat_work(struct posix *posix, struct call *call, const struct stat_args *in,
                     struct stat_reply *out)
{
    LOCATED located = {};

    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    located_iatt(posix, &located, &out->stat);
    node_keep(posix, located.node);
    if (!in->xdata)
        return 0;
    return xattr_answer(posix, call, located.node, &located.object, in->xdata, &out->xdata);
}

struct stat_frame {
    struct posix *posix;
    struct call *call;
    const struct stat_args *in;
    struct stat_reply *out;
    int ret;
};

static void stat_hop(void *arg)
{
    struct stat_frame *frame = arg;
    frame->ret = stat_work(frame->posix, frame->call, frame->in, frame->out);
}

int brick_stat(struct xlator *xl, struct call *call, const struct stat_args *in,
               struct stat_reply *out)
{
    struct posix *posix = xl->state;
    int ret = stat_cached(posix, in, out);
    if (ret != -EAGAIN)
        return ret;
    struct stat_frame frame = { .posix = posix, .call = call, .in = in, .out = out };
    hop(pool_default(), stat_hop, &frame);
    return frame.ret;
}

int brick_fstat(struct xlator *xl, struct call *call, const struct fstat_args *in,
                struct fstat_reply *out)
{
    struct posix *posix = xl->state;
    IO io = {};

    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    struct object object = object_fd(io.fd);
    ret = stat_iatt(posix, io.node, &object, &out->stat);
    if (ret < 0 || !in->xdata)
        return ret;
    return xattr_answer(posix, call, io.node, &object, in->xdata, &out->xdata);
}

/* --- SETATTR ---------------------------------------------------------------------------------- */
struct change {
    struct posix *posix;
    struct call *call;
    struct node *node;
    const struct object *object;
    const struct iatt *stat;
    int32_t valid;
    const struct dict *xdata;
    struct stat before;
};

static struct timespec time_or_omit(bool is_given, struct iatt_time time)
{
    if (!is_given)
        return (struct timespec){ .tv_nsec = UTIME_OMIT };
    return (struct timespec){ .tv_sec = time.sec, .tv_nsec = time.nsec };
}

/* Owner before mode: a change of owner takes set-id bits away, a mode that is given is meant. */
static int apply_change(const struct change *change)
{
    int32_t valid = change->valid;
    bool owns = valid & (VALID_UID | VALID_GID);
    int ret = 0;

    if (owns || valid == 0)
        ret = object_chown(change->object, valid & VALID_UID ? change->stat->uid : (uid_t)-1,
                           valid & VALID_GID ? change->stat->gid : (gid_t)-1);
    if (ret == 0 && (valid & VALID_MODE)) {
        if (S_ISLNK(change->before.st_mode))
            return -EOPNOTSUPP;
        ret = object_chmod(change->object, change->stat->mode & 07777);
    }
    if (ret == 0 && (valid & (VALID_ATIME | VALID_MTIME))) {
        struct timespec times[2] = {
            time_or_omit(valid & VALID_ATIME, change->stat->atime),
            time_or_omit(valid & VALID_MTIME, change->stat->mtime),
        };
        ret = object_utimes(change->object, times);
    }
    return ret;
}

static void change_times(const struct change *change)
{
    if (change->valid & (VALID_ATIME | VALID_MTIME)) {
        mdata_set(change->posix, change->node, change->call, change->stat, change->valid);
        mdata_store(change->posix, change->node);
    }
    if (change->valid == 0 || (change->valid & (VALID_MODE | VALID_UID | VALID_GID)))
        mdata_touch(change->posix, change->node, change->call, change->xdata, TIMES_CTIME);
    else if (change->valid & VALID_CTIME)
        mdata_touch(change->posix, change->node, change->call, change->xdata, 0);
}

static int change_attributes(struct change *change, struct iatt *ret_pre, struct iatt *ret_post)
{
    int ret = object_stat(change->object, &change->before);
    if (ret < 0)
        return ret == -ENOENT ? -ESTALE : ret;
    iatt_fill(change->posix, change->node, &change->before, ret_pre);
    ret = apply_change(change);
    if (ret < 0)
        return ret;
    change_times(change);
    node_changed(change->node);
    return stat_iatt(change->posix, change->node, change->object, ret_post);
}

static int setattr_work(struct posix *posix, struct call *call, const struct setattr_args *in,
                        struct setattr_reply *out)
{
    LOCATED located = {};

    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    struct change change = {
        .posix = posix, .call = call, .node = located.node, .object = &located.object,
        .stat = &in->stat, .valid = in->valid, .xdata = in->xdata,
    };
    return change_attributes(&change, &out->prestat, &out->poststat);
}
POSIX_HOP(setattr)

static int fsetattr_work(struct posix *posix, struct call *call, const struct fsetattr_args *in,
                         struct fsetattr_reply *out)
{
    IO io = {};

    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    struct object object = object_fd(io.fd);
    struct change change = {
        .posix = posix, .call = call, .node = io.node, .object = &object, .stat = &in->stat,
        .valid = in->valid, .xdata = in->xdata,
    };
    return change_attributes(&change, &out->prestat, &out->poststat);
}
POSIX_HOP(fsetattr)

/* --- READLINK, ACCESS ------------------------------------------------------------------------- */
static int readlink_work(struct posix *posix, struct call *call, const struct readlink_args *in,
                         struct readlink_reply *out)
{
    LOCATED located = {};

    (void)call;
    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    if (!S_ISLNK(located.st.st_mode))
        return -EINVAL;
    AUTO_FREE char *path = malloc(PATH_MAX + 1);
    if (!path)
        return -ENOMEM;
    ssize_t bytes = env_readlinkat(located.object.at, located.object.path, path, PATH_MAX);
    if (bytes < 0)
        return bytes == -ENOENT ? -ESTALE : (int)bytes;
    if (in->size && (size_t)bytes > in->size)
        bytes = in->size;
    path[bytes] = '\0';
    located_iatt(posix, &located, &out->stat);
    out->path = TAKE(path);
    return (int)bytes;
}
POSIX_HOP(readlink)

static int access_work(struct posix *posix, struct call *call, const struct access_args *in,
                       struct access_reply *out)
{
    LOCATED located = {};
    int mask = (int)(in->mask & (R_OK | W_OK | X_OK));

    (void)out;
    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    if (S_ISLNK(located.st.st_mode))
        return 0;
    /* by a descriptor: the caller may not search .glusterfs */
    AUTO_FD fd = located.desc ? -1
                              : env_openat(located.object.at, located.object.path,
                                           O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (!located.desc && fd < 0)
        return fd;
    ret = env_identity_set(call->uid, call->gid, call->groups, call->group_count);
    if (ret < 0)
        return ret;
    ret = env_faccessat(located.desc ? located.desc->fd : fd, located.desc ? "." : "", mask,
                        located.desc ? AT_EACCESS : AT_EACCESS | AT_EMPTY_PATH);
    env_identity_restore();
    return ret;
}
POSIX_HOP(access)

/* --- STATFS ----------------------------------------------------------------------------------- */
static uint64_t reserve_blocks(struct posix *posix, const struct statvfs *vfs)
{
    struct option_amount reserve;
    {
        HOLD(&posix->mutex);
        reserve = posix->reserve;
    }
    if (reserve.is_percent)
        return (uint64_t)((double)vfs->f_blocks * reserve.percent / 100);
    return vfs->f_bsize ? (reserve.bytes + vfs->f_bsize - 1) / vfs->f_bsize : 0;
}

static int statfs_work(struct posix *posix, struct call *call, const struct statfs_args *in,
                       struct statfs_reply *out)
{
    struct statvfs vfs;

    (void)call;
    (void)in;
    int ret = env_fstatvfs(posix->root_fd, &vfs);
    if (ret < 0)
        return ret;
    uint64_t reserve = reserve_blocks(posix, &vfs);
    uint64_t bfree = vfs.f_bfree > reserve ? vfs.f_bfree - reserve : 0;
    uint64_t share = posix->shared_brick_count > 1 ? (uint64_t)posix->shared_brick_count : 1;
    struct fsstat *stat = &out->statfs;

    *stat = (struct fsstat){
        .bsize = vfs.f_bsize, .frsize = vfs.f_frsize, .fsid = vfs.f_fsid, .flag = vfs.f_flag,
        .namemax = vfs.f_namemax,
    };
    if (!posix->export_statfs)
        return 0;
    stat->blocks = vfs.f_blocks / share;
    stat->bfree = bfree / share;
    stat->bavail = MIN((uint64_t)vfs.f_bavail, bfree) / share;
    stat->files = vfs.f_files / share;
    stat->ffree = vfs.f_ffree / share;
    stat->favail = vfs.f_favail / share;
    return 0;
}
POSIX_HOP(statfs)
