/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/server: serves its children to clients over the network (spec/wire.md 4, 5).
 * Promises: only who passed the handshake (brick name, identity, address and login rules) is
 *           served; whatever a client sends, it gets an answer or loses its connection, and nobody
 *           else notices. When a connection ends, its locks and open files end, after what it had
 *           in flight.
 * Keeps:    per connection a session: the client, its open files by number, its root.
 * Locks:    a session's fd table has a mutex of its own; nothing else here waits with a lock held.
 *
 *   rpc_conn -> session -> client (owner of locks)      requests hold the session while they run
 *                       -> fd table: number -> fd
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "xlators/protocol/server/session.h"

enum { DEFAULT_PORT = 24007, CALLBACK_CHILD_UP = 6, CALLBACK_CHILD_DOWN = 7, ADDRESSES_MAX = 8 };

/* --- connections ----------------------------------------------------------------------------- */
static void disconnected(struct rpc_conn *conn)
{
    struct xlator *xl = rpc_server_arg(rpc_conn_server(conn));
    struct session *session = rpc_conn_user(conn);

    if (!session)
        return;
    log_info(xl, 0, "client %s (%s) is gone", rpc_conn_peer(conn), session->client->uid);
    rpc_conn_set_user(conn, NULL);
    session_end(session);
}

static void tell_child_state(struct rpc_conn *conn, void *arg)
{
    uint32_t procedure = *(uint32_t *)arg;
    if (rpc_conn_user(conn)) /* one that does not read it will find out by itself */
        (void)!rpc_callback(conn, RPC_CALLBACK_PROGRAM, RPC_CALLBACK_VERSION, procedure, NULL, 0);
}

static void server_event(struct xlator *xl, struct xlator *child, enum xlator_event event,
                         void *data)
{
    struct server *server = xl->state;

    if (event == EVENT_CHILD_UP || event == EVENT_CHILD_DOWN) {
        uint32_t procedure = event == EVENT_CHILD_UP ? CALLBACK_CHILD_UP : CALLBACK_CHILD_DOWN;
        bool was_up = server->child_is_up;
        server->child_is_up = event == EVENT_CHILD_UP;
        if (was_up != server->child_is_up) {
            log_info(xl, 0, "brick %s is %s", child->name, server->child_is_up ? "up" : "down");
            if (server->rpc)
                rpc_server_each(server->rpc, tell_child_state, &procedure);
        }
    }
    xlator_notify(xl, event, data);
}

/* --- listening ------------------------------------------------------------------------------- */
static bool transport_is(const struct server *server, const char *word)
{
    const char *type = server->transport_type;
    size_t length = strlen(word);
    return strncmp(type, word, length) == 0 && (type[length] == '\0' || type[length] == '/');
}

static int check_transport(struct xlator *xl)
{
    struct server *server = xl->state;

    if (server->tls && strcasecmp(server->tls, "off") != 0 && strcmp(server->tls, "0") != 0) {
        log_error(xl, 0,
                  "transport.socket.ssl-enabled %s: TLS is not in this version; nobody could "
                  "connect, so the brick does not start",
                  server->tls);
        return -EOPNOTSUPP;
    }
    if (transport_is(server, "tcp") || transport_is(server, "socket") ||
        transport_is(server, "unix"))
        return 0;
    log_error(xl, 0, "transport-type %s is not in this version: use tcp or unix",
              server->transport_type);
    return -EPROTONOSUPPORT;
}

static int listen_at(struct xlator *xl, const struct env_address *address)
{
    struct server *server = xl->state;
    char text[160];
    int ret = rpc_server_listen(server->rpc, address);

    env_address_format(address, text, sizeof(text));
    if (ret < 0)
        log_error(xl, ret, "cannot listen on %s", text);
    else
        log_info(xl, 0, "listening on %s", text);
    return ret;
}

static int listen_unix(struct xlator *xl)
{
    struct server *server = xl->state;
    struct env_address address;

    if (!server->listen_path) {
        log_error(xl, 0, "transport-type unix needs option transport.socket.listen-path");
        return -EINVAL;
    }
    int ret = env_address_unix(server->listen_path, &address);
    if (ret < 0) {
        log_error(xl, ret, "transport.socket.listen-path %s", server->listen_path);
        return ret;
    }
    return listen_at(xl, &address);
}

/* Without a bind address: IPv6 with IPv4 in it where the host has IPv6, else IPv4. */
static int listen_tcp(struct xlator *xl)
{
    struct server *server = xl->state;
    uint16_t port = (uint16_t)server->listen_port;
    struct env_address address[ADDRESSES_MAX] = { 0 };

    if (!server->bind_address) {
        struct sockaddr_in *any = (struct sockaddr_in *)&address[0].sockaddr;
        *any = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
        address[0].bytes = sizeof(*any);
        if (server->address_family && strcmp(server->address_family, "inet6") == 0) {
            struct sockaddr_in6 *any6 = (struct sockaddr_in6 *)&address[0].sockaddr;
            *any6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
            address[0].bytes = sizeof(*any6);
        }
        return listen_at(xl, &address[0]);
    }
    int count = env_resolve(server->bind_address, port, AF_UNSPEC, address, ADDRESSES_MAX);
    if (count <= 0) {
        log_error(xl, count, "bind-address %s cannot be resolved", server->bind_address);
        return count < 0 ? count : -ENOENT;
    }
    return listen_at(xl, &address[0]);
}

/* --- life ------------------------------------------------------------------------------------ */
static int server_init(struct xlator *xl)
{
    struct server *server = xl->state;
    int ret = check_transport(xl);

    if (ret < 0)
        return ret;
    const struct rpc_server_config config = {
        .log = &xl->log,
        .name = xl->name,
        .arg = xl,
        .outstanding_max = (unsigned)server->outstanding_max,
        .backlog = (int)server->listen_backlog,
        .refuse_insecure = !server->allow_insecure,
        .keepalive_s = server->keepalive ? (int)server->keepalive_s : 0,
        .keepalive_interval_s = (int)server->keepalive_interval_s,
        .keepalive_count = (int)server->keepalive_count,
        .user_timeout_s = (int)(server->user_timeout_ns / NS_PER_S),
        .disconnected = disconnected,
    };
    ret = rpc_server_new(&config, &server->rpc);
    if (ret == 0)
        ret = rpc_server_register(server->rpc, &server_fop_program);
    if (ret == 0)
        ret = rpc_server_register(server->rpc, &server_handshake_program);
    if (ret < 0)
        log_error(xl, ret, "cannot make the server");
    return ret;
}

static int server_start(struct xlator *xl)
{
    struct server *server = xl->state;
    return transport_is(server, "unix") ? listen_unix(xl) : listen_tcp(xl);
}

static void server_stop(struct xlator *xl)
{
    struct server *server = xl->state;
    if (server->rpc)
        rpc_server_stop(server->rpc);
}

static void server_fini(struct xlator *xl)
{
    struct server *server = xl->state;
    rpc_server_free(server->rpc);
    server->rpc = NULL;
}

static int server_reconfigure(struct xlator *xl, const struct option_set *set)
{
    struct server *server = xl->state;

    (void)set;
    rpc_server_set_outstanding(server->rpc, (unsigned)server->outstanding_max);
    rpc_server_set_insecure(server->rpc, !server->allow_insecure);
    return 0;
}

static void count_conn(struct rpc_conn *conn, void *arg)
{
    (*(unsigned *)arg) += rpc_conn_is_open(conn);
}

static void server_dump(struct xlator *xl, struct dump *dump)
{
    struct server *server = xl->state;
    unsigned connections = 0;

    rpc_server_each(server->rpc, count_conn, &connections);
    dump_value(dump, "connections", "%u", connections);
    dump_value(dump, "sessions-so-far", "%lu", (unsigned long)server->sessions);
    dump_value(dump, "requests-so-far", "%lu", (unsigned long)server->requests);
    dump_value(dump, "child_up", "%d", server->child_is_up);
}

/* --- options --------------------------------------------------------------------------------- */
static const char *const transports[] = {
    "tcp", "socket", "unix", "ib-sdp", "ib-verbs", "rdma", "rpc", "rpc-over-rdma", "tcp/server",
    "ib-verbs/server", "socket/server", "unix/server", "tcp,rdma", "rdma,tcp", NULL,
};
static const char *const families[] = { "inet", "inet6", "unix", "inet-sdp", NULL };

#define NO_GETSPEC "A brick hands out no volfiles but client-volume-filename's."
#define NO_TLS "TLS is not in this version."
#define KERNEL_TUNES "The kernel sizes socket buffers better than a number does."

static const struct option server_options[] = {
    OPTION_STR(struct server, transport_type, "transport-type", .flags = OPTION_REQUIRED,
               .values = transports, .help = "tcp or unix."),
    OPTION_INT(struct server, listen_port, "transport.socket.listen-port",
               .aliases = { "listen-port" }, .fallback = "24007", .min = 0, .max = 65535,
               .help = "TCP port; 0 lets the kernel choose."),
    OPTION_STR(struct server, bind_address, "transport.socket.bind-address",
               .aliases = { "bind-address" }, .help = "Listen on this address only."),
    OPTION_STR(struct server, listen_path, "transport.socket.listen-path",
               .aliases = { "listen-path" }, .help = "The socket of transport-type unix."),
    OPTION_STR(struct server, address_family, "transport.address-family",
               .aliases = { "address-family" }, .values = families, .help = "inet or inet6."),
    OPTION_INT(struct server, listen_backlog, "transport.listen-backlog", .fallback = "1024",
               .min = 0, .max = 65535, .help = "Connections waiting to be accepted."),
    OPTION_TIME(struct server, user_timeout_ns, "transport.tcp-user-timeout", .fallback = "42",
                .min = 0, .max = 1013 * (double)NS_PER_S,
                .help = "Unacknowledged data ends a connection after this."),
    OPTION_BOOL(struct server, keepalive, "transport.socket.keepalive", .fallback = "1",
                .help = "Probe idle connections."),
    OPTION_INT(struct server, keepalive_s, "transport.socket.keepalive-time", .fallback = "20",
               .help = "Idle seconds before the first probe."),
    OPTION_INT(struct server, keepalive_interval_s, "transport.socket.keepalive-interval",
               .fallback = "2", .help = "Seconds between probes."),
    OPTION_INT(struct server, keepalive_count, "transport.socket.keepalive-count", .fallback = "9",
               .help = "Probes without an answer."),
    OPTION_INT(struct server, outstanding_max, "rpc.outstanding-rpc-limit", .fallback = "64",
               .min = 0, .max = 65536, .flags = OPTION_LIVE,
               .help = "Requests of one connection that run at once; 0: no limit."),
    OPTION_BOOL(struct server, allow_insecure, "rpc-auth-allow-insecure",
                .aliases = { "allow-insecure" }, .fallback = "on", .flags = OPTION_LIVE,
                .help = "Serve ports from 1024 on."),
    OPTION_BOOL(struct server, root_squash, "root-squash", .fallback = "off", .flags = OPTION_LIVE,
                .help = "Root of a client is anonuid here."),
    OPTION_BOOL(struct server, all_squash, "all-squash", .fallback = "off", .flags = OPTION_LIVE,
                .help = "Everybody is anonuid here."),
    OPTION_INT(struct server, anonuid, "anonuid", .fallback = "65534", .min = 0,
               .max = 4294967295.0, .flags = OPTION_LIVE, .help = "The squashed user."),
    OPTION_INT(struct server, anongid, "anongid", .fallback = "65534", .min = 0,
               .max = 4294967295.0, .flags = OPTION_LIVE, .help = "The squashed group."),
    OPTION_BOOL(struct server, strict_auth_accept, "strict-auth-accept", .fallback = "off",
                .flags = OPTION_LIVE, .help = "Clients must know user and password."),
    OPTION_STR(struct server, client_volume_filename, "client-volume-filename",
               .help = "Volfile for clients that ask the brick for one (1.x to 3.0)."),
    OPTION_STR(struct server, tls, "transport.socket.ssl-enabled", .help = NO_TLS),
    OPTION_NONE(OPT_BOOL, "manage-gids", .help = "Groups are taken as the client sends them."),
    OPTION_NONE(OPT_INT, "gid-timeout", .help = "Groups are taken as the client sends them."),
    OPTION_NONE(OPT_INT, "event-threads", .min = 1, .max = 1024,
                .help = "One lane serves all connections in this version."),
    OPTION_NONE(OPT_INT, "inode-lru-limit", .min = 0, .max = 1048576,
                .help = "Inodes live as long as they are used; nothing else is cached."),
    OPTION_NONE(OPT_PATH, "statedump-path", .help = "Statedumps go to the process's directory."),
    OPTION_NONE(OPT_SIZE, "tcp-window-size", .min = 0, .max = 1048576, .help = KERNEL_TUNES),
    OPTION_NONE(OPT_BOOL, "trace", .help = "debug/trace shows operations."),
    OPTION_NONE(OPT_STR, "auth-path", .help = "A brick is known by its volume's name."),
    OPTION_NONE(OPT_BOOL, "dynamic-auth", .help = "Rules count for new connections."),
    OPTION_NONE(OPT_BOOL, "non-blocking-io", .help = "Input and output never block here."),
    OPTION_NONE(OPT_BOOL, "transport.socket.nodelay", .help = "Always on: messages go out whole."),
    OPTION_NONE(OPT_BOOL, "transport.socket.own-thread", .help = "Connections belong to lanes."),
    OPTION_NONE(OPT_BOOL, "transport.socket.read-fail-log",
                .help = "Ends of connections are logged."),
    OPTION_NONE(OPT_PATH, "config-directory", .aliases = { "conf-dir", "volspec-directory" },
                .help = NO_GETSPEC),
    OPTION_NONE(OPT_BOOL, "verify-volfile-checksum", .help = NO_GETSPEC),
    OPTION_NONE(OPT_ADDRESS_LIST, "ssl-allow", .help = NO_TLS),
    OPTION_GLOB(OPT_PATH, "volume-filename.*", .help = NO_GETSPEC),
    OPTION_GLOB(OPT_ADDRESS_LIST, "auth.addr.*.allow", .help = "Addresses that may use a brick."),
    OPTION_GLOB(OPT_ADDRESS_LIST, "auth.addr.*.reject", .help = "Addresses that may not."),
    OPTION_GLOB(OPT_ADDRESS_LIST, "auth.ip.*.allow", .help = "The same, as 1.x said it."),
    OPTION_GLOB(OPT_ANY, "auth.login.*.allow", .help = "User names that may use a brick."),
    OPTION_GLOB(OPT_ANY, "auth.login.*.password", .help = "A user's password."),
    OPTION_GLOB(OPT_ANY, "auth.login.*.ssl-allow", .help = NO_TLS),
    OPTION_GLOB(OPT_ANY, "transport.*", .help = "Unknown ones are ignored."),
    OPTION_GLOB(OPT_ANY, "ssl-*", .help = NO_TLS),
    OPTION_END,
};

const struct xlator_type xlator_protocol_server = {
    .name = "protocol/server",
    .state_size = sizeof(struct server),
    .options = server_options,
    .children_min = 1,
    .children_max = UINT32_MAX,
    .init = server_init,
    .start = server_start,
    .stop = server_stop,
    .fini = server_fini,
    .reconfigure = server_reconfigure,
    .event = server_event,
    .dump = server_dump,
};
