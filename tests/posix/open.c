/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* open(2): what each flag promises, and which errors it gives. */
#include "harness.h"

/* O_CREAT, O_EXCL */

CASE(created_file_is_empty_regular_and_has_one_link)
{
    OK(open("f", O_CREAT | O_WRONLY, 0644));
    struct stat st = lstat_of("f");

    CHECK(S_ISREG(st.st_mode));
    EQ(st.st_size, 0);
    EQ((intmax_t)st.st_nlink, 1);
    EQ(st.st_blocks, 0);
}

CASE(created_file_has_the_mode_asked_for)
{
    make_file("f", 0751);
    EQ(mode_of("f"), 0751);
}

CASE(created_file_mode_loses_the_umask_bits)
{
    umask(027);
    make_file("f", 0777);
    EQ(mode_of("f"), 0750);
}

CASE(created_file_may_be_mode_zero_and_its_descriptor_still_writes)
{
    int fd = OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0));

    EQ(mode_of("f"), 0);
    fd_writes(fd, 0, "kept");
    fd_reads(fd, 0, "kept");
}

CASE(created_read_only_file_still_writes_through_its_descriptor_as_user)
{
    AS_USER(ALICE, ALICE)
    {
        int fd = OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0444));
        fd_writes(fd, 0, "kept");
        fd_reads(fd, 0, "kept");
        FAILS(EACCES, open("f", O_WRONLY));
    }
}

CASE(created_mode_zero_file_takes_a_write_as_user)
{
    AS_USER(ALICE, ALICE)
    {
        int fd = OK(open("f", O_CREAT | O_EXCL | O_WRONLY, 0));
        fd_writes(fd, 0, "kept");
        OK(close(fd));
        EQ(size_of("f"), 4);
    }
}

CASE(created_file_keeps_suid_sgid_and_sticky_bits)
{
    make_file("f", 07755);
    EQ(mode_of("f"), 07755);
}

CASE(created_file_belongs_to_its_maker)
{
    AS_USER(ALICE, TEAM) make_file("f", 0644);
    EQ(stat_of("f").st_uid, ALICE);
    EQ(stat_of("f").st_gid, TEAM);
}

CASE(creat_of_an_existing_file_keeps_its_mode_and_inode)
{
    make_file("f", 0640);
    intmax_t inode = inode_of("f");

    OK(open("f", O_CREAT | O_RDWR, 0777));
    EQ(mode_of("f"), 0640);
    EQ(inode_of("f"), inode);
}

CASE(creat_call_empties_an_existing_file)
{
    write_file("f", "old text");
    OK(creat("f", 0600));
    EQ(size_of("f"), 0);
    EQ(mode_of("f"), 0644);
}

CASE(exclusive_create_refuses_a_file)
{
    write_file("f", "old");
    FAILS(EEXIST, open("f", O_CREAT | O_EXCL | O_WRONLY | O_TRUNC, 0644));
    file_reads("f", "old");
}

CASE(exclusive_create_refuses_a_directory)
{
    OK(mkdir("d", 0755));
    FAILS(EEXIST, open("d", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

CASE(exclusive_create_refuses_a_symlink_and_a_dangling_one)
{
    make_file("f", 0644);
    OK(symlink("f", "good"));
    OK(symlink("nowhere", "dangling"));
    FAILS(EEXIST, open("good", O_CREAT | O_EXCL | O_WRONLY, 0644));
    FAILS(EEXIST, open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0644));
    absent("nowhere");
}

CASE(create_through_a_dangling_symlink_makes_the_target)
{
    OK(symlink("target", "link"));
    int fd = OK(open("link", O_CREAT | O_WRONLY, 0644));

    fd_writes(fd, 0, "made");
    OK(close(fd));
    file_reads("target", "made");
    CHECK(S_ISLNK(lstat_of("link").st_mode));
}

CASE(exclusive_create_has_exactly_one_winner_among_processes)
{
    enum {
        RACERS = 4,
        ROUNDS = 25
    };
    int wins[2];
    char count = 0, token;

    OK(pipe2(wins, O_NONBLOCK));
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        pid_t racer[RACERS];

        snprintf(name, sizeof(name), "f%d", round);
        for (int i = 0; i < RACERS; i++) {
            racer[i] = child_fork();
            if (racer[i] == 0) {
                if (open(name, O_CREAT | O_EXCL | O_WRONLY, 0644) >= 0)
                    EQ(write(wins[1], "", 1), 1);
                else
                    EQ(errno, EEXIST);
                child_exit();
            }
        }
        for (int i = 0; i < RACERS; i++)
            child_join(racer[i]);
    }
    while (read(wins[0], &token, 1) == 1)
        count++;
    EQ(count, ROUNDS);
}

CASE(create_with_a_trailing_slash_is_eisdir)
{
    FAILS(EISDIR, open("f/", O_CREAT | O_WRONLY, 0644));
    absent("f");
}

CASE(create_in_a_removed_directory_is_enoent)
{
    OK(mkdir("d", 0755));
    int dir = OK(open("d", O_RDONLY | O_DIRECTORY));

    OK(rmdir("d"));
    FAILS(ENOENT, openat(dir, "f", O_CREAT | O_WRONLY, 0644));
}

/* Access modes */

CASE(open_of_a_missing_file_is_enoent)
{
    FAILS(ENOENT, open("f", O_RDONLY));
    FAILS(ENOENT, open("f", O_RDWR | O_TRUNC));
    FAILS(ENOENT, open("", O_RDONLY));
}

CASE(open_below_a_file_is_enotdir)
{
    make_file("f", 0644);
    FAILS(ENOTDIR, open("f/g", O_RDONLY));
    FAILS(ENOTDIR, open("f/", O_RDONLY));
}

CASE(write_through_a_read_only_descriptor_is_ebadf)
{
    make_file("f", 0644);
    int fd = OK(open("f", O_RDONLY));

    FAILS(EBADF, write(fd, "x", 1));
    FAILS(EBADF, pwrite(fd, "x", 1, 0));
    EQ(size_of("f"), 0);
}

CASE(read_through_a_write_only_descriptor_is_ebadf)
{
    char byte;
    int fd = OK(open("f", O_CREAT | O_WRONLY, 0644));

    fd_writes(fd, 0, "x");
    FAILS(EBADF, read(fd, &byte, 1));
    FAILS(EBADF, pread(fd, &byte, 1, 0));
}

CASE(access_mode_is_what_getfl_returns)
{
    make_file("f", 0644);
    EQ(OK(fcntl((int)OK(open("f", O_RDONLY)), F_GETFL)) & O_ACCMODE, O_RDONLY);
    EQ(OK(fcntl((int)OK(open("f", O_WRONLY)), F_GETFL)) & O_ACCMODE, O_WRONLY);
    EQ(OK(fcntl((int)OK(open("f", O_RDWR)), F_GETFL)) & O_ACCMODE, O_RDWR);
}

CASE(directory_opens_for_reading_only)
{
    OK(mkdir("d", 0755));
    OK(open("d", O_RDONLY));
    FAILS(EISDIR, open("d", O_WRONLY));
    FAILS(EISDIR, open("d", O_RDWR));
    FAILS(EISDIR, open("d", O_RDONLY | O_CREAT, 0644));
}

CASE(read_of_a_directory_descriptor_is_eisdir)
{
    char buf[64];
    int fd = OK(open(".", O_RDONLY));

    FAILS(EISDIR, read(fd, buf, sizeof(buf)));
    FAILS(EISDIR, pread(fd, buf, sizeof(buf), 0));
    FAILS(EBADF, write(fd, buf, sizeof(buf)));
}

/* O_TRUNC */

CASE(open_with_trunc_empties_the_file)
{
    write_file("f", "old text");
    int fd = OK(open("f", O_WRONLY | O_TRUNC));

    EQ(fstat_of(fd).st_size, 0);
    EQ(size_of("f"), 0);
}

CASE(open_with_trunc_is_seen_by_a_descriptor_already_open)
{
    int fd = open_file_with("f", "old text");

    OK(open("f", O_WRONLY | O_TRUNC));
    fd_reads(fd, 0, "");
    EQ(fstat_of(fd).st_size, 0);
}

CASE(open_with_trunc_updates_mtime_and_ctime)
{
    write_file("f", "old text");
    struct stat before = stat_of("f");

    nap();
    OK(open("f", O_WRONLY | O_TRUNC));
    CHECK(time_is_before(before.st_mtim, stat_of("f").st_mtim));
    CHECK(time_is_before(before.st_ctim, stat_of("f").st_ctim));
}

CASE(open_with_trunc_without_write_permission_leaves_the_file)
{
    write_file("f", "old text");
    OK(chmod("f", 0444));
    AS_USER(ALICE, ALICE) FAILS(EACCES, open("f", O_WRONLY | O_TRUNC));
    file_reads("f", "old text");
}

CASE(open_with_trunc_of_a_directory_is_eisdir)
{
    OK(mkdir("d", 0755));
    FAILS(EISDIR, open("d", O_WRONLY | O_TRUNC));
}

/* O_APPEND */

CASE(append_writes_go_to_the_end_wherever_the_offset_is)
{
    write_file("f", "one ");
    int fd = OK(open("f", O_RDWR | O_APPEND));

    OK(lseek(fd, 0, SEEK_SET));
    EQ(write(fd, "two", 3), 3);
    EQ(lseek(fd, 0, SEEK_CUR), 7);
    file_reads("f", "one two");
}

CASE(append_writes_follow_growth_by_another_descriptor)
{
    write_file("f", "");
    int append = OK(open("f", O_WRONLY | O_APPEND));
    int plain = OK(open("f", O_WRONLY));

    EQ(write(append, "ab", 2), 2);
    fd_writes(plain, 2, "cd");
    EQ(write(append, "ef", 2), 2);
    file_reads("f", "abcdef");
}

CASE(append_pwrite_appends_as_linux_does)
{
    write_file("f", "abc");
    int fd = OK(open("f", O_WRONLY | O_APPEND));

    EQ(pwrite(fd, "d", 1, 0), 1);
    file_reads("f", "abcd");
}

CASE(append_follows_a_truncate)
{
    write_file("f", "abcdef");
    int fd = OK(open("f", O_WRONLY | O_APPEND));

    OK(truncate("f", 2));
    EQ(write(fd, "X", 1), 1);
    file_reads("f", "abX");
}

CASE(append_may_be_switched_on_and_off_by_setfl)
{
    int fd = open_file_with("f", "abc");

    OK(fcntl(fd, F_SETFL, O_APPEND));
    EQ(pwrite(fd, "d", 1, 0), 1);
    OK(fcntl(fd, F_SETFL, 0));
    EQ(pwrite(fd, "A", 1, 0), 1);
    file_reads("f", "Abcd");
}

/* O_DIRECTORY, O_NOFOLLOW, O_PATH */

CASE(open_with_directory_flag_refuses_what_is_no_directory)
{
    make_file("f", 0644);
    OK(symlink("f", "link"));
    OK(mkfifo("fifo", 0644));
    FAILS(ENOTDIR, open("f", O_RDONLY | O_DIRECTORY));
    FAILS(ENOTDIR, open("link", O_RDONLY | O_DIRECTORY));
    FAILS(ENOTDIR, open("fifo", O_RDONLY | O_DIRECTORY));
    FAILS(ENOENT, open("missing", O_RDONLY | O_DIRECTORY));
}

CASE(open_with_directory_flag_takes_a_directory_and_a_link_to_it)
{
    OK(mkdir("d", 0755));
    OK(symlink("d", "link"));
    OK(open("d", O_RDONLY | O_DIRECTORY));
    int fd = OK(open("link", O_RDONLY | O_DIRECTORY));

    EQ((intmax_t)fstat_of(fd).st_ino, inode_of("d"));
}

CASE(open_with_nofollow_refuses_a_final_symlink)
{
    make_file("f", 0644);
    OK(symlink("f", "link"));
    FAILS(ELOOP, open("link", O_RDONLY | O_NOFOLLOW));
    FAILS(ELOOP, open("link", O_RDWR | O_CREAT | O_NOFOLLOW, 0644));
    OK(open("f", O_RDONLY | O_NOFOLLOW));
}

CASE(open_with_nofollow_follows_symlinks_on_the_way)
{
    OK(mkdir("d", 0755));
    write_file("d/f", "here");
    OK(symlink("d", "link"));
    fd_reads((int)OK(open("link/f", O_RDONLY | O_NOFOLLOW)), 0, "here");
}

CASE(path_descriptor_stats_but_neither_reads_nor_writes)
{
    char byte;

    write_file("f", "text");
    int fd = OK(open("f", O_PATH));

    EQ((intmax_t)fstat_of(fd).st_ino, inode_of("f"));
    FAILS(EBADF, read(fd, &byte, 1));
    FAILS(EBADF, write(fd, "x", 1));
    FAILS(EBADF, ftruncate(fd, 0));
    FAILS(EBADF, fchmod(fd, 0600));
}

CASE(path_descriptor_of_a_symlink_is_the_link_itself)
{
    char target[16];

    OK(symlink("nowhere", "link"));
    int fd = OK(open("link", O_PATH | O_NOFOLLOW));

    CHECK(S_ISLNK(fstat_of(fd).st_mode));
    EQ(readlinkat(fd, "", target, sizeof(target)), 7);
}

CASE(path_descriptor_of_a_directory_serves_the_at_calls)
{
    OK(mkdir("d", 0755));
    int dir = OK(open("d", O_PATH | O_DIRECTORY));

    OK(openat(dir, "f", O_CREAT | O_WRONLY, 0644));
    OK(mkdirat(dir, "sub", 0755));
    OK(renameat(dir, "f", dir, "g"));
    OK(unlinkat(dir, "sub", AT_REMOVEDIR));
    make_file("d/h", 0644);
    EQ((intmax_t)entries_of("d"), 2);
}

CASE(path_descriptor_needs_no_read_permission)
{
    make_file("f", 0);
    AS_USER(ALICE, ALICE)
    {
        OK(open("f", O_PATH));
        FAILS(EACCES, open("f", O_RDONLY));
    }
}

CASE(path_descriptor_reopens_the_file_through_proc_after_a_rename)
{
    char path[64];

    if (access("/proc/self/fd", F_OK) < 0)
        SKIP("no /proc");
    write_file("f", "moved");
    int fd = OK(open("f", O_PATH));
    OK(rename("f", "g"));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    file_reads(path, "moved");
}

/* O_TMPFILE: a file system may lack it, and says so with EOPNOTSUPP. */

static int tmpfile_or_refusal(int flags)
{
    int fd = open(".", O_TMPFILE | flags, 0640);

    if (fd < 0)
        EQ(errno, EOPNOTSUPP);
    return fd;
}

CASE(tmpfile_has_no_name_and_no_link_or_is_refused)
{
    int fd = tmpfile_or_refusal(O_RDWR);

    dir_is_empty(".");
    if (fd < 0)
        return;
    EQ((intmax_t)fstat_of(fd).st_nlink, 0);
    EQ(fstat_of(fd).st_mode & 07777, 0640);
    fd_writes(fd, 0, "text");
    fd_reads(fd, 0, "text");
}

CASE(tmpfile_gets_a_name_by_linkat_or_is_refused)
{
    char path[64];
    int fd = tmpfile_or_refusal(O_RDWR);

    if (fd < 0)
        return;
    fd_writes(fd, 0, "text");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    file_reads("named", "text");
    EQ(links_of("named"), 1);
}

CASE(exclusive_tmpfile_is_never_linked_or_is_refused)
{
    char path[64];
    int fd = tmpfile_or_refusal(O_RDWR | O_EXCL);

    if (fd < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    FAILS(ENOENT, linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    dir_is_empty(".");
}

CASE(tmpfile_read_only_is_einval)
{
    FAILS(EINVAL, open(".", O_TMPFILE | O_RDONLY, 0640));
}

/* O_SYNC, O_DSYNC, O_NONBLOCK, O_CLOEXEC, O_NOATIME */

CASE(sync_descriptor_writes_and_reads_back)
{
    int fd = OK(open("f", O_CREAT | O_RDWR | O_SYNC, 0644));

    EQ(OK(fcntl(fd, F_GETFL)) & O_SYNC, O_SYNC);
    fd_writes(fd, 0, "synced");
    file_reads("f", "synced");
}

CASE(dsync_descriptor_writes_and_reads_back)
{
    int fd = OK(open("f", O_CREAT | O_RDWR | O_DSYNC, 0644));

    EQ(OK(fcntl(fd, F_GETFL)) & O_SYNC, O_DSYNC);
    fd_writes(fd, 3, "synced");
    fd_has_zeros(fd, 0, 3);
    fd_reads(fd, 3, "synced");
}

CASE(sync_append_descriptor_appends)
{
    write_file("f", "a");
    int fd = OK(open("f", O_WRONLY | O_APPEND | O_SYNC));

    EQ(write(fd, "b", 1), 1);
    EQ(write(fd, "c", 1), 1);
    file_reads("f", "abc");
}

CASE(nonblocking_regular_file_reads_at_once)
{
    write_file("f", "text");
    fd_reads((int)OK(open("f", O_RDONLY | O_NONBLOCK)), 0, "text");
}

CASE(close_on_exec_flag_is_set_when_asked)
{
    make_file("f", 0644);
    EQ(OK(fcntl((int)OK(open("f", O_RDONLY | O_CLOEXEC)), F_GETFD)), FD_CLOEXEC);
    EQ(OK(fcntl((int)OK(open("f", O_RDONLY)), F_GETFD)), 0);
}

CASE(noatime_open_is_for_the_owner_only)
{
    make_file("f", 0666);
    OK(chown("f", ALICE, ALICE));
    AS_USER(ALICE, ALICE) OK(open("f", O_RDONLY | O_NOATIME));
    AS_USER(BOB, BOB) FAILS(EPERM, open("f", O_RDONLY | O_NOATIME));
}

/* Descriptors */

CASE(two_opens_have_two_offsets)
{
    char byte;

    write_file("f", "ab");
    int one = OK(open("f", O_RDONLY)), two = OK(open("f", O_RDONLY));

    EQ(read(one, &byte, 1), 1);
    EQ(read(two, &byte, 1), 1);
    EQ(byte, 'a');
}

CASE(dup_and_fork_share_the_offset)
{
    char byte;

    write_file("f", "abc");
    int fd = OK(open("f", O_RDONLY)), twin = OK(dup(fd));

    EQ(read(fd, &byte, 1), 1);
    IN_CHILD EQ(read(twin, &byte, 1), 1);
    EQ(read(fd, &byte, 1), 1);
    EQ(byte, 'c');
}

CASE(descriptor_follows_its_file_through_a_rename)
{
    int fd = open_file_with("f", "one");

    OK(rename("f", "g"));
    fd_writes(fd, 3, "two");
    file_reads("g", "onetwo");
}

CASE(descriptor_outlives_a_chmod_to_zero)
{
    struct gate opened = gate_new(), closed_off = gate_new();

    make_file("f", 0666);
    pid_t kid = child_fork();
    if (kid == 0) {
        become(ALICE, ALICE, NO_GROUP);
        int fd = OK(open("f", O_RDWR));
        gate_open(opened);
        gate_wait(closed_off);
        fd_writes(fd, 0, "again");
        fd_reads(fd, 0, "again");
        FAILS(EACCES, open("f", O_RDWR));
        child_exit();
    }
    gate_wait(opened);
    OK(chmod("f", 0));
    gate_open(closed_off);
    child_join(kid);
}

CASE(openat_with_an_absolute_path_ignores_the_descriptor)
{
    char path[PATH_MAX];

    write_file("f", "text");
    CHECK(getcwd(path, sizeof(path) - 3) != NULL);
    strcat(path, "/f");
    fd_reads((int)OK(openat(-1, path, O_RDONLY)), 0, "text");
}

CASE(openat_below_a_file_descriptor_is_enotdir)
{
    int fd = open_file_with("f", "");

    FAILS(ENOTDIR, openat(fd, "g", O_RDONLY));
    FAILS(EBADF, openat(999, "g", O_RDONLY));
}

CASE(many_descriptors_of_one_file_all_work)
{
    enum {
        MANY = 200
    };
    int fd[MANY];

    write_file("f", "");
    for (int i = 0; i < MANY; i++)
        fd[i] = (int)OK(open("f", O_RDWR | O_APPEND));
    for (int i = 0; i < MANY; i++)
        EQ(write(fd[i], "x", 1), 1);
    EQ(size_of("f"), MANY);
    for (int i = 0; i < MANY; i++)
        OK(close(fd[i]));
}

CASE(many_files_open_at_once_keep_their_content)
{
    enum {
        MANY = 300
    };
    int fd[MANY];
    char name[32];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        fd[i] = (int)OK(open(name, O_CREAT | O_RDWR, 0644));
        fd_writes(fd[i], 0, name);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        fd_reads(fd[i], 0, name);
    }
}

CASE(fifo_joins_a_reader_and_a_writer)
{
    char text[5] = "";

    OK(mkfifo("fifo", 0600));
    pid_t kid = child_fork();
    if (kid == 0) {
        int out = OK(open("fifo", O_WRONLY));
        EQ(write(out, "text", 4), 4);
        child_exit();
    }
    int in = OK(open("fifo", O_RDONLY));
    EQ(read(in, text, 4), 4);
    STR_EQ(text, "text");
    child_join(kid);
    EQ(size_of("fifo"), 0);
}

CASE(fifo_without_a_reader_refuses_a_nonblocking_writer)
{
    OK(mkfifo("fifo", 0600));
    FAILS(ENXIO, open("fifo", O_WRONLY | O_NONBLOCK));
    OK(open("fifo", O_RDONLY | O_NONBLOCK));
    OK(open("fifo", O_WRONLY | O_NONBLOCK));
}

CASE(socket_file_does_not_open)
{
    OK(mknod("s", S_IFSOCK | 0600, 0));
    FAILS(ENXIO, open("s", O_RDONLY));
}
