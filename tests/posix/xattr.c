/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Extended attributes: user.* for everybody with the file's permissions, trusted.* for root. */
#include "harness.h"

#include <sys/xattr.h>

enum {
    VALUE_BYTES_MAX = 65536,
};

#define xattr_is(path, name, value) HERE(xattr_is_(path, name, value, strlen(value)))

static void xattr_is_(const char *path, const char *name, const char *value, size_t bytes)
{
    static char got[VALUE_BYTES_MAX];

    EQ(OK(lgetxattr(path, name, got, sizeof(got))), (intmax_t)bytes);
    EQ(memcmp(got, value, bytes), 0);
}

/* How often the list of path's attributes has that name. */
static int times_listed(const char *path, const char *name)
{
    static char list[VALUE_BYTES_MAX];
    ssize_t bytes = OK(llistxattr(path, list, sizeof(list)));
    int times = 0;

    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(list + at) + 1)
        times += strcmp(list + at, name) == 0;
    return times;
}

CASE(xattr_is_kept)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "value", 5, 0));
    xattr_is("f", "user.key", "value");
    EQ(times_listed("f", "user.key"), 1);
}

CASE(xattr_is_replaced_by_another_of_any_length)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "value", 5, 0));
    OK(setxattr("f", "user.key", "a longer value", 14, 0));
    xattr_is("f", "user.key", "a longer value");
    OK(setxattr("f", "user.key", "v", 1, 0));
    xattr_is("f", "user.key", "v");
    EQ(times_listed("f", "user.key"), 1);
}

CASE(xattr_may_be_empty)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "", 0, 0));
    EQ(getxattr("f", "user.key", NULL, 0), 0);
    EQ(times_listed("f", "user.key"), 1);
}

CASE(xattr_keeps_zero_bytes_and_every_other)
{
    char value[256];

    for (int i = 0; i < 256; i++)
        value[i] = (char)i;
    make_file("f", 0644);
    OK(setxattr("f", "user.key", value, sizeof(value), 0));
    HERE(xattr_is_("f", "user.key", value, sizeof(value)));
}

CASE(missing_xattr_is_enodata)
{
    char buf[8];

    make_file("f", 0644);
    FAILS(ENODATA, getxattr("f", "user.none", buf, sizeof(buf)));
    FAILS(ENODATA, removexattr("f", "user.none"));
    EQ(times_listed("f", "user.none"), 0);
}

CASE(xattr_create_refuses_an_existing_one)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "one", 3, XATTR_CREATE));
    FAILS(EEXIST, setxattr("f", "user.key", "two", 3, XATTR_CREATE));
    xattr_is("f", "user.key", "one");
}

CASE(xattr_replace_refuses_a_missing_one)
{
    make_file("f", 0644);
    FAILS(ENODATA, setxattr("f", "user.key", "one", 3, XATTR_REPLACE));
    EQ(times_listed("f", "user.key"), 0);
    OK(setxattr("f", "user.key", "one", 3, 0));
    OK(setxattr("f", "user.key", "two", 3, XATTR_REPLACE));
    xattr_is("f", "user.key", "two");
}

CASE(xattr_with_wrong_flags_is_einval)
{
    make_file("f", 0644);
    FAILS(EINVAL, setxattr("f", "user.key", "v", 1, 64));
}

CASE(xattr_is_removed)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.a", "1", 1, 0));
    OK(setxattr("f", "user.b", "2", 1, 0));
    OK(removexattr("f", "user.a"));
    EQ(times_listed("f", "user.a"), 0);
    xattr_is("f", "user.b", "2");
    FAILS(ENODATA, removexattr("f", "user.a"));
}

CASE(xattr_size_is_told_for_a_buffer_of_none)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "value", 5, 0));
    EQ(getxattr("f", "user.key", NULL, 0), 5);
}

CASE(xattr_that_does_not_fit_the_buffer_is_erange)
{
    char buf[8] = "........";

    make_file("f", 0644);
    OK(setxattr("f", "user.key", "value", 5, 0));
    FAILS(ERANGE, getxattr("f", "user.key", buf, 4));
    EQ(getxattr("f", "user.key", buf, 5), 5);
    EQ(memcmp(buf, "value...", 8), 0);
}

CASE(xattr_list_size_is_told_and_is_enough)
{
    char list[VALUE_BYTES_MAX];

    make_file("f", 0644);
    OK(setxattr("f", "user.a", "1", 1, 0));
    OK(setxattr("f", "user.b", "2", 1, 0));
    ssize_t told = OK(listxattr("f", NULL, 0));
    CHECK(told >= 14);
    EQ(OK(listxattr("f", list, (size_t)told)), told);
}

CASE(xattr_list_that_does_not_fit_the_buffer_is_erange)
{
    char list[8];

    make_file("f", 0644);
    OK(setxattr("f", "user.a", "1", 1, 0));
    OK(setxattr("f", "user.b", "2", 1, 0));
    FAILS(ERANGE, listxattr("f", list, sizeof(list)));
}

CASE(xattr_list_of_a_new_file_has_no_user_attributes)
{
    char list[VALUE_BYTES_MAX];

    make_file("f", 0644);
    ssize_t bytes = OK(listxattr("f", list, sizeof(list)));
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(list + at) + 1)
        CHECK(strncmp(list + at, "user.", 5) != 0);
}

CASE(xattr_list_follows_what_is_set_and_removed)
{
    make_file("f", 0644);
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof(name), "user.key%d", i);
        OK(setxattr("f", name, name, strlen(name), 0));
    }
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof(name), "user.key%d", i);
        EQ(times_listed("f", name), 1);
        xattr_is("f", name, name);
        if (i % 2)
            OK(removexattr("f", name));
        EQ(times_listed("f", name), i % 2 ? 0 : 1);
    }
}

CASE(xattr_name_of_255_bytes_works)
{
    char *name = name_of(255, 'k');

    memcpy(name, "user.", 5);
    make_file("f", 0644);
    OK(setxattr("f", name, "value", 5, 0));
    xattr_is("f", name, "value");
    EQ(times_listed("f", name), 1);
    OK(removexattr("f", name));
}

CASE(xattr_name_of_256_bytes_is_erange)
{
    char *name = name_of(256, 'k'), buf[8];

    memcpy(name, "user.", 5);
    make_file("f", 0644);
    FAILS(ERANGE, setxattr("f", name, "value", 5, 0));
    FAILS(ERANGE, getxattr("f", name, buf, sizeof(buf)));
}

CASE(xattr_name_that_is_empty_or_only_a_prefix_is_refused)
{
    make_file("f", 0644);
    FAILS(ERANGE, setxattr("f", "", "v", 1, 0));
    FAILS(EINVAL, setxattr("f", "user.", "v", 1, 0));
    FAILS(EOPNOTSUPP, setxattr("f", "nonsense", "v", 1, 0));
    FAILS(EOPNOTSUPP, setxattr("f", "nonsense.key", "v", 1, 0));
}

CASE(xattr_value_over_64k_is_e2big)
{
    char *value = name_of(VALUE_BYTES_MAX + 1, 'v');

    make_file("f", 0644);
    FAILS(E2BIG, setxattr("f", "user.key", value, VALUE_BYTES_MAX + 1, 0));
    EQ(times_listed("f", "user.key"), 0);
}

/* A value of that many bytes is kept whole, or refused whole for want of space (as ext4 does). */
static void large_value(size_t bytes)
{
    char *value = name_of(bytes, 'v');

    make_file("f", 0644);
    OK(setxattr("f", "user.key", "small", 5, 0));
    if (setxattr("f", "user.key", value, bytes, 0) == 0) {
        HERE(xattr_is_("f", "user.key", value, bytes));
        return;
    }
    CHECK(errno == ENOSPC || errno == E2BIG || errno == ERANGE);
    xattr_is("f", "user.key", "small");
}

CASE(xattr_value_of_1000_bytes_is_kept)
{
    char *value = name_of(1000, 'v');

    make_file("f", 0644);
    OK(setxattr("f", "user.key", value, 1000, 0));
    HERE(xattr_is_("f", "user.key", value, 1000));
}

CASE(xattr_value_of_3000_bytes_is_kept)
{
    char *value = name_of(3000, 'v');

    make_file("f", 0644);
    OK(setxattr("f", "user.key", value, 3000, 0));
    HERE(xattr_is_("f", "user.key", value, 3000));
}

CASE(xattr_value_of_16k_is_kept_or_refused_whole)
{
    large_value(16384);
}
CASE(xattr_value_of_64k_is_kept_or_refused_whole)
{
    large_value(VALUE_BYTES_MAX);
}

CASE(xattr_of_a_directory_works)
{
    OK(mkdir("d", 0755));
    OK(setxattr("d", "user.key", "value", 5, 0));
    xattr_is("d", "user.key", "value");
    make_file("d/f", 0644);
    EQ(times_listed("d/f", "user.key"), 0);
    OK(removexattr("d", "user.key"));
}

CASE(xattr_through_a_symlink_is_that_of_its_target)
{
    make_file("f", 0644);
    OK(symlink("f", "s"));
    OK(setxattr("s", "user.key", "value", 5, 0));
    xattr_is("f", "user.key", "value");
    EQ(getxattr("s", "user.key", NULL, 0), 5);
    EQ(times_listed("s", "user.key"), 0);
}

CASE(user_xattr_of_a_symlink_itself_is_eperm)
{
    char buf[8];

    make_file("f", 0644);
    OK(symlink("f", "s"));
    FAILS(EPERM, lsetxattr("s", "user.key", "value", 5, 0));
    FAILS_EITHER(ENODATA, EPERM, lgetxattr("s", "user.key", buf, sizeof(buf)));
    EQ(times_listed("f", "user.key"), 0);
}

CASE(user_xattr_of_a_fifo_or_a_device_is_eperm)
{
    OK(mkfifo("p", 0666));
    OK(mknod("c", S_IFCHR | 0666, 0x103));
    FAILS(EPERM, setxattr("p", "user.key", "value", 5, 0));
    FAILS(EPERM, setxattr("c", "user.key", "value", 5, 0));
}

CASE(trusted_xattr_of_a_symlink_itself_is_kept)
{
    make_file("f", 0644);
    OK(symlink("f", "s"));
    OK(lsetxattr("s", "trusted.key", "value", 5, 0));
    xattr_is("s", "trusted.key", "value");
    EQ(times_listed("f", "trusted.key"), 0);
    OK(lremovexattr("s", "trusted.key"));
}

CASE(xattr_through_a_descriptor_is_that_of_the_file)
{
    char buf[8];
    int fd = open_file_with("f", "");

    OK(fsetxattr(fd, "user.key", "value", 5, 0));
    xattr_is("f", "user.key", "value");
    EQ(fgetxattr(fd, "user.key", buf, sizeof(buf)), 5);
    CHECK(flistxattr(fd, NULL, 0) >= 9);
    OK(fremovexattr(fd, "user.key"));
    EQ(times_listed("f", "user.key"), 0);
}

CASE(xattr_through_a_directory_descriptor_works)
{
    OK(mkdir("d", 0755));
    int fd = OK(open("d", O_RDONLY | O_DIRECTORY));
    OK(fsetxattr(fd, "user.key", "value", 5, 0));
    xattr_is("d", "user.key", "value");
}

CASE(xattr_of_an_unlinked_open_file_works)
{
    char buf[8];
    int fd = open_file_with("f", "");

    OK(fsetxattr(fd, "user.key", "value", 5, 0));
    OK(unlink("f"));
    EQ(fgetxattr(fd, "user.key", buf, sizeof(buf)), 5);
    OK(fsetxattr(fd, "user.key", "other", 5, XATTR_REPLACE));
    EQ(fgetxattr(fd, "user.key", buf, sizeof(buf)), 5);
    EQ(memcmp(buf, "other", 5), 0);
    OK(fremovexattr(fd, "user.key"));
    FAILS(ENODATA, fgetxattr(fd, "user.key", buf, sizeof(buf)));
}

CASE(xattr_is_shared_by_links_and_stays_through_renames)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "value", 5, 0));
    OK(link("f", "g"));
    xattr_is("g", "user.key", "value");
    OK(rename("f", "h"));
    xattr_is("h", "user.key", "value");
    OK(setxattr("g", "user.key", "other", 5, 0));
    xattr_is("h", "user.key", "other");
}

CASE(xattr_does_not_outlive_its_file)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "value", 5, 0));
    OK(unlink("f"));
    make_file("f", 0644);
    EQ(times_listed("f", "user.key"), 0);
}

CASE(xattr_stays_through_write_truncate_chmod_and_chown)
{
    int fd = open_file_with("f", "text");

    OK(setxattr("f", "user.key", "value", 5, 0));
    fd_writes(fd, 0, "other");
    OK(truncate("f", 0));
    OK(chmod("f", 0600));
    OK(chown("f", ALICE, TEAM));
    xattr_is("f", "user.key", "value");
}

CASE(xattr_of_a_missing_file_is_enoent)
{
    char buf[8];

    FAILS(ENOENT, setxattr("f", "user.key", "v", 1, 0));
    FAILS(ENOENT, getxattr("f", "user.key", buf, sizeof(buf)));
    FAILS(ENOENT, listxattr("f", buf, sizeof(buf)));
    FAILS(ENOENT, removexattr("f", "user.key"));
    OK(symlink("nowhere", "s"));
    FAILS(ENOENT, getxattr("s", "user.key", buf, sizeof(buf)));
}

CASE(xattr_set_by_one_process_is_seen_by_another_at_once)
{
    make_file("f", 0644);
    EQ(times_listed("f", "user.key"), 0);
    IN_CHILD OK(setxattr("f", "user.key", "value", 5, 0));
    xattr_is("f", "user.key", "value");
    IN_CHILD OK(removexattr("f", "user.key"));
    EQ(times_listed("f", "user.key"), 0);
}

CASE(xattr_create_race_has_one_winner)
{
    for (int round = 0; round < 20; round++) {
        struct gate won = gate_new();
        pid_t kid[2];
        char name[32];

        snprintf(name, sizeof(name), "f%d", round);
        make_file(name, 0644);
        for (int who = 0; who < 2; who++) {
            kid[who] = child_fork();
            if (kid[who] == 0) {
                if (setxattr(name, "user.key", who ? "1" : "0", 1, XATTR_CREATE) == 0)
                    gate_open(won);
                else
                    EQ(errno, EEXIST);
                child_exit();
            }
        }
        child_join(kid[0]);
        child_join(kid[1]);
        gate_wait(won);
        CHECK(!gate_is_open(won, 0));
    }
}

/* Permissions */

CASE(user_xattr_is_read_by_readers_and_written_by_writers)
{
    make_file("f", 0644);
    OK(setxattr("f", "user.key", "value", 5, 0));
    AS_USER(ALICE, ALICE)
    {
        xattr_is("f", "user.key", "value");
        FAILS(EACCES, setxattr("f", "user.key", "x", 1, 0));
        FAILS(EACCES, removexattr("f", "user.key"));
    }
    OK(chmod("f", 0602));
    AS_USER(ALICE, ALICE)
    {
        FAILS(EACCES, getxattr("f", "user.key", NULL, 0));
        OK(setxattr("f", "user.key", "x", 1, 0));
    }
    xattr_is("f", "user.key", "x");
}

CASE(user_xattr_of_a_sticky_directory_is_for_its_owner)
{
    OK(mkdir("d", 0777));
    OK(chmod("d", 01777));
    AS_USER(ALICE, ALICE) FAILS(EPERM, setxattr("d", "user.key", "v", 1, 0));
    OK(chown("d", ALICE, ALICE));
    AS_USER(ALICE, ALICE) OK(setxattr("d", "user.key", "v", 1, 0));
}

CASE(trusted_xattr_is_for_root_alone)
{
    make_file("f", 0666);
    OK(setxattr("f", "trusted.key", "value", 5, 0));
    xattr_is("f", "trusted.key", "value");
    EQ(times_listed("f", "trusted.key"), 1);
    AS_USER(ALICE, ALICE)
    {
        FAILS(ENODATA, getxattr("f", "trusted.key", NULL, 0));
        FAILS(EPERM, setxattr("f", "trusted.key", "x", 1, 0));
        FAILS(EPERM, removexattr("f", "trusted.key"));
    }
    xattr_is("f", "trusted.key", "value");
}

CASE(trusted_xattr_is_not_listed_to_a_user)
{
    make_file("f", 0666);
    OK(setxattr("f", "trusted.key", "value", 5, 0));
    AS_USER(ALICE, ALICE) EQ(times_listed("f", "trusted.key"), 0);
}

CASE(security_xattr_is_kept_for_root_and_refused_to_a_user)
{
    make_file("f", 0666);
    OK(setxattr("f", "security.posix-case", "value", 5, 0));
    xattr_is("f", "security.posix-case", "value");
    AS_USER(ALICE, ALICE) FAILS(EPERM, setxattr("f", "security.posix-case", "x", 1, 0));
    OK(removexattr("f", "security.posix-case"));
}
