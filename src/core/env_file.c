/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files and names: the system calls themselves. Who must not wait calls them inside hop. */
#include <errno.h>
#include <grp.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "core/env_internal.h"

int env_openat(int dir, const char *path, int flags, mode_t mode)
{
    return (int)env_call(openat(dir, path, flags | O_CLOEXEC, mode));
}

int env_openat2(int dir, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
    struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve };
    return (int)env_call(syscall(SYS_openat2, dir, path, &how, sizeof(how)));
}

int env_fstat(int fd, struct stat *ret_stat)
{
    return (int)env_call(fstat(fd, ret_stat));
}

int env_fstatat(int dir, const char *path, struct stat *ret_stat, int flags)
{
    return (int)env_call(fstatat(dir, path, ret_stat, flags));
}

int env_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret_statx)
{
    return (int)env_call(statx(dir, path, flags, mask, ret_statx));
}

int env_fstatvfs(int fd, struct statvfs *ret_statvfs)
{
    return (int)env_call(fstatvfs(fd, ret_statvfs));
}

int env_mkdirat(int dir, const char *path, mode_t mode)
{
    return (int)env_call(mkdirat(dir, path, mode));
}

int env_mknodat(int dir, const char *path, mode_t mode, dev_t dev)
{
    return (int)env_call(mknodat(dir, path, mode, dev));
}

int env_symlinkat(const char *target, int dir, const char *path)
{
    return (int)env_call(symlinkat(target, dir, path));
}

ssize_t env_readlinkat(int dir, const char *path, char *buffer, size_t size)
{
    return env_call(readlinkat(dir, path, buffer, size));
}

int env_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return (int)env_call(linkat(from_dir, from, to_dir, to, flags));
}

int env_unlinkat(int dir, const char *path, int flags)
{
    return (int)env_call(unlinkat(dir, path, flags));
}

int env_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)env_call(renameat2(from_dir, from, to_dir, to, flags));
}

int env_fchmod(int fd, mode_t mode)
{
    return (int)env_call(fchmod(fd, mode));
}

int env_fchmodat(int dir, const char *path, mode_t mode, int flags)
{
    return (int)env_call(fchmodat(dir, path, mode, flags));
}

int env_fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
    return (int)env_call(fchownat(dir, path, uid, gid, flags));
}

int env_utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    /* the C library refuses path NULL, by which the kernel means dir itself */
    return path ? (int)env_call(utimensat(dir, path, times, flags))
                : (int)env_call(futimens(dir, times));
}

int env_ftruncate(int fd, uint64_t size)
{
    return (int)env_call(ftruncate(fd, (off_t)size));
}

int env_fallocate(int fd, int mode, uint64_t offset, uint64_t size)
{
    return (int)env_call(fallocate(fd, mode, (off_t)offset, (off_t)size));
}

int env_faccessat(int dir, const char *path, int mode, int flags)
{
    return (int)env_call(faccessat(dir, path, mode, flags));
}

int64_t env_lseek(int fd, int64_t offset, int whence)
{
    return env_call(lseek(fd, offset, whence));
}

ssize_t env_getdents(int fd, void *buffer, size_t bytes)
{
    return env_call(getdents64(fd, buffer, bytes));
}

ssize_t env_copy_file_range(int in, uint64_t in_offset, int out, uint64_t out_offset, size_t bytes)
{
    off_t from = (off_t)in_offset, to = (off_t)out_offset;
    return env_call(copy_file_range(in, &from, out, &to, bytes, 0));
}

/* --- xattrs ----------------------------------------------------------------------------------- */

ssize_t env_fgetxattr(int fd, const char *name, void *value, size_t size)
{
    return env_call(fgetxattr(fd, name, value, size));
}

int env_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return (int)env_call(fsetxattr(fd, name, value, size, flags));
}

ssize_t env_flistxattr(int fd, char *names, size_t size)
{
    return env_call(flistxattr(fd, names, size));
}

int env_fremovexattr(int fd, const char *name)
{
    return (int)env_call(fremovexattr(fd, name));
}

ssize_t env_getxattr(const char *path, const char *name, void *value, size_t size, bool follow)
{
    return follow ? env_call(getxattr(path, name, value, size))
                  : env_call(lgetxattr(path, name, value, size));
}

int env_setxattr(const char *path, const char *name, const void *value, size_t size, int flags,
                 bool follow)
{
    return (int)(follow ? env_call(setxattr(path, name, value, size, flags))
                        : env_call(lsetxattr(path, name, value, size, flags)));
}

ssize_t env_listxattr(const char *path, char *names, size_t size, bool follow)
{
    return follow ? env_call(listxattr(path, names, size))
                  : env_call(llistxattr(path, names, size));
}

int env_removexattr(const char *path, const char *name, bool follow)
{
    return (int)(follow ? env_call(removexattr(path, name)) : env_call(lremovexattr(path, name)));
}

int env_flock_ofd(int fd, int cmd, struct flock *lock)
{
    return (int)env_call(fcntl(fd, cmd, lock));
}

/* --- identity: of the calling thread only, so by bare system calls (the C library's would change
 * all threads). fsuid last on the way out, first on the way back: it carries the capability. --- */

enum {
    OWN_GROUPS_MAX = 256
};

static struct {
    uid_t uid;
    gid_t gid;
    gid_t groups[OWN_GROUPS_MAX];
    int group_count;
} own;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;
static _Thread_local bool is_foreign, has_foreign_groups;

static void own_learn(void)
{
    own.uid = geteuid();
    own.gid = getegid();
    own.group_count = getgroups(OWN_GROUPS_MAX, own.groups);
    if (own.group_count < 0)
        own.group_count = 0;
}

static bool is_own(uid_t uid, gid_t gid, const gid_t *groups, unsigned n)
{
    if (uid != own.uid || gid != own.gid || n != (unsigned)own.group_count)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (groups[i] != own.groups[i])
            return false;
    return true;
}

/* setfsuid tells only the value before it: ask again to see that it took. */
static bool fs_ids_set(uid_t uid, gid_t gid)
{
    syscall(SYS_setfsgid, gid);
    syscall(SYS_setfsuid, uid);
    return (gid_t)syscall(SYS_setfsgid, -1) == gid && (uid_t)syscall(SYS_setfsuid, -1) == uid;
}

int env_identity_set(uid_t uid, gid_t gid, const gid_t *groups, unsigned n)
{
    pthread_once(&own_once, own_learn);
    if (is_own(uid, gid, groups, n))
        return 0;
    is_foreign = true;
    if (syscall(SYS_setgroups, (size_t)n, groups) == 0)
        has_foreign_groups = true;
    else if (errno != EPERM || n > 0) {
        int ret = -errno;
        env_identity_restore();
        return ret;
    }
    if (fs_ids_set(uid, gid))
        return 0;
    env_identity_restore();
    return -EPERM;
}

void env_identity_restore(void)
{
    if (!is_foreign)
        return;
    bool is_good = true;
    syscall(SYS_setfsuid, own.uid);
    is_good = fs_ids_set(own.uid, own.gid);
    if (has_foreign_groups)
        is_good = is_good && syscall(SYS_setgroups, (size_t)own.group_count, own.groups) == 0;
    if (!is_good)
        abort(); /* going on would act as somebody else */
    is_foreign = has_foreign_groups = false;
}
