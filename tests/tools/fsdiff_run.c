/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How fsdiff shows an operation, and as whom it is done. */
#include "fsdiff.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>

/* ---------------------------------------------------------------- printing */

static size_t append(char *text, size_t bytes, size_t used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t append(char *text, size_t bytes, size_t used, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int added = vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
    return used + (size_t)added < bytes ? used + (size_t)added : bytes - 1;
}

static size_t append_path(char *text, size_t bytes, size_t used, const char *what, const char *path)
{
    used = append(text, bytes, used, " %s=\"", what);
    for (; *path; path++)
        used = append(text, bytes, used, *path < ' ' && *path >= 0 ? "\\x%02x" : "%c", *path);
    return append(text, bytes, used, "\"");
}

void op_print(const struct op *op, char *text, size_t bytes)
{
    unsigned fields = op->kind->fields;
    size_t used = append(text, bytes, 0, "%s", op->kind->name);

    if (op->user)
        used = append(text, bytes, used, " as user %d", 999 + op->user);
    if (fields & PATH2)
        used = append_path(text, bytes, used, "from", op->path2);
    if (fields & PATH)
        used = append_path(text, bytes, used, "path", op->path);
    if (op->base >= 0)
        used = append(text, bytes, used, " at=%d", op->base);
    if (fields & SLOT)
        used = append(text, bytes, used, " fd=%d%s", op->slot,
                      slot_is_direct(op->slot) ? "(direct)" : "");
    if (fields & FLAGS)
        used = append(text, bytes, used, " flags=0%o", (unsigned)op->flags);
    if (fields & MODE)
        used = append(text, bytes, used, " mode=%06o umask=%03o", op->mode, op->umask);
    if (fields & OFFSET)
        used = append(text, bytes, used, " offset=%" PRId64, op->offset);
    if (fields & SLOT2)
        used = append(text, bytes, used, " to-fd=%d", op->slot2);
    if (fields & OFFSET2)
        used = append(text, bytes, used, " to-offset=%" PRId64, op->offset2);
    if (fields & XATTR)
        used = append(text, bytes, used, " name=%s", op->xattr);
    if (fields & LENGTH)
        used = append(text, bytes, used, " bytes=%" PRIu64, op->length);
    if (fields & OWNER)
        used = append(text, bytes, used, " owner=%d:%d", (int)op->uid, (int)op->gid);
    if (fields & TIMES)
        append(text, bytes, used, " times=%" PRId64 ".%ld,%" PRId64 ".%ld",
               (int64_t)op->times[0].tv_sec, op->times[0].tv_nsec, (int64_t)op->times[1].tv_sec,
               op->times[1].tv_nsec);
}

/* ---------------------------------------------------------------- users */

/* A thread for each, with its own credentials (the raw system calls change only a thread's):
 * root's is the main one. They take turns, so the rest of the program has one thread in effect. */
static struct user {
    uid_t uid;
    gid_t gid, group;
    pthread_t thread;
    sem_t go, is_done;
    const struct op *op;
    struct side *side;
    struct outcome *out;
} users[USERS] = {
    { .uid = 0 },
    { .uid = 1000, .gid = 1000, .group = 2000 },
    { .uid = 1001, .gid = 1001, .group = 2000 },
};

static void *user_thread(void *context)
{
    struct user *user = context;

    if (syscall(SYS_setgroups, 1, &user->group) < 0 ||
        syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0 ||
        syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
        die("cannot become another user");
    for (;;) {
        sem_wait(&user->go);
        user->op->kind->act(user->op, user->side, user->out);
        sem_post(&user->is_done);
    }
    return NULL;
}

void users_start(void)
{
    for (int i = 1; i < USERS; i++) {
        sem_init(&users[i].go, 0, 0);
        sem_init(&users[i].is_done, 0, 0);
        errno = pthread_create(&users[i].thread, NULL, user_thread, &users[i]);
        if (errno)
            die("thread");
    }
}

void user_run(const struct op *op, struct side *one, struct outcome *out)
{
    struct user *user = &users[op->user];

    if (fchdir(one->root_fd) < 0)
        die("fchdir");
    if (op->user == 0) {
        op->kind->act(op, one, out);
        return;
    }
    user->op = op;
    user->side = one;
    user->out = out;
    sem_post(&user->go);
    sem_wait(&user->is_done);
}
