/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/error-gen: what is ordered fails, before it reaches the child; the rest does not. */
#include "../features/fixture.h"

#include <errno.h>

extern const struct xlator_type xlator_debug_error_gen;

static int try_op(struct fixture *fx, enum fop op)
{
    struct call call = call_of(NULL, "");
    struct some_args some;
    union fop_reply reply = { 0 };

    some_args_init(&some, fx, op);
    int ret = fop_call(fx->top, &call, op, &some.args, &reply);
    fop_reply_fini(op, &reply);
    some_args_fini(&some, op);
    return ret;
}

static void every_operation_fails_as_ordered(void)
{
    struct fixture *fx = fixture_new(
        &xlator_debug_error_gen,
        (const char *[]){ "failure", "100", "error-no", "ENOTEMPTY", NULL });
    for (enum fop op = 0; op < FOP_COUNT; op++)
        check_equal(try_op(fx, op), -ENOTEMPTY);
    check_equal(fx->count, 0); /* a failed one did nothing */
    check_equal(atoi(fixture_dumped(fx, "failed")), FOP_COUNT);
    fixture_free(fx);
}

static void only_what_enable_names_fails(void)
{
    struct fixture *fx = fixture_new(&xlator_debug_error_gen,
                                     (const char *[]){ "failure", "100%", "error-no", "EIO",
                                                       "enable", "LOOKUP, write,,READ", NULL });
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        bool ordered = op == FOP_LOOKUP || op == FOP_WRITEV || op == FOP_READV;
        check_equal(try_op(fx, op), ordered ? -EIO : 0);
    }
    check_equal(fixture_reconfigure(fx, (const char *[]){ "failure", "100%", "error-no", "EROFS",
                                                          "error-fops", "stat", NULL }), 0);
    check_equal(try_op(fx, FOP_LOOKUP), 0);
    check_equal(try_op(fx, FOP_STAT), -EROFS);
    fixture_free(fx);
}

static void about_so_many_fail(void)
{
    enum { TRIES = 4000 };
    static const struct {
        const char *failure;
        int least, most;
    } rates[] = { { "0", 0, 0 }, { "25", TRIES / 5, TRIES / 3 }, { "0.5", 1, TRIES / 50 },
                  { "100", TRIES, TRIES } };

    for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
        struct fixture *fx = fixture_new(&xlator_debug_error_gen,
                                         (const char *[]){ "failure", rates[i].failure, NULL });
        int failed = 0;
        for (int n = 0; n < TRIES; n++) {
            int ret = try_op(fx, FOP_STATFS);
            check(ret == 0 || ret == -EIO || ret == -EACCES || ret == -ENOMEM);
            failed += ret < 0;
        }
        check(failed >= rates[i].least && failed <= rates[i].most);
        check_equal(atoi(fixture_dumped(fx, "failed")), failed);
        fixture_free(fx);
    }
}

static uint32_t bytes_that_arrived;

static int answer_write(struct fixture *fx, struct call *call, enum fop op, const void *args,
                        void *reply)
{
    (void)fx;
    (void)call;
    (void)reply;
    if (op != FOP_WRITEV)
        return 0;
    bytes_that_arrived = ((const struct writev_args *)args)->payload.bytes;
    return (int)bytes_that_arrived;
}

/* The payload is the caller's before and after: every buffer ends once. */
static void a_short_write_writes_half(void)
{
    static const uint32_t sizes[] = { 0, 1, 2, 4097, 100000, 3 << 20, 16 << 20 };
    struct fixture *fx = fixture_new(
        &xlator_debug_error_gen,
        (const char *[]){ "failure", "100", "error-no", "GF_ERROR_SHORT_WRITE", NULL });
    AUTO(inode) inode = fixture_inode(fx, 1);
    AUTO(fd) fd = fd_new(inode, 2, 1);
    struct buf_stats before, after;

    fx->answer = answer_write;
    buf_get_stats(&before);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct call call = call_of(NULL, "");
        struct writev_args in = { .fd = fd };
        struct writev_reply out = { 0 };
        check_equal(payload_alloc(&in.payload, sizes[i]), 0);
        int ret = fop_writev(fx->top, &call, &in, &out);
        check_equal(ret, (sizes[i] + 1) / 2);
        check_equal(bytes_that_arrived, ret);
        check_equal(in.payload.bytes, sizes[i]);
        for (uint32_t n = 0; n < in.payload.segs; n++)
            check_equal(in.payload.buf[n]->refs, 1);
        payload_fini(&in.payload);
        writev_reply_fini(&out);
    }
    buf_get_stats(&after);
    check_equal(after.used_bytes, before.used_bytes);
    check_equal(try_op(fx, FOP_STAT), 0); /* nothing else can be short */
    inode_unref(TAKE(inode));
    fd_unref(TAKE(fd));
    fixture_free(fx);
}

static void wrong_orders_are_refused(void)
{
    struct fixture *fx;
    check_equal(fixture_try(&xlator_debug_error_gen,
                            (const char *[]){ "error-no", "ENOSUCHERROR", NULL }, &fx), -EINVAL);
    check_equal(fixture_try(&xlator_debug_error_gen,
                            (const char *[]){ "enable", "LOOKUP,WRIGHT", NULL }, &fx), -EINVAL);
    check_equal(fixture_try(&xlator_debug_error_gen,
                            (const char *[]){ "failure", "101", NULL }, &fx), -EINVAL);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(every_operation_fails_as_ordered, PLAIN_ONLY),
    FIBER_CASE(only_what_enable_names_fails, PLAIN_ONLY),
    FIBER_CASE(about_so_many_fail, ALL),
    FIBER_CASE(a_short_write_writes_half, PLAIN_ONLY),
    FIBER_CASE(wrong_orders_are_refused, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
