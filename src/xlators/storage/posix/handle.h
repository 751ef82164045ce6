/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a gfid to its object: the handles under .glusterfs (spec/disk.md 1.2). All run inside hop
 * unless they say nowait or cached.
 *
 *     AUTO(desc) dir = NULL;
 *     ret = dir_get(posix, in->parent, &dir);         // then fstatat(dir->fd, name, ...)
 */
#pragma once

#include "xlators/storage/posix/node.h"
#include "xlators/storage/posix/object.h"

enum {
    HANDLE_PATH_SIZE = 3 + UUID_TEXT_SIZE,         /* "bb/gfid" */
    HANDLE_TEXT_SIZE = 12 + UUID_TEXT_SIZE + NAME_BYTES_MAX + 1, /* "../../aa/bb/gfid/name" */
};

/* "bb/gfid", relative to posix->first_fd[first byte]. */
void handle_path(const gfid_t *gfid, char path[HANDLE_PATH_SIZE]) nowait;
static inline int handle_dir_fd(const struct posix *posix, const gfid_t *gfid)
{
    return posix->first_fd[gfid->bytes[0]];
}
/* "../../aa/bb/parent/name" */
void handle_text(const gfid_t *parent, const char *name, char text[HANDLE_TEXT_SIZE]) nowait;
/* -EINVAL: not such a text. */
must_check int handle_text_parse(const char *text, gfid_t *ret_parent,
                                 char name[NAME_BYTES_MAX + 1]) nowait;

/* Makes a directory's handle; one with another text is replaced. */
must_check int handle_link_dir(struct posix *posix, const gfid_t *gfid, const gfid_t *parent,
                               const char *name);
/* Gives a file its handle. -EEXIST: another object that has a name owns the gfid. */
must_check int handle_link_file(struct posix *posix, const gfid_t *gfid,
                                const struct object *object);
/* No handle is fine. */
must_check int handle_unlink(struct posix *posix, const gfid_t *gfid);
/* Removes a directory's handle if it still says parent/name. */
void handle_unlink_dir(struct posix *posix, const gfid_t *gfid, const gfid_t *parent,
                       const char *name);
/* Removes a directory's handle that leads nowhere: what a crash in RMDIR leaves. */
void handle_drop_dangling(struct posix *posix, const gfid_t *gfid);
/* Is the handle of the object found at parent/name there, and right? */
bool handle_is_right(struct posix *posix, const gfid_t *gfid, const struct stat *st,
                     const gfid_t *parent, const char *name);
/* Makes it so. The name's lock is held. */
must_check int handle_heal(struct posix *posix, const gfid_t *gfid, const struct object *object,
                           const struct stat *st, const gfid_t *parent, const char *name);

/* A directory's descriptor, shared. -ESTALE: no such gfid. -ENOTDIR. -EIO: its handle is
 * malformed. */
must_check int dir_get(struct posix *posix, struct inode *inode, struct desc **ret_desc);
/* The same from memory only; NULL: not there. */
struct desc *dir_get_cached(struct posix *posix, struct inode *inode) nowait;
/* Path of a directory below the brick's root, "/" or "/a/b"; free it. */
must_check int dir_path(struct posix *posix, const gfid_t *gfid, char **ret_path);

/* An inode's object with what it needs to stay reachable. */
struct located {
    struct object object;
    struct stat st;
    struct node *node;
    bool is_unlinked;
    struct desc *desc;                 /* a directory's */
    char path[HANDLE_PATH_SIZE];
};
/* -ESTALE: no such object. Falls back to unlink/ for files that are only open. Times are loaded. */
must_check int locate(struct posix *posix, struct inode *inode, struct located *ret_located);
void located_fini(struct located *located);
AUTO_DEFINE(located, located_fini)
#define LOCATED __attribute__((cleanup(located_fini))) struct located
/* What clients see of it. */
void located_iatt(struct posix *posix, struct located *located, struct iatt *ret_iatt) nowait;
/* The stats of an object now, as clients see them. */
must_check int stat_iatt(struct posix *posix, struct node *node, const struct object *object,
                         struct iatt *ret_iatt);
void iatt_fill(struct posix *posix, struct node *node, const struct stat *st,
               struct iatt *ret_iatt) nowait;
