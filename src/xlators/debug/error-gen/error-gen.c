/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debug/error-gen: makes operations fail, to see what the others do about it.
 * Promises: `failure` percent of the operations that `enable` names (all, when it names none) fail
 *           with error-no, or with an errno that a local file system might give, before they reach
 *           the child: a failed one did nothing. GF_ERROR_SHORT_WRITE writes half and says so.
 * Keeps:    how many failed.
 * Locks:    none. */
#include <errno.h>
#include <string.h>

#include "core/env.h"
#include "graph/fop_call.h"
#include "graph/oplist.h"

struct error_gen {
    double percent;    /* live */
    char *error_name;
    char *enable;
    bool random;
    struct oplist ops;
    int error;         /* 0: any of the table; SHORT_WRITE */
    _Atomic uint64_t failed;
};

enum { SHORT_WRITE = -1 };

static const struct {
    const char *name;
    int number;
} errors[] = {
    { "ENOENT", ENOENT }, { "ENOTDIR", ENOTDIR }, { "ENAMETOOLONG", ENAMETOOLONG },
    { "EACCES", EACCES }, { "EBADF", EBADF }, { "EFAULT", EFAULT }, { "ENOMEM", ENOMEM },
    { "EINVAL", EINVAL }, { "EIO", EIO }, { "EEXIST", EEXIST }, { "ENOSPC", ENOSPC },
    { "EPERM", EPERM }, { "EROFS", EROFS }, { "EBUSY", EBUSY }, { "EISDIR", EISDIR },
    { "ENOTEMPTY", ENOTEMPTY }, { "EMLINK", EMLINK }, { "ENODEV", ENODEV }, { "EXDEV", EXDEV },
    { "EMFILE", EMFILE }, { "ENFILE", ENFILE }, { "ENOSYS", ENOSYS }, { "EINTR", EINTR },
    { "EFBIG", EFBIG }, { "EAGAIN", EAGAIN }, { "GF_ERROR_SHORT_WRITE", SHORT_WRITE },
};

static int error_named(struct xlator *xl, const char *name, int *ret_error)
{
    *ret_error = 0;
    if (!name)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        if (strcmp(errors[i].name, name) == 0) {
            *ret_error = errors[i].number;
            return 0;
        }
    }
    log_error(xl, 0, "error-no '%s' is no error that can be generated", name);
    return -EINVAL;
}

static int error_init(struct xlator *xl)
{
    struct error_gen *gen = xl->state;
    int ret = error_named(xl, gen->error_name, &gen->error);
    return ret < 0 ? ret : oplist_parse(xl, gen->enable, &gen->ops);
}

static int error_reconfigure(struct xlator *xl, const struct option_set *set)
{
    (void)set;
    return error_init(xl);
}

/* What an operation of that class might meet on a disk. */
static int plausible_error(enum fop op)
{
    static const int entry[] = { ENOENT, EACCES, ENOSPC, EIO, EROFS };
    static const int data[] = { EIO, ENOSPC, EINVAL, EROFS };
    static const int other[] = { EIO, EACCES, ENOMEM };
    uint32_t die;

    env_random(&die, sizeof(die));
    switch (fop_info[op].class_) {
    case CLASS_ENTRY:
        return entry[die % ARRAY_SIZE(entry)];
    case CLASS_DATA:
        return data[die % ARRAY_SIZE(data)];
    default:
        return other[die % ARRAY_SIZE(other)];
    }
}

static int short_write(struct xlator *xl, struct call *call, const struct writev_args *in,
                       struct writev_reply *out)
{
    struct writev_args half = *in;
    half.payload = (struct payload){ 0 }; /* of its own: the caller's keeps every buffer */
    payload_ref(&half.payload, &in->payload);
    payload_truncate(&half.payload, (in->payload.bytes + 1) / 2);
    int ret = fop_writev(first_child(xl), call, &half, out);
    payload_fini(&half.payload);
    return ret;
}

static int error_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                     void *reply)
{
    struct error_gen *gen = xl->state;

    if (!oplist_has(&gen->ops, op) || !oplist_chance(gen->percent))
        return fop_call(first_child(xl), call, op, args, reply);
    count_add(&gen->failed, 1);
    if (gen->error == SHORT_WRITE) {
        if (op == FOP_WRITEV)
            return short_write(xl, call, args, reply);
        return fop_call(first_child(xl), call, op, args, reply);
    }
    int error = gen->random || gen->error == 0 ? plausible_error(op) : gen->error;
    log_debug(xl, 0, "%s fails with %s, as ordered", fop_info[op].title, strerrorname_np(error));
    return -error;
}

static void error_dump(struct xlator *xl, struct dump *dump)
{
    struct error_gen *gen = xl->state;
    dump_value(dump, "failed", "%lu", (unsigned long)gen->failed);
}

static const struct option error_options[] = {
    OPTION_PERCENT(struct error_gen, percent, "failure", .fallback = "10%", .flags = OPTION_LIVE,
                   .help = "How many of the operations fail."),
    OPTION_STR(struct error_gen, error_name, "error-no", .flags = OPTION_LIVE,
               .help = "With which errno, by name; unset: one that a disk might give."),
    OPTION_BOOL(struct error_gen, random, "random-failure", .fallback = "off", .flags = OPTION_LIVE,
                .help = "Ignore error-no."),
    OPTION_STR(struct error_gen, enable, "enable", .aliases = { "error-fops" },
               .flags = OPTION_LIVE, .help = "Comma-separated operations; unset: all."),
    OPTION_END,
};

const struct xlator_type xlator_debug_error_gen = {
    .name = "debug/error-gen",
    .state_size = sizeof(struct error_gen),
    .options = error_options,
    .children_min = 1,
    .children_max = 1,
    .init = error_init,
    .reconfigure = error_reconfigure,
    .dump = error_dump,
    .any = error_any,
};
