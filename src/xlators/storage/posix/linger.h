/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file whose last name was renamed over stays open-able by gfid for a moment: who looked the name
 * up just before opens the file that the name stood for then, as it would on a local disk, where
 * looking up and opening are one step.
 *
 *     linger_begin(posix, inode, node);      // counts as an open file, for LINGER_MS
 */
#pragma once

#include "xlators/storage/posix/node.h"

struct posix;

enum { LINGER_MS = 200, LINGERING_MAX = 512 };

/* Inside hop, the inode's lock held. Without memory, or with too many already, nothing lingers. */
void linger_begin(struct posix *posix, struct inode *inode, struct node *node);
