/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The handshake program of a brick (spec/wire.md 2.1, 5): a connection says who it is and what it
 * wants, and from then on the fop program serves it. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "rpc/dict_wire.h"
#include "xlators/protocol/server/auth.h"
#include "xlators/protocol/server/session.h"

enum { SETVOLUME_BYTES_MAX = 1 << 20, SPEC_BYTES_MAX = 1 << 20 };
#define FOPS_PROGRAM_TEXT "1298437"

struct handshake { /* one SETVOLUME */
    struct xlator *xl;
    struct rpc_request *req;
    struct dict *in, *out;
    struct session *session; /* made, not yet the connection's */
};

/* --- refusing with a reason ------------------------------------------------------------------- */
static int refuse(struct handshake *shake, int ret, const char *format, ...) printf_like(3, 4);

static int refuse(struct handshake *shake, int ret, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_error(shake->xl, ret, "%s may not use this brick: %s", rpc_conn_peer(shake->req->conn),
              text);
    (void)!dict_set_str(shake->out, "ERROR", text); /* without memory the errno alone must do */
    return ret;
}

/* --- its steps ------------------------------------------------------------------------------- */
static struct xlator *find_export(const struct xlator *xl, const char *name)
{
    for (uint32_t i = 0; i < xl->child_count; i++)
        if (strcmp(xl->children[i]->name, name) == 0)
            return xl->children[i];
    return NULL;
}

static int check_volume_id(struct handshake *shake, const struct xlator *export_)
{
    const char *theirs = dict_get_str(shake->in, "volume-id");
    const char *ours = option_set_get(&export_->options, "volume-id");

    if (!ours)
        return 0;
    if (theirs && strcasecmp(theirs, ours) != 0)
        return refuse(shake, -EINVAL, "Volume-ID different, possible case of same brick re-used "
                                      "in another volume");
    return dict_set_str(shake->out, "volume-id", ours);
}

static int authenticate(struct handshake *shake, const char *brick, bool *ret_trusted)
{
    struct server *server = shake->xl->state;
    const char *subdir = dict_get_str(shake->in, "subdir-mount");
    const struct auth_request request = {
        .brick = brick,
        .subdir = subdir ? subdir : "/",
        .user = dict_get_str(shake->in, "username"),
        .password = dict_get_str(shake->in, "password"),
        .peer = rpc_conn_address(shake->req->conn),
        .allow_insecure = server->allow_insecure,
        .strict_accept = server->strict_auth_accept,
    };
    if (auth_decide(shake->xl, &request, ret_trusted) != AUTH_ACCEPT)
        return refuse(shake, -EACCES, "Authentication failed");
    return 0;
}

/* The directory that a subdirectory mount takes for its root. */
static int walk_subdir(struct xlator *export_, const char *path, struct inode **ret_inode)
{
    struct call call = {};
    AUTO(inode) at = inode_get(export_->graph->inodes, &gfid_root);
    AUTO_FREE char *copy = strdup(path);
    char *rest = copy, *word;

    if (!at || !copy)
        return -ENOMEM;
    while ((word = strsep(&rest, "/")) != NULL) {
        struct lookup_reply reply = {};
        if (*word == '\0')
            continue;
        if (strcmp(word, ".") == 0 || strcmp(word, "..") == 0)
            return -ENOENT;
        int ret = fop_lookup(export_, &call, &(struct lookup_args){ .parent = at, .name = word },
                             &reply);
        struct inode *next = NULL;
        if (ret >= 0 && !S_ISDIR(reply.stat.mode))
            ret = -ENOTDIR;
        if (ret >= 0)
            next = inode_get(export_->graph->inodes, &reply.stat.gfid);
        lookup_reply_fini(&reply);
        if (ret < 0 || !next)
            return ret < 0 ? ret : -ENOMEM;
        inode_unref(at);
        at = next;
    }
    *ret_inode = gfid_is_root(&at->gfid) ? NULL : TAKE(at);
    return 0;
}

static int bind_subdir(struct handshake *shake, struct xlator *export_, struct inode **ret_inode)
{
    const char *subdir = dict_get_str(shake->in, "subdir-mount");
    int ret = subdir ? walk_subdir(export_, subdir, ret_inode) : 0;

    if (ret < 0)
        return refuse(shake, ret == -ENOTDIR ? -ENOENT : ret,
                      "subdirectory for mount \"%s\" is not found", subdir);
    return 0;
}

/* The brick looks at its own root, so that one that cannot serve says so now. */
static int check_root(struct handshake *shake, struct xlator *export_)
{
    struct call call = {};
    struct lookup_reply reply = {};
    AUTO(inode) root = inode_get(export_->graph->inodes, &gfid_root);

    if (!root)
        return -ENOMEM;
    int ret = fop_lookup(export_, &call, &(struct lookup_args){ .inode = root, .name = "" },
                         &reply);
    lookup_reply_fini(&reply);
    return ret < 0 ? refuse(shake, ret, "the brick's root cannot be looked up") : 0;
}

static int make_session(struct handshake *shake, struct xlator *export_, const char *uid,
                        bool trusted)
{
    struct inode *subdir = NULL;
    int ret = check_root(shake, export_);
    if (ret == 0)
        ret = bind_subdir(shake, export_, &subdir);
    if (ret < 0)
        return ret;

    struct client *client = client_new(uid, rpc_conn_peer(shake->req->conn));
    shake->session = client ? session_new(shake->xl, export_, client, subdir) : NULL;
    if (!shake->session) {
        client_unref(client);
        inode_unref(subdir);
        return -ENOMEM;
    }
    client->trusted = trusted;
    return 0;
}

static int shake_hands(struct handshake *shake)
{
    struct server *server = shake->xl->state;
    const char *brick = dict_get_str(shake->in, "remote-subvolume");
    const char *uid = dict_get_str(shake->in, "process-uuid");
    const char *fops = dict_get_str(shake->in, "fops-version");
    bool trusted = false;

    if (rpc_conn_user(shake->req->conn))
        return refuse(shake, -EINVAL, "this connection has shaken hands already");
    if (!brick)
        return refuse(shake, -EINVAL, "No remote-subvolume option specified");
    if (!uid)
        return refuse(shake, -EINVAL, "UUID not specified");
    if (!fops || strcmp(fops, FOPS_PROGRAM_TEXT) != 0)
        return refuse(shake, -EINVAL, "version mismatch: client(%s) - client-mgmt(none)",
                      fops ? fops : "none");
    struct xlator *export_ = find_export(shake->xl, brick);
    if (!export_)
        return refuse(shake, -ENOENT, "Brick not found");
    if (!server->child_is_up)
        return refuse(shake, -EAGAIN, "Not received child_up for this xlator");
    int ret = check_volume_id(shake, export_);
    if (ret == 0)
        ret = authenticate(shake, brick, &trusted);
    return ret < 0 ? ret : make_session(shake, export_, uid, trusted);
}

/* --- replies --------------------------------------------------------------------------------- */
static int fill_reply(struct handshake *shake, int ret)
{
    struct server *server = shake->xl->state;
    int failed = 0;

    if (ret == 0)
        failed = dict_set_str(shake->out, "ERROR", "Success");
    if (failed == 0)
        failed = dict_set_str(shake->out, "process-uuid", shake->xl->graph->uuid);
    if (failed == 0)
        failed = dict_set_str(shake->out, "child_up", server->child_is_up ? "1" : "0");
    return failed < 0 ? failed : dict_set_str(shake->out, "clnt-lk-version", "0");
}

static void reply_result(struct rpc_request *req, int ret, const struct dict *dict)
{
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, ret < 0 ? (uint32_t)-1 : 0);
    writer_u32(w, ret < 0 ? (uint32_t)-ret : 0);
    dict_encode_legacy(w, dict);
    rpc_reply_send(req, NULL);
}

static void serve_setvolume(struct rpc_request *req)
{
    struct handshake shake = { .xl = rpc_server_arg(rpc_conn_server(req->conn)), .req = req };
    uint8_t *bytes;
    uint32_t count;
    int ret = reader_opaque(&req->body, SETVOLUME_BYTES_MAX, &bytes, &count);

    if (ret == 0)
        ret = dict_decode_legacy(bytes, count, &shake.in);
    if (ret < 0) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    shake.out = dict_new();
    ret = shake.out ? shake_hands(&shake) : -ENOMEM;
    int filled = fill_reply(&shake, ret);
    if (ret == 0)
        ret = filled;
    if (ret == 0 && !rpc_conn_is_open(req->conn)) {
        session_end(TAKE(shake.session)); /* the client went while we looked; its end has passed */
        ret = -ENOTCONN;
    }
    if (ret == 0 && rpc_conn_user(req->conn)) {
        session_end(TAKE(shake.session)); /* another handshake was faster while we looked */
        ret = refuse(&shake, -EINVAL, "this connection has shaken hands already");
    }
    if (ret == 0) {
        count_add(&((struct server *)shake.xl->state)->sessions, 1);
        log_info(shake.xl, 0, "accepted client from %s (%s)", rpc_conn_peer(req->conn),
                 shake.session->client->uid);
        rpc_conn_set_user(req->conn, TAKE(shake.session));
    }
    session_unref(shake.session);
    reply_result(req, ret, shake.out);
    dict_unref(shake.in);
    dict_unref(shake.out);
}

/* Old clients ask a server for their volfile (spec/volfile.md 4.1): the one that
 * client-volume-filename names, under any key. */
static ssize_t read_spec(const char *path, char *spec, size_t size)
{
    AUTO_FD fd = env_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    struct iovec iov = { spec, size };
    return env_preadv(fd, &iov, 1, 0);
}

static void serve_getspec(struct rpc_request *req)
{
    struct xlator *xl = rpc_server_arg(rpc_conn_server(req->conn));
    struct server *server = xl->state;
    AUTO_FREE char *spec = calloc(1, SPEC_BYTES_MAX + 1);
    ssize_t ret = -ENOSYS;

    if (server->client_volume_filename && spec) {
        ret = read_spec(server->client_volume_filename, spec, SPEC_BYTES_MAX);
        if (ret < 0)
            log_error(xl, (int)ret, "cannot read client-volume-filename %s",
                      server->client_volume_filename);
    }
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, ret < 0 ? (uint32_t)-1 : (uint32_t)strlen(spec));
    writer_u32(w, ret < 0 ? (uint32_t)-ret : 0);
    writer_str(w, ret < 0 ? "" : spec);
    writer_opaque(w, NULL, 0);
    rpc_reply_send(req, NULL);
}

static void serve_ping(struct rpc_request *req)
{
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, 0);
    writer_u32(w, 0);
    writer_opaque(w, NULL, 0);
    rpc_reply_send(req, NULL);
}

static void serve_set_lk_ver(struct rpc_request *req)
{
    char *uid;
    uint32_t version = 0;
    int ret = reader_str(&req->body, 4096, &uid);

    if (ret == 0)
        ret = reader_u32(&req->body, &version);
    if (ret < 0) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, 0);
    writer_u32(w, 0);
    writer_u32(w, version);
    rpc_reply_send(req, NULL);
}

static void serve_null(struct rpc_request *req)
{
    (void)rpc_reply_begin(req);
    rpc_reply_send(req, NULL);
}

static const struct rpc_procedure procedures[] = {
    { .name = "NULL", .handler = serve_null },
    { .name = "SETVOLUME", .handler = serve_setvolume },
    { .name = "GETSPEC", .handler = serve_getspec },
    { .name = "PING", .handler = serve_ping, .flags = RPC_INLINE },
    { .name = "SET_LK_VER", .handler = serve_set_lk_ver },
};

const struct rpc_program server_handshake_program = {
    .number = 14398633,
    .version = 2,
    .name = "GlusterFS Handshake",
    .procedures = procedures,
    .count = ARRAY_SIZE(procedures),
};
