/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Extended attributes that no disk holds: the names that GETXATTR answers by itself (spec/wire.md
 * 4.2). */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/xattr.h"

struct query {
    struct posix *posix;
    struct node *node;
    const struct object *object;
    const struct stat *st;
    const char *name, *argument; /* argument: what follows a name that ends in ':' */
    struct dict *dict;
};

/* Stores text; returns its length without the NUL, which counts as the value's size. */
static int answer_text(const struct query *query, const char *text)
{
    int ret = dict_set_str(query->dict, query->name, text);
    return ret < 0 ? ret : (int)strlen(text);
}

/* --- paths ------------------------------------------------------------------------------------ */
struct text {
    char *bytes;
    size_t count, room;
};

static void text_fini(struct text *text)
{
    free(text->bytes);
}
#define TEXT __attribute__((cleanup(text_fini))) struct text

static int text_add(struct text *text, const char *more)
{
    size_t bytes = strlen(more);
    if (text->count + bytes + 1 > text->room) {
        size_t room = (text->count + bytes + 1) * 2;
        char *grown = realloc(text->bytes, room);
        if (!grown)
            return -ENOMEM;
        text->bytes = grown;
        text->room = room;
    }
    memcpy(text->bytes + text->count, more, bytes + 1);
    text->count += bytes;
    return 0;
}

/* "<gfid>/<name>" of a gfid2path xattr as a path below the root. */
static int add_path(struct posix *posix, const char *value, size_t bytes, struct text *text)
{
    char gfid_text[UUID_TEXT_SIZE];
    AUTO_FREE char *dir = NULL;
    gfid_t parent;

    if (bytes <= UUID_TEXT_SIZE || value[UUID_TEXT_SIZE - 1] != '/')
        return -EINVAL;
    memcpy(gfid_text, value, UUID_TEXT_SIZE - 1);
    gfid_text[UUID_TEXT_SIZE - 1] = '\0';
    int ret = gfid_parse(gfid_text, &parent);
    if (ret == 0)
        ret = dir_path(posix, &parent, &dir);
    if (ret == 0)
        ret = text_add(text, strcmp(dir, "/") == 0 ? "" : dir);
    return ret < 0 ? ret : text_add(text, value + UUID_TEXT_SIZE - 1);
}

/* Every path of a file that its gfid2path xattrs know; at most `max`. -ENODATA: none. */
static int file_paths(const struct query *query, unsigned max, struct text *text)
{
    AUTO_FREE char *names = NULL;
    size_t bytes;
    unsigned count = 0;
    char separator[sizeof(query->posix->separator)];

    {
        HOLD(&query->posix->mutex);
        strcpy(separator, query->posix->separator);
    }
    int ret = object_listxattr_all(query->object, &names, &bytes);
    if (ret < 0)
        return ret;
    for (char *name = names; name < names + bytes && count < max; name += strlen(name) + 1) {
        AUTO_FREE char *value = NULL;
        size_t value_bytes;
        if (strncmp(name, XATTR_GFID2PATH, strlen(XATTR_GFID2PATH)) != 0 ||
            object_getxattr_all(query->object, name, &value, &value_bytes) < 0)
            continue;
        if (count > 0 && (ret = text_add(text, separator)) < 0)
            return ret;
        if (add_path(query->posix, value, value_bytes, text) == 0)
            count++;
    }
    return count ? 0 : -ENODATA;
}

static int paths(const struct query *query, unsigned max, struct text *text)
{
    AUTO_FREE char *path = NULL;

    if (!S_ISDIR(query->st->st_mode))
        return file_paths(query, max, text);
    int ret = dir_path(query->posix, &query->node->inode->gfid, &path);
    return ret < 0 ? ret : text_add(text, path);
}

/* glusterfs.gfidtopath: bytes without a NUL for files, as genuine bricks send it. */
static int get_all_paths(const struct query *query)
{
    TEXT text = {};
    int ret = paths(query, UINT32_MAX, &text);
    if (ret < 0)
        return ret;
    if (S_ISDIR(query->st->st_mode))
        return answer_text(query, text.bytes);
    ret = dict_set_bytes(query->dict, query->name, text.bytes, (uint32_t)text.count);
    return ret < 0 ? ret : (int)text.count;
}

static int get_one_path(const struct query *query)
{
    TEXT text = {};
    int ret = paths(query, 1, &text);
    return ret < 0 ? ret : answer_text(query, text.bytes);
}

static int get_ancestry(const struct query *query)
{
    return S_ISDIR(query->st->st_mode) ? get_one_path(query) : -ENODATA;
}

static int get_pathinfo(const struct query *query)
{
    struct posix *posix = query->posix;
    char handle[HANDLE_PATH_SIZE], where[64];
    TEXT path = {};

    if (paths(query, 1, &path) < 0) {
        handle_path(&query->node->inode->gfid, handle);
        snprintf(where, sizeof(where), "/" HANDLE_DIR "/%02x/%s",
                 query->node->inode->gfid.bytes[0], handle);
        int ret = text_add(&path, where);
        if (ret < 0)
            return ret;
    }
    const char *host = posix->node_uuid_pathinfo && posix->glusterd_uuid ? posix->glusterd_uuid
                                                                        : posix->host;
    const char *below = strcmp(path.bytes, "/") == 0 ? "/" : path.bytes;
    AUTO_FREE char *text = NULL;
    if (asprintf(&text, "<POSIX(%s):%s:%s%s>", posix->root_path, host, posix->root_path, below) < 0)
        return -ENOMEM;
    return answer_text(query, text);
}

static int get_node_uuid(const struct query *query)
{
    const char *uuid = query->posix->glusterd_uuid;
    return uuid ? answer_text(query, uuid) : -ENODATA;
}

/* --- names without regard to case ------------------------------------------------------------- */
static int find_name(int dir, const char *wanted, char found[NAME_BYTES_MAX + 1])
{
    union {
        struct dirent64 alignment;
        char bytes[8192];
    } buffer;
    ssize_t ret;

    AUTO_FD fd = env_openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    while ((ret = env_getdents(fd, buffer.bytes, sizeof(buffer.bytes))) > 0)
        for (ssize_t at = 0; at < ret;) {
            struct dirent64 *entry = (struct dirent64 *)(void *)(buffer.bytes + at);
            if (strcasecmp(entry->d_name, wanted) == 0 && strcmp(entry->d_name, HANDLE_DIR) != 0) {
                strncpy(found, entry->d_name, NAME_BYTES_MAX);
                found[NAME_BYTES_MAX] = '\0';
                return 0;
            }
            at += entry->d_reclen;
        }
    return ret < 0 ? (int)ret : -ENODATA;
}

static int get_real_filename(const struct query *query)
{
    char found[NAME_BYTES_MAX + 1];

    if (!S_ISDIR(query->st->st_mode))
        return -ENOTDIR;
    AUTO(desc) dir = NULL;
    int ret = dir_get(query->posix, query->node->inode, &dir);
    if (ret == 0)
        ret = find_name(dir->fd, query->argument, found);
    if (ret < 0)
        return ret;
    ret = answer_text(query, found);
    return ret < 0 ? ret : ret + 1; /* the NUL counts here */
}

static int get_open_count(const struct query *query)
{
    int ret = dict_set_uint(query->dict, query->name, query->node->opens > 0);
    return ret < 0 ? ret : 1;
}

/* --- ACLs as text ----------------------------------------------------------------------------- */
struct acl_entry { /* of the kernel's version 2 value; little-endian */
    uint16_t tag, perm;
    uint32_t id;
};

static int add_acl_entry(const struct acl_entry *entry, struct text *text)
{
    static const struct {
        uint16_t tag;
        const char *word;
        bool has_id;
    } tags[] = {
        { 0x01, "u", false }, { 0x02, "u", true },  { 0x04, "g", false },
        { 0x08, "g", true },  { 0x10, "m", false }, { 0x20, "o", false },
    };
    uint16_t tag = le16toh(entry->tag), perm = le16toh(entry->perm);
    char line[64], id[16] = "";

    for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
        if (tags[i].tag != tag)
            continue;
        if (tags[i].has_id)
            snprintf(id, sizeof(id), "%u", le32toh(entry->id));
        snprintf(line, sizeof(line), "%s%s:%s:%c%c%c", text->count ? "," : "", tags[i].word, id,
                 perm & 4 ? 'r' : '-', perm & 2 ? 'w' : '-', perm & 1 ? 'x' : '-');
        return text_add(text, line);
    }
    return -EINVAL;
}

static int acl_from_mode(mode_t mode, struct text *text)
{
    struct acl_entry entries[] = {
        { htole16(1), htole16((mode >> 6) & 7), 0 },
        { htole16(4), htole16((mode >> 3) & 7), 0 },
        { htole16(0x20), htole16(mode & 7), 0 },
    };
    int ret = 0;
    for (size_t i = 0; i < ARRAY_SIZE(entries) && ret == 0; i++)
        ret = add_acl_entry(&entries[i], text);
    return ret;
}

static int get_acl(const struct query *query, const char *xattr, bool from_mode)
{
    AUTO_FREE char *value = NULL;
    struct acl_entry entry;
    TEXT text = {};
    size_t bytes;

    int ret = object_getxattr_all(query->object, xattr, &value, &bytes);
    if (ret == -ENODATA && from_mode)
        ret = acl_from_mode(query->st->st_mode, &text);
    else if (ret == 0 && bytes >= 4)
        for (size_t at = 4; at + sizeof(entry) <= bytes && ret == 0; at += sizeof(entry)) {
            memcpy(&entry, value + at, sizeof(entry));
            ret = add_acl_entry(&entry, &text);
        }
    if (ret < 0)
        return ret;
    return text.count ? answer_text(query, text.bytes) : -ENODATA;
}

static int get_access_acl(const struct query *query)
{
    return get_acl(query, "system.posix_acl_access", true);
}

static int get_default_acl(const struct query *query)
{
    return get_acl(query, "system.posix_acl_default", false);
}

static int get_nothing(const struct query *query)
{
    (void)query;
    return -ENODATA;
}

static int get_unknown(const struct query *query)
{
    (void)query;
    return -EOPNOTSUPP;
}

/* --- the table -------------------------------------------------------------------------------- */
static const struct {
    const char *name; /* with a ':' or '.' at its end: what follows is the argument */
    int (*get)(const struct query *query);
} names[] = {
    { "trusted.glusterfs.pathinfo", get_pathinfo },
    { "glusterfs.pathinfo", get_pathinfo },
    { "trusted.glusterfs.node-uuid", get_node_uuid },
    { "trusted.glusterfs.list-node-uuids", get_nothing }, /* distribute composes it */
    { "glusterfs.gfidtopath", get_all_paths },
    { "glusterfs.gfid2path", get_one_path },
    { "glusterfs.ancestry.path", get_ancestry },
    { "glusterfs.posix.acl", get_access_acl },
    { "glusterfs.posix.default_acl", get_default_acl },
    { "glusterfs.get_real_filename:", get_real_filename },
    { "glusterfs.open-fd-count", get_open_count },
    { "glusterfs.", get_unknown },
};

int virtual_getxattr(struct posix *posix, struct call *call, struct node *node,
                     const struct object *object, const struct stat *st, const char *name,
                     struct dict *dict)
{
    (void)call;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t bytes = strlen(names[i].name);
        bool has_argument = names[i].name[bytes - 1] == ':' || names[i].name[bytes - 1] == '.';
        if (has_argument ? strncmp(name, names[i].name, bytes) != 0
                         : strcmp(name, names[i].name) != 0)
            continue;
        struct query query = {
            .posix = posix, .node = node, .object = object, .st = st, .name = name,
            .argument = name + bytes, .dict = dict,
        };
        return names[i].get(&query);
    }
    return -ENOENT;
}
