/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/brick.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/health.h"

enum { DIR_MODE_TOP = 0700, DIR_MODE_UNLINK = 0600, DIR_MODE_LANDFILL = 0755 };

/* --- the directory ---------------------------------------------------------------------------- */
static int open_directory(struct posix *posix)
{
    struct stat st;

    posix->root_fd = env_openat(AT_FDCWD, posix->directory, O_RDONLY | O_CLOEXEC, 0);
    int ret = posix->root_fd < 0 ? posix->root_fd : env_fstat(posix->root_fd, &st);
    if (ret == -ENOENT) {
        log_error(posix->xl, ret, "brick directory %s does not exist: create it, or mount the disk "
                  "that holds it, and start again", posix->directory);
        return ret;
    }
    if (ret < 0) {
        log_error(posix->xl, ret, "brick directory %s cannot be opened: check its permissions and "
                  "its disk", posix->directory);
        return ret;
    }
    if (!S_ISDIR(st.st_mode)) {
        log_error(posix->xl, -ENOTDIR, "brick directory %s is not a directory: name the directory "
                  "that holds the brick", posix->directory);
        return -ENOTDIR;
    }
    posix->root_dev = st.st_dev;
    posix->root_ino = st.st_ino;
    return 0;
}

static int check_xattrs(struct posix *posix)
{
    char value;
    ssize_t ret = env_fgetxattr(posix->root_fd, "user.x", &value, sizeof(value));

    if (ret != -EOPNOTSUPP)
        return 0;
    if (!posix->mandate_attribute) {
        log_warn(posix->xl, (int)ret, "brick directory %s lies on a file system without extended "
                 "attributes: nothing can be labelled", posix->directory);
        return 0;
    }
    log_error(posix->xl, (int)ret, "brick directory %s lies on a file system without extended "
              "attributes: use XFS or ext4, or mount it with user_xattr", posix->directory);
    return (int)ret;
}

static int check_volume_id(struct posix *posix)
{
    char wanted_text[UUID_TEXT_SIZE], found_text[UUID_TEXT_SIZE];
    gfid_t wanted, found;

    if (!posix->volume_id)
        return 0;
    if (gfid_parse(posix->volume_id, &wanted) < 0) {
        log_error(posix->xl, -EINVAL, "option volume-id %s of brick directory %s is not a uuid: "
                  "correct the volfile", posix->volume_id, posix->directory);
        return -EINVAL;
    }
    ssize_t ret = env_fgetxattr(posix->root_fd, XATTR_VOLUME_ID, &found, sizeof(found));
    if (ret == -ENODATA || ret == -EOPNOTSUPP) {
        log_error(posix->xl, (int)ret, "brick directory %s carries no volume id (wanted %s): is "
                  "its disk mounted? If the directory is new, create the brick with gluster",
                  posix->directory, gfid_format(&wanted, wanted_text));
        return (int)ret;
    }
    if (ret < 0) {
        log_error(posix->xl, (int)ret, "the volume id of brick directory %s cannot be read: the "
                  "process needs CAP_SYS_ADMIN for trusted attributes", posix->directory);
        return (int)ret;
    }
    if (ret == sizeof(found) && gfid_equal(&wanted, &found))
        return 0;
    log_error(posix->xl, -EINVAL, "brick directory %s belongs to another volume: its volume id is "
              "%s, the volfile says %s; name the right directory", posix->directory,
              ret == sizeof(found) ? gfid_format(&found, found_text) : "malformed",
              gfid_format(&wanted, wanted_text));
    return -EINVAL;
}

static int check_root_gfid(struct posix *posix)
{
    char text[UUID_TEXT_SIZE];
    gfid_t found;

    ssize_t ret = env_fgetxattr(posix->root_fd, XATTR_GFID, &found, sizeof(found));
    if (ret == -ENODATA) {
        ret = env_fsetxattr(posix->root_fd, XATTR_GFID, &gfid_root, sizeof(gfid_root),
                            XATTR_CREATE);
        if (ret == 0)
            return 0;
        log_error(posix->xl, (int)ret, "brick directory %s cannot be labelled as a brick's root: "
                  "the process needs CAP_SYS_ADMIN, and a file system that it may write",
                  posix->directory);
        return (int)ret;
    }
    if (ret == sizeof(found) && gfid_is_root(&found))
        return 0;
    if (ret == sizeof(found) || ret == -ERANGE || ret >= 0) {
        log_error(posix->xl, -EINVAL, "brick directory %s carries the gfid %s, which is not a "
                  "root's: it lies inside another brick; name the brick's own top directory",
                  posix->directory,
                  ret == sizeof(found) ? gfid_format(&found, text) : "(malformed)");
        return -EINVAL;
    }
    log_error(posix->xl, (int)ret, "the gfid of brick directory %s cannot be read: the process "
              "needs CAP_SYS_ADMIN for trusted attributes", posix->directory);
    return (int)ret;
}

/* --- .glusterfs ------------------------------------------------------------------------------- */
static int make_dir(int dir, const char *name, mode_t mode, int *ret_fd)
{
    int ret = env_mkdirat(dir, name, mode);
    if (ret < 0 && ret != -EEXIST)
        return ret;
    int fd = env_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return 0;
}

static int open_handle_dirs(struct posix *posix)
{
    struct stat st;
    char name[3];

    int ret = make_dir(posix->root_fd, HANDLE_DIR, DIR_MODE_TOP, &posix->handle_fd);
    if (ret == 0)
        ret = env_fstat(posix->handle_fd, &st);
    if (ret < 0)
        return ret;
    posix->handle_ino = st.st_ino;
    for (int i = 0; i < 256 && ret == 0; i++) {
        snprintf(name, sizeof(name), "%02x", i);
        ret = make_dir(posix->handle_fd, name, DIR_MODE_TOP, &posix->first_fd[i]);
    }
    if (ret == 0)
        ret = make_dir(posix->handle_fd, "landfill", DIR_MODE_LANDFILL, &posix->landfill_fd);
    if (ret == 0)
        ret = make_dir(posix->handle_fd, "unlink", DIR_MODE_UNLINK, &posix->unlink_fd);
    return ret;
}

static int check_root_handle(struct posix *posix)
{
    static const char text[] = "../../..";
    char path[HANDLE_PATH_SIZE], resolved[HANDLE_PATH_SIZE + 2];
    struct stat st;

    handle_path(&gfid_root, path);
    int dir = handle_dir_fd(posix, &gfid_root);
    snprintf(resolved, sizeof(resolved), "%s/", path); /* through the link */
    int ret = env_fstatat(dir, resolved, &st, 0);
    if (ret == -ENOENT) {
        ret = env_mkdirat(dir, "00", DIR_MODE_TOP);
        if (ret < 0 && ret != -EEXIST)
            return ret;
        return env_symlinkat(text, dir, path);
    }
    if (ret < 0)
        return ret;
    if (st.st_dev == posix->root_dev && st.st_ino == posix->root_ino)
        return 0;
    log_error(posix->xl, -EINVAL, "%s/" HANDLE_DIR "/00/%s leads to another directory than the "
              "brick's root: the brick was copied or tampered with; remove that link and start "
              "again",
              posix->root_path, path);
    return -EINVAL;
}

static void clear_unlinked(struct posix *posix)
{
    union {
        struct dirent64 alignment;
        char bytes[8192];
    } buffer;
    ssize_t ret;

    AUTO_FD fd = env_openat(posix->unlink_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    while (fd >= 0 && (ret = env_getdents(fd, buffer.bytes, sizeof(buffer.bytes))) > 0)
        for (ssize_t at = 0; at < ret;) {
            struct dirent64 *entry = (struct dirent64 *)(void *)(buffer.bytes + at);
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                /* tried at every start */
                best_effort(env_unlinkat(posix->unlink_fd, entry->d_name, 0));
            at += entry->d_reclen;
        }
}

/* A landfill of the oldest releases lies in the root, without a gfid. */
static void adopt_old_landfill(struct posix *posix)
{
    struct object old = object_at(posix->root_fd, ".landfill");
    char name[UUID_TEXT_SIZE];
    struct stat st;
    gfid_t gfid;

    if (object_stat(&old, &st) < 0 || !S_ISDIR(st.st_mode) || object_gfid(&old, &gfid) != -ENODATA)
        return;
    gfid_generate(&gfid);
    int ret = env_renameat2(posix->root_fd, ".landfill", posix->landfill_fd,
                            gfid_format(&gfid, name), 0);
    if (ret < 0)
        log_warn(posix->xl, ret, "the old %s/.landfill stays where it is", posix->root_path);
}

/* Who we are, as the file system sees it: on a host where we are not root, root's files are not
 * ours by birth. */
static void learn_identity(struct posix *posix)
{
    struct stat st;

    posix->own_uid = (uid_t)-1;
    posix->own_gid = (gid_t)-1;
    AUTO_FD fd = env_openat(posix->unlink_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || env_fstat(fd, &st) < 0)
        return;
    posix->own_uid = st.st_uid;
    posix->own_gid = st.st_gid;
}

void brick_apply_owner(struct posix *posix)
{
    int64_t uid = posix->brick_uid, gid = posix->brick_gid;
    struct stat st;

    if ((uid < 0 && gid < 0) || env_fstat(posix->root_fd, &st) < 0 ||
        ((uid < 0 || st.st_uid == (uid_t)uid) && (gid < 0 || st.st_gid == (gid_t)gid)))
        return;
    int ret = env_fchownat(posix->root_fd, "", (uid_t)uid, (gid_t)gid, AT_EMPTY_PATH);
    if (ret < 0)
        log_warn(posix->xl, ret, "cannot give brick directory %s to owner %d:%d",
                 posix->directory, (int)uid, (int)gid);
}

int brick_attach(struct posix *posix)
{
    int ret = open_directory(posix);
    if (ret == 0)
        ret = check_xattrs(posix);
    if (ret == 0)
        ret = check_volume_id(posix);
    if (ret == 0)
        ret = check_root_gfid(posix);
    if (ret < 0)
        return ret;
    ret = open_handle_dirs(posix);
    if (ret == 0)
        ret = check_root_handle(posix);
    if (ret < 0) {
        log_error(posix->xl, ret, "%s/" HANDLE_DIR " cannot be made or opened: the brick's file "
                  "system must be writable, with free space and inodes", posix->root_path);
        return ret;
    }
    adopt_old_landfill(posix);
    clear_unlinked(posix);
    learn_identity(posix);
    brick_apply_owner(posix);
    return 0;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        env_close(*fd);
    *fd = -1;
}

void brick_detach(struct posix *posix)
{
    close_one(&posix->root_fd);
    close_one(&posix->handle_fd);
    close_one(&posix->unlink_fd);
    close_one(&posix->landfill_fd);
    for (int i = 0; i < 256; i++)
        close_one(&posix->first_fd[i]);
}
