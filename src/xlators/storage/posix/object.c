/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Extended attributes have no *at() calls: the path goes through /proc, which does not depend on
 * where the brick is mounted or what it is called. */
static const char *proc_path(const struct object *object, char text[OBJECT_PROC_BYTES])
{
    if (object->form == OBJECT_AT)
        snprintf(text, OBJECT_PROC_BYTES, "/proc/self/fd/%d/%s", object->at, object->path);
    else
        snprintf(text, OBJECT_PROC_BYTES, "/proc/self/fd/%d", object->at);
    return text;
}

/* The link of /proc itself must be followed; what it leads to is never a symlink's target. */
static bool proc_follow(const struct object *object)
{
    return object->form == OBJECT_PATH_FD;
}

static int at_flags(const struct object *object)
{
    return object->form == OBJECT_AT ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH;
}

int object_stat(const struct object *object, struct stat *ret_st)
{
    if (object->form == OBJECT_AT)
        return env_fstatat(object->at, object->path, ret_st, AT_SYMLINK_NOFOLLOW);
    return env_fstat(object->at, ret_st);
}

int object_chmod(const struct object *object, mode_t mode)
{
    char text[OBJECT_PROC_BYTES];

    if (object->form == OBJECT_FD)
        return env_fchmod(object->at, mode);
    if (object->form == OBJECT_PATH_FD)
        return env_fchmodat(AT_FDCWD, proc_path(object, text), mode, 0);
    return env_fchmodat(object->at, object->path, mode, 0); /* the caller knows: no symlink */
}

int object_chown(const struct object *object, uid_t uid, gid_t gid)
{
    return env_fchownat(object->at, object->path, uid, gid, at_flags(object));
}

int object_utimes(const struct object *object, const struct timespec times[2])
{
    return env_utimensat(object->at, object->path, times, at_flags(object));
}

int object_link(const struct object *object, int dir, const char *name)
{
    char text[OBJECT_PROC_BYTES];

    if (object->form == OBJECT_AT)
        return env_linkat(object->at, object->path, dir, name, 0);
    int ret = env_linkat(object->at, "", dir, name, AT_EMPTY_PATH);
    if (ret != -ENOENT && ret != -EPERM)
        return ret;
    /* an empty path asks for CAP_DAC_READ_SEARCH; /proc does not */
    return env_linkat(AT_FDCWD, proc_path(object, text), dir, name, AT_SYMLINK_FOLLOW);
}

ssize_t object_getxattr(const struct object *object, const char *name, void *value, size_t size)
{
    char text[OBJECT_PROC_BYTES];

    if (object->form == OBJECT_FD)
        return env_fgetxattr(object->at, name, value, size);
    return env_getxattr(proc_path(object, text), name, value, size, proc_follow(object));
}

int object_setxattr(const struct object *object, const char *name, const void *value, size_t size,
                    int flags)
{
    char text[OBJECT_PROC_BYTES];

    if (object->form == OBJECT_FD)
        return env_fsetxattr(object->at, name, value, size, flags);
    return env_setxattr(proc_path(object, text), name, value, size, flags, proc_follow(object));
}

int object_removexattr(const struct object *object, const char *name)
{
    char text[OBJECT_PROC_BYTES];

    if (object->form == OBJECT_FD)
        return env_fremovexattr(object->at, name);
    return env_removexattr(proc_path(object, text), name, proc_follow(object));
}

ssize_t object_listxattr(const struct object *object, char *names, size_t size)
{
    char text[OBJECT_PROC_BYTES];

    if (object->form == OBJECT_FD)
        return env_flistxattr(object->at, names, size);
    return env_listxattr(proc_path(object, text), names, size, proc_follow(object));
}

enum { LIST_BYTES_FIRST = 1024, VALUE_BYTES_FIRST = 256 };

int object_listxattr_all(const struct object *object, char **ret_names, size_t *ret_bytes)
{
    for (size_t size = LIST_BYTES_FIRST; size <= XATTR_LIST_BYTES_MAX; size *= 8) {
        AUTO_FREE char *names = malloc(size + 1);
        if (!names)
            return -ENOMEM;
        ssize_t ret = object_listxattr(object, names, size);
        if (ret == -ERANGE)
            continue;
        if (ret < 0)
            return (int)ret;
        names[ret] = '\0';
        *ret_names = TAKE(names);
        *ret_bytes = (size_t)ret;
        return 0;
    }
    return -E2BIG;
}

int object_getxattr_all(const struct object *object, const char *name, char **ret_value,
                        size_t *ret_bytes)
{
    for (size_t size = VALUE_BYTES_FIRST; size <= XATTR_VALUE_BYTES_MAX; size *= 16) {
        AUTO_FREE char *value = malloc(size + 1);
        if (!value)
            return -ENOMEM;
        ssize_t ret = object_getxattr(object, name, value, size);
        if (ret == -ERANGE)
            continue;
        if (ret < 0)
            return (int)ret;
        value[ret] = '\0';
        *ret_value = TAKE(value);
        *ret_bytes = (size_t)ret;
        return 0;
    }
    return -ERANGE;
}

int object_gfid(const struct object *object, gfid_t *ret_gfid)
{
    gfid_t gfid;
    ssize_t ret = object_getxattr(object, XATTR_GFID, &gfid, sizeof(gfid));

    if (ret == -ERANGE || (ret >= 0 && ret != sizeof(gfid)))
        return -ENODATA;
    if (ret < 0)
        return (int)ret;
    if (gfid_is_null(&gfid))
        return -ENODATA;
    *ret_gfid = gfid;
    return 0;
}
