/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The brick process dies before the first, then before the second, ... change that an operation
 * makes on disk, until the operation gets through. After each, a new process takes the brick
 * over: the names are those before or those after the operation, and look-ups leave a tree
 * without a fault. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { DIED = 77, STEPS_MAX = 200 };

/* --- every change passes here (linked with --wrap) -------------------------------------------- */
static int steps_left; /* 0: not armed */

static void step(void)
{
    if (steps_left > 0 && --steps_left == 0)
        _exit(DIED);
}

#define WRAP(name, parameters, ...)                                                                \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        step();                                                                                    \
        return __real_##name(__VA_ARGS__);                                                         \
    }
WRAP(env_mkdirat, (int dir, const char *path, mode_t mode), dir, path, mode)
WRAP(env_mknodat, (int dir, const char *path, mode_t mode, dev_t dev), dir, path, mode, dev)
WRAP(env_symlinkat, (const char *target, int dir, const char *path), target, dir, path)
WRAP(env_linkat, (int from, const char *old, int to, const char *new, int flags), from, old, to,
     new, flags)
WRAP(env_unlinkat, (int dir, const char *path, int flags), dir, path, flags)
WRAP(env_renameat2, (int from, const char *old, int to, const char *new, unsigned flags), from, old,
     to, new, flags)
WRAP(env_fchownat, (int dir, const char *path, uid_t uid, gid_t gid, int flags), dir, path, uid,
     gid, flags)
WRAP(env_fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags), fd, name,
     value, size, flags)
WRAP(env_setxattr,
     (const char *path, const char *name, const void *value, size_t size, int flags, bool follow),
     path, name, value, size, flags, follow)
WRAP(env_fremovexattr, (int fd, const char *name), fd, name)
WRAP(env_removexattr, (const char *path, const char *name, bool follow), path, name, follow)

/* --- scenarios -------------------------------------------------------------------------------- */
struct scenario {
    const char *name;
    void (*prepare)(struct brick *brick);
    int (*act)(struct brick *brick);
    const char *before, *after; /* names in the root then, sorted, each with a blank behind it */
};

static void prepare_nothing(struct brick *brick)
{
    (void)brick;
}

static void prepare_files(struct brick *brick)
{
    check_equal(do_create(brick, brick->root, "a", O_RDWR, 0100644, NULL, NULL), 0);
    check_equal(do_create(brick, brick->root, "b", O_RDWR, 0100644, NULL, NULL), 0);
}

static void prepare_link(struct brick *brick)
{
    struct iatt stat;
    check_equal(do_create(brick, brick->root, "a", O_RDWR, 0100644, NULL, &stat), 0);
    AUTO(inode) inode = inode_of(brick, &stat);
    check_equal(do_link(brick, inode, brick->root, "b", &stat), 0);
}

static void prepare_directories(struct brick *brick)
{
    struct iatt stat;
    check_equal(do_mkdir(brick, brick->root, "a", 0755, &stat), 0);
    AUTO(inode) inode = inode_of(brick, &stat);
    check_equal(do_mkdir(brick, inode, "sub", 0755, NULL), 0);
    check_equal(do_mkdir(brick, brick->root, "b", 0755, NULL), 0);
}

static int act_create(struct brick *brick)
{
    brick->call.uid = brick->call.gid = 1000;
    brick->call.times = 31;
    brick->call.ctime_sec = 1700000000;
    return do_create(brick, brick->root, "new", O_RDWR | O_EXCL, 0100644, NULL, NULL);
}

static int act_mkdir(struct brick *brick)
{
    return do_mkdir(brick, brick->root, "new", 0755, NULL);
}

static int act_symlink(struct brick *brick)
{
    brick->call.uid = 1000;
    return do_symlink(brick, brick->root, "new", "target", NULL);
}

static int act_mknod(struct brick *brick)
{
    return do_mknod(brick, brick->root, "new", S_IFIFO | 0644, NULL);
}

static int act_link(struct brick *brick)
{
    struct iatt stat;
    check_equal(do_lookup(brick, brick->root, "a", &stat), 0);
    AUTO(inode) inode = inode_of(brick, &stat);
    return do_link(brick, inode, brick->root, "new", NULL);
}

static int act_unlink(struct brick *brick)
{
    return do_unlink(brick, brick->root, "b");
}

static int act_unlink_open(struct brick *brick)
{
    struct iatt stat;
    AUTO(fd) fd = NULL;
    check_equal(do_lookup(brick, brick->root, "b", &stat), 0);
    AUTO(inode) inode = inode_of(brick, &stat);
    check_equal(do_open(brick, inode, O_RDWR, &fd), 0);
    return do_unlink(brick, brick->root, "b");
}

static int act_rmdir(struct brick *brick)
{
    return do_rmdir(brick, brick->root, "b", 0);
}

static int act_rename_new(struct brick *brick)
{
    return do_rename(brick, brick->root, "a", brick->root, "new", NULL);
}

static int act_rename_over(struct brick *brick)
{
    return do_rename(brick, brick->root, "a", brick->root, "b", NULL);
}

static const struct scenario scenarios[] = {
    { "create", prepare_nothing, act_create, "", "new " },
    { "mkdir", prepare_nothing, act_mkdir, "", "new " },
    { "symlink", prepare_nothing, act_symlink, "", "new " },
    { "mknod", prepare_nothing, act_mknod, "", "new " },
    { "link", prepare_files, act_link, "a b ", "a b new " },
    { "unlink", prepare_files, act_unlink, "a b ", "a " },
    { "unlink of an open file", prepare_files, act_unlink_open, "a b ", "a " },
    { "unlink of one of two names", prepare_link, act_unlink, "a b ", "a " },
    { "rmdir", prepare_directories, act_rmdir, "a b ", "a " },
    { "rename of a file", prepare_files, act_rename_new, "a b ", "b new " },
    { "rename over a file", prepare_files, act_rename_over, "a b ", "b " },
    { "rename of one of two names", prepare_link, act_rename_new, "a b ", "b new " },
    { "rename of a directory", prepare_directories, act_rename_new, "a b ", "b new " },
    { "rename over a directory", prepare_directories, act_rename_over, "a b ", "b " },
};

/* --- processes -------------------------------------------------------------------------------- */
static struct brick brick;
static const struct scenario *scenario;
static int die_at;

static void prepare_main(void *arg)
{
    (void)arg;
    check_equal(brick_start(&brick, NULL), 0);
    scenario->prepare(&brick);
    brick_stop(&brick);
    lanes_stop();
}

static void act_main(void *arg)
{
    (void)arg;
    check_equal(brick_start(&brick, NULL), 0);
    steps_left = die_at;
    check_equal(scenario->act(&brick), 0);
    steps_left = 0;
    brick_stop(&brick);
    lanes_stop();
}

static int look_up_handle(const char *path, const struct stat *st, int type, struct FTW *at)
{
    gfid_t gfid;
    (void)st;
    (void)type;
    if (gfid_parse(path + at->base, &gfid) == 0 && !gfid_is_root(&gfid))
        (void)!do_lookup_gfid(&brick, &gfid, NULL);
    return 0;
}

/* What clients' look-ups do after the crash, then the judgement. */
static void recover_main(void *arg)
{
    static const char *const names[] = { "a", "b", "new" };
    char seen[32] = "", handles[512];
    struct iatt stat, sub;

    (void)arg;
    check_equal(brick_start(&brick, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        int ret = do_lookup(&brick, brick.root, names[i], &stat);
        check(ret == 0 || ret == -ENOENT);
        if (ret < 0)
            continue;
        strcat(strcat(seen, names[i]), " ");
        AUTO(inode) inode = inode_of(&brick, &stat);
        if (S_ISDIR(stat.mode))
            check((do_lookup(&brick, inode, "sub", &sub), true));
        inode_unref(TAKE(inode));
    }
    if (strcmp(seen, scenario->before) != 0 && strcmp(seen, scenario->after) != 0) {
        fprintf(stderr, "# %s, death %d: the names are %s\n", scenario->name, die_at, seen);
        abort();
    }
    snprintf(handles, sizeof(handles), "%s/.glusterfs", brick.path);
    nftw(handles, look_up_handle, 32, FTW_PHYS);
    /* whatever was left must not stand in the way */
    if (!strstr(seen, "new"))
        check_equal(do_create(&brick, brick.root, "new", O_RDWR | O_EXCL, 0100600, NULL, NULL), 0);
    brick_stop(&brick);
    if (tree_faults_after_crash(&brick) != 0) {
        fprintf(stderr, "# %s, death %d\n", scenario->name, die_at);
        abort();
    }
    lanes_stop();
}

static int in_child(fiber_fn *fn)
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        check_equal(env_init("sim", 1), 0); /* its clock is years ahead: nothing is too young */
        check_equal(lanes_run(fn, NULL), 0);
        exit(0);
    }
    check_equal(waitpid(pid, &status, 0), pid);
    check(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void death_before_any_change_is_survived(void **state)
{
    scenario = *state;
    int died = DIED;
    for (die_at = 1; died == DIED && die_at < STEPS_MAX; die_at++) {
        brick_new(&brick);
        check_equal(in_child(prepare_main), 0);
        died = in_child(act_main);
        check(died == 0 || died == DIED);
        check_equal(in_child(recover_main), 0);
        brick_remove(&brick);
    }
    check(die_at > 3); /* it did die, and more than once */
    fprintf(stderr, "# %s: %d deaths\n", scenario->name, die_at - 2);
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_SIZE(scenarios)];
    for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++)
        tests[i] = (struct CMUnitTest){
            .name = scenarios[i].name,
            .test_func = death_before_any_change_is_survived,
            .initial_state = (void *)(uintptr_t)&scenarios[i],
        };
    return _cmocka_run_group_tests("crash", tests, ARRAY_SIZE(scenarios), NULL, NULL);
}
