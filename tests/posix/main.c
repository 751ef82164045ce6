/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* posix-cases [--list] [--only GLOB]... [--skip GLOB]... [--jobs N] [--timeout S] [--control DIR]
 *             [--verbose] DIR
 *
 * Runs the POSIX cases on the file system that holds DIR, and leaves DIR as it was. Prints a line
 * for each case that fails or is skipped, and last "N passed, N failed, N skipped"; exits with 0
 * when none failed, 1 when some did, 2 when it could not run. The O_DIRECT cases compare with what
 * the file system of --control does; $POSIX_CASES_ENTRIES is the size of the large directories.
 *
 * A case has two processes, one after the other: the case itself, in its fresh directory, and a
 * cleaner that removes the directory. Both are watched by the clock. One that is killed and still
 * does not go (it hangs in the kernel) is left behind, so that the others get their turn. */
#include "harness.h"

#include <fnmatch.h>
#include <getopt.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum {
    JOBS_MAX = 64,
    GLOBS_MAX = 256,
    CLEAN_LIMIT_S = 120,
    KILL_GRACE_S = 5,
    BASE_BYTES_MAX = 1024,
};

struct globs {
    const char *pattern[GLOBS_MAX];
    int count;
};

static struct {
    struct globs only, skip;
    int jobs, timeout_s;
    bool list, verbose;
    const char *dir, *control;
    char base[BASE_BYTES_MAX], control_base[BASE_BYTES_MAX];
} run = { .jobs = 1, .timeout_s = 30 };

static struct {
    int passed, failed, skipped, left_behind;
} total;

enum step {
    IDLE,
    RUNNING,
    CLEANING
};

struct slot {
    const struct posix_case *one;
    enum step step;
    bool killed;
    pid_t pid;
    int pidfd, report[2];
    int64_t began_ms, due_ms;
    int verdict; /* the case's wait status */
};

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal_number)
{
    interrupted = signal_number;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Removing a tree, however deep: by descriptors, never by a long path. */

static int remove_entry(int dir_fd, const char *name);

static int remove_contents(int fd)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;
    int ret = 0;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            int failed = remove_entry(dirfd(dir), entry->d_name);
            ret = failed ? failed : ret;
        }
    closedir(dir);
    return ret;
}

static int remove_entry(int dir_fd, const char *name)
{
    int fd, ret;

    if (unlinkat(dir_fd, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    ret = remove_contents(fd);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    return ret ? ret : -errno;
}

/* The two processes of a case */

static void enter_case_dir(const struct posix_case *one)
{
    char *control;

    if (run.control) {
        OK(asprintf(&control, "%s/%s", run.control_base, one->name));
        OK(mkdir(control, 0777));
        control_dir = control;
    }
    OK(chdir(run.base));
    OK(mkdir(one->name, 0777));
    OK(chdir(one->name));
}

static void child_prepare(struct slot *slot)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    report_fd = slot->report[1];
    umask(0);
}

static _Noreturn void case_process(struct slot *slot)
{
    child_prepare(slot);
    enter_case_dir(slot->one);
    slot->one->run();
    _exit(0);
}

static _Noreturn void cleaner_process(struct slot *slot)
{
    const char *base[] = { run.base, run.control ? run.control_base : NULL };

    child_prepare(slot);
    for (int i = 0; i < 2 && base[i]; i++) {
        int fd = (int)OK(open(base[i], O_RDONLY | O_DIRECTORY));
        int ret = remove_entry(fd, slot->one->name);
        if (ret < 0 && ret != -ENOENT)
            FAIL("its directory cannot be removed: %s", strerrorname_np(-ret));
    }
    _exit(0);
}

static void slot_spawn(struct slot *slot, enum step step, int limit_s)
{
    slot->step = step;
    slot->killed = false;
    slot->began_ms = now_ms();
    slot->due_ms = slot->began_ms + limit_s * 1000;
    slot->pid = fork();
    if (slot->pid == 0)
        step == RUNNING ? case_process(slot) : cleaner_process(slot);
    slot->pidfd = slot->pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, slot->pid, 0);
    if (slot->pidfd < 0) {
        perror("posix-cases: cannot start a case");
        exit(2);
    }
    setpgid(slot->pid, slot->pid);
}

static void slot_start(struct slot *slot, const struct posix_case *one)
{
    slot->one = one;
    if (pipe2(slot->report, O_CLOEXEC) < 0) {
        perror("posix-cases: pipe");
        exit(2);
    }
    fcntl(slot->report[0], F_SETFL, O_NONBLOCK);
    slot_spawn(slot, RUNNING, one->limit_s ? (int)one->limit_s : run.timeout_s);
}

/* The first line that the case's processes wrote; later ones follow from it. */
static void slot_reason(struct slot *slot, char reason[REPORT_BYTES_MAX])
{
    ssize_t bytes = read(slot->report[0], reason, REPORT_BYTES_MAX - 1);

    reason[bytes > 0 ? bytes : 0] = '\0';
    reason[strcspn(reason, "\n")] = '\0';
}

static void verdict_failed(struct slot *slot, const char *reason)
{
    total.failed++;
    printf("FAIL %s: %s\n", slot->one->name, reason);
}

static void slot_judge(struct slot *slot, int cleaner_status)
{
    char reason[REPORT_BYTES_MAX], other[64];
    int verdict = slot->verdict;

    slot_reason(slot, reason);
    if (WIFSIGNALED(verdict)) {
        snprintf(other, sizeof(other), "killed by signal %d", WTERMSIG(verdict));
        verdict_failed(slot, reason[0] ? reason : other);
    } else if (WEXITSTATUS(verdict) == EXIT_CASE_SKIPPED) {
        total.skipped++;
        printf("SKIP %s: %s\n", slot->one->name, reason);
    } else if (verdict != 0 || cleaner_status != 0) {
        verdict_failed(slot, reason[0] ? reason : "ended without a reason");
    } else {
        total.passed++;
        if (run.verbose)
            printf("PASS %s\n", slot->one->name);
    }
}

static void slot_close(struct slot *slot)
{
    close(slot->report[0]);
    close(slot->report[1]);
    slot->step = IDLE;
}

/* What took long to make takes long to remove. */
static int clean_limit_s(const struct posix_case *one)
{
    return one->limit_s > CLEAN_LIMIT_S ? (int)one->limit_s : CLEAN_LIMIT_S;
}

/* The process ended; its group may have more, which end with it. */
static void slot_reap(struct slot *slot)
{
    int status = 0;

    kill(-slot->pid, SIGKILL);
    waitpid(slot->pid, &status, 0);
    close(slot->pidfd);
    if (slot->step == RUNNING) {
        if (run.verbose)
            printf("%6jd ms ", (intmax_t)(now_ms() - slot->began_ms));
        slot->verdict = status;
        slot_spawn(slot, CLEANING, clean_limit_s(slot->one));
        return;
    }
    slot_judge(slot, status);
    slot_close(slot);
}

static void slot_overdue(struct slot *slot)
{
    if (!slot->killed) {
        dprintf(slot->report[1], "%s after %jd s: killed\n",
                slot->step == RUNNING ? "still running" : "its directory is not removed",
                (intmax_t)(now_ms() - slot->began_ms) / 1000);
        kill(-slot->pid, SIGKILL);
        slot->killed = true;
        slot->due_ms = now_ms() + KILL_GRACE_S * 1000;
        return;
    }
    verdict_failed(slot, "hangs in the kernel, even killed: left behind");
    total.left_behind++;
    close(slot->pidfd);
    slot_close(slot);
}

/* The run */

static int nearest_ms(const struct slot *slots)
{
    int64_t nearest = now_ms() + 1000;

    for (int i = 0; i < run.jobs; i++)
        if (slots[i].step != IDLE && slots[i].due_ms < nearest)
            nearest = slots[i].due_ms;
    nearest -= now_ms();
    return nearest > 0 ? (int)nearest : 0;
}

static void slots_wait(struct slot *slots)
{
    struct pollfd wait[JOBS_MAX];

    for (int i = 0; i < run.jobs; i++)
        wait[i] = (struct pollfd){ .fd = slots[i].step == IDLE ? -1 : slots[i].pidfd,
                                   .events = POLLIN };
    if (poll(wait, (nfds_t)run.jobs, nearest_ms(slots)) < 0)
        return; /* a signal: the caller looks at interrupted */
    for (int i = 0; i < run.jobs; i++)
        if (slots[i].step != IDLE && wait[i].revents)
            slot_reap(&slots[i]);
        else if (slots[i].step != IDLE && now_ms() >= slots[i].due_ms)
            slot_overdue(&slots[i]);
}

static bool globs_match(const struct globs *globs, const char *name)
{
    for (int i = 0; i < globs->count; i++)
        if (fnmatch(globs->pattern[i], name, 0) == 0)
            return true;
    return false;
}

static const struct posix_case *next_wanted(const struct posix_case *one)
{
    while (one && ((run.only.count && !globs_match(&run.only, one->name)) ||
                   globs_match(&run.skip, one->name)))
        one = one->next;
    return one;
}

static bool slots_busy(const struct slot *slots)
{
    for (int i = 0; i < run.jobs; i++)
        if (slots[i].step != IDLE)
            return true;
    return false;
}

static void run_all(void)
{
    static struct slot slots[JOBS_MAX];
    const struct posix_case *next = next_wanted(posix_cases);

    while (!interrupted && (next || slots_busy(slots))) {
        for (int i = 0; i < run.jobs && next; i++)
            if (slots[i].step == IDLE) {
                slot_start(&slots[i], next);
                next = next_wanted(next->next);
            }
        slots_wait(slots);
    }
    for (int i = 0; i < run.jobs; i++)
        if (slots[i].step != IDLE) {
            kill(-slots[i].pid, SIGKILL);
            waitpid(slots[i].pid, NULL, 0);
        }
}

static int list_all(void)
{
    for (const struct posix_case *one = next_wanted(posix_cases); one; one = next_wanted(one->next))
        puts(one->name);
    return 0;
}

/* The command line and the two base directories */

static _Noreturn void usage(void)
{
    fputs("usage: posix-cases [--list] [--only GLOB]... [--skip GLOB]... [--jobs N]\n"
          "                   [--timeout SECONDS] [--control DIR] [--verbose] DIR\n",
          stderr);
    exit(2);
}

static void globs_add(struct globs *globs, const char *pattern)
{
    if (globs->count == GLOBS_MAX)
        usage();
    globs->pattern[globs->count++] = pattern;
}

static int number_of(const char *text, int max)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*end || value < 1 || value > max)
        usage();
    return (int)value;
}

static void parse_options(int argc, char **argv)
{
    static const struct option options[] = {
        { "list", no_argument, NULL, 'l' },          { "only", required_argument, NULL, 'o' },
        { "skip", required_argument, NULL, 's' },    { "jobs", required_argument, NULL, 'j' },
        { "timeout", required_argument, NULL, 't' }, { "control", required_argument, NULL, 'c' },
        { "verbose", no_argument, NULL, 'v' },       { 0 },
    };

    for (int key; (key = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (key) {
        case 'l':
            run.list = true;
            break;
        case 'o':
            globs_add(&run.only, optarg);
            break;
        case 's':
            globs_add(&run.skip, optarg);
            break;
        case 'j':
            run.jobs = number_of(optarg, JOBS_MAX);
            break;
        case 't':
            run.timeout_s = number_of(optarg, 86400);
            break;
        case 'c':
            run.control = optarg;
            break;
        case 'v':
            run.verbose = true;
            break;
        default:
            usage();
        }
    if (optind + !run.list != argc)
        usage();
    run.dir = argv[optind];
}

static void make_base(const char *dir, char base[BASE_BYTES_MAX])
{
    char *real = realpath(dir, NULL);
    int bytes = snprintf(base, BASE_BYTES_MAX, "%s/posix-cases-%d", real ? real : dir,
                         (int)getpid());

    free(real);
    if (bytes >= BASE_BYTES_MAX || mkdir(base, 0755) < 0 || chmod(base, 0755) < 0) {
        fprintf(stderr, "posix-cases: cannot make a directory in %s: %s\n", dir,
                strerror(bytes >= BASE_BYTES_MAX ? ENAMETOOLONG : errno));
        exit(2);
    }
}

static void remove_base(const char *base)
{
    int ret = total.left_behind ? -EBUSY : remove_entry(AT_FDCWD, base);

    if (ret < 0)
        fprintf(stderr, "posix-cases: cannot remove %s: %s\n", base, strerror(-ret));
}

static void catch_interrupts(void)
{
    struct sigaction action = { .sa_handler = note_interrupt };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void check_names(void)
{
    for (const struct posix_case *one = posix_cases; one; one = one->next)
        for (const struct posix_case *other = one->next; other; other = other->next)
            if (strcmp(one->name, other->name) == 0) {
                fprintf(stderr, "posix-cases: two cases are named %s\n", one->name);
                exit(2);
            }
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    parse_options(argc, argv);
    check_names();
    if (run.list)
        return list_all();
    if (!next_wanted(posix_cases)) {
        fputs("posix-cases: no case has such a name\n", stderr);
        return 2;
    }
    if (geteuid() != 0) {
        fputs("posix-cases: must be root: the cases make users, owners and devices\n", stderr);
        return 2;
    }
    catch_interrupts();
    make_base(run.dir, run.base);
    if (run.control)
        make_base(run.control, run.control_base);
    run_all();
    remove_base(run.base);
    if (run.control)
        remove_base(run.control_base);
    printf("%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped);
    return interrupted ? 2 : total.failed > 0;
}
