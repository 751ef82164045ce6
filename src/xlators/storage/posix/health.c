/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/health.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "xlators/storage/posix/entry.h"
#include "xlators/storage/posix/handle.h"

enum { RESERVE_PERIOD_S = 5, HEALTH_TEXT_SIZE = 64, HEALTH_GRACE_S = 30 };

/* --- fibers that wake now and then ------------------------------------------------------------ */
/* Waits; false: the brick stops. */
static bool pause_for(struct posix *posix, uint64_t ns, const char *why)
{
    uint64_t until_ns = env_now_ns() + ns;

    HOLD(&posix->mutex);
    while (!posix->stopping && fcond_wait_until(&posix->wake, &posix->mutex, why, until_ns) == 0)
        ;
    return !posix->stopping;
}

static void fiber_ends(struct posix *posix)
{
    HOLD(&posix->mutex);
    posix->fibers--;
    fcond_wake_all(&posix->wake);
}

static int start_fiber(struct posix *posix, const char *name, fiber_fn *fn, void *arg)
{
    {
        HOLD(&posix->mutex);
        posix->fibers++;
    }
    int ret = fiber_start(name, fn, arg);
    if (ret < 0)
        fiber_ends(posix);
    return ret;
}

/* --- the reserve (spec/disk.md 1.9) ----------------------------------------------------------- */
void reserve_check(struct posix *posix)
{
    struct option_amount reserve;
    struct statvfs vfs;

    {
        HOLD(&posix->mutex);
        reserve = posix->reserve;
    }
    if (env_fstatvfs(posix->root_fd, &vfs) < 0)
        return;
    double free_bytes = (double)vfs.f_bfree * (double)vfs.f_bsize;
    double kept = reserve.is_percent
                      ? (double)vfs.f_blocks * (double)vfs.f_bsize * reserve.percent / 100
                      : (double)reserve.bytes;
    bool is_full = kept > 0 && free_bytes <= kept;
    if (is_full && !posix->is_full)
        log_warn(posix->xl, 0, "brick directory %s: free space is down to the reserve; new data is "
                 "refused (ENOSPC) until something is deleted, or storage.reserve lowered",
                 posix->directory);
    if (!is_full && posix->is_full)
        log_info(posix->xl, 0, "brick directory %s: free space is above the reserve again",
                 posix->directory);
    posix->is_full = is_full;
}

static void reserve_hop(void *arg)
{
    reserve_check(arg);
}

static void reserve_fiber(void *arg)
{
    struct posix *posix = arg;
    while (pause_for(posix, RESERVE_PERIOD_S * NS_PER_S, "next look at the free space"))
        hop(pool_default(), reserve_hop, posix);
    fiber_ends(posix);
}

/* --- health (spec/disk.md 1.10) --------------------------------------------------------------- */
/* One check, in memory of its own: it may hang in a dead disk long after we stopped waiting. */
struct probe {
    struct posix *posix;
    _Atomic uint32_t refs;
    _Atomic bool is_done;
    int ret;
    const char *step;
};

static void probe_unref(struct probe *probe)
{
    if (--probe->refs == 0)
        free(probe);
}

static int probe_file(struct probe *probe)
{
    static const char name[] = "health_check";
    struct timespec now = env_wallclock();
    char text[HEALTH_TEXT_SIZE], back[HEALTH_TEXT_SIZE];
    struct tm utc;

    gmtime_r(&now.tv_sec, &utc);
    size_t bytes = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S +0000", &utc);
    probe->step = "open";
    AUTO_FD fd = env_openat(probe->posix->handle_fd, name,
                            O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return fd;
    probe->step = "write";
    struct iovec out = { text, bytes }, in = { back, sizeof(back) };
    ssize_t ret = env_pwritev(fd, &out, 1, 0, 0);
    if (ret >= 0 && (size_t)ret != bytes)
        ret = -EIO;
    if (ret < 0)
        return (int)ret;
    probe->step = "read";
    AUTO_FD again = env_openat(probe->posix->handle_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (again < 0)
        return again;
    ret = env_preadv(again, &in, 1, 0);
    if (ret < 0)
        return (int)ret;
    probe->step = "compare";
    return (size_t)ret == bytes && memcmp(text, back, bytes) == 0 ? 0 : -EIO;
}

static void probe_hop(void *arg)
{
    struct probe *probe = arg;
    probe->ret = probe_file(probe);
}

static void probe_fiber(void *arg)
{
    struct probe *probe = arg;
    struct posix *posix = probe->posix;

    hop(pool_default(), probe_hop, probe);
    probe->is_done = true;
    {
        HOLD(&posix->mutex);
        fcond_wake_all(&posix->wake);
    }
    probe_unref(probe);
    fiber_ends(posix);
}

/* 0, the check's failure, or -ETIMEDOUT. */
static int health_check(struct posix *posix, const char **ret_step)
{
    struct probe *probe = calloc(1, sizeof(*probe));
    if (!probe)
        return 0; /* memory is not the disk's fault */
    *probe = (struct probe){ .posix = posix, .refs = 2, .step = "start" };
    if (start_fiber(posix, "posix-probe", probe_fiber, probe) < 0) {
        free(probe);
        return 0;
    }
    uint64_t timeout_s = (uint64_t)posix->health_timeout_s;
    uint64_t until_ns = timeout_s ? env_now_ns() + timeout_s * NS_PER_S : UINT64_MAX;
    int ret = 0;
    {
        HOLD(&posix->mutex);
        while (ret == 0 && !probe->is_done && !posix->stopping)
            ret = fcond_wait_until(&posix->wake, &posix->mutex, "health check", until_ns);
    }
    if (probe->is_done)
        ret = probe->ret;
    *ret_step = probe->step;
    probe_unref(probe);
    return ret;
}

/* The brick is worth nothing without its disk: clients turn to its peers, the process ends. */
static void brick_failed(struct posix *posix, int ret, const char *step)
{
    posix->is_down = true;
    log_critical(posix->xl, ret, "health check of brick directory %s failed at %s: the brick goes "
                 "down; check its disk (dmesg), then start it again", posix->directory, step);
    xlator_notify(posix->xl, EVENT_CHILD_DOWN, NULL);
    if (pause_for(posix, HEALTH_GRACE_S * NS_PER_S, "grace after a failed health check"))
        raise(SIGTERM);
    if (pause_for(posix, HEALTH_GRACE_S * NS_PER_S, "grace after SIGTERM"))
        raise(SIGKILL);
}

static void health_fiber(void *arg)
{
    struct posix *posix = arg;
    const char *step = "";
    int ret = 0;

    for (;;) {
        int64_t interval_s = posix->health_interval_s;
        if (!pause_for(posix, (uint64_t)(interval_s > 0 ? interval_s : 5) * NS_PER_S,
                       "next health check"))
            break;
        if (interval_s > 0)
            ret = health_check(posix, &step);
        if (ret < 0 && ret != -EAGAIN && !posix->stopping) {
            brick_failed(posix, ret, step);
            break;
        }
        ret = 0;
    }
    fiber_ends(posix);
}

/* --- the landfill ----------------------------------------------------------------------------- */
/* A tree is taken apart without recursion: directories in it move up into the landfill and have
 * their turn there; what a crash leaves is such a directory. */
static int raise_directory(struct posix *posix, int dir, const gfid_t *parent, const char *name)
{
    struct object object = object_at(dir, name);
    char fresh_name[UUID_TEXT_SIZE];
    gfid_t gfid, fresh;

    if (object_gfid(&object, &gfid) == 0)
        handle_unlink_dir(posix, &gfid, parent, name);
    gfid_generate(&fresh);
    return env_renameat2(dir, name, posix->landfill_fd, gfid_format(&fresh, fresh_name), 0);
}

static int purge_entry(struct posix *posix, int dir, const gfid_t *parent,
                       const struct dirent64 *entry)
{
    const char *name = entry->d_name;
    struct stat st;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    int ret = env_fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
    if (ret < 0)
        return ret;
    posix->purges++;
    return S_ISDIR(st.st_mode) ? raise_directory(posix, dir, parent, name)
                               : entry_remove_file(posix, dir, parent, name);
}

typedef int entry_fn(struct posix *posix, int dir, const gfid_t *parent,
                     const struct dirent64 *entry);

static int each_entry(struct posix *posix, int dir, const gfid_t *parent, entry_fn *fn)
{
    union {
        struct dirent64 alignment;
        char bytes[8192];
    } buffer;
    ssize_t got;
    int ret = 0;

    while ((got = env_getdents(dir, buffer.bytes, sizeof(buffer.bytes))) > 0)
        for (ssize_t at = 0; at < got && !posix->stopping;) {
            struct dirent64 *entry = (struct dirent64 *)(void *)(buffer.bytes + at);
            int one = fn(posix, dir, parent, entry);
            if (one < 0)
                ret = one;
            at += entry->d_reclen;
        }
    return got < 0 ? (int)got : ret;
}

static int purge_tree(struct posix *posix, int dir, const gfid_t *parent,
                      const struct dirent64 *entry)
{
    const char *name = entry->d_name;
    gfid_t gfid = gfid_null;

    (void)parent;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    AUTO_FD fd = env_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd == -ENOTDIR ? env_unlinkat(dir, name, 0) : fd;
    struct object object = object_fd(fd);
    /* unlabelled: its children's handles name no parent */
    best_effort(object_gfid(&object, &gfid));
    int ret = each_entry(posix, fd, &gfid, purge_entry);
    return ret < 0 ? ret : env_unlinkat(dir, name, AT_REMOVEDIR);
}

static void purge_hop(void *arg)
{
    struct posix *posix = arg;
    AUTO_FD fd = env_openat(posix->landfill_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    int ret = each_entry(posix, fd, &gfid_null, purge_tree);
    if (ret < 0 && ret != -ENOENT)
        log_debug(posix->xl, ret, "something stays in the landfill of %s", posix->directory);
}

static void janitor_fiber(void *arg)
{
    struct posix *posix = arg;
    while (pause_for(posix, (uint64_t)posix->janitor_s * NS_PER_S, "next turn of the janitor"))
        if (!posix->disable_landfill_purge)
            hop(pool_default(), purge_hop, posix);
    fiber_ends(posix);
}

int health_start(struct posix *posix)
{
    int ret = start_fiber(posix, "posix-reserve", reserve_fiber, posix);
    if (ret == 0)
        ret = start_fiber(posix, "posix-health", health_fiber, posix);
    if (ret == 0)
        ret = start_fiber(posix, "posix-janitor", janitor_fiber, posix);
    return ret;
}
