/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/read-only: with it on, nothing that changes the volume reaches the child. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>

extern const struct xlator_type xlator_features_read_only;

static const enum fop changing[] = {
    FOP_MKNOD, FOP_MKDIR, FOP_UNLINK, FOP_RMDIR, FOP_SYMLINK, FOP_RENAME, FOP_LINK, FOP_TRUNCATE,
    FOP_FTRUNCATE, FOP_CREATE, FOP_WRITEV, FOP_SETXATTR, FOP_FSETXATTR, FOP_REMOVEXATTR,
    FOP_FREMOVEXATTR, FOP_SETATTR, FOP_FSETATTR, FOP_FALLOCATE, FOP_DISCARD, FOP_ZEROFILL, FOP_PUT,
    FOP_ICREATE, FOP_NAMELINK, FOP_COPY_FILE_RANGE, FOP_XATTROP, FOP_FXATTROP,
};

static bool changes(enum fop op)
{
    for (size_t i = 0; i < ARRAY_SIZE(changing); i++)
        if (changing[i] == op)
            return true;
    return false;
}

static int try_op(struct fixture *fx, int32_t pid, enum fop op)
{
    struct call call = call_of(NULL, "");
    struct some_args some;
    union fop_reply reply = { 0 };

    call.pid = pid;
    some_args_init(&some, fx, op);
    if (op == FOP_OPEN)
        some.args.open.flags = O_RDONLY;
    fixture_forget(fx);
    int ret = fop_call(fx->top, &call, op, &some.args, &reply);
    check_equal(fixture_count(fx, op), ret == 0);
    fop_reply_fini(op, &reply);
    some_args_fini(&some, op);
    return ret;
}

static void changes_are_refused_and_the_rest_is_not(void)
{
    struct fixture *fx = fixture_new(&xlator_features_read_only,
                                     (const char *[]){ "read-only", "on", NULL });
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        check_equal(try_op(fx, 100, op), changes(op) ? -EROFS : 0);
        check_equal(try_op(fx, PID_SELF_HEAL, op), 0); /* heal and rebalance go on */
    }
    fixture_free(fx);
}

static void it_is_off_by_default_and_live(void)
{
    struct fixture *fx = fixture_new(&xlator_features_read_only, NULL);

    check_equal(try_op(fx, 100, FOP_MKDIR), 0);
    check_equal(fixture_reconfigure(fx, (const char *[]){ "read-only", "on", NULL }), 0);
    check_equal(try_op(fx, 100, FOP_MKDIR), -EROFS);
    check_equal(fixture_reconfigure(fx, NULL), 0);
    check_equal(try_op(fx, 100, FOP_MKDIR), 0);
    fixture_free(fx);
}

static int try_open(struct fixture *fx, uint32_t flags)
{
    struct call call = call_of(NULL, "");
    struct open_reply reply = { 0 };
    AUTO(inode) inode = fixture_inode(fx, 1);
    AUTO(fd) fd = fd_new(inode, flags, 1);
    const struct open_args in = { .inode = inode, .fd = fd, .flags = flags };
    return fop_open(fx->top, &call, &in, &reply);
}

static void opening_to_read_is_fine(void)
{
    struct fixture *fx = fixture_new(&xlator_features_read_only,
                                     (const char *[]){ "read-only", "on", NULL });
    check_equal(try_open(fx, O_RDONLY), 0);
    check_equal(try_open(fx, O_RDONLY | O_DIRECT | O_NOFOLLOW), 0);
    check_equal(try_open(fx, O_WRONLY), -EROFS);
    check_equal(try_open(fx, O_RDWR), -EROFS);
    check_equal(try_open(fx, O_RDONLY | O_TRUNC), -EROFS);
    check_equal(try_open(fx, O_RDONLY | O_CREAT), -EROFS);
    check_equal(try_open(fx, O_ACCMODE), -EROFS);
    fixture_free(fx);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(changes_are_refused_and_the_rest_is_not, PLAIN_ONLY),
    FIBER_CASE(it_is_off_by_default_and_live, PLAIN_ONLY),
    FIBER_CASE(opening_to_read_is_fine, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
