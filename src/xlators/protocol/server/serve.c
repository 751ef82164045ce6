/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fop program: a request becomes an operation on the exported translator and its answer a
 * reply. */
#include <errno.h>
#include <string.h>

#include "fop/fop_codec.h"
#include "rpc/dict_wire.h"
#include "xlators/protocol/server/session.h"

enum { FD_ANONYMOUS = -2, PROC_NULL = 0, PROC_RELEASE = 41, PROC_RELEASEDIR = 42 };

/* What a request holds while it runs. */
struct serving {
    struct session *session;
    enum fop op;
    struct call call;
    struct fop_refs refs;
    struct inode *inodes[3];
    struct fd *fds[2];
    struct fd *opened;
    union fop_args args;
    union fop_reply reply;
};

/* --- names of the wire to inodes and fds ----------------------------------------------------- */
static int resolve_inodes(struct serving *serving)
{
    struct session *session = serving->session;

    for (uint32_t i = 0; i < serving->refs.gfids; i++) {
        const gfid_t *gfid = &serving->refs.gfid[i];
        if (gfid_is_null(gfid))
            continue;
        if (session->subdir && gfid_is_root(gfid))
            gfid = &session->subdir->gfid;
        serving->inodes[i] = inode_get(session->server->graph->inodes, gfid);
        if (!serving->inodes[i])
            return -ENOMEM;
    }
    return 0;
}

static int resolve_fd(struct serving *serving, uint32_t i)
{
    struct session *session = serving->session;
    const gfid_t *gfid = &serving->refs.fd_gfid[i];

    if (serving->refs.fd[i] != FD_ANONYMOUS) {
        serving->fds[i] = fdtable_get(&session->fds, serving->refs.fd[i]);
        return serving->fds[i] ? 0 : -EBADF;
    }
    if (gfid_is_null(gfid))
        return -EINVAL;
    if (session->subdir && gfid_is_root(gfid))
        gfid = &session->subdir->gfid;
    AUTO(inode) inode = inode_get(session->server->graph->inodes, gfid);
    serving->fds[i] = inode ? fd_anonymous(inode) : NULL;
    return serving->fds[i] ? 0 : -ENOMEM;
}

/* The fd that the operation is to open. */
static int make_fd(struct serving *serving, struct fd **at)
{
    uint32_t flags = 0;

    if (serving->op == FOP_OPEN)
        flags = serving->args.open.flags;
    else if (serving->op == FOP_CREATE)
        flags = serving->args.create.flags;
    struct inode *inode = serving->op == FOP_CREATE ? NULL : serving->inodes[0];
    *at = serving->opened = fd_new(inode, flags, serving->call.pid);
    if (!*at)
        return -ENOMEM;
    (*at)->is_dir = serving->op == FOP_OPENDIR;
    return 0;
}

/* The door's checks, which nothing behind it repeats: an operation that needs an inode has one,
 * names are names, offsets are offsets. */
static int check_name(const char *name)
{
    if (!name || name[0] == '\0')
        return -EINVAL;
    if (strchr(name, '/'))
        return -EPERM; /* as the genuine brick answers */
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EEXIST;
    return strlen(name) > 255 ? -ENAMETOOLONG : 0;
}

static int check_entry(const struct serving *serving)
{
    const union fop_args *args = &serving->args;
    int ret = 0;

    switch (serving->op) {
    case FOP_LOOKUP:
        if (!args->lookup.name[0])
            return args->lookup.inode ? 0 : -EINVAL;
        if (!args->lookup.parent)
            return -EINVAL;
        if (strchr(args->lookup.name, '/'))
            return -EPERM;
        return strlen(args->lookup.name) > 255 ? -ENAMETOOLONG : 0;
    case FOP_RENAME:
        ret = check_name(args->rename.oldname);
        return ret < 0 ? ret : check_name(args->rename.newname);
    case FOP_LINK:
        return check_name(args->link.newname);
    default:
        return check_name(fop_subject_name(serving->op, args));
    }
}

static int check_range(uint64_t offset, uint64_t size)
{
    uint64_t end;
    return add_overflows(offset, size, &end) || end > INT64_MAX ? -EINVAL : 0;
}

static int check_data(const struct serving *serving)
{
    const union fop_args *args = &serving->args;
    int ret;

    switch (serving->op) {
    case FOP_READV:
        return check_range(args->readv.offset, args->readv.size);
    case FOP_WRITEV:
        return check_range(args->writev.offset, args->writev.payload.bytes);
    case FOP_FALLOCATE:
        return check_range(args->fallocate.offset, args->fallocate.size);
    case FOP_DISCARD:
        return check_range(args->discard.offset, args->discard.size);
    case FOP_ZEROFILL:
        return check_range(args->zerofill.offset, args->zerofill.size);
    case FOP_RCHECKSUM:
        return check_range(args->rchecksum.offset, args->rchecksum.size);
    case FOP_TRUNCATE:
        return check_range(args->truncate.offset, 0);
    case FOP_FTRUNCATE:
        return check_range(args->ftruncate.offset, 0);
    case FOP_COPY_FILE_RANGE:
        ret = check_range(args->copy_file_range.in_offset, args->copy_file_range.size);
        return ret < 0 ? ret : check_range(args->copy_file_range.out_offset,
                                           args->copy_file_range.size);
    default:
        return 0;
    }
}

static int check(const struct serving *serving)
{
    if (serving->op != FOP_LOOKUP && serving->op != FOP_IPC)
        for (uint32_t i = 0; i < serving->refs.gfids; i++)
            if (!serving->inodes[i])
                return -EINVAL;
    if (fop_info[serving->op].class_ == CLASS_ENTRY)
        return check_entry(serving);
    return check_data(serving);
}

/* --- a subdirectory mount: its directory is the client's root -------------------------------- */
static bool is_subdir(const struct session *session, const struct inode *inode)
{
    return session->subdir && inode && gfid_equal(&inode->gfid, &session->subdir->gfid);
}

/* ".." of the root is the root. */
static void stay_inside(struct serving *serving)
{
    struct lookup_args *in = &serving->args.lookup;

    if (serving->op == FOP_LOOKUP && in->name && strcmp(in->name, "..") == 0 &&
        is_subdir(serving->session, in->parent)) {
        in->inode = in->parent;
        in->parent = NULL;
        in->name = "";
    }
}

static int resolve(struct serving *serving)
{
    struct fd **at = fop_new_fd(serving->op, &serving->args);
    int ret = resolve_inodes(serving);

    for (uint32_t i = 0; i < serving->refs.fds && ret == 0; i++)
        ret = resolve_fd(serving, i);
    if (ret == 0 && at)
        ret = make_fd(serving, at);
    fop_bind(serving->op, &serving->args, serving->inodes, serving->fds);
    if (ret == 0)
        ret = check(serving);
    if (ret == 0)
        stay_inside(serving);
    return ret;
}

static void show_as_root(struct iatt *iatt, void *arg)
{
    const struct session *session = arg;
    if (gfid_equal(&iatt->gfid, &session->subdir->gfid)) {
        iatt->gfid = gfid_root;
        iatt->ino = 1;
    }
}

/* What the disk says of ".." is outside; an entry without attributes is looked up. */
static void hide_parent(struct dirents *entries)
{
    static const struct iatt unknown;
    const struct iatt *self = &unknown;

    for (struct dirent_entry *e = entries->first; e; e = e->next) {
        if (strcmp(e->name, ".") == 0)
            self = e->stat;
        if (strcmp(e->name, "..") == 0) {
            *e->stat = *self;
            e->ino = 1;
        }
    }
}

static void map_reply(struct serving *serving)
{
    struct session *session = serving->session;

    if (!session->subdir)
        return;
    if (serving->op == FOP_READDIRP && is_subdir(session, serving->args.readdirp.fd->inode))
        hide_parent(&serving->reply.readdirp.entries);
    fop_reply_each_iatt(serving->op, &serving->reply, show_as_root, session);
}

/* --- one request ----------------------------------------------------------------------------- */
static void serving_fini(struct serving *serving)
{
    for (int i = 0; i < 3; i++)
        inode_unref(serving->inodes[i]);
    for (int i = 0; i < 2; i++)
        fd_unref(serving->fds[i]);
    fd_unref(serving->opened);
    fop_args_fini(serving->op, &serving->args);
    session_unref(serving->session);
}

/* An fd that was opened gets its number; it ends with the session when nobody releases it. */
static int keep_fd(struct serving *serving)
{
    int64_t number = fdtable_add(&serving->session->fds, serving->opened);
    if (number < 0)
        return (int)number;
    serving->opened = NULL;
    switch (serving->op) {
    case FOP_OPEN:
        serving->reply.open.fd = number;
        break;
    case FOP_OPENDIR:
        serving->reply.opendir.fd = number;
        break;
    default:
        serving->reply.create.fd = number;
        break;
    }
    return 0;
}

static void answer(struct rpc_request *req, struct serving *serving, int ret)
{
    if (ret >= 0)
        map_reply(serving);
    fop_encode_reply(serving->op, ret, &serving->reply, rpc_reply_begin(req));
    rpc_reply_send(req, ret < 0 ? NULL : fop_reply_payload(serving->op, &serving->reply));
    fop_reply_fini(serving->op, &serving->reply);
}

static void serve_fop(struct rpc_request *req)
{
    struct session *session = rpc_conn_user(req->conn);
    struct serving serving;

    memset(&serving, 0, offsetof(struct serving, args));
    serving.op = fop_of_procedure(req->procedure);
    if (!session || serving.op == FOP_COUNT) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS); /* before a handshake nothing is served */
        return;
    }
    int ret = fop_decode_args(serving.op, &req->body, &req->payload, &serving.args, &serving.refs);
    if (ret < 0) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    serving.session = session_ref(session);
    memset(&serving.reply, 0, fop_info[serving.op].reply_size);
    session_call(session, req, &serving.call);
    count_add(&((struct server *)session->server->state)->requests, 1);

    ret = resolve(&serving);
    if (ret >= 0)
        ret = fop_call(session->export_, &serving.call, serving.op, &serving.args, &serving.reply);
    if (ret >= 0 && serving.opened) {
        int kept = keep_fd(&serving);
        ret = kept < 0 ? kept : ret;
    }
    answer(req, &serving, ret);
    serving_fini(&serving);
}

/* --- what is no operation -------------------------------------------------------------------- */
static void serve_null(struct rpc_request *req)
{
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, 0);
    writer_u32(w, 0);
    writer_u32(w, 0);
    rpc_reply_send(req, NULL);
}

/* The number goes at once; the fd ends when the requests that use it have. */
static void serve_release(struct rpc_request *req)
{
    struct session *session = rpc_conn_user(req->conn);
    gfid_t gfid;
    int64_t number;
    struct dict *xdata = NULL;
    int ret = reader_gfid(&req->body, &gfid);

    if (ret == 0)
        ret = reader_i64(&req->body, &number);
    if (ret == 0)
        ret = dict_decode(&req->body, &xdata);
    dict_unref(xdata);
    if (ret < 0 || !session) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    AUTO(session) held = session_ref(session);
    fd_unref(fdtable_take(&held->fds, number)); /* an unknown number is fine (spec/wire.md 4.1) */
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, 0);
    writer_u32(w, 0);
    dict_encode(w, NULL);
    rpc_reply_send(req, NULL);
}

/* COMPOUND (49) ended with 7.0; PUT is not served by 10.x bricks; NAMELINK neither, here. */
#define FOP(procedure_, name_, ...)                                                                \
    [procedure_] = { .name = name_, .handler = serve_fop, ##__VA_ARGS__ }

static const struct rpc_procedure procedures[] = {
    [PROC_NULL] = { .name = "NULL", .handler = serve_null },
    FOP(1, "STAT"), FOP(2, "READLINK"), FOP(3, "MKNOD"), FOP(4, "MKDIR"), FOP(5, "UNLINK"),
    FOP(6, "RMDIR"), FOP(7, "SYMLINK"), FOP(8, "RENAME"), FOP(9, "LINK"), FOP(10, "TRUNCATE"),
    FOP(11, "OPEN"), FOP(12, "READ"),
    /* payload: 16 gfid + 8 fd + 8 offset + 4 size + 4 flag + 12 of the dict's head */
    FOP(13, "WRITE", .payload_fixed = 52, .payload_size_at = 40),
    FOP(14, "STATFS"), FOP(15, "FLUSH"), FOP(16, "FSYNC"), FOP(17, "SETXATTR"),
    FOP(18, "GETXATTR"), FOP(19, "REMOVEXATTR"), FOP(20, "OPENDIR"), FOP(21, "FSYNCDIR"),
    FOP(22, "ACCESS"), FOP(23, "CREATE"), FOP(24, "FTRUNCATE"), FOP(25, "FSTAT"),
    FOP(26, "LK", .flags = RPC_BLOCKING), FOP(27, "LOOKUP"), FOP(28, "READDIR"),
    FOP(29, "INODELK", .flags = RPC_BLOCKING), FOP(30, "FINODELK", .flags = RPC_BLOCKING),
    FOP(31, "ENTRYLK", .flags = RPC_BLOCKING), FOP(32, "FENTRYLK", .flags = RPC_BLOCKING),
    FOP(33, "XATTROP"), FOP(34, "FXATTROP"), FOP(35, "FGETXATTR"), FOP(36, "FSETXATTR"),
    FOP(37, "RCHECKSUM"), FOP(38, "SETATTR"), FOP(39, "FSETATTR"), FOP(40, "READDIRP"),
    [PROC_RELEASE] = { .name = "RELEASE", .handler = serve_release },
    [PROC_RELEASEDIR] = { .name = "RELEASEDIR", .handler = serve_release },
    FOP(43, "FREMOVEXATTR"), FOP(44, "FALLOCATE"), FOP(45, "DISCARD"), FOP(46, "ZEROFILL"),
    FOP(47, "IPC"), FOP(48, "SEEK"), FOP(49, "COMPOUND"), FOP(50, "LEASE"),
    FOP(51, "GETACTIVELK"), FOP(52, "SETACTIVELK"), FOP(53, "ICREATE"), FOP(54, "NAMELINK"),
    FOP(56, "COPY_FILE_RANGE"),
};

const struct rpc_program server_fop_program = {
    .number = 1298437,
    .version = 400,
    .name = "GlusterFS 4.x v1",
    .procedures = procedures,
    .count = ARRAY_SIZE(procedures),
};
