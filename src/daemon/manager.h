/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The management daemon that our volume file comes from: asks it, listens for its word that the
 * file changed, tells it where a brick listens. A connection that breaks is made again.
 *
 *     ret = manager_new(&args, changed, arg, &manager);
 *     ret = manager_fetch(manager, &text, &bytes, error);
 *     ret = manager_serving(manager);              // a brick: registers its port
 */
#pragma once

#include "daemon/args.h"

struct manager;

/* changed(arg): the file may be another one; called on a fiber, must not wait. */
must_check int manager_new(const struct args *args, void (*changed)(void *arg), void *arg,
                           struct manager **ret_manager);
/* From the first of the servers that gives it. On failure error holds one line. */
must_check int manager_fetch(struct manager *manager, char **ret_text, size_t *ret_bytes,
                             char *error, size_t error_size);
must_check int manager_serving(struct manager *manager);
/* Whoever is asking gets -ENOTCONN; nothing is asked any more. */
void manager_end(struct manager *manager) nowait;
void manager_free(struct manager *manager); /* nobody may be asking */
