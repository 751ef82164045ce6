/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/mount/fuse/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xlators/mount/fuse/fuse_wire.h"

enum {
    DATA_SIZE = 4096
};
#define DEVICE "/dev/fuse"
#define TYPE "fuse.glusterfs"

/* --- options ---------------------------------------------------------------------------------- */
static const struct {
    const char *word;
    unsigned long set, clear; /* neither: mount(8)'s own business */
} words[] = {
    { "ro", MS_RDONLY, 0 },
    { "rw", 0, MS_RDONLY },
    { "nosuid", MS_NOSUID, 0 },
    { "suid", 0, MS_NOSUID },
    { "nodev", MS_NODEV, 0 },
    { "dev", 0, MS_NODEV },
    { "noexec", MS_NOEXEC, 0 },
    { "exec", 0, MS_NOEXEC },
    { "noatime", MS_NOATIME, 0 },
    { "atime", 0, MS_NOATIME },
    { "nodiratime", MS_NODIRATIME, 0 },
    { "diratime", 0, MS_NODIRATIME },
    { "relatime", MS_RELATIME, 0 },
    { "norelatime", 0, MS_RELATIME },
    { "strictatime", MS_STRICTATIME, 0 },
    { "nostrictatime", 0, MS_STRICTATIME },
    { "lazytime", MS_LAZYTIME, 0 },
    { "nolazytime", 0, MS_LAZYTIME },
    { "lazyatime", MS_LAZYTIME, 0 },
    { "nolazyatime", 0, MS_LAZYTIME },
    { "sync", MS_SYNCHRONOUS, 0 },
    { "async", 0, MS_SYNCHRONOUS },
    { "dirsync", MS_DIRSYNC, 0 },
    { "auto_unmount", 0, 0 }, /* the daemon unmounts, and the kernel's connection dies with it */
    { "defaults", 0, 0 },
    { "_netdev", 0, 0 },
    { "nofail", 0, 0 },
};

static bool word_is_flag(const char *word, size_t bytes, unsigned long *flags)
{
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
        if (strlen(words[i].word) != bytes || memcmp(words[i].word, word, bytes) != 0)
            continue;
        *flags = (*flags & ~words[i].clear) | words[i].set;
        return true;
    }
    return false;
}

/* Up to the next comma outside of double quotes (SELinux contexts have commas). */
static size_t word_bytes(const char *options)
{
    bool quoted = false;
    size_t bytes = 0;

    for (; options[bytes] && (quoted || options[bytes] != ','); bytes++)
        if (options[bytes] == '"')
            quoted = !quoted;
    return bytes;
}

int mount_options_split(const char *options, unsigned long *flags, char *data, size_t size)
{
    size_t used = strlen(data);

    while (*options) {
        size_t bytes = word_bytes(options);
        if (bytes && !word_is_flag(options, bytes, flags)) {
            if (used + bytes + 2 > size)
                return -E2BIG;
            used += (size_t)snprintf(data + used, size - used, ",%.*s", (int)bytes, options);
        }
        options += bytes + (options[bytes] == ',');
    }
    return 0;
}

/* --- mounting --------------------------------------------------------------------------------- */
static int fail(struct mount_request *request, int ret, const char *cure)
{
    snprintf(request->error, FUSE_ERROR_SIZE, "cannot mount on %s: %s", request->mountpoint, cure);
    return ret;
}

static int device_open(struct mount_request *request)
{
    request->fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (request->fd >= 0)
        return 0;
    int ret = -errno;
    switch (ret) {
    case -ENOENT:
    case -ENODEV:
    case -ENXIO:
        return fail(request, -ENODEV,
                    DEVICE " is missing: load the kernel's fuse module (modprobe "
                           "fuse), or give the device to this container");
    case -EPERM:
    case -EACCES:
        return fail(request, -EPERM,
                    DEVICE " may not be opened: mount as root, and allow the device "
                           "in this container");
    default:
        return fail(request, ret, "cannot open " DEVICE);
    }
}

static int mountpoint_check(struct mount_request *request, mode_t *ret_mode)
{
    struct stat st;

    if (stat(request->mountpoint, &st) < 0) {
        int ret = -errno;
        if (ret == -ENOENT)
            return fail(request, ret, "there is no such directory");
        if (ret == -ENOTCONN)
            return fail(request, -EBUSY,
                        "a dead mount is there (its daemon is gone): umount it first");
        return fail(request, ret, strerror(-ret));
    }
    if (!S_ISDIR(st.st_mode))
        return fail(request, -ENOTDIR, "it is not a directory");
    *ret_mode = st.st_mode;
    request->path = realpath(request->mountpoint, NULL);
    return request->path ? 0 : fail(request, -errno, strerror(errno));
}

/* \ooo of the mount table as the byte that it stands for, in place. */
static void octal_decode(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (text[0] == '\\' && text[1] && text[2] && text[3]) {
            *to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

/* The device of what is mounted there, topmost, from the mount table: a stat(2) would ask the
 * mount's daemon, who may be gone, or be us. -ENOENT: nothing. */
static int mount_dev(const char *mountpoint, uint64_t *ret_dev)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    int ret = -ENOENT;

    if (!table)
        return -errno;
    while (getline(&line, &size, table) > 0) {
        unsigned major, minor;
        AUTO_FREE char *path = NULL;
        if (sscanf(line, "%*d %*d %u:%u %*s %ms", &major, &minor, &path) != 3)
            continue;
        octal_decode(path);
        if (strcmp(path, mountpoint) == 0) {
            *ret_dev = makedev(major, minor);
            ret = 0;
        }
    }
    fclose(table);
    return ret;
}

static int mount_call(struct mount_request *request, mode_t mode)
{
    char data[DATA_SIZE];
    unsigned long flags = request->read_only ? MS_RDONLY : 0;

    snprintf(data, sizeof(data), "fd=%d,rootmode=%o,user_id=0,group_id=0%s,allow_other,max_read=%u",
             request->fd, mode & S_IFMT, request->acl ? "" : ",default_permissions",
             request->max_read);
    if (request->options && mount_options_split(request->options, &flags, data, sizeof(data)) < 0)
        return fail(request, -E2BIG, "the mount options are too long");
    if (mount(request->source, request->path, TYPE, flags, data) == 0)
        return 0;
    int ret = -errno;
    if (ret == -EPERM)
        return fail(request, ret, "only root (CAP_SYS_ADMIN) may mount");
    if (ret == -ENODEV)
        return fail(request, ret, "this kernel has no FUSE");
    if (ret == -EBUSY)
        return fail(request, ret, "it is in use");
    if (ret == -EINVAL)
        return fail(request, ret, "the kernel refuses the mount options");
    return fail(request, ret, strerror(-ret));
}

int mount_do(struct mount_request *request)
{
    mode_t mode = 0;

    request->fd = -1;
    if (geteuid() != 0)
        return fail(request, -EPERM, "only root may mount");
    int ret = mountpoint_check(request, &mode);
    if (ret == 0)
        ret = device_open(request);
    if (ret < 0)
        return ret;
    ret = mount_call(request, mode);
    if (ret < 0) {
        close(TAKE_FD(request->fd));
        return ret;
    }
    if (mount_dev(request->path, &request->dev) < 0)
        request->dev = 0; /* not known: whoever unmounts must do it by hand */
    return 0;
}

int mount_clone(int fd)
{
    uint32_t mounted = (uint32_t)fd;
    AUTO_FD clone = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);

    if (clone < 0 || ioctl(clone, FUSE_DEV_IOC_CLONE, &mounted) < 0)
        return -errno;
    return TAKE_FD(clone);
}

/* --- unmounting -------------------------------------------------------------------------------
 * By a child: whatever it does here may ask the mount's daemon, and that is us. Were we killed in
 * such a call, the kernel would wait for this thread, it for an answer of the dead daemon, and the
 * connection would stay open as long as the thread has it. The child has not. */

/* After fork: system calls only. */
static _Noreturn void unmount_in_child(const char *mountpoint, bool force)
{
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    if (!force) {
        int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            (void)syncfs(fd); /* what is lost, the kernel tells those who hold the file */
            close(fd);
        }
    }
    (void)umount2(mountpoint, UMOUNT_NOFOLLOW | (force ? MNT_FORCE | MNT_DETACH : 0));
    _exit(0);
}

static bool is_mounted(const char *mountpoint, uint64_t dev)
{
    uint64_t now;
    return mount_dev(mountpoint, &now) == 0 && now == dev;
}

int mount_undo(const char *mountpoint, uint64_t dev, bool force)
{
    if (!is_mounted(mountpoint, dev))
        return 0; /* somebody has unmounted it: what is there now is another's */
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (child == 0)
        unmount_in_child(mountpoint, force);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return is_mounted(mountpoint, dev) ? -EBUSY : 0;
}
