/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The start of a brick: its directory is checked and opened, .glusterfs made (spec/disk.md 1.1). */
#pragma once

#include "xlators/storage/posix/posix.h"

/* Logs each failure with the directory, the errno and the cure. Runs inside hop. */
must_check int brick_attach(struct posix *posix);
void brick_detach(struct posix *posix);
/* storage.owner-uid, -gid. */
void brick_apply_owner(struct posix *posix);
