/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/trace: two lines an operation, in the log, in the history, or nowhere. */
#include "../features/fixture.h"

#include <errno.h>

#include "core/log.h"

extern const struct xlator_type xlator_debug_trace;

static int answer(struct fixture *fx, struct call *call, enum fop op, const void *args, void *reply)
{
    (void)fx, (void)call, (void)args, (void)reply;
    return op == FOP_UNLINK ? -ENOTEMPTY : 0;
}

static int try_op(struct fixture *fx, enum fop op)
{
    struct call call = call_of(NULL, "");
    struct some_args some;
    union fop_reply reply = { 0 };

    fx->answer = answer;
    some_args_init(&some, fx, op);
    int ret = fop_call(fx->top, &call, op, &some.args, &reply);
    fop_reply_fini(op, &reply);
    some_args_fini(&some, op);
    return ret;
}

static void the_history_keeps_two_lines_an_operation(void)
{
    struct fixture *fx = fixture_new(&xlator_debug_trace,
                                     (const char *[]){ "log-history", "yes", NULL });
    for (enum fop op = 0; op < FOP_COUNT; op++)
        check_equal(try_op(fx, op), op == FOP_UNLINK ? -ENOTEMPTY : 0);
    check_equal(fx->count, FOP_COUNT);
    check_equal(fixture_dump_lines(fx, "history"), 2 * FOP_COUNT);
    fixture_free(fx);
}

static void lines_name_who_did_what_to_what_and_the_result(void)
{
    struct fixture *fx = fixture_new(&xlator_debug_trace,
                                     (const char *[]){ "log-history", "yes", NULL });
    struct call call = call_of(NULL, "");
    AUTO(inode) inode = fixture_inode(fx, 9);
    struct unlink_reply reply = { 0 };
    char gfid[UUID_TEXT_SIZE];
    char *text = NULL;
    size_t bytes;

    fx->answer = answer;
    const struct unlink_args in = { .parent = inode, .name = "some-name" };
    check_equal(fop_unlink(fx->top, &call, &in, &reply), -ENOTEMPTY);
    struct dump dump = { .out = open_memstream(&text, &bytes) };
    fx->top->type->dump(fx->top, &dump);
    fclose(dump.out);
    check(strstr(text, "UNLINK gfid=") != NULL);
    check(strstr(text, gfid_format(&inode->gfid, gfid)) != NULL);
    check(strstr(text, "name=some-name pid=100 uid=1000") != NULL);
    check(strstr(text, "UNLINK pid=100 -> -39 ENOTEMPTY in ") != NULL);
    free(text);
    inode_unref(TAKE(inode));
    fixture_free(fx);
}

static void the_history_keeps_the_latest(void)
{
    struct fixture *fx = fixture_new(&xlator_debug_trace,
                                     (const char *[]){ "log-history", "yes", NULL });
    check_equal(try_op(fx, FOP_STAT), 0);
    for (int i = 0; i < 128; i++)
        check_equal(try_op(fx, FOP_LOOKUP), 0);
    check_equal(fixture_dump_lines(fx, "history"), 256);
    check(strncmp(fixture_dumped(fx, "history"), "LOOKUP gfid=", 12) == 0); /* STAT fell out */
    fixture_free(fx);
}

static unsigned lines_after(const char *const *options)
{
    struct fixture *fx = fixture_new(&xlator_debug_trace, options);
    for (enum fop op = 0; op < FOP_COUNT; op++)
        (void)try_op(fx, op);
    unsigned lines = fixture_dump_lines(fx, "history");
    fixture_free(fx);
    return lines;
}

static void operations_are_chosen(void)
{
    check_equal(lines_after(NULL), 0); /* nobody asked */
    check_equal(lines_after((const char *[]){ "log-history", "on", "include-ops", "STAT,LOOKUP",
                                              NULL }), 4);
    check_equal(lines_after((const char *[]){ "log-history", "on", "exclude-ops", "STAT,LOOKUP",
                                              NULL }), 2 * (FOP_COUNT - 2));
    check_equal(lines_after((const char *[]){ "log-history", "on", "include", "STAT,LOOKUP",
                                              "exclude", "STAT", NULL }), 2);
    /* nothing named is nothing left out */
    check_equal(lines_after((const char *[]){ "log-history", "on", "exclude-ops", " , ", NULL }),
                2 * FOP_COUNT);
}

static void the_log_gets_them_when_asked(void)
{
    char path[] = "/tmp/mortar-trace-XXXXXX", text[8192] = "";
    int fd = mkstemp(path);
    struct fixture *fx = fixture_new(&xlator_debug_trace,
                                     (const char *[]){ "log-file", "yes", NULL });

    check(fd >= 0);
    check_equal(log_open(&(struct log_config){ .path = path, .level = LOG_INFO }), 0);
    check_equal(try_op(fx, FOP_UNLINK), -ENOTEMPTY);
    check_equal(fixture_reconfigure(fx, (const char *[]){ "log-file", "no", NULL }), 0);
    check_equal(try_op(fx, FOP_RMDIR), 0);
    log_close();
    check(read(fd, text, sizeof(text) - 1) > 0);
    check(strstr(text, "UNLINK gfid=") != NULL && strstr(text, "-> -39 ENOTEMPTY") != NULL);
    check(strstr(text, "RMDIR") == NULL);
    close(fd);
    unlink(path);
    fixture_free(fx);
}

static void unknown_operations_are_refused(void)
{
    struct fixture *fx;
    check_equal(fixture_try(&xlator_debug_trace, (const char *[]){ "include-ops", "NOOP", NULL },
                            &fx), -EINVAL);
    check_equal(fixture_try(&xlator_debug_trace, (const char *[]){ "exclude-ops", "NOOP", NULL },
                            &fx), -EINVAL);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(the_history_keeps_two_lines_an_operation, PLAIN_ONLY),
    FIBER_CASE(lines_name_who_did_what_to_what_and_the_result, PLAIN_ONLY),
    FIBER_CASE(the_history_keeps_the_latest, PLAIN_ONLY),
    FIBER_CASE(operations_are_chosen, PLAIN_ONLY),
    FIBER_CASE(the_log_gets_them_when_asked, PLAIN_ONLY),
    FIBER_CASE(unknown_operations_are_refused, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
