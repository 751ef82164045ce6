/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever a client sends as an operation's arguments: refused, or decoded to what encodes and
 * decodes to the same again; nothing is left behind. Byte 0 picks the operation, byte 1 says how
 * much of the rest travels beside the body (in units of 16 bytes). */
#include <stdlib.h>
#include <string.h>

#include "../unit/fop/sample.h"
#include "fop/fop_codec.h"
#include "graph/inode.h"
#include "small_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was decoded names objects by number; encoding needs the objects. */
struct objects {
    struct inode_table *table;
    struct inode *inode[3], *fd_inode[2];
    struct fd *fd[2];
};

static void objects_init(struct objects *it, const struct fop_refs *refs)
{
    int ret = inode_table_new(&it->table);
    assert(ret == 0 && refs->gfids <= 3 && refs->fds <= 2);
    for (int i = 0; i < 3; i++)
        it->inode[i] = inode_get(it->table, &refs->gfid[i]);
    for (int i = 0; i < 2; i++) {
        it->fd_inode[i] = inode_get(it->table, &refs->fd_gfid[i]);
        it->fd[i] = fd_new(it->fd_inode[i], 0, 0);
    }
}

static void objects_fini(struct objects *it)
{
    for (int i = 0; i < 2; i++) {
        fd_unref(it->fd[i]);
        inode_unref(it->fd_inode[i]);
    }
    for (int i = 0; i < 3; i++)
        inode_unref(it->inode[i]);
    inode_table_free(it->table);
}

static void check_again(enum fop op, union fop_args *args, const struct fop_refs *refs)
{
    struct writer w = writer_into(NULL, 0);
    struct payload beside = { 0 };
    union fop_args again;
    struct fop_refs refs_again;
    struct objects objects;
    const struct payload *payload = fop_args_payload(op, args);

    objects_init(&objects, refs);
    fop_bind(op, args, objects.inode, objects.fd);
    fop_encode_args(op, args, refs->fd, &w);
    assert(writer_ok(&w));
    if (payload)
        payload_ref(&beside, payload);
    struct reader r = reader_of(w.data, w.used);
    int ret = fop_decode_args(op, &r, &beside, &again, &refs_again);
    assert(ret == 0);
    assert(sample_args_equal(op, args, &again));
    assert(memcmp(refs, &refs_again, sizeof(*refs)) == 0);
    fop_args_fini(op, &again);
    payload_fini(&beside);
    writer_fini(&w);
    objects_fini(&objects);
}

static int one_input(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    enum fop op = data[0] % FOP_COUNT;
    size_t rest = size - 2, bulk = (size_t)data[1] * 16;
    union fop_args args;
    struct fop_refs refs;
    struct payload beside = { 0 };
    uint8_t *copy = malloc(rest + 1); /* of just that size: a sanitizer sees who reads on */

    memcpy(copy, data + 2, rest);
    bulk = bulk < rest ? bulk : rest;
    if (bulk)
        payload_add_borrowed(&beside, copy + rest - bulk, (uint32_t)bulk);
    struct reader r = reader_of(copy, rest - bulk);
    if (fop_decode_args(op, &r, &beside, &args, &refs) == 0) {
        check_again(op, &args, &refs);
        fop_args_fini(op, &args);
    }
    payload_fini(&beside);
    free(copy);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return on_small_stack(one_input, data, size);
}
