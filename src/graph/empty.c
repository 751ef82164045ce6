/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translators that volfiles name and that do nothing here: by design, or not yet. Each says why in
 * one line (the log repeats it at load); none has operations, so nothing ever enters one. Their
 * options are checked as ever, so that a mistake in a volfile shows. What an option would switch on
 * and cannot is refused, never silently left out. */
#include "graph/registry.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "graph/xlator.h"

#define ROW(type, name, ...)                                                                       \
    OPTION_NONE(type, name, .help = "Checked and kept; nothing reads it.", __VA_ARGS__)

/* --- what may not be switched on -------------------------------------------------------------- */

static const struct {
    const char *type, *option;
    bool off; /* the value that is fine */
    const char *refusal;
} switches[] = {
    { "features/trash", "trash", false, "deleted files cannot be kept in this version" },
    { "features/changelog", "changelog", false, "changes cannot be recorded in this version" },
    { "features/bitrot-stub", "bitrot", false, "objects cannot be signed in this version" },
    { "features/worm", "worm", false, "files cannot be made write-once in this version" },
    { "features/worm", "worm-file-level", false,
      "files cannot be made write-once in this version" },
    { "features/leases", "leases", false, "leases cannot be given in this version" },
    { "features/upcall", "cache-invalidation", false,
      "clients cannot be told of changes in this version" },
    { "features/marker", "quota", false, "usage cannot be accounted in this version" },
    { "features/marker", "inode-quota", false, "usage cannot be accounted in this version" },
    { "features/marker", "xtime", false, "changes cannot be indexed in this version" },
    { "features/barrier", "barrier", false, "operations cannot be held back in this version" },
    { "features/quota", "server-quota", false, "limits cannot be enforced in this version" },
    { "features/quota", "enable", false, "limits cannot be enforced in this version" },
    { "features/simple-quota", "pass-through", true, "limits cannot be enforced in this version" },
};

static int switches_check(struct xlator *xl)
{
    for (unsigned i = 0; i < ARRAY_SIZE(switches); i++) {
        const char *value = strcmp(xl->type->name, switches[i].type) == 0
                                ? option_set_get(&xl->options, switches[i].option)
                                : NULL;
        bool is_on;
        if (value && option_parse_bool(value, &is_on) == 0 && is_on != switches[i].off) {
            log_error(xl, 0, "option %s %s: %s", switches[i].option, value, switches[i].refusal);
            return -EOPNOTSUPP;
        }
    }
    return 0;
}

static int empty_init(struct xlator *xl)
{
    int ret = switches_check(xl);

    if (ret == 0)
        log_info(xl, 0, "%s is empty: %s", xl->type->name, xl->type->empty_because);
    return ret;
}

static int empty_reconfigure(struct xlator *xl, const struct option_set *set)
{
    (void)set; /* xl->options has it already */
    return switches_check(xl);
}

static int distribute_init(struct xlator *xl)
{
    if (xl->child_count > 1) {
        log_error(xl, 0,
                  "%s over %u subvolumes: files cannot be distributed in this version, "
                  "only a single subvolume passes through",
                  xl->type->name, xl->child_count);
        return -EOPNOTSUPP;
    }
    return empty_init(xl);
}


/* --- features/trash --------------------------------------------------------------------------- */

static const struct option trash_options[] = {
    ROW(OPT_BOOL, "trash", .fallback = "off"),
    ROW(OPT_STR, "trash-dir", .fallback = ".trashcan"),
    ROW(OPT_STR, "trash-eliminate-path"),
    ROW(OPT_SIZE, "trash-max-filesize", .fallback = "5MB"),
    ROW(OPT_BOOL, "trash-internal-op", .fallback = "off"),
    ROW(OPT_PATH, "brick-path"),
    OPTION_END,
};

static const struct xlator_type trash = {
    .name = "features/trash",
    .options = trash_options,
    .empty_because = "deleted files are not kept: the bin is off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/changelog ----------------------------------------------------------------------- */

static const struct option changelog_options[] = {
    ROW(OPT_BOOL, "changelog", .fallback = "off"),
    ROW(OPT_BOOL, "changelog-notification", .fallback = "off"),
    ROW(OPT_PATH, "changelog-brick"),
    ROW(OPT_PATH, "changelog-dir"),
    ROW(OPT_STR, "op-mode", .fallback = "realtime", .values = (const char *const[]){ "realtime",
        NULL }),
    ROW(OPT_STR, "encoding", .fallback = "ascii", .values = (const char *const[]){ "binary",
        "ascii", NULL }),
    ROW(OPT_TIME, "rollover-time", .fallback = "15"),
    ROW(OPT_TIME, "fsync-interval", .fallback = "5"),
    ROW(OPT_TIME, "changelog-barrier-timeout", .fallback = "120"),
    ROW(OPT_BOOL, "capture-del-path", .fallback = "off"),
    OPTION_END,
};

static const struct xlator_type changelog = {
    .name = "features/changelog",
    .options = changelog_options,
    .empty_because = "no journal of changes is written: it is off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/bitrot-stub --------------------------------------------------------------------- */

static const struct option bitrot_stub_options[] = {
    ROW(OPT_BOOL, "bitrot", .fallback = "off"),
    ROW(OPT_PATH, "export"),
    OPTION_END,
};

static const struct xlator_type bitrot_stub = {
    .name = "features/bitrot-stub",
    .options = bitrot_stub_options,
    .empty_because = "objects are not signed: bit-rot detection is off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/worm ---------------------------------------------------------------------------- */

static const struct option worm_options[] = {
    ROW(OPT_BOOL, "worm", .fallback = "off"),
    ROW(OPT_BOOL, "worm-file-level", .fallback = "off"),
    ROW(OPT_BOOL, "worm-files-deletable", .fallback = "on"),
    ROW(OPT_TIME, "default-retention-period", .fallback = "120"),
    ROW(OPT_STR, "retention-mode", .fallback = "relax"),
    ROW(OPT_TIME, "auto-commit-period", .fallback = "180"),
    OPTION_END,
};

static const struct xlator_type worm = {
    .name = "features/worm",
    .options = worm_options,
    .empty_because = "files are not protected: write-once is off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/leases -------------------------------------------------------------------------- */

static const struct option leases_options[] = {
    ROW(OPT_BOOL, "leases", .fallback = "off"),
    ROW(OPT_INT, "lease-lock-recall-timeout", .fallback = "60"),
    OPTION_END,
};

static const struct xlator_type leases = {
    .name = "features/leases",
    .options = leases_options,
    .empty_because = "no leases are given: they are off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/upcall -------------------------------------------------------------------------- */

static const struct option upcall_options[] = {
    ROW(OPT_BOOL, "cache-invalidation", .fallback = "off"),
    ROW(OPT_INT, "cache-invalidation-timeout", .fallback = "60"),
    OPTION_END,
};

static const struct xlator_type upcall = {
    .name = "features/upcall",
    .options = upcall_options,
    .empty_because = "no client is told of changes: invalidation is off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/selinux ------------------------------------------------------------------------- */

static const struct option selinux_options[] = {
    ROW(OPT_BOOL, "selinux", .fallback = "on"),
    OPTION_END,
};

static const struct xlator_type selinux = {
    .name = "features/selinux",
    .options = selinux_options,
    .empty_because = "a label is stored as security.selinux, under no other name",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/marker -------------------------------------------------------------------------- */

static const struct option marker_options[] = {
    ROW(OPT_ANY, "volume-uuid"),
    ROW(OPT_ANY, "timestamp-file"),
    ROW(OPT_ANY, "quota"),
    ROW(OPT_ANY, "inode-quota"),
    ROW(OPT_ANY, "xtime"),
    ROW(OPT_ANY, "gsync-force-xtime"),
    ROW(OPT_ANY, "quota-version"),
    OPTION_END,
};

static const struct xlator_type marker = {
    .name = "features/marker",
    .options = marker_options,
    .empty_because = "nothing is accounted: quota and indexing are off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/barrier ------------------------------------------------------------------------- */

static const struct option barrier_options[] = {
    ROW(OPT_BOOL, "barrier", .fallback = "disable"),
    ROW(OPT_TIME, "barrier-timeout", .fallback = "120"),
    OPTION_END,
};

static const struct xlator_type barrier = {
    .name = "features/barrier",
    .options = barrier_options,
    .empty_because = "nothing is held back: the barrier is off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/quota --------------------------------------------------------------------------- */

static const struct option quota_options[] = {
    ROW(OPT_BOOL, "enable", .fallback = "off"),
    ROW(OPT_BOOL, "deem-statfs", .fallback = "on"),
    ROW(OPT_BOOL, "server-quota", .fallback = "off"),
    ROW(OPT_PERCENT, "default-soft-limit", .fallback = "80%"),
    ROW(OPT_TIME, "soft-timeout", .fallback = "60", .max = 1800e9),
    ROW(OPT_TIME, "hard-timeout", .fallback = "5", .max = 60e9),
    ROW(OPT_STR, "volume-uuid"),
    ROW(OPT_TIME, "alert-time", .fallback = "86400", .max = 604800e9),
    OPTION_END,
};

static const struct xlator_type quota = {
    .name = "features/quota",
    .options = quota_options,
    .empty_because = "no limit is enforced: quota is off",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/simple-quota -------------------------------------------------------------------- */

static const struct option simple_quota_options[] = {
    ROW(OPT_BOOL, "pass-through", .fallback = "true"),
    ROW(OPT_BOOL, "use-backend", .fallback = "false"),
    ROW(OPT_BOOL, "cmd-from-all-client", .fallback = "false"),
    ROW(OPT_BOOL, "no-distribute", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type simple_quota = {
    .name = "features/simple-quota",
    .options = simple_quota_options,
    .empty_because = "no limit is enforced: it passes through",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/namespace ----------------------------------------------------------------------- */

static const struct option namespace_options[] = {
    ROW(OPT_BOOL, "tag-namespaces", .fallback = "off"),
    OPTION_END,
};

static const struct xlator_type namespace = {
    .name = "features/namespace",
    .options = namespace_options,
    .empty_because = "operations are not tagged: nothing here reads the tag",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/sdfs ---------------------------------------------------------------------------- */

static const struct option sdfs_options[] = {
    ROW(OPT_BOOL, "pass-through", .fallback = "true"),
    OPTION_END,
};

static const struct xlator_type sdfs = {
    .name = "features/sdfs",
    .options = sdfs_options,
    .empty_because = "creation is atomic on the brick: entries need no queue of their own",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- cluster/distribute ----------------------------------------------------------------------- */

static const struct option distribute_options[] = {
    ROW(OPT_STR, "lookup-unhashed", .fallback = "on", .values = (const char *const[]){ "auto",
        "yes", "no", "enable", "disable", "1", "0", "on", "off", NULL }),
    ROW(OPT_BOOL, "lookup-optimize", .fallback = "on"),
    ROW(OPT_PERCENT_OR_SIZE, "min-free-disk", .fallback = "10%"),
    ROW(OPT_PERCENT, "min-free-inodes", .fallback = "5%"),
    ROW(OPT_BOOL, "unhashed-sticky-bit", .fallback = "off"),
    ROW(OPT_BOOL, "use-readdirp", .fallback = "on"),
    ROW(OPT_BOOL, "assert-no-child-down", .fallback = "off"),
    ROW(OPT_INT, "directory-layout-spread", .min = 1),
    ROW(OPT_ANY, "decommissioned-bricks"),
    ROW(OPT_INT, "rebalance-cmd"),
    ROW(OPT_INT, "commit-hash"),
    ROW(OPT_STR, "node-uuid"),
    ROW(OPT_BOOL, "rebalance-stats", .fallback = "off"),
    ROW(OPT_BOOL, "readdir-optimize", .fallback = "off"),
    ROW(OPT_STR, "rsync-hash-regex"),
    ROW(OPT_STR, "extra-hash-regex"),
    ROW(OPT_STR, "rebalance-filter"),
    ROW(OPT_STR, "xattr-name", .fallback = "trusted.glusterfs.dht"),
    ROW(OPT_BOOL, "weighted-rebalance", .fallback = "on"),
    ROW(OPT_XLATOR, "local-volume-name"),
    ROW(OPT_ANY, "pattern.switch.case"),
    ROW(OPT_BOOL, "randomize-hash-range-by-gfid", .fallback = "off"),
    ROW(OPT_STR, "rebal-throttle", .fallback = "normal"),
    ROW(OPT_BOOL, "lock-migration", .fallback = "off"),
    ROW(OPT_BOOL, "force-migration", .fallback = "off"),
    ROW(OPT_BOOL, "ensure-durability", .fallback = "on"),
    ROW(OPT_BOOL, "rmdir-optimize", .fallback = "on"),
    OPTION_END,
};

static const struct xlator_type distribute = {
    .name = "cluster/distribute",
    .aliases = { "cluster/dht", "cluster/nufa", "cluster/switch" },
    .options = distribute_options,
    .empty_because = "with one subvolume there is nothing to distribute",
    .children_min = 1,
    .children_max = UINT32_MAX,
    .init = distribute_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/write-behind ----------------------------------------------------------------- */

static const struct option write_behind_options[] = {
    ROW(OPT_BOOL, "write-behind", .fallback = "off"),
    ROW(OPT_BOOL, "pass-through", .fallback = "false"),
    ROW(OPT_BOOL, "flush-behind", .fallback = "on"),
    ROW(OPT_SIZE, "cache-size", .aliases = { "window-size" }, .fallback = "1MB", .min = 524288,
        .max = 1073741824),
    ROW(OPT_BOOL, "trickling-writes", .fallback = "on"),
    ROW(OPT_BOOL, "strict-O_DIRECT", .fallback = "off"),
    ROW(OPT_BOOL, "strict-write-ordering", .fallback = "off"),
    ROW(OPT_BOOL, "resync-failed-syncs-after-fsync", .fallback = "off"),
    ROW(OPT_SIZE, "aggregate-size", .fallback = "128KB"),
    OPTION_END,
};

static const struct xlator_type write_behind = {
    .name = "performance/write-behind",
    .options = write_behind_options,
    .empty_because = "a write is answered when the brick has it; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/read-ahead ------------------------------------------------------------------- */

static const struct option read_ahead_options[] = {
    ROW(OPT_BOOL, "read-ahead", .fallback = "off"),
    ROW(OPT_BOOL, "force-atime-update", .fallback = "false"),
    ROW(OPT_INT, "page-count", .fallback = "4", .min = 1, .max = 16),
    ROW(OPT_SIZE, "page-size", .fallback = "131072", .min = 4096, .max = 67108864),
    ROW(OPT_BOOL, "pass-through", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type read_ahead = {
    .name = "performance/read-ahead",
    .options = read_ahead_options,
    .empty_because = "the kernel reads ahead; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/readdir-ahead ---------------------------------------------------------------- */

static const struct option readdir_ahead_options[] = {
    ROW(OPT_BOOL, "readdir-ahead", .fallback = "off"),
    ROW(OPT_SIZE, "rda-request-size", .fallback = "131072", .min = 4096, .max = 131072),
    ROW(OPT_SIZE, "rda-low-wmark", .fallback = "4096", .max = 10485760),
    ROW(OPT_SIZE, "rda-high-wmark", .fallback = "128KB", .max = 104857600),
    ROW(OPT_SIZE, "rda-cache-limit", .fallback = "10MB", .max = INFINITY),
    ROW(OPT_BOOL, "parallel-readdir", .fallback = "off"),
    ROW(OPT_BOOL, "pass-through", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type readdir_ahead = {
    .name = "performance/readdir-ahead",
    .options = readdir_ahead_options,
    .empty_because = "directories are asked for in large pieces; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/io-cache --------------------------------------------------------------------- */

static const struct option io_cache_options[] = {
    ROW(OPT_BOOL, "io-cache", .fallback = "off"),
    ROW(OPT_PRIORITY_LIST, "priority"),
    ROW(OPT_INT, "cache-timeout", .aliases = { "force-revalidate-timeout" }, .fallback = "1",
        .max = 60),
    ROW(OPT_SIZE, "cache-size", .fallback = "32MB", .min = 4194304, .max = INFINITY),
    ROW(OPT_SIZE, "min-file-size", .fallback = "0"),
    ROW(OPT_SIZE, "max-file-size", .fallback = "0"),
    ROW(OPT_BOOL, "pass-through", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type io_cache = {
    .name = "performance/io-cache",
    .options = io_cache_options,
    .empty_because = "the kernel caches pages; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/open-behind ------------------------------------------------------------------ */

static const struct option open_behind_options[] = {
    ROW(OPT_BOOL, "open-behind", .fallback = "off"),
    ROW(OPT_BOOL, "use-anonymous-fd", .fallback = "no"),
    ROW(OPT_BOOL, "lazy-open", .fallback = "yes"),
    ROW(OPT_BOOL, "read-after-open", .fallback = "yes"),
    ROW(OPT_BOOL, "pass-through", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type open_behind = {
    .name = "performance/open-behind",
    .options = open_behind_options,
    .empty_because = "an open is answered by the brick; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/quick-read ------------------------------------------------------------------- */

static const struct option quick_read_options[] = {
    ROW(OPT_BOOL, "quick-read", .fallback = "off"),
    ROW(OPT_ANY, "priority"),
    ROW(OPT_SIZE, "cache-size", .fallback = "128MB", .max = INFINITY),
    ROW(OPT_INT, "cache-timeout", .fallback = "1"),
    ROW(OPT_SIZE, "max-file-size", .fallback = "64KB", .max = 1024000),
    ROW(OPT_BOOL, "quick-read-cache-invalidation", .fallback = "false"),
    ROW(OPT_BOOL, "ctime-invalidation", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type quick_read = {
    .name = "performance/quick-read",
    .options = quick_read_options,
    .empty_because = "the kernel caches small files too; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/nl-cache --------------------------------------------------------------------- */

static const struct option nl_cache_options[] = {
    ROW(OPT_BOOL, "nl-cache", .fallback = "off"),
    ROW(OPT_BOOL, "nl-cache-positive-entry", .fallback = "false"),
    ROW(OPT_SIZE, "nl-cache-limit", .fallback = "131072"),
    ROW(OPT_TIME, "nl-cache-timeout", .fallback = "60"),
    ROW(OPT_BOOL, "pass-through", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type nl_cache = {
    .name = "performance/nl-cache",
    .options = nl_cache_options,
    .empty_because = "names that are missing are asked for again; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/md-cache --------------------------------------------------------------------- */

static const struct option md_cache_options[] = {
    ROW(OPT_BOOL, "md-cache", .fallback = "off"),
    ROW(OPT_BOOL, "cache-selinux", .fallback = "false"),
    ROW(OPT_BOOL, "cache-capability-xattrs", .fallback = "true"),
    ROW(OPT_BOOL, "cache-ima-xattrs", .fallback = "true"),
    ROW(OPT_BOOL, "cache-swift-metadata", .fallback = "false"),
    ROW(OPT_BOOL, "cache-samba-metadata", .fallback = "false"),
    ROW(OPT_BOOL, "cache-posix-acl", .fallback = "false"),
    ROW(OPT_BOOL, "cache-glusterfs-acl", .fallback = "false"),
    ROW(OPT_INT, "md-cache-timeout", .fallback = "1", .max = 600),
    ROW(OPT_BOOL, "force-readdirp", .fallback = "true"),
    ROW(OPT_BOOL, "cache-invalidation", .fallback = "false"),
    ROW(OPT_BOOL, "global-cache-invalidation", .fallback = "true"),
    ROW(OPT_BOOL, "md-cache-statfs", .fallback = "off"),
    ROW(OPT_STR, "xattr-cache-list"),
    ROW(OPT_BOOL, "pass-through", .fallback = "false"),
    OPTION_END,
};

static const struct xlator_type md_cache = {
    .name = "performance/md-cache",
    .aliases = { "performance/stat-prefetch" },
    .options = md_cache_options,
    .empty_because = "the kernel caches attributes; no work is done here yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/symlink-cache ---------------------------------------------------------------- */

static const struct xlator_type symlink_cache = {
    .name = "performance/symlink-cache",
    .empty_because = "the kernel caches links; it is gone since release 6",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- performance/decompounder ----------------------------------------------------------------- */

static const struct xlator_type decompounder = {
    .name = "performance/decompounder",
    .empty_because = "there are no compound operations any more",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/quiesce ------------------------------------------------------------------------- */

static const struct option quiesce_options[] = {
    ROW(OPT_TIME, "timeout", .fallback = "45"),
    ROW(OPT_ADDRESS_LIST, "failover-hosts"),
    OPTION_END,
};

static const struct xlator_type quiesce = {
    .name = "features/quiesce",
    .options = quiesce_options,
    .empty_because = "operations are not held while the subvolume is away: they fail as without it",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/mac-compat ---------------------------------------------------------------------- */

static const struct xlator_type mac_compat = {
    .name = "features/mac-compat",
    .empty_because = "it answered for attributes of a system that is not served any more",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/changetimerecorder -------------------------------------------------------------- */

static const struct option ctr_options[] = {
    ROW(OPT_BOOL, "ctr-enabled", .fallback = "off"),
    OPTION_END,
};

static const struct xlator_type ctr = {
    .name = "features/changetimerecorder",
    .options = ctr_options,
    .empty_because = "tiers are gone: nobody reads a record of access",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- features/ganesha ------------------------------------------------------------------------- */

static const struct option ganesha_options[] = {
    ROW(OPT_BOOL, "ganesha.enable", .fallback = "off"),
    OPTION_END,
};

static const struct xlator_type ganesha = {
    .name = "features/ganesha",
    .options = ganesha_options,
    .empty_because = "it marked an export and did nothing else",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- meta ------------------------------------------------------------------------------------- */

static const struct option meta_options[] = {
    ROW(OPT_STR, "meta-dir-name", .fallback = ".meta"),
    OPTION_END,
};

static const struct xlator_type meta = {
    .name = "meta",
    .options = meta_options,
    .empty_because = "the .meta directory is not served yet",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

/* --- playground/template ---------------------------------------------------------------------- */

static const struct option template_options[] = {
    ROW(OPT_INT, "dummy", .fallback = "1", .min = 1, .max = 1024),
    OPTION_END,
};

static const struct xlator_type template = {
    .name = "playground/template",
    .options = template_options,
    .empty_because = "an example that never did anything",
    .children_min = 1,
    .children_max = 1,
    .init = empty_init,
    .reconfigure = empty_reconfigure,
};

const struct xlator_type *const registry_empty[] = {
    &trash,
    &changelog,
    &bitrot_stub,
    &worm,
    &leases,
    &upcall,
    &selinux,
    &marker,
    &barrier,
    &quota,
    &simple_quota,
    &namespace,
    &sdfs,
    &distribute,
    &write_behind,
    &read_ahead,
    &readdir_ahead,
    &io_cache,
    &open_behind,
    &quick_read,
    &nl_cache,
    &md_cache,
    &symlink_cache,
    &decompounder,
    &quiesce,
    &mac_compat,
    &ctr,
    &ganesha,
    &meta,
    &template,
    NULL,
};
