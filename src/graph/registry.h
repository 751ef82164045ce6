/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every translator type that a volfile may name: real, empty with its reason, or refused with its.
 *
 *     ret = registry_find("performance/stat-prefetch", &type, &reason);
 */
#pragma once

#include "core/auto.h"

struct xlator_type;

/* -ENOENT: no such type was ever known; -EOPNOTSUPP: known, refused, *ret_reason says why. Aliases
 * are followed. */
must_check int registry_find(const char *name, const struct xlator_type **ret_type,
                             const char **ret_reason) nowait;
/* All that can be loaded, for documentation and tests; NULL at the end. */
const struct xlator_type *registry_at(unsigned index) nowait;
/* Refused ones: their names, NULL at the end. */
const char *registry_refused_at(unsigned index, const char **ret_reason) nowait;

/* graph/empty.c; NULL at the end */
extern const struct xlator_type *const registry_empty[];
