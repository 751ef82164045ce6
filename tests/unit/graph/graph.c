/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Graphs of the registry's own types: what is refused, what is overridden, in which order it lives,
 * and what new options do to one that runs. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/env.h"
#include "core/log.h"
#include "graph/dump.h"
#include "graph/graph.h"
#include "graph/registry.h"

static char log_path[] = "/tmp/graph-test-XXXXXX";

static const char *log_text(void)
{
    static char text[65536];
    FILE *file = fopen(log_path, "r");
    size_t bytes = fread(text, 1, sizeof(text) - 1, file);

    text[bytes] = '\0';
    fclose(file);
    return text;
}

static void log_forget(void)
{
    assert_int_equal(truncate(log_path, 0), 0);
}

static struct volfile *parse(const char *text)
{
    char error[VOLFILE_ERROR_SIZE];
    struct volfile *volfile = NULL;

    assert_int_equal(volfile_parse(text, strlen(text), error, &volfile), 0);
    return volfile;
}

static int make(const char *text, const struct graph_config *config, struct graph **ret_graph)
{
    AUTO(volfile) volfile = parse(text);

    log_forget();
    return graph_new(volfile, config ? config : &(struct graph_config){ 0 }, ret_graph);
}

#define SINK "volume leaf\n type debug/sink\n option x y\nend-volume\n"

static void what_cannot_be_is_refused_and_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "volume a\n type storage/foo\n option k v\nend-volume\n",
          "0-parser: Volume 'a', line 2: type 'storage/foo' is not valid or not found on this "
          "machine" },
        { SINK "volume a\n type cluster/unify\n subvolumes leaf\nend-volume\n",
          "type 'cluster/unify' cannot be loaded: it was removed long ago" },
        { SINK "volume a\n type cluster/replicate\n subvolumes leaf\nend-volume\n",
          "type 'cluster/replicate' cannot be loaded: it is not in this version" },
        { SINK "volume a\n type user/mine\n subvolumes leaf\nend-volume\n",
          "type 'user/mine' cannot be loaded: translators of others are not loaded" },
        { SINK "volume a\n type mount/fuse\n subvolumes leaf\nend-volume\n",
          "0-glusterfsd: fuse xlator cannot be specified in volume file" },
        { "volume a\n type debug/trace\n subvolumes nowhere\nend-volume\n",
          "Volume 'a', line 1: type 'debug/trace' needs 1 subvolume(s), has 0" },
        { SINK "volume a\n type debug/trace\n subvolumes leaf leaf\nend-volume\n",
          "type 'debug/trace' takes at most 1 subvolume(s), has 2" },
        { SINK "volume t\n type performance/io-cache\n option cache-size 1MB\n subvolumes leaf\n"
               "end-volume\n",
          "0-t: validation failed: '1048576' in 'option cache-size 1MB' is out of range "
          "[4194304 - inf]" },
        { SINK "volume t\n type performance/io-cache\n option log-level LOUD\n subvolumes leaf\n"
               "end-volume\n",
          "option log-level LOUD: 'LOUD' is not valid (possible options are DEBUG, WARNING, "
          "ERROR, INFO, CRITICAL, NONE, TRACE.)" },
        { SINK "volume t\n type cluster/nufa\n option local-volume-name abc\n subvolumes leaf\n"
               "end-volume\n",
          "option local-volume-name abc: 'abc' is not a valid volume name" },
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct graph *graph;
        assert_true(make(cases[i].text, NULL, &graph) < 0);
        if (!strstr(log_text(), cases[i].says))
            fail_msg("case %u: the log lacks\n%s\nand says\n%s", i, cases[i].says, log_text());
    }
}

static void too_deep_a_stack_is_refused(void **state)
{
    char *text = malloc(65536);
    size_t used = (size_t)sprintf(text, SINK "volume t0 type debug/trace subvolumes leaf "
                                             "end-volume\n");
    struct graph *graph;

    (void)state;
    for (int i = 1; i < GRAPH_DEPTH_MAX; i++)
        used += (size_t)sprintf(text + used,
                                "volume t%d type debug/trace subvolumes t%d end-volume\n", i,
                                i - 1);
    assert_int_equal(make(text, NULL, &graph), -E2BIG);
    assert_non_null(strstr(log_text(), "more than 32 translators are stacked"));
    free(text);
}

static void the_last_volume_is_the_top_unless_another_is_named(void **state)
{
    static const char text[] = SINK "volume /a type debug/trace subvolumes leaf end-volume\n"
                                    "volume b type debug/trace subvolumes /a end-volume\n";
    struct graph *graph;

    (void)state;
    assert_int_equal(make(text, NULL, &graph), 0);
    assert_string_equal(graph->top->name, "b");
    graph_free(graph);
    assert_int_equal(make(text, &(struct graph_config){ .volume_name = "/a" }, &graph), 0);
    assert_string_equal(graph->top->name, "/a");
    graph_free(graph);
    assert_int_equal(make(text, &(struct graph_config){ .volume_name = "leaf" }, &graph), 0);
    assert_string_equal(graph->top->name, "leaf");
    graph_free(graph);
    assert_int_equal(make(text, &(struct graph_config){ .volume_name = "none" }, &graph), 0);
    assert_string_equal(graph->top->name, "b"); /* no path: ignored, as ever */
    graph_free(graph);
    assert_int_equal(make(text, &(struct graph_config){ .volume_name = "/none" }, &graph),
                     -ENOENT);
}

static void the_first_override_counts_and_shows_in_the_text(void **state)
{
    static const struct graph_override overrides[] = {
        { "*-cache", "cache-size", "64MB" },
        { "v-io-cache", "cache-size", "128MB" },
        { "*", "nonsense", "1" },
    };
    struct graph_config config = { .overrides = overrides, .override_count = 3 };
    struct graph *graph;

    (void)state;
    assert_int_equal(make(SINK "volume v-io-cache type performance/io-cache option cache-size 8MB "
                               "subvolumes leaf end-volume", &config, &graph), 0);
    assert_string_equal(option_set_get(&graph->top->options, "cache-size"), "64MB");
    assert_string_equal(option_set_get(&graph->xlators[0]->options, "nonsense"), "1");
    assert_non_null(strstr(graph->volfile, "    option cache-size 64MB\n"));
    graph_free(graph);
}

static void every_type_loads_or_says_why_not(void **state)
{
    const struct xlator_type *type, *found;
    const char *name, *reason;

    (void)state;
    for (unsigned i = 0; (type = registry_at(i)); i++) {
        assert_int_equal(registry_find(type->name, &found, &reason), 0);
        assert_ptr_equal(found, type);
        bool has_fops = type->any != NULL;
        for (size_t j = 0; j < sizeof(type->fops); j++)
            has_fops |= ((const char *)&type->fops)[j] != 0;
        if (type->empty_because)
            assert_false(has_fops);
    }
    for (unsigned i = 0; (name = registry_refused_at(i, &reason)); i++) {
        assert_true(reason && *reason);
        assert_int_equal(registry_find(name, &found, &reason), -EOPNOTSUPP);
    }
    assert_int_equal(registry_find("cluster/never", &found, &reason), -ENOENT);
    assert_int_equal(registry_find("performance/stat-prefetch", &found, &reason), 0);
    assert_string_equal(found->name, "performance/md-cache");
}

/* --- on a fiber: life ------------------------------------------------------------------------- */

static int story_failures;
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            story_failures++;                                                                      \
        }                                                                                          \
    } while (0)

static void on_event(struct graph *graph, enum xlator_event event, void *data)
{
    (void)data;
    *(unsigned *)graph->on_event_arg += event == EVENT_CHILD_UP;
}

static const char running[] = SINK
    "volume cache type performance/md-cache option md-cache-timeout 1 subvolumes leaf end-volume\n"
    "volume top type debug/io-stats option log-level INFO subvolumes cache end-volume\n";

static void life_story(void *arg)
{
    AUTO(volfile) again = parse(SINK "volume cache type performance/stat-prefetch "
                                     "option md-cache-timeout 600 option log-level DEBUG "
                                     "subvolumes leaf end-volume\n"
                                     "volume top type debug/io-stats subvolumes cache end-volume");
    AUTO(volfile) other = parse(SINK "volume top type debug/io-stats subvolumes leaf end-volume");
    AUTO(volfile) wrong = parse(SINK "volume cache type performance/md-cache "
                                     "option md-cache-timeout 601 subvolumes leaf end-volume\n"
                                     "volume top type debug/io-stats subvolumes cache end-volume");
    struct graph_config config = { 0 };
    struct graph *graph;
    unsigned ups = 0;
    (void)arg;

    log_forget();
    AUTO(volfile) volfile = parse(running);
    CHECK(graph_new(volfile, &config, &graph) == 0);
    graph->on_event = on_event;
    graph->on_event_arg = &ups;
    CHECK(graph_init(graph) == 0);
    CHECK(strstr(log_text(), "performance/md-cache is empty: the kernel caches attributes"));
    CHECK(graph_start(graph) == 0);
    CHECK(ups == 1);
    CHECK(graph->top->target[FOP_STATFS].xl != graph_find(graph, "cache")); /* never entered */

    CHECK(graph_reconfigure(graph, other, &config) == -EXDEV);
    CHECK(graph_reconfigure(graph, wrong, &config) == -EINVAL);
    struct xlator *cache = graph_find(graph, "cache");
    CHECK(strcmp(option_set_get(&cache->options, "md-cache-timeout"), "1") == 0);
    CHECK(cache->log.level == LOG_NONE);
    CHECK(graph_reconfigure(graph, again, &config) == 0);
    CHECK(strcmp(option_set_get(&cache->options, "md-cache-timeout"), "600") == 0);
    CHECK(cache->log.level == LOG_DEBUG);
    CHECK(strstr(graph->volfile, "option md-cache-timeout 600"));

    char *text = NULL;
    size_t bytes;
    struct dump dump = { .out = open_memstream(&text, &bytes) };
    graph_dump(graph, &dump);
    fclose(dump.out);
    CHECK(strstr(text, "[performance/md-cache.cache]\nempty=the kernel caches"));
    free(text);
    graph_stop(graph);
    graph_free(graph);
    lanes_stop();
}

static void a_graph_lives_and_takes_new_options(void **state)
{
    (void)state;
    story_failures = 0;
    assert_int_equal(lanes_run(life_story, NULL), 0);
    assert_int_equal(story_failures, 0);
}

static void refusal_story(void *arg)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { SINK "volume w type features/worm option worm on subvolumes leaf end-volume",
          "0-w: option worm on: files cannot be made write-once in this version" },
        { SINK "volume q type features/quota option server-quota on subvolumes leaf end-volume",
          "limits cannot be enforced in this version" },
        { SINK "volume l2 type debug/sink option x y end-volume\n"
               "volume d type cluster/distribute subvolumes leaf l2 end-volume",
          "0-d: cluster/distribute over 2 subvolumes" },
    };
    struct graph_config config = { 0 };
    (void)arg;

    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(volfile) volfile = parse(cases[i].text);
        struct graph *graph = NULL;
        log_forget();
        CHECK(graph_new(volfile, &config, &graph) == 0);
        CHECK(graph_init(graph) == -EOPNOTSUPP);
        CHECK(strstr(log_text(), cases[i].says));
        graph_free(graph);
    }
    lanes_stop();
}

static void an_empty_translator_does_not_pretend(void **state)
{
    (void)state;
    story_failures = 0;
    assert_int_equal(lanes_run(refusal_story, NULL), 0);
    assert_int_equal(story_failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_is_refused_and_named),
        cmocka_unit_test(too_deep_a_stack_is_refused),
        cmocka_unit_test(the_last_volume_is_the_top_unless_another_is_named),
        cmocka_unit_test(the_first_override_counts_and_shows_in_the_text),
        cmocka_unit_test(every_type_loads_or_says_why_not),
        cmocka_unit_test(a_graph_lives_and_takes_new_options),
        cmocka_unit_test(an_empty_translator_does_not_pretend),
    };
    struct log_config config = { .path = log_path, .level = LOG_INFO };

    close(mkstemp(log_path));
    if (env_init("plain", 1) < 0 || log_open(&config) < 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    log_close();
    unlink(log_path);
    return failed;
}
