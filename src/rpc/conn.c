/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/conn.h"

#include <stdatomic.h>

#define LAST_FRAGMENT 0x80000000u

enum { RECORD_MARK_BYTES = 4, LANDING_IOVS = PAYLOAD_SEGS_MAX + 1 };

/* --- messages --------------------------------------------------------------------------------- */

void conn_message_init(struct conn_message *message, void (*done)(struct conn_message *message))
{
    message->next = NULL;
    message->done = done;
    message->payload.segs = 0;
    message->payload.bytes = 0;
    message->head = writer_into(message->room, sizeof(message->room));
    writer_u32(&message->head, 0);
}

void conn_message_fini(struct conn_message *message)
{
    writer_fini(&message->head);
    payload_fini(&message->payload);
}

static uint64_t message_bytes(const struct conn_message *message)
{
    return (uint64_t)message->head.used + message->payload.bytes;
}

/* What it holds while it waits: a peer that reads no answers would else queue millions of tiny
 * ones. */
static uint64_t message_cost(const struct conn_message *message)
{
    return message_bytes(message) + CONN_MESSAGE_COST;
}

static uint64_t queue_bytes_max(const struct conn *conn)
{
    return conn->record_bytes_max < CONN_RECORD_BYTES_MAX ? CONN_STRANGER_QUEUE_BYTES_MAX
                                                          : CONN_QUEUE_BYTES_MAX;
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Moves messages from the queue to a list of their own, as many as one send takes. */
static struct conn_message *take_batch_locked(struct conn *conn)
{
    struct conn_message *first = conn->queue, *last = NULL;
    uint64_t bytes = 0;
    unsigned iovs = 0;
    for (struct conn_message *m = first; m; last = m, m = m->next) {
        iovs += 1 + m->payload.segs;
        bytes += message_bytes(m);
        if (last && (iovs > CONN_SEND_IOVS_MAX || bytes > CONN_SEND_BYTES_MAX))
            break;
    }
    conn->queue = last->next;
    if (!conn->queue)
        conn->queue_last = &conn->queue;
    last->next = NULL;
    return first;
}

static uint64_t gather(const struct conn_message *batch, struct iovec *iov, int *ret_count,
                       uint64_t *ret_cost)
{
    uint64_t bytes = 0, cost = 0;
    int count = 0;
    for (const struct conn_message *m = batch; m; m = m->next) {
        iov[count++] = (struct iovec){ m->head.data, m->head.used };
        for (uint32_t i = 0; i < m->payload.segs; i++)
            iov[count++] = m->payload.iov[i];
        bytes += message_bytes(m);
        cost += message_cost(m);
    }
    *ret_count = count;
    *ret_cost = cost;
    return bytes;
}

static void finish_batch(struct conn_message *batch)
{
    for (struct conn_message *next; batch; batch = next) {
        next = batch->next;
        batch->done(batch);
    }
}

static void send_batch(struct conn *conn, struct conn_message *batch)
{
    struct iovec iov[CONN_SEND_IOVS_MAX];
    int count;
    uint64_t cost, bytes = gather(batch, iov, &count, &cost);
    ssize_t ret = env_send(conn->fd, iov, count);
    if (ret < 0) {
        conn_close(conn);
    } else {
        atomic_store_explicit(&conn->sent_ns, env_now_ns(), memory_order_relaxed);
        count_add(&conn->sent_bytes, bytes);
    }
    finish_batch(batch);

    HOLD(&conn->mutex);
    conn->queue_bytes -= cost;
    if (conn->queue_bytes <= queue_bytes_max(conn))
        fcond_wake_all(&conn->changed); /* the limit may have risen since they began to wait */
}

/* The next batch, or NULL when the connection closes. */
static struct conn_message *next_batch(struct conn *conn)
{
    for (;;) {
        hold_begin(&conn->mutex);
        struct conn_message *batch = NULL;
        bool closing = conn->closing;
        if (!closing && conn->queue)
            batch = take_batch_locked(conn);
        else if (!closing)
            conn->sender = fiber_self();
        pthread_mutex_t *mutex = &conn->mutex;
        hold_end(&mutex);
        if (batch || closing)
            return batch;
        fiber_park("send queue");
    }
}

static void sender(void *arg)
{
    struct conn *conn = arg;
    struct conn_message *batch;
    while ((batch = next_batch(conn)))
        send_batch(conn, batch);

    HOLD(&conn->mutex);
    conn->sender_ended = true;
    fcond_wake_all(&conn->changed);
}

int conn_send(struct conn *conn, struct conn_message *message)
{
    uint64_t bytes = message_bytes(message) - RECORD_MARK_BYTES;
    struct fiber *to_wake = NULL;
    assert(writer_ok(&message->head) && bytes < LAST_FRAGMENT);
    writer_patch_u32(&message->head, 0, (uint32_t)bytes | LAST_FRAGMENT);
    message->next = NULL;
    hold_begin(&conn->mutex);
    bool closing = conn->closing;
    if (!closing) {
        *conn->queue_last = message;
        conn->queue_last = &message->next;
        conn->queue_bytes += message_cost(message);
        to_wake = TAKE(conn->sender);
        if (to_wake)
            fiber_wake(to_wake); /* under the mutex: the sender is there until it was told to end */
    }
    pthread_mutex_t *mutex = &conn->mutex;
    hold_end(&mutex);
    if (!closing)
        return 0;
    message->done(message);
    return -ENOTCONN;
}

bool conn_unsend(struct conn *conn, struct conn_message *message)
{
    bool found = false;
    hold_begin(&conn->mutex);
    for (struct conn_message **link = &conn->queue; *link && !found; link = &(*link)->next) {
        if (*link != message)
            continue;
        found = true;
        *link = message->next;
        conn->queue_bytes -= message_cost(message);
        if (!*link) {
            conn->queue_last = link;
            break;
        }
    }
    pthread_mutex_t *mutex = &conn->mutex;
    hold_end(&mutex);
    if (found)
        message->done(message);
    return found;
}

int conn_wait_room(struct conn *conn)
{
    HOLD(&conn->mutex);
    while (!conn->closing && conn->queue_bytes > queue_bytes_max(conn))
        fcond_wait(&conn->changed, &conn->mutex, "room to send");
    return conn->closing ? -ENOTCONN : 0;
}

uint64_t conn_queue_bytes(struct conn *conn)
{
    HOLD(&conn->mutex);
    return conn->queue_bytes;
}

/* --- receiving -------------------------------------------------------------------------------- */

static uint32_t input_bytes(const struct conn *conn)
{
    return conn->input_end - conn->input_start;
}

static void note_received(struct conn *conn, uint64_t bytes)
{
    atomic_store_explicit(&conn->received_ns, env_now_ns(), memory_order_relaxed);
    count_add(&conn->received_bytes, bytes);
}

/* Until the input holds at least `bytes` (<= CONN_INPUT_BYTES). -ENOTCONN: the stream ended. */
static int input_fill(struct conn *conn, uint32_t bytes)
{
    if (input_bytes(conn) >= bytes)
        return 0;
    if (conn->input_start + bytes > CONN_INPUT_BYTES || input_bytes(conn) == 0) {
        memmove(conn->input, conn->input + conn->input_start, input_bytes(conn));
        conn->input_end = input_bytes(conn);
        conn->input_start = 0;
    }
    while (input_bytes(conn) < bytes) {
        ssize_t ret = env_recv(conn->fd, conn->input + conn->input_end,
                               CONN_INPUT_BYTES - conn->input_end);
        if (ret <= 0)
            return ret < 0 ? (int)ret : -ENOTCONN;
        conn->input_end += (uint32_t)ret;
        note_received(conn, (uint64_t)ret);
    }
    return 0;
}

static uint32_t input_copy(struct conn *conn, void *to, uint32_t bytes)
{
    uint32_t taken = MIN(bytes, input_bytes(conn));
    if (taken)
        memcpy(to, conn->input + conn->input_start, taken);
    conn->input_start += taken;
    return taken;
}

/* Exactly these bytes: what the input holds is copied, the rest received in place. */
static int receive(struct conn *conn, struct iovec *iov, int count)
{
    uint64_t missing = 0;
    for (int i = 0; i < count; i++) {
        uint32_t taken = input_copy(conn, iov[i].iov_base, (uint32_t)iov[i].iov_len);
        iov[i].iov_base = (uint8_t *)iov[i].iov_base + taken;
        iov[i].iov_len -= taken;
        missing += iov[i].iov_len;
    }
    while (count && iov->iov_len == 0) {
        iov++;
        count--;
    }
    if (missing == 0)
        return 0;
    ssize_t ret = env_recv_all(conn->fd, iov, count);
    if (ret > 0)
        note_received(conn, (uint64_t)ret);
    if (ret < 0)
        return (int)ret;
    return (uint64_t)ret < missing ? -ENOTCONN : 0;
}

static int input_skip(struct conn *conn, uint32_t bytes)
{
    while (bytes) {
        int ret = input_fill(conn, 1);
        if (ret < 0)
            return ret;
        uint32_t taken = MIN(bytes, input_bytes(conn));
        conn->input_start += taken;
        bytes -= taken;
    }
    return 0;
}

static int landing_iov(const struct conn_landing *landing, struct iovec iov[LANDING_IOVS])
{
    int count = 0;
    if (landing->body_bytes)
        iov[count++] = (struct iovec){ landing->body, landing->body_bytes };
    if (landing->payload)
        for (uint32_t i = 0; i < landing->payload->segs; i++)
            iov[count++] = landing->payload->iov[i];
    return count;
}

static void check_landing(const struct conn_landing *landing, uint32_t record_bytes)
{
    uint32_t payload_bytes = landing->payload ? landing->payload->bytes : 0;
    assert(!landing->body ||
           (uint64_t)landing->skip + landing->body_bytes + payload_bytes == record_bytes);
}

/* One record whose bytes are in the stream, its mark taken off. */
static int receive_record(struct conn *conn, uint32_t bytes)
{
    struct conn_landing landing = { 0 };
    struct iovec iov[LANDING_IOVS];
    uint32_t prefix = MIN(bytes, (uint32_t)CONN_PREFIX_BYTES);
    int ret = input_fill(conn, prefix);
    if (ret == 0)
        ret = conn->ops->place(conn, conn->input + conn->input_start, prefix, bytes, &landing);
    if (ret < 0)
        return ret;

    check_landing(&landing, bytes);
    if (!landing.body)
        ret = input_skip(conn, bytes);
    else if (!landing.payload && bytes <= CONN_INPUT_BYTES)
        ret = input_fill(conn, bytes); /* with what follows it */
    if (ret == 0 && landing.body)
        ret = input_skip(conn, landing.skip);
    if (ret == 0 && landing.body)
        ret = receive(conn, iov, landing_iov(&landing, iov));
    if (ret < 0)
        conn->ops->abandon(conn, &landing);
    else
        conn->ops->deliver(conn, &landing);
    return ret;
}

static int malformed(struct conn *conn, const char *why)
{
    conn->why = why;
    return -EBADMSG;
}

static int next_mark(struct conn *conn, uint32_t *ret_mark)
{
    int ret = input_fill(conn, RECORD_MARK_BYTES);
    if (ret < 0)
        return ret;
    struct reader r = reader_of(conn->input + conn->input_start, RECORD_MARK_BYTES);
    conn->input_start += RECORD_MARK_BYTES;
    return reader_u32(&r, ret_mark);
}

struct pieces { /* of a record in several fragments, put together on the heap */
    uint8_t *data;
    uint32_t bytes;
};

static int append_fragment(struct conn *conn, struct pieces *pieces, uint32_t bytes)
{
    if (bytes > CONN_RECORD_BYTES_MAX || bytes + pieces->bytes > conn->record_bytes_max)
        return malformed(conn, "a record is larger than we accept");
    if (bytes == 0)
        return 0;
    uint8_t *data = realloc(pieces->data, pieces->bytes + bytes);
    if (!data)
        return -ENOMEM;
    pieces->data = data;
    struct iovec iov = { data + pieces->bytes, bytes };
    pieces->bytes += bytes;
    return receive(conn, &iov, 1);
}

static void copy_to_landing(const struct conn_landing *landing, const uint8_t *from)
{
    from += landing->skip;
    memcpy(landing->body, from, landing->body_bytes);
    if (landing->payload)
        payload_copy_in(landing->payload, from + landing->body_bytes);
}

static int deliver_pieces(struct conn *conn, const struct pieces *pieces)
{
    struct conn_landing landing = { 0 };
    uint32_t prefix = MIN(pieces->bytes, (uint32_t)CONN_PREFIX_BYTES);
    int ret = conn->ops->place(conn, pieces->data, prefix, pieces->bytes, &landing);
    if (ret < 0)
        return ret;
    check_landing(&landing, pieces->bytes);
    if (landing.body)
        copy_to_landing(&landing, pieces->data); /* copy: nobody but tests sends fragments */
    conn->ops->deliver(conn, &landing);
    return 0;
}

static int receive_fragments(struct conn *conn, uint32_t mark)
{
    struct pieces pieces = { 0 };
    int ret = append_fragment(conn, &pieces, mark & ~LAST_FRAGMENT);
    while (ret == 0 && !(mark & LAST_FRAGMENT)) {
        ret = next_mark(conn, &mark);
        if (ret == 0)
            ret = append_fragment(conn, &pieces, mark & ~LAST_FRAGMENT);
    }
    if (ret == 0)
        ret = deliver_pieces(conn, &pieces);
    free(pieces.data);
    return ret;
}

static int receive_next(struct conn *conn)
{
    uint32_t mark;
    int ret = next_mark(conn, &mark);
    if (ret < 0)
        return ret;
    if (!(mark & LAST_FRAGMENT))
        return receive_fragments(conn, mark);
    mark &= ~LAST_FRAGMENT;
    if (mark > conn->record_bytes_max)
        return malformed(conn, "a record is larger than we accept");
    return receive_record(conn, mark);
}

/* --- life ------------------------------------------------------------------------------------- */

static void drop_queue(struct conn *conn)
{
    hold_begin(&conn->mutex);
    struct conn_message *queue = TAKE(conn->queue);
    conn->queue_last = &conn->queue;
    conn->queue_bytes = 0;
    pthread_mutex_t *mutex = &conn->mutex;
    hold_end(&mutex);
    finish_batch(queue);
}

static void wait_for_sender(struct conn *conn)
{
    HOLD(&conn->mutex);
    while (!conn->sender_ended)
        fcond_wait(&conn->changed, &conn->mutex, "sender's end");
}

static void close_descriptor(struct conn *conn)
{
    hold_begin(&conn->mutex);
    int fd = TAKE_FD(conn->fd);
    pthread_mutex_t *mutex = &conn->mutex;
    hold_end(&mutex);
    if (fd >= 0)
        (void)env_close(fd); /* a socket: nothing that we wrote depends on it */
}

static void log_malformed(struct conn *conn, int ret)
{
    if (conn->log)
        log_warn(conn->log, ret, "closing the connection with %s: %s", conn->peer, conn->why);
    else
        log_warn(conn->log_name, ret, "closing the connection with %s: %s", conn->peer, conn->why);
}

static void reader(void *arg)
{
    struct conn *conn = arg;
    int ret = 0;
    while (ret == 0 && conn_is_open(conn)) {
        ret = receive_next(conn);
        if (ret == 0 && conn_queue_bytes(conn) > queue_bytes_max(conn))
            ret = conn_wait_room(conn);
    }
    if (ret == -ENOMEM && !conn->why)
        conn->why = "no memory for a record";
    if (ret < 0 && conn->why)
        log_malformed(conn, ret);
    conn_close(conn);
    wait_for_sender(conn);
    close_descriptor(conn);
    drop_queue(conn);
    conn->ops->ended(conn);
}

int conn_init(struct conn *conn, int fd, const struct conn_ops *ops, const struct log_source *log,
              const char *log_name)
{
    *conn = (struct conn){ .ops = ops, .log = log, .log_name = log_name, .fd = fd };
    conn->input = malloc(CONN_INPUT_BYTES);
    if (!conn->input)
        return -ENOMEM;
    conn->record_bytes_max = CONN_RECORD_BYTES_MAX;
    conn->queue_last = &conn->queue;
    pthread_mutex_init(&conn->mutex, NULL);
    fcond_init(&conn->changed);
    conn->received_ns = conn->sent_ns = env_now_ns();
    return 0;
}

void conn_fini(struct conn *conn)
{
    if (!conn->input)
        return;
    close_descriptor(conn);
    pthread_mutex_destroy(&conn->mutex);
    free(TAKE(conn->input));
}

int conn_start(struct conn *conn, struct lane *lane)
{
    conn->lane = lane;
    int ret = fiber_start_on(lane, "rpc-sender", sender, conn);
    if (ret < 0) {
        close_descriptor(conn);
        return ret;
    }
    ret = fiber_start_on(lane, "rpc-reader", reader, conn);
    if (ret == 0)
        return 0;
    conn_close(conn);
    wait_for_sender(conn);
    close_descriptor(conn);
    return ret;
}

void conn_close(struct conn *conn)
{
    HOLD(&conn->mutex);
    if (conn->closing)
        return;
    conn->closing = true;
    if (conn->fd >= 0)
        (void)env_shutdown(conn->fd); /* wakes the reader; the peer may be gone already */
    struct fiber *idle = TAKE(conn->sender);
    if (idle)
        fiber_wake(idle);
    fcond_wake_all(&conn->changed);
}

bool conn_is_open(struct conn *conn)
{
    HOLD(&conn->mutex);
    return !conn->closing;
}
