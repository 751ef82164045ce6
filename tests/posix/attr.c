/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mknod(2), chmod(2), chown(2) and utimensat(2). */
#include "harness.h"

#include <sys/sysmacros.h>
#include <sys/time.h>
#include <utime.h>

/* mknod */

static void node_is(const char *name, mode_t type, dev_t device)
{
    struct stat st = lstat_of(name);

    EQ(st.st_mode & S_IFMT, type);
    EQ(st.st_mode & 07777, 0640);
    EQ((intmax_t)st.st_nlink, 1);
    EQ(st.st_size, 0);
    if (type == S_IFCHR || type == S_IFBLK)
        EQ((intmax_t)st.st_rdev, (intmax_t)device);
}

#define NODE_CASE(title, type, device)                                                             \
    CASE(title)                                                                                    \
    {                                                                                              \
        OK(mknod("n", (type) | 0640, device));                                                     \
        node_is("n", type, device);                                                                \
    }

NODE_CASE(mknod_makes_a_regular_file, S_IFREG, 0)
NODE_CASE(mknod_makes_a_fifo, S_IFIFO, 0)
NODE_CASE(mknod_makes_a_socket, S_IFSOCK, 0)
NODE_CASE(mknod_makes_a_character_device_with_its_number, S_IFCHR, makedev(1, 3))
NODE_CASE(mknod_makes_a_block_device_with_its_number, S_IFBLK, makedev(7, 200))
NODE_CASE(mknod_keeps_a_minor_above_255, S_IFCHR, makedev(1, 0x54321))
NODE_CASE(mknod_keeps_the_largest_device_number, S_IFBLK, makedev(0xfff, 0xfffff))
NODE_CASE(mknod_keeps_device_0_0, S_IFCHR, makedev(0, 0))

CASE(mknod_with_type_zero_makes_a_regular_file)
{
    OK(mknod("n", 0640, 0));
    CHECK(S_ISREG(lstat_of("n").st_mode));
}

CASE(mknod_mode_loses_the_umask_bits)
{
    umask(027);
    OK(mkfifo("p", 0777));
    EQ(mode_of("p"), 0750);
}

CASE(mknod_refuses_an_existing_name)
{
    make_file("f", 0644);
    OK(symlink("nowhere", "s"));
    FAILS(EEXIST, mkfifo("f", 0644));
    FAILS(EEXIST, mkfifo("s", 0644));
    FAILS(EEXIST, mknod("f", S_IFCHR | 0644, makedev(1, 3)));
}

CASE(mknod_of_a_directory_is_eperm_and_of_nonsense_einval)
{
    FAILS(EPERM, mknod("d", S_IFDIR | 0755, 0));
    FAILS(EINVAL, mknod("d", S_IFLNK | 0755, 0));
    FAILS(EINVAL, mknod("d", S_IFMT | 0755, 0));
    dir_is_empty(".");
}

CASE(mknod_of_a_device_by_a_user_is_eperm)
{
    AS_USER(ALICE, ALICE)
    {
        FAILS(EPERM, mknod("c", S_IFCHR | 0644, makedev(1, 3)));
        FAILS(EPERM, mknod("b", S_IFBLK | 0644, makedev(7, 0)));
        OK(mkfifo("p", 0644));
        OK(mknod("s", S_IFSOCK | 0644, 0));
    }
    EQ(lstat_of("p").st_uid, ALICE);
    EQ((intmax_t)entries_of("."), 2);
}

CASE(mknod_in_a_wrong_place_is_enoent_or_enotdir)
{
    make_file("f", 0644);
    FAILS(ENOENT, mkfifo("no/p", 0644));
    FAILS(ENOTDIR, mkfifo("f/p", 0644));
}

CASE(device_keeps_its_number_through_rename_chmod_and_chown)
{
    OK(mknod("c", S_IFCHR | 0644, makedev(5, 77)));
    OK(rename("c", "d"));
    OK(chmod("d", 0640));
    OK(chown("d", ALICE, TEAM));
    node_is("d", S_IFCHR, makedev(5, 77));
}

CASE(unix_socket_is_bound_to_a_name_and_unlinked)
{
    OK(mknod("s", S_IFSOCK | 0700, 0));
    CHECK(S_ISSOCK(lstat_of("s").st_mode));
    OK(unlink("s"));
    absent("s");
}

/* chmod */

CASE(chmod_sets_every_one_of_the_twelve_bits)
{
    make_file("f", 0);
    for (int bit = 0; bit < 12; bit++) {
        OK(chmod("f", (mode_t)1 << bit));
        EQ(mode_of("f"), 1 << bit);
    }
    OK(chmod("f", 07777));
    EQ(mode_of("f"), 07777);
}

CASE(chmod_of_a_directory_sets_all_twelve_bits)
{
    OK(mkdir("d", 0));
    OK(chmod("d", 07777));
    EQ(mode_of("d"), 07777);
    OK(chmod("d", 0));
    EQ(mode_of("d"), 0);
    CHECK(S_ISDIR(lstat_of("d").st_mode));
}

CASE(chmod_ignores_the_type_bits)
{
    make_file("f", 0644);
    OK(chmod("f", S_IFDIR | 0600));
    CHECK(S_ISREG(lstat_of("f").st_mode));
    EQ(mode_of("f"), 0600);
}

CASE(fchmod_through_a_read_only_descriptor_works)
{
    make_file("f", 0644);
    int fd = OK(open("f", O_RDONLY));

    OK(fchmod(fd, 0751));
    EQ(mode_of("f"), 0751);
    EQ(fstat_of(fd).st_mode & 07777, 0751);
}

CASE(chmod_follows_a_symlink)
{
    make_file("f", 0644);
    OK(symlink("f", "s"));
    OK(chmod("s", 0600));
    EQ(mode_of("f"), 0600);
    CHECK(S_ISLNK(lstat_of("s").st_mode));
}

CASE(chmod_of_a_symlink_itself_is_eopnotsupp)
{
    make_file("f", 0644);
    OK(symlink("f", "s"));
    FAILS(EOPNOTSUPP, fchmodat(AT_FDCWD, "s", 0600, AT_SYMLINK_NOFOLLOW));
    EQ(mode_of("f"), 0644);
}

CASE(chmod_of_a_missing_file_is_enoent)
{
    FAILS(ENOENT, chmod("f", 0644));
    make_file("f", 0644);
    FAILS(ENOTDIR, chmod("f/g", 0644));
}

CASE(chmod_of_a_fifo_a_socket_and_a_device_works)
{
    OK(mkfifo("p", 0600));
    OK(mknod("s", S_IFSOCK | 0600, 0));
    OK(mknod("c", S_IFCHR | 0600, makedev(1, 3)));
    OK(chmod("p", 0751));
    OK(chmod("s", 0751));
    OK(chmod("c", 0751));
    EQ(mode_of("p"), 0751);
    EQ(mode_of("s"), 0751);
    EQ(mode_of("c"), 0751);
}

CASE(chmod_by_another_user_is_eperm)
{
    make_file("f", 0666);
    OK(chown("f", ALICE, ALICE));
    AS_USER(BOB, BOB) FAILS(EPERM, chmod("f", 0600));
    AS_USER(ALICE, ALICE) OK(chmod("f", 0600));
    EQ(mode_of("f"), 0600);
}

CASE(chmod_by_an_owner_outside_the_group_drops_setgid)
{
    make_file("f", 0644);
    OK(chown("f", ALICE, TEAM));
    AS_USER(ALICE, ALICE) OK(chmod("f", 02755));
    EQ(mode_of("f"), 0755);
}

CASE(chmod_by_an_owner_in_a_supplementary_group_keeps_setgid)
{
    make_file("f", 0644);
    OK(chown("f", ALICE, TEAM));
    AS_MEMBER(ALICE, ALICE, TEAM) OK(chmod("f", 02755));
    EQ(mode_of("f"), 02755);
}

CASE(chmod_is_seen_by_another_process_at_once)
{
    make_file("f", 0);
    AS_USER(ALICE, ALICE) FAILS(EACCES, open("f", O_RDONLY));
    OK(chmod("f", 0444));
    AS_USER(ALICE, ALICE) OK(open("f", O_RDONLY));
    OK(chmod("f", 0));
    AS_USER(ALICE, ALICE) FAILS(EACCES, open("f", O_RDONLY));
}

/* setuid and setgid bits go away when content changes */

static void special_file(mode_t mode)
{
    write_file("f", "text");
    OK(chown("f", ALICE, ALICE));
    OK(chmod("f", mode));
    EQ(mode_of("f"), mode);
}

CASE(write_by_a_user_clears_setuid_and_setgid)
{
    special_file(06777);
    AS_USER(BOB, BOB)
    {
        int fd = OK(open("f", O_WRONLY));
        fd_writes(fd, 0, "x");
    }
    EQ(mode_of("f"), 0777);
}

CASE(write_by_the_owner_clears_setuid_too)
{
    special_file(04755);
    AS_USER(ALICE, ALICE)
    {
        int fd = OK(open("f", O_WRONLY));
        fd_writes(fd, 0, "x");
    }
    EQ(mode_of("f"), 0755);
}

CASE(write_by_root_keeps_setuid_and_setgid)
{
    special_file(06777);
    int fd = OK(open("f", O_WRONLY));

    fd_writes(fd, 0, "x");
    OK(close(fd));
    EQ(mode_of("f"), 06777);
}

CASE(truncate_by_a_user_clears_setuid_and_setgid)
{
    special_file(06777);
    AS_USER(BOB, BOB) OK(truncate("f", 1));
    EQ(mode_of("f"), 0777);
}

CASE(ftruncate_by_a_user_clears_setuid)
{
    special_file(04777);
    AS_USER(BOB, BOB) OK(ftruncate((int)OK(open("f", O_WRONLY)), 1));
    EQ(mode_of("f"), 0777);
}

CASE(open_with_trunc_by_a_user_clears_setuid)
{
    special_file(04777);
    AS_USER(BOB, BOB) OK(open("f", O_WRONLY | O_TRUNC));
    EQ(mode_of("f"), 0777);
}

CASE(read_by_a_user_keeps_setuid_and_setgid)
{
    special_file(06777);
    AS_USER(BOB, BOB) file_reads("f", "text");
    EQ(mode_of("f"), 06777);
}

/* chown */

CASE(chown_sets_user_and_group)
{
    make_file("f", 0644);
    OK(chown("f", ALICE, TEAM));
    EQ(stat_of("f").st_uid, ALICE);
    EQ(stat_of("f").st_gid, TEAM);
    EQ(mode_of("f"), 0644);
}

CASE(chown_with_minus_one_leaves_that_id)
{
    make_file("f", 0644);
    OK(chown("f", ALICE, TEAM));
    OK(chown("f", BOB, (gid_t)-1));
    EQ(stat_of("f").st_uid, BOB);
    EQ(stat_of("f").st_gid, TEAM);
    OK(chown("f", (uid_t)-1, NOBODY));
    EQ(stat_of("f").st_uid, BOB);
    EQ(stat_of("f").st_gid, NOBODY);
    OK(chown("f", (uid_t)-1, (gid_t)-1));
    EQ(stat_of("f").st_uid, BOB);
}

CASE(chown_keeps_ids_of_32_bits)
{
    make_file("f", 0644);
    OK(chown("f", 0xfffffff0, 0x80000001));
    EQ(stat_of("f").st_uid, 0xfffffff0);
    EQ(stat_of("f").st_gid, 0x80000001);
}

CASE(chown_of_a_directory_a_fifo_and_a_socket_works)
{
    OK(mkdir("d", 0755));
    OK(mkfifo("p", 0644));
    OK(mknod("s", S_IFSOCK | 0644, 0));
    OK(chown("d", ALICE, TEAM));
    OK(chown("p", ALICE, TEAM));
    OK(chown("s", ALICE, TEAM));
    EQ(lstat_of("d").st_uid, ALICE);
    EQ(lstat_of("p").st_gid, TEAM);
    EQ(lstat_of("s").st_uid, ALICE);
}

CASE(chown_follows_a_symlink_and_lchown_does_not)
{
    make_file("f", 0644);
    OK(symlink("f", "s"));
    OK(chown("s", ALICE, ALICE));
    EQ(lstat_of("f").st_uid, ALICE);
    EQ(lstat_of("s").st_uid, 0);
    OK(lchown("s", BOB, TEAM));
    EQ(lstat_of("f").st_uid, ALICE);
    EQ(lstat_of("s").st_uid, BOB);
    EQ(lstat_of("s").st_gid, TEAM);
}

CASE(lchown_of_a_dangling_symlink_works)
{
    OK(symlink("nowhere", "s"));
    OK(lchown("s", ALICE, TEAM));
    EQ(lstat_of("s").st_uid, ALICE);
    FAILS(ENOENT, chown("s", BOB, BOB));
}

CASE(fchown_through_a_read_only_descriptor_works)
{
    make_file("f", 0644);
    int fd = OK(open("f", O_RDONLY));

    OK(fchown(fd, ALICE, TEAM));
    EQ(fstat_of(fd).st_uid, ALICE);
    EQ(stat_of("f").st_gid, TEAM);
}

CASE(chown_by_root_clears_setuid_and_setgid_of_an_executable)
{
    make_file("f", 06755);
    OK(chown("f", ALICE, TEAM));
    EQ(mode_of("f"), 0755);
}

CASE(chown_by_root_keeps_setgid_without_group_execute)
{
    make_file("f", 02644);
    OK(chown("f", ALICE, TEAM));
    EQ(mode_of("f"), 02644);
}

CASE(chown_of_a_directory_keeps_setuid_and_setgid)
{
    OK(mkdir("d", 0755));
    OK(chmod("d", 06755));
    OK(chown("d", ALICE, TEAM));
    EQ(mode_of("d"), 06755);
}

CASE(chgrp_by_the_owner_clears_setuid_and_setgid)
{
    special_file(06755);
    AS_MEMBER(ALICE, ALICE, TEAM) OK(chown("f", (uid_t)-1, TEAM));
    EQ(stat_of("f").st_gid, TEAM);
    EQ(mode_of("f"), 0755);
}

CASE(chown_to_another_user_by_the_owner_is_eperm)
{
    make_file("f", 0666);
    OK(chown("f", ALICE, ALICE));
    AS_USER(ALICE, ALICE) FAILS(EPERM, chown("f", BOB, (gid_t)-1));
    EQ(stat_of("f").st_uid, ALICE);
}

CASE(chgrp_by_the_owner_works_to_own_groups_only)
{
    make_file("f", 0666);
    OK(chown("f", ALICE, ALICE));
    AS_MEMBER(ALICE, ALICE, TEAM)
    {
        FAILS(EPERM, chown("f", (uid_t)-1, BOB));
        OK(chown("f", (uid_t)-1, TEAM));
        OK(chown("f", ALICE, ALICE));
        OK(chown("f", ALICE, TEAM));
    }
    EQ(stat_of("f").st_gid, TEAM);
}

CASE(chown_by_another_user_is_eperm)
{
    make_file("f", 0666);
    OK(chown("f", ALICE, TEAM));
    AS_MEMBER(BOB, BOB, TEAM)
    {
        FAILS(EPERM, chown("f", BOB, (gid_t)-1));
        FAILS(EPERM, chown("f", (uid_t)-1, TEAM));
    }
}

CASE(chown_of_a_missing_file_is_enoent)
{
    FAILS(ENOENT, chown("f", 1, 1));
    FAILS(ENOENT, lchown("f", 1, 1));
    make_file("f", 0644);
    FAILS(ENOTDIR, chown("f/g", 1, 1));
    FAILS(EBADF, fchown(-1, 1, 1));
}

/* A directory with the setgid bit */

static void team_directory(mode_t mode)
{
    OK(mkdir("d", 0777));
    OK(chown("d", 0, TEAM));
    OK(chmod("d", mode));
}

CASE(file_in_a_setgid_directory_gets_its_group)
{
    team_directory(02777);
    AS_USER(ALICE, ALICE) make_file("d/f", 0644);
    EQ(stat_of("d/f").st_gid, TEAM);
    EQ(stat_of("d/f").st_uid, ALICE);
    EQ(mode_of("d/f"), 0644);
}

CASE(directory_in_a_setgid_directory_gets_its_group_and_the_bit)
{
    team_directory(02777);
    AS_USER(ALICE, ALICE) OK(mkdir("d/e", 0755));
    EQ(stat_of("d/e").st_gid, TEAM);
    EQ(mode_of("d/e"), 02755);
}

CASE(symlink_and_fifo_in_a_setgid_directory_get_its_group)
{
    team_directory(02777);
    AS_USER(ALICE, ALICE)
    {
        OK(symlink("t", "d/s"));
        OK(mkfifo("d/p", 0644));
    }
    EQ(lstat_of("d/s").st_gid, TEAM);
    EQ(lstat_of("d/p").st_gid, TEAM);
}

CASE(setgid_is_inherited_through_levels_by_root_too)
{
    team_directory(02777);
    OK(mkdir("d/e", 0755));
    OK(mkdir("d/e/g", 0755));
    EQ(stat_of("d/e/g").st_gid, TEAM);
    EQ(mode_of("d/e/g"), 02755);
}

CASE(file_in_a_plain_directory_gets_the_group_of_its_maker)
{
    team_directory(0777);
    AS_USER(ALICE, ALICE) make_file("d/f", 0644);
    EQ(stat_of("d/f").st_gid, ALICE);
}

CASE(link_and_rename_into_a_setgid_directory_keep_the_group)
{
    team_directory(02777);
    make_file("f", 0644);
    make_file("g", 0644);
    OK(link("f", "d/f"));
    OK(rename("g", "d/g"));
    EQ(stat_of("d/f").st_gid, 0);
    EQ(stat_of("d/g").st_gid, 0);
}

CASE(setgid_executable_made_by_a_stranger_in_a_setgid_directory_loses_the_bit)
{
    team_directory(02777);
    AS_USER(ALICE, ALICE) make_file("d/f", 02775);
    EQ(mode_of("d/f"), 0775);
    AS_MEMBER(ALICE, ALICE, TEAM) make_file("d/g", 02775);
    EQ(mode_of("d/g"), 02775);
}

/* utimensat */

static void set_times(const char *path, int64_t atime_s, long atime_ns, int64_t mtime_s,
                      long mtime_ns)
{
    struct timespec times[2] = { { atime_s, atime_ns }, { mtime_s, mtime_ns } };

    OK(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW));
}

static void times_are(const char *path, int64_t atime_s, long atime_ns, int64_t mtime_s,
                      long mtime_ns)
{
    struct stat st = lstat_of(path);

    EQ(st.st_atim.tv_sec, atime_s);
    EQ(st.st_atim.tv_nsec, atime_ns);
    EQ(st.st_mtim.tv_sec, mtime_s);
    EQ(st.st_mtim.tv_nsec, mtime_ns);
}

CASE(times_are_kept_to_the_nanosecond)
{
    make_file("f", 0644);
    set_times("f", 1111111111, 123456789, 1222222222, 987654321);
    times_are("f", 1111111111, 123456789, 1222222222, 987654321);
    set_times("f", 5, 1, 6, 999999999);
    times_are("f", 5, 1, 6, 999999999);
}

CASE(times_of_a_directory_are_set)
{
    OK(mkdir("d", 0755));
    set_times("d", 1000, 1, 2000, 2);
    times_are("d", 1000, 1, 2000, 2);
}

CASE(times_of_a_symlink_are_set_without_its_target)
{
    make_file("f", 0644);
    set_times("f", 10, 0, 20, 0);
    OK(symlink("f", "s"));
    set_times("s", 1000, 1, 2000, 2);
    times_are("s", 1000, 1, 2000, 2);
    times_are("f", 10, 0, 20, 0);
}

CASE(times_through_a_symlink_are_those_of_its_target)
{
    struct timespec times[2] = { { 1000, 1 }, { 2000, 2 } };

    make_file("f", 0644);
    OK(symlink("f", "s"));
    OK(utimensat(AT_FDCWD, "s", times, 0));
    times_are("f", 1000, 1, 2000, 2);
}

CASE(times_through_a_descriptor_are_set)
{
    struct timespec times[2] = { { 1000, 1 }, { 2000, 2 } };
    int fd = open_file_with("f", "");

    OK(futimens(fd, times));
    times_are("f", 1000, 1, 2000, 2);
    EQ(fstat_of(fd).st_mtim.tv_nsec, 2);
}

CASE(times_after_2038_are_kept)
{
    make_file("f", 0644);
    set_times("f", 4000000000, 7, 5000000000, 8);
    times_are("f", 4000000000, 7, 5000000000, 8);
}

CASE(times_before_1970_are_kept)
{
    make_file("f", 0644);
    set_times("f", -1, 7, -100000000, 8);
    times_are("f", -1, 7, -100000000, 8);
}

CASE(time_zero_is_kept)
{
    make_file("f", 0644);
    set_times("f", 0, 0, 0, 0);
    times_are("f", 0, 0, 0, 0);
}

CASE(omitted_atime_stays)
{
    make_file("f", 0644);
    set_times("f", 1000, 1, 2000, 2);
    set_times("f", 0, UTIME_OMIT, 3000, 3);
    times_are("f", 1000, 1, 3000, 3);
}

CASE(omitted_mtime_stays)
{
    make_file("f", 0644);
    set_times("f", 1000, 1, 2000, 2);
    set_times("f", 3000, 3, 0, UTIME_OMIT);
    times_are("f", 3000, 3, 2000, 2);
}

CASE(omitting_both_times_changes_nothing)
{
    make_file("f", 0644);
    set_times("f", 1000, 1, 2000, 2);
    struct stat before = stat_of("f");

    nap();
    set_times("f", 0, UTIME_OMIT, 0, UTIME_OMIT);
    times_are("f", 1000, 1, 2000, 2);
    CHECK(time_equals(before.st_ctim, stat_of("f").st_ctim));
}

CASE(time_now_sets_the_clocks_time)
{
    struct timespec before, after;

    make_file("f", 0644);
    set_times("f", 1000, 1, 2000, 2);
    clock_gettime(CLOCK_REALTIME, &before);
    set_times("f", 0, UTIME_NOW, 0, UTIME_NOW);
    clock_gettime(CLOCK_REALTIME, &after);
    struct stat st = stat_of("f");
    CHECK(st.st_mtim.tv_sec >= before.tv_sec - 1 && st.st_mtim.tv_sec <= after.tv_sec + 1);
    CHECK(st.st_atim.tv_sec >= before.tv_sec - 1 && st.st_atim.tv_sec <= after.tv_sec + 1);
}

CASE(time_now_for_one_leaves_an_explicit_other)
{
    make_file("f", 0644);
    set_times("f", 1000, 1, 2000, 2);
    set_times("f", 3000, 3, 0, UTIME_NOW);
    EQ(stat_of("f").st_atim.tv_sec, 3000);
    CHECK(stat_of("f").st_mtim.tv_sec > 1000000);
    set_times("f", 0, UTIME_OMIT, 0, UTIME_NOW);
    EQ(stat_of("f").st_atim.tv_sec, 3000);
}

CASE(null_times_mean_now)
{
    make_file("f", 0644);
    set_times("f", 1000, 1, 2000, 2);
    OK(utimensat(AT_FDCWD, "f", NULL, 0));
    CHECK(stat_of("f").st_mtim.tv_sec > 1000000);
    CHECK(stat_of("f").st_atim.tv_sec > 1000000);
}

CASE(older_calls_utime_and_utimes_work)
{
    make_file("f", 0644);
    OK(utime("f", &(struct utimbuf){ .actime = 100, .modtime = 200 }));
    times_are("f", 100, 0, 200, 0);
    OK(utimes("f", (struct timeval[2]){ { 300, 4 }, { 500, 6 } }));
    times_are("f", 300, 4000, 500, 6000);
}

CASE(impossible_nanoseconds_are_einval)
{
    struct timespec high[2] = { { 1, 1000000000 }, { 1, 0 } };
    struct timespec low[2] = { { 1, 0 }, { 1, -1 } };

    make_file("f", 0644);
    FAILS(EINVAL, utimensat(AT_FDCWD, "f", high, 0));
    FAILS(EINVAL, utimensat(AT_FDCWD, "f", low, 0));
}

CASE(times_of_a_missing_file_are_enoent)
{
    FAILS(ENOENT, utimensat(AT_FDCWD, "f", NULL, 0));
    OK(symlink("nowhere", "s"));
    FAILS(ENOENT, utimensat(AT_FDCWD, "s", NULL, 0));
    OK(utimensat(AT_FDCWD, "s", NULL, AT_SYMLINK_NOFOLLOW));
}

CASE(explicit_times_are_for_the_owner_only)
{
    struct timespec times[2] = { { 1000, 1 }, { 2000, 2 } };

    make_file("f", 0666);
    OK(chown("f", ALICE, ALICE));
    AS_USER(BOB, BOB) FAILS(EPERM, utimensat(AT_FDCWD, "f", times, 0));
    AS_USER(ALICE, ALICE) OK(utimensat(AT_FDCWD, "f", times, 0));
    times_are("f", 1000, 1, 2000, 2);
}

CASE(time_now_for_one_and_omit_for_the_other_is_for_the_owner_only)
{
    struct timespec times[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };

    make_file("f", 0666);
    OK(chown("f", ALICE, ALICE));
    AS_USER(BOB, BOB) FAILS(EPERM, utimensat(AT_FDCWD, "f", times, 0));
    AS_USER(ALICE, ALICE) OK(utimensat(AT_FDCWD, "f", times, 0));
}

CASE(null_times_need_only_write_permission)
{
    make_file("f", 0622);
    set_times("f", 1000, 1, 2000, 2);
    AS_USER(BOB, BOB) OK(utimensat(AT_FDCWD, "f", NULL, 0));
    CHECK(stat_of("f").st_mtim.tv_sec > 1000000);
}

CASE(null_times_without_write_permission_are_eacces)
{
    make_file("f", 0644);
    AS_USER(BOB, BOB) FAILS(EACCES, utimensat(AT_FDCWD, "f", NULL, 0));
}

CASE(null_times_by_an_owner_need_no_write_permission)
{
    make_file("f", 0444);
    OK(chown("f", ALICE, ALICE));
    AS_USER(ALICE, ALICE) OK(utimensat(AT_FDCWD, "f", NULL, 0));
}

CASE(set_times_survive_a_close_after_a_write)
{
    struct timespec times[2] = { { 1000, 1 }, { 2000, 2 } };
    int fd = open_file_with("f", "text");

    fd_writes(fd, 4, "more");
    OK(futimens(fd, times));
    OK(close(fd));
    times_are("f", 1000, 1, 2000, 2);
}

CASE(set_times_survive_a_rename_and_a_link)
{
    make_file("f", 0644);
    set_times("f", 1000, 1, 2000, 2);
    OK(link("f", "g"));
    OK(rename("f", "h"));
    times_are("g", 1000, 1, 2000, 2);
    times_are("h", 1000, 1, 2000, 2);
}
