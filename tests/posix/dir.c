/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mkdir(2), rmdir(2), the working directory, and readdir(3) while the directory changes. */
#include "harness.h"

#include <sys/syscall.h>

/* mkdir */

CASE(new_directory_has_two_links_and_only_the_dots)
{
    OK(mkdir("d", 0755));
    CHECK(S_ISDIR(lstat_of("d").st_mode));
    EQ(links_of("d"), 2);
    dir_is_empty("d");
}

CASE(new_directory_has_the_mode_asked_for_less_the_umask)
{
    OK(mkdir("d", 0751));
    EQ(mode_of("d"), 0751);
    umask(022);
    OK(mkdir("e", 0777));
    EQ(mode_of("e"), 0755);
}

CASE(new_directory_may_be_sticky_and_mode_zero)
{
    OK(mkdir("d", 01777));
    EQ(mode_of("d"), 01777);
    OK(mkdir("e", 0));
    EQ(mode_of("e"), 0);
}

CASE(new_directory_belongs_to_its_maker)
{
    AS_USER(ALICE, TEAM) OK(mkdir("d", 0755));
    EQ(stat_of("d").st_uid, ALICE);
    EQ(stat_of("d").st_gid, TEAM);
}

CASE(new_directory_adds_a_link_to_its_parent)
{
    OK(mkdir("p", 0755));
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "p/d%d", i);
        OK(mkdir(name, 0755));
        EQ(links_of("p"), i + 3);
    }
}

CASE(new_directory_updates_the_parents_times)
{
    OK(mkdir("p", 0755));
    struct stat before = stat_of("p");

    nap();
    OK(mkdir("p/d", 0755));
    CHECK(time_is_before(before.st_mtim, stat_of("p").st_mtim));
    CHECK(time_is_before(before.st_ctim, stat_of("p").st_ctim));
}

CASE(mkdir_refuses_an_existing_name_of_any_kind)
{
    make_file("f", 0644);
    OK(mkdir("d", 0755));
    OK(symlink("nowhere", "s"));
    FAILS(EEXIST, mkdir("f", 0755));
    FAILS(EEXIST, mkdir("d", 0755));
    FAILS(EEXIST, mkdir("s", 0755));
    FAILS(EEXIST, mkdir(".", 0755));
    FAILS(EEXIST, mkdir("d/..", 0755));
    absent("nowhere");
}

CASE(mkdir_in_a_missing_directory_is_enoent)
{
    FAILS(ENOENT, mkdir("no/d", 0755));
    FAILS(ENOENT, mkdir("", 0755));
    FAILS(ENOENT, mkdir("d/.", 0755));
}

CASE(mkdir_takes_a_trailing_slash)
{
    OK(mkdir("d/", 0755));
    CHECK(S_ISDIR(lstat_of("d").st_mode));
}

CASE(mkdir_in_a_removed_directory_is_enoent)
{
    OK(mkdir("d", 0755));
    OK(chdir("d"));
    OK(rmdir("../d"));
    FAILS(ENOENT, mkdir("e", 0755));
}

CASE(mkdir_race_has_one_winner)
{
    for (int round = 0; round < 30; round++) {
        struct gate won = gate_new();
        pid_t kid[2];
        char name[32];

        snprintf(name, sizeof(name), "d%d", round);
        for (int who = 0; who < 2; who++) {
            kid[who] = child_fork();
            if (kid[who] == 0) {
                if (mkdir(name, 0755) == 0)
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

CASE(a_hundred_levels_of_directories_are_made_entered_and_removed)
{
    enum {
        DEEP = 100
    };

    for (int i = 0; i < DEEP; i++) {
        OK(mkdir("d", 0755));
        OK(chdir("d"));
    }
    write_file("f", "deep");
    file_reads("f", "deep");
    OK(unlink("f"));
    for (int i = 0; i < DEEP; i++) {
        OK(chdir(".."));
        OK(rmdir("d"));
    }
    dir_is_empty(".");
}

/* rmdir */

CASE(rmdir_removes_an_empty_directory)
{
    OK(mkdir("d", 0755));
    OK(rmdir("d"));
    absent("d");
    FAILS(ENOENT, rmdir("d"));
}

CASE(rmdir_takes_a_link_from_the_parent_and_updates_its_times)
{
    OK(mkdir("p", 0755));
    OK(mkdir("p/d", 0755));
    struct stat before = stat_of("p");

    nap();
    OK(rmdir("p/d"));
    EQ(links_of("p"), 2);
    CHECK(time_is_before(before.st_mtim, stat_of("p").st_mtim));
    CHECK(time_is_before(before.st_ctim, stat_of("p").st_ctim));
}

CASE(rmdir_of_a_full_directory_is_enotempty)
{
    OK(mkdir("d", 0755));
    make_file("d/f", 0644);
    FAILS_EITHER(ENOTEMPTY, EEXIST, rmdir("d"));
    stat_of("d/f");
    OK(unlink("d/f"));
    OK(rmdir("d"));
}

CASE(rmdir_of_a_directory_with_only_a_directory_or_a_symlink_is_enotempty)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/e", 0755));
    FAILS_EITHER(ENOTEMPTY, EEXIST, rmdir("d"));
    OK(rmdir("d/e"));
    OK(symlink("nowhere", "d/s"));
    FAILS_EITHER(ENOTEMPTY, EEXIST, rmdir("d"));
}

CASE(rmdir_of_what_is_no_directory_is_enotdir)
{
    make_file("f", 0644);
    OK(mkdir("d", 0755));
    OK(symlink("d", "s"));
    OK(mkfifo("p", 0644));
    FAILS(ENOTDIR, rmdir("f"));
    FAILS(ENOTDIR, rmdir("s"));
    FAILS(ENOTDIR, rmdir("p"));
    FAILS(ENOTDIR, rmdir("f/d"));
}

CASE(rmdir_of_dot_is_einval_and_of_dotdot_enotempty)
{
    OK(mkdir("d", 0755));
    FAILS(EINVAL, rmdir("d/."));
    FAILS(ENOTEMPTY, rmdir("d/.."));
    CHECK(S_ISDIR(lstat_of("d").st_mode));
}

CASE(removed_directory_that_is_open_stats_with_no_links_and_lists_nothing)
{
    OK(mkdir("d", 0755));
    int fd = OK(open("d", O_RDONLY | O_DIRECTORY));

    OK(rmdir("d"));
    EQ((intmax_t)fstat_of(fd).st_nlink, 0);
    DIR *dir = fdopendir(fd);
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));)
        CHECK(entry->d_name[0] == '.');
}

CASE(removed_working_directory_takes_no_new_file)
{
    OK(mkdir("d", 0755));
    OK(chdir("d"));
    OK(rmdir("../d"));
    FAILS(ENOENT, open("f", O_CREAT | O_WRONLY, 0644));
    FAILS(ENOENT, symlink("t", "s"));
    FAILS(ENOENT, link("/proc/self/exe", "l"));
}

CASE(removed_directory_name_can_be_made_anew)
{
    for (int i = 0; i < 50; i++) {
        OK(mkdir("d", 0755));
        make_file("d/f", 0644);
        OK(unlink("d/f"));
        OK(rmdir("d"));
    }
    make_file("d", 0644);
    CHECK(S_ISREG(lstat_of("d").st_mode));
}

/* Names of a directory */

CASE(dot_and_dotdot_are_listed_once_each)
{
    int dots = 0, dotdots = 0;

    OK(mkdir("d", 0755));
    make_file("d/f", 0644);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        dots += strcmp(entry->d_name, ".") == 0;
        dotdots += strcmp(entry->d_name, "..") == 0;
    }
    EQ(dots, 1);
    EQ(dotdots, 1);
}

CASE(dot_is_the_directory_and_dotdot_its_parent)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/e", 0755));
    EQ(inode_of("d/."), inode_of("d"));
    EQ(inode_of("d/e/.."), inode_of("d"));
    EQ(inode_of("d/e/../e/."), inode_of("d/e"));
}

CASE(listed_inode_numbers_are_those_of_stat)
{
    char name[32];

    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        make_file(name, 0644);
    }
    OK(mkdir("d", 0755));
    DIR *dir = opendir(".");
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, "..") != 0)
            EQ((intmax_t)entry->d_ino, inode_of(entry->d_name));
}

/* A file system may answer DT_UNKNOWN; a wrong type is never right. */
static void type_is(const char *name, int want)
{
    int type = type_listed(".", name);

    CHECK(type == want || type == DT_UNKNOWN);
}

CASE(regular_file_is_listed_as_such)
{
    make_file("f", 0644);
    type_is("f", DT_REG);
}
CASE(directory_is_listed_as_such)
{
    OK(mkdir("d", 0755));
    type_is("d", DT_DIR);
}
CASE(symlink_is_listed_as_such)
{
    OK(symlink("t", "s"));
    type_is("s", DT_LNK);
}
CASE(fifo_is_listed_as_such)
{
    OK(mkfifo("p", 0644));
    type_is("p", DT_FIFO);
}
CASE(socket_is_listed_as_such)
{
    OK(mknod("s", S_IFSOCK | 0644, 0));
    type_is("s", DT_SOCK);
}
CASE(character_device_is_listed_as_such)
{
    OK(mknod("c", S_IFCHR, 0x103));
    type_is("c", DT_CHR);
}
CASE(block_device_is_listed_as_such)
{
    OK(mknod("b", S_IFBLK, 0x700));
    type_is("b", DT_BLK);
}
CASE(dot_is_listed_as_a_directory)
{
    type_is(".", DT_DIR);
    type_is("..", DT_DIR);
}

CASE(replaced_name_is_listed_with_its_new_type)
{
    make_file("x", 0644);
    type_is("x", DT_REG);
    OK(unlink("x"));
    OK(mkdir("x", 0755));
    type_is("x", DT_DIR);
}

/* A directory with many entries: "e<number>" each. */
static void make_entries(const char *dir, size_t count)
{
    int at = OK(open(dir, O_RDONLY | O_DIRECTORY));
    char name[32];

    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "e%zu", i);
        OK(close((int)OK(openat(at, name, O_CREAT | O_EXCL | O_WRONLY, 0644))));
    }
    OK(close(at));
}

/* How often each of the entries comes up from here to the end. The caller frees it. */
static unsigned char *count_entries(DIR *dir, size_t count)
{
    unsigned char *seen = calloc(count, 1);

    CHECK(seen != NULL);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t number;
        if (sscanf(entry->d_name, "e%zu", &number) == 1 && number < count)
            seen[number]++;
    }
    EQ(errno, 0);
    return seen;
}

static void each_seen_once(const unsigned char *seen, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (seen[i] != 1)
            FAIL("entry e%zu of %zu was listed %d times", i, count, seen[i]);
}

CASE_WITHIN(900, every_entry_of_a_large_directory_is_listed_once)
{
    size_t count = large_dir_entries();

    OK(mkdir("d", 0755));
    make_entries("d", count);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    each_seen_once(count_entries(dir, count), count);
    OK(closedir(dir));
    EQ((intmax_t)entries_of("d"), (intmax_t)count);
}

CASE_WITHIN(900, entries_of_a_large_directory_are_found_by_name)
{
    size_t count = large_dir_entries();
    char name[32];

    OK(mkdir("d", 0755));
    make_entries("d", count);
    for (size_t i = 0; i < count; i += count / 500 + 1) {
        snprintf(name, sizeof(name), "d/e%zu", i);
        CHECK(S_ISREG(lstat_of(name).st_mode));
    }
    snprintf(name, sizeof(name), "d/e%zu", count);
    absent(name);
}

CASE_WITHIN(900, large_directory_empties_while_it_is_read)
{
    size_t count = large_dir_entries() / 5, removed = 0;

    OK(mkdir("d", 0755));
    make_entries("d", count);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] == 'e') {
            OK(unlinkat(dirfd(dir), entry->d_name, 0));
            removed++;
        }
    EQ((intmax_t)removed, (intmax_t)count);
    OK(rmdir("d"));
}

CASE(stable_entries_are_listed_once_while_others_are_made)
{
    enum {
        STABLE = 1000
    };
    char name[32];

    OK(mkdir("d", 0755));
    make_entries("d", STABLE);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    unsigned char seen[STABLE] = { 0 };
    int made = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t number;
        if (sscanf(entry->d_name, "e%zu", &number) == 1 && number < STABLE)
            seen[number]++;
        if (made < 500) {
            snprintf(name, sizeof(name), "d/new%d", made++);
            make_file(name, 0644);
        }
    }
    each_seen_once(seen, STABLE);
}

CASE(stable_entries_are_listed_once_while_others_are_removed)
{
    enum {
        ALL = 1000
    };
    unsigned char seen[ALL] = { 0 };
    int next = 1;

    OK(mkdir("d", 0755));
    make_entries("d", ALL);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char name[32];
        size_t number;
        if (sscanf(entry->d_name, "e%zu", &number) == 1 && number < ALL)
            seen[number]++;
        if (next < ALL) {
            snprintf(name, sizeof(name), "e%d", next);
            OK(unlinkat(dirfd(dir), name, 0));
            next += 2;
        }
    }
    for (size_t i = 0; i < ALL; i += 2)
        if (seen[i] != 1)
            FAIL("entry e%zu was listed %d times", i, seen[i]);
    for (size_t i = 1; i < ALL; i += 2)
        CHECK(seen[i] <= 1);
}

CASE(stable_entries_are_listed_once_while_another_process_makes_and_removes)
{
    enum {
        STABLE = 400,
        ROUNDS = 20
    };
    struct gate stop = gate_new();

    OK(mkdir("d", 0755));
    make_entries("d", STABLE);
    pid_t kid = child_fork();
    if (kid == 0) {
        for (int i = 0; !gate_is_open(stop, 0); i++) {
            char name[32];
            snprintf(name, sizeof(name), "d/x%d", i % 300);
            if (i / 300 % 2 == 0)
                make_file(name, 0644);
            else
                OK(unlink(name));
        }
        child_exit();
    }
    for (int round = 0; round < ROUNDS; round++) {
        DIR *dir = opendir("d");
        CHECK(dir != NULL);
        each_seen_once(count_entries(dir, STABLE), STABLE);
        OK(closedir(dir));
    }
    gate_open(stop);
    child_join(kid);
}

CASE(stable_entries_are_listed_once_while_names_are_renamed)
{
    enum {
        STABLE = 400,
        ROUNDS = 20
    };
    struct gate stop = gate_new();

    OK(mkdir("d", 0755));
    make_entries("d", STABLE);
    make_file("d/a", 0644);
    pid_t kid = child_fork();
    if (kid == 0) {
        while (!gate_is_open(stop, 0)) {
            OK(rename("d/a", "d/b"));
            OK(rename("d/b", "d/a"));
        }
        child_exit();
    }
    for (int round = 0; round < ROUNDS; round++) {
        DIR *dir = opendir("d");
        CHECK(dir != NULL);
        each_seen_once(count_entries(dir, STABLE), STABLE);
        OK(closedir(dir));
    }
    gate_open(stop);
    child_join(kid);
}

CASE(two_streams_of_one_directory_do_not_disturb_each_other)
{
    enum {
        COUNT = 300
    };

    OK(mkdir("d", 0755));
    make_entries("d", COUNT);
    DIR *one = opendir("d"), *two = opendir("d");
    CHECK(one && two);
    for (int i = 0; i < 100; i++)
        CHECK(readdir(one) != NULL);
    each_seen_once(count_entries(two, COUNT), COUNT);
    unsigned char *rest = count_entries(one, COUNT);
    int left = 0;
    for (int i = 0; i < COUNT; i++)
        left += rest[i];
    CHECK(left >= COUNT - 100 && left <= COUNT - 98);
}

CASE(rewound_stream_lists_all_again_and_what_is_new)
{
    enum {
        COUNT = 200
    };

    OK(mkdir("d", 0755));
    make_entries("d", COUNT - 1);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    each_seen_once(count_entries(dir, COUNT - 1), COUNT - 1);
    make_file("d/e199", 0644);
    rewinddir(dir);
    each_seen_once(count_entries(dir, COUNT), COUNT);
}

CASE(rewound_stream_does_not_list_what_is_gone)
{
    OK(mkdir("d", 0755));
    make_entries("d", 3);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    each_seen_once(count_entries(dir, 3), 3);
    OK(unlink("d/e1"));
    rewinddir(dir);
    unsigned char *seen = count_entries(dir, 3);
    EQ(seen[0], 1);
    EQ(seen[1], 0);
    EQ(seen[2], 1);
}

CASE(seekdir_goes_back_to_every_told_place)
{
    enum {
        COUNT = 500
    };
    long place[COUNT];
    char name[COUNT][32];
    int told = 0;

    OK(mkdir("d", 0755));
    make_entries("d", COUNT);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    for (struct dirent *entry;; told++) {
        long here = telldir(dir);
        if (!(entry = readdir(dir)) || told == COUNT)
            break;
        place[told] = here;
        strcpy(name[told], entry->d_name);
    }
    for (int i = told - 1; i >= 0; i -= 7) {
        seekdir(dir, place[i]);
        struct dirent *entry = readdir(dir);
        CHECK(entry != NULL);
        STR_EQ(entry->d_name, name[i]);
    }
}

CASE(seekdir_from_the_middle_lists_exactly_the_rest)
{
    enum {
        COUNT = 400
    };
    unsigned char before[COUNT] = { 0 };
    size_t number;

    OK(mkdir("d", 0755));
    make_entries("d", COUNT);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    for (int i = 0; i < 150; i++) {
        struct dirent *entry = readdir(dir);
        CHECK(entry != NULL);
        if (sscanf(entry->d_name, "e%zu", &number) == 1)
            before[number]++;
    }
    long middle = telldir(dir);
    count_entries(dir, COUNT);
    seekdir(dir, middle);
    unsigned char *after = count_entries(dir, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        before[i] = (unsigned char)(before[i] + after[i]);
    each_seen_once(before, COUNT);
}

CASE(told_place_survives_the_removal_of_other_entries)
{
    enum {
        COUNT = 300
    };
    unsigned char seen[COUNT] = { 0 };
    size_t number;

    OK(mkdir("d", 0755));
    make_entries("d", COUNT);
    DIR *dir = opendir("d");
    CHECK(dir != NULL);
    for (int i = 0; i < 100; i++) {
        struct dirent *entry = readdir(dir);
        CHECK(entry != NULL);
        if (sscanf(entry->d_name, "e%zu", &number) == 1)
            seen[number]++;
    }
    long middle = telldir(dir);
    for (size_t i = 0; i < COUNT; i++)
        if (seen[i]) {
            char name[32];
            snprintf(name, sizeof(name), "e%zu", i);
            OK(unlinkat(dirfd(dir), name, 0));
        }
    seekdir(dir, middle);
    unsigned char *rest = count_entries(dir, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        EQ(seen[i] + rest[i], 1);
}

CASE(getdents_with_a_tiny_buffer_is_einval)
{
    char buf[8];
    int fd = OK(open(".", O_RDONLY | O_DIRECTORY));

    FAILS(EINVAL, syscall(SYS_getdents64, fd, buf, sizeof(buf)));
}

CASE(getdents_with_a_small_buffer_lists_all_the_same)
{
    enum {
        COUNT = 100
    };
    _Alignas(8) char buf[sizeof(struct dirent64)];
    int seen = 0, fd;
    long bytes;

    OK(mkdir("d", 0755));
    make_entries("d", COUNT);
    fd = OK(open("d", O_RDONLY | O_DIRECTORY));
    while ((bytes = OK(syscall(SYS_getdents64, fd, buf, sizeof(buf)))) > 0)
        for (long at = 0; at < bytes;) {
            struct dirent64 *entry = (struct dirent64 *)(buf + at);
            seen += entry->d_name[0] == 'e';
            at += entry->d_reclen;
        }
    EQ(seen, COUNT);
}

CASE(getdents_of_a_file_is_enotdir)
{
    char buf[256];

    make_file("f", 0644);
    FAILS(ENOTDIR, syscall(SYS_getdents64, (int)OK(open("f", O_RDONLY)), buf, sizeof(buf)));
    CHECK(opendir("f") == NULL && errno == ENOTDIR);
    CHECK(opendir("missing") == NULL && errno == ENOENT);
}

CASE(new_entry_is_listed_by_another_process_at_once)
{
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "f%d", i);
        make_file(name, 0644);
        IN_CHILD EQ((intmax_t)entries_of("."), i + 1);
    }
}

CASE(names_differ_by_case_and_by_every_byte)
{
    char name[2] = "";

    OK(mkdir("d", 0755));
    OK(chdir("d"));
    for (int byte = 1; byte < 256; byte++) {
        name[0] = (char)byte;
        if (byte != '.' && byte != '/')
            make_file(name, 0644);
    }
    EQ((intmax_t)entries_of("."), 253);
    CHECK(inode_of("a") != inode_of("A"));
    OK(unlink("\xff"));
    EQ((intmax_t)entries_of("."), 252);
}

/* chdir and the working directory */

CASE(chdir_and_fchdir_lead_to_the_same_place)
{
    OK(mkdir("d", 0755));
    make_file("d/f", 0644);
    int here = OK(open(".", O_RDONLY | O_DIRECTORY));
    int there = OK(open("d", O_RDONLY | O_DIRECTORY));

    OK(chdir("d"));
    stat_of("f");
    OK(fchdir(here));
    absent("f");
    OK(fchdir(there));
    stat_of("f");
}

CASE(chdir_to_a_file_is_enotdir)
{
    make_file("f", 0644);
    FAILS(ENOTDIR, chdir("f"));
    FAILS(ENOENT, chdir("missing"));
    FAILS(ENOTDIR, fchdir((int)OK(open("f", O_RDONLY))));
}

CASE(getcwd_names_the_directory_after_a_rename)
{
    char path[PATH_MAX];

    OK(mkdir("d", 0755));
    OK(chdir("d"));
    OK(rename("../d", "../moved"));
    CHECK(getcwd(path, sizeof(path)) != NULL);
    STR_EQ(strrchr(path, '/'), "/moved");
}

CASE(getcwd_of_a_removed_directory_is_enoent)
{
    char path[PATH_MAX];

    OK(mkdir("d", 0755));
    OK(chdir("d"));
    OK(rmdir("../d"));
    CHECK(getcwd(path, sizeof(path)) == NULL && errno == ENOENT);
}
