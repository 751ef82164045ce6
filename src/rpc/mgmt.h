/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a brick or a client asks of its peer before the file operations: which programs it has, and,
 * of glusterd, its volfile and where bricks listen (spec/wire.md 2.1, 6).
 *
 *     ret = rpc_connect_host(client, "server1", 24007, AF_UNSPEC, RPC_BIND_HIGH, until_ns);
 *     ret = glusterd_getspec(client, &(struct getspec){ .key = "vol", .flags = GETSPEC_CLIENT },
 *                            until_ns, &ret_spec);
 *
 * All return -EREMOTEIO for a peer that does not know the call, -EBADMSG for an answer that cannot
 * be read, and what rpc_call_run returns. A FETCHSPEC callback (1 of RPC_CALLBACK_PROGRAM) on the
 * same connection says that the volfile may have changed. */
#pragma once

#include "core/dict.h"
#include "rpc/client.h"

enum { GLUSTERD_PORT = 24007, GETSPEC_CLIENT = 1 /* a mount, not a brick or daemon */ };
enum {
    RPC_PORTMAP_PROGRAM = 34123456, RPC_PORTMAP_VERSION = 1,
    RPC_HANDSHAKE_PROGRAM = 14398633, RPC_HANDSHAKE_VERSION = 2,
    RPC_CALLBACK_FETCHSPEC = 1,
};

/* Connects to the first address of the host that answers. host: name, IPv4, IPv6, or the path of a
 * unix socket (begins with '/'; port does not count). */
must_check int rpc_connect_host(struct rpc_client *client, const char *host, uint16_t port,
                                int family, enum rpc_bind bind, uint64_t until_ns);

enum { RPC_PEER_PROGRAMS_MAX = 64, RPC_PEER_NAME_SIZE = 48 };
struct rpc_peer_programs {
    unsigned count;
    struct {
        char name[RPC_PEER_NAME_SIZE];
        uint64_t number, version;
    } list[RPC_PEER_PROGRAMS_MAX];
};
/* DUMP. Programs over the limit are left out. */
must_check int rpc_peer_programs(struct rpc_client *client, uint64_t until_ns,
                                 struct rpc_peer_programs *ret_programs);
bool rpc_peer_has(const struct rpc_peer_programs *programs, uint64_t number, uint64_t version)
    nowait;

struct getspec {
    const char *key;
    uint32_t flags;         /* GETSPEC_CLIENT */
    const char *brick_name; /* bricks: their path */
};
/* *ret_spec: the volfile's text, to free. -errno as glusterd says (-ENOENT: no such volume;
 * -ENOTSUP: it needs an op-version that we do not have). ret_servers (or NULL): "host:port
 * host:port" of further volfile servers, to free; NULL when none were named. */
must_check int glusterd_getspec(struct rpc_client *client, const struct getspec *in,
                                uint64_t until_ns, char **ret_spec, char **ret_servers);
/* -ENOENT: no brick of that path runs there. */
must_check int glusterd_port_of_brick(struct rpc_client *client, const char *brick,
                                      uint64_t until_ns, uint16_t *ret_port);
/* The brick of that path listens on port; true while the connection lasts. */
must_check int glusterd_signin(struct rpc_client *client, const char *brick, uint16_t port,
                               int32_t pid, uint64_t until_ns);
must_check int glusterd_signout(struct rpc_client *client, const char *brick, uint16_t port,
                                uint64_t until_ns);
