/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects of one size, recycled per lane without a lock. An object may be put back on another lane
 * than it was taken on; off the lanes it comes from the heap.
 *
 *     static struct slab requests = SLAB_OF(struct request);
 *     struct request *request = slab_get(&requests);        // not zeroed
 */
#pragma once

#include "core/fiber.h"

enum { SLAB_KEPT_MAX = 256 }; /* objects a lane keeps for reuse */

struct slab_lane {
    void *first; /* each begins with a pointer to the next */
    unsigned count;
} __attribute__((aligned(64)));

struct slab {
    size_t bytes;
    struct slab_lane lanes[LANES_MAX];
};
#define SLAB_OF(type)                                                                              \
    {                                                                                              \
        .bytes = sizeof(type)                                                                      \
    }

void *slab_get(struct slab *slab) nowait; /* NULL: no memory */
void slab_put(struct slab *slab, void *object) nowait;
