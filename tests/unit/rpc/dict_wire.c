/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "rpc/dict_wire.h"

/* GETSPEC's request as genuine 10.3 sends it (spec/wire.md 3.1) */
static const char getspec[] = "\0\0\0\2"
                              "\0\0\0\x0e\0\0\0\7max-op-version\0" "100000\0"
                              "\0\0\0\x0e\0\0\0\2min-op-version\0" "1";

static void a_genuine_legacy_dict_is_read_and_written_back(void **state)
{
    AUTO(dict) dict = NULL;
    uint8_t room[256];
    struct writer w = writer_into(room, sizeof(room));
    int64_t version;

    (void)state;
    assert_int_equal(dict_decode_legacy((const uint8_t *)getspec, sizeof(getspec), &dict), 0);
    assert_int_equal(dict_count(dict), 2);
    assert_int_equal(dict_get_int(dict, "max-op-version", &version), 0);
    assert_int_equal(version, 100000);

    AUTO(dict) mine = dict_new();
    assert_int_equal(dict_set_int(mine, "max-op-version", 100000), 0);
    assert_int_equal(dict_set_str(mine, "min-op-version", "1"), 0);
    dict_encode_legacy(&w, mine);
    assert_true(writer_ok(&w));
    assert_int_equal(w.used % 4, 0);
    assert_memory_equal(room, "\0\0\0\x3b", 4); /* 59 bytes and one of padding */
    assert_memory_equal(room + 4, getspec, sizeof(getspec));
    assert_int_equal(w.used, 4 + 60);
}

static void no_dict_is_an_empty_opaque(void **state)
{
    uint8_t room[16];
    struct writer w = writer_into(room, sizeof(room));
    struct dict *dict = (struct dict *)1;

    (void)state;
    dict_encode_legacy(&w, NULL);
    assert_int_equal(w.used, 4);
    assert_memory_equal(room, "\0\0\0\0", 4);
    assert_int_equal(dict_decode_legacy(room, 0, &dict), 0);
    assert_null(dict);
}

static void hostile_legacy_dicts_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        uint32_t count;
        int ret;
    } cases[] = {
        { "\0\0\0", 3, -EBADMSG },
        { "\0\0\x10\1", 4, -E2BIG },                                 /* 4097 pairs */
        { "\xff\xff\xff\xff", 4, -E2BIG },
        { "\0\0\0\1", 4, -EBADMSG },                                 /* a pair is promised */
        { "\0\0\0\1\0\0\0\0\0\0\0\1\0x", 14, -EBADMSG },             /* a key without a letter */
        { "\0\0\0\1\0\0\0\1\x7f\xff\xff\xff" "k\0x", 15, -EBADMSG }, /* longer than what is there */
        { "\0\0\0\1\0\0\0\1\xff\xff\xff\xff" "k\0x", 15, -EBADMSG },
        { "\0\0\0\1\0\0\0\2\0\0\0\1k\0\0x", 16, -EBADMSG },          /* NUL inside the key */
        { "\0\0\0\1\0\0\0\1\0\0\0\1kk" "x", 15, -EBADMSG },          /* no NUL after it */
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct dict *dict = NULL;
        assert_int_equal(dict_decode_legacy((const uint8_t *)cases[i].bytes, cases[i].count, &dict),
                         cases[i].ret);
        assert_null(dict);
    }
}

static void every_type_goes_over_the_wire_and_back(void **state)
{
    AUTO(dict) dict = dict_new();
    uint8_t room[1024], iatt[148], mdata[36];
    struct writer w = writer_into(room, sizeof(room));
    double half = -0.5;

    (void)state;
    memset(iatt, 0x11, sizeof(iatt));
    memset(mdata, 0x22, sizeof(mdata));
    assert_int_equal(dict_set_int(dict, "int", -2), 0);
    assert_int_equal(dict_set_uint(dict, "uint", UINT64_MAX), 0);
    assert_int_equal(dict_set(dict, "double", DICT_DOUBLE, &half, 8), 0);
    assert_int_equal(dict_set(dict, "old", DICT_STR_OLD, "x", 2), 0);
    assert_int_equal(dict_set_str(dict, "str", "text"), 0);
    assert_int_equal(dict_set_bytes(dict, "none", "", 0), 0);
    assert_int_equal(dict_set_gfid(dict, "gfid", &gfid_root), 0);
    assert_int_equal(dict_set(dict, "iatt", DICT_IATT, iatt, 148), 0);
    assert_int_equal(dict_set(dict, "mdata", DICT_MDATA, mdata, 36), 0);
    dict_encode(&w, dict);
    assert_true(writer_ok(&w));
    assert_int_equal(w.used, dict_encoded_bytes(dict));
    /* size of all pairs, count twice (spec/wire.md 3.2) */
    uint8_t head[12] = { 0, 0, (uint8_t)((w.used - 12) >> 8), (uint8_t)(w.used - 12),
                         0, 0, 0, 9, 0, 0, 0, 9 };
    assert_memory_equal(room, head, 12);
    /* key with its NUL, type 2, hyper */
    assert_memory_equal(room + 12, "\0\0\0\4int\0\0\0\0\2\xff\xff\xff\xff\xff\xff\xff\xfe", 20);

    struct reader r = reader_of(room, w.used);
    AUTO(dict) back = NULL;
    assert_int_equal(dict_decode(&r, &back), 0);
    assert_int_equal(reader_left(&r), 0);
    const struct dict_value *a, *b;
    const char *key;
    for (uint32_t i = 0; (key = dict_at(dict, i, &a)); i++) {
        assert_string_equal(dict_at(back, i, &b), key);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->bytes, b->bytes);
        if (a->data)
            assert_memory_equal(a->data, b->data, a->bytes);
        else
            assert_true(a->u64 == b->u64);
    }
}

static void null_and_empty_are_one(void **state)
{
    static const uint8_t null_form[12] = { 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0 };
    uint8_t room[16], bytes[12] = { 0 };
    struct writer w = writer_into(room, sizeof(room));
    struct dict *dict = (struct dict *)1;

    (void)state;
    dict_encode(&w, NULL);
    assert_int_equal(w.used, 12);
    assert_memory_equal(room, null_form, 12);
    struct reader r = reader_of(bytes, 12);
    assert_int_equal(dict_decode(&r, &dict), 0);
    assert_null(dict);
    memcpy(bytes, null_form, 12);
    bytes[11] = 0;
    r = reader_of(bytes, 12);
    dict = (struct dict *)1;
    int ret = dict_decode(&r, &dict);
    assert_int_equal(ret, 0);
    assert_null(dict);
}

static void hostile_dicts_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        uint32_t count;
        int ret;
    } cases[] = {
        { "\0\0\0\0\0\0\0\0\0\0\0", 11, -EBADMSG },
        { "\0\0\0\0\0\0\0\1\0\0\0\2", 12, -EBADMSG },                     /* two counts */
        { "\0\0\0\0\0\0\x10\1\0\0\x10\1", 12, -E2BIG },
        { "\0\0\0\x14\0\0\0\1\0\0\0\1", 12, -EBADMSG },                   /* nothing follows */
        { "\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\2kk\0\0\0\0\0\2\0\0\0\0\0\0\0\0", 32, -EBADMSG },
        { "\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0", 32, -EBADMSG },
        { "\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\2k\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\0", 32, -EBADMSG },
        { "\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\2k\0\0\0\0\0\0\6\xff\xff\xff\xff\0\0\0\0", 32, -E2BIG },
        { "\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\2k\0\0\0\0\0\0\6\0\0\0\5\0\0\0\0", 32, -EBADMSG },
        { "\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\2k\0\0\0\0\0\0\7\0\0\0\5\0\0\0\0", 32, -EBADMSG },
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t bytes[64];
        struct dict *dict = NULL;
        memcpy(bytes, cases[i].bytes, cases[i].count);
        struct reader r = reader_of(bytes, cases[i].count);
        assert_int_equal(dict_decode(&r, &dict), cases[i].ret);
        assert_null(dict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_genuine_legacy_dict_is_read_and_written_back),
        cmocka_unit_test(no_dict_is_an_empty_opaque),
        cmocka_unit_test(hostile_legacy_dicts_are_refused),
        cmocka_unit_test(every_type_goes_over_the_wire_and_back),
        cmocka_unit_test(null_and_empty_are_one),
        cmocka_unit_test(hostile_dicts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
