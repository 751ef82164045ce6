/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fixture.h"

#include "../fop/sample.h"
#include "fop/fop_codec.h"

/* --- the child that records ------------------------------------------------------------------- */

static void record(struct fixture *fx, struct call *call, enum fop op, const void *args)
{
    const char *name = fop_subject_name(op, args);
    HOLD(&fx->mutex);
    if (fx->count == fx->room) {
        fx->room = fx->room ? 2 * fx->room : 64;
        fx->seen = realloc(fx->seen, fx->room * sizeof(*fx->seen));
        check(fx->seen != NULL);
    }
    struct seen *seen = &fx->seen[fx->count++];
    *seen = (struct seen){
        .op = op, .inode = fop_subject(op, args), .pid = call->pid, .uid = call->uid,
        .times = call->times, .ctime_sec = call->ctime_sec, .ctime_nsec = call->ctime_nsec,
    };
    snprintf(seen->name, sizeof(seen->name), "%s", name ? name : "");
}

static int recorder_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                        void *reply)
{
    struct fixture *fx = xl->state;
    record(fx, call, op, args);
    return fx->answer ? fx->answer(fx, call, op, args, reply) : 0;
}

static const struct xlator_type recorder = { .name = "test/recorder", .any = recorder_any };

/* --- building --------------------------------------------------------------------------------- */

static struct xlator *xl_new(struct graph *graph, const struct xlator_type *type, const char *name)
{
    struct xlator *xl = calloc(1, sizeof(*xl));
    check(xl != NULL);
    xl->name = strdup(name);
    xl->log = (struct log_source){ .name = xl->name };
    xl->type = type;
    xl->graph = graph;
    xl->state = type->state_size ? calloc(1, type->state_size) : NULL;
    graph->xlators = realloc(graph->xlators, (graph->count + 1) * sizeof(struct xlator *));
    graph->xlators[graph->count++] = xl;
    return xl;
}

static void xl_free(struct xlator *xl)
{
    if (xl->inited && xl->type->fini)
        xl->type->fini(xl);
    if (xl->type != &recorder) {
        options_fini(xl->type->options, xl->state);
        free(xl->state);
    }
    option_set_fini(&xl->options);
    free(xl->children);
    free(xl->parents);
    free((char *)(uintptr_t)xl->name);
    free(xl);
}

static int options_take(struct xlator *xl, const char *const *options, struct option_set *set)
{
    char error[OPTION_ERROR_SIZE];

    for (; options && *options; options += 2)
        check_equal(option_set_put(set, options[0], options[1]), 0);
    int ret = options_validate(xl->type->options, xl->name, set, error);
    if (ret < 0)
        fprintf(stderr, "# %s\n", error);
    return ret;
}

static void link_to(struct xlator *parent, struct xlator *child)
{
    parent->children = malloc(sizeof(struct xlator *));
    parent->children[0] = child;
    parent->child_count = 1;
    child->parents = malloc(sizeof(struct xlator *));
    child->parents[0] = parent;
    child->parent_count = 1;
}

static int push(struct fixture *fx, const struct xlator_type *type, const char *const *options)
{
    struct xlator *xl = xl_new(&fx->graph, type, "tested");
    int ret = options_take(xl, options, &xl->options);

    if (ret == 0)
        ret = options_apply(type->options, &xl->options, xl->state, false);
    link_to(xl, fx->top);
    xlator_resolve(xl);
    fx->top = fx->graph.top = xl;
    if (ret == 0 && type->init) {
        ret = type->init(xl);
        xl->inited = ret == 0;
    }
    xl->inited = ret == 0;
    if (ret == 0 && type->start)
        ret = type->start(xl);
    return ret;
}

int fixture_try(const struct xlator_type *type, const char *const *options,
                struct fixture **ret_fx)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    int ret;

    check(fx != NULL);
    pthread_mutex_init(&fx->mutex, NULL);
    check_equal(inode_table_new(&fx->graph.inodes), 0);
    fx->graph.uuid = strdup("fixture");
    fx->child = fx->top = fx->graph.top = xl_new(&fx->graph, &recorder, "child");
    fx->child->state = fx;
    xlator_resolve(fx->child);
    ret = push(fx, type, options);
    if (ret < 0)
        fixture_free(fx);
    else
        *ret_fx = fx;
    return ret;
}

struct fixture *fixture_new(const struct xlator_type *type, const char *const *options)
{
    struct fixture *fx = NULL;
    check_equal(fixture_try(type, options, &fx), 0);
    return fx;
}

void fixture_push(struct fixture *fx, const struct xlator_type *type, const char *const *options)
{
    check_equal(push(fx, type, options), 0);
}

int fixture_reconfigure(struct fixture *fx, const char *const *options)
{
    struct option_set set = { 0 };
    struct xlator *xl = fx->top;
    int ret = options_take(xl, options, &set);

    if (ret == 0)
        ret = options_apply(xl->type->options, &set, xl->state, true);
    option_set_fini(&xl->options);
    xl->options = set;
    return ret == 0 && xl->type->reconfigure ? xl->type->reconfigure(xl, &set) : ret;
}

void fixture_free(struct fixture *fx)
{
    for (uint32_t i = fx->graph.count; i-- > 0;)
        if (fx->graph.xlators[i]->inited && fx->graph.xlators[i]->type->stop)
            fx->graph.xlators[i]->type->stop(fx->graph.xlators[i]);
    check_equal(inode_table_count(fx->graph.inodes), 0);
    inode_table_free(fx->graph.inodes);
    for (uint32_t i = fx->graph.count; i-- > 0;)
        xl_free(fx->graph.xlators[i]);
    free(fx->graph.xlators);
    free(fx->graph.uuid);
    free(fx->seen);
    pthread_mutex_destroy(&fx->mutex);
    free(fx);
}

/* --- what was seen ---------------------------------------------------------------------------- */

unsigned fixture_count(struct fixture *fx, enum fop op)
{
    unsigned count = 0;
    HOLD(&fx->mutex);
    for (unsigned i = 0; i < fx->count; i++)
        count += fx->seen[i].op == op;
    return count;
}

void fixture_forget(struct fixture *fx)
{
    HOLD(&fx->mutex);
    fx->count = 0;
}

static unsigned dump_search(struct fixture *fx, const char *key, char *value, size_t size)
{
    char *text = NULL;
    size_t bytes = 0, key_bytes = strlen(key);
    struct dump dump = { .out = open_memstream(&text, &bytes) };
    unsigned found = 0;

    check(dump.out != NULL);
    fx->top->type->dump(fx->top, &dump);
    fclose(dump.out);
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strncmp(line, key, key_bytes) == 0 && line[key_bytes] == '=' && found++ == 0)
            snprintf(value, size, "%s", line + key_bytes + 1);
    free(text);
    return found;
}

const char *fixture_dumped(struct fixture *fx, const char *key)
{
    static char value[512];
    return dump_search(fx, key, value, sizeof(value)) ? value : NULL;
}

unsigned fixture_dump_lines(struct fixture *fx, const char *key)
{
    char value[512];
    return dump_search(fx, key, value, sizeof(value));
}

/* --- what tests call with --------------------------------------------------------------------- */

gfid_t gfid_of(uint32_t n)
{
    gfid_t gfid = { .bytes = { [0] = 0x5a, [12] = (uint8_t)(n >> 24), [13] = (uint8_t)(n >> 16),
                               [14] = (uint8_t)(n >> 8), [15] = (uint8_t)n } };
    return gfid;
}

struct inode *fixture_inode(struct fixture *fx, uint32_t n)
{
    gfid_t gfid = gfid_of(n);
    struct inode *inode = inode_get(fx->graph.inodes, &gfid);
    check(inode != NULL);
    return inode;
}

struct call call_of(struct client *client, const char *owner)
{
    struct call call = { .client = client, .pid = 100, .uid = 1000, .gid = 1000 };
    call.owner.bytes = (uint32_t)strlen(owner);
    memcpy(call.owner.data, owner, call.owner.bytes);
    return call;
}

void await_count(const unsigned *count, unsigned n)
{
    for (unsigned ms = 0; __atomic_load_n(count, __ATOMIC_ACQUIRE) != n; ms++) {
        check(ms < 10000);
        env_sleep(NS_PER_MS);
    }
}

void some_args_init(struct some_args *some, struct fixture *fx, enum fop op)
{
    memset(some, 0, sizeof(*some));
    some->inode = fixture_inode(fx, 77);
    some->fd = fd_new(some->inode, 2, 1);
    check(some->fd != NULL);
    sample_args(op, &some->args);
    struct inode *inodes[3] = { some->inode, some->inode, some->inode };
    struct fd *fds[2] = { some->fd, some->fd };
    fop_bind(op, &some->args, inodes, fds);
    struct fd **new_fd = fop_new_fd(op, &some->args);
    if (new_fd)
        *new_fd = some->fd;
}

void some_args_fini(struct some_args *some, enum fop op)
{
    sample_args_fini(op, &some->args);
    fd_unref(some->fd);
    inode_unref(some->inode);
}
