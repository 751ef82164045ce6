/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names: LOOKUP, FORGET, READLINK, SYMLINK, MKNOD, MKDIR, CREATE, UNLINK, RMDIR, RENAME, LINK. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "xlators/mount/fuse/attr.h"
#include "xlators/mount/fuse/file.h"
#include "xlators/mount/fuse/replaced.h"

/* --- answers that name an inode --------------------------------------------------------------- */
int entry_fill(struct request *req, const struct iatt *stat, struct fuse_entry_out *ret_entry,
               struct inode **ret_inode)
{
    const struct fuse_options *options = &req->fuse->options;

    if (gfid_is_null(&stat->gfid))
        return -EIO;
    struct inode *inode = inode_get(req->fuse->xl->graph->inodes, &stat->gfid);
    if (!inode)
        return -ENOMEM;
    inode->type = stat->mode & S_IFMT;
    inode_lookups_add(inode);

    *ret_entry = (struct fuse_entry_out){ .nodeid = inode_nodeid(inode) };
    /* An address may serve again for another file: this tells file handles of the two apart. */
    memcpy(&ret_entry->generation, &stat->gfid, sizeof(uint32_t));
    timeout_fill(options->entry_timeout, &ret_entry->entry_valid, &ret_entry->entry_valid_nsec);
    timeout_fill(options->attribute_timeout, &ret_entry->attr_valid, &ret_entry->attr_valid_nsec);
    attr_fill(req->fuse, stat, &ret_entry->attr);
    *ret_inode = inode;
    return 0;
}

int entry_reply(struct request *req, const struct iatt *stat)
{
    struct fuse_entry_out out;
    AUTO(inode) inode = NULL;
    int ret = entry_fill(req, stat, &out, &inode);

    if (ret < 0)
        return ret;
    ret = request_reply(req, &out, sizeof(out));
    if (ret < 0)
        inode_lookups_drop(inode, 1); /* the kernel did not take it */
    return ret;
}

/* --- LOOKUP, FORGET --------------------------------------------------------------------------- */
/* "No such name", to be remembered for a while. */
static int negative_reply(struct request *req)
{
    struct fuse_entry_out out = {};

    timeout_fill(req->fuse->options.negative_timeout, &out.entry_valid, &out.entry_valid_nsec);
    return request_reply(req, &out, sizeof(out));
}

int lookup_run(struct request *req)
{
    size_t offset = 0;
    const char *name;
    int ret = request_name(req, &offset, &name);
    if (ret < 0)
        return ret;

    AUTO(dict) xdata = gfid_request(); /* for a file that has no gfid yet */
    if (!xdata)
        return -ENOMEM;
    struct lookup_args args = { .parent = request_inode(req), .name = name, .xdata = xdata };
    struct lookup_reply out = {};
    ret = fop_lookup(fuse_child(req->fuse), &req->call, &args, &out);
    struct iatt stat = out.stat;
    lookup_reply_fini(&out);
    if (ret >= 0)
        ret = replaced_lookup(req, &args, &stat);
    if (ret == -ENOENT && req->fuse->options.negative_timeout > 0)
        return negative_reply(req);
    return ret < 0 ? ret : entry_reply(req, &stat);
}

static void forget_one(struct fuse *fuse, uint64_t nodeid, uint64_t count)
{
    if (nodeid != FUSE_ROOT_ID)
        inode_lookups_drop(nodeid_inode(fuse, nodeid), count);
}

int forget_run(struct request *req)
{
    const struct fuse_forget_in *in = request_in(req);

    forget_one(req->fuse, req->in.nodeid, in->nlookup);
    return 0;
}

int batch_forget_run(struct request *req)
{
    const struct fuse_batch_forget_in *in = request_in(req);
    const struct fuse_forget_one *one = (const void *)(in + 1);
    size_t room = (req->body_bytes - sizeof(*in)) / sizeof(*one);

    for (size_t i = 0; i < in->count && i < room; i++)
        forget_one(req->fuse, one[i].nodeid, one[i].nlookup);
    return 0;
}

/* --- new entries ------------------------------------------------------------------------------ */
static bool parent_has_default_acl(struct request *req)
{
    struct getxattr_args args = { .inode = request_inode(req), .name = "system.posix_acl_default" };
    struct getxattr_reply out = {};
    int ret = fop_getxattr(fuse_child(req->fuse), &req->call, &args, &out);
    bool has = ret >= 0 && dict_get(out.dict, args.name);

    getxattr_reply_fini(&out);
    return has;
}

/* Without -o acl the kernel has applied the umask. With it we do, unless the parent's default ACL
 * takes its place; a brick need not know (genuine ones are told 0). */
static uint32_t mode_masked(struct request *req, uint32_t mode, uint32_t umask)
{
    if (!(req->fuse->flags & FUSE_DONT_MASK) || !(mode & umask & 0777))
        return mode;
    return parent_has_default_acl(req) ? mode : mode & ~(umask & 0777);
}

int mknod_run(struct request *req)
{
    const struct fuse_mknod_in *in = request_in(req);
    size_t offset = sizeof(*in);
    const char *name;
    int ret = request_name(req, &offset, &name);
    if (ret < 0)
        return ret;

    AUTO(dict) xdata = gfid_request();
    if (!xdata)
        return -ENOMEM;
    unsigned major = (in->rdev >> 8) & 0xfff,
             minor = (in->rdev & 0xff) | (in->rdev >> 12 & 0xfff00);
    struct mknod_args args = { .parent = request_inode(req),
                               .name = name,
                               .xdata = xdata,
                               .mode = mode_masked(req, in->mode, in->umask),
                               .dev = makedev(major, minor) };
    struct mknod_reply out = {};
    ret = fop_mknod(fuse_child(req->fuse), &req->call, &args, &out);
    struct iatt stat = out.stat;
    mknod_reply_fini(&out);
    return ret < 0 ? ret : entry_reply(req, &stat);
}

int mkdir_run(struct request *req)
{
    const struct fuse_mkdir_in *in = request_in(req);
    size_t offset = sizeof(*in);
    const char *name;
    int ret = request_name(req, &offset, &name);
    if (ret < 0)
        return ret;

    AUTO(dict) xdata = gfid_request();
    if (!xdata)
        return -ENOMEM;
    struct mkdir_args args = { .parent = request_inode(req),
                               .name = name,
                               .xdata = xdata,
                               .mode = mode_masked(req, in->mode & 07777, in->umask) };
    struct mkdir_reply out = {};
    ret = fop_mkdir(fuse_child(req->fuse), &req->call, &args, &out);
    struct iatt stat = out.stat;
    mkdir_reply_fini(&out);
    return ret < 0 ? ret : entry_reply(req, &stat);
}

int symlink_run(struct request *req)
{
    size_t offset = 0;
    const char *name, *target;
    int ret = request_name(req, &offset, &name);
    if (ret < 0)
        return ret;
    target = request_text(req, &offset);
    if (!target)
        return -EINVAL;

    AUTO(dict) xdata = gfid_request();
    if (!xdata)
        return -ENOMEM;
    struct symlink_args args = {
        .parent = request_inode(req), .name = name, .target = target, .xdata = xdata
    };
    struct symlink_reply out = {};
    ret = fop_symlink(fuse_child(req->fuse), &req->call, &args, &out);
    struct iatt stat = out.stat;
    symlink_reply_fini(&out);
    return ret < 0 ? ret : entry_reply(req, &stat);
}

static int create_reply_send(struct request *req, const struct iatt *stat, struct handle *handle)
{
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out;
    AUTO(inode) inode = NULL;
    int ret = entry_fill(req, stat, &out.entry, &inode);

    if (ret < 0)
        return ret;
    fd_bind(handle->fd, inode); /* the leaf has done it, or nobody */
    out.open = (struct fuse_open_out){ .fh = (uint64_t)(uintptr_t)handle,
                                       .open_flags = fuse_open_flags(req->fuse,
                                                                     handle->fd->flags) };
    ret = request_reply(req, &out, sizeof(out));
    if (ret < 0)
        inode_lookups_drop(inode, 1);
    return ret;
}

static int create_file(struct request *req, const char *name, struct fd *fd, struct iatt *ret_stat)
{
    const struct fuse_create_in *in = request_in(req);
    AUTO(dict) xdata = gfid_request();
    if (!xdata)
        return -ENOMEM;
    struct create_args args = { .parent = request_inode(req),
                                .fd = fd,
                                .flags = fd->flags,
                                .mode = mode_masked(req, in->mode, in->umask) | S_IFREG,
                                .name = name,
                                .xdata = xdata };
    struct create_reply out = {};
    int ret = fop_create(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.stat;
    create_reply_fini(&out);
    gfid_t wanted;
    bool existed = dict_get_gfid(xdata, "gfid-req", &wanted) == 0 &&
                   !gfid_equal(&wanted, &ret_stat->gfid);
    if (ret >= 0 && existed && (in->open_flags & FUSE_OPEN_KILL_SUIDGID)) /* it was emptied */
        ret = privileges_drop(req, NULL, fd, ret_stat);
    return ret;
}

int create_run(struct request *req)
{
    const struct fuse_create_in *in = request_in(req);
    size_t offset = sizeof(*in);
    struct iatt stat;
    const char *name;
    int ret = request_name(req, &offset, &name);
    if (ret < 0)
        return ret;

    AUTO(fd) fd = fd_new(NULL, fuse_child_flags(req->fuse, in->flags), req->call.pid);
    if (!fd)
        return -ENOMEM;
    ret = create_file(req, name, fd, &stat);
    if (ret < 0)
        return ret;
    struct handle *handle = handle_new(req->fuse, fd);
    if (!handle)
        return -ENOMEM;
    (void)TAKE(fd); /* the handle's now */
    ret = create_reply_send(req, &stat, handle);
    if (ret < 0)
        handle_free(req->fuse, handle);
    return ret;
}

/* --- READLINK --------------------------------------------------------------------------------- */
int readlink_run(struct request *req)
{
    struct readlink_args args = { .inode = request_inode(req), .size = 4096 };
    struct readlink_reply out = {};
    int ret = fop_readlink(fuse_child(req->fuse), &req->call, &args, &out);

    if (ret >= 0 && !out.path)
        ret = -EIO;
    if (ret >= 0)
        ret = request_reply(req, out.path, strlen(out.path));
    readlink_reply_fini(&out);
    return ret;
}

/* --- UNLINK, RMDIR, RENAME, LINK -------------------------------------------------------------- */
int unlink_run(struct request *req)
{
    size_t offset = 0;
    struct unlink_args args = { .parent = request_inode(req) };
    int ret = request_name(req, &offset, &args.name);
    if (ret < 0)
        return ret;

    struct unlink_reply out = {};
    ret = fop_unlink(fuse_child(req->fuse), &req->call, &args, &out);
    unlink_reply_fini(&out);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

int rmdir_run(struct request *req)
{
    size_t offset = 0;
    struct rmdir_args args = { .parent = request_inode(req) };
    int ret = request_name(req, &offset, &args.name);
    if (ret < 0)
        return ret;

    struct rmdir_reply out = {};
    ret = fop_rmdir(fuse_child(req->fuse), &req->call, &args, &out);
    rmdir_reply_fini(&out);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

static int rename_do(struct request *req, uint64_t newdir, size_t offset)
{
    struct rename_args args = { .oldparent = request_inode(req),
                                .newparent = nodeid_inode(req->fuse, newdir) };
    int ret = request_name(req, &offset, &args.oldname);
    if (ret == 0)
        ret = request_name(req, &offset, &args.newname);
    if (ret < 0)
        return ret;

    struct rename_reply out = {};
    ret = fop_rename(fuse_child(req->fuse), &req->call, &args, &out);
    rename_reply_fini(&out);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

int rename_run(struct request *req)
{
    const struct fuse_rename_in *in = request_in(req);
    return rename_do(req, in->newdir, sizeof(*in));
}

/* The wire has no place for rename's flags, and none of them can be made of other operations. */
int rename2_run(struct request *req)
{
    const struct fuse_rename2_in *in = request_in(req);
    return in->flags ? -EINVAL : rename_do(req, in->newdir, sizeof(*in));
}

int link_run(struct request *req)
{
    const struct fuse_link_in *in = request_in(req);
    struct link_args args = { .inode = nodeid_inode(req->fuse, in->oldnodeid),
                              .newparent = request_inode(req) };
    size_t offset = sizeof(*in);
    int ret = request_name(req, &offset, &args.newname);
    if (ret < 0)
        return ret;

    struct link_reply out = {};
    ret = fop_link(fuse_child(req->fuse), &req->call, &args, &out);
    struct iatt stat = out.stat;
    link_reply_fini(&out);
    return ret < 0 ? ret : entry_reply(req, &stat);
}
