/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a volume file comes from: a local file, or a management daemon.
 *
 *     AUTO_FREE char *text = NULL;
 *     ret = source_read(&args, manager, &text, &bytes, error);
 */
#pragma once

#include "daemon/args.h"
#include "daemon/manager.h"

enum { SOURCE_ERROR_SIZE = 512 };

/* On a fiber. manager NULL: the local file. On failure error holds one line; *ret_text is the
 * caller's. */
must_check int source_read(const struct args *args, struct manager *manager, char **ret_text,
                           size_t *ret_bytes, char error[SOURCE_ERROR_SIZE]);
