/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"

struct job {
    const char *path;
    char *text;
    size_t bytes;
    int ret;
};

static int read_all(struct job *job, int fd)
{
    struct stat stat_buf;
    int ret = env_fstat(fd, &stat_buf);
    if (ret < 0)
        return ret;
    if (S_ISDIR(stat_buf.st_mode))
        return -EISDIR;

    size_t room = VOLFILE_BYTES_MAX + 1; /* one more: it is then seen to be too large */
    if (S_ISREG(stat_buf.st_mode))       /* not of a pipe */
        room = MIN((size_t)stat_buf.st_size + 1, room);
    job->text = malloc(room + 1);
    if (!job->text)
        return -ENOMEM;
    while (job->bytes < room) {
        ssize_t got = read(fd, job->text + job->bytes, room - job->bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        job->bytes += (size_t)got;
    }
    job->text[job->bytes] = '\0';
    return 0;
}

static void job_run(void *arg)
{
    struct job *job = arg;
    int fd = env_openat(AT_FDCWD, job->path, O_RDONLY | O_CLOEXEC, 0);

    job->ret = fd < 0 ? fd : read_all(job, fd);
    if (fd >= 0)
        env_close(fd);
}

int source_read(const struct args *args, struct manager *manager, char **ret_text,
                size_t *ret_bytes, char error[SOURCE_ERROR_SIZE])
{
    if (manager)
        return manager_fetch(manager, ret_text, ret_bytes, error, SOURCE_ERROR_SIZE);

    struct job job = { .path = args->volfile };
    hop(pool_default(), job_run, &job);
    if (job.ret < 0) {
        free(job.text);
        snprintf(error, SOURCE_ERROR_SIZE,
                 "loading volume file failed [{volume_file=%.300s}, {errno=%d}, {error=%s}]",
                 args->volfile, -job.ret, strerror(-job.ret));
        return job.ret;
    }
    *ret_text = job.text;
    *ret_bytes = job.bytes;
    return 0;
}
