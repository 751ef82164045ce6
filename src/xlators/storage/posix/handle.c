/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/handle.h"

#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>

#include "xlators/storage/posix/mdata.h"

void handle_path(const gfid_t *gfid, char path[HANDLE_PATH_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    path[0] = digits[gfid->bytes[1] >> 4];
    path[1] = digits[gfid->bytes[1] & 15];
    path[2] = '/';
    gfid_format(gfid, path + 3);
}

void handle_text(const gfid_t *parent, const char *name, char text[HANDLE_TEXT_SIZE])
{
    char gfid[UUID_TEXT_SIZE];
    snprintf(text, HANDLE_TEXT_SIZE, "../../%02x/%02x/%s/%s", parent->bytes[0], parent->bytes[1],
             gfid_format(parent, gfid), name);
}

int handle_text_parse(const char *text, gfid_t *ret_parent, char name[NAME_BYTES_MAX + 1])
{
    char gfid_text[UUID_TEXT_SIZE], again[HANDLE_TEXT_SIZE];
    size_t bytes = strlen(text);
    gfid_t parent;

    if (bytes < 50 || bytes >= HANDLE_TEXT_SIZE || text[48] != '/')
        return -EINVAL;
    memcpy(gfid_text, text + 12, UUID_TEXT_SIZE - 1);
    gfid_text[UUID_TEXT_SIZE - 1] = '\0';
    if (gfid_parse(gfid_text, &parent) < 0)
        return -EINVAL;
    const char *base = text + 49;
    if (strchr(base, '/') || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return -EINVAL;
    handle_text(&parent, base, again);
    if (strcmp(again, text) != 0)
        return -EINVAL;
    *ret_parent = parent;
    strcpy(name, base);
    return 0;
}

/* --- making and removing ---------------------------------------------------------------------- */
static int make_second_dir(struct posix *posix, const gfid_t *gfid)
{
    char name[3];
    snprintf(name, sizeof(name), "%02x", gfid->bytes[1]);
    int ret = env_mkdirat(handle_dir_fd(posix, gfid), name, 0700);
    if (ret < 0 && ret != -EEXIST)
        return ret;
    posix->second_dirs[gfid->bytes[0] * 32 + gfid->bytes[1] / 8] |=
        (uint8_t)(1u << gfid->bytes[1] % 8);
    return 0;
}

/* Most gfids are the first of their directory for long: so it is made before it is missed. */
static int need_second_dir(struct posix *posix, const gfid_t *gfid)
{
    bool is_there = posix->second_dirs[gfid->bytes[0] * 32 + gfid->bytes[1] / 8] >>
                    gfid->bytes[1] % 8 & 1;
    return is_there ? 0 : make_second_dir(posix, gfid);
}

static int symlink_in_second_dir(struct posix *posix, const gfid_t *gfid, const char *text)
{
    char path[HANDLE_PATH_SIZE];

    handle_path(gfid, path);
    int ret = need_second_dir(posix, gfid);
    if (ret == 0)
        ret = env_symlinkat(text, handle_dir_fd(posix, gfid), path);
    if (ret != -ENOENT)
        return ret;
    ret = make_second_dir(posix, gfid);
    if (ret < 0)
        return ret;
    return env_symlinkat(text, handle_dir_fd(posix, gfid), path);
}

/* The text of the symlink at the handle's place. -EINVAL: not a symlink. */
static int handle_read(struct posix *posix, const gfid_t *gfid, char text[HANDLE_TEXT_SIZE])
{
    char path[HANDLE_PATH_SIZE];

    handle_path(gfid, path);
    ssize_t ret = env_readlinkat(handle_dir_fd(posix, gfid), path, text, HANDLE_TEXT_SIZE);
    if (ret < 0)
        return (int)ret;
    if (ret == HANDLE_TEXT_SIZE)
        ret--; /* too long to be one of ours; what is cut off does not matter */
    text[ret] = '\0';
    return 0;
}

int handle_link_dir(struct posix *posix, const gfid_t *gfid, const gfid_t *parent,
                    const char *name)
{
    char text[HANDLE_TEXT_SIZE], old[HANDLE_TEXT_SIZE];

    handle_text(parent, name, text);
    int ret = symlink_in_second_dir(posix, gfid, text);
    if (ret != -EEXIST)
        return ret;
    if (handle_read(posix, gfid, old) == 0 && strcmp(old, text) == 0)
        return 0;
    ret = handle_unlink(posix, gfid);
    if (ret < 0)
        return ret;
    return symlink_in_second_dir(posix, gfid, text);
}

static int link_in_second_dir(struct posix *posix, const gfid_t *gfid, const struct object *object)
{
    char path[HANDLE_PATH_SIZE];

    handle_path(gfid, path);
    int ret = need_second_dir(posix, gfid);
    if (ret == 0)
        ret = object_link(object, handle_dir_fd(posix, gfid), path);
    if (ret != -ENOENT)
        return ret;
    ret = make_second_dir(posix, gfid);
    if (ret < 0)
        return ret;
    return object_link(object, handle_dir_fd(posix, gfid), path);
}

int handle_link_file(struct posix *posix, const gfid_t *gfid, const struct object *object)
{
    char path[HANDLE_PATH_SIZE];
    struct stat theirs, ours;

    int ret = link_in_second_dir(posix, gfid, object);
    if (ret != -EEXIST)
        return ret;
    handle_path(gfid, path);
    ret = env_fstatat(handle_dir_fd(posix, gfid), path, &theirs, AT_SYMLINK_NOFOLLOW);
    if (ret < 0)
        return ret;
    ret = object_stat(object, &ours);
    if (ret < 0)
        return ret;
    if (theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev)
        return 0;
    if (S_ISDIR(theirs.st_mode) || S_ISLNK(theirs.st_mode) || theirs.st_nlink > 1)
        return -EEXIST;
    /* a crash left this one without a name: nobody can reach it but by this handle */
    ret = handle_unlink(posix, gfid);
    if (ret < 0)
        return ret;
    return link_in_second_dir(posix, gfid, object);
}

int handle_unlink(struct posix *posix, const gfid_t *gfid)
{
    char path[HANDLE_PATH_SIZE];

    handle_path(gfid, path);
    int ret = env_unlinkat(handle_dir_fd(posix, gfid), path, 0);
    return ret == -ENOENT ? 0 : ret;
}

void handle_unlink_dir(struct posix *posix, const gfid_t *gfid, const gfid_t *parent,
                       const char *name)
{
    char text[HANDLE_TEXT_SIZE], now[HANDLE_TEXT_SIZE];

    handle_text(parent, name, text);
    if (handle_read(posix, gfid, now) == 0 && strcmp(text, now) == 0)
        /* a left-over is replaced by the next of that gfid */
        best_effort(handle_unlink(posix, gfid));
}

static bool dir_handle_is_right(struct posix *posix, const gfid_t *gfid, const gfid_t *parent,
                                const char *name)
{
    char text[HANDLE_TEXT_SIZE], now[HANDLE_TEXT_SIZE];

    handle_text(parent, name, text);
    return gfid_is_root(gfid) || (handle_read(posix, gfid, now) == 0 && strcmp(text, now) == 0);
}

bool handle_is_right(struct posix *posix, const gfid_t *gfid, const struct stat *st,
                     const gfid_t *parent, const char *name)
{
    char path[HANDLE_PATH_SIZE];
    struct stat handle;

    if (S_ISDIR(st->st_mode))
        return dir_handle_is_right(posix, gfid, parent, name);
    handle_path(gfid, path);
    int ret = env_fstatat(handle_dir_fd(posix, gfid), path, &handle, AT_SYMLINK_NOFOLLOW);
    return ret == 0 && handle.st_ino == st->st_ino;
}

int handle_heal(struct posix *posix, const gfid_t *gfid, const struct object *object,
                const struct stat *st, const gfid_t *parent, const char *name)
{
    STRIPES_HELD held = inodes_lock(posix, gfid, NULL);

    if (handle_is_right(posix, gfid, st, parent, name))
        return 0;
    posix->heals++;
    return S_ISDIR(st->st_mode) ? handle_link_dir(posix, gfid, parent, name)
                                : handle_link_file(posix, gfid, object);
}

/* --- directories ------------------------------------------------------------------------------ */
struct desc *dir_get_cached(struct posix *posix, struct inode *inode)
{
    struct node *node = node_find(posix, inode);
    struct desc *desc = node ? node_desc(node, NODE_DIR) : NULL;
    if (desc)
        node->is_recent = true;
    return desc;
}

static struct desc *dir_known(struct posix *posix, const gfid_t *gfid)
{
    AUTO(inode) inode = inode_find(posix->xl->graph->inodes, gfid);
    return inode ? dir_get_cached(posix, inode) : NULL;
}

/* What lies between a directory and the nearest one that is open (or the root): the names, from the
 * lowest up. */
struct climb {
    char (*name)[NAME_BYTES_MAX + 1];
    unsigned count, room;
    struct desc *base; /* NULL: the root */
};

static void climb_fini(struct climb *climb)
{
    free(climb->name);
    desc_unref(climb->base);
}
#define CLIMB __attribute__((cleanup(climb_fini))) struct climb

static int climb_push(struct climb *climb, const char *name)
{
    if (climb->count == climb->room) {
        unsigned room = climb->room ? climb->room * 2 : 4;
        void *names = realloc(climb->name, room * sizeof(climb->name[0]));
        if (!names)
            return -ENOMEM;
        climb->name = names;
        climb->room = room;
    }
    strcpy(climb->name[climb->count++], name);
    return 0;
}

/* A user's symlink whose last name went in a crash: it carries the gfid, a directory's handle
 * none. */
static bool is_orphan(struct posix *posix, const gfid_t *gfid)
{
    char path[HANDLE_PATH_SIZE];
    gfid_t carried;

    handle_path(gfid, path);
    struct object object = object_at(handle_dir_fd(posix, gfid), path);
    return object_gfid(&object, &carried) == 0 && gfid_equal(&carried, gfid);
}

/* One step up: parent and name by the handle. A symlink with two links is a user's own. */
static int climb_step(struct posix *posix, const gfid_t *gfid, gfid_t *ret_parent,
                      char name[NAME_BYTES_MAX + 1])
{
    char path[HANDLE_PATH_SIZE], text[HANDLE_TEXT_SIZE], gfid_text[UUID_TEXT_SIZE];
    struct stat st;

    handle_path(gfid, path);
    int ret = env_fstatat(handle_dir_fd(posix, gfid), path, &st, AT_SYMLINK_NOFOLLOW);
    if (ret < 0)
        return ret;
    if (!S_ISLNK(st.st_mode) || st.st_nlink != 1)
        return -ENOTDIR;
    ret = handle_read(posix, gfid, text);
    if (ret < 0)
        return ret;
    ret = handle_text_parse(text, ret_parent, name);
    if (ret == 0)
        return 0;
    if (is_orphan(posix, gfid))
        return -ENOENT;
    log_error(posix->xl, 0,
              "malformed internal link \"%s\" of the directory with gfid %s in %s: operations on "
              "it fail; a look-up of its path repairs it once the link is removed",
              text, gfid_format(gfid, gfid_text), posix->directory);
    return -EIO;
}

static int climb_up(struct posix *posix, const gfid_t *gfid, bool to_root, struct climb *climb)
{
    char name[NAME_BYTES_MAX + 1];
    gfid_t at = *gfid;

    while (!gfid_is_root(&at)) {
        if (!to_root && (climb->base = dir_known(posix, &at)))
            return 0;
        if (climb->count == DIR_DEPTH_MAX)
            return -EIO;
        int ret = climb_step(posix, &at, &at, name);
        if (ret == 0)
            ret = climb_push(climb, name);
        if (ret < 0)
            return ret;
    }
    return 0;
}

static int climb_down(struct posix *posix, struct climb *climb, int *ret_fd)
{
    int base = climb->base ? climb->base->fd : posix->root_fd;
    AUTO_FD fd = -1;

    if (climb->count == 0) { /* the root, or known by now */
        fd = env_openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (fd < 0)
            return fd;
    }
    for (unsigned i = climb->count; i-- > 0;) {
        int next = env_openat2(fd >= 0 ? fd : base, climb->name[i],
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
        if (next < 0)
            return next == -ELOOP ? -ENOTDIR : next;
        if (fd >= 0)
            env_close(fd);
        fd = next;
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Opens a directory by its handles; the gfid that it carries is the judge of whether they were
 * true. */
static int dir_open(struct posix *posix, const gfid_t *gfid, int *ret_fd)
{
    CLIMB climb = {};
    AUTO_FD fd = -1;
    gfid_t found;

    int ret = climb_up(posix, gfid, false, &climb);
    if (ret == 0)
        ret = climb_down(posix, &climb, &fd);
    if (ret < 0)
        return ret;
    struct object object = object_fd(fd);
    ret = object_gfid(&object, &found);
    if (ret < 0 || !gfid_equal(&found, gfid))
        return -ENOENT;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Handles are wrong for a moment while a directory is renamed: then wait for that, and once
 * more. */
static int dir_open_settled(struct posix *posix, const gfid_t *gfid, int *ret_fd)
{
    int ret = dir_open(posix, gfid, ret_fd);
    if (ret != -ENOENT && ret != -ENOTDIR)
        return ret;
    pthread_mutex_lock(&posix->dir_rename);
    int again = dir_open(posix, gfid, ret_fd);
    pthread_mutex_unlock(&posix->dir_rename);
    return again == -ENOENT ? -ESTALE : again;
}

static bool is_dangling(struct posix *posix, const gfid_t *gfid)
{
    char name[NAME_BYTES_MAX + 1];
    gfid_t parent, found;
    int fd;

    int step = climb_step(posix, gfid, &parent, name);
    if (step == -ENOENT)
        return true; /* an orphan, or nothing */
    if (step < 0 || dir_open(posix, &parent, &fd) < 0)
        return false; /* not a directory's; or the fault lies above it */
    struct object object = object_at(fd, name);
    int ret = object_gfid(&object, &found);
    env_close(fd);
    return ret == -ENOENT || ret == -ENODATA || (ret == 0 && !gfid_equal(&found, gfid));
}

void handle_drop_dangling(struct posix *posix, const gfid_t *gfid)
{
    if (gfid_is_root(gfid))
        return;
    pthread_mutex_lock(&posix->dir_rename); /* else it may be on its way to a new place */
    if (is_dangling(posix, gfid))
        best_effort(handle_unlink(posix, gfid)); /* the next look-up tries again */
    pthread_mutex_unlock(&posix->dir_rename);
}

int dir_get(struct posix *posix, struct inode *inode, struct desc **ret_desc)
{
    struct desc *desc = dir_get_cached(posix, inode);
    if (desc) {
        *ret_desc = desc;
        return 0;
    }
    struct node *node = node_get(posix, inode);
    if (!node)
        return -ENOMEM;
    int fd;
    int ret = dir_open_settled(posix, &inode->gfid, &fd);
    if (ret < 0)
        return ret;
    struct object object = object_fd(fd);
    mdata_load(posix, node, &object);
    inode->type = S_IFDIR;
    *ret_desc = node_set_desc(posix, node, NODE_DIR, fd);
    return *ret_desc ? 0 : -ENOMEM;
}

int dir_path(struct posix *posix, const gfid_t *gfid, char **ret_path)
{
    CLIMB climb = {};
    int ret = climb_up(posix, gfid, true, &climb);
    if (ret < 0)
        return ret;
    size_t bytes = 2;
    for (unsigned i = 0; i < climb.count; i++)
        bytes += strlen(climb.name[i]) + 1;
    char *path = malloc(bytes), *end = path;
    if (!path)
        return -ENOMEM;
    if (climb.count == 0)
        *end++ = '/';
    for (unsigned i = climb.count; i-- > 0;) {
        *end++ = '/';
        end = stpcpy(end, climb.name[i]);
    }
    *end = '\0';
    *ret_path = path;
    return 0;
}

/* --- any object ------------------------------------------------------------------------------- */
void iatt_fill(struct posix *posix, struct node *node, const struct stat *st, struct iatt *ret_iatt)
{
    iatt_from_stat(ret_iatt, st, &node->inode->gfid);
    if (!S_ISDIR(st->st_mode) && ret_iatt->nlink > 0)
        ret_iatt->nlink--; /* the handle, or the name in unlink/ */
    mdata_show(posix, node, ret_iatt);
}

int stat_iatt(struct posix *posix, struct node *node, const struct object *object,
              struct iatt *ret_iatt)
{
    struct stat st;
    int ret = object_stat(object, &st);
    if (ret == 0)
        iatt_fill(posix, node, &st, ret_iatt);
    return ret;
}

void located_iatt(struct posix *posix, struct located *located, struct iatt *ret_iatt)
{
    iatt_fill(posix, located->node, &located->st, ret_iatt);
}

void located_fini(struct located *located)
{
    desc_unref(TAKE(located->desc));
}

static int locate_dir(struct posix *posix, struct inode *inode, struct located *located)
{
    int ret = dir_get(posix, inode, &located->desc);
    if (ret < 0)
        return ret;
    located->object = object_fd(located->desc->fd);
    return env_fstat(located->desc->fd, &located->st);
}

static int locate_unlinked(struct posix *posix, struct inode *inode, struct located *located)
{
    gfid_format(&inode->gfid, located->path);
    located->object = object_at(posix->unlink_fd, located->path);
    located->is_unlinked = true;
    int ret = object_stat(&located->object, &located->st);
    return ret == -ENOENT ? -ESTALE : ret;
}

static int locate_any(struct posix *posix, struct inode *inode, struct located *located)
{
    if (gfid_is_root(&inode->gfid) || inode->type == S_IFDIR)
        return locate_dir(posix, inode, located);

    handle_path(&inode->gfid, located->path);
    located->object = object_at(handle_dir_fd(posix, &inode->gfid), located->path);
    int ret = object_stat(&located->object, &located->st);
    if (ret == 0 && S_ISLNK(located->st.st_mode) && located->st.st_nlink == 1)
        return locate_dir(posix, inode, located);
    if (ret == -ENOENT)
        return inode->type == 0 || located->node->is_unlinked || located->node->opens > 0
                   ? locate_unlinked(posix, inode, located)
                   : -ESTALE;
    return ret;
}

int locate(struct posix *posix, struct inode *inode, struct located *ret_located)
{
    struct located located = { .node = node_get(posix, inode) };
    if (!located.node)
        return -ENOMEM;
    int ret = locate_any(posix, inode, &located);
    if (ret < 0) {
        located_fini(&located);
        return ret;
    }
    /* the path lies inside the struct: point there after the copy */
    bool by_path = located.object.form == OBJECT_AT;
    *ret_located = located;
    if (by_path)
        ret_located->object.path = ret_located->path;
    mdata_load(posix, located.node, &ret_located->object);
    return 0;
}
