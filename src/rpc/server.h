/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The serving end of RPC: listeners, connections, programs, requests.
 *
 *     static const struct rpc_procedure procedures[] = {
 *         [13] = { "WRITE", serve_fop, .payload_fixed = 52, .payload_size_at = 40 },
 *     };
 *     static const struct rpc_program fops = { 1298437, 400, "GlusterFS 4.x v1", procedures, 57 };
 *
 *     ret = rpc_server_new(&(struct rpc_server_config){ .name = xl->name, .arg = xl }, &server);
 *     ret = rpc_server_register(server, &fops);
 *     ret = rpc_server_listen(server, &address);   // -EADDRINUSE: somebody has the port
 *
 *     static void serve_fop(struct rpc_request *req)             // on a fiber of its own
 *     {
 *         ret = fop_decode_args(op, &req->body, &req->payload, &args, &refs);
 *         if (ret < 0)
 *             return rpc_reply_error(req, RPC_GARBAGE_ARGS);
 *         ...
 *         fop_encode_reply(op, ret, &reply, rpc_reply_begin(req));
 *         rpc_reply_send(req, fop_reply_payload(op, &reply));
 *     }
 *
 * The dump program (NULL, DUMP, PING) is built in; its PING is answered by the reader itself, ahead
 * of whatever runs. Requests start in the order in which they came; each runs on its own fiber of
 * the connection's lane. */
#pragma once

#include "core/buf.h"
#include "core/env.h"
#include "core/log.h"
#include "rpc/cred.h"
#include "rpc/xdr.h"

struct rpc_server;
struct rpc_conn;
struct rpc_request;

enum rpc_procedure_flags {
    RPC_INLINE = 1,       /* never waits: runs on the reader's fiber, before what follows is read */
    RPC_UNPRIVILEGED = 2, /* served to ports >= 1024 even where these are refused */
    RPC_BLOCKING = 4,     /* may wait for another request (locks): not counted as outstanding */
};

typedef void rpc_handler_fn(struct rpc_request *req);

struct rpc_procedure {
    const char *name;        /* NULL: a hole in the table */
    rpc_handler_fn *handler; /* replies exactly once before it returns; see rpc_no_reply */
    unsigned flags;          /* enum rpc_procedure_flags */
    /* Where bulk bytes begin, counted from the body's first byte: payload_fixed + the word at
     * payload_size_at rounded up to four (spec/wire.md 1.4). 0: it has none, all is body. */
    uint32_t payload_fixed, payload_size_at;
};

struct rpc_program { /* const, outlives the server */
    uint32_t number, version;
    const char *name; /* as DUMP lists it */
    const struct rpc_procedure *procedures;
    uint32_t count;
};

enum {
    RPC_OUTSTANDING_DEFAULT = 64,  /* rpc.outstanding-rpc-limit */
    RPC_BLOCKING_MAX = 4096,       /* of RPC_BLOCKING requests waiting, a connection */
    RPC_STRANGER_BYTES_DEFAULT = 128 * 1024,
};

struct rpc_server_config {
    const struct log_source *log; /* NULL: lines are under name */
    const char *name;
    void *arg;                    /* rpc_server_arg */
    unsigned outstanding_max;     /* a connection; 0: no limit, RPC_OUTSTANDING_DEFAULT is usual */
    int backlog;                  /* of listeners; 0: 1024 */
    /* A larger record ends a connection whose user pointer is not set yet: strangers get no memory
     * to speak of. 0: RPC_STRANGER_BYTES_DEFAULT. */
    uint32_t stranger_bytes_max;
    bool refuse_insecure;         /* the opposite of allow-insecure: ports >= 1024 are denied */
    int keepalive_s, keepalive_interval_s, keepalive_count, user_timeout_s; /* env_tcp_options */
    /* Both run on a fiber of the connection's lane. disconnected: the reader has ended, no request
     * starts any more, those that run go on and hold their reference; may wait. */
    void (*connected)(struct rpc_conn *conn);
    void (*disconnected)(struct rpc_conn *conn);
};

/* --- the server ------------------------------------------------------------------------------- */
must_check int rpc_server_new(const struct rpc_server_config *config,
                              struct rpc_server **ret_server);
/* Before the first listen. -EEXIST. */
must_check int rpc_server_register(struct rpc_server *server, const struct rpc_program *program);
/* Any number of addresses. Connections are spread over the lanes. -EADDRINUSE, ... */
must_check int rpc_server_listen(struct rpc_server *server, const struct env_address *address);
/* The address of the first listener (its port when 0 was asked for). -ENOENT. */
must_check int rpc_server_address(struct rpc_server *server, struct env_address *ret_address);
/* Stops accepting; ends all connections (disconnected hooks run) and waits until no request runs.
 * */
void rpc_server_stop(struct rpc_server *server);
void rpc_server_free(struct rpc_server *server); /* after stop; NULL is fine */
AUTO_DEFINE(rpc_server, rpc_server_free)
void *rpc_server_arg(struct rpc_server *server) nowait;
/* Live options. */
void rpc_server_set_outstanding(struct rpc_server *server, unsigned outstanding_max) nowait;
void rpc_server_set_insecure(struct rpc_server *server, bool refuse_insecure) nowait;
/* Calls fn on every connection, referenced meanwhile. */
void rpc_server_each(struct rpc_server *server, void (*fn)(struct rpc_conn *conn, void *arg),
                     void *arg);

/* --- a connection ----------------------------------------------------------------------------- */
struct rpc_server *rpc_conn_server(struct rpc_conn *conn) nowait;
/* The user's pointer; NULL at first. Set it from a request; nothing frees it but the user. */
void *rpc_conn_user(struct rpc_conn *conn) nowait;
void rpc_conn_set_user(struct rpc_conn *conn, void *user) nowait;
const char *rpc_conn_peer(const struct rpc_conn *conn) nowait; /* "10.77.0.1:49151" */
const struct env_address *rpc_conn_address(const struct rpc_conn *conn) nowait;
uint16_t rpc_conn_port(const struct rpc_conn *conn) nowait; /* of the peer; 0: a unix socket */
bool rpc_conn_is_open(const struct rpc_conn *conn) nowait;
void rpc_conn_counts(const struct rpc_conn *conn, uint64_t *ret_received, uint64_t *ret_sent)
    nowait;
/* Ends it soon; disconnected follows. */
void rpc_conn_close(struct rpc_conn *conn) nowait;
struct rpc_conn *rpc_conn_ref(struct rpc_conn *conn) nowait;
void rpc_conn_unref(struct rpc_conn *conn) nowait;
AUTO_DEFINE(rpc_conn, rpc_conn_unref)
/* A call to the client, never answered (spec/wire.md 7). Copies body. -ENOTCONN; -ENOBUFS: the
 * client does not read. */
must_check int rpc_callback(struct rpc_conn *conn, uint32_t program, uint32_t version,
                            uint32_t procedure, const void *body, uint32_t bytes) nowait;

/* --- a request -------------------------------------------------------------------------------- */
struct rpc_request {
    struct rpc_conn *conn;
    const struct rpc_program *program;
    uint32_t xid, procedure;
    struct rpc_cred cred;
    struct reader body;     /* mutable bytes, the request's until the handler returns */
    struct payload payload; /* bulk bytes; what is left in it is freed with the request */
    uint64_t received_ns;   /* env's clock */
};

/* A writer for the reply's body; its memory is the request's and lasts until it is sent. */
struct writer *rpc_reply_begin(struct rpc_request *req) nowait;
/* Sends what was written, then payload's bytes. payload (or NULL) is moved out of: it is empty
 * afterwards. Memory ran out while writing: sends RPC_SYSTEM_ERR instead. Never waits. */
void rpc_reply_send(struct rpc_request *req, struct payload *payload) nowait;
void rpc_reply_error(struct rpc_request *req, enum rpc_accept accept) nowait;
void rpc_reply_denied(struct rpc_request *req, enum rpc_auth_stat stat) nowait;
/* For the few procedures that are not answered. */
void rpc_no_reply(struct rpc_request *req) nowait;
