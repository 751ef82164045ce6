/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/client: one brick of another process, reached over the network (spec/wire.md).
 * Promises: an operation is answered by the brick, or fails with -ENOTCONN when the connection is
 *           lost or silent for too long. A request that does no harm twice is sent again when the
 *           connection is back within a second. Open files are opened anew before the parents hear
 *           that the brick is up. What the brick sends is checked before it is believed.
 * Not yet:  locks are not acquired again after a reconnect (with strict-locks on, files that held
 * some
 *           fail with EBADFD); create, unlink and their like are not judged and sent again, their
 *           callers get -ENOTCONN; upcalls are not looked at.
 * Keeps:    a connection; per open file its number at the brick and what is needed to open it anew.
 * Locks:    remote->mutex, for a few lines, before the RPC client's. Nothing is held across a wait.
 *
 *   call.c       an operation's way to the brick and back       remote_fd.c  open files
 *   connect.c    getting a connection, and another one */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/env.h"
#include "core/uuid.h"
#include "graph/dump.h"
#include "xlators/protocol/client/remote.h"

enum { HOST_NAME_BYTES = 256 };

/* --- targets ---------------------------------------------------------------------------------- */

static bool transport_is(const char *type, const char *word)
{
    size_t length = strlen(word);
    return strncmp(type, word, length) == 0 && (type[length] == 0 || type[length] == '/');
}

static int family_of(const char *name)
{
    return !name ? AF_UNSPEC : strcmp(name, "inet6") == 0 ? AF_INET6
                             : strcmp(name, "inet") == 0  ? AF_INET : AF_UNSPEC;
}

/* Every option of the volume, as SETVOLUME wants them. */
static int options_dict(const struct option_set *set, struct dict **ret_dict)
{
    AUTO(dict) dict = dict_new();
    int ret = dict ? 0 : -ENOMEM;
    for (unsigned i = 0; i < set->count && ret == 0; i++)
        ret = dict_set_str(dict, set->pairs[i].key, set->pairs[i].value);
    if (ret == 0)
        *ret_dict = TAKE(dict);
    return ret;
}

static const char *get(const struct option_set *set, const char *key)
{
    return option_set_get(set, key);
}

static int target_of_set(const struct option_set *set, const struct remote *remote,
                         struct remote_target *ret_target)
{
    const char *transport = get(set, "transport-type"),
               *family = get(set, "transport.address-family");
    bool is_unix = (transport && transport_is(transport, "unix")) ||
                   (family && strcmp(family, "unix") == 0);
    const struct remote_target target = {
        .host = (char *)(uintptr_t)get(set, "remote-host"),
        .path = is_unix ? (char *)(uintptr_t)get(set, "transport.socket.connect-path") : NULL,
        .subvolume = (char *)(uintptr_t)get(set, "remote-subvolume"),
        .port = (uint16_t)remote->remote_port,
        .family = family_of(family),
        .bind = remote->bind_insecure ? RPC_BIND_HIGH : RPC_BIND_LOW,
    };
    int ret = remote_target_copy(ret_target, &target);
    if (ret == 0)
        ret = options_dict(set, &ret_target->options);
    if (ret < 0)
        remote_target_fini(ret_target);
    return ret;
}

static int check_transport(struct xlator *xl)
{
    const struct remote *remote = xl->state;
    const char *type = remote->transport_type;
    bool is_on;
    bool is_unix = transport_is(type, "unix") ||
                   (remote->address_family && strcmp(remote->address_family, "unix") == 0);
    if (remote->tls && option_parse_bool(remote->tls, &is_on) == 0 && is_on) {
        log_error(xl, 0, "transport.socket.ssl-enabled %s: TLS is not in this version, and what is "
                         "meant to be secret does not go out in the clear", remote->tls);
        return -EOPNOTSUPP;
    }
    if (!is_unix && !transport_is(type, "tcp") && !transport_is(type, "socket")) {
        log_error(xl, 0, "transport-type %s is not in this version: use tcp or unix", type);
        return -EPROTONOSUPPORT;
    }
    if (is_unix && !remote->connect_path) {
        log_error(xl, 0, "transport-type unix needs option transport.socket.connect-path");
        return -EINVAL;
    }
    if (!is_unix && !remote->remote_host) {
        log_error(xl, 0, "option remote-host is missing: which server has the brick?");
        return -EINVAL;
    }
    if (!remote->remote_subvolume) {
        log_error(xl, 0, "option remote-subvolume is missing: which brick of the server?");
        return -EINVAL;
    }
    return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

/* What tells us from every other client, but for the number of the connection (spec/wire.md 5.1).
 * */
static char *identity_new(const struct xlator *xl)
{
    char text[UUID_TEXT_SIZE], host[HOST_NAME_BYTES] = "localhost", *identity;
    gfid_t uuid;
    gfid_generate(&uuid);
    if (gethostname(host, sizeof(host) - 1) < 0)
        log_debug(xl, -errno, "this host has no name");
    if (asprintf(&identity, "CTX_ID:%s-GRAPH_ID:%d-PID:%d-HOST:%s-PC_NAME:%s",
                 gfid_format(&uuid, text), xl->graph->id, (int)env_pid(), host, xl->name) < 0)
        return NULL;
    return identity;
}

/* transport-timeout is what volfiles of 2009 call ping-timeout. */
static uint64_t ping_timeout(const struct remote *remote, const struct option_set *set)
{
    return remote->transport_timeout_ns && !get(set, "ping-timeout") ? remote->transport_timeout_ns
                                                                     : remote->ping_timeout_ns;
}

static int make_rpc(struct xlator *xl)
{
    struct remote *remote = xl->state;
    const struct rpc_client_config config = {
        .log = &xl->log,
        .name = xl->name,
        .arg = remote,
        .frame_timeout_ns = remote->frame_timeout_ns,
        .ping_timeout_ns = ping_timeout(remote, &xl->options),
        .keepalive_s = remote->keepalive ? (int)remote->keepalive_s : 0,
        .keepalive_interval_s = (int)remote->keepalive_interval_s,
        .keepalive_count = (int)remote->keepalive_count,
        .user_timeout_s = (int)remote->user_timeout_s,
        .disconnected = remote_disconnected,
        .callback = remote_callback,
    };
    return rpc_client_new(&config, &remote->rpc);
}

static int client_init(struct xlator *xl)
{
    struct remote *remote = xl->state;
    remote->xl = xl;
    pthread_mutex_init(&remote->mutex, NULL);
    fcond_init(&remote->changed);
    LIST_INIT(&remote->fds);
    int ret = check_transport(xl);
    if (ret < 0)
        return ret;
    remote->identity = identity_new(xl);
    ret = remote->identity ? target_of_set(&xl->options, remote, &remote->target) : -ENOMEM;
    if (ret == 0)
        ret = make_rpc(xl);
    if (ret < 0)
        log_error(xl, ret, "cannot make the client");
    return ret;
}

static int client_start(struct xlator *xl)
{
    struct remote *remote = xl->state;
    static _Atomic unsigned next_lane;
    remote->connector_runs = true;
    int ret = fiber_start_on(lane_get(next_lane++ % lanes_count()), "connector", remote_connector,
                             remote);
    if (ret < 0) {
        remote->connector_runs = false;
        log_error(xl, ret, "cannot start connecting");
    }
    return ret;
}

static void client_stop(struct xlator *xl)
{
    struct remote *remote = xl->state;
    if (!remote->rpc)
        return;
    hold_begin(&remote->mutex);
    remote->is_stopping = true;
    fcond_wake_all(&remote->changed);
    pthread_mutex_t *mutex = &remote->mutex;
    hold_end(&mutex);
    rpc_client_disconnect(remote->rpc); /* ends a handshake that is under way */
    HOLD(&remote->mutex);
    while (remote->connector_runs)
        fcond_wait(&remote->changed, &remote->mutex, "connector's end");
}

static void client_fini(struct xlator *xl)
{
    struct remote *remote = xl->state;
    rpc_client_free(TAKE(remote->rpc));
    remote_target_fini(&remote->target);
    free(TAKE(remote->identity));
    free(TAKE(remote->volume_id));
    pthread_mutex_destroy(&remote->mutex);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_place(const struct remote_target *a, const struct remote_target *b)
{
    return same_text(a->host, b->host) && same_text(a->path, b->path) &&
           same_text(a->subvolume, b->subvolume);
}

/* Another host or brick: we connect again, there. */
static int client_reconfigure(struct xlator *xl, const struct option_set *set)
{
    struct remote *remote = xl->state;
    struct remote_target target, old;
    int ret = target_of_set(set, remote, &target);
    if (ret < 0) {
        log_error(xl, ret, "cannot take over the new options");
        return ret;
    }
    rpc_client_set_timeouts(remote->rpc, remote->frame_timeout_ns, ping_timeout(remote, set));
    hold_begin(&remote->mutex);
    old = remote->target;
    remote->target = target;
    bool moves = !same_place(&old, &target);
    pthread_mutex_t *mutex = &remote->mutex;
    hold_end(&mutex);
    remote_target_fini(&old);
    if (moves) {
        log_info(xl, 0, "the brick is elsewhere now: connecting again");
        rpc_client_disconnect(remote->rpc);
    }
    return 0;
}

static void client_release(struct xlator *xl, struct fd *fd, void *state)
{
    (void)fd;
    remote_fd_release(xl->state, state);
}

static void client_dump(struct xlator *xl, struct dump *dump)
{
    struct remote *remote = xl->state;
    struct rpc_client_stats stats;
    rpc_client_get_stats(remote->rpc, &stats);
    dump_value(dump, "connected", "%d", remote->generation != 0);
    dump_value(dump, "peer", "%s", rpc_client_peer(remote->rpc));
    dump_value(dump, "connections-so-far", "%u", remote->handshakes);
    dump_value(dump, "open-files", "%u", remote_fds_count(remote));
    dump_value(dump, "outstanding", "%u", stats.outstanding);
    dump_value(dump, "calls-so-far", "%lu", (unsigned long)remote->calls);
    dump_value(dump, "sent-again", "%lu", (unsigned long)remote->replays);
    dump_value(dump, "total-bytes-read", "%lu", (unsigned long)stats.received_bytes);
    dump_value(dump, "total-bytes-written", "%lu", (unsigned long)stats.sent_bytes);
    dump_value(dump, "ping-usec", "%lu", (unsigned long)(stats.last_ping_ns / NS_PER_US));
}

/* --- options ---------------------------------------------------------------------------------- */

static const char *const transports[] = {
    "tcp", "socket", "ib-verbs", "unix", "ib-sdp", "tcp/client", "ib-verbs/client", "rdma",
    "unix/client", "socket/client", "ib-sdp/client", NULL,
};
static const char *const families[] = { "inet", "inet6", "unix", "inet-sdp", NULL };

#define NO_TLS "TLS is not in this version."
#define KERNEL_TUNES "The kernel sizes socket buffers better than a number does."

static const struct option client_options[] = {
    OPTION_STR(struct remote, username, "username",
               .help = "For auth.login of the brick; sent with the handshake."),
    OPTION_STR(struct remote, password, "password",
               .help = "For auth.login of the brick; sent with the handshake."),
    OPTION_STR(struct remote, transport_type, "transport-type", .fallback = "tcp",
               .values = transports, .help = "tcp or unix."),
    OPTION_ADDRESS(struct remote, remote_host, "remote-host",
                   .help = "The server that has the brick."),
    OPTION_INT(struct remote, remote_port, "remote-port",
               .aliases = { "transport.remote-port", "transport.socket.remote-port" },
               .fallback = "0", .min = 0, .max = 65535,
               .help = "The brick's port; without it the server's glusterd is asked."),
    OPTION_ANY(struct remote, remote_subvolume, "remote-subvolume",
               .help = "The brick: its path, or the name of the volume that the server exports."),
    OPTION_STR(struct remote, connect_path, "transport.socket.connect-path",
               .aliases = { "connect-path" }, .help = "The socket of transport-type unix."),
    OPTION_STR(struct remote, address_family, "transport.address-family",
               .aliases = { "address-family" }, .values = families, .help = "inet or inet6."),
    OPTION_STR(struct remote, subdir_mount, "subdir-mount",
               .help = "The directory of the volume that is our root."),
    OPTION_TIME(struct remote, frame_timeout_ns, "frame-timeout", .aliases = { "rpc-timeout" },
                .fallback = "1800", .min = 0, .max = 86400 * (double)NS_PER_S, .flags = OPTION_LIVE,
                .help = "A call without an answer fails after this."),
    OPTION_TIME(struct remote, ping_timeout_ns, "ping-timeout", .fallback = "42", .min = 0,
                .max = 1013 * (double)NS_PER_S, .flags = OPTION_LIVE,
                .help = "A brick that is silent for so long is given up; 0: never."),
    OPTION_TIME(struct remote, transport_timeout_ns, "transport-timeout", .min = 0,
                .max = 86400 * (double)NS_PER_S,
                .help = "ping-timeout, as volfiles of 1.x and 2.x say it."),
    OPTION_BOOL(struct remote, bind_insecure, "client-bind-insecure", .fallback = "on",
                .help = "Off: call from a port below 1024 where one is free."),
    OPTION_BOOL(struct remote, filter_o_direct, "filter-O_DIRECT", .fallback = "disable",
                .flags = OPTION_LIVE,
                .help = "Leave O_DIRECT out of what is sent: the brick may cache (remote-dio)."),
    OPTION_BOOL(struct remote, send_gids, "send-gids", .fallback = "on", .flags = OPTION_LIVE,
                .help = "Send the caller's groups; off: the brick looks them up."),
    OPTION_BOOL(struct remote, strict_locks, "strict-locks", .fallback = "off",
                .flags = OPTION_LIVE,
                .help = "A file whose locks went with a connection fails instead of going on."),
    OPTION_INT(struct remote, user_timeout_s, "transport.tcp-user-timeout", .fallback = "42",
               .min = 0, .max = 1013, .help = "Unacknowledged data ends a connection after this."),
    OPTION_BOOL(struct remote, keepalive, "transport.socket.keepalive", .fallback = "1",
                .help = "Probe an idle connection."),
    OPTION_INT(struct remote, keepalive_s, "transport.socket.keepalive-time", .fallback = "20",
               .min = 0, .max = 32767, .help = "Idle seconds before the first probe."),
    OPTION_INT(struct remote, keepalive_interval_s, "transport.socket.keepalive-interval",
               .fallback = "2", .min = 0, .max = 32767, .help = "Seconds between probes."),
    OPTION_INT(struct remote, keepalive_count, "transport.socket.keepalive-count", .fallback = "9",
               .min = 0, .max = 127, .help = "Probes without an answer."),
    OPTION_STR(struct remote, tls, "transport.socket.ssl-enabled", .help = NO_TLS),
    OPTION_NONE(OPT_INT, "event-threads", .min = 1, .max = 32,
                .help = "A connection belongs to a lane; the process has as many as it needs."),
    OPTION_NONE(OPT_SIZE, "tcp-window-size", .aliases = { "transport.window-size" }, .min = 0,
                .max = 1048576, .help = KERNEL_TUNES),
    OPTION_NONE(OPT_BOOL, "testing.old-protocol",
                .help = "There is one protocol: GlusterFS 4.x v1."),
    OPTION_NONE(OPT_BOOL, "lk-heal", .help = "Of 3.3 to 3.12; it never worked there either."),
    OPTION_NONE(OPT_INT, "grace-timeout", .min = 10, .max = 1800,
                .help = "Of 3.3 to 3.12: went with lk-heal."),
    OPTION_NONE(OPT_BOOL, "non-blocking-io", .help = "Input and output never block here."),
    OPTION_NONE(OPT_SIZE, "transport.listen-backlog",
                .aliases = { "transport.socket.listen-backlog" },
                .help = "A client does not listen."),
    OPTION_NONE(OPT_INT, "transport.socket.listen-port", .aliases = { "listen-port" },
                .help = "A client does not listen."),
    OPTION_NONE(OPT_ANY, "transport.socket.listen-path", .aliases = { "listen-path" },
                .help = "A client does not listen."),
    OPTION_NONE(OPT_ADDRESS, "transport.socket.bind-address", .aliases = { "bind-address" },
                .help = "The kernel chooses the source address by its routes."),
    OPTION_NONE(OPT_ANY, "transport.socket.bind-path", .aliases = { "bind-path" },
                .help = "A unix client needs no name of its own."),
    OPTION_NONE(OPT_BOOL, "transport.socket.nodelay", .help = "Always on: messages go out whole."),
    OPTION_NONE(OPT_BOOL, "transport.socket.lowlat", .help = "Always on: messages go out whole."),
    OPTION_NONE(OPT_BOOL, "transport.socket.own-thread", .help = "Connections belong to lanes."),
    OPTION_NONE(OPT_BOOL, "transport.socket.read-fail-log",
                .help = "Ends of connections are logged."),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-own-cert", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-private-key", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-ca-list", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-cert-depth", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-cipher-list", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-dh-param", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-ec-curve", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "transport.socket.ssl-crl-path", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "ssl-own-cert", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "ssl-private-key", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "ssl-ca-list", .help = NO_TLS),
    OPTION_NONE(OPT_INT, "ssl-cert-depth", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "ssl-cipher-list", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "ssl-dh-param", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "ssl-ec-curve", .help = NO_TLS),
    OPTION_NONE(OPT_STR, "ssl-crl-path", .help = NO_TLS),
    OPTION_END,
};

const struct xlator_type xlator_protocol_client = {
    .name = "protocol/client",
    .state_size = sizeof(struct remote),
    .options = client_options,
    .init = client_init,
    .start = client_start,
    .stop = client_stop,
    .fini = client_fini,
    .reconfigure = client_reconfigure,
    .release = client_release,
    .dump = client_dump,
    .any = remote_any,
};
