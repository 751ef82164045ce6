/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "graph/xlator.h"

#include "graph/fop_call.h"

/* --- where an operation enters ---------------------------------------------------------------- */
static void (*own_fn(const struct xlator_type *type, enum fop op))(void)
{
    const char *fops = (const char *)&type->fops;
    void (*fn)(void);

    __builtin_memcpy(&fn, fops + fop_info[op].vtable_offset, sizeof(fn));
    if (!fn && type->any)
        fn = fop_any_thunk[op];
    return fn;
}

void xlator_resolve(struct xlator *xl)
{
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        void (*fn)(void) = own_fn(xl->type, op);
        if (fn)
            xl->target[op] = (struct fop_target){ .xl = xl, .fn = fn };
        else if (xl->child_count)
            xl->target[op] = first_child(xl)->target[op];
        else
            xl->target[op] = (struct fop_target){ .xl = xl, .fn = fop_unsupported[op] };
    }
}

/* --- events ----------------------------------------------------------------------------------- */
static void event_enter(struct xlator *xl, struct xlator *child, enum xlator_event event,
                        void *data)
{
    if (xl->type->event)
        xl->type->event(xl, child, event, data);
    else
        xlator_notify(xl, event, data);
}

void xlator_notify(struct xlator *xl, enum xlator_event event, void *data)
{
    for (uint32_t i = 0; i < xl->parent_count; i++)
        event_enter(xl->parents[i], xl, event, data);
    if (xl->graph && xl == xl->graph->top && xl->graph->on_event)
        xl->graph->on_event(xl->graph, event, data);
}

void xlator_client_gone(struct xlator *xl, struct client *client)
{
    if (xl->type->client_gone)
        xl->type->client_gone(xl, client);
    for (uint32_t i = 0; i < xl->child_count; i++)
        xlator_client_gone(xl->children[i], client);
}
