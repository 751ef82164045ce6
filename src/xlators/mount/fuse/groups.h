/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Supplementary groups of the process that asks, which the kernel does not send: read from
 * /proc/PID/status and remembered.
 *
 *     ret = groups_get(&fuse->groups, pid, uid, gid, &groups, &cached);
 *     ...  -EACCES, and cached: groups_refresh, and once more
 *
 * A remembered list may be out of date (setgroups(2), a pid used again); the kernel has checked the
 * permission with the true ones before, so the harm is a false refusal, and a refusal asks anew. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/auto.h"

enum {
    GROUPS_CACHED = 256,
    GROUPS_MAX = 65536
};

struct group_list {
    _Atomic uint32_t refs;
    uint32_t count;
    uint32_t gids[];
};
void group_list_unref(struct group_list *list) nowait;

struct group_entry {
    int32_t pid;
    uint32_t uid, gid;
    uint64_t until_ns;
    struct group_list *list;
};

struct group_cache {
    pthread_mutex_t mutex;
    uint64_t lifetime_ns;
    struct group_entry entries[GROUPS_CACHED]; /* direct-mapped */
};

void group_cache_init(struct group_cache *cache, uint64_t lifetime_ns) nowait;
void group_cache_fini(struct group_cache *cache) nowait;
/* *ret_list is shared (group_list_unref); NULL: none known. fresh: do not believe the memory. */
void groups_get(struct group_cache *cache, int32_t pid, uint32_t uid, uint32_t gid, bool fresh,
                struct group_list **ret_list, bool *ret_remembered);
/* The thread `pid` will not return to user space any more (SIGKILL is pending, or it is gone). */
bool process_is_dying(int32_t pid);
