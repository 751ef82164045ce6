/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever the bytes: no crash, and what was accepted encodes to bytes that decode to the same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/dict_wire.h"
#include "small_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct dict *dict, struct writer *w)
{
    *w = writer_into(NULL, 0);
    dict_encode(w, dict);
    assert(writer_ok(w) && w->used == dict_encoded_bytes(dict));
}

static int one_input(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    struct dict *dict = NULL, *again = NULL;
    struct writer first, second;

    memcpy(copy, data, size);
    struct reader r = reader_of(copy, size);
    if (dict_decode(&r, &dict) == 0) {
        encode(dict, &first);
        struct reader back = reader_of(first.data, first.used);
        assert(dict_decode(&back, &again) == 0 && reader_left(&back) == 0);
        encode(again, &second);
        assert(first.used == second.used && memcmp(first.data, second.data, first.used) == 0);
        writer_fini(&first);
        writer_fini(&second);
    }
    dict_unref(dict);
    dict_unref(again);
    free(copy);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return on_small_stack(one_input, data, size);
}
