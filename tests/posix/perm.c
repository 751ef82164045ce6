/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may do what: every mode of every class of users, directory search, access(2), and sticky
 * directories. Each case of the matrix gives one class some bits and all other classes the
 * others, so that the bits of the wrong class can never be the reason why it passes. */
#include "harness.h"

#include <grp.h>

enum class {
    OWNER,
    GROUP,
    SUPPLEMENTARY,
    OTHER
};

static mode_t mode_for(enum class who, mode_t bits)
{
    mode_t rest = ~bits & 7;

    if (who == OWNER)
        return bits << 6 | rest << 3 | rest;
    if (who == OTHER)
        return rest << 6 | rest << 3 | bits;
    return rest << 6 | bits << 3 | rest;
}

/* Gives path to a user such that ALICE, in her own group and TEAM, is of that class. */
static void give_to_class(const char *path, enum class who, mode_t bits)
{
    static const struct {
        uid_t uid;
        gid_t gid;
    } owner[] = { { ALICE, BOB }, { BOB, ALICE }, { BOB, TEAM }, { BOB, BOB } };

    OK(chown(path, owner[who].uid, owner[who].gid));
    OK(chmod(path, mode_for(who, bits)));
}

/* The call is allowed, or refused with EACCES. */
#define ALLOWED_IF(truth, call)                                                                    \
    do {                                                                                           \
        if (truth)                                                                                 \
            OK(call);                                                                              \
        else                                                                                       \
            FAILS(EACCES, call);                                                                   \
    } while (0)

static void file_grants(enum class who, mode_t bits)
{
    bool reads = bits & 4, writes = bits & 2, runs = bits & 1;

    write_file("f", "#!/bin/sh\n");
    give_to_class("f", who, bits);
    AS_MEMBER(ALICE, ALICE, TEAM)
    {
        ALLOWED_IF(reads, open("f", O_RDONLY));
        ALLOWED_IF(writes, open("f", O_WRONLY));
        ALLOWED_IF(writes, open("f", O_WRONLY | O_APPEND));
        ALLOWED_IF(reads && writes, open("f", O_RDWR));
        ALLOWED_IF(reads, access("f", R_OK));
        ALLOWED_IF(writes, access("f", W_OK));
        ALLOWED_IF(runs, access("f", X_OK));
        ALLOWED_IF(reads && runs, access("f", R_OK | X_OK));
        ALLOWED_IF(writes, truncate("f", 3));
        OK(access("f", F_OK));
    }
}

static void directory_grants(enum class who, mode_t bits)
{
    bool reads = bits & 4, writes = bits & 2, searches = bits & 1;

    OK(mkdir("d", 0777));
    make_file("d/f", 0666);
    give_to_class("d", who, bits);
    AS_MEMBER(ALICE, ALICE, TEAM)
    {
        struct stat st;
        ALLOWED_IF(reads, open("d", O_RDONLY | O_DIRECTORY));
        ALLOWED_IF(searches, stat("d/f", &st));
        ALLOWED_IF(searches, open("d/f", O_RDWR));
        ALLOWED_IF(searches, chdir("d"));
        OK(chdir(searches ? ".." : "."));
        ALLOWED_IF(writes && searches, open("d/n", O_CREAT | O_WRONLY, 0644));
        ALLOWED_IF(writes && searches, mkdir("d/e", 0755));
        ALLOWED_IF(writes && searches, symlink("t", "d/s"));
        ALLOWED_IF(writes && searches, rename("d/f", "d/g"));
        ALLOWED_IF(writes && searches, unlink(writes ? "d/g" : "d/f"));
        ALLOWED_IF(reads, access("d", R_OK));
        ALLOWED_IF(writes, access("d", W_OK));
        ALLOWED_IF(searches, access("d", X_OK));
    }
}

/* clang-format off */
#define MODE_CASES(class_name, who)                                                                \
    MODE_CASE(class_name, who, none, 0)                                                            \
    MODE_CASE(class_name, who, x, 1)                                                               \
    MODE_CASE(class_name, who, w, 2)                                                               \
    MODE_CASE(class_name, who, wx, 3)                                                              \
    MODE_CASE(class_name, who, r, 4)                                                               \
    MODE_CASE(class_name, who, rx, 5)                                                              \
    MODE_CASE(class_name, who, rw, 6)                                                              \
    MODE_CASE(class_name, who, rwx, 7)
/* clang-format on */
#define MODE_CASE(class_name, who, bits_name, bits)                                                \
    CASE(file_mode_##bits_name##_for_##class_name##_grants_just_that)                              \
    {                                                                                              \
        file_grants(who, bits);                                                                    \
    }                                                                                              \
    CASE(directory_mode_##bits_name##_for_##class_name##_grants_just_that)                         \
    {                                                                                              \
        directory_grants(who, bits);                                                               \
    }

MODE_CASES(the_owner, OWNER)
MODE_CASES(the_group, GROUP)
MODE_CASES(a_supplementary_group, SUPPLEMENTARY)
MODE_CASES(others, OTHER)

/* Directories on the way */

static void three_levels(void)
{
    OK(mkdir("a", 0755));
    OK(mkdir("a/b", 0755));
    write_file("a/b/f", "text");
    OK(chmod("a/b/f", 0666));
}

CASE(search_permission_is_needed_on_the_first_directory)
{
    three_levels();
    OK(chmod("a", 0766));
    AS_USER(ALICE, ALICE) FAILS(EACCES, open("a/b/f", O_RDONLY));
    OK(chmod("a", 0711));
    AS_USER(ALICE, ALICE) OK(open("a/b/f", O_RDONLY));
}

CASE(search_permission_is_needed_on_the_last_directory)
{
    three_levels();
    OK(chmod("a/b", 0766));
    AS_USER(ALICE, ALICE) FAILS(EACCES, open("a/b/f", O_RDONLY));
    OK(chmod("a/b", 0711));
    AS_USER(ALICE, ALICE) OK(open("a/b/f", O_RDONLY));
}

CASE(search_permission_is_needed_for_every_call_with_a_path)
{
    three_levels();
    OK(chmod("a/b", 0766));
    AS_USER(ALICE, ALICE)
    {
        struct stat st;
        char buf[8];
        FAILS(EACCES, stat("a/b/f", &st));
        FAILS(EACCES, lstat("a/b/f", &st));
        FAILS(EACCES, access("a/b/f", F_OK));
        FAILS(EACCES, chmod("a/b/f", 0600));
        FAILS(EACCES, chown("a/b/f", ALICE, ALICE));
        FAILS(EACCES, truncate("a/b/f", 0));
        FAILS(EACCES, utimensat(AT_FDCWD, "a/b/f", NULL, 0));
        FAILS(EACCES, readlink("a/b/f", buf, sizeof(buf)));
        FAILS(EACCES, unlink("a/b/f"));
        FAILS(EACCES, rename("a/b/f", "f"));
        FAILS(EACCES, link("a/b/f", "f"));
        FAILS(EACCES, mkdir("a/b/d", 0755));
        FAILS(EACCES, rmdir("a/b/d"));
    }
}

CASE(missing_file_in_a_forbidden_directory_is_eacces_not_enoent)
{
    OK(mkdir("d", 0700));
    AS_USER(ALICE, ALICE)
    {
        FAILS(EACCES, access("d/none", F_OK));
        FAILS(EACCES, open("d/none", O_RDONLY));
    }
}

CASE(search_permission_through_a_symlink_is_that_of_the_targets_directory)
{
    three_levels();
    OK(symlink("a/b/f", "s"));
    AS_USER(ALICE, ALICE) OK(open("s", O_RDONLY));
    OK(chmod("a/b", 0700));
    AS_USER(ALICE, ALICE)
    {
        FAILS(EACCES, open("s", O_RDONLY));
        OK(readlinkat(AT_FDCWD, "s", (char[8]){ 0 }, 8));
    }
}

CASE(open_directory_descriptor_is_no_way_around_a_later_chmod)
{
    three_levels();
    int dir = OK(open("a/b", O_RDONLY | O_DIRECTORY));
    OK(chmod("a/b", 0600));
    AS_USER(ALICE, ALICE) FAILS(EACCES, openat(dir, "f", O_RDONLY));
}

CASE(directory_closed_to_others_is_closed_for_one_who_just_looked_in)
{
    struct gate looked = gate_new(), closed_off = gate_new();

    three_levels();
    pid_t kid = child_fork();
    if (kid == 0) {
        become(ALICE, ALICE, NO_GROUP);
        OK(open("a/b/f", O_RDONLY));
        gate_open(looked);
        gate_wait(closed_off);
        FAILS(EACCES, open("a/b/f", O_RDONLY));
        child_exit();
    }
    gate_wait(looked);
    OK(chmod("a", 0700));
    gate_open(closed_off);
    child_join(kid);
}

/* Root */

CASE(root_reads_and_writes_a_mode_zero_file_of_another)
{
    write_file("f", "text");
    OK(chown("f", ALICE, ALICE));
    OK(chmod("f", 0));
    int fd = OK(open("f", O_RDWR));
    fd_reads(fd, 0, "text");
    OK(access("f", R_OK | W_OK));
}

CASE(root_enters_a_mode_zero_directory_of_another)
{
    OK(mkdir("d", 0755));
    OK(chown("d", ALICE, ALICE));
    OK(chmod("d", 0));
    make_file("d/f", 0644);
    EQ((intmax_t)entries_of("d"), 1);
    OK(unlink("d/f"));
}

CASE(root_executes_only_what_somebody_may_execute)
{
    make_file("f", 0666);
    FAILS(EACCES, access("f", X_OK));
    OK(chmod("f", 0001));
    OK(access("f", X_OK));
    OK(chmod("f", 0010));
    OK(access("f", X_OK));
}

CASE(script_runs_for_one_who_may_execute_it)
{
    write_file("f", "#!/bin/sh\nexit 0\n");
    OK(chmod("f", 0755));
    AS_USER(ALICE, ALICE)
    {
        execl("./f", "f", NULL);
        FAIL("execl failed: %s", strerrorname_np(errno));
    }
}

CASE(script_does_not_run_without_execute_permission)
{
    write_file("f", "#!/bin/sh\nexit 0\n");
    OK(chmod("f", 0666));
    AS_USER(ALICE, ALICE) FAILS(EACCES, execl("./f", "f", NULL));
    FAILS(EACCES, execl("./f", "f", NULL));
}

CASE(file_open_for_writing_does_not_execute)
{
    write_file("f", "#!/bin/sh\nexit 0\n");
    OK(chmod("f", 0755));
    OK(open("f", O_WRONLY));
    FAILS(ETXTBSY, execl("./f", "f", NULL));
}

/* Groups */

CASE(thirty_supplementary_groups_all_count)
{
    gid_t groups[30];

    for (int i = 0; i < 30; i++)
        groups[i] = (gid_t)(5000 + i);
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof(name), "f%d", i);
        make_file(name, 0040);
        OK(chown(name, BOB, groups[i]));
    }
    IN_CHILD
    {
        OK(setgroups(30, groups));
        OK(setresgid(ALICE, ALICE, ALICE));
        OK(setresuid(ALICE, ALICE, ALICE));
        for (int i = 0; i < 30; i++) {
            char name[32];
            snprintf(name, sizeof(name), "f%d", i);
            OK(open(name, O_RDONLY));
        }
    }
}

CASE(group_that_was_left_no_longer_counts)
{
    make_file("f", 0040);
    OK(chown("f", BOB, TEAM));
    AS_MEMBER(ALICE, ALICE, TEAM) OK(open("f", O_RDONLY));
    AS_USER(ALICE, ALICE) FAILS(EACCES, open("f", O_RDONLY));
    AS_MEMBER(ALICE, ALICE, TEAM) OK(open("f", O_RDONLY));
}

CASE(nobody_is_judged_by_the_bits_for_others)
{
    make_file("f", 0604);
    AS_USER(NOBODY, NOBODY)
    {
        OK(open("f", O_RDONLY));
        FAILS(EACCES, open("f", O_WRONLY));
    }
}

/* access, faccessat */

CASE(access_asks_for_the_real_user_and_open_for_the_effective)
{
    make_file("f", 0600);
    IN_CHILD
    {
        OK(setresuid(ALICE, 0, 0));
        FAILS(EACCES, access("f", R_OK));
        OK(open("f", O_RDONLY));
        OK(faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS));
    }
}

CASE(faccessat_with_eaccess_asks_for_the_effective_user)
{
    make_file("f", 0600);
    IN_CHILD
    {
        OK(setresuid(0, ALICE, 0));
        FAILS(EACCES, faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS));
        OK(faccessat(AT_FDCWD, "f", R_OK, 0));
    }
}

CASE(access_of_a_missing_file_is_enoent)
{
    make_file("f", 0644);
    FAILS(ENOENT, access("none", F_OK));
    FAILS(ENOTDIR, access("f/g", F_OK));
    FAILS(EINVAL, access("f", 64));
}

CASE(access_follows_a_symlink_and_faccessat_may_not)
{
    OK(symlink("nowhere", "s"));
    FAILS(ENOENT, access("s", F_OK));
    OK(faccessat(AT_FDCWD, "s", F_OK, AT_SYMLINK_NOFOLLOW));
}

/* Sticky directories */

static void sticky_directory(void)
{
    OK(mkdir("d", 0777));
    OK(chown("d", BOB, BOB));
    OK(chmod("d", 01777));
    make_file("d/f", 0666);
    OK(chown("d/f", ALICE, ALICE));
}

CASE(sticky_directory_keeps_a_file_from_strangers)
{
    sticky_directory();
    AS_USER(NOBODY, NOBODY)
    {
        FAILS(EPERM, unlink("d/f"));
        FAILS(EPERM, rename("d/f", "d/g"));
    }
    stat_of("d/f");
}

CASE(sticky_directory_lets_the_files_owner_remove_it)
{
    sticky_directory();
    AS_USER(ALICE, ALICE) OK(unlink("d/f"));
}

CASE(sticky_directory_lets_the_directorys_owner_remove_it)
{
    sticky_directory();
    AS_USER(BOB, BOB) OK(unlink("d/f"));
}

CASE(sticky_directory_lets_root_remove_it)
{
    sticky_directory();
    OK(unlink("d/f"));
}

CASE(sticky_directory_keeps_a_file_from_being_renamed_over)
{
    sticky_directory();
    AS_USER(NOBODY, NOBODY)
    {
        make_file("d/mine", 0666);
        FAILS(EPERM, rename("d/mine", "d/f"));
        OK(rename("d/mine", "d/other"));
        OK(unlink("d/other"));
    }
    EQ(stat_of("d/f").st_uid, ALICE);
}

CASE(sticky_directory_keeps_a_subdirectory_from_strangers)
{
    sticky_directory();
    OK(mkdir("d/e", 0777));
    AS_USER(NOBODY, NOBODY)
    {
        FAILS(EPERM, rmdir("d/e"));
        FAILS(EPERM, rename("d/e", "d/g"));
    }
    OK(chown("d/e", NOBODY, NOBODY));
    AS_USER(NOBODY, NOBODY) OK(rmdir("d/e"));
}

CASE(sticky_directory_lets_anybody_add_names)
{
    sticky_directory();
    AS_USER(NOBODY, NOBODY)
    {
        make_file("d/n", 0644);
        OK(mkdir("d/m", 0755));
        OK(symlink("t", "d/s"));
    }
}

CASE(directory_without_sticky_lets_anybody_remove)
{
    sticky_directory();
    OK(chmod("d", 0777));
    AS_USER(NOBODY, NOBODY) OK(unlink("d/f"));
}

/* Names need only the directory */

CASE(unlink_and_rmdir_need_write_permission_on_the_directory)
{
    OK(mkdir("d", 0755));
    make_file("d/f", 0777);
    OK(mkdir("d/e", 0777));
    AS_USER(ALICE, ALICE)
    {
        FAILS(EACCES, unlink("d/f"));
        FAILS(EACCES, rmdir("d/e"));
        FAILS(EACCES, open("d/n", O_CREAT | O_WRONLY, 0644));
        FAILS(EACCES, mkdir("d/n", 0755));
        FAILS(EACCES, mkfifo("d/n", 0644));
        FAILS(EACCES, symlink("t", "d/n"));
        FAILS(EACCES, link("d/f", "d/n"));
    }
    EQ((intmax_t)entries_of("d"), 2);
}

CASE(open_with_create_of_an_existing_file_needs_no_write_permission_on_the_directory)
{
    OK(mkdir("d", 0755));
    make_file("d/f", 0666);
    AS_USER(ALICE, ALICE) OK(open("d/f", O_CREAT | O_RDWR, 0644));
}

CASE(stat_needs_no_permission_on_the_file)
{
    make_file("f", 0);
    AS_USER(ALICE, ALICE)
    {
        EQ(stat_of("f").st_uid, 0);
        EQ(mode_of("f"), 0);
    }
}

CASE(owner_without_bits_is_refused_and_may_give_them_to_himself)
{
    write_file("f", "text");
    OK(chown("f", ALICE, ALICE));
    OK(chmod("f", 0077));
    AS_USER(ALICE, ALICE)
    {
        FAILS(EACCES, open("f", O_RDONLY));
        OK(chmod("f", 0600));
        file_reads("f", "text");
    }
}

CASE(ftruncate_asks_the_descriptor_and_not_the_mode)
{
    write_file("f", "text");
    OK(chmod("f", 0666));
    AS_USER(ALICE, ALICE)
    {
        int reading = OK(open("f", O_RDONLY)), writing = OK(open("f", O_WRONLY));
        FAILS(EINVAL, ftruncate(reading, 0));
        OK(ftruncate(writing, 2));
    }
    EQ(size_of("f"), 2);
}

CASE(descriptor_passed_to_a_stranger_reads_what_he_may_not_open)
{
    write_file("f", "secret");
    OK(chmod("f", 0600));
    int fd = OK(open("f", O_RDONLY));
    AS_USER(ALICE, ALICE)
    {
        fd_reads(fd, 0, "secret");
        FAILS(EACCES, open("f", O_RDONLY));
    }
}

CASE(users_cached_page_does_not_serve_another_user)
{
    write_file("f", "secret");
    OK(chown("f", ALICE, ALICE));
    OK(chmod("f", 0600));
    AS_USER(ALICE, ALICE) file_reads("f", "secret");
    AS_USER(BOB, BOB) FAILS(EACCES, open("f", O_RDONLY));
    AS_USER(ALICE, ALICE) file_reads("f", "secret");
}
