/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One connection of either end: records in, records out (spec/wire.md 1.2).
 *
 *     conn_init(&mine->conn, fd, &ops, "server");
 *     ret = conn_start(&mine->conn, lane);           // reader and sender fibers, until `ended`
 *     conn_send(&mine->conn, &message);              // from anywhere; never waits
 *
 * Receiving takes two steps: as soon as the first bytes of a record are in the input buffer, the
 * owner is asked where the record shall land (`place`); what has come is copied, the rest is
 * received in place. So bulk bytes land page-aligned, and small records are taken many at a time.
 *
 * Sending: at most one send is in flight; whatever became ready meanwhile goes with the next. The
 * sender's fiber runs after the fibers that were ready before it, so one turn's answers leave in
 * one system call.
 *
 *     input  [ consumed | record, record, begin of a reco:        ]
 *                                 ^input_start       ^input_end
 */
#pragma once

#include <pthread.h>

#include "core/buf.h"
#include "core/env.h"
#include "core/log.h"
#include "core/sync.h"
#include "rpc/xdr.h"

enum {
    CONN_INPUT_BYTES = 16 * 1024,
    CONN_PREFIX_BYTES = 1024,              /* every header and the fixed part of a body fit */
    CONN_BODY_BYTES_MAX = 9 << 20,         /* a volfile, a directory's entries */
    CONN_RECORD_BYTES_MAX = 18 << 20,      /* the largest payload and more than its body */
    CONN_QUEUE_BYTES_MAX = 32 << 20,       /* to be sent: above it we stop reading, callers wait */
    CONN_STRANGER_QUEUE_BYTES_MAX = 1 << 20, /* the same, while record_bytes_max is lowered */
    CONN_CALLBACKS_QUEUE_BYTES_MAX = 1 << 20,
    CONN_SEND_IOVS_MAX = 256,
    CONN_SEND_BYTES_MAX = 4 << 20,         /* of one system call, unless one record is larger */
    CONN_MESSAGE_ROOM = 1024,
    CONN_MESSAGE_COST = 3 * 1024, /* of memory, about, with its owner's: the smallest has it too */
};

/* A record to be sent. */
struct conn_message {
    struct conn_message *next;
    struct writer head;     /* the record mark's place, headers, body */
    struct payload payload; /* follows head on the wire */
    /* The connection is through with it, sent or not. May be called inside conn_send; never waits.
     * */
    void (*done)(struct conn_message *message);
    uint8_t room[CONN_MESSAGE_ROOM];
};
void conn_message_init(struct conn_message *message,
                       void (*done)(struct conn_message *message)) nowait;
void conn_message_fini(struct conn_message *message) nowait; /* its writer and payload */

/* Where a record lands. */
struct conn_landing {
    uint32_t skip;       /* bytes at the record's start that are not wanted: parsed already */
    uint8_t *body;       /* NULL: the whole record is read over */
    uint32_t body_bytes;
    struct payload *payload; /* NULL, or with room for exactly the rest of the record */
    void *token;         /* the owner's */
};

struct conn;
struct conn_ops {
    /* prefix: the first `bytes` (= min(record_bytes, CONN_PREFIX_BYTES)) of a record. May wait (for
     * buffers). Negative: the connection ends, why is in conn->why. */
    int (*place)(struct conn *conn, uint8_t *prefix, uint32_t bytes, uint32_t record_bytes,
                 struct conn_landing *landing);
    void (*deliver)(struct conn *conn, struct conn_landing *landing); /* may wait */
    /* Instead of deliver: the rest never came. */
    void (*abandon)(struct conn *conn, struct conn_landing *landing);
    /* Last: the descriptor is closed, nothing is in flight, nothing is called any more. */
    void (*ended)(struct conn *conn);
};

struct conn {
    const struct conn_ops *ops;
    const struct log_source *log;
    const char *log_name, *why; /* why: it ended, when that was not the peer's closing */
    struct lane *lane;
    char peer[112];
    _Atomic uint32_t record_bytes_max; /* CONN_RECORD_BYTES_MAX, or less for whom we do not know */
    uint8_t *input;
    uint32_t input_start, input_end;
    _Atomic uint64_t received_ns, sent_ns; /* when the latest bytes came and went */
    _Atomic uint64_t received_bytes, sent_bytes;

    pthread_mutex_t mutex; /* what follows */
    int fd;
    bool closing;          /* set once: no sends, the reader is about to end */
    bool sender_ended;
    struct fiber *sender;  /* when it waits for work */
    struct conn_message *queue, **queue_last;
    uint64_t queue_bytes;  /* of memory, queued and in flight */
    struct fcond changed;  /* room in the queue, or closing, or the sender ended */
};

must_check int conn_init(struct conn *conn, int fd, const struct conn_ops *ops,
                         const struct log_source *log, const char *log_name);
void conn_fini(struct conn *conn); /* never started, or ended */
/* Takes the descriptor over in any case. -ENOMEM: no fiber; ended is not called then. */
must_check int conn_start(struct conn *conn, struct lane *lane);
/* Queues the record. A closing connection: -ENOTCONN, and done was called. */
int conn_send(struct conn *conn, struct conn_message *message) nowait;
/* Takes a queued message back when its sending has not begun (done was then called). */
bool conn_unsend(struct conn *conn, struct conn_message *message) nowait;
/* Waits while the queue is full. -ENOTCONN. */
must_check int conn_wait_room(struct conn *conn);
uint64_t conn_queue_bytes(struct conn *conn) nowait;
void conn_close(struct conn *conn) nowait;
bool conn_is_open(struct conn *conn) nowait;
