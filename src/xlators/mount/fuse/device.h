/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel connection over /dev/fuse: one reader fiber a descriptor, requests on fibers of their
 * own, answers written to the descriptor that the request came from.
 *
 *     ret = device_start(fuse, TAKE_FD(fd), lane_self());       // readers end with the connection
 */
#pragma once

#include "xlators/mount/fuse/state.h"

/* Takes over fd. -ENOMEM: it is closed. */
must_check int device_start(struct fuse *fuse, int fd, struct lane *lane);
/* After all readers have ended. */
void devices_close(struct fuse *fuse);
