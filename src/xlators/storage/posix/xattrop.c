/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* XATTROP, FXATTROP: arithmetic on arrays in extended attributes, one operation at a time per inode
 * (spec/disk.md 1.8, wire.md 4.1). */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/xattr.h"

enum xattrop_type {
    ADD_ARRAY, ADD_ARRAY64, OR_ARRAY, AND_ARRAY, GET_AND_SET, ADD_ARRAY_WITH_DEFAULT,
    ADD_ARRAY64_WITH_DEFAULT, XATTROP_TYPES,
};

struct operation {
    struct posix *posix;
    struct call *call;
    struct node *node;
    const struct object *object;
    enum xattrop_type type;
    struct dict *dict, *xdata, *ret_dict;
};

static bool is_64(enum xattrop_type type)
{
    return type == ADD_ARRAY64 || type == ADD_ARRAY64_WITH_DEFAULT;
}

static bool has_default(enum xattrop_type type)
{
    return type == ADD_ARRAY_WITH_DEFAULT || type == ADD_ARRAY64_WITH_DEFAULT;
}

static void add_32(uint8_t *stored, const uint8_t *delta, const uint8_t *fallback, size_t bytes)
{
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t a, b, c = 0;
        memcpy(&a, stored + i, 4);
        memcpy(&b, delta + i, 4);
        if (fallback && a == 0)
            memcpy(&c, fallback + i, 4);
        a = htobe32(be32toh(a) + be32toh(b) + be32toh(c));
        memcpy(stored + i, &a, 4);
    }
}

static void add_64(uint8_t *stored, const uint8_t *delta, const uint8_t *fallback, size_t bytes)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t a, b, c = 0;
        memcpy(&a, stored + i, 8);
        memcpy(&b, delta + i, 8);
        if (fallback && a == 0)
            memcpy(&c, fallback + i, 8);
        a = htobe64(be64toh(a) + be64toh(b) + be64toh(c));
        memcpy(stored + i, &a, 8);
    }
}

static void combine(enum xattrop_type type, uint8_t *stored, const uint8_t *asked, size_t bytes)
{
    const uint8_t *fallback = has_default(type) ? asked + bytes : NULL;

    if (type == OR_ARRAY || type == AND_ARRAY)
        for (size_t i = 0; i < bytes; i++)
            stored[i] = type == OR_ARRAY ? stored[i] | asked[i] : stored[i] & asked[i];
    else if (is_64(type))
        add_64(stored, asked, fallback, bytes);
    else
        add_32(stored, asked, fallback, bytes);
}

/* The stored value in a buffer of the request's size: what is missing is zero. */
static int read_stored(const struct operation *operation, const char *key, uint8_t *stored,
                       size_t bytes, bool *ret_exists)
{
    AUTO_FREE char *value = NULL;
    size_t count;

    memset(stored, 0, bytes);
    int ret = object_getxattr_all(operation->object, key, &value, &count);
    *ret_exists = ret == 0;
    if (ret == -ENODATA)
        return 0;
    if (ret < 0)
        return ret;
    memcpy(stored, value, MIN(count, bytes));
    return 0;
}

static int store_result(const struct operation *operation, const char *key, const uint8_t *value,
                        size_t bytes)
{
    int ret = object_setxattr(operation->object, key, value, bytes, 0);
    if (ret < 0)
        log_error(operation->posix->xl, ret, "cannot store %s: the operation fails", key);
    return ret;
}

static int operate(const struct operation *operation, const char *key, const uint8_t *asked,
                   size_t asked_bytes)
{
    size_t bytes = has_default(operation->type) ? asked_bytes / 2 : asked_bytes;
    AUTO_FREE uint8_t *stored = malloc(MAX(bytes, (size_t)1) * 2);
    bool exists;

    if (!stored)
        return -ENOMEM;
    int ret = read_stored(operation, key, stored, bytes, &exists);
    if (ret < 0)
        return ret;
    uint8_t *before = stored + bytes;
    memcpy(before, stored, bytes);
    if (operation->type == GET_AND_SET) {
        ret = store_result(operation, key, asked, bytes);
    } else {
        combine(operation->type, stored, asked, bytes);
        if (memcmp(before, stored, bytes) != 0)
            ret = store_result(operation, key, stored, bytes);
    }
    if (ret < 0)
        return ret;
    return dict_set_bytes(operation->ret_dict, key,
                          operation->type == GET_AND_SET ? before : stored, (uint32_t)bytes);
}

static int operate_all(struct operation *operation, struct dict **ret_dict)
{
    const struct dict_value *value;
    const char *key;
    int ret = 0;

    if (operation->type >= XATTROP_TYPES)
        return -EINVAL;
    operation->ret_dict = *ret_dict = dict_new();
    if (!*ret_dict)
        return -ENOMEM;
    STRIPES_HELD held = inodes_lock(operation->posix, &operation->node->inode->gfid, NULL);
    for (uint32_t i = 0; ret == 0 && (key = dict_at(operation->dict, i, &value)); i++) {
        if (!value->data || !xattr_is_storable(key) || value->bytes > XATTR_VALUE_BYTES_MAX)
            continue;
        ret = operate(operation, key, value->data, value->bytes);
    }
    return ret;
}

static int answer_size(const struct operation *operation, struct dict **ret_xdata)
{
    struct stat st;

    if (!dict_get(operation->xdata, "get-size"))
        return 0;
    int ret = object_stat(operation->object, &st);
    if (ret < 0)
        return ret;
    *ret_xdata = dict_new();
    return *ret_xdata ? dict_set_uint(*ret_xdata, "get-size", (uint64_t)st.st_size) : -ENOMEM;
}

static int xattrop_work(struct posix *posix, struct call *call, const struct xattrop_args *in,
                        struct xattrop_reply *out)
{
    LOCATED located = {};

    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    struct operation operation = {
        .posix = posix, .call = call, .node = located.node, .object = &located.object,
        .type = in->op, .dict = in->dict, .xdata = in->xdata,
    };
    ret = operate_all(&operation, &out->dict);
    if (ret == 0)
        ret = answer_size(&operation, &out->xdata);
    return ret < 0 ? ret
                   : stat_iatt(posix, located.node, &located.object, &out->poststat);
}
POSIX_HOP(xattrop)

static int fxattrop_work(struct posix *posix, struct call *call, const struct fxattrop_args *in,
                         struct fxattrop_reply *out)
{
    IO io = {};

    int ret = io_begin(posix, in->fd, 0, &io);
    if (ret < 0)
        return ret;
    struct object object = object_fd(io.fd);
    struct operation operation = {
        .posix = posix, .call = call, .node = io.node, .object = &object, .type = in->op,
        .dict = in->dict, .xdata = in->xdata,
    };
    ret = operate_all(&operation, &out->dict);
    if (ret == 0)
        ret = answer_size(&operation, &out->xdata);
    return ret < 0 ? ret : stat_iatt(posix, io.node, &object, &out->poststat);
}
POSIX_HOP(fxattrop)
