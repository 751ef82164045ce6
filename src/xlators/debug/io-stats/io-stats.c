/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/io-stats: counts what passes: operations, bytes, block sizes, and with latency-measurement
 * the time each operation took; and carries the process's log settings of a volfile.
 * Promises: operations pass unchanged.
 * Keeps:    counters since the start. Shown in dumps.
 * Locks:    none. The counters are relaxed atomics; a dump may lag by what is in flight. */
#include <string.h>

#include "core/env.h"
#include "graph/fop_call.h"

enum { SIZE_CLASSES = 32 }; /* class n: 2^n .. 2^(n+1)-1 bytes */

struct fop_stats {
    _Atomic uint64_t hits, failures, total_ns, max_ns, min_ns;
};

struct io_stats {
    _Atomic bool measure_latency, count_hits; /* live */
    char *log_level, *brick_log_level, *client_log_level, *unique_id, *volume_id;
    struct fop_stats fops[FOP_COUNT];
    _Atomic uint64_t read_bytes, written_bytes;
    _Atomic uint64_t reads_of[SIZE_CLASSES], writes_of[SIZE_CLASSES];
    uint64_t start_ns;
};

/* The log level of a volfile is the process's: whichever of the three is given. */
static int apply_log_level(struct xlator *xl)
{
    struct io_stats *stats = xl->state;
    const char *texts[] = { stats->log_level, stats->brick_log_level, stats->client_log_level };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        enum log_level level;
        if (texts[i] && log_level_parse(texts[i], &level) == 0) {
            log_set_level(level);
            return 0;
        }
    }
    return 0;
}

static int io_stats_init(struct xlator *xl)
{
    struct io_stats *stats = xl->state;
    stats->start_ns = env_now_ns();
    for (enum fop op = 0; op < FOP_COUNT; op++)
        stats->fops[op].min_ns = UINT64_MAX;
    return apply_log_level(xl);
}

static int io_stats_reconfigure(struct xlator *xl, const struct option_set *set)
{
    (void)set;
    return apply_log_level(xl);
}

static unsigned size_class(uint64_t bytes)
{
    unsigned n = bytes ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
    return MIN(n, SIZE_CLASSES - 1u);
}

static void extreme(_Atomic uint64_t *kept, uint64_t ns, bool larger)
{
    uint64_t seen = *kept;
    while ((larger ? ns > seen : ns < seen) && !atomic_compare_exchange_weak(kept, &seen, ns)) {
    }
}

static void count_result(struct io_stats *stats, enum fop op, int ret)
{
    count_add(&stats->fops[op].hits, 1);
    if (ret < 0)
        count_add(&stats->fops[op].failures, 1);
    else if (op == FOP_READV) {
        count_add(&stats->read_bytes, (uint64_t)ret);
        count_add(&stats->reads_of[size_class((uint64_t)ret)], 1);
    } else if (op == FOP_WRITEV) {
        count_add(&stats->written_bytes, (uint64_t)ret);
        count_add(&stats->writes_of[size_class((uint64_t)ret)], 1);
    }
}

static int io_stats_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                        void *reply)
{
    struct io_stats *stats = xl->state;
    bool measure = stats->measure_latency;
    uint64_t start_ns = measure ? env_now_ns() : 0;
    int ret = fop_call(first_child(xl), call, op, args, reply);

    count_result(stats, op, ret);
    if (measure) {
        uint64_t ns = env_now_ns() - start_ns;
        count_add(&stats->fops[op].total_ns, ns);
        extreme(&stats->fops[op].max_ns, ns, true);
        extreme(&stats->fops[op].min_ns, ns, false);
    }
    return ret;
}

static void dump_fop(struct dump *dump, enum fop op, struct fop_stats *fop)
{
    uint64_t hits = fop->hits;
    if (hits == 0)
        return;
    dump_value(dump, fop_info[op].title, "hits:%lu failures:%lu avg_ns:%lu min_ns:%lu max_ns:%lu",
               (unsigned long)hits, (unsigned long)fop->failures,
               (unsigned long)(fop->total_ns / hits),
               (unsigned long)(fop->min_ns == UINT64_MAX ? 0 : fop->min_ns),
               (unsigned long)fop->max_ns);
}

static void io_stats_dump(struct xlator *xl, struct dump *dump)
{
    struct io_stats *stats = xl->state;

    dump_value(dump, "uptime_s", "%lu",
               (unsigned long)((env_now_ns() - stats->start_ns) / NS_PER_S));
    dump_value(dump, "data_read", "%lu", (unsigned long)stats->read_bytes);
    dump_value(dump, "data_written", "%lu", (unsigned long)stats->written_bytes);
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        char key[32];
        snprintf(key, sizeof(key), "block_%lub", 1ul << i);
        if (stats->reads_of[i] || stats->writes_of[i])
            dump_value(dump, key, "reads:%lu writes:%lu", (unsigned long)stats->reads_of[i],
                       (unsigned long)stats->writes_of[i]);
    }
    for (enum fop op = 0; op < FOP_COUNT; op++)
        dump_fop(dump, op, &stats->fops[op]);
}

static const char *const log_levels[] = { "DEBUG", "WARNING", "ERROR", "INFO", "CRITICAL", "NONE",
                                          "TRACE", NULL };
static const char *const sys_levels[] = { "WARNING", "ERROR", "INFO", "CRITICAL", NULL };
static const char *const loggers[] = { "gluster-log", "syslog", NULL };
static const char *const log_formats[] = { "no-msg-id", "with-msg-id", NULL };
static const char *const dump_formats[] = { "text", "json", "dict", "samples", NULL };

#define BY_COMMAND_LINE "The command line decides (--logger, --log-format)."
#define UNBUFFERED "Every line is written at once."
#define NO_DUMP_FILES "Statedumps show the counters; no files are written at intervals."
#define NO_POOLS "Lanes and workers are the process's own (io-threads sizes the workers)."

static const struct option io_stats_options[] = {
    OPTION_BOOL(struct io_stats, measure_latency, "latency-measurement", .fallback = "off",
                .flags = OPTION_LIVE, .help = "Take the time of every operation."),
    OPTION_BOOL(struct io_stats, count_hits, "count-fop-hits", .fallback = "off",
                .flags = OPTION_LIVE, .help = "Show the counters in profiles."),
    OPTION_STR(struct io_stats, log_level, "log-level", .values = log_levels, .flags = OPTION_LIVE,
               .help = "The process's log level."),
    OPTION_STR(struct io_stats, brick_log_level, "brick-log-level", .values = log_levels,
               .flags = OPTION_LIVE, .help = "The same, as bricks are told."),
    OPTION_STR(struct io_stats, client_log_level, "client-log-level", .values = log_levels,
               .flags = OPTION_LIVE, .help = "The same, as clients are told."),
    OPTION_STR(struct io_stats, unique_id, "unique-id", .fallback = "/no/such/path",
               .help = "What these statistics are of (the brick's path)."),
    OPTION_STR(struct io_stats, volume_id, "volume-id", .help = "Of which volume."),
    OPTION_NONE(OPT_BOOL, "dump-fd-stats", .help = NO_DUMP_FILES),
    OPTION_NONE(OPT_INT, "ios-dump-interval", .min = 0, .max = 3600, .help = NO_DUMP_FILES),
    OPTION_NONE(OPT_INT, "ios-sample-interval", .min = 0, .max = 65535, .help = NO_DUMP_FILES),
    OPTION_NONE(OPT_STR, "ios-dump-format", .values = dump_formats, .help = NO_DUMP_FILES),
    OPTION_NONE(OPT_INT, "ios-sample-buf-size", .min = 1024, .max = 1048576, .help = NO_DUMP_FILES),
    OPTION_NONE(OPT_INT, "ios-dnscache-ttl-sec", .min = 1, .max = 259200, .help = NO_DUMP_FILES),
    OPTION_NONE(OPT_STR, "sys-log-level", .values = sys_levels, .help = BY_COMMAND_LINE),
    OPTION_NONE(OPT_STR, "logger", .values = loggers, .help = BY_COMMAND_LINE),
    OPTION_NONE(OPT_STR, "client-logger", .values = loggers, .help = BY_COMMAND_LINE),
    OPTION_NONE(OPT_STR, "brick-logger", .values = loggers, .help = BY_COMMAND_LINE),
    OPTION_NONE(OPT_STR, "log-format", .values = log_formats, .help = BY_COMMAND_LINE),
    OPTION_NONE(OPT_STR, "client-log-format", .values = log_formats, .help = BY_COMMAND_LINE),
    OPTION_NONE(OPT_STR, "brick-log-format", .values = log_formats, .help = BY_COMMAND_LINE),
    OPTION_NONE(OPT_INT, "log-buf-size", .min = 0, .max = 20, .help = UNBUFFERED),
    OPTION_NONE(OPT_INT, "client-log-buf-size", .min = 0, .max = 20, .help = UNBUFFERED),
    OPTION_NONE(OPT_INT, "brick-log-buf-size", .min = 0, .max = 20, .help = UNBUFFERED),
    OPTION_NONE(OPT_TIME, "log-flush-timeout", .min = 30, .max = 300, .help = UNBUFFERED),
    OPTION_NONE(OPT_TIME, "client-log-flush-timeout", .min = 30, .max = 300, .help = UNBUFFERED),
    OPTION_NONE(OPT_TIME, "brick-log-flush-timeout", .min = 30, .max = 300, .help = UNBUFFERED),
    OPTION_NONE(OPT_BOOL, "global-threading", .help = NO_POOLS),
    OPTION_NONE(OPT_INT, "threads", .help = NO_POOLS),
    OPTION_NONE(OPT_INT, "brick-threads", .min = 1, .max = 128, .help = NO_POOLS),
    OPTION_NONE(OPT_INT, "client-threads", .min = 1, .max = 128, .help = NO_POOLS),
    OPTION_END,
};

const struct xlator_type xlator_debug_io_stats = {
    .name = "debug/io-stats",
    .state_size = sizeof(struct io_stats),
    .options = io_stats_options,
    .children_min = 1,
    .children_max = 1,
    .init = io_stats_init,
    .reconfigure = io_stats_reconfigure,
    .dump = io_stats_dump,
    .any = io_stats_any,
};
