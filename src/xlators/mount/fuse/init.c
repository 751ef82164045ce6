/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* INIT: what kernel and we agree on. Only what the kernel offers is taken. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "core/env.h"
#include "xlators/mount/fuse/attr.h"
#include "xlators/mount/fuse/lock.h"

enum {
    PAGE_BYTES = 4096,
    MAJOR = 7,
    READ_AHEAD_KIB = FUSE_REQUEST_BYTES_MAX / 1024, /* one request's worth; Linux's own is 128 */
};

/* What this mount can do, whatever the kernel says. */
static uint64_t flags_wanted(const struct fuse_options *options)
{
    uint64_t flags = FUSE_ASYNC_READ | FUSE_POSIX_LOCKS | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES |
                     FUSE_FLOCK_LOCKS | FUSE_ASYNC_DIO | FUSE_PARALLEL_DIROPS | FUSE_ABORT_ERROR |
                     FUSE_MAX_PAGES | FUSE_CACHE_SYMLINKS | FUSE_HANDLE_KILLPRIV_V2 |
                     FUSE_SETXATTR_EXT | FUSE_INIT_EXT | WIRE_INIT_DIRECT_IO_ALLOW_MMAP;

    if (options->auto_invalidation)
        flags |= FUSE_AUTO_INVAL_DATA;
    if (options->use_readdirp)
        flags |= FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO;
    if (options->acl) /* the kernel checks ACLs, and leaves the umask to us (default ACLs) */
        flags |= FUSE_POSIX_ACL | FUSE_DONT_MASK;
    if (options->writeback_cache)
        flags |= FUSE_WRITEBACK_CACHE;
    if (env_has_commands())
        flags |= WIRE_INIT_OVER_IO_URING;
    return flags;
}

/* A volume without features/locks: the kernel had better keep locks itself, for this mount alone,
 * than that every program fails. Asked of the root, since INIT comes before the first file. */
static int lock_probe(struct request *req)
{
    struct xlator *child = fuse_child(req->fuse);
    AUTO(fd) fd = fd_new(req->fuse->root, O_RDONLY | O_DIRECTORY, req->call.pid);
    if (!fd)
        return -ENOMEM;
    fd->is_dir = true;
    struct opendir_args open = { .inode = fd->inode, .fd = fd };
    struct opendir_reply opened = {};
    int ret = fop_opendir(child, &req->call, &open, &opened);
    opendir_reply_fini(&opened);
    if (ret < 0)
        return ret;

    struct lk_args args = { .fd = fd, .cmd = LK_GET, .type = RANGE_READ, .lock.type = RANGE_READ };
    struct lk_reply out = {};
    request_owner(req, 0);
    args.lock.owner = req->call.owner;
    ret = fop_lk(child, &req->call, &args, &out);
    lk_reply_fini(&out);
    return ret;
}

static bool volume_has_locks(struct request *req)
{
    int ret = req->fuse->up ? lock_probe(req) : 0;

    if (ret != -ENOSYS && ret != -EOPNOTSUPP)
        return true;
    log_info(req->fuse->xl, 0, "the volume has no locks: those of this mount are its own");
    return false;
}

static uint64_t flags_offered(const struct fuse_init_in *in)
{
    uint64_t flags = in->flags;

    if (flags & FUSE_INIT_EXT)
        flags |= (uint64_t)in->flags2 << 32;
    return flags;
}

static void fuse_agreed(struct fuse *fuse, bool refused)
{
    HOLD(&fuse->mutex);
    fuse->ready = !refused;
    fuse->refused = refused;
    fcond_wake_all(&fuse->changed);
}

/* An older major: it cannot be ours. A newer one asks again with ours. */
static int other_major_run(struct request *req, uint32_t major)
{
    struct fuse_init_out out = { .major = MAJOR, .minor = WIRE_MINOR };

    if (major > MAJOR)
        return request_reply(req, &out, sizeof(out));
    fuse_agreed(req->fuse, true);
    return -EPROTO;
}

static void init_fill(const struct fuse *fuse, const struct fuse_init_in *in,
                      struct fuse_init_out *out)
{
    const struct fuse_options *options = &fuse->options;

    *out = (struct fuse_init_out){
        .major = MAJOR,
        .minor = fuse->minor,
        .max_readahead = in->max_readahead,
        .flags = (uint32_t)fuse->flags,
        .flags2 = (uint32_t)(fuse->flags >> 32),
        .max_background = (uint16_t)MIN(options->background_qlen, UINT16_MAX),
        .congestion_threshold = (uint16_t)MIN(options->congestion_threshold, UINT16_MAX),
        .max_write = FUSE_REQUEST_BYTES_MAX,
        .max_pages = FUSE_REQUEST_BYTES_MAX / PAGE_BYTES,
        .time_gran = options->times_granularity ? (uint32_t)options->times_granularity : 1,
    };
}

/* INIT can only lower it. Where sysfs is not writable (containers) it stays as it is. */
static void read_ahead_set(const struct fuse *fuse)
{
    char path[64], text[16];
    struct iovec iov = { .iov_base = text };

    snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(fuse->mount_dev),
             minor(fuse->mount_dev));
    int fd = env_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    iov.iov_len = (size_t)snprintf(text, sizeof(text), "%d", READ_AHEAD_KIB);
    (void)env_writev(fd, &iov, 1);
    env_close(fd);
}

int init_run(struct request *req)
{
    struct fuse *fuse = req->fuse;
    struct fuse_init_in in = {};
    struct fuse_init_out out;

    __builtin_memcpy(&in, req->body, MIN(sizeof(in), (size_t)req->body_bytes));
    if (in.major != MAJOR)
        return other_major_run(req, in.major);
    if (in.minor < WIRE_MINOR_MIN) {
        log_error(fuse->xl, 0,
                  "the kernel's FUSE protocol 7.%u is too old: 7.%u (Linux 3.15) is needed",
                  in.minor, WIRE_MINOR_MIN);
        fuse_agreed(fuse, true);
        return -EPROTO;
    }
    fuse->minor = MIN(in.minor, (uint32_t)WIRE_MINOR);
    fuse->flags = flags_offered(&in) & flags_wanted(&fuse->options);
    if ((fuse->flags & (FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS)) && !volume_has_locks(req))
        fuse->flags &= ~(uint64_t)(FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS);
    if (fuse->options.acl && !(fuse->flags & FUSE_POSIX_ACL))
        log_warn(fuse->xl, 0,
                 "this kernel does not check ACLs on FUSE: they are shown, not enforced");
    init_fill(fuse, &in, &out);
    int ret = request_reply(req, &out, sizeof(out));
    if (ret == 0) {
        log_info(fuse->xl, 0, "serving the kernel with FUSE protocol 7.%u (it offers 7.%u)",
                 fuse->minor, in.minor);
        read_ahead_set(fuse);
        if (fuse->flags & WIRE_INIT_OVER_IO_URING)
            ring_start(fuse);
        fuse_agreed(fuse, false);
    }
    return ret;
}
