/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A call is referenced by its caller, by the table of outstanding calls (or by the reader, while
 * its answer lands), and by its message until that was sent. The client's mutex protects the table,
 * the current link and every call's state; it is held for a few lines, and before a connection's
 * mutex.
 *
 *   NEW --enter--> PENDING --place--> LANDING --deliver--> DONE
 *                     |                  `--- abandon ------^ -ENOTCONN
 *                     `--- disconnect, timeout, cancel -----^
 *
 * Whoever makes a call DONE takes its waiter and wakes it, both under the mutex; so a caller whose
 * own time came first and that finds its waiter gone has a wake to consume. A cancelled call with a
 * `late` hook stays in the table, without a waiter. */
#include "rpc/client.h"

#include <netinet/in.h>
#include <stdatomic.h>

#include "rpc/conn.h"
#include "rpc/slab.h"

enum {
    BUCKETS = 512, /* power of two */
    ANSWER_ROOM = 2048,
    CALLBACK_BYTES_MAX = 1 << 20,
    CALLBACKS_WAITING_MAX = 1024,
    XID_FIRST = 2,
    XID_OFFSET = 4, /* in a message: after the record mark */
    HIGH_PORT_MAX = 49151,
    LOW_PORT_MAX = 1023,
    PORT_TRIES_MAX = 2048,
};
#define FRAME_TIMEOUT_DEFAULT_NS (1800 * NS_PER_S)

enum call_state { CALL_NEW, CALL_PENDING, CALL_LANDING, CALL_DONE };

struct call {
    struct rpc_call pub; /* first */
    struct call *next;   /* in its bucket */
    struct link *link;   /* while in the table, or landing */
    _Atomic unsigned refs;
    uint32_t xid;
    enum call_state state;
    struct fiber *waiter, *sent_waiter;
    int result, late_result;
    bool is_ping, is_sent, has_borrowed;
    bool is_alone;     /* rpc_call_send: nobody waits */
    bool is_cancelled; /* before it was entered */
    bool is_late;      /* its end goes to late */
    uint64_t started_ns;
    uint8_t *answer_heap;
    struct conn_message message;
    uint8_t answer_room[ANSWER_ROOM];
};
static struct slab calls = SLAB_OF(struct call);

struct callback {
    struct callback *next;
    struct rpc_header header;
    uint32_t bytes;
    uint8_t body[];
};

/* A connection's life. Callbacks belong to its lane. */
struct link {
    struct conn conn;
    struct rpc_client *client;
    _Atomic unsigned refs;
    uint32_t generation;
    bool ended, ping_in_flight; /* client's mutex */
    uint64_t ping_due_ns, ping_sent_ns;
    struct fcond watch;
    struct callback *callbacks, **callbacks_last;
    unsigned callback_count;
    bool callbacks_run;
};

struct rpc_client {
    struct rpc_client_config config;
    pthread_mutex_t mutex; /* what follows */
    struct link *link;     /* NULL: not connected */
    unsigned links;        /* not yet freed */
    uint32_t generation, next_xid;
    uint32_t frames, outstanding; /* in the table: without pings; all */
    uint64_t frame_timeout_ns, ping_timeout_ns, last_ping_ns;
    bool is_connecting;
    struct fcond link_ended;
    struct call *buckets[BUCKETS];
    char peer[112];
};

#define client_log(level, client, ret, ...)                                                        \
    ((client)->config.log ? log_##level((client)->config.log, ret, __VA_ARGS__)                    \
                          : log_##level((client)->config.name, ret, __VA_ARGS__))

static void client_unhold(struct rpc_client *client)
{
    pthread_mutex_t *mutex = &client->mutex;
    hold_end(&mutex);
}

/* --- links ------------------------------------------------------------------------------------ */

static struct link *link_ref(struct link *link)
{
    atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
    return link;
}

static void link_unref(struct link *link)
{
    if (!link || atomic_fetch_sub_explicit(&link->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct rpc_client *client = link->client;
    for (struct callback *next; link->callbacks; link->callbacks = next) {
        next = link->callbacks->next;
        free(link->callbacks);
    }
    conn_fini(&link->conn);
    free(link);
    HOLD(&client->mutex);
    client->links--;
    fcond_wake_all(&client->link_ended);
}
AUTO_DEFINE(link, link_unref)

static struct link *client_link(struct rpc_client *client)
{
    HOLD(&client->mutex);
    return client->link ? link_ref(client->link) : NULL;
}

/* --- calls ------------------------------------------------------------------------------------ */

static struct call *call_of(struct rpc_call *call)
{
    return container_of(call, struct call, pub);
}

static void call_unref(struct call *call)
{
    if (!call || atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) != 1)
        return;
    conn_message_fini(&call->message);
    payload_fini(&call->pub.bulk);
    free(call->answer_heap);
    slab_put(&calls, call);
}

static void call_ref(struct call *call)
{
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
}

static void message_done(struct conn_message *message)
{
    struct call *call = container_of(message, struct call, message);
    payload_fini(&message->payload); /* buffers go back now, the answer may take a while */
    if (call->has_borrowed) {
        HOLD(&call->pub.client->mutex);
        call->is_sent = true;
        if (call->sent_waiter)
            fiber_wake(TAKE(call->sent_waiter));
    }
    call_unref(call);
}

struct rpc_call *rpc_call_new(struct rpc_client *client, uint32_t program, uint32_t version,
                              uint32_t procedure, const struct rpc_cred *cred)
{
    struct call *call = slab_get(&calls);
    if (!call)
        return NULL;
    memset(&call->pub, 0, offsetof(struct rpc_call, bulk));
    call->pub.bulk.segs = call->pub.bulk.bytes = 0;
    call->pub.accept = 0;
    call->pub.client = client;
    memset((char *)call + offsetof(struct call, next), 0,
           offsetof(struct call, message) - offsetof(struct call, next));
    call->refs = 1;
    conn_message_init(&call->message, message_done);
    rpc_encode_call(&call->message.head, 0, program, version, procedure, cred);
    return &call->pub;
}

struct writer *rpc_call_writer(struct rpc_call *call)
{
    return &call_of(call)->message.head;
}

void rpc_call_add_payload(struct rpc_call *pub, const struct payload *payload)
{
    struct call *call = call_of(pub);
    assert(call->state == CALL_NEW && call->message.payload.segs == 0);
    payload_ref(&call->message.payload, payload);
    for (uint32_t i = 0; i < payload->segs; i++)
        call->has_borrowed |= !payload->buf[i];
}

void rpc_call_free(struct rpc_call *call)
{
    if (call)
        call_unref(call_of(call));
}

/* --- the table -------------------------------------------------------------------------------- */

static struct call **bucket_of(struct rpc_client *client, uint32_t xid)
{
    return &client->buckets[xid & (BUCKETS - 1)];
}

/* Into the table, which references it; gives it its xid. */
static void table_add_locked(struct rpc_client *client, struct link *link, struct call *call)
{
    call->xid = client->next_xid++;
    call->link = link;
    call->state = CALL_PENDING;
    call->started_ns = env_now_ns();
    call->next = *bucket_of(client, call->xid);
    *bucket_of(client, call->xid) = call;
    call_ref(call);
    client->outstanding++;
    if (!call->is_ping && client->frames++ == 0)
        fcond_wake_all(&link->watch);
}

/* Out of the table; its reference is the caller's now. */
static void table_remove_locked(struct rpc_client *client, struct call *call)
{
    struct call **at = bucket_of(client, call->xid);
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    client->outstanding--;
    client->frames -= !call->is_ping;
}

static struct call *table_find_locked(struct rpc_client *client, const struct link *link,
                                      uint32_t xid)
{
    struct call *call = *bucket_of(client, xid);
    while (call && (call->xid != xid || call->link != link))
        call = call->next;
    return call;
}

static void late_fiber(void *arg)
{
    struct call *call = arg;
    call->pub.late(&call->pub, call->late_result);
    call_unref(call);
}

static void ping_done_locked(struct call *call)
{
    struct rpc_client *client = call->pub.client;
    uint64_t now = env_now_ns();
    call->link->ping_in_flight = false;
    call->link->ping_due_ns = now + client->ping_timeout_ns;
    client->last_ping_ns = now - call->started_ns;
}

/* The call, out of the table, is through. Takes over the reference that the table had. */
static void call_finish_locked(struct call *call, int result)
{
    call->state = CALL_DONE;
    if (call->is_ping)
        ping_done_locked(call);
    call->link = NULL;
    if (call->waiter) {
        call->result = result;
        fiber_wake(TAKE(call->waiter));
    } else if (call->is_late) {
        call->late_result = result;
        if (fiber_start("rpc-late", late_fiber, call) == 0)
            return; /* with the reference */
        client_log(warn, call->pub.client, -ENOMEM, "cannot look at a late answer");
    }
    call_unref(call);
}

/* The caller gives up: an answer is dropped, or goes to late (when there may be one). */
static void call_abandon_locked(struct call *call, bool is_answer_possible)
{
    call->waiter = NULL;
    call->is_late = call->pub.late && is_answer_possible;
    if (call->state != CALL_PENDING || call->is_late)
        return;
    table_remove_locked(call->pub.client, call);
    call->state = CALL_DONE;
    call_unref(call);
}

/* --- a call's run ----------------------------------------------------------------------------- */

static int call_enter(struct call *call, struct link *link)
{
    struct rpc_client *client = call->pub.client;
    HOLD(&client->mutex);
    if (client->link != link || link->ended)
        return -ENOTCONN;
    if (call->is_cancelled)
        return -EINTR;
    if (!call->is_alone)
        call->waiter = fiber_self();
    call->is_late = call->is_alone && call->pub.late;
    table_add_locked(client, link, call);
    writer_patch_u32(&call->message.head, XID_OFFSET, call->xid);
    return 0;
}

/* What the waiter has to do when it stops waiting on its own account. */
static int call_give_up(struct call *call, int ret)
{
    bool was_woken;
    hold_begin(&call->pub.client->mutex);
    was_woken = !call->waiter;
    if (!was_woken)
        call_abandon_locked(call, ret == -ETIMEDOUT);
    client_unhold(call->pub.client);
    if (!was_woken)
        return ret;
    fiber_park("rpc answer"); /* the wake is there already */
    return call->result;
}

static int call_wait(struct call *call)
{
    if (!call->pub.until_ns) {
        fiber_park("rpc answer");
        return call->result;
    }
    int ret = fiber_park_until("rpc answer", call->pub.until_ns);
    return ret < 0 ? call_give_up(call, ret) : call->result;
}

/* The caller's borrowed memory must not be read after it has its answer. */
static void wait_sent(struct call *call, struct link *link)
{
    if (!call->has_borrowed || conn_unsend(&link->conn, &call->message))
        return;
    hold_begin(&call->pub.client->mutex);
    bool is_sent = call->is_sent;
    if (!is_sent)
        call->sent_waiter = fiber_self();
    client_unhold(call->pub.client);
    if (!is_sent)
        fiber_park("rpc send");
}

/* Sends the entered call and waits for its end. */
static int call_exchange(struct call *call, struct link *link)
{
    call_ref(call); /* the message's */
    int ret = conn_send(&link->conn, &call->message);
    ret = ret < 0 ? call_give_up(call, ret) : call_wait(call);
    wait_sent(call, link);
    return ret;
}

int rpc_call_run(struct rpc_call *pub)
{
    struct call *call = call_of(pub);
    AUTO(link) link = client_link(pub->client);
    assert(call->state == CALL_NEW);
    if (!link || (pub->generation && pub->generation != link->generation))
        return -ENOTCONN;
    if (!writer_ok(&call->message.head))
        return -ENOMEM;
    int ret = pub->bulk_max ? payload_alloc(&pub->bulk, pub->bulk_max) : 0;
    if (ret == 0)
        ret = conn_wait_room(&link->conn);
    if (ret == 0)
        ret = call_enter(call, link);
    return ret == 0 ? call_exchange(call, link) : ret;
}

int rpc_call_send(struct rpc_call *pub)
{
    struct call *call = call_of(pub);
    AUTO(link) link = client_link(pub->client);
    int ret = -ENOTCONN;
    assert(!call->has_borrowed && !pub->bulk_max); /* nobody waits for these */
    call->is_alone = true;
    if (link && (!pub->generation || pub->generation == link->generation))
        ret = writer_ok(&call->message.head) ? call_enter(call, link) : -ENOMEM;
    if (ret == 0) {
        call_ref(call);                                /* the message's */
        (void)conn_send(&link->conn, &call->message); /* closing: its end fails the call */
    }
    call_unref(call);
    return ret;
}

bool rpc_call_is_late(const struct rpc_call *pub)
{
    return container_of(pub, const struct call, pub)->is_late;
}

void rpc_call_cancel(struct rpc_call *pub)
{
    struct call *call = call_of(pub);
    HOLD(&pub->client->mutex);
    call->is_cancelled = true;
    if (!call->waiter)
        return;
    struct fiber *waiter = call->waiter;
    call->result = -EINTR;
    call_abandon_locked(call, true);
    fiber_wake(waiter);
}

/* --- receiving -------------------------------------------------------------------------------- */

static struct link *link_of(struct conn *conn)
{
    return container_of(conn, struct link, conn);
}

/* Which of rest bytes are the body's; the others are bulk. */
static uint32_t answer_body_bytes(const struct rpc_call *call, struct reader begin, uint32_t rest)
{
    uint32_t size;
    uint64_t bytes;
    if (!call->bulk_fixed || reader_left(&begin) < (size_t)call->bulk_size_at + 4)
        return rest;
    begin.pos += call->bulk_size_at;
    if (reader_u32(&begin, &size) < 0)
        return rest;
    bytes = call->bulk_fixed + (((uint64_t)size + 3) & ~3ull);
    return bytes > rest ? rest : (uint32_t)bytes;
}

static int answer_land(struct call *call, struct reader begin, uint32_t rest, struct conn *conn,
                       struct conn_landing *landing)
{
    uint32_t bytes = answer_body_bytes(&call->pub, begin, rest);
    if (bytes > CONN_BODY_BYTES_MAX || rest - bytes > call->pub.bulk_max) {
        conn->why = "an answer is larger than what was asked for";
        return -E2BIG;
    }
    if (bytes > ANSWER_ROOM)
        call->answer_heap = malloc(bytes);
    if (bytes > ANSWER_ROOM && !call->answer_heap)
        return -ENOMEM;
    if (call->pub.bulk_max)
        payload_truncate(&call->pub.bulk, rest - bytes);
    landing->body = call->answer_heap ? call->answer_heap : call->answer_room;
    landing->body_bytes = bytes;
    landing->payload = rest > bytes ? &call->pub.bulk : NULL;
    call->pub.body = reader_of(landing->body, bytes);
    return 0;
}

/* The call that an answer is for, marked as landing; NULL: nobody waits for it any more. */
static struct call *answer_claim(struct link *link, uint32_t xid)
{
    HOLD(&link->client->mutex);
    struct call *call = table_find_locked(link->client, link, xid);
    if (!call)
        return NULL;
    table_remove_locked(link->client, call);
    call->state = CALL_LANDING;
    return call;
}

static void answer_finish(struct call *call, int result)
{
    struct rpc_client *client = call->pub.client;
    HOLD(&client->mutex);
    call_finish_locked(call, result);
}

static int answer_place(struct link *link, struct reader r, uint32_t record_bytes,
                        struct conn_landing *landing)
{
    uint8_t *begin = r.pos;
    uint32_t xid;
    int accept = 0, ret = rpc_decode_reply(&r, &xid, &accept);
    if (ret == -EBADMSG) {
        link->conn.why = "a record is not an RPC reply";
        return ret;
    }
    struct call *call = answer_claim(link, xid);
    landing->token = call;
    if (!call)
        return 0;
    if (ret < 0) {
        call->pub.accept = accept;
        return 0; /* no body: deliver says -EREMOTEIO */
    }
    landing->skip = (uint32_t)(r.pos - begin);
    ret = answer_land(call, r, record_bytes - landing->skip, &link->conn, landing);
    if (ret < 0)
        answer_finish(call, -ENOTCONN);
    return ret;
}

static int callback_place(struct link *link, struct reader r, uint32_t record_bytes,
                          struct conn_landing *landing)
{
    uint8_t *begin = r.pos;
    struct rpc_header header;
    struct rpc_cred cred;
    int ret = rpc_decode_call(&r, &header, &cred);
    if (ret == -EACCES)
        ret = -EBADMSG;
    uint32_t skip = (uint32_t)(r.pos - begin), bytes = record_bytes - skip;
    if (ret == 0 && (bytes > CALLBACK_BYTES_MAX || link->callback_count >= CALLBACKS_WAITING_MAX))
        ret = -E2BIG;
    if (ret < 0) {
        link->conn.why = ret == -E2BIG ? "too many or too large callbacks" : "a bad callback";
        return ret;
    }
    struct callback *callback = malloc(sizeof(*callback) + bytes);
    if (!callback)
        return -ENOMEM;
    *callback = (struct callback){ .header = header, .bytes = bytes };
    *landing = (struct conn_landing){ .skip = skip, .body = callback->body, .body_bytes = bytes,
                                      .token = callback };
    return 0;
}

static bool is_callback(const struct conn_landing *landing)
{
    const struct callback *callback = landing->token;
    return landing->body && landing->body == callback->body;
}

static int client_place(struct conn *conn, uint8_t *prefix, uint32_t bytes, uint32_t record_bytes,
                        struct conn_landing *landing)
{
    struct reader r = reader_of(prefix, bytes), peek = r;
    uint32_t xid, type;
    if (reader_u32(&peek, &xid) < 0 || reader_u32(&peek, &type) < 0) {
        conn->why = "a record without a header";
        return -EBADMSG;
    }
    return type == 0 ? callback_place(link_of(conn), r, record_bytes, landing)
                     : answer_place(link_of(conn), r, record_bytes, landing);
}

static void callbacks_fiber(void *arg)
{
    struct link *link = arg;
    struct rpc_client *client = link->client;
    struct callback *callback;
    while ((callback = link->callbacks)) {
        link->callbacks = callback->next;
        if (!link->callbacks)
            link->callbacks_last = &link->callbacks;
        struct reader body = reader_of(callback->body, callback->bytes);
        if (client->config.callback)
            client->config.callback(client, &callback->header, &body);
        free(callback);
        link->callback_count--;
    }
    link->callbacks_run = false;
    link_unref(link);
}

static void callback_deliver(struct link *link, struct callback *callback)
{
    *link->callbacks_last = callback;
    link->callbacks_last = &callback->next;
    link->callback_count++;
    if (link->callbacks_run || fiber_start("rpc-callbacks", callbacks_fiber, link) < 0)
        return; /* the next one tries again */
    link->callbacks_run = true;
    link_ref(link);
}

static void client_deliver(struct conn *conn, struct conn_landing *landing)
{
    if (is_callback(landing))
        callback_deliver(link_of(conn), landing->token);
    else if (landing->token)
        answer_finish(landing->token, landing->body ? 0 : -EREMOTEIO);
}

static void client_abandon(struct conn *conn, struct conn_landing *landing)
{
    (void)conn;
    if (is_callback(landing))
        free(landing->token);
    else if (landing->token)
        answer_finish(landing->token, -ENOTCONN);
}

static void fail_all_locked(struct rpc_client *client, const struct link *link)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct call *next, *call = client->buckets[i]; call; call = next) {
            next = call->next;
            if (call->link != link)
                continue;
            table_remove_locked(client, call);
            call_finish_locked(call, -ENOTCONN);
        }
    }
}

static void client_ended(struct conn *conn)
{
    struct link *link = link_of(conn);
    struct rpc_client *client = link->client;
    hold_begin(&client->mutex);
    link->ended = true;
    if (client->link == link)
        client->link = NULL;
    fail_all_locked(client, link);
    fcond_wake_all(&link->watch);
    client_unhold(client);
    if (client->config.disconnected)
        client->config.disconnected(client);
    link_unref(link);
}

static const struct conn_ops client_ops = { client_place, client_deliver, client_abandon,
                                            client_ended };

/* --- the watch: pings and time-outs ----------------------------------------------------------- */

static void ping_send_locked(struct rpc_client *client, struct link *link)
{
    struct rpc_cred cred = { .flavor = RPC_AUTH_V2 };
    struct rpc_call *pub = rpc_call_new(client, RPC_DUMP_PROGRAM, RPC_DUMP_VERSION, RPC_DUMP_PING,
                                        &cred);
    if (!pub)
        return; /* the next tick tries again */
    struct call *call = call_of(pub);
    call->is_ping = call->is_alone = true;
    table_add_locked(client, link, call);
    writer_patch_u32(&call->message.head, XID_OFFSET, call->xid);
    link->ping_in_flight = true;
    link->ping_sent_ns = call->started_ns;
    (void)conn_send(&link->conn, &call->message); /* with our reference; a closing link fails it */
}

static void watch_ping_locked(struct rpc_client *client, struct link *link, uint64_t now)
{
    uint64_t heard = MAX(atomic_load_explicit(&link->conn.received_ns, memory_order_relaxed),
                         atomic_load_explicit(&link->conn.sent_ns, memory_order_relaxed));
    heard = MAX(heard, link->ping_sent_ns);
    if (!link->ping_in_flight) {
        if (client->frames && now >= link->ping_due_ns)
            ping_send_locked(client, link);
    } else if (now > heard && now - heard >= client->ping_timeout_ns) {
        client_log(critical, client, 0, "%s has not responded in the last %llu seconds, "
                   "disconnecting.", client->peer,
                   (unsigned long long)(client->ping_timeout_ns / NS_PER_S));
        conn_close(&link->conn);
    }
}

static void watch_frames_locked(struct rpc_client *client, const struct link *link, uint64_t now)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct call *next, *call = client->buckets[i]; call; call = next) {
            next = call->next;
            if (call->link != link || call->is_ping ||
                now - call->started_ns < client->frame_timeout_ns || now < call->started_ns)
                continue;
            client_log(error, client, 0,
                       "no answer to xid %u from %s in %llu seconds: the call fails", call->xid,
                       client->peer, (unsigned long long)(client->frame_timeout_ns / NS_PER_S));
            table_remove_locked(client, call);
            call_finish_locked(call, -ENOTCONN);
        }
    }
}

static void watch_fiber(void *arg)
{
    struct link *link = arg;
    struct rpc_client *client = link->client;
    hold_begin(&client->mutex);
    while (!link->ended) {
        if (client->outstanding == 0) {
            fcond_wait(&link->watch, &client->mutex, "rpc calls to watch");
            continue;
        }
        uint64_t now = env_now_ns(), tick = NS_PER_S;
        if (client->ping_timeout_ns) {
            tick = MIN(tick, client->ping_timeout_ns / 4);
            watch_ping_locked(client, link, now);
        }
        watch_frames_locked(client, link, now);
        int ret = fcond_wait_until(&link->watch, &client->mutex, "rpc time-outs", now + tick);
        (void)ret; /* woken or late: both mean, look again */
    }
    client_unhold(client);
    link_unref(link);
}

/* --- connecting ------------------------------------------------------------------------------- */

static void set_port(struct env_address *address, uint16_t port)
{
    if (address->sockaddr.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&address->sockaddr)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)&address->sockaddr)->sin6_port = htons(port);
}

/* From the highest free local port in [low, high] (spec/wire.md 1.6). -EADDRINUSE: none is. */
static int connect_from(const struct env_address *address, uint16_t high, uint16_t low,
                        uint64_t until_ns)
{
    struct env_address local = { .bytes = address->bytes };
    local.sockaddr.ss_family = address->sockaddr.ss_family;
    int ret = -EADDRINUSE;
    for (unsigned port = high, tries = 0; port >= low && tries < PORT_TRIES_MAX; port--, tries++) {
        set_port(&local, (uint16_t)port);
        ret = env_connect(address, &local, until_ns);
        if (ret != -EADDRINUSE && ret != -EADDRNOTAVAIL)
            break;
    }
    return ret == -EADDRNOTAVAIL ? -EADDRINUSE : ret;
}

static int connect_bound(const struct env_address *address, enum rpc_bind bind, uint64_t until_ns)
{
    int ret = -EADDRINUSE;
    bool is_inet = address->sockaddr.ss_family == AF_INET ||
                   address->sockaddr.ss_family == AF_INET6;
    if (is_inet && bind == RPC_BIND_LOW)
        ret = connect_from(address, LOW_PORT_MAX, 1, until_ns);
    if (is_inet && (bind == RPC_BIND_HIGH || ret == -EACCES) && bind != RPC_BIND_ANY)
        ret = connect_from(address, HIGH_PORT_MAX, LOW_PORT_MAX + 1, until_ns);
    if (ret == -EADDRINUSE || ret == -EACCES)
        ret = env_connect(address, NULL, until_ns);
    return ret;
}

static struct link *link_new(struct rpc_client *client, int fd)
{
    struct link *link = calloc(1, sizeof(*link));
    if (!link || conn_init(&link->conn, fd, &client_ops, client->config.log,
                           client->config.name) < 0) {
        free(link);
        (void)env_close(fd); /* nothing was sent */
        return NULL;
    }
    link->client = client;
    link->refs = 1;
    link->callbacks_last = &link->callbacks;
    fcond_init(&link->watch);
    return link;
}

static void link_install(struct rpc_client *client, struct link *link,
                         const struct env_address *address)
{
    HOLD(&client->mutex);
    env_address_format(address, client->peer, sizeof(client->peer));
    memcpy(link->conn.peer, client->peer, sizeof(client->peer));
    client->links++;
    if (++client->generation == 0)
        client->generation = 1;
    link->generation = client->generation;
    client->link = link;
}

static void link_uninstall(struct rpc_client *client, struct link *link)
{
    HOLD(&client->mutex);
    link->ended = true;
    client->link = NULL;
    fail_all_locked(client, link);
    fcond_wake_all(&link->watch);
}

static int link_start(struct rpc_client *client, struct link *link)
{
    struct lane *lane = client->config.lane ? client->config.lane : lane_self();
    link_ref(link);
    int ret = fiber_start_on(lane, "rpc-watch", watch_fiber, link);
    if (ret < 0)
        link_unref(link);
    else
        ret = conn_start(&link->conn, lane);
    if (ret < 0)
        link_uninstall(client, link);
    return ret;
}

static int connect_link(struct rpc_client *client, const struct env_address *address,
                        enum rpc_bind bind, uint64_t until_ns)
{
    const struct rpc_client_config *config = &client->config;
    int fd = connect_bound(address, bind, until_ns);
    if (fd < 0)
        return fd;
    if (address->sockaddr.ss_family != AF_UNIX &&
        env_tcp_options(fd, config->keepalive_s, config->keepalive_interval_s,
                        config->keepalive_count, config->user_timeout_s) < 0)
        client_log(debug, client, 0, "the connection goes without its socket options");
    struct link *link = link_new(client, fd);
    if (!link)
        return -ENOMEM;
    link_install(client, link, address);
    int ret = link_start(client, link);
    if (ret < 0)
        link_unref(link);
    return ret;
}

int rpc_client_connect(struct rpc_client *client, const struct env_address *address,
                       enum rpc_bind bind, uint64_t until_ns)
{
    hold_begin(&client->mutex);
    bool is_busy = client->link || client->is_connecting;
    if (!is_busy)
        client->is_connecting = true;
    client_unhold(client);
    if (is_busy)
        return -EISCONN;
    int ret = connect_link(client, address, bind, until_ns);
    HOLD(&client->mutex);
    client->is_connecting = false;
    return ret;
}

/* --- the client ------------------------------------------------------------------------------- */

int rpc_client_new(const struct rpc_client_config *config, struct rpc_client **ret_client)
{
    struct rpc_client *client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    client->config = *config;
    client->frame_timeout_ns = config->frame_timeout_ns ? config->frame_timeout_ns
                                                        : FRAME_TIMEOUT_DEFAULT_NS;
    client->ping_timeout_ns = config->ping_timeout_ns;
    client->next_xid = XID_FIRST;
    pthread_mutex_init(&client->mutex, NULL);
    fcond_init(&client->link_ended);
    *ret_client = client;
    return 0;
}

void rpc_client_disconnect(struct rpc_client *client)
{
    struct link *link = client_link(client);
    if (link)
        conn_close(&link->conn);
    link_unref(link);
}

void rpc_client_disconnect_wait(struct rpc_client *client)
{
    rpc_client_disconnect(client);
    HOLD(&client->mutex);
    while (client->links)
        fcond_wait(&client->link_ended, &client->mutex, "a connection's end");
}

void rpc_client_free(struct rpc_client *client)
{
    if (!client)
        return;
    rpc_client_disconnect_wait(client);
    assert(client->outstanding == 0);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

void *rpc_client_arg(struct rpc_client *client)
{
    return client->config.arg;
}

bool rpc_client_is_connected(struct rpc_client *client)
{
    return rpc_client_generation(client) != 0;
}

uint32_t rpc_client_generation(struct rpc_client *client)
{
    HOLD(&client->mutex);
    return client->link ? client->link->generation : 0;
}

void rpc_client_set_timeouts(struct rpc_client *client, uint64_t frame_timeout_ns,
                             uint64_t ping_timeout_ns)
{
    HOLD(&client->mutex);
    client->frame_timeout_ns = frame_timeout_ns ? frame_timeout_ns : FRAME_TIMEOUT_DEFAULT_NS;
    client->ping_timeout_ns = ping_timeout_ns;
}

void rpc_client_get_stats(struct rpc_client *client, struct rpc_client_stats *ret_stats)
{
    HOLD(&client->mutex);
    *ret_stats = (struct rpc_client_stats){ .outstanding = client->outstanding,
                                            .last_ping_ns = client->last_ping_ns };
    if (!client->link)
        return;
    const struct conn *conn = &client->link->conn;
    ret_stats->received_bytes = atomic_load_explicit(&conn->received_bytes, memory_order_relaxed);
    ret_stats->sent_bytes = atomic_load_explicit(&conn->sent_bytes, memory_order_relaxed);
}

const char *rpc_client_peer(struct rpc_client *client)
{
    return client->peer;
}
