/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SETXATTR, GETXATTR, LISTXATTR, REMOVEXATTR.
 *
 * Answered here: glusterfs.gfid and glusterfs.gfid.string; what identifies a file on a brick may
 * not be written (spec/disk.md 1.4). SELinux labels exist with the option selinux, ACLs with
 * acl. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/mount/fuse/attr.h"

enum {
    NUMBER_SIZE = 32,
    XATTR_BYTES_MAX = 65536
};

/* --- names ------------------------------------------------------------------------------------ */
static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_brick_identity(const char *name)
{
    return strcmp(name, "trusted.gfid") == 0 || strcmp(name, "trusted.glusterfs.volume-id") == 0;
}

static bool is_acl(const char *name)
{
    return strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

/* Linux hands FUSE whatever it is asked; a local file system knows these and its own. */
static int namespace_check(const char *name)
{
    static const char *const namespaces[] = { "user.", "trusted.", "security.", "system.",
                                              "glusterfs." };

    for (unsigned i = 0; i < ARRAY_SIZE(namespaces); i++)
        if (has_prefix(name, namespaces[i]))
            return name[strlen(namespaces[i])] ? 0 : -EINVAL;
    return -EOPNOTSUPP;
}

/* 0, or what a name gets that this mount does not have: no round trip for it. */
static int name_check(const struct request *req, const char *name, int absent)
{
    const struct fuse *fuse = req->fuse;

    int ret = namespace_check(name);
    if (ret < 0)
        return ret;
    if (strcmp(name, "security.selinux") == 0 && !fuse->options.selinux)
        return absent;
    if (is_acl(name) && !fuse->options.acl)
        return -EOPNOTSUPP;
    return 0;
}

/* Old kernels, which cannot leave the removal of privileges to us, ask this before every write. */
static bool is_asked_by_every_write(const struct request *req, const char *name)
{
    return strcmp(name, "security.capability") == 0 && !req->fuse->options.capability &&
           !(req->fuse->flags & FUSE_HANDLE_KILLPRIV_V2);
}

/* --- GETXATTR --------------------------------------------------------------------------------- */
static int value_reply(struct request *req, uint32_t room, const void *data, size_t bytes)
{
    if (room == 0) {
        struct fuse_getxattr_out out = { .size = (uint32_t)bytes };
        return request_reply(req, &out, sizeof(out));
    }
    return bytes > room ? -ERANGE : request_reply(req, data, bytes);
}

/* Numbers as text, text without its NUL, anything else as it is. */
static int dict_value_reply(struct request *req, uint32_t room, const struct dict_value *value)
{
    char number[NUMBER_SIZE];

    switch (value->type) {
    case DICT_INT:
        snprintf(number, sizeof(number), "%lld", (long long)value->i64);
        return value_reply(req, room, number, strlen(number));
    case DICT_UINT:
        snprintf(number, sizeof(number), "%llu", (unsigned long long)value->u64);
        return value_reply(req, room, number, strlen(number));
    case DICT_STR:
    case DICT_STR_OLD:
        return value_reply(req, room, value->data, strnlen(value->data, value->bytes));
    default:
        return value_reply(req, room, value->data, value->bytes);
    }
}

static const struct dict_value *value_of(const struct dict *dict, const char *name)
{
    const struct dict_value *value = dict_get(dict, name);

    if (!value && dict_count(dict) == 1) /* an alias: answered under its proper name */
        (void)dict_at(dict, 0, &value);
    return value;
}

static int gfid_value_reply(struct request *req, uint32_t room, bool text)
{
    char formatted[UUID_TEXT_SIZE];
    const gfid_t *gfid = &request_inode(req)->gfid;

    if (!text)
        return value_reply(req, room, gfid, sizeof(*gfid));
    gfid_format(gfid, formatted);
    return value_reply(req, room, formatted, strlen(formatted));
}

/* The kernel names no handle for these. What was removed while it is open is found through one. */
static struct fd *fd_if_gone(struct request *req, int ret)
{
    return ret == -ESTALE || ret == -ENOENT ? handle_fd_of(req->fuse, request_inode(req)) : NULL;
}

/* name NULL: all. *ret_dict is owned. */
static int brick_get(struct request *req, const char *name, struct dict **ret_dict)
{
    struct getxattr_args args = { .inode = request_inode(req), .name = name };
    struct getxattr_reply out = {};
    int ret = fop_getxattr(fuse_child(req->fuse), &req->call, &args, &out);

    if (ret >= 0)
        *ret_dict = TAKE(out.dict);
    getxattr_reply_fini(&out);
    AUTO(fd) fd = fd_if_gone(req, ret);
    if (!fd)
        return ret;
    struct fgetxattr_args fd_args = { .fd = fd, .name = name };
    struct fgetxattr_reply fd_out = {};
    ret = fop_fgetxattr(fuse_child(req->fuse), &req->call, &fd_args, &fd_out);
    if (ret >= 0)
        *ret_dict = TAKE(fd_out.dict);
    fgetxattr_reply_fini(&fd_out);
    return ret;
}

static int brick_value_reply(struct request *req, uint32_t room, const char *name)
{
    AUTO(dict) dict = NULL;
    int ret = brick_get(req, name, &dict);
    if (ret < 0)
        return ret;
    const struct dict_value *value = value_of(dict, name);
    return value ? dict_value_reply(req, room, value) : -ENODATA;
}

int getxattr_run(struct request *req)
{
    const struct fuse_getxattr_in *in = request_in(req);
    size_t offset = sizeof(*in);
    const char *name = request_text(req, &offset);

    if (!name || !*name)
        return -EINVAL;
    int ret = name_check(req, name, -ENODATA);
    if (ret < 0)
        return ret;
    if (is_asked_by_every_write(req, name))
        return -ENODATA;
    if (strcmp(name, "glusterfs.gfid") == 0)
        return gfid_value_reply(req, in->size, false);
    if (strcmp(name, "glusterfs.gfid.string") == 0)
        return gfid_value_reply(req, in->size, true);
    return brick_value_reply(req, in->size, name);
}

/* --- LISTXATTR -------------------------------------------------------------------------------- */
/* As a local file system does: trusted ones are for root's eyes. */
static bool is_listed(const struct request *req, const char *name)
{
    if (has_prefix(name, "trusted.") && req->in.uid != 0)
        return false;
    return name_check(req, name, -ENODATA) == 0;
}

static int names_reply(struct request *req, uint32_t room, const struct dict *dict)
{
    const struct dict_value *value;
    const char *name;
    size_t bytes = 0, at = 0;

    for (uint32_t i = 0; (name = dict_at(dict, i, &value)); i++)
        bytes += is_listed(req, name) ? strlen(name) + 1 : 0;
    if (room == 0 || bytes > room)
        return value_reply(req, room, NULL, bytes);

    AUTO_FREE char *names = malloc(bytes + 1);
    if (!names)
        return -ENOMEM;
    for (uint32_t i = 0; (name = dict_at(dict, i, &value)); i++)
        if (is_listed(req, name))
            at = (size_t)(stpcpy(names + at, name) - names) + 1;
    return request_reply(req, names, bytes);
}

int listxattr_run(struct request *req)
{
    const struct fuse_getxattr_in *in = request_in(req);
    AUTO(dict) dict = NULL;
    int ret = brick_get(req, NULL, &dict);

    return ret < 0 ? ret : names_reply(req, in->size, dict);
}

/* --- SETXATTR, REMOVEXATTR -------------------------------------------------------------------- */
static int xattr_set(struct request *req, const char *name, const void *value, uint32_t bytes,
                     uint32_t flags)
{
    AUTO(dict) dict = dict_new();
    if (!dict)
        return -ENOMEM;
    int ret = dict_set_bytes(dict, name, value, bytes);
    if (ret < 0)
        return ret;

    struct setxattr_args args = { .inode = request_inode(req), .flags = flags, .dict = dict };
    struct setxattr_reply out = {};
    ret = fop_setxattr(fuse_child(req->fuse), &req->call, &args, &out);
    setxattr_reply_fini(&out);
    AUTO(fd) fd = fd_if_gone(req, ret);
    if (!fd)
        return ret;
    struct fsetxattr_args fd_args = { .fd = fd, .flags = flags, .dict = dict };
    struct fsetxattr_reply fd_out = {};
    ret = fop_fsetxattr(fuse_child(req->fuse), &req->call, &fd_args, &fd_out);
    fsetxattr_reply_fini(&fd_out);
    return ret;
}

static int xattr_remove(struct request *req, const char *name)
{
    struct removexattr_args args = { .inode = request_inode(req), .name = name };
    struct removexattr_reply out = {};
    int ret = fop_removexattr(fuse_child(req->fuse), &req->call, &args, &out);

    removexattr_reply_fini(&out);
    AUTO(fd) fd = fd_if_gone(req, ret);
    if (!fd)
        return ret;
    struct fremovexattr_args fd_args = { .fd = fd, .name = name };
    struct fremovexattr_reply fd_out = {};
    ret = fop_fremovexattr(fuse_child(req->fuse), &req->call, &fd_args, &fd_out);
    fremovexattr_reply_fini(&fd_out);
    return ret;
}

/* The kernel: with this ACL the file loses its set-group-id bit. */
static int setgid_drop(struct request *req)
{
    struct stat_args args = { .inode = request_inode(req) };
    struct stat_reply out = {};
    int ret = fop_stat(fuse_child(req->fuse), &req->call, &args, &out);
    struct setattr_args set = { .inode = args.inode,
                                .valid = VALID_MODE,
                                .stat.mode = out.stat.mode & 07777 & ~(uint32_t)S_ISGID };
    bool has = out.stat.mode & S_ISGID;

    stat_reply_fini(&out);
    if (ret < 0 || !has)
        return ret;
    struct setattr_reply done = {};
    ret = fop_setattr(fuse_child(req->fuse), &req->call, &set, &done);
    setattr_reply_fini(&done);
    return ret;
}

static int set_check(const struct request *req, const char *name)
{
    if (is_brick_identity(name))
        return -EPERM;
    if (strcmp(name, "glusterfs.gfid") == 0 || strcmp(name, "glusterfs.gfid.string") == 0)
        return -EOPNOTSUPP;
    return name_check(req, name, -EOPNOTSUPP);
}

int setxattr_run(struct request *req)
{
    const struct fuse_setxattr_in *in = request_in(req);
    bool extended = req->fuse->flags & FUSE_SETXATTR_EXT;
    size_t offset = extended ? sizeof(*in) : WIRE_SETXATTR_IN_COMPAT;
    const char *name = request_text(req, &offset);

    if (!name || !*name || in->size > XATTR_BYTES_MAX || in->size != req->body_bytes - offset)
        return -EINVAL;
    int ret = set_check(req, name);
    if (ret == 0)
        ret = xattr_set(req, name, req->body + offset, in->size, in->flags);
    if (ret == 0 && extended && (in->setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID))
        ret = setgid_drop(req);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

int removexattr_run(struct request *req)
{
    size_t offset = 0;
    const char *name = request_text(req, &offset);

    if (!name || !*name) /* "" would be "all of a list" to a brick */
        return -EINVAL;
    int ret = set_check(req, name);
    if (ret == 0)
        ret = xattr_remove(req, name);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}
