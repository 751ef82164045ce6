/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* performance/io-threads: the size of the worker pool that blocking system calls run on.
 * Promises: operations pass unchanged and unqueued; the pool has thread-count threads at most.
 * Keeps:    nothing. The pool is the process's own (DESIGN section 3): storage/posix hops to it.
 * Locks:    none. */
#include "graph/xlator.h"

struct io_threads {
    int64_t thread_count; /* live */
};

static int io_threads_init(struct xlator *xl)
{
    struct io_threads *threads = xl->state;
    pool_resize(pool_default(), (unsigned)threads->thread_count);
    return 0;
}

static int io_threads_reconfigure(struct xlator *xl, const struct option_set *set)
{
    (void)set;
    return io_threads_init(xl);
}

#define NO_CLASSES "One pool serves all operations in the order of their arrival."

static const struct option io_threads_options[] = {
    OPTION_INT(struct io_threads, thread_count, "thread-count", .fallback = "16", .min = 1,
               .max = 64, .flags = OPTION_LIVE,
               .help = "Worker threads at most; they start on demand."),
    OPTION_NONE(OPT_INT, "high-prio-threads", .min = 1, .max = 64, .help = NO_CLASSES),
    OPTION_NONE(OPT_INT, "normal-prio-threads", .min = 1, .max = 64, .help = NO_CLASSES),
    OPTION_NONE(OPT_INT, "low-prio-threads", .min = 1, .max = 64, .help = NO_CLASSES),
    OPTION_NONE(OPT_INT, "least-prio-threads", .min = 1, .max = 64, .help = NO_CLASSES),
    OPTION_NONE(OPT_BOOL, "enable-least-priority", .help = NO_CLASSES),
    OPTION_NONE(OPT_INT, "idle-time", .min = 1, .max = 2147483647,
                .help = "Idle workers end by the pool's own rule."),
    OPTION_NONE(OPT_INT, "watchdog-secs",
                .help = "No queue of operations exists that could stall."),
    OPTION_NONE(OPT_BOOL, "cleanup-disconnected-reqs", .help = "No queue of operations exists."),
    OPTION_NONE(OPT_BOOL, "pass-through", .help = "Operations always pass through."),
    OPTION_NONE(OPT_BOOL, "autoscaling", .help = "Threads always start on demand."),
    OPTION_NONE(OPT_INT, "min-threads", .min = 1, .max = 64, .help = "Threads start on demand."),
    OPTION_NONE(OPT_INT, "max-threads", .min = 1, .max = 64, .help = "Use thread-count."),
    OPTION_NONE(OPT_INT, "least-rate-limit", .help = NO_CLASSES),
    OPTION_END,
};

const struct xlator_type xlator_performance_io_threads = {
    .name = "performance/io-threads",
    .state_size = sizeof(struct io_threads),
    .options = io_threads_options,
    .children_min = 1,
    .children_max = 1,
    .init = io_threads_init,
    .reconfigure = io_threads_reconfigure,
};
