/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/linger.h"

#include <stdlib.h>

#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/posix.h"

struct lingering {
    TAILQ_ENTRY(lingering) link; /* in posix->lingering: oldest first */
    struct inode *inode;         /* referenced */
    struct node *node;
    uint64_t until_ns;
};

/* --- the fiber that lets them go: lives while there are some
 * ----------------------------------- */
/* The oldest one that is due; at stop all are. */
static struct lingering *take_due(struct posix *posix)
{
    HOLD(&posix->mutex);
    struct lingering *first = TAILQ_FIRST(&posix->lingering);
    if (!first || (!posix->stopping && first->until_ns > env_now_ns()))
        return NULL;
    TAILQ_REMOVE(&posix->lingering, first, link);
    posix->lingering_count--;
    return first;
}

static void let_go_hop(void *arg)
{
    struct posix *posix = arg;
    struct lingering *due;

    while ((due = take_due(posix)) != NULL) {
        due->node->opens--;
        unlinked_forget(posix, due->node);
        inode_unref(due->inode);
        free(due);
    }
}

static void linger_run(void *arg)
{
    struct posix *posix = arg;

    for (;;) {
        {
            uint64_t until_ns = env_now_ns() + LINGER_MS * NS_PER_MS;
            HOLD(&posix->mutex);
            while (!posix->stopping &&
                   fcond_wait_until(&posix->wake, &posix->mutex, "replaced files", until_ns) == 0)
                ;
        }
        hop(pool_default(), let_go_hop, posix);
        HOLD(&posix->mutex);
        if (TAILQ_EMPTY(&posix->lingering)) {
            posix->linger_runs = false;
            posix->fibers--;
            fcond_wake_all(&posix->wake);
            return;
        }
    }
}

/* --- beginning
 * --------------------------------------------------------------------------------- */
static bool list(struct posix *posix, struct lingering *added, bool *ret_start)
{
    HOLD(&posix->mutex);
    if (posix->stopping || posix->lingering_count >= LINGERING_MAX)
        return false;
    TAILQ_INSERT_TAIL(&posix->lingering, added, link);
    posix->lingering_count++;
    *ret_start = !posix->linger_runs;
    if (*ret_start) {
        posix->linger_runs = true;
        posix->fibers++;
    }
    return true;
}

void linger_begin(struct posix *posix, struct inode *inode, struct node *node)
{
    struct lingering *added = malloc(sizeof(*added));
    bool start = false;

    if (!added)
        return;
    *added = (struct lingering){ .inode = inode_ref(inode), .node = node,
                                 .until_ns = env_now_ns() + LINGER_MS * NS_PER_MS };
    node->opens++;
    if (!list(posix, added, &start)) {
        node->opens--;
        inode_unref(inode);
        free(added);
        return;
    }
    if (!start || fiber_start_on(lane_get(0), "posix-linger", linger_run, posix) == 0)
        return;
    HOLD(&posix->mutex); /* no stack: the next one tries again */
    posix->linger_runs = false;
    posix->fibers--;
}
