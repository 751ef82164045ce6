/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/dict.h"

static void every_type_comes_back_as_it_was_set(void **state)
{
    AUTO(dict) dict = dict_new();
    gfid_t gfid;
    int64_t number;

    (void)state;
    assert_int_equal(dict_set_int(dict, "int", -5), 0);
    assert_int_equal(dict_set_uint(dict, "uint", 7), 0);
    assert_int_equal(dict_set_str(dict, "str", "text"), 0);
    assert_int_equal(dict_set_bytes(dict, "bytes", "\0\1\2", 3), 0);
    assert_int_equal(dict_set_gfid(dict, "gfid", &gfid_root), 0);
    double half = 0.5;
    assert_int_equal(dict_set(dict, "double", DICT_DOUBLE, &half, 8), 0);

    assert_int_equal(dict_get_int(dict, "int", &number), 0);
    assert_int_equal(number, -5);
    assert_int_equal(dict_get_int(dict, "uint", &number), 0);
    assert_int_equal(number, 7);
    assert_string_equal(dict_get_str(dict, "str"), "text");
    assert_int_equal(dict_get(dict, "str")->bytes, 5);
    assert_memory_equal(dict_get(dict, "bytes")->data, "\0\1\2", 3);
    assert_int_equal(dict_get_gfid(dict, "gfid", &gfid), 0);
    assert_true(gfid_is_root(&gfid));
    assert_true(dict_get(dict, "double")->f64 == 0.5);
    assert_int_equal(dict_count(dict), 6);
}

static void getters_are_liberal_where_the_wire_is(void **state)
{
    AUTO(dict) dict = dict_new();
    gfid_t gfid;
    int64_t number;

    (void)state;
    assert_int_equal(dict_set(dict, "text", DICT_STR_OLD, "42", 3), 0);
    assert_int_equal(dict_set_bytes(dict, "no-nul", "43", 2), 0);
    assert_int_equal(dict_set_bytes(dict, "inner-nul", "4\0003", 3), 0);
    assert_int_equal(dict_set_bytes(dict, "gfid", gfid_root.bytes, 16), 0);
    assert_int_equal(dict_set_str(dict, "word", "4x"), 0);

    assert_int_equal(dict_get_int(dict, "text", &number), 0);
    assert_int_equal(number, 42);
    assert_int_equal(dict_get_int(dict, "no-nul", &number), 0);
    assert_int_equal(number, 43);
    assert_null(dict_get_str(dict, "inner-nul"));
    assert_int_equal(dict_get_int(dict, "inner-nul", &number), -EINVAL);
    assert_int_equal(dict_get_int(dict, "word", &number), -EINVAL);
    assert_int_equal(dict_get_int(dict, "absent", &number), -ENOENT);
    assert_int_equal(dict_get_gfid(dict, "gfid", &gfid), 0);
    assert_int_equal(dict_get_gfid(dict, "text", &gfid), -EINVAL);
}

static void setting_again_replaces_in_place_and_order_stays(void **state)
{
    AUTO(dict) dict = dict_new();
    const struct dict_value *value;

    (void)state;
    assert_int_equal(dict_set_str(dict, "a", "1"), 0);
    assert_int_equal(dict_set_str(dict, "b", "2"), 0);
    assert_int_equal(dict_set_str(dict, "c", "3"), 0);
    assert_int_equal(dict_set_int(dict, "a", 9), 0);
    assert_string_equal(dict_at(dict, 0, &value), "a");
    assert_int_equal(value->type, DICT_INT);
    dict_remove(dict, "b");
    dict_remove(dict, "absent");
    assert_string_equal(dict_at(dict, 1, &value), "c");
    assert_null(dict_at(dict, 2, &value));
    assert_int_equal(dict_count(dict), 2);
}

static void null_is_a_dict_without_pairs(void **state)
{
    const struct dict_value *value;
    int64_t number;

    (void)state;
    assert_int_equal(dict_count(NULL), 0);
    assert_null(dict_get(NULL, "x"));
    assert_null(dict_get_str(NULL, "x"));
    assert_int_equal(dict_get_int(NULL, "x", &number), -ENOENT);
    assert_null(dict_at(NULL, 0, &value));
    AUTO(dict) copy = dict_copy(NULL);
    assert_non_null(copy);
    assert_null(dict_ref(NULL));
}

static void limits_have_an_answer(void **state)
{
    AUTO(dict) dict = dict_new();
    char key[DICT_KEY_BYTES_MAX + 1];
    char *big = calloc(1, DICT_BYTES_MAX + 1);

    (void)state;
    assert_int_equal(dict_set_int(dict, "", 1), -EINVAL);
    memset(key, 'k', sizeof(key));
    key[DICT_KEY_BYTES_MAX] = '\0';
    assert_int_equal(dict_set_int(dict, key, 1), -E2BIG);
    key[DICT_KEY_BYTES_MAX - 1] = '\0';
    assert_int_equal(dict_set_int(dict, key, 1), 0);
    assert_int_equal(dict_set_bytes(dict, "big", big, DICT_BYTES_MAX), -E2BIG);
    assert_int_equal(dict_set_bytes(dict, "big", big, DICT_BYTES_MAX / 2), 0);
    assert_int_equal(dict_set_bytes(dict, "big", big, DICT_BYTES_MAX * 3 / 4), 0); /* replaces */
    assert_int_equal(dict_set_bytes(dict, "more", big, DICT_BYTES_MAX / 2), -E2BIG);
    assert_int_equal(dict_set(dict, "gfid", DICT_GFUUID, big, 15), -EINVAL);
    free(big);
}

static void four_thousand_pairs_fit_and_one_more_does_not(void **state)
{
    AUTO(dict) dict = dict_new();
    char key[16];
    int64_t number;

    (void)state;
    for (int i = 0; i < DICT_PAIRS_MAX; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        assert_int_equal(dict_set_int(dict, key, i), 0);
    }
    assert_int_equal(dict_set_int(dict, "one more", 1), -E2BIG);
    assert_int_equal(dict_set_int(dict, "key-7", 70), 0);
    AUTO(dict) copy = dict_copy(dict);
    dict_remove(dict, "key-7");
    assert_int_equal(dict_get_int(copy, "key-7", &number), 0);
    assert_int_equal(number, 70);
    assert_int_equal(dict_get_int(dict, "key-4095", &number), 0);
    assert_int_equal(number, 4095);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back_as_it_was_set),
        cmocka_unit_test(getters_are_liberal_where_the_wire_is),
        cmocka_unit_test(setting_again_replaces_in_place_and_order_stays),
        cmocka_unit_test(null_is_a_dict_without_pairs),
        cmocka_unit_test(limits_have_an_answer),
        cmocka_unit_test(four_thousand_pairs_fit_and_one_more_does_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
