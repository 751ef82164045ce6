/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/fdstate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"

int open_flags(uint32_t flags)
{
    if (flags & O_DSYNC) /* the wire has one bit for both: the safe reading (spec/wire.md 4.1) */
        flags |= O_SYNC;
    /* creation is over, terminals and signals are no business of a brick */
    return (int)(flags & (O_ACCMODE | O_TRUNC | O_APPEND | O_SYNC | O_DIRECT | O_NOATIME)) |
           O_CLOEXEC | O_LARGEFILE;
}

int open_file_bind(struct posix *posix, struct fd *fd, struct node *node, int backend,
                   uint32_t flags)
{
    struct open_file *file = malloc(sizeof(*file));
    if (!file) {
        env_close(backend);
        return -ENOMEM;
    }
    *file = (struct open_file){
        .fd = backend, .other_fd = -1, .is_direct = flags & O_DIRECT, .flags = flags,
        .node = node,
    };
    node->opens++;
    posix->fds_open++;
    struct open_file *stored = slot_add(&fd->slots, posix->xl, file);
    if (stored == file)
        return 0;
    open_file_release(posix, fd, file); /* another opened it first, or there is no memory */
    return stored ? 0 : -ENOMEM;
}

void unlinked_forget_locked(struct posix *posix, struct node *node)
{
    char name[UUID_TEXT_SIZE];

    if (node->opens > 0 || !node->is_unlinked)
        return;
    /* or at start */
    best_effort(env_unlinkat(posix->unlink_fd, gfid_format(&node->inode->gfid, name), 0));
    node->is_unlinked = false;
    node_reset(posix, node);
}

void unlinked_forget(struct posix *posix, struct node *node)
{
    STRIPES_HELD held = inodes_lock(posix, &node->inode->gfid, NULL);

    unlinked_forget_locked(posix, node);
}

struct forget_frame {
    struct posix *posix;
    struct open_file *file;
};

static void close_all(struct open_file *file)
{
    if (file->fd >= 0)
        env_close(file->fd);
    if (file->other_fd >= 0)
        env_close(file->other_fd);
}

static void forget_hop(void *arg)
{
    struct forget_frame *frame = arg;
    unlinked_forget(frame->posix, frame->file->node);
    close_all(frame->file); /* frees the blocks: this is what takes long */
}

void open_file_release(struct posix *posix, struct fd *fd, struct open_file *file)
{
    (void)fd;
    struct node *node = file->node;
    bool is_last = --node->opens == 0;

    posix->fds_open--;
    if (node->is_unlinked && is_last) {
        struct forget_frame frame = { posix, file };
        hop(pool_default(), forget_hop, &frame);
    } else {
        close_all(file);
    }
    listing_free(file->listing);
    free(file);
}

/* --- opening at first use --------------------------------------------------------------------- */
struct first_use {
    struct posix *posix;
    struct inode *inode;
    int flags;
    int fd;
    struct node *node;
};

static int open_located(struct located *located, int flags)
{
    mode_t type = located->st.st_mode & S_IFMT;

    if (type == S_IFDIR)
        return flags & O_DIRECTORY ? env_openat(located->desc->fd, ".", flags, 0) : -EISDIR;
    if (flags & O_DIRECTORY)
        return -ENOTDIR;
    if (type == S_IFLNK)
        return -ELOOP;
    if (type != S_IFREG)
        return -ENXIO; /* a device of this host is no client's business */
    return env_openat2(located->object.at, located->path, (uint64_t)(flags | O_NOFOLLOW), 0, 0);
}

int open_inode(struct posix *posix, struct inode *inode, int flags, struct node **ret_node)
{
    LOCATED located = {};
    int ret = locate(posix, inode, &located);
    if (ret < 0)
        return ret;
    inode->type = located.st.st_mode & S_IFMT;
    *ret_node = located.node;
    return open_located(&located, flags);
}

static void first_use_hop(void *arg)
{
    struct first_use *frame = arg;
    frame->fd = open_inode(frame->posix, frame->inode, frame->flags, &frame->node);
    if (frame->fd == -EROFS || frame->fd == -ETXTBSY) /* anonymous: at least it can be read */
        frame->fd = open_inode(frame->posix, frame->inode,
                               (frame->flags & ~O_ACCMODE) | O_RDONLY, &frame->node);
}

static int begin_anonymous(struct posix *posix, struct inode *inode, uint32_t call_flags,
                           struct io *io)
{
    bool is_direct = call_flags & O_DIRECT;
    enum node_desc which = is_direct ? NODE_IO_DIRECT : NODE_IO;
    struct node *node = node_get(posix, inode);
    if (!node)
        return -ENOMEM;
    *io = (struct io){ .is_direct = is_direct, .flags = O_RDWR, .node = node };
    if ((io->desc = node_desc(node, which))) {
        node->is_recent = true;
        io->fd = io->desc->fd;
        return 0;
    }
    struct first_use frame = {
        .posix = posix, .inode = inode,
        .flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | (is_direct ? O_DIRECT : 0),
    };
    hop(pool_default(), first_use_hop, &frame);
    if (frame.fd < 0)
        return frame.fd;
    io->desc = node_set_desc(posix, node, which, frame.fd);
    if (!io->desc)
        return -ENOMEM;
    io->fd = io->desc->fd;
    return 0;
}

/* An fd whose open went to another graph: opened again from what it keeps. */
static int open_again(struct posix *posix, struct fd *fd)
{
    struct first_use frame = {
        .posix = posix, .inode = fd->inode,
        .flags = (open_flags(fd->flags) & ~O_TRUNC) | (fd->is_dir ? O_DIRECTORY : 0),
    };
    if (fd->is_dir)
        frame.flags &= ~O_ACCMODE;
    hop(pool_default(), first_use_hop, &frame);
    if (frame.fd < 0)
        return frame.fd;
    return open_file_bind(posix, fd, frame.node, frame.fd, fd->flags);
}

struct reopen {
    struct open_file *file;
    int fd;
};

static void reopen_hop(void *arg)
{
    struct reopen *reopen = arg;
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", reopen->file->fd);
    int flags = (open_flags(reopen->file->flags) & ~O_TRUNC) ^ O_DIRECT;
    reopen->fd = env_openat(AT_FDCWD, path, flags, 0);
}

/* fcntl(F_SETFL) switched O_DIRECT at the client: a second descriptor serves from now on. */
static int use_other(struct io *io)
{
    struct open_file *file = io->file;

    if (file->other_fd < 0) {
        struct reopen reopen = { .file = file };
        int none = -1;
        hop(pool_default(), reopen_hop, &reopen);
        if (reopen.fd < 0)
            return reopen.fd;
        if (!__atomic_compare_exchange_n((int *)&file->other_fd, &none, reopen.fd, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            env_close(reopen.fd); /* another was faster */
    }
    io->fd = file->other_fd;
    io->is_direct = !io->is_direct;
    return 0;
}

int io_begin(struct posix *posix, struct fd *fd, uint32_t call_flags, struct io *ret_io)
{
    if (!fd->inode)
        return -EBADF;
    if (fd->anonymous)
        return begin_anonymous(posix, fd->inode, call_flags, ret_io);

    struct open_file *file = slot_get(&fd->slots, posix->xl);
    if (!file) {
        int ret = open_again(posix, fd);
        if (ret < 0)
            return ret;
        file = slot_get(&fd->slots, posix->xl);
    }
    *ret_io = (struct io){ .fd = file->fd, .is_direct = file->is_direct, .flags = file->flags,
                           .node = file->node, .file = file };
    bool is_switched = call_flags && !(call_flags & O_DIRECT) == file->is_direct;
    return is_switched ? use_other(ret_io) : 0;
}

void io_end(struct io *io)
{
    desc_unref(TAKE(io->desc));
}

/* --- OPEN, FLUSH ------------------------------------------------------------------------------ */
static int open_work(struct posix *posix, struct call *call, const struct open_args *in,
                     struct open_reply *out)
{
    struct node *node;

    (void)out;
    if (in->flags & O_CREAT) {
        int ret = posix_room(posix, call, in->xdata);
        if (ret < 0)
            return ret;
    }
    int fd = open_inode(posix, in->inode, open_flags(in->flags), &node);
    if (fd < 0)
        return fd;
    if (in->flags & O_TRUNC)
        mdata_touch(posix, node, call, in->xdata, TIMES_CTIME | TIMES_MTIME);
    else
        mdata_touch(posix, node, call, in->xdata, 0);
    node_keep(posix, node);
    return open_file_bind(posix, in->fd, node, fd, in->flags);
}
POSIX_HOP(open)

int brick_flush(struct xlator *xl, struct call *call, const struct flush_args *in,
                struct flush_reply *out)
{
    (void)xl;
    (void)call;
    (void)out;
    return in->fd->inode ? 0 : -EBADF; /* locks are features/locks' to drop */
}
