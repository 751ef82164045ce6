/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/server from a client's end, over a socket: the handshake, numbers of files, hostile and
 * random requests, subdirectory mounts, squashing, and what remains when a client is gone. */
#include "../features/fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../fop/sample.h"
#include "fop/fop_codec.h"
#include "rpc/client.h"
#include "rpc/dict_wire.h"

extern const struct xlator_type xlator_protocol_server;
extern const struct xlator_type xlator_features_locks;

enum {
    FOPS = 1298437,
    HANDSHAKE = 14398633,
    SETVOLUME = 1,
    RELEASE = 41,
    GARBAGE_ARGS = 4
};
enum {
    BRICK_ROOT = 1,
    SUB = 20,
    FILE_NODE = 21,
    OUTSIDE = 22
};

/* --- a brick and a connection to it ----------------------------------------------------------- */

struct scene {
    struct fixture *fx;
    struct rpc_client *client;
    struct rpc_cred cred;
    char path[64];
};

static unsigned lost;

static void on_lost(struct rpc_client *client)
{
    (void)client;
    lost++;
}

static void connect_to(struct scene *s)
{
    struct env_address address;
    check_equal(env_address_unix(s->path, &address), 0);
    check_equal(rpc_client_new(&(struct rpc_client_config){ .name = "test",
                                                            .arg = s,
                                                            .disconnected = on_lost },
                               &s->client),
                0);
    check_equal(rpc_client_connect(s->client, &address, RPC_BIND_ANY, env_now_ns() + 5 * NS_PER_S),
                0);
}

/* below: a translator between the server and the child, or NULL; more: options of the server. */
static struct scene *scene_new(const struct xlator_type *below, const char *const *more)
{
    static unsigned number;
    struct scene *s = calloc(1, sizeof(*s));
    const char *options[24] = {
        "transport-type",        "unix", "transport.socket.listen-path", s->path,
        "auth.addr.child.allow", "*",    "auth.addr.tested.allow",       "*"
    };
    for (int i = 8; more && *more; more++)
        options[i++] = *more;
    snprintf(s->path, sizeof(s->path), "/tmp/mortar-serve-%d-%u", getpid(), number++);
    s->cred = (struct rpc_cred){ .flavor = RPC_AUTH_V3, .pid = 4711, .uid = 1000, .gid = 1000 };
    if (below) {
        s->fx = fixture_new(below, NULL);
        fixture_push(s->fx, &xlator_protocol_server, options);
    } else {
        s->fx = fixture_new(&xlator_protocol_server, options);
    }
    xlator_notify(s->fx->child, EVENT_CHILD_UP, NULL);
    connect_to(s);
    return s;
}

static void scene_free(struct scene *s)
{
    rpc_client_free(s->client);
    fixture_free(s->fx);
    unlink(s->path);
    free(s);
}

/* --- calling ---------------------------------------------------------------------------------- */

static struct rpc_call *new_call(struct scene *s, uint32_t program, uint32_t version,
                                 uint32_t procedure)
{
    struct rpc_call *call = rpc_call_new(s->client, program, version, procedure, &s->cred);
    check(call != NULL);
    call->until_ns = env_now_ns() + 20 * NS_PER_S;
    return call;
}

/* pairs: key, value, ..., NULL. op_ret's errno, negative; 0. *ret_reply is the caller's. */
static int set_volume(struct scene *s, const char *const *pairs, struct dict **ret_reply)
{
    AUTO(rpc_call) call = new_call(s, HANDSHAKE, 2, SETVOLUME);
    AUTO(dict) dict = dict_new();
    uint32_t op_ret = 0, op_errno = 0, count = 0;
    uint8_t *bytes = NULL;

    for (; *pairs; pairs += 2)
        check_equal(dict_set_str(dict, pairs[0], pairs[1]), 0);
    dict_encode_legacy(rpc_call_writer(call), dict);
    check_equal(rpc_call_run(call), 0);
    check_equal(reader_u32(&call->body, &op_ret), 0);
    check_equal(reader_u32(&call->body, &op_errno), 0);
    check_equal(reader_opaque(&call->body, 1 << 20, &bytes, &count), 0);
    if (ret_reply)
        check_equal(dict_decode_legacy(bytes, count, ret_reply), 0);
    return op_ret == 0 ? 0 : -(int)op_errno;
}

#define OPERATION(op_, ...) &(union fop_args){ .op_ = { __VA_ARGS__ } }
#define MINIMAL(brick) "remote-subvolume", brick, "process-uuid", "c1", "fops-version", "1298437"

static void shake_hands(struct scene *s, const char *brick)
{
    check_equal(set_volume(s, (const char *[]){ MINIMAL(brick), NULL }, NULL), 0);
}

/* The operation's result; INT_MIN - accept_stat when the RPC layer refused it. */
static int call_fop(struct scene *s, enum fop op, const union fop_args *args, const int64_t fds[2],
                    union fop_reply *reply)
{
    AUTO(rpc_call) call = new_call(s, FOPS, 400, fop_info[op].procedure);
    const struct payload *payload = fop_args_payload(op, args);
    int result = 0;

    fop_encode_args(op, args, fds, rpc_call_writer(call));
    if (payload)
        rpc_call_add_payload(call, payload);
    int ret = rpc_call_run(call);
    if (ret == -EREMOTEIO)
        return INT32_MIN + call->accept;
    check_equal(ret, 0);
    memset(reply, 0, sizeof(*reply));
    check_equal(fop_decode_reply(op, &call->body, &call->bulk, reply, &result), 0);
    return result;
}

static const int64_t anonymous[2] = { -2, -2 };

static int call_plain(struct scene *s, enum fop op, const union fop_args *args)
{
    union fop_reply reply;
    int ret = call_fop(s, op, args, anonymous, &reply);
    if (ret > INT32_MIN + 16)
        fop_reply_fini(op, &reply);
    return ret;
}

/* By name, with the members of its arguments; fetch keeps the reply. */
#define plain(s, op_, ...) call_plain(s, fop_of_name(#op_), OPERATION(op_, __VA_ARGS__))
#define fetch(s, op_, reply_, ...)                                                                 \
    call_fop(s, fop_of_name(#op_), OPERATION(op_, __VA_ARGS__), anonymous, reply_)

static int stat_gfid(struct scene *s, struct inode *inode)
{
    return plain(s, stat, .inode = inode);
}

/* --- the handshake ---------------------------------------------------------------------------- */

static void nothing_is_served_before_the_handshake(void)
{
    struct scene *s = scene_new(NULL, NULL);
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);

    for (enum fop op = 0; op < FOP_COUNT; op++) {
        if (op == FOP_PUT)
            continue;
        struct some_args some;
        some_args_init(&some, s->fx, op);
        check_equal(call_plain(s, op, &some.args), INT32_MIN + GARBAGE_ARGS);
        some_args_fini(&some, op);
    }
    check_equal(s->fx->count, 0);
    shake_hands(s, "child");
    check_equal(stat_gfid(s, inode), 0);
    inode_unref(TAKE(inode));
    scene_free(s);
}

static void who_does_not_say_what_is_needed_is_told_why(void)
{
    static const struct {
        const char *pairs[9];
        int result;
        const char *error;
    } cases_[] = {
        { { "process-uuid", "c", "fops-version", "1298437" }, -EINVAL, "remote-subvolume" },
        { { "remote-subvolume", "child", "fops-version", "1298437" }, -EINVAL, "UUID" },
        { { "remote-subvolume", "child", "process-uuid", "c" }, -EINVAL, "version mismatch" },
        { { "remote-subvolume", "child", "process-uuid", "c", "fops-version", "400" },
          -EINVAL,
          "version mismatch" },
        { { "remote-subvolume", "childx", "process-uuid", "c", "fops-version", "1298437" },
          -ENOENT,
          "Brick not found" },
    };
    struct scene *s = scene_new(NULL, NULL);

    for (size_t i = 0; i < ARRAY_SIZE(cases_); i++) {
        struct dict *reply = NULL;
        check_equal(set_volume(s, cases_[i].pairs, &reply), cases_[i].result);
        check(strstr(dict_get_str(reply, "ERROR"), cases_[i].error) != NULL);
        dict_unref(reply);
    }
    struct dict *reply = NULL;
    check_equal(set_volume(s, (const char *[]){ MINIMAL("child"), NULL }, &reply), 0);
    check(strcmp(dict_get_str(reply, "ERROR"), "Success") == 0);
    check(strcmp(dict_get_str(reply, "child_up"), "1") == 0);
    check(dict_get_str(reply, "process-uuid") != NULL);
    dict_unref(reply);
    check_equal(set_volume(s, (const char *[]){ MINIMAL("child"), NULL }, NULL), -EINVAL);
    scene_free(s);
}

static void a_brick_that_is_down_says_try_again(void)
{
    struct scene *s = scene_new(NULL, NULL);
    xlator_notify(s->fx->child, EVENT_CHILD_DOWN, NULL);
    check_equal(set_volume(s, (const char *[]){ MINIMAL("child"), NULL }, NULL), -EAGAIN);
    xlator_notify(s->fx->child, EVENT_CHILD_UP, NULL);
    shake_hands(s, "child");
    scene_free(s);
}

static void who_is_not_allowed_is_refused(void)
{
    struct scene *s = scene_new(NULL, (const char *[]){ "auth.login.child.allow", "alice",
                                                        "auth.login.alice.password", "pw", NULL });
    struct dict *reply = NULL;
    check_equal(set_volume(s,
                           (const char *[]){ MINIMAL("child"), "username", "alice", "password",
                                             "no", NULL },
                           &reply),
                -EACCES);
    check(strstr(dict_get_str(reply, "ERROR"), "Authentication failed") != NULL);
    dict_unref(reply);
    check_equal(set_volume(s,
                           (const char *[]){ MINIMAL("child"), "username", "alice", "password",
                                             "pw", NULL },
                           NULL),
                0);
    scene_free(s);
}

/* The brick looks at its root while it shakes hands: in that time the next one comes. */
static unsigned shaken, refused;

static int answer_slowly(struct fixture *fx, struct call *call, enum fop op, const void *args,
                         void *reply)
{
    (void)fx, (void)call, (void)args, (void)reply;
    if (op == FOP_LOOKUP)
        env_sleep(30 * NS_PER_MS);
    return 0;
}

static void shaker(void *arg)
{
    struct scene *s = arg;
    int ret = set_volume(s, (const char *[]){ MINIMAL("child"), NULL }, NULL);
    check(ret == 0 || ret == -EINVAL);
    ++*(ret == 0 ? &shaken : &refused);
}

static void of_two_handshakes_at_once_one_counts(void)
{
    struct scene *s = scene_new(NULL, NULL);

    s->fx->answer = answer_slowly;
    shaken = refused = 0;
    for (int i = 0; i < 4; i++)
        check_equal(fiber_start("shaker", shaker, s), 0);
    await_count(&shaken, 1);
    await_count(&refused, 3);
    scene_free(s); /* a session that was lost would hold the inode table, and memory */
}

/* --- files by number -------------------------------------------------------------------------- */

static struct inode *opened_inode;

static int answer_open(struct fixture *fx, struct call *call, enum fop op, const void *args,
                       void *reply)
{
    (void)fx, (void)call, (void)reply;
    if (op == FOP_CREATE)
        fd_bind(((const struct create_args *)args)->fd, opened_inode);
    return op == FOP_WRITEV ? (int)((const struct writev_args *)args)->payload.bytes : 0;
}

static int64_t open_file(struct scene *s, struct inode *inode)
{
    union fop_reply reply;
    check_equal(fetch(s, open, &reply, .inode = inode, .flags = 2), 0);
    int64_t fd = reply.open.fd;
    fop_reply_fini(FOP_OPEN, &reply);
    return fd;
}

static int release(struct scene *s, int64_t number)
{
    AUTO(rpc_call) call = new_call(s, FOPS, 400, RELEASE);
    uint32_t op_ret = 77;
    writer_gfid(rpc_call_writer(call), &gfid_root);
    writer_u64(rpc_call_writer(call), (uint64_t)number);
    dict_encode(rpc_call_writer(call), NULL);
    check_equal(rpc_call_run(call), 0);
    check_equal(reader_u32(&call->body, &op_ret), 0);
    return (int)op_ret;
}

static int flush_by(struct scene *s, int64_t number)
{
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);
    AUTO(fd) fd = fd_new(inode, 0, 0);
    const int64_t fds[2] = { number, 0 };
    union fop_reply reply;
    return call_fop(s, FOP_FLUSH, OPERATION(flush, .fd = fd), fds, &reply);
}

static void files_have_the_lowest_free_number(void)
{
    struct scene *s = scene_new(NULL, NULL);
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);
    union fop_reply reply;

    opened_inode = inode;
    s->fx->answer = answer_open;
    shake_hands(s, "child");
    check_equal(open_file(s, inode), 0);
    check_equal(fetch(s, opendir, &reply, .inode = inode), 0);
    check_equal(reply.opendir.fd, 1); /* files and directories share the numbers */
    check_equal(fetch(s, create, &reply, .parent = inode, .name = "new"), 0);
    check_equal(reply.create.fd, 2);
    check_equal(flush_by(s, 0), 0);
    check_equal(release(s, 0), 0);
    check_equal(flush_by(s, 0), -EBADF);
    check_equal(open_file(s, inode), 0);
    check_equal(release(s, 4000), 0); /* an unknown number is fine */
    check_equal(flush_by(s, 3), -EBADF);
    check_equal(flush_by(s, -1), -EBADF);
    check_equal(flush_by(s, -3), -EBADF);
    check_equal(flush_by(s, INT64_MAX), -EBADF);
    check_equal(flush_by(s, -2), 0); /* any descriptor of the inode */
    inode_unref(TAKE(inode));
    scene_free(s);
}

/* --- what must not reach a translator --------------------------------------------------------- */

static void wrong_arguments_stop_at_the_door(void)
{
    struct scene *s = scene_new(NULL, NULL);
    AUTO(inode) dir = fixture_inode(s->fx, FILE_NODE);
    char *long_name = calloc(1, 300);

    shake_hands(s, "child");
    fixture_forget(s->fx);
    memset(long_name, 'n', 256);
    const struct {
        const char *name;
        int result;
    } names[] = { { "", -EINVAL },  { "a/b", -EPERM }, { "/", -EPERM },
                  { ".", -EEXIST }, { "..", -EEXIST }, { long_name, -ENAMETOOLONG } };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *name = names[i].name;
        union fop_args mkdir_ = { .mkdir = { .parent = dir, .name = name } };
        union fop_args unlink_ = { .unlink = { .parent = dir, .name = name } };
        union fop_args from = {
            .rename = { .oldparent = dir, .newparent = dir, .oldname = name, .newname = "x" }
        };
        union fop_args to = {
            .rename = { .oldparent = dir, .newparent = dir, .oldname = "x", .newname = name }
        };
        union fop_args link_ = { .link = { .inode = dir, .newparent = dir, .newname = name } };
        check_equal(call_plain(s, FOP_MKDIR, &mkdir_), names[i].result);
        check_equal(call_plain(s, FOP_UNLINK, &unlink_), names[i].result);
        check_equal(call_plain(s, FOP_RENAME, &from), names[i].result);
        check_equal(call_plain(s, FOP_RENAME, &to), names[i].result);
        check_equal(call_plain(s, FOP_LINK, &link_), names[i].result);
    }
    long_name[255] = '\0';
    check_equal(plain(s, mkdir, .parent = dir, .name = long_name), 0);
    fixture_forget(s->fx);
    check_equal(stat_gfid(s, NULL), -EINVAL);
    check_equal(plain(s, mkdir, .name = "x"), -EINVAL);
    check_equal(plain(s, lookup, .name = ""), -EINVAL);
    check_equal(plain(s, lookup, .name = "x"), -EINVAL);
    check_equal(plain(s, truncate, .inode = dir, .offset = 1ull << 63), -EINVAL);
    check_equal(s->fx->count, 0);
    free(long_name);
    inode_unref(TAKE(dir));
    scene_free(s);
}

static void ranges_beyond_the_end_of_numbers_stop_at_the_door(void)
{
    struct scene *s = scene_new(NULL, NULL);
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);
    AUTO(fd) fd = fd_new(inode, 0, 0);
    const uint64_t wrong[][2] = {
        { UINT64_MAX, 2 }, { INT64_MAX, 1 }, { 1, UINT64_MAX }, { 1ull << 63, 0 }
    };

    shake_hands(s, "child");
    fixture_forget(s->fx);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        uint64_t offset = wrong[i][0], size = wrong[i][1];
        check_equal(plain(s, fallocate, .fd = fd, .offset = offset, .size = size), -EINVAL);
        check_equal(plain(s, discard, .fd = fd, .offset = offset, .size = size), -EINVAL);
        check_equal(plain(s, zerofill, .fd = fd, .offset = offset, .size = size), -EINVAL);
        if (size > UINT32_MAX)
            continue;
        check_equal(plain(s, readv, .fd = fd, .offset = offset, .size = (uint32_t)size), -EINVAL);
        check_equal(plain(s, rchecksum, .fd = fd, .offset = offset, .size = (uint32_t)size),
                    -EINVAL);
        check_equal(plain(s, copy_file_range, .in = fd, .out = fd, .in_offset = offset,
                          .size = (uint32_t)size),
                    -EINVAL);
        check_equal(plain(s, copy_file_range, .in = fd, .out = fd, .out_offset = offset,
                          .size = (uint32_t)size),
                    -EINVAL);
    }
    check_equal(s->fx->count, 0);
    check_equal(plain(s, seek, .fd = fd, .offset = UINT64_MAX),
                0); /* lseek(2) has an errno of its own for these */
    fd_unref(TAKE(fd));
    inode_unref(TAKE(inode));
    scene_free(s);
}

/* Every operation with random arguments: an answer of the complete structure, whatever it says. */
static void every_operation_is_answered(void)
{
    struct scene *s = scene_new(NULL, NULL);
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);

    opened_inode = inode;
    s->fx->answer = answer_open;
    shake_hands(s, "child");
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        for (int round = 0; round < 20; round++) {
            struct some_args some;
            some_args_init(&some, s->fx, op);
            int ret = call_plain(s, op, &some.args);
            check(ret >= 0 || ret == -EINVAL || (op == FOP_PUT && ret == INT32_MIN + 3));
            some_args_fini(&some, op);
        }
    }
    check(rpc_client_is_connected(s->client));
    inode_unref(TAKE(inode));
    scene_free(s);
}

/* --- on whose behalf -------------------------------------------------------------------------- */

static void seen_as(struct scene *s, uint32_t uid, uint32_t gid, int32_t pid, uint32_t expected_uid)
{
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);
    s->cred.uid = uid;
    s->cred.gid = gid;
    s->cred.pid = pid;
    fixture_forget(s->fx);
    check_equal(stat_gfid(s, inode), 0);
    check_equal(s->fx->seen[0].uid, expected_uid);
}

static void squashing_makes_users_nobody(void)
{
    const char *alice[] = { MINIMAL("child"), "username", "a", "password", "p", NULL };
    const char *login[] = { "auth.login.child.allow",
                            "a",
                            "auth.login.a.password",
                            "p",
                            "root-squash",
                            "on",
                            "anonuid",
                            "555",
                            NULL };
    struct scene *s = scene_new(NULL, login);

    shake_hands(s, "child");
    seen_as(s, 0, 0, 1, 555);
    seen_as(s, 0, 7, 1, 555);
    seen_as(s, 7, 0, 1, 7); /* only the group of root */
    seen_as(s, 7, 7, 1, 7);
    seen_as(s, 0, 0, PID_SELF_HEAL, 555); /* whoever claims that must know the password */
    scene_free(s);

    s = scene_new(NULL, login);
    check_equal(set_volume(s, alice, NULL), 0);
    seen_as(s, 0, 0, 1, 555);
    seen_as(s, 0, 0, PID_SELF_HEAL, 0);
    seen_as(s, 0, 0, PID_BITD, 555); /* not one of those that are exempt */
    scene_free(s);

    s = scene_new(NULL, (const char *[]){ "all-squash", "on", NULL });
    shake_hands(s, "child");
    seen_as(s, 1000, 1000, 1, 65534);
    seen_as(s, 0, 0, 1, 65534);
    scene_free(s);
}

/* --- subdirectory mounts ---------------------------------------------------------------------- */

static int stat_as(uint32_t n, mode_t type, struct iatt *stat)
{
    *stat = (struct iatt){ .gfid = n == BRICK_ROOT ? gfid_root : gfid_of(n), .mode = type | 0755 };
    stat->ino = gfid_ino(&stat->gfid);
    return 0;
}

/* root / sub / file; "outside" beside sub. A look-up of ".." tells the parent, as a disk does. */
static int answer_tree(struct fixture *fx, struct call *call, enum fop op, const void *args,
                       void *reply)
{
    gfid_t sub = gfid_of(SUB);
    (void)fx, (void)call;
    switch (op) {
    case FOP_LOOKUP: {
        const struct lookup_args *in = args;
        struct lookup_reply *out = reply;
        if (!in->name || !in->name[0])
            return stat_as(gfid_equal(&in->inode->gfid, &sub) ? SUB : BRICK_ROOT, S_IFDIR,
                           &out->stat);
        bool in_sub = gfid_equal(&in->parent->gfid, &sub);
        stat_as(in_sub ? SUB : BRICK_ROOT, S_IFDIR, &out->postparent);
        if (strcmp(in->name, "..") == 0)
            return stat_as(BRICK_ROOT, S_IFDIR, &out->stat);
        if (!in_sub && strcmp(in->name, "sub") == 0)
            return stat_as(SUB, S_IFDIR, &out->stat);
        if (!in_sub && strcmp(in->name, "plain") == 0)
            return stat_as(OUTSIDE, S_IFREG, &out->stat);
        if (in_sub && strcmp(in->name, "file") == 0)
            return stat_as(FILE_NODE, S_IFREG, &out->stat);
        return -ENOENT;
    }
    case FOP_STAT:
        return stat_as(SUB, S_IFDIR, &((struct stat_reply *)reply)->stat);
    case FOP_MKDIR: {
        struct mkdir_reply *out = reply;
        stat_as(SUB, S_IFDIR, &out->preparent);
        stat_as(SUB, S_IFDIR, &out->postparent);
        return stat_as(FILE_NODE, S_IFDIR, &out->stat);
    }
    case FOP_READDIRP: {
        struct readdirp_reply *out = reply;
        struct iatt stat;
        stat_as(SUB, S_IFDIR, &stat);
        check_equal(dirents_add(&out->entries, ".", stat.ino, 1, 4, &stat, NULL), 0);
        stat_as(BRICK_ROOT, S_IFDIR, &stat);
        check_equal(dirents_add(&out->entries, "..", stat.ino, 2, 4, &stat, NULL), 0);
        stat_as(FILE_NODE, S_IFREG, &stat);
        check_equal(dirents_add(&out->entries, "file", stat.ino, 3, 8, &stat, NULL), 0);
        return 3;
    }
    default:
        return 0;
    }
}

static void is_root(const struct iatt *stat)
{
    check(gfid_is_root(&stat->gfid));
    check_equal(stat->ino, 1);
}

static int mount_subdir(struct scene *s, const char *path)
{
    return set_volume(s, (const char *[]){ MINIMAL("child"), "subdir-mount", path, NULL }, NULL);
}

static void a_subdirectory_is_its_clients_root(void)
{
    struct scene *s = scene_new(NULL, NULL);
    AUTO(inode) root = inode_get(s->fx->graph.inodes, &gfid_root);
    AUTO(fd) root_fd = fd_new(root, 0, 0);
    union fop_reply reply;

    s->fx->answer = answer_tree;
    check_equal(mount_subdir(s, "/nowhere"), -ENOENT);
    check_equal(mount_subdir(s, "/plain"), -ENOENT);
    check_equal(mount_subdir(s, "/sub/.."), -ENOENT);
    check_equal(mount_subdir(s, "/sub"), 0);

    check_equal(fetch(s, stat, &reply, .inode = root), 0);
    is_root(&reply.stat.stat);
    fop_reply_fini(FOP_STAT, &reply);
    check_equal(fetch(s, lookup, &reply, .parent = root, .name = "file"), 0);
    is_root(&reply.lookup.postparent);
    fop_reply_fini(FOP_LOOKUP, &reply);
    check_equal(fetch(s, lookup, &reply, .inode = root, .name = ""), 0);
    is_root(&reply.lookup.stat);
    fop_reply_fini(FOP_LOOKUP, &reply);
    check_equal(fetch(s, mkdir, &reply, .parent = root, .name = "d"), 0);
    is_root(&reply.mkdir.preparent); /* spec/wire.md 4.1: also where it is somebody's parent */
    is_root(&reply.mkdir.postparent);
    fop_reply_fini(FOP_MKDIR, &reply);
    check_equal(fetch(s, lookup, &reply, .parent = root, .name = "sub"), -ENOENT);
    check_equal(fetch(s, readdirp, &reply, .fd = root_fd, .size = 4096), 3);
    is_root(reply.readdirp.entries.first->stat);
    is_root(reply.readdirp.entries.first->next->stat); /* ".." of the root is the root */
    fop_reply_fini(FOP_READDIRP, &reply);
    fd_unref(TAKE(root_fd));
    inode_unref(TAKE(root));
    scene_free(s);
}

static void no_name_leads_out_of_a_subdirectory(void)
{
    struct scene *s = scene_new(NULL, NULL);
    AUTO(inode) root = inode_get(s->fx->graph.inodes, &gfid_root);
    gfid_t sub_gfid = gfid_of(SUB);
    AUTO(inode) sub = inode_get(s->fx->graph.inodes, &sub_gfid);
    struct inode *const ways[] = { root, sub };
    union fop_reply reply;

    s->fx->answer = answer_tree;
    check_equal(mount_subdir(s, "/sub"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        int ret = fetch(s, lookup, &reply, .parent = ways[i], .name = "..");
        check_equal(ret, 0);
        is_root(&reply.lookup.stat); /* what the client calls the root: the subdirectory */
        fop_reply_fini(FOP_LOOKUP, &reply);
    }
    check_equal(fixture_count(s->fx, FOP_LOOKUP) > 0, true);
    for (unsigned i = 0; i < s->fx->count; i++)
        check(strcmp(s->fx->seen[i].name, "..") != 0); /* nobody below was asked for it */
    inode_unref(TAKE(root));
    inode_unref(TAKE(sub));
    scene_free(s);
}

/* --- a client goes ---------------------------------------------------------------------------- */

static struct scene *waiting_scene;
static unsigned waiter_done;
static int waiter_result;

static int lk(struct scene *s, uint32_t cmd, uint32_t type)
{
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);
    AUTO(fd) fd = fd_new(inode, 0, 0);
    const int64_t fds[2] = { 0, 0 };
    union fop_reply reply;
    int ret = call_fop(s, FOP_LK,
                       OPERATION(lk, .fd = fd, .cmd = cmd, .type = type, .lock.type = type), fds,
                       &reply);
    return ret;
}

static void lock_waiter(void *arg)
{
    (void)arg;
    waiter_result = lk(waiting_scene, 2, RANGE_WRITE);
    waiter_done++;
}

static void a_clients_end_gives_its_locks_to_others(void)
{
    struct scene *first = scene_new(&xlator_features_locks, NULL);
    struct scene second = *first;
    AUTO(inode) inode = fixture_inode(first->fx, FILE_NODE);

    connect_to(&second);
    shake_hands(first, "tested");
    shake_hands(&second, "tested");
    check_equal(open_file(first, inode), 0);
    check_equal(open_file(&second, inode), 0); /* numbers are the client's own */
    check_equal(lk(first, 1, RANGE_WRITE), 0);
    check_equal(lk(&second, 1, RANGE_WRITE), -EAGAIN);
    waiting_scene = &second;
    waiter_done = 0;
    check_equal(fiber_start("waiter", lock_waiter, NULL), 0);
    env_sleep(50 * NS_PER_MS);
    check_equal(waiter_done, 0);
    rpc_client_free(TAKE(first->client)); /* as kill -9 does */
    await_count(&waiter_done, 1);
    check_equal(waiter_result, 0);
    rpc_client_free(second.client);
    inode_unref(TAKE(inode));
    scene_free(first); /* no lock, no file, no inode is left: the fixture looks */
}

/* The waiter's own connection ends: its fiber ends too, the lock is not taken for the dead. */
static unsigned orphan_done;

static void orphan_waiter(void *arg)
{
    struct scene *s = arg;
    AUTO(rpc_call) call = new_call(s, FOPS, 400, 26);
    AUTO(inode) inode = fixture_inode(s->fx, FILE_NODE);
    AUTO(fd) fd = fd_new(inode, 0, 0);
    const int64_t fds[2] = { 0, 0 };
    const union fop_args args = {
        .lk = { .fd = fd, .cmd = 2, .type = RANGE_WRITE, .lock = { .type = RANGE_WRITE } }
    };
    fop_encode_args(FOP_LK, &args, fds, rpc_call_writer(call));
    check_equal(rpc_call_run(call), -ENOTCONN);
    orphan_done++;
}

static void a_waiter_whose_client_goes_goes_too(void)
{
    struct scene *first = scene_new(&xlator_features_locks, NULL);
    struct scene second = *first;
    AUTO(inode) inode = fixture_inode(first->fx, FILE_NODE);

    connect_to(&second);
    shake_hands(first, "tested");
    shake_hands(&second, "tested");
    check_equal(open_file(first, inode), 0);
    check_equal(open_file(&second, inode), 0);
    check_equal(lk(first, 1, RANGE_WRITE), 0);
    orphan_done = 0;
    check_equal(fiber_start("orphan", orphan_waiter, &second), 0);
    env_sleep(50 * NS_PER_MS);
    rpc_client_disconnect(second.client);
    await_count(&orphan_done, 1);
    check_equal(lk(first, 1, RANGE_UNLOCK), 0);
    check_equal(lk(first, 1, RANGE_WRITE), 0); /* nobody else has it */
    rpc_client_free(second.client);
    inode_unref(TAKE(inode));
    scene_free(first);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(nothing_is_served_before_the_handshake, REAL),
    FIBER_CASE(who_does_not_say_what_is_needed_is_told_why, REAL),
    FIBER_CASE(a_brick_that_is_down_says_try_again, REAL),
    FIBER_CASE(who_is_not_allowed_is_refused, REAL),
    FIBER_CASE(of_two_handshakes_at_once_one_counts, REAL),
    FIBER_CASE(files_have_the_lowest_free_number, REAL),
    FIBER_CASE(wrong_arguments_stop_at_the_door, REAL),
    FIBER_CASE(ranges_beyond_the_end_of_numbers_stop_at_the_door, REAL),
    FIBER_CASE(every_operation_is_answered, REAL),
    FIBER_CASE(squashing_makes_users_nobody, REAL),
    FIBER_CASE(a_subdirectory_is_its_clients_root, REAL),
    FIBER_CASE(no_name_leads_out_of_a_subdirectory, REAL),
    FIBER_CASE(a_clients_end_gives_its_locks_to_others, REAL),
    FIBER_CASE(a_waiter_whose_client_goes_goes_too, REAL),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
