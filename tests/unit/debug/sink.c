/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/sink: every operation succeeds and does nothing; it says at once that it is up. */
#include "../features/fixture.h"

extern const struct xlator_type xlator_debug_sink;

static unsigned ups;

static void on_event(struct graph *graph, enum xlator_event event, void *data)
{
    (void)graph;
    (void)data;
    ups += event == EVENT_CHILD_UP;
}

static void everything_succeeds(void)
{
    struct graph graph = { .on_event = on_event };
    struct xlator xl = { .type = &xlator_debug_sink, .graph = &graph, .name = "sink" };
    struct fixture *fx = fixture_new(&xlator_debug_sink, NULL); /* for its inodes */

    graph.top = &xl;
    xlator_resolve(&xl);
    ups = 0;
    check_equal(xlator_debug_sink.start(&xl), 0);
    check_equal(ups, 1);
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        struct call call = call_of(NULL, "");
        struct some_args some;
        union fop_reply reply = { 0 };
        some_args_init(&some, fx, op);
        int ret = fop_call(&xl, &call, op, &some.args, &reply);
        check_equal(ret, op == FOP_WRITEV ? some.args.writev.payload.bytes : 0);
        check_equal(op == FOP_READV ? reply.readv.eof : true, true);
        fop_reply_fini(op, &reply);
        some_args_fini(&some, op);
    }
    fixture_free(fx);
}

static const struct fiber_case cases[] = { FIBER_CASE(everything_succeeds, ALL) };

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
