/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What surrounds every operation (used by the generated callers only): the deadline before it, the
 * check of what it answered after it. */
#pragma once

#include <assert.h>
#include <errno.h>

#include "core/env.h"
#include "graph/xlator.h"

static inline int fop_guard_begin(struct xlator *xl, struct call *call, enum fop op, const void *in)
{
    (void)xl;
    (void)op;
    (void)in;
    if (call->deadline_ns && env_now_ns() >= call->deadline_ns)
        return -ETIMEDOUT;
    return 0;
}

static inline int fop_guard_end(struct xlator *xl, struct call *call, enum fop op, const void *in,
                                const void *out, int ret)
{
    (void)xl;
    (void)call;
    (void)op;
    (void)in;
    (void)out;
    assert(ret > -4096); /* an errno, not a stray pointer */
    return ret;
}
