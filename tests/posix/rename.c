/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rename(2) and renameat2(2). A flag that the file system lacks must be refused with EINVAL or
 * ENOSYS and change nothing; a case that meets the refusal checks just that and passes. */
#include "harness.h"

#include <sys/sysmacros.h>

#ifndef RENAME_WHITEOUT
#define RENAME_WHITEOUT (1 << 2)
#endif

CASE(rename_moves_the_file_with_its_inode)
{
    write_file("a", "text");
    intmax_t inode = inode_of("a");

    OK(rename("a", "b"));
    absent("a");
    file_reads("b", "text");
    EQ(inode_of("b"), inode);
    EQ(links_of("b"), 1);
}

CASE(rename_to_its_own_name_changes_nothing)
{
    write_file("a", "text");
    OK(rename("a", "a"));
    file_reads("a", "text");
    EQ((intmax_t)entries_of("."), 1);
}

CASE(rename_between_two_links_of_one_file_does_nothing)
{
    write_file("a", "text");
    OK(link("a", "b"));
    OK(rename("a", "b"));
    stat_of("a");
    stat_of("b");
    EQ(links_of("a"), 2);
}

CASE(rename_replaces_a_file)
{
    write_file("a", "new");
    write_file("b", "old");
    OK(rename("a", "b"));
    absent("a");
    file_reads("b", "new");
    EQ((intmax_t)entries_of("."), 1);
}

CASE(rename_over_linked_file_shows_link_count_at_once)
{
    write_file("a", "new");
    write_file("b", "old");
    OK(link("b", "c"));
    EQ(links_of("c"), 2);
    OK(rename("a", "b"));
    EQ(links_of("c"), 1);
    EQ(links_of("b"), 1);
    file_reads("c", "old");
}

CASE(rename_over_linked_file_in_another_directory_shows_link_count_at_once)
{
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0755));
    write_file("a", "new");
    write_file("d/b", "old");
    OK(link("d/b", "e/c"));
    int fd = OK(open("e/c", O_RDONLY));
    EQ(links_of("e/c"), 2);
    OK(rename("a", "d/b"));
    EQ(links_of("e/c"), 1);
    EQ((intmax_t)fstat_of(fd).st_nlink, 1);
}

CASE(rename_over_one_of_three_links_updates_ctime_of_the_rest)
{
    write_file("a", "new");
    write_file("b", "old");
    OK(link("b", "c"));
    OK(link("b", "d"));
    struct stat before = stat_of("c");

    nap();
    OK(rename("a", "b"));
    EQ(links_of("c"), 2);
    EQ(links_of("d"), 2);
    CHECK(time_is_before(before.st_ctim, stat_of("d").st_ctim));
}

CASE(rename_of_a_linked_file_keeps_its_count)
{
    write_file("a", "text");
    OK(link("a", "b"));
    OK(rename("a", "c"));
    EQ(links_of("c"), 2);
    EQ(links_of("b"), 2);
    EQ(inode_of("b"), inode_of("c"));
}

CASE(rename_over_an_open_file_leaves_it_to_its_descriptor)
{
    write_file("a", "new");
    int fd = open_file_with("b", "old");

    OK(rename("a", "b"));
    fd_reads(fd, 0, "old");
    fd_writes(fd, 3, "er");
    fd_reads(fd, 0, "older");
    EQ((intmax_t)fstat_of(fd).st_nlink, 0);
    file_reads("b", "new");
}

CASE(rename_of_an_open_file_keeps_its_descriptor)
{
    int fd = open_file_with("a", "text");

    OK(mkdir("d", 0755));
    OK(rename("a", "d/b"));
    fd_writes(fd, 4, "ure");
    file_reads("d/b", "texture");
    EQ((intmax_t)fstat_of(fd).st_nlink, 1);
}

CASE(rename_moves_a_file_between_directories)
{
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0755));
    write_file("d/f", "text");
    OK(rename("d/f", "e/g"));
    absent("d/f");
    file_reads("e/g", "text");
    dir_is_empty("d");
}

CASE(rename_updates_times_of_both_directories)
{
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0755));
    make_file("d/f", 0644);
    struct stat from = stat_of("d"), to = stat_of("e");

    nap();
    OK(rename("d/f", "e/f"));
    CHECK(time_is_before(from.st_mtim, stat_of("d").st_mtim));
    CHECK(time_is_before(from.st_ctim, stat_of("d").st_ctim));
    CHECK(time_is_before(to.st_mtim, stat_of("e").st_mtim));
    CHECK(time_is_before(to.st_ctim, stat_of("e").st_ctim));
}

CASE(rename_keeps_mtime_mode_and_owner_of_the_file)
{
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000, .tv_nsec = 5 } };

    make_file("a", 0741);
    OK(chown("a", ALICE, TEAM));
    OK(utimensat(AT_FDCWD, "a", times, 0));
    OK(rename("a", "b"));
    struct stat st = stat_of("b");
    EQ(st.st_mode & 07777, 0741);
    EQ(st.st_uid, ALICE);
    EQ(st.st_gid, TEAM);
    EQ(st.st_mtim.tv_sec, 2000);
}

CASE(rename_of_a_missing_file_is_enoent)
{
    FAILS(ENOENT, rename("a", "b"));
    make_file("a", 0644);
    FAILS(ENOENT, rename("a", "no/b"));
    FAILS(ENOENT, rename("no/a", "b"));
    FAILS(ENOENT, rename("a", ""));
    stat_of("a");
}

CASE(rename_of_a_file_over_a_directory_is_eisdir)
{
    make_file("a", 0644);
    OK(mkdir("d", 0755));
    FAILS(EISDIR, rename("a", "d"));
    stat_of("a");
    CHECK(S_ISDIR(stat_of("d").st_mode));
}

CASE(rename_of_a_directory_over_a_file_is_enotdir)
{
    write_file("a", "text");
    OK(mkdir("d", 0755));
    FAILS(ENOTDIR, rename("d", "a"));
    file_reads("a", "text");
    CHECK(S_ISDIR(stat_of("d").st_mode));
}

CASE(rename_of_a_file_with_a_trailing_slash_is_enotdir)
{
    make_file("a", 0644);
    FAILS(ENOTDIR, rename("a", "b/"));
    FAILS(ENOTDIR, rename("a/", "b"));
    FAILS(ENOTDIR, rename("a/x", "b"));
    FAILS(ENOTDIR, rename("a", "a/b"));
    stat_of("a");
}

CASE(rename_moves_a_directory_with_its_content)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/sub", 0755));
    write_file("d/sub/f", "text");
    OK(rename("d", "e"));
    absent("d");
    file_reads("e/sub/f", "text");
}

CASE(rename_moves_a_directory_into_another_and_dotdot_follows)
{
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0755));
    OK(rename("d", "e/d"));
    EQ(inode_of("e/d/.."), inode_of("e"));
    EQ(links_of("e"), 3);
}

CASE(rename_of_a_directory_moves_its_link_from_parent_to_parent)
{
    OK(mkdir("from", 0755));
    OK(mkdir("to", 0755));
    OK(mkdir("from/d", 0755));
    EQ(links_of("from"), 3);
    EQ(links_of("to"), 2);
    OK(rename("from/d", "to/d"));
    EQ(links_of("from"), 2);
    EQ(links_of("to"), 3);
}

CASE(rename_replaces_an_empty_directory)
{
    OK(mkdir("d", 0755));
    write_file("d/f", "text");
    OK(mkdir("e", 0755));
    OK(rename("d", "e"));
    absent("d");
    file_reads("e/f", "text");
}

CASE(rename_over_an_empty_directory_takes_its_link_from_the_parent)
{
    OK(mkdir("p", 0755));
    OK(mkdir("p/d", 0755));
    OK(mkdir("p/e", 0755));
    EQ(links_of("p"), 4);
    OK(rename("p/d", "p/e"));
    EQ(links_of("p"), 3);
}

CASE(rename_over_a_full_directory_is_enotempty)
{
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0755));
    make_file("e/f", 0644);
    FAILS_EITHER(ENOTEMPTY, EEXIST, rename("d", "e"));
    stat_of("d");
    stat_of("e/f");
}

CASE(rename_of_a_directory_into_itself_is_einval)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/sub", 0755));
    FAILS(EINVAL, rename("d", "d/e"));
    FAILS(EINVAL, rename("d", "d/sub/e"));
    CHECK(S_ISDIR(stat_of("d/sub").st_mode));
}

CASE(rename_over_its_own_ancestor_is_enotempty)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/e", 0755));
    FAILS(ENOTEMPTY, rename("d/e", "d"));
    CHECK(S_ISDIR(stat_of("d/e").st_mode));
}

CASE(rename_of_dot_and_dotdot_is_ebusy)
{
    OK(mkdir("d", 0755));
    FAILS(EBUSY, rename(".", "e"));
    FAILS(EBUSY, rename("d/..", "e"));
    FAILS(EBUSY, rename("d", "d/."));
}

CASE(rename_to_another_file_system_is_exdev)
{
    char name[64];

    snprintf(name, sizeof(name), "/dev/shm/posix-cases-%d", (int)getpid());
    if (access("/dev/shm", W_OK) < 0 || stat_of("/dev/shm").st_dev == stat_of(".").st_dev)
        SKIP("no /dev/shm on another file system");
    make_file("f", 0644);
    FAILS(EXDEV, rename("f", name));
    FAILS(EXDEV, link("f", name));
    stat_of("f");
}

CASE(rename_moves_a_symlink_and_not_its_target)
{
    write_file("f", "text");
    OK(symlink("f", "s"));
    OK(rename("s", "t"));
    absent("s");
    CHECK(S_ISLNK(lstat_of("t").st_mode));
    file_reads("t", "text");
}

CASE(rename_replaces_a_symlink_and_not_its_target)
{
    write_file("f", "old");
    write_file("n", "new");
    OK(symlink("f", "s"));
    OK(rename("n", "s"));
    CHECK(S_ISREG(lstat_of("s").st_mode));
    file_reads("f", "old");
    file_reads("s", "new");
}

CASE(rename_replaces_a_fifo_and_a_fifo_replaces_a_file)
{
    OK(mkfifo("p", 0644));
    write_file("f", "text");
    OK(rename("f", "p"));
    file_reads("p", "text");
    OK(mkfifo("q", 0644));
    OK(rename("q", "p"));
    CHECK(S_ISFIFO(lstat_of("p").st_mode));
}

CASE(rename_of_a_directory_keeps_a_working_directory_inside)
{
    OK(mkdir("d", 0755));
    OK(chdir("d"));
    OK(rename("../d", "../e"));
    write_file("f", "text");
    file_reads("../e/f", "text");
}

CASE(rename_there_and_back_leaves_nothing_behind)
{
    write_file("a", "text");
    for (int i = 0; i < 50; i++) {
        OK(rename("a", "b"));
        OK(rename("b", "a"));
    }
    file_reads("a", "text");
    EQ((intmax_t)entries_of("."), 1);
}

CASE(rename_chain_through_many_names_ends_at_the_last)
{
    char from[32], to[32];

    write_file("f0", "text");
    for (int i = 0; i < 100; i++) {
        snprintf(from, sizeof(from), "f%d", i);
        snprintf(to, sizeof(to), "f%d", i + 1);
        OK(rename(from, to));
        absent(from);
    }
    file_reads("f100", "text");
}

/* The name is always there: an editor's save never shows a moment without the file. */
CASE(renamed_over_name_is_never_missing_and_never_half)
{
    enum {
        ROUNDS = 300
    };

    write_file("f", "oldoldold");
    pid_t kid = child_fork();
    if (kid == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            write_file("next", i % 2 ? "oldoldold" : "newnewnew");
            OK(rename("next", "f"));
        }
        child_exit();
    }
    for (int status; waitpid(kid, &status, WNOHANG) == 0;) {
        char got[16];
        int fd = OK(open("f", O_RDONLY));
        EQ(OK(read(fd, got, sizeof(got))), 9);
        CHECK(memcmp(got, "oldoldold", 9) == 0 || memcmp(got, "newnewnew", 9) == 0);
        OK(close(fd));
    }
}

CASE(renamed_file_is_always_at_one_of_its_two_names)
{
    enum {
        ROUNDS = 300
    };
    int status = 0;

    make_file("a", 0644);
    pid_t kid = child_fork();
    if (kid == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            OK(rename("a", "b"));
            OK(rename("b", "a"));
        }
        child_exit();
    }
    /* Moving while we look may hide it from one look at both names, not from four in a row that
     * each begin at the other name; what is lost stays lost. */
    while (waitpid(kid, &status, WNOHANG) == 0) {
        struct stat st;
        int seen = 0;
        for (int i = 0; i < 200 && !seen; i++)
            seen = stat(i % 2 ? "a" : "b", &st) == 0;
        CHECK(seen);
    }
    EQ(status, 0);
    stat_of("a");
    absent("b");
}

CASE(renames_of_two_processes_onto_one_name_leave_one_file)
{
    pid_t kid[2];

    for (int who = 0; who < 2; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            char mine[32];
            snprintf(mine, sizeof(mine), "w%d", who);
            for (int i = 0; i < 100; i++) {
                write_file(mine, who ? "one" : "two");
                OK(rename(mine, "f"));
            }
            child_exit();
        }
    }
    child_join(kid[0]);
    child_join(kid[1]);
    EQ((intmax_t)entries_of("."), 1);
    EQ(links_of("f"), 1);
    EQ(size_of("f"), 3);
}

CASE(rename_race_for_one_source_has_one_winner)
{
    for (int round = 0; round < 30; round++) {
        struct gate won = gate_new();
        pid_t kid[2];

        make_file("src", 0644);
        for (int who = 0; who < 2; who++) {
            kid[who] = child_fork();
            if (kid[who] == 0) {
                if (rename("src", who ? "one" : "two") == 0)
                    gate_open(won);
                else
                    EQ(errno, ENOENT);
                child_exit();
            }
        }
        child_join(kid[0]);
        child_join(kid[1]);
        gate_wait(won);
        CHECK(!gate_is_open(won, 0));
        EQ((intmax_t)entries_of("."), 1);
        CHECK((unlink("one") == 0) != (unlink("two") == 0));
    }
}

/* RENAME_NOREPLACE */

static bool rename_flag_is_refused(const char *from, const char *to, unsigned flags)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) == 0)
        return false;
    FAILS_EITHER(EINVAL, ENOSYS, -1);
    return true;
}

CASE(noreplace_renames_to_a_free_name_or_is_refused)
{
    write_file("a", "text");
    if (rename_flag_is_refused("a", "b", RENAME_NOREPLACE)) {
        file_reads("a", "text");
        absent("b");
        return;
    }
    absent("a");
    file_reads("b", "text");
}

CASE(noreplace_never_replaces)
{
    write_file("a", "new");
    write_file("b", "old");
    CHECK(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE) == -1);
    CHECK(errno == EEXIST || errno == EINVAL || errno == ENOSYS);
    file_reads("a", "new");
    file_reads("b", "old");
}

CASE(noreplace_never_replaces_a_directory_or_a_dangling_symlink)
{
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0755));
    make_file("f", 0644);
    OK(symlink("nowhere", "s"));
    CHECK(renameat2(AT_FDCWD, "d", AT_FDCWD, "e", RENAME_NOREPLACE) == -1);
    CHECK(errno == EEXIST || errno == EINVAL || errno == ENOSYS);
    CHECK(renameat2(AT_FDCWD, "f", AT_FDCWD, "s", RENAME_NOREPLACE) == -1);
    CHECK(errno == EEXIST || errno == EINVAL || errno == ENOSYS);
    EQ((intmax_t)entries_of("."), 4);
}

CASE(noreplace_race_has_one_winner_or_is_refused)
{
    struct gate won = gate_new();
    pid_t kid[2];

    write_file("w0", "0");
    write_file("w1", "1");
    for (int who = 0; who < 2; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            if (renameat2(AT_FDCWD, who ? "w1" : "w0", AT_FDCWD, "f", RENAME_NOREPLACE) == 0)
                gate_open(won);
            child_exit();
        }
    }
    child_join(kid[0]);
    child_join(kid[1]);
    EQ((intmax_t)entries_of("."), 2);
    if (!gate_is_open(won, 0)) {
        absent("f");
        return;
    }
    gate_wait(won);
    CHECK(!gate_is_open(won, 0));
    stat_of("f");
}

/* RENAME_EXCHANGE */

CASE(exchange_swaps_two_files_or_is_refused)
{
    write_file("a", "one");
    write_file("b", "two");
    bool refused = rename_flag_is_refused("a", "b", RENAME_EXCHANGE);

    file_reads("a", refused ? "one" : "two");
    file_reads("b", refused ? "two" : "one");
}

CASE(exchange_swaps_a_file_and_a_directory_or_is_refused)
{
    write_file("a", "one");
    OK(mkdir("d", 0755));
    write_file("d/f", "inner");
    if (rename_flag_is_refused("a", "d", RENAME_EXCHANGE)) {
        file_reads("a", "one");
        file_reads("d/f", "inner");
        return;
    }
    file_reads("d", "one");
    file_reads("a/f", "inner");
}

CASE(exchange_between_directories_keeps_link_counts_or_is_refused)
{
    OK(mkdir("x", 0755));
    OK(mkdir("y", 0755));
    OK(mkdir("x/d", 0755));
    make_file("y/f", 0644);
    bool refused = rename_flag_is_refused("x/d", "y/f", RENAME_EXCHANGE);

    EQ(links_of("x"), refused ? 3 : 2);
    EQ(links_of("y"), refused ? 2 : 3);
    CHECK(S_ISDIR(stat_of(refused ? "x/d" : "y/f").st_mode));
    CHECK(S_ISREG(stat_of(refused ? "y/f" : "x/d").st_mode));
}

CASE(exchange_with_a_missing_name_is_enoent_or_is_refused)
{
    write_file("a", "one");
    CHECK(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE) == -1);
    CHECK(errno == ENOENT || errno == EINVAL || errno == ENOSYS);
    file_reads("a", "one");
    absent("b");
}

CASE(exchange_with_an_own_descendant_is_refused)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/e", 0755));
    FAILS_EITHER(EINVAL, ENOSYS, renameat2(AT_FDCWD, "d", AT_FDCWD, "d/e", RENAME_EXCHANGE));
    FAILS_EITHER(EINVAL, ENOSYS, renameat2(AT_FDCWD, "d/e", AT_FDCWD, "d", RENAME_EXCHANGE));
    CHECK(S_ISDIR(stat_of("d/e").st_mode));
}

/* RENAME_WHITEOUT and nonsense */

CASE(whiteout_leaves_a_0_0_device_or_is_refused)
{
    write_file("a", "text");
    if (rename_flag_is_refused("a", "b", RENAME_WHITEOUT)) {
        file_reads("a", "text");
        absent("b");
        return;
    }
    file_reads("b", "text");
    CHECK(S_ISCHR(lstat_of("a").st_mode));
    EQ((intmax_t)lstat_of("a").st_rdev, (intmax_t)makedev(0, 0));
}

CASE(whiteout_over_a_file_replaces_it_or_is_refused)
{
    write_file("a", "new");
    write_file("b", "old");
    if (rename_flag_is_refused("a", "b", RENAME_WHITEOUT)) {
        file_reads("a", "new");
        file_reads("b", "old");
        return;
    }
    file_reads("b", "new");
    CHECK(S_ISCHR(lstat_of("a").st_mode));
}

CASE(rename_flags_that_contradict_are_einval)
{
    write_file("a", "one");
    write_file("b", "two");
    FAILS(EINVAL, renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE | RENAME_EXCHANGE));
    FAILS(EINVAL, renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_WHITEOUT | RENAME_EXCHANGE));
    FAILS(EINVAL, renameat2(AT_FDCWD, "a", AT_FDCWD, "b", 1U << 20));
    file_reads("a", "one");
    file_reads("b", "two");
}

/* Who may rename */

CASE(rename_needs_write_permission_on_both_directories)
{
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0777));
    make_file("d/f", 0666);
    make_file("e/g", 0666);
    AS_USER(ALICE, ALICE)
    {
        FAILS(EACCES, rename("d/f", "e/f"));
        FAILS(EACCES, rename("e/g", "d/g"));
        FAILS(EACCES, rename("d/f", "d/h"));
        OK(rename("e/g", "e/h"));
    }
    stat_of("d/f");
    stat_of("e/h");
}

CASE(rename_of_a_directory_to_a_new_parent_needs_write_permission_on_it)
{
    OK(mkdir("p", 0777));
    OK(mkdir("d", 0755));
    AS_USER(ALICE, ALICE) FAILS(EACCES, rename("d", "p/d"));
    OK(chmod("d", 0757));
    AS_USER(ALICE, ALICE) OK(rename("d", "p/d"));
    stat_of("p/d");
}
