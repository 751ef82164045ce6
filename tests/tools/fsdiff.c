/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fsdiff [--seed N] [--ops N] [--without LIST] [--with LIST] [--only LIST] [--tree-every N]
 *        [--plant N[:WHAT]] [--history N] [--verbose] DIR_A DIR_B
 *
 * Does the same random operations in two trees and compares, after each, the result, the errno and
 * whatever came back; every so often, and at the end, the whole trees. Prints the first difference
 * with the operations that led to it and exits with 1; without one prints the count, exits with 0.
 * With 2 it could not run. Both directories are emptied first.
 *
 * LISTs hold names of groups or operations (--verbose shows them). --plant changes one thing in
 * DIR_A, after operation N, behind our own back: a run that does not find it is broken.
 *
 * Some operations are those of other users: each has a thread with its own credentials. Times are
 * compared when they cannot be of the clock: the times that we set are all long ago or far ahead.
 * A file's own sequence of random numbers depends on the seed and on results that were equal, so
 * a seed repeats its run. */
#include "fsdiff.h"

#include <getopt.h>

struct side side[2] = { { .name = "A" }, { .name = "B" } };
struct entry table[ENTRIES_MAX];
int entries;
int64_t began_s;

static struct op history[HISTORY]; /* a ring; the last --history of it are printed */
static struct outcome outcome[2];
static int64_t op_number;

static struct {
    uint64_t seed;
    int64_t ops, tree_every, plant_after;
    const char *plant_what;
    int history;
    bool verbose;
} run = { .history = 20, .ops = 1000, .tree_every = 1000, .plant_after = -1 };

/* ---------------------------------------------------------------- random numbers */

static uint64_t rng_state;

uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

uint64_t any(uint64_t below)
{
    rng_state += 0x9e3779b97f4a7c15;
    return mix(rng_state) % below;
}

bool chance(int percent)
{
    return any(100) < (uint64_t)percent;
}

/* ---------------------------------------------------------------- what is known to be there */

static void table_add_walk(int dir_fd, const char *prefix, int depth)
{
    struct names names;

    if (names_read(dir_fd, &names) < 0)
        return;
    for (int i = 0; i < names.count && entries < ENTRIES_MAX; i++) {
        struct entry *entry = &table[entries];
        struct stat st;
        int bytes = snprintf(entry->path, sizeof(entry->path), "%s%s%s", prefix, *prefix ? "/" : "",
                             names.name[i]);
        if (bytes >= (int)sizeof(entry->path))
            continue;
        if (fstatat(dir_fd, names.name[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        entry->type = st.st_mode & S_IFMT;
        entries++;
        if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
            continue;
        int fd = openat(dir_fd, names.name[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        char path[PATH_BYTES];
        strcpy(path, entry->path);
        table_add_walk(fd, path, depth + 1);
        close(fd);
    }
    names_free(&names);
}

/* B is the control: it is also the faster one to walk. */
static void table_rebuild(void)
{
    entries = 0;
    table_add_walk(side[1].root_fd, "", 0);
}

/* ---------------------------------------------------------------- operations, chosen and done */

static const struct kind *choose_kind(void)
{
    int total = 0;

    for (const struct kind *kind = kinds; kind->name; kind++)
        total += kind_weight(kind);
    int left = (int)any((uint64_t)total);
    for (const struct kind *kind = kinds;; kind++) {
        left -= kind_weight(kind);
        if (left < 0)
            return kind;
    }
}

static void act(const struct op *op, int which)
{
    struct outcome *out = &outcome[which];

    outcome_reset(out);
    umask(op->umask);
    user_run(op, &side[which], out);
    umask(0);
}

static void print_history(void)
{
    int64_t first = op_number >= run.history ? op_number - run.history + 1 : 0;

    printf("the last operations:\n");
    for (int64_t i = first; i <= op_number; i++) {
        char text[OP_TEXT_BYTES];
        op_print(&history[i % HISTORY], text, sizeof(text));
        printf("  %8" PRId64 "  %s\n", i, text);
    }
}

/* What the operation was about, as it is now. */
static void print_object(const char *what, const char *path, int slot)
{
    for (int i = 0; i < 2; i++) {
        struct stat st;
        char text[TEXT_BYTES];
        int ret = path ? fstatat(side[i].root_fd, path, &st, AT_SYMLINK_NOFOLLOW)
                       : fstat(side[i].fd[slot], &st);
        if (ret < 0)
            snprintf(text, sizeof(text), "%s", strerrorname_np(errno));
        else
            stat_text(&st, false, text, sizeof(text));
        printf("  %s now, %s: %s\n", what, side[i].name, text);
    }
}

static void print_objects(const struct op *op)
{
    if (*op->path && op->base < 0)
        print_object("path", op->path, -1);
    if (*op->path2)
        print_object("from", op->path2, -1);
    if (op->slot >= 0)
        print_object("fd", NULL, op->slot);
}

static void report(void)
{
    char text[OP_TEXT_BYTES];

    op_print(&history[op_number % HISTORY], text, sizeof(text));
    printf("DIFFERENCE at operation %" PRId64 ", seed %" PRIu64 ": %s\n", op_number, run.seed,
           text);
    for (int i = 0; i < 2; i++)
        outcome_print(side[i].name, &outcome[i]);
    outcome_print_data_difference(&outcome[0], &outcome[1]);
    print_objects(&history[op_number % HISTORY]);
    print_history();
}

static bool one_operation(void)
{
    struct op *op = &history[op_number % HISTORY];

    *op = (struct op){ .kind = choose_kind(), .slot = -1, .slot2 = -1, .base = -1 };
    op_choose(op);
    act(op, 0);
    act(op, 1);
    kind_count(op->kind, outcome[1].ret >= 0);
    if (!outcome_equal(&outcome[0], &outcome[1])) {
        report();
        return false;
    }
    if (op->kind->after)
        op->kind->after(op, &outcome[1]);
    return true;
}

static bool trees_are_equal(const char *when)
{
    if (tree_compare(when))
        return true;
    printf("seed %" PRIu64 ", found %s, after operation %" PRId64 "\n", run.seed, when, op_number);
    print_history();
    return false;
}

static bool all_operations(void)
{
    for (op_number = 0; op_number < run.ops; op_number++) {
        if (op_number % REBUILD_EVERY == 0)
            table_rebuild();
        if (!one_operation())
            return false;
        if (op_number == run.plant_after)
            plant(run.plant_what);
        if (op_number % run.tree_every == run.tree_every - 1 && !trees_are_equal("on the way"))
            return false;
    }
    op_number = run.ops - 1;
    if (!trees_are_equal("at the end"))
        return false;
    slots_close_all();
    return trees_are_equal("with all files closed");
}

/* ---------------------------------------------------------------- start */

static const struct option long_options[] = {
    { "seed", required_argument, NULL, 's' },    { "ops", required_argument, NULL, 'n' },
    { "without", required_argument, NULL, 'x' }, { "with", required_argument, NULL, 'w' },
    { "only", required_argument, NULL, 'o' },    { "tree-every", required_argument, NULL, 't' },
    { "history", required_argument, NULL, 'h' }, { "plant", required_argument, NULL, 'p' },
    { "verbose", no_argument, NULL, 'v' },       { NULL, 0, NULL, 0 },
};

noreturn void die(const char *what)
{
    fprintf(stderr, "fsdiff: %s: %s\n", what, strerror(errno));
    exit(2);
}

static noreturn void usage(void)
{
    fprintf(stderr, "usage: fsdiff [--seed N] [--ops N] [--without LIST] [--with LIST] "
                    "[--only LIST]\n              [--tree-every N] [--plant N[:WHAT]] [--verbose] "
                    "DIR_A DIR_B\n");
    exit(2);
}

static void parse_plant(char *text)
{
    run.plant_after = strtoll(text, &text, 0);
    run.plant_what = *text == ':' ? text + 1 : "any";
    if (!plant_exists(run.plant_what))
        usage();
}

static void parse_options(int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 's':
            run.seed = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            run.ops = strtoll(optarg, NULL, 0);
            break;
        case 't':
            run.tree_every = strtoll(optarg, NULL, 0);
            break;
        case 'x':
            kinds_switch(optarg, false);
            break;
        case 'w':
            kinds_switch(optarg, true);
            break;
        case 'o':
            kinds_switch(NULL, false);
            kinds_switch(optarg, true);
            break;
        case 'h':
            run.history = atoi(optarg);
            break;
        case 'p':
            parse_plant(optarg);
            break;
        case 'v':
            run.verbose = true;
            break;
        default:
            usage();
        }
    }
    if (argc - optind != 2 || run.ops < 1 || run.history < 1 || run.history > HISTORY ||
        run.tree_every < 1)
        usage();
    side[0].dir = argv[optind];
    side[1].dir = argv[optind + 1];
}

static void side_open(struct side *one)
{
    one->root_fd = open(one->dir, O_RDONLY | O_DIRECTORY);
    if (one->root_fd < 0)
        die(one->dir);
    if (remove_below(one->root_fd) < 0 || fchmod(one->root_fd, 0777) < 0)
        die("cannot empty it");
    for (int slot = 0; slot < SLOTS; slot++)
        one->fd[slot] = -1;
}

int main(int argc, char **argv)
{
    run.seed = (uint64_t)time(NULL) * 1000003 % 1000000007;
    parse_options(argc, argv);
    printf("seed %" PRIu64 "\n", run.seed);
    fflush(stdout);
    rng_state = mix(run.seed);
    began_s = time(NULL);
    signal(SIGPIPE, SIG_IGN);
    umask(0);
    side_open(&side[0]);
    side_open(&side[1]);
    ops_start();
    users_start();

    bool same = all_operations();
    if (run.verbose) {
        kinds_print();
        printf("  %d names at the end\n", entries);
    }
    if (same)
        printf("%" PRId64 " operations, no difference\n", run.ops);
    return same ? 0 : 1;
}
