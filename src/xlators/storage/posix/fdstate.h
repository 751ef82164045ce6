/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the brick keeps of an open file: the slot of storage/posix on the fd.
 *
 *     struct io io;
 *     ret = io_begin(posix, in->fd, flags, &io);    // io.fd is ready
 *     io_end(&io);
 */
#pragma once

#include "xlators/storage/posix/node.h"

struct listing; /* dir.c */

struct open_file {
    int fd;                    /* with the open's own flags */
    _Atomic int other_fd;      /* the same, O_DIRECT the other way round; -1: not opened yet */
    bool is_direct;
    uint32_t flags;
    struct node *node;         /* of the fd's inode, which the fd holds */
    struct listing *listing;   /* directories */
};

struct io {
    int fd;
    bool is_direct;
    uint32_t flags;            /* open flags, O_RDWR for anonymous ones */
    struct node *node;
    struct open_file *file;    /* NULL: anonymous */
    struct desc *desc;         /* anonymous */
};
/* call_flags: the fd flags of READ and WRITE: O_DIRECT may have been switched since the open, and
 * of anonymous fds it chooses the kind; 0: not said. Opens what is not open yet (a hop then).
 * -EBADF, -ESTALE, -EISDIR... */
must_check int io_begin(struct posix *posix, struct fd *fd, uint32_t call_flags, struct io *ret_io);
void io_end(struct io *io);
#define IO __attribute__((cleanup(io_end))) struct io

/* Stores the state of an fd that was just opened on backend descriptor `backend` (taken over). */
must_check int open_file_bind(struct posix *posix, struct fd *fd, struct node *node, int backend,
                              uint32_t flags);
/* Opens the backend object of an inode, times loaded. Inside hop. */
must_check int open_inode(struct posix *posix, struct inode *inode, int flags,
                          struct node **ret_node);
void open_file_release(struct posix *posix, struct fd *fd, struct open_file *file);
/* The flags of a backend open for a client's. */
int open_flags(uint32_t flags) nowait;
/* Removes unlink/<gfid> once nobody has the file open. Inside hop. */
void unlinked_forget(struct posix *posix, struct node *node);
/* The caller holds the inode's lock. */
void unlinked_forget_locked(struct posix *posix, struct node *node);

void listing_free(struct listing *listing);
