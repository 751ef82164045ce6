/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An operation's way to the brick and back: one function for all of them, the table does the rest.
 * */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/env.h"
#include "fop/fop_codec.h"
#include "rpc/dict_wire.h"
#include "xlators/protocol/client/remote.h"

enum { PROC_RELEASE = 41, PROC_RELEASEDIR = 42 };
enum { READ_REPLY_FIXED = 172, READ_REPLY_SIZE_AT = 160 }; /* spec/wire.md 1.4 */
enum { LK_SETLKW = 2, LK_RESLKW = 4, INODELK_SETLK = 1, INODELK_SETLKW = 2, ENTRYLK_LOCK = 0,
       ENTRYLK_UNLOCK = 1, LK_SETLK = 1 };
enum { REPLAYS_MAX = 8 };

/* --- credentials ------------------------------------------------------------------------------ */

static void fill_cred(const struct remote *remote, const struct call *call, struct rpc_cred *cred)
{
    cred->flavor = RPC_AUTH_V3;
    cred->pid = call->pid;
    cred->uid = call->uid;
    cred->gid = call->gid;
    cred->flags = call->times;
    cred->ctime_nsec = call->ctime_nsec;
    cred->ctime_sec = call->ctime_sec;
    cred->group_count = MIN(call->group_count, (uint32_t)RPC_GROUPS_MAX);
    if (cred->group_count)
        memcpy(cred->groups, call->groups, cred->group_count * sizeof(cred->groups[0]));
    if (!remote->send_gids) { /* the brick looks the groups up by itself */
        cred->group_count = 1;
        cred->groups[0] = call->gid;
    }
    cred->lk_owner_bytes = call->owner.bytes;
    memcpy(cred->lk_owner, call->owner.data, MIN(call->owner.bytes, (uint32_t)RPC_LK_OWNER_MAX));
}

/* --- what the wire does not carry as it is ---------------------------------------------------- */

static uint32_t filter_flags(const struct remote *remote, uint32_t flags)
{
    return remote->filter_o_direct ? flags & ~(uint32_t)O_DIRECT : flags;
}

/* Arguments as they are sent: O_DIRECT filtered, a READ no larger than we can take. Returns args,
 * or copy filled in. */
static const void *sent_args(const struct remote *remote, enum fop op, const void *args,
                             union fop_args *copy)
{
    if (!remote->filter_o_direct && op != FOP_READV)
        return args;
    switch (op) {
    case FOP_OPEN:
        copy->open = *(const struct open_args *)args;
        copy->open.flags = filter_flags(remote, copy->open.flags);
        return &copy->open;
    case FOP_CREATE:
        copy->create = *(const struct create_args *)args;
        copy->create.flags = filter_flags(remote, copy->create.flags);
        return &copy->create;
    case FOP_WRITEV:
        copy->writev = *(const struct writev_args *)args;
        copy->writev.flags = filter_flags(remote, copy->writev.flags);
        return &copy->writev;
    case FOP_READV:
        copy->readv = *(const struct readv_args *)args;
        copy->readv.flags = filter_flags(remote, copy->readv.flags);
        copy->readv.size = MIN(copy->readv.size, (uint32_t)PAYLOAD_BYTES_MAX);
        return &copy->readv;
    default:
        return args;
    }
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The inode that an answer brings along, where every success must bring one (spec/wire.md 9). */
static const struct iatt *answer_stat(enum fop op, const void *reply)
{
    switch (op) {
    case FOP_LOOKUP:
        return &((const struct lookup_reply *)reply)->stat;
    case FOP_CREATE:
        return &((const struct create_reply *)reply)->stat;
    case FOP_MKDIR:
        return &((const struct mkdir_reply *)reply)->stat;
    case FOP_MKNOD:
        return &((const struct mknod_reply *)reply)->stat;
    case FOP_SYMLINK:
        return &((const struct symlink_reply *)reply)->stat;
    default:
        return NULL;
    }
}

static bool payload_is_owned(const struct payload *payload)
{
    for (uint32_t i = 0; i < payload->segs; i++)
        if (!payload->buf[i])
            return false;
    return true;
}

/* What no honest brick answers. */
static bool is_answer_sane(enum fop op, const void *args, const void *reply, int result)
{
    if (op == FOP_READV) {
        const struct readv_reply *read = reply;
        return (uint32_t)result == read->payload.bytes && payload_is_owned(&read->payload);
    }
    if (op == FOP_WRITEV)
        return (uint32_t)result <= ((const struct writev_args *)args)->payload.bytes;
    if (op == FOP_OPEN)
        return ((const struct open_reply *)reply)->fd >= 0;
    if (op == FOP_OPENDIR)
        return ((const struct opendir_reply *)reply)->fd >= 0;
    if (op == FOP_CREATE)
        return ((const struct create_reply *)reply)->fd >= 0;
    return true;
}

static int check_answer(struct remote *remote, enum fop op, const void *args, void *reply,
                        int result)
{
    if (result < 0)
        return result;
    if (!is_answer_sane(op, args, reply, result)) {
        log_error(remote->xl, 0, "%s answered %s with what cannot be: disconnecting",
                  rpc_client_peer(remote->rpc), fop_info[op].title);
        rpc_client_disconnect(remote->rpc);
        fop_reply_fini(op, reply);
        return -EIO;
    }
    const struct iatt *stat = answer_stat(op, reply);
    if (stat && (gfid_is_null(&stat->gfid) || (stat->mode & S_IFMT) == 0)) {
        log_warn(remote->xl, 0, "%s answered %s without a gfid or type: the call fails",
                 rpc_client_peer(remote->rpc), fop_info[op].title);
        fop_reply_fini(op, reply);
        return -EINVAL;
    }
    return result;
}

/* --- locks that are granted to nobody --------------------------------------------------------- */

/* Whether the brick may delay its answer until somebody unlocks. */
static bool is_waiting_lock(enum fop op, const void *args)
{
    switch (op) {
    case FOP_LK:
        return ((const struct lk_args *)args)->cmd == LK_SETLKW ||
               ((const struct lk_args *)args)->cmd == LK_RESLKW;
    case FOP_INODELK:
        return ((const struct inodelk_args *)args)->cmd == INODELK_SETLKW;
    case FOP_FINODELK:
        return ((const struct finodelk_args *)args)->cmd == INODELK_SETLKW;
    case FOP_ENTRYLK:
        return ((const struct entrylk_args *)args)->cmd == ENTRYLK_LOCK;
    case FOP_FENTRYLK:
        return ((const struct fentrylk_args *)args)->cmd == ENTRYLK_LOCK;
    default:
        return false;
    }
}

/* What gives back the lock that args ask for. */
static void make_unlock(enum fop op, union fop_args *args)
{
    switch (op) {
    case FOP_LK:
        args->lk.cmd = LK_SETLK;
        args->lk.type = args->lk.lock.type = RANGE_UNLOCK;
        break;
    case FOP_INODELK:
        args->inodelk.cmd = INODELK_SETLK;
        args->inodelk.type = args->inodelk.lock.type = RANGE_UNLOCK;
        break;
    case FOP_FINODELK:
        args->finodelk.cmd = INODELK_SETLK;
        args->finodelk.type = args->finodelk.lock.type = RANGE_UNLOCK;
        break;
    case FOP_ENTRYLK:
        args->entrylk.cmd = ENTRYLK_UNLOCK;
        break;
    case FOP_FENTRYLK:
        args->fentrylk.cmd = ENTRYLK_UNLOCK;
        break;
    default:
        break;
    }
}

/* The unlock is encoded when the lock is sent (what it needs may be gone later), and goes out when
 * the grant comes after its caller has left: the protocol knows no way to take the request back. */
struct late_lock {
    struct remote *remote;
    enum fop op;
    struct rpc_call *unlock;
};

static void late_lock_free(struct late_lock *late)
{
    if (!late)
        return;
    rpc_call_free(late->unlock);
    free(late);
}

static void late_answer(struct rpc_call *lock, int ret)
{
    struct late_lock *late = lock->late_arg;
    union fop_reply reply = { 0 };
    int result = -EIO;
    if (ret == 0)
        ret = fop_decode_reply(late->op, &lock->body, &lock->bulk, &reply, &result);
    if (ret == 0 && result >= 0) {
        fop_reply_fini(late->op, &reply);
        if (rpc_call_send(TAKE(late->unlock)) < 0)
            log_debug(late->remote->xl, 0, "a late lock goes with its connection");
    } else if (ret == 0) {
        fop_reply_fini(late->op, &reply);
    }
    late_lock_free(late);
}

static struct late_lock *late_lock_new(struct remote *remote, const struct rpc_cred *cred,
                                       enum fop op, const void *args, const int64_t numbers[2],
                                       uint32_t generation)
{
    union fop_args unlock;
    struct late_lock *late = calloc(1, sizeof(*late));
    if (!late)
        return NULL;
    late->remote = remote;
    late->op = op;
    late->unlock = rpc_call_new(remote->rpc, FOP_PROGRAM, FOP_VERSION, fop_info[op].procedure,
                                cred);
    if (!late->unlock) {
        late_lock_free(late);
        return NULL;
    }
    late->unlock->generation = generation;
    memcpy(&unlock, args, fop_info[op].args_size);
    make_unlock(op, &unlock);
    fop_encode_args(op, &unlock, numbers, rpc_call_writer(late->unlock));
    return late;
}

static void wake_caller(void *rpc_call)
{
    rpc_call_cancel(rpc_call);
}

/* A lock that may wait can be given up by its caller. */
static int run_waiting_lock(struct rpc_call *rpc_call, struct call *call, struct late_lock *late)
{
    rpc_call->late = late_answer;
    rpc_call->late_arg = late;
    int ret = call_cancel_arm(call->cancel, wake_caller, rpc_call);
    if (ret == 0) {
        ret = rpc_call_run(rpc_call);
        (void)call_cancel_disarm(call->cancel); /* ret says which came first */
    }
    return ret;
}

/* --- one exchange ----------------------------------------------------------------------------- */

static int run_call(struct remote *remote, struct rpc_call *rpc_call, struct call *call,
                    enum fop op, const void *args, const int64_t numbers[2],
                    const struct rpc_cred *cred)
{
    if (!is_waiting_lock(op, args))
        return rpc_call_run(rpc_call);
    struct late_lock *late =
        late_lock_new(remote, cred, op, args, numbers, rpc_call->generation);
    if (!late)
        return -ENOMEM;
    int ret = run_waiting_lock(rpc_call, call, late);
    if (!rpc_call_is_late(rpc_call))
        late_lock_free(late);
    return ret;
}

/* The peer's RPC layer refused the call: as if the connection had failed, says the protocol; except
 * that a procedure the brick does not have is no accident. */
static int refused(struct remote *remote, enum fop op, int accept)
{
    if (accept == RPC_PROC_UNAVAIL)
        return -EOPNOTSUPP;
    log_warn(remote->xl, 0, "%s refuses %s (%s %d)", rpc_client_peer(remote->rpc),
             fop_info[op].title, accept < 0 ? "denied" : "accept_stat", accept);
    return -ENOTCONN;
}

static int decode_answer(struct remote *remote, enum fop op, const void *args,
                         struct rpc_call *rpc_call, void *reply)
{
    int result = -EIO;
    int ret = fop_decode_reply(op, &rpc_call->body, &rpc_call->bulk, reply, &result);
    if (ret < 0) {
        log_error(remote->xl, ret, "cannot read the answer of %s to %s: disconnecting",
                  rpc_client_peer(remote->rpc), fop_info[op].title);
        rpc_client_disconnect(remote->rpc);
        return -EIO;
    }
    return check_answer(remote, op, args, reply, result);
}

int remote_exchange(struct remote *remote, struct call *call, enum fop op, const void *args,
                    const int64_t numbers[2], uint32_t generation, void *reply, bool *ret_lost)
{
    struct rpc_cred cred;
    union fop_args copy;
    *ret_lost = false;
    if (call->owner.bytes > RPC_LK_OWNER_MAX)
        return -EINVAL;
    fill_cred(remote, call, &cred);
    AUTO(rpc_call) rpc_call = rpc_call_new(remote->rpc, FOP_PROGRAM, FOP_VERSION,
                                           fop_info[op].procedure, &cred);
    if (!rpc_call)
        return -ENOMEM;
    args = sent_args(remote, op, args, &copy);
    fop_encode_args(op, args, numbers, rpc_call_writer(rpc_call));
    const struct payload *payload = fop_args_payload(op, args);
    if (payload)
        rpc_call_add_payload(rpc_call, payload);
    if (op == FOP_READV) {
        rpc_call->bulk_fixed = READ_REPLY_FIXED;
        rpc_call->bulk_size_at = READ_REPLY_SIZE_AT;
        rpc_call->bulk_max = ((const struct readv_args *)args)->size;
    }
    rpc_call->until_ns = call->deadline_ns;
    rpc_call->generation = generation;
    count_add(&remote->calls, 1);
    int ret = run_call(remote, rpc_call, call, op, args, numbers, &cred);
    if (ret == -EREMOTEIO)
        return refused(remote, op, rpc_call->accept);
    *ret_lost = ret == -ENOTCONN;
    return ret < 0 ? ret : decode_answer(remote, op, args, rpc_call, reply);
}

void remote_send_release(struct remote *remote, const gfid_t *gfid, int64_t number, bool is_dir,
                         uint32_t generation)
{
    const struct rpc_cred cred = { .flavor = RPC_AUTH_V3 };
    struct rpc_call *rpc_call = rpc_call_new(remote->rpc, FOP_PROGRAM, FOP_VERSION,
                                             is_dir ? PROC_RELEASEDIR : PROC_RELEASE, &cred);
    int ret = -ENOMEM;
    if (rpc_call) {
        rpc_call->generation = generation;
        writer_gfid(rpc_call_writer(rpc_call), gfid);
        writer_u64(rpc_call_writer(rpc_call), (uint64_t)number);
        dict_encode(rpc_call_writer(rpc_call), NULL);
        ret = rpc_call_send(rpc_call);
    }
    if (ret == -ENOMEM)
        log_warn(remote->xl, ret, "file %lld of %s stays open there until we disconnect",
                 (long long)number, rpc_client_peer(remote->rpc));
}

/* --- an operation ----------------------------------------------------------------------------- */

static int fd_numbers(struct remote *remote, enum fop op, const void *args, uint32_t generation,
                      int64_t numbers[2])
{
    if (op == FOP_COPY_FILE_RANGE) {
        const struct copy_file_range_args *in = args;
        int ret = remote_fd_number(remote, op, in->in, generation, &numbers[0]);
        return ret < 0 ? ret : remote_fd_number(remote, op, in->out, generation, &numbers[1]);
    }
    struct fd *fd = fop_subject_fd(op, args);
    if (!fd || fop_new_fd(op, (void *)(uintptr_t)args))
        return 0;
    return remote_fd_number(remote, op, fd, generation, &numbers[0]);
}

/* A file was opened: remembers its number. Failing here leaves nothing open at the brick. */
static int keep_fd(struct remote *remote, struct fd *fd, bool is_dir, int64_t number,
                   uint32_t generation)
{
    int ret = remote_fd_add(remote, fd, is_dir, number, generation);
    if (ret < 0)
        remote_send_release(remote, fd_gfid(fd), number, is_dir, generation);
    return ret;
}

static int keep_created(struct remote *remote, const struct create_args *in,
                        const struct create_reply *out, uint32_t generation)
{
    AUTO(inode) inode = inode_get(remote->xl->graph->inodes, &out->stat.gfid);
    if (!inode) {
        remote_send_release(remote, &out->stat.gfid, out->fd, false, generation);
        return -ENOMEM;
    }
    fd_bind(in->fd, inode);
    return keep_fd(remote, in->fd, false, out->fd, generation);
}

/* What has to be remembered of a success. */
static int keep_answer(struct remote *remote, enum fop op, const void *args, const void *reply,
                       uint32_t generation)
{
    switch (op) {
    case FOP_OPEN:
        return keep_fd(remote, ((const struct open_args *)args)->fd, false,
                       ((const struct open_reply *)reply)->fd, generation);
    case FOP_OPENDIR:
        return keep_fd(remote, ((const struct opendir_args *)args)->fd, true,
                       ((const struct opendir_reply *)reply)->fd, generation);
    case FOP_CREATE:
        return keep_created(remote, args, reply, generation);
    case FOP_LK:
        if (((const struct lk_args *)args)->cmd != 0 &&
            ((const struct lk_args *)args)->lock.type != RANGE_UNLOCK)
            remote_fd_set_locks(remote, ((const struct lk_args *)args)->fd);
        return 0;
    default:
        return 0;
    }
}

static int attempt(struct remote *remote, struct call *call, enum fop op, const void *args,
                   void *reply, uint32_t generation, bool *ret_lost)
{
    int64_t numbers[2] = { FD_NONE, FD_NONE };
    *ret_lost = false;
    int ret = fd_numbers(remote, op, args, generation, numbers);
    if (ret < 0)
        return ret;
    int result = remote_exchange(remote, call, op, args, numbers, generation, reply, ret_lost);
    if (result < 0)
        return result;
    ret = keep_answer(remote, op, args, reply, generation);
    return ret < 0 ? ret : result;
}

/* Whether a request without an answer may be sent again on the next connection: where doing it
 * twice is doing it once. "judge" operations (create, unlink, ...) and locks are not yet sent
 * again: their callers get -ENOTCONN, as from a genuine client. */
static bool may_replay(enum fop op, const void *args)
{
    if (fop_info[op].replay != REPLAY_AGAIN)
        return false;
    switch (op) {
    case FOP_WRITEV:
        return !((((const struct writev_args *)args)->flags |
                  ((const struct writev_args *)args)->fd->flags) & O_APPEND);
    case FOP_SETXATTR:
        return ((const struct setxattr_args *)args)->flags == 0;
    case FOP_FSETXATTR:
        return ((const struct fsetxattr_args *)args)->flags == 0;
    case FOP_REMOVEXATTR:
    case FOP_FREMOVEXATTR: /* the second time finds nothing to remove */
    case FOP_FLUSH:        /* its locks went with the connection */
        return false;
    default:
        return true;
    }
}

int remote_any(struct xlator *xl, struct call *call, enum fop op, const void *args, void *reply)
{
    struct remote *remote = xl->state;
    if (op == FOP_NAMELINK) /* kills genuine bricks, and nobody needs it */
        return -EOPNOTSUPP;
    for (unsigned tries = 0;; tries++) {
        bool is_lost;
        uint32_t generation = remote_wait_serving(remote, call);
        if (generation == 0)
            return -ENOTCONN;
        int ret = attempt(remote, call, op, args, reply, generation, &is_lost);
        if (!is_lost || !may_replay(op, args) || tries == REPLAYS_MAX)
            return ret;
        count_add(&remote->replays, 1);
    }
}
