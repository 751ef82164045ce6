/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever the bytes: no crash, and what was accepted encodes and decodes to the same pairs. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/dict_wire.h"
#include "small_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct dict *a, const struct dict *b)
{
    const struct dict_value *va, *vb;
    const char *key;

    assert(dict_count(a) == dict_count(b));
    for (uint32_t i = 0; (key = dict_at(a, i, &va)); i++) {
        assert(strcmp(key, dict_at(b, i, &vb)) == 0);
        assert(va->bytes == vb->bytes);
        assert(memcmp(va->data, vb->data, va->bytes) == 0);
    }
}

static int one_input(const uint8_t *data, size_t size)
{
    struct dict *dict = NULL, *again = NULL;
    struct writer w = writer_into(NULL, 0);

    if (size > UINT32_MAX || dict_decode_legacy(data, (uint32_t)size, &dict) < 0)
        return 0;
    if (dict) {
        dict_encode_legacy(&w, dict);
        assert(writer_ok(&w) && w.used % 4 == 0);
        uint32_t bytes;
        memcpy(&bytes, w.data, 4);
        bytes = __builtin_bswap32(bytes);
        assert(bytes <= w.used - 4 && w.used - 4 - bytes < 4);
        assert(dict_decode_legacy(w.data + 4, bytes, &again) == 0);
        check_same(dict, again);
    }
    writer_fini(&w);
    dict_unref(dict);
    dict_unref(again);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return on_small_stack(one_input, data, size);
}
