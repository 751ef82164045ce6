/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* POSIX access control lists: whom they let in, how they and chmod(2) change each other, and what
 * new files inherit. Skipped where the mount has no ACLs. */
#include "harness.h"

#include <acl/libacl.h>
#include <sys/acl.h>
#include <sys/xattr.h>

#define set_acl(path, type, text) HERE(set_acl_(path, type, text))
#define acl_is(path, type, want) STR_EQ(acl_text(path, type), want)

static acl_t acl_of_text(const char *text)
{
    acl_t acl = acl_from_text(text);

    CHECK(acl != NULL);
    return acl;
}

static void set_acl_(const char *path, acl_type_t type, const char *text)
{
    if (acl_set_file(path, type, acl_of_text(text)) < 0) {
        if (errno == EOPNOTSUPP)
            SKIP("no POSIX ACLs on this mount");
        FAIL("cannot set %s: %s", text, strerrorname_np(errno));
    }
}

static char *acl_text(const char *path, acl_type_t type)
{
    acl_t acl = acl_get_file(path, type);
    char *text;

    if (!acl)
        FAIL("cannot get the ACL of %s: %s", path, strerrorname_np(errno));
    text = acl_to_any_text(acl, NULL, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS);
    CHECK(text != NULL);
    return text;
}

/* A file of BOB's with that list, and a directory of his. */
static void acl_file(const char *text)
{
    write_file("f", "text");
    OK(chown("f", BOB, BOB));
    set_acl("f", ACL_TYPE_ACCESS, text);
}

static void may(const char *path, bool reads, bool writes)
{
    if (reads)
        OK(open(path, O_RDONLY));
    else
        FAILS(EACCES, open(path, O_RDONLY));
    if (writes)
        OK(open(path, O_WRONLY));
    else
        FAILS(EACCES, open(path, O_WRONLY));
    EQ(access(path, R_OK) == 0, reads);
    EQ(access(path, W_OK) == 0, writes);
}

/* The list itself */

CASE(acl_of_a_plain_file_is_its_mode)
{
    acl_file("u::rw,g::r,o::-");
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,g::r--,o::---");
    EQ(acl_extended_file("f"), 0);
    FAILS(ENODATA, getxattr("f", "system.posix_acl_access", NULL, 0));
}

CASE(acl_of_three_entries_sets_the_mode)
{
    make_file("f", 0644);
    set_acl("f", ACL_TYPE_ACCESS, "u::rwx,g::-,o::x");
    EQ(mode_of("f"), 0701);
    EQ(acl_extended_file("f"), 0);
}

CASE(acl_with_named_entries_is_kept)
{
    acl_file("u::rw,u:1001:rwx,g::r,g:2001:w,m::rwx,o::-");
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rwx,g::r--,g:2001:-w-,m::rwx,o::---");
    EQ(acl_extended_file("f"), 1);
}

CASE(acl_mask_is_the_group_part_of_the_mode)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    EQ(mode_of("f"), 0660);
    set_acl("f", ACL_TYPE_ACCESS, "u::rw,u:1001:rw,g::r,m::r,o::-");
    EQ(mode_of("f"), 0640);
}

CASE(acl_is_listed_among_the_xattrs)
{
    char list[1024];

    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    ssize_t bytes = OK(listxattr("f", list, sizeof(list)));
    bool found = false;
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(list + at) + 1)
        found |= strcmp(list + at, "system.posix_acl_access") == 0;
    CHECK(found);
}

CASE(acl_with_a_hundred_named_users_is_kept_and_works)
{
    char text[4096] = "u::rw,g::-,m::r,o::-";

    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), ",u:%d:r", 1001 + i);
    acl_file(text);
    EQ(acl_entries(acl_get_file("f", ACL_TYPE_ACCESS)), 104);
    AS_USER(1100, 1100) may("f", true, false);
    AS_USER(1101, 1101) may("f", false, false);
}

CASE(acl_that_is_nonsense_is_einval)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    FAILS_EITHER(EINVAL, EOPNOTSUPP, setxattr("f", "system.posix_acl_access", "garbage", 7, 0));
    FAILS(EINVAL, acl_set_file("f", ACL_TYPE_ACCESS, acl_of_text("u::rw,u:1001:rw,g::r,o::-")));
    FAILS(EINVAL, acl_set_file("f", ACL_TYPE_ACCESS, acl_of_text("u::rw,g::r")));
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::rw-,o::---");
}

CASE(acl_through_a_descriptor_is_that_of_the_file)
{
    acl_file("u::rw,g::r,o::-");
    int fd = OK(open("f", O_RDONLY));
    OK(acl_set_fd(fd, acl_of_text("u::rw,u:1001:r,g::r,m::r,o::-")));
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:r--,g::r--,m::r--,o::---");
    EQ(acl_extended_fd(fd), 1);
}

CASE(acl_is_removed)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    OK(removexattr("f", "system.posix_acl_access"));
    EQ(acl_extended_file("f"), 0);
    AS_USER(ALICE, ALICE) may("f", false, false);
}

CASE(acl_is_replaced_by_a_plain_one)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    set_acl("f", ACL_TYPE_ACCESS, "u::rw,g::r,o::-");
    EQ(acl_extended_file("f"), 0);
    EQ(mode_of("f"), 0640);
    AS_USER(ALICE, ALICE) may("f", false, false);
}

CASE(acl_stays_through_rename_link_and_write)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    OK(link("f", "g"));
    OK(rename("f", "h"));
    write_file("g", "other");
    acl_is("h", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::rw-,o::---");
    AS_USER(ALICE, ALICE) may("g", true, true);
}

CASE(acl_change_moves_ctime_only)
{
    acl_file("u::rw,g::r,o::-");
    struct stat before = stat_of("f");

    nap();
    set_acl("f", ACL_TYPE_ACCESS, "u::rw,u:1001:rw,g::r,m::rw,o::-");
    CHECK(time_is_before(before.st_ctim, stat_of("f").st_ctim));
    CHECK(time_equals(before.st_mtim, stat_of("f").st_mtim));
}

CASE(acl_is_set_by_the_owner_and_root_only)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    AS_USER(ALICE, ALICE)
    {
        FAILS(EPERM, acl_set_file("f", ACL_TYPE_ACCESS, acl_of_text("u::rw,g::rw,o::rw")));
        FAILS(EPERM, removexattr("f", "system.posix_acl_access"));
    }
    AS_USER(BOB, BOB)
    {
        OK(acl_set_file("f", ACL_TYPE_ACCESS, acl_of_text("u::rw,u:1001:r,g::-,m::r,o::-")));
    }
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:r--,g::---,m::r--,o::---");
}

CASE(acl_is_read_by_everybody_who_finds_the_file)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    AS_USER(NOBODY, NOBODY)
    {
        acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::rw-,o::---");
    }
}

/* Whom it lets in */

CASE(acl_named_user_gets_what_his_entry_says)
{
    acl_file("u::rw,u:1001:r,u:1003:rw,g::-,m::rw,o::-");
    AS_USER(ALICE, ALICE) may("f", true, false);
    AS_USER(1003, 1003) may("f", true, true);
    AS_USER(NOBODY, NOBODY) may("f", false, false);
}

CASE(acl_named_user_is_shut_out_though_others_are_not)
{
    acl_file("u::rw,u:1001:-,g::r,m::rw,o::rw");
    AS_USER(ALICE, ALICE) may("f", false, false);
    AS_USER(NOBODY, NOBODY) may("f", true, true);
}

CASE(acl_named_group_gets_what_its_entry_says)
{
    acl_file("u::rw,g::-,g:2001:rw,m::rw,o::-");
    AS_USER(ALICE, TEAM) may("f", true, true);
    AS_USER(ALICE, ALICE) may("f", false, false);
}

CASE(acl_named_group_counts_as_a_supplementary_one)
{
    acl_file("u::rw,g::-,g:2001:r,m::rw,o::-");
    AS_MEMBER(ALICE, ALICE, TEAM) may("f", true, false);
}

CASE(acl_mask_limits_named_users_and_groups)
{
    acl_file("u::rw,u:1001:rw,g::rw,g:2001:rw,m::r,o::-");
    AS_USER(ALICE, ALICE) may("f", true, false);
    AS_USER(1003, TEAM) may("f", true, false);
    AS_USER(1003, BOB) may("f", true, false);
}

CASE(acl_mask_does_not_limit_the_owner_and_others)
{
    acl_file("u::rw,u:1001:rw,g::rw,m::x,o::rw");
    AS_USER(BOB, BOB) may("f", true, true);
    AS_USER(NOBODY, NOBODY) may("f", true, true);
    AS_USER(ALICE, ALICE) may("f", false, false);
}

CASE(acl_owner_entry_wins_over_a_named_one_for_him)
{
    acl_file("u::r,u:1002:rw,g::-,m::rw,o::-");
    AS_USER(BOB, BOB) may("f", true, false);
}

CASE(acl_named_user_entry_wins_over_his_groups)
{
    acl_file("u::rw,u:1001:r,g::-,g:2001:rw,m::rw,o::-");
    AS_MEMBER(ALICE, ALICE, TEAM) may("f", true, false);
}

CASE(acl_one_of_several_groups_is_enough)
{
    acl_file("u::rw,g::-,g:1001:r,g:2001:rw,m::rw,o::-");
    AS_MEMBER(ALICE, ALICE, TEAM) may("f", true, true);
}

CASE(acl_groups_that_do_not_grant_shut_out_from_what_others_may)
{
    acl_file("u::rw,g::-,g:2001:-,m::rw,o::rw");
    AS_MEMBER(ALICE, ALICE, TEAM) may("f", false, false);
    AS_USER(ALICE, ALICE) may("f", true, true);
}

CASE(acl_owning_group_keeps_its_own_entry_beside_a_wider_mask)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    AS_USER(NOBODY, BOB) may("f", true, false);
}

CASE(acl_grants_execution)
{
    write_file("f", "#!/bin/sh\nexit 0\n");
    OK(chown("f", BOB, BOB));
    set_acl("f", ACL_TYPE_ACCESS, "u::rw,u:1001:rx,g::r,m::rx,o::r");
    AS_USER(ALICE, ALICE)
    {
        execl("./f", "f", NULL);
        FAIL("execl failed: %s", strerrorname_np(errno));
    }
    AS_USER(NOBODY, NOBODY) FAILS(EACCES, execl("./f", "f", NULL));
}

CASE(acl_of_a_directory_grants_search_and_change)
{
    OK(mkdir("d", 0700));
    make_file("d/f", 0644);
    set_acl("d", ACL_TYPE_ACCESS, "u::rwx,u:1001:x,u:1002:rwx,g::-,m::rwx,o::-");
    AS_USER(ALICE, ALICE)
    {
        OK(open("d/f", O_RDONLY));
        FAILS(EACCES, open("d", O_RDONLY));
        FAILS(EACCES, open("d/n", O_CREAT | O_WRONLY, 0644));
    }
    AS_USER(BOB, BOB)
    {
        EQ((intmax_t)entries_of("d"), 1);
        make_file("d/n", 0644);
        OK(unlink("d/f"));
    }
    AS_USER(NOBODY, NOBODY) FAILS(EACCES, open("d/n", O_RDONLY));
}

CASE(acl_change_counts_at_once_for_one_who_was_let_in_before)
{
    struct gate looked = gate_new(), changed = gate_new();

    acl_file("u::rw,u:1001:r,g::-,m::r,o::-");
    pid_t kid = child_fork();
    if (kid == 0) {
        become(ALICE, ALICE, NO_GROUP);
        may("f", true, false);
        gate_open(looked);
        gate_wait(changed);
        may("f", false, false);
        child_exit();
    }
    gate_wait(looked);
    set_acl("f", ACL_TYPE_ACCESS, "u::rw,u:1001:-,g::-,m::r,o::-");
    gate_open(changed);
    child_join(kid);
}

/* chmod and the list */

CASE(acl_mask_follows_chmod_and_the_group_entry_stays)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    OK(chmod("f", 0600));
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::---,o::---");
    AS_USER(ALICE, ALICE) may("f", false, false);
    OK(chmod("f", 0660));
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::rw-,o::---");
    AS_USER(ALICE, ALICE) may("f", true, true);
}

CASE(acl_owner_and_other_entries_follow_chmod)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    OK(chmod("f", 0765));
    acl_is("f", ACL_TYPE_ACCESS, "u::rwx,u:1001:rw-,g::r--,m::rw-,o::r-x");
}

CASE(acl_group_entry_follows_chmod_when_there_is_no_mask)
{
    acl_file("u::rw,g::r,o::-");
    OK(chmod("f", 0670));
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,g::rwx,o::---");
}

CASE(acl_follows_fchmod_too)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    OK(fchmod((int)OK(open("f", O_RDONLY)), 0640));
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::r--,o::---");
}

CASE(acl_stays_through_chown)
{
    acl_file("u::rw,u:1001:rw,g::r,m::rw,o::-");
    OK(chown("f", NOBODY, TEAM));
    acl_is("f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::rw-,o::---");
    AS_USER(BOB, BOB) may("f", false, false);
    AS_USER(NOBODY, NOBODY) may("f", true, true);
}

CASE(acl_set_by_an_owner_outside_the_group_drops_setgid)
{
    acl_file("u::rwx,g::rx,o::rx");
    OK(chown("f", BOB, TEAM));
    OK(chmod("f", 02755));
    AS_USER(BOB, BOB)
    {
        OK(acl_set_file("f", ACL_TYPE_ACCESS, acl_of_text("u::rwx,u:1001:rx,g::rx,m::rx,o::rx")));
    }
    EQ(mode_of("f"), 0755);
}

/* The default list of a directory */

static void default_acl_directory(const char *text)
{
    OK(mkdir("d", 0777));
    set_acl("d", ACL_TYPE_DEFAULT, text);
}

CASE(acl_default_is_kept_and_changes_not_the_access_of_the_directory)
{
    default_acl_directory("u::rwx,u:1001:rwx,g::rx,m::rwx,o::-");
    acl_is("d", ACL_TYPE_DEFAULT, "u::rwx,u:1001:rwx,g::r-x,m::rwx,o::---");
    acl_is("d", ACL_TYPE_ACCESS, "u::rwx,g::rwx,o::rwx");
    EQ(mode_of("d"), 0777);
}

CASE(acl_default_of_a_file_is_eacces)
{
    acl_file("u::rw,g::r,o::-");
    FAILS(EACCES, acl_set_file("f", ACL_TYPE_DEFAULT, acl_of_text("u::rw,g::r,o::-")));
}

CASE(acl_default_is_inherited_by_a_file)
{
    default_acl_directory("u::rwx,u:1001:rw,g::r,m::rw,o::-");
    make_file("d/f", 0666);
    acl_is("d/f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::rw-,o::---");
    EQ(mode_of("d/f"), 0660);
    AS_USER(ALICE, ALICE) may("d/f", true, true);
    AS_USER(NOBODY, NOBODY) may("d/f", false, false);
}

CASE(acl_default_is_inherited_by_a_directory_both_ways)
{
    default_acl_directory("u::rwx,u:1001:rwx,g::rx,m::rwx,o::-");
    OK(mkdir("d/e", 0777));
    acl_is("d/e", ACL_TYPE_ACCESS, "u::rwx,u:1001:rwx,g::r-x,m::rwx,o::---");
    acl_is("d/e", ACL_TYPE_DEFAULT, "u::rwx,u:1001:rwx,g::r-x,m::rwx,o::---");
    make_file("d/e/f", 0666);
    acl_is("d/e/f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rwx,g::r-x,m::rw-,o::---");
}

CASE(acl_default_is_inherited_by_a_fifo)
{
    default_acl_directory("u::rwx,u:1001:rw,g::r,m::rw,o::-");
    OK(mkfifo("d/p", 0666));
    acl_is("d/p", ACL_TYPE_ACCESS, "u::rw-,u:1001:rw-,g::r--,m::rw-,o::---");
}

CASE(acl_default_takes_the_place_of_the_umask)
{
    umask(077);
    default_acl_directory("u::rwx,u:1001:rw,g::r,m::rw,o::r");
    make_file("d/f", 0666);
    EQ(mode_of("d/f"), 0664);
    OK(mkdir("d/e", 0777));
    EQ(mode_of("d/e"), 0764);
}

CASE(acl_default_is_limited_by_the_mode_of_the_create)
{
    default_acl_directory("u::rwx,u:1001:rwx,g::rwx,m::rwx,o::rwx");
    make_file("d/f", 0640);
    acl_is("d/f", ACL_TYPE_ACCESS, "u::rw-,u:1001:rwx,g::rwx,m::r--,o::---");
    EQ(mode_of("d/f"), 0640);
    AS_USER(ALICE, ALICE) may("d/f", true, false);
}

CASE(acl_default_of_three_entries_gives_a_plain_file)
{
    umask(0);
    default_acl_directory("u::rw,g::r,o::-");
    make_file("d/f", 0777);
    EQ(mode_of("d/f"), 0640);
    EQ(acl_extended_file("d/f"), 0);
}

CASE(acl_default_is_inherited_when_a_user_makes_the_file)
{
    default_acl_directory("u::rwx,u:1002:r,g::-,m::rwx,o::-");
    AS_USER(ALICE, ALICE) write_file("d/f", "text");
    EQ(stat_of("d/f").st_uid, ALICE);
    AS_USER(BOB, BOB) may("d/f", true, false);
}

CASE(acl_default_is_not_inherited_by_link_and_rename)
{
    default_acl_directory("u::rwx,u:1001:rw,g::r,m::rw,o::-");
    make_file("a", 0640);
    make_file("b", 0640);
    OK(link("a", "d/a"));
    OK(rename("b", "d/b"));
    EQ(acl_extended_file("d/a"), 0);
    EQ(acl_extended_file("d/b"), 0);
}

CASE(acl_default_leaves_symlinks_alone)
{
    default_acl_directory("u::rwx,u:1001:rw,g::r,m::rw,o::-");
    OK(symlink("t", "d/s"));
    CHECK(S_ISLNK(lstat_of("d/s").st_mode));
    EQ(lstat_of("d/s").st_mode & 0777, 0777);
}

CASE(acl_default_is_removed_and_no_longer_inherited)
{
    umask(022);
    default_acl_directory("u::rwx,u:1001:rw,g::r,m::rw,o::-");
    OK(acl_delete_def_file("d"));
    STR_EQ(acl_text("d", ACL_TYPE_DEFAULT), "");
    make_file("d/f", 0666);
    EQ(mode_of("d/f"), 0644);
    EQ(acl_extended_file("d/f"), 0);
}

CASE(acl_default_is_set_by_the_owner_only)
{
    default_acl_directory("u::rwx,g::rx,o::-");
    AS_USER(ALICE, ALICE)
    {
        FAILS(EPERM, acl_set_file("d", ACL_TYPE_DEFAULT, acl_of_text("u::rwx,g::-,o::-")));
        FAILS(EPERM, acl_delete_def_file("d"));
    }
    acl_is("d", ACL_TYPE_DEFAULT, "u::rwx,g::r-x,o::---");
}

CASE(acl_default_and_setgid_are_inherited_together)
{
    default_acl_directory("u::rwx,u:1001:rwx,g::rwx,m::rwx,o::-");
    OK(chown("d", 0, TEAM));
    OK(chmod("d", 02777));
    OK(mkdir("d/e", 0755));
    EQ(stat_of("d/e").st_gid, TEAM);
    EQ(mode_of("d/e"), 02750);
    acl_is("d/e", ACL_TYPE_DEFAULT, "u::rwx,u:1001:rwx,g::rwx,m::rwx,o::---");
}

CASE(acl_in_a_sticky_directory_does_not_lift_the_bit)
{
    OK(mkdir("d", 0755));
    set_acl("d", ACL_TYPE_ACCESS, "u::rwx,u:1001:rwx,g::rx,m::rwx,o::rx");
    OK(chmod("d", 01775));
    make_file("d/f", 0666);
    AS_USER(ALICE, ALICE)
    {
        FAILS(EPERM, unlink("d/f"));
        make_file("d/mine", 0644);
        OK(unlink("d/mine"));
    }
}
