/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/mount/fuse/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"

enum {
    STATUS_BYTES = 4096,
    STATUS_BYTES_MAX = 1 << 20, /* GROUPS_MAX of ten digits and a blank */
    SIGNAL_KILL_BIT = 1 << 8,
};

/* --- /proc/PID/status ------------------------------------------------------------------------ */
static ssize_t file_read_all(int fd, char *text, size_t size)
{
    size_t bytes = 0;

    while (bytes < size) {
        struct iovec iov = { .iov_base = text + bytes, .iov_len = size - bytes };
        ssize_t ret = env_preadv(fd, &iov, 1, bytes);
        if (ret < 0)
            return ret;
        if (ret == 0)
            break;
        bytes += (size_t)ret;
    }
    return (ssize_t)bytes;
}

/* *ret_text is the caller's to free. */
static int status_read(int32_t pid, char **ret_text)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    AUTO_FD fd = env_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;

    for (size_t size = STATUS_BYTES; size <= STATUS_BYTES_MAX; size *= 4) {
        AUTO_FREE char *text = malloc(size + 1);
        if (!text)
            return -ENOMEM;
        ssize_t ret = file_read_all(fd, text, size);
        if (ret < 0)
            return (int)ret;
        if ((size_t)ret < size) {
            text[ret] = '\0';
            *ret_text = TAKE(text);
            return 0;
        }
    }
    return -E2BIG;
}

/* The text behind "\n<key>:", or NULL. */
static const char *status_field(const char *status, const char *key)
{
    char pattern[32];
    snprintf(pattern, sizeof(pattern), "\n%s:", key);
    const char *at = strstr(status, pattern);
    return at ? at + strlen(pattern) : NULL;
}

static uint32_t numbers_parse(const char *text, uint32_t *numbers, uint32_t max)
{
    uint32_t count = 0;

    while (count < max) {
        char *end;
        text += strspn(text, " \t");
        if (*text < '0' || *text > '9')
            break;
        numbers[count++] = (uint32_t)strtoul(text, &end, 10);
        text = end;
    }
    return count;
}

static struct group_list *groups_read(int32_t pid)
{
    AUTO_FREE char *status = NULL;
    if (status_read(pid, &status) < 0)
        return NULL;
    const char *field = status_field(status, "Groups");
    if (!field)
        return NULL;

    uint32_t room = (uint32_t)MIN(strcspn(field, "\n") / 2 + 1, (size_t)GROUPS_MAX);
    struct group_list *list = malloc(sizeof(*list) + room * sizeof(list->gids[0]));
    if (!list)
        return NULL;
    list->refs = 1;
    list->count = numbers_parse(field, list->gids, room);
    return list;
}

bool process_is_dying(int32_t pid)
{
    AUTO_FREE char *status = NULL;
    int ret = status_read(pid, &status);
    if (ret < 0)
        return ret == -ENOENT || ret == -ESRCH;
    const char *field = status_field(status, "SigPnd");
    return field && (strtoull(field, NULL, 16) & SIGNAL_KILL_BIT);
}

/* --- memory ----------------------------------------------------------------------------------- */
void group_list_unref(struct group_list *list)
{
    if (list && --list->refs == 0)
        free(list);
}

void group_cache_init(struct group_cache *cache, uint64_t lifetime_ns)
{
    *cache = (struct group_cache){ .lifetime_ns = lifetime_ns };
    pthread_mutex_init(&cache->mutex, NULL);
}

void group_cache_fini(struct group_cache *cache)
{
    for (int i = 0; i < GROUPS_CACHED; i++)
        group_list_unref(cache->entries[i].list);
    pthread_mutex_destroy(&cache->mutex);
}

static struct group_list *cache_find(struct group_cache *cache, int32_t pid, uint32_t uid,
                                     uint32_t gid)
{
    HOLD(&cache->mutex);
    struct group_entry *entry = &cache->entries[(uint32_t)pid % GROUPS_CACHED];
    if (!entry->list || entry->pid != pid || entry->uid != uid || entry->gid != gid ||
        env_now_ns() >= entry->until_ns)
        return NULL;
    entry->list->refs++;
    return entry->list;
}

static void cache_store(struct group_cache *cache, int32_t pid, uint32_t uid, uint32_t gid,
                        struct group_list *list)
{
    HOLD(&cache->mutex);
    struct group_entry *entry = &cache->entries[(uint32_t)pid % GROUPS_CACHED];
    list->refs++;
    group_list_unref(entry->list);
    *entry = (struct group_entry){ .pid = pid,
                                   .uid = uid,
                                   .gid = gid,
                                   .list = list,
                                   .until_ns = env_now_ns() + cache->lifetime_ns };
}

void groups_get(struct group_cache *cache, int32_t pid, uint32_t uid, uint32_t gid, bool fresh,
                struct group_list **ret_list, bool *ret_remembered)
{
    struct group_list *list = fresh ? NULL : cache_find(cache, pid, uid, gid);

    *ret_remembered = list != NULL;
    if (!list) {
        list = groups_read(pid);
        if (list && cache->lifetime_ns)
            cache_store(cache, pid, uid, gid, list);
    }
    *ret_list = list;
}
