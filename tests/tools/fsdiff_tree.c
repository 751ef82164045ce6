/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fsdiff's view of results and of whole trees, and the differences that it plants itself. */
#include "fsdiff.h"

#include <limits.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

enum {
    CLOCK_SLACK_S = 7200,
    CONTENT_CHUNK = 1 << 20,
};

/* ---------------------------------------------------------------- outcomes */

void outcome_reset(struct outcome *out)
{
    free(out->data);
    *out = (struct outcome){ 0 };
}

bool outcome_equal(const struct outcome *a, const struct outcome *b)
{
    return a->ret == b->ret && a->err == b->err && strcmp(a->text, b->text) == 0 &&
           a->data_bytes == b->data_bytes &&
           memcmp(a->data ? a->data : (void *)"", b->data ? b->data : (void *)"", a->data_bytes) ==
               0;
}

void outcome_print(const char *name, const struct outcome *out)
{
    printf("  %s: %" PRId64 "%s%s%s%s\n", name, out->ret, out->err ? " " : "",
           out->err ? strerrorname_np(out->err) : "", *out->text ? "  " : "", out->text);
}

void outcome_print_data_difference(const struct outcome *a, const struct outcome *b)
{
    if (a->data_bytes != b->data_bytes) {
        printf("  data: %zu bytes, %zu bytes\n", a->data_bytes, b->data_bytes);
        return;
    }
    for (size_t i = 0; i < a->data_bytes; i++) {
        if (a->data[i] == b->data[i])
            continue;
        printf("  data differs from byte %zu of %zu on: %02x, %02x\n", i, a->data_bytes, a->data[i],
               b->data[i]);
        return;
    }
}

/* ---------------------------------------------------------------- names, attributes, xattrs */

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The descriptor's own position stays: a new description is read. */
int names_read(int dir_fd, struct names *names)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    *names = (struct names){ 0 };
    if (!dir)
        return -errno;
    names->name = calloc(NAMES_MAX, sizeof(*names->name));
    if (!names->name)
        die("memory");
    while ((errno = 0, entry = readdir(dir)) && names->count < NAMES_MAX)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            names->name[names->count++] = strdup(entry->d_name);
    int err = errno;
    closedir(dir);
    qsort(names->name, (size_t)names->count, sizeof(*names->name), name_compare);
    return -err;
}

void names_free(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
}

bool time_is_of_the_clock(const struct timespec *ts)
{
    return ts->tv_sec > began_s - CLOCK_SLACK_S && ts->tv_sec < time(NULL) + CLOCK_SLACK_S;
}

/* What must be equal. Not: a directory's size, the root's link count (a brick keeps something of
 * its own there), atime (each cache has its own idea), a fifo's mtime (the kernel writes into it
 * and tells nobody), a time of the clock. */
void stat_text(const struct stat *st, bool is_root, char *text, size_t bytes)
{
    bool is_dir = S_ISDIR(st->st_mode);
    bool is_device = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
    char mtime[64] = "now", nlink[32] = "-", size[32] = "-", rdev[32] = "";

    if (!time_is_of_the_clock(&st->st_mtim))
        snprintf(mtime, sizeof(mtime), "%" PRId64 ".%09ld", (int64_t)st->st_mtim.tv_sec,
                 st->st_mtim.tv_nsec);
    if (!is_root)
        snprintf(nlink, sizeof(nlink), "%lu", (unsigned long)st->st_nlink);
    if (!is_dir)
        snprintf(size, sizeof(size), "%" PRId64, (int64_t)st->st_size);
    if (is_device)
        snprintf(rdev, sizeof(rdev), " rdev %u:%u", major(st->st_rdev), minor(st->st_rdev));
    snprintf(text, bytes, "mode %06o uid %u gid %u nlink %s size %s mtime %s%s%s", st->st_mode,
             st->st_uid, st->st_gid, nlink, size, is_root || S_ISFIFO(st->st_mode) ? "-" : mtime,
             rdev, time_is_of_the_clock(&st->st_ctim) ? "" : " ctime is not of the clock");
}

void xattrs_text(const char *path, char *text, size_t bytes)
{
    char list[65536], *name[256], value[XATTR_BYTES_MAX + 1];
    ssize_t list_bytes = listxattr(path, list, sizeof(list));
    size_t used = 0;
    int count = 0;

    *text = 0;
    if (list_bytes < 0) {
        snprintf(text, bytes, "list: %s", strerrorname_np(errno));
        return;
    }
    for (char *at = list; at < list + list_bytes && count < 256; at += strlen(at) + 1)
        if (strncmp(at, "user.", 5) == 0)
            name[count++] = at;
    qsort(name, (size_t)count, sizeof(*name), name_compare);
    for (int i = 0; i < count && used < bytes - 1; i++) {
        ssize_t value_bytes = getxattr(path, name[i], value, sizeof(value));
        uint64_t hash = 0;
        for (ssize_t at = 0; at < value_bytes; at++)
            hash = mix(hash ^ (unsigned char)value[at]);
        used += (size_t)snprintf(text + used, bytes - used, "%.40s=%zd:%08x ", name[i], value_bytes,
                                 (unsigned)hash);
    }
}

/* ---------------------------------------------------------------- trees */

struct walk {
    int fd[2]; /* the directory, on both sides */
    char path[PATH_MAX];
    int depth;
};

static bool differs(const char *path, const char *what, const char *a, const char *b)
{
    printf("DIFFERENCE in the trees: %s: %s\n  A: %s\n  B: %s\n", *path ? path : ".", what, a, b);
    return false;
}

static bool same_link_text(const struct walk *walk, const char *name, const char *path)
{
    char text[2][PATH_MAX + 1];

    for (int i = 0; i < 2; i++) {
        ssize_t bytes = readlinkat(walk->fd[i], name, text[i], PATH_MAX);
        text[i][bytes < 0 ? 0 : bytes] = 0;
    }
    return strcmp(text[0], text[1]) == 0 || differs(path, "link text", text[0], text[1]);
}

static bool same_content_of(const int *fd, const char *path)
{
    static unsigned char chunk[2][CONTENT_CHUNK];
    char text[2][64];
    int64_t offset = 0;
    ssize_t bytes[2];

    do {
        for (int i = 0; i < 2; i++) {
            bytes[i] = pread(fd[i], chunk[i], CONTENT_CHUNK, offset);
            snprintf(text[i], sizeof(text[i]), "%zd bytes at %" PRId64 " %s", bytes[i], offset,
                     bytes[i] < 0 ? strerrorname_np(errno) : "");
        }
        if (bytes[0] != bytes[1] || bytes[0] < 0 || memcmp(chunk[0], chunk[1], (size_t)bytes[0]))
            return differs(path, "content", text[0], text[1]);
        offset += bytes[0];
    } while (bytes[0] > 0);
    return true;
}

static bool same_content(const struct walk *walk, const char *name, const char *path)
{
    int fd[2];
    bool same = false;

    for (int i = 0; i < 2; i++)
        fd[i] = openat(walk->fd[i], name, O_RDONLY | O_NOFOLLOW);
    if (fd[0] < 0 || fd[1] < 0)
        differs(path, "cannot be opened", fd[0] < 0 ? "no" : "yes", fd[1] < 0 ? "no" : "yes");
    else
        same = same_content_of(fd, path);
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return same;
}

static bool same_xattrs(const struct walk *walk, const char *name, const char *path)
{
    char text[2][TEXT_BYTES], through[400];

    for (int i = 0; i < 2; i++) {
        snprintf(through, sizeof(through), "/proc/self/fd/%d/%s", walk->fd[i], name);
        xattrs_text(through, text[i], sizeof(text[i]));
    }
    return strcmp(text[0], text[1]) == 0 || differs(path, "xattrs", text[0], text[1]);
}

static bool same_dir(struct walk *walk);

static bool same_subdir(const struct walk *walk, const char *name, const char *path)
{
    struct walk below = { .depth = walk->depth + 1 };
    bool same = false;

    snprintf(below.path, sizeof(below.path), "%s", path);
    for (int i = 0; i < 2; i++)
        below.fd[i] = openat(walk->fd[i], name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (below.fd[0] < 0 || below.fd[1] < 0)
        differs(path, "cannot be opened", "?", "?");
    else
        same = same_dir(&below);
    for (int i = 0; i < 2; i++)
        if (below.fd[i] >= 0)
            close(below.fd[i]);
    return same;
}

static bool same_entry(const struct walk *walk, const char *name)
{
    char text[2][TEXT_BYTES], path[PATH_MAX];
    struct stat st[2];

    snprintf(path, sizeof(path), "%.3700s%s%.300s", walk->path, *walk->path ? "/" : "", name);
    for (int i = 0; i < 2; i++) {
        if (fstatat(walk->fd[i], name, &st[i], AT_SYMLINK_NOFOLLOW) < 0)
            snprintf(text[i], sizeof(text[i]), "stat: %s", strerrorname_np(errno));
        else
            stat_text(&st[i], false, text[i], sizeof(text[i]));
    }
    if (strcmp(text[0], text[1]))
        return differs(path, "attributes", text[0], text[1]);
    if (S_ISLNK(st[0].st_mode))
        return same_link_text(walk, name, path);
    if (S_ISREG(st[0].st_mode) && !same_content(walk, name, path))
        return false;
    if ((S_ISREG(st[0].st_mode) || S_ISDIR(st[0].st_mode)) && !same_xattrs(walk, name, path))
        return false;
    return !S_ISDIR(st[0].st_mode) || same_subdir(walk, name, path);
}

static bool same_names(const struct walk *walk, const struct names *names)
{
    int count = names[0].count < names[1].count ? names[0].count : names[1].count;

    for (int i = 0; i < count; i++)
        if (strcmp(names[0].name[i], names[1].name[i]))
            return differs(walk->path, "names", names[0].name[i], names[1].name[i]);
    if (names[0].count != names[1].count)
        return differs(walk->path, "names", count < names[0].count ? names[0].name[count] : "-",
                       count < names[1].count ? names[1].name[count] : "-");
    return true;
}

static bool same_dir(struct walk *walk)
{
    struct names names[2];
    bool same = true;

    for (int i = 0; i < 2; i++) {
        int ret = names_read(walk->fd[i], &names[i]);
        if (ret < 0)
            same = differs(walk->path, "cannot be listed", side[i].name, strerrorname_np(-ret));
    }
    same = same && same_names(walk, names);
    for (int i = 0; same && i < names[0].count; i++)
        same = same_entry(walk, names[0].name[i]);
    names_free(&names[0]);
    names_free(&names[1]);
    return same;
}

bool tree_compare(const char *when)
{
    struct walk walk = { .fd = { side[0].root_fd, side[1].root_fd } };

    (void)when;
    return same_dir(&walk);
}

int remove_below(int dir_fd)
{
    struct names names;
    int ret = names_read(dir_fd, &names);

    for (int i = 0; i < names.count && ret == 0; i++) {
        if (unlinkat(dir_fd, names.name[i], 0) == 0)
            continue;
        int fd = openat(dir_fd, names.name[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        ret = fd < 0 ? -errno : remove_below(fd);
        if (fd >= 0)
            close(fd);
        if (ret == 0 && unlinkat(dir_fd, names.name[i], AT_REMOVEDIR) < 0)
            ret = -errno;
    }
    names_free(&names);
    errno = -ret;
    return ret < 0 ? -1 : 0;
}

/* ---------------------------------------------------------------- planted differences */

static const char *any_path_of(mode_t type)
{
    const char *found = NULL;
    int seen = 0;

    for (int i = 0; i < entries; i++)
        if ((table[i].type == type || !type) && any((uint64_t)++seen) == 0)
            found = table[i].path;
    return found;
}

static int plant_byte(const char *path)
{
    int fd = openat(side[0].root_fd, path, O_RDWR);
    struct stat st;
    unsigned char byte;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
        return -1;
    int64_t at = (int64_t)any((uint64_t)st.st_size);
    int ret = (int)pread(fd, &byte, 1, at);
    byte ^= 1;
    ret = pwrite(fd, &byte, 1, at) == 1 && ret == 1 ? 0 : -1;
    struct timespec times[2] = { st.st_atim, st.st_mtim };
    ret |= futimens(fd, times);
    close(fd);
    return ret;
}

static int plant_size(const char *path)
{
    int fd = openat(side[0].root_fd, path, O_RDWR);
    struct stat st;
    int ret = fd < 0 || fstat(fd, &st) < 0 ? -1 : ftruncate(fd, st.st_size + 1);

    if (fd >= 0)
        close(fd);
    return ret;
}

static int plant_mode(const char *path)
{
    struct stat st;

    if (fstatat(side[0].root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    return fchmodat(side[0].root_fd, path, (st.st_mode ^ 04) & 07777, 0);
}

static int plant_owner(const char *path)
{
    return fchownat(side[0].root_fd, path, (uid_t)-1, 4242, AT_SYMLINK_NOFOLLOW);
}

static int plant_time(const char *path)
{
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 987654321, .tv_nsec = 5 } };

    return utimensat(side[0].root_fd, path, times, AT_SYMLINK_NOFOLLOW);
}

static int plant_xattr(const char *path)
{
    char through[PATH_BYTES + 64];

    snprintf(through, sizeof(through), "/proc/self/fd/%d/%s", side[0].root_fd, path);
    return setxattr(through, "user.planted", "x", 1, 0);
}

static int plant_name(const char *path)
{
    char name[PATH_BYTES + 16];

    snprintf(name, sizeof(name), "%s/planted", path);
    return mknodat(side[0].root_fd, name, S_IFREG | 0600, 0);
}

static int plant_lost(const char *path)
{
    return unlinkat(side[0].root_fd, path, 0);
}

static int plant_link_text(const char *path)
{
    if (unlinkat(side[0].root_fd, path, 0) < 0)
        return -1;
    return symlinkat("planted", side[0].root_fd, path);
}

static int plant_link(const char *path)
{
    return linkat(side[0].root_fd, path, side[0].root_fd, "planted-link", 0);
}

static const struct {
    const char *name;
    mode_t type; /* of its victim; 0: any */
    int (*act)(const char *path);
} plants[] = {
    { "byte", S_IFREG, plant_byte },           { "size", S_IFREG, plant_size },
    { "mode", S_IFREG, plant_mode },           { "owner", 0, plant_owner },
    { "time", S_IFREG, plant_time },           { "xattr", S_IFREG, plant_xattr },
    { "name", S_IFDIR, plant_name },           { "lost", S_IFREG, plant_lost },
    { "link-text", S_IFLNK, plant_link_text }, { "link", S_IFREG, plant_link },
};

bool plant_exists(const char *what)
{
    for (size_t i = 0; i < sizeof(plants) / sizeof(*plants); i++)
        if (strcmp(plants[i].name, what) == 0)
            return true;
    return strcmp(what, "any") == 0;
}

/* The victims that the table knows may be gone, or be of no use: try until one is changed. */
void plant(const char *what)
{
    for (int attempt = 0; attempt < 2000; attempt++) {
        size_t i = any(sizeof(plants) / sizeof(*plants));
        if (strcmp(what, "any") && strcmp(what, plants[i].name))
            continue;
        const char *path = any_path_of(plants[i].type);
        if (path && plants[i].act(path) == 0) {
            printf("planted: %s of %s\n", plants[i].name, path);
            return;
        }
    }
    printf("nothing to plant %s on\n", what);
    exit(2);
}
