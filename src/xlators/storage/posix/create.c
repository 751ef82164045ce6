/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CREATE, MKNOD, SYMLINK, MKDIR: how an entry comes into the tree (DESIGN section 7).
 *
 *   file      O_TMPFILE in the parent, as the caller --+
 *   node,                                               +-> label -> link handle -> link name
 *   symlink   made in unlink/<gfid>.new ----------------+            (then remove .new; a
 *                                                                     symlink: name, handle)
 *   directory mkdir in place, as the caller -> label -> handle
 *
 * All under the name's lock, so look-ups that find something without a label wait for its maker. At
 * any crash point a genuine brick finds: nothing; a handle without a name (dropped at its next
 * nameless look-up); or an unlabelled empty directory (labelled, or replaced, at the next look-
 * up). */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "xlators/storage/posix/entry.h"
#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/xattr.h"

struct birth {
    struct posix *posix;
    struct call *call;
    struct dict *xdata;
    const char *name;
    struct parent parent;
    gfid_t gfid;
    mode_t mode;              /* with the type */
    int fd;                   /* the new object: of a file a descriptor, else O_PATH; -1 */
    struct object object;
    char temp[UUID_TEXT_SIZE + 4]; /* its name in unlink/, "" for none */
    struct mdata mdata;
    bool has_mdata;
};

static void drop_temp(struct birth *birth)
{
    if (birth->temp[0])
        best_effort(env_unlinkat(birth->posix->unlink_fd, birth->temp, 0)); /* else at the start */
    birth->temp[0] = '\0';
}

static void birth_fini(struct birth *birth)
{
    drop_temp(birth);
    if (birth->fd >= 0)
        env_close(birth->fd);
    parent_fini(&birth->parent);
}
#define BIRTH __attribute__((cleanup(birth_fini))) struct birth

/* --- before ----------------------------------------------------------------------------------- */
static int wanted_gfid(struct birth *birth)
{
    int ret = dict_get_gfid(birth->xdata, "gfid-req", &birth->gfid);
    if (ret == 0 && !gfid_is_null(&birth->gfid))
        return 0;
    if (birth->call->pid != PID_TRASH)
        return -EINVAL;
    gfid_generate(&birth->gfid);
    return 0;
}

/* distribute's check that the client knows the parent's layout (spec/wire.md 4.3). */
static int check_layout(struct birth *birth, struct dict **ret_xdata)
{
    const char *key = dict_get_str(birth->xdata, "glusterfs.preop.parent.key");
    const struct dict_value *wanted = key ? dict_get(birth->xdata, key) : NULL;
    char stored[256];

    if (!wanted || !wanted->data)
        return 0;
    ssize_t ret = env_fgetxattr(birth->parent.dir->fd, key, stored, sizeof(stored));
    if (ret == (ssize_t)wanted->bytes && memcmp(stored, wanted->data, wanted->bytes) == 0)
        return 0;
    if (!*ret_xdata)
        *ret_xdata = dict_new();
    if (*ret_xdata)
        /* the errno remains */
        best_effort(dict_set_int(*ret_xdata, "glusterfs.preop.check.failed", 1));
    return -EIO;
}

static int birth_begin(struct birth *birth, struct inode *parent, struct iatt *ret_pre,
                       struct dict **ret_xdata)
{
    struct posix *posix = birth->posix;

    int ret = posix_room(posix, birth->call, birth->xdata);
    if (ret == 0)
        ret = wanted_gfid(birth);
    if (ret == 0)
        ret = parent_begin(posix, parent, birth->name, &birth->parent, ret_pre);
    if (ret == 0)
        ret = check_layout(birth, ret_xdata);
    return ret;
}

/* The client's umask counts only where no default ACL does (spec/wire.md 4.1). */
static mode_t without_umask(const struct birth *birth, mode_t mode, mode_t umask)
{
    if (umask == 0 ||
        env_fgetxattr(birth->parent.dir->fd, "system.posix_acl_default", NULL, 0) > 0)
        return mode;
    return mode & ~(umask & 0777);
}

static mode_t file_mode(const struct birth *birth, mode_t mode, mode_t umask)
{
    mode = without_umask(birth, mode, umask);
    return ((mode & ~0777u) | (mode & 0777 & (mode_t)birth->posix->create_mask)) |
           (mode_t)birth->posix->force_create_mode;
}

static mode_t directory_mode(const struct birth *birth, mode_t mode, mode_t umask)
{
    mode = without_umask(birth, mode, umask);
    return ((mode & ~0777u) | (mode & 0777 & (mode_t)birth->posix->create_directory_mask)) |
           (mode_t)birth->posix->force_directory_mode;
}

/* --- as the caller ---------------------------------------------------------------------------- */
/* Root may do anything, and so does the daemon for it: no other identity is needed. */
static bool is_root(const struct birth *birth)
{
    return birth->call->uid == 0;
}

/* What the daemon makes has the caller's owner and group already. */
static bool is_self(const struct birth *birth)
{
    return birth->call->uid == birth->posix->own_uid && birth->call->gid == birth->posix->own_gid;
}

static int become_caller(const struct call *call)
{
    return env_identity_set(call->uid, call->gid, call->groups, call->group_count);
}

/* The open or mkdir itself, so that the kernel judges, and gives owner, group, ACL and label. */
static int open_as_caller(const struct birth *birth, int flags, mode_t mode)
{
    int dir = birth->parent.dir->fd;

    if (is_root(birth))
        return env_openat(dir, ".", flags, mode);
    int ret = become_caller(birth->call);
    if (ret < 0)
        return ret;
    ret = env_openat(dir, ".", flags, mode);
    env_identity_restore();
    return ret;
}

static int mkdir_as_caller(const struct birth *birth, mode_t mode)
{
    int dir = birth->parent.dir->fd;

    if (is_root(birth))
        return env_mkdirat(dir, birth->name, mode);
    int ret = become_caller(birth->call);
    if (ret < 0)
        return ret;
    ret = env_mkdirat(dir, birth->name, mode);
    env_identity_restore();
    return ret;
}

static int may_caller_write(const struct birth *birth)
{
    if (is_root(birth))
        return 0;
    int ret = become_caller(birth->call);
    if (ret < 0)
        return ret;
    ret = env_faccessat(birth->parent.dir->fd, ".", W_OK | X_OK, AT_EACCESS);
    env_identity_restore();
    return ret;
}

/* --- the object, not yet in the tree ---------------------------------------------------------- */
static int make_node(const struct birth *birth, dev_t dev, const char *target)
{
    int dir = birth->posix->unlink_fd;

    best_effort(env_unlinkat(dir, birth->temp, 0)); /* of a try that crashed */
    if (target)
        return env_symlinkat(target, dir, birth->temp);
    if ((S_ISCHR(birth->mode) || S_ISBLK(birth->mode)) && birth->call->uid != 0)
        return -EPERM;
    return env_mknodat(dir, birth->temp, birth->mode, dev);
}

struct acl_entry { /* of the kernel's version 2 value, behind four bytes; little-endian */
    uint16_t tag, perm;
    uint32_t id;
};
enum { ACL_OWNER = 1, ACL_OWNING_GROUP = 4, ACL_MASK = 16, ACL_OTHER = 32, ACL_ENTRIES_MAX = 512 };

/* One class of the mode meets its entry: both keep what both allow. */
static void meet(struct acl_entry *entry, mode_t *mode, int shift)
{
    mode_t both = le16toh(entry->perm) & (*mode >> shift) & 7;
    entry->perm = htole16((uint16_t)both);
    *mode = (*mode & ~((mode_t)7 << shift)) | both << shift;
}

/* What acl(5) says of an object made under a default ACL; the mode is narrowed with it. */
static void acl_inherit(struct acl_entry *entries, size_t count, mode_t *mode)
{
    struct acl_entry *group = NULL, *mask = NULL;

    for (size_t i = 0; i < count; i++)
        switch (le16toh(entries[i].tag)) {
        case ACL_OWNER:
            meet(&entries[i], mode, 6);
            break;
        case ACL_OTHER:
            meet(&entries[i], mode, 0);
            break;
        case ACL_OWNING_GROUP:
            group = &entries[i];
            break;
        case ACL_MASK:
            mask = &entries[i];
            break;
        default:
            break;
        }
    if (mask || group)
        meet(mask ? mask : group, mode, 3);
}

/* The kernel inherits a default ACL into what is made in the parent; a node is made elsewhere. */
static int inherit_acl(struct birth *birth)
{
    struct {
        uint32_t version;
        struct acl_entry entries[ACL_ENTRIES_MAX];
    } acl;

    ssize_t bytes = env_fgetxattr(birth->parent.dir->fd, "system.posix_acl_default", &acl,
                                  sizeof(acl));
    if (bytes < (ssize_t)sizeof(acl.version))
        return 0; /* none; what cannot be read is not inherited */
    acl_inherit(acl.entries, ((size_t)bytes - sizeof(acl.version)) / sizeof(acl.entries[0]),
                &birth->mode);
    return object_setxattr(&birth->object, "system.posix_acl_access", &acl, (size_t)bytes, 0);
}

/* Owner and mode as if it had been made in the parent by the caller. */
static int adopt(struct birth *birth)
{
    struct stat parent;
    int ret = env_fstat(birth->parent.dir->fd, &parent);
    if (ret < 0)
        return ret;
    gid_t gid = parent.st_mode & S_ISGID ? parent.st_gid : birth->call->gid;
    ret = object_chown(&birth->object, birth->call->uid, gid);
    if (ret < 0 || S_ISLNK(birth->mode) || S_ISDIR(birth->mode) || !(birth->mode & 07000))
        return ret;
    struct stat now; /* its owner's change took the set-id bits */
    ret = object_stat(&birth->object, &now);
    return ret < 0 ? ret
                   : object_chmod(&birth->object, (now.st_mode & 0777) | (birth->mode & 07000));
}

static int adopt_node(struct birth *birth)
{
    if (!S_ISLNK(birth->mode)) {
        int ret = inherit_acl(birth);
        if (ret < 0)
            return ret;
    }
    return adopt(birth);
}

static int conceive_node(struct birth *birth, dev_t dev, const char *target)
{
    char gfid[UUID_TEXT_SIZE];

    int ret = may_caller_write(birth);
    if (ret < 0)
        return ret;
    snprintf(birth->temp, sizeof(birth->temp), "%s.new", gfid_format(&birth->gfid, gfid));
    ret = make_node(birth, dev, target);
    if (ret < 0) {
        birth->temp[0] = '\0';
        return ret;
    }
    birth->fd = env_openat(birth->posix->unlink_fd, birth->temp,
                           O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (birth->fd < 0)
        return birth->fd;
    birth->object = object_path_fd(birth->fd);
    return adopt_node(birth);
}

/* Without O_TMPFILE (some network and overlay file systems) a file is made as nodes are. */
static int conceive_file_without_tmpfile(struct birth *birth, int flags)
{
    char path[32];

    int ret = conceive_node(birth, 0, NULL);
    if (ret < 0)
        return ret;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", birth->fd);
    int fd = env_openat(AT_FDCWD, path, flags, 0);
    if (fd < 0)
        return fd;
    env_close(birth->fd);
    birth->fd = fd;
    birth->object = object_fd(fd);
    return 0;
}

static int conceive_file(struct birth *birth, int flags)
{
    flags = (flags & ~(O_ACCMODE | O_TRUNC | O_NOFOLLOW)) | O_RDWR | O_CLOEXEC;
    birth->fd = open_as_caller(birth, flags | O_TMPFILE, birth->mode & 07777);
    if (birth->fd == -EOPNOTSUPP || birth->fd == -EISDIR)
        return conceive_file_without_tmpfile(birth, flags);
    if (birth->fd < 0)
        return birth->fd;
    birth->object = object_fd(birth->fd);
    return is_root(birth) && !is_self(birth) ? adopt(birth) : 0;
}

/* --- label, handle, name ---------------------------------------------------------------------- */
static int label_times(struct birth *birth)
{
    uint8_t bytes[MDATA_BYTES];

    birth->has_mdata =
        mdata_fresh(birth->posix, birth->call, birth->xdata, &birth->mdata);
    if (!birth->has_mdata)
        return 0;
    mdata_encode(&birth->mdata, bytes);
    return object_setxattr(&birth->object, XATTR_MDATA, bytes, sizeof(bytes), 0);
}

static int label(struct birth *birth)
{
    int ret = xattr_store_dict(birth->posix, &birth->object, birth->xdata, birth->mode & S_IFMT);
    if (ret < 0)
        return ret;
    ret = label_times(birth);
    if (ret < 0)
        return ret;
    if (!S_ISDIR(birth->mode)) {
        gfid2path_add(birth->posix, &birth->object, &birth->parent.inode->gfid, birth->name);
        pgfid_add(birth->posix, &birth->object, &birth->parent.inode->gfid, 1);
    }
    return object_setxattr(&birth->object, XATTR_GFID, &birth->gfid, sizeof(birth->gfid), 0);
}

/* The handle first: a death in between leaves what the next nameless look-up drops; the inode's
 * lock keeps such a look-up from dropping ours. A symlink gets its name first: its handle alone
 * would be taken for a directory's, and a missing one is made by the next look-up of the name. */
static int deliver(struct birth *birth)
{
    struct posix *posix = birth->posix;
    STRIPES_HELD held = inodes_lock(posix, &birth->gfid, NULL);
    int dir = birth->parent.dir->fd, ret;

    if (S_ISLNK(birth->mode)) {
        ret = object_link(&birth->object, dir, birth->name);
        if (ret == 0 && (ret = handle_link_file(posix, &birth->gfid, &birth->object)) < 0)
            best_effort(env_unlinkat(dir, birth->name, 0)); /* the failure is told all the same */
    } else {
        ret = handle_link_file(posix, &birth->gfid, &birth->object);
        if (ret == 0 && (ret = object_link(&birth->object, dir, birth->name)) < 0)
            /* the object goes with its descriptor */
            best_effort(handle_unlink(posix, &birth->gfid));
    }
    drop_temp(birth); /* still locked: whoever unlinks next must count the links right */
    return ret;
}

/* The new object as the client sees it; its inode is shared with the caller. */
static int present(struct birth *birth, struct inode **ret_inode, struct iatt *ret_stat,
                   struct iatt *ret_post)
{
    struct posix *posix = birth->posix;
    AUTO(inode) inode = inode_get(posix->xl->graph->inodes, &birth->gfid);
    struct node *node = inode ? node_get(posix, inode) : NULL;
    if (!node)
        return -ENOMEM;
    node_reset(posix, node);
    node->is_unlinked = false;
    node->has_handle = true;
    mdata_born(node, birth->has_mdata ? &birth->mdata : NULL);
    inode->type = birth->mode & S_IFMT;
    int ret = stat_iatt(posix, node, &birth->object, ret_stat);
    if (ret < 0)
        return ret;
    parent_touch(posix, &birth->parent, birth->call, birth->xdata, ret_post);
    if (ret_inode)
        *ret_inode = TAKE(inode);
    return 0;
}

/* --- CREATE ----------------------------------------------------------------------------------- */
static int open_existing(struct birth *birth, const struct create_args *in,
                         struct create_reply *out)
{
    struct posix *posix = birth->posix;
    struct stat st;
    gfid_t gfid;

    AUTO_FD fd = env_openat(birth->parent.dir->fd, birth->name,
                            open_flags(in->flags) | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    struct object object = object_fd(fd);
    int ret = env_fstat(fd, &st);
    if (ret == 0 && S_ISDIR(st.st_mode))
        ret = -EISDIR;
    if (ret == 0 && !S_ISREG(st.st_mode))
        ret = -ENXIO;
    if (ret == 0)
        ret = object_gfid(&object, &gfid);
    if (ret < 0)
        return ret == -ENODATA ? -EIO : ret;
    AUTO(inode) inode = inode_get(posix->xl->graph->inodes, &gfid);
    struct node *node = inode ? node_get(posix, inode) : NULL;
    if (!node)
        return -ENOMEM;
    mdata_load(posix, node, &object);
    if (in->flags & O_TRUNC)
        mdata_touch(posix, node, birth->call, in->xdata, TIMES_CTIME | TIMES_MTIME);
    iatt_fill(posix, node, &st, &out->stat);
    fd_bind(in->fd, inode);
    ret = env_fstat(birth->parent.dir->fd, &st);
    if (ret < 0)
        return ret;
    iatt_fill(posix, birth->parent.node, &st, &out->postparent);
    return open_file_bind(posix, in->fd, node, TAKE_FD(fd), in->flags);
}

/* Is there something by that name? Left-overs of a crash are cleared away. */
static int name_is_taken(struct birth *birth)
{
    struct stat st;
    int dir = birth->parent.dir->fd;

    int ret = env_fstatat(dir, birth->name, &st, AT_SYMLINK_NOFOLLOW);
    if (ret == -ENOENT)
        return 0;
    return ret < 0 ? ret : entry_clear(birth->posix, dir, birth->name);
}

static int create_new(struct birth *birth, const struct create_args *in, struct create_reply *out)
{
    AUTO(inode) inode = NULL;

    birth->mode = S_IFREG | file_mode(birth, in->mode & 07777, in->umask);
    int ret = conceive_file(birth, open_flags(in->flags));
    if (ret == 0)
        ret = label(birth);
    if (ret == 0)
        ret = deliver(birth);
    if (ret == 0)
        ret = present(birth, &inode, &out->stat, &out->postparent);
    if (ret < 0)
        return ret;
    fd_bind(in->fd, inode);
    return open_file_bind(birth->posix, in->fd, node_find(birth->posix, inode),
                          TAKE_FD(birth->fd), in->flags);
}

static int create_work(struct posix *posix, struct call *call, const struct create_args *in,
                       struct create_reply *out)
{
    BIRTH birth = {
        .posix = posix, .call = call, .xdata = in->xdata, .name = in->name, .fd = -1,
    };
    int ret = birth_begin(&birth, in->parent, &out->preparent, &out->xdata);
    if (ret < 0)
        return ret;
    STRIPES_HELD held = names_lock(posix, &in->parent->gfid, in->name);
    ret = name_is_taken(&birth);
    if (ret == -EEXIST && !(in->flags & O_EXCL))
        return open_existing(&birth, in, out);
    return ret < 0 ? ret : create_new(&birth, in, out);
}
POSIX_HOP(create)

/* --- MKNOD, SYMLINK --------------------------------------------------------------------------- */
/* Heal and rebalance give an object that exists here one more name by its gfid. */
static int link_existing(struct birth *birth, bool *ret_done)
{
    struct posix *posix = birth->posix;
    char path[HANDLE_PATH_SIZE], unlinked[UUID_TEXT_SIZE];
    struct stat st;

    STRIPES_HELD held = inodes_lock(posix, &birth->gfid, NULL);
    handle_path(&birth->gfid, path);
    gfid_format(&birth->gfid, unlinked);
    int dir = handle_dir_fd(posix, &birth->gfid);
    int ret = env_fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW);
    if (ret == -ENOENT) {
        ret = env_renameat2(posix->unlink_fd, unlinked, dir, path, 0);
        if (ret == 0)
            ret = env_fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW);
    }
    if (ret == -ENOENT || (ret == 0 && st.st_nlink == 1 && S_ISLNK(st.st_mode)))
        return 0;
    if (ret < 0)
        return ret;
    birth->object = object_at(dir, path);
    birth->mode = st.st_mode;
    ret = object_link(&birth->object, birth->parent.dir->fd, birth->name);
    if (ret < 0)
        return ret;
    gfid2path_add(posix, &birth->object, &birth->parent.inode->gfid, birth->name);
    pgfid_add(posix, &birth->object, &birth->parent.inode->gfid, 1);
    *ret_done = true;
    return 0;
}

static int present_existing(struct birth *birth, struct mknod_reply *out)
{
    struct posix *posix = birth->posix;
    LOCATED located = {};

    AUTO(inode) inode = inode_get(posix->xl->graph->inodes, &birth->gfid);
    if (!inode)
        return -ENOMEM;
    int ret = locate(posix, inode, &located);
    if (ret < 0)
        return ret;
    located.node->is_unlinked = false;
    located_iatt(posix, &located, &out->stat);
    parent_touch(posix, &birth->parent, birth->call, birth->xdata, &out->postparent);
    return 0;
}

static int mknod_new(struct birth *birth, const struct mknod_args *in, struct mknod_reply *out)
{
    int ret;

    if (S_ISREG(birth->mode))
        ret = conceive_file(birth, O_RDWR);
    else
        ret = conceive_node(birth, (dev_t)in->dev, NULL);
    if (ret == 0)
        ret = label(birth);
    if (ret == 0)
        ret = deliver(birth);
    return ret < 0 ? ret : present(birth, NULL, &out->stat, &out->postparent);
}

static int mknod_work(struct posix *posix, struct call *call, const struct mknod_args *in,
                      struct mknod_reply *out)
{
    BIRTH birth = {
        .posix = posix, .call = call, .xdata = in->xdata, .name = in->name, .fd = -1,
    };
    bool is_existing = false;

    int ret = birth_begin(&birth, in->parent, &out->preparent, &out->xdata);
    if (ret < 0)
        return ret;
    birth.mode = file_mode(&birth, in->mode, in->umask);
    if ((birth.mode & S_IFMT) == 0)
        birth.mode |= S_IFREG;
    STRIPES_HELD held = names_lock(posix, &in->parent->gfid, in->name);
    ret = name_is_taken(&birth);
    if (ret == 0 && posix_is_internal(in->xdata))
        ret = link_existing(&birth, &is_existing);
    if (ret < 0)
        return ret;
    return is_existing ? present_existing(&birth, out) : mknod_new(&birth, in, out);
}
POSIX_HOP(mknod)

static int symlink_work(struct posix *posix, struct call *call, const struct symlink_args *in,
                        struct symlink_reply *out)
{
    BIRTH birth = {
        .posix = posix, .call = call, .xdata = in->xdata, .name = in->name, .fd = -1,
        .mode = S_IFLNK | 0777,
    };
    int ret = birth_begin(&birth, in->parent, &out->preparent, &out->xdata);
    if (ret < 0)
        return ret;
    STRIPES_HELD held = names_lock(posix, &in->parent->gfid, in->name);
    ret = name_is_taken(&birth);
    if (ret == 0)
        ret = conceive_node(&birth, 0, in->target);
    if (ret == 0)
        ret = label(&birth);
    if (ret == 0)
        ret = deliver(&birth);
    return ret < 0 ? ret : present(&birth, NULL, &out->stat, &out->postparent);
}
POSIX_HOP(symlink)

/* --- MKDIR ------------------------------------------------------------------------------------ */
static int mkdir_label(struct birth *birth)
{
    birth->fd = env_openat(birth->parent.dir->fd, birth->name,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (birth->fd < 0)
        return birth->fd;
    birth->object = object_fd(birth->fd);
    int ret = is_root(birth) && !is_self(birth) ? adopt(birth) : 0;
    if (ret == 0)
        ret = label(birth);
    if (ret < 0)
        return ret;
    STRIPES_HELD held = inodes_lock(birth->posix, &birth->gfid, NULL);
    return handle_link_dir(birth->posix, &birth->gfid, &birth->parent.inode->gfid, birth->name);
}

static int mkdir_work(struct posix *posix, struct call *call, const struct mkdir_args *in,
                      struct mkdir_reply *out)
{
    BIRTH birth = {
        .posix = posix, .call = call, .xdata = in->xdata, .name = in->name, .fd = -1,
    };
    int ret = birth_begin(&birth, in->parent, &out->preparent, &out->xdata);
    if (ret < 0)
        return ret;
    birth.mode = S_IFDIR | directory_mode(&birth, in->mode & 07777, in->umask);
    STRIPES_HELD held = names_lock(posix, &in->parent->gfid, in->name);
    ret = name_is_taken(&birth);
    if (ret == 0)
        ret = mkdir_as_caller(&birth, birth.mode & 07777);
    if (ret < 0)
        return ret;
    ret = mkdir_label(&birth);
    if (ret == 0)
        ret = present(&birth, NULL, &out->stat, &out->postparent);
    if (ret < 0) {
        best_effort(env_unlinkat(birth.parent.dir->fd, in->name, AT_REMOVEDIR)); /* it is empty */
        handle_unlink_dir(posix, &birth.gfid, &in->parent->gfid, in->name);
    }
    return ret;
}
POSIX_HOP(mkdir)
