/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The log: one line an event, in the format of spec/cli.md section 19.
 *
 *     log_warn(xl, ret, "cannot mark gfid %s on %s", gfid, brick);
 *     log_info("glusterfsd", 0, "serving %s", directory);
 *
 * The first argument is whatever starts with a struct log_source (a translator), or a name.
 *
 * A negative ret adds the errno's text. Whoever decides what a failure means logs it, once. */
#pragma once

#include <stdbool.h>

#include "core/auto.h"

enum log_level { /* the numbers that .meta shows */
    LOG_NONE = 0,
    LOG_EMERG,
    LOG_ALERT,
    LOG_CRITICAL,
    LOG_ERROR,
    LOG_WARNING,
    LOG_NOTICE,
    LOG_INFO,
    LOG_DEBUG,
    LOG_TRACE,
};

/* First member of whatever logs under a name of its own (a translator). */
struct log_source {
    const char *name;    /* shown as "<graph>-<name>" */
    int graph_id;
    enum log_level level; /* LOG_NONE: the process's level */
};

struct log_config {
    const char *path;     /* file; "/dev/stdout", "/dev/stderr" work */
    enum log_level level;
    bool msg_id;          /* show [MSGID: n] where a line has one */
    bool local_time;
    bool to_syslog;
    unsigned fold_lines; /* repeats of any of the latest lines are counted, not written; 0: never */
    unsigned fold_s;     /* the count is written after this many seconds at the latest */
};

enum { LOG_TEXT_BYTES_MAX = 4096, LOG_FOLD_LINES_MAX = 20 };

/* Opens the log (mode 0600, appended). Before it, lines go to stderr. -errno of the open. */
must_check int log_open(const struct log_config *config);
/* Opens the same path anew (after a rotation). */
must_check int log_reopen(void);
void log_close(void);
void log_set_level(enum log_level level) nowait;
enum log_level log_get_level(void) nowait;
const char *log_get_path(void) nowait;
/* "INFO", "warning", the old "NORMAL" (= INFO)...; -EINVAL. */
must_check int log_level_parse(const char *text, enum log_level *ret_level) nowait;
const char *log_level_name(enum log_level level) nowait;

/* Writes the counts of repeats that are due (or all of them). Somebody calls it now and then. */
void log_flush(bool all) nowait;
/* Text of several lines without any prefix, in one write (the graph in use, for instance). */
void log_raw(const char *text) nowait;

/* Also copy lines of at least this level to stderr, until told LOG_NONE (a daemon's start). */
void log_to_stderr(enum log_level level) nowait;

void log_write(enum log_level level, const char *name, const struct log_source *source, int msg_id,
               int ret, const char *file, int line, const char *function, const char *format, ...)
    printf_like(9, 10) nowait;

#define LOG_IS_NAME_(who) _Generic((who), char * : true, const char * : true, default : false)
#define LOG_NAME_(who)                                                                             \
    _Generic((who), char * : (const char *)(who), const char * : (const char *)(who),              \
             default : NULL)
#define LOG_(level, who, msg_id, ret, ...)                                                         \
    log_write(level, LOG_NAME_(who),                                                               \
              LOG_IS_NAME_(who) ? NULL : (const struct log_source *)(const void *)(who), msg_id,   \
              ret, __FILE_NAME__, __LINE__, __func__, __VA_ARGS__)
#ifndef __FILE_NAME__
#define __FILE_NAME__ (__builtin_strrchr("/" __FILE__, '/') + 1)
#endif

#define log_critical(who, ret, ...) LOG_(LOG_CRITICAL, who, 0, ret, __VA_ARGS__)
#define log_error(who, ret, ...) LOG_(LOG_ERROR, who, 0, ret, __VA_ARGS__)
#define log_warn(who, ret, ...) LOG_(LOG_WARNING, who, 0, ret, __VA_ARGS__)
#define log_info(who, ret, ...) LOG_(LOG_INFO, who, 0, ret, __VA_ARGS__)
#define log_debug(who, ret, ...) LOG_(LOG_DEBUG, who, 0, ret, __VA_ARGS__)
#define log_trace(who, ret, ...) LOG_(LOG_TRACE, who, 0, ret, __VA_ARGS__)
