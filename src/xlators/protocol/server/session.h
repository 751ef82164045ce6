/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/server: what its parts share: the translator's state and that of a connection that has
 * shaken hands. See server.c for promises and order of locks. */
#pragma once

#include "graph/fop_call.h"
#include "rpc/server.h"
#include "xlators/protocol/server/fdtable.h"

struct server {
    /* options */
    char *transport_type, *bind_address, *listen_path, *address_family, *client_volume_filename;
    char *tls;
    int64_t listen_port, listen_backlog, outstanding_max, anonuid, anongid, gid_timeout_s;
    int64_t keepalive_s, keepalive_interval_s, keepalive_count, event_threads;
    uint64_t user_timeout_ns;
    _Atomic bool allow_insecure, root_squash, all_squash, manage_gids, strict_auth_accept;
    bool keepalive;

    struct rpc_server *rpc;
    _Atomic bool child_is_up;
    _Atomic uint64_t sessions, requests;
};

/* A connection's state from its handshake on; ended when the connection and its last request
 * are. */
struct session {
    _Atomic uint32_t refs;
    struct xlator *server, *export_;
    struct client *client;
    struct inode *subdir;          /* what the client takes for the root, or NULL */
    struct fdtable fds;
};

struct session *session_new(struct xlator *server, struct xlator *export_, struct client *client,
                            struct inode *subdir)
    nowait; /* takes the references; NULL: no memory */
struct session *session_ref(struct session *session) nowait;
void session_unref(struct session *session);
AUTO_DEFINE(session, session_unref)
/* The connection is gone: locks and fds go. */
void session_end(struct session *session);

extern const struct rpc_program server_fop_program;       /* serve.c */
extern const struct rpc_program server_handshake_program; /* handshake.c */

/* Fills call from the request's credential, squashed as the options say. */
void session_call(const struct session *session, const struct rpc_request *req, struct call *call)
    nowait;
