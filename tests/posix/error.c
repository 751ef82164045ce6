/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrong paths: the same few mistakes, made with every call that takes a path. One case is one call
 * with one mistake; its name says both and the answer. */
#include "harness.h"

#include <sys/statvfs.h>
#include <sys/xattr.h>

#define TOUCH_CALL(title, expression)                                                              \
    static intmax_t call_##title(const char *path)                                                 \
    {                                                                                              \
        char buf[64] __attribute__((unused));                                                      \
        struct stat st __attribute__((unused));                                                    \
        struct statvfs vfs __attribute__((unused));                                                \
        return (expression);                                                                       \
    }                                                                                              \
    MISTAKES(title)

#define MISTAKES(title)                                                                            \
    CASE(title##_a_name_in_a_missing_directory_is_enoent)                                          \
    {                                                                                              \
        FAILS(ENOENT, call_##title("no/name"));                                                    \
    }                                                                                              \
    CASE(title##_a_name_below_a_file_is_enotdir)                                                   \
    {                                                                                              \
        make_file("file", 0644);                                                                   \
        FAILS(ENOTDIR, call_##title("file/name"));                                                 \
    }                                                                                              \
    CASE(title##_a_name_through_a_loop_of_symlinks_is_eloop)                                       \
    {                                                                                              \
        OK(symlink("two", "one"));                                                                 \
        OK(symlink("one", "two"));                                                                 \
        FAILS(ELOOP, call_##title("one/name"));                                                    \
    }                                                                                              \
    CASE(title##_a_name_below_a_dangling_symlink_is_enoent)                                        \
    {                                                                                              \
        OK(symlink("nowhere", "link"));                                                            \
        FAILS(ENOENT, call_##title("link/name"));                                                  \
        absent("nowhere");                                                                         \
    }                                                                                              \
    CASE(title##_a_name_below_a_256_byte_name_is_enametoolong)                                     \
    {                                                                                              \
        char *path = NULL;                                                                         \
        OK(asprintf(&path, "%s/name", name_of(256, 'n')));                                         \
        FAILS(ENAMETOOLONG, call_##title(path));                                                   \
    }                                                                                              \
    CASE(title##_a_name_in_a_directory_just_removed_is_enoent)                                     \
    {                                                                                              \
        OK(mkdir("gone", 0755));                                                                   \
        FAILS(ENOENT, stat("gone/name", &(struct stat){ 0 }));                                     \
        OK(rmdir("gone"));                                                                         \
        FAILS(ENOENT, call_##title("gone/name"));                                                  \
    }

TOUCH_CALL(open, open(path, O_RDONLY))
TOUCH_CALL(create, open(path, O_CREAT | O_RDWR, 0644))
TOUCH_CALL(open_path_of, open(path, O_PATH))
TOUCH_CALL(mkdir, mkdir(path, 0755))
TOUCH_CALL(rmdir, rmdir(path))
TOUCH_CALL(unlink, unlink(path))
TOUCH_CALL(mkfifo, mkfifo(path, 0644))
TOUCH_CALL(mknod, mknod(path, S_IFREG | 0644, 0))
TOUCH_CALL(symlink, symlink("target", path))
TOUCH_CALL(readlink, readlink(path, buf, sizeof(buf)))
TOUCH_CALL(link_to, (make_file("source", 0644), link("source", path)))
TOUCH_CALL(link_from, link(path, "new"))
TOUCH_CALL(rename_to, (make_file("source", 0644), rename("source", path)))
TOUCH_CALL(rename_from, rename(path, "new"))
TOUCH_CALL(stat, stat(path, &st))
TOUCH_CALL(lstat, lstat(path, &st))
TOUCH_CALL(statvfs, statvfs(path, &vfs))
TOUCH_CALL(access, access(path, F_OK))
TOUCH_CALL(chmod, chmod(path, 0644))
TOUCH_CALL(chown, chown(path, 0, 0))
TOUCH_CALL(lchown, lchown(path, 0, 0))
TOUCH_CALL(utimensat, utimensat(AT_FDCWD, path, NULL, 0))
TOUCH_CALL(truncate, truncate(path, 0))
TOUCH_CALL(chdir, chdir(path))
TOUCH_CALL(setxattr, setxattr(path, "user.key", "v", 1, 0))
TOUCH_CALL(getxattr, getxattr(path, "user.key", buf, sizeof(buf)))
TOUCH_CALL(listxattr, listxattr(path, buf, sizeof(buf)))
TOUCH_CALL(removexattr, removexattr(path, "user.key"))

/* Empty paths and bad addresses */

CASE(empty_path_is_enoent_for_every_call)
{
    struct stat st;
    char buf[8];

    FAILS(ENOENT, open("", O_RDONLY));
    FAILS(ENOENT, mkdir("", 0755));
    FAILS(ENOENT, rmdir(""));
    FAILS(ENOENT, unlink(""));
    FAILS(ENOENT, stat("", &st));
    FAILS(ENOENT, chmod("", 0644));
    FAILS(ENOENT, chown("", 0, 0));
    FAILS(ENOENT, truncate("", 0));
    FAILS(ENOENT, rename("", "x"));
    FAILS(ENOENT, link("", "x"));
    FAILS(ENOENT, symlink("t", ""));
    FAILS(ENOENT, readlink("", buf, sizeof(buf)));
    FAILS(ENOENT, mkfifo("", 0644));
    FAILS(ENOENT, access("", F_OK));
    FAILS(ENOENT, chdir(""));
}

CASE(empty_path_with_the_flag_is_the_descriptor_itself)
{
    struct stat st;
    int fd = open_file_with("f", "text");

    OK(fstatat(fd, "", &st, AT_EMPTY_PATH));
    EQ(st.st_size, 4);
    OK(fchownat(fd, "", ALICE, TEAM, AT_EMPTY_PATH));
    EQ(stat_of("f").st_uid, ALICE);
}

/* Existing names */

#define EXISTS_CASES(title, expression)                                                            \
    static intmax_t make_##title(const char *path)                                                 \
    {                                                                                              \
        return (expression);                                                                       \
    }                                                                                              \
    CASE(title##_over_a_file_is_eexist)                                                            \
    {                                                                                              \
        write_file("x", "text");                                                                   \
        FAILS(EEXIST, make_##title("x"));                                                          \
        file_reads("x", "text");                                                                   \
    }                                                                                              \
    CASE(title##_over_a_directory_is_eexist)                                                       \
    {                                                                                              \
        OK(mkdir("x", 0755));                                                                      \
        FAILS(EEXIST, make_##title("x"));                                                          \
        CHECK(S_ISDIR(lstat_of("x").st_mode));                                                     \
    }                                                                                              \
    CASE(title##_over_a_dangling_symlink_is_eexist)                                                \
    {                                                                                              \
        OK(symlink("nowhere", "x"));                                                               \
        FAILS(EEXIST, make_##title("x"));                                                          \
        CHECK(S_ISLNK(lstat_of("x").st_mode));                                                     \
        absent("nowhere");                                                                         \
    }                                                                                              \
    CASE(title##_over_a_fifo_is_eexist)                                                            \
    {                                                                                              \
        OK(mkfifo("x", 0644));                                                                     \
        FAILS(EEXIST, make_##title("x"));                                                          \
        CHECK(S_ISFIFO(lstat_of("x").st_mode));                                                    \
    }

EXISTS_CASES(exclusive_open, open(path, O_CREAT | O_EXCL | O_RDWR, 0644))
EXISTS_CASES(mkdir, mkdir(path, 0755))
EXISTS_CASES(mkfifo, mkfifo(path, 0644))
EXISTS_CASES(mknod, mknod(path, S_IFCHR | 0644, 0x103))
EXISTS_CASES(symlink, symlink("target", path))
EXISTS_CASES(link, (make_file("source", 0644), link("source", path)))

/* rename of each kind over each kind */

static void make_kind(const char *kind, const char *name)
{
    char inner[32];

    if (strcmp(kind, "a_file") == 0)
        make_file(name, 0644);
    else if (strcmp(kind, "a_symlink") == 0)
        OK(symlink("nowhere", name));
    else if (strcmp(kind, "a_fifo") == 0)
        OK(mkfifo(name, 0644));
    else if (strcmp(kind, "a_socket") == 0)
        OK(mknod(name, S_IFSOCK | 0644, 0));
    else
        OK(mkdir(name, 0755));
    if (strcmp(kind, "a_full_directory") == 0) {
        snprintf(inner, sizeof(inner), "%s/inner", name);
        make_file(inner, 0644);
    }
}

/* 0: the old name is gone and the new one is what the old one was. Else: both are as before. */
static void rename_kind(const char *from_kind, const char *to_kind, int want)
{
    make_kind(from_kind, "from");
    make_kind(to_kind, "to");
    intmax_t from = inode_of("from"), to = inode_of("to");

    CHECK(from != to);
    if (want == 0) {
        OK(rename("from", "to"));
        absent("from");
        EQ(inode_of("to"), from);
        EQ((intmax_t)entries_of("."), 1);
        return;
    }
    FAILS_EITHER(want, want == ENOTEMPTY ? EEXIST : want, rename("from", "to"));
    EQ(inode_of("from"), from);
    EQ(inode_of("to"), to);
}

#define RENAME_CASE(from, to, answer, want)                                                        \
    CASE(rename_of_##from##_over_##to##_##answer)                                                  \
    {                                                                                              \
        rename_kind(#from, #to, want);                                                             \
    }

#define RENAME_OVER_LEAVES(from)                                                                   \
    RENAME_CASE(from, a_file, replaces_it, 0)                                                      \
    RENAME_CASE(from, a_symlink, replaces_it, 0)                                                   \
    RENAME_CASE(from, a_fifo, replaces_it, 0)                                                      \
    RENAME_CASE(from, a_socket, replaces_it, 0)                                                    \
    RENAME_CASE(from, a_directory, gives_eisdir, EISDIR)                                           \
    RENAME_CASE(from, a_full_directory, gives_eisdir, EISDIR)

#define RENAME_DIRECTORY(from)                                                                     \
    RENAME_CASE(from, a_file, gives_enotdir, ENOTDIR)                                              \
    RENAME_CASE(from, a_symlink, gives_enotdir, ENOTDIR)                                           \
    RENAME_CASE(from, a_fifo, gives_enotdir, ENOTDIR)                                              \
    RENAME_CASE(from, a_socket, gives_enotdir, ENOTDIR)                                            \
    RENAME_CASE(from, a_directory, replaces_it, 0)                                                 \
    RENAME_CASE(from, a_full_directory, gives_enotempty, ENOTEMPTY)

RENAME_OVER_LEAVES(a_file)
RENAME_OVER_LEAVES(a_symlink)
RENAME_OVER_LEAVES(a_fifo)
RENAME_OVER_LEAVES(a_socket)
RENAME_DIRECTORY(a_directory)
RENAME_DIRECTORY(a_full_directory)
