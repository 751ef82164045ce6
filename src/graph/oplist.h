/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of operations given as text, and a die to throw: what debug translators share.
 *
 *     ret = oplist_parse(xl, "writev,fsync", &state->ops);
 *     if (oplist_has(&state->ops, op) && oplist_chance(10.0)) ...
 */
#pragma once

#include "graph/xlator.h"

struct oplist {
    bool has[FOP_COUNT];
};

/* Names as in fops.def or as statistics say them, comma-separated; NULL or "": all. -EINVAL with a
 * log line that names the word. */
must_check int oplist_parse(struct xlator *xl, const char *text, struct oplist *ret_list) nowait;
static inline bool oplist_has(const struct oplist *list, enum fop op)
{
    return list->has[op];
}
/* true in percent of the cases, by env's randomness. */
bool oplist_chance(double percent) nowait;
