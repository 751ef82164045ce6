/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/xattr.h"

#include <endian.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <xxhash.h>

#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* --- who may see what (spec/disk.md 1.4) ------------------------------------------------------ */
static bool is_geo_replication(const char *name)
{
    return fnmatch("*.glusterfs.*.xtime", name, 0) == 0 ||
           fnmatch("*.glusterfs.*stime", name, 0) == 0 ||
           fnmatch("*.glusterfs.*.entry_stime", name, 0) == 0 ||
           fnmatch("*.glusterfs.lockinfo", name, 0) == 0 ||
           fnmatch("*.glusterfs.volume-mark.*", name, 0) == 0;
}

static bool is_identity(const char *name)
{
    return strcmp(name, XATTR_GFID) == 0 || strcmp(name, XATTR_VOLUME_ID) == 0;
}

static bool is_brick_only(const char *name)
{
    return is_identity(name) || begins(name, XATTR_GFID2PATH) || begins(name, XATTR_PGFID) ||
           begins(name, "trusted.glusterfs.quota.") ||
           strcmp(name, "trusted.bit-rot.bad-file") == 0;
}

bool xattr_is_visible(const char *name, const struct call *call)
{
    if (is_brick_only(name))
        return false;
    if (strcmp(name, XATTR_MDATA) == 0)
        return call->pid < 0; /* heal and rebalance carry it over */
    return call->pid == PID_GSYNCD || !is_geo_replication(name);
}

/* By name, a pending-index entry of replicate or a layout is what its owner asks for: those
 * pass. */
static bool may_get(const char *name, const struct call *call)
{
    if (call->pid < 0 && (begins(name, "trusted.glusterfs.quota.") || begins(name, XATTR_PGFID)))
        return true;
    return xattr_is_visible(name, call);
}

bool xattr_is_storable(const char *key)
{
    static const char *const spaces[] = { "user.", "trusted.", "security.", "system.posix_acl_" };

    if (is_identity(key) || begins(key, XATTR_GFID2PATH) || strcmp(key, XATTR_MDATA) == 0 ||
        begins(key, XATTR_PGFID) || strcmp(key, "trusted.io-stats-dump") == 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
        if (begins(key, spaces[i]))
            return true;
    return false;
}

/* --- creation's dict -------------------------------------------------------------------------- */
static const void *bytes_of(const struct dict_value *value, size_t *ret_bytes)
{
    if (value->type == DICT_INT || value->type == DICT_UINT || value->type == DICT_DOUBLE)
        return NULL;
    *ret_bytes = value->bytes;
    return value->data;
}

int xattr_store_dict(struct posix *posix, const struct object *object, struct dict *xdata,
                     mode_t type)
{
    const char *layout = dict_get_str(xdata, "glusterfs.preop.parent.key");
    const struct dict_value *value;
    const char *key;

    (void)posix;
    for (uint32_t i = 0; (key = dict_at(xdata, i, &value)); i++) {
        size_t bytes = 0;
        const void *data = bytes_of(value, &bytes);
        if (!data || !xattr_is_storable(key) || (layout && strcmp(key, layout) == 0))
            continue; /* the last: the parent's layout, checked before */
        if (S_ISLNK(type) && (begins(key, "user.") || begins(key, "system.posix_acl_")))
            continue;
        int ret = object_setxattr(object, key, data, bytes, 0);
        if (ret == -EOPNOTSUPP && begins(key, "system.posix_acl_"))
            continue; /* a brick mounted without ACLs keeps none */
        if (ret < 0)
            return ret;
    }
    return 0;
}

/* --- requests by key or pattern (spec/wire.md 4.3) -------------------------------------------- */
struct answer {
    struct posix *posix;
    struct call *call;
    struct node *node;
    const struct object *object;
    struct dict **dict;
    char *names;              /* of the object's xattrs, read once */
    size_t names_bytes;
    bool is_listed;
};

static int answer_room(struct answer *answer)
{
    if (!*answer->dict)
        *answer->dict = dict_new();
    return *answer->dict ? 0 : -ENOMEM;
}

static int answer_times(struct answer *answer)
{
    uint8_t bytes[MDATA_BYTES];

    if (answer->node && mdata_is_known(answer->posix, answer->node)) {
        if (!mdata_value(answer->posix, answer->node, bytes))
            return 0;
    } else if (object_getxattr(answer->object, XATTR_MDATA, bytes, sizeof(bytes)) !=
               sizeof(bytes)) {
        return 0;
    }
    int ret = answer_room(answer);
    return ret < 0 ? ret : dict_set_bytes(*answer->dict, XATTR_MDATA, bytes, sizeof(bytes));
}

/* Stores one xattr in the answer; one that is not there is not an error. */
static int answer_one(struct answer *answer, const char *name)
{
    AUTO_FREE char *value = NULL;
    size_t bytes;

    if (strcmp(name, XATTR_MDATA) == 0)
        return answer_times(answer);
    int ret = object_getxattr_all(answer->object, name, &value, &bytes);
    if (ret < 0)
        return ret == -ENOMEM ? ret : 0;
    ret = answer_room(answer);
    return ret < 0 ? ret : dict_set_bytes(*answer->dict, name, value, (uint32_t)bytes);
}

static int answer_list(struct answer *answer)
{
    if (answer->is_listed)
        return 0;
    int ret = object_listxattr_all(answer->object, &answer->names, &answer->names_bytes);
    answer->is_listed = true;
    return ret == -ENOMEM ? ret : 0; /* none, or none that can be read */
}

#define FOR_EACH_NAME(name, names, bytes)                                                          \
    for (const char *name = (names); name && name < (names) + (bytes); name += strlen(name) + 1)

/* list-xattr: everything but identity, labels and bookkeeping. */
static bool is_for_replicate(const char *name)
{
    return !is_identity(name) && !begins(name, XATTR_GFID2PATH) && !is_geo_replication(name) &&
           strcmp(name, "security.selinux") != 0 && !begins(name, "trusted.glusterfs.quota.");
}

static int answer_all(struct answer *answer)
{
    int ret = answer_list(answer);
    FOR_EACH_NAME(name, answer->names, answer->names_bytes)
        if (ret == 0 && is_for_replicate(name))
            ret = answer_one(answer, name);
    return ret;
}

static int answer_pattern(struct answer *answer, const char *pattern)
{
    int ret = 0;
    FOR_EACH_NAME(name, answer->names, answer->names_bytes)
        if (ret == 0 && fnmatch(pattern, name, 0) == 0 && !is_identity(name) &&
            !begins(name, XATTR_GFID2PATH))
            ret = answer_one(answer, name);
    return ret;
}

static bool is_present(const struct answer *answer, const char *key)
{
    FOR_EACH_NAME(name, answer->names, answer->names_bytes)
        if (strcmp(name, key) == 0)
            return true;
    return false;
}

static int answer_opens(struct answer *answer, const char *key)
{
    int ret = answer_room(answer);
    if (ret < 0)
        return ret;
    return dict_set_uint(*answer->dict, key, answer->node ? answer->node->opens : 0);
}

static int answer_key(struct answer *answer, const char *key)
{
    if (strcmp(key, "list-xattr") == 0)
        return answer_all(answer);
    if (strcmp(key, "glusterfs.open-fd-count") == 0)
        return answer_opens(answer, key);
    if (!xattr_is_storable(key) && strcmp(key, XATTR_MDATA) != 0 && !strpbrk(key, "*?["))
        return 0;
    int ret = answer_list(answer);
    if (ret < 0)
        return ret;
    if (strpbrk(key, "*?["))
        return answer_pattern(answer, key);
    if (strcmp(key, XATTR_MDATA) != 0 && !is_present(answer, key))
        return 0;
    return answer_one(answer, key);
}

int xattr_answer(struct posix *posix, struct call *call, struct node *node,
                 const struct object *object, const struct dict *asked, struct dict **ret_dict)
{
    struct answer answer = {
        .posix = posix, .call = call, .node = node, .object = object, .dict = ret_dict,
    };
    const struct dict_value *value;
    const char *key;
    int ret = 0;

    for (uint32_t i = 0; ret == 0 && (key = dict_at(asked, i, &value)); i++)
        ret = answer_key(&answer, key);
    free(answer.names);
    return ret;
}

/* --- gfid2path, pgfid ------------------------------------------------------------------------- */
void gfid2path_format(const gfid_t *parent, const char *name, char xattr[GFID2PATH_NAME_SIZE],
                      char value[GFID2PATH_VALUE_SIZE])
{
    char gfid[UUID_TEXT_SIZE];
    int bytes = snprintf(value, GFID2PATH_VALUE_SIZE, "%s/%s", gfid_format(parent, gfid), name);

    snprintf(xattr, GFID2PATH_NAME_SIZE, XATTR_GFID2PATH "%016llx",
             (unsigned long long)XXH64(value, (size_t)bytes, 0));
}

void gfid2path_add(struct posix *posix, const struct object *object, const gfid_t *parent,
                   const char *name)
{
    char xattr[GFID2PATH_NAME_SIZE], value[GFID2PATH_VALUE_SIZE];

    if (!posix->gfid2path)
        return;
    gfid2path_format(parent, name, xattr, value);
    int ret = object_setxattr(object, xattr, value, strlen(value), 0);
    if (ret < 0 && ret != -ENOSPC && ret != -ERANGE && ret != -E2BIG)
        log_warn(posix->xl, ret, "cannot note the name %s: paths by gfid will lack it", value);
}

void gfid2path_remove(struct posix *posix, const struct object *object, const gfid_t *parent,
                      const char *name)
{
    char xattr[GFID2PATH_NAME_SIZE], value[GFID2PATH_VALUE_SIZE];

    if (!posix->gfid2path)
        return;
    gfid2path_format(parent, name, xattr, value);
    best_effort(object_removexattr(object, xattr)); /* may never have been there */
}

void pgfid_add(struct posix *posix, const struct object *object, const gfid_t *parent, int delta)
{
    char name[sizeof(XATTR_PGFID) + UUID_TEXT_SIZE], gfid[UUID_TEXT_SIZE];
    uint32_t count = 0;

    if (!posix->update_link_count_parent)
        return;
    snprintf(name, sizeof(name), XATTR_PGFID "%s", gfid_format(parent, gfid));
    if (object_getxattr(object, name, &count, sizeof(count)) != sizeof(count))
        count = 0;
    uint32_t now = be32toh(count);
    now = delta < 0 && now == 0 ? 0 : now + (uint32_t)delta;
    count = htobe32(now);
    if (now == 0)
        best_effort(object_removexattr(object, name)); /* was not there */
    else if (object_setxattr(object, name, &count, sizeof(count), 0) < 0)
        log_debug(posix->xl, 0, "cannot store %s", name);
}

/* --- SETXATTR --------------------------------------------------------------------------------- */
struct setting {
    struct posix *posix;
    struct call *call;
    struct node *node;
    const struct object *object;
    struct dict *dict, *xdata;
    int flags;
};

static uint32_t be32_at(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return be32toh(value);
}

static int64_t be64_at(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return (int64_t)be64toh(value);
}

/* set-ctime-mdata: atime, mtime, ctime; their nanoseconds (spec/wire.md 3.2). */
static int set_first_times(const struct setting *setting, const struct dict_value *value)
{
    const uint8_t *bytes = value->data;
    if (value->type != DICT_MDATA || value->bytes != 36)
        return -EINVAL;
    struct mdata mdata = {
        .atime = { be64_at(bytes), be32_at(bytes + 24) },
        .mtime = { be64_at(bytes + 8), be32_at(bytes + 28) },
        .ctime = { be64_at(bytes + 16), be32_at(bytes + 32) },
    };
    mdata_merge(setting->posix, setting->node, &mdata, true);
    mdata_store(setting->posix, setting->node);
    return 0;
}

static int set_times(const struct setting *setting, const struct dict_value *value)
{
    struct mdata mdata;
    int ret = value->data ? mdata_decode(value->data, value->bytes, &mdata) : -EINVAL;
    if (ret < 0)
        return ret;
    mdata_merge(setting->posix, setting->node, &mdata, false);
    mdata_store(setting->posix, setting->node);
    return 0;
}

static int set_one(const struct setting *setting, const char *key, const struct dict_value *value)
{
    size_t bytes = 0;

    if (is_identity(key) || strcmp(key, "trusted.io-stats-dump") == 0)
        return 0; /* dropped without a word, as genuine bricks do */
    if (strcmp(key, "set-ctime-mdata") == 0)
        return set_first_times(setting, value);
    if (strcmp(key, XATTR_MDATA) == 0)
        return set_times(setting, value);
    if (begins(key, XATTR_GFID2PATH) || begins(key, "glusterfs."))
        return -EOPNOTSUPP;
    if (!xattr_is_storable(key) && !begins(key, XATTR_PGFID))
        return -EOPNOTSUPP;
    const void *data = bytes_of(value, &bytes);
    if (!data)
        return -EINVAL;
    return object_setxattr(setting->object, key, data, bytes, setting->flags);
}

static int answer_iatt(const struct setting *setting, const char *key, struct dict **ret_xdata)
{
    uint8_t wire[IATT_WIRE_BYTES];
    struct iatt iatt;

    int ret = stat_iatt(setting->posix, setting->node, setting->object, &iatt);
    if (ret < 0)
        return ret;
    if (!*ret_xdata && !(*ret_xdata = dict_new()))
        return -ENOMEM;
    iatt_to_wire(&iatt, wire);
    return dict_set(*ret_xdata, key, DICT_IATT, wire, sizeof(wire));
}

/* The stats before and after let the caches of genuine clients stay warm. */
static int setting_begin(const struct setting *setting, struct dict **ret_xdata)
{
    return answer_iatt(setting, "virt-gf-prestat", ret_xdata);
}

static int setting_end(const struct setting *setting, struct dict **ret_xdata)
{
    mdata_touch(setting->posix, setting->node, setting->call, setting->xdata, TIMES_CTIME);
    node_changed(setting->node);
    int ret = answer_iatt(setting, "virt-gf-poststat", ret_xdata);
    if (ret == 0 && dict_get(setting->xdata, "dht-get-iatt-in-xattr"))
        ret = answer_iatt(setting, "dht-get-iatt-in-xattr", ret_xdata);
    return ret;
}

static int set_all(const struct setting *setting, struct dict **ret_xdata)
{
    const struct dict_value *value;
    const char *key;

    STRIPES_HELD held = inodes_lock(setting->posix, &setting->node->inode->gfid, NULL);
    int ret = setting_begin(setting, ret_xdata);
    for (uint32_t i = 0; ret == 0 && (key = dict_at(setting->dict, i, &value)); i++)
        ret = set_one(setting, key, value);
    return ret < 0 ? ret : setting_end(setting, ret_xdata);
}

static int setxattr_work(struct posix *posix, struct call *call, const struct setxattr_args *in,
                         struct setxattr_reply *out)
{
    LOCATED located = {};

    int ret = posix_room(posix, call, in->xdata);
    if (ret == 0)
        ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    struct setting setting = {
        .posix = posix, .call = call, .node = located.node, .object = &located.object,
        .dict = in->dict, .xdata = in->xdata, .flags = (int)in->flags,
    };
    return set_all(&setting, &out->xdata);
}
POSIX_HOP(setxattr)

static int fsetxattr_work(struct posix *posix, struct call *call, const struct fsetxattr_args *in,
                          struct fsetxattr_reply *out)
{
    IO io = {};

    int ret = posix_room(posix, call, in->xdata);
    if (ret == 0)
        ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    struct object object = object_fd(io.fd);
    struct setting setting = {
        .posix = posix, .call = call, .node = io.node, .object = &object, .dict = in->dict,
        .xdata = in->xdata, .flags = (int)in->flags,
    };
    return set_all(&setting, &out->xdata);
}
POSIX_HOP(fsetxattr)

/* --- REMOVEXATTR ------------------------------------------------------------------------------ */
static int remove_one(const struct setting *setting, const char *key)
{
    if (is_identity(key) || begins(key, XATTR_GFID2PATH))
        return -EPERM;
    if (strcmp(key, XATTR_MDATA) == 0)
        mdata_born(setting->node, NULL); /* from now on the inode's own times show */
    return object_removexattr(setting->object, key);
}

/* Without a name: every key of the dict; what is not there is no error then. */
static int remove_all(const struct setting *setting, const char *name, struct dict **ret_xdata)
{
    const struct dict_value *value;
    const char *key;

    STRIPES_HELD held = inodes_lock(setting->posix, &setting->node->inode->gfid, NULL);
    int ret = setting_begin(setting, ret_xdata);
    if (ret < 0)
        return ret;
    if (name && name[0])
        ret = remove_one(setting, name);
    else
        for (uint32_t i = 0; ret == 0 && (key = dict_at(setting->dict, i, &value)); i++) {
            if (!xattr_is_storable(key))
                continue;
            ret = remove_one(setting, key);
            if (ret == -ENODATA)
                ret = 0;
        }
    return ret < 0 ? ret : setting_end(setting, ret_xdata);
}

static int removexattr_work(struct posix *posix, struct call *call,
                            const struct removexattr_args *in, struct removexattr_reply *out)
{
    LOCATED located = {};

    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    struct setting setting = {
        .posix = posix, .call = call, .node = located.node, .object = &located.object,
        .dict = in->xdata, .xdata = in->xdata,
    };
    return remove_all(&setting, in->name, &out->xdata);
}
POSIX_HOP(removexattr)

static int fremovexattr_work(struct posix *posix, struct call *call,
                             const struct fremovexattr_args *in, struct fremovexattr_reply *out)
{
    IO io = {};

    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    struct object object = object_fd(io.fd);
    struct setting setting = {
        .posix = posix, .call = call, .node = io.node, .object = &object, .dict = in->xdata,
        .xdata = in->xdata,
    };
    return remove_all(&setting, in->name, &out->xdata);
}
POSIX_HOP(fremovexattr)

/* --- GETXATTR --------------------------------------------------------------------------------- */
struct getting {
    struct posix *posix;
    struct call *call;
    struct node *node;
    const struct object *object;
    const struct stat *st;
    bool by_fd;               /* genuine bricks show gfid2path then */
};

static int get_listed(const struct getting *getting, const char *name, struct dict *dict)
{
    AUTO_FREE char *value = NULL;
    size_t bytes;

    bool is_shown = xattr_is_visible(name, getting->call) ||
                    (getting->by_fd && begins(name, XATTR_GFID2PATH));
    if (!is_shown)
        return 0;
    int ret = object_getxattr_all(getting->object, name, &value, &bytes);
    if (ret < 0)
        return ret == -ENOMEM ? ret : 0; /* removed since it was listed */
    return dict_set_bytes(dict, name, value, (uint32_t)bytes);
}

static int get_all(const struct getting *getting, struct dict *dict)
{
    AUTO_FREE char *names = NULL;
    size_t bytes;

    int ret = object_listxattr_all(getting->object, &names, &bytes);
    FOR_EACH_NAME(name, names, ret < 0 ? 0 : bytes)
        if (ret == 0)
            ret = get_listed(getting, name, dict);
    return ret;
}

static int get_named(const struct getting *getting, const char *name, struct dict *dict)
{
    AUTO_FREE char *value = NULL;
    uint8_t times[MDATA_BYTES];
    size_t bytes;

    int ret = virtual_getxattr(getting->posix, getting->call, getting->node, getting->object,
                               getting->st, name, dict);
    if (ret != -ENOENT)
        return ret;
    if (!may_get(name, getting->call))
        return -ENODATA;
    if (strcmp(name, XATTR_MDATA) == 0) {
        if (!mdata_value(getting->posix, getting->node, times))
            return -ENODATA;
        ret = dict_set_bytes(dict, name, times, sizeof(times));
        return ret < 0 ? ret : (int)sizeof(times);
    }
    ret = object_getxattr_all(getting->object, name, &value, &bytes);
    if (ret < 0)
        return ret;
    ret = dict_set_bytes(dict, name, value, (uint32_t)bytes);
    return ret < 0 ? ret : (int)bytes;
}

static int get_any(const struct getting *getting, const char *name, struct dict **ret_dict)
{
    *ret_dict = dict_new();
    if (!*ret_dict)
        return -ENOMEM;
    int ret = name && name[0] ? get_named(getting, name, *ret_dict) : get_all(getting, *ret_dict);
    if (ret < 0)
        dict_unref(TAKE(*ret_dict));
    return ret;
}

static int getxattr_work(struct posix *posix, struct call *call, const struct getxattr_args *in,
                         struct getxattr_reply *out)
{
    LOCATED located = {};

    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    struct getting getting = {
        .posix = posix, .call = call, .node = located.node, .object = &located.object,
        .st = &located.st,
    };
    return get_any(&getting, in->name, &out->dict);
}
POSIX_HOP(getxattr)

static int fgetxattr_work(struct posix *posix, struct call *call, const struct fgetxattr_args *in,
                          struct fgetxattr_reply *out)
{
    IO io = {};
    struct stat st;

    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret == 0)
        ret = env_fstat(io.fd, &st);
    if (ret < 0)
        return ret;
    struct object object = object_fd(io.fd);
    struct getting getting = {
        .posix = posix, .call = call, .node = io.node, .object = &object, .st = &st,
        .by_fd = true,
    };
    return get_any(&getting, in->name, &out->dict);
}
POSIX_HOP(fgetxattr)
