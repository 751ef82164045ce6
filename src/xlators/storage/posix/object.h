/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An object of the backend, however it can be reached: by a descriptor, by one that only stands for
 * it (O_PATH), or by a name in a directory. Symlinks are never followed.
 *
 *     struct object object = object_at(dir_fd, name);
 *     ret = object_stat(&object, &st);
 */
#pragma once

#include "xlators/storage/posix/posix.h"

enum object_form { OBJECT_FD, OBJECT_PATH_FD, OBJECT_AT };

struct object {
    enum object_form form;
    int at;
    const char *path; /* "" for the descriptors */
};

enum { OBJECT_PROC_BYTES = 32 + NAME_BYTES_MAX + 1 };

static inline struct object object_fd(int fd)
{
    return (struct object){ .form = OBJECT_FD, .at = fd, .path = "" };
}
static inline struct object object_path_fd(int fd)
{
    return (struct object){ .form = OBJECT_PATH_FD, .at = fd, .path = "" };
}
static inline struct object object_at(int dir, const char *path)
{
    return (struct object){ .form = OBJECT_AT, .at = dir, .path = path };
}

must_check int object_stat(const struct object *object, struct stat *ret_st);
must_check int object_chmod(const struct object *object, mode_t mode);
must_check int object_chown(const struct object *object, uid_t uid, gid_t gid);
must_check int object_utimes(const struct object *object, const struct timespec times[2]);
/* One more name. */
must_check int object_link(const struct object *object, int dir, const char *name);
ssize_t object_getxattr(const struct object *object, const char *name, void *value, size_t size);
must_check int object_setxattr(const struct object *object, const char *name, const void *value,
                               size_t size, int flags);
must_check int object_removexattr(const struct object *object, const char *name);
ssize_t object_listxattr(const struct object *object, char *names, size_t size);
/* All names, each with its NUL, in fresh memory (free); *ret_bytes is 0 for none. */
must_check int object_listxattr_all(const struct object *object, char **ret_names,
                                    size_t *ret_bytes);
/* The whole value in fresh memory (free), a NUL behind it. */
must_check int object_getxattr_all(const struct object *object, const char *name, char **ret_value,
                                   size_t *ret_bytes);
/* The gfid that it carries: -ENODATA when none or malformed. */
must_check int object_gfid(const struct object *object, gfid_t *ret_gfid);
