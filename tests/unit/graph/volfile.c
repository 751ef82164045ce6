/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Texts and lines are those of spec/volfile.md 1.3, read off the genuine 10.3 programs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/log.h"
#include "graph/volfile.h"

static char error[VOLFILE_ERROR_SIZE];

static struct volfile *parse(const char *text)
{
    struct volfile *volfile = NULL;
    int ret = volfile_parse(text, strlen(text), error, &volfile);

    assert_int_equal(ret == 0, error[0] == '\0');
    return volfile;
}

#define TOKENS " (allowed tokens are 'volume', 'type', 'subvolumes', 'option', 'end-volume')"

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "", "syntax error in line 1: \"\"" TOKENS },
        { "foo", "syntax error in line 1: \"foo\"" TOKENS },
        { "# c\n\nfoo bar\n", "syntax error in line 3: \"foo\"" TOKENS },
        { "volume", "syntax error in line 1: \"\"" TOKENS },
        { "volume\n", "syntax error in line 2: \"\"" TOKENS },
        { "volume volume", "syntax error in line 1: \"volume\"" TOKENS },
        { "Volume a", "syntax error in line 1: \"Volume\"" TOKENS },
        { "type debug/sink\n", "syntax error in line 1: \"type\"" TOKENS },
        { "volume a", "syntax error: line 1 (volume 'a'): \"\"" TOKENS },
        { "volume a b", "syntax error: line 1 (volume 'a'): \"b\"" TOKENS },
        { "volume a\n end-volume\n", "syntax error: line 2 (volume 'a'): \"end-volume\"" TOKENS },
        { "volume a\n type x/y\n end-volume\n",
          "syntax error: line 3 (volume 'a'): \"end-volume\"" TOKENS },
        { "volume a\n type x/y\n option k v w\n end-volume\n",
          "syntax error: line 3 (volume 'a'): \"w\"" TOKENS },
        { "volume a\n type x/y x/y\n end-volume\n",
          "syntax error: line 2 (volume 'a'): \"x/y\"" TOKENS },
        { "volume a\n type x/y\n option k v\n", "syntax error: line 4 (volume 'a'): \"\"" TOKENS },
        { "volume a\n type x/y\n option k v\nend-volume\nend-volume",
          "syntax error in line 5: \"end-volume\"" TOKENS },
        { "volume a\n option k v\n type x/y\n end-volume\n",
          "line 3: duplicate 'type' defined for volume 'a'" },
        { "volume a\n type x/y\n option k v\n type x/y\n end-volume\n",
          "line 4: duplicate 'type' defined for volume 'a'" },
        { "volume a\n subvolumes b\n end-volume\n",
          "line 2: duplicate 'subvolumes' defined for volume 'a'" },
        { "volume a\n type x/y\n subvolumes b\n subvolumes b\n end-volume\n",
          "line 4: duplicate 'subvolumes' defined for volume 'a'" },
        { "volume a\n type\n end-volume\n",
          "Volume a, before line 3: Please specify volume type" },
        { "volume a\n type x/y\n subvolumes\nend-volume\n",
          "Volume a, before line 4: Please specify subvolumes" },
        { "volume a\n type x/y\n option\n end-volume\n",
          "Volume a, before line 4: Please specify option <key> <value>" },
        { "volume a\n type x/y\n option k\n end-volume\n",
          "Volume a, before line 4: Please specify option <key> <value>" },
        { "volume a\n type x/y\n option k type\nend-volume",
          "Volume a, before line 3: Please specify option <key> <value>" },
        { "volume a\n type x/y\n option k \"b\nend-volume\n",
          "Volume a, before line 3: Please specify option <key> <value>" },
        { "volume a\n type x/y\n option k v\nvolume b\n",
          "'end-volume' not defined for volume 'a'" },
        { "volume a\n type x/y\n option k v\nend-volume\nvolume a\n type x/y\n",
          "Line 5: volume 'a' defined again" },
        { "volume a\n option k v\nend-volume\n", "\"type\" not specified for volume a" },
        { "volume a\n type \"\"\n option k v\nend-volume\n",
          "\"type\" not specified for volume a" },
        { "volume a\n type x/y\n option k `id`\nend-volume\n",
          "line (3), column (11): commands in back-quotes are never run: write the value itself" },
        { "volume a\n type x/y\n option k \"`id`\"\nend-volume\n",
          "line (3), column (12): commands in back-quotes are never run: write the value itself" },
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_null(parse(cases[i].text));
        assert_string_equal(error, cases[i].error);
    }
}

static void junk_is_refused_in_one_printable_line(void **state)
{
    static const char junk[] = "\x7f" "ELF\x02\x01\x01\0\0\0volume a";
    struct volfile *volfile;

    (void)state;
    assert_int_equal(volfile_parse(junk, sizeof(junk) - 1, error, &volfile), -EINVAL);
    assert_string_equal(error, "line 1: a NUL byte: this is no volume file");
    assert_null(parse("\x01\x02\x03"));
    assert_string_equal(error, "syntax error in line 1: \"???\"" TOKENS);
}

static const char legacy[] =
    "### a comment\n"
    "volume posix\n"
    "type storage/posix\n"
    "option directory /vol1\n"
    "end-volume\n"
    "volume brick type performance/io-threads option thread-count 8 subvolumes posix "
    "option late yes end-volume\n"
    "volume server\r\n"
    "type protocol/server\r\n"
    "#option transport-type ib-sdp\n"
    "option auth.addr.brick.allow * # Allow access to \"brick\" volume `id`\n"
    "option \"type\" \"a b\\\"c#\nd\"\n"
    "option word foo#bar\n"
    "option empty \"\"\n"
    "subvolumeS brick posix nowhere server\n"
    "option word again\n"
    "end-volume\n";

static void every_form_of_the_grammar_is_read(void **state)
{
    (void)state;
    AUTO(volfile) volfile = parse(legacy);
    assert_string_equal(error, "");
    assert_int_equal(volfile->count, 3);
    const struct volfile_volume *brick = &volfile->volumes[1], *server = &volfile->volumes[2];
    assert_string_equal(brick->name, "brick");
    assert_int_equal(brick->line, 6);
    assert_int_equal(brick->child_count, 1);
    assert_string_equal(option_set_get(&brick->options, "late"), "yes");
    assert_string_equal(server->type, "protocol/server");
    assert_int_equal(server->type_line, 8);
    assert_string_equal(option_set_get(&server->options, "auth.addr.brick.allow"), "*");
    assert_string_equal(option_set_get(&server->options, "type"), "a b\"c#d");
    assert_null(option_set_get(&server->options, "empty"));
    assert_string_equal(option_set_get(&server->options, "word"), "again");
    assert_string_equal(server->options.pairs[2].key, "word"); /* at its first place */
    assert_int_equal(server->child_count, 2);
    assert_int_equal(server->children[0], 1);
    assert_int_equal(server->children[1], 0);
    assert_int_equal(server->children_missing, 2);
    assert_int_equal(volfile_find(volfile, "brick"), 1);
    assert_int_equal(volfile_find(volfile, "nowhere"), -ENOENT);
}

static void the_canonical_text_is_the_known_one(void **state)
{
    static const char canonical[] = "volume V-posix\n"
                                    "    type storage/posix\n"
                                    "    option volume-id 1234\n"
                                    "    option directory /data/b1\n"
                                    "end-volume\n"
                                    "\n"
                                    "volume V-trash\n"
                                    "    type features/trash\n"
                                    "    option trash-dir .trashcan\n"
                                    "    subvolumes V-posix\n"
                                    "end-volume\n";

    (void)state;
    AUTO(volfile) volfile = parse(canonical);
    AUTO_FREE char *text = volfile_format(volfile);
    assert_string_equal(text, canonical);
}

static void odd_words_survive_a_round_trip(void **state)
{
    (void)state;
    AUTO(volfile) volfile = parse("volume \"end-volume\" type a/b "
                                  "option \"k k\" \"x\\\\y\\\"z\\`\" "
                                  "option k \"#\" option l v#w end-volume");
    AUTO_FREE char *text = volfile_format(volfile);
    AUTO(volfile) again = parse(text);
    assert_string_equal(again->volumes[0].name, "end-volume");
    assert_string_equal(option_set_get(&again->volumes[0].options, "k k"), "x\\y\"z`");
    assert_string_equal(option_set_get(&again->volumes[0].options, "k"), "#");
    AUTO_FREE char *text2 = volfile_format(again);
    assert_string_equal(text, text2);
}

static void too_much_is_refused(void **state)
{
    char *text = malloc(1 << 20);
    size_t used = 0;

    (void)state;
    for (int i = 0; i <= VOLFILE_VOLUMES_MAX; i++)
        used += (size_t)sprintf(text + used, "volume v%d type a/b option k v end-volume\n", i);
    assert_null(parse(text));
    assert_string_equal(error, "line 8193: more than 8192 volumes");
    free(text);
    struct volfile *volfile;
    assert_int_equal(volfile_parse("", VOLFILE_BYTES_MAX + 1, error, &volfile), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(junk_is_refused_in_one_printable_line),
        cmocka_unit_test(every_form_of_the_grammar_is_read),
        cmocka_unit_test(the_canonical_text_is_the_known_one),
        cmocka_unit_test(odd_words_survive_a_round_trip),
        cmocka_unit_test(too_much_is_refused),
    };

    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
