/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/slab.h"

#include <stdlib.h>
#include <string.h>

#if defined(__has_feature) && !defined(__SANITIZE_ADDRESS__)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1 /* clang's way to say it */
#endif
#endif

/* Under AddressSanitizer every object comes fresh from the heap, so that late uses are seen. */
static struct slab_lane *lane_of(struct slab *slab)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)slab;
    return NULL;
#else
    struct lane *lane = lane_self();
    return lane ? &slab->lanes[lane_index(lane)] : NULL;
#endif
}

void *slab_get(struct slab *slab)
{
    struct slab_lane *lane = lane_of(slab);
    void *object = lane ? lane->first : NULL;
    if (!object)
        return malloc(slab->bytes);
    memcpy(&lane->first, object, sizeof(void *));
    lane->count--;
    return object;
}

void slab_put(struct slab *slab, void *object)
{
    struct slab_lane *lane = lane_of(slab);
    if (!object)
        return;
    if (!lane || lane->count >= SLAB_KEPT_MAX) {
        free(object);
        return;
    }
    memcpy(object, &lane->first, sizeof(void *));
    lane->first = object;
    lane->count++;
}
