/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/mgmt.h"

#include <stdio.h>

#include "rpc/dict_wire.h"

enum { DUMP_ID = 0xcaed };
enum { HANDSHAKE_GETSPEC = 2 };
enum { PORTMAP_PORTBYBRICK = 1, PORTMAP_SIGNIN = 4, PORTMAP_SIGNOUT = 5 };
enum { ADDRESSES_MAX = 16, SPEC_BYTES_MAX = 8 << 20, XDATA_BYTES_MAX = 64 << 10, ERRNO_MAX = 1023 };

#define CONNECT_NS (5 * NS_PER_S) /* for one address; nobody can hurry it */

static const struct rpc_cred cred = { .flavor = RPC_AUTH_V2 };

int rpc_connect_host(struct rpc_client *client, const char *host, uint16_t port, int family,
                     enum rpc_bind bind, uint64_t until_ns)
{
    struct env_address addresses[ADDRESSES_MAX];
    int ret, count = 1;
    if (host[0] == '/')
        ret = env_address_unix(host, &addresses[0]);
    else
        ret = count = env_resolve(host, port, family, addresses, ADDRESSES_MAX);
    if (ret < 0)
        return ret;
    ret = -ENOENT;
    for (int i = 0; i < count; i++) {
        uint64_t now = env_now_ns(), slice_ns = now + CONNECT_NS;
        if (until_ns && now >= until_ns)
            break;
        ret = rpc_client_connect(client, &addresses[i], bind,
                                 until_ns ? MIN(until_ns, slice_ns) : slice_ns);
        if (ret == 0 || ret == -EISCONN)
            break;
    }
    return ret;
}

/* --- DUMP ------------------------------------------------------------------------------------- */

static int read_program(struct reader *r, struct rpc_peer_programs *programs)
{
    char *name = NULL;
    uint64_t number = 0, version = 0;
    int ret = reader_str(r, 1024, &name);
    if (ret == 0)
        ret = reader_u64(r, &number);
    if (ret == 0)
        ret = reader_u64(r, &version);
    if (ret < 0 || programs->count == RPC_PEER_PROGRAMS_MAX)
        return ret;
    snprintf(programs->list[programs->count].name, RPC_PEER_NAME_SIZE, "%s", name);
    programs->list[programs->count].number = number;
    programs->list[programs->count].version = version;
    programs->count++;
    return 0;
}

static int read_programs(struct reader *r, struct rpc_peer_programs *programs)
{
    uint64_t id;
    uint32_t op_ret, op_errno, more = 0;
    int ret = reader_u64(r, &id);
    if (ret == 0)
        ret = reader_u32(r, &op_ret);
    if (ret == 0)
        ret = reader_u32(r, &op_errno);
    if (ret == 0)
        ret = reader_u32(r, &more);
    while (ret == 0 && more) {
        ret = read_program(r, programs);
        if (ret == 0)
            ret = reader_u32(r, &more);
    }
    return ret;
}

int rpc_peer_programs(struct rpc_client *client, uint64_t until_ns,
                      struct rpc_peer_programs *ret_programs)
{
    AUTO(rpc_call) call =
        rpc_call_new(client, RPC_DUMP_PROGRAM, RPC_DUMP_VERSION, RPC_DUMP_DUMP, &cred);
    if (!call)
        return -ENOMEM;
    call->until_ns = until_ns;
    writer_u64(rpc_call_writer(call), DUMP_ID);
    int ret = rpc_call_run(call);
    ret_programs->count = 0;
    return ret < 0 ? ret : read_programs(&call->body, ret_programs);
}

bool rpc_peer_has(const struct rpc_peer_programs *programs, uint64_t number, uint64_t version)
{
    for (unsigned i = 0; i < programs->count; i++)
        if (programs->list[i].number == number && programs->list[i].version == version)
            return true;
    return false;
}

/* --- GETSPEC ---------------------------------------------------------------------------------- */

/* op_ret and op_errno: op_ret, or -errno (never 0 for a failure). */
static int read_result(struct reader *r, int *ret_result)
{
    int32_t op_ret = -1, op_errno = 0;
    int ret = reader_i32(r, &op_ret);
    if (ret == 0)
        ret = reader_i32(r, &op_errno);
    if (ret < 0)
        return ret;
    if (op_ret >= 0)
        *ret_result = op_ret;
    else
        *ret_result = op_errno > 0 && op_errno <= ERRNO_MAX ? -op_errno : -EIO;
    return 0;
}

static int write_getspec(struct writer *w, const struct getspec *in)
{
    AUTO(dict) xdata = dict_new();
    int ret = xdata ? dict_set_int(xdata, "max-op-version", 100000) : -ENOMEM;
    if (ret == 0)
        ret = dict_set_int(xdata, "min-op-version", 1);
    if (ret == 0 && in->brick_name)
        ret = dict_set_str(xdata, "brick_name", in->brick_name);
    if (ret < 0)
        return ret;
    writer_u32(w, in->flags);
    writer_str(w, in->key);
    dict_encode_legacy(w, xdata);
    return 0;
}

static int read_servers(struct reader *r, char **ret_servers)
{
    AUTO(dict) xdata = NULL;
    uint8_t *bytes = NULL;
    uint32_t count = 0;
    if (!ret_servers)
        return 0;
    *ret_servers = NULL;
    int ret = reader_opaque(r, XDATA_BYTES_MAX, &bytes, &count);
    if (ret == 0)
        ret = dict_decode_legacy(bytes, count, &xdata);
    if (ret < 0)
        return ret;
    const char *servers = dict_get_str(xdata, "servers-list");
    if (!servers)
        servers = dict_get_str(xdata, "cluster.brick-vol-servers");
    if (servers)
        *ret_servers = strdup(servers);
    return servers && !*ret_servers ? -ENOMEM : 0;
}

static int read_spec(struct reader *r, char **ret_spec, char **ret_servers)
{
    int result = -EIO;
    char *text = NULL;
    int ret = read_result(r, &result);
    if (ret == 0)
        ret = reader_str(r, SPEC_BYTES_MAX, &text);
    if (ret < 0 || result < 0)
        return ret < 0 ? ret : result;
    AUTO_FREE char *spec = strdup(text);
    if (!spec)
        return -ENOMEM;
    ret = read_servers(r, ret_servers);
    if (ret == 0)
        *ret_spec = TAKE(spec);
    return ret;
}

int glusterd_getspec(struct rpc_client *client, const struct getspec *in, uint64_t until_ns,
                     char **ret_spec, char **ret_servers)
{
    AUTO(rpc_call) call = rpc_call_new(client, RPC_HANDSHAKE_PROGRAM, RPC_HANDSHAKE_VERSION,
                                       HANDSHAKE_GETSPEC, &cred);
    if (!call)
        return -ENOMEM;
    call->until_ns = until_ns;
    int ret = write_getspec(rpc_call_writer(call), in);
    if (ret == 0)
        ret = rpc_call_run(call);
    return ret < 0 ? ret : read_spec(&call->body, ret_spec, ret_servers);
}

/* --- portmap ---------------------------------------------------------------------------------- */

int glusterd_port_of_brick(struct rpc_client *client, const char *brick, uint64_t until_ns,
                           uint16_t *ret_port)
{
    uint32_t status = 0, port = 0;
    int result = -EIO;
    AUTO(rpc_call) call = rpc_call_new(client, RPC_PORTMAP_PROGRAM, RPC_PORTMAP_VERSION,
                                       PORTMAP_PORTBYBRICK, &cred);
    if (!call)
        return -ENOMEM;
    call->until_ns = until_ns;
    writer_str(rpc_call_writer(call), brick);
    int ret = rpc_call_run(call);
    if (ret == 0)
        ret = read_result(&call->body, &result);
    if (ret == 0)
        ret = reader_u32(&call->body, &status);
    if (ret == 0)
        ret = reader_u32(&call->body, &port);
    if (ret < 0)
        return ret;
    if (result < 0 || port == 0 || port > UINT16_MAX)
        return -ENOENT;
    *ret_port = (uint16_t)port;
    return 0;
}

static int sign(struct rpc_client *client, uint32_t procedure, const char *brick, uint16_t port,
                uint32_t last, uint64_t until_ns)
{
    int result = -EIO;
    AUTO(rpc_call) call =
        rpc_call_new(client, RPC_PORTMAP_PROGRAM, RPC_PORTMAP_VERSION, procedure, &cred);
    if (!call)
        return -ENOMEM;
    call->until_ns = until_ns;
    writer_str(rpc_call_writer(call), brick);
    writer_u32(rpc_call_writer(call), port);
    writer_u32(rpc_call_writer(call), last);
    int ret = rpc_call_run(call);
    if (ret == 0)
        ret = read_result(&call->body, &result);
    return ret < 0 ? ret : MIN(result, 0);
}

int glusterd_signin(struct rpc_client *client, const char *brick, uint16_t port, int32_t pid,
                    uint64_t until_ns)
{
    return sign(client, PORTMAP_SIGNIN, brick, port, (uint32_t)pid, until_ns);
}

int glusterd_signout(struct rpc_client *client, const char *brick, uint16_t port,
                     uint64_t until_ns)
{
    return sign(client, PORTMAP_SIGNOUT, brick, port, 0, until_ns);
}
