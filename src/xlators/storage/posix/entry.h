/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the operations on names have in common. Inside hop, the name's lock held. */
#pragma once

#include "xlators/storage/posix/node.h"
#include "xlators/storage/posix/object.h"

/* An unlabelled entry without content: a crash left it, and it counts as absent. */
bool entry_is_empty(int dir, const char *name, const struct stat *st);
/* Removes such an entry; 0 when the name is free then, -EEXIST when it is a real one. */
must_check int entry_clear(struct posix *posix, int dir, const char *name);

/* A parent as an entry operation holds it. */
struct parent {
    struct inode *inode;
    struct node *node;
    struct desc *dir;
};
/* Opens the parent and stats it. Checks the name. */
must_check int parent_begin(struct posix *posix, struct inode *inode, const char *name,
                            struct parent *ret_parent, struct iatt *ret_pre);
/* After the change: its times, and what it looks like now. */
void parent_touch(struct posix *posix, struct parent *parent, const struct call *call,
                  const struct dict *xdata, struct iatt *ret_post);
void parent_fini(struct parent *parent);
#define PARENT __attribute__((cleanup(parent_fini))) struct parent

/* A small file's content into (*dict)["glusterfs.content"]; *dict is made when needed. */
must_check int lookup_content(const struct object *object, uint64_t size, struct dict **dict);
/* Removes a name that is no directory, as UNLINK does; nobody else knows the directory. */
must_check int entry_remove_file(struct posix *posix, int dir, const gfid_t *parent,
                                 const char *name);
