/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is written is read: read, write, truncate, holes, fallocate, SEEK_DATA, copy_file_range,
 * and the calls that sync. */
#include "harness.h"

#include <linux/falloc.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

enum {
    KIB = 1024,
    MIB = 1 << 20,
};
static const off_t GIB = 1LL << 30;

/* read and write */

CASE(written_bytes_are_read_back_by_another_descriptor)
{
    write_file("f", "text");
    file_reads("f", "text");
    EQ(size_of("f"), 4);
}

CASE(read_at_the_end_returns_nothing)
{
    char buf[16];
    int fd = open_file_with("f", "text");

    EQ(pread(fd, buf, sizeof(buf), 4), 0);
    EQ(pread(fd, buf, sizeof(buf), 1000), 0);
    EQ(pread(fd, buf, sizeof(buf), 1LL << 40), 0);
    EQ(pread(fd, buf, sizeof(buf), 2), 2);
}

CASE(read_and_write_of_no_bytes_return_zero)
{
    char byte;
    int fd = open_file_with("f", "text");

    EQ(read(fd, &byte, 0), 0);
    EQ(write(fd, &byte, 0), 0);
    EQ(pwrite(fd, &byte, 0, 100), 0);
    EQ(size_of("f"), 4);
}

CASE(offset_moves_with_read_and_write_and_not_with_pread_and_pwrite)
{
    char buf[4];
    int fd = open_file_with("f", "0123456789");

    EQ(lseek(fd, 0, SEEK_CUR), 0);
    EQ(read(fd, buf, 3), 3);
    EQ(write(fd, "xy", 2), 2);
    EQ(lseek(fd, 0, SEEK_CUR), 5);
    EQ(pread(fd, buf, 2, 0), 2);
    EQ(pwrite(fd, "z", 1, 9), 1);
    EQ(lseek(fd, 0, SEEK_CUR), 5);
    fd_reads(fd, 0, "012xy5678z");
}

CASE(write_past_the_end_leaves_a_hole_of_zeros)
{
    int fd = open_file_with("f", "ab");

    fd_writes(fd, 10000, "cd");
    EQ(size_of("f"), 10002);
    fd_has_zeros(fd, 2, 9998);
    fd_reads(fd, 10000, "cd");
}

CASE(seek_past_the_end_then_write_leaves_a_hole)
{
    int fd = open_file_with("f", "");

    EQ(lseek(fd, 5000, SEEK_SET), 5000);
    EQ(size_of("f"), 0);
    EQ(write(fd, "x", 1), 1);
    EQ(size_of("f"), 5001);
    fd_has_zeros(fd, 0, 5000);
}

CASE(seek_before_the_start_is_einval_and_keeps_the_offset)
{
    int fd = open_file_with("f", "0123456789");

    EQ(lseek(fd, 4, SEEK_SET), 4);
    FAILS(EINVAL, lseek(fd, -1, SEEK_SET));
    FAILS(EINVAL, lseek(fd, -5, SEEK_CUR));
    FAILS(EINVAL, lseek(fd, -11, SEEK_END));
    FAILS(EINVAL, lseek(fd, 0, 99));
    EQ(lseek(fd, 0, SEEK_CUR), 4);
}

CASE(seek_from_the_end_sees_growth_by_another_process)
{
    int fd = open_file_with("f", "1234");

    EQ(lseek(fd, 0, SEEK_END), 4);
    IN_CHILD fd_writes((int)OK(open("f", O_WRONLY)), 4, "5678");
    EQ(lseek(fd, 0, SEEK_END), 8);
    EQ(lseek(fd, -2, SEEK_END), 6);
}

CASE(pread_and_pwrite_at_a_negative_offset_are_einval)
{
    char byte = 0;
    int fd = open_file_with("f", "text");

    FAILS(EINVAL, pread(fd, &byte, 1, -1));
    FAILS(EINVAL, pwrite(fd, &byte, 1, -1));
}

CASE(read_into_and_write_from_bad_memory_are_efault)
{
    int fd = open_file_with("f", "text");
    void *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(bad != MAP_FAILED);
    FAILS(EFAULT, read(fd, bad, 4));
    FAILS(EFAULT, pwrite(fd, bad, 4, 0));
    file_reads("f", "text");
}

CASE(vector_write_and_read_keep_the_order)
{
    char a[3] = "", b[5] = "", c[4] = "";
    int fd = open_file_with("f", "");
    struct iovec out[] = { { "ab", 2 }, { "", 0 }, { "cdef", 4 }, { "ghi", 3 } };
    struct iovec in[] = { { a, 2 }, { b, 4 }, { c, 3 } };

    EQ(writev(fd, out, 4), 9);
    EQ(preadv(fd, in, 3, 0), 9);
    STR_EQ(a, "ab");
    STR_EQ(b, "cdef");
    STR_EQ(c, "ghi");
    EQ(pwritev(fd, out, 4, 20), 9);
    fd_reads(fd, 20, "abcdefghi");
}

/* A file of that size, each 8 bytes of which hold their own number, is read back in odd pieces. */
static void numbered_file(size_t bytes, size_t piece)
{
    uint64_t *data = malloc(bytes), *got = malloc(bytes);
    int fd = open_file_with("f", "");

    CHECK(data && got);
    for (size_t i = 0; i < bytes / 8; i++)
        data[i] = i * 0x9e3779b97f4a7c15;
    for (size_t at = 0; at < bytes; at += piece) {
        size_t some = bytes - at < piece ? bytes - at : piece;
        EQ(pwrite(fd, (char *)data + at, some, (off_t)at), (intmax_t)some);
    }
    EQ(pread(fd, got, bytes, 0), (intmax_t)bytes);
    EQ(memcmp(got, data, bytes), 0);
    OK(close(fd));
    EQ(size_of("f"), (intmax_t)bytes);
    fd = OK(open("f", O_RDONLY));
    for (size_t at = 0; at < bytes; at += 4097) {
        size_t some = bytes - at < 4097 ? bytes - at : 4097;
        EQ(pread(fd, got, some, (off_t)at), (intmax_t)some);
        EQ(memcmp(got, (char *)data + at, some), 0);
    }
}

CASE(file_written_in_pieces_of_7_bytes_reads_back)
{
    numbered_file(64 * KIB, 7);
}
CASE(file_written_in_pieces_of_4096_bytes_reads_back)
{
    numbered_file(4 * MIB, 4096);
}
CASE(file_written_in_pieces_of_64k_plus_1_reads_back)
{
    numbered_file(8 * MIB, 64 * KIB + 1);
}
CASE(file_written_in_pieces_of_1_mib_reads_back)
{
    numbered_file(16 * MIB, MIB);
}
CASE(file_written_in_one_piece_of_8_mib_reads_back)
{
    numbered_file(8 * MIB, 8 * MIB);
}

CASE(file_written_backwards_reads_back)
{
    enum {
        BLOCKS = 200,
        BYTES = 1000
    };
    int fd = open_file_with("f", "");

    for (int i = BLOCKS - 1; i >= 0; i--)
        fd_fill(fd, (off_t)i * BYTES, BYTES, i & 0xff);
    EQ(size_of("f"), BLOCKS * BYTES);
    for (int i = 0; i < BLOCKS; i++)
        fd_has_bytes(fd, (off_t)i * BYTES, BYTES, i & 0xff);
}

CASE(random_overwrites_read_back_as_in_memory)
{
    enum {
        BYTES = 256 * KIB,
        WRITES = 1000
    };
    static unsigned char model[BYTES], got[BYTES];
    unsigned seed = (unsigned)getpid();
    int fd = open_file_with("f", "");

    OK(ftruncate(fd, BYTES));
    for (int i = 0; i < WRITES; i++) {
        size_t at = (size_t)rand_r(&seed) % BYTES, bytes = (size_t)rand_r(&seed) % 3000 + 1;
        if (bytes > BYTES - at)
            bytes = BYTES - at;
        memset(model + at, i, bytes);
        EQ(pwrite(fd, model + at, bytes, (off_t)at), (intmax_t)bytes);
    }
    EQ(pread(fd, got, BYTES, 0), BYTES);
    if (memcmp(got, model, BYTES) != 0)
        FAIL("content differs (seed %d)", (int)getpid());
}

CASE(size_grows_with_every_write_and_is_seen_at_once)
{
    int fd = open_file_with("f", "");

    for (int i = 1; i <= 200; i++) {
        EQ(write(fd, "0123456", 7), 7);
        EQ(size_of("f"), i * 7);
        EQ(fstat_of(fd).st_size, i * 7);
    }
}

CASE(blocks_of_a_written_file_are_counted_after_a_sync)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, MIB, 'x');
    OK(fsync(fd));
    CHECK(fstat_of(fd).st_blocks * 512 >= MIB);
    CHECK(fstat_of(fd).st_blocks * 512 < 2 * MIB);
}

/* Large offsets */

CASE(write_beyond_4_gib_lands_there_and_nowhere_else)
{
    int fd = open_file_with("f", "start");

    fd_writes(fd, 5 * GIB, "far");
    EQ(size_of("f"), 5 * GIB + 3);
    fd_reads(fd, 5 * GIB, "far");
    fd_has_zeros(fd, 5, 1000);
    fd_has_zeros(fd, GIB, 4096);
    IN_CHILD fd_reads((int)OK(open("f", O_RDONLY)), 5 * GIB, "far");
}

CASE(write_across_the_2_and_4_gib_lines_is_whole)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 2 * GIB - 5000, 10000, 'a');
    fd_fill(fd, 4 * GIB - 5000, 10000, 'b');
    fd_has_bytes(fd, 2 * GIB - 5000, 10000, 'a');
    fd_has_bytes(fd, 4 * GIB - 5000, 10000, 'b');
    fd_has_zeros(fd, 2 * GIB + 5000, 4096);
    EQ(size_of("f"), 4 * GIB + 5000);
}

CASE(seek_beyond_4_gib_keeps_the_offset)
{
    int fd = open_file_with("f", "");

    EQ(lseek(fd, 6 * GIB + 7, SEEK_SET), 6 * GIB + 7);
    EQ(write(fd, "x", 1), 1);
    EQ(lseek(fd, 0, SEEK_END), 6 * GIB + 8);
    EQ(lseek(fd, -1, SEEK_END), 6 * GIB + 7);
}

CASE(truncate_to_1_tib_makes_a_sparse_file)
{
    make_file("f", 0644);
    OK(truncate("f", 1024 * GIB));
    EQ(size_of("f"), 1024 * GIB);
    CHECK(stat_of("f").st_blocks < 1000);
    fd_has_zeros((int)OK(open("f", O_RDONLY)), 1024 * GIB - 100, 100);
}

CASE(sparse_file_uses_little_space)
{
    int fd = open_file_with("f", "");

    for (off_t at = 0; at < 10 * GIB; at += GIB)
        fd_writes(fd, at, "x");
    OK(fsync(fd));
    EQ(size_of("f"), 9 * GIB + 1);
    CHECK(fstat_of(fd).st_blocks < 2048);
}

/* truncate, ftruncate */

CASE(truncate_shrinks_and_the_rest_is_gone)
{
    write_file("f", "0123456789");
    OK(truncate("f", 4));
    file_reads("f", "0123");
    OK(truncate("f", 8));
    int fd = OK(open("f", O_RDONLY));
    fd_has_zeros(fd, 4, 4);
}

CASE(truncate_grows_with_zeros)
{
    write_file("f", "abc");
    OK(truncate("f", 100000));
    int fd = OK(open("f", O_RDONLY));
    EQ(fstat_of(fd).st_size, 100000);
    fd_has_zeros(fd, 3, 99997);
}

CASE(truncate_to_the_same_size_keeps_the_content)
{
    write_file("f", "abc");
    OK(truncate("f", 3));
    file_reads("f", "abc");
}

CASE(truncate_to_zero_and_write_again)
{
    int fd = open_file_with("f", "old text");

    OK(ftruncate(fd, 0));
    fd_reads(fd, 0, "");
    fd_writes(fd, 0, "new");
    file_reads("f", "new");
}

CASE(truncate_does_not_move_the_offset)
{
    int fd = open_file_with("f", "0123456789");

    OK(lseek(fd, 8, SEEK_SET));
    OK(ftruncate(fd, 3));
    EQ(lseek(fd, 0, SEEK_CUR), 8);
    EQ(write(fd, "x", 1), 1);
    EQ(size_of("f"), 9);
    fd_has_zeros(fd, 3, 5);
}

CASE(truncate_inside_a_page_zeroes_its_rest)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, 3 * 4096, 'x');
    OK(ftruncate(fd, 4096 + 100));
    OK(ftruncate(fd, 3 * 4096));
    fd_has_bytes(fd, 0, 4096 + 100, 'x');
    fd_has_zeros(fd, 4096 + 100, 2 * 4096 - 100);
}

CASE(truncate_is_seen_by_a_reader_with_cached_pages)
{
    struct gate has_read = gate_new(), cut = gate_new();

    write_file("f", "0123456789");
    pid_t kid = child_fork();
    if (kid == 0) {
        int fd = OK(open("f", O_RDONLY));
        fd_reads(fd, 0, "0123456789");
        gate_open(has_read);
        gate_wait(cut);
        fd_reads(fd, 0, "012");
        child_exit();
    }
    gate_wait(has_read);
    OK(truncate("f", 3));
    gate_open(cut);
    child_join(kid);
}

CASE(truncate_with_a_negative_size_is_einval)
{
    int fd = open_file_with("f", "text");

    FAILS(EINVAL, truncate("f", -1));
    FAILS(EINVAL, ftruncate(fd, -1));
    file_reads("f", "text");
}

CASE(truncate_beyond_what_the_file_system_can_is_efbig_or_einval)
{
    write_file("f", "text");
    FAILS_EITHER(EFBIG, EINVAL, truncate("f", INT64_MAX));
    file_reads("f", "text");
}

CASE(truncate_of_a_directory_is_eisdir)
{
    OK(mkdir("d", 0755));
    FAILS(EISDIR, truncate("d", 0));
    FAILS(EINVAL, ftruncate((int)OK(open("d", O_RDONLY)), 0));
}

CASE(truncate_of_a_fifo_or_a_socket_is_einval)
{
    OK(mkfifo("p", 0644));
    OK(mknod("s", S_IFSOCK | 0644, 0));
    FAILS(EINVAL, truncate("p", 0));
    FAILS(EINVAL, truncate("s", 0));
}

CASE(truncate_follows_a_symlink)
{
    write_file("f", "text");
    OK(symlink("f", "s"));
    OK(truncate("s", 2));
    file_reads("f", "te");
}

CASE(truncate_of_a_missing_file_is_enoent)
{
    FAILS(ENOENT, truncate("f", 0));
    FAILS(ENOENT, truncate("no/f", 0));
    make_file("f", 0644);
    FAILS(ENOTDIR, truncate("f/g", 0));
}

CASE(ftruncate_through_a_read_only_descriptor_is_einval)
{
    write_file("f", "text");
    FAILS(EINVAL, ftruncate((int)OK(open("f", O_RDONLY)), 0));
    FAILS(EBADF, ftruncate(-1, 0));
    file_reads("f", "text");
}

CASE(truncate_gives_the_space_back)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, 4 * MIB, 'x');
    OK(fsync(fd));
    OK(ftruncate(fd, 0));
    OK(fsync(fd));
    CHECK(fstat_of(fd).st_blocks < 64);
}

CASE(file_size_limit_gives_efbig)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    int fd = open_file_with("f", "");

    OK(sigaction(SIGXFSZ, &ignore, NULL));
    IN_CHILD
    {
        OK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1000, 1000 }));
        EQ(pwrite(fd, name_of(2000, 'x'), 2000, 0), 1000);
        FAILS(EFBIG, pwrite(fd, "x", 1, 1000));
        FAILS(EFBIG, ftruncate(fd, 1001));
        OK(ftruncate(fd, 10));
    }
}

/* fallocate: a mode that the file system lacks is refused with EOPNOTSUPP and changes nothing. */

static int filled_file(size_t bytes)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, bytes, 'x');
    return fd;
}

CASE(fallocate_grows_the_file_with_zeros)
{
    int fd = open_file_with("f", "abc");

    OK(fallocate(fd, 0, 0, 100000));
    EQ(fstat_of(fd).st_size, 100000);
    EQ(size_of("f"), 100000);
    fd_has_zeros(fd, 3, 99997);
    CHECK(fstat_of(fd).st_blocks * 512 >= 100000);
}

CASE(fallocate_inside_the_file_keeps_its_content)
{
    int fd = filled_file(10000);

    OK(fallocate(fd, 0, 1000, 5000));
    EQ(fstat_of(fd).st_size, 10000);
    fd_has_bytes(fd, 0, 10000, 'x');
}

CASE(fallocate_at_an_offset_leaves_zeros_before)
{
    int fd = open_file_with("f", "");

    OK(fallocate(fd, 0, 50000, 1000));
    EQ(fstat_of(fd).st_size, 51000);
    fd_has_zeros(fd, 0, 51000);
}

CASE(fallocate_with_keep_size_keeps_it)
{
    int fd = open_file_with("f", "abc");

    OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, MIB));
    EQ(fstat_of(fd).st_size, 3);
    EQ(size_of("f"), 3);
    fd_reads(fd, 0, "abc");
    CHECK(fstat_of(fd).st_blocks * 512 >= MIB);
}

CASE(posix_fallocate_grows_and_never_shrinks)
{
    int fd = open_file_with("f", "abc");

    EQ(posix_fallocate(fd, 0, 5000), 0);
    EQ(size_of("f"), 5000);
    EQ(posix_fallocate(fd, 0, 10), 0);
    EQ(size_of("f"), 5000);
}

CASE(punched_hole_reads_as_zeros_and_keeps_the_size)
{
    int fd = filled_file(MIB);

    OK(fsync(fd));
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100000, 300000));
    EQ(fstat_of(fd).st_size, MIB);
    fd_has_bytes(fd, 0, 100000, 'x');
    fd_has_zeros(fd, 100000, 300000);
    fd_has_bytes(fd, 400000, MIB - 400000, 'x');
    OK(fsync(fd));
    CHECK(fstat_of(fd).st_blocks * 512 < MIB - 200000);
}

CASE(punched_hole_of_a_few_bytes_reads_as_zeros)
{
    int fd = filled_file(10000);

    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4090, 20));
    fd_has_bytes(fd, 0, 4090, 'x');
    fd_has_zeros(fd, 4090, 20);
    fd_has_bytes(fd, 4110, 10000 - 4110, 'x');
}

CASE(punched_hole_beyond_the_end_changes_nothing)
{
    int fd = filled_file(1000);

    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5000, 5000));
    EQ(fstat_of(fd).st_size, 1000);
    fd_has_bytes(fd, 0, 1000, 'x');
}

CASE(punched_hole_without_keep_size_is_refused)
{
    int fd = filled_file(1000);

    FAILS_EITHER(EOPNOTSUPP, EINVAL, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 100));
    fd_has_bytes(fd, 0, 1000, 'x');
}

CASE(punched_hole_is_seen_by_a_reader_with_cached_pages)
{
    struct gate has_read = gate_new(), punched = gate_new();
    int fd = filled_file(20000);
    pid_t kid = child_fork();

    if (kid == 0) {
        int mine = OK(open("f", O_RDONLY));
        fd_has_bytes(mine, 0, 20000, 'x');
        gate_open(has_read);
        gate_wait(punched);
        fd_has_zeros(mine, 4096, 8192);
        fd_has_bytes(mine, 12288, 20000 - 12288, 'x');
        child_exit();
    }
    gate_wait(has_read);
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192));
    gate_open(punched);
    child_join(kid);
}

/* True when the file system said that it lacks the mode. */
static bool fallocate_is_refused(int fd, int mode, off_t at, off_t bytes)
{
    if (fallocate(fd, mode, at, bytes) == 0)
        return false;
    FAILS(EOPNOTSUPP, -1);
    return true;
}

CASE(zeroed_range_reads_as_zeros_or_is_refused)
{
    int fd = filled_file(MIB);
    bool refused = fallocate_is_refused(fd, FALLOC_FL_ZERO_RANGE, 5000, 100000);

    EQ(fstat_of(fd).st_size, MIB);
    fd_has_bytes(fd, 0, 5000, 'x');
    fd_has_bytes(fd, 5000, 100000, refused ? 'x' : 0);
    fd_has_bytes(fd, 105000, MIB - 105000, 'x');
}

CASE(zeroed_range_over_the_end_grows_the_file_or_is_refused)
{
    int fd = filled_file(10000);
    bool refused = fallocate_is_refused(fd, FALLOC_FL_ZERO_RANGE, 8000, 8000);

    EQ(fstat_of(fd).st_size, refused ? 10000 : 16000);
    fd_has_bytes(fd, 0, 8000, 'x');
    if (!refused)
        fd_has_zeros(fd, 8000, 8000);
}

CASE(zeroed_range_with_keep_size_keeps_it_or_is_refused)
{
    int fd = filled_file(10000);

    fallocate_is_refused(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 8000, 8000);
    EQ(fstat_of(fd).st_size, 10000);
    fd_has_bytes(fd, 0, 8000, 'x');
}

CASE(collapsed_range_moves_the_rest_up_or_is_refused)
{
    int fd = filled_file(65536);

    fd_fill(fd, 32768, 32768, 'y');
    OK(fsync(fd));
    bool refused = fallocate_is_refused(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 32768);
    EQ(fstat_of(fd).st_size, refused ? 65536 : 32768);
    fd_has_bytes(fd, 0, 32768, refused ? 'x' : 'y');
}

CASE(inserted_range_moves_the_rest_down_or_is_refused)
{
    int fd = filled_file(65536);

    OK(fsync(fd));
    bool refused = fallocate_is_refused(fd, FALLOC_FL_INSERT_RANGE, 0, 32768);
    EQ(fstat_of(fd).st_size, refused ? 65536 : 98304);
    fd_has_bytes(fd, 0, 32768, refused ? 'x' : 0);
    fd_has_bytes(fd, 32768, 32768, 'x');
}

CASE(fallocate_with_a_mode_that_cannot_be_is_refused)
{
    int fd = filled_file(1000);

    FAILS_EITHER(EOPNOTSUPP, EINVAL, fallocate(fd, 0x4000, 0, 100));
    FAILS_EITHER(EOPNOTSUPP, EINVAL,
                 fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_COLLAPSE_RANGE, 0, 100));
    fd_has_bytes(fd, 0, 1000, 'x');
}

CASE(fallocate_of_an_impossible_range_is_einval)
{
    int fd = filled_file(1000);

    FAILS(EINVAL, fallocate(fd, 0, 0, 0));
    FAILS(EINVAL, fallocate(fd, 0, -1, 10));
    FAILS(EINVAL, fallocate(fd, 0, 0, -1));
    FAILS_EITHER(EFBIG, EINVAL, fallocate(fd, 0, INT64_MAX - 10, 100));
    EQ(fstat_of(fd).st_size, 1000);
}

CASE(fallocate_through_a_read_only_descriptor_is_ebadf)
{
    make_file("f", 0644);
    FAILS(EBADF, fallocate((int)OK(open("f", O_RDONLY)), 0, 0, 100));
    FAILS(EBADF, fallocate(-1, 0, 0, 100));
}

CASE(fallocate_of_a_directory_or_a_fifo_is_refused)
{
    OK(mkfifo("p", 0644));
    FAILS(EBADF, fallocate((int)OK(open(".", O_RDONLY)), 0, 0, 100));
    FAILS(ESPIPE, fallocate((int)OK(open("p", O_RDWR)), 0, 0, 100));
}

CASE(fallocate_of_an_unlinked_file_works)
{
    int fd = open_file_with("f", "abc");

    OK(unlink("f"));
    OK(fallocate(fd, 0, 0, 5000));
    EQ(fstat_of(fd).st_size, 5000);
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 3));
    fd_has_zeros(fd, 0, 5000);
}

/* SEEK_DATA, SEEK_HOLE: a file system may see no holes, but it must never call data a hole. */

CASE(seek_data_finds_all_data_and_seek_hole_ends_at_the_end)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, 4096, 'a');
    fd_fill(fd, MIB, 4096, 'b');
    OK(ftruncate(fd, 2 * MIB));
    OK(fsync(fd));
    EQ(lseek(fd, 0, SEEK_DATA), 0);
    off_t hole = OK(lseek(fd, 0, SEEK_HOLE));
    CHECK(hole >= 4096);
    off_t data = OK(lseek(fd, 4096, SEEK_DATA));
    CHECK(data >= 4096 && data <= MIB);
    CHECK(OK(lseek(fd, MIB, SEEK_HOLE)) >= MIB + 4096);
    CHECK(OK(lseek(fd, MIB, SEEK_HOLE)) <= 2 * MIB);
}

CASE(seek_hole_sees_the_holes_that_the_file_system_below_sees)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, 64 * KIB, 'a');
    fd_fill(fd, MIB, 64 * KIB, 'b');
    OK(fsync(fd));
    EQ(OK(lseek(fd, 0, SEEK_HOLE)), 64 * KIB);
    EQ(OK(lseek(fd, 64 * KIB, SEEK_DATA)), MIB);
    EQ(OK(lseek(fd, MIB, SEEK_HOLE)), MIB + 64 * KIB);
}

CASE(seek_data_skips_a_punched_hole)
{
    int fd = filled_file(MIB);

    OK(fsync(fd));
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 512 * KIB));
    EQ(OK(lseek(fd, 0, SEEK_DATA)), 512 * KIB);
    EQ(OK(lseek(fd, 0, SEEK_HOLE)), 0);
}

CASE(seek_data_and_hole_beyond_the_end_are_enxio)
{
    int fd = open_file_with("f", "0123456789");

    FAILS(ENXIO, lseek(fd, 10, SEEK_DATA));
    FAILS(ENXIO, lseek(fd, 10, SEEK_HOLE));
    FAILS(ENXIO, lseek(fd, 1000, SEEK_HOLE));
    FAILS(ENXIO, lseek(fd, -1, SEEK_DATA));
}

CASE(seek_hole_in_a_full_file_is_its_end)
{
    int fd = filled_file(10000);

    EQ(lseek(fd, 0, SEEK_HOLE), 10000);
    EQ(lseek(fd, 9999, SEEK_HOLE), 10000);
    EQ(lseek(fd, 9999, SEEK_DATA), 9999);
}

CASE(seek_data_in_an_empty_file_is_enxio)
{
    int fd = open_file_with("f", "");

    FAILS(ENXIO, lseek(fd, 0, SEEK_DATA));
    FAILS(ENXIO, lseek(fd, 0, SEEK_HOLE));
}

CASE(seek_data_finds_what_was_written_a_moment_ago)
{
    int fd = open_file_with("f", "");

    OK(ftruncate(fd, 4 * MIB));
    fd_writes(fd, 2 * MIB, "here");
    off_t data = OK(lseek(fd, 0, SEEK_DATA));
    CHECK(data <= 2 * MIB);
    CHECK(OK(lseek(fd, 2 * MIB, SEEK_DATA)) == 2 * MIB);
}

/* copy_file_range, sendfile */

CASE(copied_range_is_that_of_the_source)
{
    int from = open_file_with("from", "0123456789"), to = open_file_with("to", "abcdefghij");
    off_t in = 2, out = 4;

    EQ(copy_file_range(from, &in, to, &out, 3, 0), 3);
    EQ(in, 5);
    EQ(out, 7);
    file_reads("to", "abcd234hij");
    file_reads("from", "0123456789");
    EQ(lseek(from, 0, SEEK_CUR), 0);
}

CASE(copied_range_moves_the_offsets_when_none_is_given)
{
    int from = open_file_with("from", "0123456789"), to = open_file_with("to", "");

    OK(lseek(from, 5, SEEK_SET));
    EQ(copy_file_range(from, NULL, to, NULL, 3, 0), 3);
    EQ(lseek(from, 0, SEEK_CUR), 8);
    EQ(lseek(to, 0, SEEK_CUR), 3);
    file_reads("to", "567");
}

CASE(copied_range_stops_at_the_end_of_the_source)
{
    int from = open_file_with("from", "0123456789"), to = open_file_with("to", "");
    off_t in = 7;

    EQ(copy_file_range(from, &in, to, NULL, 1000, 0), 3);
    EQ(copy_file_range(from, &in, to, NULL, 1000, 0), 0);
    file_reads("to", "789");
}

CASE(copied_range_beyond_the_end_of_the_target_leaves_a_hole)
{
    int from = open_file_with("from", "0123456789"), to = open_file_with("to", "ab");
    off_t in = 0, out = 5000;

    EQ(copy_file_range(from, &in, to, &out, 10, 0), 10);
    EQ(size_of("to"), 5010);
    fd_has_zeros(to, 2, 4998);
    fd_reads(to, 5000, "0123456789");
}

CASE(copied_megabytes_are_the_same)
{
    enum {
        BYTES = 5 * MIB + 123
    };
    int from = open_file_with("from", ""), to = open_file_with("to", "");
    off_t in = 0, out = 0;

    for (off_t at = 0; at < BYTES; at += 100000)
        fd_fill(from, at, at + 100000 > BYTES ? (size_t)(BYTES - at) : 100000, (int)(at / 100000));
    while (in < BYTES)
        CHECK(OK(copy_file_range(from, &in, to, &out, (size_t)(BYTES - in), 0)) > 0);
    EQ(size_of("to"), BYTES);
    for (off_t at = 0; at < BYTES; at += 100000)
        fd_has_bytes(to, at, at + 100000 > BYTES ? (size_t)(BYTES - at) : 100000,
                     (int)(at / 100000));
}

CASE(copied_range_inside_one_file_works)
{
    int fd = open_file_with("f", "0123456789");
    off_t in = 0, out = 10;

    EQ(copy_file_range(fd, &in, fd, &out, 5, 0), 5);
    file_reads("f", "012345678901234");
}

CASE(copied_range_that_overlaps_itself_is_einval)
{
    int fd = open_file_with("f", "0123456789");
    off_t in = 0, out = 3;

    FAILS(EINVAL, copy_file_range(fd, &in, fd, &out, 5, 0));
    file_reads("f", "0123456789");
}

CASE(copied_range_with_wrong_descriptors_is_refused)
{
    int from = open_file_with("from", "text"), to = open_file_with("to", "");
    int reading = OK(open("to", O_RDONLY)), writing = OK(open("from", O_WRONLY));
    int appending = OK(open("to", O_WRONLY | O_APPEND)), dir = OK(open(".", O_RDONLY));

    FAILS(EBADF, copy_file_range(from, NULL, reading, NULL, 4, 0));
    FAILS(EBADF, copy_file_range(writing, NULL, to, NULL, 4, 0));
    FAILS(EBADF, copy_file_range(from, NULL, appending, NULL, 4, 0));
    FAILS(EISDIR, copy_file_range(dir, NULL, to, NULL, 4, 0));
    FAILS(EINVAL, copy_file_range(from, NULL, to, NULL, 4, 1 << 20));
    EQ(size_of("to"), 0);
}

CASE(copied_range_reads_what_was_written_a_moment_ago)
{
    int from = open_file_with("from", ""), to = open_file_with("to", "stale text");

    fd_reads(to, 0, "stale text");
    fd_writes(from, 0, "fresh text");
    EQ(copy_file_range(from, NULL, to, NULL, 10, 0), 10);
    fd_reads(to, 0, "fresh text");
}

CASE(sendfile_to_and_from_the_file_system_works)
{
    int from = open_file_with("from", "0123456789"), to = open_file_with("to", "");
    off_t in = 4;

    EQ(sendfile(to, from, &in, 100), 6);
    EQ(in, 10);
    file_reads("to", "456789");
}

/* Syncing */

CASE(fsync_and_fdatasync_of_a_written_file_succeed)
{
    int fd = open_file_with("f", "text");

    OK(fsync(fd));
    OK(fdatasync(fd));
    fd_writes(fd, 4, "more");
    OK(fdatasync(fd));
    file_reads("f", "textmore");
}

CASE(fsync_through_a_read_only_descriptor_and_of_a_directory_succeed)
{
    write_file("f", "text");
    OK(fsync((int)OK(open("f", O_RDONLY))));
    int dir = OK(open(".", O_RDONLY | O_DIRECTORY));
    OK(fsync(dir));
    OK(fdatasync(dir));
}

CASE(fsync_of_a_bad_descriptor_is_ebadf_and_of_a_fifo_einval)
{
    OK(mkfifo("p", 0644));
    FAILS(EBADF, fsync(-1));
    FAILS(EBADF, fdatasync(-1));
    FAILS(EINVAL, fsync((int)OK(open("p", O_RDWR))));
}

CASE(sync_file_range_succeeds_and_refuses_nonsense)
{
    int fd = filled_file(MIB);

    OK(sync_file_range(fd, 0, MIB, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
    FAILS(EINVAL, sync_file_range(fd, 0, MIB, 0x100));
    FAILS(EINVAL, sync_file_range(fd, -1, MIB, SYNC_FILE_RANGE_WRITE));
    fd_has_bytes(fd, 0, MIB, 'x');
}

CASE(syncfs_succeeds)
{
    int fd = open_file_with("f", "text");

    OK(syncfs(fd));
    FAILS(EBADF, syncfs(-1));
}

CASE(fadvise_and_readahead_change_no_content)
{
    int fd = filled_file(MIB);

    EQ(posix_fadvise(fd, 0, MIB, POSIX_FADV_WILLNEED), 0);
    OK(readahead(fd, 0, MIB));
    OK(fsync(fd));
    EQ(posix_fadvise(fd, 0, MIB, POSIX_FADV_DONTNEED), 0);
    fd_has_bytes(fd, 0, MIB, 'x');
}

/* statvfs */

CASE(statvfs_numbers_are_plausible)
{
    struct statvfs vfs;

    OK(statvfs(".", &vfs));
    CHECK(vfs.f_bsize >= 512 && vfs.f_bsize <= 64 * MIB);
    CHECK(vfs.f_frsize >= 512);
    CHECK(vfs.f_blocks > 0);
    CHECK(vfs.f_bfree <= vfs.f_blocks);
    CHECK(vfs.f_bavail <= vfs.f_bfree);
    CHECK(vfs.f_ffree <= vfs.f_files);
}

CASE(statvfs_and_fstatvfs_agree_for_every_file)
{
    struct statvfs a, b;
    int fd = open_file_with("f", "");

    OK(mkdir("d", 0755));
    OK(statvfs("d", &a));
    OK(fstatvfs(fd, &b));
    EQ((intmax_t)a.f_blocks, (intmax_t)b.f_blocks);
    EQ((intmax_t)a.f_bsize, (intmax_t)b.f_bsize);
    EQ((intmax_t)a.f_namemax, (intmax_t)b.f_namemax);
    FAILS(ENOENT, statvfs("missing", &a));
}

CASE(stat_block_size_is_plausible)
{
    write_file("f", "text");
    CHECK(stat_of("f").st_blksize >= 512 && stat_of("f").st_blksize <= 16 * MIB);
    CHECK(stat_of("f").st_dev == stat_of(".").st_dev);
}

CASE(statx_tells_what_stat_tells)
{
    struct statx x;
    struct stat st;

    write_file("f", "text");
    st = stat_of("f");
    OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &x));
    EQ(x.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
    EQ((intmax_t)x.stx_ino, (intmax_t)st.st_ino);
    EQ((intmax_t)x.stx_size, st.st_size);
    EQ(x.stx_mode, (intmax_t)st.st_mode);
    EQ(x.stx_nlink, (intmax_t)st.st_nlink);
    EQ(x.stx_mtime.tv_sec, st.st_mtim.tv_sec);
    EQ(x.stx_mtime.tv_nsec, st.st_mtim.tv_nsec);
}

CASE(statx_forced_to_sync_sees_the_last_write)
{
    struct statx x;
    int fd = open_file_with("f", "");

    for (int i = 1; i <= 20; i++) {
        EQ(write(fd, "x", 1), 1);
        OK(statx(AT_FDCWD, "f", AT_STATX_FORCE_SYNC, STATX_SIZE, &x));
        EQ((intmax_t)x.stx_size, i);
    }
}
