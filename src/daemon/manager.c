/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "rpc/mgmt.h"
#include "rpc/server.h"

enum { CONNECT_LIMIT_S = 10, ANSWER_LIMIT_S = 30, RECONNECT_MS = 3000, LOOK_MS = 200 };

struct manager {
    const struct args *args;
    struct rpc_client *client;
    void (*changed)(void *arg);
    void *arg;
    unsigned server;          /* the one connected to, or tried last */
    bool is_serving;          /* registered: again after a reconnect */
    _Atomic bool is_fetched, is_ending;
};

static uint64_t due_ns(unsigned seconds)
{
    return env_now_ns() + seconds * NS_PER_S;
}

static int server_connect(struct manager *manager, unsigned index)
{
    const struct args *args = manager->args;

    manager->server = index;
    return rpc_connect_host(manager->client, args->servers[index], args->server_port, AF_UNSPEC,
                            RPC_BIND_LOW, due_ns(CONNECT_LIMIT_S));
}

static int signin(struct manager *manager)
{
    const struct args *args = manager->args;

    return glusterd_signin(manager->client, args->brick_name, args->brick_port, (int32_t)getpid(),
                           due_ns(ANSWER_LIMIT_S));
}

static int reconnect(struct manager *manager)
{
    int ret = -ENOTCONN;

    for (unsigned i = 0; i < manager->args->server_count && ret < 0; i++)
        ret = server_connect(manager, i);
    if (ret == 0 && manager->is_serving)
        ret = signin(manager);
    return ret;
}

/* Once a volume file was had: tries until there is a connection again, or we end. */
static void disconnected(struct rpc_client *client)
{
    struct manager *manager = rpc_client_arg(client);
    int ret = -ENOTCONN;

    if (!manager->is_fetched || manager->is_ending)
        return;
    log_info(manager->args->name, 0, "the management daemon on %s is gone: running on",
             manager->args->servers[manager->server]);
    while (ret < 0 && !manager->is_ending) {
        for (unsigned ms = 0; ms < RECONNECT_MS && !manager->is_ending; ms += LOOK_MS)
            env_sleep(LOOK_MS * NS_PER_MS);
        if (!manager->is_ending)
            ret = reconnect(manager);
    }
    if (ret == 0)
        manager->changed(manager->arg); /* what it said meanwhile was not heard */
}

static void callback(struct rpc_client *client, const struct rpc_header *header,
                     struct reader *body)
{
    struct manager *manager = rpc_client_arg(client);

    (void)body; /* of FETCHSPEC: none */
    if (header->program == RPC_CALLBACK_PROGRAM && header->procedure == RPC_CALLBACK_FETCHSPEC &&
        manager->is_fetched)
        manager->changed(manager->arg);
}

int manager_new(const struct args *args, void (*changed)(void *arg), void *arg,
                struct manager **ret_manager)
{
    struct manager *manager = calloc(1, sizeof(*manager));
    if (!manager)
        return -ENOMEM;

    manager->args = args;
    manager->changed = changed;
    manager->arg = arg;
    struct rpc_client_config config = { .name = args->name, .arg = manager,
                                        .disconnected = disconnected, .callback = callback };
    int ret = rpc_client_new(&config, &manager->client);
    if (ret < 0) {
        free(manager);
        return ret;
    }
    *ret_manager = manager;
    return 0;
}

static int ask(struct manager *manager, char **ret_text)
{
    const struct args *args = manager->args;
    const struct getspec in = {
        .key = args->volfile_id,
        .flags = args->program == PROGRAM_CLIENT ? GETSPEC_CLIENT : 0,
        .brick_name = args->brick_name,
    };

    return glusterd_getspec(manager->client, &in, due_ns(ANSWER_LIMIT_S), ret_text, NULL);
}

static int fetch_from(struct manager *manager, unsigned index, char **ret_text)
{
    int ret = server_connect(manager, index);

    if (ret == 0)
        ret = ask(manager, ret_text);
    if (ret < 0)
        rpc_client_disconnect_wait(manager->client);
    return ret;
}

int manager_fetch(struct manager *manager, char **ret_text, size_t *ret_bytes, char *error,
                  size_t error_size)
{
    const struct args *args = manager->args;
    bool is_connected = rpc_client_is_connected(manager->client);
    int ret = is_connected ? ask(manager, ret_text) : -ENOTCONN;

    for (unsigned i = 0; !is_connected && ret < 0 && !manager->is_ending && i < args->server_count;
         i++) {
        ret = fetch_from(manager, i, ret_text);
        if (ret < 0 && i + 1 < args->server_count)
            log_warn(args->name, ret, "no volume file '%s' from %s: trying %s", args->volfile_id,
                     args->servers[i], args->servers[i + 1]);
    }
    if (ret < 0) {
        snprintf(error, error_size, "failed to fetch volume file '%.200s' from %.200s: %s",
                 args->volfile_id, args->servers[manager->server], strerror(-ret));
        return ret;
    }
    *ret_bytes = strlen(*ret_text);
    manager->is_fetched = true;
    return 0;
}

int manager_serving(struct manager *manager)
{
    if (!manager->args->brick_name || !manager->args->brick_port)
        return 0;
    manager->is_serving = true;
    int ret = signin(manager);
    if (ret < 0)
        log_error(manager->args->name, ret, "the brick's port could not be registered at %s",
                  manager->args->servers[manager->server]);
    return ret;
}

void manager_end(struct manager *manager)
{
    if (!manager)
        return;
    manager->is_ending = true;
    rpc_client_disconnect(manager->client);
}

void manager_free(struct manager *manager)
{
    if (!manager)
        return;
    manager_end(manager);
    rpc_client_free(manager->client);
    free(manager);
}
