/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Open files: OPEN, READ, WRITE, FLUSH, RELEASE, FSYNC, FALLOCATE, LSEEK, COPY_FILE_RANGE. */
#include "xlators/mount/fuse/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "xlators/mount/fuse/attr.h"
#include "xlators/mount/fuse/lock.h"
#include "xlators/mount/fuse/replaced.h"

enum {
    COPY_BYTES_MAX = 64
                     << 20, /* of one COPY_FILE_RANGE: it cannot be interrupted; short is allowed */
    SEEK_WHAT_DATA = 0,
    SEEK_WHAT_HOLE = 1,
};

/* --- OPEN, RELEASE ---------------------------------------------------------------------------- */
uint32_t fuse_child_flags(const struct fuse *fuse, uint32_t flags)
{
    if (!(fuse->flags & FUSE_WRITEBACK_CACHE))
        return flags;
    if ((flags & O_ACCMODE) == O_WRONLY)
        flags = (flags & ~(uint32_t)O_ACCMODE) |
                O_RDWR;                 /* a page that is written in part is read */
    return flags & ~(uint32_t)O_APPEND; /* the kernel knows where the end is */
}

uint32_t fuse_open_flags(const struct fuse *fuse, uint32_t flags)
{
    bool direct = fuse->direct == DIRECT_ALWAYS ||
                  (fuse->direct == DIRECT_AUTO && (flags & O_DIRECT));

    if (direct)
        return FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
    return fuse->options.keep_cache ? FOPEN_KEEP_CACHE : 0;
}

/* After O_TRUNC by somebody who may not keep set-user-id (the kernel says so). */
static int open_drop_privileges(struct request *req, struct fd *fd)
{
    struct fstat_args args = { .fd = fd };
    struct fstat_reply out = {};
    int ret = fop_fstat(fuse_child(req->fuse), &req->call, &args, &out);

    if (ret == 0)
        ret = privileges_drop(req, fd->inode, fd, &out.stat);
    fstat_reply_fini(&out);
    return ret;
}

static int open_file(struct request *req, struct fd *fd)
{
    const struct fuse_open_in *in = request_in(req);
    struct open_args args = { .inode = fd->inode, .fd = fd, .flags = fd->flags };
    struct open_reply out = {};
    int ret = fop_open(fuse_child(req->fuse), &req->call, &args, &out);

    open_reply_fini(&out);
    if (ret >= 0 && (in->open_flags & FUSE_OPEN_KILL_SUIDGID))
        ret = open_drop_privileges(req, fd);
    return ret;
}

static int open_reply_send(struct request *req, struct handle *handle)
{
    struct fuse_open_out out = { .fh = (uint64_t)(uintptr_t)handle,
                                 .open_flags = fuse_open_flags(req->fuse, handle->fd->flags) };
    int ret = request_reply(req, &out, sizeof(out));

    if (ret < 0)
        handle_free(req->fuse, handle); /* nobody will release it */
    return ret;
}

int open_run(struct request *req)
{
    const struct fuse_open_in *in = request_in(req);
    uint32_t flags = fuse_child_flags(req->fuse, in->flags);
    AUTO(fd) fd = replaced_take(req, request_inode(req), flags);

    if (!fd) {
        fd = fd_new(request_inode(req), flags, req->call.pid);
        if (!fd)
            return -ENOMEM;
        int ret = open_file(req, fd);
        if (ret == -ESTALE || ret == -ENOENT)
            replaced_note(req, flags);
        if (ret < 0)
            return ret;
    }
    struct handle *handle = handle_new(req->fuse, fd);
    if (!handle)
        return -ENOMEM;
    (void)TAKE(fd); /* the handle's now */
    return open_reply_send(req, handle);
}

int release_run(struct request *req)
{
    const struct fuse_release_in *in = request_in(req);
    struct handle *handle = handle_of(in->fh);

    handle_unlock_all(req, handle);
    handle_free(req->fuse, handle);
    return request_reply(req, NULL, 0);
}

/* --- READ, WRITE ---------------------------------------------------------------------------------
 * The flags are those of now, which fcntl(F_SETFL) may have changed since the open. */
int read_run(struct request *req)
{
    const struct fuse_read_in *in = request_in(req);
    struct fd *fd = handle_of(in->fh)->fd;
    struct readv_args args = { .fd = fd,
                               .offset = in->offset,
                               .flags = fuse_child_flags(req->fuse, in->flags),
                               .size = MIN(in->size, (uint32_t)FUSE_REQUEST_BYTES_MAX) };
    struct readv_reply out = {};

    if (in->read_flags & FUSE_READ_LOCKOWNER)
        request_owner(req, in->lock_owner);
    int ret = fop_readv(fuse_child(req->fuse), &req->call, &args, &out);
    if (ret >= 0) {
        payload_truncate(&out.payload, MIN(out.payload.bytes, args.size));
        count_add(&req->fuse->bytes_read, out.payload.bytes);
        ret = request_reply_iov(req, out.payload.iov, (int)out.payload.segs);
    }
    readv_reply_fini(&out);
    return ret;
}

/* Pages of a mapping are written back through whichever open file of the inode the kernel finds:
 * that this one appends, or is O_DIRECT, is not meant for them. */
static struct fd *write_fd(const struct fuse_write_in *in, struct fd *fd, uint32_t *flags)
{
    enum {
        OWN_WAYS = O_APPEND | O_DIRECT
    };

    if (!(in->write_flags & FUSE_WRITE_CACHE) || !((fd->flags | *flags) & OWN_WAYS))
        return fd_ref(fd);
    *flags &= ~(uint32_t)OWN_WAYS;
    return fd_anonymous(fd->inode);
}

static int write_data(struct request *req, struct fd *fd, struct iatt *ret_stat)
{
    const struct fuse_write_in *in = request_in(req);
    uint32_t flags = fuse_child_flags(req->fuse, in->flags);
    AUTO(fd) through = write_fd(in, fd, &flags);
    if (!through)
        return -ENOMEM;
    struct writev_args args = { .fd = through, .offset = in->offset, .flags = flags };
    struct writev_reply out = {};

    if (req->landed)
        payload_add(&args.payload, buf_ref(req->landed), 0, in->size);
    else
        payload_add_borrowed(&args.payload, req->landed_data, in->size);
    int ret = fop_writev(fuse_child(req->fuse), &req->call, &args, &out);
    *ret_stat = out.poststat;
    payload_fini(&args.payload);
    writev_reply_fini(&out);
    return ret;
}

int write_run(struct request *req)
{
    const struct fuse_write_in *in = request_in(req);
    struct handle *handle = handle_of(in->fh);
    struct iatt stat;

    if ((!req->landed && !req->landed_data) || in->size != req->landed_bytes)
        return -EINVAL;
    if (in->write_flags & FUSE_WRITE_LOCKOWNER)
        request_owner(req, in->lock_owner);
    handle->dirty = true;
    int ret = write_data(req, handle->fd, &stat);
    if (ret < 0)
        return ret;
    struct fuse_write_out out = { .size = (uint32_t)ret };
    count_add(&req->fuse->bytes_written, out.size);
    /* a write-back is nobody's write: whoever happens to cause it drops nothing */
    if ((in->write_flags & FUSE_WRITE_KILL_SUIDGID) && !(in->write_flags & FUSE_WRITE_CACHE)) {
        ret = privileges_drop(req, handle->fd->inode, handle->fd, &stat);
        if (ret < 0)
            return ret;
    }
    return request_reply(req, &out, sizeof(out));
}

/* --- FLUSH, FSYNC ----------------------------------------------------------------------------- */
/* close(2). The brick hears of it where it means something: after writes, and when the closing
 * process may hold locks. */
int flush_run(struct request *req)
{
    const struct fuse_flush_in *in = request_in(req);
    struct handle *handle = handle_of(in->fh);
    struct flush_args args = { .fd = handle->fd };
    struct flush_reply out = {};

    bool had_locks = handle_owner_remove(handle, in->lock_owner);
    bool was_dirty = atomic_exchange(&handle->dirty, false);
    if (!had_locks && !was_dirty && !inode_was_locked(req->fuse, handle->fd->inode))
        return request_reply(req, NULL, 0);
    request_owner(req, in->lock_owner);
    int ret = fop_flush(fuse_child(req->fuse), &req->call, &args, &out);
    flush_reply_fini(&out);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

int fsync_run(struct request *req)
{
    const struct fuse_fsync_in *in = request_in(req);
    struct fsync_args args = { .fd = handle_of(in->fh)->fd,
                               .datasync = in->fsync_flags & FUSE_FSYNC_FDATASYNC };
    struct fsync_reply out = {};
    int ret = fop_fsync(fuse_child(req->fuse), &req->call, &args, &out);

    fsync_reply_fini(&out);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

/* --- FALLOCATE -------------------------------------------------------------------------------- */
static int space_allocate(struct request *req, struct fd *fd, uint32_t keep_size, uint64_t offset,
                          uint64_t size, struct iatt *ret_stat)
{
    struct fallocate_args args = { .fd = fd, .flags = keep_size, .offset = offset, .size = size };
    struct fallocate_reply out = {};
    int ret = fop_fallocate(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.poststat;
    fallocate_reply_fini(&out);
    return ret;
}

static int hole_punch(struct request *req, struct fd *fd, uint64_t offset, uint64_t size,
                      struct iatt *ret_stat)
{
    struct discard_args args = { .fd = fd, .offset = offset, .size = size };
    struct discard_reply out = {};
    int ret = fop_discard(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.poststat;
    discard_reply_fini(&out);
    return ret;
}

static int zero_fill(struct request *req, struct fd *fd, uint64_t offset, uint64_t size,
                     struct iatt *ret_stat)
{
    struct zerofill_args args = { .fd = fd, .offset = offset, .size = size };
    struct zerofill_reply out = {};
    int ret = fop_zerofill(fuse_child(req->fuse), &req->call, &args, &out);

    *ret_stat = out.poststat;
    zerofill_reply_fini(&out);
    return ret;
}

/* ZERO_RANGE|KEEP_SIZE: zerofill would grow the file, so what lies beyond its end is allocated. */
static int zero_range_keep_size(struct request *req, struct fd *fd, uint64_t offset, uint64_t size,
                                struct iatt *ret_stat)
{
    struct fstat_args args = { .fd = fd };
    struct fstat_reply out = {};
    int ret = fop_fstat(fuse_child(req->fuse), &req->call, &args, &out);
    uint64_t end = offset + size, inside = MIN(MAX(out.stat.size, offset), end);

    *ret_stat = out.stat;
    fstat_reply_fini(&out);
    if (ret == 0 && inside > offset)
        ret = zero_fill(req, fd, offset, inside - offset, ret_stat);
    if (ret >= 0 && end > inside)
        ret = space_allocate(req, fd, FALLOC_FL_KEEP_SIZE, inside, end - inside, ret_stat);
    return ret;
}

static int fallocate_mode(struct request *req, struct fd *fd, struct iatt *ret_stat)
{
    const struct fuse_fallocate_in *in = request_in(req);

    switch (in->mode) {
    case 0:
    case FALLOC_FL_KEEP_SIZE:
        return space_allocate(req, fd, in->mode, in->offset, in->length, ret_stat);
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
        return hole_punch(req, fd, in->offset, in->length, ret_stat);
    case FALLOC_FL_ZERO_RANGE:
        return zero_fill(req, fd, in->offset, in->length, ret_stat);
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
        return zero_range_keep_size(req, fd, in->offset, in->length, ret_stat);
    default:
        return -EOPNOTSUPP;
    }
}

int fallocate_run(struct request *req)
{
    const struct fuse_fallocate_in *in = request_in(req);
    struct handle *handle = handle_of(in->fh);
    struct iatt stat;
    uint64_t end;

    if (add_overflows(in->offset, in->length, &end) || end > INT64_MAX)
        return -EFBIG;
    handle->dirty = true;
    int ret = fallocate_mode(req, handle->fd, &stat);
    if (ret >= 0 && req->in.uid != 0) /* no flag tells whether the caller might keep them */
        ret = privileges_drop(req, handle->fd->inode, handle->fd, &stat);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

/* --- LSEEK, COPY_FILE_RANGE ------------------------------------------------------------------- */
int lseek_run(struct request *req)
{
    const struct fuse_lseek_in *in = request_in(req);
    struct seek_args args = { .fd = handle_of(in->fh)->fd, .offset = in->offset };
    struct seek_reply reply = {};

    if (in->whence != SEEK_DATA && in->whence != SEEK_HOLE)
        return -EINVAL;
    args.what = in->whence == SEEK_DATA ? SEEK_WHAT_DATA : SEEK_WHAT_HOLE;
    int ret = fop_seek(fuse_child(req->fuse), &req->call, &args, &reply);
    struct fuse_lseek_out out = { .offset = reply.offset };
    seek_reply_fini(&reply);
    return ret < 0 ? ret : request_reply(req, &out, sizeof(out));
}

static int copy_range(struct request *req)
{
    const struct fuse_copy_file_range_in *in = request_in(req);
    struct handle *to = handle_of(in->fh_out);
    struct copy_file_range_args args = {
        .in = handle_of(in->fh_in)->fd,
        .out = to->fd,
        .in_offset = in->off_in,
        .out_offset = in->off_out,
        .size = (uint32_t)MIN(in->len, (uint64_t)COPY_BYTES_MAX),
        .flags = (uint32_t)in->flags,
    };
    struct copy_file_range_reply out = {};

    to->dirty = true;
    int ret = fop_copy_file_range(fuse_child(req->fuse), &req->call, &args, &out);
    struct iatt stat = out.postparent; /* the destination's, afterwards (spec/wire.md 4) */
    copy_file_range_reply_fini(&out);
    if (ret > 0 && req->in.uid != 0) { /* no flag tells whether the caller might keep them */
        int dropped = privileges_drop(req, to->fd->inode, to->fd, &stat);
        ret = dropped < 0 ? dropped : ret;
    }
    return ret;
}

int copy_file_range_run(struct request *req)
{
    int ret = copy_range(req);
    struct fuse_write_out out = { .size = (uint32_t)ret };

    return ret < 0 ? ret : request_reply(req, &out, sizeof(out));
}

int copy_file_range_64_run(struct request *req)
{
    int ret = copy_range(req);
    struct wire_copy_file_range_out out = { .bytes_copied = (uint64_t)ret };

    return ret < 0 ? ret : request_reply(req, &out, sizeof(out));
}
