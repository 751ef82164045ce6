/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Extended attributes as clients see and ask for them (spec/disk.md 1.4, wire.md 4.2, 4.3). */
#pragma once

#include "xlators/storage/posix/node.h"
#include "xlators/storage/posix/object.h"

/* May a client have it in a list, or by a pattern? */
bool xattr_is_visible(const char *name, const struct call *call) nowait;
/* Is this key of a creation's dict stored on the new object? */
bool xattr_is_storable(const char *key) nowait;
/* Stores what a creation's dict asks for. */
must_check int xattr_store_dict(struct posix *posix, const struct object *object,
                                struct dict *xdata, mode_t type);

/* Answers the keys of a LOOKUP's, STAT's or entry's xdata that exist on the object. node may be
 * NULL (then nothing that lives in memory is answered). */
must_check int xattr_answer(struct posix *posix, struct call *call, struct node *node,
                            const struct object *object, const struct dict *asked,
                            struct dict **ret_dict);

/* name, name of the xattr: "trusted.gfid2path.<hash>"; value "<G of parent>/<name>". */
enum {
    GFID2PATH_NAME_SIZE = 18 + 16 + 1,
    GFID2PATH_VALUE_SIZE = UUID_TEXT_SIZE + NAME_BYTES_MAX + 1,
};
void gfid2path_format(const gfid_t *parent, const char *name, char xattr[GFID2PATH_NAME_SIZE],
                      char value[GFID2PATH_VALUE_SIZE]) nowait;
/* Notes one more name on the object, or removes the note. A file system without room for it (ext4
 * after some 45 links) leaves it out: genuine bricks tolerate that. */
void gfid2path_add(struct posix *posix, const struct object *object, const gfid_t *parent,
                   const char *name);
void gfid2path_remove(struct posix *posix, const struct object *object, const gfid_t *parent,
                      const char *name);
/* trusted.pgfid.<parent>: how many names the object has there (update-link-count-parent). */
void pgfid_add(struct posix *posix, const struct object *object, const gfid_t *parent, int delta);

/* The virtual names that the brick answers: -ENOENT when name is none of them. */
must_check int virtual_getxattr(struct posix *posix, struct call *call, struct node *node,
                                const struct object *object, const struct stat *st,
                                const char *name, struct dict *dict);
