/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A volfile made into translators, and their life.
 *
 *     ret = graph_new(volfile, &config, &graph);       // types, shapes and all options are checked
 *     ret = graph_init(graph);                          // on a fiber, as all that follows
 *     ret = graph_start(graph);
 *     ...  graph_stop(graph);  graph_free(graph);
 *
 * Whatever fails has said so in the log with the volume's name; the caller adds no more. */
#pragma once

#include <stdio.h>

#include "graph/volfile.h"
#include "graph/xlator.h"

/* --xlator-option GLOB.KEY=VALUE */
struct graph_override {
    const char *glob, *key, *value;
};

struct graph_config {
    int id;
    const char *uuid;
    const char *volume_name;                 /* NULL, or the volume to be the top */
    const struct graph_override *overrides;  /* of several for one key the first counts */
    unsigned override_count;
};

enum { GRAPH_DEPTH_MAX = 32 }; /* translators that an operation enters: the stack is small */

/* The overrides go into volfile, whose text the graph then shows. -EINVAL and other reasons for a
 * volfile that cannot be. */
must_check int graph_new(struct volfile *volfile, const struct graph_config *config,
                         struct graph **ret_graph);
/* Stacks one more translator over the top (a mount, an ACL layer). Before graph_init. */
must_check int graph_push(struct graph *graph, const struct xlator_type *type, const char *name,
                          const struct option_set *options);
/* Parents before children. What failed is undone. */
must_check int graph_init(struct graph *graph);
/* Children before parents. */
must_check int graph_start(struct graph *graph);
void graph_stop(struct graph *graph);
/* Also of a graph that is not, or half, initialised. */
void graph_free(struct graph *graph);

/* Takes over the options of a volfile with the same shape: all are checked before any is applied.
 * -EXDEV: another shape, nothing was changed. */
must_check int graph_reconfigure(struct graph *graph, struct volfile *volfile,
                                 const struct graph_config *config);

struct xlator *graph_find(const struct graph *graph, const char *name) nowait; /* or NULL */

/* A statedump: one section a translator, then what its dump hook says. */
void graph_dump(const struct graph *graph, struct dump *dump);
