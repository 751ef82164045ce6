/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/client: what its parts share. See client.c for promises and order of locks. */
#pragma once

#include <sys/queue.h>

#include "core/dict.h"
#include "core/sync.h"
#include "graph/fop_call.h"
#include "rpc/client.h"
#include "rpc/mgmt.h"

enum { FOP_PROGRAM = 1298437, FOP_VERSION = 400, FD_ANONYMOUS = -2, FD_NONE = -1 };

/* An open file at the brick. Lives in the fd's slot and, while it has a number, in the remote's
 * list, so that it can be opened anew on the next connection. */
struct remote_fd {
    LIST_ENTRY(remote_fd) link;
    unsigned refs;          /* remote's mutex, as all that follows */
    gfid_t gfid;
    uint32_t flags;         /* of OPEN: without O_CREAT, O_EXCL, O_TRUNC */
    bool is_dir;
    bool is_released, has_locks;
    bool is_bad;            /* its locks went with a connection, and strict-locks is on */
    int64_t number;
    uint32_t generation;    /* of the connection that gave the number; 0: none did */
};
LIST_HEAD(remote_fds, remote_fd);

/* Where to connect to and as whom; replaced as a whole when options change. */
struct remote_target {
    char *host, *path, *subvolume; /* path: of a unix socket */
    uint16_t port;                 /* 0: ask glusterd */
    int family;
    enum rpc_bind bind;
    struct dict *options;          /* SETVOLUME's: every option of the volume, verbatim */
};

enum remote_told { TOLD_NOTHING, TOLD_UP, TOLD_DOWN };

struct remote {
    /* options */
    char *remote_host, *remote_subvolume, *transport_type, *address_family, *connect_path;
    char *username, *password, *subdir_mount, *tls;
    int64_t remote_port, keepalive_s, keepalive_interval_s, keepalive_count, user_timeout_s;
    uint64_t frame_timeout_ns, ping_timeout_ns, transport_timeout_ns;
    _Atomic bool filter_o_direct, send_gids, strict_locks;
    bool keepalive, bind_insecure;

    struct xlator *xl;
    struct rpc_client *rpc;
    char *identity;                   /* process-uuid up to RECON_NO */
    _Atomic uint32_t generation;      /* of the connection that serves; 0: none does */

    pthread_mutex_t mutex;            /* what follows */
    struct remote_target target;
    struct remote_fds fds;
    bool is_stopping, connector_runs;
    bool child_is_down;               /* the brick said so (CHILD_DOWN callback) */
    uint32_t handshakes;
    uint64_t lost_at_ns;              /* when the last serving connection ended; 0: none did */
    struct fcond changed;             /* generation, child_is_down, is_stopping, connector_runs */
    char *volume_id;                  /* as the brick told it; text. The connector's */
    enum remote_told told;            /* what the parents know. The connector's */
    int last_failure;                 /* already logged. The connector's */
    _Atomic uint64_t calls, replays;
};

/* connect.c: the fiber that gets, and keeps getting, a connection. It alone tells the parents. */
void remote_connector(void *remote);
void remote_target_fini(struct remote_target *target);
must_check int remote_target_copy(struct remote_target *to, const struct remote_target *from);
/* Waits until the brick can be called: its connection's generation, or 0. A connection that was
 * lost only now is waited for a little. */
uint32_t remote_wait_serving(struct remote *remote, const struct call *call);
void remote_disconnected(struct rpc_client *rpc);
void remote_callback(struct rpc_client *rpc, const struct rpc_header *header, struct reader *body);

/* remote_fd.c */
/* Remembers that fd is `number` at the brick; -ENOMEM. */
must_check int remote_fd_add(struct remote *remote, struct fd *fd, bool is_dir, int64_t number,
                             uint32_t generation);
/* The number by which the brick knows fd on that connection; FD_ANONYMOUS where the operation may
 * do without. -EBADFD: the brick has no such open file, and op needs one. May open it. */
must_check int remote_fd_number(struct remote *remote, enum fop op, struct fd *fd,
                                uint32_t generation, int64_t *ret_number);
void remote_fd_release(struct remote *remote, struct remote_fd *rfd);
/* Opens all anew on a fresh connection. -ENOTCONN when it did not last. */
must_check int remote_fds_reopen(struct remote *remote, uint32_t generation);
/* The connection is gone: locks went with it. */
void remote_fds_lost(struct remote *remote) nowait;
void remote_fd_set_locks(struct remote *remote, struct fd *fd) nowait;
unsigned remote_fds_count(struct remote *remote) nowait;

/* call.c */
int remote_any(struct xlator *xl, struct call *call, enum fop op, const void *args, void *reply);
/* One exchange on that connection, no questions about fds: numbers are given. *ret_lost: there was
 * no answer. Returns what the brick says, or -errno. */
must_check int remote_exchange(struct remote *remote, struct call *call, enum fop op,
                               const void *args, const int64_t numbers[2], uint32_t generation,
                               void *reply, bool *ret_lost);
/* Sends RELEASE or RELEASEDIR; never waits. */
void remote_send_release(struct remote *remote, const gfid_t *gfid, int64_t number, bool is_dir,
                         uint32_t generation) nowait;
