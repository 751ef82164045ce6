/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a mount keeps: its options, the kernel connection, open handles, requests in flight.
 *
 *     fuse -> device[] -> reader fiber -> request -> a fiber of its own
 *          -> handles (open files)    -> pending[] (by unique, for INTERRUPT)
 *
 * Locks: fuse.mutex covers the life cycle and is never held over a wait; pending[].mutex and
 * handles_mutex are leaves, and so is handle.mutex. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "core/buf.h"
#include "core/sync.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/fuse_wire.h"
#include "xlators/mount/fuse/groups.h"

struct request;

enum {
    FUSE_REQUEST_BYTES_MAX = 1 << 20, /* data of one READ or WRITE */
    FUSE_DEVICES_MAX = 64,
    FUSE_PENDING_BUCKETS = 64,
    FUSE_REPLACED_MAX = 16,
    FUSE_COPY_BELOW = 32 * 1024, /* smaller WRITEs are copied out of the landing buffer */
};

struct fuse_options {
    char *direct_io_mode; /* NULL: auto */
    char *mountpoint, *dump_fuse, *mountopts;
    double attribute_timeout, entry_timeout, negative_timeout;
    int64_t client_pid, uid_map_root, gid_timeout;
    int64_t background_qlen, congestion_threshold, reader_threads, times_granularity;
    bool read_only, keep_cache, acl, selinux, ino32, use_readdirp, no_root_squash, capability;
    bool writeback_cache, auto_invalidation;
};

/* One descriptor of the connection, with the fiber that reads it. */
struct device {
    struct fuse *fuse;
    int fd;
    struct lane *lane;
    struct buf *landing;              /* where the data of the next WRITE lands */
    uint8_t head[WIRE_WRITE_HEADERS]; /* and what stands before it */
};

/* An owner that took a lock through a handle and did not yet give all up (FLUSH). */
struct handle_owner {
    bool is_flock;
    uint64_t owner;
    struct handle_owner *next;
};

struct handle { /* an open file or directory: fh of the protocol */
    struct fd *fd;
    pthread_mutex_t mutex;
    struct handle_owner *owners;
    _Atomic bool dirty;          /* written since the last FLUSH */
    _Atomic uint64_t end_offset; /* of a directory: where the list ended; 0: not known */
    TAILQ_ENTRY(handle) link;
};

struct pending {
    pthread_mutex_t mutex;
    LIST_HEAD(, request) requests;
};

/* An open(2) that lost a race: see replaced.h. */
struct replaced {
    int32_t pid;
    uint32_t flags;
    uint64_t until_ns; /* 0: free */
    struct fd *fd;     /* of its second try */
};

/* A RELEASE that gives back locks: who asks for one of that file meanwhile waits for it. */
struct unlocking {
    const struct inode *inode;
    LIST_ENTRY(unlocking) link;
};

struct fuse {
    struct fuse_options options;
    struct xlator *xl;
    struct inode *root;
    char *mountpoint;
    uint64_t mount_dev; /* st_dev of the mount, to know it again */
    void (*ended)(void *arg);
    void *ended_arg;

    uint32_t minor; /* as agreed at INIT */
    uint64_t flags;
    enum {
        DIRECT_AUTO,
        DIRECT_ALWAYS,
        DIRECT_NEVER
    } direct;

    pthread_mutex_t mutex;
    struct fcond changed; /* one of these: */
    _Atomic bool up;      /* the child has served once */
    bool child_up, mounted, ready, refused, end_seen, stopping;
    uint32_t readers, running; /* fibers */

    struct device devices[FUSE_DEVICES_MAX];
    uint32_t device_count;
    struct pending pending[FUSE_PENDING_BUCKETS];
    pthread_mutex_t handles_mutex;
    TAILQ_HEAD(, handle) handles;
    bool ring_is_used;
    _Atomic uint64_t ring_replaced;
    struct group_cache groups;
    LIST_HEAD(, unlocking) unlocking;            /* under mutex */
    struct replaced replaced[FUSE_REPLACED_MAX]; /* under mutex */
    _Atomic unsigned replaced_count;
    _Atomic uint64_t requests, interrupts, bytes_read, bytes_written;
};

/* Fibers that the end of the mount waits for. */
void fuse_fiber_enter(struct fuse *fuse) nowait;
void fuse_fiber_leave(struct fuse *fuse) nowait;

/* The child: all operations go there. */
static inline struct xlator *fuse_child(const struct fuse *fuse)
{
    return first_child(fuse->xl);
}

/* A new handle takes over the caller's reference of fd. NULL: no memory (fd is still the
 * caller's). */
struct handle *handle_new(struct fuse *fuse, struct fd *fd) nowait;
/* Closes the file: may wait. */
void handle_free(struct fuse *fuse, struct handle *handle);
/* Some open file of that inode, referenced; NULL: it is not open. */
struct fd *handle_fd_of(struct fuse *fuse, const struct inode *inode) nowait;
static inline struct handle *handle_of(uint64_t fh)
{
    return (struct handle *)(uintptr_t)fh;
}

/* Counts of the kernel's references to an inode (nlookup). */
void inode_lookups_add(struct inode *inode) nowait;
void inode_lookups_drop(struct inode *inode, uint64_t count) nowait;
/* The kernel's number for an inode, and back. */
uint64_t inode_nodeid(const struct inode *inode) nowait;
struct inode *nodeid_inode(const struct fuse *fuse, uint64_t nodeid) nowait;
