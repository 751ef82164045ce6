/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "graph/graph.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "graph/dump.h"
#include "graph/registry.h"

/* --- making ----------------------------------------------------------------------------------- */

static void xlator_free(struct xlator *xl)
{
    if (!xl)
        return;
    if (xl->state)
        options_fini(xl->type->options, xl->state);
    free(xl->state);
    option_set_fini(&xl->options);
    free(xl->children);
    free(xl->parents);
    free((char *)(uintptr_t)xl->name);
    free(xl);
}
AUTO_DEFINE(xlator, xlator_free)

static int options_copy(struct option_set *to, const struct option_set *from)
{
    int ret = 0;

    for (unsigned i = 0; from && i < from->count && ret == 0; i++)
        ret = option_set_put(to, from->pairs[i].key, from->pairs[i].value);
    return ret;
}

static int xlator_new(struct graph *graph, const struct xlator_type *type, const char *name,
                      const struct option_set *options, struct xlator **ret_xl)
{
    AUTO(xlator) xl = calloc(1, sizeof(*xl));
    if (!xl)
        return -ENOMEM;

    xl->type = type;
    xl->graph = graph;
    xl->name = strdup(name);
    xl->log = (struct log_source){ .name = xl->name, .graph_id = graph->id };
    if (type->state_size > 0)
        xl->state = calloc(1, type->state_size);
    if (!xl->name || (type->state_size > 0 && !xl->state) ||
        options_copy(&xl->options, options) < 0)
        return -ENOMEM;
    *ret_xl = TAKE(xl);
    return 0;
}

static int list_add(struct xlator ***list, uint32_t *count, struct xlator *xl)
{
    struct xlator **grown = realloc(*list, (*count + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    grown[(*count)++] = xl;
    *list = grown;
    return 0;
}

static int child_add(struct xlator *parent, struct xlator *child)
{
    int ret = list_add(&parent->children, &parent->child_count, child);

    return ret < 0 ? ret : list_add(&child->parents, &child->parent_count, parent);
}

static int type_find(const struct volfile_volume *volume, const struct xlator_type **ret_type)
{
    const char *reason = NULL;
    int ret = registry_find(volume->type, ret_type, &reason);

    if (ret == -EOPNOTSUPP && strcmp(volume->type, "mount/fuse") == 0)
        log_error("glusterfsd", 0,
                  "fuse xlator cannot be specified in volume file (volume '%s', line %u)",
                  volume->name, volume->type_line);
    else if (ret == -EOPNOTSUPP)
        log_error("parser", 0, "Volume '%s', line %u: type '%s' cannot be loaded: %s",
                  volume->name, volume->type_line, volume->type, reason);
    else if (ret < 0)
        log_error("parser", 0,
                  "Volume '%s', line %u: type '%s' is not valid or not found on this machine",
                  volume->name, volume->type_line, volume->type);
    return ret < 0 ? -EINVAL : 0;
}

static int check_children(const struct volfile_volume *volume, const struct xlator_type *type)
{
    if (volume->child_count < type->children_min)
        log_error("graph", 0,
                  "Volume '%s', line %u: type '%s' needs %u subvolume(s), has %u%s", volume->name,
                  volume->line, volume->type, type->children_min, volume->child_count,
                  volume->children_missing > 0 ? " (those that do not exist are left out)" : "");
    else if (volume->child_count > type->children_max)
        log_error("graph", 0,
                  "Volume '%s', line %u: type '%s' takes at most %u subvolume(s), has %u",
                  volume->name, volume->line, volume->type, type->children_max,
                  volume->child_count);
    else
        return 0;
    return -EINVAL;
}

static int volume_build(struct graph *graph, const struct volfile_volume *volume)
{
    const struct xlator_type *type;
    struct xlator *xl;

    int ret = type_find(volume, &type);
    if (ret == 0)
        ret = check_children(volume, type);
    if (ret == 0)
        ret = xlator_new(graph, type, volume->name, &volume->options, &xl);
    if (ret < 0)
        return ret;
    ret = list_add(&graph->xlators, &graph->count, xl);
    if (ret < 0) {
        xlator_free(xl);
        return ret;
    }
    for (unsigned i = 0; i < volume->child_count && ret == 0; i++)
        ret = child_add(xl, graph->xlators[volume->children[i]]);
    return ret;
}

struct xlator *graph_find(const struct graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->count; i++)
        if (strcmp(graph->xlators[i]->name, name) == 0)
            return graph->xlators[i];
    return NULL;
}

/* The last volume, or the one asked for. Names that are no path were ignored for long, and are
 * where they do not exist. */
static int top_choose(struct graph *graph, const char *name)
{
    graph->top = graph->xlators[graph->count - 1];
    if (!name)
        return 0;
    struct xlator *named = graph_find(graph, name);
    if (named) {
        graph->top = named;
        return 0;
    }
    if (name[0] != '/' || strncmp(name, "/snaps/", 7) == 0)
        return 0;
    log_error("graph", 0, "the volume file has no volume '%s'", name);
    return -ENOENT;
}

/* --- options ---------------------------------------------------------------------------------- */

static int override_volume(struct volfile_volume *volume, const struct graph_config *config)
{
    int ret = 0;

    for (unsigned i = config->override_count; i > 0 && ret == 0; i--) { /* the first one counts */
        const struct graph_override *override = &config->overrides[i - 1];
        if (fnmatch(override->glob, volume->name, FNM_NOESCAPE) == 0)
            ret = option_set_put(&volume->options, override->key, override->value);
    }
    return ret;
}

static int overrides_apply(struct volfile *volfile, const struct graph_config *config)
{
    int ret = 0;

    for (unsigned i = 0; i < volfile->count && ret == 0; i++)
        ret = override_volume(&volfile->volumes[i], config);
    return ret;
}

static const char *const level_names[] = { "DEBUG", "WARNING", "ERROR", "INFO",
                                           "CRITICAL", "NONE", "TRACE", NULL };

/* What every translator accepts without declaring it. */
static const struct option common_options[] = {
    { .name = "log-level", .type = OPT_STR, .flags = OPTION_LIVE, .values = level_names,
      .help = "From which level on this translator logs." },
    OPTION_END,
};

static int xlator_names_check(const struct graph *graph, const struct xlator *xl,
                              const struct option_set *set, char error[OPTION_ERROR_SIZE])
{
    for (unsigned i = 0; i < set->count; i++) {
        const struct option *row = option_find(xl->type->options, set->pairs[i].key);
        const char *value = set->pairs[i].value;
        if (!row || row->type != OPT_XLATOR || graph_find(graph, value))
            continue;
        snprintf(error, OPTION_ERROR_SIZE, "option %s %s: '%s' is not a valid volume name",
                 row->name, value, value);
        return -EINVAL;
    }
    return 0;
}

static int set_validate(const struct graph *graph, struct xlator *xl, struct option_set *set)
{
    char error[OPTION_ERROR_SIZE] = "";
    const char *level = option_set_get(set, "log-level");
    int ret = 0;

    if (level && !option_find(xl->type->options, "log-level"))
        ret = option_validate(&common_options[0], "log-level", level, error);
    if (ret == 0)
        ret = options_validate(xl->type->options, xl->name, set, error);
    if (ret == 0)
        ret = xlator_names_check(graph, xl, set, error);
    if (ret < 0)
        log_error(xl, 0, "validation failed: %s", error);
    return ret;
}

static void level_apply(struct xlator *xl)
{
    const char *text = option_set_get(&xl->options, "log-level");
    enum log_level level = LOG_NONE;

    /* io-stats' is the whole process's: it looks at it itself */
    if (text && !option_find(xl->type->options, "log-level") && log_level_parse(text, &level) < 0)
        level = LOG_NONE;
    __atomic_store_n(&xl->log.level, level, __ATOMIC_RELAXED);
}

static int graph_validate(struct graph *graph)
{
    int ret = 0;

    for (uint32_t i = 0; i < graph->count; i++) { /* say all that is wrong, not just the first */
        int one = set_validate(graph, graph->xlators[i], &graph->xlators[i]->options);
        ret = ret < 0 ? ret : one;
    }
    return ret;
}

static int check_depth(const struct graph *graph)
{
    uint32_t *depth = calloc(graph->count, sizeof(*depth));
    int ret = depth ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < graph->count && ret == 0; i++) {
        const struct xlator *xl = graph->xlators[i];
        for (uint32_t j = 0; j < i; j++) /* children come before */
            for (uint32_t k = 0; k < xl->child_count; k++)
                if (graph->xlators[j] == xl->children[k])
                    depth[i] = MAX(depth[i], depth[j]);
        depth[i] += !xl->type->empty_because;
        if (depth[i] > GRAPH_DEPTH_MAX) {
            log_error(xl, 0, "more than %d translators are stacked upon one another",
                      GRAPH_DEPTH_MAX);
            ret = -E2BIG;
        }
    }
    free(depth);
    return ret;
}

int graph_new(struct volfile *volfile, const struct graph_config *config, struct graph **ret_graph)
{
    struct graph *graph = calloc(1, sizeof(*graph));
    if (!graph)
        return -ENOMEM;
    graph->id = config->id;
    int ret = overrides_apply(volfile, config);
    for (unsigned i = 0; i < volfile->count && ret == 0; i++)
        ret = volume_build(graph, &volfile->volumes[i]);
    if (ret == 0)
        ret = top_choose(graph, config->volume_name);
    if (ret == 0)
        ret = check_depth(graph);
    if (ret == 0)
        ret = graph_validate(graph);
    if (ret == 0)
        ret = inode_table_new(&graph->inodes);
    if (ret == 0) {
        graph->uuid = strdup(config->uuid ? config->uuid : "");
        graph->volfile = volfile_format(volfile);
        ret = graph->uuid && graph->volfile ? 0 : -ENOMEM;
    }
    if (ret < 0) {
        graph_free(graph);
        return ret;
    }
    *ret_graph = graph;
    return 0;
}

int graph_push(struct graph *graph, const struct xlator_type *type, const char *name,
               const struct option_set *options)
{
    struct xlator *xl;
    int ret = xlator_new(graph, type, name, options, &xl);
    if (ret < 0)
        return ret;

    ret = list_add(&graph->xlators, &graph->count, xl);
    if (ret < 0) {
        xlator_free(xl);
        return ret;
    }
    ret = child_add(xl, graph->top);
    if (ret == 0)
        ret = set_validate(graph, xl, &xl->options);
    if (ret == 0)
        graph->top = xl;
    return ret;
}

/* --- life ------------------------------------------------------------------------------------- */

static int xlator_init_one(struct xlator *xl)
{
    level_apply(xl);
    int ret = options_apply(xl->type->options, &xl->options, xl->state, false);
    if (ret == 0 && xl->type->init)
        ret = xl->type->init(xl);
    if (ret < 0) {
        log_info(xl, ret, "Initialization of volume failed. review your volfile again. [{name=%s}]",
                 xl->name);
        return ret;
    }
    xl->inited = true;
    return 0;
}

static void graph_fini(struct graph *graph)
{
    for (uint32_t i = graph->count; i > 0; i--) {
        struct xlator *xl = graph->xlators[i - 1];
        if (xl->inited && xl->type->fini)
            xl->type->fini(xl);
        xl->inited = false;
    }
}

int graph_init(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++)
        xlator_resolve(graph->xlators[i]);
    for (uint32_t i = graph->count; i > 0; i--) {
        int ret = xlator_init_one(graph->xlators[i - 1]);
        if (ret < 0) {
            graph_fini(graph);
            return ret;
        }
    }
    return 0;
}

int graph_start(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        struct xlator *xl = graph->xlators[i];
        int ret = xl->type->start ? xl->type->start(xl) : 0;
        if (ret < 0) {
            log_info(xl, ret, "starting translator failed");
            graph_stop(graph);
            return ret;
        }
        xl->started = true;
    }
    return 0;
}

void graph_stop(struct graph *graph)
{
    for (uint32_t i = graph->count; i > 0; i--) {
        struct xlator *xl = graph->xlators[i - 1];
        if (xl->started && xl->type->stop)
            xl->type->stop(xl);
        xl->started = false;
    }
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    graph_fini(graph);
    inode_table_free(graph->inodes);
    for (uint32_t i = 0; i < graph->count; i++)
        xlator_free(graph->xlators[i]);
    free(graph->xlators);
    free(graph->uuid);
    free(graph->volfile);
    free(graph);
}

/* --- new options ------------------------------------------------------------------------------ */

static bool same_volume(const struct graph *graph, const struct xlator *xl,
                        const struct volfile_volume *volume)
{
    const struct xlator_type *type;
    const char *reason;

    if (strcmp(xl->name, volume->name) != 0 || xl->child_count != volume->child_count ||
        registry_find(volume->type, &type, &reason) < 0 || type != xl->type)
        return false;
    for (uint32_t i = 0; i < xl->child_count; i++)
        if (xl->children[i] != graph->xlators[volume->children[i]])
            return false;
    return true;
}

/* What the daemon stacked on top is in no volfile. */
static bool same_shape(const struct graph *graph, const struct volfile *volfile)
{
    if (volfile->count > graph->count)
        return false;
    for (uint32_t i = 0; i < volfile->count; i++)
        if (!same_volume(graph, graph->xlators[i], &volfile->volumes[i]))
            return false;
    for (uint32_t i = volfile->count; i < graph->count; i++)
        if (graph->xlators[i]->child_count != 1 || graph->top->parent_count != 0)
            return false;
    return graph->count == volfile->count || graph->top == graph->xlators[graph->count - 1];
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void tell_changes(const struct xlator *xl, const struct option_set *set)
{
    for (const struct option *row = xl->type->options; row && row->type != OPT_END_; row++) {
        const char *value = option_set_get(set, row->name);
        if (same_text(option_set_get(&xl->options, row->name), value))
            continue;
        log_info(xl, 0, "option %s becomes %s%s", row->name, value ? value : "(default)",
                 row->flags & (OPTION_LIVE | OPTION_NO_EFFECT)
                     ? ""
                     : ": it is read at start only, and counts from the next one on");
    }
}

static int reconfigure_one(struct xlator *xl, struct option_set *set)
{
    tell_changes(xl, set);
    struct option_set old = xl->options;
    xl->options = *set;
    *set = (struct option_set){ 0 };
    option_set_fini(&old);
    level_apply(xl);
    int ret = options_apply(xl->type->options, &xl->options, xl->state, true);
    if (ret == 0 && xl->type->reconfigure)
        ret = xl->type->reconfigure(xl, &xl->options);
    if (ret < 0)
        log_error(xl, ret, "the new options could not be taken over");
    return ret;
}

int graph_reconfigure(struct graph *graph, struct volfile *volfile,
                      const struct graph_config *config)
{
    if (!same_shape(graph, volfile))
        return -EXDEV;
    int ret = overrides_apply(volfile, config);
    for (unsigned i = 0; i < volfile->count && ret == 0; i++)
        ret = set_validate(graph, graph->xlators[i], &volfile->volumes[i].options);
    char *text = ret == 0 ? volfile_format(volfile) : NULL;
    if (ret == 0 && !text)
        ret = -ENOMEM;
    if (ret < 0)
        return ret;

    free(graph->volfile);
    graph->volfile = text;
    for (unsigned i = 0; i < volfile->count; i++) { /* children first; one's failure stops nobody */
        int one = reconfigure_one(graph->xlators[i], &volfile->volumes[i].options);
        ret = ret < 0 ? ret : one;
    }
    return ret;
}

/* --- dumps ------------------------------------------------------------------------------------ */

void graph_dump(const struct graph *graph, struct dump *dump)
{
    for (uint32_t i = graph->count; i > 0; i--) {
        struct xlator *xl = graph->xlators[i - 1];
        dump_section(dump, "%s.%s", xl->type->name, xl->name);
        if (xl->type->empty_because)
            dump_value(dump, "empty", "%s", xl->type->empty_because);
        else if (xl->type->dump)
            xl->type->dump(xl, dump);
    }
}
