/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One request of the kernel, from its arrival to its answer.
 *
 *     static int statfs_run(struct request *req)
 *     {
 *         ...  return ret < 0 ? ret : request_reply(req, &out, sizeof(out));
 *     }
 *
 * A handler runs on a fiber of its own and either answers once or returns -errno, which is then the
 * answer. It may be run again after -EACCES/-EPERM (other groups), so it must fail without a
 * trace. */
#pragma once

#include "core/dict.h"
#include "fop/call.h"
#include "graph/fop_call.h"
#include "xlators/mount/fuse/ring.h"
#include "xlators/mount/fuse/state.h"

enum operation_flags {
    OP_INLINE = 1,  /* by the reader itself: never waits */
    OP_EARLY = 2,   /* does not need the child */
    OP_GROUPS = 4,  /* what it does depends on the caller's groups */
    OP_SIGNALS = 8, /* any signal of the caller ends the wait; others only end when it dies */
    OP_NO_REPLY = 16,
    OP_INODE = 32, /* names no entry: "no such file" is about the inode that the kernel knew */
};

struct operation {
    const char *name;
    int (*run)(struct request *req);
    uint32_t body_min; /* bytes that must be there */
    uint32_t flags;
};
/* NULL: unknown. */
const struct operation *operation_of(uint32_t opcode) nowait;

struct request {
    struct fuse *fuse;
    struct device *device;
    const struct operation *operation;
    LIST_ENTRY(request) link;
    struct call call;
    struct call_cancel cancel;
    struct group_list *groups;
    struct ring_entry *entry; /* came over io_uring; NULL: over the device */
    struct buf *landed;       /* WRITE: its data */
    void *landed_data;        /* the same in the entry, where it stays */
    uint32_t landed_bytes;
    uint32_t body_bytes;
    bool groups_remembered, interrupted;
    bool is_abandoned;    /* its caller was killed, and answered by another fiber */
    _Atomic bool replied; /* by its handler, or for a caller that is being killed */
    struct fuse_in_header in;
    uint8_t body[] __attribute__((aligned(8))); /* NUL after its end */
};

/* From what a read of the device brought (bytes of device->head and device->landing). NULL and
 * *ret: -EPROTO (malformed), -ENOMEM. */
struct request *request_new(struct device *device, size_t bytes, int *ret);
void request_free(struct request *req);
/* Runs it: on this fiber when it is OP_INLINE, else on one of its own. */
void request_start(struct request *req);
/* From an entry of the ring: the request's first structure, and what follows it. NULL: no
 * memory. */
struct request *request_of_ring(struct fuse *fuse, struct ring_entry *entry,
                                const struct fuse_in_header *in, const void *operation,
                                uint32_t operation_bytes, void *payload, uint32_t payload_bytes);
/* Runs it on this fiber, to its end. false: its entry was taken over meanwhile. */
bool request_serve(struct request *req);
/* INTERRUPT of the request with that unique: false when there is none. */
bool request_interrupt(struct fuse *fuse, uint64_t unique);
/* What the kernel still waits for gets -EINTR where it can: the mount ends. */
void requests_cancel(struct fuse *fuse);

/* 0, or -ENOENT: the kernel gave up waiting (what the answer handed over was not taken). */
int request_reply(struct request *req, const void *data, size_t bytes);
int request_reply_iov(struct request *req, const struct iovec *iov, int count);

/* --- for handlers ----------------------------------------------------------------------------- */
struct inode *request_inode(const struct request *req) nowait;
/* The NUL-terminated text at *offset of the body; moves *offset behind it. NULL: malformed. */
const char *request_text(const struct request *req, size_t *offset) nowait;
/* The same for one component of a path: -EINVAL malformed or empty, -ENAMETOOLONG. */
must_check int request_name(const struct request *req, size_t *offset, const char **ret_name)
    nowait;
static inline const void *request_in(const struct request *req)
{
    return req->body;
}
/* The caller's supplementary groups, for an operation that only sometimes depends on them. */
void request_groups(struct request *req);
void request_owner(struct request *req, uint64_t owner) nowait; /* lock owner of the call */
/* xdata that asks for a new inode with a fresh gfid. NULL: no memory. */
struct dict *gfid_request(void);

/* The handlers: entry.c, file.c, attr.c, dir.c, lock.c, xattr.c, init.c */
int lookup_run(struct request *req);
int forget_run(struct request *req);
int batch_forget_run(struct request *req);
int readlink_run(struct request *req);
int symlink_run(struct request *req);
int mknod_run(struct request *req);
int mkdir_run(struct request *req);
int unlink_run(struct request *req);
int rmdir_run(struct request *req);
int rename_run(struct request *req);
int rename2_run(struct request *req);
int link_run(struct request *req);
int create_run(struct request *req);

int open_run(struct request *req);
int read_run(struct request *req);
int write_run(struct request *req);
int flush_run(struct request *req);
int release_run(struct request *req);
int fsync_run(struct request *req);
int fallocate_run(struct request *req);
int lseek_run(struct request *req);
int copy_file_range_run(struct request *req);
int copy_file_range_64_run(struct request *req);

int getattr_run(struct request *req);
int statx_run(struct request *req);
int setattr_run(struct request *req);
int access_run(struct request *req);
int statfs_run(struct request *req);

int opendir_run(struct request *req);
int readdir_run(struct request *req);
int readdirplus_run(struct request *req);
int releasedir_run(struct request *req);
int fsyncdir_run(struct request *req);

int getlk_run(struct request *req);
int setlk_run(struct request *req);
int setlkw_run(struct request *req);

int setxattr_run(struct request *req);
int getxattr_run(struct request *req);
int listxattr_run(struct request *req);
int removexattr_run(struct request *req);

int init_run(struct request *req);
int destroy_run(struct request *req);
int interrupt_run(struct request *req);
int unsupported_run(struct request *req); /* -ENOSYS: the kernel asks no more */
int ioctl_run(struct request *req);
