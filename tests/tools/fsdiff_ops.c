/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fsdiff's operations: how each is chosen, done on one side, and what it changes in our idea of
 * the trees. The table at the end is the list. */
#include "fsdiff.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* What we know of an open file, the same on both sides. */
static struct {
    bool open, is_dir, direct;
} slots[SLOTS];

static unsigned char *buffer; /* IO_BYTES_MAX and two pages, aligned to a page */

void ops_start(void)
{
    buffer = aligned_alloc(4096, IO_BYTES_MAX + 8192);
    if (!buffer)
        die("memory");
}

bool slot_is_direct(int slot)
{
    return slots[slot].direct;
}

static void done(struct outcome *out, int64_t ret)
{
    out->ret = ret;
    out->err = ret < 0 ? errno : 0;
}

static void keep_data(struct outcome *out, const void *data, int64_t bytes)
{
    if (bytes <= 0)
        return;
    out->data = malloc((size_t)bytes);
    if (!out->data)
        die("memory");
    memcpy(out->data, data, (size_t)bytes);
    out->data_bytes = (size_t)bytes;
}

static int start_fd(const struct op *op, const struct side *one)
{
    return op->base >= 0 ? one->fd[op->base] : one->root_fd;
}

/* ---------------------------------------------------------------- names */

static const char *const plain_names[] = {
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "file",
    "dir",
    "link",
    "x.txt",
    ".hidden",
    "..two",
    "with space",
    "new\nline",
    "\xc3\xa9t\xc3\xa9",
    "\xff\xfe",
    "#",
    "-r",
    "*",
    "a.tmp",
    ".a.XyZ",
};

static void new_name(char *name, size_t bytes)
{
    size_t length = 0;

    if (chance(2))
        length = chance(70) ? 255 : chance(50) ? 256 : 254;
    if (length && length < bytes) {
        memset(name, 'a' + (int)any(3), length);
        name[length] = 0;
    } else {
        snprintf(name, bytes, "%s", plain_names[any(sizeof(plain_names) / sizeof(*plain_names))]);
    }
}

static const struct entry *known(mode_t type)
{
    const struct entry *found = NULL;
    uint64_t seen = 0;

    for (int i = 0; i < entries; i++)
        if ((!type || table[i].type == type) && any(++seen) == 0)
            found = &table[i];
    return found;
}

static int depth_of(const char *path)
{
    int depth = 1;

    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

static void new_path(char *path)
{
    const struct entry *dir = chance(80) ? known(S_IFDIR) : NULL;
    char name[300];

    new_name(name, sizeof(name));
    if (dir && depth_of(dir->path) < DEPTH_MAX && strlen(dir->path) + strlen(name) + 2 < PATH_BYTES)
        snprintf(path, PATH_BYTES, "%.390s/%s", dir->path, name);
    else
        snprintf(path, PATH_BYTES, "%s", name);
}

/* Forms that the kernel has to see through, or to refuse. None leads out of the tree: no link text
 * holds "..", so d/.. is never above d's directory. */
static void make_odd(struct op *op, char *path)
{
    char plain[PATH_BYTES];
    const struct entry *dir = known(S_IFDIR);

    op->odd = true;
    memcpy(plain, path, PATH_BYTES);
    switch (any(6)) {
    case 0:
        snprintf(path, PATH_BYTES, "%.690s/", plain);
        break;
    case 1:
        snprintf(path, PATH_BYTES, "./%.690s", plain);
        break;
    case 2:
        snprintf(path, PATH_BYTES, "%.690s/x", plain);
        break;
    case 3:
        snprintf(path, PATH_BYTES, "%.690s/.", plain);
        break;
    case 4:
        *path = 0;
        break;
    default:
        if (dir && depth_of(dir->path) == 1)
            snprintf(path, PATH_BYTES, "%.260s/../%.400s", dir->path, plain);
    }
}

static void choose_path(struct op *op, char *path, mode_t type, int known_percent)
{
    const struct entry *entry = chance(known_percent) ? known(chance(85) ? type : 0) : NULL;

    if (entry)
        snprintf(path, PATH_BYTES, "%s", entry->path);
    else
        new_path(path);
    if (chance(4))
        make_odd(op, path);
}

/* A name in a directory that is open, and perhaps gone or renamed. */
static void choose_base(struct op *op)
{
    for (int slot = 0; slot < SLOTS; slot++)
        if (slots[slot].is_dir && chance(30)) {
            op->base = slot;
            op->odd = true;
            new_name(op->path, 300);
            return;
        }
}

static void table_add(const char *path, mode_t type)
{
    for (int i = 0; i < entries; i++)
        if (strcmp(table[i].path, path) == 0) {
            table[i].type = type;
            return;
        }
    if (entries < ENTRIES_MAX) {
        table[entries] = (struct entry){ .type = type };
        snprintf(table[entries++].path, PATH_BYTES, "%s", path);
    }
}

static void table_remove(const char *path)
{
    for (int i = 0; i < entries; i++)
        if (strcmp(table[i].path, path) == 0)
            table[i--] = table[--entries];
}

static mode_t table_type(const char *path)
{
    for (int i = 0; i < entries; i++)
        if (strcmp(table[i].path, path) == 0)
            return table[i].type;
    return 0;
}

static void after_remove(const struct op *op, const struct outcome *out)
{
    if (out->ret >= 0 && !op->odd)
        table_remove(op->path);
}

/* ---------------------------------------------------------------- common choices */

static void choose_slot(int *slot)
{
    *slot = (int)any(SLOTS);
    for (int i = 0; i < 8 && (!slots[*slot].open || slots[*slot].is_dir); i++)
        *slot = (int)any(SLOTS);
}

static void choose_range(struct op *op)
{
    bool aligned = chance(30);

    op->offset = (int64_t)any(chance(70) ? FILE_BYTES_MAX / 8 : FILE_BYTES_MAX);
    op->length = any(chance(80) ? 20000 : IO_BYTES_MAX);
    if (chance(3))
        op->length = 0;
    if (aligned || (op->slot >= 0 && slots[op->slot].direct)) {
        op->offset &= ~4095;
        op->length = (op->length + 4095) & ~(uint64_t)4095;
    }
    op->data_seed = any(UINT64_MAX);
}

static void choose_old(struct op *op)
{
    choose_path(op, op->path, 0, 90);
}

static void choose_open_file(struct op *op)
{
    choose_slot(&op->slot);
}

static void choose_io(struct op *op)
{
    choose_slot(&op->slot);
    choose_range(op);
}

/* ---------------------------------------------------------------- open, close */

static const mode_t file_modes[] = { 0644,  0666,  0600, 0640,  0444, 0755,
                                     04755, 02755, 0,    06777, 02644 };
static const mode_t dir_modes[] = { 0755, 0777, 01777, 02775, 0700, 0711, 0555, 0, 03777 };

static void choose_file_mode(struct op *op)
{
    op->mode = chance(10) ? (mode_t)any(010000)
                          : file_modes[any(sizeof(file_modes) / sizeof(*file_modes))];
}

static void choose_open(struct op *op)
{
    static const int access[] = { O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY };
    static const int extra[] = { O_CREAT,    O_CREAT,     O_CREAT | O_EXCL, O_TRUNC,   O_APPEND,
                                 O_NOFOLLOW, O_DIRECTORY, O_SYNC,           O_NOATIME, O_DSYNC };

    op->slot = (int)any(SLOTS);
    op->flags = access[any(sizeof(access) / sizeof(*access))] | O_NONBLOCK | O_CLOEXEC;
    for (int i = 0; i < 3; i++)
        if (chance(45))
            op->flags |= extra[any(sizeof(extra) / sizeof(*extra))];
    if (op->flags & O_CREAT)
        op->flags &= ~O_DIRECTORY; /* together: it depends on the kernel what they mean */
    choose_file_mode(op);
    choose_path(op, op->path, op->flags & O_DIRECTORY ? S_IFDIR : S_IFREG,
                op->flags & O_CREAT ? 25 : 92);
    if (chance(6))
        choose_base(op);
}

static void choose_open_direct(struct op *op)
{
    choose_open(op);
    op->flags = (op->flags & ~O_APPEND) | O_DIRECT;
}

static void act_open(const struct op *op, struct side *one, struct outcome *out)
{
    int fd = openat(start_fd(op, one), op->path, op->flags, op->mode);

    done(out, fd < 0 ? -1 : 0);
    if (fd < 0)
        return;
    if (one->fd[op->slot] >= 0)
        close(one->fd[op->slot]);
    one->fd[op->slot] = fd;
}

static void after_open(const struct op *op, const struct outcome *out)
{
    struct stat st;

    if (out->ret < 0)
        return;
    fstat(side[1].fd[op->slot], &st);
    slots[op->slot].open = true;
    slots[op->slot].is_dir = S_ISDIR(st.st_mode);
    slots[op->slot].direct = op->flags & O_DIRECT;
    if (!op->odd && (op->flags & O_CREAT) && !table_type(op->path))
        table_add(op->path, S_IFREG);
}

static void act_close(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, close(one->fd[op->slot]));
    one->fd[op->slot] = -1;
}

static void after_close(const struct op *op, const struct outcome *out)
{
    (void)out;
    slots[op->slot].open = slots[op->slot].is_dir = slots[op->slot].direct = false;
}

void slots_close_all(void)
{
    for (int i = 0; i < 2; i++)
        for (int slot = 0; slot < SLOTS; slot++)
            if (side[i].fd[slot] >= 0)
                close(side[i].fd[slot]);
}

/* ---------------------------------------------------------------- data */

static void fill(const struct op *op)
{
    uint64_t *word = (uint64_t *)buffer;

    for (uint64_t i = 0; i < op->length / 8 + 1; i++)
        word[i] = mix(op->data_seed + i);
}

static void act_pread(const struct op *op, struct side *one, struct outcome *out)
{
    memset(buffer, 0xee, op->length);
    done(out, pread(one->fd[op->slot], buffer, op->length, op->offset));
    keep_data(out, buffer, out->ret);
}

static void act_pwrite(const struct op *op, struct side *one, struct outcome *out)
{
    fill(op);
    done(out, pwrite(one->fd[op->slot], buffer, op->length, op->offset));
}

/* Direct files are left to pread: their position would not stay aligned. */
static void act_read(const struct op *op, struct side *one, struct outcome *out)
{
    if (slots[op->slot].direct) {
        act_pread(op, one, out);
        return;
    }
    memset(buffer, 0xee, op->length);
    done(out, read(one->fd[op->slot], buffer, op->length));
    keep_data(out, buffer, out->ret);
}

static void act_write(const struct op *op, struct side *one, struct outcome *out)
{
    struct stat st;

    if (slots[op->slot].direct) {
        act_pwrite(op, one, out);
        return;
    }
    if (fstat(one->fd[op->slot], &st) == 0 && st.st_size > FILE_BYTES_MAX)
        lseek(one->fd[op->slot], 0, SEEK_SET);
    fill(op);
    done(out, write(one->fd[op->slot], buffer, op->length));
    snprintf(out->text, sizeof(out->text), "position %" PRId64,
             (int64_t)lseek(one->fd[op->slot], 0, SEEK_CUR));
}

/* Neither offset nor length nor memory aligned: to be refused, or served, as local does. */
/* As root: a write refused for its alignment may or may not have taken set-id bits before. */
static void choose_misaligned(struct op *op)
{
    choose_io(op);
    op->user = 0;
    op->offset |= chance(50) ? 512 : 0;
    op->length = chance(50) ? 512 * (1 + any(64)) : 1 + any(9000);
}

static void act_seek_set(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, lseek(one->fd[op->slot], op->offset, op->flags));
}

static void choose_seek_set(struct op *op)
{
    static const int whence[] = { SEEK_SET, SEEK_SET, SEEK_CUR, SEEK_END };

    choose_io(op);
    op->flags = whence[any(4)];
    if (op->flags != SEEK_SET)
        op->offset = chance(50) ? -(int64_t)any(4096) : (int64_t)any(4096);
    if (slots[op->slot].is_dir)
        op->offset = op->flags = 0; /* a directory's positions are its own */
}

static void truncate_length(struct op *op)
{
    op->offset = (int64_t)any(chance(70) ? 20000 : FILE_BYTES_MAX);
    if (chance(10))
        op->offset = 0;
    if (chance(2))
        op->offset = -1;
}

static void choose_truncate(struct op *op)
{
    choose_path(op, op->path, S_IFREG, 92);
    truncate_length(op);
}

static void act_truncate(const struct op *op, struct side *one, struct outcome *out)
{
    (void)one;
    done(out, truncate(op->path, op->offset));
}

static void choose_ftruncate(struct op *op)
{
    choose_slot(&op->slot);
    truncate_length(op);
}

static void act_ftruncate(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, ftruncate(one->fd[op->slot], op->offset));
}

static void choose_huge(struct op *op)
{
    static const int64_t sizes[] = { 1LL << 31, (1LL << 32) + 5, 1LL << 40, 1LL << 45, INT64_MAX };

    choose_slot(&op->slot);
    op->offset = sizes[any(5)];
}

/* A size that is far off, and back: what is left of it would take years to compare. */
static void act_huge(const struct op *op, struct side *one, struct outcome *out)
{
    struct stat before, st = { 0 };
    int fd = one->fd[op->slot];

    if (fstat(fd, &before) < 0 || !S_ISREG(before.st_mode))
        return;
    done(out, ftruncate(fd, op->offset));
    fstat(fd, &st);
    snprintf(out->text, sizeof(out->text), "size %" PRId64, (int64_t)st.st_size);
    if (out->ret == 0 && ftruncate(fd, before.st_size) < 0)
        done(out, -1);
}

static void choose_fallocate(struct op *op)
{
    static const int modes[] = { 0,
                                 FALLOC_FL_KEEP_SIZE,
                                 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                 FALLOC_FL_ZERO_RANGE,
                                 FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
                                 FALLOC_FL_PUNCH_HOLE };

    choose_io(op);
    const char *name = op->kind->name;
    int first = strcmp(name, "fallocate") == 0 ? 0 : strcmp(name, "punch") == 0 ? 2 : 3;
    op->flags = modes[first + (first == 2 ? 3 * chance(5) : (int)any(2))];
}

static void act_fallocate(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, fallocate(one->fd[op->slot], op->flags, op->offset, (off_t)op->length));
}

static bool is_zero(int fd, int64_t from, int64_t to)
{
    for (int64_t start = from & ~4095; start < to; start += IO_BYTES_MAX) {
        ssize_t bytes = pread(fd, buffer, IO_BYTES_MAX, start);
        for (int64_t i = start < from ? from - start : 0; i < bytes && start + i < to; i++)
            if (buffer[i])
                return false;
        if (bytes < 0)
            return false;
    }
    return true;
}

/* File systems differ in what they call a hole. What must hold everywhere: no data in a hole, and
 * both searches stay within the file. */
static const char *seek_fault(int fd, int64_t offset, int64_t size)
{
    int64_t data = lseek(fd, offset, SEEK_DATA), hole = lseek(fd, offset, SEEK_HOLE);

    if (offset >= size)
        return data < 0 && hole < 0 ? "beyond" : "found something beyond the end";
    if (hole < offset || hole > size)
        return "a hole out of the file";
    if (data >= 0 && (data < offset || data >= size))
        return "data out of the file";
    if (!is_zero(fd, offset, data < 0 ? size : data))
        return "data in what is said to be a hole";
    return "fine";
}

static void act_seek_data(const struct op *op, struct side *one, struct outcome *out)
{
    struct stat st;
    int fd = one->fd[op->slot];
    int status = fcntl(fd, F_GETFL);

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (status & O_ACCMODE) == O_WRONLY)
        return;
    int64_t position = lseek(fd, 0, SEEK_CUR);
    snprintf(out->text, sizeof(out->text), "%s", seek_fault(fd, op->offset, st.st_size));
    lseek(fd, position, SEEK_SET);
}

static void choose_copy(struct op *op)
{
    choose_io(op);
    choose_slot(&op->slot2);
    op->offset2 = (int64_t)any(FILE_BYTES_MAX / 4);
    if (slots[op->slot2].direct)
        op->offset2 &= ~4095;
    op->length = any(IO_BYTES_MAX);
}

/* A copy may be cut short at will; what counts is the whole. */
static void act_copy(const struct op *op, struct side *one, struct outcome *out)
{
    off64_t from = op->offset, to = op->offset2;
    uint64_t left = op->length;
    ssize_t bytes = 0;

    while (left && (bytes = copy_file_range(one->fd[op->slot], &from, one->fd[op->slot2], &to, left,
                                            0)) > 0)
        left -= (uint64_t)bytes;
    done(out, bytes < 0 && left == op->length ? -1 : (int64_t)(op->length - left));
}

static bool mapping_range(const struct op *op, int fd, int64_t *ret_start, size_t *ret_bytes)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    *ret_start = op->offset % st.st_size & ~4095;
    int64_t left = st.st_size - *ret_start;
    *ret_bytes = (size_t)(left < (int64_t)op->length ? left : (int64_t)op->length);
    return *ret_bytes > 0;
}

static void act_mmap_read(const struct op *op, struct side *one, struct outcome *out)
{
    int fd = one->fd[op->slot];
    int64_t start;
    size_t bytes;

    if (!mapping_range(op, fd, &start, &bytes))
        return;
    void *map = mmap(NULL, bytes, PROT_READ, op->flags ? MAP_SHARED : MAP_PRIVATE, fd, start);
    done(out, map == MAP_FAILED ? -1 : (int64_t)bytes);
    if (map == MAP_FAILED)
        return;
    keep_data(out, map, (int64_t)bytes);
    munmap(map, bytes);
}

static void act_mmap_write(const struct op *op, struct side *one, struct outcome *out)
{
    int fd = one->fd[op->slot];
    int64_t start;
    size_t bytes;

    if (!mapping_range(op, fd, &start, &bytes))
        return;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);
    done(out, map == MAP_FAILED ? -1 : (int64_t)bytes);
    if (map == MAP_FAILED)
        return;
    fill(op);
    memcpy(map, buffer, bytes);
    if (msync(map, bytes, MS_SYNC) < 0)
        done(out, -1);
    munmap(map, bytes);
}

static void choose_mmap(struct op *op)
{
    choose_io(op);
    op->flags = chance(60);
}

static void act_fsync(const struct op *op, struct side *one, struct outcome *out)
{
    int fd = one->fd[op->slot];

    done(out, op->flags ? fdatasync(fd) : fsync(fd));
}

static void choose_fsync(struct op *op)
{
    choose_slot(&op->slot);
    op->flags = chance(50);
}

/* ---------------------------------------------------------------- attributes */

static void stat_done(const struct stat *st, bool is_root, int ret, struct outcome *out)
{
    done(out, ret);
    if (ret == 0)
        stat_text(st, is_root, out->text, sizeof(out->text));
}

static bool is_root_of(const struct side *one, const struct stat *st)
{
    struct stat root;

    return fstat(one->root_fd, &root) == 0 && root.st_ino == st->st_ino;
}

static void act_stat(const struct op *op, struct side *one, struct outcome *out)
{
    struct stat st;
    int ret = fstatat(start_fd(op, one), op->path, &st, op->flags);

    stat_done(&st, ret == 0 && is_root_of(one, &st), ret, out);
}

static void choose_stat(struct op *op)
{
    choose_old(op);
    op->flags = chance(70) ? AT_SYMLINK_NOFOLLOW : 0;
    if (chance(8))
        choose_base(op);
}

static void act_fstat(const struct op *op, struct side *one, struct outcome *out)
{
    struct stat st;
    int ret = fstat(one->fd[op->slot], &st);

    stat_done(&st, ret == 0 && is_root_of(one, &st), ret, out);
}

static void choose_access(struct op *op)
{
    choose_old(op);
    op->mode = (mode_t)any(8);
    op->flags = AT_EACCESS;
}

static void act_access(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, faccessat(start_fd(op, one), op->path, (int)op->mode, op->flags));
}

static void choose_chmod(struct op *op)
{
    choose_old(op);
    choose_file_mode(op);
    if (table_type(op->path) == S_IFDIR && chance(80))
        op->mode = dir_modes[any(sizeof(dir_modes) / sizeof(*dir_modes))];
}

static void act_chmod(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, fchmodat(start_fd(op, one), op->path, op->mode, 0));
}

static void choose_fchmod(struct op *op)
{
    choose_slot(&op->slot);
    choose_file_mode(op);
}

static void act_fchmod(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, fchmod(one->fd[op->slot], op->mode));
}

static void choose_owner(struct op *op)
{
    static const unsigned ids[] = { 0, 1000, 1001, 2000, 65534, (unsigned)-1 };

    op->uid = ids[any(6)];
    op->gid = ids[any(6)];
}

static void choose_chown(struct op *op)
{
    choose_old(op);
    choose_owner(op);
    op->flags = chance(60) ? AT_SYMLINK_NOFOLLOW : 0;
}

static void act_chown(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, fchownat(start_fd(op, one), op->path, op->uid, op->gid, op->flags));
}

static void choose_fchown(struct op *op)
{
    choose_slot(&op->slot);
    choose_owner(op);
}

static void act_fchown(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, fchown(one->fd[op->slot], op->uid, op->gid));
}

static void choose_times(struct op *op)
{
    for (int i = 0; i < 2; i++) {
        op->times[i].tv_sec = (time_t)(any(1000000000) + (chance(20) ? 1ULL << 32 : 0));
        op->times[i].tv_nsec = (long)any(1000000000);
        if (chance(15))
            op->times[i].tv_nsec = UTIME_NOW;
        else if (chance(15))
            op->times[i].tv_nsec = UTIME_OMIT;
    }
}

/* Right after they were set, both times are what they were set to. */
static void show_times(const struct op *op, const struct stat *st, struct outcome *out)
{
    const struct timespec *now[2] = { &st->st_atim, &st->st_mtim };
    size_t used = 0;

    for (int i = 0; i < 2; i++)
        if (op->times[i].tv_nsec == UTIME_NOW)
            used += (size_t)snprintf(out->text + used, sizeof(out->text) - used, "%s ",
                                     time_is_of_the_clock(now[i]) ? "now" : "not now");
        else if (op->times[i].tv_nsec != UTIME_OMIT)
            used += (size_t)snprintf(out->text + used, sizeof(out->text) - used,
                                     "%" PRId64 ".%09ld ", (int64_t)now[i]->tv_sec,
                                     now[i]->tv_nsec);
}

static void choose_utimens(struct op *op)
{
    choose_old(op);
    choose_times(op);
    op->flags = chance(60) ? AT_SYMLINK_NOFOLLOW : 0;
}

static void act_utimens(const struct op *op, struct side *one, struct outcome *out)
{
    struct stat st;

    done(out, utimensat(start_fd(op, one), op->path, op->times, op->flags));
    if (out->ret == 0 && fstatat(start_fd(op, one), op->path, &st, op->flags) == 0)
        show_times(op, &st, out);
}

static void choose_futimens(struct op *op)
{
    choose_slot(&op->slot);
    choose_times(op);
}

static void act_futimens(const struct op *op, struct side *one, struct outcome *out)
{
    struct stat st;

    done(out, futimens(one->fd[op->slot], op->times));
    if (out->ret == 0 && fstat(one->fd[op->slot], &st) == 0)
        show_times(op, &st, out);
}

static void act_statfs(const struct op *op, struct side *one, struct outcome *out)
{
    struct statvfs st;

    (void)op;
    done(out, fstatvfs(one->root_fd, &st));
    if (out->ret == 0)
        snprintf(out->text, sizeof(out->text), "names %lu %s", st.f_namemax,
                 st.f_bsize && st.f_frsize && st.f_blocks >= st.f_bfree &&
                         st.f_bfree >= st.f_bavail && st.f_bavail && st.f_files >= st.f_ffree
                     ? "fine"
                     : "strange");
}

/* ---------------------------------------------------------------- names and links */

static void choose_link(struct op *op)
{
    choose_path(op, op->path2, S_IFREG, 92);
    choose_path(op, op->path, S_IFREG, 15);
    op->flags = chance(15) ? AT_SYMLINK_FOLLOW : 0;
}

static void act_link(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, linkat(one->root_fd, op->path2, start_fd(op, one), op->path, op->flags));
}

static void after_link(const struct op *op, const struct outcome *out)
{
    if (out->ret == 0 && !op->odd && table_type(op->path2))
        table_add(op->path, table_type(op->path2));
}

static void choose_unlink(struct op *op)
{
    choose_path(op, op->path, chance(80) ? S_IFREG : 0, 92);
    if (chance(8))
        choose_base(op);
}

static void act_unlink(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, unlinkat(start_fd(op, one), op->path, 0));
}

static void choose_rename(struct op *op)
{
    choose_path(op, op->path2, chance(60) ? S_IFREG : 0, 94);
    choose_path(op, op->path, table_type(op->path2), 45);
}

static void choose_rename_flags(struct op *op)
{
    choose_rename(op);
    op->flags = chance(50) ? 1 : 2; /* RENAME_NOREPLACE, RENAME_EXCHANGE */
}

static void act_rename(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, renameat2(one->root_fd, op->path2, one->root_fd, op->path, (unsigned)op->flags));
}

static void after_rename(const struct op *op, const struct outcome *out)
{
    size_t bytes = strlen(op->path2);
    mode_t type = table_type(op->path2);

    if (out->ret < 0 || op->odd || op->flags == 2 || !strcmp(op->path, op->path2))
        return;
    table_remove(op->path2);
    table_remove(op->path);
    for (int i = 0; i < entries; i++) {
        char rest[PATH_BYTES];
        if (strncmp(table[i].path, op->path2, bytes) || table[i].path[bytes] != '/')
            continue;
        strcpy(rest, table[i].path + bytes);
        if (strlen(op->path) + strlen(rest) < PATH_BYTES)
            snprintf(table[i].path, PATH_BYTES, "%.400s%.290s", op->path, rest);
    }
    if (type)
        table_add(op->path, type);
}

static void choose_mkdir(struct op *op)
{
    choose_path(op, op->path, 0, 10);
    op->mode = dir_modes[any(sizeof(dir_modes) / sizeof(*dir_modes))];
    if (chance(6))
        choose_base(op);
}

static void act_mkdir(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, mkdirat(start_fd(op, one), op->path, op->mode));
}

static void after_mkdir(const struct op *op, const struct outcome *out)
{
    if (out->ret == 0 && !op->odd)
        table_add(op->path, S_IFDIR);
}

static void choose_rmdir(struct op *op)
{
    choose_path(op, op->path, S_IFDIR, 92);
}

static void act_rmdir(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, unlinkat(start_fd(op, one), op->path, AT_REMOVEDIR));
}

/* The text leads down, to nowhere, or around: never up. */
static void choose_symlink(struct op *op)
{
    char name[300];

    choose_path(op, op->path, 0, 10);
    new_name(op->path2, PATH_BYTES);
    if (chance(20)) {
        new_name(name, sizeof(name));
        snprintf(op->path2 + strlen(op->path2), PATH_BYTES - strlen(op->path2), "/%s", name);
    }
    if (chance(10))
        strcpy(op->path2, "/dev/null/nowhere");
}

static void act_symlink(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, symlinkat(op->path2, start_fd(op, one), op->path));
}

static void after_symlink(const struct op *op, const struct outcome *out)
{
    if (out->ret == 0 && !op->odd)
        table_add(op->path, S_IFLNK);
}

static void choose_readlink(struct op *op)
{
    choose_path(op, op->path, S_IFLNK, 92);
    op->length = chance(20) ? 1 + any(8) : PATH_BYTES;
}

static void act_readlink(const struct op *op, struct side *one, struct outcome *out)
{
    char text[PATH_BYTES];

    done(out, readlinkat(start_fd(op, one), op->path, text, op->length));
    keep_data(out, text, out->ret);
}

static void choose_mknod(struct op *op)
{
    static const mode_t types[] = { S_IFIFO, S_IFIFO, S_IFREG, S_IFSOCK, S_IFCHR };

    choose_path(op, op->path, 0, 10);
    choose_file_mode(op);
    op->mode |= types[any(5)];
}

static void act_mknod(const struct op *op, struct side *one, struct outcome *out)
{
    done(out,
         mknodat(start_fd(op, one), op->path, op->mode, S_ISCHR(op->mode) ? makedev(1, 3) : 0));
}

static void after_mknod(const struct op *op, const struct outcome *out)
{
    if (out->ret == 0 && !op->odd)
        table_add(op->path, op->mode & S_IFMT);
}

static void choose_readdir(struct op *op)
{
    choose_path(op, op->path, S_IFDIR, 95);
    if (chance(15))
        strcpy(op->path, ".");
}

static void append_type(const struct dirent *entry, char *text, size_t bytes)
{
    snprintf(text, bytes, "%.255s:%d", entry->d_name, entry->d_type);
}

static int list_names(DIR *dir, char **name)
{
    struct dirent *entry;
    int count = 0;

    while ((errno = 0, entry = readdir(dir)) && count < NAMES_MAX) {
        char text[300];
        append_type(entry, text, sizeof(text));
        name[count++] = strdup(text);
    }
    return errno ? -1 : count;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names and types, . and .. among them, sorted: the order is the file system's own. */
static void act_readdir(const struct op *op, struct side *one, struct outcome *out)
{
    static char *name[NAMES_MAX];
    int fd = openat(start_fd(op, one), op->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        done(out, -1);
        return;
    }
    int count = list_names(dir, name);
    done(out, count);
    qsort(name, count < 0 ? 0 : (size_t)count, sizeof(*name), text_compare);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        out->data = realloc(out->data, bytes + 300);
        if (!out->data)
            die("memory");
        strcpy((char *)out->data + bytes, name[i]);
        bytes += strlen(name[i]) + 1;
        free(name[i]);
    }
    out->data_bytes = bytes;
    closedir(dir);
}

/* ---------------------------------------------------------------- extended attributes */

static void choose_xattr(struct op *op)
{
    static const char *const names[] = { "user.a", "user.a", "user.b", "user.long.name.of.it" };

    choose_path(op, op->path, chance(80) ? S_IFREG : 0, 95);
    if (entries && chance(70)) /* few, so that what is set is also read */
        snprintf(op->path, PATH_BYTES, "%s", table[any(entries < 6 ? (uint64_t)entries : 6)].path);
    snprintf(op->xattr, sizeof(op->xattr), "%s", names[any(4)]);
    if (chance(2))
        snprintf(op->xattr, sizeof(op->xattr), "%s", chance(50) ? "user." : "nosuch.a");
    op->length = chance(10) ? 0 : any(XATTR_BYTES_MAX);
    op->flags = chance(25) ? XATTR_CREATE : chance(25) ? XATTR_REPLACE : 0;
    op->data_seed = any(UINT64_MAX);
}

static void choose_getxattr(struct op *op)
{
    choose_xattr(op);
    if (chance(75))
        op->length = XATTR_BYTES_MAX;
}

static void choose_fxattr(struct op *op)
{
    choose_xattr(op);
    choose_slot(&op->slot);
}

static void act_setxattr(const struct op *op, struct side *one, struct outcome *out)
{
    (void)one;
    fill(op);
    done(out, lsetxattr(op->path, op->xattr, buffer, op->length, op->flags));
}

static void act_fsetxattr(const struct op *op, struct side *one, struct outcome *out)
{
    fill(op);
    done(out, fsetxattr(one->fd[op->slot], op->xattr, buffer, op->length, op->flags));
}

static void act_getxattr(const struct op *op, struct side *one, struct outcome *out)
{
    (void)one;
    done(out, lgetxattr(op->path, op->xattr, buffer, op->length));
    keep_data(out, buffer, op->length ? out->ret : 0);
}

static void act_fgetxattr(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, fgetxattr(one->fd[op->slot], op->xattr, buffer, op->length));
    keep_data(out, buffer, op->length ? out->ret : 0);
}

static void act_removexattr(const struct op *op, struct side *one, struct outcome *out)
{
    (void)one;
    done(out, lremovexattr(op->path, op->xattr));
}

static void act_fremovexattr(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, fremovexattr(one->fd[op->slot], op->xattr));
}

static void act_listxattr(const struct op *op, struct side *one, struct outcome *out)
{
    (void)one;
    xattrs_text(op->path, out->text, sizeof(out->text));
}

/* ---------------------------------------------------------------- locks */

static void choose_lock(struct op *op)
{
    static const int types[] = { F_RDLCK, F_WRLCK, F_UNLCK };

    choose_slot(&op->slot);
    op->flags = types[any(3)];
    op->offset = (int64_t)any(100);
    op->length = chance(20) ? 0 : 1 + any(100);
}

static struct flock lock_of(const struct op *op)
{
    return (struct flock){ .l_type = (short)op->flags,
                           .l_whence = SEEK_SET,
                           .l_start = op->offset,
                           .l_len = (off_t)op->length };
}

/* The descriptors own them, so those of one process are in each other's way. */
static void act_lock(const struct op *op, struct side *one, struct outcome *out)
{
    struct flock lock = lock_of(op);

    done(out, fcntl(one->fd[op->slot], F_OFD_SETLK, &lock));
}

static void act_getlock(const struct op *op, struct side *one, struct outcome *out)
{
    struct flock lock = lock_of(op);

    if (lock.l_type == F_UNLCK)
        lock.l_type = F_WRLCK;
    done(out, fcntl(one->fd[op->slot], F_OFD_GETLK, &lock));
    if (out->ret == 0 && lock.l_type == F_UNLCK)
        snprintf(out->text, sizeof(out->text), "free");
    else if (out->ret == 0) /* by which of several is nobody's promise */
        snprintf(out->text, sizeof(out->text), "taken");
}

static void choose_flock(struct op *op)
{
    static const int types[] = { LOCK_SH | LOCK_NB, LOCK_EX | LOCK_NB, LOCK_UN };

    choose_slot(&op->slot);
    op->flags = types[any(3)];
}

static void act_flock(const struct op *op, struct side *one, struct outcome *out)
{
    done(out, flock(one->fd[op->slot], op->flags));
}

/* ---------------------------------------------------------------- the list */

#define RANGE (SLOT | OFFSET | LENGTH)

struct kind kinds[] = {
    { "open", "open", 150, PATH | SLOT | FLAGS | MODE, choose_open, act_open, after_open, 0 },
    { "open-direct", "direct", 12, PATH | SLOT | FLAGS | MODE, choose_open_direct, act_open,
      after_open, 0 },
    { "close", "open", 45, SLOT, choose_open_file, act_close, after_close, 0 },
    { "read", "data", 30, SLOT | LENGTH, choose_io, act_read, NULL, 0 },
    { "pread", "data", 40, RANGE, choose_io, act_pread, NULL, 0 },
    { "write", "data", 40, SLOT | LENGTH, choose_io, act_write, NULL, 0 },
    { "pwrite", "data", 80, RANGE, choose_io, act_pwrite, NULL, 0 },
    { "pread-misaligned", "misaligned", 4, RANGE, choose_misaligned, act_pread, NULL, 0 },
    { "pwrite-misaligned", "misaligned", 4, RANGE, choose_misaligned, act_pwrite, NULL, 0 },
    { "lseek", "data", 12, SLOT | OFFSET | FLAGS, choose_seek_set, act_seek_set, NULL, 0 },
    { "truncate", "size", 20, PATH | OFFSET, choose_truncate, act_truncate, NULL, 0 },
    { "ftruncate", "size", 20, SLOT | OFFSET, choose_ftruncate, act_ftruncate, NULL, 0 },
    { "huge", "huge", 4, SLOT | OFFSET, choose_huge, act_huge, NULL, 0 },
    { "fallocate", "allocate", 12, RANGE | FLAGS, choose_fallocate, act_fallocate, NULL, 0 },
    { "punch", "allocate", 12, RANGE | FLAGS, choose_fallocate, act_fallocate, NULL, 0 },
    { "zero", "allocate", 12, RANGE | FLAGS, choose_fallocate, act_fallocate, NULL, 0 },
    { "seek-data", "seek", 15, SLOT | OFFSET, choose_io, act_seek_data, NULL, 0 },
    { "copy", "copy", 15, RANGE | SLOT2 | OFFSET2, choose_copy, act_copy, NULL, 0 },
    { "mmap-read", "mmap", 12, RANGE | FLAGS, choose_mmap, act_mmap_read, NULL, 0 },
    { "mmap-write", "mmap", 12, RANGE, choose_mmap, act_mmap_write, NULL, 0 },
    { "fsync", "sync", 10, SLOT | FLAGS, choose_fsync, act_fsync, NULL, 0 },
    { "stat", "stat", 45, PATH | FLAGS, choose_stat, act_stat, NULL, 0 },
    { "fstat", "stat", 30, SLOT, choose_open_file, act_fstat, NULL, 0 },
    { "access", "access", 20, PATH | MODE | FLAGS, choose_access, act_access, NULL, 0 },
    { "chmod", "mode", 30, PATH | MODE, choose_chmod, act_chmod, NULL, 0 },
    { "fchmod", "mode", 8, SLOT | MODE, choose_fchmod, act_fchmod, NULL, 0 },
    { "chown", "owner", 25, PATH | OWNER | FLAGS, choose_chown, act_chown, NULL, 0 },
    { "fchown", "owner", 6, SLOT | OWNER, choose_fchown, act_fchown, NULL, 0 },
    { "utimens", "times", 25, PATH | TIMES | FLAGS, choose_utimens, act_utimens, NULL, 0 },
    { "futimens", "times", 8, SLOT | TIMES, choose_futimens, act_futimens, NULL, 0 },
    { "statfs", "statfs", 3, 0, NULL, act_statfs, NULL, 0 },
    { "link", "link", 40, PATH | PATH2 | FLAGS, choose_link, act_link, after_link, 0 },
    { "unlink", "unlink", 22, PATH, choose_unlink, act_unlink, after_remove, 0 },
    { "rename", "rename", 60, PATH | PATH2, choose_rename, act_rename, after_rename, 0 },
    { "rename-flags", "rename-flags", 12, PATH | PATH2 | FLAGS, choose_rename_flags, act_rename,
      after_rename, 0 },
    { "mkdir", "dir", 40, PATH | MODE, choose_mkdir, act_mkdir, after_mkdir, 0 },
    { "rmdir", "dir", 20, PATH, choose_rmdir, act_rmdir, after_remove, 0 },
    { "readdir", "dir", 25, PATH, choose_readdir, act_readdir, NULL, 0 },
    { "symlink", "symlink", 25, PATH | PATH2, choose_symlink, act_symlink, after_symlink, 0 },
    { "readlink", "symlink", 20, PATH | LENGTH, choose_readlink, act_readlink, NULL, 0 },
    { "mknod", "mknod", 15, PATH | MODE, choose_mknod, act_mknod, after_mknod, 0 },
    { "setxattr", "xattr", 25, PATH | XATTR | LENGTH | FLAGS, choose_xattr, act_setxattr, NULL, 0 },
    { "fsetxattr", "xattr", 8, SLOT | XATTR | LENGTH | FLAGS, choose_fxattr, act_fsetxattr, NULL,
      0 },
    { "getxattr", "xattr", 20, PATH | XATTR | LENGTH, choose_getxattr, act_getxattr, NULL, 0 },
    { "fgetxattr", "xattr", 6, SLOT | XATTR | LENGTH, choose_fxattr, act_fgetxattr, NULL, 0 },
    { "listxattr", "xattr", 12, PATH, choose_old, act_listxattr, NULL, 0 },
    { "removexattr", "xattr", 12, PATH | XATTR, choose_xattr, act_removexattr, NULL, 0 },
    { "fremovexattr", "xattr", 4, SLOT | XATTR, choose_fxattr, act_fremovexattr, NULL, 0 },
    { "lock", "locks", 14, SLOT | FLAGS | OFFSET | LENGTH, choose_lock, act_lock, NULL, 0 },
    { "getlock", "locks", 6, SLOT | FLAGS | OFFSET | LENGTH, choose_lock, act_getlock, NULL, 0 },
    { "flock", "flock", 8, SLOT | FLAGS, choose_flock, act_flock, NULL, 0 },
    { .name = NULL },
};

enum {
    KINDS = sizeof(kinds) / sizeof(*kinds)
};

static int64_t succeeded[KINDS], failed[KINDS];

/* ---------------------------------------------------------------- habits */

/* Not operations, but combinations, which --without leaves out for a system that is known to
 * differ there. */

static bool is_orphan(int slot)
{
    struct stat st;

    return slot >= 0 && fstat(side[1].fd[slot], &st) == 0 && st.st_nlink == 0;
}

static bool is_special_orphan(int slot)
{
    struct stat st;

    return is_orphan(slot) && fstat(side[1].fd[slot], &st) == 0 && !S_ISREG(st.st_mode);
}

static void next_slot(struct op *op, bool (*is_spared)(int slot))
{
    for (int i = 0; i < SLOTS && is_spared(op->slot); i++)
        op->slot = (op->slot + 1) % SLOTS;
}

/* An open file without a name: its attributes are left alone, and others than root, whose writes
 * take away setuid, do not write. What is neither a file nor has a name is left alone altogether:
 * the kernel opens a fifo by itself, and nothing keeps it elsewhere. */
static void spare_orphans(struct op *op)
{
    bool is_attribute = op->kind->fields & (XATTR | OWNER | TIMES | MODE);

    if (op->base >= 0 && is_orphan(op->base))
        op->base = -1;
    if (op->kind->act == act_open || (!is_orphan(op->slot) && !is_orphan(op->slot2)))
        return;
    op->user = 0;
    next_slot(op, is_attribute ? is_orphan : is_special_orphan);
}

/* What is neither a file nor has a name any more: the kernel opens a fifo by itself, so that nobody
 * knows that it is in use. */
static void spare_special_orphans(struct op *op)
{
    if (op->base >= 0 && is_special_orphan(op->base))
        op->base = -1;
    if (op->kind->act != act_open)
        next_slot(op, is_special_orphan);
}

/* No file is open for appending: then pages that were changed through a mapping can be written
 * back through any of its descriptors. */
static void spare_append(struct op *op)
{
    if (op->kind->act == act_open)
        op->flags &= ~O_APPEND;
}

static void spare_user_chown(struct op *op)
{
    if (op->kind->act == act_chown || op->kind->act == act_fchown)
        op->user = 0;
}

/* A name of a file that has others is not replaced. */
static void spare_rename_over_links(struct op *op)
{
    struct stat st;

    if (op->kind->act == act_rename && op->flags != 2 &&
        fstatat(side[1].root_fd, op->path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
        st.st_nlink > 1)
        memcpy(op->path, op->path2, PATH_BYTES);
}

static void spare_user_link(struct op *op)
{
    if (op->kind->act == act_link)
        op->user = 0;
}

static void spare_read_append(struct op *op)
{
    if (op->kind->act == act_open && (op->flags & O_ACCMODE) == O_RDONLY)
        op->flags &= ~O_APPEND;
}

/* Nothing is setuid or setgid, directories that are made so apart. */
static void spare_setid(struct op *op)
{
    if (op->kind->act != act_mkdir && op->kind->act != act_access)
        op->mode &= ~(mode_t)(S_ISUID | S_ISGID);
}

static void spare_list_unreadable(struct op *op)
{
    if (op->kind->act == act_listxattr)
        op->user = 0;
}

static struct habit {
    const char *name;
    void (*spare)(struct op *op);
    bool off;
} habits[] = {
    { "orphan-attributes", spare_orphans, false },
    { "orphan-special", spare_special_orphans, false },
    { "append", spare_append, false },
    { "read-append", spare_read_append, false },
    { "rename-over-links", spare_rename_over_links, false },
    { "user-chown", spare_user_chown, false },
    { "user-link", spare_user_link, false },
    { "list-unreadable", spare_list_unreadable, false },
    { "setid", spare_setid, false },
};

enum {
    HABITS = sizeof(habits) / sizeof(*habits)
};

/* A tree that grows too large is thinned out: names go faster than they come. */
int kind_weight(const struct kind *kind)
{
    bool removes = kind->act == act_unlink || kind->act == act_rmdir;

    if (kind->off)
        return 0;
    return removes && entries > ENTRIES_MAX / 2 ? kind->weight * 8 : kind->weight;
}

void kind_count(const struct kind *kind, bool is_success)
{
    (is_success ? succeeded : failed)[kind - kinds]++;
}

static bool habit_switch(const char *name, bool on)
{
    bool found = false;

    for (int i = 0; i < HABITS; i++)
        if (strcmp(habits[i].name, name) == 0) {
            habits[i].off = !on;
            found = true;
        }
    return found;
}

void kinds_switch(const char *list, bool on)
{
    char *copy = list ? strdup(list) : NULL, *rest = copy;
    const char *word;

    for (struct kind *kind = kinds; !list && kind->name; kind++)
        kind->off = !on;
    while (list && (word = strsep(&rest, ","))) {
        bool found = *word == 0 || habit_switch(word, on);
        for (struct kind *kind = kinds; kind->name; kind++)
            if (strcmp(kind->name, word) == 0 || strcmp(kind->group, word) == 0) {
                kind->off = !on;
                found = true;
            }
        errno = EINVAL;
        if (!found)
            die(word);
    }
    free(copy);
}

void kinds_print(void)
{
    for (int i = 0; kinds[i].name; i++)
        printf("  %-18s %-13s %8" PRId64 " succeeded %8" PRId64 " failed\n", kinds[i].name,
               kinds[i].group, succeeded[i], failed[i]);
}

void op_choose(struct op *op)
{
    static const mode_t umasks[] = { 0, 022, 022, 077 };

    op->umask = umasks[any(4)];
    op->user = chance(70) ? 0 : 1 + (int)any(USERS - 1);
    if (op->kind->choose)
        op->kind->choose(op);
    for (int i = 0; i < HABITS; i++)
        if (habits[i].off)
            habits[i].spare(op);
}
