/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of fsdiff: operations (fsdiff_ops.c), how they are shown and as whom they are done
 * (fsdiff_run.c), trees and outcomes (fsdiff_tree.c), main (fsdiff.c). */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 12, /* files that are open at a time */
    HISTORY = 4096,
    PATH_BYTES = 700,
    DEPTH_MAX = 5,
    ENTRIES_MAX = 400, /* paths that are known; from half of it, more is removed */
    REBUILD_EVERY = 50,
    NAMES_MAX = 4096,
    TEXT_BYTES = 1024,
    OP_TEXT_BYTES = 4 * PATH_BYTES + 512,
    FILE_BYTES_MAX = 1536 * 1024,
    IO_BYTES_MAX = 192 * 1024,
    XATTR_BYTES_MAX = 80,
    USERS = 3, /* user 0 is root */
};

/* Which members of an operation mean something. */
enum {
    PATH = 1,
    PATH2 = 2,
    SLOT = 4,
    SLOT2 = 8,
    FLAGS = 16,
    MODE = 32,
    OFFSET = 64,
    OFFSET2 = 128,
    LENGTH = 256,
    OWNER = 512,
    TIMES = 1024,
    XATTR = 2048,
};

struct side {
    const char *name, *dir;
    int root_fd;
    int fd[SLOTS];
};

struct entry {
    char path[PATH_BYTES];
    mode_t type; /* the S_IFMT bits */
};

struct op {
    const struct kind *kind;
    int user, slot, slot2;
    int base; /* the slot of a directory that path starts from, or -1 */
    bool odd; /* a path that is not the entry's own: the table stays */
    char path[PATH_BYTES], path2[PATH_BYTES];
    char xattr[300];
    int flags, flags2;
    mode_t mode, umask;
    uid_t uid;
    gid_t gid;
    int64_t offset, offset2;
    uint64_t length, data_seed;
    struct timespec times[2];
};

/* What a side made of an operation. ret is -1 with err, or what is comparable of the result. */
struct outcome {
    int64_t ret;
    int err;
    char text[TEXT_BYTES]; /* attributes, names, whatever reads well */
    unsigned char *data;
    size_t data_bytes;
};

struct kind {
    const char *name, *group;
    int weight;
    unsigned fields; /* PATH and so on */
    void (*choose)(struct op *op);
    void (*act)(const struct op *op, struct side *side, struct outcome *out);
    void (*after)(const struct op *op, const struct outcome *out);
    bool off; /* only by --with or --only */
};

struct names {
    char **name;
    int count;
};

extern struct side side[2];
extern struct entry table[ENTRIES_MAX];
extern int entries;
extern int64_t began_s;
extern struct kind kinds[];

/* fsdiff.c */
uint64_t mix(uint64_t x);
uint64_t any(uint64_t below);
bool chance(int percent);
noreturn void die(const char *what);

/* fsdiff_ops.c */
int kind_weight(const struct kind *kind);
void kind_count(const struct kind *kind, bool succeeded);
void kinds_switch(const char *list, bool on);
void kinds_print(void);
void op_choose(struct op *op);
void slots_close_all(void);
bool slot_is_direct(int slot);
void ops_start(void);

/* fsdiff_run.c */
void op_print(const struct op *op, char *text, size_t bytes);
void users_start(void);
void user_run(const struct op *op, struct side *one, struct outcome *out);

/* fsdiff_tree.c */
void outcome_reset(struct outcome *out);
bool outcome_equal(const struct outcome *a, const struct outcome *b);
void outcome_print(const char *name, const struct outcome *out);
void outcome_print_data_difference(const struct outcome *a, const struct outcome *b);
int names_read(int dir_fd, struct names *names); /* sorted, without . and .. */
void names_free(struct names *names);
void stat_text(const struct stat *st, bool is_root, char *text, size_t bytes);
bool time_is_of_the_clock(const struct timespec *ts);
void xattrs_text(const char *path, char *text, size_t bytes); /* user.*, sorted */
bool tree_compare(const char *when);
int remove_below(int dir_fd);
bool plant_exists(const char *what);
void plant(const char *what);
