/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/utime: stamps every operation with the client's clock, so that all bricks store the same
 * times (spec/wire.md 1.5 flags, spec/disk.md 1.7).
 * Promises: an operation carries ctime_sec/nsec and the flags of the times that it changes; nothing
 *           else about it changes. Internal callers' own stamps (flags already set) are left alone.
 * Keeps:    nothing.
 * Locks:    none. */
#include "core/env.h"
#include "graph/fop_call.h"

struct utime {
    _Atomic bool noatime; /* live */
};

enum {
    MADE = TIMES_CTIME | TIMES_MTIME | TIMES_ATIME | TIMES_PARENT_CTIME | TIMES_PARENT_MTIME,
    NAMED = TIMES_CTIME | TIMES_PARENT_CTIME | TIMES_PARENT_MTIME,
    WRITTEN = TIMES_CTIME | TIMES_MTIME,
    ALLOCATED = TIMES_MTIME | TIMES_ATIME,
    ATTRIBUTES = VALID_MODE | VALID_UID | VALID_GID,
};

/* utimes alone sets the times it names and leaves ctime to the brick: flags 0, stamp given. */
static uint32_t setattr_times(int32_t valid)
{
    bool only_times = (valid & (VALID_ATIME | VALID_MTIME)) && !(valid & ATTRIBUTES);
    return only_times ? 0 : TIMES_CTIME;
}

static uint32_t times_of(const struct utime *utime, enum fop op, const void *args)
{
    switch (op) {
    case FOP_CREATE: case FOP_MKDIR: case FOP_MKNOD: case FOP_SYMLINK:
        return MADE;
    case FOP_UNLINK: case FOP_RMDIR: case FOP_RENAME: case FOP_LINK:
        return NAMED;
    case FOP_WRITEV: case FOP_TRUNCATE: case FOP_FTRUNCATE: case FOP_COPY_FILE_RANGE: case FOP_PUT:
        return WRITTEN;
    case FOP_FALLOCATE: case FOP_ZEROFILL: case FOP_DISCARD:
        return ALLOCATED;
    case FOP_SETXATTR: case FOP_FSETXATTR: case FOP_REMOVEXATTR: case FOP_FREMOVEXATTR:
        return TIMES_CTIME;
    case FOP_SETATTR:
        return setattr_times(((const struct setattr_args *)args)->valid);
    case FOP_FSETATTR:
        return setattr_times(((const struct fsetattr_args *)args)->valid);
    case FOP_OPEN: case FOP_OPENDIR: case FOP_READV:
        return utime->noatime ? 0 : TIMES_ATIME;
    default:
        return 0;
    }
}

static bool is_stamped(enum fop op)
{
    switch (op) {
    case FOP_LOOKUP: case FOP_STAT: case FOP_FSTAT: case FOP_STATFS: case FOP_LK: case FOP_FLUSH:
    case FOP_INODELK: case FOP_FINODELK: case FOP_ENTRYLK: case FOP_FENTRYLK: case FOP_ACCESS:
        return false; /* these change no time: no clock is read */
    default:
        return true;
    }
}

static int utime_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                     void *reply)
{
    if (!is_stamped(op) || call->times || call->ctime_sec)
        return fop_call(first_child(xl), call, op, args, reply);

    struct timespec now = env_wallclock();
    call->ctime_sec = (uint64_t)now.tv_sec;
    call->ctime_nsec = (uint32_t)now.tv_nsec;
    call->times = times_of(xl->state, op, args);
    int ret = fop_call(first_child(xl), call, op, args, reply);
    call->ctime_sec = call->ctime_nsec = call->times = 0; /* the call may carry another operation */
    return ret;
}

static const struct option utime_options[] = {
    OPTION_BOOL(struct utime, noatime, "noatime", .fallback = "on", .flags = OPTION_LIVE,
                .help = "Reads do not change the access time."),
    OPTION_END,
};

const struct xlator_type xlator_features_utime = {
    .name = "features/utime",
    .state_size = sizeof(struct utime),
    .options = utime_options,
    .children_min = 1,
    .children_max = 1,
    .any = utime_any,
};
