/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A brick and a client in one process on the simulator: mount, create, write, read, unmount. The
 * brick's debug/trace writes one line a step; they are compared as text. The same seed gives the
 * same log to the byte, times included; another seed gives the same steps at other times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/buf.h"
#include "core/env.h"
#include "core/log.h"
#include "graph/fop_call.h"
#include "graph/graph.h"

enum { PATH_BYTES = 256, LOG_BYTES = 1 << 20, MOUNT_WAIT_S = 60 };

static char scratch[] = "/var/tmp/mortar-sim-XXXXXX";

static const char brick_text[] =
    "volume posix\n type storage/posix\n option directory %s\n option health-check-interval 0\n"
    "end-volume\n"
    "volume trace\n type debug/trace\n option log-file yes\n subvolumes posix\nend-volume\n"
    "volume brick\n type features/locks\n subvolumes trace\nend-volume\n"
    "volume server\n type protocol/server\n option transport-type tcp\n"
    " option transport.socket.listen-port 49152\n option auth.addr.brick.allow *\n"
    " subvolumes brick\nend-volume\n";

static const char client_text[] =
    "volume client\n type protocol/client\n option transport-type tcp\n option remote-host %s\n"
    " option remote-port 49152\n option remote-subvolume brick\nend-volume\n";

struct world {
    char *directory;
    struct graph *brick, *mount;
    bool is_up;
};

/* --- building --------------------------------------------------------------------------------- */
static struct graph *graph_of(const char *format, const char *value, const char *uuid)
{
    char text[2048], error[VOLFILE_ERROR_SIZE];
    struct volfile *volfile = NULL;
    struct graph *graph = NULL;
    const struct graph_config config = { .uuid = uuid };

    snprintf(text, sizeof(text), format, value);
    assert_int_equal(volfile_parse(text, strlen(text), error, &volfile), 0);
    assert_int_equal(graph_new(volfile, &config, &graph), 0);
    volfile_free(volfile);
    assert_int_equal(graph_init(graph), 0);
    return graph;
}

static void on_event(struct graph *graph, enum xlator_event event, void *data)
{
    struct world *world = graph->on_event_arg;
    (void)data;
    if (event == EVENT_CHILD_UP)
        world->is_up = true;
}

static void mount_world(struct world *world)
{
    world->brick = graph_of(brick_text, world->directory, "sim-brick");
    assert_int_equal(graph_start(world->brick), 0);
    world->mount = graph_of(client_text, "127.0.0.1", "sim-mount");
    world->mount->on_event = on_event;
    world->mount->on_event_arg = world;
    assert_int_equal(graph_start(world->mount), 0);
    for (int i = 0; i < MOUNT_WAIT_S * 100 && !world->is_up; i++)
        env_sleep(10 * NS_PER_MS);
    assert_true(world->is_up);
}

/* --- the story -------------------------------------------------------------------------------- */
static struct fd *create_file(struct world *world, struct call *call, const char *name)
{
    struct xlator *top = world->mount->top;
    AUTO(inode) root = inode_get(world->mount->inodes, &gfid_root);
    struct create_reply reply = {};
    struct fd *fd = fd_new(NULL, O_RDWR | O_CREAT, call->pid);
    AUTO(dict) xdata = dict_new();
    gfid_t gfid;

    gfid_generate(&gfid);
    assert_int_equal(dict_set_gfid(xdata, "gfid-req", &gfid), 0);
    int ret = fop_create(top, call,
                         &(struct create_args){ .parent = root,
                                                .name = name,
                                                .fd = fd,
                                                .flags = O_RDWR | O_CREAT,
                                                .mode = 0100644,
                                                .xdata = xdata },
                         &reply);
    assert_int_equal(ret, 0);
    assert_true(gfid_equal(&reply.stat.gfid, &gfid));
    create_reply_fini(&reply);
    return fd;
}

static void write_and_read(struct world *world, struct call *call, struct fd *fd)
{
    struct xlator *top = world->mount->top;
    static char text[] = "what was written is read";
    struct writev_args in = { .fd = fd };
    struct writev_reply written = {};
    struct readv_reply read = {};
    char back[sizeof(text)];

    payload_add_borrowed(&in.payload, text, sizeof(text));
    assert_int_equal(fop_writev(top, call, &in, &written), sizeof(text));
    writev_reply_fini(&written);
    assert_int_equal(fop_readv(top, call, &(struct readv_args){ .fd = fd, .size = 4096 }, &read),
                     sizeof(text));
    payload_copy_out(&read.payload, back);
    assert_memory_equal(back, text, sizeof(text));
    assert_true(read.eof);
    readv_reply_fini(&read);
}

static void tell(void *arg)
{
    struct world *world = arg;
    struct call call = { .pid = 100 };

    mount_world(world);
    struct fd *fd = create_file(world, &call, "story");
    write_and_read(world, &call, fd);
    struct flush_reply flushed = {};
    assert_int_equal(fop_flush(world->mount->top, &call, &(struct flush_args){ .fd = fd },
                               &flushed),
                     0);
    flush_reply_fini(&flushed);
    fd_unref(fd);
    env_sleep(100 * NS_PER_MS); /* the release goes by itself */
    graph_stop(world->mount);
    graph_free(world->mount);
    env_sleep(100 * NS_PER_MS);
    graph_stop(world->brick);
    graph_free(world->brick);
    lanes_stop();
}

/* Runs the story in a process of its own; its log is left at log_path. */
static void run_seed(uint64_t seed, const char *name, char log_path[PATH_BYTES])
{
    char directory[PATH_BYTES];

    snprintf(directory, sizeof(directory), "%s/brick", scratch);
    snprintf(log_path, PATH_BYTES, "%s/%s.log", scratch, name);
    assert_int_equal(mkdir(directory, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct world world = { .directory = directory };
        const struct log_config config = { .path = log_path, .level = LOG_INFO };
        if (env_init("sim", seed) < 0 || log_open(&config) < 0 || lanes_run(tell, &world) < 0)
            _exit(9);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    char command[PATH_BYTES + 16];
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

static char *slurp(const char *path)
{
    char *text = calloc(1, LOG_BYTES);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t bytes = fread(text, 1, LOG_BYTES - 1, file);
    assert_true(bytes > 0);
    fclose(file);
    return text;
}

/* The steps alone: operation and name of lines that the brick's trace wrote on the way in. */
static void steps_of(char *log, char steps[4096])
{
    size_t used = 0;
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        char *at = strstr(line, "-trace: "), *gfid = at ? strstr(at, " gfid=") : NULL;
        char *name = gfid ? strstr(gfid, "name=") : NULL;
        if (!name)
            continue;
        used += (size_t)snprintf(steps + used, 4096 - used, "%.*s %.*s\n", (int)(gfid - at - 8),
                                 at + 8, (int)strcspn(name + 5, " "), name + 5);
    }
}

/* --- tests ------------------------------------------------------------------------------------ */
static void the_same_seed_gives_the_same_log(void **state)
{
    char one[PATH_BYTES], two[PATH_BYTES];
    (void)state;
    run_seed(7, "one", one);
    run_seed(7, "two", two);
    AUTO_FREE char *first = slurp(one);
    AUTO_FREE char *second = slurp(two);
    assert_string_equal(first, second);
}

static void another_seed_gives_the_same_steps_at_other_times(void **state)
{
    char one[PATH_BYTES], two[PATH_BYTES], steps_one[4096] = "", steps_two[4096] = "";
    (void)state;
    run_seed(7, "three", one);
    run_seed(8, "four", two);
    AUTO_FREE char *first = slurp(one);
    AUTO_FREE char *second = slurp(two);
    assert_string_not_equal(first, second);
    steps_of(first, steps_one);
    steps_of(second, steps_two);
    assert_string_equal(steps_one, steps_two);
}

static void a_file_is_created_written_and_read_in_these_steps(void **state)
{
    char path[PATH_BYTES], steps[4096] = "";
    (void)state;
    run_seed(9, "five", path);
    AUTO_FREE char *log = slurp(path);
    steps_of(log, steps);
    assert_string_equal(steps, "LOOKUP \n"      /* the handshake looks at the root */
                               "CREATE story\n"
                               "WRITE \n"
                               "READ \n"
                               "FLUSH \n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_log),
        cmocka_unit_test(another_seed_gives_the_same_steps_at_other_times),
        cmocka_unit_test(a_file_is_created_written_and_read_in_these_steps),
    };
    if (!mkdtemp(scratch))
        return 2;
    int ret = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", scratch);
    return system(command) == 0 ? ret : 2;
}
