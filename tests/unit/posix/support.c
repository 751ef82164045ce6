/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <xxhash.h>

extern const struct xlator_type xlator_storage_posix;

static void seen_event(struct graph *graph, enum xlator_event event, void *data)
{
    struct brick *brick = graph->on_event_arg;
    (void)data;
    brick->ups += event == EVENT_CHILD_UP;
    brick->downs += event == EVENT_CHILD_DOWN;
}

void brick_new(struct brick *brick)
{
    const char *base = getenv("TMPDIR");
    *brick = (struct brick){};
    snprintf(brick->path, sizeof(brick->path), "%s/brick-XXXXXX", base ? base : "/tmp");
    check(mkdtemp(brick->path));
    check_equal(chmod(brick->path, 0777), 0);
}

int brick_start(struct brick *brick, const char *const *pairs)
{
    const struct xlator_type *type = &xlator_storage_posix;
    char error[OPTION_ERROR_SIZE];

    brick->xl = (struct xlator){ .log = { .name = "posix" }, .name = "posix", .type = type };
    brick->list[0] = &brick->xl;
    brick->graph = (struct graph){
        .xlators = brick->list, .count = 1, .top = &brick->xl, .on_event = seen_event,
        .on_event_arg = brick,
    };
    brick->xl.graph = &brick->graph;
    brick->call = (struct call){ .pid = 1 };
    check_equal(inode_table_new(&brick->graph.inodes), 0);
    check_equal(option_set_put(&brick->xl.options, "directory", brick->path), 0);
    for (; pairs && pairs[0]; pairs += 2)
        check_equal(option_set_put(&brick->xl.options, pairs[0], pairs[1]), 0);
    check_equal(options_validate(type->options, "posix", &brick->xl.options, error), 0);
    brick->xl.state = calloc(1, type->state_size);
    check_equal(options_apply(type->options, &brick->xl.options, brick->xl.state, false), 0);
    xlator_resolve(&brick->xl);
    int ret = type->init(&brick->xl);
    if (ret == 0)
        ret = type->start(&brick->xl);
    brick->root = inode_get(brick->graph.inodes, &gfid_root);
    return ret;
}

void brick_stop(struct brick *brick)
{
    const struct xlator_type *type = brick->xl.type;

    type->stop(&brick->xl);
    inode_unref(TAKE(brick->root));
    check_equal(inode_table_count(brick->graph.inodes), 0);
    type->fini(&brick->xl);
    options_fini(type->options, brick->xl.state);
    free(brick->xl.state);
    inode_table_free(brick->graph.inodes);
    option_set_fini(&brick->xl.options);
}

/* rm(1) finds its way through trees deeper than PATH_MAX. */
void brick_remove(struct brick *brick)
{
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", brick->path, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

/* --- operations ------------------------------------------------------------------------------- */
struct dict *gfid_req(gfid_t *ret_gfid)
{
    struct dict *dict = dict_new();
    gfid_generate(ret_gfid);
    check_equal(dict_set_gfid(dict, "gfid-req", ret_gfid), 0);
    return dict;
}

struct inode *inode_of(struct brick *brick, const struct iatt *stat)
{
    return inode_get(brick->graph.inodes, &stat->gfid);
}

/* After every operation its reply is ended; what the test wants of it was copied. */
#define FINISH(op, member)                                                                         \
    do {                                                                                           \
        if (ret >= 0 && ret_stat)                                                                  \
            *ret_stat = out.member;                                                                \
        op##_reply_fini(&out);                                                                     \
        return ret;                                                                                \
    } while (0)

int do_create(struct brick *brick, struct inode *parent, const char *name, uint32_t flags,
              uint32_t mode, struct fd **ret_fd, struct iatt *ret_stat)
{
    gfid_t gfid;
    AUTO(dict) xdata = gfid_req(&gfid);
    AUTO(fd) fd = fd_new(NULL, flags, 1);
    struct create_args in = { .parent = parent, .fd = fd, .flags = flags, .mode = mode,
                              .name = name, .xdata = xdata };
    struct create_reply out = {};
    int ret = fop_create(&brick->xl, &brick->call, &in, &out);
    if (ret >= 0 && ret_fd)
        *ret_fd = TAKE(fd);
    FINISH(create, stat);
}

int do_mkdir(struct brick *brick, struct inode *parent, const char *name, uint32_t mode,
             struct iatt *ret_stat)
{
    gfid_t gfid;
    AUTO(dict) xdata = gfid_req(&gfid);
    struct mkdir_args in = { .parent = parent, .mode = mode, .name = name, .xdata = xdata };
    struct mkdir_reply out = {};
    int ret = fop_mkdir(&brick->xl, &brick->call, &in, &out);
    FINISH(mkdir, stat);
}

int do_mknod(struct brick *brick, struct inode *parent, const char *name, uint32_t mode,
             struct iatt *ret_stat)
{
    gfid_t gfid;
    AUTO(dict) xdata = gfid_req(&gfid);
    struct mknod_args in = { .parent = parent, .mode = mode, .name = name, .xdata = xdata };
    struct mknod_reply out = {};
    int ret = fop_mknod(&brick->xl, &brick->call, &in, &out);
    FINISH(mknod, stat);
}

int do_symlink(struct brick *brick, struct inode *parent, const char *name, const char *target,
               struct iatt *ret_stat)
{
    gfid_t gfid;
    AUTO(dict) xdata = gfid_req(&gfid);
    struct symlink_args in = { .parent = parent, .name = name, .target = target, .xdata = xdata };
    struct symlink_reply out = {};
    int ret = fop_symlink(&brick->xl, &brick->call, &in, &out);
    FINISH(symlink, stat);
}

int do_lookup(struct brick *brick, struct inode *parent, const char *name, struct iatt *ret_stat)
{
    gfid_t gfid;
    AUTO(dict) xdata = gfid_req(&gfid);
    struct lookup_args in = { .parent = parent, .name = name, .xdata = xdata };
    struct lookup_reply out = {};
    int ret = fop_lookup(&brick->xl, &brick->call, &in, &out);
    FINISH(lookup, stat);
}

int do_lookup_gfid(struct brick *brick, const gfid_t *gfid, struct iatt *ret_stat)
{
    AUTO(inode) inode = inode_get(brick->graph.inodes, gfid);
    struct lookup_args in = { .inode = inode };
    struct lookup_reply out = {};
    int ret = fop_lookup(&brick->xl, &brick->call, &in, &out);
    FINISH(lookup, stat);
}

int do_unlink(struct brick *brick, struct inode *parent, const char *name)
{
    struct unlink_args in = { .parent = parent, .name = name };
    struct unlink_reply out = {};
    int ret = fop_unlink(&brick->xl, &brick->call, &in, &out);
    unlink_reply_fini(&out);
    return ret;
}

int do_rmdir(struct brick *brick, struct inode *parent, const char *name, uint32_t flags)
{
    struct rmdir_args in = { .parent = parent, .name = name, .flags = flags };
    struct rmdir_reply out = {};
    int ret = fop_rmdir(&brick->xl, &brick->call, &in, &out);
    rmdir_reply_fini(&out);
    return ret;
}

int do_rename(struct brick *brick, struct inode *from, const char *old, struct inode *to,
              const char *new, struct iatt *ret_stat)
{
    struct rename_args in = { .oldparent = from, .newparent = to, .oldname = old, .newname = new };
    struct rename_reply out = {};
    int ret = fop_rename(&brick->xl, &brick->call, &in, &out);
    FINISH(rename, stat);
}

int do_link(struct brick *brick, struct inode *inode, struct inode *parent, const char *name,
            struct iatt *ret_stat)
{
    struct link_args in = { .inode = inode, .newparent = parent, .newname = name };
    struct link_reply out = {};
    int ret = fop_link(&brick->xl, &brick->call, &in, &out);
    FINISH(link, stat);
}

int do_open(struct brick *brick, struct inode *inode, uint32_t flags, struct fd **ret_fd)
{
    AUTO(fd) fd = fd_new(inode, flags, 1);
    struct open_args in = { .inode = inode, .fd = fd, .flags = flags };
    struct open_reply out = {};
    int ret = fop_open(&brick->xl, &brick->call, &in, &out);
    open_reply_fini(&out);
    if (ret >= 0)
        *ret_fd = TAKE(fd);
    return ret;
}

int do_write(struct brick *brick, struct fd *fd, const void *bytes, size_t count, uint64_t offset)
{
    struct writev_args in = { .fd = fd, .offset = offset };
    struct writev_reply out = {};
    payload_add_borrowed(&in.payload, (void *)(uintptr_t)bytes, (uint32_t)count);
    int ret = fop_writev(&brick->xl, &brick->call, &in, &out);
    writev_reply_fini(&out);
    return ret;
}

int do_read(struct brick *brick, struct fd *fd, void *bytes, size_t count, uint64_t offset)
{
    struct readv_args in = { .fd = fd, .offset = offset, .size = (uint32_t)count };
    struct readv_reply out = {};
    int ret = fop_readv(&brick->xl, &brick->call, &in, &out);
    if (ret > 0)
        payload_copy_out(&out.payload, bytes);
    readv_reply_fini(&out);
    return ret;
}

int do_stat(struct brick *brick, struct inode *inode, struct iatt *ret_stat)
{
    struct stat_args in = { .inode = inode };
    struct stat_reply out = {};
    int ret = fop_stat(&brick->xl, &brick->call, &in, &out);
    FINISH(stat, stat);
}

/* --- the judge: plain system calls, and nothing of the translator's --------------------------- */
static const struct brick *judged;
static int faults;
static bool notes_count;

static int fault(const char *path, const char *what)
{
    fprintf(stderr, "# %s: %s\n", path, what);
    faults++;
    return 0;
}

static bool read_gfid(const char *path, gfid_t *ret_gfid)
{
    return lgetxattr(path, "trusted.gfid", ret_gfid, 16) == 16;
}

static void handle_of(const gfid_t *gfid, char path[512])
{
    char text[UUID_TEXT_SIZE];
    snprintf(path, 512, "%s/.glusterfs/%02x/%02x/%s", judged->path, gfid->bytes[0], gfid->bytes[1],
             gfid_format(gfid, text));
}

static void judge_directory(const char *path, const gfid_t *gfid, const gfid_t *parent,
                            const char *base)
{
    char handle[512], text[512] = "", wanted[512], parent_text[UUID_TEXT_SIZE];

    handle_of(gfid, handle);
    snprintf(wanted, sizeof(wanted), "../../%02x/%02x/%s/%s", parent->bytes[0], parent->bytes[1],
             gfid_format(parent, parent_text), base);
    if (readlink(handle, text, sizeof(text) - 1) < 0)
        fault(path, "directory without a handle");
    else if (strcmp(text, wanted) != 0)
        fault(path, "its handle's text names another place");
}

static void judge_file(const char *path, const gfid_t *gfid, const struct stat *st,
                       const gfid_t *parent, const char *base)
{
    char handle[512], value[512], xattr[64], parent_text[UUID_TEXT_SIZE], stored[512] = "";
    struct stat hs;

    handle_of(gfid, handle);
    if (lstat(handle, &hs) < 0 || hs.st_ino != st->st_ino)
        fault(path, "file without its handle");
    if (!notes_count)
        return;
    int bytes = snprintf(value, sizeof(value), "%s/%s", gfid_format(parent, parent_text), base);
    snprintf(xattr, sizeof(xattr), "trusted.gfid2path.%016llx",
             (unsigned long long)XXH64(value, (size_t)bytes, 0));
    ssize_t got = lgetxattr(path, xattr, stored, sizeof(stored));
    if (got != bytes || memcmp(stored, value, (size_t)bytes) != 0)
        fault(path, "its gfid2path is missing or wrong");
}

static unsigned judged_names(const char *path)
{
    char names[4096];
    unsigned count = 0;
    ssize_t bytes = llistxattr(path, names, sizeof(names));
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(names + at) + 1)
        count += strncmp(names + at, "trusted.gfid2path.", 18) == 0;
    return count;
}

static int judge_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    char dir[1024], inside[600];
    gfid_t gfid, parent;

    (void)type;
    snprintf(inside, sizeof(inside), "%s/.glusterfs", judged->path);
    if (strncmp(path, inside, strlen(inside)) == 0)
        return 0;
    if (!read_gfid(path, &gfid))
        return fault(path, "entry without a gfid");
    if (at->level == 0)
        return gfid_is_root(&gfid) ? 0 : fault(path, "the root has another gfid");
    snprintf(dir, sizeof(dir), "%.*s", at->base - 1, path);
    if (!read_gfid(dir, &parent))
        return 0;
    if (S_ISDIR(st->st_mode)) {
        judge_directory(path, &gfid, &parent, path + at->base);
        return 0;
    }
    judge_file(path, &gfid, st, &parent, path + at->base);
    if (notes_count && judged_names(path) != st->st_nlink - 1)
        fault(path, "not one gfid2path for each of its names");
    return 0;
}

static int judge_handle(const char *path, const struct stat *st, int type, struct FTW *at)
{
    const char *base = path + at->base;
    struct stat target;
    gfid_t named, carried;

    (void)type;
    if (S_ISDIR(st->st_mode) || at->level != 3 || gfid_parse(base, &named) < 0)
        return 0;
    if (S_ISLNK(st->st_mode) && st->st_nlink == 1) {
        if (stat(path, &target) < 0)
            return fault(path, "handle of a directory that is not there");
        char followed[1024];
        snprintf(followed, sizeof(followed), "%s/.", path);
        if (!read_gfid(followed, &carried) || !gfid_equal(&carried, &named))
            fault(path, "handle that leads to another directory");
        return 0;
    }
    if (st->st_nlink < 2)
        return fault(path, "handle of a file without a name");
    if (!read_gfid(path, &carried) || !gfid_equal(&carried, &named))
        fault(path, "handle of a file with another gfid");
    return 0;
}

static void judge_empty(const char *sub)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/.glusterfs/%s", judged->path, sub);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            fault(entry->d_name, sub);
    if (dir)
        closedir(dir);
}

static int judge(const struct brick *brick, bool with_notes)
{
    char handles[512];

    judged = brick;
    notes_count = with_notes;
    faults = 0;
    nftw(brick->path, judge_entry, 32, FTW_PHYS);
    snprintf(handles, sizeof(handles), "%s/.glusterfs", brick->path);
    nftw(handles, judge_handle, 32, FTW_PHYS);
    judge_empty("unlink");
    return faults;
}

int tree_faults(const struct brick *brick)
{
    return judge(brick, true);
}

int tree_faults_after_crash(const struct brick *brick)
{
    return judge(brick, false);
}

const char *disk_xattr(const struct brick *brick, const char *path, const char *name)
{
    static char hex[1024];
    unsigned char value[512];
    char full[1024];

    snprintf(full, sizeof(full), "%s/%s", brick->path, path);
    ssize_t bytes = lgetxattr(full, name, value, sizeof(value));
    if (bytes < 0)
        return NULL;
    for (ssize_t i = 0; i < bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", value[i]);
    hex[2 * bytes] = '\0';
    return hex;
}

bool disk_exists(const struct brick *brick, const char *path)
{
    char full[1024];
    struct stat st;
    snprintf(full, sizeof(full), "%s/%s", brick->path, path);
    return lstat(full, &st) == 0;
}
