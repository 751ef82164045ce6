/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The layers test: a probe over and a probe under every translator type that a volfile may name,
 * and every operation sent through. It arrives below exactly once, with its arguments, unless the
 * table below says what else becomes of it; what a type leaves out never enters it. */
#include "../features/fixture.h"

#include <errno.h>
#include <ftw.h>
#include <unistd.h>

#include "graph/registry.h"

/* --- which types, with which options ---------------------------------------------------------- */

static char index_base[128];

static const struct {
    const char *type;
    const char *options[5];
} needed[] = {
    { "features/index", { "index-base", index_base } },
    { "debug/error-gen", { "failure", "0" } },
    { "debug/delay-gen", { "delay-percentage", "0" } },
};

/* What does not simply pass: answered by the translator, or asks the child something first. The
 * caller is root and the child answers 0 with nothing. */
static const struct {
    const char *type;
    enum fop op;
    int result;
    int arrives; /* how often the same operation reaches the child */
} exceptions[] = {
    { "features/locks", FOP_LK, -EINVAL, 0 }, /* see tame() */
    { "features/locks", FOP_INODELK, -EINVAL, 0 },
    { "features/locks", FOP_FINODELK, -EINVAL, 0 },
    { "features/locks", FOP_ENTRYLK, -EINVAL, 0 },
    { "features/locks", FOP_FENTRYLK, -EINVAL, 0 },
    { "features/locks", FOP_GETACTIVELK, 0, 0 },
    { "features/access-control", FOP_ACCESS, 0, 0 },
    { "features/access-control", FOP_STAT, 0, 1 },
};

static const char *const leaves_and_doors[] = {
    "storage/posix", "protocol/client", "protocol/server", "debug/sink", NULL,
};

static bool is_layer(const struct xlator_type *type)
{
    for (int i = 0; leaves_and_doors[i]; i++)
        if (strcmp(type->name, leaves_and_doors[i]) == 0)
            return false;
    return true;
}

static const char *const *options_of(const struct xlator_type *type)
{
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (strcmp(type->name, needed[i].type) == 0)
            return needed[i].options;
    return NULL;
}

/* --- the probe above: a type that takes every operation and passes it on ---------------------- */

static unsigned entered, returned;

static int probe_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                     void *reply)
{
    entered++;
    int ret = fop_call(first_child(xl), call, op, args, reply);
    returned++;
    return ret;
}

static const struct xlator_type probe = { .name = "test/probe", .children_min = 1,
                                          .children_max = 1, .any = probe_any };

/* --- one operation through one type ----------------------------------------------------------- */

static bool own_handler(const struct xlator_type *type, enum fop op)
{
    void (*fn)(void);
    memcpy(&fn, (const char *)&type->fops + fop_info[op].vtable_offset, sizeof(fn));
    return fn || type->any;
}

static void complain(const struct xlator_type *type, enum fop op, const char *what, long long got)
{
    fprintf(stderr, "%s, %s: %s: %lld\n", type->name, fop_info[op].name, what, got);
    abort();
}

/* Random locks might be granted, or waited for: these are none. */
static void tame(enum fop op, union fop_args *args)
{
    enum { NO_COMMAND = 77 };

    if (op == FOP_ACCESS)
        args->access.mask = 0;
    if (op == FOP_LK)
        args->lk.cmd = NO_COMMAND;
    if (op == FOP_INODELK)
        args->inodelk.cmd = NO_COMMAND;
    if (op == FOP_FINODELK)
        args->finodelk.cmd = NO_COMMAND;
    if (op == FOP_ENTRYLK)
        args->entrylk.cmd = NO_COMMAND;
    if (op == FOP_FENTRYLK)
        args->fentrylk.cmd = NO_COMMAND;
}

static void send_through(struct fixture *fx, const struct xlator_type *type, struct xlator *tested,
                         enum fop op)
{
    struct call call = call_of(NULL, "owner");
    struct some_args some;
    union fop_reply reply = { 0 };
    int expected = 0, arrives = 1;

    for (size_t i = 0; i < ARRAY_SIZE(exceptions); i++)
        if (strcmp(exceptions[i].type, type->name) == 0 && exceptions[i].op == op) {
            expected = exceptions[i].result;
            arrives = exceptions[i].arrives;
        }
    call.uid = call.gid = 0;
    some_args_init(&some, fx, op);
    tame(op, &some.args);
    fixture_forget(fx);
    entered = returned = 0;
    int ret = fop_call(fx->top, &call, op, &some.args, &reply);
    if (ret != expected)
        complain(type, op, "answers", ret);
    if (entered != 1 || returned != 1)
        complain(type, op, "the probe above was entered", entered);
    if (fixture_count(fx, op) != (unsigned)arrives)
        complain(type, op, "arrived below", fixture_count(fx, op));
    for (unsigned i = 0; i < fx->count; i++)
        if (fx->seen[i].op == op && fx->seen[i].inode != fop_subject(op, &some.args))
            complain(type, op, "arrived with another inode", i);

    const struct fop_target *target = &tested->target[op];
    if (!own_handler(type, op) && target->xl == tested)
        complain(type, op, "enters a translator that has nothing to do with it", 0);
    if (own_handler(type, op) && target->xl != tested)
        complain(type, op, "does not enter the translator that wants it", 0);
    fop_reply_fini(op, &reply);
    some_args_fini(&some, op);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void every_operation_through_every_type(void)
{
    unsigned types = 0;

    strcpy(index_base, "/var/tmp/mortar-layers-XXXXXX");
    check(mkdtemp(index_base) != NULL);
    for (unsigned i = 0; registry_at(i); i++) {
        const struct xlator_type *type = registry_at(i);
        if (!is_layer(type))
            continue;
        struct fixture *fx = fixture_new(type, options_of(type));
        struct xlator *tested = fx->top;
        fixture_push(fx, &probe, NULL);
        for (enum fop op = 0; op < FOP_COUNT; op++)
            send_through(fx, type, tested, op);
        fixture_free(fx); /* no inode, no file is left */
        types++;
    }
    fprintf(stderr, "# %u types, %d operations\n", types, FOP_COUNT);
    check(types >= 10 + 10); /* the real ones that are layers, and the empty ones */
    check_equal(nftw(index_base, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Empty types have no operations at all: nothing enters, at any depth. */
static void what_is_left_out_costs_nothing(void)
{
    static const struct xlator_type hollow = { .name = "test/hollow", .children_min = 1,
                                               .children_max = 1 };
    struct fixture *fx = fixture_new(&hollow, NULL);

    for (int depth = 1; depth < 20; depth++)
        fixture_push(fx, &hollow, NULL);
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        check(fx->top->target[op].xl == fx->child);
        check(fx->top->target[op].fn == fx->child->target[op].fn);
    }
    fixture_free(fx);
}

static int only_flush(struct xlator *xl, struct call *call, const struct flush_args *in,
                      struct flush_reply *out)
{
    (void)xl, (void)call, (void)in, (void)out;
    return 42;
}

static void what_nobody_has_is_not_supported(void)
{
    static const struct xlator_type leaf = { .name = "test/leaf", .fops = { .flush = only_flush } };
    struct fixture *fx = fixture_new(&probe, NULL); /* for its inodes */
    struct xlator xl = { .type = &leaf, .name = "leaf", .graph = &fx->graph };

    xlator_resolve(&xl);
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        struct call call = call_of(NULL, "");
        struct some_args some;
        union fop_reply reply = { 0 };
        some_args_init(&some, fx, op);
        check_equal(fop_call(&xl, &call, op, &some.args, &reply),
                    op == FOP_FLUSH ? 42 : -EOPNOTSUPP);
        some_args_fini(&some, op);
    }
    fixture_free(fx);
}

static void a_deadline_that_passed_stops_an_operation(void)
{
    struct fixture *fx = fixture_new(&probe, NULL);
    struct call call = call_of(NULL, "");
    struct some_args some;
    union fop_reply reply = { 0 };

    some_args_init(&some, fx, FOP_STAT);
    call.deadline_ns = env_now_ns() + NS_PER_S;
    check_equal(fop_call(fx->top, &call, FOP_STAT, &some.args, &reply), 0);
    call.deadline_ns = env_now_ns();
    check_equal(fop_call(fx->top, &call, FOP_STAT, &some.args, &reply), -ETIMEDOUT);
    check_equal(fx->count, 1);
    some_args_fini(&some, FOP_STAT);
    fixture_free(fx);
}

/* --- events, ends ----------------------------------------------------------------------------- */

static unsigned heard, gone;

static void on_event(struct graph *graph, enum xlator_event event, void *data)
{
    (void)graph;
    check(data == &heard);
    heard += event == EVENT_UPCALL;
}

static void on_gone(struct xlator *xl, struct client *client)
{
    (void)xl, (void)client;
    gone++;
}

static void events_rise_and_ends_of_clients_sink(void)
{
    static const struct xlator_type minder = { .name = "test/minder", .children_min = 1,
                                               .children_max = 1, .client_gone = on_gone };
    struct fixture *fx = fixture_new(&minder, NULL);
    struct client *client = client_new("c", "a");

    fixture_push(fx, &probe, NULL);
    fixture_push(fx, &minder, NULL);
    fx->graph.on_event = on_event;
    heard = gone = 0;
    xlator_notify(fx->child, EVENT_UPCALL, &heard);
    check_equal(heard, 1);
    xlator_client_gone(fx->top, client);
    check_equal(gone, 2);
    client_unref(client);
    fixture_free(fx);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(every_operation_through_every_type, PLAIN_ONLY),
    FIBER_CASE(what_is_left_out_costs_nothing, PLAIN_ONLY),
    FIBER_CASE(what_nobody_has_is_not_supported, PLAIN_ONLY),
    FIBER_CASE(a_deadline_that_passed_stops_an_operation, ALL),
    FIBER_CASE(events_rise_and_ends_of_clients_sink, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
