/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where dump hooks write: sections of key=value lines (spec/introspection.md).
 *
 *     struct dump dump = { .out = file };
 *     dump_section(&dump, "storage/posix.%s", xl->name);
 *     dump_value(&dump, "open", "%d", count);
 */
#pragma once

#include <stdio.h>

#include "core/auto.h"

struct dump {
    FILE *out;
    bool spaced; /* "key = value", as .meta shows */
};

void dump_section(struct dump *dump, const char *format, ...) printf_like(2, 3);
void dump_value(struct dump *dump, const char *key, const char *format, ...) printf_like(3, 4);
