/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/env.h"

enum { FILES_WANTED = 1048576, FILES_NEEDED = 65536 };

static int report_fd = -1;
static char *pid_path;

static void files_limit_raise(void)
{
    static const rlim_t wanted[] = { FILES_WANTED, FILES_NEEDED };
    struct rlimit limit;

    for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++) {
        limit = (struct rlimit){ wanted[i], wanted[i] };
        if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
            return;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max; /* what an unprivileged user may have */
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < FILES_NEEDED)
        log_warn("glusterfsd", 0, "only %llu files can be open at once",
                 (unsigned long long)limit.rlim_max);
}

static void oom_score_set(int score)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "w");
    bool is_written = file && fprintf(file, "%d", score) > 0;

    if (file && fclose(file) != 0)
        is_written = false;
    if (!is_written)
        log_warn("glusterfsd", -errno, "cannot set oom_score_adj to %d", score);
}

void process_prepare(const struct args *args)
{
    umask(0);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, args->name);
    files_limit_raise();
    if (args->has_oom_score)
        oom_score_set(args->oom_score);
}

/* --- into the background ---------------------------------------------------------------------- */

static volatile pid_t child_pid;

static void forward(int signal_number)
{
    if (child_pid > 0)
        kill(child_pid, signal_number);
}

static int child_status(void)
{
    int status;

    while (waitpid(child_pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    if (WIFEXITED(status))
        return WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
    fprintf(stderr, "%s: ended by signal %d before it was ready\n", program_invocation_short_name,
            WTERMSIG(status));
    return 1;
}

static void parent_wait(int fd)
{
    struct sigaction action = { .sa_handler = forward };
    char ready;
    ssize_t got;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    do
        got = read(fd, &ready, 1);
    while (got < 0 && errno == EINTR);
    _exit(got == 1 ? 0 : child_status());
}

static void stdin_drop(void)
{
    int fd = open("/dev/null", O_RDWR);

    if (fd < 0)
        return;
    dup2(fd, STDIN_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

void process_daemonize(void)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0 || (child_pid = fork()) < 0) {
        fprintf(stderr, "%s: cannot go into the background: %s\n", program_invocation_short_name,
                strerror(errno));
        exit(1);
    }
    if (child_pid > 0) {
        close(fds[1]);
        parent_wait(fds[0]);
    }
    close(fds[0]);
    report_fd = fds[1];
    setsid();
    stdin_drop();
    if (chdir("/") < 0)
        log_warn("glusterfsd", -errno, "cannot leave the current directory");
}

static void terminal_drop(void)
{
    int fd = open("/dev/null", O_RDWR);

    if (fd < 0)
        return;
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

bool process_ready(void)
{
    if (report_fd < 0)
        return true;
    bool is_heard = write(report_fd, "", 1) == 1;
    close(report_fd);
    report_fd = -1;
    terminal_drop();
    return is_heard;
}

/* --- the pid file ----------------------------------------------------------------------------- */

int process_pid_file(const char *path)
{
    char text[16];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;

    int bytes = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (lockf(fd, F_TLOCK, 0) < 0 || ftruncate(fd, 0) < 0 || write(fd, text, bytes) != bytes) {
        int ret = errno == EACCES ? -EAGAIN : -errno;
        close(fd);
        return ret;
    }
    pid_path = strdup(path); /* fd stays open: it holds the lock */
    return 0;
}

void process_pid_file_remove(void)
{
    if (pid_path)
        unlink(pid_path);
}

static void *end_run(void *arg)
{
    env_sleep((uintptr_t)arg * NS_PER_S); /* a thread of its own: no lane's hanging hinders it */
    _exit(1);
    return NULL;
}

void process_end_within(unsigned seconds)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, end_run, (void *)(uintptr_t)seconds) != 0)
        log_warn("glusterfsd", 0, "nothing bounds the time that the end may take");
    pthread_attr_destroy(&attr);
}
