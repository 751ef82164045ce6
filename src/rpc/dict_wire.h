/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two encodings of a dict: gfx_dict of the fop program and the legacy form inside opaque<>
 * (spec/wire.md 3.1, 3.2). */
#pragma once

#include "core/dict.h"
#include "rpc/xdr.h"

/* gfx_dict. NULL dict and empty dict both decode to NULL. -EBADMSG, -E2BIG, -ENOMEM. */
must_check int dict_decode(struct reader *r, struct dict **ret_dict) nowait;
void dict_encode(struct writer *w, const struct dict *dict) nowait; /* NULL: the NULL form */
/* Bytes that dict_encode will write. */
size_t dict_encoded_bytes(const struct dict *dict) nowait;

/* Legacy form, without the outer opaque's length word. No bytes decode to NULL. */
must_check int dict_decode_legacy(const uint8_t *bytes, uint32_t count, struct dict **ret_dict)
    nowait;
/* As opaque<>: outer length, pairs, padding. Integers go as decimal text. */
void dict_encode_legacy(struct writer *w, const struct dict *dict) nowait;
