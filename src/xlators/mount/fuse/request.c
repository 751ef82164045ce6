/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/mount/fuse/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"

enum {
    NAME_BYTES_MAX = 255,
    WATCH_INTERVAL_NS = 200 * NS_PER_MS,
};

/* --- the operations of the protocol ----------------------------------------------------------- */
#define IN(type) sizeof(struct fuse_##type)
static const struct operation operations[] = {
    [FUSE_LOOKUP] = { "LOOKUP", lookup_run, 2, OP_GROUPS },
    [FUSE_FORGET] = { "FORGET", forget_run, IN(forget_in), OP_INLINE | OP_NO_REPLY },
    [FUSE_GETATTR] = { "GETATTR", getattr_run, IN(getattr_in), OP_INODE },
    [FUSE_SETATTR] = { "SETATTR", setattr_run, IN(setattr_in), OP_GROUPS | OP_INODE },
    [FUSE_READLINK] = { "READLINK", readlink_run, 0, OP_GROUPS | OP_INODE },
    [FUSE_SYMLINK] = { "SYMLINK", symlink_run, 4, OP_GROUPS },
    [FUSE_MKNOD] = { "MKNOD", mknod_run, IN(mknod_in) + 2, OP_GROUPS },
    [FUSE_MKDIR] = { "MKDIR", mkdir_run, IN(mkdir_in) + 2, OP_GROUPS },
    [FUSE_UNLINK] = { "UNLINK", unlink_run, 2, OP_GROUPS },
    [FUSE_RMDIR] = { "RMDIR", rmdir_run, 2, OP_GROUPS },
    [FUSE_RENAME] = { "RENAME", rename_run, IN(rename_in) + 4, OP_GROUPS },
    [FUSE_LINK] = { "LINK", link_run, IN(link_in) + 2, OP_GROUPS },
    [FUSE_OPEN] = { "OPEN", open_run, IN(open_in), OP_GROUPS | OP_INODE },
    [FUSE_READ] = { "READ", read_run, IN(read_in), 0 },
    [FUSE_WRITE] = { "WRITE", write_run, IN(write_in), 0 },
    [FUSE_STATFS] = { "STATFS", statfs_run, 0, OP_INODE },
    [FUSE_RELEASE] = { "RELEASE", release_run, IN(release_in), 0 },
    [FUSE_FSYNC] = { "FSYNC", fsync_run, IN(fsync_in), 0 },
    [FUSE_SETXATTR] = { "SETXATTR", setxattr_run, WIRE_SETXATTR_IN_COMPAT + 2,
                        OP_GROUPS | OP_INODE },
    [FUSE_GETXATTR] = { "GETXATTR", getxattr_run, IN(getxattr_in) + 2, OP_GROUPS | OP_INODE },
    [FUSE_LISTXATTR] = { "LISTXATTR", listxattr_run, IN(getxattr_in), OP_GROUPS | OP_INODE },
    [FUSE_REMOVEXATTR] = { "REMOVEXATTR", removexattr_run, 2, OP_GROUPS | OP_INODE },
    [FUSE_FLUSH] = { "FLUSH", flush_run, IN(flush_in), 0 },
    [FUSE_INIT] = { "INIT", init_run, 16, OP_EARLY },
    [FUSE_OPENDIR] = { "OPENDIR", opendir_run, IN(open_in), OP_GROUPS | OP_INODE },
    [FUSE_READDIR] = { "READDIR", readdir_run, IN(read_in), 0 },
    [FUSE_RELEASEDIR] = { "RELEASEDIR", releasedir_run, IN(release_in), 0 },
    [FUSE_FSYNCDIR] = { "FSYNCDIR", fsyncdir_run, IN(fsync_in), 0 },
    [FUSE_GETLK] = { "GETLK", getlk_run, IN(lk_in), 0 },
    [FUSE_SETLK] = { "SETLK", setlk_run, IN(lk_in), 0 },
    [FUSE_SETLKW] = { "SETLKW", setlkw_run, IN(lk_in), OP_SIGNALS },
    [FUSE_ACCESS] = { "ACCESS", access_run, IN(access_in), OP_GROUPS | OP_INODE },
    [FUSE_CREATE] = { "CREATE", create_run, IN(create_in) + 2, OP_GROUPS },
    [FUSE_INTERRUPT] = { "INTERRUPT", interrupt_run, IN(interrupt_in), OP_INLINE | OP_NO_REPLY },
    [FUSE_BMAP] = { "BMAP", unsupported_run, 0, OP_EARLY },
    [FUSE_DESTROY] = { "DESTROY", destroy_run, 0, OP_EARLY },
    [FUSE_IOCTL] = { "IOCTL", ioctl_run, 0, OP_EARLY },
    [FUSE_POLL] = { "POLL", unsupported_run, 0, OP_EARLY },
    [FUSE_BATCH_FORGET] = { "BATCH_FORGET", batch_forget_run, IN(batch_forget_in),
                            OP_INLINE | OP_NO_REPLY },
    [FUSE_FALLOCATE] = { "FALLOCATE", fallocate_run, IN(fallocate_in), 0 },
    [FUSE_READDIRPLUS] = { "READDIRPLUS", readdirplus_run, IN(read_in), OP_GROUPS },
    [FUSE_RENAME2] = { "RENAME2", rename2_run, IN(rename2_in) + 4, OP_GROUPS },
    [FUSE_LSEEK] = { "LSEEK", lseek_run, IN(lseek_in), 0 },
    [FUSE_COPY_FILE_RANGE] = { "COPY_FILE_RANGE", copy_file_range_run, IN(copy_file_range_in), 0 },
    [FUSE_SYNCFS] = { "SYNCFS", unsupported_run, 0, OP_EARLY },
    [FUSE_TMPFILE] = { "TMPFILE", unsupported_run, 0, OP_EARLY },
    [WIRE_STATX] = { "STATX", statx_run, sizeof(struct wire_statx_in), OP_INODE },
    [WIRE_COPY_FILE_RANGE_64] = { "COPY_FILE_RANGE_64", copy_file_range_64_run,
                                  IN(copy_file_range_in), 0 },
};

const struct operation *operation_of(uint32_t opcode)
{
    if (opcode >= ARRAY_SIZE(operations) || !operations[opcode].run)
        return NULL;
    return &operations[opcode];
}

/* --- what the kernel must be told even when it is malformed ----------------------------------- */
int unsupported_run(struct request *req)
{
    (void)req;
    return -ENOSYS; /* remembered by the kernel: it does not ask again */
}

int ioctl_run(struct request *req)
{
    (void)req;
    return -ENOTTY;
}

int destroy_run(struct request *req)
{
    return request_reply(req, NULL, 0);
}

int interrupt_run(struct request *req)
{
    const struct fuse_interrupt_in *in = request_in(req);

    count_add(&req->fuse->interrupts, 1);
    if (request_interrupt(req->fuse, in->unique) || req->fuse->device_count == 1)
        return 0; /* found, or answered meanwhile */
    /* Another reader holds it and has not come to register it: the kernel shall say it again. */
    return -EAGAIN;
}

/* --- in flight -------------------------------------------------------------------------------- */
static struct pending *pending_of(struct fuse *fuse, uint64_t unique)
{
    return &fuse->pending[(unique >> 1) %
                          FUSE_PENDING_BUCKETS]; /* its lowest bit marks INTERRUPTs */
}

static void pending_add(struct request *req)
{
    struct pending *pending = pending_of(req->fuse, req->in.unique);

    HOLD(&pending->mutex);
    LIST_INSERT_HEAD(&pending->requests, req, link);
}

static void pending_remove(struct request *req)
{
    struct pending *pending = pending_of(req->fuse, req->in.unique);

    HOLD(&pending->mutex);
    LIST_REMOVE(req, link);
}

static struct request *pending_find_locked(struct pending *pending, uint64_t unique)
{
    struct request *req;

    LIST_FOREACH(req, &pending->requests, link)
    if (req->in.unique == unique)
        return req;
    return NULL;
}

/* A signal that the caller will handle must not end what is no wait for a lock: programs do not
 * expect EINTR from files. All are watched from the first signal on: once the caller is being
 * killed, the kernel is answered at once, whatever the child still waits for, so that the process
 * can go. */
struct watch {
    struct fuse *fuse;
    uint64_t unique;
    int32_t pid;
};

static bool watched_is_pending(const struct watch *watch)
{
    struct pending *pending = pending_of(watch->fuse, watch->unique);

    HOLD(&pending->mutex);
    return pending_find_locked(pending, watch->unique) != NULL;
}

/* Where to answer: a descriptor, or an entry of the ring; neither: it is answered already, or its
 * data stands in the entry, which must stay as it is until the child is through with it. */
struct answer_to {
    int fd;
    struct ring_entry *entry;
};

static struct answer_to watched_abandon(const struct watch *watch)
{
    struct pending *pending = pending_of(watch->fuse, watch->unique);

    HOLD(&pending->mutex);
    struct request *req = pending_find_locked(pending, watch->unique);
    if (!req)
        return (struct answer_to){ .fd = -1 };
    call_cancel_fire(&req->cancel);
    if (req->landed_data || atomic_exchange(&req->replied, true))
        return (struct answer_to){ .fd = -1 };
    req->is_abandoned = true;
    return (struct answer_to){ .fd = req->device->fd, .entry = req->entry };
}

static void watched_kill(const struct watch *watch)
{
    struct fuse_out_header out = { .len = sizeof(out), .error = -EINTR, .unique = watch->unique };
    struct iovec iov = { .iov_base = &out, .iov_len = sizeof(out) };
    struct answer_to to = watched_abandon(watch);

    if (to.entry) {
        ring_reply(to.entry, &out, NULL, 0);
        ring_entry_take_over(to.entry);
    } else if (to.fd >= 0) {
        (void)env_writev(to.fd, &iov, 1);
    }
}

static void watch_run(void *arg)
{
    AUTO_FREE struct watch *watch = arg;

    while (watched_is_pending(watch)) {
        if (process_is_dying(watch->pid)) {
            watched_kill(watch);
            break;
        }
        env_sleep(WATCH_INTERVAL_NS);
    }
    fuse_fiber_leave(watch->fuse);
}

static void watch_start(struct fuse *fuse, uint64_t unique, int32_t pid)
{
    struct watch *watch = malloc(sizeof(*watch));
    if (!watch)
        return;
    *watch = (struct watch){ .fuse = fuse, .unique = unique, .pid = pid };
    fuse_fiber_enter(fuse);
    if (fiber_start("fuse watch", watch_run, watch) < 0) {
        free(watch); /* the caller waits for its answer, as without a signal */
        fuse_fiber_leave(fuse);
    }
}

bool request_interrupt(struct fuse *fuse, uint64_t unique)
{
    struct pending *pending = pending_of(fuse, unique);
    int32_t pid = 0;

    {
        HOLD(&pending->mutex);
        struct request *req = pending_find_locked(pending, unique);
        if (!req)
            return false;
        if (req->operation->flags & OP_SIGNALS)
            call_cancel_fire(&req->cancel);
        if (!req->interrupted)
            pid = (int32_t)req->in.pid;
        req->interrupted = true;
    }
    if (pid)
        watch_start(fuse, unique, pid);
    return true;
}

void requests_cancel(struct fuse *fuse)
{
    for (int i = 0; i < FUSE_PENDING_BUCKETS; i++) {
        struct request *req;
        HOLD(&fuse->pending[i].mutex);
        LIST_FOREACH(req, &fuse->pending[i].requests, link)
        call_cancel_fire(&req->cancel);
    }
}

/* --- arrival ---------------------------------------------------------------------------------- */
static void call_fill(struct request *req)
{
    const struct fuse_options *options = &req->fuse->options;
    struct call *call = &req->call;

    call->pid = (int32_t)req->in.pid;
    if (options->no_root_squash)
        call->pid = PID_NO_ROOT_SQUASH;
    if (options->client_pid)
        call->pid = (int32_t)options->client_pid;
    call->uid = req->in.uid;
    if (options->uid_map_root && call->uid == (uint32_t)options->uid_map_root)
        call->uid = 0;
    call->gid = req->in.gid;
    call->unique = req->in.unique;
    call->cancel = &req->cancel;
}

/* The data of a WRITE: a small one moves to a buffer of its size, so that a megabyte of landing
 * room is not held for it. */
static void landing_take(struct device *device, struct request *req, uint32_t bytes)
{
    req->landed_bytes = bytes;
    if (bytes > FUSE_COPY_BELOW) {
        req->landed = device->landing;
        device->landing = buf_get(FUSE_REQUEST_BYTES_MAX);
        return;
    }
    req->landed = buf_get(bytes ? bytes : 1);
    memcpy(req->landed->data, device->landing->data, bytes);
}

static struct request *request_alloc(struct device *device, const struct fuse_in_header *in,
                                     uint32_t body_bytes)
{
    struct request *req = malloc(sizeof(*req) + body_bytes + 1);
    if (!req)
        return NULL;
    memset(req, 0, sizeof(*req));
    req->fuse = device->fuse;
    req->device = device;
    req->in = *in;
    req->body_bytes = body_bytes;
    req->body[body_bytes] = '\0';
    call_cancel_init(&req->cancel);
    call_fill(req);
    return req;
}

/* The body: what follows the header in device->head, then in device->landing. */
static void body_copy(struct request *req, const struct device *device, size_t bytes)
{
    size_t in_head = MIN(bytes, (size_t)WIRE_WRITE_HEADERS - WIRE_HEADER);

    memcpy(req->body, device->head + WIRE_HEADER, in_head);
    memcpy(req->body + in_head, device->landing->data, bytes - in_head);
}

struct request *request_new(struct device *device, size_t bytes, int *ret)
{
    struct fuse_in_header in;

    *ret = -EPROTO;
    if (bytes < sizeof(in))
        return NULL;
    memcpy(&in, device->head, sizeof(in));
    uint32_t extension = (uint32_t)in.total_extlen * 8;
    if (in.len != bytes || extension > bytes - sizeof(in))
        return NULL;

    bool is_write = in.opcode == FUSE_WRITE && bytes >= WIRE_WRITE_HEADERS;
    size_t body = is_write ? sizeof(struct fuse_write_in) : bytes - sizeof(in) - extension;
    struct request *req = request_alloc(device, &in, (uint32_t)body);
    *ret = -ENOMEM;
    if (!req)
        return NULL;
    body_copy(req, device, body);
    if (is_write)
        landing_take(device, req, (uint32_t)(bytes - WIRE_WRITE_HEADERS));
    *ret = 0;
    return req;
}

struct request *request_of_ring(struct fuse *fuse, struct ring_entry *entry,
                                const struct fuse_in_header *in, const void *operation,
                                uint32_t operation_bytes, void *payload, uint32_t payload_bytes)
{
    bool is_write = in->opcode == FUSE_WRITE;
    uint32_t extension = MIN((uint32_t)in->total_extlen * 8, payload_bytes);
    uint32_t text_bytes = is_write ? 0 : payload_bytes - extension;
    struct request *req = request_alloc(&fuse->devices[0], in, operation_bytes + text_bytes);

    if (!req)
        return NULL;
    req->entry = entry;
    memcpy(req->body, operation, operation_bytes);
    memcpy(req->body + operation_bytes, payload, text_bytes);
    if (is_write) {
        req->landed_data = payload;
        req->landed_bytes = payload_bytes;
    }
    return req;
}

void request_free(struct request *req)
{
    buf_unref(req->landed);
    group_list_unref(req->groups);
    call_cancel_fini(&req->cancel);
    free(req);
}

/* --- answers ---------------------------------------------------------------------------------- */
/* iov[0] is the room for the header. */
static int reply_write(struct request *req, int error, struct iovec *iov, int count)
{
    struct fuse_out_header out = { .len = sizeof(out), .error = error, .unique = req->in.unique };

    for (int i = 1; i < count; i++)
        out.len += (uint32_t)iov[i].iov_len;
    iov[0] = (struct iovec){ .iov_base = &out, .iov_len = sizeof(out) };
    if (atomic_exchange(&req->replied, true))
        return -ENOENT; /* its caller was killed meanwhile */
    if (req->entry) {
        ring_reply(req->entry, &out, iov + 1, count - 1);
        return 0; /* the kernel never gives up a request that went this way */
    }
    ssize_t ret = env_writev(req->device->fd, iov, count);
    return ret < 0 ? (int)ret : 0;
}

int request_reply_iov(struct request *req, const struct iovec *iov, int count)
{
    struct iovec all[1 + PAYLOAD_SEGS_MAX];

    assert(count <= PAYLOAD_SEGS_MAX);
    memcpy(all + 1, iov, (size_t)count * sizeof(*iov));
    return reply_write(req, 0, all, count + 1);
}

int request_reply(struct request *req, const void *data, size_t bytes)
{
    struct iovec iov = { .iov_base = (void *)data, .iov_len = bytes };
    return request_reply_iov(req, &iov, bytes ? 1 : 0);
}

/* An errno that the kernel takes as an answer about the file. ENOSYS is none: it would turn the
 * operation off for the whole mount. */
static int error_for_kernel(const struct request *req, int ret)
{
    if (ret == -ENOSYS && !(req->operation->flags & OP_EARLY))
        return -EOPNOTSUPP;
    if (ret <= -512) /* the kernel's own codes (ERESTARTSYS...): it refuses them */
        return -EIO;
    return ret;
}

static void reply_error(struct request *req, int ret)
{
    struct iovec iov[1];
    (void)reply_write(req, error_for_kernel(req, ret), iov, 1); /* -ENOENT: nobody waits any more */
}

/* --- running ---------------------------------------------------------------------------------- */
static void gate_wake(void *arg)
{
    struct fuse *fuse = arg;

    HOLD(&fuse->mutex);
    fcond_wake_all(&fuse->changed);
}

/* Until the child has come up for the first time. */
static int gate_wait(struct request *req)
{
    struct fuse *fuse = req->fuse;

    if (fuse->up)
        return 0;
    if (call_cancel_arm(&req->cancel, gate_wake, fuse) < 0)
        return -EINTR;
    {
        HOLD(&fuse->mutex);
        while (!fuse->up && !fuse->stopping &&
               !__atomic_load_n(&req->cancel.cancelled, __ATOMIC_ACQUIRE))
            fcond_wait(&fuse->changed, &fuse->mutex, "fuse: child up");
    }
    if (call_cancel_disarm(&req->cancel))
        return -EINTR;
    return fuse->up ? 0 : -ENOTCONN;
}

static void groups_fill(struct request *req, bool fresh)
{
    group_list_unref(req->groups);
    groups_get(&req->fuse->groups, (int32_t)req->in.pid, req->in.uid, req->in.gid, fresh,
               &req->groups, &req->groups_remembered);
    req->call.groups = req->groups ? req->groups->gids : NULL;
    req->call.group_count = req->groups ? req->groups->count : 0;
}

void request_groups(struct request *req)
{
    if (!req->groups && req->in.uid && req->in.pid)
        groups_fill(req, false);
}

static int operation_run(struct request *req)
{
    /* root may do everything anyway, and kernel threads (pid 0) have no /proc entry */
    bool needs_groups = (req->operation->flags & OP_GROUPS) && req->in.uid && req->in.pid;

    if (needs_groups)
        groups_fill(req, false);
    int ret = req->operation->run(req);
    if ((ret == -EACCES || ret == -EPERM) && needs_groups && req->groups_remembered) {
        groups_fill(req, true);
        ret = req->operation->run(req);
    }
    return ret;
}

/* An inode that went away under its name: with ESTALE the kernel looks the name up anew (it may be
 * another file's by now, as after a rename over it); ENOENT it would pass on. */
static int error_of_inode(const struct request *req, int ret)
{
    return ret == -ENOENT && (req->operation->flags & OP_INODE) ? -ESTALE : ret;
}

static int request_run(struct request *req)
{
    if (!req->operation)
        return -ENOSYS;
    if (req->body_bytes < req->operation->body_min)
        return -EINVAL;
    if (req->operation->flags & OP_EARLY)
        return req->operation->run(req);
    int ret = gate_wait(req);
    return ret < 0 ? ret : error_of_inode(req, operation_run(req));
}

/* Registers it where INTERRUPT finds it. */
static void request_admit(struct request *req)
{
    static const struct operation unknown = { "unknown", unsupported_run, 0, OP_EARLY };

    count_add(&req->fuse->requests, 1);
    req->operation = operation_of(req->in.opcode);
    if (!req->operation)
        req->operation = &unknown;
    if (req->operation->flags & OP_INLINE)
        return;
    pending_add(req);
    fuse_fiber_enter(req->fuse);
}

/* false: somebody else has answered for it, and has what it came with. */
static bool request_end(struct request *req, int ret)
{
    struct fuse *fuse = req->fuse;

    pending_remove(req); /* from here on nobody else knows it */
    bool is_ours = !req->is_abandoned;
    if (!req->replied)
        reply_error(req, ret);
    request_free(req);
    fuse_fiber_leave(fuse);
    return is_ours;
}

static void request_fiber(void *arg)
{
    struct request *req = arg;

    (void)request_end(req, request_run(req)); /* a descriptor serves both */
}

bool request_serve(struct request *req)
{
    struct ring_entry *entry = req->entry;

    request_admit(req);
    if (req->operation->flags & OP_INLINE) { /* not what the kernel sends this way */
        reply_error(req, -ENOSYS);
        request_free(req);
        return true;
    }
    if (req->operation->flags & OP_SIGNALS)
        ring_entry_replace(entry);
    return request_end(req, request_run(req));
}

static void request_run_inline(struct request *req)
{
    int ret = -EINVAL;

    if (req->body_bytes >= req->operation->body_min)
        ret = req->operation->run(req);
    if (ret == -EAGAIN)
        reply_error(req, ret);
    request_free(req);
}

void request_start(struct request *req)
{
    request_admit(req);
    if (req->operation->flags & OP_INLINE)
        request_run_inline(req);
    else if (fiber_start(req->operation->name, request_fiber, req) < 0)
        (void)request_end(req, -ENOMEM);
}

/* --- for handlers ----------------------------------------------------------------------------- */
struct inode *request_inode(const struct request *req)
{
    return nodeid_inode(req->fuse, req->in.nodeid);
}

const char *request_text(const struct request *req, size_t *offset)
{
    if (*offset >= req->body_bytes)
        return NULL;
    const char *text = (const char *)req->body + *offset;
    size_t bytes = strnlen(text, req->body_bytes - *offset);
    if (bytes == req->body_bytes - *offset)
        return NULL; /* its end is not in the message */
    *offset += bytes + 1;
    return text;
}

int request_name(const struct request *req, size_t *offset, const char **ret_name)
{
    const char *name = request_text(req, offset);

    if (!name || !*name || strchr(name, '/'))
        return -EINVAL;
    if (strlen(name) > NAME_BYTES_MAX)
        return -ENAMETOOLONG;
    *ret_name = name;
    return 0;
}

void request_owner(struct request *req, uint64_t owner)
{
    struct lkowner *lkowner = &req->call.owner;

    lkowner->bytes = sizeof(owner);
    for (unsigned i = 0; i < sizeof(owner); i++)
        lkowner->data[i] = (uint8_t)(owner >> (8 * i)); /* little-endian on every machine */
}

struct dict *gfid_request(void)
{
    gfid_t gfid;
    AUTO(dict) dict = dict_new();

    gfid_generate(&gfid);
    if (!dict || dict_set_gfid(dict, "gfid-req", &gfid) < 0)
        return NULL;
    return TAKE(dict);
}
