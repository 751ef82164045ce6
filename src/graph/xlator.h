/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A translator: one node of a graph (DESIGN section 4). A type is a const table; see STYLE for a
 * whole one. Operations that a type leaves out are resolved, when the graph is built, to the
 * nearest descendant that has them, so they never enter it.
 *
 *     int ret = fop_writev(first_child(xl), call, in, out);     // graph/fop_call.h, generated
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "core/auto.h"
#include "core/fiber.h"
#include "core/log.h"
#include "core/option.h"
#include "fop/call.h"
#include "fop/fop_types.h" /* generated: enum fop, X_args, X_reply, struct fops */
#include "graph/client.h"
#include "graph/inode.h"

struct graph;
struct xlator;

enum xlator_event {
    EVENT_CHILD_UP,       /* upwards: this child can serve */
    EVENT_CHILD_DOWN,     /* upwards: it cannot */
    EVENT_CHILD_MODIFIED,
    EVENT_AUTH_FAILED,    /* upwards: the brick refused us; text says why */
    EVENT_UPCALL,         /* upwards: data is a struct upcall (cache invalidation, ...) */
};

/* A statedump, or .meta's private: sections of key=value lines. */
struct dump;
void dump_section(struct dump *dump, const char *format, ...) printf_like(2, 3);
void dump_value(struct dump *dump, const char *key, const char *format, ...) printf_like(3, 4);

struct xlator_type {
    const char *name;                  /* "storage/posix" */
    const char *aliases[4];            /* other type names that mean this one */
    size_t state_size;                 /* xl->state: zeroed, options applied before init */
    const struct option *options;
    const char *empty_because;         /* registered as empty: why, one line; no fops then */
    unsigned children_min, children_max; /* 0, 0: a leaf; max UINT32_MAX: any */

    /* Life, each on a fiber, may wait. init: children's are not yet up, use no child; errors are
     * logged by init itself with the cure. start: begin working (children first): connect, listen.
     * stop: stop accepting work and finish what runs (parents first). fini: free the state. */
    int (*init)(struct xlator *xl);
    int (*start)(struct xlator *xl);
    void (*stop)(struct xlator *xl);
    void (*fini)(struct xlator *xl);
    /* New option set, already validated and (live rows) applied. */
    int (*reconfigure)(struct xlator *xl, const struct option_set *set);
    /* From a child. NULL: passed on to the parents. */
    void (*event)(struct xlator *xl, struct xlator *child, enum xlator_event event, void *data);

    /* Ends of what slots hold: forget, client_free never wait; release may. */
    void (*forget)(struct xlator *xl, struct inode *inode, void *state);
    void (*release)(struct xlator *xl, struct fd *fd, void *state);
    void (*client_free)(struct xlator *xl, struct client *client, void *state);
    /* The client's connection ended: drop its locks, answer its waiters with -ENOTCONN. */
    void (*client_gone)(struct xlator *xl, struct client *client);
    void (*dump)(struct xlator *xl, struct dump *dump);

    struct fops fops;
    /* Takes every operation that fops leaves out (trace, statistics, errors, ...). args and reply
     * are those of `op`; pass on with fop_call(first_child(xl), call, op, args, reply). */
    int (*any)(struct xlator *xl, struct call *call, enum fop op, const void *args, void *reply);
};

struct fop_target { /* where an operation on this translator really enters */
    struct xlator *xl;
    void (*fn)(void); /* cast by the generated callers */
};

struct xlator {
    struct log_source log;             /* first: log_error(xl, ...) */
    const char *name;
    const struct xlator_type *type;
    void *state;
    struct graph *graph;
    struct option_set options;
    struct xlator **children, **parents;
    uint32_t child_count, parent_count;
    struct fop_target target[FOP_COUNT];
    bool inited, started;
};

static inline struct xlator *first_child(const struct xlator *xl)
{
    return xl->children[0];
}

/* Fills in xl->target; children's must be resolved already. An operation nobody below implements
 * answers -EOPNOTSUPP. */
void xlator_resolve(struct xlator *xl) nowait;
/* Sends an event to all parents (their event hook, or further up). At the top: the graph's
 * on_event. */
void xlator_notify(struct xlator *xl, enum xlator_event event, void *data);
/* client_gone on every translator of the graph below and including xl, top down. */
void xlator_client_gone(struct xlator *xl, struct client *client);

struct graph {
    struct xlator **xlators;           /* in volfile order: children before parents */
    uint32_t count;
    struct xlator *top;
    struct inode_table *inodes;
    int id;
    char *uuid;                        /* <hostname>-<pid>-<time> */
    char *volfile;                     /* text in use */
    void (*on_event)(struct graph *graph, enum xlator_event event, void *data);
    void *on_event_arg;
};
