/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A tiny graph: the translator under test over a child that records what reaches it.
 *
 *     struct fixture *fx = fixture_new(&xlator_x, (const char *[]){ "trace", "on", NULL });
 *     fx->answer = my_answer;                          // else every operation succeeds
 *     struct call call = call_of(client, "owner");
 *     check_equal(fop_flush(fx->top, &call, &in, &out), 0);
 *     check_equal(fixture_count(fx, FOP_FLUSH), 1);
 *     fixture_free(fx);                                // nothing may be left referenced
 */
#pragma once

#include "../core/backends.h"
#include "graph/dump.h"
#include "graph/fop_call.h"

struct fixture;
/* What the child answers to an operation. */
typedef int fixture_answer_fn(struct fixture *fx, struct call *call, enum fop op, const void *args,
                              void *reply);

struct seen { /* one operation that reached the child */
    enum fop op;
    struct inode *inode; /* compared, never followed */
    char name[64];
    int32_t pid;
    uint32_t uid, times, ctime_nsec;
    uint64_t ctime_sec;
};

struct fixture {
    struct graph graph;
    struct xlator *top, *child;
    pthread_mutex_t mutex; /* over seen */
    struct seen *seen;
    unsigned count, room;
    fixture_answer_fn *answer;
    void *arg;
};

/* options: key, value, ..., NULL; or NULL. The test ends when they are no good. */
struct fixture *fixture_new(const struct xlator_type *type, const char *const *options);
/* The same, but what init or the options say; *ret_fx only on success. */
int fixture_try(const struct xlator_type *type, const char *const *options,
                struct fixture **ret_fx);
/* Stacks another translator over the top. */
void fixture_push(struct fixture *fx, const struct xlator_type *type, const char *const *options);
/* New options for the top, as graph_reconfigure applies them; what reconfigure says. */
int fixture_reconfigure(struct fixture *fx, const char *const *options);
void fixture_free(struct fixture *fx);

unsigned fixture_count(struct fixture *fx, enum fop op); /* how often it reached the child */
void fixture_forget(struct fixture *fx);                 /* what was seen so far */
/* The value of the top's dump under that key, in static memory; NULL: no such line. */
const char *fixture_dumped(struct fixture *fx, const char *key);
/* Lines of the dump with that key. */
unsigned fixture_dump_lines(struct fixture *fx, const char *key);

gfid_t gfid_of(uint32_t n); /* ...n, never the root's */
struct inode *fixture_inode(struct fixture *fx, uint32_t n);
struct call call_of(struct client *client, const char *owner);
/* Waits until *count is n; the test ends when that takes 10 s. */
void await_count(const unsigned *count, unsigned n);
/* Arguments of any operation: drawn at random (unit/fop/sample.h), on an inode and an fd of the
 * fixture's. */
struct some_args {
    union fop_args args;
    struct inode *inode;
    struct fd *fd;
};
void some_args_init(struct some_args *some, struct fixture *fx, enum fop op);
void some_args_fini(struct some_args *some, enum fop op);
