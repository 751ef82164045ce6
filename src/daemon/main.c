/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* glusterfsd and glusterfs: one program, acting by the name it is called by (spec/volfile.md 9).
 *
 *     command line -> log -> background -> pid file -> env -> lanes: the service -> status */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/env.h"
#include "daemon/args.h"
#include "daemon/process.h"
#include "daemon/service.h"

static void directories_make(const char *path)
{
    char *copy = strdup(path);

    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
            break;
        *slash = '/';
    }
    free(copy);
}

static void log_begin(const struct args *args)
{
    int ret = log_open(&args->log);

    if (ret == -ENOENT && args->log.path) {
        directories_make(args->log.path);
        ret = log_open(&args->log);
    }
    if (ret < 0) {
        fprintf(stderr, "%s: failed to open logfile \"%s\" (%s)\n", args->name, args->log.path,
                strerror(-ret));
        exit(1);
    }
    if (!args->log.path || strcmp(args->log.path, "/dev/stderr") != 0)
        log_to_stderr(LOG_ERROR); /* until the service is ready */
    LOG_(LOG_INFO, args->name, 100030, 0,
         "Started running version [{arg=%s}, {version=10.3}, {cmdlinestr=%s}] ", args->name,
         args->command_line);
    if (args->obsolete_fetch_attempts)
        log_warn(args->name, 0, "--volfile-max-fetch-attempts is obsolete: every server is asked");
    if (args->global_threading)
        log_info(args->name, 0, "--global-threading: all translators share one pool anyway");
}

static void pid_file_begin(const struct args *args)
{
    int ret = args->pid_file ? process_pid_file(args->pid_file) : 0;
    if (ret == 0)
        return;

    if (ret == -EAGAIN)
        log_error(args->name, 0, "pidfile %s lock failed: another process holds it",
                  args->pid_file);
    else
        log_error(args->name, ret, "pidfile %s cannot be written", args->pid_file);
    exit(args->no_daemon ? STATUS_BAD_ARGUMENT : 1);
}

int main(int argc, char **argv)
{
    static struct args args;

    args_parse(&args, argc, argv);
    log_begin(&args);
    process_prepare(&args);
    if (!args.no_daemon)
        process_daemonize();
    log_info(args.name, 0, "Pid of current running process is %d", (int)getpid());
    pid_file_begin(&args);

    static struct service service = { .args = &args };
    int ret = env_init(args.env, 0);
    if (ret == 0) {
        service.signal_fd = env_signal_open(service_signals, service_signal_count);
        ret = service.signal_fd < 0 ? service.signal_fd : lanes_run(service_main, &service);
    }
    if (ret < 0) {
        log_error(args.name, ret, "the run time cannot start (MORTAR_ENV, --io-engine: %s)",
                  args.env ? args.env : "");
        service.status = 1;
    }
    process_pid_file_remove();
    log_close();
    return service.status;
}
