/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which times an operation moves: mtime with the content, ctime with everything that changes, and
 * none when nothing does. For atime the mount may have its own rule (relatime, noatime), so here it
 * must only never go back. */
#include "harness.h"

#include <sys/file.h>
#include <sys/xattr.h>

enum moved {
    NOTHING,
    CTIME_ONLY,
    MTIME_AND_CTIME
};

static bool moved(struct timespec before, struct timespec after)
{
    CHECK(!time_is_before(after, before));
    return time_is_before(before, after);
}

static void times_moved(struct stat before, struct stat after, enum moved want)
{
    EQ(moved(before.st_mtim, after.st_mtim), want == MTIME_AND_CTIME);
    EQ(moved(before.st_ctim, after.st_ctim), want != NOTHING);
    CHECK(!time_is_before(after.st_atim, before.st_atim));
}

static void file_times_after(void (*act)(int fd), enum moved want)
{
    int fd = open_file_with("f", "some text");

    OK(setxattr("f", "user.old", "v", 1, 0));
    OK(link("f", "other"));
    struct stat before = stat_of("f");
    nap();
    act(fd);
    times_moved(before, fstat_of(fd), want);
    times_moved(before, stat_of("f"), want);
}

/* A case whose body is the act, on "f", which is open as fd and has a second name "other". */
#define FILE_TIMES_CASE(title, want)                                                               \
    static void act_##title(int fd);                                                               \
    CASE(title)                                                                                    \
    {                                                                                              \
        file_times_after(act_##title, want);                                                       \
    }                                                                                              \
    static void act_##title(int fd __attribute__((unused)))

FILE_TIMES_CASE(write_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    EQ(write(fd, "x", 1), 1);
}
FILE_TIMES_CASE(overwrite_in_place_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    fd_writes(fd, 2, "x");
}
FILE_TIMES_CASE(truncate_to_less_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    OK(truncate("f", 1));
}
FILE_TIMES_CASE(truncate_to_more_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    OK(truncate("f", 1000));
}
FILE_TIMES_CASE(ftruncate_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    OK(ftruncate(fd, 1));
}
FILE_TIMES_CASE(fallocate_that_grows_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    OK(fallocate(fd, 0, 0, 10000));
}
FILE_TIMES_CASE(punched_hole_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4));
}
FILE_TIMES_CASE(mapped_write_with_msync_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    CHECK(map != MAP_FAILED);
    map[0] = 'S';
    OK(msync(map, 4096, MS_SYNC));
}
FILE_TIMES_CASE(copy_into_a_file_moves_mtime_and_ctime, MTIME_AND_CTIME)
{
    int from = open_file_with("from", "new");

    EQ(copy_file_range(from, NULL, fd, NULL, 3, 0), 3);
}
FILE_TIMES_CASE(chmod_moves_ctime_only, CTIME_ONLY)
{
    OK(chmod("f", 0600));
}
FILE_TIMES_CASE(fchmod_moves_ctime_only, CTIME_ONLY)
{
    OK(fchmod(fd, 0600));
}
FILE_TIMES_CASE(chown_moves_ctime_only, CTIME_ONLY)
{
    OK(chown("f", ALICE, TEAM));
}
FILE_TIMES_CASE(fchown_moves_ctime_only, CTIME_ONLY)
{
    OK(fchown(fd, ALICE, TEAM));
}
FILE_TIMES_CASE(link_moves_ctime_only, CTIME_ONLY)
{
    OK(link("f", "third"));
}
FILE_TIMES_CASE(unlink_of_another_name_moves_ctime_only, CTIME_ONLY)
{
    OK(unlink("other"));
}
FILE_TIMES_CASE(setxattr_moves_ctime_only, CTIME_ONLY)
{
    OK(setxattr("f", "user.new", "v", 1, 0));
}
FILE_TIMES_CASE(fsetxattr_moves_ctime_only, CTIME_ONLY)
{
    OK(fsetxattr(fd, "user.old", "w", 1, XATTR_REPLACE));
}
FILE_TIMES_CASE(removexattr_moves_ctime_only, CTIME_ONLY)
{
    OK(removexattr("f", "user.old"));
}
FILE_TIMES_CASE(setting_atime_moves_ctime_only, CTIME_ONLY)
{
    struct timespec times[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };

    OK(futimens(fd, times));
}
FILE_TIMES_CASE(read_moves_neither_mtime_nor_ctime, NOTHING)
{
    fd_reads(fd, 0, "some text");
}
FILE_TIMES_CASE(open_and_close_move_nothing, NOTHING)
{
    OK(close((int)OK(open("f", O_RDWR))));
}
FILE_TIMES_CASE(write_of_no_bytes_moves_nothing, NOTHING)
{
    EQ(write(fd, "", 0), 0);
}
FILE_TIMES_CASE(fsync_moves_nothing, NOTHING)
{
    OK(fsync(fd));
}
FILE_TIMES_CASE(lock_moves_nothing, NOTHING)
{
    OK(flock(fd, LOCK_EX));
    OK(flock(fd, LOCK_UN));
    OK(fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK }));
}
FILE_TIMES_CASE(getxattr_and_listxattr_move_nothing, NOTHING)
{
    char buf[256];

    OK(getxattr("f", "user.old", buf, sizeof(buf)));
    OK(listxattr("f", buf, sizeof(buf)));
}
FILE_TIMES_CASE(access_and_lseek_move_nothing, NOTHING)
{
    OK(access("f", R_OK | W_OK));
    OK(lseek(fd, 0, SEEK_END));
}
FILE_TIMES_CASE(refused_calls_move_nothing, NOTHING)
{
    make_file("x", 0644);
    FAILS(EEXIST, link("f", "x"));
    FAILS(ENODATA, removexattr("f", "user.none"));
    FAILS(EEXIST, setxattr("f", "user.old", "w", 1, XATTR_CREATE));
    FAILS(EINVAL, truncate("f", -1));
    FAILS(ENOENT, rename("f", "no/f"));
}

static void dir_times_after(void (*act)(void), enum moved want)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/sub", 0755));
    write_file("d/f", "text");
    write_file("outside", "text");
    struct stat before = stat_of("d");
    nap();
    act();
    times_moved(before, stat_of("d"), want);
}

/* A case whose body is the act, on directory "d" with "f" and "sub" in it. */
#define DIR_TIMES_CASE(title, want)                                                                \
    static void act_##title(void);                                                                 \
    CASE(title)                                                                                    \
    {                                                                                              \
        dir_times_after(act_##title, want);                                                        \
    }                                                                                              \
    static void act_##title(void)

DIR_TIMES_CASE(create_moves_the_directorys_times, MTIME_AND_CTIME)
{
    make_file("d/n", 0644);
}
DIR_TIMES_CASE(link_moves_the_directorys_times, MTIME_AND_CTIME)
{
    OK(link("outside", "d/n"));
}
DIR_TIMES_CASE(symlink_moves_the_directorys_times, MTIME_AND_CTIME)
{
    OK(symlink("t", "d/n"));
}
DIR_TIMES_CASE(mknod_moves_the_directorys_times, MTIME_AND_CTIME)
{
    OK(mkfifo("d/n", 0644));
}
DIR_TIMES_CASE(rename_inside_moves_the_directorys_times, MTIME_AND_CTIME)
{
    OK(rename("d/f", "d/g"));
}
DIR_TIMES_CASE(rename_out_moves_the_directorys_times, MTIME_AND_CTIME)
{
    OK(rename("d/f", "g"));
}
DIR_TIMES_CASE(rename_in_moves_the_directorys_times, MTIME_AND_CTIME)
{
    OK(rename("outside", "d/g"));
}
DIR_TIMES_CASE(chmod_of_a_directory_moves_ctime_only, CTIME_ONLY)
{
    OK(chmod("d", 0700));
}
DIR_TIMES_CASE(setxattr_of_a_directory_moves_ctime_only, CTIME_ONLY)
{
    OK(setxattr("d", "user.k", "v", 1, 0));
}
DIR_TIMES_CASE(listing_and_lookup_move_nothing_of_a_directory, NOTHING)
{
    EQ((intmax_t)entries_of("d"), 2);
    stat_of("d/f");
    absent("d/none");
}
DIR_TIMES_CASE(writing_a_file_moves_nothing_of_its_directory, NOTHING)
{
    int fd = OK(open("d/f", O_WRONLY | O_APPEND));

    EQ(write(fd, "x", 1), 1);
    OK(chmod("d/f", 0600));
}
DIR_TIMES_CASE(refused_names_move_nothing_of_a_directory, NOTHING)
{
    FAILS(EEXIST, mkdir("d/sub", 0755));
    FAILS(EEXIST, symlink("t", "d/f"));
    FAILS(ENOENT, unlink("d/none"));
    FAILS(EEXIST, open("d/f", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

/* Of new files */

static void new_file_times_are_now(const char *path)
{
    struct timespec now;
    struct stat st = lstat_of(path);

    clock_gettime(CLOCK_REALTIME, &now);
    CHECK(st.st_mtim.tv_sec >= now.tv_sec - 5 && st.st_mtim.tv_sec <= now.tv_sec + 5);
    CHECK(st.st_ctim.tv_sec >= now.tv_sec - 5 && st.st_ctim.tv_sec <= now.tv_sec + 5);
    CHECK(st.st_atim.tv_sec >= now.tv_sec - 5 && st.st_atim.tv_sec <= now.tv_sec + 5);
}

CASE(new_files_of_every_kind_have_times_of_now)
{
    make_file("f", 0644);
    OK(mkdir("d", 0755));
    OK(symlink("t", "s"));
    OK(mkfifo("p", 0644));
    new_file_times_are_now("f");
    new_file_times_are_now("d");
    new_file_times_are_now("s");
    new_file_times_are_now("p");
}

CASE(atime_moves_on_read_or_stays_as_the_mount_says)
{
    struct timespec times[2] = { { 1000, 0 }, { 2000, 0 } };
    int fd = open_file_with("f", "text");

    OK(futimens(fd, times));
    struct stat before = fstat_of(fd);
    nap();
    fd_reads(fd, 0, "text");
    struct stat after = fstat_of(fd);
    CHECK(!time_is_before(after.st_atim, before.st_atim));
    CHECK(time_equals(after.st_mtim, before.st_mtim));
}

CASE(noatime_read_leaves_atime)
{
    struct timespec times[2] = { { 1000, 5 }, { 2000, 0 } };

    write_file("f", "text");
    OK(utimensat(AT_FDCWD, "f", times, 0));
    int fd = OK(open("f", O_RDONLY | O_NOATIME));
    fd_reads(fd, 0, "text");
    OK(close(fd));
    EQ(stat_of("f").st_atim.tv_sec, 1000);
}

CASE(mtimes_of_successive_writes_never_go_back)
{
    int fd = open_file_with("f", "");
    struct timespec last = fstat_of(fd).st_mtim;

    for (int i = 0; i < 200; i++) {
        EQ(write(fd, "x", 1), 1);
        struct timespec next = fstat_of(fd).st_mtim;
        CHECK(!time_is_before(next, last));
        last = next;
    }
}

CASE(mtime_of_a_later_written_file_is_not_older)
{
    write_file("a", "1");
    nap();
    write_file("b", "2");
    CHECK(time_is_before(stat_of("a").st_mtim, stat_of("b").st_mtim));
}

CASE(stat_after_write_and_after_close_show_the_same_mtime)
{
    int fd = open_file_with("f", "");

    fd_writes(fd, 0, "text");
    struct timespec open_mtime = fstat_of(fd).st_mtim;
    nap();
    OK(close(fd));
    CHECK(time_equals(open_mtime, stat_of("f").st_mtim));
}
