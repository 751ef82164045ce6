/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of one brick, shared by the files of storage/posix. See posix.c for the whole
 * picture. */
#pragma once

#include <pthread.h>
#include <sys/queue.h>

#include "core/buf.h"
#include "core/env.h"
#include "core/sync.h"
#include "graph/xlator.h"

#define HANDLE_DIR ".glusterfs"
#define XATTR_GFID "trusted.gfid"
#define XATTR_VOLUME_ID "trusted.glusterfs.volume-id"
#define XATTR_GFID2PATH "trusted.gfid2path."
#define XATTR_MDATA "trusted.glusterfs.mdata"
#define XATTR_PGFID "trusted.pgfid."

enum {
    STRIPES = 256,          /* of name locks and of inode locks */
    NODES_KEPT_MAX = 4096,  /* inodes that keep a descriptor and what is known of them */
    NAME_BYTES_MAX = 255,
    DIR_DEPTH_MAX = 4096,   /* handles followed to the root before we call it a circle */
    XATTR_LIST_BYTES_MAX = 65536, /* the kernel's XATTR_LIST_MAX */
    XATTR_VALUE_BYTES_MAX = 65536,
};

struct node;
TAILQ_HEAD(nodes, node);

struct posix {
    /* options */
    char *directory, *hostname, *volume_id, *glusterd_uuid, *batch_fsync_mode, *separator_option;
    _Atomic bool export_statfs, gfid2path, update_link_count_parent, disable_landfill_purge;
    _Atomic bool node_uuid_pathinfo, fips_rchecksum, ctime;
    bool mandate_attribute, o_direct;
    _Atomic int64_t janitor_s, brick_uid, brick_gid, health_interval_s, health_timeout_s;
    _Atomic int64_t shared_brick_count, force_create_mode, force_directory_mode, create_mask;
    _Atomic int64_t create_directory_mask, max_hardlinks;
    struct option_amount reserve;        /* under mutex once started */

    /* the brick */
    struct xlator *xl;
    char *root_path;                     /* directory without trailing slashes */
    int root_fd, handle_fd, unlink_fd, landfill_fd;
    int first_fd[256];                   /* .glusterfs/00 ... ff */
    _Atomic uint8_t second_dirs[65536 / 8]; /* bit aa*256+bb: .glusterfs/aa/bb was seen */
    dev_t root_dev;
    ino_t root_ino, handle_ino;
    uid_t own_uid;                       /* whose files the daemon makes; -1: not known */
    gid_t own_gid;
    char host[256];
    char separator[16];                  /* of glusterfs.gfidtopath; under mutex */
    _Atomic uint64_t removals;           /* grows when a name changed what it means */
    _Atomic uint32_t removing;           /* such changes that are under way */

    /* locks of workers, in this order: names, inodes, dir_rename */
    pthread_mutex_t name_lock[STRIPES], inode_lock[STRIPES], dir_rename;

    pthread_mutex_t mutex;               /* the rest; never held across a wait */
    struct nodes kept;                   /* oldest first */
    uint32_t kept_count, kept_max;
    struct nodes dirty;                  /* nodes whose times are not on disk yet */
    bool flusher_runs;
    TAILQ_HEAD(, lingering) lingering;   /* linger.c */
    uint32_t lingering_count;
    bool linger_runs;

    /* fibers of its own (health.c, mdata.c) */
    bool stopping;
    unsigned fibers;
    struct fcond wake;                   /* stopping changed, or all fibers are gone */
    _Atomic bool is_full, is_down;
    _Atomic uint64_t fds_open, heals, purges;
};

/* What fails here may fail: the comment beside the call says why. */
static inline void best_effort(int ret)
{
    (void)ret;
}

/* An operation that runs as one function on a worker: makes brick_<op> from <op>_work. */
#define POSIX_HOP(op)                                                                              \
    struct op##_frame {                                                                            \
        struct posix *posix;                                                                       \
        struct call *call;                                                                         \
        const struct op##_args *in;                                                                \
        struct op##_reply *out;                                                                    \
        int ret;                                                                                   \
    };                                                                                             \
    static void op##_hop(void *arg)                                                                \
    {                                                                                              \
        struct op##_frame *frame = arg;                                                            \
        frame->ret = op##_work(frame->posix, frame->call, frame->in, frame->out);                  \
    }                                                                                              \
    int brick_##op(struct xlator *xl, struct call *call, const struct op##_args *in,               \
                   struct op##_reply *out)                                                         \
    {                                                                                              \
        struct op##_frame frame = { .posix = xl->state, .call = call, .in = in, .out = out };      \
        hop(pool_default(), op##_hop, &frame);                                                     \
        return frame.ret;                                                                          \
    }

#define POSIX_FOPS(X)                                                                              \
    X(lookup) X(stat) X(fstat) X(readlink) X(mknod) X(mkdir) X(unlink) X(rmdir) X(symlink)         \
    X(rename) X(link) X(truncate) X(ftruncate) X(open) X(readv) X(writev) X(statfs) X(flush)       \
    X(fsync) X(setxattr) X(fsetxattr) X(getxattr) X(fgetxattr) X(removexattr) X(fremovexattr)      \
    X(opendir) X(fsyncdir) X(access) X(create) X(readdir) X(readdirp) X(xattrop) X(fxattrop)       \
    X(rchecksum) X(setattr) X(fsetattr) X(fallocate) X(discard) X(zerofill) X(seek) X(ipc)         \
    X(put) X(icreate) X(namelink) X(copy_file_range)
#define POSIX_DECLARE(op) fop_##op##_fn brick_##op;
POSIX_FOPS(POSIX_DECLARE)

/* -ENOSPC when the reserve is reached and this call must respect it (spec/disk.md 1.9). */
must_check int posix_room(struct posix *posix, const struct call *call, const struct dict *xdata)
    nowait;
/* An operation of the system's own machinery (xdata glusterfs-internal-fop). */
bool posix_is_internal(const struct dict *xdata) nowait;
/* Name of an entry to look at or to make: -EPERM with a slash, -ENAMETOOLONG, -EINVAL when
 * empty. */
must_check int posix_check_name(const struct inode *parent, const char *name) nowait;

/* Locks over names and inodes, taken in stripes; only inside hop, where waiting is allowed. */
struct stripes {
    pthread_mutex_t *mutex[2];
};
struct stripes names_lock(struct posix *posix, const gfid_t *parent, const char *name);
struct stripes names_lock2(struct posix *posix, const gfid_t *parent1, const char *name1,
                           const gfid_t *parent2, const char *name2);
struct stripes inodes_lock(struct posix *posix, const gfid_t *one, const gfid_t *two /* or NULL */);
void stripes_unlock(struct stripes *stripes);
#define STRIPES_HELD __attribute__((cleanup(stripes_unlock), unused)) struct stripes

/* Marks, to the end of the block, that a name is changing what it means: who reads a name's
 * stats and gfid in two steps (readdirp) sees by these counts that they may not belong together. */
static inline struct posix *removal_begin(struct posix *posix)
{
    posix->removing++;
    return posix;
}
static inline void removal_end(struct posix **posix)
{
    (*posix)->removals++;
    (*posix)->removing--;
}
#define REMOVAL(posix_)                                                                            \
    __attribute__((cleanup(removal_end), unused)) struct posix *HOLD_CAT(removal_, __LINE__) =     \
        removal_begin(posix_)
