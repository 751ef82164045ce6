/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a brick promises of single operations, and what its tree looks like after them. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define BRICK(name)                                                                                \
    struct brick name;                                                                             \
    brick_new(&name);                                                                              \
    check_equal(brick_start(&name, NULL), 0)

static void brick_end(struct brick *brick)
{
    brick_stop(brick);
    check_equal(tree_faults(brick), 0);
    brick_remove(brick);
}

static void a_file_is_written_and_read_again(void)
{
    BRICK(brick);
    struct iatt stat, again;
    AUTO(fd) fd = NULL;
    char bytes[32] = "";

    check_equal(do_create(&brick, brick.root, "f1", O_RDWR | O_EXCL, 0100640, &fd, &stat), 0);
    check_equal(stat.mode, 0100640);
    check_equal(stat.nlink, 1);
    check_equal(do_write(&brick, fd, "hello", 5, 0), 5);
    check_equal(do_read(&brick, fd, bytes, sizeof(bytes), 0), 5);
    check(strcmp(bytes, "hello") == 0);
    check_equal(do_lookup(&brick, brick.root, "f1", &again), 0);
    check(gfid_equal(&stat.gfid, &again.gfid));
    check_equal(again.size, 5);
    check_equal(again.nlink, 1);
    check_equal(do_lookup_gfid(&brick, &stat.gfid, &again), 0);
    check_equal(again.size, 5);
    fd_unref(TAKE(fd));
    brick_end(&brick);
}

static void names_are_noted_as_the_specification_says(void)
{
    BRICK(brick);
    struct iatt stat;

    check_equal(do_create(&brick, brick.root, "f1", O_RDWR, 0100644, NULL, &stat), 0);
    check_equal(do_symlink(&brick, brick.root, "sl", "target", &stat), 0);
    check_equal(stat.nlink, 1);
    check_equal(do_mknod(&brick, brick.root, "pipe", S_IFIFO | 0600, &stat), 0);
    check_equal(stat.nlink, 1);
    check_equal(stat.mode, S_IFIFO | 0600);
    check(disk_xattr(&brick, "f1", "trusted.gfid2path.5b24eafb4345038c"));
    check(disk_xattr(&brick, "sl", "trusted.gfid2path.af08f9354878dd7c"));
    check(disk_xattr(&brick, "pipe", "trusted.gfid2path.64cf4d7077bbd6ec"));
    check_equal(do_rename(&brick, brick.root, "f1", brick.root, "f1renamed", &stat), 0);
    check(disk_xattr(&brick, "f1renamed", "trusted.gfid2path.20aafef705307028"));
    check(!disk_xattr(&brick, "f1renamed", "trusted.gfid2path.5b24eafb4345038c"));
    brick_end(&brick);
}

static void directories_nest_move_and_are_found_by_gfid(void)
{
    BRICK(brick);
    struct iatt a, b, c, stat;

    check_equal(do_mkdir(&brick, brick.root, "a", 0755, &a), 0);
    AUTO(inode) dir_a = inode_of(&brick, &a);
    check_equal(do_mkdir(&brick, dir_a, "b", 0755, &b), 0);
    AUTO(inode) dir_b = inode_of(&brick, &b);
    check_equal(do_mkdir(&brick, dir_b, "c", 0755, &c), 0);
    check_equal(do_create(&brick, dir_b, "f", O_RDWR, 0100644, NULL, &stat), 0);
    check_equal(do_rename(&brick, dir_a, "b", brick.root, "moved", &stat), 0);
    check(gfid_equal(&stat.gfid, &b.gfid));
    check_equal(do_lookup_gfid(&brick, &c.gfid, &stat), 0);
    check_equal(do_lookup(&brick, dir_b, "f", &stat), 0);
    check_equal(do_lookup(&brick, dir_a, "b", &stat), -ENOENT);
    check_equal(do_rmdir(&brick, brick.root, "moved", 0), -ENOTEMPTY);
    check_equal(do_rmdir(&brick, brick.root, "a", 0), 0);
    check_equal(do_lookup_gfid(&brick, &a.gfid, &stat), -ENOENT);
    inode_unref(TAKE(dir_a));
    inode_unref(TAKE(dir_b));
    brick_end(&brick);
}

static void a_directory_is_found_by_its_handles_after_a_restart(void)
{
    BRICK(brick);
    char name[256];
    struct iatt stat, last;

    memset(name, 'n', 255);
    name[255] = '\0';
    struct inode *dir = inode_ref(brick.root);
    for (int depth = 0; depth < 60; depth++) {
        check_equal(do_mkdir(&brick, dir, name, 0755, &last), 0);
        inode_unref(dir);
        dir = inode_of(&brick, &last);
    }
    inode_unref(dir);
    brick_stop(&brick);
    check_equal(brick_start(&brick, NULL), 0);
    check_equal(do_lookup_gfid(&brick, &last.gfid, &stat), 0);
    check_equal(stat.mode, 0040755);
    dir = inode_of(&brick, &last);
    check_equal(do_create(&brick, dir, "deep", O_RDWR, 0100600, NULL, &stat), 0);
    inode_unref(dir);
    brick_stop(&brick);
    brick_remove(&brick); /* too deep for the judge's paths */
}

static void an_unlinked_open_file_lives_until_it_is_closed(void)
{
    BRICK(brick);
    AUTO(fd) fd = NULL;
    AUTO(fd) anonymous = NULL;
    struct iatt stat;
    char bytes[8] = "", text[UUID_TEXT_SIZE], path[128];

    check_equal(do_create(&brick, brick.root, "f", O_RDWR, 0100600, &fd, &stat), 0);
    AUTO(inode) inode = inode_of(&brick, &stat);
    check_equal(do_write(&brick, fd, "data", 4, 0), 4);
    check_equal(do_unlink(&brick, brick.root, "f"), 0);
    snprintf(path, sizeof(path), ".glusterfs/unlink/%s", gfid_format(&stat.gfid, text));
    check(disk_exists(&brick, path));
    check_equal(do_lookup(&brick, brick.root, "f", &stat), -ENOENT);
    check_equal(do_lookup_gfid(&brick, &inode->gfid, &stat), -ENOENT);
    check_equal(do_stat(&brick, inode, &stat), 0);
    check_equal(stat.nlink, 0);
    check_equal(do_read(&brick, fd, bytes, 4, 0), 4);
    anonymous = fd_anonymous(inode);
    check_equal(do_read(&brick, anonymous, bytes, 4, 0), 4);
    check_equal(do_link(&brick, inode, brick.root, "again", &stat), -ENOENT);
    fd_unref(TAKE(anonymous));
    fd_unref(TAKE(fd));
    check(!disk_exists(&brick, path));
    check_equal(do_stat(&brick, inode, &stat), -ESTALE);
    inode_unref(TAKE(inode));
    brick_end(&brick);
}

static void links_count_and_the_last_one_ends_the_file(void)
{
    BRICK(brick);
    struct iatt stat;

    check_equal(do_create(&brick, brick.root, "a", O_RDWR, 0100600, NULL, &stat), 0);
    AUTO(inode) inode = inode_of(&brick, &stat);
    check_equal(do_link(&brick, inode, brick.root, "b", &stat), 0);
    check_equal(stat.nlink, 2);
    check_equal(do_link(&brick, inode, brick.root, "b", &stat), -EEXIST);
    check_equal(do_rename(&brick, brick.root, "a", brick.root, "b", &stat), 0);
    check_equal(stat.nlink, 2); /* two names of one file: nothing happens */
    check_equal(do_create(&brick, brick.root, "c", O_RDWR, 0100600, NULL, &stat), 0);
    check_equal(do_rename(&brick, brick.root, "c", brick.root, "b", &stat), 0);
    check_equal(do_stat(&brick, inode, &stat), 0);
    check_equal(stat.nlink, 1); /* told at once */
    check_equal(do_unlink(&brick, brick.root, "a"), 0);
    check_equal(do_stat(&brick, inode, &stat), -ESTALE);
    inode_unref(TAKE(inode));
    brick_end(&brick);
}

static void hard_links_end_at_the_limit(void)
{
    struct brick brick;
    const char *const options[] = { "max-hardlinks", "3", NULL };
    struct iatt stat;

    brick_new(&brick);
    check_equal(brick_start(&brick, options), 0);
    check_equal(do_create(&brick, brick.root, "a", O_RDWR, 0100600, NULL, &stat), 0);
    AUTO(inode) inode = inode_of(&brick, &stat);
    check_equal(do_link(&brick, inode, brick.root, "b", &stat), 0);
    check_equal(do_link(&brick, inode, brick.root, "c", &stat), 0);
    check_equal(do_link(&brick, inode, brick.root, "d", &stat), -EMLINK);
    inode_unref(TAKE(inode));
    brick_end(&brick);
}

static void many_links_outgrow_what_can_be_noted(void)
{
    BRICK(brick);
    struct iatt stat;
    char name[64];

    check_equal(do_create(&brick, brick.root, "first", O_RDWR, 0100600, NULL, &stat), 0);
    AUTO(inode) inode = inode_of(&brick, &stat);
    for (int i = 0; i < 98; i++) {
        snprintf(name, sizeof(name), "one-more-name-of-the-same-file-%d", i);
        check_equal(do_link(&brick, inode, brick.root, name, &stat), 0);
    }
    check_equal(stat.nlink, 99);
    for (int i = 0; i < 98; i++) {
        snprintf(name, sizeof(name), "one-more-name-of-the-same-file-%d", i);
        check_equal(do_unlink(&brick, brick.root, name), 0);
    }
    inode_unref(TAKE(inode));
    brick_end(&brick);
}

static void creations_need_a_gfid(void)
{
    BRICK(brick);
    AUTO(fd) fd = fd_new(NULL, O_RDWR, 1);
    struct mkdir_args mkdir_in = { .parent = brick.root, .mode = 0755, .name = "d" };
    struct create_args create_in = { .parent = brick.root, .mode = 0644, .name = "f", .fd = fd };
    struct mkdir_reply mkdir_out = {};
    struct create_reply create_out = {};

    check_equal(fop_mkdir(&brick.xl, &brick.call, &mkdir_in, &mkdir_out), -EINVAL);
    check_equal(fop_create(&brick.xl, &brick.call, &create_in, &create_out), -EINVAL);
    fd_unref(TAKE(fd));
    brick_end(&brick);
}

static void the_handle_directory_is_out_of_reach(void)
{
    BRICK(brick);
    struct iatt stat;

    check_equal(do_lookup(&brick, brick.root, ".glusterfs", &stat), -EPERM);
    check_equal(do_mkdir(&brick, brick.root, ".glusterfs", 0755, &stat), -EPERM);
    check_equal(do_rmdir(&brick, brick.root, ".glusterfs", 0), -EPERM);
    check_equal(do_rename(&brick, brick.root, ".glusterfs", brick.root, "x", &stat), -EPERM);
    check_equal(do_lookup(&brick, brick.root, "a/b", &stat), -EPERM);
    check_equal(do_lookup(&brick, brick.root, "nothing", &stat), -ENOENT);
    brick_end(&brick);
}

static void permission_is_checked_and_owner_given_as_the_caller(void)
{
    BRICK(brick);
    struct iatt dir, stat;
    uint32_t groups[] = { 1000, 2000 };

    check_equal(do_mkdir(&brick, brick.root, "private", 0700, &dir), 0);
    AUTO(inode) private = inode_of(&brick, &dir);
    check_equal(do_mkdir(&brick, brick.root, "shared", 02770, &dir), 0);
    AUTO(inode) shared = inode_of(&brick, &dir);
    struct setattr_args own = { .inode = shared, .stat = { .gid = 2000 }, .valid = VALID_GID };
    struct setattr_reply owned = {};
    check_equal(fop_setattr(&brick.xl, &brick.call, &own, &owned), 0);
    own = (struct setattr_args){ .inode = shared, .stat = { .mode = 02770 }, .valid = VALID_MODE };
    check_equal(fop_setattr(&brick.xl, &brick.call, &own, &owned), 0);

    brick.call.uid = brick.call.gid = 1000;
    brick.call.groups = groups;
    brick.call.group_count = 2;
    check_equal(do_create(&brick, private, "f", O_RDWR, 0100600, NULL, &stat), -EACCES);
    check_equal(do_mkdir(&brick, private, "d", 0755, &stat), -EACCES);
    check_equal(do_symlink(&brick, private, "s", "x", &stat), -EACCES);
    check_equal(do_mknod(&brick, brick.root, "null", S_IFCHR | 0666, &stat), -EPERM);
    check_equal(do_create(&brick, shared, "f", O_RDWR, 0100600, NULL, &stat), 0);
    check_equal(stat.uid, 1000);
    check_equal(stat.gid, 2000); /* by the parent's setgid bit */
    check_equal(do_symlink(&brick, shared, "s", "x", &stat), 0);
    check_equal(stat.uid, 1000);
    check_equal(stat.gid, 2000);
    check_equal(do_mkdir(&brick, shared, "d", 0755, &stat), 0);
    check_equal(stat.gid, 2000);
    check_equal(stat.mode, 0042755);
    inode_unref(TAKE(private));
    inode_unref(TAKE(shared));
    brick_end(&brick);
}

static unsigned entries_of(struct brick *brick, struct inode *dir, uint32_t size, bool with_stats)
{
    AUTO(fd) fd = fd_new(dir, 0, 1);
    struct opendir_args open_in = { .inode = dir, .fd = fd };
    struct opendir_reply open_out = {};
    uint64_t offset = 0;
    unsigned count = 0;

    fd->is_dir = true;
    check_equal(fop_opendir(&brick->xl, &brick->call, &open_in, &open_out), 0);
    for (bool eof = false; !eof;) {
        struct readdirp_args in = { .fd = fd, .offset = offset, .size = size };
        struct readdirp_reply out = {};
        int ret = with_stats ? fop_readdirp(&brick->xl, &brick->call, &in, &out)
                             : fop_readdir(&brick->xl, &brick->call,
                                           (const struct readdir_args *)&in,
                                           (struct readdir_reply *)&out);
        check(ret >= 0);
        check_equal(ret, out.entries.count);
        for (struct dirent_entry *entry = out.entries.first; entry; entry = entry->next) {
            check(strcmp(entry->name, ".glusterfs") != 0);
            check(!with_stats || entry->stat->nlink > 0);
            offset = entry->off;
            count++;
        }
        eof = out.eof || ret == 0;
        readdirp_reply_fini(&out);
    }
    return count;
}

static void listings_have_everything_once(void)
{
    BRICK(brick);
    struct iatt stat;
    char name[32];

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "entry-%d", i);
        check_equal(i % 3 ? do_create(&brick, brick.root, name, O_RDWR, 0100600, NULL, &stat)
                          : do_mkdir(&brick, brick.root, name, 0700, &stat),
                    0);
    }
    check_equal(entries_of(&brick, brick.root, 4096, false), 302); /* with . and .. */
    check_equal(entries_of(&brick, brick.root, 4096, true), 302);
    check_equal(entries_of(&brick, brick.root, 1 << 20, true), 302);
    check_equal(entries_of(&brick, brick.root, 1, true), 302); /* one at a time */
    brick_end(&brick);
}

static void times_of_clients_are_kept_and_stored(void)
{
    BRICK(brick);
    AUTO(fd) fd = NULL;
    struct iatt stat;

    brick.call.times = 31;
    brick.call.ctime_sec = 0x6b0e0e38;
    brick.call.ctime_nsec = 0x227f58f8;
    check_equal(do_create(&brick, brick.root, "f", O_RDWR, 0100600, &fd, &stat), 0);
    check_equal(stat.mtime.sec, 0x6b0e0e38);
    check(strcmp(disk_xattr(&brick, "f", "trusted.glusterfs.mdata"),
                 "010000000000000000000000006b0e0e3800000000227f58f8"
                 "000000006b0e0e3800000000227f58f8000000006b0e0e3800000000227f58f8") == 0);
    brick.call.times = 3;
    brick.call.ctime_sec++;
    check_equal(do_write(&brick, fd, "x", 1, 0), 1);
    brick.call.ctime_sec -= 100; /* a clock that is behind changes nothing */
    check_equal(do_write(&brick, fd, "x", 1, 0), 1);
    check_equal(do_lookup(&brick, brick.root, "f", &stat), 0);
    check_equal(stat.mtime.sec, 0x6b0e0e39);
    check_equal(stat.atime.sec, 0x6b0e0e38);
    fd_unref(TAKE(fd));
    brick_stop(&brick);
    check(strncmp(disk_xattr(&brick, "f", "trusted.glusterfs.mdata") + 18, "000000006b0e0e39", 16)
          == 0);
    check_equal(brick_start(&brick, NULL), 0);
    check_equal(do_lookup(&brick, brick.root, "f", &stat), 0);
    check_equal(stat.mtime.sec, 0x6b0e0e39);
    brick_end(&brick);
}

static void counters_in_attributes_add_up(void)
{
    BRICK(brick);
    struct iatt stat;
    const uint8_t one[12] = { [3] = 1, [11] = 0xff };
    const uint8_t two[12] = { [3] = 2, [10] = 1, [11] = 0xfe };

    check_equal(do_create(&brick, brick.root, "f", O_RDWR, 0100600, NULL, &stat), 0);
    AUTO(inode) inode = inode_of(&brick, &stat);
    for (int turn = 0; turn < 2; turn++) {
        AUTO(dict) dict = dict_new();
        check_equal(dict_set_bytes(dict, "trusted.afr.dirty", one, sizeof(one)), 0);
        struct xattrop_args in = { .inode = inode, .dict = dict };
        struct xattrop_reply out = {};
        check_equal(fop_xattrop(&brick.xl, &brick.call, &in, &out), 0);
        const struct dict_value *value = dict_get(out.dict, "trusted.afr.dirty");
        check(value && value->bytes == 12);
        check(memcmp(value->data, turn ? two : one, 12) == 0);
        xattrop_reply_fini(&out);
    }
    check(strcmp(disk_xattr(&brick, "f", "trusted.afr.dirty"), "0000000200000000000001fe") == 0);
    inode_unref(TAKE(inode));
    brick_end(&brick);
}

static void checksums_are_those_of_the_specification(void)
{
    struct brick brick;
    const char *const options[] = { "fips-mode-rchecksum", "on", NULL };
    AUTO(fd) fd = NULL;
    struct iatt stat;

    brick_new(&brick);
    check_equal(brick_start(&brick, options), 0);
    check_equal(do_create(&brick, brick.root, "f", O_RDWR, 0100600, &fd, &stat), 0);
    check_equal(do_write(&brick, fd, "0123\0\0\0\0" "89abcZ", 14, 0), 14);
    struct rchecksum_args in = { .fd = fd, .size = 14 };
    struct rchecksum_reply out = {};
    check_equal(fop_rchecksum(&brick.xl, &brick.call, &in, &out), 0);
    check_equal(out.weak, 266142391);
    check_equal(out.strong.bytes, 32);
    check(memcmp(out.strong.data, "\xc6\x47\x1e\xbc\xba\x14\xf2\x02\x34\x73", 10) == 0);
    check_equal(out.flags, 1);
    rchecksum_reply_fini(&out);
    fd_unref(TAKE(fd));
    brick_end(&brick);
}

static void a_removed_tree_goes_to_the_landfill_and_is_purged(void)
{
    struct brick brick;
    const char *const options[] = { "janitor-sleep-duration", "1", NULL };
    struct iatt a, b, stat;

    brick_new(&brick);
    check_equal(brick_start(&brick, options), 0);
    check_equal(do_mkdir(&brick, brick.root, "a", 0755, &a), 0);
    AUTO(inode) dir_a = inode_of(&brick, &a);
    check_equal(do_mkdir(&brick, dir_a, "b", 0755, &b), 0);
    AUTO(inode) dir_b = inode_of(&brick, &b);
    check_equal(do_create(&brick, dir_b, "f", O_RDWR, 0100600, NULL, &stat), 0);
    AUTO(inode) file = inode_of(&brick, &stat);
    check_equal(do_link(&brick, file, brick.root, "kept", &stat), 0);
    check_equal(do_create(&brick, dir_a, "g", O_RDWR, 0100600, NULL, &stat), 0);
    check_equal(do_rmdir(&brick, brick.root, "a", 1), 0);
    check_equal(do_lookup(&brick, brick.root, "a", &stat), -ENOENT);
    env_sleep(4 * NS_PER_S);
    inode_unref(TAKE(dir_a));
    inode_unref(TAKE(dir_b));
    inode_unref(TAKE(file));
    check_equal(do_lookup(&brick, brick.root, "kept", &stat), 0);
    check_equal(stat.nlink, 1);
    char text[UUID_TEXT_SIZE], path[128];
    snprintf(path, sizeof(path), ".glusterfs/landfill/%s", gfid_format(&a.gfid, text));
    check(!disk_exists(&brick, path));
    brick_end(&brick);
}

static void wrong_directories_are_refused(void)
{
    struct brick brick;
    const char *const id[] = { "volume-id", "3a3a3a3a-1111-2222-3333-444455556666", NULL };

    brick_new(&brick);
    check_equal(brick_start(&brick, id), -ENODATA);
    brick_stop(&brick);
    check_equal(setxattr(brick.path, "trusted.glusterfs.volume-id", "0123456789abcdef", 16, 0), 0);
    check_equal(brick_start(&brick, id), -EINVAL);
    brick_stop(&brick);
    check_equal(setxattr(brick.path, "trusted.gfid", "0123456789abcdef", 16, 0), 0);
    check_equal(brick_start(&brick, NULL), -EINVAL);
    brick_stop(&brick);
    brick_remove(&brick);
    check_equal(brick_start(&brick, NULL), -ENOENT);
    brick_stop(&brick);
    FILE *file = fopen(brick.path, "w");
    fclose(file);
    check_equal(brick_start(&brick, NULL), -ENOTDIR);
    brick_stop(&brick);
    check_equal(remove(brick.path), 0);
}

static void in_brick(const struct brick *brick, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", brick->path, name);
}

static void what_a_crash_left_empty_counts_as_absent(void)
{
    BRICK(brick);
    struct iatt stat;
    char path[512];

    in_brick(&brick, "d", path);
    check_equal(mkdir(path, 0755), 0);
    check_equal(do_lookup(&brick, brick.root, "d", &stat), -ENOENT);
    check_equal(do_mkdir(&brick, brick.root, "d", 0700, &stat), 0);
    check_equal(stat.mode, 0040700);
    in_brick(&brick, "f", path);
    close(open(path, O_CREAT | O_WRONLY, 0644));
    check_equal(do_lookup(&brick, brick.root, "f", &stat), -ENOENT);
    check_equal(do_create(&brick, brick.root, "f", O_RDWR | O_EXCL, 0100600, NULL, &stat), 0);
    AUTO(inode) dir = NULL;
    check_equal(do_lookup(&brick, brick.root, "d", &stat), 0);
    dir = inode_of(&brick, &stat);
    in_brick(&brick, "d/left", path);
    check_equal(mkdir(path, 0755), 0);
    check_equal(do_rmdir(&brick, brick.root, "d", 0), 0); /* left-overs do not hold it */
    inode_unref(TAKE(dir));
    brick_end(&brick);
}

static void what_was_put_there_by_hand_is_labelled(void)
{
    BRICK(brick);
    struct iatt stat;
    char path[512];

    in_brick(&brick, "f", path);
    FILE *file = fopen(path, "w");
    check(file && fputs("text", file) > 0 && fclose(file) == 0);
    if (env_kind() != ENV_SIM) { /* whose clock is years ahead */
        check_equal(do_lookup(&brick, brick.root, "f", &stat), -ENOENT); /* too young */
        env_sleep(1100 * NS_PER_MS);
    }
    check_equal(do_lookup(&brick, brick.root, "f", &stat), 0);
    check_equal(stat.size, 4);
    check_equal(stat.nlink, 1);
    brick_end(&brick);
}

static void a_lost_handle_is_made_anew(void)
{
    BRICK(brick);
    struct iatt file, dir, stat;
    char path[512], text[UUID_TEXT_SIZE];

    check_equal(do_create(&brick, brick.root, "f", O_RDWR, 0100600, NULL, &file), 0);
    check_equal(do_mkdir(&brick, brick.root, "d", 0755, &dir), 0);
    brick_stop(&brick);
    for (int i = 0; i < 2; i++) {
        const gfid_t *gfid = i ? &dir.gfid : &file.gfid;
        snprintf(path, sizeof(path), "%s/.glusterfs/%02x/%02x/%s", brick.path, gfid->bytes[0],
                 gfid->bytes[1], gfid_format(gfid, text));
        check_equal(unlink(path), 0);
    }
    check_equal(brick_start(&brick, NULL), 0);
    check_equal(do_lookup_gfid(&brick, &file.gfid, &stat), -ENOENT);
    check_equal(do_lookup(&brick, brick.root, "f", &stat), 0);
    check_equal(do_lookup(&brick, brick.root, "d", &stat), 0);
    check_equal(do_lookup_gfid(&brick, &file.gfid, &stat), 0);
    check_equal(do_lookup_gfid(&brick, &dir.gfid, &stat), 0);
    brick_end(&brick);
}

static void the_reserve_refuses_data_but_not_deletion(void)
{
    struct brick brick;
    const char *const all[] = { "reserve", "100", NULL };
    struct iatt stat;

    brick_new(&brick);
    check_equal(brick_start(&brick, NULL), 0);
    check_equal(do_create(&brick, brick.root, "f", O_RDWR, 0100600, NULL, &stat), 0);
    brick_stop(&brick);
    check_equal(brick_start(&brick, all), 0);
    check_equal(do_create(&brick, brick.root, "g", O_RDWR, 0100600, NULL, &stat), -ENOSPC);
    check_equal(do_mkdir(&brick, brick.root, "d", 0755, &stat), -ENOSPC);
    check_equal(do_rename(&brick, brick.root, "f", brick.root, "h", &stat), 0);
    check_equal(do_unlink(&brick, brick.root, "h"), 0);
    brick.call.pid = PID_SELF_HEAL;
    check_equal(do_create(&brick, brick.root, "g", O_RDWR, 0100600, NULL, &stat), 0);
    brick_end(&brick);
}

static void direct_writes_are_aligned_or_refused(void)
{
    BRICK(brick);
    AUTO(fd) fd = NULL;
    struct iatt stat;
    static char odd[4096 + 1];
    char back[4096];

    check_equal(do_create(&brick, brick.root, "f", O_RDWR | O_DIRECT, 0100600, &fd, &stat), 0);
    memset(odd, 'd', sizeof(odd));
    check_equal(do_write(&brick, fd, odd + 1, 4096, 0), 4096); /* memory is ours to align */
    check_equal(do_write(&brick, fd, odd + 1, 100, 0), -EINVAL);
    check_equal(do_write(&brick, fd, odd + 1, 4096, 100), -EINVAL);
    check_equal(do_read(&brick, fd, back, 4096, 0), 4096);
    check(memcmp(back, odd + 1, 4096) == 0);
    fd_unref(TAKE(fd));
    brick_end(&brick);
}

static void a_descriptor_does_what_it_was_opened_for(void)
{
    BRICK(brick);
    struct iatt stat;
    char byte;

    check_equal(do_create(&brick, brick.root, "f", O_RDWR, 0100600, NULL, &stat), 0);
    AUTO(inode) inode = inode_of(&brick, &stat);
    AUTO(fd) reader = NULL;
    AUTO(fd) writer = NULL;
    check_equal(do_open(&brick, inode, O_RDONLY, &reader), 0);
    check_equal(do_open(&brick, inode, O_WRONLY | O_APPEND, &writer), 0);
    check_equal(do_write(&brick, reader, "x", 1, 0), -EBADF);
    check_equal(do_read(&brick, writer, &byte, 1, 0), -EBADF);
    check_equal(do_write(&brick, writer, "a", 1, 0), 1);
    check_equal(do_write(&brick, writer, "b", 1, 0), 1); /* appended, whatever the offset */
    check_equal(do_read(&brick, reader, &byte, 1, 1), 1);
    check_equal(byte, 'b');
    fd_unref(TAKE(reader));
    fd_unref(TAKE(writer));
    inode_unref(TAKE(inode));
    brick_end(&brick);
}

static void a_failing_disk_takes_the_brick_down(void)
{
    struct brick brick;
    const char *const options[] = { "health-check-interval", "1", NULL };
    char path[512];

    brick_new(&brick);
    in_brick(&brick, ".glusterfs/health_check", path);
    check_equal(brick_start(&brick, options), 0);
    check_equal(brick.ups, 1);
    env_sleep(2500 * NS_PER_MS);
    check_equal(brick.downs, 0);
    check(disk_exists(&brick, ".glusterfs/health_check"));
    check_equal(unlink(path), 0);
    check_equal(mkdir(path, 0755), 0); /* cannot be opened for writing */
    env_sleep(2500 * NS_PER_MS);
    check_equal(brick.downs, 1);
    brick_end(&brick);
}

int main(void)
{
    static const struct fiber_case cases[] = {
        FIBER_CASE(a_file_is_written_and_read_again, ALL),
        FIBER_CASE(names_are_noted_as_the_specification_says, ALL),
        FIBER_CASE(directories_nest_move_and_are_found_by_gfid, ALL),
        FIBER_CASE(a_directory_is_found_by_its_handles_after_a_restart, ALL),
        FIBER_CASE(an_unlinked_open_file_lives_until_it_is_closed, ALL),
        FIBER_CASE(links_count_and_the_last_one_ends_the_file, ALL),
        FIBER_CASE(hard_links_end_at_the_limit, ALL),
        FIBER_CASE(many_links_outgrow_what_can_be_noted, ALL),
        FIBER_CASE(creations_need_a_gfid, ALL),
        FIBER_CASE(the_handle_directory_is_out_of_reach, ALL),
        FIBER_CASE(permission_is_checked_and_owner_given_as_the_caller, ALL),
        FIBER_CASE(listings_have_everything_once, ALL),
        FIBER_CASE(times_of_clients_are_kept_and_stored, ALL),
        FIBER_CASE(counters_in_attributes_add_up, ALL),
        FIBER_CASE(checksums_are_those_of_the_specification, ALL),
        FIBER_CASE(a_removed_tree_goes_to_the_landfill_and_is_purged, ALL),
        FIBER_CASE(what_a_crash_left_empty_counts_as_absent, ALL),
        FIBER_CASE(what_was_put_there_by_hand_is_labelled, ALL),
        FIBER_CASE(a_lost_handle_is_made_anew, ALL),
        FIBER_CASE(the_reserve_refuses_data_but_not_deletion, ALL),
        FIBER_CASE(direct_writes_are_aligned_or_refused, ALL),
        FIBER_CASE(a_descriptor_does_what_it_was_opened_for, ALL),
        FIBER_CASE(a_failing_disk_takes_the_brick_down, ALL),
        FIBER_CASE(wrong_directories_are_refused, ALL),
    };
    return on_backends(cases, ARRAY_SIZE(cases));
}
