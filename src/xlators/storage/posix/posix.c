/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* storage/posix: maps file operations onto a local directory, the brick (spec/disk.md 1).
 *
 * Promises  A brick of ours is a brick of genuine 10.3 and the reverse, at any crash point.
 *           Nobody meets an entry that is being made (create.c). Nothing outside the brick is
 *           reached: names are single components, symlinks are never followed, handles are checked
 *           (handle.c). Permission is checked where an entry is made, by the kernel, as the caller;
 *           all else is the daemon's to do, for front doors and access-control have checked before.
 *           A brick crash loses at most the last second of times, never data (mdata.c).
 * Keeps     Per inode (node.h): descriptor of a directory, of anonymous I/O, times, the stats that
 *           the latest write left; NODES_KEPT_MAX inodes stay referenced for that. Per open file
 *           (fdstate.h): its descriptor. Per brick: descriptors of .glusterfs/00 ... ff.
 * Waits     One hop an operation, inside which all system calls run in place. What is answered from
 *           the kernel's caches (look-up, stat) runs on the lane, and so do READ and WRITE.
 * Locks     On workers only, in this order: name stripes (parent, name) - inode stripes (gfid) -
 *           dir_rename. A name's lock is held by whoever makes, moves or removes it; an inode's by
 *           whoever changes its links, its handle or (xattrop) its attributes. posix->mutex and
 *           node->mutex are for a few lines and are the innermost.
 *
 *   posix.c    options, life            lookup.c  LOOKUP, repair         attr.c     stats
 *   brick.c    start checks             create.c  new entries            xattr.c    xattrs by name
 *   handle.c   gfid -> object           entry.c   link, unlink, rename   virtual.c  ... on no disk
 *   object.c   one object, any access   dir.c     listings               xattrop.c  ... counted
 *   node.c     inodes in memory         data.c    bytes                  mdata.c    clients' times
 *   fdstate.c  open files               health.c  disk, reserve, landfill
 *   simple.c   the rest */
#include "xlators/storage/posix/posix.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "xlators/storage/posix/brick.h"
#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/health.h"
#include "xlators/storage/posix/mdata.h"

enum { STOP_WAIT_S = 5 };

/* --- shared small things ---------------------------------------------------------------------- */
bool posix_is_internal(const struct dict *xdata)
{
    return xdata && dict_get(xdata, "glusterfs-internal-fop");
}

int posix_room(struct posix *posix, const struct call *call, const struct dict *xdata)
{
    if (!posix->is_full || call->pid < 0 || posix_is_internal(xdata))
        return 0;
    return -ENOSPC;
}

int posix_check_name(const struct inode *parent, const char *name)
{
    if (!name || !name[0] || !parent)
        return -EINVAL;
    if (strchr(name, '/'))
        return -EPERM;
    if (strlen(name) > NAME_BYTES_MAX)
        return -ENAMETOOLONG;
    if (gfid_is_root(&parent->gfid) && strcmp(name, HANDLE_DIR) == 0)
        return -EPERM;
    return 0;
}

static unsigned stripe_of(const gfid_t *gfid, const char *name)
{
    uint64_t hash;
    memcpy(&hash, gfid->bytes + 8, sizeof(hash));
    for (; name && *name; name++)
        hash = (hash ^ (uint8_t)*name) * 0x100000001b3ull;
    return (unsigned)((hash ^ (hash >> 32)) % STRIPES);
}

static struct stripes lock_both(pthread_mutex_t *table, unsigned one, unsigned two)
{
    struct stripes held = { .mutex = { &table[MIN(one, two)] } };
    if (one != two)
        held.mutex[1] = &table[MAX(one, two)];
    for (int i = 0; i < 2; i++)
        if (held.mutex[i])
            pthread_mutex_lock(held.mutex[i]);
    return held;
}

struct stripes names_lock(struct posix *posix, const gfid_t *parent, const char *name)
{
    unsigned stripe = stripe_of(parent, name);
    return lock_both(posix->name_lock, stripe, stripe);
}

struct stripes names_lock2(struct posix *posix, const gfid_t *parent1, const char *name1,
                           const gfid_t *parent2, const char *name2)
{
    return lock_both(posix->name_lock, stripe_of(parent1, name1), stripe_of(parent2, name2));
}

struct stripes inodes_lock(struct posix *posix, const gfid_t *one, const gfid_t *two)
{
    return lock_both(posix->inode_lock, stripe_of(one, NULL), stripe_of(two ? two : one, NULL));
}

void stripes_unlock(struct stripes *stripes)
{
    for (int i = 1; i >= 0; i--)
        if (stripes->mutex[i])
            pthread_mutex_unlock(stripes->mutex[i]);
}

/* --- life ------------------------------------------------------------------------------------- */
static char *without_trailing_slashes(const char *path)
{
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    return strndup(path, bytes);
}

static void set_separator(struct posix *posix, const char *text)
{
    HOLD(&posix->mutex);
    snprintf(posix->separator, sizeof(posix->separator), "%s", text && *text ? text : ":");
}

/* Descriptors are left for open files where few are granted. */
static uint32_t kept_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return NODES_KEPT_MAX;
    return (uint32_t)MIN(limit.rlim_cur / 4, (rlim_t)NODES_KEPT_MAX);
}

static void prepare(struct posix *posix, struct xlator *xl)
{
    struct utsname names;

    posix->xl = xl;
    posix->root_fd = posix->handle_fd = posix->unlink_fd = posix->landfill_fd = -1;
    for (int i = 0; i < 256; i++)
        posix->first_fd[i] = -1;
    for (int i = 0; i < STRIPES; i++) {
        pthread_mutex_init(&posix->name_lock[i], NULL);
        pthread_mutex_init(&posix->inode_lock[i], NULL);
    }
    pthread_mutex_init(&posix->dir_rename, NULL);
    pthread_mutex_init(&posix->mutex, NULL);
    TAILQ_INIT(&posix->kept);
    posix->kept_max = kept_max();
    TAILQ_INIT(&posix->dirty);
    TAILQ_INIT(&posix->lingering);
    fcond_init(&posix->wake);
    set_separator(posix, posix->separator_option);
    if (posix->hostname)
        snprintf(posix->host, sizeof(posix->host), "%s", posix->hostname);
    else if (uname(&names) == 0)
        snprintf(posix->host, sizeof(posix->host), "%s", names.nodename);
}

struct open_brick {
    struct posix *posix;
    int ret;
};

static void open_brick_hop(void *arg)
{
    struct open_brick *open = arg;
    open->ret = brick_attach(open->posix);
    if (open->ret == 0)
        reserve_check(open->posix);
}

static int posix_init(struct xlator *xl)
{
    struct posix *posix = xl->state;

    prepare(posix, xl);
    posix->root_path = without_trailing_slashes(posix->directory);
    if (!posix->root_path)
        return -ENOMEM;
    struct open_brick open = { .posix = posix };
    hop(pool_default(), open_brick_hop, &open);
    return open.ret;
}

static int posix_start(struct xlator *xl)
{
    int ret = health_start(xl->state);
    if (ret == 0)
        xlator_notify(xl, EVENT_CHILD_UP, NULL);
    return ret;
}

static void close_brick_hop(void *arg)
{
    mdata_store_all(arg);
}

/* Whoever still watches the disk gets a few seconds: a dead disk must not keep the process. */
static bool fibers_ended(struct posix *posix)
{
    uint64_t until_ns = env_now_ns() + STOP_WAIT_S * NS_PER_S;
    int ret = 0;

    HOLD(&posix->mutex);
    posix->stopping = true;
    fcond_wake_all(&posix->wake);
    while (posix->fibers > 0 && ret == 0)
        ret = fcond_wait_until(&posix->wake, &posix->mutex, "end of the brick's fibers", until_ns);
    return posix->fibers == 0;
}

static void posix_stop(struct xlator *xl)
{
    struct posix *posix = xl->state;

    if (!fibers_ended(posix))
        log_warn(xl, 0, "the disk under %s does not answer: stopping without it", posix->directory);
    hop(pool_default(), close_brick_hop, posix);
    nodes_drop(posix);
}

static void posix_fini(struct xlator *xl)
{
    struct posix *posix = xl->state;

    if (!posix->xl)
        return; /* never initialised */
    posix->stopping = true;
    nodes_drop(posix);
    brick_detach(posix);
    free(posix->root_path);
}

static int posix_reconfigure(struct xlator *xl, const struct option_set *set)
{
    struct posix *posix = xl->state;
    const char *reserve = option_set_get(set, "reserve");
    struct option_amount amount = { .percent = 1, .is_percent = true };

    set_separator(posix, option_set_get(set, "gfid2path-separator"));
    if (reserve) {
        int ret = option_parse_amount(reserve, &amount);
        if (ret < 0)
            return ret;
    }
    {
        HOLD(&posix->mutex);
        posix->reserve = amount;
    }
    brick_apply_owner(posix);
    reserve_check(posix);
    return 0;
}

static void posix_forget(struct xlator *xl, struct inode *inode, void *state)
{
    (void)xl;
    (void)inode;
    node_free(state);
}

static void posix_release(struct xlator *xl, struct fd *fd, void *state)
{
    open_file_release(xl->state, fd, state);
}

static void posix_dump(struct xlator *xl, struct dump *dump)
{
    struct posix *posix = xl->state;

    dump_section(dump, "xlator.storage.posix.%s.priv", xl->name);
    dump_value(dump, "base_path", "%s", posix->root_path);
    dump_value(dump, "open_fds", "%llu", (unsigned long long)posix->fds_open);
    dump_value(dump, "kept_inodes", "%u", posix->kept_count);
    dump_value(dump, "healed_entries", "%llu", (unsigned long long)posix->heals);
    dump_value(dump, "purged_entries", "%llu", (unsigned long long)posix->purges);
    dump_value(dump, "disk_space_full", "%d", posix->is_full);
    dump_value(dump, "is_down", "%d", posix->is_down);
}

/* --- the table -------------------------------------------------------------------------------- */
#define DIRECT_HELP "READ and WRITE follow each open's flags: nothing to set for a whole brick."
#define AIO_HELP "The runtime chooses how it reads and writes (io_uring where it is granted)."

static const struct option posix_options[] = {
    OPTION_PATH(struct posix, directory, "directory", .flags = OPTION_REQUIRED,
                .help = "The directory that this brick serves."),
    OPTION_ANY(struct posix, hostname, "hostname",
               .help = "Host name in trusted.glusterfs.pathinfo; the system's own by default."),
    OPTION_ANY(struct posix, volume_id, "volume-id",
               .help = "The volume id that the directory must carry."),
    OPTION_STR(struct posix, glusterd_uuid, "glusterd-uuid",
               .help = "Answer of trusted.glusterfs.node-uuid."),
    OPTION_BOOL(struct posix, mandate_attribute, "mandate-attribute", .fallback = "on",
                .help = "Refuse a file system without extended attributes."),
    OPTION_BOOL(struct posix, export_statfs, "export-statfs-size", .fallback = "on",
                .help = "Off: STATFS shows zeros."),
    OPTION_BOOL(struct posix, ctime, "ctime", .fallback = "on", .flags = OPTION_LIVE,
                .help = "Keep the times of clients' clocks in an extended attribute."),
    OPTION_BOOL(struct posix, gfid2path, "gfid2path", .fallback = "on", .flags = OPTION_LIVE,
                .help = "Note each name of a file on the file, so that paths are found by gfid."),
    OPTION_STR(struct posix, separator_option, "gfid2path-separator", .fallback = ":",
               .help = "Between the paths of glusterfs.gfidtopath."),
    OPTION_BOOL(struct posix, update_link_count_parent, "update-link-count-parent",
                .fallback = "off", .flags = OPTION_LIVE,
                .help = "Note on each file how many names it has in each parent (quota)."),
    OPTION_BOOL(struct posix, node_uuid_pathinfo, "node-uuid-pathinfo", .fallback = "off",
                .flags = OPTION_LIVE, .help = "Path info names the server's uuid, not its host."),
    OPTION_BOOL(struct posix, fips_rchecksum, "fips-mode-rchecksum", .fallback = "off",
                .flags = OPTION_LIVE, .help = "Strong checksums are SHA-256, not MD5."),
    OPTION_BOOL(struct posix, disable_landfill_purge, "disable-landfill-purge", .fallback = "off",
                .flags = OPTION_LIVE, .help = "Keep removed trees in .glusterfs/landfill."),
    OPTION_INT(struct posix, janitor_s, "janitor-sleep-duration", .fallback = "10", .min = 1,
               .help = "Seconds between two visits to the landfill."),
    OPTION_INT(struct posix, brick_uid, "brick-uid", .fallback = "-1", .min = -1,
               .flags = OPTION_LIVE, .help = "Owner of the brick's directory; -1 leaves it."),
    OPTION_INT(struct posix, brick_gid, "brick-gid", .fallback = "-1", .min = -1,
               .flags = OPTION_LIVE, .help = "Group of the brick's directory; -1 leaves it."),
    OPTION_INT(struct posix, health_interval_s, "health-check-interval", .fallback = "30",
               .min = 0, .flags = OPTION_LIVE | OPTION_MIN_ONLY,
               .help = "Seconds between two checks of the disk; 0: never."),
    OPTION_INT(struct posix, health_timeout_s, "health-check-timeout", .fallback = "20", .min = 0,
               .flags = OPTION_LIVE | OPTION_MIN_ONLY,
               .help = "Seconds that one check may take; 0: any."),
    OPTION_AMOUNT(struct posix, reserve, "reserve", .fallback = "1",
                  .help = "Space that clients may not use: percent of the disk, or a size."),
    OPTION_INT(struct posix, shared_brick_count, "shared-brick-count", .fallback = "1",
               .flags = OPTION_LIVE,
               .help = "Bricks of the volume on this file system; STATFS is divided by it."),
    OPTION_INT(struct posix, force_create_mode, "force-create-mode", .fallback = "0000", .min = 0,
               .max = 0777, .flags = OPTION_LIVE, .help = "Mode bits that new files always get."),
    OPTION_INT(struct posix, force_directory_mode, "force-directory-mode", .fallback = "0000",
               .min = 0, .max = 0777, .flags = OPTION_LIVE,
               .help = "Mode bits that new directories always get."),
    OPTION_INT(struct posix, create_mask, "create-mask", .fallback = "0777", .min = 0, .max = 0777,
               .flags = OPTION_LIVE, .help = "Mode bits that new files may have."),
    OPTION_INT(struct posix, create_directory_mask, "create-directory-mask", .fallback = "0777",
               .min = 0, .max = 0777, .flags = OPTION_LIVE,
               .help = "Mode bits that new directories may have."),
    OPTION_INT(struct posix, max_hardlinks, "max-hardlinks", .fallback = "100", .min = 0,
               .flags = OPTION_LIVE | OPTION_MIN_ONLY,
               .help = "Names that one file may have; 0: any number."),
    OPTION_NONE(OPT_BOOL, "o-direct", .help = DIRECT_HELP),
    OPTION_NONE(OPT_BOOL, "background-unlink", .help = "Large files are freed outside locks."),
    OPTION_NONE(OPT_BOOL, "linux-aio", .fallback = "off", .help = AIO_HELP),
    OPTION_NONE(OPT_BOOL, "linux-io_uring", .fallback = "off", .help = AIO_HELP),
    OPTION_NONE(OPT_STR, "batch-fsync-mode", .fallback = "reverse-fsync",
                .help = "Syncs are the kernel's to batch."),
    OPTION_NONE(OPT_INT, "batch-fsync-delay-usec", .fallback = "0",
                .help = "Syncs are the kernel's to batch."),
    OPTION_NONE(OPT_BOOL, "span-devices", .help = "Of releases before 3.1."),
    OPTION_NONE(OPT_SIZE, "reserve-size", .fallback = "0", .help = "Of release 7; see reserve."),
    OPTION_END,
};

#define POSIX_ROW(op) .op = brick_##op,

const struct xlator_type xlator_storage_posix = {
    .name = "storage/posix",
    .state_size = sizeof(struct posix),
    .options = posix_options,
    .init = posix_init,
    .start = posix_start,
    .stop = posix_stop,
    .fini = posix_fini,
    .reconfigure = posix_reconfigure,
    .forget = posix_forget,
    .release = posix_release,
    .dump = posix_dump,
    .fops = { POSIX_FOPS(POSIX_ROW) },
};
