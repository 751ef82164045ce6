/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Long names and long paths, for every call that takes one: NAME_MAX is 255, PATH_MAX 4096 with the
 * byte that ends the string. */
#include "harness.h"

#include <sys/statvfs.h>
#include <sys/xattr.h>

#define LONG_NAME name_of(255, 'n')
#define TOO_LONG_NAME name_of(256, 'n')
#define LONG_PATH(tail) path_of(PATH_MAX - 1, tail)
#define TOO_LONG_PATH(tail) path_of(PATH_MAX, tail)

CASE(file_with_a_255_byte_name_is_made_and_listed)
{
    make_file(LONG_NAME, 0644);
    CHECK(S_ISREG(lstat_of(LONG_NAME).st_mode));
    CHECK(type_listed(".", LONG_NAME) != -1);
    OK(unlink(LONG_NAME));
    dir_is_empty(".");
}

CASE(file_with_a_255_byte_name_keeps_its_content)
{
    write_file(LONG_NAME, "text");
    file_reads(LONG_NAME, "text");
}

CASE(directory_with_a_255_byte_name_is_made_filled_and_removed)
{
    OK(mkdir(LONG_NAME, 0755));
    OK(chdir(LONG_NAME));
    make_file(LONG_NAME, 0644);
    OK(unlink(LONG_NAME));
    OK(chdir(".."));
    OK(rmdir(LONG_NAME));
    dir_is_empty(".");
}

CASE(rename_to_a_255_byte_name_works)
{
    write_file("f", "text");
    OK(rename("f", LONG_NAME));
    file_reads(LONG_NAME, "text");
}

CASE(rename_between_255_byte_names_works)
{
    char *from = LONG_NAME, *to = name_of(255, 'm');

    write_file(from, "text");
    OK(rename(from, to));
    absent(from);
    file_reads(to, "text");
    EQ((intmax_t)entries_of("."), 1);
}

CASE(rename_over_a_255_byte_name_works)
{
    write_file("f", "new");
    write_file(LONG_NAME, "old");
    OK(rename("f", LONG_NAME));
    file_reads(LONG_NAME, "new");
}

CASE(rename_of_a_directory_to_a_255_byte_name_works)
{
    OK(mkdir("d", 0755));
    make_file("d/f", 0644);
    OK(rename("d", LONG_NAME));
    EQ((intmax_t)entries_of(LONG_NAME), 1);
}

CASE(link_to_a_255_byte_name_works)
{
    make_file("f", 0644);
    OK(link("f", LONG_NAME));
    EQ(links_of("f"), 2);
    OK(unlink("f"));
    EQ(links_of(LONG_NAME), 1);
}

CASE(symlink_with_a_255_byte_name_and_target_works)
{
    write_file(name_of(255, 't'), "text");
    OK(symlink(name_of(255, 't'), LONG_NAME));
    file_reads(LONG_NAME, "text");
}

CASE(fifo_with_a_255_byte_name_works)
{
    OK(mkfifo(LONG_NAME, 0644));
    CHECK(S_ISFIFO(lstat_of(LONG_NAME).st_mode));
}

CASE(file_with_a_255_byte_name_takes_an_xattr_mode_and_times)
{
    make_file(LONG_NAME, 0644);
    OK(setxattr(LONG_NAME, "user.k", "v", 1, 0));
    OK(chmod(LONG_NAME, 0600));
    OK(utimensat(AT_FDCWD, LONG_NAME, NULL, 0));
    OK(truncate(LONG_NAME, 10));
    EQ(size_of(LONG_NAME), 10);
}

CASE(unlinked_file_with_a_255_byte_name_stays_usable)
{
    int fd = open_file_with(LONG_NAME, "text");

    OK(unlink(LONG_NAME));
    fd_reads(fd, 0, "text");
    EQ((intmax_t)fstat_of(fd).st_nlink, 0);
}

CASE(many_255_byte_names_differ_in_the_last_byte)
{
    char *name = LONG_NAME;

    for (char last = 'a'; last <= 'z'; last++) {
        name[254] = last;
        make_file(name, 0644);
    }
    EQ((intmax_t)entries_of("."), 26);
}

CASE(name_of_127_two_byte_letters_works)
{
    char name[255] = "";

    for (int i = 0; i < 127; i++)
        strcat(name, "\xc3\xa9");
    make_file(name, 0644);
    CHECK(type_listed(".", name) != -1);
}

/* 256 bytes */

CASE(open_and_create_of_a_256_byte_name_are_enametoolong)
{
    FAILS(ENAMETOOLONG, open(TOO_LONG_NAME, O_CREAT | O_WRONLY, 0644));
    FAILS(ENAMETOOLONG, open(TOO_LONG_NAME, O_RDONLY));
    dir_is_empty(".");
}

CASE(mkdir_and_rmdir_of_a_256_byte_name_are_enametoolong)
{
    FAILS(ENAMETOOLONG, mkdir(TOO_LONG_NAME, 0755));
    FAILS(ENAMETOOLONG, rmdir(TOO_LONG_NAME));
    dir_is_empty(".");
}

CASE(rename_to_and_from_a_256_byte_name_is_enametoolong)
{
    make_file("f", 0644);
    FAILS(ENAMETOOLONG, rename("f", TOO_LONG_NAME));
    FAILS(ENAMETOOLONG, rename(TOO_LONG_NAME, "f"));
    EQ((intmax_t)entries_of("."), 1);
}

CASE(link_to_and_from_a_256_byte_name_is_enametoolong)
{
    make_file("f", 0644);
    FAILS(ENAMETOOLONG, link("f", TOO_LONG_NAME));
    FAILS(ENAMETOOLONG, link(TOO_LONG_NAME, "g"));
    EQ(links_of("f"), 1);
}

CASE(symlink_of_a_256_byte_name_is_enametoolong)
{
    FAILS(ENAMETOOLONG, symlink("t", TOO_LONG_NAME));
    dir_is_empty(".");
}

CASE(symlink_to_a_256_byte_name_is_made_and_enametoolong_to_follow)
{
    OK(symlink(TOO_LONG_NAME, "s"));
    FAILS(ENAMETOOLONG, open("s", O_RDONLY));
}

CASE(mknod_of_a_256_byte_name_is_enametoolong)
{
    FAILS(ENAMETOOLONG, mkfifo(TOO_LONG_NAME, 0644));
    dir_is_empty(".");
}

CASE(unlink_of_a_256_byte_name_is_enametoolong)
{
    FAILS(ENAMETOOLONG, unlink(TOO_LONG_NAME));
}

CASE(stat_access_chmod_truncate_of_a_256_byte_name_are_enametoolong)
{
    struct stat st;

    FAILS(ENAMETOOLONG, stat(TOO_LONG_NAME, &st));
    FAILS(ENAMETOOLONG, lstat(TOO_LONG_NAME, &st));
    FAILS(ENAMETOOLONG, access(TOO_LONG_NAME, F_OK));
    FAILS(ENAMETOOLONG, chmod(TOO_LONG_NAME, 0644));
    FAILS(ENAMETOOLONG, truncate(TOO_LONG_NAME, 0));
}

CASE(statvfs_says_255_for_names)
{
    struct statvfs vfs;

    OK(statvfs(".", &vfs));
    EQ((intmax_t)vfs.f_namemax, 255);
    EQ(pathconf(".", _PC_NAME_MAX), 255);
}

/* Paths of PATH_MAX - 1 bytes */

CASE(open_of_a_4095_byte_path_works)
{
    write_file(LONG_PATH("f"), "text");
    file_reads(LONG_PATH("f"), "text");
    file_reads("f", "text");
}

CASE(mkdir_and_rmdir_of_a_4095_byte_path_work)
{
    OK(mkdir(LONG_PATH("d"), 0755));
    CHECK(S_ISDIR(lstat_of("d").st_mode));
    OK(rmdir(LONG_PATH("d")));
    absent("d");
}

CASE(rename_and_link_of_4095_byte_paths_work)
{
    write_file("f", "text");
    OK(rename(LONG_PATH("f"), LONG_PATH("g")));
    OK(link(LONG_PATH("g"), LONG_PATH("h")));
    EQ(links_of("h"), 2);
    OK(unlink(LONG_PATH("h")));
    file_reads("g", "text");
}

CASE(chmod_stat_truncate_of_a_4095_byte_path_work)
{
    write_file("f", "text");
    OK(chmod(LONG_PATH("f"), 0600));
    OK(truncate(LONG_PATH("f"), 2));
    EQ(size_of(LONG_PATH("f")), 2);
    EQ(mode_of("f"), 0600);
}

CASE(open_and_stat_of_a_4096_byte_path_are_enametoolong)
{
    struct stat st;

    make_file("f", 0644);
    FAILS(ENAMETOOLONG, open(TOO_LONG_PATH("f"), O_RDONLY));
    FAILS(ENAMETOOLONG, open(TOO_LONG_PATH("g"), O_CREAT | O_WRONLY, 0644));
    FAILS(ENAMETOOLONG, stat(TOO_LONG_PATH("f"), &st));
    absent("g");
}

CASE(calls_that_make_names_refuse_a_4096_byte_path)
{
    make_file("f", 0644);
    FAILS(ENAMETOOLONG, mkdir(TOO_LONG_PATH("d"), 0755));
    FAILS(ENAMETOOLONG, symlink("t", TOO_LONG_PATH("s")));
    FAILS(ENAMETOOLONG, mkfifo(TOO_LONG_PATH("p"), 0644));
    FAILS(ENAMETOOLONG, link("f", TOO_LONG_PATH("g")));
    FAILS(ENAMETOOLONG, link(TOO_LONG_PATH("f"), "g"));
    FAILS(ENAMETOOLONG, rename("f", TOO_LONG_PATH("g")));
    FAILS(ENAMETOOLONG, rename(TOO_LONG_PATH("f"), "g"));
    EQ((intmax_t)entries_of("."), 1);
}

CASE(calls_that_take_names_refuse_a_4096_byte_path)
{
    char target[8];

    make_file("f", 0644);
    FAILS(ENAMETOOLONG, unlink(TOO_LONG_PATH("f")));
    FAILS(ENAMETOOLONG, rmdir(TOO_LONG_PATH("d")));
    FAILS(ENAMETOOLONG, chmod(TOO_LONG_PATH("f"), 0600));
    FAILS(ENAMETOOLONG, chown(TOO_LONG_PATH("f"), 1, 1));
    FAILS(ENAMETOOLONG, truncate(TOO_LONG_PATH("f"), 0));
    FAILS(ENAMETOOLONG, readlink(TOO_LONG_PATH("f"), target, sizeof(target)));
    FAILS(ENAMETOOLONG, access(TOO_LONG_PATH("f"), F_OK));
    FAILS(ENAMETOOLONG, chdir(TOO_LONG_PATH("d")));
    FAILS(ENAMETOOLONG, getxattr(TOO_LONG_PATH("f"), "user.k", target, sizeof(target)));
    EQ(mode_of("f"), 0644);
}

/* A real tree: directories of 200-byte names, so that the path to the last has levels * 201. */
static char *deep_tree(int levels)
{
    char *path = malloc((size_t)levels * 201 + 1), *name = name_of(200, 'd');

    CHECK(path != NULL);
    path[0] = '\0';
    for (int i = 0; i < levels; i++) {
        OK(mkdir(name, 0755));
        OK(chdir(name));
        strcat(strcat(path, name), "/");
    }
    for (int i = 0; i < levels; i++)
        OK(chdir(".."));
    return path;
}

CASE(file_at_the_end_of_a_real_4095_byte_path_works)
{
    char path[PATH_MAX], *tree = deep_tree(20);
    int bytes = snprintf(path, sizeof(path), "%s%s", tree, name_of(75, 'f'));

    EQ(bytes, PATH_MAX - 1);
    write_file(path, "deep");
    file_reads(path, "deep");
    EQ(links_of(path), 1);
    OK(unlink(path));
    absent(path);
}

CASE(file_beyond_path_max_is_reached_by_steps)
{
    char *tree = deep_tree(20), *name = name_of(200, 'd');

    OK(chdir(tree));
    for (int i = 0; i < 10; i++) {
        OK(mkdir(name, 0755));
        OK(chdir(name));
    }
    write_file("f", "deeper");
    file_reads("f", "deeper");
    OK(rename("f", "g"));
    file_reads("g", "deeper");
    EQ((intmax_t)entries_of("."), 1);
}

CASE(directory_tree_moves_deeper_than_path_max)
{
    char *tree = deep_tree(18);

    OK(mkdir("small", 0755));
    OK(mkdir("small/a", 0755));
    write_file("small/a/f", "moved");
    int small = OK(open("small", O_RDONLY | O_DIRECTORY));
    int from = OK(open(".", O_RDONLY | O_DIRECTORY));
    OK(chdir(tree));
    for (int i = 0; i < 10; i++) {
        OK(mkdir(name_of(200, 'e'), 0755));
        OK(chdir(name_of(200, 'e')));
    }
    OK(renameat(from, "small", AT_FDCWD, "small"));
    file_reads("small/a/f", "moved");
    fd_reads((int)OK(openat(small, "a/f", O_RDONLY)), 0, "moved");
}

CASE(path_with_doubled_slashes_and_dots_is_the_same)
{
    OK(mkdir("d", 0755));
    write_file("d/f", "text");
    file_reads("d//f", "text");
    file_reads("./d/./f", "text");
    file_reads("d/../d///f", "text");
}
