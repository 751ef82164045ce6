/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* READ, WRITE and what else works on an open file's bytes. READ and WRITE run on the fiber: one
 * call of env for the data, one fstat; the stats before a write are those that the latest
 * operation on the inode left, for nobody but this brick writes its files. */
#include <errno.h>
#include <linux/falloc.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <zlib.h>

#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"

enum { DIRECT_ALIGN = 512 };

static bool may_read(const struct io *io)
{
    return (io->flags & O_ACCMODE) != O_WRONLY;
}

static bool may_write(const struct io *io)
{
    return (io->flags & O_ACCMODE) != O_RDONLY;
}

static void remember(struct node *node, const struct iatt *iatt)
{
    HOLD(&node->mutex);
    node->last = *iatt;
    node->last_valid = true;
}

static bool recall(struct node *node, struct iatt *ret_iatt)
{
    HOLD(&node->mutex);
    if (node->last_valid)
        *ret_iatt = node->last;
    return node->last_valid;
}

static int stat_io(struct posix *posix, const struct io *io, struct iatt *ret_iatt)
{
    struct object object = object_fd(io->fd);
    return stat_iatt(posix, io->node, &object, ret_iatt);
}

/* Before: what is remembered; else asked. */
static int stat_before(struct posix *posix, const struct io *io, struct iatt *ret_iatt)
{
    return recall(io->node, ret_iatt) ? 0 : stat_io(posix, io, ret_iatt);
}

static int stat_after(struct posix *posix, const struct io *io, struct iatt *ret_iatt)
{
    int ret = stat_io(posix, io, ret_iatt);
    if (ret == 0)
        remember(io->node, ret_iatt);
    return ret;
}

/* --- READ ------------------------------------------------------------------------------------- */
int brick_readv(struct xlator *xl, struct call *call, const struct readv_args *in,
                struct readv_reply *out)
{
    struct posix *posix = xl->state;
    uint32_t size = MIN(in->size, (uint32_t)PAYLOAD_BYTES_MAX);
    IO io = {};

    int ret = io_begin(posix, in->fd, in->flags, &io);
    if (ret < 0)
        return ret;
    if (!may_read(&io))
        return -EBADF;
    if (in->offset > INT64_MAX)
        return -EINVAL;
    ret = payload_alloc(&out->payload, size);
    if (ret < 0)
        return ret;
    ssize_t bytes = env_readv_file(io.fd, out->payload.iov, (int)out->payload.segs, in->offset,
                                   io.is_direct ? ENV_DIRECT : 0);
    if (bytes < 0)
        return (int)bytes;
    payload_truncate(&out->payload, (uint32_t)bytes);
    ret = stat_after(posix, &io, &out->stat);
    if (ret < 0)
        return ret;
    if (call->times)
        mdata_touch(posix, io.node, call, in->xdata, TIMES_ATIME);
    out->eof = (uint64_t)bytes < size || in->offset + (uint64_t)bytes >= out->stat.size;
    return (int)bytes;
}

/* --- WRITE ------------------------------------------------------------------------------------ */
static bool is_aligned(const struct payload *payload)
{
    for (uint32_t i = 0; i < payload->segs; i++)
        if ((uintptr_t)payload->iov[i].iov_base % DIRECT_ALIGN ||
            payload->iov[i].iov_len % DIRECT_ALIGN)
            return false;
    return true;
}

static void payload_gather(struct payload *to, const struct payload *from)
{
    uint32_t seg = 0;
    size_t done = 0;

    for (uint32_t i = 0; i < from->segs; i++) {
        for (size_t at = 0; at < from->iov[i].iov_len;) {
            size_t room = to->iov[seg].iov_len - done;
            size_t count = MIN(room, from->iov[i].iov_len - at);
            memcpy((char *)to->iov[seg].iov_base + done, (char *)from->iov[i].iov_base + at, count);
            at += count;
            done += count;
            if (done == to->iov[seg].iov_len) {
                seg++;
                done = 0;
            }
        }
    }
}

/* An O_DIRECT write's memory must be aligned; its offset and length are the caller's to align, and
 * refused by the kernel otherwise, as they would be on a local disk. */
static ssize_t write_direct(const struct io *io, const struct writev_args *in)
{
    struct payload aligned = {};

    if (in->payload.bytes % DIRECT_ALIGN || is_aligned(&in->payload))
        return env_writev_file(io->fd, in->payload.iov, (int)in->payload.segs, in->offset,
                               ENV_DIRECT);
    int ret = payload_alloc(&aligned, in->payload.bytes);
    if (ret < 0)
        return ret;
    payload_gather(&aligned, &in->payload); /* copy: the sender's buffers are unaligned */
    ssize_t bytes = env_writev_file(io->fd, aligned.iov, (int)aligned.segs, in->offset, ENV_DIRECT);
    payload_fini(&aligned);
    return bytes;
}

static ssize_t write_bytes(const struct io *io, const struct writev_args *in)
{
    ssize_t bytes = io->is_direct ? write_direct(io, in)
                                  : env_writev_file(io->fd, in->payload.iov,
                                                    (int)in->payload.segs, in->offset, 0);
    bool is_sync = in->flags & (O_SYNC | O_DSYNC) & ~io->flags;
    if (bytes > 0 && is_sync) {
        int ret = env_fsync(io->fd, !(in->flags & (O_SYNC & ~O_DSYNC)));
        if (ret < 0)
            return ret;
    }
    return bytes;
}

static int answer_write(struct posix *posix, const struct io *io, const struct writev_args *in,
                        struct writev_reply *out)
{
    bool wants_append = dict_get(in->xdata, "glusterfs.write-is-append") != NULL;
    bool wants_count = dict_get(in->xdata, "glusterfs.open-active-fd-count") != NULL;
    int ret = 0;

    (void)posix;
    if (!wants_append && !wants_count)
        return 0;
    if (!out->xdata && !(out->xdata = dict_new()))
        return -ENOMEM;
    if (wants_append)
        ret = dict_set_uint(out->xdata, "glusterfs.write-is-append",
                            (io->flags & O_APPEND) || in->offset == out->prestat.size);
    if (ret == 0 && wants_count)
        ret = dict_set_uint(out->xdata, "glusterfs.open-active-fd-count", io->node->opens);
    return ret;
}

static int write_and_stat(struct posix *posix, struct call *call, const struct io *io,
                          const struct writev_args *in, struct writev_reply *out)
{
    int ret = stat_before(posix, io, &out->prestat);
    if (ret < 0)
        return ret;
    ssize_t bytes = write_bytes(io, in);
    if (bytes < 0)
        return (int)bytes;
    mdata_touch(posix, io->node, call, in->xdata, TIMES_CTIME | TIMES_MTIME);
    ret = stat_after(posix, io, &out->poststat);
    return ret < 0 ? ret : (int)bytes;
}

int brick_writev(struct xlator *xl, struct call *call, const struct writev_args *in,
                 struct writev_reply *out)
{
    struct posix *posix = xl->state;
    IO io = {};
    int ret = posix_room(posix, call, in->xdata);
    if (ret < 0)
        return ret;
    ret = io_begin(posix, in->fd, in->flags, &io);
    if (ret < 0)
        return ret;
    if (!may_write(&io))
        return -EBADF;
    if (in->offset > INT64_MAX)
        return -EINVAL;
    if (!in->xdata)
        return write_and_stat(posix, call, &io, in, out);

    int answer = 0;
    if (dict_get(in->xdata, "glusterfs.write-is-append") ||
        dict_get(in->xdata, "glusterfs.write-update-atomic")) {
        FLOCK(&io.node->append); /* the size before and the write are one step */
        ret = write_and_stat(posix, call, &io, in, out);
    } else {
        ret = write_and_stat(posix, call, &io, in, out);
    }
    if (ret >= 0)
        answer = answer_write(posix, &io, in, out);
    return answer < 0 ? answer : ret;
}

/* --- FSYNC ------------------------------------------------------------------------------------ */
struct times_frame {
    struct posix *posix;
    struct node *node;
};

static void times_hop(void *arg)
{
    struct times_frame *frame = arg;
    mdata_store(frame->posix, frame->node);
}

static void store_times(struct posix *posix, struct node *node)
{
    struct times_frame frame = { posix, node };
    if (mdata_is_dirty(node))
        hop(pool_default(), times_hop, &frame);
}

int brick_fsync(struct xlator *xl, struct call *call, const struct fsync_args *in,
                struct fsync_reply *out)
{
    struct posix *posix = xl->state;
    IO io = {};

    (void)call;
    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    store_times(posix, io.node);
    ret = stat_before(posix, &io, &out->prestat);
    if (ret == 0)
        ret = env_fsync(io.fd, in->datasync != 0);
    return ret < 0 ? ret : stat_after(posix, &io, &out->poststat);
}

int brick_fsyncdir(struct xlator *xl, struct call *call, const struct fsyncdir_args *in,
                   struct fsyncdir_reply *out)
{
    struct posix *posix = xl->state;
    IO io = {};

    (void)call;
    (void)out;
    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    store_times(posix, io.node);
    return env_fsync(io.fd, in->datasync != 0);
}

/* --- sizes and space: one hop each ------------------------------------------------------------ */
struct space {
    struct posix *posix;
    struct call *call;
    struct dict *xdata;
    struct fd *fd;
    struct io io;
    int mode;                 /* of fallocate(2); -1: truncate to offset */
    uint64_t offset, size;
    uint32_t times;
    struct iatt *ret_pre, *ret_post;
    int ret;
};

static void space_hop(void *arg)
{
    struct space *space = arg;
    int ret = stat_io(space->posix, &space->io, space->ret_pre);

    if (ret == 0 && space->mode < 0)
        ret = env_ftruncate(space->io.fd, space->offset);
    else if (ret == 0)
        ret = env_fallocate(space->io.fd, space->mode, space->offset, space->size);
    if (ret == 0) {
        mdata_touch(space->posix, space->io.node, space->call, space->xdata, space->times);
        ret = stat_after(space->posix, &space->io, space->ret_post);
    }
    space->ret = ret;
}

static int space_change(struct space *space)
{
    int ret = io_begin(space->posix, space->fd, 0, &space->io);
    if (ret < 0)
        return ret;
    if (!may_write(&space->io))
        space->ret = space->mode < 0 ? -EINVAL : -EBADF; /* as ftruncate(2), fallocate(2) */
    else if (space->offset > INT64_MAX || space->size > INT64_MAX)
        space->ret = -EINVAL;
    else
        hop(pool_default(), space_hop, space);
    io_end(&space->io);
    return space->ret;
}

int brick_ftruncate(struct xlator *xl, struct call *call, const struct ftruncate_args *in,
                    struct ftruncate_reply *out)
{
    struct space space = {
        .posix = xl->state, .call = call, .xdata = in->xdata, .fd = in->fd, .mode = -1,
        .offset = in->offset, .times = TIMES_CTIME | TIMES_MTIME,
        .ret_pre = &out->prestat, .ret_post = &out->poststat,
    };
    return space_change(&space);
}

int brick_fallocate(struct xlator *xl, struct call *call, const struct fallocate_args *in,
                    struct fallocate_reply *out)
{
    struct space space = {
        .posix = xl->state, .call = call, .xdata = in->xdata, .fd = in->fd,
        .mode = (int)(in->flags & FALLOC_FL_KEEP_SIZE), .offset = in->offset, .size = in->size,
        .times = TIMES_CTIME | TIMES_MTIME,
        .ret_pre = &out->prestat, .ret_post = &out->poststat,
    };
    int ret = posix_room(xl->state, call, in->xdata);
    return ret < 0 ? ret : space_change(&space);
}

int brick_discard(struct xlator *xl, struct call *call, const struct discard_args *in,
                  struct discard_reply *out)
{
    struct space space = {
        .posix = xl->state, .call = call, .xdata = in->xdata, .fd = in->fd,
        .mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, .offset = in->offset,
        .size = in->size, .times = TIMES_CTIME | TIMES_MTIME,
        .ret_pre = &out->prestat, .ret_post = &out->poststat,
    };
    return space_change(&space);
}

int brick_zerofill(struct xlator *xl, struct call *call, const struct zerofill_args *in,
                   struct zerofill_reply *out)
{
    struct space space = {
        .posix = xl->state, .call = call, .xdata = in->xdata, .fd = in->fd,
        .mode = FALLOC_FL_ZERO_RANGE, .offset = in->offset, .size = in->size,
        .times = TIMES_CTIME | TIMES_MTIME,
        .ret_pre = &out->prestat, .ret_post = &out->poststat,
    };
    int ret = posix_room(xl->state, call, in->xdata);
    return ret < 0 ? ret : space_change(&space);
}

static int truncate_work(struct posix *posix, struct call *call, const struct truncate_args *in,
                         struct truncate_reply *out)
{
    struct node *node;

    if (in->offset > INT64_MAX)
        return -EINVAL;
    AUTO_FD fd = open_inode(posix, in->inode, O_WRONLY | O_CLOEXEC | O_NONBLOCK, &node);
    if (fd < 0)
        return fd == -ENXIO || fd == -ELOOP ? -EINVAL : fd;
    struct space space = {
        .posix = posix, .call = call, .xdata = in->xdata, .mode = -1, .offset = in->offset,
        .times = TIMES_CTIME | TIMES_MTIME, .io = { .fd = fd, .node = node },
        .ret_pre = &out->prestat, .ret_post = &out->poststat,
    };
    space_hop(&space);
    return space.ret;
}
POSIX_HOP(truncate)

/* --- SEEK, COPY_FILE_RANGE -------------------------------------------------------------------- */
static int seek_work(struct posix *posix, struct call *call, const struct seek_args *in,
                     struct seek_reply *out)
{
    IO io = {};

    (void)call;
    if (in->what != 0 && in->what != 1)
        return -EINVAL;
    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    int64_t at = env_lseek(io.fd, (int64_t)in->offset, in->what == 0 ? SEEK_DATA : SEEK_HOLE);
    if (at < 0)
        return (int)at;
    out->offset = (uint64_t)at;
    return 0;
}
POSIX_HOP(seek)

static int copy_file_range_work(struct posix *posix, struct call *call,
                                const struct copy_file_range_args *in,
                                struct copy_file_range_reply *out)
{
    IO from = {}, to = {};

    int ret = posix_room(posix, call, in->xdata);
    if (ret == 0)
        ret = io_begin(posix, in->in, 0, &from);
    if (ret == 0)
        ret = io_begin(posix, in->out, 0, &to);
    if (ret < 0)
        return ret;
    if (!may_read(&from) || !may_write(&to))
        return -EBADF;
    if (in->flags)
        return -EINVAL;
    ret = stat_io(posix, &to, &out->preparent);
    if (ret < 0)
        return ret;
    ssize_t bytes = env_copy_file_range(from.fd, in->in_offset, to.fd, in->out_offset, in->size);
    if (bytes < 0)
        return (int)bytes;
    mdata_touch(posix, to.node, call, in->xdata, TIMES_CTIME | TIMES_MTIME);
    ret = stat_io(posix, &from, &out->stat);
    if (ret == 0)
        ret = stat_after(posix, &to, &out->postparent);
    return ret < 0 ? ret : (int)bytes;
}
POSIX_HOP(copy_file_range)

/* --- RCHECKSUM -------------------------------------------------------------------------------- */
static int strong_sum(bool is_sha256, const void *bytes, size_t count, struct fop_bytes *ret_sum)
{
    static_assert(sizeof(ret_sum->data) >= 32, "SHA-256 fits");
    unsigned length = 0;

    if (EVP_Digest(bytes, count, ret_sum->data, &length, is_sha256 ? EVP_sha256() : EVP_md5(),
                   NULL) != 1)
        return -EIO;
    ret_sum->bytes = length;
    return 0;
}

static int rchecksum_work(struct posix *posix, struct call *call, const struct rchecksum_args *in,
                          struct rchecksum_reply *out)
{
    bool is_sha256 = posix->fips_rchecksum;
    IO io = {};

    (void)call;
    if (in->size > PAYLOAD_BYTES_MAX)
        return -EINVAL;
    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    void *bytes = NULL;
    if (posix_memalign(&bytes, 4096, MAX(in->size, 1u)) != 0)
        return -ENOMEM;
    AUTO_FREE void *owned = bytes;
    struct iovec iov = { bytes, in->size };
    ssize_t count = env_preadv(io.fd, &iov, 1, in->offset);
    if (count < 0)
        return (int)count;
    out->weak = (uint32_t)adler32(0, bytes, (uInt)count); /* from 0, not from adler32's own 1 */
    ret = strong_sum(is_sha256, owned, (size_t)count, &out->strong);
    if (ret < 0 || !is_sha256)
        return ret;
    out->flags = 1;
    out->xdata = dict_new();
    return out->xdata ? dict_set_int(out->xdata, "fips-mode-rchecksum", 1) : -ENOMEM;
}
POSIX_HOP(rchecksum)
