/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The context of an operation: on whose behalf it runs. Borrowed by everything it passes
 * through. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "fop/iatt.h"

enum call_pid { /* internal callers, spec/wire.md 1.5 */
    PID_GSYNCD = -1, PID_REBALANCE = -3, PID_NO_ROOT_SQUASH = -4, PID_QUOTA_MOUNT = -5,
    PID_SELF_HEAL = -6, PID_GLFS_HEAL = -7, PID_BITD = -8, PID_SCRUB = -9, PID_TRASH = -11,
    PID_ADD_REPLICA = -12, PID_SET_UTIME = -13,
};

enum call_times { /* which times the brick sets from ctime (v3 credential flags) */
    TIMES_CTIME = 1, TIMES_MTIME = 2, TIMES_ATIME = 4,
    TIMES_PARENT_CTIME = 8, TIMES_PARENT_MTIME = 16, TIMES_PARENT_ATIME = 32,
};

struct client;

struct call {
    struct client *client;   /* on a brick: whose connection; NULL elsewhere */
    int32_t pid;             /* negative: enum call_pid */
    uint32_t uid, gid;
    uint32_t group_count;
    const uint32_t *groups;  /* supplementary */
    uint32_t times;          /* enum call_times */
    uint32_t ctime_nsec;
    uint64_t ctime_sec;
    struct lkowner owner;
    uint64_t deadline_ns;    /* env's clock; 0: none */
    uint64_t unique;
    /* Set by whoever wants to interrupt a wait for a lock (FUSE INTERRUPT, disconnect): a waiter
     * registers `wake(wake_arg)` under `guard`, checks `cancelled` after waking: -EINTR. */
    struct call_cancel *cancel; /* NULL: cannot be cancelled */
};

/* Shared by the front door and the waiter. Lives as long as the call. */
struct call_cancel {
    pthread_mutex_t guard;
    bool cancelled;
    void (*wake)(void *arg); /* nowait; called at most once, under guard */
    void *wake_arg;
};
void call_cancel_init(struct call_cancel *cancel) nowait;
void call_cancel_fini(struct call_cancel *cancel) nowait;
/* Marks and wakes the waiter, if any. */
void call_cancel_fire(struct call_cancel *cancel) nowait;
/* Registers a waiter: -EINTR when already cancelled. cancel NULL: 0. */
must_check int call_cancel_arm(struct call_cancel *cancel, void (*wake)(void *arg), void *arg)
    nowait;
/* Takes the registration back; true when cancelled meanwhile. */
bool call_cancel_disarm(struct call_cancel *cancel) nowait;
