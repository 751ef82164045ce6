/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/index: remembers on disk which files have pending changes, so that heal need not search
 * (spec/disk.md 3.5).
 * Promises: before an xattrop makes a watched value non-zero, the file's gfid is linked in the
 *           index; after all watched values became zero, it is not. A crash between leaves an entry
 *           too many, never one too few. The index can be listed and cleaned through virtual
 *           directories.
 * Keeps:    indices/xattrop, indices/dirty, indices/entry-changes below index-base.
 * Locks:    an inode's fmutex (in its slot) around each xattrop, so that marks are seen in the
 *           order in which they were stored. */
#include "xlators/features/index/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"

enum { DENTS_BYTES = 8192, ENTRY_BYTES = 64 };

/* --- marks ----------------------------------------------------------------------------------- */
static struct fmutex *order_of(struct xlator *xl, struct inode *inode)
{
    struct fmutex *order = slot_get(&inode->slots, xl);
    if (order)
        return order;
    order = malloc(sizeof(*order));
    if (!order)
        return NULL;
    fmutex_init(order);
    struct fmutex *kept = slot_add(&inode->slots, xl, order);
    if (kept != order) {
        fmutex_fini(order);
        free(order);
    }
    return kept;
}

static void index_forget(struct xlator *xl, struct inode *inode, void *state)
{
    (void)xl;
    (void)inode;
    fmutex_fini(state);
    free(state);
}

struct marking {
    struct xlator *xl;
    const gfid_t *gfid;
    const struct dict *values;
    bool before;
    int ret;
};

static void mark_kinds(void *arg)
{
    struct marking *marking = arg;
    struct index *index = marking->xl->state;

    for (enum kind_id id = KIND_PENDING; id <= KIND_DIRTY && marking->ret == 0; id++) {
        enum watch_says says = watch_values(index, id, marking->values);
        if (says == WATCH_NONZERO)
            marking->ret = kind_link(marking->xl, &index->kinds[id], marking->gfid);
        else if (says == WATCH_ZERO && !marking->before)
            marking->ret = kind_unlink(marking->xl, &index->kinds[id], marking->gfid);
    }
}

static bool is_watched(const struct index *index, const struct dict *values)
{
    return watch_values(index, KIND_PENDING, values) != WATCH_NOTHING ||
           watch_values(index, KIND_DIRTY, values) != WATCH_NOTHING;
}

static int mark(struct xlator *xl, const struct inode *inode, const struct dict *values,
                bool before)
{
    struct marking marking = { .xl = xl, .gfid = &inode->gfid, .values = values, .before = before };
    hop(pool_default(), mark_kinds, &marking);
    return marking.ret;
}

#define XATTROP(op_, inode_)                                                                       \
    static int index_##op_(struct xlator *xl, struct call *call, const struct op_##_args *in,      \
                           struct op_##_reply *out)                                                \
    {                                                                                              \
        if (!is_watched(xl->state, in->dict))                                                      \
            return fop_##op_(first_child(xl), call, in, out);                                      \
        struct fmutex *order = order_of(xl, in->inode_);                                           \
        if (!order)                                                                                \
            return -ENOMEM;                                                                        \
        FLOCK(order);                                                                              \
        int ret = mark(xl, in->inode_, in->dict, true);                                            \
        if (ret == 0)                                                                              \
            ret = fop_##op_(first_child(xl), call, in, out);                                       \
        if (ret >= 0) /* an entry that stays too long is found clean by heal, and dropped then */  \
            (void)!mark(xl, in->inode_, out->dict, false);                                         \
        return ret;                                                                                \
    }
XATTROP(xattrop, inode)
XATTROP(fxattrop, fd->inode)

/* --- what others ask ------------------------------------------------------------------------- */
struct counting {
    struct kind *kind;
    int64_t count;
};

static void count_links(void *arg)
{
    struct counting *counting = arg;
    counting->count = kind_count(counting->kind);
}

static int put_count(struct kind *kind, const char *key, struct dict *dict)
{
    struct counting counting = { .kind = kind };
    hop(pool_default(), count_links, &counting);
    return counting.count < 0 ? (int)counting.count : dict_set_int(dict, key, counting.count);
}

static struct kind *kind_of_key(struct index *index, const char *key, bool *ret_is_count)
{
    for (int i = 0; key && i < KINDS; i++) {
        struct kind *kind = &index->kinds[i];
        *ret_is_count = kind->count_key && strcmp(key, kind->count_key) == 0;
        if (*ret_is_count || strcmp(key, kind->gfid_key) == 0)
            return kind;
    }
    return NULL;
}

static int index_getxattr(struct xlator *xl, struct call *call, const struct getxattr_args *in,
                          struct getxattr_reply *out)
{
    bool is_count;
    struct kind *kind = kind_of_key(xl->state, in->name, &is_count);

    if (!kind)
        return fop_getxattr(first_child(xl), call, in, out);
    out->dict = dict_new();
    if (!out->dict)
        return -ENOMEM;
    if (is_count)
        return put_count(kind, in->name, out->dict);
    int ret = dict_set_bytes(out->dict, in->name, &kind->gfid, sizeof(kind->gfid));
    return ret < 0 ? ret : (int)sizeof(kind->gfid);
}

/* --- virtual directories --------------------------------------------------------------------- */
static struct kind *kind_of_inode(struct xlator *xl, const struct inode *inode)
{
    struct index *index = xl->state;
    for (int i = 0; inode && i < KINDS; i++)
        if (gfid_equal(&inode->gfid, &index->kinds[i].gfid))
            return &index->kinds[i];
    return NULL;
}

static void virtual_stat(const struct stat *st, const gfid_t *gfid, struct iatt *iatt)
{
    iatt_from_stat(iatt, st, gfid);
}

/* An entry's name is the gfid of what it stands for. */
static int lookup_in_kind(struct kind *kind, const struct lookup_args *in, struct lookup_reply *out)
{
    bool named = in->name && in->name[0];
    gfid_t gfid = kind->gfid;
    struct stat st;
    int ret = named ? gfid_parse(in->name, &gfid) : 0;

    if (ret < 0)
        return -ENOENT;
    ret = named ? env_fstatat(kind->dir, in->name, &st, AT_SYMLINK_NOFOLLOW)
                : env_fstat(kind->dir, &st);
    if (ret < 0)
        return ret;
    virtual_stat(&st, &gfid, &out->stat);
    if (env_fstat(kind->dir, &st) == 0 && named)
        virtual_stat(&st, &kind->gfid, &out->postparent);
    return 0;
}

static int index_lookup(struct xlator *xl, struct call *call, const struct lookup_args *in,
                        struct lookup_reply *out)
{
    struct index *index = xl->state;
    bool named = in->name && in->name[0], is_count;
    struct kind *kind = kind_of_inode(xl, named ? in->parent : in->inode);
    const char *asked = dict_get_str(in->xdata, "link-count");

    if (kind)
        return lookup_in_kind(kind, in, out);
    int ret = fop_lookup(first_child(xl), call, in, out);
    if (asked && (kind = kind_of_key(index, asked, &is_count)) != NULL && is_count) {
        if (!out->xdata)
            out->xdata = dict_new();
        if (out->xdata) /* also beside an ENOENT; without it heal merely looks once more */
            (void)!put_count(kind, "link-count", out->xdata);
    }
    return ret;
}

static int index_opendir(struct xlator *xl, struct call *call, const struct opendir_args *in,
                         struct opendir_reply *out)
{
    struct kind *kind = kind_of_inode(xl, in->inode);
    return kind ? 0 : fop_opendir(first_child(xl), call, in, out);
}

struct listing {
    struct kind *kind;
    uint64_t offset;
    uint32_t size;
    struct dirents *entries;
    bool eof;
    int ret;
};

static bool add_entry(struct listing *listing, const struct dirent64 *entry)
{
    gfid_t gfid;
    if (gfid_parse(entry->d_name, &gfid) == 0)
        listing->ret = dirents_add(listing->entries, entry->d_name, entry->d_ino,
                                   (uint64_t)entry->d_off, entry->d_type, NULL, NULL);
    return listing->ret == 0 &&
           listing->entries->bytes + ENTRY_BYTES + UUID_TEXT_SIZE < listing->size;
}

static void list_kind(void *arg)
{
    struct listing *listing = arg;
    _Alignas(struct dirent64) char dents[DENTS_BYTES];
    AUTO_FD dir = env_openat(listing->kind->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int64_t sought = dir < 0 ? dir : env_lseek(dir, (int64_t)listing->offset, SEEK_SET);

    listing->ret = sought < 0 ? (int)sought : 0;
    while (listing->ret == 0) {
        ssize_t bytes = env_getdents(dir, dents, sizeof(dents));
        if (bytes <= 0) {
            listing->ret = (int)bytes;
            listing->eof = bytes == 0;
            return;
        }
        for (ssize_t at = 0; at < bytes;) {
            struct dirent64 *entry = (struct dirent64 *)(void *)(dents + at);
            at += entry->d_reclen;
            if (!add_entry(listing, entry))
                return;
        }
    }
}

static int index_readdir(struct xlator *xl, struct call *call, const struct readdir_args *in,
                         struct readdir_reply *out)
{
    struct listing listing = { .kind = kind_of_inode(xl, in->fd->inode), .offset = in->offset,
                               .size = in->size, .entries = &out->entries };

    if (!listing.kind)
        return fop_readdir(first_child(xl), call, in, out);
    hop(pool_default(), list_kind, &listing);
    out->eof = listing.eof;
    return listing.ret < 0 ? listing.ret : (int)out->entries.count;
}

static int index_unlink(struct xlator *xl, struct call *call, const struct unlink_args *in,
                        struct unlink_reply *out)
{
    struct kind *kind = kind_of_inode(xl, in->parent);
    gfid_t gfid;

    if (!kind)
        return fop_unlink(first_child(xl), call, in, out);
    return gfid_parse(in->name, &gfid) < 0 ? -ENOENT : kind_unlink(xl, kind, &gfid);
}

/* --- life ------------------------------------------------------------------------------------ */
static int open_base(struct xlator *xl)
{
    struct index *index = xl->state;
    int ret = env_mkdirat(AT_FDCWD, index->base_path, 0600);

    if (ret < 0 && ret != -EEXIST) {
        log_error(xl, ret, "cannot make index-base %s", index->base_path);
        return ret;
    }
    index->base_dir = env_openat(AT_FDCWD, index->base_path,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (index->base_dir < 0)
        log_error(xl, index->base_dir, "cannot open index-base %s", index->base_path);
    return MIN(index->base_dir, 0);
}

static const struct kind kinds[KINDS] = {
    [KIND_PENDING] = { .folder = "xattrop",
                       .gfid_key = "glusterfs.xattrop_index_gfid",
                       .count_key = "glusterfs.xattrop_index_count" },
    [KIND_DIRTY] = { .folder = "dirty",
                     .gfid_key = "glusterfs.xattrop_dirty_gfid",
                     .count_key = "glusterfs.xattrop_dirty_count" },
    [KIND_CHANGES] = { .folder = "entry-changes",
                       .gfid_key = "glusterfs.xattrop_entry_changes_gfid" },
};

static int index_init(struct xlator *xl)
{
    struct index *index = xl->state;

    memcpy(index->kinds, kinds, sizeof(kinds));
    index->base_dir = -1;
    for (int i = 0; i < KINDS; i++)
        index->kinds[i].dir = -1;
    return 0;
}

/* Not in init: storage/posix makes .glusterfs, in which index-base lies, in its own init and may
 * not have done so yet. */
static int index_start(struct xlator *xl)
{
    struct index *index = xl->state;
    int ret = open_base(xl);

    for (int i = 0; i < KINDS && ret == 0; i++)
        ret = kind_open(xl, index->base_dir, &index->kinds[i]);
    return ret;
}

static void index_fini(struct xlator *xl)
{
    struct index *index = xl->state;

    for (int i = 0; i < KINDS; i++) {
        if (index->kinds[i].dir < 0)
            continue;
        env_close(index->kinds[i].dir);
        pthread_mutex_destroy(&index->kinds[i].mutex);
    }
    if (index->base_dir >= 0)
        env_close(index->base_dir);
}

static const struct option index_options[] = {
    OPTION_PATH(struct index, base_path, "index-base", .flags = OPTION_REQUIRED,
                .help = "Where the index directories are: <brick>/.glusterfs/indices."),
    OPTION_STR(struct index, watch64, "xattrop64-watchlist",
               .help = "Prefixes of keys of 64-bit counters."),
    OPTION_STR(struct index, watch_dirty, "xattrop-dirty-watchlist",
               .help = "Prefixes of keys that say: a change is going on."),
    OPTION_STR(struct index, watch_pending, "xattrop-pending-watchlist",
               .help = "Prefixes of keys that blame another brick."),
    OPTION_END,
};

const struct xlator_type xlator_features_index = {
    .name = "features/index",
    .state_size = sizeof(struct index),
    .options = index_options,
    .children_min = 1,
    .children_max = 1,
    .init = index_init,
    .start = index_start,
    .fini = index_fini,
    .forget = index_forget,
    .fops = {
        .xattrop = index_xattrop,
        .fxattrop = index_fxattrop,
        .getxattr = index_getxattr,
        .lookup = index_lookup,
        .opendir = index_opendir,
        .readdir = index_readdir,
        .unlink = index_unlink,
    },
};
