/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mount/fuse: the front door of a mount. It is the top translator of its graph, pushed by the
 * daemon with the options of the command line, and speaks to the kernel itself (no FUSE library).
 *
 *     ret = graph_push(graph, &xlator_mount_fuse, "fuse", &options);
 *     ...   graph_init, graph_start
 *     ret = fuse_mount(&config, graph, &fuse);              // config.error says what failed, and
 *     the cure ret = fuse_ready_wait(fuse, env_now_ns() + 30 * NS_PER_S);
 *     ...   config.ended may be called: somebody unmounted
 *     fuse_unmount(fuse);   graph_stop(graph);
 *
 * All on fibers. Before the first CHILD_UP of the child requests wait (and can be interrupted). */
#pragma once

#include "graph/xlator.h"

struct fuse;

enum {
    FUSE_ERROR_SIZE = 512
};

struct fuse_mount_config {
    const char *mountpoint;
    const char *source; /* shown in the mount table ("server:/volume"): --fs-display-name */
    /* Called once, on a fiber, when the kernel ended the connection by itself (umount(8), abort);
     * not because of fuse_unmount, which is still to be called. */
    void (*ended)(void *arg);
    void *arg;
    char error[FUSE_ERROR_SIZE]; /* filled in by a fuse_mount that fails: one line */
};

/* Mounts on config->mountpoint and starts serving. config (but not its strings) may go away
 * afterwards. The options are those of graph->top, which is a mount/fuse.
 * -ENODEV: no FUSE in this kernel; -EPERM: not allowed to mount; -ENOENT, -ENOTDIR: the mount
 * point; -EBUSY: it is mounted already. */
must_check int fuse_mount(struct fuse_mount_config *config, struct graph *graph,
                          struct fuse **ret_fuse);
/* Until kernel and we have agreed on the protocol (what else is needed is the child's to say), or
 * -ETIMEDOUT; -ENOTCONN: it was unmounted meanwhile; -EPROTO: this kernel is too old. */
must_check int fuse_ready_wait(struct fuse *fuse, uint64_t until_ns);
/* Unmounts (lazily where it is in use), waits for what runs (bounded), closes what is open. */
void fuse_unmount(struct fuse *fuse);

/* The kernel transport in use: "dev" or "io_uring"; for logs and measurements. */
const char *fuse_transport(const struct fuse *fuse) nowait;

extern const struct xlator_type xlator_mount_fuse;
