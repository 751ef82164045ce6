/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "core/env.h"
#include "core/log.h"

static char directory[] = "/tmp/log-test-XXXXXX";
static char path[64];
static char text[65536];

static const char *log_text(void)
{
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    text[bytes] = '\0';
    if (file)
        fclose(file);
    return text;
}

static unsigned lines_count(void)
{
    unsigned lines = 0;

    for (const char *c = log_text(); *c; c++)
        lines += *c == '\n';
    return lines;
}

static bool log_matches(const char *pattern)
{
    regex_t regex;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB), 0);
    bool matches = regexec(&regex, log_text(), 0, NULL, 0) == 0;
    regfree(&regex);
    return matches;
}

static void begin(const struct log_config *config)
{
    struct log_config own = *config;

    log_close();
    unlink(path);
    own.path = path;
    if (own.level == LOG_NONE)
        own.level = LOG_INFO;
    assert_int_equal(log_open(&own), 0);
}

static void a_line_has_the_known_shape(void **state)
{
    struct stat stat_buf;

    (void)state;
    begin(&(struct log_config){ .msg_id = true });
    LOG_(LOG_INFO, "glusterfsd", 100030, 0, "Started running %s", "version");
    assert_true(log_matches("^\\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} "
                            "\\+0000\\] I \\[MSGID: 100030\\] \\[log\\.c:[0-9]+:"
                            "a_line_has_the_known_shape\\] 0-glusterfsd: Started running "
                            "version$"));
    assert_int_equal(stat(path, &stat_buf), 0);
    assert_int_equal(stat_buf.st_mode & 07777, 0600);

    begin(&(struct log_config){ .msg_id = false });
    struct log_source source = { .name = "vol-client-0", .graph_id = 3 };
    LOG_(LOG_WARNING, &source, 7, -ENOENT, "cannot open %s", "/x");
    assert_true(log_matches("\\] W \\[log\\.c:[0-9]+:[a-z_]+\\] 3-vol-client-0: cannot open /x "
                            "\\[\\{errno=2\\}, \\{error=No such file or directory\\}\\]$"));
}

static void a_stranger_s_text_stays_on_its_line(void **state)
{
    (void)state;
    begin(&(struct log_config){ 0 });
    log_info("x", 0, "a name: %s", "one\n[2020-01-01 two\x1b[0m");
    assert_int_equal(lines_count(), 1);
    assert_null(strchr(text, '\x1b'));
}

static void levels_filter_by_process_and_by_source(void **state)
{
    struct log_source chatty = { .name = "chatty", .level = LOG_DEBUG };
    struct log_source quiet = { .name = "quiet", .level = LOG_ERROR };

    (void)state;
    begin(&(struct log_config){ .level = LOG_INFO });
    log_debug("x", 0, "no");
    log_debug(&chatty, 0, "yes 1");
    log_warn(&quiet, 0, "no");
    log_set_level(LOG_DEBUG);
    log_debug("x", 0, "yes 2");
    log_set_level(LOG_NONE);
    log_critical("x", 0, "no");
    assert_int_equal(lines_count(), 2);
}

static void level_names_of_all_ages_are_known(void **state)
{
    enum log_level level;

    (void)state;
    assert_int_equal(log_level_parse("NORMAL", &level), 0);
    assert_int_equal(level, LOG_INFO);
    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, 8);
    assert_int_equal(log_level_parse("FOO", &level), -EINVAL);
}

static void repeats_are_counted(void **state)
{
    (void)state;
    begin(&(struct log_config){ .fold_lines = 5, .fold_s = 120 });
    for (int i = 0; i < 10; i++)
        log_warn("x", 0, "the same");
    log_warn("x", 0, "another %d", 1);
    assert_int_equal(lines_count(), 2);
    log_close();
    assert_true(log_matches("^The message \"W \\[log\\.c:[0-9]+:repeats_are_counted\\] 0-x: the "
                            "same\" repeated 9 times between \\[2[^]]*\\] and \\[2[^]]*\\]$"));
    assert_int_equal(lines_count(), 3);
}

static void without_folding_every_line_is_written(void **state)
{
    (void)state;
    begin(&(struct log_config){ .fold_lines = 0 });
    for (int i = 0; i < 10; i++)
        log_warn("x", 0, "the same");
    assert_int_equal(lines_count(), 10);
}

static void a_rotated_file_is_opened_anew(void **state)
{
    char moved[80];

    (void)state;
    begin(&(struct log_config){ 0 });
    log_info("x", 0, "before");
    snprintf(moved, sizeof(moved), "%s.1", path);
    assert_int_equal(rename(path, moved), 0);
    log_info("x", 0, "still there");
    assert_int_equal(log_reopen(), 0);
    log_info("x", 0, "after");
    assert_int_equal(lines_count(), 1);
    assert_non_null(strstr(text, "after"));
    unlink(moved);
}

static void a_full_disk_loses_lines_and_says_so(void **state)
{
    (void)state;
    begin(&(struct log_config){ 0 });
    struct log_config full = { .path = "/dev/full", .level = LOG_INFO };
    assert_int_equal(log_open(&full), 0);
    for (int i = 0; i < 3; i++)
        log_info("x", 0, "lost %d", i);
    struct log_config back = { .path = path, .level = LOG_INFO };
    assert_int_equal(log_open(&back), 0);
    log_info("x", 0, "there is room again");
    assert_true(log_matches("^\\(3 lines could not be written before this one\\)$"));
    assert_int_equal(lines_count(), 2);
}

static void a_log_that_cannot_be_opened_is_an_error(void **state)
{
    struct log_config config = { .path = "/nonexistent/x.log", .level = LOG_INFO };

    (void)state;
    assert_int_equal(log_open(&config), -ENOENT);
}

static void *writer(void *arg)
{
    for (int i = 0; i < 2000; i++)
        log_info("writer", 0, "thread %d line %d of many", (int)(intptr_t)arg, i);
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    pthread_t threads[4];

    (void)state;
    begin(&(struct log_config){ .fold_lines = 5, .fold_s = 120 });
    for (intptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, writer, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);

    FILE *file = fopen(path, "r");
    char line[512];
    unsigned good = 0, all = 0;
    while (fgets(line, sizeof(line), file)) {
        all++;
        good += line[0] == '[' && strstr(line, " of many\n") && !strchr(line + 1, '\n')[1];
    }
    fclose(file);
    assert_int_equal(all, 8000);
    assert_int_equal(good, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_known_shape),
        cmocka_unit_test(a_stranger_s_text_stays_on_its_line),
        cmocka_unit_test(levels_filter_by_process_and_by_source),
        cmocka_unit_test(level_names_of_all_ages_are_known),
        cmocka_unit_test(repeats_are_counted),
        cmocka_unit_test(without_folding_every_line_is_written),
        cmocka_unit_test(a_rotated_file_is_opened_anew),
        cmocka_unit_test(a_full_disk_loses_lines_and_says_so),
        cmocka_unit_test(a_log_that_cannot_be_opened_is_an_error),
        cmocka_unit_test(threads_do_not_mix_their_lines),
    };

    if (env_init("plain", 1) < 0 || !mkdtemp(directory))
        return 1;
    snprintf(path, sizeof(path), "%s/x.log", directory);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    log_close();
    unlink(path);
    rmdir(directory);
    return failed;
}
