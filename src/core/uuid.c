/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/uuid.h"

#include <errno.h>

#include "core/env.h"

const gfid_t gfid_root = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 } };
const gfid_t gfid_null;

void gfid_generate(gfid_t *ret_gfid)
{
    env_random(ret_gfid->bytes, sizeof(ret_gfid->bytes));
    ret_gfid->bytes[6] = (ret_gfid->bytes[6] & 0x0f) | 0x40; /* version 4 */
    ret_gfid->bytes[8] = (ret_gfid->bytes[8] & 0x3f) | 0x80; /* variant 1 */
}

static bool is_dash_place(unsigned index)
{
    return index == 4 || index == 6 || index == 8 || index == 10;
}

char *gfid_format(const gfid_t *gfid, char text[UUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *to = text;

    for (unsigned i = 0; i < sizeof(gfid->bytes); i++) {
        if (is_dash_place(i))
            *to++ = '-';
        *to++ = digits[gfid->bytes[i] >> 4];
        *to++ = digits[gfid->bytes[i] & 15];
    }
    *to = '\0';
    return text;
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

int gfid_parse(const char *text, gfid_t *ret_gfid)
{
    gfid_t gfid;

    for (unsigned i = 0; i < sizeof(gfid.bytes); i++) {
        if (is_dash_place(i) && *text++ != '-')
            return -EINVAL;
        int high = hex_value(text[0]);
        int low = high < 0 ? -1 : hex_value(text[1]);
        if (low < 0)
            return -EINVAL;
        gfid.bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    if (*text != '\0')
        return -EINVAL;
    *ret_gfid = gfid;
    return 0;
}

uint64_t gfid_ino(const gfid_t *gfid)
{
    uint64_t ino = 0;

    for (unsigned i = 8; i < 16; i++)
        ino = ino << 8 | gfid->bytes[i];
    return ino;
}
