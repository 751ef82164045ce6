/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* OPENDIR, READDIR, READDIRP. Cookies are the backend's own. An open directory reads ahead one
 * buffer; a request that goes on where the last ended takes from it, any other seeks. */
#include <errno.h>
#include <stdlib.h>

#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/xattr.h"

enum {
    LISTING_BYTES = 32 * 1024,
    READDIR_BYTES_MAX = 1 << 20, /* of one reply */
};
#define COOKIE_LAST 0x7fffffffffffffffull

struct listing {
    pthread_mutex_t mutex;   /* only inside hop, held across its calls */
    uint64_t cookie;         /* where the first unread entry of the buffer begins */
    size_t at, fill;
    _Alignas(struct dirent64) char buffer[LISTING_BYTES];
};

void listing_free(struct listing *listing)
{
    if (!listing)
        return;
    pthread_mutex_destroy(&listing->mutex);
    free(listing);
}

static struct listing *listing_new(void)
{
    struct listing *listing = malloc(sizeof(*listing));
    if (!listing)
        return NULL;
    listing->cookie = listing->at = listing->fill = 0;
    pthread_mutex_init(&listing->mutex, NULL);
    return listing;
}

static struct listing *listing_of(struct posix *posix, struct open_file *file)
{
    HOLD(&posix->mutex);
    if (!file->listing)
        file->listing = listing_new();
    return file->listing;
}

static int listing_seek(struct listing *listing, int fd, uint64_t cookie)
{
    if (cookie != 0 && cookie == listing->cookie)
        return 0;
    int64_t ret = env_lseek(fd, (int64_t)cookie, SEEK_SET);
    if (ret < 0)
        return (int)ret;
    listing->at = listing->fill = 0;
    listing->cookie = cookie;
    return 0;
}

/* The next entry without taking it: 1, 0 at the end, or -errno. */
static int listing_peek(struct listing *listing, int fd, struct dirent64 **ret_entry)
{
    if (listing->at == listing->fill) {
        ssize_t ret = env_getdents(fd, listing->buffer, sizeof(listing->buffer));
        if (ret <= 0)
            return (int)ret;
        listing->at = 0;
        listing->fill = (size_t)ret;
    }
    *ret_entry = (struct dirent64 *)(void *)(listing->buffer + listing->at);
    return 1;
}

static void listing_take(struct listing *listing, const struct dirent64 *entry)
{
    listing->at += entry->d_reclen;
    listing->cookie = (uint64_t)entry->d_off;
}

/* --- one entry -------------------------------------------------------------------------------- */
struct reading {
    struct posix *posix;
    struct call *call;
    struct fd *fd;
    int dir;
    bool is_root, with_stats;
    uint32_t size;
    struct dict *xdata;
    struct dirents *entries;
    bool *ret_eof;
};

struct seen { /* what readdirp tells of an entry */
    struct stat st;
    gfid_t gfid;
};

/* Two calls by name, consistent only if no name changed meanwhile. */
static int see_by_name(const struct object *object, struct seen *seen)
{
    int ret = object_stat(object, &seen->st);
    return ret < 0 ? ret : object_gfid(object, &seen->gfid);
}

static int see_pinned(int dir, const char *name, struct seen *seen)
{
    AUTO_FD fd = env_openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    struct object object = object_path_fd(fd);
    return see_by_name(&object, seen);
}

static int see(const struct reading *reading, const struct object *object, struct seen *seen)
{
    struct posix *posix = reading->posix;
    uint64_t removals = posix->removals;
    bool is_quiet = posix->removing == 0;

    int ret = see_by_name(object, seen);
    if (is_quiet && posix->removing == 0 && posix->removals == removals)
        return ret;
    return see_pinned(reading->dir, object->path, seen);
}

/* Times are in memory for what is in use, else on disk; nothing is kept for a mere listing. */
static void show_times(struct posix *posix, struct node *node, const struct object *object,
                       struct iatt *iatt)
{
    uint8_t bytes[MDATA_BYTES];
    struct mdata mdata;

    if (!posix->ctime)
        return;
    if (node && mdata_is_known(posix, node)) {
        mdata_show(posix, node, iatt);
        return;
    }
    ssize_t ret = object_getxattr(object, XATTR_MDATA, bytes, sizeof(bytes));
    if (ret < 0 || mdata_decode(bytes, (size_t)ret, &mdata) < 0)
        return;
    iatt->ctime = mdata.ctime;
    iatt->mtime = mdata.mtime;
    iatt->atime = mdata.atime;
}

static int tell(const struct reading *reading, const struct object *object,
                const struct seen *seen, struct dirent_entry *entry)
{
    struct posix *posix = reading->posix;
    AUTO(inode) inode = inode_find(posix->xl->graph->inodes, &seen->gfid);
    struct node *node = inode ? node_find(posix, inode) : NULL;

    if (!S_ISDIR(seen->st.st_mode) && seen->st.st_nlink == 1)
        return 0; /* no handle: the client's look-up makes it */
    iatt_from_stat(entry->stat, &seen->st, &seen->gfid);
    if (!S_ISDIR(seen->st.st_mode))
        entry->stat->nlink--;
    show_times(posix, node, object, entry->stat);
    entry->ino = entry->stat->ino;
    entry->type = iatt_dtype(seen->st.st_mode);
    if (!reading->xdata)
        return 0;
    return xattr_answer(posix, reading->call, node, object, reading->xdata, &entry->dict);
}

static int add_entry(const struct reading *reading, const struct dirent64 *from)
{
    static const struct iatt nothing;
    const char *name = from->d_name;
    struct dirent_entry *entry = NULL;
    struct seen seen;

    if (!reading->with_stats)
        return dirents_add(reading->entries, name, from->d_ino, (uint64_t)from->d_off,
                           from->d_type, NULL, &entry);
    if (reading->is_root && strcmp(name, "..") == 0)
        name = "."; /* nothing above the root exists */
    struct object object = object_at(reading->dir, name);
    int known = see(reading, &object, &seen);
    if (known == -ENOENT)
        return 0; /* gone since it was read */
    int ret = dirents_add(reading->entries, from->d_name, from->d_ino, (uint64_t)from->d_off,
                          from->d_type, &nothing, &entry);
    if (ret < 0 || known < 0) /* without a gfid: the client will look it up */
        return ret;
    return tell(reading, &object, &seen, entry);
}

static bool is_hidden(const struct reading *reading, const struct dirent64 *entry)
{
    return reading->is_root && strcmp(entry->d_name, HANDLE_DIR) == 0;
}

/* About what the entry will take on the wire. */
static uint64_t entry_bytes(const struct reading *reading, const struct dirent64 *entry)
{
    return strlen(entry->d_name) + (reading->with_stats ? 200 : 32);
}

static int read_entries(const struct reading *reading, struct listing *listing)
{
    uint64_t room = MIN(reading->size, (uint32_t)READDIR_BYTES_MAX), used = 0;
    struct dirent64 *entry;
    int ret;

    while ((ret = listing_peek(listing, reading->dir, &entry)) > 0) {
        uint64_t bytes = entry_bytes(reading, entry);
        if (used + bytes > room && reading->entries->count > 0)
            return (int)reading->entries->count;
        if (!is_hidden(reading, entry)) {
            ret = add_entry(reading, entry);
            if (ret < 0)
                return ret;
            used += bytes;
        }
        listing_take(listing, entry);
    }
    *reading->ret_eof = ret == 0;
    return ret < 0 ? ret : (int)reading->entries->count;
}

static int read_dir(struct reading *reading, uint64_t offset)
{
    IO io = {};

    int ret = io_begin(reading->posix, reading->fd, 0, &io);
    if (ret < 0)
        return ret;
    if (!io.file)
        return -EBADF; /* a place in a directory cannot be anonymous */
    struct listing *listing = listing_of(reading->posix, io.file);
    if (!listing)
        return -ENOMEM;
    if (offset >= COOKIE_LAST) {
        *reading->ret_eof = true;
        return 0;
    }
    reading->dir = io.fd;
    reading->is_root = gfid_is_root(&io.node->inode->gfid);
    pthread_mutex_lock(&listing->mutex);
    ret = listing_seek(listing, io.fd, offset);
    if (ret == 0)
        ret = read_entries(reading, listing);
    pthread_mutex_unlock(&listing->mutex);
    return ret;
}

static int readdir_work(struct posix *posix, struct call *call, const struct readdir_args *in,
                        struct readdir_reply *out)
{
    struct reading reading = {
        .posix = posix, .call = call, .fd = in->fd, .size = in->size,
        .entries = &out->entries, .ret_eof = &out->eof,
    };
    return read_dir(&reading, in->offset);
}
POSIX_HOP(readdir)

static int readdirp_work(struct posix *posix, struct call *call, const struct readdirp_args *in,
                         struct readdirp_reply *out)
{
    struct reading reading = {
        .posix = posix, .call = call, .fd = in->fd, .size = in->size, .with_stats = true,
        .xdata = in->xdata, .entries = &out->entries, .ret_eof = &out->eof,
    };
    return read_dir(&reading, in->offset);
}
POSIX_HOP(readdirp)

static int opendir_work(struct posix *posix, struct call *call, const struct opendir_args *in,
                        struct opendir_reply *out)
{
    LOCATED located = {};

    int ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    if (!located.desc)
        return -ENOTDIR;
    int fd = env_openat(located.desc->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    mdata_touch(posix, located.node, call, in->xdata, 0);
    if (in->xdata) {
        ret = xattr_answer(posix, call, located.node, &located.object, in->xdata, &out->xdata);
        if (ret < 0) {
            env_close(fd);
            return ret;
        }
    }
    return open_file_bind(posix, in->fd, located.node, fd, O_RDONLY | O_DIRECTORY);
}
POSIX_HOP(opendir)
