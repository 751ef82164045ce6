/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/index: what is on disk (spec/disk.md 3.5), when, and what can be asked of it. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct xlator_type xlator_features_index;

#define PENDING "trusted.afr.V-client-0"
#define DIRTY "trusted.afr.dirty"
#define EC_DIRTY "trusted.ec.dirty"

static char base[128];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static struct fixture *index_new(void)
{
    const char *dir = getenv("MORTAR_TEST_DIR");
    snprintf(base, sizeof(base), "%.64s/mortar-index-XXXXXX", dir ? dir : "/var/tmp");
    check(mkdtemp(base) != NULL);
    strcat(base, "/indices");
    return fixture_new(&xlator_features_index,
                       (const char *[]){ "index-base", base, "xattrop-dirty-watchlist", DIRTY,
                                         "xattrop-pending-watchlist", "trusted.afr.V-",
                                         "xattrop64-watchlist", EC_DIRTY, NULL });
}

static void index_free(struct fixture *fx)
{
    fixture_free(fx);
    *strrchr(base, '/') = '\0';
    check_equal(nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static const char *path_of(const char *folder, const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s/%s", base, folder, name);
    return path;
}

static bool is_indexed(const char *folder, uint32_t n)
{
    gfid_t gfid = gfid_of(n);
    char text[UUID_TEXT_SIZE];
    struct stat st;
    return lstat(path_of(folder, gfid_format(&gfid, text)), &st) == 0;
}

/* Base files there; *ret_stat is one of them. */
static unsigned bases(const char *folder, struct stat *ret_stat)
{
    DIR *dir = opendir(path_of(folder, ""));
    unsigned count = 0;
    struct dirent *entry;

    check(dir != NULL);
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, folder, strlen(folder)) == 0) {
            gfid_t gfid;
            check_equal(gfid_parse(entry->d_name + strlen(folder) + 1, &gfid), 0);
            check_equal(fstatat(dirfd(dir), entry->d_name, ret_stat, AT_SYMLINK_NOFOLLOW), 0);
            count++;
        }
    closedir(dir);
    return count;
}

/* --- xattrop over a child that stores, or fails ----------------------------------------------- */

static const char *watched_folder;  /* looked at while the child works */
static bool was_indexed;
static int child_answer;
static struct dict *child_values;   /* what the child says is stored now */

static int answer(struct fixture *fx, struct call *call, enum fop op, const void *args, void *reply)
{
    (void)fx, (void)call;
    if (op == FOP_LOOKUP)
        return -ENOENT;
    if (op != FOP_XATTROP && op != FOP_FXATTROP)
        return 0;
    uint32_t n = fop_subject(op, args)->gfid.bytes[15];
    was_indexed = is_indexed(watched_folder, n);
    if (child_answer == 0 && child_values) {
        struct dict *values = dict_copy(child_values);
        *(op == FOP_XATTROP ? &((struct xattrop_reply *)reply)->dict
                            : &((struct fxattrop_reply *)reply)->dict) = values;
    }
    return child_answer;
}

/* Adds `delta` to a key of file n; the child says that `stored` is the result. */
static int xattrop(struct fixture *fx, bool by_fd, uint32_t n, const char *key, uint8_t delta,
                   uint8_t stored)
{
    struct call call = call_of(NULL, "");
    AUTO(inode) inode = fixture_inode(fx, n);
    AUTO(fd) fd = fd_new(inode, 2, 1);
    AUTO(dict) request = dict_new();
    AUTO(dict) result = dict_new();
    uint8_t bytes[12] = { [3] = delta };
    int ret;

    check_equal(dict_set_bytes(request, key, bytes, 12), 0);
    bytes[3] = stored;
    check_equal(dict_set_bytes(result, key, bytes, 12), 0);
    fx->answer = answer;
    child_values = result;
    if (by_fd) {
        struct fxattrop_reply reply = { 0 };
        ret = fop_fxattrop(fx->top, &call, &(struct fxattrop_args){ .fd = fd, .dict = request },
                           &reply);
        fxattrop_reply_fini(&reply);
    } else {
        struct xattrop_reply reply = { 0 };
        ret = fop_xattrop(fx->top, &call,
                          &(struct xattrop_args){ .inode = inode, .dict = request }, &reply);
        xattrop_reply_fini(&reply);
    }
    child_values = NULL;
    return ret;
}

static void a_mark_is_indexed_before_it_is_stored(void)
{
    static const struct {
        const char *key, *folder;
    } kinds[] = { { PENDING, "xattrop" }, { DIRTY, "dirty" }, { EC_DIRTY, "xattrop" } };
    struct fixture *fx = index_new();
    struct stat st;

    child_answer = 0;
    for (uint32_t i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
        const char *folder = watched_folder = kinds[i / 2].folder;
        check_equal(xattrop(fx, i % 2, i + 1, kinds[i / 2].key, 1, 1), 0);
        check(was_indexed);
        check(is_indexed(folder, i + 1));
        check_equal(xattrop(fx, i % 2, i + 1, kinds[i / 2].key, 0, 1), 0);
        check(is_indexed(folder, i + 1)); /* only looked at: it stays */
        check_equal(xattrop(fx, i % 2, i + 1, kinds[i / 2].key, 255, 0), 0);
        check(!is_indexed(folder, i + 1)); /* -1: nothing pending any more */
    }
    check_equal(bases("xattrop", &st), 1);
    check_equal(st.st_mode, S_IFREG); /* no permission at all, spec/disk.md 3.5 */
    check_equal(st.st_size, 0);
    check_equal(st.st_nlink, 1);
    check_equal(bases("dirty", &st), 1);
    check_equal(bases("entry-changes", &st), 0); /* made at first need */
    index_free(fx);
}

/* After a crash between, one entry too many; never one too few. */
static void a_failed_mark_leaves_the_entry(void)
{
    struct fixture *fx = index_new();

    watched_folder = "xattrop";
    child_answer = -EIO;
    check_equal(xattrop(fx, false, 1, PENDING, 1, 1), -EIO);
    check(was_indexed && is_indexed("xattrop", 1));
    check_equal(xattrop(fx, false, 1, PENDING, 0, 0), -EIO); /* and does not take it away */
    check(is_indexed("xattrop", 1));
    child_answer = 0;
    check_equal(xattrop(fx, false, 1, PENDING, 0, 0), 0);
    check(!is_indexed("xattrop", 1));
    index_free(fx);
}

static void other_keys_are_not_watched(void)
{
    struct fixture *fx = index_new();
    struct stat st;

    watched_folder = "xattrop";
    child_answer = 0;
    check_equal(xattrop(fx, false, 1, "trusted.afr.W-client-0", 1, 1), 0);
    check_equal(xattrop(fx, false, 1, "trusted.af", 1, 1), 0);
    check_equal(xattrop(fx, false, 1, "user.trusted.afr.V-client-0", 1, 1), 0);
    check_equal(bases("xattrop", &st) + bases("dirty", &st), 0);
    check_equal(xattrop(fx, false, 1, "trusted.afr.V-client-17", 1, 1), 0); /* a prefix is enough */
    check(is_indexed("xattrop", 1) && !is_indexed("dirty", 1));
    check_equal(xattrop(fx, false, 2, DIRTY ".more", 1, 1), 0);
    check(is_indexed("dirty", 2) && !is_indexed("xattrop", 2));
    index_free(fx);
}

/* --- asking ----------------------------------------------------------------------------------- */

static struct dict *ask(struct fixture *fx, const char *name)
{
    struct call call = call_of(NULL, "");
    AUTO(inode) root = inode_get(fx->graph.inodes, &gfid_root);
    struct getxattr_reply reply = { 0 };
    const struct getxattr_args in = { .inode = root, .name = name };
    check(fop_getxattr(fx->top, &call, &in, &reply) >= 0);
    return reply.dict;
}

static int64_t count_of(struct fixture *fx, const char *name)
{
    AUTO(dict) dict = ask(fx, name);
    int64_t count = -1;
    check_equal(dict_get_int(dict, name, &count), 0);
    return count;
}

static void counts_are_told_on_the_root_and_beside_look_ups(void)
{
    struct fixture *fx = index_new();
    struct call call = call_of(NULL, "");
    AUTO(inode) parent = fixture_inode(fx, 99);
    AUTO(dict) xdata = dict_new();
    struct lookup_reply reply = { 0 };
    int64_t count = -1;

    watched_folder = "xattrop";
    child_answer = 0;
    check_equal(count_of(fx, "glusterfs.xattrop_index_count"), 0);
    for (uint32_t n = 1; n <= 40; n++)
        check_equal(xattrop(fx, false, n, n % 4 ? PENDING : DIRTY, 1, 1), 0);
    check_equal(count_of(fx, "glusterfs.xattrop_index_count"), 30);
    check_equal(count_of(fx, "glusterfs.xattrop_dirty_count"), 10);

    check_equal(dict_set_str(xdata, "link-count", "glusterfs.xattrop_index_count"), 0);
    const struct lookup_args in = { .parent = parent, .name = "none", .xdata = xdata };
    check_equal(fop_lookup(fx->top, &call, &in, &reply), -ENOENT); /* also then: wire.md 4.3 */
    check_equal(dict_get_int(reply.xdata, "link-count", &count), 0);
    check_equal(count, 30);
    lookup_reply_fini(&reply);
    inode_unref(TAKE(parent));
    index_free(fx);
}

struct listing {
    unsigned entries;
    bool is_n[64];
};

static void list(struct fixture *fx, struct inode *inode, uint32_t size, struct listing *listing)
{
    struct call call = call_of(NULL, "");
    AUTO(fd) fd = fd_new(inode, 0, 1);
    struct opendir_reply opened = { 0 };
    uint64_t offset = 0;
    bool eof = false;

    check_equal(fop_opendir(fx->top, &call, &(struct opendir_args){ .inode = inode, .fd = fd },
                            &opened), 0);
    memset(listing, 0, sizeof(*listing));
    while (!eof) {
        struct readdir_reply reply = { 0 };
        const struct readdir_args in = { .fd = fd, .offset = offset, .size = size };
        int ret = fop_readdir(fx->top, &call, &in, &reply);
        check_equal(ret, reply.entries.count);
        check(ret > 0 || reply.eof);
        for (struct dirent_entry *e = reply.entries.first; e; e = e->next) {
            gfid_t gfid;
            check_equal(gfid_parse(e->name, &gfid), 0); /* no base files, no dots */
            check(gfid.bytes[15] < 64 && !listing->is_n[gfid.bytes[15]]);
            listing->is_n[gfid.bytes[15]] = true;
            listing->entries++;
            offset = e->off;
        }
        eof = reply.eof;
        readdir_reply_fini(&reply);
    }
}

static void the_index_is_a_directory_that_can_be_listed_and_cleaned(void)
{
    struct fixture *fx = index_new();
    struct call call = call_of(NULL, "");
    struct lookup_reply found = { 0 };
    struct unlink_reply gone = { 0 };
    struct listing listing;
    gfid_t gfid;

    watched_folder = "xattrop";
    child_answer = 0;
    for (uint32_t n = 1; n <= 50; n++)
        check_equal(xattrop(fx, false, n, PENDING, 1, 1), 0);
    AUTO(dict) told = ask(fx, "glusterfs.xattrop_index_gfid");
    check_equal(dict_get_gfid(told, "glusterfs.xattrop_index_gfid", &gfid), 0);
    AUTO(inode) dir = inode_get(fx->graph.inodes, &gfid);
    fixture_forget(fx);

    const struct lookup_args nameless = { .inode = dir, .name = "" };
    check_equal(fop_lookup(fx->top, &call, &nameless, &found), 0);
    check(S_ISDIR(found.stat.mode) && gfid_equal(&found.stat.gfid, &gfid));
    lookup_reply_fini(&found);
    list(fx, dir, 128 * 1024, &listing);
    check_equal(listing.entries, 50);
    list(fx, dir, 500, &listing); /* a few at a time */
    check_equal(listing.entries, 50);

    gfid_t first = gfid_of(1);
    char name[UUID_TEXT_SIZE];
    const struct unlink_args in = { .parent = dir, .name = gfid_format(&first, name) };
    check_equal(fop_unlink(fx->top, &call, &in, &gone), 0);
    check(!is_indexed("xattrop", 1));
    check_equal(fop_unlink(fx->top, &call, &in, &gone), 0); /* gone is gone */
    const struct unlink_args wrong = { .parent = dir, .name = "../dirty" };
    check_equal(fop_unlink(fx->top, &call, &wrong, &gone), -ENOENT);
    const struct lookup_args named = { .parent = dir, .name = "nonsense" };
    check_equal(fop_lookup(fx->top, &call, &named, &found), -ENOENT);
    list(fx, dir, 128 * 1024, &listing);
    check_equal(listing.entries, 49);
    check(!listing.is_n[1] && listing.is_n[2]);
    check_equal(fx->count, 0); /* none of it reached the child */
    inode_unref(TAKE(dir));
    index_free(fx);
}

/* --- base files ------------------------------------------------------------------------------- */

/* A file system says when a base file is full; ext4 does at 65000 links. */
static void a_full_base_file_is_followed_by_another(void)
{
    struct fixture *fx = index_new();
    struct stat st;
    char name[64];
    DIR *dir;
    struct dirent *entry;
    unsigned links = 0;

    watched_folder = "xattrop";
    child_answer = 0;
    check_equal(xattrop(fx, false, 1, PENDING, 1, 1), 0);
    dir = opendir(path_of("xattrop", ""));
    while ((entry = readdir(dir)) != NULL && strncmp(entry->d_name, "xattrop-", 8) != 0) {
    }
    check(entry != NULL);
    for (; links < 70000; links++) {
        snprintf(name, sizeof(name), "filler-%u", links);
        if (linkat(dirfd(dir), entry->d_name, dirfd(dir), name, 0) != 0)
            break;
    }
    closedir(dir);
    if (links == 70000) {
        fprintf(stderr, "# skipped: this file system has no limit of links below 70000\n");
        index_free(fx);
        return;
    }
    for (uint32_t n = 2; n < 10; n++) {
        check_equal(xattrop(fx, false, n, PENDING, 1, 1), 0);
        check(was_indexed && is_indexed("xattrop", n));
    }
    check_equal(bases("xattrop", &st), 2);
    check_equal(count_of(fx, "glusterfs.xattrop_index_count"), 1 + links + 8);
    index_free(fx);
}

/* Somebody who crawls may delete a base file that nothing is linked to. */
static void a_base_file_that_went_is_made_again(void)
{
    struct fixture *fx = index_new();
    struct stat st;

    watched_folder = "xattrop";
    child_answer = 0;
    for (uint32_t n = 1; n < 20; n++) {
        check_equal(xattrop(fx, false, n, PENDING, 1, 1), 0);
        check(was_indexed && is_indexed("xattrop", n));
        check_equal(xattrop(fx, false, n, PENDING, 255, 0), 0);
        check_equal(bases("xattrop", &st), 1);
        DIR *dir = opendir(path_of("xattrop", ""));
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
            if (entry->d_name[0] != '.')
                check_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
        closedir(dir);
    }
    index_free(fx);
}

/* --- order ------------------------------------------------------------------------------------ */

enum { MARKERS = 16, MARKS = 30 };
static unsigned pending_now, markers_done;

static int answer_counting(struct fixture *fx, struct call *call, enum fop op, const void *args,
                           void *reply)
{
    (void)fx, (void)call;
    if (op != FOP_XATTROP)
        return 0;
    const struct xattrop_args *in = args;
    const uint8_t *delta = dict_get(in->dict, PENDING)->data;
    struct xattrop_reply *out = reply;
    uint8_t bytes[12] = { 0 };
    env_sleep(20 * NS_PER_US); /* others may come in between, but for the file's order */
    pending_now += (unsigned)(int8_t)delta[3];
    bytes[3] = (uint8_t)pending_now;
    env_sleep(20 * NS_PER_US);
    out->dict = dict_new();
    return dict_set_bytes(out->dict, PENDING, bytes, 12);
}

static void marker_fiber(void *arg)
{
    struct fixture *fx = arg;
    AUTO(inode) inode = fixture_inode(fx, 1);

    for (int i = 0; i < 2 * MARKS; i++) {
        struct call call = call_of(NULL, "");
        AUTO(dict) request = dict_new();
        struct xattrop_reply reply = { 0 };
        const uint8_t bytes[12] = { [3] = i % 2 ? 255 : 1 };
        check_equal(dict_set_bytes(request, PENDING, bytes, 12), 0);
        check_equal(fop_xattrop(fx->top, &call,
                                &(struct xattrop_args){ .inode = inode, .dict = request }, &reply),
                    0);
        if (i % 2 == 0)
            check(is_indexed("xattrop", 1)); /* mine is pending: whoever else was faster */
        xattrop_reply_fini(&reply);
    }
    inode_unref(TAKE(inode));
    markers_done++;
}

static void marks_of_one_file_are_seen_in_the_order_of_storing(void)
{
    struct fixture *fx = index_new();

    pending_now = markers_done = 0;
    fx->answer = answer_counting;
    for (int i = 0; i < MARKERS; i++)
        check_equal(fiber_start("marker", marker_fiber, fx), 0);
    await_count(&markers_done, MARKERS);
    check_equal(pending_now, 0);
    check(!is_indexed("xattrop", 1));
    index_free(fx);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(a_mark_is_indexed_before_it_is_stored, ALL),
    FIBER_CASE(a_failed_mark_leaves_the_entry, REAL),
    FIBER_CASE(other_keys_are_not_watched, PLAIN_ONLY),
    FIBER_CASE(counts_are_told_on_the_root_and_beside_look_ups, REAL),
    FIBER_CASE(the_index_is_a_directory_that_can_be_listed_and_cleaned, ALL),
    FIBER_CASE(a_full_base_file_is_followed_by_another, PLAIN_ONLY),
    FIBER_CASE(a_base_file_that_went_is_made_again, PLAIN_ONLY),
    FIBER_CASE(marks_of_one_file_are_seen_in_the_order_of_storing, REAL),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
