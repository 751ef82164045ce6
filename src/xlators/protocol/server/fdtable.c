/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/protocol/server/fdtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fdtable_init(struct fdtable *table)
{
    *table = (struct fdtable){};
    pthread_mutex_init(&table->mutex, NULL);
}

static int grow_locked(struct fdtable *table)
{
    uint32_t room = table->room ? table->room * 2 : 16;
    if (room > FDTABLE_MAX)
        return -EMFILE;
    struct fd **fds = realloc(table->fds, room * sizeof(struct fd *));
    if (!fds)
        return -ENOMEM;
    memset(fds + table->room, 0, (room - table->room) * sizeof(struct fd *));
    table->fds = fds;
    table->room = room;
    return 0;
}

int64_t fdtable_add(struct fdtable *table, struct fd *fd)
{
    HOLD(&table->mutex);
    if (table->closed)
        return -ENOTCONN;
    while (table->lowest < table->room && table->fds[table->lowest])
        table->lowest++;
    if (table->lowest == table->room) {
        int ret = grow_locked(table);
        if (ret < 0)
            return ret;
    }
    table->fds[table->lowest] = fd;
    table->count++;
    return table->lowest++;
}

struct fd *fdtable_get(struct fdtable *table, int64_t number)
{
    HOLD(&table->mutex);
    if (number < 0 || number >= table->room || !table->fds[number])
        return NULL;
    return fd_ref(table->fds[number]);
}

struct fd *fdtable_take(struct fdtable *table, int64_t number)
{
    HOLD(&table->mutex);
    if (number < 0 || number >= table->room || !table->fds[number])
        return NULL;
    struct fd *fd = table->fds[number];
    table->fds[number] = NULL;
    table->count--;
    table->lowest = MIN(table->lowest, (uint32_t)number);
    return fd;
}

void fdtable_close(struct fdtable *table)
{
    {
        HOLD(&table->mutex);
        table->closed = true; /* nothing is added from here on */
    }
    for (uint32_t i = 0; i < table->room; i++)
        fd_unref(fdtable_take(table, i));
}

void fdtable_fini(struct fdtable *table)
{
    free(table->fds);
    pthread_mutex_destroy(&table->mutex);
}
