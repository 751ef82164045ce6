/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The index directories of a brick (spec/disk.md 3.5): a hard link named by gfid for everything
 * that needs healing.
 *
 *     ret = kind_open(xl, base_dir, &index->kinds[KIND_PENDING]);
 *     ret = kind_link(xl, kind, &gfid);
 */
#pragma once

#include "core/sync.h"
#include "graph/fop_call.h"

enum kind_id { KIND_PENDING, KIND_DIRTY, KIND_CHANGES, KINDS };

struct kind {
    const char *folder;       /* below index-base: "xattrop" */
    const char *gfid_key;     /* getxattr on the root tells the virtual directory's gfid */
    const char *count_key;    /* ... and how many links there are; NULL: not counted */
    gfid_t gfid;              /* of the virtual directory, anew in every process */
    int dir;
    pthread_mutex_t mutex;    /* over base */
    gfid_t base;              /* of the base file that links are made to; null: none yet */
};

struct index {
    char *base_path;
    char *watch64, *watch_dirty, *watch_pending;
    int base_dir;
    struct kind kinds[KINDS];
};

/* On a worker or fiber alike; each does a few system calls. */
must_check int kind_open(struct xlator *xl, int base_dir, struct kind *kind);
must_check int kind_link(struct xlator *xl, struct kind *kind, const gfid_t *gfid);
must_check int kind_unlink(struct xlator *xl, struct kind *kind, const gfid_t *gfid);
/* Links to base files, all of them; -errno. */
must_check int64_t kind_count(struct kind *kind);

/* watch.c: what a request's or reply's values say about an index. */
enum watch_says { WATCH_NOTHING, WATCH_ZERO, WATCH_NONZERO };
enum watch_says watch_values(const struct index *index, enum kind_id kind,
                             const struct dict *values) nowait;
