/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a volume file comes from: a local file, or a management daemon's GETSPEC.
 *
 *     AUTO_FREE char *text = NULL;
 *     ret = source_read(&args, &text, &bytes, error);
 */
#pragma once

#include "daemon/args.h"

enum { SOURCE_ERROR_SIZE = 512 };

/* On a fiber. On failure error holds one line; *ret_text is the caller's. */
must_check int source_read(const struct args *args, char **ret_text, size_t *ret_bytes,
                           char error[SOURCE_ERROR_SIZE]);
/* daemon/getspec.c: from the first of the servers that gives it. */
must_check int getspec_fetch(const struct args *args, char **ret_text, size_t *ret_bytes,
                             char error[SOURCE_ERROR_SIZE]);
