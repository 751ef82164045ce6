/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/locks: what its parts share. See locks.c for promises, state and order of locking. */
#pragma once

#include <sys/queue.h>

#include "graph/fop_call.h"

enum {
    LOCKS_PER_CLIENT_MAX = 65536, /* granted and waiting together: then ENOLCK */
    DOMAINS_PER_INODE_MAX = 256,
    DOMAIN_BYTES_MAX = 1024,
};

enum held_kind { HELD_POSIX, HELD_FLOCK, HELD_INODELK, HELD_ENTRYLK };

/* A lock, granted or waited for. `end` is inclusive; a lock to the end of the file ends at
 * UINT64_MAX. */
struct held {
    TAILQ_ENTRY(held) in_inode;  /* its inode's granted or waiting list */
    TAILQ_ENTRY(held) in_client; /* its client's list */
    TAILQ_ENTRY(held) in_waiting; /* waiting: its client's list of those */
    TAILQ_ENTRY(held) in_search; /* waiting: while a ring is looked for */
    uint64_t search;             /* the latest search that met it */
    enum held_kind kind;
    struct locks_client *client;
    struct locks_inode *inode;
    struct lkowner owner;
    uint32_t type;               /* RANGE_READ, RANGE_WRITE; while waiting also */
    uint64_t start, end;
    uint32_t pid;
    int32_t caller_pid;          /* of the call that asked */
    const struct fd *fd;         /* posix: through which it was taken; compared, never followed */
    const char *domain;          /* inodelk, entrylk: interned in the inode */
    char *name;                  /* entrylk: NULL is the whole directory */
    struct fiber *waiter;        /* waiting: who; NULL: granted */
    int result;                  /* of the wait, when decided */
    bool decided;
    struct held *spare[2];       /* for the pieces that a posix lock may split another into */
    struct held *copy;           /* waiting: becomes the lock when granted */
};
TAILQ_HEAD(held_list, held);

struct locks_client { /* in the client's slot */
    const char *uid;
    struct held_list all, waiting;
    uint32_t count;
    bool gone;
};

struct domain {
    struct domain *next;
    char name[];
};

struct locks_inode { /* in the inode's slot; every lock, held or waited for, references the inode */
    struct inode *inode;
    struct held_list granted, waiting;
    struct domain *domains;
    uint32_t domain_count;
};

struct locks {
    pthread_mutex_t mutex; /* over everything above, of this brick */
    struct locks_client internal; /* calls without a client */
    uint64_t searches;            /* for rings, so far */
    char *mandatory;
    _Atomic uint64_t granted, blocked, refused;
};

/* --- held.c: granting, waiting, dropping. *_locked: the caller holds locks->mutex ------------ */
struct held *held_new(enum held_kind kind, const struct call *call) nowait; /* NULL: no memory */
void held_free(struct held *held) nowait;

/* The inode's and client's state, made at first use. NULL: no memory. */
struct locks_inode *locks_inode_of(struct xlator *xl, struct inode *inode) nowait;
struct locks_client *locks_client_of(struct xlator *xl, struct client *client) nowait;
/* The domain's text with the inode's life; NULL: no memory or too many. */
const char *domain_intern_locked(struct locks_inode *li, const char *name) nowait;

/* The first granted lock that stands in want's way, or NULL. */
struct held *held_conflict_locked(const struct locks_inode *li, const struct held *want) nowait;
/* Takes want, or waits for it when block is set; want is consumed in any case. 0; -EAGAIN, -EINTR,
 * -EDEADLK, -ENOTCONN, -ENOLCK, -ENOMEM. */
must_check int held_take(struct xlator *xl, struct call *call, struct inode *inode,
                         struct held *want, const char *domain, bool block);
/* Grants what can be granted now. */
void locks_grant_locked(struct xlator *xl, struct locks_inode *li) nowait;
void held_grant_locked(struct held *held) nowait; /* enters it as it is */
void held_drop_locked(struct held *held) nowait;  /* a granted one: off all lists, freed */
/* Answers a waiter: off all lists, its fiber woken. */
void held_decide_locked(struct held *want, int result) nowait;

/* posix.c: makes room for want in its owner's locks (splitting, merging) and inserts it;
 * RANGE_UNLOCK only makes room. Uses want->spare. Consumes want. */
void posix_apply_locked(struct locks_inode *li, struct held *want) nowait;
bool posix_splits_locked(const struct locks_inode *li, const struct held *want) nowait;
void locks_client_init(struct locks_client *lc, const char *uid) nowait; /* held.c */
