/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fcntl(2) locks of processes and of open file descriptions, lockf(3), flock(2).
 *
 * "Another" below is a fresh child with a descriptor of its own; what it locked goes with it. */
#include "harness.h"

#include <sys/file.h>
#include <sys/time.h>

static struct flock range(short type, off_t start, off_t bytes)
{
    return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = bytes };
}

static int lock(int fd, int command, short type, off_t start, off_t bytes)
{
    struct flock want = range(type, start, bytes);

    return fcntl(fd, command, &want);
}

static int lock_file(void)
{
    return open_file_with("f", "0123456789");
}

#define another_may(type, start, bytes)                                                            \
    IN_CHILD OK(lock((int)OK(open("f", O_RDWR)), F_SETLK, type, start, bytes))
#define another_may_not(type, start, bytes)                                                        \
    IN_CHILD FAILS_EITHER(EAGAIN, EACCES,                                                          \
                          lock((int)OK(open("f", O_RDWR)), F_SETLK, type, start, bytes))

/* A child that holds a lock until its parent says so. */
struct holder {
    pid_t pid;
    struct gate held, release;
};

static struct holder holder_start(int command, short type, off_t start, off_t bytes)
{
    struct holder holder = { .held = gate_new(), .release = gate_new() };

    holder.pid = child_fork();
    if (holder.pid == 0) {
        OK(lock((int)OK(open("f", O_RDWR)), command, type, start, bytes));
        gate_open(holder.held);
        gate_wait(holder.release);
        child_exit();
    }
    gate_wait(holder.held);
    return holder;
}

static void holder_end(struct holder holder)
{
    gate_open(holder.release);
    child_join(holder.pid);
}

/* A child that waits for a lock and says when it has it. */
static struct holder waiter_start(int command, short type, off_t start, off_t bytes)
{
    struct holder waiter = { .held = gate_new(), .release = gate_new() };

    waiter.pid = child_fork();
    if (waiter.pid == 0) {
        OK(lock((int)OK(open("f", O_RDWR)), command, type, start, bytes));
        gate_open(waiter.held);
        gate_wait(waiter.release);
        child_exit();
    }
    return waiter;
}

enum {
    STILL_WAITS_MS = 200, /* so long we watch that a waiter does not get its lock */
    WOKEN_MS = 10000,     /* so long it may take until it does */
};

#define still_waits(waiter) CHECK(!gate_is_open((waiter).held, STILL_WAITS_MS))
#define is_woken(waiter) CHECK(gate_is_open((waiter).held, WOKEN_MS))

/* Conflicts */

CASE(read_locks_are_shared)
{
    OK(lock(lock_file(), F_SETLK, F_RDLCK, 0, 10));
    another_may(F_RDLCK, 0, 10);
    another_may(F_RDLCK, 5, 100);
}

CASE(read_lock_excludes_a_writer)
{
    OK(lock(lock_file(), F_SETLK, F_RDLCK, 0, 10));
    another_may_not(F_WRLCK, 0, 10);
    another_may_not(F_WRLCK, 9, 1);
}

CASE(write_lock_excludes_readers_and_writers)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 0, 10));
    another_may_not(F_RDLCK, 0, 10);
    another_may_not(F_WRLCK, 0, 10);
}

CASE(locks_of_neighbouring_ranges_do_not_conflict)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 10, 10));
    another_may(F_WRLCK, 0, 10);
    another_may(F_WRLCK, 20, 10);
    another_may_not(F_WRLCK, 0, 11);
    another_may_not(F_WRLCK, 19, 1);
}

CASE(lock_of_length_zero_reaches_to_the_end_of_all_files)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 100, 0));
    another_may_not(F_WRLCK, 1LL << 40, 1);
    another_may_not(F_RDLCK, INT64_MAX - 1, 1);
    another_may(F_WRLCK, 0, 100);
}

CASE(lock_of_negative_length_covers_the_bytes_before)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 20, -10));
    another_may(F_WRLCK, 0, 10);
    another_may_not(F_WRLCK, 10, 1);
    another_may_not(F_WRLCK, 19, 1);
    another_may(F_WRLCK, 20, 1);
}

CASE(lock_from_the_end_of_the_file_counts_from_its_size)
{
    int fd = lock_file();
    struct flock tail = { .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -4, .l_len = 2 };

    OK(fcntl(fd, F_SETLK, &tail));
    another_may(F_WRLCK, 5, 1);
    another_may_not(F_WRLCK, 6, 1);
    another_may_not(F_WRLCK, 7, 1);
    another_may(F_WRLCK, 8, 1);
}

CASE(lock_from_the_current_offset_counts_from_it)
{
    int fd = lock_file();
    struct flock here = { .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 1, .l_len = 2 };

    OK(lseek(fd, 3, SEEK_SET));
    OK(fcntl(fd, F_SETLK, &here));
    another_may(F_WRLCK, 3, 1);
    another_may_not(F_WRLCK, 4, 2);
    another_may(F_WRLCK, 6, 1);
}

CASE(lock_beyond_the_end_of_the_file_works)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 1000000, 1));
    another_may_not(F_WRLCK, 1000000, 1);
    another_may(F_WRLCK, 999999, 1);
    EQ(size_of("f"), 10);
}

CASE(lock_beyond_4_gib_does_not_wrap)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, (1LL << 32) + 5, 1));
    another_may(F_WRLCK, 5, 1);
    another_may_not(F_WRLCK, (1LL << 32) + 5, 1);
    another_may(F_WRLCK, (1LL << 32) + 6, 1);
}

CASE(lock_of_the_last_possible_byte_works)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, INT64_MAX - 1, 1));
    another_may_not(F_WRLCK, INT64_MAX - 1, 1);
    another_may(F_WRLCK, INT64_MAX - 2, 1);
}

CASE(lock_of_a_range_that_cannot_be_is_refused)
{
    int fd = lock_file();

    FAILS(EINVAL, lock(fd, F_SETLK, F_WRLCK, -1, 1));
    FAILS(EINVAL, lock(fd, F_SETLK, F_WRLCK, 5, -6));
    FAILS_EITHER(EOVERFLOW, EINVAL, lock(fd, F_SETLK, F_WRLCK, INT64_MAX, 2));
    FAILS(EINVAL, lock(fd, F_SETLK, 99, 0, 1));
    another_may(F_WRLCK, 0, 0);
}

CASE(locks_of_two_files_are_independent)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 0, 0));
    write_file("g", "");
    IN_CHILD OK(lock((int)OK(open("g", O_RDWR)), F_SETLK, F_WRLCK, 0, 0));
}

CASE(write_lock_needs_a_descriptor_that_writes)
{
    lock_file();
    int fd = OK(open("f", O_RDONLY));
    FAILS(EBADF, lock(fd, F_SETLK, F_WRLCK, 0, 1));
    OK(lock(fd, F_SETLK, F_RDLCK, 0, 1));
}

CASE(read_lock_needs_a_descriptor_that_reads)
{
    lock_file();
    int fd = OK(open("f", O_WRONLY));
    FAILS(EBADF, lock(fd, F_SETLK, F_RDLCK, 0, 1));
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 1));
}

CASE(lock_stops_no_read_and_no_write)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 0, 0));
    IN_CHILD
    {
        int fd = OK(open("f", O_RDWR));
        fd_writes(fd, 0, "X");
        fd_reads(fd, 0, "X123456789");
    }
}

/* One owner's ranges */

CASE(own_lock_never_conflicts)
{
    int fd = lock_file(), other = OK(open("f", O_RDWR));

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    OK(lock(other, F_SETLK, F_WRLCK, 0, 10));
    OK(lock(other, F_SETLK, F_RDLCK, 3, 2));
}

CASE(unlock_in_the_middle_splits_the_lock)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 100));
    OK(lock(fd, F_SETLK, F_UNLCK, 40, 20));
    another_may(F_WRLCK, 40, 20);
    another_may_not(F_WRLCK, 39, 1);
    another_may_not(F_WRLCK, 60, 1);
    another_may_not(F_WRLCK, 0, 1);
    another_may_not(F_WRLCK, 99, 1);
}

CASE(unlock_at_either_end_shortens_the_lock)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 10, 30));
    OK(lock(fd, F_SETLK, F_UNLCK, 0, 20));
    OK(lock(fd, F_SETLK, F_UNLCK, 30, 100));
    another_may(F_WRLCK, 0, 20);
    another_may_not(F_WRLCK, 20, 1);
    another_may_not(F_WRLCK, 29, 1);
    another_may(F_WRLCK, 30, 100);
}

CASE(unlock_of_the_tail_leaves_a_bounded_lock)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    OK(lock(fd, F_SETLK, F_UNLCK, 50, 0));
    another_may_not(F_WRLCK, 49, 1);
    another_may(F_WRLCK, 50, 0);
}

CASE(unlock_across_several_locks_takes_all_in_it)
{
    int fd = lock_file();

    for (off_t at = 0; at < 100; at += 10)
        OK(lock(fd, F_SETLK, at % 20 ? F_RDLCK : F_WRLCK, at, 5));
    OK(lock(fd, F_SETLK, F_UNLCK, 2, 91));
    another_may(F_WRLCK, 2, 91);
    another_may_not(F_WRLCK, 1, 1);
    another_may_not(F_WRLCK, 93, 1);
}

CASE(unlock_of_what_is_not_locked_succeeds)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 5));
    OK(lock(fd, F_SETLK, F_UNLCK, 7, 5));
    another_may_not(F_WRLCK, 4, 1);
}

CASE(neighbouring_locks_of_one_owner_merge)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    OK(lock(fd, F_SETLK, F_WRLCK, 20, 10));
    OK(lock(fd, F_SETLK, F_WRLCK, 10, 10));
    IN_CHILD
    {
        struct flock found = range(F_WRLCK, 0, 0);
        OK(fcntl((int)OK(open("f", O_RDWR)), F_GETLK, &found));
        EQ(found.l_start, 0);
        EQ(found.l_len, 30);
    }
}

CASE(overlapping_locks_of_one_owner_merge)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_RDLCK, 0, 15));
    OK(lock(fd, F_SETLK, F_RDLCK, 10, 15));
    IN_CHILD
    {
        struct flock found = range(F_WRLCK, 0, 0);
        OK(fcntl((int)OK(open("f", O_RDWR)), F_GETLK, &found));
        EQ(found.l_start, 0);
        EQ(found.l_len, 25);
    }
}

CASE(write_lock_becomes_a_read_lock_that_others_share)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    another_may_not(F_RDLCK, 0, 10);
    OK(lock(fd, F_SETLK, F_RDLCK, 0, 10));
    another_may(F_RDLCK, 0, 10);
    another_may_not(F_WRLCK, 0, 10);
}

CASE(read_lock_becomes_a_write_lock_that_nobody_shares)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_RDLCK, 0, 10));
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    another_may_not(F_RDLCK, 0, 10);
}

CASE(part_of_a_read_lock_becomes_a_write_lock)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_RDLCK, 0, 30));
    OK(lock(fd, F_SETLK, F_WRLCK, 10, 10));
    another_may(F_RDLCK, 0, 10);
    another_may_not(F_RDLCK, 10, 10);
    another_may(F_RDLCK, 20, 10);
    another_may_not(F_WRLCK, 20, 10);
}

CASE(upgrade_against_another_reader_fails_and_keeps_the_read_lock)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_RDLCK, 0, 10));
    struct holder reader = holder_start(F_SETLK, F_RDLCK, 5, 1);
    FAILS_EITHER(EAGAIN, EACCES, lock(fd, F_SETLK, F_WRLCK, 0, 10));
    holder_end(reader);
    another_may_not(F_WRLCK, 0, 1);
    another_may(F_RDLCK, 0, 10);
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
}

CASE(five_hundred_separate_byte_locks_are_all_held)
{
    int fd = lock_file();

    for (off_t at = 0; at < 1000; at += 2)
        OK(lock(fd, F_SETLK, F_WRLCK, at, 1));
    IN_CHILD
    {
        int mine = OK(open("f", O_RDWR));
        for (off_t at = 0; at < 1000; at++)
            if (at % 2)
                OK(lock(mine, F_SETLK, F_WRLCK, at, 1));
            else
                FAILS_EITHER(EAGAIN, EACCES, lock(mine, F_SETLK, F_WRLCK, at, 1));
    }
}

/* F_GETLK */

CASE(getlk_of_a_free_range_says_unlocked_and_leaves_the_rest)
{
    int fd = lock_file();
    struct flock asked = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 3, .l_len = 4, .l_pid = 77
    };

    OK(fcntl(fd, F_GETLK, &asked));
    EQ(asked.l_type, F_UNLCK);
    EQ(asked.l_start, 3);
    EQ(asked.l_len, 4);
}

CASE(getlk_names_type_range_and_process_of_the_conflict)
{
    int fd = lock_file();
    struct holder holder = holder_start(F_SETLK, F_WRLCK, 10, 20);
    struct flock found = range(F_RDLCK, 0, 0);

    OK(fcntl(fd, F_GETLK, &found));
    EQ(found.l_type, F_WRLCK);
    EQ(found.l_whence, SEEK_SET);
    EQ(found.l_start, 10);
    EQ(found.l_len, 20);
    EQ(found.l_pid, holder.pid);
    holder_end(holder);
}

CASE(getlk_names_a_read_lock_only_to_a_writer)
{
    int fd = lock_file();
    struct holder holder = holder_start(F_SETLK, F_RDLCK, 10, 0);
    struct flock reading = range(F_RDLCK, 0, 0), writing = range(F_WRLCK, 0, 0);

    OK(fcntl(fd, F_GETLK, &reading));
    EQ(reading.l_type, F_UNLCK);
    OK(fcntl(fd, F_GETLK, &writing));
    EQ(writing.l_type, F_RDLCK);
    EQ(writing.l_start, 10);
    EQ(writing.l_len, 0);
    EQ(writing.l_pid, holder.pid);
    holder_end(holder);
}

CASE(getlk_does_not_find_own_locks)
{
    int fd = lock_file();
    struct flock asked = range(F_WRLCK, 0, 0);

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    OK(fcntl(fd, F_GETLK, &asked));
    EQ(asked.l_type, F_UNLCK);
}

CASE(getlk_takes_no_lock)
{
    int fd = lock_file();
    struct flock asked = range(F_WRLCK, 0, 0);

    OK(fcntl(fd, F_GETLK, &asked));
    another_may(F_WRLCK, 0, 0);
}

/* Release */

CASE(lock_goes_when_any_descriptor_of_the_file_is_closed)
{
    int fd = lock_file(), other = OK(open("f", O_RDONLY));

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    another_may_not(F_WRLCK, 0, 10);
    OK(close(other));
    another_may(F_WRLCK, 0, 10);
}

CASE(lock_goes_when_a_duplicate_is_closed)
{
    int fd = lock_file(), twin = OK(dup(fd));

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    OK(close(twin));
    another_may(F_WRLCK, 0, 10);
}

CASE(lock_goes_when_a_descriptor_of_another_link_is_closed)
{
    int fd = lock_file();

    OK(link("f", "g"));
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    OK(close((int)OK(open("g", O_RDONLY))));
    another_may(F_WRLCK, 0, 10);
}

CASE(lock_goes_with_its_process)
{
    lock_file();
    IN_CHILD OK(lock((int)OK(open("f", O_RDWR)), F_SETLK, F_WRLCK, 0, 0));
    another_may(F_WRLCK, 0, 0);
}

CASE(lock_goes_with_a_killed_process)
{
    lock_file();
    struct holder holder = holder_start(F_SETLK, F_WRLCK, 0, 0);
    another_may_not(F_WRLCK, 0, 0);
    OK(kill(holder.pid, SIGKILL));
    OK(waitpid(holder.pid, NULL, 0));
    another_may(F_WRLCK, 0, 0);
}

CASE(lock_is_not_inherited_by_fork)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    IN_CHILD FAILS_EITHER(EAGAIN, EACCES, lock(fd, F_SETLK, F_WRLCK, 0, 10));
}

CASE(close_in_a_forked_child_leaves_the_parents_lock)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    IN_CHILD OK(close(fd));
    another_may_not(F_WRLCK, 0, 10);
}

CASE(lock_stays_through_exec)
{
    int says[2], hears[2];
    char line[8];

    lock_file();
    OK(pipe(says));
    OK(pipe(hears));
    pid_t kid = child_fork();
    if (kid == 0) {
        OK(lock((int)OK(open("f", O_RDWR)), F_SETLK, F_WRLCK, 0, 0));
        OK(dup2(says[1], STDOUT_FILENO));
        OK(dup2(hears[0], STDIN_FILENO));
        execl("/bin/sh", "sh", "-c", "echo up; read x", NULL);
        FAIL("no /bin/sh");
    }
    EQ(read(says[0], line, sizeof(line)), 3);
    another_may_not(F_WRLCK, 0, 0);
    EQ(write(hears[1], "\n", 1), 1);
    child_join(kid);
    another_may(F_WRLCK, 0, 0);
}

CASE(lock_holds_through_every_name_and_after_a_rename)
{
    int fd = lock_file();

    OK(link("f", "g"));
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    IN_CHILD FAILS_EITHER(EAGAIN, EACCES, lock((int)OK(open("g", O_RDWR)), F_SETLK, F_WRLCK, 0, 0));
    OK(rename("f", "h"));
    IN_CHILD FAILS_EITHER(EAGAIN, EACCES, lock((int)OK(open("h", O_RDWR)), F_SETLK, F_WRLCK, 0, 0));
}

CASE(lock_of_an_unlinked_file_works)
{
    int fd = lock_file(), other = OK(open("f", O_RDWR));

    OK(unlink("f"));
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    IN_CHILD FAILS_EITHER(EAGAIN, EACCES, lock(other, F_SETLK, F_WRLCK, 0, 0));
}

CASE(lock_of_the_old_file_does_not_hold_the_new_one_of_that_name)
{
    OK(lock(lock_file(), F_SETLK, F_WRLCK, 0, 0));
    OK(unlink("f"));
    write_file("f", "new");
    another_may(F_WRLCK, 0, 0);
}

/* F_SETLKW */

CASE(waiter_gets_the_lock_when_it_is_unlocked)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    struct holder waiter = waiter_start(F_SETLKW, F_WRLCK, 0, 10);
    still_waits(waiter);
    OK(lock(fd, F_SETLK, F_UNLCK, 0, 10));
    is_woken(waiter);
    another_may_not(F_WRLCK, 0, 10);
    gate_wait(waiter.held);
    holder_end(waiter);
    another_may(F_WRLCK, 0, 10);
}

CASE(waiter_gets_the_lock_when_the_holder_closes)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    struct holder waiter = waiter_start(F_SETLKW, F_WRLCK, 0, 10);
    still_waits(waiter);
    OK(close(fd));
    is_woken(waiter);
    holder_end(waiter);
}

CASE(waiter_gets_the_lock_when_the_holder_is_killed)
{
    lock_file();
    struct holder holder = holder_start(F_SETLK, F_WRLCK, 0, 0);
    struct holder waiter = waiter_start(F_SETLKW, F_WRLCK, 5, 1);
    still_waits(waiter);
    OK(kill(holder.pid, SIGKILL));
    OK(waitpid(holder.pid, NULL, 0));
    is_woken(waiter);
    holder_end(waiter);
}

CASE(waiting_reader_gets_the_lock_when_the_writer_downgrades)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    struct holder waiter = waiter_start(F_SETLKW, F_RDLCK, 0, 10);
    still_waits(waiter);
    OK(lock(fd, F_SETLK, F_RDLCK, 0, 10));
    is_woken(waiter);
    holder_end(waiter);
}

CASE(waiter_gets_the_lock_when_just_its_range_is_freed)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 100));
    struct holder waiter = waiter_start(F_SETLKW, F_WRLCK, 50, 10);
    OK(lock(fd, F_SETLK, F_UNLCK, 0, 50));
    still_waits(waiter);
    OK(lock(fd, F_SETLK, F_UNLCK, 50, 10));
    is_woken(waiter);
    holder_end(waiter);
}

CASE(waiter_waits_for_every_holder_of_its_range)
{
    lock_file();
    struct holder one = holder_start(F_SETLK, F_RDLCK, 0, 10);
    struct holder two = holder_start(F_SETLK, F_RDLCK, 5, 10);
    struct holder waiter = waiter_start(F_SETLKW, F_WRLCK, 0, 20);
    still_waits(waiter);
    holder_end(one);
    still_waits(waiter);
    holder_end(two);
    is_woken(waiter);
    holder_end(waiter);
}

CASE(all_waiting_readers_get_the_lock_together)
{
    enum {
        READERS = 4
    };
    struct holder waiter[READERS];
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    for (int i = 0; i < READERS; i++)
        waiter[i] = waiter_start(F_SETLKW, F_RDLCK, 0, 0);
    still_waits(waiter[0]);
    OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    for (int i = 0; i < READERS; i++)
        is_woken(waiter[i]);
    for (int i = 0; i < READERS; i++)
        holder_end(waiter[i]);
}

CASE(waiting_writers_get_the_lock_one_after_the_other)
{
    enum {
        WRITERS = 4
    };
    pid_t kid[WRITERS];
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    for (int i = 0; i < WRITERS; i++) {
        kid[i] = child_fork();
        if (kid[i] == 0) {
            int mine = OK(open("f", O_RDWR));
            OK(lock(mine, F_SETLKW, F_WRLCK, 0, 0));
            OK(open("inside", O_CREAT | O_EXCL | O_WRONLY, 0644));
            nap();
            OK(unlink("inside"));
            child_exit();
        }
    }
    nap_ms(100);
    OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    for (int i = 0; i < WRITERS; i++)
        child_join(kid[i]);
}

CASE(lock_makes_read_and_write_of_a_counter_one_step)
{
    enum {
        WORKERS = 4,
        STEPS = 50
    };
    pid_t kid[WORKERS];
    char want[16];

    write_file("f", "00000");
    for (int i = 0; i < WORKERS; i++) {
        kid[i] = child_fork();
        if (kid[i] == 0) {
            int fd = OK(open("f", O_RDWR));
            for (int step = 0; step < STEPS; step++) {
                char text[16] = "";
                OK(lock(fd, F_SETLKW, F_WRLCK, 0, 0));
                EQ(pread(fd, text, 5, 0), 5);
                snprintf(text, sizeof(text), "%05d", atoi(text) + 1);
                fd_writes(fd, 0, text);
                OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
            }
            child_exit();
        }
    }
    for (int i = 0; i < WORKERS; i++)
        child_join(kid[i]);
    snprintf(want, sizeof(want), "%05d", WORKERS * STEPS);
    file_reads("f", want);
}

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

/* A timer that goes on firing, so that one signal that comes too early does no harm. */
static void alarm_every(int first_ms, int then_ms)
{
    struct sigaction action = { .sa_handler = do_nothing };
    struct itimerval timer = { .it_value = { first_ms / 1000, first_ms % 1000 * 1000 },
                               .it_interval = { then_ms / 1000, then_ms % 1000 * 1000 } };

    OK(sigaction(SIGALRM, &action, NULL));
    OK(setitimer(ITIMER_REAL, &timer, NULL));
}

CASE(waiter_interrupted_by_a_signal_gets_eintr_and_no_lock)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    struct holder kid = { .held = gate_new(), .release = gate_new() };
    kid.pid = child_fork();
    if (kid.pid == 0) {
        int mine = OK(open("f", O_RDWR));
        alarm_every(100, 100);
        FAILS(EINTR, lock(mine, F_SETLKW, F_WRLCK, 0, 10));
        OK(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL));
        gate_open(kid.held);
        gate_wait(kid.release);
        child_exit();
    }
    is_woken(kid);
    OK(lock(fd, F_SETLK, F_UNLCK, 0, 10));
    nap_ms(100);
    another_may(F_WRLCK, 0, 10);
    holder_end(kid);
}

CASE(killed_waiter_leaves_no_lock_behind)
{
    int fd = lock_file();

    OK(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    struct holder waiter = waiter_start(F_SETLKW, F_WRLCK, 0, 10);
    still_waits(waiter);
    OK(kill(waiter.pid, SIGKILL));
    OK(waitpid(waiter.pid, NULL, 0));
    OK(lock(fd, F_SETLK, F_UNLCK, 0, 10));
    nap_ms(100);
    another_may(F_WRLCK, 0, 10);
}

/* A cycle of two. The kernel sees it on a local file system, and one of the two is told EDEADLK.
 * A file system whose locks live elsewhere may not see it; then a signal must still free a waiter
 * with EINTR, and the other gets its lock. Both leave within the time limit. */
CASE(deadlock_of_two_is_told_or_can_be_interrupted)
{
    struct gate both[2] = { gate_new(), gate_new() }, refused = gate_new();
    pid_t kid[2];

    lock_file();
    for (int who = 0; who < 2; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            int fd = OK(open("f", O_RDWR));
            OK(lock(fd, F_SETLK, F_WRLCK, who, 1));
            gate_open(both[!who]);
            gate_wait(both[who]);
            alarm_every(who ? 3000 : 1500, 200);
            if (lock(fd, F_SETLKW, F_WRLCK, !who, 1) < 0) {
                CHECK(errno == EDEADLK || errno == EINTR);
                gate_open(refused);
            }
            child_exit();
        }
    }
    child_join(kid[0]);
    child_join(kid[1]);
    CHECK(gate_is_open(refused, 0));
    another_may(F_WRLCK, 0, 2);
}

CASE(two_upgrades_of_one_read_lock_do_not_both_succeed)
{
    struct gate both[2] = { gate_new(), gate_new() }, refused = gate_new();
    pid_t kid[2];

    lock_file();
    for (int who = 0; who < 2; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            int fd = OK(open("f", O_RDWR));
            OK(lock(fd, F_SETLK, F_RDLCK, 0, 1));
            gate_open(both[!who]);
            gate_wait(both[who]);
            alarm_every(who ? 3000 : 1500, 200);
            if (lock(fd, F_SETLKW, F_WRLCK, 0, 1) < 0) {
                CHECK(errno == EDEADLK || errno == EINTR);
                gate_open(refused);
            }
            child_exit();
        }
    }
    child_join(kid[0]);
    child_join(kid[1]);
    CHECK(gate_is_open(refused, 0));
}

/* lockf */

CASE(lockf_locks_tests_and_unlocks)
{
    int fd = lock_file();

    OK(lseek(fd, 2, SEEK_SET));
    OK(lockf(fd, F_TLOCK, 3));
    OK(lockf(fd, F_TEST, 3));
    another_may_not(F_WRLCK, 4, 1);
    another_may(F_WRLCK, 5, 1);
    IN_CHILD
    {
        int mine = OK(open("f", O_RDWR));
        FAILS_EITHER(EAGAIN, EACCES, lockf(mine, F_TEST, 10));
        FAILS_EITHER(EAGAIN, EACCES, lockf(mine, F_TLOCK, 10));
    }
    OK(lockf(fd, F_ULOCK, 3));
    another_may(F_WRLCK, 0, 10);
}

/* Locks of open file descriptions */

CASE(ofd_locks_of_two_descriptors_in_one_process_conflict)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_WRLCK, 5, 1));
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_RDLCK, 5, 1));
    OK(lock(two, F_OFD_SETLK, F_WRLCK, 10, 1));
}

CASE(ofd_read_locks_are_shared)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(lock(one, F_OFD_SETLK, F_RDLCK, 0, 10));
    OK(lock(two, F_OFD_SETLK, F_RDLCK, 0, 10));
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_WRLCK, 0, 10));
}

CASE(ofd_lock_stays_when_another_descriptor_is_closed)
{
    int one = lock_file(), two = OK(open("f", O_RDWR)), third = OK(open("f", O_RDWR));

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    OK(close(third));
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_WRLCK, 0, 10));
    another_may_not(F_WRLCK, 0, 10);
}

CASE(ofd_lock_goes_with_the_last_duplicate)
{
    int one = lock_file(), twin = OK(dup(one)), two = OK(open("f", O_RDWR));

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    OK(close(one));
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_WRLCK, 0, 10));
    OK(close(twin));
    OK(lock(two, F_OFD_SETLK, F_WRLCK, 0, 10));
}

CASE(ofd_lock_is_shared_with_a_duplicate)
{
    int one = lock_file(), twin = OK(dup(one));

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    OK(lock(twin, F_OFD_SETLK, F_RDLCK, 0, 10));
    OK(lock(twin, F_OFD_SETLK, F_UNLCK, 0, 10));
    another_may(F_WRLCK, 0, 10);
}

CASE(ofd_lock_is_inherited_by_fork)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    IN_CHILD
    {
        OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
        FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_WRLCK, 0, 10));
    }
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_WRLCK, 0, 10));
}

CASE(ofd_lock_conflicts_with_a_process_lock)
{
    int one = lock_file();

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    another_may_not(F_WRLCK, 0, 10);
    another_may_not(F_RDLCK, 0, 10);
    OK(lock(one, F_OFD_SETLK, F_UNLCK, 0, 10));
    struct holder holder = holder_start(F_SETLK, F_WRLCK, 0, 10);
    FAILS(EAGAIN, lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    holder_end(holder);
}

CASE(ofd_lock_and_process_lock_of_one_process_conflict)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 10));
    FAILS_EITHER(EAGAIN, EACCES, lock(two, F_SETLK, F_WRLCK, 0, 10));
}

/* Whose it is: -1 on a local file system; one that cannot tell may name the process. */
CASE(ofd_getlk_names_type_and_range_of_the_conflict)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));
    struct flock found = range(F_WRLCK, 0, 0);

    OK(lock(one, F_OFD_SETLK, F_RDLCK, 4, 3));
    OK(fcntl(two, F_OFD_GETLK, &found));
    EQ(found.l_type, F_RDLCK);
    EQ(found.l_start, 4);
    EQ(found.l_len, 3);
    CHECK(found.l_pid == -1 || found.l_pid == getpid());
}

CASE(ofd_getlk_finds_nothing_of_its_own)
{
    int one = lock_file();
    struct flock found = range(F_WRLCK, 0, 0);

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 4, 3));
    OK(fcntl(one, F_OFD_GETLK, &found));
    EQ(found.l_type, F_UNLCK);
}

CASE(ofd_lock_with_a_process_id_is_einval)
{
    int one = lock_file();
    struct flock want = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_pid = 5 };

    FAILS(EINVAL, fcntl(one, F_OFD_SETLK, &want));
}

CASE(ofd_waiter_gets_the_lock_when_it_is_unlocked)
{
    int fd = lock_file();

    OK(lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
    struct holder waiter = waiter_start(F_OFD_SETLKW, F_WRLCK, 0, 10);
    still_waits(waiter);
    OK(lock(fd, F_OFD_SETLK, F_UNLCK, 0, 10));
    is_woken(waiter);
    holder_end(waiter);
}

CASE(ofd_waiter_gets_the_lock_when_the_holder_is_killed)
{
    lock_file();
    struct holder holder = holder_start(F_OFD_SETLK, F_WRLCK, 0, 0);
    struct holder waiter = waiter_start(F_OFD_SETLKW, F_WRLCK, 0, 0);
    still_waits(waiter);
    OK(kill(holder.pid, SIGKILL));
    OK(waitpid(holder.pid, NULL, 0));
    is_woken(waiter);
    holder_end(waiter);
}

CASE(ofd_lock_splits_and_downgrades_by_range)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(lock(one, F_OFD_SETLK, F_WRLCK, 0, 30));
    OK(lock(one, F_OFD_SETLK, F_RDLCK, 10, 10));
    OK(lock(two, F_OFD_SETLK, F_RDLCK, 10, 10));
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_RDLCK, 9, 1));
    FAILS(EAGAIN, lock(two, F_OFD_SETLK, F_RDLCK, 20, 1));
}

/* flock */

CASE(exclusive_flock_excludes_all)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(flock(one, LOCK_EX));
    FAILS(EWOULDBLOCK, flock(two, LOCK_EX | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(two, LOCK_SH | LOCK_NB));
    OK(flock(one, LOCK_UN));
    OK(flock(two, LOCK_EX | LOCK_NB));
}

CASE(shared_flocks_are_shared_and_exclude_an_exclusive_one)
{
    int one = lock_file(), two = OK(open("f", O_RDWR)), third = OK(open("f", O_RDONLY));

    OK(flock(one, LOCK_SH));
    OK(flock(two, LOCK_SH | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(third, LOCK_EX | LOCK_NB));
}

CASE(flock_works_on_any_access_mode)
{
    lock_file();
    int reading = OK(open("f", O_RDONLY)), writing = OK(open("f", O_WRONLY));
    OK(flock(reading, LOCK_EX | LOCK_NB));
    OK(flock(reading, LOCK_UN));
    OK(flock(writing, LOCK_SH | LOCK_NB));
}

CASE(flock_converts_both_ways)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(flock(one, LOCK_EX));
    OK(flock(one, LOCK_SH));
    OK(flock(two, LOCK_SH | LOCK_NB));
    OK(flock(two, LOCK_UN));
    OK(flock(one, LOCK_EX | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(two, LOCK_SH | LOCK_NB));
}

CASE(flock_is_shared_by_duplicates_and_forked_children)
{
    int one = lock_file(), twin = OK(dup(one)), two = OK(open("f", O_RDWR));

    OK(flock(one, LOCK_EX));
    OK(flock(twin, LOCK_EX | LOCK_NB));
    IN_CHILD OK(flock(one, LOCK_EX | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(two, LOCK_EX | LOCK_NB));
    OK(flock(twin, LOCK_UN));
    OK(flock(two, LOCK_EX | LOCK_NB));
}

CASE(flock_goes_with_the_last_duplicate)
{
    int one = lock_file(), twin = OK(dup(one)), two = OK(open("f", O_RDWR));

    OK(flock(one, LOCK_EX));
    OK(close(one));
    FAILS(EWOULDBLOCK, flock(two, LOCK_EX | LOCK_NB));
    OK(close(twin));
    OK(flock(two, LOCK_EX | LOCK_NB));
}

CASE(flock_stays_when_another_descriptor_is_closed)
{
    int one = lock_file(), two = OK(open("f", O_RDWR)), third = OK(open("f", O_RDWR));

    OK(flock(one, LOCK_EX));
    OK(close(third));
    FAILS(EWOULDBLOCK, flock(two, LOCK_EX | LOCK_NB));
}

CASE(flock_excludes_another_process)
{
    OK(flock(lock_file(), LOCK_EX));
    IN_CHILD FAILS(EWOULDBLOCK, flock((int)OK(open("f", O_RDWR)), LOCK_SH | LOCK_NB));
}

CASE(flock_goes_with_a_killed_process)
{
    struct gate held = gate_new();
    int fd = lock_file();
    pid_t kid = child_fork();

    if (kid == 0) {
        OK(flock((int)OK(open("f", O_RDWR)), LOCK_EX));
        gate_open(held);
        pause();
    }
    gate_wait(held);
    FAILS(EWOULDBLOCK, flock(fd, LOCK_EX | LOCK_NB));
    OK(kill(kid, SIGKILL));
    OK(waitpid(kid, NULL, 0));
    OK(flock(fd, LOCK_EX | LOCK_NB));
}

CASE(flock_waiter_gets_the_lock_when_it_is_unlocked)
{
    struct gate got = gate_new();
    int fd = lock_file();

    OK(flock(fd, LOCK_EX));
    pid_t kid = child_fork();
    if (kid == 0) {
        OK(flock((int)OK(open("f", O_RDWR)), LOCK_EX));
        gate_open(got);
        child_exit();
    }
    CHECK(!gate_is_open(got, STILL_WAITS_MS));
    OK(flock(fd, LOCK_UN));
    CHECK(gate_is_open(got, WOKEN_MS));
    child_join(kid);
}

CASE(flock_waiter_interrupted_by_a_signal_gets_eintr)
{
    int fd = lock_file();

    OK(flock(fd, LOCK_EX));
    IN_CHILD
    {
        int mine = OK(open("f", O_RDWR));
        alarm_every(100, 100);
        FAILS(EINTR, flock(mine, LOCK_EX));
    }
    OK(flock(fd, LOCK_UN));
    IN_CHILD OK(flock((int)OK(open("f", O_RDWR)), LOCK_EX | LOCK_NB));
}

CASE(flock_and_fcntl_locks_do_not_see_each_other)
{
    int fd = lock_file();

    OK(flock(fd, LOCK_EX));
    another_may(F_WRLCK, 0, 0);
    OK(flock(fd, LOCK_UN));
    OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    IN_CHILD OK(flock((int)OK(open("f", O_RDWR)), LOCK_EX | LOCK_NB));
}

CASE(flock_of_a_directory_works)
{
    int one = OK(open(".", O_RDONLY)), two = OK(open(".", O_RDONLY));

    OK(flock(one, LOCK_EX));
    FAILS(EWOULDBLOCK, flock(two, LOCK_EX | LOCK_NB));
    OK(flock(one, LOCK_UN));
    OK(flock(two, LOCK_EX | LOCK_NB));
}

CASE(flock_of_an_unlinked_file_works)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(unlink("f"));
    OK(flock(one, LOCK_EX));
    FAILS(EWOULDBLOCK, flock(two, LOCK_SH | LOCK_NB));
}

CASE(flock_with_a_wrong_operation_is_einval)
{
    int fd = lock_file();

    FAILS(EINVAL, flock(fd, 0));
    FAILS(EINVAL, flock(fd, 64));
    FAILS(EBADF, flock(-1, LOCK_EX));
    OK(flock(fd, LOCK_UN));
}

CASE(flock_taken_twice_is_released_once)
{
    int one = lock_file(), two = OK(open("f", O_RDWR));

    OK(flock(one, LOCK_EX));
    OK(flock(one, LOCK_EX));
    OK(flock(one, LOCK_UN));
    OK(flock(two, LOCK_EX | LOCK_NB));
}
