/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/env.h"
#include "core/uuid.h"

static const char text[] = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

static void text_goes_in_and_out(void **state)
{
    char out[UUID_TEXT_SIZE];
    gfid_t gfid;

    (void)state;
    assert_int_equal(gfid_parse(text, &gfid), 0);
    assert_int_equal(gfid.bytes[0], 0x0f);
    assert_int_equal(gfid.bytes[15], 0xf0);
    assert_string_equal(gfid_format(&gfid, out), text);
    assert_int_equal(gfid_parse("0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0", &gfid), 0);
    assert_string_equal(gfid_format(&gfid, out), text);
}

static void wrong_text_is_refused(void **state)
{
    static const char *const wrong[] = {
        "", "0f1e2d3c", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f",
        "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f00",
        "0f1e2d3c04b5a-6978-8796-a5b4c3d2e1f0", "0f1e2d3g-4b5a-6978-8796-a5b4c3d2e1f0",
        "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    };
    gfid_t gfid = gfid_root;

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(gfid_parse(wrong[i], &gfid), -EINVAL);
    assert_true(gfid_is_root(&gfid)); /* untouched */
}

static void inode_number_is_the_last_half(void **state)
{
    gfid_t gfid;

    (void)state;
    assert_int_equal(gfid_parse(text, &gfid), 0);
    assert_true(gfid_ino(&gfid) == 0x8796a5b4c3d2e1f0);
    assert_true(gfid_ino(&gfid_root) == 1);
}

static void generated_ones_differ_and_are_of_version_4(void **state)
{
    gfid_t a, b;

    (void)state;
    gfid_generate(&a);
    gfid_generate(&b);
    assert_false(gfid_equal(&a, &b));
    assert_int_equal(a.bytes[6] >> 4, 4);
    assert_int_equal(a.bytes[8] >> 6, 2);
    assert_false(gfid_is_null(&a));
    assert_true(gfid_is_null(&gfid_null));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_goes_in_and_out),
        cmocka_unit_test(wrong_text_is_refused),
        cmocka_unit_test(inode_number_is_the_last_half),
        cmocka_unit_test(generated_ones_differ_and_are_of_version_4),
    };

    if (env_init("plain", 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
