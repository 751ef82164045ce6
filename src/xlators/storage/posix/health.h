/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the brick does by itself: watches its disk and its free space, empties the landfill. */
#pragma once

#include "xlators/storage/posix/posix.h"

must_check int health_start(struct posix *posix);
/* Is the reserve reached? Inside hop. */
void reserve_check(struct posix *posix);
