/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several processes on one file, and direct I/O beside the page cache. */
#include "harness.h"

#include <sys/ioctl.h>

/* Close to open, and sooner */

CASE(what_one_process_closed_another_opens)
{
    for (int i = 0; i < 50; i++) {
        char text[32];
        snprintf(text, sizeof(text), "round %d", i);
        IN_CHILD write_file("f", text);
        file_reads("f", text);
    }
}

CASE(what_one_process_writes_another_reads_at_once)
{
    struct gate written = gate_new(), seen = gate_new();
    int fd = open_file_with("f", "--------");
    pid_t kid = child_fork();

    if (kid == 0) {
        int mine = OK(open("f", O_RDONLY));
        for (int i = 0; i < 50; i++) {
            char want[32];
            gate_wait(written);
            snprintf(want, sizeof(want), "round%03d", i);
            fd_reads(mine, 0, want);
            gate_open(seen);
        }
        child_exit();
    }
    for (int i = 0; i < 50; i++) {
        char text[32];
        snprintf(text, sizeof(text), "round%03d", i);
        fd_writes(fd, 0, text);
        gate_open(written);
        gate_wait(seen);
    }
    child_join(kid);
}

CASE(file_grows_before_the_eyes_of_its_reader)
{
    struct gate written = gate_new(), seen = gate_new();
    int fd = open_file_with("f", "");
    pid_t kid = child_fork();

    if (kid == 0) {
        int mine = OK(open("f", O_RDONLY));
        for (int i = 0; i < 50; i++) {
            char byte;
            gate_wait(written);
            EQ(read(mine, &byte, 1), 1);
            EQ(byte, 'a' + i % 26);
            EQ(read(mine, &byte, 1), 0);
            gate_open(seen);
        }
        child_exit();
    }
    for (int i = 0; i < 50; i++) {
        char byte = (char)('a' + i % 26);
        EQ(write(fd, &byte, 1), 1);
        gate_open(written);
        gate_wait(seen);
    }
    child_join(kid);
}

CASE(new_mode_size_and_owner_are_seen_by_another_process_at_once)
{
    struct gate changed = gate_new(), seen = gate_new();

    make_file("f", 0600);
    pid_t kid = child_fork();
    if (kid == 0) {
        for (int i = 0; i < 20; i++) {
            stat_of("f");
            gate_open(seen);
            gate_wait(changed);
            EQ(mode_of("f"), 0600 + i);
            EQ(size_of("f"), i * 100);
            EQ(stat_of("f").st_uid, 5000 + i);
        }
        child_exit();
    }
    for (int i = 0; i < 20; i++) {
        gate_wait(seen);
        OK(chmod("f", (mode_t)(0600 + i)));
        OK(truncate("f", i * 100));
        OK(chown("f", (uid_t)(5000 + i), 0));
        gate_open(changed);
    }
    child_join(kid);
}

CASE(name_made_by_one_process_ends_anothers_enoent_at_once)
{
    struct gate made = gate_new(), seen = gate_new();
    pid_t kid = child_fork();

    if (kid == 0) {
        for (int i = 0; i < 20; i++) {
            char name[32];
            snprintf(name, sizeof(name), "f%d", i);
            absent(name);
            gate_open(seen);
            gate_wait(made);
            stat_of(name);
        }
        child_exit();
    }
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "f%d", i);
        gate_wait(seen);
        make_file(name, 0644);
        gate_open(made);
    }
    child_join(kid);
}

/* Appending together */

static void append_together(int writers, int records, size_t bytes, int flags)
{
    pid_t kid[8];

    make_file("f", 0644);
    for (int who = 0; who < writers; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            int fd = OK(open("f", O_WRONLY | O_APPEND | flags));
            char *record = name_of(bytes, (char)('a' + who));
            for (int i = 0; i < records; i++)
                EQ(write(fd, record, bytes), (intmax_t)bytes);
            child_exit();
        }
    }
    for (int who = 0; who < writers; who++)
        child_join(kid[who]);
}

/* Each record is whole, and each writer has all of its own. */
static void records_are_whole(int writers, int records, size_t bytes)
{
    int fd = OK(open("f", O_RDONLY)), count[8] = { 0 };
    char *record = malloc(bytes);

    CHECK(record != NULL);
    EQ(fstat_of(fd).st_size, (intmax_t)bytes * writers * records);
    for (int i = 0; i < writers * records; i++) {
        EQ(pread(fd, record, bytes, (off_t)bytes * i), (intmax_t)bytes);
        CHECK(record[0] >= 'a' && record[0] < 'a' + writers);
        for (size_t at = 1; at < bytes; at++)
            if (record[at] != record[0])
                FAIL("record %d is torn at byte %zu", i, at);
        count[record[0] - 'a']++;
    }
    for (int who = 0; who < writers; who++)
        EQ(count[who], records);
}

CASE(small_appends_of_four_processes_are_neither_torn_nor_lost)
{
    append_together(4, 250, 37, 0);
    records_are_whole(4, 250, 37);
}

CASE(page_sized_appends_of_four_processes_are_neither_torn_nor_lost)
{
    append_together(4, 60, 4096, 0);
    records_are_whole(4, 60, 4096);
}

CASE(large_appends_of_three_processes_are_neither_torn_nor_lost)
{
    append_together(3, 20, 100001, 0);
    records_are_whole(3, 20, 100001);
}

CASE(synced_appends_of_two_processes_are_neither_torn_nor_lost)
{
    append_together(2, 20, 1000, O_DSYNC);
    records_are_whole(2, 20, 1000);
}

CASE(appends_through_one_shared_description_are_neither_torn_nor_lost)
{
    pid_t kid[4];
    int fd = OK(open("f", O_CREAT | O_WRONLY | O_APPEND, 0644));

    for (int who = 0; who < 4; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            char *record = name_of(50, (char)('a' + who));
            for (int i = 0; i < 100; i++)
                EQ(write(fd, record, 50), 50);
            child_exit();
        }
    }
    for (int who = 0; who < 4; who++)
        child_join(kid[who]);
    records_are_whole(4, 100, 50);
}

CASE(writers_of_separate_ranges_do_not_disturb_each_other)
{
    enum {
        WRITERS = 4,
        BYTES = 1000
    };
    pid_t kid[WRITERS];

    make_file("f", 0644);
    for (int who = 0; who < WRITERS; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            int fd = OK(open("f", O_WRONLY));
            for (int i = 0; i < 100; i++)
                fd_fill(fd, (off_t)(i * WRITERS + who) * BYTES, BYTES, 'a' + who);
            child_exit();
        }
    }
    for (int who = 0; who < WRITERS; who++)
        child_join(kid[who]);
    int fd = OK(open("f", O_RDONLY));
    for (int i = 0; i < 100 * WRITERS; i++)
        fd_has_bytes(fd, (off_t)i * BYTES, BYTES, 'a' + i % WRITERS);
}

CASE(files_made_together_in_one_directory_are_all_there)
{
    enum {
        MAKERS = 4,
        EACH = 100
    };
    pid_t kid[MAKERS];

    for (int who = 0; who < MAKERS; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            for (int i = 0; i < EACH; i++) {
                char name[64];
                snprintf(name, sizeof(name), "f%d-%d", who, i);
                write_file(name, name);
            }
            child_exit();
        }
    }
    for (int who = 0; who < MAKERS; who++)
        child_join(kid[who]);
    EQ((intmax_t)entries_of("."), MAKERS * EACH);
    for (int i = 0; i < EACH; i++) {
        char name[64];
        snprintf(name, sizeof(name), "f%d-%d", i % MAKERS, i);
        file_reads(name, name);
    }
}

CASE(one_name_made_and_removed_by_many_ends_in_order)
{
    enum {
        WORKERS = 4,
        ROUNDS = 100
    };
    pid_t kid[WORKERS];

    for (int who = 0; who < WORKERS; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            for (int i = 0; i < ROUNDS; i++) {
                int fd = open("f", O_CREAT | O_RDWR, 0644);
                if (fd >= 0) {
                    fd_writes(fd, 0, "text");
                    fd_reads(fd, 0, "text");
                    OK(close(fd));
                } else {
                    EQ(errno, ENOENT);
                }
                if (unlink("f") < 0)
                    EQ(errno, ENOENT);
            }
            child_exit();
        }
    }
    for (int who = 0; who < WORKERS; who++)
        child_join(kid[who]);
    absent("f");
    dir_is_empty(".");
}

CASE(link_counts_are_right_after_many_link_together)
{
    enum {
        WORKERS = 4,
        EACH = 25
    };
    pid_t kid[WORKERS];

    make_file("f", 0644);
    for (int who = 0; who < WORKERS; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            for (int i = 0; i < EACH; i++) {
                char name[64];
                snprintf(name, sizeof(name), "l%d-%d", who, i);
                OK(link("f", name));
                if (i % 2)
                    OK(unlink(name));
            }
            child_exit();
        }
    }
    for (int who = 0; who < WORKERS; who++)
        child_join(kid[who]);
    EQ(links_of("f"), 1 + WORKERS * (EACH + 1) / 2);
}

/* O_DIRECT */

enum {
    DIRECT_ALIGNMENT = 4096,
};

static char *direct_buffer(size_t bytes, int value)
{
    void *buffer = aligned_alloc(DIRECT_ALIGNMENT, bytes);

    CHECK(buffer != NULL);
    memset(buffer, value, bytes);
    return buffer;
}

static int direct_open(const char *path)
{
    int fd = open(path, O_CREAT | O_RDWR | O_DIRECT, 0644);

    if (fd < 0 && errno == EINVAL)
        SKIP("no O_DIRECT on this file system");
    return (int)OK(fd);
}

static void direct_round_trip(size_t bytes)
{
    int fd = direct_open("f");
    char *out = direct_buffer(bytes, 'd'), *in = direct_buffer(bytes, 0);

    out[0] = 'F';
    out[bytes - 1] = 'L';
    EQ(pwrite(fd, out, bytes, 0), (intmax_t)bytes);
    EQ(size_of("f"), (intmax_t)bytes);
    EQ(pread(fd, in, bytes, 0), (intmax_t)bytes);
    EQ(memcmp(in, out, bytes), 0);
    int buffered = OK(open("f", O_RDONLY));
    fd_has_bytes(buffered, 1, bytes - 2, 'd');
}

CASE(direct_write_of_4_kib_reads_back)
{
    direct_round_trip(4 << 10);
}
CASE(direct_write_of_64_kib_reads_back)
{
    direct_round_trip(64 << 10);
}
CASE(direct_write_of_132_kib_reads_back)
{
    direct_round_trip(132 << 10);
}
CASE(direct_write_of_1_mib_reads_back)
{
    direct_round_trip(1 << 20);
}
CASE(direct_write_of_8_mib_reads_back)
{
    direct_round_trip(8 << 20);
}

CASE(direct_read_sees_a_buffered_write)
{
    int fd = direct_open("f"), buffered = OK(open("f", O_RDWR));
    char *in = direct_buffer(DIRECT_ALIGNMENT, 0);

    fd_fill(buffered, 0, DIRECT_ALIGNMENT, 'b');
    EQ(pread(fd, in, DIRECT_ALIGNMENT, 0), DIRECT_ALIGNMENT);
    EQ(in[0], 'b');
    EQ(in[DIRECT_ALIGNMENT - 1], 'b');
}

CASE(buffered_read_sees_a_direct_write)
{
    int fd = direct_open("f"), buffered = OK(open("f", O_RDWR));

    fd_fill(buffered, 0, DIRECT_ALIGNMENT, 'b');
    fd_has_bytes(buffered, 0, DIRECT_ALIGNMENT, 'b');
    EQ(pwrite(fd, direct_buffer(DIRECT_ALIGNMENT, 'd'), DIRECT_ALIGNMENT, 0), DIRECT_ALIGNMENT);
    fd_has_bytes(buffered, 0, DIRECT_ALIGNMENT, 'd');
}

CASE(direct_read_at_the_end_is_short)
{
    write_file("f", "short text");
    int fd = direct_open("f");
    char *in = direct_buffer(DIRECT_ALIGNMENT, 0);

    EQ(pread(fd, in, DIRECT_ALIGNMENT, 0), 10);
    EQ(memcmp(in, "short text", 10), 0);
    EQ(pread(fd, in, DIRECT_ALIGNMENT, DIRECT_ALIGNMENT), 0);
}

CASE(direct_write_beyond_the_end_leaves_a_hole)
{
    int fd = direct_open("f");

    EQ(pwrite(fd, direct_buffer(DIRECT_ALIGNMENT, 'd'), DIRECT_ALIGNMENT, 1 << 20),
       DIRECT_ALIGNMENT);
    EQ(size_of("f"), (1 << 20) + DIRECT_ALIGNMENT);
    int buffered = OK(open("f", O_RDONLY));
    fd_has_zeros(buffered, 0, 1 << 20);
    fd_has_bytes(buffered, 1 << 20, DIRECT_ALIGNMENT, 'd');
}

CASE(direct_append_appends)
{
    int fd = direct_open("f");

    OK(fcntl(fd, F_SETFL, O_DIRECT | O_APPEND));
    for (int i = 0; i < 4; i++)
        EQ(write(fd, direct_buffer(DIRECT_ALIGNMENT, 'a' + i), DIRECT_ALIGNMENT), DIRECT_ALIGNMENT);
    for (int i = 0; i < 4; i++)
        fd_has_bytes((int)OK(open("f", O_RDONLY)), (off_t)i * DIRECT_ALIGNMENT, DIRECT_ALIGNMENT,
                     'a' + i);
}

CASE(direct_writers_of_separate_blocks_do_not_disturb_each_other)
{
    enum {
        WRITERS = 3,
        BLOCKS = 50
    };
    pid_t kid[WRITERS];

    OK(close(direct_open("f")));
    for (int who = 0; who < WRITERS; who++) {
        kid[who] = child_fork();
        if (kid[who] == 0) {
            int fd = direct_open("f");
            char *out = direct_buffer(DIRECT_ALIGNMENT, 'a' + who);
            for (int i = 0; i < BLOCKS; i++)
                EQ(pwrite(fd, out, DIRECT_ALIGNMENT, (off_t)(i * WRITERS + who) * DIRECT_ALIGNMENT),
                   DIRECT_ALIGNMENT);
            child_exit();
        }
    }
    for (int who = 0; who < WRITERS; who++)
        child_join(kid[who]);
    int fd = OK(open("f", O_RDONLY));
    for (int i = 0; i < BLOCKS * WRITERS; i++)
        fd_has_bytes(fd, (off_t)i * DIRECT_ALIGNMENT, DIRECT_ALIGNMENT, 'a' + i % WRITERS);
}

CASE(direct_flag_comes_and_goes_with_setfl)
{
    int fd = direct_open("f");

    OK(fcntl(fd, F_SETFL, 0));
    fd_writes(fd, 0, "odd bytes");
    OK(fcntl(fd, F_SETFL, O_DIRECT));
    char *in = direct_buffer(DIRECT_ALIGNMENT, 0);
    EQ(pread(fd, in, DIRECT_ALIGNMENT, 0), 9);
    EQ(memcmp(in, "odd bytes", 9), 0);
}

/* The same call on the file system under test and on the control directory, which must agree on
 * whether it is refused. That is how local programs know what to expect of O_DIRECT. */

struct direct_call {
    bool writes;
    size_t bytes, memory_offset;
    off_t file_offset;
};

/* Memory that is not aligned never shows to a file system behind FUSE: it may serve what the
 * control refuses for that reason alone, if it serves it whole. */
static bool memory_alone_is_odd(const struct direct_call *call)
{
    return call->memory_offset && call->bytes % DIRECT_ALIGNMENT == 0 &&
           call->file_offset % DIRECT_ALIGNMENT == 0;
}

static int errno_of_direct(const char *path, const struct direct_call *call)
{
    int fd = direct_open(path);
    char *buffer = direct_buffer(4 * DIRECT_ALIGNMENT, 'd');
    ssize_t ret;

    OK(fcntl(fd, F_SETFL, 0));
    fd_fill(fd, 0, 64 << 10, 'x');
    OK(fcntl(fd, F_SETFL, O_DIRECT));
    if (call->writes)
        ret = pwrite(fd, buffer + call->memory_offset, call->bytes, call->file_offset);
    else
        ret = pread(fd, buffer + call->memory_offset, call->bytes, call->file_offset);
    if (ret < 0)
        return errno;
    EQ(ret, (intmax_t)call->bytes);
    return 0;
}

static void direct_agrees_with_control(struct direct_call call)
{
    char *control;

    if (!control_dir)
        SKIP("no --control DIR");
    OK(asprintf(&control, "%s/f", control_dir));
    int got = errno_of_direct("f", &call), want = errno_of_direct(control, &call);
    CHECK(got == want || (got == 0 && want == EINVAL && memory_alone_is_odd(&call)));
}

#define DIRECT_CASE(title, ...)                                                                    \
    CASE(title)                                                                                    \
    {                                                                                              \
        direct_agrees_with_control((struct direct_call){ __VA_ARGS__ });                           \
    }

DIRECT_CASE(direct_write_of_4096_bytes_is_as_on_control, .writes = true, .bytes = 4096)
DIRECT_CASE(direct_write_of_512_bytes_is_as_on_control, .writes = true, .bytes = 512)
DIRECT_CASE(direct_write_of_1024_bytes_at_512_is_as_on_control, .writes = true, .bytes = 1024,
            .file_offset = 512)
DIRECT_CASE(direct_write_of_100_bytes_is_as_on_control, .writes = true, .bytes = 100)
DIRECT_CASE(direct_write_at_offset_100_is_as_on_control, .writes = true, .bytes = 4096,
            .file_offset = 100)
DIRECT_CASE(direct_write_from_odd_memory_works_or_is_as_on_control, .writes = true, .bytes = 4096,
            .memory_offset = 1)
DIRECT_CASE(direct_write_from_memory_at_512_works_or_is_as_on_control, .writes = true,
            .bytes = 4096, .memory_offset = 512)
DIRECT_CASE(direct_read_of_4096_bytes_is_as_on_control, .bytes = 4096)
DIRECT_CASE(direct_read_of_512_bytes_is_as_on_control, .bytes = 512)
DIRECT_CASE(direct_read_of_1024_bytes_at_512_is_as_on_control, .bytes = 1024, .file_offset = 512)
DIRECT_CASE(direct_read_of_100_bytes_is_as_on_control, .bytes = 100)
DIRECT_CASE(direct_read_at_offset_100_is_as_on_control, .bytes = 4096, .file_offset = 100)
DIRECT_CASE(direct_read_into_odd_memory_works_or_is_as_on_control, .bytes = 4096,
            .memory_offset = 1)
DIRECT_CASE(direct_read_into_memory_at_512_works_or_is_as_on_control, .bytes = 4096,
            .memory_offset = 512)

/* ioctl */

CASE(fionread_tells_the_bytes_ahead)
{
    int bytes = -1, fd = open_file_with("f", "0123456789");

    OK(lseek(fd, 4, SEEK_SET));
    OK(ioctl(fd, FIONREAD, &bytes));
    EQ(bytes, 6);
}

CASE(unknown_ioctl_is_enotty)
{
    int value = 0, fd = open_file_with("f", "");

    FAILS(ENOTTY, ioctl(fd, 0x5401, &value));
    FAILS(ENOTTY, ioctl(fd, 0x7a7a, &value));
}
