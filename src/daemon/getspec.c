/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GETSPEC of the handshake program (spec/wire.md 6.1): asks one server after the other, once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dict.h"
#include "core/env.h"
#include "daemon/source.h"
#include "rpc/client.h"
#include "rpc/dict_wire.h"

enum {
    HANDSHAKE_PROGRAM = 14398633,
    HANDSHAKE_VERSION = 2,
    HANDSHAKE_GETSPEC = 2,
    GETSPEC_FLAG_CLIENT = 1,
    ADDRESSES_MAX = 8,
    CONNECT_LIMIT_S = 10,
    ANSWER_LIMIT_S = 30,
    OP_VERSION_MAX = 100000,
};

static int request_xdata(const struct args *args, struct writer *w)
{
    AUTO(dict) dict = dict_new();
    int ret = dict ? dict_set_str(dict, "min-op-version", "1") : -ENOMEM;

    if (ret == 0)
        ret = dict_set_int(dict, "max-op-version", OP_VERSION_MAX);
    if (ret == 0 && args->brick_name)
        ret = dict_set_str(dict, "brick_name", args->brick_name);
    if (ret == 0)
        dict_encode_legacy(w, dict);
    return ret;
}

static int reply_decode(struct rpc_call *call, char **ret_text, size_t *ret_bytes)
{
    int32_t op_ret, op_errno;
    char *spec;
    int ret = reader_i32(&call->body, &op_ret);

    if (ret == 0)
        ret = reader_i32(&call->body, &op_errno);
    if (ret < 0)
        return ret;
    if (op_ret < 0)
        return op_errno > 0 && op_errno < 1024 ? -op_errno : -EINVAL;
    ret = reader_str(&call->body, VOLFILE_BYTES_MAX, &spec);
    if (ret < 0)
        return ret;
    *ret_text = strdup(spec);
    *ret_bytes = strlen(spec);
    return *ret_text ? 0 : -ENOMEM;
}

static int ask(const struct args *args, struct rpc_client *client, char **ret_text,
               size_t *ret_bytes)
{
    const struct rpc_cred cred = { .flavor = RPC_AUTH_V2 };
    AUTO(rpc_call) call = rpc_call_new(client, HANDSHAKE_PROGRAM, HANDSHAKE_VERSION,
                                       HANDSHAKE_GETSPEC, &cred);
    if (!call)
        return -ENOMEM;

    struct writer *w = rpc_call_writer(call);
    writer_u32(w, args->program == PROGRAM_CLIENT ? GETSPEC_FLAG_CLIENT : 0);
    writer_str(w, args->volfile_id);
    int ret = request_xdata(args, w);
    if (ret < 0)
        return ret;
    call->until_ns = env_now_ns() + ANSWER_LIMIT_S * NS_PER_S;
    ret = rpc_call_run(call);
    return ret < 0 ? ret : reply_decode(call, ret_text, ret_bytes);
}

static int addresses_find(const struct args *args, const char *server,
                          struct env_address addresses[ADDRESSES_MAX])
{
    if (args->transport && strcmp(args->transport, "unix") == 0) {
        int ret = env_address_unix(server, &addresses[0]);
        return ret < 0 ? ret : 1;
    }
    return env_resolve(server, args->server_port, AF_UNSPEC, addresses, ADDRESSES_MAX);
}

static int server_ask(const struct args *args, const char *server, char **ret_text,
                      size_t *ret_bytes)
{
    struct env_address addresses[ADDRESSES_MAX];
    AUTO(rpc_client) client = NULL;

    int count = addresses_find(args, server, addresses);
    if (count < 0)
        return count;
    int ret = rpc_client_new(&(struct rpc_client_config){ .name = "glusterfs" }, &client);
    if (ret < 0)
        return ret;
    ret = -ENOENT;
    for (int i = 0; i < count; i++) {
        ret = rpc_client_connect(client, &addresses[i], RPC_BIND_LOW,
                                 env_now_ns() + CONNECT_LIMIT_S * NS_PER_S);
        if (ret == 0)
            return ask(args, client, ret_text, ret_bytes);
    }
    return ret;
}

int getspec_fetch(const struct args *args, char **ret_text, size_t *ret_bytes,
                  char error[SOURCE_ERROR_SIZE])
{
    int ret = -ENOENT;

    for (unsigned i = 0; i < args->server_count; i++) {
        const char *server = args->servers[i];
        ret = server_ask(args, server, ret_text, ret_bytes);
        if (ret == 0)
            return 0;
        snprintf(error, SOURCE_ERROR_SIZE,
                 "failed to fetch volume file '%.200s' from %.200s: %s", args->volfile_id, server,
                 strerror(-ret));
        if (i + 1 < args->server_count)
            log_warn("glusterfs", 0, "%s; trying %s", error, args->servers[i + 1]);
    }
    return ret;
}
