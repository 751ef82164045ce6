/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* LINK, UNLINK, RMDIR, RENAME: names come and go; handles and gfid2path follow in the order of
 * spec/disk.md 1.3, so that a genuine brick can take over after a crash between any two steps. */
#include "xlators/storage/posix/entry.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>

#include "xlators/storage/posix/fdstate.h"
#include "xlators/storage/posix/handle.h"
#include "xlators/storage/posix/linger.h"
#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/xattr.h"

enum { GFID2PATH_LINKS_MAX = 500, SLOW_UNLINK_BYTES = 1 << 20 };

/* --- parents ---------------------------------------------------------------------------------- */
void parent_fini(struct parent *parent)
{
    desc_unref(TAKE(parent->dir));
}

int parent_begin(struct posix *posix, struct inode *inode, const char *name,
                 struct parent *ret_parent, struct iatt *ret_pre)
{
    struct stat st;

    int ret = posix_check_name(inode, name);
    if (ret < 0)
        return ret;
    ret = dir_get(posix, inode, &ret_parent->dir);
    if (ret < 0)
        return ret;
    ret_parent->inode = inode;
    ret_parent->node = node_find(posix, inode);
    ret = env_fstat(ret_parent->dir->fd, &st);
    if (ret < 0)
        return ret;
    iatt_fill(posix, ret_parent->node, &st, ret_pre);
    return 0;
}

void parent_touch(struct posix *posix, struct parent *parent, const struct call *call,
                  const struct dict *xdata, struct iatt *ret_post)
{
    struct stat st;

    mdata_touch_parent(posix, parent->node, call, xdata);
    if (env_fstat(parent->dir->fd, &st) == 0)
        iatt_fill(posix, parent->node, &st, ret_post);
}

/* --- left-overs of a crash -------------------------------------------------------------------- */
static bool directory_is_empty(int dir, const char *name)
{
    union {
        struct dirent64 alignment;
        char bytes[1024];
    } buffer;

    AUTO_FD fd = env_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ssize_t ret = env_getdents(fd, buffer.bytes, sizeof(buffer.bytes));
    for (ssize_t at = 0; at < ret;) {
        struct dirent64 *entry = (struct dirent64 *)(void *)(buffer.bytes + at);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
        at += entry->d_reclen;
    }
    return ret >= 0;
}

bool entry_is_empty(int dir, const char *name, const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return st->st_size == 0 && st->st_blocks == 0 && st->st_nlink == 1;
    return S_ISDIR(st->st_mode) && directory_is_empty(dir, name);
}

int entry_clear(struct posix *posix, int dir, const char *name)
{
    struct object object = object_at(dir, name);
    struct stat st;
    gfid_t gfid;

    int ret = object_gfid(&object, &gfid);
    if (ret == 0)
        return -EEXIST;
    if (ret == -ENODATA)
        ret = object_stat(&object, &st);
    if (ret < 0)
        return ret == -ENOENT ? 0 : ret;
    if ((st.st_ino == posix->handle_ino && st.st_dev == posix->root_dev) ||
        !entry_is_empty(dir, name, &st))
        return -EEXIST;
    ret = env_unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
    return ret == -ENOTEMPTY ? -EEXIST : ret;
}

/* Clears a directory that holds nothing but left-overs, so that it can be removed. */
static void clear_directory(struct posix *posix, int dir, const char *name)
{
    union {
        struct dirent64 alignment;
        char bytes[4096];
    } buffer;
    ssize_t ret;

    AUTO_FD fd = env_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    while ((ret = env_getdents(fd, buffer.bytes, sizeof(buffer.bytes))) > 0)
        for (ssize_t at = 0; at < ret;) {
            struct dirent64 *entry = (struct dirent64 *)(void *)(buffer.bytes + at);
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                entry_clear(posix, fd, entry->d_name) < 0)
                return; /* something real: it stays */
            at += entry->d_reclen;
        }
}

/* --- an entry that is about to lose its name -------------------------------------------------- */
struct victim {
    struct posix *posix;
    int dir;
    const gfid_t *parent_gfid;
    const char *name;
    struct object object;     /* by its name */
    struct stat st;
    bool exists, is_labelled, is_last;
    gfid_t gfid;
    struct inode *inode;
    struct node *node;
    int keeper;               /* O_PATH of a large file: its blocks are freed outside the locks */
};

static void victim_fini(struct victim *victim)
{
    inode_unref(victim->inode);
    if (victim->keeper >= 0)
        env_close(victim->keeper);
}
#define VICTIM __attribute__((cleanup(victim_fini))) struct victim

/* The name's lock is held: what is found here stays. */
static int victim_find(struct victim *victim)
{
    victim->object = object_at(victim->dir, victim->name);
    int ret = object_stat(&victim->object, &victim->st);
    if (ret < 0)
        return ret;
    if (victim->st.st_ino == victim->posix->handle_ino &&
        victim->st.st_dev == victim->posix->root_dev)
        return -EPERM;
    victim->exists = true;
    ret = object_gfid(&victim->object, &victim->gfid);
    victim->is_labelled = ret == 0;
    if (ret == -ENODATA)
        return 0;
    if (ret < 0)
        return ret;
    victim->inode = inode_get(victim->posix->xl->graph->inodes, &victim->gfid);
    victim->node = victim->inode ? node_get(victim->posix, victim->inode) : NULL;
    return victim->node ? 0 : -ENOMEM;
}

/* The inode's lock is held too: link counts stay. */
static int victim_settle(struct victim *victim)
{
    int ret = object_stat(&victim->object, &victim->st);
    if (ret < 0)
        return ret;
    victim->is_last = victim->st.st_nlink <= 2;
    if (victim->node)
        mdata_load(victim->posix, victim->node, &victim->object);
    if (victim->is_last && victim->st.st_size >= SLOW_UNLINK_BYTES)
        victim->keeper = env_openat(victim->object.at, victim->name,
                                    O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    return 0;
}

/* Removing must work on a full disk too: then the file is lost to those who would open it by gfid,
 * not to those who have it open. */
static bool is_no_room(int ret)
{
    return ret == -ENOSPC || ret == -EDQUOT || ret == -EMLINK;
}

/* While somebody has it open: a link in unlink/ beside the handle, which goes only after the name.
 * A crash between must not leave a name without its handle; a handle without a name is found
 * out. */
static int keep_unlinked(struct victim *victim)
{
    char path[HANDLE_PATH_SIZE], unlinked[UUID_TEXT_SIZE];
    struct posix *posix = victim->posix;

    if (victim->node->opens == 0)
        return 0;
    handle_path(&victim->gfid, path);
    gfid_format(&victim->gfid, unlinked);
    int ret = env_linkat(handle_dir_fd(posix, &victim->gfid), path, posix->unlink_fd, unlinked, 0);
    if (ret == -ENOENT) /* it had no handle */
        ret = env_linkat(victim->object.at, victim->name, posix->unlink_fd, unlinked, 0);
    if (ret == 0)
        victim->node->is_unlinked = true;
    return is_no_room(ret) ? 0 : ret;
}

/* A name stayed that should have gone. */
static void keep_no_more(struct victim *victim)
{
    char unlinked[UUID_TEXT_SIZE];

    if (!victim->node || !victim->node->is_unlinked)
        return;
    gfid_format(&victim->gfid, unlinked);
    best_effort(env_unlinkat(victim->posix->unlink_fd, unlinked, 0)); /* else at start */
    victim->node->is_unlinked = false;
}

/* After the last name went; the inode is locked. */
static void victim_gone(struct victim *victim)
{
    struct node *node = victim->node;

    if (victim->is_last && !node->is_unlinked)
        node_reset(victim->posix, node);
    if (node->is_unlinked && node->opens == 0) /* closed while we moved it */
        unlinked_forget_locked(victim->posix, node);
}

/* --- UNLINK ----------------------------------------------------------------------------------- */
static int is_kept_by_request(const struct victim *victim, const struct dict *xdata)
{
    bool is_linkto = (victim->st.st_mode & 07777) == 01000 &&
                     object_getxattr(&victim->object, "trusted.glusterfs.dht.linkto", NULL, 0) > 0;

    if (dict_get(xdata, "unlink-only-if-dht-linkto-file") && !is_linkto)
        return -EBUSY;
    if (dict_get(xdata, "dont-unlink-for-open-fd") && victim->node->opens > 0)
        return -EBUSY;
    return 0;
}

static int unlink_labelled(struct victim *victim, const struct call *call, struct dict *xdata)
{
    struct posix *posix = victim->posix;
    const gfid_t *parent = victim->parent_gfid;
    STRIPES_HELD held = inodes_lock(posix, &victim->gfid, NULL);

    int ret = victim_settle(victim);
    if (ret == 0)
        ret = is_kept_by_request(victim, xdata);
    if (ret < 0)
        return ret;
    if (!victim->is_last) {
        gfid2path_remove(posix, &victim->object, parent, victim->name);
        pgfid_add(posix, &victim->object, parent, -1);
    } else {
        ret = keep_unlinked(victim);
    }
    if (ret == 0) {
        REMOVAL(posix);
        ret = env_unlinkat(victim->object.at, victim->name, 0);
    }
    if (ret < 0) {
        if (victim->is_last)
            keep_no_more(victim);
        else
            gfid2path_add(posix, &victim->object, parent, victim->name);
        return ret;
    }
    if (victim->is_last)
        /* left over, a nameless look-up drops it */
        best_effort(handle_unlink(posix, &victim->gfid));
    node_changed(victim->node);
    victim_gone(victim);
    if (!victim->is_last || victim->node->is_unlinked)
        mdata_touch(posix, victim->node, call, xdata, TIMES_CTIME);
    return 0;
}

/* The stats of what a request about a name was about, for caches upstream. */
static void answer_iatt(struct victim *victim, const struct dict *asked, struct dict **ret_xdata)
{
    uint8_t wire[IATT_WIRE_BYTES];
    struct iatt iatt;

    if (!dict_get(asked, "dht-get-iatt-in-xattr") || (!*ret_xdata && !(*ret_xdata = dict_new())))
        return;
    iatt_fill(victim->posix, victim->node, &victim->st, &iatt);
    if (iatt.nlink > 0)
        iatt.nlink--;
    iatt_to_wire(&iatt, wire);
    /* a hint */
    best_effort(dict_set(*ret_xdata, "dht-get-iatt-in-xattr", DICT_IATT, wire, sizeof(wire)));
}

static int unlink_work(struct posix *posix, struct call *call, const struct unlink_args *in,
                       struct unlink_reply *out)
{
    PARENT parent = {};
    int ret = parent_begin(posix, in->parent, in->name, &parent, &out->preparent);
    if (ret < 0)
        return ret;
    VICTIM victim = {
        .posix = posix, .dir = parent.dir->fd, .parent_gfid = &in->parent->gfid,
        .name = in->name, .keeper = -1,
    };
    STRIPES_HELD held = names_lock(posix, &in->parent->gfid, in->name);
    ret = victim_find(&victim);
    if (ret < 0)
        return ret;
    if (S_ISDIR(victim.st.st_mode))
        return -EISDIR;
    if (victim.is_labelled)
        ret = unlink_labelled(&victim, call, in->xdata);
    else
        ret = env_unlinkat(parent.dir->fd, in->name, 0);
    if (ret < 0)
        return ret;
    if (victim.is_labelled)
        answer_iatt(&victim, in->xdata, &out->xdata);
    parent_touch(posix, &parent, call, in->xdata, &out->postparent);
    return 0;
}
POSIX_HOP(unlink)

int entry_remove_file(struct posix *posix, int dir, const gfid_t *parent, const char *name)
{
    static const struct call nobody = { .pid = PID_TRASH };
    VICTIM victim = {
        .posix = posix, .dir = dir, .parent_gfid = parent, .name = name, .keeper = -1,
    };

    int ret = victim_find(&victim);
    if (ret < 0)
        return ret;
    return victim.is_labelled ? unlink_labelled(&victim, &nobody, NULL)
                              : env_unlinkat(dir, name, 0);
}

/* --- RMDIR ------------------------------------------------------------------------------------ */
static int remove_tree(struct victim *victim)
{
    struct posix *posix = victim->posix;
    char name[UUID_TEXT_SIZE];
    gfid_t fresh = victim->gfid;

    int ret = env_renameat2(victim->object.at, victim->name, posix->landfill_fd,
                            gfid_format(&fresh, name), RENAME_NOREPLACE);
    if (ret != -EEXIST)
        return ret;
    gfid_generate(&fresh); /* an older one of that gfid still waits for the janitor */
    return env_renameat2(victim->object.at, victim->name, posix->landfill_fd,
                         gfid_format(&fresh, name), RENAME_NOREPLACE);
}

static int remove_empty(struct victim *victim)
{
    int ret = env_unlinkat(victim->object.at, victim->name, AT_REMOVEDIR);
    if (ret != -ENOTEMPTY && ret != -EEXIST)
        return ret;
    clear_directory(victim->posix, victim->object.at, victim->name);
    return env_unlinkat(victim->object.at, victim->name, AT_REMOVEDIR);
}

static int rmdir_work(struct posix *posix, struct call *call, const struct rmdir_args *in,
                      struct rmdir_reply *out)
{
    PARENT parent = {};
    int ret = parent_begin(posix, in->parent, in->name, &parent, &out->preparent);
    if (ret < 0)
        return ret;
    VICTIM victim = {
        .posix = posix, .dir = parent.dir->fd, .parent_gfid = &in->parent->gfid,
        .name = in->name, .keeper = -1,
    };
    STRIPES_HELD held = names_lock(posix, &in->parent->gfid, in->name);
    ret = victim_find(&victim);
    if (ret < 0)
        return ret;
    if (!S_ISDIR(victim.st.st_mode))
        return -ENOTDIR;
    {
        REMOVAL(posix);
        ret = in->flags && victim.is_labelled ? remove_tree(&victim) : remove_empty(&victim);
    }
    if (ret < 0)
        return ret == -EEXIST ? -ENOTEMPTY : ret;
    if (victim.is_labelled) {
        STRIPES_HELD inode_held = inodes_lock(posix, &victim.gfid, NULL);
        handle_unlink_dir(posix, &victim.gfid, &in->parent->gfid, in->name);
        node_reset(posix, victim.node);
    }
    parent_touch(posix, &parent, call, in->xdata, &out->postparent);
    return 0;
}
POSIX_HOP(rmdir)

/* --- LINK ------------------------------------------------------------------------------------- */
static int add_name(struct posix *posix, struct located *located, const struct parent *parent,
                    const struct link_args *in)
{
    int64_t links_max = posix->max_hardlinks;

    int ret = object_stat(&located->object, &located->st);
    if (ret < 0)
        return ret == -ENOENT ? -ESTALE : ret;
    if (links_max > 0 && (int64_t)located->st.st_nlink > links_max)
        return -EMLINK;
    ret = object_link(&located->object, parent->dir->fd, in->newname);
    if (ret < 0)
        return ret;
    if (located->st.st_nlink <= GFID2PATH_LINKS_MAX)
        gfid2path_add(posix, &located->object, &in->newparent->gfid, in->newname);
    pgfid_add(posix, &located->object, &in->newparent->gfid, 1);
    return object_stat(&located->object, &located->st);
}

static int link_work(struct posix *posix, struct call *call, const struct link_args *in,
                     struct link_reply *out)
{
    LOCATED located = {};
    PARENT parent = {};

    int ret = posix_room(posix, call, in->xdata);
    if (ret == 0)
        ret = parent_begin(posix, in->newparent, in->newname, &parent, &out->preparent);
    if (ret == 0)
        ret = locate(posix, in->inode, &located);
    if (ret < 0)
        return ret;
    if (S_ISDIR(located.st.st_mode))
        return -EPERM;
    if (located.is_unlinked)
        return -ENOENT; /* as link(2) says of a file without a name */
    STRIPES_HELD held = names_lock(posix, &in->newparent->gfid, in->newname);
    ret = entry_clear(posix, parent.dir->fd, in->newname);
    if (ret < 0)
        return ret;
    STRIPES_HELD inode_held = inodes_lock(posix, &in->inode->gfid, NULL);
    ret = add_name(posix, &located, &parent, in);
    if (ret < 0)
        return ret;
    mdata_touch(posix, located.node, call, in->xdata, TIMES_CTIME);
    node_changed(located.node);
    located_iatt(posix, &located, &out->stat);
    parent_touch(posix, &parent, call, in->xdata, &out->postparent);
    return 0;
}
POSIX_HOP(link)

/* --- RENAME ----------------------------------------------------------------------------------- */
struct move {
    struct posix *posix;
    struct call *call;
    const struct rename_args *in;
    struct parent from, to;
    struct victim old, new;
};

static void move_fini(struct move *move)
{
    victim_fini(&move->old);
    victim_fini(&move->new);
    parent_fini(&move->from);
    parent_fini(&move->to);
}
#define MOVE __attribute__((cleanup(move_fini))) struct move

static bool is_same_object(const struct move *move)
{
    return move->new.exists && move->old.st.st_ino == move->new.st.st_ino &&
           move->old.st.st_dev == move->new.st.st_dev;
}

/* What rename(2) would refuse is refused before anything is taken apart. */
static int move_check(struct move *move)
{
    int ret = victim_find(&move->old);
    if (ret < 0)
        return ret;
    ret = victim_find(&move->new);
    if (ret == -ENOENT)
        return 0;
    if (ret < 0)
        return ret;
    if (!move->new.is_labelled) {
        ret = entry_clear(move->posix, move->to.dir->fd, move->in->newname);
        move->new.exists = ret != 0;
        return ret == -EEXIST ? 0 : ret;
    }
    if (is_same_object(move))
        return 0;
    bool from_dir = S_ISDIR(move->old.st.st_mode), to_dir = S_ISDIR(move->new.st.st_mode);
    if (from_dir != to_dir)
        return from_dir ? -ENOTDIR : -EISDIR;
    if (to_dir && !directory_is_empty(move->to.dir->fd, move->in->newname)) {
        clear_directory(move->posix, move->to.dir->fd, move->in->newname);
        if (!directory_is_empty(move->to.dir->fd, move->in->newname))
            return -ENOTEMPTY;
    }
    return 0;
}

static int move_names(struct move *move)
{
    REMOVAL(move->posix);
    return env_renameat2(move->from.dir->fd, move->in->oldname, move->to.dir->fd,
                         move->in->newname, 0);
}

/* What the overwritten name leaves: one name less, or nothing. */
static int bury_target(struct move *move)
{
    struct victim *target = &move->new;

    if (!target->exists || !target->is_labelled || S_ISDIR(target->st.st_mode))
        return 0;
    if (target->is_last) {
        linger_begin(move->posix, target->inode, target->node);
        return keep_unlinked(target);
    }
    gfid2path_remove(move->posix, &target->object, &move->in->newparent->gfid, move->in->newname);
    pgfid_add(move->posix, &target->object, &move->in->newparent->gfid, -1);
    return 0;
}

static void target_gone(struct move *move)
{
    struct victim *target = &move->new;

    if (!target->exists || !target->is_labelled)
        return;
    if (S_ISDIR(target->st.st_mode)) {
        handle_unlink_dir(move->posix, &target->gfid, &move->in->newparent->gfid,
                          move->in->newname);
        node_reset(move->posix, target->node);
        return;
    }
    if (target->is_last)
        /* left over, a nameless look-up drops it */
        best_effort(handle_unlink(move->posix, &target->gfid));
    victim_gone(target);
    if (!target->is_last || target->node->is_unlinked)
        mdata_touch(move->posix, target->node, move->call, move->in->xdata, TIMES_CTIME);
}

static int move_file(struct move *move)
{
    const struct rename_args *in = move->in;
    struct posix *posix = move->posix;
    struct object moved = object_at(move->to.dir->fd, in->newname);

    int ret = bury_target(move);
    if (ret == 0)
        ret = move_names(move);
    if (ret < 0) {
        if (move->new.exists && move->new.is_last)
            keep_no_more(&move->new);
        return ret;
    }
    if (move->old.is_labelled) {
        gfid2path_remove(posix, &moved, &in->oldparent->gfid, in->oldname);
        gfid2path_add(posix, &moved, &in->newparent->gfid, in->newname);
        pgfid_add(posix, &moved, &in->oldparent->gfid, -1);
        pgfid_add(posix, &moved, &in->newparent->gfid, 1);
    }
    return 0;
}

/* Without a handle a directory is found again by its name; with a wrong one by nobody. So the
 * handle goes first and comes back last; who misses it meanwhile waits for dir_rename. */
static int move_directory(struct move *move)
{
    const struct rename_args *in = move->in;
    struct posix *posix = move->posix;

    if (!move->old.is_labelled)
        return move_names(move);
    pthread_mutex_lock(&posix->dir_rename);
    int ret = handle_unlink(posix, &move->old.gfid);
    if (ret == 0)
        ret = move_names(move);
    if (ret == 0)
        ret = handle_link_dir(posix, &move->old.gfid, &in->newparent->gfid, in->newname);
    else
        best_effort(handle_link_dir(posix, &move->old.gfid, &in->oldparent->gfid, in->oldname));
    pthread_mutex_unlock(&posix->dir_rename);
    return ret;
}

static int move_stats(struct move *move, struct rename_reply *out)
{
    struct object moved = object_at(move->to.dir->fd, move->in->newname);

    parent_touch(move->posix, &move->from, move->call, move->in->xdata, &out->postoldparent);
    parent_touch(move->posix, &move->to, move->call, move->in->xdata, &out->postnewparent);
    if (!move->old.node)
        return 0;
    mdata_touch(move->posix, move->old.node, move->call, move->in->xdata, TIMES_CTIME);
    node_changed(move->old.node);
    return stat_iatt(move->posix, move->old.node, &moved, &out->stat);
}

static int move_locked(struct move *move, struct rename_reply *out)
{
    bool has_target = move->new.exists && move->new.is_labelled;
    STRIPES_HELD held =
        inodes_lock(move->posix, &move->old.gfid, has_target ? &move->new.gfid : NULL);

    int ret = victim_settle(&move->old);
    if (ret == 0 && has_target)
        ret = victim_settle(&move->new);
    if (ret < 0)
        return ret;
    if (is_same_object(move)) /* two names of one file: rename(2) does nothing, and is content */
        return move->old.node ? stat_iatt(move->posix, move->old.node, &move->old.object,
                                          &out->stat)
                              : 0;
    ret = S_ISDIR(move->old.st.st_mode) ? move_directory(move) : move_file(move);
    if (ret < 0)
        return ret;
    target_gone(move);
    return move_stats(move, out);
}

static int rename_work(struct posix *posix, struct call *call, const struct rename_args *in,
                       struct rename_reply *out)
{
    MOVE move = {
        .posix = posix, .call = call, .in = in,
        .old = { .posix = posix, .parent_gfid = &in->oldparent->gfid, .name = in->oldname,
                 .keeper = -1 },
        .new = { .posix = posix, .parent_gfid = &in->newparent->gfid, .name = in->newname,
                 .keeper = -1 },
    };

    int ret = parent_begin(posix, in->oldparent, in->oldname, &move.from, &out->preoldparent);
    if (ret == 0)
        ret = parent_begin(posix, in->newparent, in->newname, &move.to, &out->prenewparent);
    if (ret < 0)
        return ret;
    move.old.dir = move.from.dir->fd;
    move.new.dir = move.to.dir->fd;
    out->postoldparent = out->preoldparent;
    out->postnewparent = out->prenewparent;
    STRIPES_HELD held = names_lock2(posix, &in->oldparent->gfid, in->oldname,
                                    &in->newparent->gfid, in->newname);
    ret = move_check(&move);
    return ret < 0 ? ret : move_locked(&move, out);
}
POSIX_HOP(rename)
