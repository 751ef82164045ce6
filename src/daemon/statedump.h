/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What SIGUSR1 writes (spec/introspection.md).
 *
 *     statedump_write("/var/run/gluster", brick_name_or_null, graph);
 */
#pragma once

struct graph;

/* Says in the log where it went, or why not. On a fiber. */
void statedump_write(const char *directory, const char *brick, const struct graph *graph);
