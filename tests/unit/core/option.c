/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors and texts are those of spec/volfile.md 2, checked against the genuine 10.3 programs. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/env.h"
#include "core/option.h"

struct holder {
    bool flag;
    int64_t count;
    uint64_t size, wait_ns;
    double share;
    struct option_amount reserve;
    char *mode, *directory, *host, *hosts;
};

static const char *const modes[] = { "server", "client", "tcp?(/server)", NULL };

static const struct option rows[] = {
    OPTION_BOOL(struct holder, flag, "flag", .fallback = "on", .flags = OPTION_LIVE),
    OPTION_INT(struct holder, count, "thread-count", .min = 1, .max = 64, .fallback = "16",
               .flags = OPTION_LIVE, .aliases = { "threads", "old-threads" }),
    OPTION_INT(struct holder, count, "at-least", .min = -1),
    OPTION_INT(struct holder, count, "not-negative", .flags = OPTION_MIN_ONLY),
    OPTION_SIZE(struct holder, size, "cache-size", .min = 4 << 20, .max = INFINITY,
                .fallback = "32MB"),
    OPTION_PERCENT(struct holder, share, "share", .fallback = "80%"),
    OPTION_AMOUNT(struct holder, reserve, "reserve", .fallback = "1"),
    OPTION_TIME(struct holder, wait_ns, "wait", .max = 1800e9, .fallback = "100ms"),
    OPTION_STR(struct holder, mode, "mode", .values = modes, .flags = OPTION_LIVE),
    OPTION_PATH(struct holder, directory, "directory", .fallback = "/x"),
    OPTION_ADDRESS(struct holder, host, "host"),
    OPTION_(struct holder, hosts, OPT_ADDRESS_LIST, "hosts"),
    OPTION_NONE(OPT_PRIORITY_LIST, "priority"),
    OPTION_GLOB(OPT_ADDRESS_LIST, "auth.addr.*.allow", .aliases = { "auth.allow" }),
    OPTION_GLOB(OPT_ANY, "transport.*"),
    OPTION_INT(struct holder, count, "transport.backlog"),
    OPTION_END,
};

/* "" for a good value, else the text. */
static const char *verdict(const char *key, const char *value)
{
    static char error[OPTION_ERROR_SIZE];
    struct option_set set = { 0 };

    error[0] = '\0';
    assert_int_equal(option_set_put(&set, key, value), 0);
    int ret = options_validate(rows, "vol", &set, error);
    option_set_fini(&set);
    assert_int_equal(ret, error[0] ? -EINVAL : 0);
    return error;
}

static void values_are_judged_with_the_known_texts(void **state)
{
    static const struct {
        const char *key, *value, *text;
    } cases[] = {
        { "thread-count", "8", "" },
        { "thread-count", " 0x10", "" },
        { "thread-count", "010", "" },
        { "thread-count", "12x", "invalid number format \"12x\" in option \"thread-count\"" },
        { "thread-count", "0888", "invalid number format \"0888\" in option \"thread-count\"" },
        { "thread-count", "-0", "invalid number format \"-0\" in option \"thread-count\"" },
        { "thread-count", "100",
          "'100' in 'option thread-count 100' is out of range [1 - 64]" },
        { "at-least", "-1", "" },
        { "at-least", "-2", "'-2' in 'option at-least -2' is smaller than minimum value '-1'" },
        { "not-negative", "-2",
          "'-2' in 'option not-negative -2' is smaller than minimum value '0'" },
        { "not-negative", "0", "" },
        { "cache-size", "64TB", "" },
        { "cache-size", "64XB", "invalid number format \"64XB\" in option \"cache-size\"" },
        { "cache-size", "64M", "invalid number format \"64M\" in option \"cache-size\"" },
        { "cache-size", "64MiB", "invalid number format \"64MiB\" in option \"cache-size\"" },
        { "cache-size", "64 MB", "invalid number format \"64 MB\" in option \"cache-size\"" },
        { "cache-size", "-5", "invalid number format \"-5\" in option \"cache-size\"" },
        { "cache-size", "1MB",
          "'1048576' in 'option cache-size 1MB' is out of range [4194304 - inf]" },
        { "share", "50", "" },
        { "share", "12.5%", "" },
        { "share", "abc", "invalid percent format \"abc\" in \"option share\"" },
        { "share", "nan", "invalid percent format \"nan\" in \"option share\"" },
        { "share", "150%", "'150.000000' in 'option share 150%' is out of range [0 - 100]" },
        { "reserve", "10%", "" },
        { "reserve", "10GB", "" },
        { "reserve", "10.5%", "" },
        { "reserve", "150%", "'150.000000' in 'option reserve 150%' is out of range [0 - 100]" },
        { "reserve", "1.5GB",
          "'1610612736.000000' in 'option reserve 1.5GB' should not be fractional value. "
          "Use valid unsigned integer value." },
        { "reserve", "10.x", "invalid number format \"10.x\" in \"option reserve\"" },
        { "reserve", "5B", "invalid number format \"5B\" in \"option reserve\"" },
        { "reserve", "-5", "invalid number format \"-5\" in \"option reserve\"" },
        { "wait", "5s", "" },
        { "wait", "30min", "" },
        { "wait", "1day", "invalid time format \"1day\" in \"option wait\"" },
        { "wait", "2 min", "invalid time format \"2 min\" in \"option wait\"" },
        { "wait", "-5", "invalid time format \"-5\" in \"option wait\"" },
        { "wait", "1.5", "invalid time format \"1.5\" in \"option wait\"" },
        { "wait", "3000", "'3000' in 'option wait 3000' is out of range [0 - 1800]" },
        { "flag", "YES", "" },
        { "flag", "Disable", "" },
        { "flag", "maybe", "option flag maybe: 'maybe' is not a valid boolean value" },
        { "flag", "  ", "option flag   : '  ' is not a valid boolean value" },
        { "mode", "client", "" },
        { "mode", "tcp/server", "" },
        { "mode", "Client",
          "option mode Client: 'Client' is not valid (possible options are server, client, "
          "tcp?(/server).)" },
        { "directory", "/a/b", "" },
        { "directory", "abc", "option directory abc: 'abc' is not an absolute path name" },
        { "directory", "/a/../b", "invalid path given '/a/../b'" },
        { "host", "server-1.example.com", "" },
        { "host", "fe80::1%eth0", "" },
        { "host", "1.2.3.300", "option host 1.2.3.300: Can not parse 1.2.3.300 address" },
        { "host", "a b", "option host a b: Can not parse a b address" },
        { "hosts", "a,10.1.2.0/24,192.168.*,::1,*", "" },
        { "hosts", "!10.0.0.1,*", "" },
        { "hosts", "a,,b", "" },
        { "hosts", "/d(10.1.1.1|h),/e(*)", "" },
        { "hosts", "a b", "option hosts a b: 'a b' is not a valid internet-address-list" },
        { "hosts", "/d(host*)",
          "option hosts /d(host*): '/d(host*)' is not a valid internet-address-list" },
        { "hosts", "10.1.1.1/40",
          "option hosts 10.1.1.1/40: '10.1.1.1/40' is not a valid internet-address-list" },
        { "priority", "*.html:2,*:1", "" },
        { "priority", "abc", "option priority abc: 'abc' is not a valid priority-list" },
        { "auth.addr.brick.allow", "10.*", "" },
        { "auth.addr.brick.allow", "a b",
          "option auth.addr.brick.allow a b: 'a b' is not a valid internet-address-list" },
        { "auth.allow", "a b",
          "option auth.allow a b: 'a b' is not a valid internet-address-list" },
        { "transport.anything", "what ever", "" },
        { "transport.backlog", "x", "invalid number format \"x\" in option \"transport.backlog\"" },
        { "threads", "x", "invalid number format \"x\" in option \"thread-count\"" },
        { "never-heard-of", "x", "" },
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(verdict(cases[i].key, cases[i].value), cases[i].text);
}

static void sizes_and_times_are_counted_right(void **state)
{
    uint64_t value;
    struct option_amount amount;

    (void)state;
    assert_int_equal(option_parse_size("64kb", &value), 0);
    assert_int_equal(value, 65536);
    assert_int_equal(option_parse_size("1.5MB", &value), 0);
    assert_int_equal(value, 1572864);
    assert_int_equal(option_parse_size("512B", &value), 0);
    assert_int_equal(value, 512);
    assert_int_equal(option_parse_size("8191PB", &value), 0);
    assert_true(value == 8191ull << 50);
    assert_int_equal(option_parse_size("8192PB", &value), -EINVAL); /* 2^63 */
    assert_int_equal(option_parse_size("9223372036854775807", &value), 0);
    assert_true(value == INT64_MAX);
    assert_int_equal(option_parse_size("1e5", &value), -EINVAL);
    assert_int_equal(option_parse_size("0x10", &value), -EINVAL);
    assert_int_equal(option_parse_time("2days", &value), 0);
    assert_int_equal(value, 172800);
    assert_int_equal(option_parse_time("1wk", &value), 0);
    assert_int_equal(value, 604800);
    assert_int_equal(option_parse_time("2min", &value), 0);
    assert_int_equal(value, 120);
    assert_int_equal(option_parse_time("99999999999999999d", &value), -EINVAL);
    assert_int_equal(option_parse_amount("100", &amount), 0);
    assert_true(amount.is_percent && amount.percent == 100);
    assert_int_equal(option_parse_amount("101", &amount), 0);
    assert_true(!amount.is_percent && amount.bytes == 101);
}

static void aliases_are_renamed_and_the_primary_name_wins(void **state)
{
    struct option_set set = { 0 };
    char error[OPTION_ERROR_SIZE];

    (void)state;
    assert_int_equal(option_set_put(&set, "old-threads", "3"), 0);
    assert_int_equal(option_set_put(&set, "flag", "off"), 0);
    assert_int_equal(options_validate(rows, "vol", &set, error), 0);
    assert_string_equal(option_set_get(&set, "thread-count"), "3");
    assert_null(option_set_get(&set, "old-threads"));
    assert_int_equal(option_set_put(&set, "threads", "5"), 0);
    assert_int_equal(options_validate(rows, "vol", &set, error), 0);
    assert_string_equal(option_set_get(&set, "thread-count"), "3");
    assert_int_equal(set.count, 2);
    option_set_fini(&set);
}

static void values_and_fallbacks_reach_the_state(void **state)
{
    struct holder holder = { 0 };
    struct option_set set = { 0 };

    (void)state;
    assert_int_equal(option_set_put(&set, "thread-count", "9"), 0);
    assert_int_equal(option_set_put(&set, "reserve", "2GB"), 0);
    assert_int_equal(option_set_put(&set, "mode", "client"), 0);
    static const struct option some[] = {
        OPTION_BOOL(struct holder, flag, "flag", .fallback = "on", .flags = OPTION_LIVE),
        OPTION_INT(struct holder, count, "thread-count", .fallback = "16", .flags = OPTION_LIVE),
        OPTION_SIZE(struct holder, size, "cache-size", .fallback = "32MB"),
        OPTION_PERCENT(struct holder, share, "share", .fallback = "80%"),
        OPTION_AMOUNT(struct holder, reserve, "reserve", .fallback = "1"),
        OPTION_TIME(struct holder, wait_ns, "wait", .fallback = "100ms"),
        OPTION_STR(struct holder, mode, "mode", .flags = OPTION_LIVE),
        OPTION_PATH(struct holder, directory, "directory", .fallback = "/x"),
        OPTION_END,
    };
    assert_int_equal(options_apply(some, &set, &holder, false), 0);
    assert_true(holder.flag);
    assert_int_equal(holder.count, 9);
    assert_int_equal(holder.size, 32 << 20);
    assert_true(holder.share == 80);
    assert_true(!holder.reserve.is_percent && holder.reserve.bytes == 2ull << 30);
    assert_true(holder.wait_ns == 100 * NS_PER_MS);
    assert_string_equal(holder.mode, "client");
    assert_string_equal(holder.directory, "/x");

    struct option_set later = { 0 }; /* only what is live follows, back to the fallback */
    assert_int_equal(option_set_put(&later, "flag", "off"), 0);
    assert_int_equal(option_set_put(&later, "cache-size", "1MB"), 0);
    assert_int_equal(options_apply(some, &later, &holder, true), 0);
    assert_false(holder.flag);
    assert_int_equal(holder.count, 16);
    assert_int_equal(holder.size, 32 << 20);
    assert_null(holder.mode);
    options_fini(some, &holder);
    assert_null(holder.directory);
    option_set_fini(&set);
    option_set_fini(&later);
}

static void a_required_option_is_missed(void **state)
{
    static const struct option needed[] = {
        OPTION_PATH(struct holder, directory, "directory", .flags = OPTION_REQUIRED),
        OPTION_END,
    };
    struct option_set set = { 0 };
    char error[OPTION_ERROR_SIZE];

    (void)state;
    assert_int_equal(options_validate(needed, "vol", &set, error), -EINVAL);
    assert_string_equal(error, "option 'directory' is missing, it is mandatory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_judged_with_the_known_texts),
        cmocka_unit_test(sizes_and_times_are_counted_right),
        cmocka_unit_test(aliases_are_renamed_and_the_primary_name_wins),
        cmocka_unit_test(values_and_fallbacks_reach_the_state),
        cmocka_unit_test(a_required_option_is_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
