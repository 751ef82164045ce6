/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Option tables: a row is an option's whole truth (STYLE). Parsing follows spec/volfile.md 2, and
 * so do the error texts.
 *
 *     static const struct option posix_options[] = {
 *         OPTION_PATH(struct posix, directory, "directory"),
 *         OPTION_INT(struct posix, max_hardlinks, "max-hardlinks", .fallback = "100", .min = 0),
 *         OPTION_END,
 *     };
 */
#pragma once

#include <stdint.h>

#include "core/auto.h"

enum option_type { /* field type in the state */
    OPT_BOOL,            /* bool */
    OPT_INT,             /* int64_t */
    OPT_SIZE,            /* uint64_t, bytes */
    OPT_PERCENT,         /* double */
    OPT_PERCENT_OR_SIZE, /* struct option_amount */
    OPT_TIME,            /* uint64_t, nanoseconds */
    OPT_DOUBLE,          /* double */
    OPT_STR,             /* char *, owned by the state; NULL when unset and without fallback */
    OPT_PATH,            /* char * */
    OPT_XLATOR,          /* char *: the name of a volume */
    OPT_ADDRESS,         /* char * */
    OPT_ADDRESS_LIST,    /* char * */
    OPT_ANY,             /* char * */
    OPT_PRIORITY_LIST,   /* char *: pattern:number,... */
    OPT_SIZE_LIST,       /* char *: one size, or pattern:size,... */
    OPT_CLIENT_AUTH,     /* char *: addresses and @netgroups */
    OPT_END_,
};

struct option_amount {
    double percent;      /* 0..100 when is_percent */
    uint64_t bytes;
    bool is_percent;
};

enum option_flags {
    OPTION_LIVE = 1,     /* may change while running (reconfigure stores it atomically) */
    OPTION_REQUIRED = 2,
    OPTION_NO_EFFECT = 4, /* accepted for old volfiles; help says why it does nothing */
    OPTION_PATTERN = 8,  /* name is a shell glob; read from the set, no field */
    OPTION_MIN_ONLY = 16, /* .max is no limit (needed where .min is 0 too) */
};

enum { OPTION_ALIASES_MAX = 4 };

struct option {
    const char *name;                         /* glob with OPTION_PATTERN */
    const char *aliases[OPTION_ALIASES_MAX];
    enum option_type type;
    unsigned flags;
    size_t offset;                            /* of the field in the state */
    bool has_field;
    const char *fallback;                     /* text, NULL: none */
    /* min == max: unchecked; max 0 with another min: min only; INFINITY for max is fine. In the
     * unit of the field: OPT_TIME in nanoseconds (5 * NS_PER_S), OPT_SIZE in bytes. */
    double min, max;
    const char *const *values;                /* OPT_STR: NULL-terminated enum (shell globs) */
    const char *help;
};

#define OPTION_(state, field, type_, name_, ...)                                                   \
    {                                                                                              \
        .name = (name_), .type = (type_), .offset = offsetof(state, field), .has_field = true,     \
        __VA_ARGS__                                                                                \
    }
#define OPTION_BOOL(state, field, name, ...) OPTION_(state, field, OPT_BOOL, name, __VA_ARGS__)
#define OPTION_INT(state, field, name, ...) OPTION_(state, field, OPT_INT, name, __VA_ARGS__)
#define OPTION_SIZE(state, field, name, ...) OPTION_(state, field, OPT_SIZE, name, __VA_ARGS__)
#define OPTION_PERCENT(state, field, name, ...)                                                    \
    OPTION_(state, field, OPT_PERCENT, name, __VA_ARGS__)
#define OPTION_AMOUNT(state, field, name, ...)                                                     \
    OPTION_(state, field, OPT_PERCENT_OR_SIZE, name, __VA_ARGS__)
#define OPTION_TIME(state, field, name, ...) OPTION_(state, field, OPT_TIME, name, __VA_ARGS__)
#define OPTION_DOUBLE(state, field, name, ...) OPTION_(state, field, OPT_DOUBLE, name, __VA_ARGS__)
#define OPTION_STR(state, field, name, ...) OPTION_(state, field, OPT_STR, name, __VA_ARGS__)
#define OPTION_PATH(state, field, name, ...) OPTION_(state, field, OPT_PATH, name, __VA_ARGS__)
#define OPTION_ADDRESS(state, field, name, ...)                                                    \
    OPTION_(state, field, OPT_ADDRESS, name, __VA_ARGS__)
#define OPTION_ANY(state, field, name, ...) OPTION_(state, field, OPT_ANY, name, __VA_ARGS__)
/* Accepted, validated, without a field: what it once steered is not here (help says why). */
#define OPTION_NONE(type_, name_, ...)                                                             \
    {                                                                                              \
        .name = (name_), .type = (type_), .flags = OPTION_NO_EFFECT, __VA_ARGS__                   \
    }
#define OPTION_GLOB(type_, name_, ...)                                                             \
    {                                                                                              \
        .name = (name_), .type = (type_), .flags = OPTION_PATTERN, __VA_ARGS__                     \
    }
#define OPTION_END                                                                                 \
    {                                                                                              \
        .type = OPT_END_                                                                           \
    }

/* key = value as the volfile gave them, in order. */
struct option_pair {
    char *key, *value;
};
struct option_set {
    struct option_pair *pairs;
    unsigned count;
};
const char *option_set_get(const struct option_set *set, const char *key) nowait; /* or NULL */
must_check int option_set_put(struct option_set *set, const char *key, const char *value) nowait;
void option_set_fini(struct option_set *set) nowait;

enum { OPTION_ERROR_SIZE = 512 };

/* The row for a key as volfiles spell it (name, alias, glob), or NULL. */
const struct option *option_find(const struct option *rows, const char *key) nowait;
/* One value against one row: 0, or -EINVAL and the text. */
must_check int option_validate(const struct option *row, const char *key, const char *value,
                               char error[OPTION_ERROR_SIZE]) nowait;
const char *option_type_name(enum option_type type) nowait;

/* Checks every value of set against the rows; nothing is stored. On -EINVAL error holds the text of
 * spec/volfile.md 2. Unknown keys are not errors here (log_debug says so). Keys given under an
 * alias are renamed in set to the primary name. */
must_check int options_validate(const struct option *rows, const char *volume,
                                struct option_set *set, char error[OPTION_ERROR_SIZE]) nowait;
/* Stores every row's value (or fallback) into state. set must be valid. With live, only rows marked
 * OPTION_LIVE. Strings replaced are freed. */
must_check int options_apply(const struct option *rows, const struct option_set *set, void *state,
                             bool live) nowait;
/* Frees the strings that options_apply made. */
void options_fini(const struct option *rows, void *state) nowait;

/* One value by type, for those who parse alone. -EINVAL with error text. */
must_check int option_parse_bool(const char *text, bool *ret_value) nowait;
must_check int option_parse_size(const char *text, uint64_t *ret_bytes) nowait;
must_check int option_parse_int(const char *text, int64_t *ret_value) nowait;
/* Whole seconds (spec/volfile.md 2); "100ms", which only our own tables use, rounds down. */
must_check int option_parse_time(const char *text, uint64_t *ret_seconds) nowait;
must_check int option_parse_time_ns(const char *text, uint64_t *ret_ns) nowait;
must_check int option_parse_double(const char *text, double *ret_value) nowait;
must_check int option_parse_amount(const char *text, struct option_amount *ret_amount) nowait;
/* host name, IPv4, IPv6 */
bool option_is_address(const char *text) nowait;
/* a,b,... with prefixes, wildcards, a leading '!', or /dir(a|b),/dir2(c) */
bool option_is_address_list(const char *text) nowait;
