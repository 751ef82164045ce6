/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The volfile language (spec/volfile.md 1): text to a plain structure and back.
 *
 *     AUTO(volfile) volfile = NULL;
 *     ret = volfile_parse(text, bytes, error, &volfile);   // error: "syntax error: line 7 ..."
 *     char *same = volfile_format(volfile);
 *
 * Types and options are not looked at here: the graph knows them. */
#pragma once

#include "core/option.h"

enum {
    VOLFILE_BYTES_MAX = 8 << 20,
    VOLFILE_VOLUMES_MAX = 8192,
    VOLFILE_OPTIONS_MAX = 2048,    /* a volume */
    VOLFILE_SUBVOLUMES_MAX = 4096, /* a volume */
    VOLFILE_ERROR_SIZE = 512,
};

struct volfile_volume {
    char *name, *type;
    unsigned line, type_line;
    struct option_set options;
    unsigned *children; /* indexes of volumes defined before this one */
    unsigned child_count;
    unsigned children_missing; /* words that named no such volume (said in the log, left out) */
};

struct volfile {
    struct volfile_volume *volumes; /* as in the text: children before parents, top last */
    unsigned count;
};

/* On failure error holds the one line that says where and why. What is not fatal (a subvolume that
 * does not exist, an empty value) is logged and left out, as ever. -EINVAL, -E2BIG, -ENOMEM. */
must_check int volfile_parse(const char *text, size_t bytes, char error[VOLFILE_ERROR_SIZE],
                             struct volfile **ret_volfile) nowait;
void volfile_free(struct volfile *volfile) nowait;
AUTO_DEFINE(volfile, volfile_free)

/* The canonical text (spec/volfile.md 5.2), to free; NULL: no memory. */
char *volfile_format(const struct volfile *volfile) nowait;
/* Index of the volume of that name; -ENOENT. */
int volfile_find(const struct volfile *volfile, const char *name) nowait;
/* Puts text into the log between rulers, lines numbered, headed "Final graph:". */
void volfile_log(const char *text) nowait;
