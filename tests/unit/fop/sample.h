/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random arguments and replies of every operation, and whether two are the same. The bodies are
 * made from src/fop/fops.def by sample_gen.py, the values by sample.c.
 *
 *     sample_seed(7);
 *     sample_args(op, &args);        // inodes and fds stay NULL: fop_bind
 *     ...  sample_args_fini(op, &args);
 */
#pragma once

#include "fop/fop_types.h"

void sample_seed(uint64_t seed);
uint64_t sample_u64(void); /* of any size: small ones as often as large ones */

void sample_args(enum fop op, void *args);
void sample_args_fini(enum fop op, void *args); /* strings too, which decoded arguments borrow */
/* But for inodes and fds. */
bool sample_args_equal(enum fop op, const void *a, const void *b);
void sample_reply(enum fop op, void *reply); /* fop_reply_fini ends it */
bool sample_reply_equal(enum fop op, const void *a, const void *b);

/* What the generated bodies call, one pair a kind of fops.def. */
void draw_u32(uint32_t *value);
void draw_i32(int32_t *value);
void draw_u64(uint64_t *value);
void draw_eof(bool *value);
void draw_fdnum(int64_t *value);
void draw_name(const char **name);
void draw_optional(const char **name); /* sometimes NULL */
void draw_text(char **text);
void draw_dict(struct dict **dict);
void draw_iatt(struct iatt *iatt);
void draw_lock(struct lock *lock);
void draw_lease(struct lease *lease);
void draw_locklist(struct locklist *list);
void draw_dirents(struct dirents *list);
void draw_direntsp(struct dirents *list);
void draw_statfs(struct fsstat *statfs);
void draw_bytes(struct fop_bytes *bytes);
void draw_payload(struct payload *payload);

bool same_name(const char *a, const char *b); /* NULL equals NULL only */
bool same_text(const char *a, const char *b); /* none and empty are one */
bool same_dict(const struct dict *a, const struct dict *b); /* none and empty are one */
bool same_iatt(const struct iatt *a, const struct iatt *b);
bool same_lock(const struct lock *a, const struct lock *b);
bool same_locklist(const struct locklist *a, const struct locklist *b);
bool same_dirents(const struct dirents *a, const struct dirents *b);
bool same_bytes(const struct fop_bytes *a, const struct fop_bytes *b);
bool same_payload(const struct payload *a, const struct payload *b);
