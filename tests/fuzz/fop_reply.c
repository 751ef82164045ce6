/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever a brick answers: refused, or decoded to what encodes and decodes to the same again;
 * nothing is left behind. Byte 0 picks the operation, byte 1 says how much of the rest travels
 * beside the body (in units of 16 bytes). */
#include <stdlib.h>
#include <string.h>

#include "../unit/fop/sample.h"
#include "fop/fop_codec.h"
#include "small_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(enum fop op, const union fop_reply *reply, int result)
{
    struct writer w = writer_into(NULL, 0);
    struct payload beside = { 0 };
    union fop_reply again;
    int result_again = 0;
    const struct payload *payload = fop_reply_payload(op, reply);

    memset(&again, 0, sizeof(again));
    fop_encode_reply(op, result, reply, &w);
    assert(writer_ok(&w));
    if (payload)
        payload_ref(&beside, payload);
    struct reader r = reader_of(w.data, w.used);
    int ret = fop_decode_reply(op, &r, &beside, &again, &result_again);
    assert(ret == 0 && result_again == result && reader_left(&r) == 0);
    assert(sample_reply_equal(op, reply, &again));
    fop_reply_fini(op, &again);
    payload_fini(&beside);
    writer_fini(&w);
}

static int one_input(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    enum fop op = data[0] % FOP_COUNT;
    size_t rest = size - 2, bulk = (size_t)data[1] * 16;
    union fop_reply reply;
    int result;
    struct payload beside = { 0 };
    uint8_t *copy = malloc(rest + 1); /* of just that size: a sanitizer sees who reads on */

    memset(&reply, 0, sizeof(reply));
    memcpy(copy, data + 2, rest);
    bulk = bulk < rest ? bulk : rest;
    if (bulk)
        payload_add_borrowed(&beside, copy + rest - bulk, (uint32_t)bulk);
    struct reader r = reader_of(copy, rest - bulk);
    if (fop_decode_reply(op, &r, &beside, &reply, &result) == 0) {
        check_again(op, &reply, result);
        fop_reply_fini(op, &reply);
    }
    payload_fini(&beside);
    free(copy);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return on_small_stack(one_input, data, size);
}
