/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Many clients work on the same few names at once; when all are done the tree has no fault, and
 * nobody was told anything that could not have been true. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "core/sync.h"

enum { CLIENTS = 8, ROUNDS = 150, NAMES = 5, DIRS = 3 };

struct play {
    struct brick brick;
    gfid_t dirs[DIRS];          /* the root and two below it */
    struct fgroup group;
    _Atomic unsigned made, moved, removed;
};

struct client_of {
    struct play *play;
    unsigned seed;
};

static unsigned pick(struct client_of *client, unsigned below)
{
    client->seed = client->seed * 1103515245 + 12345;
    return (client->seed >> 16) % below;
}

static bool is_plausible(int ret)
{
    switch (ret) {
    case 0: case -EEXIST: case -ENOENT: case -EISDIR: case -ENOTDIR: case -ENOTEMPTY: case -ESTALE:
    case -EMLINK: case -EPERM: case -EINVAL: case -ENXIO: case -ELOOP:
        return true;
    default:
        fprintf(stderr, "# implausible: %s\n", strerror(-ret));
        return false;
    }
}

static int link_somewhere(struct play *play, struct inode *from, const char *old, struct inode *to,
                          const char *new)
{
    struct iatt stat;
    int ret = do_lookup(&play->brick, from, old, &stat);
    if (ret < 0)
        return ret;
    AUTO(inode) inode = inode_of(&play->brick, &stat);
    return do_link(&play->brick, inode, to, new, &stat);
}

static int open_and_write(struct play *play, struct inode *dir, const char *name)
{
    AUTO(fd) fd = NULL;
    int ret = do_create(&play->brick, dir, name, O_RDWR, 0100644, &fd, NULL);
    if (ret < 0)
        return ret;
    play->made++;
    ret = do_write(&play->brick, fd, "x", 1, 0);
    return ret == 1 ? 0 : ret;
}

static int list(struct play *play, struct inode *dir)
{
    AUTO(fd) fd = fd_new(dir, 0, 1);
    struct opendir_args open_in = { .inode = dir, .fd = fd };
    struct opendir_reply open_out = {};
    fd->is_dir = true;
    int ret = fop_opendir(&play->brick.xl, &play->brick.call, &open_in, &open_out);
    if (ret < 0)
        return ret;
    struct readdirp_args in = { .fd = fd, .size = 65536 };
    struct readdirp_reply out = {};
    ret = fop_readdirp(&play->brick.xl, &play->brick.call, &in, &out);
    for (struct dirent_entry *entry = out.entries.first; entry; entry = entry->next)
        if (entry->stat->nlink && S_ISDIR(entry->stat->mode) != (entry->type == DT_DIR))
            ret = -EIO; /* stats of one object with the type of another */
    readdirp_reply_fini(&out);
    return ret < 0 ? ret : 0;
}

static int act(struct play *play, struct client_of *client, struct inode *dir, struct inode *other)
{
    struct brick *brick = &play->brick;
    char name[8], name2[8];
    struct iatt stat;
    int ret;

    snprintf(name, sizeof(name), "n%u", pick(client, NAMES));
    snprintf(name2, sizeof(name2), "n%u", pick(client, NAMES));
    switch (pick(client, 10)) {
    case 0: case 1:
        return open_and_write(play, dir, name);
    case 2:
        return do_mkdir(brick, dir, name, 0755, &stat);
    case 3:
        return do_symlink(brick, dir, name, "target", &stat);
    case 4:
        ret = do_unlink(brick, dir, name);
        play->removed += ret == 0;
        return ret;
    case 5:
        return do_rmdir(brick, dir, name, 0);
    case 6: case 7:
        ret = do_rename(brick, dir, name, other, name2, &stat);
        play->moved += ret == 0;
        return ret;
    case 8:
        return link_somewhere(play, dir, name, other, name2);
    default:
        return pick(client, 2) ? list(play, dir) : do_lookup(brick, dir, name, &stat);
    }
}

static void client_main(void *arg)
{
    struct client_of *client = arg;
    struct play *play = client->play;

    for (int round = 0; round < ROUNDS; round++) {
        AUTO(inode) dir = inode_get(play->brick.graph.inodes, &play->dirs[pick(client, DIRS)]);
        AUTO(inode) other = inode_get(play->brick.graph.inodes, &play->dirs[pick(client, DIRS)]);
        check(is_plausible(act(play, client, dir, other)));
    }
    free(client);
}

static void every_hand_on_the_same_names(void)
{
    static struct play play;
    struct iatt stat;

    play = (struct play){};
    brick_new(&play.brick);
    check_equal(brick_start(&play.brick, NULL), 0);
    play.dirs[0] = gfid_root;
    check_equal(do_mkdir(&play.brick, play.brick.root, "one", 0755, &stat), 0);
    play.dirs[1] = stat.gfid;
    check_equal(do_mkdir(&play.brick, play.brick.root, "two", 0755, &stat), 0);
    play.dirs[2] = stat.gfid;

    fgroup_init(&play.group, 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client_of *client = malloc(sizeof(*client));
        *client = (struct client_of){ &play, 7919 * (i + 1) };
        check_equal(fgroup_start(&play.group, "client", client_main, client), 0);
    }
    fgroup_wait(&play.group, NULL, NULL);
    fgroup_fini(&play.group);
    check(play.made > 20 && play.moved > 20 && play.removed > 20);
    brick_stop(&play.brick);
    check_equal(tree_faults(&play.brick), 0);
    brick_remove(&play.brick);
}

int main(void)
{
    static const struct fiber_case cases[] = { FIBER_CASE(every_hand_on_the_same_names, ALL) };
    return on_backends(cases, ARRAY_SIZE(cases));
}
