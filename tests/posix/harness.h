/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
/* What a POSIX case is written with: registration, checks, children, gates and small file helpers.
 *
 *     CASE(unlinked_file_stays_readable_through_its_descriptor)
 *     {
 *         int fd = open_file_with("f", "text");
 *         OK(unlink("f"));
 *         fd_reads(fd, 0, "text");
 *     }
 *
 * A case runs in a process of its own, as root, with umask 0, in a fresh empty directory of mode
 * 0777 that is its working directory and that the runner removes afterwards. The first check that
 * does not hold ends the case; its memory, descriptors and children go with its process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct posix_case {
    const char *name;
    void (*run)(void);
    unsigned limit_s; /* 0: the runner's --timeout */
    struct posix_case *next;
};

/* In the order in which they were registered: by file, then as the file has them. */
extern struct posix_case *posix_cases;
void case_register(struct posix_case *one);

#define CASE_WITHIN(seconds, title)                                                                \
    static void title(void);                                                                       \
    __attribute__((constructor)) static void register_##title(void)                                \
    {                                                                                              \
        static struct posix_case self = { .name = #title, .run = title, .limit_s = (seconds) };    \
        case_register(&self);                                                                      \
    }                                                                                              \
    static void title(void)
#define CASE(title) CASE_WITHIN(0, title)

/* Checks. Each evaluates its argument once. */

#define CHECK(truth) check_true(__FILE__, __LINE__, #truth, (truth))
/* The call did not return -1; its value. */
#define OK(call) check_ok(__FILE__, __LINE__, #call, (intmax_t)(call))
/* The call returned -1 and set errno to want (or, FAILS_EITHER, to one of two). */
#define FAILS(want, call) check_fails(__FILE__, __LINE__, #call, want, want, (intmax_t)(call))
#define FAILS_EITHER(want, other, call)                                                            \
    check_fails(__FILE__, __LINE__, #call, want, other, (intmax_t)(call))
#define EQ(got, want) check_eq(__FILE__, __LINE__, #got " == " #want, (got), (want))
#define STR_EQ(got, want) check_str_eq(__FILE__, __LINE__, #got, (got), (want))
#define FAIL(...) case_fail(__FILE__, __LINE__, __VA_ARGS__)
/* Only for a named thing that is missing on this machine or from the command line. */
#define SKIP(...) case_skip(__VA_ARGS__)

void check_true(const char *file, int line, const char *text, bool truth);
intmax_t check_ok(const char *file, int line, const char *text, intmax_t got);
void check_fails(const char *file, int line, const char *text, int want, int other, intmax_t got);
void check_eq(const char *file, int line, const char *text, intmax_t got, intmax_t want);
void check_str_eq(const char *file, int line, const char *text, const char *got, const char *want);
_Noreturn void case_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void case_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The runner's side: where failures and skips are written, and what the command line gave. */

enum {
    EXIT_CASE_FAILED = 1,
    EXIT_CASE_SKIPPED = 77,
    REPORT_BYTES_MAX = 2000,
};
extern int report_fd;
extern const char *control_dir; /* this case's directory on the control file system, or NULL */

/* Children. A child that fails a check fails the case. */

enum {
    ALICE = 1001, /* unprivileged user ids; each has its own group, same number */
    BOB = 1002,
    NOBODY = 65534,
    TEAM = 2001, /* a group that is nobody's own */
    NO_GROUP = -1,
};

/* The block runs in a child, the case goes on when it is through. */
#define IN_CHILD for (pid_t kid_ = child_fork(); child_is_here(kid_); child_exit())
#define AS_USER(uid, gid) AS_MEMBER(uid, gid, NO_GROUP)
/* ... as that user in that group, with one supplementary group or NO_GROUP. */
#define AS_MEMBER(uid, gid, extra)                                                                 \
    for (pid_t kid_ = child_fork(); child_is_here(kid_) && become(uid, gid, extra); child_exit())

pid_t child_fork(void);        /* 0 in the child */
bool child_is_here(pid_t kid); /* in the parent: joins kid, then false */
void child_join(pid_t kid);    /* kid must exit with 0 */
_Noreturn void child_exit(void);
bool become(int uid, int gid, int extra);

/* A gate between processes, made before the fork. Each opening lets one waiter through. */
struct gate {
    int fd[2];
};
struct gate gate_new(void);
void gate_open(struct gate gate);
void gate_wait(struct gate gate);
bool gate_is_open(struct gate gate, int within_ms);

/* Files. These fail the case at the caller's line. */

#define HERE(call) (case_at(__FILE__, __LINE__), (call))
void case_at(const char *file, int line);

#define make_file(path, mode) HERE(make_file_(path, mode))
#define write_file(path, text) HERE(write_file_(path, text))
#define open_file_with(path, text) HERE(open_file_with_(path, text))
#define file_reads(path, text) HERE(file_reads_(path, text))
#define fd_reads(fd, offset, text) HERE(fd_reads_(fd, offset, text))
#define fd_writes(fd, offset, text) HERE(fd_writes_(fd, offset, text))
#define fd_has_zeros(fd, offset, bytes) HERE(fd_has_bytes_(fd, offset, bytes, 0))
#define fd_has_bytes(fd, offset, bytes, value) HERE(fd_has_bytes_(fd, offset, bytes, value))
#define fd_fill(fd, offset, bytes, value) HERE(fd_fill_(fd, offset, bytes, value))
#define stat_of(path) HERE(stat_of_(path))
#define lstat_of(path) HERE(lstat_of_(path))
#define fstat_of(fd) HERE(fstat_of_(fd))
#define mode_of(path) (HERE(lstat_of_(path)).st_mode & 07777)
#define size_of(path) (HERE(stat_of_(path)).st_size)
#define links_of(path) ((intmax_t)HERE(lstat_of_(path)).st_nlink)
#define inode_of(path) ((intmax_t)HERE(lstat_of_(path)).st_ino)
#define absent(path) HERE(absent_(path))
#define entries_of(path) HERE(entries_of_(path))
#define type_listed(path, name) HERE(type_listed_(path, name))
#define dir_is_empty(path) EQ(entries_of(path), 0)

void make_file_(const char *path, mode_t mode);
void write_file_(const char *path, const char *text);
int open_file_with_(const char *path, const char *text); /* O_RDWR, created or emptied */
void file_reads_(const char *path, const char *text);    /* this and nothing more */
void fd_reads_(int fd, off_t offset, const char *text);  /* this and nothing more */
void fd_writes_(int fd, off_t offset, const char *text);
void fd_has_bytes_(int fd, off_t offset, size_t bytes, int value);
void fd_fill_(int fd, off_t offset, size_t bytes, int value);
struct stat stat_of_(const char *path);
struct stat lstat_of_(const char *path);
struct stat fstat_of_(int fd);
void absent_(const char *path);
size_t entries_of_(const char *path);                 /* without . and .. */
int type_listed_(const char *path, const char *name); /* DT_*, -1 when it is not listed */

/* Names and times. */

/* A string of that many times the character, to keep. */
char *name_of(size_t bytes, char letter);
/* A path of just that length to tail in the working directory: "././...tail". */
char *path_of(size_t bytes, const char *tail);
/* Longer than any file system's timestamp is coarse. */
void nap(void);
void nap_ms(int ms);
bool time_is_before(struct timespec a, struct timespec b);
bool time_equals(struct timespec a, struct timespec b);
/* $POSIX_CASES_ENTRIES, or 5000: how many entries a large directory has. */
size_t large_dir_entries(void);
