/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/io-stats: counts agree with what went through. */
#include "../features/fixture.h"

#include <errno.h>

#include "core/log.h"

extern const struct xlator_type xlator_debug_io_stats;

static int io_answer;
static uint64_t io_sleep_ns;

static int answer(struct fixture *fx, struct call *call, enum fop op, const void *args, void *reply)
{
    (void)fx;
    (void)call;
    (void)args;
    (void)reply;
    if (io_sleep_ns)
        env_sleep(io_sleep_ns);
    return op == FOP_READV || op == FOP_WRITEV ? io_answer : 0;
}

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

static void io(struct fixture *fx, enum fop op, int bytes)
{
    io_answer = bytes;
    check_equal(try_op(fx, op), bytes);
}

static struct fixture *counting(const char *const *options)
{
    struct fixture *fx = fixture_new(&xlator_debug_io_stats, options);
    fx->answer = answer;
    io_sleep_ns = 0;
    return fx;
}

static void bytes_and_block_sizes_are_counted(void)
{
    struct fixture *fx = counting(NULL);

    io(fx, FOP_READV, 1);
    io(fx, FOP_READV, 4095);
    io(fx, FOP_READV, 4096);
    io(fx, FOP_READV, 8191);
    io(fx, FOP_READV, -EIO); /* a failed one has no size */
    io(fx, FOP_WRITEV, 1 << 20);
    io(fx, FOP_WRITEV, 1 << 20);
    io(fx, FOP_WRITEV, 512);
    check_equal(atoll(fixture_dumped(fx, "data_read")), 1 + 4095 + 4096 + 8191);
    check_equal(atoll(fixture_dumped(fx, "data_written")), 2 * (1 << 20) + 512);
    check(strcmp(fixture_dumped(fx, "block_1b"), "reads:1 writes:0") == 0);
    check(strcmp(fixture_dumped(fx, "block_2048b"), "reads:1 writes:0") == 0);
    check(strcmp(fixture_dumped(fx, "block_4096b"), "reads:2 writes:0") == 0);
    check(strcmp(fixture_dumped(fx, "block_512b"), "reads:0 writes:1") == 0);
    check(strcmp(fixture_dumped(fx, "block_1048576b"), "reads:0 writes:2") == 0);
    check(fixture_dumped(fx, "block_8192b") == NULL);
    check(strncmp(fixture_dumped(fx, "READ"), "hits:5 failures:1 ", 18) == 0);
    check(strncmp(fixture_dumped(fx, "WRITE"), "hits:3 failures:0 ", 18) == 0);
    fixture_free(fx);
}

static void every_operation_is_counted(void)
{
    struct fixture *fx = counting(NULL);

    io_answer = 0;
    for (enum fop op = 0; op < FOP_COUNT; op++)
        for (unsigned n = 0; n <= op % 3; n++)
            check_equal(try_op(fx, op), 0);
    for (enum fop op = 0; op < FOP_COUNT; op++) {
        char expected[32];
        snprintf(expected, sizeof(expected), "hits:%u failures:0 ", op % 3 + 1);
        const char *line = fixture_dumped(fx, fop_info[op].title);
        check(line && strncmp(line, expected, strlen(expected)) == 0);
        check_equal(fixture_count(fx, op), op % 3 + 1);
    }
    fixture_free(fx);
}

static void latency_is_measured_when_asked_for(void)
{
    struct fixture *fx = counting((const char *[]){ "latency-measurement", "on", NULL });
    unsigned long hits, failures, average, least, most;

    io_sleep_ns = 20 * NS_PER_MS;
    check_equal(try_op(fx, FOP_STAT), 0);
    io_sleep_ns = 0;
    check_equal(try_op(fx, FOP_STAT), 0);
    check_equal(sscanf(fixture_dumped(fx, "STAT"),
                       "hits:%lu failures:%lu avg_ns:%lu min_ns:%lu max_ns:%lu", &hits, &failures,
                       &average, &least, &most), 5);
    check_equal(hits, 2);
    check(most >= 20 * NS_PER_MS && least < most && average >= most / 2);
    check_equal(fixture_reconfigure(fx, (const char *[]){ "latency-measurement", "off", NULL }), 0);
    io_sleep_ns = 60 * NS_PER_MS;
    check_equal(try_op(fx, FOP_STAT), 0);
    check_equal(sscanf(fixture_dumped(fx, "STAT"),
                       "hits:%lu failures:%lu avg_ns:%lu min_ns:%lu max_ns:%lu", &hits, &failures,
                       &average, &least, &most), 5);
    check_equal(hits, 3);
    check(most < 60 * NS_PER_MS);
    fixture_free(fx);
}

struct many {
    struct fixture *fx;
    struct fd *fd;
    unsigned *done;
};

static void many_fiber(void *arg)
{
    struct many *many = arg;
    struct call call = call_of(NULL, "");
    for (int i = 0; i < 2000; i++) {
        struct flush_reply reply = { 0 };
        const struct flush_args in = { .fd = many->fd };
        check_equal(fop_flush(many->fx->top, &call, &in, &reply), 0);
    }
    __atomic_fetch_add(many->done, 1, __ATOMIC_ACQ_REL);
}

static int answer_nothing(struct fixture *fx, struct call *call, enum fop op, const void *args,
                          void *reply)
{
    (void)fx, (void)call, (void)op, (void)args, (void)reply;
    return 0;
}

static void lanes_count_together(void)
{
    struct fixture *fx = counting((const char *[]){ "latency-measurement", "on", NULL });
    unsigned done = 0;
    AUTO(inode) inode = fixture_inode(fx, 1);
    AUTO(fd) fd = fd_new(inode, 2, 1);
    struct many many = { fx, fd, &done };

    fx->answer = answer_nothing;
    lanes_grow(2);
    for (unsigned i = 0; i < 4; i++)
        check_equal(fiber_start_on(lane_get(i % 2), "many", many_fiber, &many), 0);
    await_count(&done, 4);
    check(strncmp(fixture_dumped(fx, "FLUSH"), "hits:8000 failures:0 ", 21) == 0);
    fd_unref(TAKE(fd));
    inode_unref(TAKE(inode));
    fixture_free(fx);
}

static void the_log_level_of_a_volfile_is_the_processs(void)
{
    enum log_level before = log_get_level();
    struct fixture *fx = counting((const char *[]){ "log-level", "WARNING", NULL });

    check_equal(log_get_level(), LOG_WARNING);
    check_equal(fixture_reconfigure(fx, (const char *[]){ "brick-log-level", "DEBUG", NULL }), 0);
    check_equal(log_get_level(), LOG_DEBUG);
    fixture_free(fx);
    log_set_level(before);
    check_equal(fixture_try(&xlator_debug_io_stats, (const char *[]){ "log-level", "LOUD", NULL },
                            &fx), -EINVAL);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(bytes_and_block_sizes_are_counted, PLAIN_ONLY),
    FIBER_CASE(every_operation_is_counted, PLAIN_ONLY),
    FIBER_CASE(latency_is_measured_when_asked_for, REAL),
    FIBER_CASE(lanes_count_together, REAL),
    FIBER_CASE(the_log_level_of_a_volfile_is_the_processs, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
