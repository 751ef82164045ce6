/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "graph/registry.h"

#include <errno.h>
#include <string.h>

#include "graph/xlator.h"

/* Defined by the translators. */
#define REAL(name) extern const struct xlator_type name
REAL(xlator_storage_posix);
REAL(xlator_protocol_client);
REAL(xlator_protocol_server);
REAL(xlator_features_access_control);
REAL(xlator_features_index);
REAL(xlator_features_locks);
REAL(xlator_features_read_only);
REAL(xlator_features_utime);
REAL(xlator_performance_io_threads);
REAL(xlator_debug_delay_gen);
REAL(xlator_debug_error_gen);
REAL(xlator_debug_io_stats);
REAL(xlator_debug_sink);
REAL(xlator_debug_trace);

static const struct {
    const char *name;
    const char *aliases[2];
    const struct xlator_type *type;
} real[] = {
    { "storage/posix", { 0 }, &xlator_storage_posix },
    { "protocol/client", { 0 }, &xlator_protocol_client },
    { "protocol/server", { 0 }, &xlator_protocol_server },
    { "features/access-control", { "system/posix-acl" }, &xlator_features_access_control },
    { "features/index", { 0 }, &xlator_features_index },
    { "features/locks", { "features/posix-locks" }, &xlator_features_locks },
    { "features/read-only", { 0 }, &xlator_features_read_only },
    { "features/utime", { 0 }, &xlator_features_utime },
    { "performance/io-threads", { 0 }, &xlator_performance_io_threads },
    { "debug/delay-gen", { 0 }, &xlator_debug_delay_gen },
    { "debug/error-gen", { 0 }, &xlator_debug_error_gen },
    { "debug/io-stats", { 0 }, &xlator_debug_io_stats },
    { "debug/sink", { 0 }, &xlator_debug_sink },
    { "debug/trace", { 0 }, &xlator_debug_trace },
};

#define LATER "it is not in this version"
#define GONE "it was removed long ago and has no successor that could take its data over"

static const struct {
    const char *name, *reason;
} refused[] = {
    { "cluster/replicate", LATER ": a subvolume alone would miss the writes of the others" },
    { "cluster/afr", LATER ": a subvolume alone would miss the writes of the others" },
    { "cluster/disperse", LATER },
    { "cluster/ec", LATER },
    { "features/arbiter", LATER ": without it the brick would store what it must not" },
    { "features/thin-arbiter", LATER },
    { "features/bit-rot", LATER },
    { "features/cdc", LATER ": its peer would send what cannot be unpacked" },
    { "features/cloudsync", LATER ": files kept elsewhere would read as empty" },
    { "features/gfid-access", LATER },
    { "features/quotad", LATER },
    { "features/shard", LATER ": only the first block of every large file would be seen" },
    { "features/snapview-client", LATER },
    { "features/snapview-server", LATER },
    { "mgmt/glusterd", LATER },
    { "nfs/server", LATER },
    { "mount/fuse", "it is made from the command line's mount point, never from a volfile" },
    { "mount/api", "it is made by libgfapi, never from a volfile" },
    { "cluster/ha", GONE },
    { "cluster/map", GONE },
    { "cluster/stripe", GONE },
    { "cluster/tier", GONE },
    { "cluster/unify", GONE },
    { "encryption/crypt", GONE },
    { "encryption/rot-13", GONE },
    { "playground/rot-13", GONE },
    { "features/filter", GONE },
    { "features/fixed-id", GONE },
    { "features/glupy", GONE },
    { "features/metadisp", "it was never shipped" },
    { "features/path-convertor", GONE },
    { "features/prot_client", GONE },
    { "features/prot_dht", GONE },
    { "features/prot_server", GONE },
    { "features/qemu-block", GONE },
    { "legacy/protocol/client-old", "nobody speaks the protocol of release 3.0 any more" },
    { "legacy/protocol/server-old", "nobody speaks the protocol of release 3.0 any more" },
    { "performance/booster", GONE },
    { "storage/bd", GONE },
    { "storage/bd_map", GONE },
    { "storage/bdb", GONE },
};

static bool has_alias(const char *const *aliases, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count && aliases[i]; i++)
        if (strcmp(aliases[i], name) == 0)
            return true;
    return false;
}

static int find_real(const char *name, const struct xlator_type **ret_type)
{
    for (unsigned i = 0; i < ARRAY_SIZE(real); i++) {
        if (strcmp(real[i].name, name) != 0 &&
            !has_alias(real[i].aliases, ARRAY_SIZE(real[i].aliases), name))
            continue;
        *ret_type = real[i].type;
        return 0;
    }
    return -ENOENT;
}

static int find_empty(const char *name, const struct xlator_type **ret_type)
{
    for (unsigned i = 0; registry_empty[i]; i++) {
        const struct xlator_type *type = registry_empty[i];
        if (strcmp(type->name, name) == 0 ||
            has_alias(type->aliases, ARRAY_SIZE(type->aliases), name)) {
            *ret_type = type;
            return 0;
        }
    }
    return -ENOENT;
}

int registry_find(const char *name, const struct xlator_type **ret_type, const char **ret_reason)
{
    int ret = find_real(name, ret_type);

    if (ret == -ENOENT)
        ret = find_empty(name, ret_type);
    if (ret != -ENOENT)
        return ret;
    for (unsigned i = 0; i < ARRAY_SIZE(refused); i++)
        if (strcmp(refused[i].name, name) == 0) {
            *ret_reason = refused[i].reason;
            return -EOPNOTSUPP;
        }
    if (strncmp(name, "user/", 5) == 0) {
        *ret_reason = "translators of others are not loaded";
        return -EOPNOTSUPP;
    }
    return -ENOENT;
}

const struct xlator_type *registry_at(unsigned index)
{
    if (index < ARRAY_SIZE(real))
        return real[index].type;
    index -= ARRAY_SIZE(real);
    for (unsigned i = 0; registry_empty[i]; i++)
        if (index-- == 0)
            return registry_empty[i];
    return NULL;
}

const char *registry_refused_at(unsigned index, const char **ret_reason)
{
    if (index >= ARRAY_SIZE(refused))
        return NULL;
    *ret_reason = refused[index].reason;
    return refused[index].name;
}
