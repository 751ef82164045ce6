/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* LOOKUP, and the repair of what a crash left (spec/disk.md 1.3): an entry without a gfid that is
 * empty counts as absent; another one is labelled with the gfid that the client offers; a
 * missing or wrong handle is made anew. */
#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "xlators/storage/posix/entry.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/xattr.h"

/* What is answered from caches on the lane must not wait: -EAGAIN then means "ask a worker".
 * What is wrong with an entry is judged and repaired with its name's lock held: -EUCLEAN asks
 * for that. */
enum lookup_where { ON_LANE, ON_WORKER, ON_WORKER_WITH_NAME };

static int answer_xdata(struct posix *posix, struct call *call, struct node *node,
                        const struct object *object, const struct lookup_args *in,
                        const struct iatt *stat, struct lookup_reply *out)
{
    int64_t content_max;

    if (!in->xdata)
        return 0;
    int ret = xattr_answer(posix, call, node, object, in->xdata, &out->xdata);
    if (ret < 0 || !S_ISREG(stat->mode) ||
        dict_get_int(in->xdata, "glusterfs.content", &content_max) < 0)
        return ret;
    if (content_max <= 0 || stat->size > (uint64_t)content_max || stat->size == 0 ||
        stat->size > BUF_BYTES_MAX)
        return 0;
    return lookup_content(object, stat->size, &out->xdata);
}

int lookup_content(const struct object *object, uint64_t size, struct dict **dict)
{
    AUTO_FREE char *bytes = malloc(size);
    char path[OBJECT_PROC_BYTES];

    if (!bytes)
        return -ENOMEM;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", object->at);
    AUTO_FD fd = object->form == OBJECT_AT
                     ? env_openat(object->at, object->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0)
                     : env_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0; /* the client reads it the ordinary way, and sees the error */
    struct iovec iov = { bytes, size };
    ssize_t ret = env_preadv(fd, &iov, 1, 0);
    if (ret != (ssize_t)size)
        return 0; /* it changes right now */
    if (!*dict && !(*dict = dict_new()))
        return -ENOMEM;
    return dict_set_bytes(*dict, "glusterfs.content", bytes, (uint32_t)size);
}

/* --- named ------------------------------------------------------------------------------------ */
static int check_handle(struct posix *posix, const struct lookup_args *in,
                        const struct object *object, const struct stat *st, const gfid_t *gfid,
                        enum lookup_where where)
{
    if (handle_is_right(posix, gfid, st, &in->parent->gfid, in->name))
        return 0;
    if (where != ON_WORKER_WITH_NAME)
        return -EUCLEAN;
    return handle_heal(posix, gfid, object, st, &in->parent->gfid, in->name);
}

static int finish_named(struct posix *posix, struct call *call, const struct lookup_args *in,
                        const struct object *object, const struct stat *st, const gfid_t *gfid,
                        enum lookup_where where, struct lookup_reply *out)
{
    AUTO(inode) inode = inode_get(posix->xl->graph->inodes, gfid);
    struct node *node = inode ? node_get(posix, inode) : NULL;
    if (!node)
        return -ENOMEM;
    if (where == ON_LANE && !(node->has_handle && mdata_is_known(posix, node)))
        return -EAGAIN;
    if (!node->has_handle) {
        int ret = check_handle(posix, in, object, st, gfid, where);
        if (ret < 0)
            return ret;
        node->has_handle = true;
    }
    mdata_load(posix, node, object);
    inode->type = st->st_mode & S_IFMT;
    iatt_fill(posix, node, st, &out->stat);
    if (where == ON_WORKER_WITH_NAME) { /* a new handle is one more link */
        int ret = stat_iatt(posix, node, object, &out->stat);
        if (ret < 0)
            return ret;
    }
    node_keep(posix, node);
    return answer_xdata(posix, call, node, object, in, &out->stat, out);
}

static bool is_old_enough(const struct stat *st)
{
    struct timespec now = env_wallclock();
    return now.tv_sec > st->st_ctim.tv_sec + 1 ||
           (now.tv_sec == st->st_ctim.tv_sec + 1 && now.tv_nsec >= st->st_ctim.tv_nsec);
}

/* Gives the entry the gfid that the client offers. */
static int label(struct posix *posix, const struct lookup_args *in, const struct object *object,
                 const struct stat *st, gfid_t *ret_gfid)
{
    int ret = dict_get_gfid(in->xdata, "gfid-req", ret_gfid);
    if (ret < 0 || gfid_is_null(ret_gfid))
        return -ENODATA;
    if (!is_old_enough(st))
        return -ENOENT;
    STRIPES_HELD held = inodes_lock(posix, ret_gfid, NULL);
    ret = object_setxattr(object, XATTR_GFID, ret_gfid, sizeof(*ret_gfid), XATTR_CREATE);
    if (ret < 0)
        return ret == -EEXIST ? -EAGAIN : ret;
    if (!S_ISDIR(st->st_mode))
        gfid2path_add(posix, object, &in->parent->gfid, in->name);
    posix->heals++;
    return 0;
}

/* Whoever was making, moving or removing the entry is done or dead once its name's lock is ours. */
static int lookup_repairing(struct posix *posix, struct call *call, const struct lookup_args *in,
                            struct desc *dir, struct lookup_reply *out)
{
    STRIPES_HELD held = names_lock(posix, &in->parent->gfid, in->name);
    struct stat st;
    gfid_t gfid;

    AUTO_FD fd = env_openat2(dir->fd, in->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, 0);
    if (fd < 0)
        return fd;
    struct object object = object_path_fd(fd);
    int ret = env_fstat(fd, &st);
    if (ret < 0)
        return ret;
    ret = object_gfid(&object, &gfid);
    if (ret == -ENODATA && entry_is_empty(dir->fd, in->name, &st))
        return -ENOENT;
    if (ret == -ENODATA)
        ret = label(posix, in, &object, &st, &gfid);
    if (ret == -ENODATA && dict_get(in->xdata, "gfidless-lookup")) {
        iatt_from_stat(&out->stat, &st, &gfid_null);
        return 0;
    }
    if (ret < 0)
        return ret;
    return finish_named(posix, call, in, &object, &st, &gfid, ON_WORKER_WITH_NAME, out);
}

/* What has the name may lose it while we look: what was found stands for the moment of the open;
 * where more than that is needed (a label, a handle) the name's lock settles it. */
static int lookup_named(struct posix *posix, struct call *call, const struct lookup_args *in,
                        struct desc *dir, enum lookup_where where, struct lookup_reply *out)
{
    struct stat st;
    gfid_t gfid;

    AUTO_FD fd = env_openat2(dir->fd, in->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0,
                             where == ON_LANE ? RESOLVE_CACHED : 0);
    if (fd < 0)
        return fd;
    int ret = env_fstat(fd, &st);
    if (ret < 0)
        return ret;
    if (st.st_ino == posix->handle_ino && st.st_dev == posix->root_dev)
        return -ENOENT;
    struct object object = object_path_fd(fd);
    ret = object_gfid(&object, &gfid);
    if (ret == 0)
        ret = finish_named(posix, call, in, &object, &st, &gfid, where, out);
    if (ret == -ENODATA || ret == -EUCLEAN)
        return where == ON_LANE ? -EAGAIN : lookup_repairing(posix, call, in, dir, out);
    return ret;
}

static int lookup_entry(struct posix *posix, struct call *call, const struct lookup_args *in,
                        enum lookup_where where, struct lookup_reply *out)
{
    AUTO(desc) dir = NULL;
    struct stat st;

    int ret = posix_check_name(in->parent, in->name);
    if (ret < 0)
        return ret;
    if (where == ON_LANE && !(dir = dir_get_cached(posix, in->parent)))
        return -EAGAIN;
    if (!dir)
        ret = dir_get(posix, in->parent, &dir);
    if (ret < 0)
        return ret;
    ret = lookup_named(posix, call, in, dir, where, out);
    if (ret < 0)
        return ret;
    ret = env_fstat(dir->fd, &st);
    if (ret == 0)
        iatt_fill(posix, node_find(posix, in->parent), &st, &out->postparent);
    return ret;
}

/* --- nameless --------------------------------------------------------------------------------- */
/* A handle without a name is what a crash left between the two links of a creation. */
static bool remove_orphan(struct posix *posix, struct inode *inode)
{
    char path[HANDLE_PATH_SIZE];
    struct stat st;

    STRIPES_HELD held = inodes_lock(posix, &inode->gfid, NULL);
    handle_path(&inode->gfid, path);
    int ret = env_fstatat(handle_dir_fd(posix, &inode->gfid), path, &st, AT_SYMLINK_NOFOLLOW);
    if (ret < 0 || st.st_nlink != 1 || S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode))
        return false;
    return handle_unlink(posix, &inode->gfid) == 0;
}

static int lookup_gfid(struct posix *posix, struct call *call, const struct lookup_args *in,
                       struct lookup_reply *out)
{
    LOCATED located = {};
    int64_t unlinked_too = 0;

    best_effort(dict_get_int(in->xdata, "unlinked-lookup", &unlinked_too)); /* absent: 0 */
    int ret = locate(posix, in->inode, &located);
    if (ret == -ESTALE && !located.is_unlinked)
        handle_drop_dangling(posix, &in->inode->gfid);
    if (ret == -ESTALE || (ret == 0 && located.is_unlinked && !unlinked_too))
        return -ENOENT;
    if (ret < 0)
        return ret;
    if (!S_ISDIR(located.st.st_mode) && located.st.st_nlink == 1 && !located.is_unlinked &&
        remove_orphan(posix, in->inode))
        return -ENOENT;
    in->inode->type = located.st.st_mode & S_IFMT;
    located_iatt(posix, &located, &out->stat);
    node_keep(posix, located.node);
    return answer_xdata(posix, call, located.node, &located.object, in, &out->stat, out);
}

static int lookup_work(struct posix *posix, struct call *call, const struct lookup_args *in,
                       struct lookup_reply *out)
{
    if (in->name && in->name[0])
        return lookup_entry(posix, call, in, ON_WORKER, out);
    return lookup_gfid(posix, call, in, out);
}

struct lookup_frame {
    struct posix *posix;
    struct call *call;
    const struct lookup_args *in;
    struct lookup_reply *out;
    int ret;
};

static void lookup_hop(void *arg)
{
    struct lookup_frame *frame = arg;
    frame->ret = lookup_work(frame->posix, frame->call, frame->in, frame->out);
}

int brick_lookup(struct xlator *xl, struct call *call, const struct lookup_args *in,
                 struct lookup_reply *out)
{
    struct posix *posix = xl->state;

    if (in->name && in->name[0]) {
        int ret = lookup_entry(posix, call, in, ON_LANE, out);
        if (ret != -EAGAIN)
            return ret;
        lookup_reply_fini(out);
    }
    struct lookup_frame frame = { .posix = posix, .call = call, .in = in, .out = out };
    hop(pool_default(), lookup_hop, &frame);
    return frame.ret;
}
