/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/delay-gen: makes operations slow, to see what the others do about it.
 * Promises: delay-percentage of the operations that `enable` names (all, when it names none) wait
 *           delay-duration before they go on; nothing else changes.
 * Keeps:    how many were delayed.
 * Locks:    none. */
#include <string.h>

#include "core/env.h"
#include "graph/fop_call.h"
#include "graph/oplist.h"

struct delay_gen {
    double percent;
    int64_t duration_us;
    char *enable;
    struct oplist ops;
    _Atomic uint64_t delayed;
};

static int delay_init(struct xlator *xl)
{
    struct delay_gen *delay = xl->state;
    return oplist_parse(xl, delay->enable, &delay->ops);
}

static int delay_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                     void *reply)
{
    struct delay_gen *delay = xl->state;

    if (oplist_has(&delay->ops, op) && oplist_chance(delay->percent)) {
        count_add(&delay->delayed, 1);
        env_sleep((uint64_t)delay->duration_us * NS_PER_US);
    }
    return fop_call(first_child(xl), call, op, args, reply);
}

static void delay_dump(struct xlator *xl, struct dump *dump)
{
    struct delay_gen *delay = xl->state;
    dump_value(dump, "delayed", "%lu", (unsigned long)delay->delayed);
}

static const struct option delay_options[] = {
    OPTION_PERCENT(struct delay_gen, percent, "delay-percentage", .fallback = "10%",
                   .help = "How many of the operations are delayed."),
    OPTION_INT(struct delay_gen, duration_us, "delay-duration", .fallback = "100000", .min = 0,
               .flags = OPTION_MIN_ONLY,
               .help = "For how long, in microseconds."),
    OPTION_STR(struct delay_gen, enable, "enable", .fallback = "",
               .help = "Comma-separated operations; empty: all."),
    OPTION_END,
};

const struct xlator_type xlator_debug_delay_gen = {
    .name = "debug/delay-gen",
    .state_size = sizeof(struct delay_gen),
    .options = delay_options,
    .children_min = 1,
    .children_max = 1,
    .init = delay_init,
    .dump = delay_dump,
    .any = delay_any,
};
