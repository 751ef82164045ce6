/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A whole mount in one process: mount/fuse over the translators of a volfile that ends at a local
 * directory. For trying out the front door without a network.
 *
 *     local VOLFILE MOUNTPOINT [OPTION=VALUE...]      # serves until TERM, INT, or umount(8)
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/env.h"
#include "graph/dump.h"
#include "graph/graph.h"
#include "xlators/mount/fuse/fuse.h"

struct run {
    int argc, ret;
    char **argv;
    int signals;
    struct graph *graph;
    struct fuse *fuse;
};

static int file_read(const char *path, char **ret_text, size_t *ret_bytes)
{
    FILE *file = fopen(path, "r");
    char *text = malloc(VOLFILE_BYTES_MAX);

    if (!file || !text)
        return -errno;
    *ret_bytes = fread(text, 1, VOLFILE_BYTES_MAX, file);
    *ret_text = text;
    fclose(file);
    return 0;
}

static int graph_make(struct run *run)
{
    char error[VOLFILE_ERROR_SIZE];
    struct graph_config config = { .id = 0, .uuid = "local" };
    struct option_set options = {};
    struct volfile *volfile;
    char *text = NULL;
    size_t bytes = 0;
    int ret = file_read(run->argv[1], &text, &bytes);

    if (ret < 0)
        return ret;
    ret = volfile_parse(text, bytes, error, &volfile);
    if (ret < 0) {
        fprintf(stderr, "%s\n", error);
        return ret;
    }
    ret = graph_new(volfile, &config, &run->graph);
    volfile_free(volfile);
    free(text);
    if (ret < 0)
        return ret;
    for (int i = 3; i < run->argc && ret == 0; i++) {
        char *value = strchr(run->argv[i], '=');
        if (!value)
            return -EINVAL;
        *value = '\0';
        ret = option_set_put(&options, run->argv[i], value + 1);
    }
    if (ret == 0)
        ret = graph_push(run->graph, &xlator_mount_fuse, "fuse", &options);
    option_set_fini(&options);
    return ret;
}

static void run_ended(void *arg)
{
    (void)arg;
    kill(getpid(), SIGTERM);
}

static int run_mount(struct run *run)
{
    struct fuse_mount_config config = { .mountpoint = run->argv[2],
                                        .source = "local:/volume",
                                        .ended = run_ended };
    int ret = graph_init(run->graph);
    if (ret == 0)
        ret = graph_start(run->graph);
    if (ret == 0)
        ret = fuse_mount(&config, run->graph, &run->fuse);
    if (ret < 0) {
        fprintf(stderr, "%s\n", config.error);
        return ret;
    }
    return fuse_ready_wait(run->fuse, env_now_ns() + 10 * NS_PER_S);
}

static void run_main(void *arg)
{
    struct run *run = arg;
    struct dump dump = { .out = stdout };

    run->ret = graph_make(run);
    if (run->ret == 0)
        run->ret = run_mount(run);
    if (run->ret == 0) {
        printf("ready\n");
        fflush(stdout);
        while (env_signal_wait(run->signals) == SIGUSR1) {
            graph_dump(run->graph, &dump);
            fflush(stdout);
        }
        fuse_unmount(run->fuse);
        graph_stop(run->graph);
    }
    graph_free(run->graph);
    lanes_stop();
}

int main(int argc, char **argv)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGUSR1 };
    struct run run = { .argc = argc, .argv = argv };

    if (argc < 3) {
        fprintf(stderr, "usage: local VOLFILE MOUNTPOINT [OPTION=VALUE...]\n");
        return 2;
    }
    umask(0); /* modes are as the caller's umask has left them */
    run.ret = env_init(NULL, 0);
    run.signals = env_signal_open(signals, 3);
    if (run.ret < 0 || run.signals < 0 || lanes_run(run_main, &run) < 0)
        return 1;
    if (run.ret < 0)
        fprintf(stderr, "%s\n", strerror(-run.ret));
    return run.ret < 0;
}
