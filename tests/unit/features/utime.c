/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/utime: the flags of spec/wire.md 1.5 and spec/disk.md 1.7, operation by operation. */
#include "fixture.h"

extern const struct xlator_type xlator_features_utime;

enum { C = TIMES_CTIME, M = TIMES_MTIME, A = TIMES_ATIME, PC = TIMES_PARENT_CTIME,
       PM = TIMES_PARENT_MTIME };

static const struct {
    enum fop op;
    uint32_t times, times_with_atime; /* with noatime on, and off */
} rows[] = {
    { FOP_CREATE, A | C | M | PC | PM, A | C | M | PC | PM },
    { FOP_MKDIR, A | C | M | PC | PM, A | C | M | PC | PM },
    { FOP_MKNOD, A | C | M | PC | PM, A | C | M | PC | PM },
    { FOP_SYMLINK, A | C | M | PC | PM, A | C | M | PC | PM },
    { FOP_UNLINK, C | PC | PM, C | PC | PM },
    { FOP_RMDIR, C | PC | PM, C | PC | PM },
    { FOP_RENAME, C | PC | PM, C | PC | PM },
    { FOP_LINK, C | PC | PM, C | PC | PM },
    { FOP_WRITEV, C | M, C | M },
    { FOP_TRUNCATE, C | M, C | M },
    { FOP_FTRUNCATE, C | M, C | M },
    { FOP_COPY_FILE_RANGE, C | M, C | M },
    { FOP_FALLOCATE, M | A, M | A },
    { FOP_ZEROFILL, M | A, M | A },
    { FOP_SETXATTR, C, C },
    { FOP_FSETXATTR, C, C },
    { FOP_REMOVEXATTR, C, C },
    { FOP_FREMOVEXATTR, C, C },
    { FOP_OPEN, 0, A },
    { FOP_OPENDIR, 0, A },
    { FOP_READV, 0, A },
    { FOP_LOOKUP, 0, 0 },
    { FOP_STAT, 0, 0 },
    { FOP_FSTAT, 0, 0 },
    { FOP_STATFS, 0, 0 },
    { FOP_FLUSH, 0, 0 },
    { FOP_FSYNC, 0, 0 },
    { FOP_LK, 0, 0 },
    { FOP_READDIR, 0, 0 },
    { FOP_READDIRP, 0, 0 },
    { FOP_GETXATTR, 0, 0 },
    { FOP_SEEK, 0, 0 },
};

static struct seen send_op(struct fixture *fx, struct call *call, enum fop op,
                           const union fop_args *args)
{
    union fop_reply reply = { 0 };
    fixture_forget(fx);
    check_equal(fop_call(fx->top, call, op, args, &reply), 0);
    check_equal(fx->count, 1);
    check_equal(fx->seen[0].op, op);
    fop_reply_fini(op, &reply);
    return fx->seen[0];
}

static void every_operation_carries_its_flags(void)
{
    for (int atime = 0; atime < 2; atime++) {
        struct fixture *fx = fixture_new(&xlator_features_utime,
                                         (const char *[]){ "noatime", atime ? "off" : "on", NULL });
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            struct some_args some;
            struct call call = call_of(NULL, "");
            some_args_init(&some, fx, rows[i].op);
            struct seen seen = send_op(fx, &call, rows[i].op, &some.args);
            uint32_t expected = atime ? rows[i].times_with_atime : rows[i].times;
            if (seen.times != expected) {
                fprintf(stderr, "%s: flags %u, not %u\n", fop_info[rows[i].op].name, seen.times,
                        expected);
                abort();
            }
            if (expected)
                check(seen.ctime_sec != 0);
            check(call.times == 0 && call.ctime_sec == 0); /* the call may carry another one */
            some_args_fini(&some, rows[i].op);
        }
        fixture_free(fx);
    }
}

static void setting_times_alone_leaves_ctime_to_the_brick(void)
{
    static const struct {
        int32_t valid;
        uint32_t times;
    } cases_[] = {
        { VALID_ATIME, 0 }, { VALID_MTIME, 0 }, { VALID_ATIME | VALID_MTIME, 0 },
        { VALID_MODE, C }, { VALID_UID, C }, { VALID_GID, C }, { 0, C },
        { VALID_MODE | VALID_ATIME, C }, { VALID_UID | VALID_GID | VALID_MTIME, C },
    };
    struct fixture *fx = fixture_new(&xlator_features_utime, NULL);

    for (size_t i = 0; i < ARRAY_SIZE(cases_); i++) {
        for (int by_fd = 0; by_fd < 2; by_fd++) {
            enum fop op = by_fd ? FOP_FSETATTR : FOP_SETATTR;
            struct call call = call_of(NULL, "");
            struct some_args some;
            some_args_init(&some, fx, op);
            *(by_fd ? &some.args.fsetattr.valid : &some.args.setattr.valid) = cases_[i].valid;
            struct seen seen = send_op(fx, &call, op, &some.args);
            check_equal(seen.times, cases_[i].times);
            check(seen.ctime_sec != 0); /* a stamp is sent in any case */
            some_args_fini(&some, op);
        }
    }
    fixture_free(fx);
}

static void the_stamp_is_the_wall_clock(void)
{
    struct fixture *fx = fixture_new(&xlator_features_utime, NULL);
    struct call call = call_of(NULL, "");
    struct some_args some;
    struct timespec before = env_wallclock();

    some_args_init(&some, fx, FOP_WRITEV);
    struct seen seen = send_op(fx, &call, FOP_WRITEV, &some.args);
    struct timespec after = env_wallclock();
    uint64_t stamp = seen.ctime_sec * NS_PER_S + seen.ctime_nsec;
    check(stamp >= (uint64_t)before.tv_sec * NS_PER_S + (uint64_t)before.tv_nsec);
    check(stamp <= (uint64_t)after.tv_sec * NS_PER_S + (uint64_t)after.tv_nsec);
    some_args_fini(&some, FOP_WRITEV);
    fixture_free(fx);
}

static void stamps_of_others_are_left_alone(void)
{
    struct fixture *fx = fixture_new(&xlator_features_utime, NULL);
    struct call call = call_of(NULL, "");
    struct some_args some;

    some_args_init(&some, fx, FOP_WRITEV);
    call.times = TIMES_MTIME;
    call.ctime_sec = 5;
    call.ctime_nsec = 6;
    struct seen seen = send_op(fx, &call, FOP_WRITEV, &some.args);
    check_equal(seen.times, TIMES_MTIME);
    check_equal(seen.ctime_sec, 5);
    check_equal(seen.ctime_nsec, 6);
    check_equal(call.times, TIMES_MTIME);
    some_args_fini(&some, FOP_WRITEV);
    fixture_free(fx);
}

static void noatime_changes_while_running(void)
{
    struct fixture *fx = fixture_new(&xlator_features_utime, NULL);
    struct call call = call_of(NULL, "");
    struct some_args some;

    some_args_init(&some, fx, FOP_READV);
    check_equal(send_op(fx, &call, FOP_READV, &some.args).times, 0); /* the default is on */
    check_equal(fixture_reconfigure(fx, (const char *[]){ "noatime", "off", NULL }), 0);
    check_equal(send_op(fx, &call, FOP_READV, &some.args).times, TIMES_ATIME);
    some_args_fini(&some, FOP_READV);
    fixture_free(fx);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(every_operation_carries_its_flags, PLAIN_ONLY),
    FIBER_CASE(setting_times_alone_leaves_ctime_to_the_brick, PLAIN_ONLY),
    FIBER_CASE(the_stamp_is_the_wall_clock, ALL),
    FIBER_CASE(stamps_of_others_are_left_alone, PLAIN_ONLY),
    FIBER_CASE(noatime_changes_while_running, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
