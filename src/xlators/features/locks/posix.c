/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The locks of fcntl(2) and flock(2): one owner's ranges never overlap, neighbours of one type are
 * one. */
#include <errno.h>
#include <string.h>

#include "xlators/features/locks/locks.h"

/* --- ranges ---------------------------------------------------------------------------------- */
static bool is_owners(const struct held *held, const struct held *want)
{
    return held->kind == want->kind && held->client == want->client &&
           lkowner_equal(&held->owner, &want->owner);
}

static struct held *piece_of(struct held *want, const struct held *from, uint64_t start,
                             uint64_t end)
{
    struct held *piece = want->spare[0] ? TAKE(want->spare[0]) : TAKE(want->spare[1]);

    assert(piece); /* one range cuts at most two others in two pieces to keep */
    piece->kind = from->kind;
    piece->client = from->client;
    piece->inode = from->inode;
    piece->owner = from->owner;
    piece->type = from->type;
    piece->pid = from->pid;
    piece->fd = from->fd;
    piece->start = start;
    piece->end = end;
    return piece;
}

/* Cuts want's range out of held, which overlaps it. */
static void cut_locked(struct held *held, struct held *want)
{
    if (held->start < want->start)
        held_grant_locked(piece_of(want, held, held->start, want->start - 1));
    if (held->end > want->end)
        held_grant_locked(piece_of(want, held, want->end + 1, held->end));
    held_drop_locked(held);
}

static bool touches(const struct held *a, const struct held *b)
{
    return (a->end != UINT64_MAX && a->end + 1 == b->start) ||
           (b->end != UINT64_MAX && b->end + 1 == a->start);
}

/* Whether that is one lock more: the range lies within a lock of another type. */
bool posix_splits_locked(const struct locks_inode *li, const struct held *want)
{
    const struct held *held;
    TAILQ_FOREACH (held, &li->granted, in_inode)
        if (is_owners(held, want) && held->type != want->type && held->start < want->start &&
            held->end > want->end)
            return true;
    return false;
}

void posix_apply_locked(struct locks_inode *li, struct held *want)
{
    struct held *held = TAILQ_FIRST(&li->granted);

    while (held) {
        struct held *next = TAILQ_NEXT(held, in_inode);
        if (is_owners(held, want)) {
            bool overlaps = held->start <= want->end && want->start <= held->end;
            if (held->type == want->type && (overlaps || touches(held, want))) {
                want->start = MIN(want->start, held->start);
                want->end = MAX(want->end, held->end);
                held_drop_locked(held);
            } else if (overlaps) {
                cut_locked(held, want);
            }
        }
        held = next;
    }
    if (want->type == RANGE_UNLOCK)
        held_free(want);
    else
        held_grant_locked(want);
}
