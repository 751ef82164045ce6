/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One table of flags; what a flag does is a row's kind where many do alike, a case where it is
 * alone. Texts and statuses are those that scripts know. */
#include "daemon/args.h"

/* getopt has a struct option too */
#define option getopt_option
#include <argp.h>
#undef option
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/paths.h"

#ifndef MORTAR_VERSION
#define MORTAR_VERSION "0.1"
#endif

const char *argp_program_version = "glusterfs 10.3\n"
                                   "Mortar " MORTAR_VERSION ", a re-implementation that speaks "
                                   "GlusterFS 10.3\n"
                                   "License LGPL-2.1-or-later. There is no warranty.";

enum key {
    KEY_VOLFILE_ID = 256, KEY_SERVER_PORT, KEY_SERVER_TRANSPORT, KEY_FETCH_ATTEMPTS, KEY_LOGGER,
    KEY_LOG_FORMAT, KEY_LOG_BUF_SIZE, KEY_LOG_FLUSH, KEY_LOCALTIME, KEY_DEBUG, KEY_VOLUME_NAME,
    KEY_XLATOR_OPTION, KEY_READ_ONLY, KEY_ACL, KEY_SELINUX, KEY_CAPABILITY, KEY_WORM,
    KEY_MAC_COMPAT, KEY_AUX_GFID, KEY_INO32, KEY_SUBDIR, KEY_THIN_CLIENT, KEY_BRICK_NAME,
    KEY_BRICK_PORT, KEY_BRICK_MUX, KEY_PROCESS_NAME, KEY_CLIENT_PID, KEY_TIMER_WHEEL,
    KEY_GLOBAL_THREADING, KEY_IO_ENGINE, KEY_SECURE_MGMT, KEY_MEM_ACCOUNTING, KEY_OOM_SCORE,
    KEY_VOLFILE_CHECK, KEY_XLATORDIR, KEY_STATEDUMPDIR, KEY_LOGDIR, KEY_LIBEXECDIR,
    KEY_DIRECT_IO, KEY_NO_DIRECT_IO, KEY_ENTRY_TIMEOUT, KEY_ATTRIBUTE_TIMEOUT,
    KEY_NEGATIVE_TIMEOUT, KEY_GID_TIMEOUT, KEY_RESOLVE_GIDS, KEY_LRU_LIMIT, KEY_INVALIDATE_LIMIT,
    KEY_QLEN, KEY_CONGESTION, KEY_KEEP_CACHE, KEY_WRITEBACK, KEY_GRANULARITY, KEY_AUTO_INVAL,
    KEY_READDIRP, KEY_EVENT_HISTORY, KEY_READERS, KEY_NO_ROOT_SQUASH, KEY_MAP_ROOT, KEY_DUMP_FUSE,
    KEY_MOUNTOPTS, KEY_TABLE_SIZE, KEY_FLUSH_INTERRUPT, KEY_EPERM_RATELIMIT, KEY_DISPLAY_NAME,
};

#define HIDDEN OPTION_HIDDEN
#define MAYBE OPTION_ARG_OPTIONAL

static const struct argp_option argp_options[] = {
    { 0, 0, 0, 0, "Basic options:", 1 },
    { "volfile-server", 's', "SERVER", 0,
      "Fetch the volume file from the management daemon of SERVER (again: another one to try). "
      "With transport unix, a socket's path. Overrides --volfile", 0 },
    { "volfile", 'f', "VOLFILE", 0, "Read the volume file VOLFILE", 0 },
    { "spec-file", 'f', "VOLFILE", HIDDEN, 0, 0 },
    { "log-level", 'L', "LOGLEVEL", 0,
      "TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL or NONE [default: INFO]", 0 },
    { "log-file", 'l', "LOGFILE", 0,
      "Write the log to LOGFILE [default: a name made from the mount point or volume file in "
      LOG_DIR "]", 0 },
    { "logger", KEY_LOGGER, "LOGGER", 0, "gluster-log (a file) or syslog [default: gluster-log]",
      0 },
    { "log-format", KEY_LOG_FORMAT, "FORMAT", 0,
      "with-msg-id or no-msg-id [default: with-msg-id]", 0 },
    { "log-buf-size", KEY_LOG_BUF_SIZE, "LINES", 0,
      "Among how many lines repeats are looked for, 0 to 20 [default: 5]", 0 },
    { "log-flush-timeout", KEY_LOG_FLUSH, "SECONDS", 0,
      "When repeats are told at the latest, 30 to 300 [default: 120]", 0 },

    { 0, 0, 0, 0, "Advanced options:", 2 },
    { "volfile-id", KEY_VOLFILE_ID, "KEY", 0, "Which volume file to fetch from the server", 0 },
    { "volfile-server-port", KEY_SERVER_PORT, "PORT", 0, "The server's port [default: 24007]", 0 },
    { "volfile-server-transport", KEY_SERVER_TRANSPORT, "TRANSPORT", 0,
      "tcp, socket or unix [default: tcp]", 0 },
    { "volfile-max-fetch-attempts", KEY_FETCH_ATTEMPTS, "N", HIDDEN, 0, 0 },
    { "pid-file", 'p', "PIDFILE", 0, "Keep the process's number in PIDFILE, locked", 0 },
    { "socket-file", 'S', "SOCKFILE", 0,
      "Listen for the management daemon on SOCKFILE (not in this version)", 0 },
    { "localtime-logging", KEY_LOCALTIME, 0, 0, "Log local times instead of UTC", 0 },
    { "no-daemon", 'N', 0, 0, "Stay in the foreground", 0 },
    { "debug", KEY_DEBUG, 0, 0,
      "Same as --no-daemon --log-level=DEBUG --log-file=/dev/stderr", 0 },
    { "run-id", 'r', "ID", HIDDEN, 0, 0 },
    { "volume-name", KEY_VOLUME_NAME, "VOLUME", 0,
      "Use VOLUME of the volume file [default: the last one]", 0 },
    { "xlator-option", KEY_XLATOR_OPTION, "VOLUME.OPTION=VALUE", 0,
      "Set an option of the volumes that the pattern VOLUME matches", 0 },
    { "read-only", KEY_READ_ONLY, 0, 0, "Mount read-only", 0 },
    { "acl", KEY_ACL, 0, 0, "Mount with POSIX ACLs", 0 },
    { "selinux", KEY_SELINUX, 0, 0, "Mount with SELinux labels", 0 },
    { "capability", KEY_CAPABILITY, 0, 0, "Mount with file capabilities", 0 },
    { "worm", KEY_WORM, 0, 0, "Mount write-once (not in this version)", 0 },
    { "mac-compat", KEY_MAC_COMPAT, "BOOL", MAYBE, "Only off is possible [default: off]", 0 },
    { "aux-gfid-mount", KEY_AUX_GFID, 0, 0, "Access by gfid (not in this version)", 0 },
    { "enable-ino32", KEY_INO32, "BOOL", MAYBE, "Show inode numbers of 32 bits", 0 },
    { "subdir-mount", KEY_SUBDIR, "/DIRECTORY", 0,
      "Mount a directory of the volume (not in this version)", 0 },
    { "thin-client", KEY_THIN_CLIENT, 0, 0, "Mount through a proxy (not in this version)", 0 },
    { "brick-name", KEY_BRICK_NAME, "NAME", HIDDEN, 0, 0 },
    { "brick-port", KEY_BRICK_PORT, "PORT", HIDDEN, 0, 0 },
    { "brick-mux", KEY_BRICK_MUX, 0, 0, "Many bricks in one process (not in this version)", 0 },
    { "process-name", KEY_PROCESS_NAME, "NAME", HIDDEN, 0, 0 },
    { "client-pid", KEY_CLIENT_PID, "PID", HIDDEN, 0, 0 },
    { "global-timer-wheel", KEY_TIMER_WHEEL, "BOOL", MAYBE, "Accepted: there is one anyway", 0 },
    { "global-threading", KEY_GLOBAL_THREADING, "BOOL", MAYBE,
      "Accepted: threads are shared anyway", 0 },
    { "io-engine", KEY_IO_ENGINE, "ENGINE", 0, "io_uring or legacy [default: what is there]", 0 },
    { "secure-mgmt", KEY_SECURE_MGMT, "BOOL", MAYBE,
      "TLS to the management daemon (not in this version)", 0 },
    { "no-mem-accounting", KEY_MEM_ACCOUNTING, 0, HIDDEN, 0, 0 },
    { "mem-accounting", KEY_MEM_ACCOUNTING, 0, HIDDEN, 0, 0 },
    { "oom-score-adj", KEY_OOM_SCORE, "N", 0,
      "How willingly the kernel kills this process, -1000 to 1000", 0 },
    { "volfile-check", KEY_VOLFILE_CHECK, 0, 0, "Accepted: no release since 3.x looks at it", 0 },
    { "print-xlatordir", KEY_XLATORDIR, 0, 0, "Print the translators' directory", 0 },
    { "print-statedumpdir", KEY_STATEDUMPDIR, 0, 0, "Print the directory of statedumps", 0 },
    { "print-logdir", KEY_LOGDIR, 0, 0, "Print the directory of logs", 0 },
    { "print-libexecdir", KEY_LIBEXECDIR, 0, 0, "Print the directory of helper programs", 0 },
    { "print-netgroups", 'n', "FILE", 0, "Check an NFS netgroups file (not in this version)", 0 },
    { "print-exports", 'e', "FILE", 0, "Check an NFS exports file (not in this version)", 0 },

    { 0, 0, 0, 0, "Mount options:", 3 },
    { "direct-io-mode", KEY_DIRECT_IO, "BOOL|auto", MAYBE,
      "Bypass the page cache: always, never, or as open(2) asks [default: auto]", 0 },
    { "disable-direct-io-mode", KEY_NO_DIRECT_IO, 0, HIDDEN, 0, 0 },
    { "entry-timeout", KEY_ENTRY_TIMEOUT, "SECONDS", 0,
      "How long the kernel may keep names [default: 1]", 0 },
    { "attribute-timeout", KEY_ATTRIBUTE_TIMEOUT, "SECONDS", 0,
      "How long the kernel may keep attributes [default: 1]", 0 },
    { "negative-timeout", KEY_NEGATIVE_TIMEOUT, "SECONDS", 0,
      "How long the kernel may keep the absence of names [default: 0]", 0 },
    { "gid-timeout", KEY_GID_TIMEOUT, "SECONDS", 0,
      "How long the groups of processes are remembered [default: 300]", 0 },
    { "resolve-gids", KEY_RESOLVE_GIDS, 0, 0, "Find more than 32 groups of a process", 0 },
    { "lru-limit", KEY_LRU_LIMIT, "N", 0, "How many unused inodes are kept [default: 65536]", 0 },
    { "inode-table-size", KEY_TABLE_SIZE, "N", 0, "Accepted: the table grows by itself", 0 },
    { "invalidate-limit", KEY_INVALIDATE_LIMIT, "N", 0,
      "How many invalidations may be under way [default: no limit]", 0 },
    { "background-qlen", KEY_QLEN, "N", 0,
      "The kernel's queue of background requests, 16 to 65536 [default: 64]", 0 },
    { "congestion-threshold", KEY_CONGESTION, "N", 0,
      "From which length that queue counts as congested, 12 to 65536 [default: 48]", 0 },
    { "fopen-keep-cache", KEY_KEEP_CACHE, "BOOL", MAYBE,
      "Keep cached pages over open(2) [default: off]", 0 },
    { "kernel-writeback-cache", KEY_WRITEBACK, "BOOL", MAYBE,
      "Let the kernel gather writes [default: off]", 0 },
    { "attr-times-granularity", KEY_GRANULARITY, "NS", MAYBE, "Of file times, 0 to 1000000000", 0 },
    { "auto-invalidation", KEY_AUTO_INVAL, "BOOL", MAYBE,
      "Drop cached pages of a file that changed elsewhere [default: on]", 0 },
    { "use-readdirp", KEY_READDIRP, "BOOL", MAYBE,
      "Read attributes together with names [default: yes]", 0 },
    { "event-history", KEY_EVENT_HISTORY, "BOOL", MAYBE, "Accepted: no history is kept", 0 },
    { "reader-thread-count", KEY_READERS, "N", MAYBE,
      "Readers of the kernel's requests, 1 to 64 [default: 1]", 0 },
    { "no-root-squash", KEY_NO_ROOT_SQUASH, "BOOL", MAYBE,
      "Root stays root for a trusted client", 0 },
    { "user-map-root", KEY_MAP_ROOT, "USER", HIDDEN, 0, 0 },
    { "dump-fuse", KEY_DUMP_FUSE, "PATH", 0,
      "Copy the traffic with the kernel to PATH (not in this version)", 0 },
    { "fuse-mountopts", KEY_MOUNTOPTS, "OPTIONS", HIDDEN, 0, 0 },
    { "fuse-flush-handle-interrupt", KEY_FLUSH_INTERRUPT, "BOOL", MAYBE | HIDDEN, 0, 0 },
    { "fuse-dev-eperm-ratelimit-ns", KEY_EPERM_RATELIMIT, "NS", HIDDEN, 0, 0 },
    { "fs-display-name", KEY_DISPLAY_NAME, "NAME", HIDDEN, 0, 0 },
    { 0, 0, 0, 0, "Miscellaneous options:", -1 },
    { 0 },
};

/* Flags of the mount that only check a value and hand it on. */
static const struct {
    enum key key;
    const char *option;
    enum { FUSE_BOOL, FUSE_INT, FUSE_SECONDS, FUSE_TEXT } kind;
    const char *fallback;      /* without a value */
    const char *unknown;       /* text for what does not parse, with %s */
    int64_t min, max;          /* FUSE_INT, unless both 0 */
    const char *out_of_range;  /* with %s; NULL: unknown */
} fuse_flags[] = {
    { KEY_INO32, "enable-ino32", FUSE_BOOL, "on", "unknown enable-ino32 setting \"%s\"",
      0, 0, NULL },
    { KEY_KEEP_CACHE, "fopen-keep-cache", FUSE_BOOL, "on", "unknown cache setting \"%s\"",
      0, 0, NULL },
    { KEY_WRITEBACK, "kernel-writeback-cache", FUSE_BOOL, "yes",
      "unknown kernel writeback cache setting \"%s\"", 0, 0, NULL },
    { KEY_AUTO_INVAL, "auto-invalidation", FUSE_BOOL, "yes",
      "unknown auto-invalidation setting \"%s\"", 0, 0, NULL },
    { KEY_READDIRP, "use-readdirp", FUSE_BOOL, "yes", "unknown use-readdirp setting \"%s\"",
      0, 0, NULL },
    { KEY_EVENT_HISTORY, "event-history", FUSE_BOOL, "no", "unknown event-history setting \"%s\"",
      0, 0, NULL },
    { KEY_NO_ROOT_SQUASH, "no-root-squash", FUSE_BOOL, "yes",
      "unknown no-root-squash setting \"%s\"", 0, 0, NULL },
    { KEY_FLUSH_INTERRUPT, "flush-handle-interrupt", FUSE_BOOL, "yes",
      "unknown fuse flush handle interrupt setting \"%s\"", 0, 0, NULL },
    { KEY_ENTRY_TIMEOUT, "entry-timeout", FUSE_SECONDS, NULL, "unknown entry timeout %s",
      0, 0, NULL },
    { KEY_ATTRIBUTE_TIMEOUT, "attribute-timeout", FUSE_SECONDS, NULL,
      "unknown attribute timeout %s", 0, 0, NULL },
    { KEY_NEGATIVE_TIMEOUT, "negative-timeout", FUSE_SECONDS, NULL, "unknown negative timeout %s",
      0, 0, NULL },
    { KEY_GID_TIMEOUT, "gid-timeout", FUSE_INT, NULL, "unknown group list timeout %s",
      0, INT32_MAX, NULL },
    { KEY_LRU_LIMIT, "lru-limit", FUSE_INT, NULL, "unknown LRU limit option %s",
      0, INT32_MAX, NULL },
    { KEY_INVALIDATE_LIMIT, "invalidate-limit", FUSE_INT, NULL,
      "unknown invalidate limit option %s", 0, INT32_MAX, NULL },
    { KEY_QLEN, "background-qlen", FUSE_INT, NULL, "unknown background qlen option %s", 16, 65536,
      "Invalid background qlen %s. Valid range: [\"16, 65536\"]" },
    { KEY_CONGESTION, "congestion-threshold", FUSE_INT, NULL,
      "unknown congestion threshold option %s", 12, 65536,
      "Invalid congestion threshold %s. Valid range: [\"12, 65536\"]" },
    { KEY_READERS, "reader-thread-count", FUSE_INT, "1", "unknown reader thread count option %s",
      1, 64, "Invalid reader thread count %s. Valid range: [\"1, 64\"]" },
    { KEY_GRANULARITY, "attr-times-granularity", FUSE_INT, "0",
      "unknown attribute times granularity option %s", 0, 1000000000,
      "Invalid attribute times granularity value %s. Valid range: [\"0, 1000000000\"]" },
    { KEY_EPERM_RATELIMIT, "fuse-dev-eperm-ratelimit-ns", FUSE_INT, NULL,
      "Non-numerical value for 'fuse-dev-eperm-ratelimit-ns' option %s", 0, 1000000000,
      "Invalid 'fuse-dev-eperm-ratelimit-ns' value %s. Valid range: [\"0, 1000000000\"]" },
    { KEY_CLIENT_PID, "client-pid", FUSE_INT, NULL, "unknown client pid %s", INT32_MIN, INT32_MAX,
      NULL },
    { KEY_READ_ONLY, "read-only", FUSE_TEXT, "on", NULL, 0, 0, NULL },
    { KEY_SELINUX, "selinux", FUSE_TEXT, "on", NULL, 0, 0, NULL },
    { KEY_CAPABILITY, "capability", FUSE_TEXT, "on", NULL, 0, 0, NULL },
    { KEY_RESOLVE_GIDS, "resolve-gids", FUSE_TEXT, "on", NULL, 0, 0, NULL },
    { KEY_VOLFILE_CHECK, "strict-volfile-check", FUSE_TEXT, "on", NULL, 0, 0, NULL },
};

#define FAIL(state, ...) argp_failure(state, STATUS_BAD_ARGUMENT, 0, __VA_ARGS__)

static void out_of_memory(struct argp_state *state)
{
    FAIL(state, "out of memory");
    exit(STATUS_BAD_ARGUMENT);
}

static char *join(struct argp_state *state, const char *directory, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        out_of_memory(state);
    return path;
}

/* A path that still means the same after chdir(2). */
static char *absolute(struct argp_state *state, const char *path)
{
    char here[PATH_MAX];

    if (path[0] == '/' || !getcwd(here, sizeof(here)))
        return strdup(path);
    return join(state, here, path);
}

static void absolute_put(struct argp_state *state, char **to, const char *path)
{
    free(*to); /* of a flag given twice the last one counts */
    *to = absolute(state, path);
    if (!*to)
        out_of_memory(state);
}

static char *mount_point_of(struct argp_state *state, const char *word)
{
    char *path = absolute(state, word);

    for (size_t length = strlen(path); length > 1 && path[length - 1] == '/'; length--)
        path[length - 1] = '\0';
    return path;
}

static void fuse_put(struct argp_state *state, const char *option, const char *value)
{
    struct args *args = state->input;

    if (option_set_put(&args->fuse, option, value) < 0)
        out_of_memory(state);
}

static bool fuse_flag_parse(struct argp_state *state, int key, const char *value)
{
    unsigned i = 0;
    int64_t number;
    double seconds;
    bool ignored;

    while (i < ARRAY_SIZE(fuse_flags) && (int)fuse_flags[i].key != key)
        i++;
    if (i == ARRAY_SIZE(fuse_flags))
        return false;
    if (!value)
        value = fuse_flags[i].fallback;
    const char *wrong = NULL;
    switch (fuse_flags[i].kind) {
    case FUSE_BOOL:
        wrong = option_parse_bool(value, &ignored) < 0 ? fuse_flags[i].unknown : NULL;
        break;
    case FUSE_SECONDS:
        if (option_parse_double(value, &seconds) < 0 || seconds < 0)
            wrong = fuse_flags[i].unknown;
        break;
    case FUSE_INT:
        if (option_parse_int(value, &number) < 0)
            wrong = fuse_flags[i].unknown;
        else if (number < fuse_flags[i].min || number > fuse_flags[i].max)
            wrong = fuse_flags[i].out_of_range ? fuse_flags[i].out_of_range : fuse_flags[i].unknown;
        break;
    case FUSE_TEXT:
        break;
    }
    if (wrong) {
        char text[256];
        const char *at = strstr(wrong, "%s");
        snprintf(text, sizeof(text), "%.*s%.100s%s", (int)(at - wrong), wrong, value, at + 2);
        FAIL(state, "%s", text);
    }
    fuse_put(state, fuse_flags[i].option, value);
    return true;
}

/* GLOB.KEY=VALUE: the first dot and the first equals sign count. */
static void override_add(struct argp_state *state, const char *text)
{
    struct args *args = state->input;
    const char *dot = strchr(text, '.');
    const char *equals = strchr(text, '=');

    if (!dot || !equals || equals < dot || equals[1] == '\0' || dot == text || equals == dot + 1)
        FAIL(state, "invalid xlator option  %s", text);
    if (args->override_count == ARGS_OVERRIDES_MAX)
        FAIL(state, "more than %d xlator options", ARGS_OVERRIDES_MAX);
    struct graph_override *override = &args->overrides[args->override_count++];
    override->glob = strndup(text, (size_t)(dot - text));
    override->key = strndup(dot + 1, (size_t)(equals - dot - 1));
    override->value = equals + 1;
    if (!override->glob || !override->key)
        out_of_memory(state);
}

static void server_add(struct argp_state *state, const char *server)
{
    struct args *args = state->input;

    for (unsigned i = 0; i < args->server_count; i++)
        if (strcmp(args->servers[i], server) == 0)
            return;
    if (args->server_count == ARGS_SERVERS_MAX)
        FAIL(state, "more than %d volfile servers", ARGS_SERVERS_MAX);
    args->servers[args->server_count++] = server;
}

static int64_t number_parse(struct argp_state *state, const char *value, int64_t min, int64_t max,
                            const char *what)
{
    int64_t number;

    if (option_parse_int(value, &number) < 0 || number < min || number > max)
        FAIL(state, "unknown %s %s", what, value);
    return number;
}

static void log_flag_parse(struct argp_state *state, int key, const char *value)
{
    struct args *args = state->input;
    int64_t number;

    switch (key) {
    case 'L':
        if (log_level_parse(value, &args->log.level) < 0 || args->log.level == LOG_EMERG ||
            args->log.level == LOG_ALERT || args->log.level == LOG_NOTICE)
            FAIL(state, "unknown log level %s", value);
        break;
    case KEY_LOGGER:
        args->log.to_syslog = strcasecmp(value, "syslog") == 0;
        if (!args->log.to_syslog && strcasecmp(value, "gluster-log") != 0)
            FAIL(state, "unknown logger %s", value);
        break;
    case KEY_LOG_FORMAT:
        args->log.msg_id = strcasecmp(value, "with-msg-id") == 0;
        if (!args->log.msg_id && strcasecmp(value, "no-msg-id") != 0)
            FAIL(state, "unknown log format %s", value);
        break;
    case KEY_LOG_BUF_SIZE:
        if (option_parse_int(value, &number) < 0)
            FAIL(state, "unknown log buf size option %s", value);
        if (number < 0 || number > LOG_FOLD_LINES_MAX)
            FAIL(state, "Invalid log buf size %s. Valid range: [0,20]", value);
        args->log.fold_lines = (unsigned)number;
        break;
    case KEY_LOG_FLUSH:
        if (option_parse_int(value, &number) < 0)
            FAIL(state, "unknown log flush timeout option %s", value);
        if (number < 30 || number > 300)
            FAIL(state, "Invalid log flush timeout %s. Valid range: [30,300]", value);
        args->log.fold_s = (unsigned)number;
        break;
    }
}

/* Flags that ask for what is not there. */
static void refuse(struct argp_state *state, int key, const char *value)
{
    bool is_on = true;

    switch (key) {
    case 'S':
        FAIL(state, "--socket-file: no management daemon can be served in this version");
        break;
    case 'n':
    case 'e':
        FAIL(state, "NFS is not in this version: %s cannot be checked", value);
        break;
    case KEY_WORM:
        FAIL(state, "--worm: files cannot be made write-once in this version");
        break;
    case KEY_MAC_COMPAT:
        if (value && strcmp(value, "auto") != 0 && option_parse_bool(value, &is_on) < 0)
            FAIL(state, "invalid value \"%s\" for mac-compat", value);
        if (is_on)
            FAIL(state, "--mac-compat: there is no such translator any more");
        break;
    case KEY_AUX_GFID:
        FAIL(state, "--aux-gfid-mount: access by gfid is not in this version");
        break;
    case KEY_SUBDIR:
        if (value[0] != '/')
            FAIL(state, "expect '/%s', provided just \"%s\"", value, value);
        FAIL(state, "--subdir-mount: only whole volumes can be mounted in this version");
        break;
    case KEY_THIN_CLIENT:
        FAIL(state, "--thin-client: there is no proxy in this version");
        break;
    case KEY_BRICK_MUX:
        FAIL(state, "--brick-mux: every brick has a process of its own in this version");
        break;
    case KEY_SECURE_MGMT:
        if (value && option_parse_bool(value, &is_on) < 0)
            FAIL(state, "unknown secure-mgmt setting \"%s\"", value);
        if (is_on)
            FAIL(state, "--secure-mgmt: TLS is not in this version");
        break;
    default:
        FAIL(state, "a flag without a meaning");
    }
}

static void print(int key)
{
    puts(key == KEY_XLATORDIR      ? XLATOR_DIR
         : key == KEY_STATEDUMPDIR ? STATEDUMP_DIR
         : key == KEY_LOGDIR       ? LOG_DIR
                                   : LIBEXEC_DIR);
    exit(0);
}

static void bool_check(struct argp_state *state, const char *value, const char *text)
{
    bool ignored;

    if (value && option_parse_bool(value, &ignored) < 0)
        FAIL(state, "%s \"%s\"", text, value);
}

static uint16_t brick_port_parse(struct argp_state *state, const char *value)
{
    char first[16];
    int64_t port;
    size_t length = strcspn(value, ",");

    snprintf(first, sizeof(first), "%.*s", (int)MIN(length, sizeof(first) - 1), value);
    if (option_parse_int(first, &port) < 0 || port < 1 || port > UINT16_MAX)
        FAIL(state, "unknown brick (listen) port %s", value);
    return (uint16_t)port;
}

static void process_flag_parse(struct argp_state *state, int key, const char *value)
{
    struct args *args = state->input;

    switch (key) {
    case KEY_BRICK_PORT: /* the first of N[,M] */
        args->brick_port = brick_port_parse(state, value);
        break;
    case KEY_OOM_SCORE:
        args->oom_score = (int)number_parse(state, value, -1000, 1000, "oom_score_adj value");
        args->has_oom_score = true;
        break;
    case KEY_TIMER_WHEEL:
        bool_check(state, value, "unknown global-timer-wheel setting");
        break;
    case KEY_GLOBAL_THREADING:
        bool_check(state, value, "Invalid value for global threading");
        args->global_threading = true;
        break;
    case KEY_IO_ENGINE:
        if (strcmp(value, "io_uring") == 0)
            args->env = "uring";
        else if (strcmp(value, "legacy") == 0)
            args->env = "plain";
        else
            FAIL(state, "unknown I/O engine %s", value);
        break;
    case KEY_DEBUG:
        args->debug = true;
        break;
    }
}

static void mount_flag_parse(struct argp_state *state, int key, const char *value)
{
    struct args *args = state->input;
    struct passwd *user;
    char number[16];
    int64_t size;
    bool ignored;

    switch (key) {
    case KEY_DIRECT_IO:
        if (value && strcmp(value, "auto") != 0 && option_parse_bool(value, &ignored) < 0)
            FAIL(state, "unknown direct I/O mode setting \"%s\"", value);
        if (!value || strcmp(value, "auto") != 0)
            fuse_put(state, "direct-io-mode", value ? value : "on");
        break;
    case KEY_NO_DIRECT_IO:
        fuse_put(state, "direct-io-mode", "off");
        break;
    case KEY_ACL:
        args->acl = true;
        fuse_put(state, "acl", "on");
        break;
    case KEY_MAP_ROOT:
        user = getpwnam(value);
        if (!user) {
            FAIL(state, "user %s does not exist", value);
            return;
        }
        snprintf(number, sizeof(number), "%u", (unsigned)user->pw_uid);
        fuse_put(state, "uid-map-root", number);
        break;
    case KEY_DUMP_FUSE:
        FAIL(state, "--dump-fuse is not in this version: debug/trace in the volfile shows the "
                    "operations");
        return;
    case KEY_MOUNTOPTS:
        fuse_put(state, "fuse-mountopts", value);
        break;
    case KEY_TABLE_SIZE:
        if (option_parse_int(value, &size) < 0 || size < 1 || (size & (size - 1)) != 0)
            FAIL(state, "unknown inode table size %s: a power of two", value);
        break;
    case KEY_DISPLAY_NAME:
        args->source = value;
        break;
    }
}

static const char *transport_parse(struct argp_state *state, const char *value)
{
    if (strcmp(value, "tcp") != 0 && strcmp(value, "socket") != 0 && strcmp(value, "unix") != 0)
        FAIL(state, "--volfile-server-transport=%s: tcp, socket or unix", value);
    return value;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    struct args *args = state->input;

    if (fuse_flag_parse(state, key, value))
        return 0;
    switch (key) {
    case 's':
        server_add(state, value);
        return 0;
    case 'f':
        absolute_put(state, &args->volfile, value);
        return 0;
    case 'l':
        absolute_put(state, &args->log_path, value);
        return 0;
    case 'p':
        absolute_put(state, &args->pid_file, value);
        return 0;
    case 'N':
        args->no_daemon = true;
        return 0;
    case 'r': /* once split the log by run */
    case KEY_MEM_ACCOUNTING:
        return 0;
    case 'L':
    case KEY_LOGGER:
    case KEY_LOG_FORMAT:
    case KEY_LOG_BUF_SIZE:
    case KEY_LOG_FLUSH:
        log_flag_parse(state, key, value);
        return 0;
    case KEY_LOCALTIME:
        args->log.local_time = true;
        return 0;
    case KEY_VOLFILE_ID:
        args->volfile_id = value;
        return 0;
    case KEY_SERVER_PORT:
        args->server_port = (uint16_t)number_parse(state, value, 1, 65535, "volfile server port");
        return 0;
    case KEY_SERVER_TRANSPORT:
        args->transport = transport_parse(state, value);
        return 0;
    case KEY_FETCH_ATTEMPTS:
        args->obsolete_fetch_attempts = true;
        return 0;
    case KEY_VOLUME_NAME:
        args->volume_name = value;
        return 0;
    case KEY_XLATOR_OPTION:
        override_add(state, value);
        return 0;
    case KEY_BRICK_NAME:
        args->brick_name = value;
        return 0;
    case KEY_PROCESS_NAME:
        args->process_name = value;
        return 0;
    case KEY_XLATORDIR:
    case KEY_STATEDUMPDIR:
    case KEY_LOGDIR:
    case KEY_LIBEXECDIR:
        print(key);
        return 0;
    case KEY_BRICK_PORT:
    case KEY_OOM_SCORE:
    case KEY_TIMER_WHEEL:
    case KEY_GLOBAL_THREADING:
    case KEY_IO_ENGINE:
    case KEY_DEBUG:
        process_flag_parse(state, key, value);
        return 0;
    case KEY_DIRECT_IO:
    case KEY_NO_DIRECT_IO:
    case KEY_ACL:
    case KEY_MAP_ROOT:
    case KEY_DUMP_FUSE:
    case KEY_MOUNTOPTS:
    case KEY_TABLE_SIZE:
    case KEY_DISPLAY_NAME:
        mount_flag_parse(state, key, value);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= 1 || value[0] == '\0') /* "": not what stands for "here" */
            argp_usage(state);
        args->mount_word = value;
        args->mount_point = mount_point_of(state, value);
        return 0;
    default:
        if (key < 256 && key != 'S' && key != 'n' && key != 'e')
            return ARGP_ERR_UNKNOWN;
        if (key > KEY_DISPLAY_NAME) /* argp's own */
            return ARGP_ERR_UNKNOWN;
        refuse(state, key, value);
        return 0;
    }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .args_doc = "--volfile-server=SERVER [MOUNT-POINT]\n--volfile=VOLFILE [MOUNT-POINT]",
    .doc = "Serves the volumes of a volume file, or mounts them on MOUNT-POINT.",
};

/* --- what was not said ------------------------------------------------------------------------ */

static char *line_join(int argc, char **argv)
{
    char *line = NULL;
    size_t bytes;
    FILE *out = open_memstream(&line, &bytes);

    for (int i = 0; out && i < argc; i++)
        fprintf(out, "%s%s", i ? " " : "", argv[i]);
    if (!out || fclose(out) != 0)
        return NULL;
    return line;
}

static enum program program_of(const char *name)
{
    if (strncmp(name, "glusterfsd", 10) == 0)
        return PROGRAM_SERVER;
    return strncmp(name, "glusterd", 8) == 0 ? PROGRAM_MANAGER : PROGRAM_CLIENT;
}

static void usage_die(const struct args *args)
{
    fprintf(stderr, "USAGE: %s [options] [mountpoint]\n", args->name);
    exit(STATUS_BAD_ARGUMENT);
}

static void volfile_default(struct args *args)
{
    struct stat ignored;

    if (args->server_count > 0) {
        free(args->volfile);
        args->volfile = NULL;
        if (!args->volfile_id) {
            fprintf(stderr, "%s: a volume file's server needs a --volfile-id\n", args->name);
            usage_die(args);
        }
        return;
    }
    if (args->volfile)
        return;
    args->volfile = strdup(args->program == PROGRAM_SERVER ? CONFIG_DIR "/glusterfsd.vol"
                                                           : CONFIG_DIR "/glusterfs.vol");
    if (!args->volfile || stat(args->volfile, &ignored) < 0)
        usage_die(args);
}

/* LOG_DIR/<path with / as ->.log */
static char *log_path_of(const char *path)
{
    char *text = NULL;

    if (asprintf(&text, LOG_DIR "/%s.log", path + (path[0] == '/')) < 0)
        return NULL;
    for (char *c = text + strlen(LOG_DIR "/"); *c; c++)
        if (*c == '/')
            *c = '-';
    return text;
}

static void log_default(struct args *args, const char *mount_word)
{
    char *text = NULL;

    if (args->debug) {
        args->no_daemon = true;
        args->log.level = LOG_DEBUG;
        args->log.path = "/dev/stderr";
        return;
    }
    args->log.path = args->log_path;
    if (args->log_path)
        return;
    if (mount_word)
        text = log_path_of(mount_word);
    else if (args->volfile)
        text = log_path_of(args->volfile);
    else if (asprintf(&text, LOG_DIR "/%s-%s-%d.log", args->servers[0], args->volfile_id,
                      (int)getpid()) < 0)
        text = NULL;
    args->log.path = args->log_path = text;
}

void args_parse(struct args *ret_args, int argc, char **argv)
{
    struct args *args = ret_args;

    *args = (struct args){
        .name = basename(argv[0]),
        .command_line = line_join(argc, argv),
        .server_port = VOLFILE_SERVER_PORT,
        .log = { .level = LOG_INFO, .msg_id = true, .fold_lines = 5, .fold_s = 120 },
    };
    args->program = program_of(args->name);
    if (argp_parse(&argp, argc, argv, 0, NULL, args) != 0)
        exit(STATUS_BAD_ARGUMENT);
    if (args->program == PROGRAM_MANAGER) {
        fprintf(stderr, "%s: the management daemon is not in this version\n", args->name);
        exit(STATUS_BAD_ARGUMENT);
    }
    volfile_default(args);
    log_default(args, args->mount_word);
}
