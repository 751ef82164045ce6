/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* link(2), unlink(2) and symlink(2): names, link counts, and files that live on without a name. */
#include "harness.h"

/* link */

CASE(linked_names_are_one_file)
{
    write_file("a", "one");
    OK(link("a", "b"));
    EQ(inode_of("a"), inode_of("b"));
    EQ(links_of("a"), 2);
    EQ(links_of("b"), 2);
    write_file("b", "two");
    file_reads("a", "two");
}

CASE(link_updates_ctime_of_the_file_and_mtime_of_the_directory)
{
    OK(mkdir("d", 0755));
    make_file("f", 0644);
    struct stat file = stat_of("f"), dir = stat_of("d");

    nap();
    OK(link("f", "d/g"));
    CHECK(time_is_before(file.st_ctim, stat_of("f").st_ctim));
    CHECK(time_equals(file.st_mtim, stat_of("f").st_mtim));
    CHECK(time_is_before(dir.st_mtim, stat_of("d").st_mtim));
    CHECK(time_is_before(dir.st_ctim, stat_of("d").st_ctim));
}

CASE(link_count_is_seen_at_once_through_every_name_and_descriptor)
{
    int fd = open_file_with("a", "");

    OK(mkdir("d", 0755));
    OK(link("a", "b"));
    OK(link("b", "d/c"));
    EQ(links_of("a"), 3);
    EQ(links_of("d/c"), 3);
    EQ((intmax_t)fstat_of(fd).st_nlink, 3);
    OK(unlink("a"));
    EQ(links_of("b"), 2);
    OK(unlink("d/c"));
    EQ(links_of("b"), 1);
    EQ((intmax_t)fstat_of(fd).st_nlink, 1);
}

CASE(link_refuses_an_existing_name)
{
    write_file("a", "one");
    write_file("b", "two");
    FAILS(EEXIST, link("a", "b"));
    FAILS(EEXIST, link("a", "a"));
    file_reads("b", "two");
    EQ(links_of("a"), 1);
}

CASE(link_of_a_missing_file_is_enoent)
{
    FAILS(ENOENT, link("a", "b"));
    make_file("a", 0644);
    FAILS(ENOENT, link("a", "no/b"));
    FAILS(ENOENT, link("no/a", "b"));
}

CASE(link_of_a_directory_is_eperm)
{
    OK(mkdir("d", 0755));
    FAILS(EPERM, link("d", "e"));
    EQ(links_of("d"), 2);
    absent("e");
}

CASE(link_of_a_symlink_links_the_symlink)
{
    make_file("f", 0644);
    OK(symlink("f", "s"));
    OK(link("s", "t"));
    CHECK(S_ISLNK(lstat_of("t").st_mode));
    EQ(links_of("s"), 2);
    EQ(links_of("f"), 1);
}

CASE(linkat_with_follow_links_the_target)
{
    make_file("f", 0644);
    OK(symlink("f", "s"));
    OK(linkat(AT_FDCWD, "s", AT_FDCWD, "t", AT_SYMLINK_FOLLOW));
    EQ(inode_of("t"), inode_of("f"));
    EQ(links_of("f"), 2);
}

CASE(link_of_a_fifo_and_a_socket_works)
{
    OK(mkfifo("p", 0644));
    OK(mknod("s", S_IFSOCK | 0644, 0));
    OK(link("p", "p2"));
    OK(link("s", "s2"));
    CHECK(S_ISFIFO(lstat_of("p2").st_mode));
    CHECK(S_ISSOCK(lstat_of("s2").st_mode));
    EQ(links_of("p"), 2);
    EQ(links_of("s"), 2);
}

CASE(link_of_an_unlinked_open_file_by_its_path_is_enoent)
{
    char path[64];
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    FAILS(ENOENT, linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
    absent("g");
}

/* Fewer than 100: a volume may have a limit on links (max-hardlinks) at that. */
CASE(ninety_links_are_counted_up_and_down)
{
    char name[32];

    make_file("f", 0644);
    for (int i = 1; i <= 90; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        OK(link("f", name));
        EQ(links_of("f"), i + 1);
    }
    for (int i = 90; i >= 1; i--) {
        snprintf(name, sizeof(name), "f%d", i);
        OK(unlink(name));
        EQ(links_of("f"), i);
    }
}

CASE(chmod_and_chown_through_one_link_show_on_the_other)
{
    make_file("a", 0644);
    OK(link("a", "b"));
    OK(chmod("a", 0600));
    OK(chown("b", ALICE, TEAM));
    EQ(mode_of("b"), 0600);
    EQ(stat_of("a").st_uid, ALICE);
    EQ(stat_of("a").st_gid, TEAM);
}

CASE(truncate_through_one_link_shows_on_the_other)
{
    write_file("a", "long text");
    OK(link("a", "b"));
    OK(truncate("b", 4));
    file_reads("a", "long");
}

/* unlink */

CASE(unlink_removes_the_name)
{
    make_file("f", 0644);
    OK(unlink("f"));
    absent("f");
    dir_is_empty(".");
    FAILS(ENOENT, unlink("f"));
}

CASE(unlinked_name_can_be_created_anew_as_another_file)
{
    int old = open_file_with("f", "old");

    OK(unlink("f"));
    write_file("f", "new");
    file_reads("f", "new");
    fd_reads(old, 0, "old");
    CHECK(fstat_of(old).st_ino != stat_of("f").st_ino);
}

CASE(unlinked_file_reads_through_its_descriptor)
{
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    fd_reads(fd, 0, "text");
}

CASE(unlinked_file_writes_through_its_descriptor)
{
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    fd_writes(fd, 4, " and more");
    fd_reads(fd, 0, "text and more");
    absent("f");
}

CASE(unlinked_file_stats_through_its_descriptor_with_no_links)
{
    int fd = open_file_with("f", "text");
    struct stat before = fstat_of(fd);

    OK(unlink("f"));
    struct stat after = fstat_of(fd);
    EQ((intmax_t)after.st_nlink, 0);
    EQ((intmax_t)after.st_ino, (intmax_t)before.st_ino);
    EQ(after.st_size, 4);
}

CASE(unlinked_file_truncates_through_its_descriptor)
{
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    OK(ftruncate(fd, 2));
    fd_reads(fd, 0, "te");
    OK(ftruncate(fd, 1000));
    EQ(fstat_of(fd).st_size, 1000);
    fd_has_zeros(fd, 2, 998);
}

CASE(unlinked_file_changes_mode_owner_and_times_through_its_descriptor)
{
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    OK(fchmod(fd, 0600));
    OK(fchown(fd, ALICE, TEAM));
    OK(futimens(fd, times));
    struct stat st = fstat_of(fd);
    EQ(st.st_mode & 07777, 0600);
    EQ(st.st_uid, ALICE);
    EQ(st.st_gid, TEAM);
    EQ(st.st_mtim.tv_sec, 2000);
}

CASE(unlinked_file_syncs_and_seeks_through_its_descriptor)
{
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    fd_writes(fd, 4, "more");
    OK(fsync(fd));
    OK(fdatasync(fd));
    EQ(lseek(fd, 0, SEEK_END), 8);
    EQ(lseek(fd, -4, SEEK_CUR), 4);
}

CASE(unlinked_file_maps_through_its_descriptor)
{
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    EQ(memcmp(map, "text", 4), 0);
    memcpy(map, "TEXT", 4);
    OK(msync(map, 4096, MS_SYNC));
    fd_reads(fd, 0, "TEXT");
}

CASE(unlinked_file_stays_for_every_process_that_holds_it)
{
    int fd = open_file_with("f", "text");

    OK(unlink("f"));
    IN_CHILD
    {
        fd_reads(fd, 0, "text");
        fd_writes(fd, 4, " from the child");
    }
    fd_reads(fd, 0, "text from the child");
}

CASE(unlinked_file_opened_twice_keeps_both_descriptors)
{
    int one = open_file_with("f", "text");
    int two = OK(open("f", O_RDWR));

    OK(unlink("f"));
    fd_writes(one, 0, "TEXT");
    OK(close(one));
    fd_reads(two, 0, "TEXT");
    EQ((intmax_t)fstat_of(two).st_nlink, 0);
}

CASE(unlinked_file_gives_its_space_back_at_the_last_close)
{
    enum {
        BYTES = 8 << 20
    };
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, BYTES, 'x');
    OK(fsync(fd));
    OK(unlink("f"));
    EQ(fstat_of(fd).st_size, BYTES);
    CHECK(fstat_of(fd).st_blocks >= BYTES / 512);
    fd_has_bytes(fd, 0, BYTES, 'x');
}

CASE(unlink_of_one_link_leaves_the_other_and_updates_ctime)
{
    write_file("a", "text");
    OK(link("a", "b"));
    struct stat before = stat_of("b");

    nap();
    OK(unlink("a"));
    file_reads("b", "text");
    EQ(links_of("b"), 1);
    CHECK(time_is_before(before.st_ctim, stat_of("b").st_ctim));
}

CASE(unlink_updates_the_directory_times)
{
    OK(mkdir("d", 0755));
    make_file("d/f", 0644);
    struct stat before = stat_of("d");

    nap();
    OK(unlink("d/f"));
    CHECK(time_is_before(before.st_mtim, stat_of("d").st_mtim));
    CHECK(time_is_before(before.st_ctim, stat_of("d").st_ctim));
}

CASE(unlink_of_a_directory_is_eisdir)
{
    OK(mkdir("d", 0755));
    FAILS(EISDIR, unlink("d"));
    FAILS(EISDIR, unlink("."));
    CHECK(S_ISDIR(lstat_of("d").st_mode));
}

CASE(unlink_of_a_symlink_leaves_its_target)
{
    write_file("f", "text");
    OK(symlink("f", "s"));
    OK(unlink("s"));
    absent("s");
    file_reads("f", "text");
}

CASE(unlink_of_a_symlink_to_a_directory_works)
{
    OK(mkdir("d", 0755));
    OK(symlink("d", "s"));
    OK(unlink("s"));
    FAILS(ENOENT, unlink("s"));
    CHECK(S_ISDIR(lstat_of("d").st_mode));
}

CASE(unlink_with_a_trailing_slash_is_enotdir)
{
    make_file("f", 0644);
    FAILS(ENOTDIR, unlink("f/"));
    FAILS(ENOTDIR, unlink("f/g"));
}

CASE(unlink_of_a_read_only_file_needs_only_the_directory)
{
    make_file("f", 0);
    AS_USER(ALICE, ALICE) OK(unlink("f"));
    absent("f");
}

CASE(unlinkat_with_wrong_flags_is_einval)
{
    make_file("f", 0644);
    FAILS(EINVAL, unlinkat(AT_FDCWD, "f", 0x40000000));
    FAILS(ENOTDIR, unlinkat(AT_FDCWD, "f", AT_REMOVEDIR));
    stat_of("f");
}

CASE(stat_of_an_unlinked_name_is_enoent_for_other_processes_at_once)
{
    struct gate removed = gate_new();

    make_file("f", 0644);
    pid_t kid = child_fork();
    if (kid == 0) {
        stat_of("f");
        gate_wait(removed);
        absent("f");
        FAILS(ENOENT, open("f", O_RDONLY));
        child_exit();
    }
    nap();
    OK(unlink("f"));
    gate_open(removed);
    child_join(kid);
}

/* symlink, readlink */

CASE(symlink_keeps_its_target_to_the_byte)
{
    char target[64];

    OK(symlink("any/../text, even \xff\n", "s"));
    EQ(readlink("s", target, sizeof(target)), 20);
    EQ(memcmp(target, "any/../text, even \xff\n", 20), 0);
}

CASE(symlink_size_is_the_length_of_its_target)
{
    OK(symlink("0123456789", "s"));
    EQ(lstat_of("s").st_size, 10);
    CHECK(S_ISLNK(lstat_of("s").st_mode));
    EQ(lstat_of("s").st_mode & 0777, 0777);
}

static void symlink_of_length(size_t bytes)
{
    char *target = name_of(bytes, 't'), *got = malloc(bytes + 10);

    OK(symlink(target, "s"));
    EQ(readlink("s", got, bytes + 10), (intmax_t)bytes);
    EQ(memcmp(got, target, bytes), 0);
    EQ(lstat_of("s").st_size, (intmax_t)bytes);
}

CASE(symlink_of_1_byte_reads_back)
{
    symlink_of_length(1);
}
CASE(symlink_of_59_bytes_reads_back)
{
    symlink_of_length(59);
}
CASE(symlink_of_60_bytes_reads_back)
{
    symlink_of_length(60);
}
CASE(symlink_of_255_bytes_reads_back)
{
    symlink_of_length(255);
}
CASE(symlink_of_1024_bytes_reads_back)
{
    symlink_of_length(1024);
}
CASE(symlink_of_4095_bytes_reads_back)
{
    symlink_of_length(PATH_MAX - 1);
}

CASE(symlink_of_4096_bytes_is_enametoolong)
{
    FAILS(ENAMETOOLONG, symlink(name_of(PATH_MAX, 't'), "s"));
    absent("s");
}

CASE(symlink_with_an_empty_target_is_enoent)
{
    FAILS(ENOENT, symlink("", "s"));
    FAILS(ENOENT, symlink("t", ""));
}

CASE(symlink_refuses_an_existing_name)
{
    make_file("f", 0644);
    OK(symlink("nowhere", "s"));
    FAILS(EEXIST, symlink("t", "f"));
    FAILS(EEXIST, symlink("t", "s"));
}

CASE(readlink_cuts_at_the_size_of_the_buffer)
{
    char got[10] = "..........";

    OK(symlink("0123456789", "s"));
    EQ(readlink("s", got, 4), 4);
    EQ(memcmp(got, "0123......", 10), 0);
    FAILS(EINVAL, readlink("s", got, 0));
}

CASE(readlink_of_what_is_no_link_is_einval)
{
    char got[10];

    make_file("f", 0644);
    FAILS(EINVAL, readlink("f", got, sizeof(got)));
    FAILS(EINVAL, readlink(".", got, sizeof(got)));
    FAILS(ENOENT, readlink("missing", got, sizeof(got)));
}

CASE(symlink_is_followed_relative_to_its_own_directory)
{
    OK(mkdir("d", 0755));
    write_file("d/f", "inner");
    write_file("f", "outer");
    OK(symlink("f", "d/s"));
    file_reads("d/s", "inner");
}

CASE(symlink_with_dots_leads_up)
{
    OK(mkdir("d", 0755));
    write_file("f", "outer");
    OK(symlink("../f", "d/s"));
    file_reads("d/s", "outer");
}

CASE(absolute_symlink_is_followed)
{
    char path[PATH_MAX];

    write_file("f", "text");
    CHECK(getcwd(path, sizeof(path) - 3) != NULL);
    strcat(path, "/f");
    OK(symlink(path, "s"));
    file_reads("s", "text");
}

static void symlink_chain(int links)
{
    char name[32], target[16];

    write_file("s0", "end");
    for (int i = 1; i <= links; i++) {
        snprintf(target, sizeof(target), "s%d", i - 1);
        snprintf(name, sizeof(name), "s%d", i);
        OK(symlink(target, name));
    }
}

CASE(chain_of_40_symlinks_is_followed)
{
    symlink_chain(40);
    file_reads("s40", "end");
}

CASE(chain_of_41_symlinks_is_eloop)
{
    symlink_chain(41);
    FAILS(ELOOP, open("s41", O_RDONLY));
}

CASE(symlink_to_itself_is_eloop_for_every_call_that_follows)
{
    struct stat st;
    char got[8];

    OK(symlink("s", "s"));
    FAILS(ELOOP, open("s", O_RDONLY));
    FAILS(ELOOP, stat("s", &st));
    FAILS(ELOOP, chmod("s", 0644));
    FAILS(ELOOP, truncate("s", 0));
    FAILS(ELOOP, access("s", F_OK));
    FAILS(ELOOP, mkdir("s/d", 0755));
    EQ(readlink("s", got, sizeof(got)), 1);
}

CASE(symlinks_to_each_other_are_eloop)
{
    OK(symlink("b", "a"));
    OK(symlink("a", "b"));
    FAILS(ELOOP, open("a", O_RDONLY));
    FAILS(ELOOP, open("b/f", O_CREAT | O_WRONLY, 0644));
}

CASE(dangling_symlink_is_enoent_for_stat_and_fine_for_lstat)
{
    struct stat st;

    OK(symlink("nowhere", "s"));
    FAILS(ENOENT, stat("s", &st));
    OK(lstat("s", &st));
}

CASE(symlink_to_a_directory_is_entered)
{
    OK(mkdir("d", 0755));
    OK(symlink("d", "s"));
    write_file("s/f", "text");
    file_reads("d/f", "text");
    EQ((intmax_t)entries_of("s"), 1);
}

CASE(symlink_belongs_to_its_maker)
{
    AS_USER(ALICE, TEAM) OK(symlink("f", "s"));
    EQ(lstat_of("s").st_uid, ALICE);
    EQ(lstat_of("s").st_gid, TEAM);
}

CASE(symlink_replaced_by_another_leads_to_the_new_target_at_once)
{
    write_file("a", "one");
    write_file("b", "two");
    OK(symlink("a", "s"));
    file_reads("s", "one");
    OK(symlink("b", "next"));
    OK(rename("next", "s"));
    file_reads("s", "two");
}
