/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "graph/dump.h"

#include <stdarg.h>

void dump_section(struct dump *dump, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("\n[", dump->out);
    vfprintf(dump->out, format, args);
    fputs("]\n", dump->out);
    va_end(args);
}

void dump_value(struct dump *dump, const char *key, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(dump->out, "%s%s", key, dump->spaced ? " = " : "=");
    vfprintf(dump->out, format, args);
    fputc('\n', dump->out);
    va_end(args);
}
