/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/trace: one log line when an operation enters, one when it returns.
 * Promises: operations pass unchanged. A line names operation, caller, gfid, name and, coming back,
 *           the result and the time that it took. Lines go to the log with log-file on; the last
 *           256 are kept for dumps with log-history on.
 * Keeps:    that history.
 * Locks:    `mutex` over the history. */
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "graph/fop_call.h"
#include "graph/oplist.h"

enum { HISTORY_LINES = 256, LINE_BYTES = 256 };

struct trace {
    char *include, *exclude;
    bool to_log, to_history;
    struct oplist ops;
    pthread_mutex_t mutex;
    char (*history)[LINE_BYTES];
    uint64_t lines;
};

static int trace_ops(struct xlator *xl)
{
    struct trace *trace = xl->state;
    struct oplist without;
    int ret = oplist_parse(xl, trace->include, &trace->ops);

    if (ret < 0 || !trace->exclude || !trace->exclude[strspn(trace->exclude, ", ")])
        return ret; /* nothing named is nothing left out */
    ret = oplist_parse(xl, trace->exclude, &without);
    for (enum fop op = 0; op < FOP_COUNT && ret == 0; op++)
        if (without.has[op])
            trace->ops.has[op] = false;
    return ret;
}

static int trace_init(struct xlator *xl)
{
    struct trace *trace = xl->state;
    pthread_mutex_init(&trace->mutex, NULL);
    return trace_ops(xl);
}

static void trace_fini(struct xlator *xl)
{
    struct trace *trace = xl->state;
    free(trace->history);
    pthread_mutex_destroy(&trace->mutex);
}

static int trace_reconfigure(struct xlator *xl, const struct option_set *set)
{
    (void)set;
    return trace_ops(xl);
}

static void keep_line(struct trace *trace, const char *line)
{
    HOLD(&trace->mutex);
    if (!trace->history)
        trace->history = calloc(HISTORY_LINES, sizeof(*trace->history));
    if (trace->history)
        strncpy(trace->history[trace->lines++ % HISTORY_LINES], line, LINE_BYTES - 1);
}

static void trace_line(struct xlator *xl, const char *line)
{
    struct trace *trace = xl->state;
    if (trace->to_log)
        log_info(xl, 0, "%s", line);
    if (trace->to_history)
        keep_line(trace, line);
}

static void line_of(char line[LINE_BYTES], struct call *call, enum fop op, const void *args)
{
    const struct inode *inode = fop_subject(op, args);
    const char *name = fop_subject_name(op, args);
    char gfid[UUID_TEXT_SIZE] = "-";

    if (inode)
        gfid_format(&inode->gfid, gfid);
    snprintf(line, LINE_BYTES, "%s gfid=%s name=%.64s pid=%d uid=%u", fop_info[op].title, gfid,
             name ? name : "", call->pid, call->uid);
}

static int trace_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                     void *reply)
{
    struct trace *trace = xl->state;
    char line[LINE_BYTES];

    if (!oplist_has(&trace->ops, op) || !(trace->to_log || trace->to_history))
        return fop_call(first_child(xl), call, op, args, reply);
    line_of(line, call, op, args);
    trace_line(xl, line);
    uint64_t start_ns = env_now_ns();
    int ret = fop_call(first_child(xl), call, op, args, reply);
    snprintf(line, sizeof(line), "%s pid=%d -> %d%s%s in %lu us", fop_info[op].title, call->pid,
             ret, ret < 0 ? " " : "", ret < 0 ? strerrorname_np(-ret) : "",
             (unsigned long)((env_now_ns() - start_ns) / NS_PER_US));
    trace_line(xl, line);
    return ret;
}

static void trace_dump(struct xlator *xl, struct dump *dump)
{
    struct trace *trace = xl->state;

    HOLD(&trace->mutex);
    uint64_t first = trace->lines > HISTORY_LINES ? trace->lines - HISTORY_LINES : 0;
    for (uint64_t i = first; i < trace->lines; i++)
        dump_value(dump, "history", "%s", trace->history[i % HISTORY_LINES]);
}

static const struct option trace_options[] = {
    OPTION_STR(struct trace, include, "include-ops", .aliases = { "include" }, .flags = OPTION_LIVE,
               .help = "Comma-separated operations; unset: all."),
    OPTION_STR(struct trace, exclude, "exclude-ops", .aliases = { "exclude" }, .flags = OPTION_LIVE,
               .help = "Operations to leave out."),
    OPTION_NONE(OPT_SIZE, "history-size", .help = "The last 256 lines are kept."),
    OPTION_BOOL(struct trace, to_log, "log-file", .fallback = "no", .flags = OPTION_LIVE,
                .help = "Write lines to the log."),
    OPTION_BOOL(struct trace, to_history, "log-history", .fallback = "no", .flags = OPTION_LIVE,
                .help = "Keep lines for statedumps."),
    OPTION_END,
};

const struct xlator_type xlator_debug_trace = {
    .name = "debug/trace",
    .state_size = sizeof(struct trace),
    .options = trace_options,
    .children_min = 1,
    .children_max = 1,
    .init = trace_init,
    .fini = trace_fini,
    .reconfigure = trace_reconfigure,
    .dump = trace_dump,
    .any = trace_any,
};
