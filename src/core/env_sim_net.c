/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The simulator's network: streams between fibers of this process. Addresses are keys, nothing of
 * them reaches the kernel. What is sent arrives in order, after a seeded delay, perhaps in pieces.
 *
 *     client stream  --peer-->  server stream        each has the queue of what is on its way to it
 *                    <--peer--
 *
 * A socket that is closed lives on while somebody refers to it: fibers inside a call, its peer. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "core/env_sim.h"

enum {
    SIM_FD_FIRST = 1 << 20, /* no real descriptor is that high */
    SOCKETS_MAX = 4096,
    WINDOW_BYTES = 256 * 1024,
    CHUNK_BYTES = 64 * 1024,
    PORT_FIRST = 49152,
    DELAY_US = 200,
};

struct chunk {
    STAILQ_ENTRY(chunk) next;
    uint64_t at_ns; /* when it arrives */
    size_t bytes, taken;
    char data[];
};

struct sim_waiter {
    TAILQ_ENTRY(sim_waiter) next;
    struct fiber *fiber;
};
TAILQ_HEAD(sim_waiters, sim_waiter);

struct sim_socket {
    LIST_ENTRY(sim_socket) all;
    unsigned refs;
    bool is_listener, is_shut;
    struct env_address address, peer_address;
    struct sim_waiters readers, writers; /* of a listener: accept; connect while it is full */

    struct sim_socket *peer; /* of a stream */
    STAILQ_HEAD(, chunk) chunks;
    size_t window_used;
    uint64_t last_at_ns, end_at_ns; /* of the newest chunk; of the peer's end, 0: not ended */

    int backlog; /* of a listener */
    unsigned pending_count;
    STAILQ_HEAD(, sim_socket) pending;
    STAILQ_ENTRY(sim_socket) next_pending;
};

static struct sim_socket *sockets[SOCKETS_MAX]; /* by number */
static LIST_HEAD(, sim_socket) all = LIST_HEAD_INITIALIZER(all);
static uint16_t next_port = PORT_FIRST;

static uint64_t delay_ns(void)
{
    return (10 + sim_random(DELAY_US)) * NS_PER_US;
}

/* --- sockets and their numbers ---------------------------------------------------------------- */

static struct sim_socket *socket_new(const struct env_address *address)
{
    struct sim_socket *socket = calloc(1, sizeof(*socket));
    if (!socket)
        return NULL;
    LIST_INSERT_HEAD(&all, socket, all);
    socket->refs = 1;
    socket->address = *address;
    TAILQ_INIT(&socket->readers);
    TAILQ_INIT(&socket->writers);
    STAILQ_INIT(&socket->chunks);
    STAILQ_INIT(&socket->pending);
    return socket;
}

static struct sim_socket *socket_ref(struct sim_socket *socket)
{
    socket->refs++;
    return socket;
}

static void socket_free(struct sim_socket *socket)
{
    LIST_REMOVE(socket, all);
    for (struct chunk *chunk; (chunk = STAILQ_FIRST(&socket->chunks));) {
        STAILQ_REMOVE_HEAD(&socket->chunks, next);
        free(chunk);
    }
    free(socket);
}

static void socket_unref(struct sim_socket *socket)
{
    if (socket && --socket->refs == 0)
        socket_free(socket);
}

#define SOCKET_HOLD __attribute__((cleanup(socket_auto))) struct sim_socket *
static void socket_auto(struct sim_socket **socket)
{
    socket_unref(*socket);
}

/* A reference of its own to the socket with this number, or NULL. */
static struct sim_socket *socket_find(int fd)
{
    int index = fd - SIM_FD_FIRST;
    if (index < 0 || index >= SOCKETS_MAX || !sockets[index])
        return NULL;
    return socket_ref(sockets[index]);
}

/* Takes over the reference. */
static int socket_number(struct sim_socket *socket)
{
    for (int i = 0; i < SOCKETS_MAX; i++)
        if (!sockets[i]) {
            sockets[i] = socket;
            return SIM_FD_FIRST + i;
        }
    socket_unref(socket);
    return -EMFILE;
}

/* The fibers that held sockets are gone: references do not count any more. */
void sim_net_reset(void)
{
    next_port = PORT_FIRST;
    memset(sockets, 0, sizeof(sockets));
    while (!LIST_EMPTY(&all))
        socket_free(LIST_FIRST(&all));
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Until somebody calls wake_all on the list, or until_ns (0: for ever). */
static void wait_in(struct sim_waiters *waiters, const char *why, uint64_t until_ns)
{
    struct sim_waiter waiter = { .fiber = fiber_self() };
    TAILQ_INSERT_TAIL(waiters, &waiter, next);
    if (!until_ns)
        fiber_wait(why);
    else if (!fiber_wait_until(why, until_ns))
        TAILQ_REMOVE(waiters, &waiter, next);
}

static void wake_all(struct sim_waiters *waiters)
{
    for (struct sim_waiter *waiter; (waiter = TAILQ_FIRST(waiters));) {
        TAILQ_REMOVE(waiters, waiter, next);
        fiber_done(waiter->fiber);
    }
}

/* --- addresses -------------------------------------------------------------------------------- */

static uint16_t *port_of(struct env_address *address)
{
    if (address->sockaddr.ss_family == AF_INET)
        return &((struct sockaddr_in *)&address->sockaddr)->sin_port;
    if (address->sockaddr.ss_family == AF_INET6)
        return &((struct sockaddr_in6 *)&address->sockaddr)->sin6_port;
    return NULL;
}

static bool address_equal(const struct env_address *a, const struct env_address *b)
{
    return a->bytes == b->bytes && memcmp(&a->sockaddr, &b->sockaddr, a->bytes) == 0;
}

/* Does a listener on `bound` answer for `wanted`? 0.0.0.0 and :: answer for every address. */
static bool address_answers(const struct env_address *bound, const struct env_address *wanted)
{
    struct env_address any = *bound, other = *wanted;
    if (address_equal(bound, wanted))
        return true;
    if (any.sockaddr.ss_family != other.sockaddr.ss_family || !port_of(&any) ||
        *port_of(&any) != *port_of(&other))
        return false;
    if (any.sockaddr.ss_family == AF_INET)
        return ((struct sockaddr_in *)&any.sockaddr)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)&any.sockaddr)->sin6_addr);
}

static struct sim_socket *listener_for(const struct env_address *address)
{
    for (int i = 0; i < SOCKETS_MAX; i++)
        if (sockets[i] && sockets[i]->is_listener && !sockets[i]->is_shut &&
            address_answers(&sockets[i]->address, address))
            return sockets[i];
    return NULL;
}

static bool is_address_used(const struct env_address *address, bool by_listener)
{
    for (int i = 0; i < SOCKETS_MAX; i++)
        if (sockets[i] && sockets[i]->is_listener == by_listener &&
            address_equal(&sockets[i]->address, address))
            return true;
    return false;
}

/* Gives a port where none is asked for. */
static int address_bind(struct env_address *address, bool is_listener)
{
    uint16_t *port = port_of(address);
    if (!port || *port)
        return is_address_used(address, is_listener) ? -EADDRINUSE : 0;
    do {
        *port = htons(next_port);
        next_port = next_port == UINT16_MAX ? PORT_FIRST : next_port + 1;
    } while (is_address_used(address, true) || is_address_used(address, false));
    return 0;
}

/* Names give addresses of 10.0.0.0/8 by their letters; so every name exists, but .invalid ones. */
int sim_resolve(const char *host, uint16_t port, int family, struct env_address *ret_addresses,
                int max)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    uint32_t ip = 0;
    if (max < 1)
        return -EINVAL;
    *ret_addresses = (struct env_address){ .bytes = sizeof(in) };
    if (host && family != AF_INET && inet_pton(AF_INET6, host, &in6.sin6_addr) == 1) {
        memcpy(&ret_addresses->sockaddr, &in6, ret_addresses->bytes = sizeof(in6));
        return 1;
    }
    if (family == AF_INET6)
        return -ENOENT;
    if (host && strcmp(host, "localhost") == 0)
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (host && inet_pton(AF_INET, host, &in.sin_addr) != 1) {
        const char *dot = strrchr(host, '.');
        if (dot && strcmp(dot, ".invalid") == 0)
            return -ENOENT;
        for (const char *at = host; *at; at++)
            ip = ip * 31 + (unsigned char)*at;
        in.sin_addr.s_addr = htonl(10u << 24 | (ip & 0xffffff));
    }
    memcpy(&ret_addresses->sockaddr, &in, sizeof(in));
    return 1;
}

int sim_local_address(int fd, struct env_address *ret_address)
{
    SOCKET_HOLD socket = socket_find(fd);
    if (!socket)
        return -EBADF;
    *ret_address = socket->address;
    return 0;
}

/* --- listening and connecting ----------------------------------------------------------------- */

int sim_listen(const struct env_address *address, int backlog)
{
    struct env_address bound = *address;
    int ret = address_bind(&bound, true);
    if (ret < 0)
        return ret;
    struct sim_socket *socket = socket_new(&bound);
    if (!socket)
        return -ENOMEM;
    socket->is_listener = true;
    socket->backlog = MAX(backlog, 0);
    return socket_number(socket);
}

int sim_accept(int fd, struct env_address *ret_peer)
{
    SOCKET_HOLD listener = socket_find(fd);
    if (!listener)
        return -EBADF;
    while (listener->is_listener && !listener->is_shut && STAILQ_EMPTY(&listener->pending))
        wait_in(&listener->readers, "accept", 0);
    if (!listener->is_listener || listener->is_shut)
        return -EINVAL;
    struct sim_socket *stream = STAILQ_FIRST(&listener->pending);
    STAILQ_REMOVE_HEAD(&listener->pending, next_pending);
    listener->pending_count--;
    wake_all(&listener->writers);
    if (ret_peer)
        *ret_peer = stream->peer_address;
    return socket_number(stream);
}

static void join(struct sim_socket *a, struct sim_socket *b)
{
    a->peer = socket_ref(b);
    b->peer = socket_ref(a);
    a->peer_address = b->address;
    b->peer_address = a->address;
}

/* Waits for a listener with room in its queue. */
static int find_listener(const struct env_address *address, uint64_t until_ns,
                         struct sim_socket **ret_listener)
{
    for (;;) {
        struct sim_socket *listener = listener_for(address);
        if (!listener)
            return address->sockaddr.ss_family == AF_UNIX ? -ENOENT : -ECONNREFUSED;
        if (listener->pending_count <= (unsigned)listener->backlog) {
            *ret_listener = listener;
            return 0;
        }
        if (until_ns && env_now_ns() >= until_ns)
            return -ETIMEDOUT;
        SOCKET_HOLD held = socket_ref(listener);
        wait_in(&held->writers, "connect", until_ns);
    }
}

static struct env_address address_default(const struct env_address *to)
{
    struct env_address from = *to;
    if (port_of(&from))
        *port_of(&from) = 0;
    else /* a unix client has no name */
        from = (struct env_address){ .sockaddr.ss_family = AF_UNIX, .bytes = sizeof(sa_family_t) };
    return from;
}

int sim_connect(const struct env_address *address, const struct env_address *bind,
                uint64_t until_ns)
{
    struct env_address from = bind ? *bind : address_default(address);
    struct sim_socket *listener;
    env_sleep(delay_ns());
    int ret = port_of(&from) ? address_bind(&from, false) : 0;
    if (ret == 0)
        ret = find_listener(address, until_ns, &listener);
    if (ret < 0)
        return ret;
    struct sim_socket *client = socket_new(&from), *server = socket_new(address);
    if (!client || !server) {
        socket_unref(client);
        socket_unref(server);
        return -ENOMEM;
    }
    join(client, server);
    STAILQ_INSERT_TAIL(&listener->pending, server, next_pending);
    listener->pending_count++;
    wake_all(&listener->readers);
    ret = socket_number(client);
    env_sleep(delay_ns());
    return ret;
}

/* --- data ------------------------------------------------------------------------------------- */

static uint64_t arrival_ns(struct sim_socket *to)
{
    to->last_at_ns = MAX(to->last_at_ns, env_now_ns() + delay_ns());
    return to->last_at_ns;
}

/* Up to a chunk of the iov from `sent` on; returns what went. */
static ssize_t send_chunk(struct sim_socket *to, const struct iovec *iov, int count, uint64_t sent,
                          size_t bytes)
{
    struct iovec window[ENV_WINDOW];
    int n = env_iov_window(iov, count, sent, window);
    bytes = MIN(bytes, (size_t)CHUNK_BYTES);
    struct chunk *chunk = malloc(sizeof(*chunk) + bytes);
    if (!chunk)
        return -ENOBUFS;
    *chunk = (struct chunk){ .at_ns = arrival_ns(to) };
    for (int i = 0; i < n && chunk->bytes < bytes; i++) {
        size_t part = MIN(window[i].iov_len, bytes - chunk->bytes);
        memcpy(chunk->data + chunk->bytes, window[i].iov_base, part);
        chunk->bytes += part;
    }
    STAILQ_INSERT_TAIL(&to->chunks, chunk, next);
    to->window_used += chunk->bytes;
    wake_all(&to->readers);
    return (ssize_t)chunk->bytes;
}

ssize_t sim_send(int fd, const struct iovec *iov, int count)
{
    SOCKET_HOLD socket = socket_find(fd);
    if (!socket)
        return -EBADF;
    if (!socket->peer)
        return -ENOTCONN;
    uint64_t sent = 0, bytes = env_iov_bytes(iov, count);
    while (sent < bytes) {
        if (socket->is_shut || (socket->end_at_ns && socket->end_at_ns <= env_now_ns()))
            return -EPIPE;
        if (socket->peer->is_shut)
            return (ssize_t)bytes; /* on its way to somebody who left */
        if (socket->peer->window_used >= WINDOW_BYTES) {
            wait_in(&socket->writers, "send", 0);
            continue;
        }
        ssize_t ret = send_chunk(socket->peer, iov, count, sent, bytes - sent);
        if (ret < 0)
            return ret;
        sent += (uint64_t)ret;
    }
    return (ssize_t)sent;
}

/* Out of the chunks that have arrived; sometimes less than there is, as networks do. */
static size_t take(struct sim_socket *socket, char *buffer, size_t bytes)
{
    size_t taken = 0;
    if (bytes > 1 && sim_random(4) == 0)
        bytes = 1 + sim_random((uint32_t)MIN(bytes, (size_t)CHUNK_BYTES));
    for (struct chunk *chunk; taken < bytes && (chunk = STAILQ_FIRST(&socket->chunks)) &&
                              chunk->at_ns <= env_now_ns();) {
        size_t part = MIN(bytes - taken, chunk->bytes - chunk->taken);
        memcpy(buffer + taken, chunk->data + chunk->taken, part);
        taken += part;
        chunk->taken += part;
        if (chunk->taken == chunk->bytes) {
            STAILQ_REMOVE_HEAD(&socket->chunks, next);
            free(chunk);
        }
    }
    socket->window_used -= taken;
    if (taken && socket->peer)
        wake_all(&socket->peer->writers);
    return taken;
}

ssize_t sim_recv(int fd, void *buffer, size_t bytes)
{
    SOCKET_HOLD socket = socket_find(fd);
    if (!socket)
        return -EBADF;
    if (!socket->peer)
        return -ENOTCONN;
    for (;;) {
        size_t taken = take(socket, buffer, bytes);
        if (taken || bytes == 0)
            return (ssize_t)taken;
        struct chunk *chunk = STAILQ_FIRST(&socket->chunks);
        if (socket->is_shut || (!chunk && socket->end_at_ns && socket->end_at_ns <= env_now_ns()))
            return 0;
        wait_in(&socket->readers, "receive", chunk ? chunk->at_ns : socket->end_at_ns);
    }
}

ssize_t sim_recv_all(int fd, const struct iovec *iov, int count)
{
    uint64_t got = 0, bytes = env_iov_bytes(iov, count);
    struct iovec window[ENV_WINDOW];
    while (got < bytes) {
        env_iov_window(iov, count, got, window);
        ssize_t ret = sim_recv(fd, window[0].iov_base, window[0].iov_len);
        if (ret < 0)
            return ret;
        if (ret == 0)
            break;
        got += (uint64_t)ret;
    }
    return (ssize_t)got;
}

/* --- ending ----------------------------------------------------------------------------------- */

static void stream_end(struct sim_socket *socket)
{
    struct sim_socket *peer = socket->peer;
    if (!peer || peer->end_at_ns)
        return;
    peer->end_at_ns = arrival_ns(peer);
    wake_all(&peer->readers);
    wake_all(&peer->writers);
}

static void socket_shut(struct sim_socket *socket)
{
    if (socket->is_shut)
        return;
    socket->is_shut = true;
    wake_all(&socket->readers);
    wake_all(&socket->writers);
    stream_end(socket);
    for (struct sim_socket *stream; (stream = STAILQ_FIRST(&socket->pending));) {
        STAILQ_REMOVE_HEAD(&socket->pending, next_pending);
        socket_shut(stream);
        struct sim_socket *peer = TAKE(stream->peer);
        socket_unref(peer);
        socket_unref(stream);
    }
}

int sim_shutdown(int fd)
{
    SOCKET_HOLD socket = socket_find(fd);
    if (!socket)
        return fd >= SIM_FD_FIRST ? -EBADF : env_socket_shutdown(fd);
    socket_shut(socket);
    return 0;
}

int sim_close(int fd)
{
    SOCKET_HOLD socket = socket_find(fd);
    if (!socket)
        return fd >= SIM_FD_FIRST ? -EBADF : env_socket_close(fd);
    if (!TAILQ_EMPTY(&socket->readers))
        fiber_misuse(TAILQ_FIRST(&socket->readers)->fiber, "waits for a socket that is closed",
                     NULL);
    socket_shut(socket);
    struct sim_socket *peer = TAKE(socket->peer);
    socket_unref(peer);
    sockets[fd - SIM_FD_FIRST] = NULL;
    socket_unref(socket); /* the number's */
    return 0;
}

int sim_tcp_options(int fd, int keepalive_s, int interval_s, int count, int user_timeout_s)
{
    (void)keepalive_s, (void)interval_s, (void)count, (void)user_timeout_s;
    SOCKET_HOLD socket = socket_find(fd);
    return socket ? 0 : -EBADF;
}

int sim_peer_creds(int fd, struct env_creds *ret_creds)
{
    SOCKET_HOLD socket = socket_find(fd);
    if (!socket)
        return -EBADF;
    *ret_creds = (struct env_creds){ .pid = getpid(), .uid = getuid(), .gid = getgid() };
    return 0;
}
