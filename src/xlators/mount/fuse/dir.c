/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Directories: OPENDIR, READDIR, READDIRPLUS, RELEASEDIR, FSYNCDIR.
 *
 * A listing's entries go out as the brick orders them, its offsets unchanged. READDIR asks for
 * attributes too, though it passes on none: only they tell the inode number that stat(2) will
 * show. */
#include <errno.h>
#include <string.h>

#include "xlators/mount/fuse/attr.h"

/* --- OPENDIR, RELEASEDIR, FSYNCDIR ------------------------------------------------------------ */
int opendir_run(struct request *req)
{
    const struct fuse_open_in *in = request_in(req);
    AUTO(fd) fd = fd_new(request_inode(req), in->flags, req->call.pid);
    if (!fd)
        return -ENOMEM;
    fd->is_dir = true;
    struct opendir_args args = { .inode = fd->inode, .fd = fd };
    struct opendir_reply reply = {};
    int ret = fop_opendir(fuse_child(req->fuse), &req->call, &args, &reply);
    opendir_reply_fini(&reply);
    if (ret < 0)
        return ret;

    struct handle *handle = handle_new(req->fuse, fd);
    if (!handle)
        return -ENOMEM;
    (void)TAKE(fd); /* the handle's now */
    struct fuse_open_out out = { .fh = (uint64_t)(uintptr_t)handle };
    ret = request_reply(req, &out, sizeof(out));
    if (ret < 0)
        handle_free(req->fuse, handle);
    return ret;
}

int releasedir_run(struct request *req)
{
    const struct fuse_release_in *in = request_in(req);

    handle_free(req->fuse, handle_of(in->fh));
    return request_reply(req, NULL, 0);
}

int fsyncdir_run(struct request *req)
{
    const struct fuse_fsync_in *in = request_in(req);
    struct fsyncdir_args args = { .fd = handle_of(in->fh)->fd,
                                  .datasync = in->fsync_flags & FUSE_FSYNC_FDATASYNC };
    struct fsyncdir_reply out = {};
    int ret = fop_fsyncdir(fuse_child(req->fuse), &req->call, &args, &out);

    fsyncdir_reply_fini(&out);
    return ret < 0 ? ret : request_reply(req, NULL, 0);
}

/* --- one reply -------------------------------------------------------------------------------- */
struct listing {
    struct request *req;
    bool plus;
    uint8_t *data;
    uint32_t bytes, room;
    uint64_t end; /* the offset after the last entry */
};

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* nodeid 0: the kernel looks the name up when somebody wants it. */
static void plus_fill(struct listing *list, const struct dirent_entry *entry, uint8_t *at)
{
    struct fuse_entry_out out = {};
    struct inode *inode = NULL;

    if (!is_dot(entry->name) && entry->stat && !gfid_is_null(&entry->stat->gfid) &&
        entry_fill(list->req, entry->stat, &out, &inode) < 0)
        out = (struct fuse_entry_out){};
    inode_unref(inode); /* the count of look-ups holds it now */
    memcpy(at, &out, sizeof(out));
}

static uint64_t entry_ino(const struct listing *list, const struct dirent_entry *entry)
{
    static const struct iatt none;
    const struct iatt *stat = entry->stat && !gfid_is_null(&entry->stat->gfid) ? entry->stat
                                                                               : &none;

    if (stat == &none)
        return entry->ino;
    return attr_ino(list->req->fuse, stat);
}

static bool listing_add(struct listing *list, const struct dirent_entry *entry)
{
    size_t name_bytes = strlen(entry->name);
    size_t before = list->plus ? sizeof(struct fuse_entry_out) : 0;
    size_t bytes = FUSE_DIRENT_ALIGN(before + FUSE_NAME_OFFSET + name_bytes);
    struct fuse_dirent dirent = { .ino = entry_ino(list, entry),
                                  .off = entry->off,
                                  .namelen = (uint32_t)name_bytes,
                                  .type = entry->type };
    uint8_t *at = list->data + list->bytes;

    if (bytes > list->room - list->bytes)
        return false;
    memset(at, 0, bytes);
    if (list->plus)
        plus_fill(list, entry, at);
    memcpy(at + before, &dirent, FUSE_NAME_OFFSET);
    memcpy(at + before + FUSE_NAME_OFFSET, entry->name, name_bytes);
    list->bytes += (uint32_t)bytes;
    list->end = entry->off;
    return true;
}

/* The kernel did not take the reply: nor its look-ups. */
static void listing_undo(struct listing *list)
{
    for (uint32_t at = 0; list->plus && at < list->bytes;) {
        struct fuse_direntplus *entry = (void *)(list->data + at);
        if (entry->entry_out.nodeid > FUSE_ROOT_ID)
            inode_lookups_drop(nodeid_inode(list->req->fuse, entry->entry_out.nodeid), 1);
        at += (uint32_t)FUSE_DIRENTPLUS_SIZE(entry);
    }
}

/* 1: all of them; 0: some, the rest is asked for again; -EINVAL: there is not room for one. */
static int listing_add_all(struct listing *list, const struct dirents *entries)
{
    for (const struct dirent_entry *entry = entries->first; entry; entry = entry->next)
        if (!listing_add(list, entry))
            return list->bytes ? 0 : -EINVAL;
    return 1;
}

/* With attributes where the option allows. *ret_whole: these were the last entries of all. */
static int listing_fetch(struct listing *list, struct handle *handle, uint64_t offset,
                         bool *ret_whole)
{
    struct xlator *child = fuse_child(list->req->fuse);
    int ret;

    if (list->req->fuse->options.use_readdirp) {
        struct readdirp_args args = { .fd = handle->fd, .offset = offset, .size = list->room };
        struct readdirp_reply out = {};
        ret = fop_readdirp(child, &list->req->call, &args, &out);
        if (ret >= 0)
            ret = listing_add_all(list, &out.entries);
        *ret_whole = ret > 0 && out.eof;
        readdirp_reply_fini(&out);
    } else {
        struct readdir_args args = { .fd = handle->fd, .offset = offset, .size = list->room };
        struct readdir_reply out = {};
        ret = fop_readdir(child, &list->req->call, &args, &out);
        if (ret >= 0)
            ret = listing_add_all(list, &out.entries);
        *ret_whole = ret > 0 && out.eof;
        readdir_reply_fini(&out);
    }
    return ret;
}

static int listing_run(struct request *req, bool plus)
{
    const struct fuse_read_in *in = request_in(req);
    struct handle *handle = handle_of(in->fh);
    uint32_t room = MIN(in->size, (uint32_t)FUSE_REQUEST_BYTES_MAX);
    bool whole = false;

    if (in->offset != 0 && in->offset == handle->end_offset)
        return request_reply(req, NULL, 0); /* the brick has said that nothing follows */
    AUTO(buf) buf = buf_get(room ? room : 1);
    struct listing list = { .req = req, .plus = plus, .data = buf->data, .room = room };
    int ret = listing_fetch(&list, handle, in->offset, &whole);
    if (ret < 0)
        return ret;
    handle->end_offset = whole && list.bytes ? list.end : 0;
    ret = request_reply(req, list.data, list.bytes);
    if (ret < 0)
        listing_undo(&list);
    return ret;
}

int readdir_run(struct request *req)
{
    return listing_run(req, false);
}

int readdirplus_run(struct request *req)
{
    return listing_run(req, true);
}
