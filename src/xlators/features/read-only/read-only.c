/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/read-only: refuses what would change the volume.
 * Promises: with `read-only on` every changing operation answers -EROFS, except those of internal
 *           callers (negative pid: heal, rebalance), as the genuine one lets them pass.
 * Keeps:    nothing.
 * Locks:    none. */
#include <errno.h>
#include <fcntl.h>

#include "graph/fop_call.h"

struct read_only {
    _Atomic bool on; /* live */
};

static bool op_changes(enum fop op, const void *args)
{
    switch (op) {
    case FOP_OPEN: {
        const struct open_args *in = args;
        return (in->flags & O_ACCMODE) != O_RDONLY || (in->flags & (O_TRUNC | O_CREAT));
    }
    case FOP_MKNOD: case FOP_MKDIR: case FOP_UNLINK: case FOP_RMDIR: case FOP_SYMLINK:
    case FOP_RENAME: case FOP_LINK: case FOP_TRUNCATE: case FOP_FTRUNCATE: case FOP_CREATE:
    case FOP_WRITEV: case FOP_SETXATTR: case FOP_FSETXATTR: case FOP_REMOVEXATTR:
    case FOP_FREMOVEXATTR: case FOP_SETATTR: case FOP_FSETATTR: case FOP_FALLOCATE:
    case FOP_DISCARD: case FOP_ZEROFILL: case FOP_PUT: case FOP_ICREATE: case FOP_NAMELINK:
    case FOP_COPY_FILE_RANGE: case FOP_XATTROP: case FOP_FXATTROP:
        return true;
    default:
        return false;
    }
}

static int read_only_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                         void *reply)
{
    struct read_only *state = xl->state;
    if (state->on && call->pid >= 0 && op_changes(op, args))
        return -EROFS;
    return fop_call(first_child(xl), call, op, args, reply);
}

static const struct option read_only_options[] = {
    OPTION_BOOL(struct read_only, on, "read-only", .fallback = "off", .flags = OPTION_LIVE,
                .help = "Refuse changes with EROFS."),
    OPTION_END,
};

const struct xlator_type xlator_features_read_only = {
    .name = "features/read-only",
    .state_size = sizeof(struct read_only),
    .options = read_only_options,
    .children_min = 1,
    .children_max = 1,
    .any = read_only_any,
};
