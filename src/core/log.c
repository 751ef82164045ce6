/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One mutex, held while a line is made in a static buffer (fiber stacks are small) and written with
 * one write(2) to a descriptor in append mode. What cannot be written is counted and dropped: a
 * full disk must not stop a file system. It is the innermost lock. */
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/env.h"

/* syslog.h is not included: its priorities are macros with our levels' names. */
extern void openlog(const char *ident, int option, int facility);
extern void syslog(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum { SYSLOG_PID = 1, SYSLOG_DAEMON = 3 << 3 };

enum {
    FOLD_BODY_BYTES = 1024,
    FOLD_GAP_S = 5, /* a line that comes again later than this is news */
    STAMP_BYTES = 64,
    LINE_BYTES = LOG_TEXT_BYTES_MAX + 512,
};

/* A line seen lately, and how often it came again. */
struct fold {
    char body[FOLD_BODY_BYTES]; /* the line without its time; "" unused */
    struct timespec first, last;
    unsigned repeats;
};

static struct {
    pthread_mutex_t mutex;
    struct log_config config;
    char path[4096];
    int fd; /* -1: not open, lines go to stderr */
    enum log_level level, stderr_level;
    bool line_is_cut; /* the disk was full in the middle of a line */
    uint64_t lost;
    struct fold folds[LOG_FOLD_LINES_MAX];
    unsigned next_fold;
} the = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .fd = -1,
    .level = LOG_INFO,
    .config.msg_id = true,
};

static const struct {
    const char *name;
    char letter;
} levels[] = {
    [LOG_NONE] = { "NONE", ' ' },       [LOG_EMERG] = { "EMERG", 'M' },
    [LOG_ALERT] = { "ALERT", 'A' },     [LOG_CRITICAL] = { "CRITICAL", 'C' },
    [LOG_ERROR] = { "ERROR", 'E' },     [LOG_WARNING] = { "WARNING", 'W' },
    [LOG_NOTICE] = { "NOTICE", 'N' },   [LOG_INFO] = { "INFO", 'I' },
    [LOG_DEBUG] = { "DEBUG", 'D' },     [LOG_TRACE] = { "TRACE", 'T' },
};

int log_level_parse(const char *text, enum log_level *ret_level)
{
    if (strcasecmp(text, "NORMAL") == 0) /* the default of 2009 */
        text = "INFO";
    for (unsigned i = 0; i < ARRAY_SIZE(levels); i++)
        if (strcasecmp(text, levels[i].name) == 0) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
    return (unsigned)level < ARRAY_SIZE(levels) ? levels[level].name : "?";
}

void log_set_level(enum log_level level)
{
    __atomic_store_n(&the.level, level, __ATOMIC_RELAXED);
}

enum log_level log_get_level(void)
{
    return __atomic_load_n(&the.level, __ATOMIC_RELAXED);
}

const char *log_get_path(void)
{
    return the.path;
}

void log_to_stderr(enum log_level level)
{
    __atomic_store_n(&the.stderr_level, level, __ATOMIC_RELAXED);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* "[YYYY-MM-DD hh:mm:ss.uuuuuu +0000]" */
static void stamp_format(const struct timespec *when, char text[STAMP_BYTES])
{
    struct tm tm;
    char date[24], zone[8] = "+0000";

    if (the.config.local_time && localtime_r(&when->tv_sec, &tm))
        strftime(zone, sizeof(zone), "%z", &tm);
    else
        gmtime_r(&when->tv_sec, &tm);
    strftime(date, sizeof(date), "%F %T", &tm);
    snprintf(text, STAMP_BYTES, "[%s.%06ld %s]", date, when->tv_nsec / 1000, zone);
}

static void write_all_or_lose(const char *text, size_t bytes)
{
    ssize_t done;

    do
        done = write(the.fd >= 0 ? the.fd : STDERR_FILENO, text, bytes);
    while (done < 0 && errno == EINTR);
    if (done == (ssize_t)bytes)
        return;
    the.lost++;
    if (done > 0)
        the.line_is_cut = true;
}

static void tell_lost_locked(void)
{
    char text[128];
    int bytes = snprintf(text, sizeof(text),
                         "%s(%llu lines could not be written before this one)\n",
                         the.line_is_cut ? "\n" : "", (unsigned long long)the.lost);

    the.lost = 0;
    the.line_is_cut = false;
    write_all_or_lose(text, (size_t)bytes);
}

static void write_locked(const char *text, size_t bytes)
{
    uint64_t lost = the.lost;

    if (lost > 0)
        tell_lost_locked();
    if (the.lost > 0) { /* still full: keep the true count */
        the.lost += lost;
        return;
    }
    write_all_or_lose(text, bytes);
}

/* --- repeats ---------------------------------------------------------------------------------- */

static void fold_end_locked(struct fold *fold)
{
    char first[STAMP_BYTES], last[STAMP_BYTES], text[FOLD_BODY_BYTES + 2 * STAMP_BYTES + 80];

    if (fold->repeats > 0) {
        stamp_format(&fold->first, first);
        stamp_format(&fold->last, last);
        int bytes = snprintf(text, sizeof(text),
                             "The message \"%s\" repeated %u times between %s and %s\n",
                             fold->body, fold->repeats, first, last);
        write_locked(text, (size_t)bytes);
    }
    fold->body[0] = '\0';
    fold->repeats = 0;
}

static void folds_end_locked(const struct timespec *now, bool all)
{
    for (unsigned i = 0; i < ARRAY_SIZE(the.folds); i++) {
        struct fold *fold = &the.folds[i];
        bool is_due = now && fold->repeats > 0 &&
                      now->tv_sec - fold->first.tv_sec >= (time_t)the.config.fold_s;
        if (all || is_due)
            fold_end_locked(fold);
    }
}

static struct fold *fold_find_locked(const char *body)
{
    for (unsigned i = 0; i < the.config.fold_lines; i++)
        if (strcmp(the.folds[i].body, body) == 0)
            return &the.folds[i];
    return NULL;
}

/* true: the line was a repeat and has been counted. */
static bool fold_locked(const char *body, size_t bytes, const struct timespec *now)
{
    if (the.config.fold_lines == 0 || bytes >= FOLD_BODY_BYTES || the.fd < 0)
        return false;

    struct fold *fold = fold_find_locked(body);
    if (fold && now->tv_sec - fold->last.tv_sec <= FOLD_GAP_S) {
        if (fold->repeats++ == 0)
            fold->first = *now;
        fold->last = *now;
        return true;
    }
    if (!fold) {
        fold = &the.folds[the.next_fold];
        the.next_fold = (the.next_fold + 1) % the.config.fold_lines;
    }
    fold_end_locked(fold);
    memcpy(fold->body, body, bytes + 1);
    fold->last = *now;
    return false;
}

void log_flush(bool all)
{
    struct timespec now = env_wallclock();
    HOLD(&the.mutex);

    folds_end_locked(&now, all);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Text of a stranger may hold anything; a line of the log stays one line. */
static void tame(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' && *text != '\t')
            *text = *text == '\n' ? ' ' : '?';
}

static size_t text_format(char *text, size_t size, int ret, const char *format, va_list args)
{
    int bytes = vsnprintf(text, size, format, args);
    size_t used = bytes < 0 ? 0 : MIN((size_t)bytes, size - 1);

    if (ret < 0) {
        char room[96];
        bytes = snprintf(text + used, size - used, " [{errno=%d}, {error=%s}]", -ret,
                         strerror_r(-ret, room, sizeof(room)));
        used += MIN((size_t)bytes, size - used - 1);
    }
    tame(text);
    return used;
}

static void line_out_locked(enum log_level level, const char *body, size_t body_bytes)
{
    static char line[LINE_BYTES + STAMP_BYTES + 2];
    struct timespec now = env_wallclock();
    char stamp[STAMP_BYTES];

    folds_end_locked(&now, false);
    if (the.config.to_syslog) {
        int priority = level <= LOG_DEBUG ? (int)level - 1 : 7;
        syslog(priority, "%s", body);
        return;
    }
    if (level < LOG_DEBUG && fold_locked(body, body_bytes, &now))
        return;
    stamp_format(&now, stamp);
    int bytes = snprintf(line, sizeof(line), "%s %s\n", stamp, body);
    write_locked(line, MIN((size_t)bytes, sizeof(line) - 1));
}

static void copy_to_stderr_locked(const struct log_source *source, const char *text)
{
    static char latest[256];
    char head[128];
    int bytes = snprintf(head, sizeof(head), "%.40s: %.60s%s", program_invocation_short_name,
                         source ? source->name : "", source ? ": " : "");
    struct iovec iov[] = {
        { head, (size_t)bytes },
        { (void *)(uintptr_t)text, strlen(text) },
        { "\n", 1 },
    };

    if (strncmp(latest, text, sizeof(latest) - 1) == 0) /* a second time says nothing new */
        return;
    snprintf(latest, sizeof(latest), "%.*s", (int)sizeof(latest) - 1, text);
    if (writev(STDERR_FILENO, iov, ARRAY_SIZE(iov)) < 0)
        the.stderr_level = LOG_NONE; /* nobody listens */
}

static bool is_wanted(enum log_level level, const struct log_source *source)
{
    enum log_level limit = source && source->level != LOG_NONE
                               ? __atomic_load_n(&source->level, __ATOMIC_RELAXED)
                               : log_get_level();

    return level <= limit;
}

void log_write(enum log_level level, const char *name, const struct log_source *source, int msg_id,
               int ret, const char *file, int line, const char *function, const char *format, ...)
{
    bool to_stderr = level <= __atomic_load_n(&the.stderr_level, __ATOMIC_RELAXED);
    if (!is_wanted(level, source) && !to_stderr)
        return;

    static char text[LOG_TEXT_BYTES_MAX], body[LINE_BYTES];
    char id[32] = "";
    HOLD(&the.mutex);
    va_list args;
    va_start(args, format);
    text_format(text, sizeof(text), ret, format, args);
    va_end(args);

    if (msg_id > 0 && the.config.msg_id)
        snprintf(id, sizeof(id), "[MSGID: %d] ", msg_id);
    int bytes = snprintf(body, sizeof(body), "%c %s[%s:%d:%s] %d-%s: %s", levels[level].letter, id,
                         file, line, function, source ? source->graph_id : 0,
                         source ? source->name : name ? name : "", text);
    if (is_wanted(level, source))
        line_out_locked(level, body, MIN((size_t)bytes, sizeof(body) - 1));
    if (to_stderr && the.fd >= 0)
        copy_to_stderr_locked(source, text);
}

void log_raw(const char *text)
{
    HOLD(&the.mutex);

    folds_end_locked(NULL, true);
    if (!the.config.to_syslog)
        write_locked(text, strlen(text));
}

/* --- the file --------------------------------------------------------------------------------- */

static int file_open(const char *path)
{
    /* O_NONBLOCK is for pipes: a reader that sleeps must not stop us. */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

    if (fd < 0 && strcmp(path, "/dev/stderr") == 0) /* a socket cannot be opened */
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    else if (fd < 0 && strcmp(path, "/dev/stdout") == 0)
        fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

static void file_replace_locked(int fd)
{
    int old = the.fd;

    the.fd = fd;
    if (old >= 0)
        close(old);
}

int log_open(const struct log_config *config)
{
    int fd = -1;

    if (config->path && strlen(config->path) >= sizeof(the.path))
        return -ENAMETOOLONG;
    if (config->path && !config->to_syslog) {
        fd = file_open(config->path);
        if (fd < 0)
            return fd;
    }

    HOLD(&the.mutex);
    file_replace_locked(fd);
    the.config = *config;
    the.config.fold_lines = MIN(config->fold_lines, LOG_FOLD_LINES_MAX);
    snprintf(the.path, sizeof(the.path), "%s", config->path ? config->path : "");
    the.config.path = the.path;
    the.next_fold = 0;
    log_set_level(config->level);
    if (config->to_syslog)
        openlog(NULL, SYSLOG_PID, SYSLOG_DAEMON);
    return 0;
}

int log_reopen(void)
{
    HOLD(&the.mutex);

    if (the.fd < 0)
        return 0;
    folds_end_locked(NULL, true);
    int fd = file_open(the.path);
    if (fd < 0)
        return fd;
    file_replace_locked(fd);
    return 0;
}

void log_close(void)
{
    HOLD(&the.mutex);

    if (the.fd < 0)
        return;
    folds_end_locked(NULL, true);
    file_replace_locked(-1);
}
