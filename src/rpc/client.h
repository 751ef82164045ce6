/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calling end of RPC: one peer, at most one connection at a time, many calls at once.
 *
 *     ret = rpc_client_new(&(struct rpc_client_config){ .name = xl->name, .arg = xl }, &client);
 *     ret = rpc_client_connect(client, &address, RPC_BIND_HIGH, until_ns);
 *
 *     AUTO(rpc_call) call = rpc_call_new(client, 1298437, 400, 14, &cred);   // NULL: no memory
 *     fop_encode_args(FOP_STATFS, in, NULL, rpc_call_writer(call));
 *     ret = rpc_call_run(call);                                              // parks
 *     if (ret == 0)
 *         ret = fop_decode_reply(FOP_STATFS, &call->body, &call->bulk, out, &result);
 *
 * Calls may come from any lane. Transaction ids start at 2, are shared by all programs and go on
 * over reconnects. The client pings (dump program) while calls are outstanding, and ends a
 * connection that is silent for too long. */
#pragma once

#include "core/buf.h"
#include "core/env.h"
#include "core/log.h"
#include "rpc/cred.h"
#include "rpc/xdr.h"

struct rpc_client;

enum rpc_bind {
    RPC_BIND_ANY,  /* the kernel chooses our port */
    RPC_BIND_HIGH, /* the highest free one below 49152 (bind-insecure on, spec/wire.md 1.6) */
    RPC_BIND_LOW,  /* the highest free one below 1024, else as RPC_BIND_HIGH */
};

struct rpc_client_config {
    const struct log_source *log; /* NULL: lines are under name */
    const char *name;
    void *arg;                 /* rpc_client_arg */
    struct lane *lane;         /* of the connection; NULL: of who connects */
    uint64_t frame_timeout_ns; /* a call's, 0: 1800 s */
    uint64_t ping_timeout_ns;  /* 0: no pings */
    int keepalive_s, keepalive_interval_s, keepalive_count, user_timeout_s; /* env_tcp_options */
    /* On a fiber of the connection's lane, after every call of the connection has failed; may wait,
     * and connect again. */
    void (*disconnected)(struct rpc_client *client);
    /* Calls of the peer, never answered; one at a time, in order; may wait. */
    void (*callback)(struct rpc_client *client, const struct rpc_header *header,
                     struct reader *body);
};

must_check int rpc_client_new(const struct rpc_client_config *config,
                              struct rpc_client **ret_client);
/* Disconnects and waits for the connection's end; no call may be running. NULL is fine. */
void rpc_client_free(struct rpc_client *client);
AUTO_DEFINE(rpc_client, rpc_client_free)
void *rpc_client_arg(struct rpc_client *client) nowait;
/* -EISCONN: it has a connection. -ETIMEDOUT, -ECONNREFUSED, ... */
must_check int rpc_client_connect(struct rpc_client *client, const struct env_address *address,
                                  enum rpc_bind bind, uint64_t until_ns);
/* Ends the connection soon; calls fail with -ENOTCONN, then disconnected runs. */
void rpc_client_disconnect(struct rpc_client *client) nowait;
/* The same, and waits until that is over (not from its own hooks). */
void rpc_client_disconnect_wait(struct rpc_client *client);
bool rpc_client_is_connected(struct rpc_client *client) nowait;
/* Which connection it is, counted from 1; 0: none. */
uint32_t rpc_client_generation(struct rpc_client *client) nowait;
void rpc_client_set_timeouts(struct rpc_client *client, uint64_t frame_timeout_ns,
                             uint64_t ping_timeout_ns) nowait;
struct rpc_client_stats {
    uint32_t outstanding;
    uint64_t received_bytes, sent_bytes, last_ping_ns; /* last_ping_ns: a ping's round trip */
};
void rpc_client_get_stats(struct rpc_client *client, struct rpc_client_stats *ret_stats) nowait;
const char *rpc_client_peer(struct rpc_client *client) nowait; /* of the latest connection */

struct rpc_call {
    struct rpc_client *client;
    /* Before rpc_call_run: */
    uint32_t bulk_fixed, bulk_size_at; /* as in struct rpc_procedure, of the reply; 0: no bulk */
    uint32_t bulk_max;       /* the most bulk bytes that can come; room for them is made at once */
    uint64_t until_ns;       /* 0: only the frame timeout counts */
    uint32_t generation;     /* 0: any connection; else -ENOTCONN on another one */
    /* When the call was cancelled or late and its answer comes after all (0), or never will
     * (-errno): on a fiber, once; body and bulk are then valid. NULL: the answer is dropped. */
    void (*late)(struct rpc_call *call, int ret);
    void *late_arg;
    /* After rpc_call_run returned 0 (or in late), until rpc_call_free: */
    struct reader body;
    struct payload bulk;
    int accept;              /* after -EREMOTEIO: the peer's accept_stat, -1: denied */
};

struct rpc_call *rpc_call_new(struct rpc_client *client, uint32_t program, uint32_t version,
                              uint32_t procedure, const struct rpc_cred *cred) nowait;
struct writer *rpc_call_writer(struct rpc_call *call) nowait; /* for the body */
/* Follows the body; references the buffers. */
void rpc_call_add_payload(struct rpc_call *call, const struct payload *payload) nowait;
/* Sends it and parks until the answer. -ENOTCONN: no connection, or it ended, or the frame timeout
 * passed; -ETIMEDOUT: until_ns passed; -EINTR: rpc_call_cancel; -EREMOTEIO: the peer's RPC layer
 * refused it; -ENOMEM. Once per call. */
must_check int rpc_call_run(struct rpc_call *call);
/* Sends it and lets it go: the answer is dropped, or goes to `late`. Takes the call over. Never
 * waits. -ENOTCONN, -ENOMEM: it was not sent, and late is not called. */
int rpc_call_send(struct rpc_call *call) nowait;
/* After rpc_call_run failed: whether late was or will be called. */
bool rpc_call_is_late(const struct rpc_call *call) nowait;
/* From anywhere: the caller returns -EINTR at once. No effect on a call that is through. */
void rpc_call_cancel(struct rpc_call *call) nowait;
void rpc_call_free(struct rpc_call *call) nowait;
AUTO_DEFINE(rpc_call, rpc_call_free)
