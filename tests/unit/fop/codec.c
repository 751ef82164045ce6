/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every operation of fops.def, both directions: what was encoded decodes to the same; whatever is
 * cut off, or is too much, is refused and leaves nothing behind. MORTAR_SEED replays a run. */
#include "../core/backends.h"

#include <errno.h>

#include "fop/codec_parts.h"
#include "graph/inode.h"
#include "sample.h"

enum { ROUNDS = 300, CUT_ROUNDS = 12, CUT_BYTES_MAX = 6000 };

static uint64_t seed_from_environment(void)
{
    const char *text = getenv("MORTAR_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)getpid() * 2654435761u;
    printf("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* --- requests --------------------------------------------------------------------------------- */

struct objects { /* what requests name */
    struct inode_table *table;
    struct inode *inode[3];
    struct fd *fd[2];
    int64_t number[2];
};

static void objects_init(struct objects *it)
{
    assert_int_equal(inode_table_new(&it->table), 0);
    for (int i = 0; i < 3; i++) {
        gfid_t gfid = { .bytes = { (uint8_t)(i + 1), 0xee } };
        it->inode[i] = inode_get(it->table, &gfid);
    }
    for (int i = 0; i < 2; i++) {
        it->fd[i] = fd_new(it->inode[i], 0, 0);
        it->number[i] = (int64_t)sample_u64();
    }
}

static void objects_fini(struct objects *it)
{
    for (int i = 0; i < 2; i++)
        fd_unref(it->fd[i]);
    for (int i = 0; i < 3; i++)
        inode_unref(it->inode[i]);
    inode_table_free(it->table);
}

static void encode_args(enum fop op, void *args, struct objects *objects, struct writer *w)
{
    fop_bind(op, args, objects->inode, objects->fd);
    *w = writer_into(NULL, 0);
    fop_encode_args(op, args, objects->number, w);
    assert_true(writer_ok(w));
}

/* The payload as a transport hands it over: beside the body. */
static struct payload payload_beside(enum fop op, const void *args)
{
    struct payload beside = { 0 };
    const struct payload *payload = fop_args_payload(op, args);
    if (payload)
        payload_ref(&beside, payload);
    return beside;
}

static void refs_name_the_objects(const struct fop_refs *refs, const struct objects *objects)
{
    for (uint32_t i = 0; i < refs->gfids; i++)
        assert_memory_equal(&refs->gfid[i], &objects->inode[i]->gfid, 16);
    for (uint32_t i = 0; i < refs->fds; i++) {
        assert_int_equal(refs->fd[i], objects->number[i]);
        assert_memory_equal(&refs->fd_gfid[i], &objects->inode[i]->gfid, 16);
    }
}

static void requests_come_back_as_they_went(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        for (int round = 0; round < ROUNDS; round++) {
            union fop_args args = { 0 }, back = { 0 };
            struct objects objects;
            struct fop_refs refs;
            struct writer w;

            objects_init(&objects);
            sample_args(op, &args);
            encode_args(op, &args, &objects, &w);
            struct payload beside = payload_beside(op, &args);
            struct reader r = reader_of(w.data, w.used);
            int ret = fop_decode_args(op, &r, &beside, &back, &refs);
            if (ret != 0 || !sample_args_equal(op, &args, &back))
                fail_msg("%s: %d", fop_info[op].name, ret);
            refs_name_the_objects(&refs, &objects);
            assert_int_equal(beside.bytes, 0); /* it moved */
            fop_args_fini(op, &back);
            sample_args_fini(op, &args);
            writer_fini(&w);
            objects_fini(&objects);
        }
    }
}

/* A copy of exactly that many bytes, so that a sanitizer sees who reads on. */
static int decode_args_of(enum fop op, const uint8_t *bytes, size_t count, struct payload *beside)
{
    uint8_t *copy = malloc(count ? count : 1);
    union fop_args back;
    struct fop_refs refs;
    struct reader r;

    memcpy(copy, bytes, count);
    r = reader_of(copy, count);
    int ret = fop_decode_args(op, &r, beside, &back, &refs);
    if (ret == 0)
        fop_args_fini(op, &back);
    free(copy);
    return ret;
}

static void a_request_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        for (int round = 0; round < CUT_ROUNDS; round++) {
            union fop_args args = { 0 };
            struct objects objects;
            struct writer w;

            objects_init(&objects);
            sample_args(op, &args);
            encode_args(op, &args, &objects, &w);
            for (size_t cut = 0; cut < MIN(w.used, (size_t)CUT_BYTES_MAX); cut++) {
                struct payload beside = payload_beside(op, &args);
                int ret = decode_args_of(op, w.data, cut, &beside);
                if (ret != -EBADMSG)
                    fail_msg("%s cut at %zu of %zu: %d", fop_info[op].name, cut, w.used, ret);
                payload_fini(&beside);
            }
            sample_args_fini(op, &args);
            writer_fini(&w);
            objects_fini(&objects);
        }
    }
}

static void a_request_with_more_than_its_fields_is_refused(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        union fop_args args = { 0 };
        struct objects objects;
        struct writer w;

        objects_init(&objects);
        sample_args(op, &args);
        encode_args(op, &args, &objects, &w);
        struct payload beside = payload_beside(op, &args);
        writer_u32(&w, 0);
        if (decode_args_of(op, w.data, w.used, &beside) != -EBADMSG)
            fail_msg("%s with four bytes too many", fop_info[op].name);
        payload_fini(&beside);

        w.used -= 4;
        uint8_t bulk[8] = { 0 };
        struct payload extra = payload_beside(op, &args);
        payload_add_borrowed(&extra, bulk, sizeof(bulk));
        if (decode_args_of(op, w.data, w.used, &extra) != -EBADMSG)
            fail_msg("%s with payload nobody announced", fop_info[op].name);
        payload_fini(&extra);
        sample_args_fini(op, &args);
        writer_fini(&w);
        objects_fini(&objects);
    }
}

/* Bytes turned over at random: any answer is fine, no read goes astray, nothing is left. */
static void a_damaged_request_does_no_harm(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        for (int round = 0; round < ROUNDS; round++) {
            union fop_args args = { 0 };
            struct objects objects;
            struct writer w;

            objects_init(&objects);
            sample_args(op, &args);
            encode_args(op, &args, &objects, &w);
            struct payload beside = payload_beside(op, &args);
            for (int i = 0; i < 3 && w.used; i++)
                w.data[sample_u64() % w.used] ^= (uint8_t)(1u << (sample_u64() & 7));
            (void)!decode_args_of(op, w.data, w.used, &beside); /* any answer is fine */
            payload_fini(&beside);
            sample_args_fini(op, &args);
            writer_fini(&w);
            objects_fini(&objects);
        }
    }
}

/* --- replies ---------------------------------------------------------------------------------- */

static struct payload reply_payload_beside(enum fop op, const void *reply)
{
    struct payload beside = { 0 };
    const struct payload *payload = fop_reply_payload(op, reply);
    if (payload)
        payload_ref(&beside, payload);
    return beside;
}

static int decode_reply_of(enum fop op, const uint8_t *bytes, size_t count, struct payload *beside,
                           union fop_reply *reply, int *ret_result)
{
    uint8_t *copy = malloc(count ? count : 1);
    struct reader r;

    memcpy(copy, bytes, count);
    memset(reply, 0, sizeof(*reply));
    r = reader_of(copy, count);
    int ret = fop_decode_reply(op, &r, beside, reply, ret_result);
    free(copy); /* nothing of a reply may point into it */
    return ret;
}

static void replies_come_back_as_they_went(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        for (int round = 0; round < ROUNDS; round++) {
            union fop_reply reply = { 0 }, back;
            int result = -1, went = (int)(sample_u64() & INT32_MAX);
            struct writer w = writer_into(NULL, 0);

            sample_reply(op, &reply);
            fop_encode_reply(op, went, &reply, &w);
            assert_true(writer_ok(&w));
            struct payload beside = reply_payload_beside(op, &reply);
            int ret = decode_reply_of(op, w.data, w.used, &beside, &back, &result);
            if (ret != 0 || result != went || !sample_reply_equal(op, &reply, &back))
                fail_msg("%s: %d, result %d for %d", fop_info[op].name, ret, result, went);
            fop_reply_fini(op, &back);
            fop_reply_fini(op, &reply);
            payload_fini(&beside);
            writer_fini(&w);
        }
    }
}

static void failures_carry_their_errno_and_xdata_in_the_whole_structure(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        union fop_reply empty = { 0 }, back;
        struct writer good = writer_into(NULL, 0), bad = writer_into(NULL, 0);
        int result = 0;

        fop_encode_reply(op, 0, &empty, &good);
        fop_encode_reply(op, -ENOTEMPTY, &empty, &bad);
        assert_int_equal(good.used, bad.used); /* spec/wire.md 1.4: always complete */
        assert_int_equal(decode_reply_of(op, bad.data, bad.used, NULL, &back, &result), 0);
        assert_int_equal(result, -ENOTEMPTY);
        assert_true(sample_reply_equal(op, &empty, &back));
        fop_reply_fini(op, &back);
        writer_fini(&good);
        writer_fini(&bad);
    }
}

static void a_peers_errno_is_an_errno(void **state)
{
    static const struct {
        int32_t op_ret, op_errno;
        int result;
    } cases[] = { { -1, 2, -2 },        { -1, 0, -EIO },   { -1, -5, -EIO }, { -1, 1023, -1023 },
                  { -1, 1024, -EIO },   { -7, 13, -13 },   { 0, 22, 0 },     { 5, 2, 5 },
                  { INT32_MIN, 5, -5 }, { -1, INT32_MIN, -EIO } };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct writer w = writer_into(NULL, 0);
        union fop_reply back;
        int result = 12345;

        writer_u32(&w, (uint32_t)cases[i].op_ret);
        writer_u32(&w, (uint32_t)cases[i].op_errno);
        dict_encode(&w, NULL);
        assert_int_equal(decode_reply_of(FOP_FLUSH, w.data, w.used, NULL, &back, &result), 0);
        assert_int_equal(result, cases[i].result);
        fop_reply_fini(FOP_FLUSH, &back);
        writer_fini(&w);
    }
}

static void a_reply_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        for (int round = 0; round < CUT_ROUNDS; round++) {
            union fop_reply reply = { 0 }, back;
            struct writer w = writer_into(NULL, 0);
            int result;

            sample_reply(op, &reply);
            fop_encode_reply(op, 0, &reply, &w);
            for (size_t cut = 0; cut < MIN(w.used, (size_t)CUT_BYTES_MAX); cut++) {
                struct payload beside = reply_payload_beside(op, &reply);
                int ret = decode_reply_of(op, w.data, cut, &beside, &back, &result);
                if (ret != -EBADMSG)
                    fail_msg("%s cut at %zu of %zu: %d", fop_info[op].name, cut, w.used, ret);
                payload_fini(&beside);
            }
            fop_reply_fini(op, &reply);
            writer_fini(&w);
        }
    }
}

static void a_damaged_reply_does_no_harm(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        for (int round = 0; round < ROUNDS; round++) {
            union fop_reply reply = { 0 }, back;
            struct writer w = writer_into(NULL, 0);
            int result;

            sample_reply(op, &reply);
            fop_encode_reply(op, 0, &reply, &w);
            struct payload beside = reply_payload_beside(op, &reply);
            for (int i = 0; i < 3; i++)
                w.data[sample_u64() % w.used] ^= (uint8_t)(1u << (sample_u64() & 7));
            if (decode_reply_of(op, w.data, w.used, &beside, &back, &result) == 0)
                fop_reply_fini(op, &back);
            payload_fini(&beside);
            fop_reply_fini(op, &reply);
            writer_fini(&w);
        }
    }
}

/* --- bounds ----------------------------------------------------------------------------------- */

static void lists_without_end_are_refused(void **state)
{
    struct writer w = writer_into(NULL, 0);
    union fop_reply back;
    int result;

    (void)state;
    writer_u32(&w, 0);
    writer_u32(&w, 0);
    dict_encode(&w, NULL);
    for (int i = 0; i <= DIRENTS_MAX; i++) {
        writer_u32(&w, 1);
        writer_u64(&w, 1);
        writer_u64(&w, 1);
        writer_u32(&w, 1);
        writer_u32(&w, 8);
        writer_str(&w, "x");
    }
    writer_u32(&w, 0);
    assert_int_equal(decode_reply_of(FOP_READDIR, w.data, w.used, NULL, &back, &result), -E2BIG);
    writer_fini(&w);
}

static void names_no_directory_holds_are_refused(void **state)
{
    static const char *const names[] = { "", "a/b", "/" };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct writer w = writer_into(NULL, 0);
        union fop_reply back;
        int result;

        writer_u32(&w, 1);
        writer_u32(&w, 0);
        dict_encode(&w, NULL);
        writer_u32(&w, 1);
        writer_u64(&w, 1);
        writer_u64(&w, 1);
        writer_u32(&w, (uint32_t)strlen(names[i]));
        writer_u32(&w, 8);
        writer_str(&w, names[i]);
        writer_u32(&w, 0);
        assert_int_equal(decode_reply_of(FOP_READDIR, w.data, w.used, NULL, &back, &result),
                         -EBADMSG);
        writer_fini(&w);
    }
}

static void lock_owners_longer_than_ours_are_cut_and_too_long_ones_refused(void **state)
{
    (void)state;
    for (uint32_t bytes = 120; bytes <= 1028; bytes += 4) {
        uint8_t owner[1028];
        struct writer w = writer_into(NULL, 0);
        struct lock lock = { 0 };

        memset(owner, 7, sizeof(owner));
        for (int i = 0; i < 2; i++)
            writer_u32(&w, 0);
        for (int i = 0; i < 2; i++)
            writer_u64(&w, 0);
        writer_u32(&w, 0);
        writer_opaque(&w, owner, bytes);
        struct reader r = reader_of(w.data, w.used);
        assert_int_equal(decode_lock(&r, &lock), bytes > 1024 ? -E2BIG : 0);
        if (bytes <= 1024)
            assert_int_equal(lock.owner.bytes, MIN(bytes, 128u));
        writer_fini(&w);
    }
}

/* --- the table -------------------------------------------------------------------------------- */

static void operations_are_found_by_procedure_and_name(void **state)
{
    (void)state;
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        assert_int_equal(fop_of_procedure(fop_info[op].procedure), op);
        assert_int_equal(fop_of_name(fop_info[op].name), op);
        assert_int_equal(fop_of_name(fop_info[op].title), op);
    }
    static const uint32_t holes[] = { 0, 41, 42, 49, 57, 1000, UINT32_MAX };
    for (size_t i = 0; i < ARRAY_SIZE(holes); i++)
        assert_int_equal(fop_of_procedure(holes[i]), FOP_COUNT);
    assert_int_equal(fop_of_name("read"), FOP_READV);
    assert_int_equal(fop_of_name("Write"), FOP_WRITEV);
    assert_int_equal(fop_of_name("writ"), FOP_COUNT);
    assert_int_equal(fop_of_name(""), FOP_COUNT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_back_as_they_went),
        cmocka_unit_test(a_request_cut_anywhere_is_refused),
        cmocka_unit_test(a_request_with_more_than_its_fields_is_refused),
        cmocka_unit_test(a_damaged_request_does_no_harm),
        cmocka_unit_test(replies_come_back_as_they_went),
        cmocka_unit_test(failures_carry_their_errno_and_xdata_in_the_whole_structure),
        cmocka_unit_test(a_peers_errno_is_an_errno),
        cmocka_unit_test(a_reply_cut_anywhere_is_refused),
        cmocka_unit_test(a_damaged_reply_does_no_harm),
        cmocka_unit_test(lists_without_end_are_refused),
        cmocka_unit_test(names_no_directory_holds_are_refused),
        cmocka_unit_test(lock_owners_longer_than_ours_are_cut_and_too_long_ones_refused),
        cmocka_unit_test(operations_are_found_by_procedure_and_name),
    };
    sample_seed(seed_from_environment());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
