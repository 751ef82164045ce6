/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/sink: a leaf without a file system, for tests of what stands above it.
 * Promises: every operation succeeds at once and does nothing; reads are at the end of the file.
 * Keeps:    nothing.
 * Locks:    none. */
#include "graph/fop_call.h"

static int sink_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                    void *reply)
{
    (void)xl;
    (void)call;
    if (op == FOP_WRITEV)
        return (int)((const struct writev_args *)args)->payload.bytes;
    if (op == FOP_READV)
        ((struct readv_reply *)reply)->eof = true;
    return 0;
}

static int sink_start(struct xlator *xl)
{
    xlator_notify(xl, EVENT_CHILD_UP, NULL);
    return 0;
}

const struct xlator_type xlator_debug_sink = {
    .name = "debug/sink",
    .start = sink_start,
    .any = sink_any,
};
