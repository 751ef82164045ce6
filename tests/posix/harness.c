/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cases' toolbox: see harness.h. A check that fails writes one line to the runner and ends the
 * process; a parent that joins such a child ends the same way. The runner shows the first line. */
#include "harness.h"

#include <grp.h>
#include <poll.h>
#include <stdarg.h>

struct posix_case *posix_cases;
int report_fd = STDERR_FILENO;
const char *control_dir;

static struct {
    const char *file;
    int line;
} caller;

void case_register(struct posix_case *one)
{
    static struct posix_case **tail = &posix_cases;

    *tail = one;
    tail = &one->next;
}

/* Reporting */

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static const char *errno_name(int number)
{
    const char *name = number == 0 ? "0" : strerrorname_np(number);

    return name ? name : "an unknown errno";
}

static void report(const char *line, int bytes)
{
    ssize_t written = write(report_fd, line, (size_t)bytes);

    (void)written; /* the exit status tells the runner all the same */
}

void case_fail(const char *file, int line, const char *format, ...)
{
    char text[REPORT_BYTES_MAX];
    size_t used = 0;
    va_list args;

    used += (size_t)snprintf(text, sizeof(text), "%s:%d: ", basename_of(file), line);
    va_start(args, format);
    used += (size_t)vsnprintf(text + used, sizeof(text) - used, format, args);
    va_end(args);
    if (used > sizeof(text) - 2)
        used = sizeof(text) - 2;
    text[used++] = '\n';
    report(text, (int)used);
    _exit(EXIT_CASE_FAILED);
}

void case_skip(const char *format, ...)
{
    char text[REPORT_BYTES_MAX];
    va_list args;
    int used;

    va_start(args, format);
    used = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report(text, used < (int)sizeof(text) ? used : (int)sizeof(text) - 1);
    _exit(EXIT_CASE_SKIPPED);
}

void case_at(const char *file, int line)
{
    caller.file = file;
    caller.line = line;
}

/* Fails at the line that called the helper. */
#define FAIL_CALLER(...) case_fail(caller.file, caller.line, __VA_ARGS__)

void check_true(const char *file, int line, const char *text, bool truth)
{
    if (!truth)
        case_fail(file, line, "%s does not hold (errno %s)", text, errno_name(errno));
}

intmax_t check_ok(const char *file, int line, const char *text, intmax_t got)
{
    if (got == -1)
        case_fail(file, line, "%s failed: %s", text, errno_name(errno));
    return got;
}

void check_fails(const char *file, int line, const char *text, int want, int other, intmax_t got)
{
    int saw = errno;

    if (got != -1)
        case_fail(file, line, "%s returned %jd, wanted %s", text, got, errno_name(want));
    if (saw != want && saw != other)
        case_fail(file, line, "%s failed with %s, wanted %s", text, errno_name(saw),
                  errno_name(want));
}

void check_eq(const char *file, int line, const char *text, intmax_t got, intmax_t want)
{
    if (got != want)
        case_fail(file, line, "%s: got %jd (0%jo), wanted %jd (0%jo)", text, got, got, want, want);
}

void check_str_eq(const char *file, int line, const char *text, const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        case_fail(file, line, "%s: got \"%.200s\", wanted \"%.200s\"", text, got, want);
}

/* Children and gates */

pid_t child_fork(void)
{
    pid_t kid = fork();

    if (kid < 0)
        FAIL("fork failed: %s", errno_name(errno));
    return kid;
}

bool child_is_here(pid_t kid)
{
    if (kid == 0)
        return true;
    child_join(kid);
    return false;
}

void child_join(pid_t kid)
{
    int status;

    while (waitpid(kid, &status, 0) < 0)
        if (errno != EINTR)
            FAIL("waitpid failed: %s", errno_name(errno));
    if (WIFSIGNALED(status))
        FAIL("a child was killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        _exit(WEXITSTATUS(status)); /* it has told the runner why */
}

void child_exit(void)
{
    _exit(0);
}

bool become(int uid, int gid, int extra)
{
    gid_t group = (gid_t)extra;

    OK(setgroups(extra == NO_GROUP ? 0 : 1, &group));
    OK(setresgid((gid_t)gid, (gid_t)gid, (gid_t)gid));
    OK(setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid));
    return true;
}

struct gate gate_new(void)
{
    struct gate gate;

    OK(pipe(gate.fd));
    return gate;
}

void gate_open(struct gate gate)
{
    EQ(write(gate.fd[1], "", 1), 1);
}

void gate_wait(struct gate gate)
{
    char token;

    EQ(read(gate.fd[0], &token, 1), 1);
}

bool gate_is_open(struct gate gate, int within_ms)
{
    struct pollfd wait = { .fd = gate.fd[0], .events = POLLIN };

    return OK(poll(&wait, 1, within_ms)) == 1;
}

/* Files */

void make_file_(const char *path, mode_t mode)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, mode);

    if (fd < 0)
        FAIL_CALLER("cannot make %.80s: %s", path, errno_name(errno));
    close(fd);
}

int open_file_with_(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);

    if (fd < 0)
        FAIL_CALLER("cannot open %.80s: %s", path, errno_name(errno));
    fd_writes_(fd, 0, text);
    return fd;
}

void write_file_(const char *path, const char *text)
{
    int fd = open_file_with_(path, text);

    if (close(fd) < 0)
        FAIL_CALLER("close of %.80s failed: %s", path, errno_name(errno));
}

void fd_writes_(int fd, off_t offset, const char *text)
{
    size_t bytes = strlen(text);

    if (pwrite(fd, text, bytes, offset) != (ssize_t)bytes)
        FAIL_CALLER("cannot write %zu bytes at %jd: %s", bytes, (intmax_t)offset,
                    errno_name(errno));
}

void fd_reads_(int fd, off_t offset, const char *text)
{
    size_t bytes = strlen(text);
    char *got = malloc(bytes + 2);
    ssize_t ret;

    if (!got)
        FAIL_CALLER("no memory");
    ret = pread(fd, got, bytes + 1, offset);
    if (ret < 0)
        FAIL_CALLER("read at %jd failed: %s", (intmax_t)offset, errno_name(errno));
    got[ret] = '\0';
    if ((size_t)ret != bytes || memcmp(got, text, bytes) != 0)
        FAIL_CALLER("read %zd bytes \"%.80s\", wanted %zu bytes \"%.80s\"", ret, got, bytes, text);
    free(got);
}

void file_reads_(const char *path, const char *text)
{
    int fd = open(path, O_RDONLY);

    if (fd < 0)
        FAIL_CALLER("cannot open %.80s: %s", path, errno_name(errno));
    fd_reads_(fd, 0, text);
    close(fd);
}

enum {
    CHUNK_BYTES = 65536,
};

void fd_fill_(int fd, off_t offset, size_t bytes, int value)
{
    static char chunk[CHUNK_BYTES];

    memset(chunk, value, sizeof(chunk));
    while (bytes > 0) {
        size_t some = bytes < sizeof(chunk) ? bytes : sizeof(chunk);
        if (pwrite(fd, chunk, some, offset) != (ssize_t)some)
            FAIL_CALLER("cannot write %zu bytes at %jd: %s", some, (intmax_t)offset,
                        errno_name(errno));
        bytes -= some;
        offset += (off_t)some;
    }
}

void fd_has_bytes_(int fd, off_t offset, size_t bytes, int value)
{
    static unsigned char chunk[CHUNK_BYTES];

    while (bytes > 0) {
        size_t some = bytes < sizeof(chunk) ? bytes : sizeof(chunk);
        ssize_t ret = pread(fd, chunk, some, offset);
        if (ret != (ssize_t)some)
            FAIL_CALLER("read of %zu at %jd gave %zd: %s", some, (intmax_t)offset, ret,
                        errno_name(errno));
        for (size_t i = 0; i < some; i++)
            if (chunk[i] != value)
                FAIL_CALLER("byte %jd is %#x, wanted %#x", (intmax_t)offset + (intmax_t)i, chunk[i],
                            value);
        bytes -= some;
        offset += (off_t)some;
    }
}

struct stat stat_of_(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        FAIL_CALLER("stat of %.80s failed: %s", path, errno_name(errno));
    return st;
}

struct stat lstat_of_(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        FAIL_CALLER("lstat of %.80s failed: %s", path, errno_name(errno));
    return st;
}

struct stat fstat_of_(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        FAIL_CALLER("fstat failed: %s", errno_name(errno));
    return st;
}

void absent_(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0)
        FAIL_CALLER("%.80s is there", path);
    if (errno != ENOENT)
        FAIL_CALLER("lstat of %.80s failed with %s, wanted ENOENT", path, errno_name(errno));
}

static DIR *dir_open(const char *path)
{
    DIR *dir = opendir(path);

    if (!dir)
        FAIL_CALLER("opendir of %.80s failed: %s", path, errno_name(errno));
    return dir;
}

size_t entries_of_(const char *path)
{
    DIR *dir = dir_open(path);
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(dir)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

int type_listed_(const char *path, const char *name)
{
    DIR *dir = dir_open(path);
    struct dirent *entry;
    int type = -1;

    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, name) == 0)
            type = entry->d_type;
    closedir(dir);
    return type;
}

/* Names and times */

char *name_of(size_t bytes, char letter)
{
    char *name = malloc(bytes + 1);

    if (!name)
        FAIL("no memory");
    memset(name, letter, bytes);
    name[bytes] = '\0';
    return name;
}

char *path_of(size_t bytes, const char *tail)
{
    size_t tail_bytes = strlen(tail);
    char *path = name_of(bytes, '/');

    CHECK(bytes >= tail_bytes + 2);
    path[0] = '.'; /* "./././///tail": odd lengths end in one more slash */
    for (size_t i = 0; i + 1 < bytes - tail_bytes; i += 2)
        path[i] = '.';
    memcpy(path + bytes - tail_bytes, tail, tail_bytes);
    return path;
}

void nap_ms(int ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

void nap(void)
{
    nap_ms(20);
}

bool time_is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

bool time_equals(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

size_t large_dir_entries(void)
{
    const char *text = getenv("POSIX_CASES_ENTRIES");

    return text ? strtoul(text, NULL, 10) : 5000;
}
