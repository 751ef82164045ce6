/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parsing by type first, then ranges and texts, then whole sets. The texts are those that reach
 * users through `volume set`, kept letter by letter (spec/volfile.md 2). */
#include "core/option.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/log.h"

enum { ADDRESS_BYTES_MAX = 256 };

static const uint64_t ns_per_s = 1000000000;

/* --- one value -------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

int option_parse_bool(const char *text, bool *ret_value)
{
    static const char *const yes[] = { "1", "on", "yes", "true", "enable" };
    static const char *const no[] = { "0", "off", "no", "false", "disable" };

    for (unsigned i = 0; i < ARRAY_SIZE(yes); i++) {
        bool is_yes = strcasecmp(text, yes[i]) == 0;
        if (is_yes || strcasecmp(text, no[i]) == 0) {
            *ret_value = is_yes;
            return 0;
        }
    }
    return -EINVAL;
}

int option_parse_int(const char *text, int64_t *ret_value)
{
    char *end;

    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0')
        return -EINVAL;
    if (value == 0 && *skip_blanks(text) == '-')
        return -EINVAL;
    *ret_value = value;
    return 0;
}

int option_parse_double(const char *text, double *ret_value)
{
    char *end;

    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value))
        return -EINVAL;
    *ret_value = value;
    return 0;
}

/* The power of 1024 that a unit stands for; -EINVAL. bytes_too: "B" and no unit are fine. */
static int unit_power(const char *unit, bool bytes_too)
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };

    if (*unit == '\0')
        return bytes_too ? 0 : -EINVAL;
    for (unsigned i = bytes_too ? 0 : 1; i < ARRAY_SIZE(units); i++)
        if (strcasecmp(unit, units[i]) == 0)
            return (int)i;
    return -EINVAL;
}

/* Decimal digits with at most one point; what follows goes to *ret_end. */
static int parse_decimal(const char *text, long double *ret_value, const char **ret_end)
{
    size_t length = strspn(text, "0123456789.");
    char digits[48], *end;

    if (length == 0 || length >= sizeof(digits))
        return -EINVAL;
    memcpy(digits, text, length);
    digits[length] = '\0';
    *ret_value = strtold(digits, &end);
    if (*end != '\0' || end == digits)
        return -EINVAL;
    *ret_end = text + length;
    return 0;
}

static int scale(long double value, int power, uint64_t *ret_bytes)
{
    value = ldexpl(value, 10 * power);
    if (value > (long double)INT64_MAX)
        return -EINVAL;
    *ret_bytes = (uint64_t)value;
    return 0;
}

int option_parse_size(const char *text, uint64_t *ret_bytes)
{
    long double value;
    const char *unit;

    if (parse_decimal(skip_blanks(text), &value, &unit) < 0)
        return -EINVAL;
    int power = unit_power(unit, true);
    return power < 0 ? power : scale(value, power, ret_bytes);
}

static int parse_percent(const char *text, double *ret_percent)
{
    char *end;

    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || !isfinite(value) || (strcmp(end, "%") != 0 && *end != '\0'))
        return -EINVAL;
    *ret_percent = value;
    return 0;
}

/* Number and what it is, ranges aside; *ret_is_fraction: of a size. */
static int parse_amount(const char *text, struct option_amount *ret_amount, bool *ret_is_fraction)
{
    long double value;
    const char *unit;

    *ret_is_fraction = false;
    if (parse_decimal(skip_blanks(text), &value, &unit) < 0)
        return -EINVAL;
    if (strcmp(unit, "%") == 0) {
        *ret_amount = (struct option_amount){ .percent = (double)value, .is_percent = true };
        return 0;
    }
    int power = *unit == '\0' ? 0 : unit_power(unit, false);
    *ret_amount = (struct option_amount){ .is_percent = false };
    if (power < 0 || scale(value, power, &ret_amount->bytes) < 0)
        return -EINVAL;
    *ret_is_fraction = floorl(value) != value;
    if (*unit == '\0' && value <= 100) /* a bare small number is a percentage to those who use it */
        *ret_amount = (struct option_amount){ .percent = (double)value, .is_percent = true };
    return 0;
}

int option_parse_amount(const char *text, struct option_amount *ret_amount)
{
    bool is_fraction;
    int ret = parse_amount(text, ret_amount, &is_fraction);

    if (ret < 0 || (is_fraction && !ret_amount->is_percent))
        return -EINVAL;
    return ret_amount->is_percent && ret_amount->percent > 100 ? -EINVAL : 0;
}

int option_parse_time_ns(const char *text, uint64_t *ret_ns)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {
        { "", 1000000000 },        { "s", 1000000000 },        { "sec", 1000000000 },
        { "m", 60000000000 },      { "min", 60000000000 },     { "h", 3600000000000 },
        { "hr", 3600000000000 },   { "d", 86400000000000 },    { "days", 86400000000000 },
        { "w", 604800000000000 },  { "wk", 604800000000000 },  { "ms", 1000000 },
    };
    char *end;

    text = skip_blanks(text);
    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0)
        return -EINVAL;
    for (unsigned i = 0; i < ARRAY_SIZE(units); i++)
        if (strcmp(end, units[i].unit) == 0)
            return __builtin_mul_overflow(value, units[i].ns, ret_ns) ? -EINVAL : 0;
    return -EINVAL;
}

int option_parse_time(const char *text, uint64_t *ret_seconds)
{
    uint64_t ns;
    int ret = option_parse_time_ns(text, &ns);

    if (ret == 0)
        *ret_seconds = ns / ns_per_s;
    return ret;
}

/* --- addresses -------------------------------------------------------------------------------- */

static bool is_ipv6(const char *text)
{
    char address[ADDRESS_BYTES_MAX];
    struct in6_addr ignored;
    size_t length = strcspn(text, "%"); /* fe80::1%eth0 */

    if (length >= sizeof(address))
        return false;
    memcpy(address, text, length);
    address[length] = '\0';
    return inet_pton(AF_INET6, address, &ignored) == 1;
}

static bool is_host_name(const char *text)
{
    size_t length = strlen(text);

    if (length == 0 || length >= ADDRESS_BYTES_MAX || text[0] == '-' || text[0] == '.')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
            return false;
    return !strstr(text, "..");
}

bool option_is_address(const char *text)
{
    struct in_addr ignored;

    if (strchr(text, ':'))
        return is_ipv6(text);
    if (*text != '\0' && text[strspn(text, "0123456789.")] == '\0')
        return inet_pton(AF_INET, text, &ignored) == 1;
    return is_host_name(text);
}

/* a.b.c.d/n */
static bool is_ipv4_prefix(const char *text)
{
    char address[ADDRESS_BYTES_MAX], *end;
    struct in_addr ignored;
    const char *slash = strchr(text, '/');

    if (!slash || slash - text >= (ptrdiff_t)sizeof(address) || !isdigit((unsigned char)slash[1]))
        return false;
    memcpy(address, text, (size_t)(slash - text));
    address[slash - text] = '\0';
    long bits = strtol(slash + 1, &end, 10);
    return *end == '\0' && bits <= 32 && inet_pton(AF_INET, address, &ignored) == 1;
}

static bool is_wildcard(const char *text)
{
    return strchr(text, '*') && text[strspn(text, "0123456789abcdefABCDEF.:*")] == '\0';
}

static bool is_list_entry(const char *text)
{
    if (*text == '!')
        text++;
    return option_is_address(text) || is_ipv4_prefix(text) || is_wildcard(text);
}

/* Calls check on every piece of text between separators (empty ones are skipped, as ever). */
static bool each_piece(const char *text, const char *separators, bool (*check)(const char *piece))
{
    char *copy = strdup(text), *rest = copy, *piece;
    bool is_good = copy != NULL;
    unsigned count = 0;

    while (is_good && (piece = strsep(&rest, separators)))
        if (*piece != '\0') {
            is_good = check(piece);
            count++;
        }
    free(copy);
    return is_good && count > 0;
}

/* /dir(a|b|c) */
static bool is_subdir_entry(const char *text)
{
    size_t length = strlen(text);
    const char *open = strchr(text, '(');

    if (text[0] != '/' || !open || open[1] == ')' || text[length - 1] != ')')
        return false;
    char *addresses = strndup(open + 1, (size_t)(text + length - 1 - (open + 1)));
    bool is_good = addresses && each_piece(addresses, "|", is_list_entry);
    free(addresses);
    return is_good;
}

bool option_is_address_list(const char *text)
{
    return each_piece(text, ",", text[0] == '/' ? is_subdir_entry : is_list_entry);
}

static bool is_client_auth_entry(const char *text)
{
    return *text == '@' ? is_host_name(text + 1) : is_list_entry(text);
}

static bool is_priority_entry(const char *text)
{
    const char *colon = strrchr(text, ':');
    int64_t ignored;

    return colon && colon != text && option_parse_int(colon + 1, &ignored) == 0;
}

static bool is_size_entry(const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t bytes;

    return option_parse_size(colon ? colon + 1 : text, &bytes) == 0 && bytes % 512 == 0;
}

/* --- one value against its row ---------------------------------------------------------------- */

static int error_set(char error[OPTION_ERROR_SIZE], const char *format, ...) printf_like(2, 3);
static int error_set(char error[OPTION_ERROR_SIZE], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, OPTION_ERROR_SIZE, format, args);
    va_end(args);
    return -EINVAL;
}

/* number: as the text shall show it; unit: of min and max over that of value. */
static int check_range(const struct option *row, double value, double unit, const char *number,
                       const char *key, const char *text, char error[OPTION_ERROR_SIZE])
{
    double min = row->min / unit, max = row->max / unit;
    bool is_min_only = (row->flags & OPTION_MIN_ONLY) || (row->max == 0 && row->min != 0);

    if (is_min_only && value < min)
        return error_set(error, "'%s' in 'option %s %s' is smaller than minimum value '%.0f'",
                         number, key, text, min);
    if (!is_min_only && row->min != row->max && (value < min || value > max))
        return error_set(error, "'%s' in 'option %s %s' is out of range [%.0f - %.0f]", number,
                         key, text, min, max);
    return 0;
}

static int validate_int(const struct option *row, const char *key, const char *text,
                        char error[OPTION_ERROR_SIZE])
{
    char number[32];
    int64_t value;

    if (option_parse_int(text, &value) < 0)
        return error_set(error, "invalid number format \"%s\" in option \"%s\"", text, key);
    snprintf(number, sizeof(number), "%lld", (long long)value);
    return check_range(row, (double)value, 1, number, key, text, error);
}

static int validate_size(const struct option *row, const char *key, const char *text,
                         char error[OPTION_ERROR_SIZE])
{
    char number[32];
    uint64_t bytes;

    if (option_parse_size(text, &bytes) < 0)
        return error_set(error, "invalid number format \"%s\" in option \"%s\"", text, key);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
    return check_range(row, (double)bytes, 1, number, key, text, error);
}

static int validate_time(const struct option *row, const char *key, const char *text,
                         char error[OPTION_ERROR_SIZE])
{
    char number[32];
    uint64_t ns;

    if (option_parse_time_ns(text, &ns) < 0)
        return error_set(error, "invalid time format \"%s\" in \"option %s\"", text, key);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)(ns / ns_per_s));
    return check_range(row, (double)ns / 1e9, 1e9, number, key, text, error);
}

static int validate_double(const struct option *row, const char *key, const char *text,
                           char error[OPTION_ERROR_SIZE])
{
    char number[400];
    double value;

    if (option_parse_double(text, &value) < 0)
        return error_set(error, "invalid number format \"%s\" in option \"%s\"", text, key);
    snprintf(number, sizeof(number), "%f", value);
    return check_range(row, value, 1, number, key, text, error);
}

static int check_percent(double percent, const char *key, const char *text,
                         char error[OPTION_ERROR_SIZE])
{
    if (percent >= 0 && percent <= 100)
        return 0;
    return error_set(error, "'%f' in 'option %s %s' is out of range [0 - 100]", percent, key, text);
}

static int validate_percent(const char *key, const char *text, char error[OPTION_ERROR_SIZE])
{
    double percent;

    if (parse_percent(text, &percent) < 0)
        return error_set(error, "invalid percent format \"%s\" in \"option %s\"", text, key);
    return check_percent(percent, key, text, error);
}

static int validate_amount(const struct option *row, const char *key, const char *text,
                           char error[OPTION_ERROR_SIZE])
{
    struct option_amount amount;
    char number[48];
    bool is_fraction;

    if (parse_amount(text, &amount, &is_fraction) < 0)
        return error_set(error, "invalid number format \"%s\" in \"option %s\"", text, key);
    if (amount.is_percent)
        return check_percent(amount.percent, key, text, error);
    snprintf(number, sizeof(number), "%f", (double)amount.bytes);
    if (is_fraction)
        return error_set(error,
                         "'%s' in 'option %s %s' should not be fractional value. "
                         "Use valid unsigned integer value.",
                         number, key, text);
    return check_range(row, (double)amount.bytes, 1, number, key, text, error);
}

static int validate_values(const struct option *row, const char *key, const char *text,
                           char error[OPTION_ERROR_SIZE])
{
    char list[OPTION_ERROR_SIZE] = "";
    size_t used = 0;

    for (unsigned i = 0; row->values[i]; i++) {
        if (fnmatch(row->values[i], text, FNM_EXTMATCH) == 0)
            return 0;
        int bytes = snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                             row->values[i]);
        used = MIN(used + (size_t)bytes, sizeof(list) - 1);
    }
    return error_set(error, "option %s %s: '%s' is not valid (possible options are %s.)", key, text,
                     text, list);
}

static int validate_path(const char *key, const char *text, char error[OPTION_ERROR_SIZE])
{
    if (strstr(text, "../"))
        return error_set(error, "invalid path given '%s'", text);
    if (text[0] != '/')
        return error_set(error, "option %s %s: '%s' is not an absolute path name", key, text, text);
    return 0;
}

static int validate_list(const char *key, const char *text, const char *what, bool is_good,
                         char error[OPTION_ERROR_SIZE])
{
    if (is_good)
        return 0;
    return error_set(error, "option %s %s: '%s' is not a valid %s", key, text, text, what);
}

int option_validate(const struct option *row, const char *key, const char *value,
                    char error[OPTION_ERROR_SIZE])
{
    bool ignored;

    switch (row->type) {
    case OPT_BOOL:
        if (option_parse_bool(value, &ignored) == 0)
            return 0;
        return error_set(error, "option %s %s: '%s' is not a valid boolean value", key, value,
                         value);
    case OPT_INT:
        return validate_int(row, key, value, error);
    case OPT_SIZE:
        return validate_size(row, key, value, error);
    case OPT_PERCENT:
        return validate_percent(key, value, error);
    case OPT_PERCENT_OR_SIZE:
        return validate_amount(row, key, value, error);
    case OPT_TIME:
        return validate_time(row, key, value, error);
    case OPT_DOUBLE:
        return validate_double(row, key, value, error);
    case OPT_STR:
        return row->values ? validate_values(row, key, value, error) : 0;
    case OPT_PATH:
        return validate_path(key, value, error);
    case OPT_ADDRESS:
        if (option_is_address(value))
            return 0;
        return error_set(error, "option %s %s: Can not parse %s address", key, value, value);
    case OPT_ADDRESS_LIST:
        return validate_list(key, value, "internet-address-list", option_is_address_list(value),
                             error);
    case OPT_CLIENT_AUTH:
        return validate_list(key, value, "mount-auth-address",
                             each_piece(value, ",", is_client_auth_entry), error);
    case OPT_PRIORITY_LIST:
        return validate_list(key, value, "priority-list",
                             *value == '\0' || each_piece(value, ",", is_priority_entry), error);
    case OPT_SIZE_LIST:
        return validate_list(key, value, "size-list", each_piece(value, ",", is_size_entry), error);
    case OPT_XLATOR: /* the graph knows its volumes */
    case OPT_ANY:
    case OPT_END_:
        return 0;
    }
    return 0;
}

const char *option_type_name(enum option_type type)
{
    static const char *const names[] = {
        [OPT_BOOL] = "bool",
        [OPT_INT] = "int",
        [OPT_SIZE] = "size",
        [OPT_PERCENT] = "percent",
        [OPT_PERCENT_OR_SIZE] = "percent-or-size",
        [OPT_TIME] = "time",
        [OPT_DOUBLE] = "double",
        [OPT_STR] = "str",
        [OPT_PATH] = "path",
        [OPT_XLATOR] = "xlator",
        [OPT_ADDRESS] = "internet-address",
        [OPT_ADDRESS_LIST] = "internet-address-list",
        [OPT_ANY] = "any",
        [OPT_PRIORITY_LIST] = "priority-list",
        [OPT_SIZE_LIST] = "size-list",
        [OPT_CLIENT_AUTH] = "client-auth-addr",
    };

    return (unsigned)type < ARRAY_SIZE(names) ? names[type] : "?";
}

/* --- sets ------------------------------------------------------------------------------------- */

static struct option_pair *pair_find(const struct option_set *set, const char *key)
{
    for (unsigned i = 0; i < set->count; i++)
        if (strcmp(set->pairs[i].key, key) == 0)
            return &set->pairs[i];
    return NULL;
}

const char *option_set_get(const struct option_set *set, const char *key)
{
    const struct option_pair *pair = pair_find(set, key);

    return pair ? pair->value : NULL;
}

static int text_replace(char **text, const char *by)
{
    char *copy = strdup(by);

    if (!copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

int option_set_put(struct option_set *set, const char *key, const char *value)
{
    struct option_pair *pair = pair_find(set, key);
    if (pair)
        return text_replace(&pair->value, value);

    pair = realloc(set->pairs, (set->count + 1) * sizeof(*pair));
    if (!pair)
        return -ENOMEM;
    set->pairs = pair;
    struct option_pair added = { strdup(key), strdup(value) };
    if (!added.key || !added.value) {
        free(added.key);
        free(added.value);
        return -ENOMEM;
    }
    set->pairs[set->count++] = added;
    return 0;
}

static void pair_drop(struct option_set *set, unsigned index)
{
    free(set->pairs[index].key);
    free(set->pairs[index].value);
    set->count--;
    memmove(&set->pairs[index], &set->pairs[index + 1],
            (set->count - index) * sizeof(*set->pairs));
}

void option_set_fini(struct option_set *set)
{
    while (set->count > 0)
        pair_drop(set, set->count - 1);
    free(set->pairs);
    set->pairs = NULL;
}

static bool is_name_of(const struct option *row, const char *name, const char *key)
{
    return row->flags & OPTION_PATTERN ? fnmatch(name, key, 0) == 0 : strcmp(name, key) == 0;
}

static bool is_key_of(const struct option *row, const char *key)
{
    if (is_name_of(row, row->name, key))
        return true;
    for (unsigned i = 0; i < OPTION_ALIASES_MAX && row->aliases[i]; i++)
        if (is_name_of(row, row->aliases[i], key))
            return true;
    return false;
}

const struct option *option_find(const struct option *rows, const char *key)
{
    const struct option *by_glob = NULL;

    for (const struct option *row = rows; row && row->type != OPT_END_; row++)
        if (is_key_of(row, key)) {
            if (!(row->flags & OPTION_PATTERN))
                return row; /* an exact name goes before any glob */
            by_glob = by_glob ? by_glob : row;
        }
    return by_glob;
}

/* An alias becomes the primary name; given both, the primary one counts. */
static int rename_alias(const struct option *row, const char *volume, struct option_set *set,
                        unsigned index)
{
    struct option_pair *pair = &set->pairs[index];

    if (row->flags & OPTION_PATTERN || strcmp(row->name, pair->key) == 0)
        return 0;
    if (pair_find(set, row->name)) {
        log_debug(volume, 0, "option '%s' is an alias of '%s', which is given too: ignored",
                  pair->key, row->name);
        pair_drop(set, index);
        return 1;
    }
    log_debug(volume, 0, "option '%s' is taken as '%s'", pair->key, row->name);
    return text_replace(&pair->key, row->name);
}

static int check_required(const struct option *rows, const struct option_set *set,
                          char error[OPTION_ERROR_SIZE])
{
    for (const struct option *row = rows; row && row->type != OPT_END_; row++)
        if (row->flags & OPTION_REQUIRED && !option_set_get(set, row->name))
            return error_set(error, "option '%s' is missing, it is mandatory", row->name);
    return 0;
}

int options_validate(const struct option *rows, const char *volume, struct option_set *set,
                     char error[OPTION_ERROR_SIZE])
{
    for (unsigned i = 0; i < set->count;) {
        const struct option *row = option_find(rows, set->pairs[i].key);
        if (!row) {
            log_debug(volume, 0, "option '%s' is not recognized", set->pairs[i++].key);
            continue;
        }
        int ret = option_validate(row, row->flags & OPTION_PATTERN ? set->pairs[i].key : row->name,
                                  set->pairs[i].value, error);
        if (ret < 0)
            return ret;
        ret = rename_alias(row, volume, set, i);
        if (ret < 0)
            return error_set(error, "out of memory");
        if (ret == 0)
            i++;
    }
    return check_required(rows, set, error);
}

/* --- into a translator's state ---------------------------------------------------------------- */

static void store_u64(void *field, const void *value)
{
    uint64_t raw;

    memcpy(&raw, value, sizeof(raw));
    __atomic_store_n((uint64_t *)field, raw, __ATOMIC_RELAXED);
}

static int store_text(char **field, const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        return -ENOMEM;
    free(__atomic_exchange_n(field, copy, __ATOMIC_ACQ_REL));
    return 0;
}

static int store_number(const struct option *row, const char *text, void *field)
{
    union {
        bool b;
        int64_t i64;
        uint64_t u64;
        double f64;
        struct option_amount amount;
    } value = { .amount = { .bytes = 0 } };
    int ret = 0;

    if (text) {
        switch (row->type) {
        case OPT_BOOL:
            ret = option_parse_bool(text, &value.b);
            break;
        case OPT_INT:
            ret = option_parse_int(text, &value.i64);
            break;
        case OPT_SIZE:
            ret = option_parse_size(text, &value.u64);
            break;
        case OPT_TIME:
            ret = option_parse_time_ns(text, &value.u64);
            break;
        case OPT_PERCENT:
            ret = parse_percent(text, &value.f64);
            break;
        case OPT_DOUBLE:
            ret = option_parse_double(text, &value.f64);
            break;
        default:
            ret = option_parse_amount(text, &value.amount);
        }
    }
    if (ret < 0)
        return ret;
    if (row->type == OPT_BOOL)
        __atomic_store_n((bool *)field, value.b, __ATOMIC_RELAXED);
    else if (row->type == OPT_PERCENT_OR_SIZE)
        memcpy(field, &value.amount, sizeof(value.amount));
    else
        store_u64(field, &value);
    return 0;
}

static bool is_text(enum option_type type)
{
    return type >= OPT_STR;
}

int options_apply(const struct option *rows, const struct option_set *set, void *state, bool live)
{
    for (const struct option *row = rows; row && row->type != OPT_END_; row++) {
        if (!row->has_field || (live && !(row->flags & OPTION_LIVE)))
            continue;
        const char *text = option_set_get(set, row->name);
        if (!text)
            text = row->fallback;
        void *field = (char *)state + row->offset;
        int ret = is_text(row->type) ? store_text(field, text) : store_number(row, text, field);
        assert(ret != -EINVAL); /* a fallback of ours that does not parse, or a set not validated */
        if (ret < 0)
            return ret;
    }
    return 0;
}

void options_fini(const struct option *rows, void *state)
{
    for (const struct option *row = rows; row && row->type != OPT_END_; row++)
        if (row->has_field && is_text(row->type))
            (void)store_text((char **)((char *)state + row->offset), NULL); /* only frees */
}
