/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/statedump.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/buf.h"
#include "core/env.h"
#include "graph/dump.h"
#include "graph/graph.h"

struct job {
    const char *directory, *brick;
    char *text;
    size_t bytes;
    time_t now;
    char path[4096];
    int ret;
};

static void dump_time(struct dump *dump, const char *what)
{
    struct timespec now = env_wallclock();
    struct tm tm;
    char date[32];

    gmtime_r(&now.tv_sec, &tm);
    strftime(date, sizeof(date), "%F %T", &tm);
    fprintf(dump->out, "%s: %s.%06ld +0000\n", what, date, now.tv_nsec / 1000);
}

static void dump_memory(struct dump *dump)
{
    struct mallinfo2 info = mallinfo2();

    dump_section(dump, "mallinfo");
    dump_value(dump, "mallinfo_arena", "%zu", info.arena);
    dump_value(dump, "mallinfo_ordblks", "%zu", info.ordblks);
    dump_value(dump, "mallinfo_smblks", "%zu", info.smblks);
    dump_value(dump, "mallinfo_hblks", "%zu", info.hblks);
    dump_value(dump, "mallinfo_hblkhd", "%zu", info.hblkhd);
    dump_value(dump, "mallinfo_usmblks", "%zu", info.usmblks);
    dump_value(dump, "mallinfo_fsmblks", "%zu", info.fsmblks);
    dump_value(dump, "mallinfo_uordblks", "%zu", info.uordblks);
    dump_value(dump, "mallinfo_fordblks", "%zu", info.fordblks);
    dump_value(dump, "mallinfo_keepcost", "%zu", info.keepcost);
}

static void dump_process(struct dump *dump, const struct graph *graph)
{
    struct buf_stats stats;

    dump_memory(dump);
    dump_section(dump, "global.callpool");
    dump_value(dump, "global.callpool.fibers", "%llu", (unsigned long long)fiber_count());
    dump_section(dump, "mempool");
    dump_value(dump, "pools", "0");
    buf_get_stats(&stats);
    dump_section(dump, "iobuf.global");
    dump_value(dump, "iobuf_pool", "see [buffers]");
    dump_section(dump, "buffers");
    dump_value(dump, "arena_bytes", "%llu", (unsigned long long)stats.arena_bytes);
    dump_value(dump, "used_bytes", "%llu", (unsigned long long)stats.used_bytes);
    dump_value(dump, "limit_bytes", "%llu", (unsigned long long)stats.limit_bytes);
    dump_value(dump, "waits", "%llu", (unsigned long long)stats.waits);
    dump_section(dump, "lanes");
    dump_value(dump, "count", "%u", lanes_count());
    dump_value(dump, "env", "%s", env_name());
    dump_section(dump, "fibers");
    dump_value(dump, "count", "%llu", (unsigned long long)fiber_count());
    dump_section(dump, "leases");
    dump_value(dump, "count", "0");
    dump_section(dump, "active graph - %d", graph->id);
    dump_value(dump, "inodes", "%llu", (unsigned long long)inode_table_count(graph->inodes));
}

static int text_write(struct job *job, const char *temporary)
{
    FILE *file = fopen(temporary, "wxe");
    if (!file)
        return -errno;

    bool is_written = fwrite(job->text, 1, job->bytes, file) == job->bytes;
    if (fclose(file) != 0 || !is_written || rename(temporary, job->path) < 0) {
        int ret = -errno;
        unlink(temporary);
        return ret < 0 ? ret : -EIO;
    }
    return 0;
}

static void job_run(void *arg)
{
    struct job *job = arg;
    char name[2048], temporary[4200];

    snprintf(name, sizeof(name), "%.2000s",
             job->brick ? job->brick + (job->brick[0] == '/') : "glusterdump");
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '-';
    snprintf(job->path, sizeof(job->path), "%.1900s/%.2000s.%d.dump.%lld", job->directory, name,
             (int)getpid(), (long long)job->now);
    snprintf(temporary, sizeof(temporary), "%s.part", job->path);
    unlink(temporary); /* left by a crash */
    job->ret = text_write(job, temporary);
    if (job->ret == -ENOENT && mkdir(job->directory, 0755) == 0)
        job->ret = text_write(job, temporary);
}

void statedump_write(const char *directory, const char *brick, const struct graph *graph)
{
    struct job *job = calloc(1, sizeof(*job)); /* too large for a fiber's stack */
    struct dump dump = { 0 };

    if (!job)
        return;
    *job = (struct job){ .directory = directory, .brick = brick,
                         .now = env_wallclock().tv_sec };
    dump.out = open_memstream(&job->text, &job->bytes);
    if (dump.out) {
        dump_time(&dump, "DUMP-START-TIME");
        dump_process(&dump, graph);
        graph_dump(graph, &dump);
        fputc('\n', dump.out);
        dump_time(&dump, "DUMP-END-TIME");
    }
    if (!dump.out || fclose(dump.out) != 0)
        job->ret = -ENOMEM;
    else
        hop(pool_default(), job_run, job);
    if (job->ret < 0)
        log_error("glusterfsd", job->ret, "no statedump could be written in %s", directory);
    else
        log_info("glusterfsd", 0, "statedump written to %s", job->path);
    free(job->text);
    free(job);
}
