/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who holds what: the reader holds its connection until it has ended; each request holds it until
 * its handler has returned and its reply was sent or dropped. `live` counts the reader and the
 * handlers that run; at 0 the server forgets the connection. Requests, their counts and the backlog
 * belong to the connection's lane; the mutex of the server protects its lists.
 *
 *   reader: place -> deliver -> [inline: handler] [error: reply] [below the limit: a new fiber]
 *                               [at the limit: backlog, which the fibers that finish take from;
 * when
 *                                that is full too, the reader waits] */
#include "rpc/server.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>

#include "rpc/conn.h"
#include "rpc/slab.h"

enum {
    BODY_ROOM = 1024,
    REQUEST_BODY_BYTES_MAX = (4 << 20) + (64 << 10), /* a dict at its limit and more */
    CONNECTIONS_MAX = 20000,
    PROGRAMS_MAX = 16,
    LISTENERS_MAX = 16,
    BACKLOG_DEFAULT = 1024,
    BACKLOG_REQUESTS_MAX = 64,
    INSECURE_PORT_MIN = 1024,
};

enum verdict { SERVE, REFUSE, DENY, IGNORE };

struct request {
    struct rpc_request pub; /* first */
    struct request *next;   /* in the backlog */
    const struct rpc_procedure *procedure;
    enum verdict verdict;
    uint32_t reason;        /* enum rpc_accept or rpc_auth_stat, by verdict */
    bool is_answered, is_begun;
    unsigned refs;          /* the handler's and the reply's */
    uint8_t *body_heap;
    struct conn_message reply;
    uint8_t body_room[BODY_ROOM];
};
static struct slab requests = SLAB_OF(struct request);

struct rpc_conn {
    struct conn conn;
    struct rpc_server *server;
    _Atomic unsigned refs;
    _Atomic(void *) user;
    struct env_address address;
    uint16_t port;
    _Atomic uint32_t callback_xid;
    unsigned live, running, blocking, backlog_count;
    struct request *backlog, **backlog_last;
    struct fiber *waiting;        /* the reader, for a place in the backlog */
    TAILQ_ENTRY(rpc_conn) link;
};

struct listener {
    struct rpc_server *server;
    int fd;
};

struct rpc_server {
    struct rpc_server_config config;
    const struct rpc_program *programs[PROGRAMS_MAX];
    unsigned program_count;
    _Atomic unsigned outstanding_max;
    _Atomic bool refuse_insecure;
    _Atomic unsigned next_lane;

    pthread_mutex_t mutex; /* what follows */
    bool stopping;
    struct listener listeners[LISTENERS_MAX];
    unsigned listener_count, listeners_running;
    TAILQ_HEAD(, rpc_conn) conns;
    unsigned conn_count;
    struct fcond ended;
};

#define server_log(level, server, ret, ...)                                                        \
    ((server)->config.log ? log_##level((server)->config.log, ret, __VA_ARGS__)                    \
                          : log_##level((server)->config.name, ret, __VA_ARGS__))

static struct request *request_of(struct rpc_request *req)
{
    return container_of(req, struct request, pub);
}

/* --- replies ---------------------------------------------------------------------------------- */

static void request_unref(struct request *request)
{
    if (--request->refs)
        return;
    struct rpc_conn *conn = request->pub.conn;
    payload_fini(&request->pub.payload);
    conn_message_fini(&request->reply);
    free(request->body_heap);
    slab_put(&requests, request);
    rpc_conn_unref(conn);
}

static void reply_done(struct conn_message *message)
{
    struct request *request = container_of(message, struct request, reply);
    payload_fini(&message->payload); /* buffers go back at once, the request may go on */
    request_unref(request);
}

struct writer *rpc_reply_begin(struct rpc_request *req)
{
    struct request *request = request_of(req);
    assert(!request->is_begun && !request->is_answered);
    request->is_begun = true;
    rpc_encode_reply(&request->reply.head, req->xid, RPC_SUCCESS);
    return &request->reply.head;
}

static void reply_send(struct request *request)
{
    assert(!request->is_answered);
    request->is_answered = true;
    (void)conn_send(&request->pub.conn->conn, &request->reply); /* gone: reply_done was called */
}

void rpc_reply_send(struct rpc_request *req, struct payload *payload)
{
    struct request *request = request_of(req);
    assert(request->is_begun);
    if (!writer_ok(&request->reply.head))
        return rpc_reply_error(req, RPC_SYSTEM_ERR);
    if (payload && payload->segs) {
        request->reply.payload = *payload; /* moved */
        payload->segs = payload->bytes = 0;
    }
    reply_send(request);
}

/* Starts the reply over: what a handler wrote so far does not count. */
static struct writer *reply_restart(struct request *request)
{
    conn_message_fini(&request->reply);
    conn_message_init(&request->reply, reply_done);
    return &request->reply.head;
}

void rpc_reply_error(struct rpc_request *req, enum rpc_accept accept)
{
    struct request *request = request_of(req);
    rpc_encode_reply(reply_restart(request), req->xid, accept);
    reply_send(request);
}

void rpc_reply_denied(struct rpc_request *req, enum rpc_auth_stat stat)
{
    struct request *request = request_of(req);
    rpc_encode_denied(reply_restart(request), req->xid, stat);
    reply_send(request);
}

void rpc_no_reply(struct rpc_request *req)
{
    struct request *request = request_of(req);
    assert(!request->is_answered);
    request->is_answered = true;
    request_unref(request);
}

/* --- the dump program ------------------------------------------------------------------------- */

static void dump_null(struct rpc_request *req)
{
    (void)rpc_reply_begin(req);
    rpc_reply_send(req, NULL);
}

static void dump_dump(struct rpc_request *req)
{
    const struct rpc_server *server = req->conn->server;
    uint64_t id;
    if (reader_u64(&req->body, &id) < 0)
        return rpc_reply_error(req, RPC_GARBAGE_ARGS);

    struct writer *w = rpc_reply_begin(req);
    writer_u64(w, 0);
    writer_u32(w, 0);
    writer_u32(w, 0);
    for (unsigned i = 0; i < server->program_count; i++) {
        writer_u32(w, 1);
        writer_str(w, server->programs[i]->name);
        writer_u64(w, server->programs[i]->number);
        writer_u64(w, server->programs[i]->version);
    }
    writer_u32(w, 0);
    rpc_reply_send(req, NULL);
}

static void dump_ping(struct rpc_request *req)
{
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, 0);
    writer_u32(w, 0);
    writer_u32(w, 0);
    rpc_reply_send(req, NULL);
}

static const struct rpc_procedure dump_procedures[] = {
    [RPC_DUMP_NULL] = { "NULL", dump_null, .flags = RPC_INLINE },
    [RPC_DUMP_DUMP] = { "DUMP", dump_dump, .flags = RPC_INLINE },
    [RPC_DUMP_PING] = { "PING", dump_ping, .flags = RPC_INLINE },
};
static const struct rpc_program dump_program = { RPC_DUMP_PROGRAM, RPC_DUMP_VERSION, "GF-DUMP",
                                                 dump_procedures, ARRAY_SIZE(dump_procedures) };

/* --- receiving a request ---------------------------------------------------------------------- */

static struct rpc_conn *conn_of(struct conn *conn)
{
    return container_of(conn, struct rpc_conn, conn);
}

static struct request *request_new(struct rpc_conn *conn)
{
    struct request *request = slab_get(&requests);
    if (!request)
        return NULL;
    struct rpc_request *pub = &request->pub;
    pub->conn = rpc_conn_ref(conn);
    pub->program = NULL;
    pub->payload.segs = pub->payload.bytes = 0;
    pub->body = reader_of(request->body_room, 0);
    request->next = NULL;
    request->procedure = NULL;
    request->verdict = SERVE;
    request->reason = 0;
    request->is_answered = request->is_begun = false;
    request->refs = 2;
    request->body_heap = NULL;
    conn_message_init(&request->reply, reply_done);
    return request;
}

static void refuse(struct request *request, enum verdict verdict, uint32_t reason)
{
    request->verdict = verdict;
    request->reason = reason;
}

/* Finds who serves it, or how it is refused (spec/wire.md 1.3). */
static void find_procedure(struct request *request, const struct rpc_header *header)
{
    const struct rpc_server *server = request->pub.conn->server;
    bool is_known = false;
    for (unsigned i = 0; i < server->program_count; i++) {
        const struct rpc_program *program = server->programs[i];
        is_known |= program->number == header->program;
        if (program->number == header->program && program->version == header->version)
            request->pub.program = program;
    }
    const struct rpc_program *program = request->pub.program;
    if (!program)
        return refuse(request, REFUSE, is_known ? RPC_PROG_MISMATCH : RPC_PROG_UNAVAIL);
    if (header->procedure >= program->count || !program->procedures[header->procedure].handler)
        return refuse(request, REFUSE, RPC_PROC_UNAVAIL);
    request->procedure = &program->procedures[header->procedure];
}

static void judge(struct request *request, const struct rpc_header *header, int ret)
{
    const struct rpc_conn *conn = request->pub.conn;
    if (header->rpc_version != RPC_VERSION)
        return refuse(request, IGNORE, 0);
    if (ret == -EACCES)
        return refuse(request, DENY, RPC_AUTH_BADCRED);
    find_procedure(request, header);
    if (request->verdict == SERVE && conn->port >= INSECURE_PORT_MIN &&
        atomic_load_explicit(&conn->server->refuse_insecure, memory_order_relaxed) &&
        !(request->procedure->flags & RPC_UNPRIVILEGED))
        refuse(request, DENY, RPC_AUTH_TOOWEAK);
}

/* Bytes of the body (rest is the bytes of body and payload together), from the begin of the body.
 * */
static uint32_t body_bytes(const struct rpc_procedure *procedure, struct reader begin,
                           uint32_t rest)
{
    uint32_t size;
    uint64_t bytes;
    if (!procedure->payload_fixed || reader_left(&begin) < (size_t)procedure->payload_size_at + 4)
        return rest;
    begin.pos += procedure->payload_size_at;
    if (reader_u32(&begin, &size) < 0)
        return rest;
    bytes = procedure->payload_fixed + (((uint64_t)size + 3) & ~3ull);
    return bytes > rest ? rest : (uint32_t)bytes; /* cut off: decoding will say so */
}

/* Memory for body and payload. */
static int request_land(struct request *request, struct reader begin, uint32_t rest,
                        struct conn_landing *landing)
{
    struct conn *conn = &request->pub.conn->conn;
    uint32_t bytes = body_bytes(request->procedure, begin, rest);
    int ret = 0;
    if (bytes > REQUEST_BODY_BYTES_MAX || rest - bytes > PAYLOAD_BYTES_MAX) {
        conn->why = "a request is larger than we accept";
        return -E2BIG;
    }
    if (bytes > BODY_ROOM)
        request->body_heap = malloc(bytes);
    if (bytes > BODY_ROOM && !request->body_heap)
        return -ENOMEM;
    if (rest > bytes)
        ret = payload_alloc(&request->pub.payload, rest - bytes);
    landing->body = request->body_heap ? request->body_heap : request->body_room;
    landing->body_bytes = bytes;
    landing->payload = rest > bytes ? &request->pub.payload : NULL;
    request->pub.body = reader_of(landing->body, bytes);
    return ret;
}

static int server_place(struct conn *base, uint8_t *prefix, uint32_t bytes, uint32_t record_bytes,
                        struct conn_landing *landing)
{
    struct reader r = reader_of(prefix, bytes);
    struct rpc_header header;
    struct request *request = request_new(conn_of(base));
    if (!request)
        return -ENOMEM;
    landing->token = request;
    request->pub.received_ns = atomic_load_explicit(&base->received_ns, memory_order_relaxed);
    int ret = rpc_decode_call(&r, &header, &request->pub.cred);
    if (ret == -EBADMSG) {
        base->why = "a record is not an RPC call";
    } else {
        request->pub.xid = header.xid;
        request->pub.procedure = header.procedure;
        judge(request, &header, ret);
        landing->skip = (uint32_t)(r.pos - prefix);
        ret = 0;
        if (request->verdict == SERVE)
            ret = request_land(request, r, record_bytes - landing->skip, landing);
    }
    if (ret < 0)
        base->ops->abandon(base, landing);
    return ret;
}

static void server_abandon(struct conn *base, struct conn_landing *landing)
{
    struct request *request = landing->token;
    (void)base;
    rpc_no_reply(&request->pub);
    request_unref(request);
}

/* --- running it ------------------------------------------------------------------------------- */

static void conn_live_drop(struct rpc_conn *conn)
{
    struct rpc_server *server = conn->server;
    if (--conn->live)
        return;
    hold_begin(&server->mutex);
    TAILQ_REMOVE(&server->conns, conn, link);
    server->conn_count--;
    fcond_wake_all(&server->ended);
    pthread_mutex_t *mutex = &server->mutex;
    hold_end(&mutex);
    rpc_conn_unref(conn);
}

static void request_run(struct request *request)
{
    request->procedure->handler(&request->pub);
    assert(request->is_answered); /* by rpc_reply_send, _error, _denied, or rpc_no_reply */
    request_unref(request);
}

static struct request *backlog_take(struct rpc_conn *conn)
{
    struct request *request = conn->backlog;
    if (!request)
        return NULL;
    conn->backlog = request->next;
    if (!conn->backlog)
        conn->backlog_last = &conn->backlog;
    conn->backlog_count--;
    struct fiber *waiting = TAKE(conn->waiting);
    if (waiting)
        fiber_wake(waiting);
    return request;
}

/* Serves one request, then those that waited for its place. */
static void request_fiber(void *arg)
{
    struct request *request = arg;
    struct rpc_conn *conn = request->pub.conn; /* there while it is live */
    for (; request; request = backlog_take(conn))
        request_run(request);
    conn->running--;
    conn_live_drop(conn);
}

static void blocking_fiber(void *arg)
{
    struct request *request = arg;
    struct rpc_conn *conn = request->pub.conn;
    request_run(request);
    conn->blocking--;
    conn_live_drop(conn);
}

/* No fiber, no place: the client hears it as a failure of the connection. */
static void request_fail(struct request *request, const char *why)
{
    struct rpc_server *server = request->pub.conn->server;
    server_log(warn, server, 0, "refusing a %s of %s: %s", request->procedure->name,
               request->pub.conn->conn.peer, why);
    rpc_reply_error(&request->pub, RPC_SYSTEM_ERR);
    request_unref(request);
}

static void request_start(struct request *request, fiber_fn *fn, unsigned *count)
{
    struct rpc_conn *conn = request->pub.conn;
    if (fiber_start(request->procedure->name, fn, request) < 0)
        return request_fail(request, "no fiber is left");
    ++*count;
    conn->live++;
}

static bool below_limit(const struct rpc_conn *conn)
{
    unsigned limit = atomic_load_explicit(&conn->server->outstanding_max, memory_order_relaxed);
    return limit == 0 || conn->running < limit;
}

static void request_admit(struct request *request)
{
    struct rpc_conn *conn = request->pub.conn;
    if (below_limit(conn))
        return request_start(request, request_fiber, &conn->running);
    *conn->backlog_last = request;
    conn->backlog_last = &request->next;
    conn->backlog_count++;
    while (conn->backlog_count >= BACKLOG_REQUESTS_MAX) { /* now the client is held up */
        conn->waiting = fiber_self();
        fiber_park("outstanding requests");
    }
}

static void request_refuse(struct request *request)
{
    if (request->verdict == IGNORE)
        rpc_no_reply(&request->pub);
    else if (request->verdict == DENY)
        rpc_reply_denied(&request->pub, request->reason);
    else
        rpc_reply_error(&request->pub, request->reason);
    request_unref(request);
}

static void server_deliver(struct conn *base, struct conn_landing *landing)
{
    struct request *request = landing->token;
    struct rpc_conn *conn = conn_of(base);
    if (request->verdict != SERVE)
        return request_refuse(request);
    if (request->procedure->flags & RPC_INLINE)
        return request_run(request);
    if (!(request->procedure->flags & RPC_BLOCKING))
        return request_admit(request);
    if (conn->blocking >= RPC_BLOCKING_MAX)
        return request_fail(request, "too many of its locks wait");
    request_start(request, blocking_fiber, &conn->blocking);
}

/* The backlog of a connection that is gone: nobody waits for it. */
static void server_ended(struct conn *base)
{
    struct rpc_conn *conn = conn_of(base);
    struct request *request;
    while ((request = backlog_take(conn))) {
        rpc_no_reply(&request->pub);
        request_unref(request);
    }
    if (conn->server->config.disconnected)
        conn->server->config.disconnected(conn);
    conn_live_drop(conn);
}

static const struct conn_ops server_ops = { server_place, server_deliver, server_abandon,
                                            server_ended };

/* --- connections ------------------------------------------------------------------------------ */

struct rpc_server *rpc_conn_server(struct rpc_conn *conn)
{
    return conn->server;
}

void *rpc_conn_user(struct rpc_conn *conn)
{
    return atomic_load(&conn->user);
}

void rpc_conn_set_user(struct rpc_conn *conn, void *user)
{
    atomic_store(&conn->user, user);
    conn->conn.record_bytes_max = user ? (uint32_t)CONN_RECORD_BYTES_MAX
                                       : conn->server->config.stranger_bytes_max;
}

const char *rpc_conn_peer(const struct rpc_conn *conn)
{
    return conn->conn.peer;
}

const struct env_address *rpc_conn_address(const struct rpc_conn *conn)
{
    return &conn->address;
}

uint16_t rpc_conn_port(const struct rpc_conn *conn)
{
    return conn->port;
}

bool rpc_conn_is_open(const struct rpc_conn *conn)
{
    return conn_is_open((struct conn *)(uintptr_t)&conn->conn);
}

void rpc_conn_counts(const struct rpc_conn *conn, uint64_t *ret_received, uint64_t *ret_sent)
{
    *ret_received = atomic_load_explicit(&conn->conn.received_bytes, memory_order_relaxed);
    *ret_sent = atomic_load_explicit(&conn->conn.sent_bytes, memory_order_relaxed);
}

void rpc_conn_close(struct rpc_conn *conn)
{
    conn_close(&conn->conn);
}

struct rpc_conn *rpc_conn_ref(struct rpc_conn *conn)
{
    atomic_fetch_add_explicit(&conn->refs, 1, memory_order_relaxed);
    return conn;
}

void rpc_conn_unref(struct rpc_conn *conn)
{
    if (!conn || atomic_fetch_sub_explicit(&conn->refs, 1, memory_order_acq_rel) != 1)
        return;
    conn_fini(&conn->conn);
    free(conn);
}

static void callback_done(struct conn_message *message)
{
    conn_message_fini(message);
    free(message);
}

int rpc_callback(struct rpc_conn *conn, uint32_t program, uint32_t version, uint32_t procedure,
                 const void *body, uint32_t bytes)
{
    static const struct rpc_cred nobody = { .flavor = RPC_AUTH_NONE };
    if (conn_queue_bytes(&conn->conn) > CONN_CALLBACKS_QUEUE_BYTES_MAX)
        return -ENOBUFS;
    struct conn_message *message = malloc(sizeof(*message));
    if (!message)
        return -ENOMEM;
    conn_message_init(message, callback_done);
    rpc_encode_call(&message->head, ++conn->callback_xid, program, version, procedure, &nobody);
    writer_raw(&message->head, body, bytes);
    if (!writer_ok(&message->head)) {
        callback_done(message);
        return -ENOMEM;
    }
    return conn_send(&conn->conn, message);
}

static uint16_t port_of(const struct env_address *address)
{
    if (address->sockaddr.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&address->sockaddr)->sin_port);
    if (address->sockaddr.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&address->sockaddr)->sin6_port);
    return 0;
}

static struct rpc_conn *conn_new(struct rpc_server *server, int fd, const struct env_address *peer)
{
    struct rpc_conn *conn = calloc(1, sizeof(*conn));
    if (!conn || conn_init(&conn->conn, fd, &server_ops, server->config.log,
                           server->config.name) < 0) {
        free(conn);
        (void)env_close(fd); /* nothing was sent */
        return NULL;
    }
    conn->server = server;
    conn->refs = 1;
    conn->live = 1;
    conn->address = *peer;
    conn->port = port_of(peer);
    conn->backlog_last = &conn->backlog;
    conn->conn.record_bytes_max = server->config.stranger_bytes_max;
    env_address_format(peer, conn->conn.peer, sizeof(conn->conn.peer));
    return conn;
}

/* Its first steps, on its own lane: connected() before any request. */
static void conn_begin(void *arg)
{
    struct rpc_conn *conn = arg;
    struct rpc_server *server = conn->server;
    if (server->config.connected)
        server->config.connected(conn);
    if (conn_start(&conn->conn, lane_self()) < 0) {
        server_log(warn, server, -ENOMEM, "cannot serve %s", conn->conn.peer);
        server_ended(&conn->conn);
    }
}

/* Into the list, unless the server stops or is full. */
static int conn_enlist(struct rpc_server *server, struct rpc_conn *conn)
{
    HOLD(&server->mutex);
    if (server->stopping)
        return -ESHUTDOWN;
    if (server->conn_count >= CONNECTIONS_MAX)
        return -EUSERS;
    TAILQ_INSERT_TAIL(&server->conns, conn, link);
    server->conn_count++;
    return 0;
}

static void conn_accepted(struct rpc_server *server, int fd, const struct env_address *peer)
{
    const struct rpc_server_config *config = &server->config;
    if (peer->sockaddr.ss_family != AF_UNIX &&
        env_tcp_options(fd, config->keepalive_s, config->keepalive_interval_s,
                        config->keepalive_count, config->user_timeout_s) < 0)
        server_log(debug, server, 0, "a connection goes without its socket options");
    struct rpc_conn *conn = conn_new(server, fd, peer);
    if (!conn)
        return;
    int ret = conn_enlist(server, conn);
    if (ret < 0) {
        server_log(warn, server, ret, "refusing the connection from %s", conn->conn.peer);
        rpc_conn_unref(conn);
        return;
    }
    struct lane *lane = lane_get(server->next_lane++ % lanes_count());
    if (fiber_start_on(lane, "rpc-accepted", conn_begin, conn) < 0) {
        server_log(warn, server, -ENOMEM, "cannot serve %s", conn->conn.peer);
        conn_live_drop(conn);
    }
}

/* --- the server ------------------------------------------------------------------------------- */

int rpc_server_new(const struct rpc_server_config *config, struct rpc_server **ret_server)
{
    struct rpc_server *server = calloc(1, sizeof(*server));
    if (!server)
        return -ENOMEM;
    server->config = *config;
    if (server->config.stranger_bytes_max == 0)
        server->config.stranger_bytes_max = RPC_STRANGER_BYTES_DEFAULT;
    server->outstanding_max = config->outstanding_max;
    server->refuse_insecure = config->refuse_insecure;
    pthread_mutex_init(&server->mutex, NULL);
    TAILQ_INIT(&server->conns);
    fcond_init(&server->ended);
    server->programs[server->program_count++] = &dump_program;
    *ret_server = server;
    return 0;
}

int rpc_server_register(struct rpc_server *server, const struct rpc_program *program)
{
    for (unsigned i = 0; i < server->program_count; i++)
        if (server->programs[i]->number == program->number &&
            server->programs[i]->version == program->version)
            return -EEXIST;
    if (server->program_count == PROGRAMS_MAX)
        return -E2BIG;
    server->programs[server->program_count++] = program;
    return 0;
}

static bool is_stopping(struct rpc_server *server)
{
    HOLD(&server->mutex);
    return server->stopping;
}

static void listen_end(struct listener *listener)
{
    struct rpc_server *server = listener->server;
    HOLD(&server->mutex);
    if (listener->fd >= 0)
        (void)env_close(TAKE_FD(listener->fd)); /* nothing was written to it */
    server->listeners_running--;
    fcond_wake_all(&server->ended);
}

static void accept_fiber(void *arg)
{
    struct listener *listener = arg;
    struct rpc_server *server = listener->server;
    while (!is_stopping(server)) {
        struct env_address peer;
        int fd = env_accept(listener->fd, &peer);
        if (fd >= 0) {
            conn_accepted(server, fd, &peer);
        } else if (!is_stopping(server)) {
            server_log(warn, server, fd, "cannot accept a connection: trying again");
            env_sleep(100 * NS_PER_MS); /* out of descriptors: others have to end first */
        }
    }
    listen_end(listener);
}

int rpc_server_listen(struct rpc_server *server, const struct env_address *address)
{
    AUTO_FD fd = env_listen(address, server->config.backlog ? server->config.backlog
                                                            : BACKLOG_DEFAULT);
    if (fd < 0)
        return fd;
    HOLD(&server->mutex);
    if (server->stopping || server->listener_count == LISTENERS_MAX)
        return server->stopping ? -ESHUTDOWN : -E2BIG;
    struct listener *listener = &server->listeners[server->listener_count];
    *listener = (struct listener){ .server = server, .fd = fd };
    int ret = fiber_start("rpc-accept", accept_fiber, listener);
    if (ret < 0)
        return ret;
    (void)TAKE_FD(fd);
    server->listener_count++;
    server->listeners_running++;
    return 0;
}

int rpc_server_address(struct rpc_server *server, struct env_address *ret_address)
{
    HOLD(&server->mutex);
    if (server->listener_count == 0)
        return -ENOENT;
    return env_local_address(server->listeners[0].fd, ret_address);
}

void rpc_server_stop(struct rpc_server *server)
{
    struct rpc_conn *conn;
    if (!server)
        return;
    HOLD(&server->mutex);
    server->stopping = true;
    for (unsigned i = 0; i < server->listener_count; i++)
        if (server->listeners[i].fd >= 0)
            (void)env_shutdown(server->listeners[i].fd); /* wakes its fiber */
    TAILQ_FOREACH(conn, &server->conns, link)
        conn_close(&conn->conn);
    while (server->listeners_running || server->conn_count)
        fcond_wait(&server->ended, &server->mutex, "connections to end");
}

void rpc_server_free(struct rpc_server *server)
{
    if (!server)
        return;
    assert(!server->listeners_running && server->conn_count == 0); /* rpc_server_stop first */
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

void *rpc_server_arg(struct rpc_server *server)
{
    return server->config.arg;
}

void rpc_server_set_outstanding(struct rpc_server *server, unsigned outstanding_max)
{
    atomic_store(&server->outstanding_max, outstanding_max);
}

void rpc_server_set_insecure(struct rpc_server *server, bool refuse_insecure)
{
    atomic_store(&server->refuse_insecure, refuse_insecure);
}

/* The connections are referenced first: fn may wait, or end one. */
void rpc_server_each(struct rpc_server *server, void (*fn)(struct rpc_conn *conn, void *arg),
                     void *arg)
{
    struct rpc_conn *conn, **conns;
    unsigned count = 0;
    hold_begin(&server->mutex);
    conns = calloc(server->conn_count + 1, sizeof(*conns));
    if (conns)
        TAILQ_FOREACH(conn, &server->conns, link)
            conns[count++] = rpc_conn_ref(conn);
    pthread_mutex_t *mutex = &server->mutex;
    hold_end(&mutex);
    for (unsigned i = 0; i < count; i++) {
        fn(conns[i], arg);
        rpc_conn_unref(conns[i]);
    }
    free(conns);
}
