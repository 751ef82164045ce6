/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* 16-byte identities (gfids, volume ids). Random ones come from env's randomness (env_random). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/auto.h"

enum { UUID_TEXT_SIZE = 37 }; /* with the NUL */

typedef struct uuid {
    uint8_t bytes[16];
} gfid_t;

extern const gfid_t gfid_root; /* ...0001 */
extern const gfid_t gfid_null;

static inline bool gfid_equal(const gfid_t *a, const gfid_t *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}
static inline bool gfid_is_null(const gfid_t *gfid)
{
    return gfid_equal(gfid, &gfid_null);
}
static inline bool gfid_is_root(const gfid_t *gfid)
{
    return gfid_equal(gfid, &gfid_root);
}

/* A random version 4 uuid. */
void gfid_generate(gfid_t *ret_gfid) nowait;
/* Lower-case canonical text, NUL included; returns text. */
char *gfid_format(const gfid_t *gfid, char text[UUID_TEXT_SIZE]) nowait;
/* -EINVAL: not a uuid. */
must_check int gfid_parse(const char *text, gfid_t *ret_gfid) nowait;
/* The inode number that clients see: the last 8 bytes, big-endian; 1 for root (wire.md 3.3). */
uint64_t gfid_ino(const gfid_t *gfid) nowait;
