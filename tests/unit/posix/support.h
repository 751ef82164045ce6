/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A storage/posix brick on a scratch directory, driven without a graph above it, and a judge of its
 * tree by spec/disk.md 1.
 *
 *     struct brick brick;
 *     brick_new(&brick);  check_equal(brick_start(&brick, NULL), 0);
 *     check_equal(do_mkdir(&brick, brick.root, "d", 0755, &stat), 0);
 *     brick_stop(&brick);  check_equal(tree_faults(&brick), 0);  brick_remove(&brick); */
#pragma once

#include "../core/backends.h"

#include "graph/fop_call.h"

struct brick {
    char path[256];
    struct graph graph;
    struct xlator xl;
    struct xlator *list[1];
    struct call call;           /* of whoever acts: root, unless changed */
    struct inode *root;
    unsigned ups, downs;        /* events seen */
};

void brick_new(struct brick *brick);          /* makes the directory */
/* pairs: key, value, ..., NULL. On a fiber. */
int brick_start(struct brick *brick, const char *const *pairs);
void brick_stop(struct brick *brick);
void brick_remove(struct brick *brick);       /* deletes the directory */

struct dict *gfid_req(gfid_t *ret_gfid);      /* a fresh one; owned */
struct inode *inode_of(struct brick *brick, const struct iatt *stat); /* owned */

int do_create(struct brick *brick, struct inode *parent, const char *name, uint32_t flags,
              uint32_t mode, struct fd **ret_fd, struct iatt *ret_stat);
int do_mkdir(struct brick *brick, struct inode *parent, const char *name, uint32_t mode,
             struct iatt *ret_stat);
int do_mknod(struct brick *brick, struct inode *parent, const char *name, uint32_t mode,
             struct iatt *ret_stat);
int do_symlink(struct brick *brick, struct inode *parent, const char *name, const char *target,
               struct iatt *ret_stat);
int do_lookup(struct brick *brick, struct inode *parent, const char *name, struct iatt *ret_stat);
int do_lookup_gfid(struct brick *brick, const gfid_t *gfid, struct iatt *ret_stat);
int do_unlink(struct brick *brick, struct inode *parent, const char *name);
int do_rmdir(struct brick *brick, struct inode *parent, const char *name, uint32_t flags);
int do_rename(struct brick *brick, struct inode *from, const char *old, struct inode *to,
              const char *new, struct iatt *ret_stat);
int do_link(struct brick *brick, struct inode *inode, struct inode *parent, const char *name,
            struct iatt *ret_stat);
int do_open(struct brick *brick, struct inode *inode, uint32_t flags, struct fd **ret_fd);
int do_write(struct brick *brick, struct fd *fd, const void *bytes, size_t count, uint64_t offset);
int do_read(struct brick *brick, struct fd *fd, void *bytes, size_t count, uint64_t offset);
int do_stat(struct brick *brick, struct inode *inode, struct iatt *ret_stat);

/* Faults of the tree on disk, each told on stderr: labels, handles, gfid2path, strays. */
int tree_faults(const struct brick *brick);
/* The same but for gfid2path, which a crash may leave out or stale, here as on genuine bricks. */
int tree_faults_after_crash(const struct brick *brick);
/* Value of an xattr below the brick's directory, as hex text (static); NULL: none. */
const char *disk_xattr(const struct brick *brick, const char *path, const char *name);
bool disk_exists(const struct brick *brick, const char *path);
