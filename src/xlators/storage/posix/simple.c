/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations that are made of others, or that no client needs: IPC, PUT, ICREATE, NAMELINK. */
#include <errno.h>

#include "graph/fop_call.h"
#include "xlators/storage/posix/posix.h"

/* Registrations of other translators that this brick does not have (changelog, upcall). */
int brick_ipc(struct xlator *xl, struct call *call, const struct ipc_args *in,
              struct ipc_reply *out)
{
    (void)xl;
    (void)call;
    (void)out;
    return in->op == 0 ? 0 : -EOPNOTSUPP;
}

/* A whole small file at once. */
static int put_bytes(struct xlator *xl, struct call *call, struct fd *fd,
                     const struct put_args *in, struct put_reply *out)
{
    struct writev_args args = { .fd = fd, .offset = in->offset, .flags = in->flags,
                                .payload = in->payload };
    struct writev_reply reply = {};

    if (in->payload.bytes == 0)
        return 0;
    int ret = brick_writev(xl, call, &args, &reply);
    if (ret >= 0)
        out->stat = reply.poststat;
    writev_reply_fini(&reply);
    if (ret < 0)
        return ret;
    return (uint32_t)ret == in->payload.bytes ? 0 : -ENOSPC;
}

static int put_xattrs(struct xlator *xl, struct call *call, struct fd *fd,
                      const struct put_args *in)
{
    struct fsetxattr_args args = { .fd = fd, .dict = in->dict };
    struct fsetxattr_reply reply = {};

    if (dict_count(in->dict) == 0)
        return 0;
    int ret = brick_fsetxattr(xl, call, &args, &reply);
    fsetxattr_reply_fini(&reply);
    return ret;
}

int brick_put(struct xlator *xl, struct call *call, const struct put_args *in,
              struct put_reply *out)
{
    AUTO(fd) fd = fd_new(NULL, (in->flags & ~(uint32_t)O_ACCMODE) | O_RDWR, call->pid);
    if (!fd)
        return -ENOMEM;
    struct create_args args = {
        .parent = in->parent, .fd = fd, .flags = fd->flags, .mode = in->mode, .umask = in->umask,
        .name = in->name, .xdata = in->xdata,
    };
    struct create_reply reply = {};
    int ret = brick_create(xl, call, &args, &reply);
    out->stat = reply.stat;
    out->preparent = reply.preparent;
    out->postparent = reply.postparent;
    out->xdata = TAKE(reply.xdata);
    if (ret == 0)
        ret = put_bytes(xl, call, fd, in, out);
    return ret < 0 ? ret : put_xattrs(xl, call, fd, in);
}

/* Half a creation each: no client sends them, and the whole ones are atomic here. */
int brick_icreate(struct xlator *xl, struct call *call, const struct icreate_args *in,
                  struct icreate_reply *out)
{
    (void)xl;
    (void)call;
    (void)in;
    (void)out;
    return -ESTALE;
}

int brick_namelink(struct xlator *xl, struct call *call, const struct namelink_args *in,
                   struct namelink_reply *out)
{
    (void)xl;
    (void)call;
    (void)in;
    (void)out;
    return -EOPNOTSUPP;
}
