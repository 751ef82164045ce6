/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mount/fuse: takes the kernel's requests, hands them to its child as operations, answers.
 *
 * Promises: an answer is the child's, errno included, but for ENOSYS (which would turn the
 *           operation off); a request never waits where its caller cannot leave: a killed caller's
 *           request is given up, a lock's wait ends with any signal; before the child has come up
 *           for the first time requests wait, afterwards a child that is down says so itself.
 * Keeps:    the kernel's references (inode.lookups), handles of open files, requests in flight.
 *           No names, no attributes, no data: the kernel caches, as long as the time-outs say.
 * Locks:    see state.h; none is held over a wait.
 *
 * A request's way: device.c reads it, request.c gives it a fiber and finds its handler (entry.c,
 * attr.c, file.c, dir.c, lock.c, xattr.c, init.c), the handler calls the child and replies. */
#include "xlators/mount/fuse/fuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "xlators/mount/fuse/device.h"
#include "xlators/mount/fuse/mount.h"
#include "xlators/mount/fuse/replaced.h"
#include "xlators/mount/fuse/request.h"

enum {
    UMOUNT_WAIT_MS = 10000, /* for a plain unmount, which writes back what the kernel holds */
    FINI_WAIT_MS = 5000,
    SETTLE_MS = 5, /* so often nothing ran in a row: the kernel has nothing left to write */
    SETTLE_QUIET = 4,
    SETTLE_MAX = 400,
    FORCE_WAIT_MS = 2000, /* for a forced one, and for readers and requests to end */
};

/* --- mounting --------------------------------------------------------------------------------- */
static void mount_job(void *arg)
{
    struct mount_request *request = arg;
    int ret = mount_do(request);

    if (ret < 0)
        request->fd = ret;
}

static void clones_start(struct fuse *fuse)
{
    unsigned wanted = (unsigned)MIN(fuse->options.reader_threads, FUSE_DEVICES_MAX);
    unsigned lanes = wanted > 1 ? lanes_grow(wanted) : 1;

    for (unsigned i = 1; i < wanted; i++) {
        int fd = mount_clone(fuse->devices[0].fd);
        if (fd < 0 || device_start(fuse, fd, lane_get(i % lanes)) < 0) {
            log_warn(fuse->xl, fd,
                     "only %u of %u readers: the kernel does not clone the connection", i, wanted);
            return;
        }
    }
}

static int fuse_prepare(struct fuse *fuse, const struct fuse_mount_config *config)
{
    fuse->root = inode_get(fuse->xl->graph->inodes, &gfid_root);
    if (!fuse->root)
        return -ENOMEM;
    fuse->ended = config->ended;
    fuse->ended_arg = config->arg;
    return 0;
}

int fuse_mount(struct fuse_mount_config *config, struct graph *graph, struct fuse **ret_fuse)
{
    struct xlator *xl = graph->top;
    assert(xl->type == &xlator_mount_fuse);
    struct fuse *fuse = xl->state;
    int ret = fuse_prepare(fuse, config);
    if (ret < 0)
        return ret;

    struct mount_request request = {
        .mountpoint = config->mountpoint,
        .source = config->source,
        .error = config->error,
        .options = fuse->options.mountopts,
        .read_only = fuse->options.read_only,
        .acl = fuse->options.acl,
        .max_read = FUSE_REQUEST_BYTES_MAX,
    };
    hop(pool_default(), mount_job, &request);
    fuse->mountpoint = request.path;
    if (request.fd < 0)
        return request.fd;
    fuse->mount_dev = request.dev;
    fuse->mounted = true;
    ret = device_start(fuse, request.fd, lane_self());
    if (ret < 0)
        return ret;
    clones_start(fuse);
    *ret_fuse = fuse;
    return 0;
}

int fuse_ready_wait(struct fuse *fuse, uint64_t until_ns)
{
    int ret = 0;

    HOLD(&fuse->mutex);
    while (!fuse->ready && !fuse->refused && !fuse->end_seen && ret == 0)
        ret = fcond_wait_until(&fuse->changed, &fuse->mutex, "fuse: INIT", until_ns);
    if (fuse->refused)
        return -EPROTO;
    if (fuse->end_seen)
        return -ENOTCONN;
    return fuse->ready ? 0 : ret;
}

const char *fuse_transport(const struct fuse *fuse)
{
    return fuse->ring_is_used ? "io_uring" : "dev";
}

/* --- unmounting ------------------------------------------------------------------------------- */
struct unmount { /* outlives its waiter: a plain umount(2) may hang */
    struct fuse *fuse;
    char *mountpoint;
    uint64_t dev;
    bool force;
    int ret;
    bool done, abandoned;
};

static void unmount_job(void *arg)
{
    struct unmount *job = arg;

    job->ret = mount_undo(job->mountpoint, job->dev, job->force);
}

static void unmount_free(struct unmount *job)
{
    free(job->mountpoint);
    free(job);
}

static void unmount_fiber(void *arg)
{
    struct unmount *job = arg;
    bool abandoned;

    hop(pool_default(), unmount_job, job);
    {
        HOLD(&job->fuse->mutex);
        job->done = true;
        abandoned = job->abandoned;
        fcond_wake_all(&job->fuse->changed);
    }
    if (abandoned)
        unmount_free(job);
}

static struct unmount *unmount_new(struct fuse *fuse, bool force)
{
    struct unmount *job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    *job = (struct unmount){
        .fuse = fuse, .dev = fuse->mount_dev, .force = force, .mountpoint = strdup(fuse->mountpoint)
    };
    if (!job->mountpoint || fiber_start("fuse unmount", unmount_fiber, job) < 0) {
        unmount_free(job);
        return NULL;
    }
    return job;
}

/* 0: unmounted; -EBUSY; -ETIMEDOUT: it hangs. */
static int unmount_try(struct fuse *fuse, bool force, unsigned wait_ms)
{
    uint64_t until_ns = env_now_ns() + wait_ms * NS_PER_MS;
    struct unmount *job = unmount_new(fuse, force);
    int ret = 0;

    if (!job)
        return -ENOMEM;
    {
        HOLD(&fuse->mutex);
        while (!job->done && ret == 0)
            ret = fcond_wait_until(&fuse->changed, &fuse->mutex, "fuse: umount", until_ns);
        job->abandoned = !job->done;
        if (job->abandoned)
            return -ETIMEDOUT;
        ret = job->ret;
    }
    unmount_free(job);
    return ret;
}

/* Waits for readers and requests. false: not all have ended in time. */
static bool fuse_drain(struct fuse *fuse, unsigned wait_ms)
{
    uint64_t until_ns = env_now_ns() + wait_ms * NS_PER_MS;
    int ret = 0;

    HOLD(&fuse->mutex);
    while ((fuse->readers || fuse->running) && ret == 0)
        ret = fcond_wait_until(&fuse->changed, &fuse->mutex, "fuse: drain", until_ns);
    return fuse->readers == 0 && fuse->running == 0;
}

static void lookups_forget(struct inode *inode, void *arg)
{
    (void)arg;
    inode_lookups_drop(inode, UINT64_MAX);
}

/* What the kernel held. Nobody else touches these any more. */
static void fuse_release_all(struct fuse *fuse)
{
    struct handle *handle;

    replaced_drop_all(fuse);
    while ((handle = TAILQ_FIRST(&fuse->handles)))
        handle_free(fuse, handle);
    inode_table_each(fuse->xl->graph->inodes, lookups_forget, NULL);
    inode_unref(TAKE(fuse->root));
    devices_close(fuse);
}

static void fuse_set_stopping(struct fuse *fuse)
{
    HOLD(&fuse->mutex);
    fuse->stopping = true;
    fcond_wake_all(&fuse->changed);
}

/* syncfs(2) starts FUSE's write-back and does not wait for it: before the connection is cut, what
 * the kernel sends must have come and be done. Bounded, since those who use the mount go on as
 * well. */
static void fuse_settle(struct fuse *fuse)
{
    for (int i = 0, quiet = 0; i < SETTLE_MAX && quiet < SETTLE_QUIET; i++) {
        env_sleep(SETTLE_MS * NS_PER_MS);
        HOLD(&fuse->mutex);
        quiet = fuse->running ? 0 : quiet + 1;
    }
}

void fuse_unmount(struct fuse *fuse)
{
    fuse_set_stopping(fuse);
    if (fuse->mounted) {
        /* with the child down nothing can be written back: do not wait for it */
        int ret = fuse->child_up ? unmount_try(fuse, false, UMOUNT_WAIT_MS) : -EBUSY;
        if (ret < 0) {
            log_info(fuse->xl, ret, "%s is in use: unmounting it by force", fuse->mountpoint);
            if (fuse->child_up)
                fuse_settle(fuse);
            ret = unmount_try(fuse, true, FORCE_WAIT_MS);
        }
        if (ret < 0)
            log_warn(fuse->xl, ret, "cannot unmount %s", fuse->mountpoint);
        fuse->mounted = false;
    }
    requests_cancel(fuse);
    if (fuse_drain(fuse, FORCE_WAIT_MS))
        fuse_release_all(fuse);
    else /* they end when the children stop: fuse_fini comes back to it */
        log_warn(fuse->xl, 0, "%u requests of the kernel did not end in time", fuse->running);
}

/* --- the translator --------------------------------------------------------------------------- */
static int fuse_direct_parse(struct fuse *fuse)
{
    const char *mode = fuse->options.direct_io_mode;
    bool always;

    fuse->direct = DIRECT_AUTO;
    if (!mode || strcmp(mode, "auto") == 0)
        return 0;
    int ret = option_parse_bool(mode, &always);
    if (ret < 0) {
        log_error(fuse->xl, 0, "direct-io-mode %s: it is enable, disable or auto", mode);
        return ret;
    }
    fuse->direct = always ? DIRECT_ALWAYS : DIRECT_NEVER;
    return 0;
}

static int fuse_init(struct xlator *xl)
{
    struct fuse *fuse = xl->state;

    fuse->xl = xl;
    pthread_mutex_init(&fuse->mutex, NULL);
    fcond_init(&fuse->changed);
    pthread_mutex_init(&fuse->handles_mutex, NULL);
    TAILQ_INIT(&fuse->handles);
    LIST_INIT(&fuse->unlocking);
    for (int i = 0; i < FUSE_PENDING_BUCKETS; i++) {
        pthread_mutex_init(&fuse->pending[i].mutex, NULL);
        LIST_INIT(&fuse->pending[i].requests);
    }
    group_cache_init(&fuse->groups, (uint64_t)MAX(fuse->options.gid_timeout, 0) * NS_PER_S);
    return fuse_direct_parse(fuse);
}

static void fuse_fini(struct xlator *xl)
{
    struct fuse *fuse = xl->state;

    /* the children have stopped, so whoever waited in them has been answered */
    if (fuse->root && fuse_drain(fuse, FINI_WAIT_MS))
        fuse_release_all(fuse);
    free(fuse->mountpoint);
    group_cache_fini(&fuse->groups);
    for (int i = 0; i < FUSE_PENDING_BUCKETS; i++)
        pthread_mutex_destroy(&fuse->pending[i].mutex);
    pthread_mutex_destroy(&fuse->handles_mutex);
    pthread_mutex_destroy(&fuse->mutex);
}

static void fuse_event(struct xlator *xl, struct xlator *child, enum xlator_event event, void *data)
{
    struct fuse *fuse = xl->state;

    (void)child;
    if (event == EVENT_CHILD_UP || event == EVENT_CHILD_DOWN) {
        HOLD(&fuse->mutex);
        fuse->child_up = event == EVENT_CHILD_UP;
        if (fuse->child_up)
            fuse->up = true;
        fcond_wake_all(&fuse->changed);
    }
    xlator_notify(xl, event, data);
}

static void fuse_dump(struct xlator *xl, struct dump *dump)
{
    struct fuse *fuse = xl->state;
    struct inode_table *inodes = xl->graph->inodes;

    dump_section(dump, "xlator.mount.fuse.priv");
    dump_value(dump, "mount_point", "%s", fuse->mountpoint ? fuse->mountpoint : "");
    dump_value(dump, "transport", "%s", fuse_transport(fuse));
    dump_value(dump, "proto_minor", "%u", fuse->minor);
    dump_value(dump, "init_flags", "0x%llx", (unsigned long long)fuse->flags);
    dump_value(dump, "readers", "%u", fuse->device_count);
    dump_value(dump, "requests_running", "%u", fuse->running);
    dump_value(dump, "requests", "%llu", (unsigned long long)fuse->requests);
    dump_value(dump, "interrupts", "%llu", (unsigned long long)fuse->interrupts);
    dump_value(dump, "bytes_read", "%llu", (unsigned long long)fuse->bytes_read);
    dump_value(dump, "bytes_written", "%llu", (unsigned long long)fuse->bytes_written);
    dump_section(dump, "xlator.mount.fuse.itable");
    dump_value(dump, "xlator.mount.fuse.itable.active_size", "%llu",
               (unsigned long long)inode_table_count(inodes));
    dump_value(dump, "xlator.mount.fuse.itable.lru_size", "0"); /* none is kept that nobody uses */
}

#define FIELD(name) options.name
static const struct option fuse_options[] = {
    OPTION_STR(
        struct fuse, FIELD(direct_io_mode), "direct-io-mode",
        .help = "enable: every open bypasses the page cache; disable: none; auto: those with "
                "O_DIRECT."),
    OPTION_PATH(struct fuse, FIELD(mountpoint), "mountpoint", .aliases = { "mount-point" },
                .help = "Where it is mounted."),
    OPTION_NONE(OPT_PATH, "dump-fuse", .aliases = { "fuse-dumpfile" },
                .help = "No effect: strace or the kernel's tracepoints show the requests."),
    OPTION_DOUBLE(struct fuse, FIELD(attribute_timeout), "attribute-timeout", .fallback = "1.0",
                  .min = 0, .max = 1e9,
                  .help = "How long the kernel believes attributes, in seconds."),
    OPTION_DOUBLE(struct fuse, FIELD(entry_timeout), "entry-timeout", .fallback = "1.0", .min = 0,
                  .max = 1e9, .help = "How long the kernel believes names, in seconds."),
    OPTION_DOUBLE(struct fuse, FIELD(negative_timeout), "negative-timeout", .fallback = "0.0",
                  .min = 0, .max = 1e9,
                  .help = "How long the kernel believes that a name does not exist, in seconds."),
    OPTION_NONE(OPT_BOOL, "strict-volfile-check", .fallback = "false",
                .help = "No effect: a volfile is always checked as a whole."),
    OPTION_INT(struct fuse, FIELD(client_pid), "client-pid",
               .help = "Process id in whose name all requests are sent (internal clients)."),
    OPTION_INT(struct fuse, FIELD(uid_map_root), "uid-map-root",
               .help = "This user's requests are sent as root's."),
    OPTION_NONE(OPT_BOOL, "sync-to-mount",
                .help = "No effect: the mount is always complete first."),
    OPTION_BOOL(struct fuse, FIELD(read_only), "read-only", .fallback = "false",
                .help = "Mount read-only."),
    OPTION_BOOL(struct fuse, FIELD(keep_cache), "fopen-keep-cache", .fallback = "false",
                .help = "The page cache of a file outlives its last close."),
    OPTION_INT(struct fuse, FIELD(gid_timeout), "gid-timeout", .fallback = "300", .min = 0,
               .max = INT32_MAX,
               .help = "How long a process's supplementary groups are remembered, in seconds; a "
                       "refusal asks anew."),
    OPTION_NONE(OPT_BOOL, "resolve-gids", .fallback = "false",
                .help = "No effect: all groups of the process are always sent."),
    OPTION_BOOL(struct fuse, FIELD(acl), "acl", .fallback = "false", .help = "POSIX ACLs."),
    OPTION_BOOL(struct fuse, FIELD(selinux), "selinux", .fallback = "false",
                .help = "SELinux labels are read from and stored on the bricks."),
    OPTION_BOOL(struct fuse, FIELD(ino32), "enable-ino32", .fallback = "false",
                .help = "Inode numbers of 32 bits, for old programs."),
    OPTION_INT(struct fuse, FIELD(background_qlen), "background-qlen", .fallback = "64", .min = 16,
               .max = 65536, .help = "Background requests that the kernel has in flight at most."),
    OPTION_INT(struct fuse, FIELD(congestion_threshold), "congestion-threshold", .fallback = "48",
               .min = 12, .max = 65536,
               .help = "From this many background requests on the kernel holds writers back."),
    OPTION_STR(struct fuse, FIELD(mountopts), "fuse-mountopts",
               .help = "Further options of mount(2), by comma."),
    OPTION_BOOL(struct fuse, FIELD(use_readdirp), "use-readdirp", .fallback = "yes",
                .help = "Listings bring attributes."),
    OPTION_BOOL(struct fuse, FIELD(no_root_squash), "no-root-squash", .fallback = "false",
                .help = "Root stays root where the brick trusts this client."),
    OPTION_BOOL(struct fuse, FIELD(capability), "capability", .fallback = "false",
                .help = "File capabilities also on kernels that ask for them at every write."),
    OPTION_NONE(OPT_BOOL, "event-history", .fallback = "false",
                .help = "No effect: a statedump shows what runs."),
    OPTION_NONE(OPT_BOOL, "thin-client", .fallback = "false",
                .help = "No effect: a client is as thick as its volfile."),
    OPTION_INT(struct fuse, FIELD(reader_threads), "reader-thread-count", .fallback = "1", .min = 1,
               .max = 64, .help = "Readers of the kernel's requests, each with a descriptor."),
    OPTION_BOOL(struct fuse, FIELD(writeback_cache), "kernel-writeback-cache", .fallback = "false",
                .help = "The kernel gathers writes; other clients see them late."),
    OPTION_INT(struct fuse, FIELD(times_granularity), "attr-times-granularity", .fallback = "0",
               .min = 0, .max = 1000000000,
               .help = "Granularity of time stamps that the kernel makes itself, in ns; 0: 1."),
    OPTION_NONE(OPT_BOOL, "flush-handle-interrupt", .fallback = "false",
                .help = "No effect: every request of a killed process can be given up."),
    OPTION_NONE(
        OPT_INT, "lru-limit", .fallback = "65536",
        .help = "No effect: only inodes that the kernel uses are kept, and they are small."),
    OPTION_NONE(OPT_INT, "invalidate-limit", .fallback = "0",
                .help = "No effect: the kernel is never asked in bulk to forget."),
    OPTION_BOOL(struct fuse, FIELD(auto_invalidation), "auto-invalidation", .fallback = "true",
                .help = "The kernel drops a file's pages when its time or size changed elsewhere."),
    OPTION_NONE(OPT_INT, "fuse-dev-eperm-ratelimit-ns", .fallback = "10000000", .min = 0,
                .max = 1000000000,
                .help = "No effect: reading the device is not retried on EPERM."),
    OPTION_END,
};

const struct xlator_type xlator_mount_fuse = {
    .name = "mount/fuse",
    .state_size = sizeof(struct fuse),
    .options = fuse_options,
    .children_min = 1,
    .children_max = 1,
    .init = fuse_init,
    .fini = fuse_fini,
    .event = fuse_event,
    .dump = fuse_dump,
};
