/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The open files of one connection by number: the lowest free one is taken (spec/wire.md 4.1).
 *
 *     int64_t number = fdtable_add(&table, fd);      // takes the caller's reference
 *     AUTO(fd) fd = fdtable_get(&table, number);
 */
#pragma once

#include <pthread.h>

#include "graph/inode.h"

enum { FDTABLE_MAX = 1 << 20 };

struct fdtable {
    pthread_mutex_t mutex;
    struct fd **fds;
    uint32_t room, count;
    uint32_t lowest; /* no free number below */
    bool closed;
};

void fdtable_init(struct fdtable *table) nowait;
/* The number, or -EMFILE, -ENOMEM, -ENOTCONN (closed); on failure the reference stays the
 * caller's. */
must_check int64_t fdtable_add(struct fdtable *table, struct fd *fd) nowait;
struct fd *fdtable_get(struct fdtable *table, int64_t number) nowait;  /* a reference, or NULL */
struct fd *fdtable_take(struct fdtable *table, int64_t number) nowait; /* out of the table */
/* Unrefs all and refuses more. */
void fdtable_close(struct fdtable *table);
void fdtable_fini(struct fdtable *table);
