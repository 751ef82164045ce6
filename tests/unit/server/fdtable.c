/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The numbers of open files: the lowest free one, whatever was taken and given back. */
#include "../core/backends.h"

#include <errno.h>

#include "xlators/protocol/server/fdtable.h"

static struct fd *new_fd(void)
{
    struct fd *fd = fd_new(NULL, 0, 0);
    assert_non_null(fd);
    return fd;
}

static void the_lowest_free_number_is_taken(void **state)
{
    struct fdtable table;
    (void)state;

    fdtable_init(&table);
    for (int i = 0; i < 100; i++)
        assert_int_equal(fdtable_add(&table, new_fd()), i);
    static const int holes[] = { 50, 3, 98, 7 };
    for (size_t i = 0; i < ARRAY_SIZE(holes); i++)
        fd_unref(fdtable_take(&table, holes[i]));
    assert_int_equal(fdtable_add(&table, new_fd()), 3);
    assert_int_equal(fdtable_add(&table, new_fd()), 7);
    assert_int_equal(fdtable_add(&table, new_fd()), 50);
    assert_int_equal(fdtable_add(&table, new_fd()), 98);
    assert_int_equal(fdtable_add(&table, new_fd()), 100);
    fdtable_close(&table);
    fdtable_fini(&table);
}

static void random_use_agrees_with_a_list(void **state)
{
    enum { NUMBERS = 300, ROUNDS = 40000 };
    struct fd *held[NUMBERS] = { 0 };
    uint64_t random = (uint64_t)getpid();
    struct fdtable table;
    (void)state;

    fdtable_init(&table);
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        int number = (int)(random >> 33) % NUMBERS, lowest = 0;
        while (lowest < NUMBERS && held[lowest])
            lowest++;
        if ((random >> 60) < 9 && lowest < NUMBERS) {
            held[lowest] = new_fd();
            assert_int_equal(fdtable_add(&table, held[lowest]), lowest);
        } else {
            struct fd *got = fdtable_get(&table, number);
            assert_ptr_equal(got, held[number]);
            fd_unref(got);
            got = fdtable_take(&table, number);
            assert_ptr_equal(got, held[number]);
            fd_unref(got);
            held[number] = NULL;
        }
    }
    fdtable_close(&table);
    fdtable_fini(&table);
}

static void numbers_nobody_has_are_none(void **state)
{
    static const int64_t numbers[] = { -1, -2, -3, INT64_MIN, 1, 2, 15, 16, 17, 1 << 20,
                                       UINT32_MAX, 1ll << 32, INT64_MAX };
    struct fdtable table;
    (void)state;

    fdtable_init(&table);
    assert_null(fdtable_get(&table, 0));
    assert_int_equal(fdtable_add(&table, new_fd()), 0);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        assert_null(fdtable_get(&table, numbers[i]));
        assert_null(fdtable_take(&table, numbers[i]));
    }
    fdtable_close(&table);
    fdtable_fini(&table);
}

static void it_ends_at_a_million(void **state)
{
    struct fdtable table;
    struct fd *fd = new_fd();
    (void)state;

    fdtable_init(&table);
    for (int64_t i = 0; i < FDTABLE_MAX; i++)
        assert_int_equal(fdtable_add(&table, fd_ref(fd)), i);
    assert_int_equal(fdtable_add(&table, fd), -EMFILE);
    assert_int_equal(fd->refs, FDTABLE_MAX + 1); /* the caller's is still the caller's */
    fd_unref(fdtable_take(&table, 5));
    assert_int_equal(fdtable_add(&table, fd_ref(fd)), 5);
    fdtable_close(&table);
    assert_int_equal(fd->refs, 1);
    assert_int_equal(fdtable_add(&table, fd), -ENOTCONN);
    assert_null(fdtable_get(&table, 5));
    fdtable_fini(&table);
    fd_unref(fd);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_free_number_is_taken),
        cmocka_unit_test(random_use_agrees_with_a_list),
        cmocka_unit_test(numbers_nobody_has_are_none),
        cmocka_unit_test(it_ends_at_a_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
