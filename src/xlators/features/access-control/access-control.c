/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/access-control (system/posix-acl): who may do what, by mode bits and POSIX ACLs, judged
 * on the brick whatever the client's kernel has judged already.
 * Promises: a caller without the permission that the operation needs gets -EACCES (-EPERM where
 *           only the owner may), and nothing happened. The super-user (super-uid) and internal
 *           callers (negative pid) pass. A new entry inherits its parent's default ACL from the
 *           brick's own file system, which storage/posix lets do it.
 * Keeps:    nothing: attributes are asked of the child at each judgement, so no cache can be stale.
 * Locks:    none. Between judgement and operation a permission may be taken away: as in a kernel
 *           that judged a moment earlier. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "graph/fop_call.h"
#include "xlators/features/access-control/acl.h"

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

struct access_control {
    int64_t super_uid; /* live */
};

enum { OPEN_EXEC = 040, MODE_STICKY = 01000, MODE_SETGID = 02000, MODE_SETUID = 04000 };

static bool passes(const struct xlator *xl, const struct call *call)
{
    const struct access_control *control = xl->state;
    return call->uid == (uint32_t)control->super_uid || call->pid < 0;
}

/* --- judging an inode ------------------------------------------------------------------------ */
static int stat_of(struct xlator *xl, struct call *call, struct inode *inode, struct iatt *ret_stat)
{
    struct stat_reply reply = {};
    int ret = fop_stat(first_child(xl), call, &(struct stat_args){ .inode = inode }, &reply);

    *ret_stat = reply.stat;
    stat_reply_fini(&reply);
    return ret < 0 ? ret : 0;
}

static int judge(struct xlator *xl, struct call *call, struct inode *inode, const struct iatt *stat,
                 uint32_t want)
{
    const struct access_control *control = xl->state;
    struct acl_subject subject = { .stat = stat };
    struct getxattr_reply reply = {};
    const struct getxattr_args in = { .inode = inode, .name = ACL_ACCESS };

    if (call->uid != stat->uid && !S_ISLNK(stat->mode)) {
        int ret = fop_getxattr(first_child(xl), call, &in, &reply);
        const struct dict_value *value = ret < 0 ? NULL : dict_get(reply.dict, ACL_ACCESS);
        subject.acl = value ? value->data : NULL;
        subject.acl_bytes = value ? value->bytes : 0;
        if (ret < 0 && ret != -ENODATA && ret != -EOPNOTSUPP) {
            getxattr_reply_fini(&reply);
            return ret; /* the list might have said no */
        }
    }
    bool may = acl_permits(&subject, call, (uint32_t)control->super_uid, want);
    getxattr_reply_fini(&reply);
    return may ? 0 : -EACCES;
}

static int need(struct xlator *xl, struct call *call, struct inode *inode, uint32_t want)
{
    struct iatt stat;
    if (passes(xl, call))
        return 0;
    int ret = stat_of(xl, call, inode, &stat);
    return ret < 0 ? ret : judge(xl, call, inode, &stat, want);
}

static int need_owner(struct xlator *xl, struct call *call, struct inode *inode)
{
    struct iatt stat;
    if (passes(xl, call))
        return 0;
    int ret = stat_of(xl, call, inode, &stat);
    return ret < 0 ? ret : stat.uid == call->uid ? 0 : -EPERM;
}

/* What opening with these flags needs of a file. */
static uint32_t want_of(uint32_t flags)
{
    uint32_t want = 0;
    if (flags & OPEN_EXEC)
        want |= ACL_EXECUTE;
    else if ((flags & O_ACCMODE) != O_WRONLY)
        want |= ACL_READ;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC))
        want |= ACL_WRITE;
    return want;
}

/* --- entries --------------------------------------------------------------------------------- */
/* Write into the parent, and where it is sticky be the owner of it or of the entry. */
static int need_removal(struct xlator *xl, struct call *call, struct inode *parent,
                        const char *name, bool may_be_absent)
{
    struct iatt stat;
    struct lookup_reply reply = {};

    if (passes(xl, call))
        return 0;
    int ret = stat_of(xl, call, parent, &stat);
    if (ret == 0)
        ret = judge(xl, call, parent, &stat, ACL_WRITE | ACL_EXECUTE);
    if (ret < 0 || !(stat.mode & MODE_STICKY) || stat.uid == call->uid)
        return ret;
    ret = fop_lookup(first_child(xl), call, &(struct lookup_args){ .parent = parent, .name = name },
                     &reply);
    uint32_t owner = reply.stat.uid;
    lookup_reply_fini(&reply);
    if (ret < 0)
        return may_be_absent && ret == -ENOENT ? 0 : ret;
    return owner == call->uid ? 0 : -EPERM;
}

static int control_lookup(struct xlator *xl, struct call *call, const struct lookup_args *in,
                          struct lookup_reply *out)
{
    if (in->parent && in->name && in->name[0]) {
        int ret = need(xl, call, in->parent, ACL_EXECUTE);
        if (ret < 0)
            return ret;
    }
    return fop_lookup(first_child(xl), call, in, out);
}

#define ENTRY_IN(op_, parent_)                                                                     \
    static int control_##op_(struct xlator *xl, struct call *call, const struct op_##_args *in,    \
                             struct op_##_reply *out)                                              \
    {                                                                                              \
        int ret = need(xl, call, in->parent_, ACL_WRITE | ACL_EXECUTE);                            \
        return ret < 0 ? ret : fop_##op_(first_child(xl), call, in, out);                          \
    }
ENTRY_IN(mknod, parent)
ENTRY_IN(mkdir, parent)
ENTRY_IN(symlink, parent)
ENTRY_IN(link, newparent)

/* Creating needs the directory; opening what is there already needs the file. */
static int control_create(struct xlator *xl, struct call *call, const struct create_args *in,
                          struct create_reply *out)
{
    struct lookup_reply found = {};

    if (passes(xl, call))
        return fop_create(first_child(xl), call, in, out);
    int ret = need(xl, call, in->parent, ACL_EXECUTE);
    if (ret < 0)
        return ret;
    ret = fop_lookup(first_child(xl), call,
                     &(struct lookup_args){ .parent = in->parent, .name = in->name }, &found);
    AUTO(inode) inode = ret >= 0 ? inode_get(xl->graph->inodes, &found.stat.gfid) : NULL;
    lookup_reply_fini(&found);
    if (!inode)
        ret = need(xl, call, in->parent, ACL_WRITE | ACL_EXECUTE);
    else if (!(in->flags & O_EXCL))
        ret = need(xl, call, inode, want_of(in->flags));
    return ret < 0 ? ret : fop_create(first_child(xl), call, in, out);
}

static int control_unlink(struct xlator *xl, struct call *call, const struct unlink_args *in,
                          struct unlink_reply *out)
{
    int ret = need_removal(xl, call, in->parent, in->name, false);
    return ret < 0 ? ret : fop_unlink(first_child(xl), call, in, out);
}

static int control_rmdir(struct xlator *xl, struct call *call, const struct rmdir_args *in,
                         struct rmdir_reply *out)
{
    int ret = need_removal(xl, call, in->parent, in->name, false);
    return ret < 0 ? ret : fop_rmdir(first_child(xl), call, in, out);
}

/* A directory that gets another parent has its ".." rewritten: that needs write permission on
 * it. */
static int need_move(struct xlator *xl, struct call *call, const struct rename_args *in)
{
    struct lookup_reply found = {};
    struct lookup_args source = { .parent = in->oldparent, .name = in->oldname };

    if (passes(xl, call) || in->oldparent == in->newparent)
        return 0;
    int ret = fop_lookup(first_child(xl), call, &source, &found);
    if (ret >= 0 && S_ISDIR(found.stat.mode)) {
        AUTO(inode) inode = inode_get(xl->graph->inodes, &found.stat.gfid);
        ret = inode ? need(xl, call, inode, ACL_WRITE) : -ENOMEM;
    }
    lookup_reply_fini(&found);
    return ret < 0 ? ret : 0;
}

static int control_rename(struct xlator *xl, struct call *call, const struct rename_args *in,
                          struct rename_reply *out)
{
    int ret = need_removal(xl, call, in->oldparent, in->oldname, false);
    if (ret == 0)
        ret = need_removal(xl, call, in->newparent, in->newname, true);
    if (ret == 0)
        ret = need_move(xl, call, in);
    return ret < 0 ? ret : fop_rename(first_child(xl), call, in, out);
}

/* --- contents -------------------------------------------------------------------------------- */
static int control_open(struct xlator *xl, struct call *call, const struct open_args *in,
                        struct open_reply *out)
{
    int ret = need(xl, call, in->inode, want_of(in->flags));
    return ret < 0 ? ret : fop_open(first_child(xl), call, in, out);
}

static int control_opendir(struct xlator *xl, struct call *call, const struct opendir_args *in,
                           struct opendir_reply *out)
{
    int ret = need(xl, call, in->inode, ACL_READ);
    return ret < 0 ? ret : fop_opendir(first_child(xl), call, in, out);
}

static int control_truncate(struct xlator *xl, struct call *call, const struct truncate_args *in,
                            struct truncate_reply *out)
{
    int ret = need(xl, call, in->inode, ACL_WRITE);
    return ret < 0 ? ret : fop_truncate(first_child(xl), call, in, out);
}

static int control_access(struct xlator *xl, struct call *call, const struct access_args *in,
                          struct access_reply *out)
{
    struct iatt stat;
    int ret = stat_of(xl, call, in->inode, &stat);

    (void)out;
    return ret < 0 || in->mask == 0 ? ret : judge(xl, call, in->inode, &stat, in->mask & 7);
}

/* --- attributes ------------------------------------------------------------------------------ */
/* A kernel that truncates a set-id file for who may write it takes these bits by a chmod. */
static bool only_loses_setid(uint32_t from, uint32_t to)
{
    uint32_t without = from & 07777 & ~(uint32_t)(MODE_SETUID | MODE_SETGID);
    return (from & (MODE_SETUID | MODE_SETGID)) && ((to & 07777) == without ||
           (to & 07777) == (without | (from & MODE_SETGID)));
}

static int judge_setattr(struct xlator *xl, struct call *call, struct inode *inode,
                         const struct iatt *to, int32_t valid)
{
    struct iatt stat;

    if (passes(xl, call))
        return 0;
    int ret = stat_of(xl, call, inode, &stat);
    if (ret < 0)
        return ret;
    bool owner = stat.uid == call->uid;
    if ((valid & VALID_MODE) && !owner)
        return only_loses_setid(stat.mode, to->mode) && !(valid & (VALID_UID | VALID_GID))
                   ? judge(xl, call, inode, &stat, ACL_WRITE)
                   : -EPERM;
    if ((valid & VALID_UID) && !(owner && to->uid == stat.uid))
        return -EPERM;
    if ((valid & VALID_GID) && !(owner && (to->gid == stat.gid || call_in_group(call, to->gid))))
        return -EPERM;
    /* "now" looks like any time on the wire: who may write may set times */
    if ((valid & (VALID_ATIME | VALID_MTIME)) && !owner)
        return judge(xl, call, inode, &stat, ACL_WRITE);
    if ((valid & VALID_SIZE))
        return judge(xl, call, inode, &stat, ACL_WRITE);
    return 0;
}

/* Only members of a file's group can make it run with the group's rights: for others the bit is
 * left out, as chmod(2) does. */
static int drop_setgid(struct xlator *xl, struct call *call, struct inode *inode, int32_t valid,
                       struct iatt *to)
{
    struct iatt stat;

    if (passes(xl, call) || !(valid & VALID_MODE) || !(to->mode & MODE_SETGID))
        return 0;
    int ret = stat_of(xl, call, inode, &stat);
    if (ret == 0 && !call_in_group(call, stat.gid))
        to->mode &= ~(uint32_t)MODE_SETGID;
    return ret;
}

static int control_setattr(struct xlator *xl, struct call *call, const struct setattr_args *in,
                           struct setattr_reply *out)
{
    struct setattr_args args = *in;
    int ret = judge_setattr(xl, call, in->inode, &in->stat, in->valid);
    if (ret == 0)
        ret = drop_setgid(xl, call, in->inode, in->valid, &args.stat);
    return ret < 0 ? ret : fop_setattr(first_child(xl), call, &args, out);
}

static int control_fsetattr(struct xlator *xl, struct call *call, const struct fsetattr_args *in,
                            struct fsetattr_reply *out)
{
    struct fsetattr_args args = *in;
    int ret = judge_setattr(xl, call, in->fd->inode, &in->stat, in->valid);
    if (ret == 0)
        ret = drop_setgid(xl, call, in->fd->inode, in->valid, &args.stat);
    return ret < 0 ? ret : fop_fsetattr(first_child(xl), call, &args, out);
}

static int need_owner_or_write(struct xlator *xl, struct call *call, struct inode *inode)
{
    int ret = need_owner(xl, call, inode);
    return ret == -EPERM ? need(xl, call, inode, ACL_WRITE) : ret;
}

/* ACLs are the owner's; user.* needs write permission, labels that or ownership; the rest (names
 * that clustering translators made up) is judged by nobody here. */
static int judge_xattr(struct xlator *xl, struct call *call, struct inode *inode, const char *name)
{
    if (strcmp(name, ACL_ACCESS) == 0 || strcmp(name, ACL_DEFAULT) == 0)
        return need_owner(xl, call, inode);
    if (strncmp(name, "user.", 5) == 0)
        return need(xl, call, inode, ACL_WRITE);
    if (strncmp(name, "security.", 9) == 0)
        return need_owner_or_write(xl, call, inode);
    if (strncmp(name, "trusted.", 8) == 0)
        return passes(xl, call) ? 0 : -EPERM;
    return 0;
}

static int judge_dict(struct xlator *xl, struct call *call, struct inode *inode,
                      const struct dict *dict)
{
    const struct dict_value *value;
    const char *name;
    int ret = 0;

    for (uint32_t i = 0; ret == 0 && (name = dict_at(dict, i, &value)) != NULL; i++)
        ret = judge_xattr(xl, call, inode, name);
    return ret;
}

static int control_setxattr(struct xlator *xl, struct call *call, const struct setxattr_args *in,
                            struct setxattr_reply *out)
{
    int ret = judge_dict(xl, call, in->inode, in->dict);
    return ret < 0 ? ret : fop_setxattr(first_child(xl), call, in, out);
}

static int control_fsetxattr(struct xlator *xl, struct call *call, const struct fsetxattr_args *in,
                             struct fsetxattr_reply *out)
{
    int ret = judge_dict(xl, call, in->fd->inode, in->dict);
    return ret < 0 ? ret : fop_fsetxattr(first_child(xl), call, in, out);
}

static int control_removexattr(struct xlator *xl, struct call *call,
                               const struct removexattr_args *in, struct removexattr_reply *out)
{
    int ret = judge_xattr(xl, call, in->inode, in->name);
    return ret < 0 ? ret : fop_removexattr(first_child(xl), call, in, out);
}

static int control_fremovexattr(struct xlator *xl, struct call *call,
                                const struct fremovexattr_args *in, struct fremovexattr_reply *out)
{
    int ret = judge_xattr(xl, call, in->fd->inode, in->name);
    return ret < 0 ? ret : fop_fremovexattr(first_child(xl), call, in, out);
}

static int control_getxattr(struct xlator *xl, struct call *call, const struct getxattr_args *in,
                            struct getxattr_reply *out)
{
    if (in->name && strncmp(in->name, "user.", 5) == 0) {
        int ret = need(xl, call, in->inode, ACL_READ);
        if (ret < 0)
            return ret;
    }
    return fop_getxattr(first_child(xl), call, in, out);
}

static const struct option control_options[] = {
    OPTION_INT(struct access_control, super_uid, "super-uid", .fallback = "0", .flags = OPTION_LIVE,
               .help = "Whom permissions do not hold."),
    OPTION_END,
};

const struct xlator_type xlator_features_access_control = {
    .name = "features/access-control",
    .aliases = { "system/posix-acl" },
    .state_size = sizeof(struct access_control),
    .options = control_options,
    .children_min = 1,
    .children_max = 1,
    .fops = {
        .lookup = control_lookup,
        .mknod = control_mknod,
        .mkdir = control_mkdir,
        .symlink = control_symlink,
        .link = control_link,
        .create = control_create,
        .unlink = control_unlink,
        .rmdir = control_rmdir,
        .rename = control_rename,
        .open = control_open,
        .opendir = control_opendir,
        .truncate = control_truncate,
        .access = control_access,
        .setattr = control_setattr,
        .fsetattr = control_fsetattr,
        .setxattr = control_setxattr,
        .fsetxattr = control_fsetxattr,
        .removexattr = control_removexattr,
        .fremovexattr = control_fremovexattr,
        .getxattr = control_getxattr,
    },
};
