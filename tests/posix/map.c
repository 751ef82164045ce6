/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mmap(2): a file and its mappings are one content, in one process and between two. */
#include "harness.h"

#include <setjmp.h>

enum {
    PAGE = 4096,
};

static int page_file(int pages)
{
    int fd = open_file_with("f", "");

    fd_fill(fd, 0, (size_t)pages * PAGE, 'x');
    return fd;
}

static char *map_of(int fd, int pages, int protection, int flags)
{
    char *map = mmap(NULL, (size_t)pages * PAGE, protection, flags, fd, 0);

    CHECK(map != MAP_FAILED);
    return map;
}

#define map_shared(fd, pages) map_of(fd, pages, PROT_READ | PROT_WRITE, MAP_SHARED)

CASE(map_shows_what_was_written_before)
{
    int fd = open_file_with("f", "text");

    EQ(memcmp(map_of(fd, 1, PROT_READ, MAP_SHARED), "text", 4), 0);
}

CASE(map_shows_what_is_written_afterwards)
{
    int fd = page_file(2);
    char *map = map_of(fd, 2, PROT_READ, MAP_SHARED);

    EQ(map[PAGE], 'x');
    fd_writes(fd, PAGE, "new");
    EQ(memcmp(map + PAGE, "new", 3), 0);
}

CASE(map_shows_what_another_process_writes)
{
    int fd = page_file(2);
    char *map = map_of(fd, 2, PROT_READ, MAP_SHARED);

    EQ(map[0], 'x');
    IN_CHILD fd_writes((int)OK(open("f", O_WRONLY)), 0, "new");
    EQ(memcmp(map, "new", 3), 0);
}

CASE(mapped_write_is_read_at_once)
{
    int fd = page_file(2);
    char *map = map_shared(fd, 2);

    memcpy(map + PAGE - 2, "abcd", 4);
    char got[4];
    EQ(pread(fd, got, 4, PAGE - 2), 4);
    EQ(memcmp(got, "abcd", 4), 0);
}

CASE(mapped_write_is_read_by_another_process_after_msync)
{
    int fd = page_file(2);
    char *map = map_shared(fd, 2);

    memcpy(map, "abcd", 4);
    OK(msync(map, 2 * PAGE, MS_SYNC));
    IN_CHILD
    {
        char got[4];
        EQ(pread((int)OK(open("f", O_RDONLY)), got, 4, 0), 4);
        EQ(memcmp(got, "abcd", 4), 0);
    }
}

CASE(mapped_write_is_kept_after_munmap_and_close)
{
    int fd = page_file(1);
    char *map = map_shared(fd, 1);

    memset(map, 'y', PAGE);
    OK(munmap(map, PAGE));
    OK(close(fd));
    fd_has_bytes((int)OK(open("f", O_RDONLY)), 0, PAGE, 'y');
}

CASE(mapped_write_is_kept_after_the_descriptor_is_closed_first)
{
    int fd = page_file(1);
    char *map = map_shared(fd, 1);

    OK(close(fd));
    memset(map, 'y', PAGE);
    OK(msync(map, PAGE, MS_SYNC));
    OK(munmap(map, PAGE));
    fd_has_bytes((int)OK(open("f", O_RDONLY)), 0, PAGE, 'y');
}

CASE(mapped_write_by_a_child_is_seen_by_its_parent)
{
    int fd = page_file(1);
    char *map = map_shared(fd, 1);

    IN_CHILD memcpy(map, "child", 5);
    EQ(memcmp(map, "child", 5), 0);
    char got[5];
    EQ(pread(fd, got, 5, 0), 5);
    EQ(memcmp(got, "child", 5), 0);
}

CASE(two_mappings_of_one_file_are_one_memory)
{
    int one = page_file(1), two = OK(open("f", O_RDWR));
    char *a = map_shared(one, 1), *b = map_shared(two, 1);

    a[10] = 'A';
    EQ(b[10], 'A');
    b[11] = 'B';
    EQ(a[11], 'B');
}

CASE(private_mapping_changes_no_file)
{
    int fd = page_file(1);
    char *map = map_of(fd, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    memset(map, 'p', PAGE);
    EQ(map[5], 'p');
    fd_has_bytes(fd, 0, PAGE, 'x');
}

CASE(private_mapping_of_a_read_only_descriptor_may_be_written)
{
    page_file(1);
    int fd = OK(open("f", O_RDONLY));
    char *map = map_of(fd, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    map[0] = 'p';
    fd_has_bytes(fd, 0, PAGE, 'x');
}

CASE(shared_writable_mapping_of_a_read_only_descriptor_is_eacces)
{
    page_file(1);
    int fd = OK(open("f", O_RDONLY)), writing = OK(open("f", O_WRONLY));

    FAILS(EACCES, (intptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    FAILS(EACCES, (intptr_t)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, writing, 0));
}

CASE(mapping_with_an_odd_offset_or_of_nothing_is_einval)
{
    int fd = page_file(2);

    FAILS(EINVAL, (intptr_t)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 100));
    FAILS(EINVAL, (intptr_t)mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0));
}

CASE(mapping_of_a_directory_is_enodev)
{
    int fd = OK(open(".", O_RDONLY));

    FAILS(ENODEV, (intptr_t)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
}

static sigjmp_buf bus_return;

static void on_bus_error(int signal_number)
{
    siglongjmp(bus_return, signal_number);
}

/* True when the byte can be touched, false when that is a SIGBUS. */
static bool byte_is_there(volatile char *byte)
{
    struct sigaction action = { .sa_handler = on_bus_error };

    OK(sigaction(SIGBUS, &action, NULL));
    if (sigsetjmp(bus_return, 1) != 0)
        return false;
    (void)*byte;
    return true;
}

CASE(page_beyond_the_end_of_the_file_is_a_bus_error)
{
    int fd = open_file_with("f", "text");
    char *map = map_of(fd, 3, PROT_READ, MAP_SHARED);

    CHECK(byte_is_there(map));
    CHECK(byte_is_there(map + PAGE - 1));
    CHECK(!byte_is_there(map + PAGE));
    CHECK(!byte_is_there(map + 2 * PAGE));
}

CASE(page_that_was_cut_off_is_a_bus_error)
{
    int fd = page_file(3);
    char *map = map_of(fd, 3, PROT_READ, MAP_SHARED);

    CHECK(byte_is_there(map + 2 * PAGE));
    OK(ftruncate(fd, PAGE));
    CHECK(byte_is_there(map));
    CHECK(!byte_is_there(map + PAGE));
    CHECK(!byte_is_there(map + 2 * PAGE));
}

CASE(page_appears_in_the_mapping_when_the_file_grows)
{
    int fd = page_file(1);
    char *map = map_of(fd, 2, PROT_READ, MAP_SHARED);

    CHECK(!byte_is_there(map + PAGE));
    fd_writes(fd, PAGE, "new");
    CHECK(byte_is_there(map + PAGE));
    EQ(memcmp(map + PAGE, "new", 3), 0);
}

CASE(rest_of_the_last_page_is_zeros)
{
    int fd = open_file_with("f", "text");
    char *map = map_of(fd, 1, PROT_READ, MAP_SHARED);

    for (int i = 4; i < PAGE; i++)
        EQ(map[i], 0);
}

CASE(write_beyond_the_end_in_the_last_page_stays_out_of_the_file)
{
    int fd = open_file_with("f", "text");
    char *map = map_shared(fd, 1);

    memcpy(map + 4, "beyond", 6);
    OK(msync(map, PAGE, MS_SYNC));
    fd_reads(fd, 0, "text");
    EQ(size_of("f"), 4);
}

CASE(mapped_hole_reads_as_zeros_and_takes_writes)
{
    int fd = open_file_with("f", "");

    OK(ftruncate(fd, 100 * PAGE));
    char *map = map_shared(fd, 100);
    EQ(map[50 * PAGE], 0);
    map[50 * PAGE] = 'h';
    OK(msync(map, 100 * PAGE, MS_SYNC));
    fd_has_zeros(fd, 0, 50 * PAGE);
    fd_has_bytes(fd, 50 * PAGE, 1, 'h');
}

CASE(punched_hole_shows_in_the_mapping)
{
    int fd = page_file(4);
    char *map = map_shared(fd, 4);

    map[PAGE] = 'y';
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
    EQ(map[PAGE], 0);
    EQ(map[0], 'x');
    EQ(map[2 * PAGE], 'x');
}

CASE(mapping_at_an_offset_shows_that_part)
{
    int fd = page_file(4);

    fd_writes(fd, 2 * PAGE, "third page");
    char *map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 2 * PAGE);
    CHECK(map != MAP_FAILED);
    EQ(memcmp(map, "third page", 10), 0);
}

CASE(mapping_beyond_4_gib_shows_that_part)
{
    off_t far = 5LL << 30;
    int fd = open_file_with("f", "near");

    fd_writes(fd, far, "far");
    char *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, far);
    CHECK(map != MAP_FAILED);
    EQ(memcmp(map, "far", 3), 0);
    memcpy(map, "FAR", 3);
    OK(msync(map, PAGE, MS_SYNC));
    fd_reads(fd, far, "FAR");
    fd_has_bytes(fd, 0, 1, 'n');
}

CASE(mapped_megabytes_written_at_random_are_kept)
{
    enum {
        PAGES = 512
    };
    int fd = page_file(PAGES);
    char *map = map_shared(fd, PAGES);

    for (int i = 0; i < PAGES; i++) {
        int page = i * 197 % PAGES;
        memset(map + page * PAGE, page & 0xff, PAGE);
    }
    OK(munmap(map, PAGES * PAGE));
    OK(fsync(fd));
    for (int i = 0; i < PAGES; i++)
        fd_has_bytes(fd, (off_t)i * PAGE, PAGE, i & 0xff);
}

CASE(read_into_a_mapping_of_the_same_file_works)
{
    int fd = page_file(2);
    char *map = map_shared(fd, 2);

    fd_writes(fd, PAGE, "second");
    EQ(pread(fd, map, 6, PAGE), 6);
    EQ(memcmp(map, "second", 6), 0);
}

CASE(write_from_a_mapping_of_the_same_file_works)
{
    int fd = page_file(2);
    char *map = map_shared(fd, 2);

    memcpy(map, "first", 5);
    EQ(pwrite(fd, map, 5, PAGE), 5);
    EQ(memcmp(map + PAGE, "first", 5), 0);
}

CASE(program_runs_from_the_file_system)
{
    char *command = NULL;

    OK(asprintf(&command, "cp /bin/true prog && ./prog"));
    EQ(system(command), 0);
}
