/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mount/fuse against a kernel of ours: what it makes of requests, and of its child's answers. */
#include "kernel.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "xlators/mount/fuse/mount.h"

static gfid_t file_gfid = { .bytes = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

static void stat_of_file(struct iatt *stat, uint32_t mode)
{
    *stat = (struct iatt){ .gfid = file_gfid, .mode = mode, .nlink = 1, .size = 7 };
    stat->mtime = (struct iatt_time){ .sec = 5, .nsec = 6 };
}

/* --- INIT ------------------------------------------------------------------------------------- */
static void init_takes_only_what_is_offered(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_init_in in = { .major = 7,
                               .minor = 30,
                               .max_readahead = 65536,
                               .flags = FUSE_ASYNC_READ | FUSE_POSIX_ACL | FUSE_BIG_WRITES };
    struct fuse_init_out out;

    check_equal(kernel_ask(kernel, FUSE_INIT, 0, &in, sizeof(in), &out, sizeof(out)), sizeof(out));
    check_equal(out.major, 7);
    check_equal(out.minor, 30);
    check_equal(out.flags, FUSE_ASYNC_READ | FUSE_BIG_WRITES); /* ACLs are not asked for */
    check_equal(out.flags2, 0);
    check_equal(out.max_write, 1 << 20);
    check_equal(out.max_pages, 256);
    check_equal(out.max_background, 64);
    check_equal(out.congestion_threshold, 48);
    check_equal(fuse_ready_wait(kernel->fuse, env_now_ns() + NS_PER_S), 0);
    kernel_free(kernel);
}

static void init_honours_options(void)
{
    const char *options[] = { "acl=on",
                              "kernel-writeback-cache=on",
                              "use-readdirp=off",
                              "auto-invalidation=off",
                              "background-qlen=100",
                              NULL };
    struct kernel *kernel = kernel_new(options);

    kernel_init(kernel);
    uint64_t flags = kernel->fuse->flags;
    check(flags & FUSE_POSIX_ACL);
    check(flags & FUSE_DONT_MASK);
    check(flags & FUSE_WRITEBACK_CACHE);
    check(flags & WIRE_INIT_DIRECT_IO_ALLOW_MMAP);
    check(!(flags & FUSE_DO_READDIRPLUS));
    check(!(flags & FUSE_AUTO_INVAL_DATA));
    check(!(flags & FUSE_EXPORT_SUPPORT)); /* it would name inodes that are forgotten */
    kernel_free(kernel);
}

static int has_no_locks(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                        void *reply)
{
    (void)kernel;
    (void)call;
    (void)args;
    (void)reply;
    return op == FOP_LK ? -EOPNOTSUPP : 0;
}

static void locks_are_the_kernels_where_the_volume_has_none(void)
{
    struct kernel *with = kernel_new(NULL), *without = kernel_new(NULL);
    uint64_t locks = FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS;

    without->answer = has_no_locks;
    kernel_init(with);
    kernel_init(without);
    check_equal(with->fuse->flags & locks, locks);
    check_equal(without->fuse->flags & locks, 0);
    kernel_free(with);
    kernel_free(without);
}

static void a_kernel_too_old_is_refused(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_init_in in = { .major = 7, .minor = 12 };
    struct fuse_init_out out;

    check_equal(kernel_ask(kernel, FUSE_INIT, 0, &in, 16, &out, sizeof(out)), -EPROTO);
    check_equal(fuse_ready_wait(kernel->fuse, env_now_ns() + NS_PER_S), -EPROTO);
    kernel_free(kernel);
}

static void a_newer_major_asks_again(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_init_in in = { .major = 8, .minor = 0 };
    struct fuse_init_out out;

    check_equal(kernel_ask(kernel, FUSE_INIT, 0, &in, sizeof(in), &out, sizeof(out)), sizeof(out));
    check_equal(out.major, 7);
    check_equal(fuse_ready_wait(kernel->fuse, env_now_ns() + 1), -ETIMEDOUT);
    kernel_init(kernel);
    check_equal(fuse_ready_wait(kernel->fuse, env_now_ns() + NS_PER_S), 0);
    kernel_free(kernel);
}

/* --- names ------------------------------------------------------------------------------------ */
static int lookup_finds(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                        void *reply)
{
    const struct lookup_args *in = args;
    gfid_t request;

    (void)kernel;
    (void)call;
    check_equal(op, FOP_LOOKUP);
    check(gfid_is_root(&in->parent->gfid));
    check_equal(strcmp(in->name, "f"), 0);
    check_equal(dict_get_gfid(in->xdata, "gfid-req", &request), 0);
    stat_of_file(&((struct lookup_reply *)reply)->stat, S_IFREG | 0644);
    return 0;
}

static uint64_t file_lookup(struct kernel *kernel)
{
    struct fuse_entry_out entry;

    kernel->answer = lookup_finds;
    check_equal(kernel_ask(kernel, FUSE_LOOKUP, 1, "f", 2, &entry, sizeof(entry)), sizeof(entry));
    return entry.nodeid;
}

static void an_entry_tells_what_the_child_said(void)
{
    const char *options[] = { "entry-timeout=2.5", NULL };
    struct kernel *kernel = kernel_new(options);
    struct fuse_entry_out entry;

    kernel->answer = lookup_finds;
    check_equal(kernel_ask(kernel, FUSE_LOOKUP, 1, "f", 2, &entry, sizeof(entry)), sizeof(entry));
    check(entry.nodeid > 1);
    check_equal(entry.entry_valid, 2);
    check_equal(entry.entry_valid_nsec, 500000000);
    check_equal(entry.attr_valid, 1);
    check_equal(entry.attr.ino, 0x090a0b0c0d0e0f10);
    check_equal(entry.attr.mode, S_IFREG | 0644);
    check_equal(entry.attr.size, 7);
    check_equal(entry.attr.mtime, 5);
    check_equal(entry.attr.mtimensec, 6);
    kernel_free(kernel);
}

static void an_inode_lives_until_all_lookups_are_forgotten(void)
{
    struct kernel *kernel = kernel_new(NULL);
    uint64_t nodeid = file_lookup(kernel);
    struct {
        struct fuse_batch_forget_in head;
        struct fuse_forget_one one[3];
    } batch = { .head = { .count = 3 }, .one = { { nodeid, 1 }, { nodeid, 1 }, { 1, 100 } } };
    struct fuse_forget_in forget = { .nlookup = 1 };
    struct fuse_init_out out;

    for (int i = 0; i < 3; i++)
        check_equal(file_lookup(kernel), nodeid);
    check_equal(inode_table_count(kernel->graph.inodes), 2);
    kernel_send(kernel, FUSE_FORGET, nodeid, &forget, sizeof(forget));
    kernel_send(kernel, FUSE_BATCH_FORGET, 0, &batch, sizeof(batch));
    (void)kernel_ask(kernel, FUSE_POLL, 1, NULL, 0, &out, sizeof(out)); /* those before are read */
    check_equal(inode_table_count(kernel->graph.inodes), 2);
    kernel_send(kernel, FUSE_FORGET, nodeid, &forget, sizeof(forget));
    (void)kernel_ask(kernel, FUSE_POLL, 1, NULL, 0, &out, sizeof(out));
    check_equal(inode_table_count(kernel->graph.inodes), 1); /* the root */
    kernel_free(kernel);
}

static int finds_nothing(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                         void *reply)
{
    (void)kernel;
    (void)call;
    (void)op;
    (void)args;
    (void)reply;
    return -ENOENT;
}

static void absence_is_remembered_only_if_asked(void)
{
    const char *options[] = { "negative-timeout=3", NULL };
    struct kernel *never = kernel_new(NULL), *kernel = kernel_new(options);
    struct fuse_entry_out entry;

    never->answer = kernel->answer = finds_nothing;
    check_equal(kernel_ask(never, FUSE_LOOKUP, 1, "f", 2, &entry, sizeof(entry)), -ENOENT);
    check_equal(kernel_ask(kernel, FUSE_LOOKUP, 1, "f", 2, &entry, sizeof(entry)), sizeof(entry));
    check_equal(entry.nodeid, 0);
    check_equal(entry.entry_valid, 3);
    kernel_free(never);
    kernel_free(kernel);
}

static void malformed_requests_do_not_reach_the_child(void)
{
    struct kernel *kernel = kernel_new(NULL);
    char name[300], out[8];
    struct fuse_rename2_in rename2 = { .newdir = 1 };
    char renaming[sizeof(rename2) + 3];

    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    check_equal(kernel_ask(kernel, FUSE_LOOKUP, 1, name, 257, out, 8), -ENAMETOOLONG);
    check_equal(kernel_ask(kernel, FUSE_LOOKUP, 1, "ab", 2, out, 8), -EINVAL); /* no end */
    check_equal(kernel_ask(kernel, FUSE_LOOKUP, 1, "a/b", 4, out, 8), -EINVAL);
    check_equal(kernel_ask(kernel, FUSE_LOOKUP, 1, "", 1, out, 8), -EINVAL);
    check_equal(kernel_ask(kernel, FUSE_UNLINK, 1, "\0", 2, out, 8), -EINVAL);
    check_equal(kernel_ask(kernel, FUSE_OPEN, 1, out, 4, out, 8), -EINVAL);
    check_equal(kernel_ask(kernel, 4000, 1, out, 8, out, 8), -ENOSYS);
    memcpy(renaming, &rename2, sizeof(rename2));
    memcpy(renaming + sizeof(rename2), "a\0b", 3); /* the second name has no end */
    check_equal(kernel_ask(kernel, FUSE_RENAME2, 1, renaming, sizeof(renaming), out, 8), -EINVAL);
    check_equal(kernel->calls, 0);
    kernel_free(kernel);
}

static void rename_flags_are_refused(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct {
        struct fuse_rename2_in in;
        char names[4];
    } packet = { .in = { .newdir = 1 }, .names = "a\0b" };
    char out[8];

    for (uint32_t flags = 1; flags <= 4; flags *= 2) {
        packet.in.flags = flags;
        check_equal(kernel_ask(kernel, FUSE_RENAME2, 1, &packet, sizeof(packet), out, 8), -EINVAL);
    }
    check_equal(kernel->calls, 0);
    packet.in.flags = 0;
    check_equal(kernel_ask(kernel, FUSE_RENAME2, 1, &packet, sizeof(packet), out, 8), 0);
    check_equal(kernel->last, FOP_RENAME);
    kernel_free(kernel);
}

static int says_enosys(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                       void *reply)
{
    (void)finds_nothing(kernel, call, op, args, reply);
    return -ENOSYS;
}

/* The kernel would not ask any more, for any file. */
static void a_childs_enosys_is_not_the_mounts(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct {
        struct fuse_getxattr_in in;
        char name[8];
    } packet = { .name = "user.x" };
    char out[8];

    kernel->answer = says_enosys;
    check_equal(kernel_ask(kernel, FUSE_GETXATTR, 1, &packet, sizeof(packet), out, 8), -EOPNOTSUPP);
    kernel_free(kernel);
}

/* --- files ------------------------------------------------------------------------------------ */
static int create_checked(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                          void *reply)
{
    const struct create_args *in = args;
    gfid_t request;

    (void)call;
    if (op != FOP_CREATE)
        return 0;
    check_equal(in->mode, S_IFREG | 0640);
    check_equal(in->umask, 0);
    check_equal(in->flags, O_RDWR | O_CREAT | O_EXCL);
    check_equal(dict_get_gfid(in->xdata, "gfid-req", &request), 0);
    check(!gfid_is_null(&request));
    AUTO(inode) inode = inode_get(kernel->graph.inodes, &file_gfid);
    fd_bind(in->fd, inode);
    stat_of_file(&((struct create_reply *)reply)->stat, S_IFREG | 0640);
    return 0;
}

struct opened {
    uint64_t nodeid, fh;
    uint32_t open_flags;
};

static struct opened file_create(struct kernel *kernel)
{
    struct {
        struct fuse_create_in in;
        char name[2];
    } packet = { .in = { .flags = O_RDWR | O_CREAT | O_EXCL, .mode = S_IFREG | 0640, .umask = 022 },
                 .name = "f" };
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out;

    kernel->answer = create_checked;
    check_equal(kernel_ask(kernel, FUSE_CREATE, 1, &packet, sizeof(packet.in) + 2, &out,
                           sizeof(out)),
                sizeof(out));
    return (struct opened){ out.entry.nodeid, out.open.fh, out.open.open_flags };
}

static void file_close(struct kernel *kernel, struct opened file)
{
    struct fuse_release_in release = { .fh = file.fh };
    char out[8];

    check_equal(kernel_ask(kernel, FUSE_RELEASE, file.nodeid, &release, sizeof(release), out, 8),
                0);
}

static int write_checked(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                         void *reply)
{
    const struct writev_args *in = args;
    const uint8_t *expected = kernel->arg;

    (void)call;
    (void)reply;
    check_equal(op, FOP_WRITEV);
    check_equal(in->payload.segs, 1);
    check_equal((uintptr_t)in->payload.iov[0].iov_base % 4096, 0); /* O_DIRECT needs no copy */
    check(memcmp(in->payload.iov[0].iov_base, expected, in->payload.bytes) == 0);
    check_equal(in->offset, 4096);
    return (int)in->payload.bytes;
}

static void written_bytes_arrive_on_a_page(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct opened file = file_create(kernel);
    size_t sizes[] = { 1, 3, 4096, 32768, 32769, 131072, 1 << 20 };
    uint8_t *packet = malloc(KERNEL_BYTES_MAX);
    struct fuse_write_in *in = (void *)packet;
    struct fuse_write_out out;

    kernel->answer = write_checked;
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        *in = (struct fuse_write_in){ .fh = file.fh, .offset = 4096, .size = (uint32_t)sizes[i] };
        env_random(packet + sizeof(*in), sizes[i]);
        kernel->arg = packet + sizeof(*in);
        check_equal(kernel_ask(kernel, FUSE_WRITE, file.nodeid, packet, sizeof(*in) + sizes[i],
                               &out, sizeof(out)),
                    sizeof(out));
        check_equal(out.size, sizes[i]);
    }
    in->size = 5; /* not what came */
    check_equal(kernel_ask(kernel, FUSE_WRITE, file.nodeid, packet, sizeof(*in) + 4, &out, 8),
                -EINVAL);
    kernel->answer = NULL;
    file_close(kernel, file);
    free(packet);
    kernel_free(kernel);
}

static int read_gives(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                      void *reply)
{
    const struct readv_args *in = args;
    struct readv_reply *out = reply;

    (void)call;
    check_equal(op, FOP_READV);
    check_equal(payload_alloc(&out->payload, in->size), 0);
    payload_copy_in(&out->payload, kernel->arg);
    return (int)in->size;
}

static void read_bytes_are_the_childs(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct opened file = file_create(kernel);
    struct fuse_read_in in = { .fh = file.fh, .offset = 1, .size = 200000 };
    uint8_t *data = malloc(in.size), *got = malloc(in.size);

    env_random(data, in.size);
    kernel->arg = data;
    kernel->answer = read_gives;
    check_equal(kernel_ask(kernel, FUSE_READ, file.nodeid, &in, sizeof(in), got, in.size), in.size);
    check(memcmp(data, got, in.size) == 0);
    kernel->answer = NULL;
    file_close(kernel, file);
    free(data);
    free(got);
    kernel_free(kernel);
}

static void direct_opens_bypass_the_page_cache(void)
{
    const char *always[] = { "direct-io-mode=enable", NULL },
               *never[] = { "direct-io-mode=off", NULL };
    const char *const *modes[] = { NULL, always, never };
    uint32_t expected[][2] = { { 0, 1 }, { 1, 1 }, { 0, 0 } };

    for (unsigned i = 0; i < 3; i++) {
        struct kernel *kernel = kernel_new(modes[i]);
        uint64_t nodeid = file_lookup(kernel);
        kernel->answer = NULL;
        for (unsigned direct = 0; direct < 2; direct++) {
            struct fuse_open_in in = { .flags = O_RDWR | (direct ? O_DIRECT : 0) };
            struct fuse_open_out out;
            check_equal(kernel_ask(kernel, FUSE_OPEN, nodeid, &in, sizeof(in), &out, sizeof(out)),
                        16);
            check_equal((out.open_flags & FOPEN_DIRECT_IO) != 0, expected[i][direct]);
            check_equal((out.open_flags & FOPEN_PARALLEL_DIRECT_WRITES) != 0, expected[i][direct]);
            file_close(kernel, (struct opened){ nodeid, out.fh, 0 });
        }
        kernel_free(kernel);
    }
}

static int flush_ask(struct kernel *kernel, struct opened file, uint64_t owner)
{
    struct fuse_flush_in flush = { .fh = file.fh, .lock_owner = owner };
    char out[8];
    unsigned before = kernel->calls;

    check_equal(kernel_ask(kernel, FUSE_FLUSH, file.nodeid, &flush, sizeof(flush), out, 8), 0);
    return (int)(kernel->calls - before);
}

static int writes_all(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                      void *reply)
{
    (void)kernel;
    (void)call;
    (void)reply;
    return op == FOP_WRITEV ? (int)((const struct writev_args *)args)->payload.bytes : 0;
}

static void flush_reaches_the_child_after_writes_and_locks_only(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct opened file = file_create(kernel);
    struct fuse_lk_in lock = { .fh = file.fh,
                               .owner = 9,
                               .lk = { .type = F_RDLCK, .end = INT64_MAX } };
    char out[8];

    kernel->answer = NULL;
    struct {
        struct fuse_write_in in;
        char data[1];
    } packet = { .in = { .fh = file.fh, .size = 1 } };
    check_equal(flush_ask(kernel, file, 9), 0); /* what create does is done */
    kernel->answer = writes_all;
    check_equal(kernel_ask(kernel, FUSE_WRITE, file.nodeid, &packet, 41, out, 8), 8);
    check_equal(flush_ask(kernel, file, 9), 1);
    check_equal(kernel->last, FOP_FLUSH);
    check_equal(flush_ask(kernel, file, 9), 0);
    check_equal(kernel_ask(kernel, FUSE_SETLK, file.nodeid, &lock, sizeof(lock), out, 8), 0);
    check_equal(flush_ask(kernel, file, 9), 1);
    check_equal(flush_ask(kernel, file, 10),
                1); /* the file has been locked: nobody counts owners */
    file_close(kernel, file);
    kernel_free(kernel);
}

/* --- privileges ------------------------------------------------------------------------------- */
static int write_to_setuid(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                           void *reply)
{
    if (op == FOP_WRITEV) {
        stat_of_file(&((struct writev_reply *)reply)->poststat, S_IFREG | 06755);
        return 1;
    }
    check_equal(op, FOP_FSETATTR);
    check_equal(call->uid, 0); /* the writer need not own the file */
    const struct fsetattr_args *in = args;
    check_equal(in->valid, VALID_MODE);
    check_equal(in->stat.mode, 0755);
    kernel->arg = kernel;
    return 0;
}

static void a_write_takes_set_user_id_away(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct opened file = file_create(kernel);
    struct {
        struct fuse_write_in in;
        char data[1];
    } packet = { .in = { .fh = file.fh, .size = 1 } };
    struct fuse_write_out out;

    kernel->uid = 1000;
    kernel->answer = write_to_setuid;
    check_equal(kernel_ask(kernel, FUSE_WRITE, file.nodeid, &packet, 41, &out, 8), 8);
    check(kernel->arg == NULL); /* the kernel has not asked for it */
    packet.in.write_flags = FUSE_WRITE_KILL_SUIDGID;
    check_equal(kernel_ask(kernel, FUSE_WRITE, file.nodeid, &packet, 41, &out, 8), 8);
    check(kernel->arg != NULL);
    check_equal(kernel->notified, 1); /* the mode it has seen is old */
    kernel->answer = NULL;
    file_close(kernel, file);
    kernel_free(kernel);
}

/* --- space ------------------------------------------------------------------------------------ */
static void fallocate_modes_become_operations(void)
{
    static const struct {
        uint32_t mode;
        int ret, op;
    } rows[] = {
        { 0, 0, FOP_FALLOCATE },
        { FALLOC_FL_KEEP_SIZE, 0, FOP_FALLOCATE },
        { FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, FOP_DISCARD },
        { FALLOC_FL_ZERO_RANGE, 0, FOP_ZEROFILL },
        { FALLOC_FL_COLLAPSE_RANGE, -EOPNOTSUPP, -1 },
        { FALLOC_FL_INSERT_RANGE, -EOPNOTSUPP, -1 },
    };
    struct kernel *kernel = kernel_new(NULL);
    struct opened file = file_create(kernel);
    char out[8];

    kernel->answer = NULL;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct fuse_fallocate_in in = {
            .fh = file.fh, .offset = 1, .length = 2, .mode = rows[i].mode
        };
        unsigned before = kernel->calls;
        check_equal(kernel_ask(kernel, FUSE_FALLOCATE, file.nodeid, &in, sizeof(in), out, 8),
                    rows[i].ret);
        if (rows[i].op >= 0)
            check_equal(kernel->last, rows[i].op);
        else
            check_equal(kernel->calls, before);
    }
    file_close(kernel, file);
    kernel_free(kernel);
}

/* --- locks ------------------------------------------------------------------------------------ */
struct waiter {
    struct fiber *fiber;
    bool woken;
};

static void waiter_wake(void *arg)
{
    struct waiter *waiter = arg;
    waiter->woken = true;
    fiber_wake(waiter->fiber);
}

static int waits_to_be_cancelled(struct kernel *kernel, struct call *call, enum fop op,
                                 const void *args, void *reply)
{
    struct waiter waiter = { .fiber = fiber_self() };

    (void)reply;
    if (op != FOP_LK || ((const struct lk_args *)args)->cmd != 2)
        return 0;
    check_equal(call->owner.bytes, 8);
    check_equal(call->owner.data[0], 0x34);
    check_equal(call->owner.data[1], 0x12);
    check_equal(call_cancel_arm(call->cancel, waiter_wake, &waiter), 0);
    kernel->arg = &waiter;
    fiber_park("test: lock");
    kernel->arg = NULL;
    return call_cancel_disarm(call->cancel) ? -EINTR : 0;
}

static void a_signal_ends_the_wait_for_a_lock(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct opened file = file_create(kernel);
    struct fuse_lk_in lock = { .fh = file.fh,
                               .owner = 0x1234,
                               .lk = { .type = F_WRLCK, .start = 10, .end = 19 } };
    char out[8];
    size_t bytes;
    uint64_t answered;

    kernel->answer = waits_to_be_cancelled;
    uint64_t unique = kernel_send(kernel, FUSE_SETLKW, file.nodeid, &lock, sizeof(lock));
    while (!kernel->arg)
        env_sleep(NS_PER_MS);
    struct fuse_interrupt_in interrupt = { .unique = unique };
    kernel_send(kernel, FUSE_INTERRUPT, 0, &interrupt, sizeof(interrupt));
    check_equal(kernel_receive(kernel, &answered, out, 8, &bytes), -EINTR);
    check_equal(answered, unique);
    kernel->answer = NULL;
    file_close(kernel, file);
    kernel_free(kernel);
}

/* A program that gets SIGCHLD while it writes does not expect EINTR. */
static int slow_stat(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                     void *reply)
{
    (void)args;
    check_equal(op, FOP_STAT);
    kernel->arg = kernel;
    env_sleep(300 * NS_PER_MS);
    check(!call->cancel->cancelled);
    stat_of_file(&((struct stat_reply *)reply)->stat, S_IFDIR | 0755);
    return 0;
}

static void a_signal_does_not_end_other_requests(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_getattr_in in = {};
    struct fuse_attr_out out;
    size_t bytes;
    uint64_t answered;

    kernel->answer = slow_stat;
    uint64_t unique = kernel_send(kernel, FUSE_GETATTR, 1, &in, sizeof(in));
    while (!kernel->arg)
        env_sleep(NS_PER_MS);
    struct fuse_interrupt_in interrupt = { .unique = unique };
    kernel_send(kernel, FUSE_INTERRUPT, 0, &interrupt, sizeof(interrupt));
    check_equal(kernel_receive(kernel, &answered, &out, sizeof(out), &bytes), 0);
    check_equal(answered, unique);
    check_equal(bytes, sizeof(out));
    kernel_free(kernel);
}

/* A child that hangs: the process that is killed while it waits must go all the same, and what the
 * child answers later is nobody's. */
static int hangs_until_told(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                            void *reply)
{
    volatile bool *may_go = kernel->arg;

    (void)call;
    (void)args;
    if (op != FOP_LOOKUP)
        return 0;
    while (!*may_go)
        env_sleep(NS_PER_MS);
    stat_of_file(&((struct lookup_reply *)reply)->stat, S_IFREG | 0644);
    return 0;
}

static void a_killed_caller_is_answered_at_once(void)
{
    struct kernel *kernel = kernel_new(NULL);
    bool may_go = false;
    pid_t gone = fork();
    char out[8];
    size_t bytes;
    uint64_t answered;

    if (gone == 0)
        _exit(0);
    check_equal(waitpid(gone, NULL, 0), gone);
    kernel->pid = gone;
    kernel->arg = &may_go;
    kernel->answer = hangs_until_told;
    uint64_t unique = kernel_send(kernel, FUSE_LOOKUP, 1, "f", 2);
    struct fuse_interrupt_in interrupt = { .unique = unique };
    kernel_send(kernel, FUSE_INTERRUPT, 0, &interrupt, sizeof(interrupt));
    check_equal(kernel_receive(kernel, &answered, out, 8, &bytes), -EINTR);
    check_equal(answered, unique);
    may_go = true;
    while (kernel->fuse->running)
        env_sleep(NS_PER_MS);
    check_equal(inode_table_count(kernel->graph.inodes), 1); /* the look-up is not counted */
    kernel_free(kernel);
}

static int records_locks(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                         void *reply)
{
    const struct lk_args *in = args;

    (void)reply;
    if (op == FOP_LK) {
        uint64_t *seen = kernel->arg;
        seen[0] = in->lock.start;
        seen[1] = in->lock.len;
        seen[2] = in->type;
        seen[3] = call->owner.data[0];
    }
    return 0;
}

static void the_last_close_gives_back_what_flush_did_not(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct opened file = file_create(kernel);
    struct fuse_lk_in lock = { .fh = file.fh,
                               .owner = 7,
                               .lk_flags = FUSE_LK_FLOCK,
                               .lk = { .type = F_WRLCK, .start = 5, .end = 9 } };
    uint64_t seen[4] = {};
    char out[8];

    kernel->arg = seen;
    kernel->answer = records_locks;
    check_equal(kernel_ask(kernel, FUSE_SETLK, file.nodeid, &lock, sizeof(lock), out, 8), 0);
    check_equal(seen[0], 5);
    check_equal(seen[1], 5);
    check_equal(seen[2], F_WRLCK);
    check_equal(flush_ask(kernel, file, 8), 1); /* another owner's */
    file_close(kernel, file);
    check_equal(seen[0], 0);
    check_equal(seen[1], 0);
    check_equal(seen[2], F_UNLCK);
    check_equal(seen[3], 7);
    kernel_free(kernel);
}

/* --- extended attributes ---------------------------------------------------------------------- */
static int xattr_ask(struct kernel *kernel, uint64_t nodeid, const char *name, uint32_t room,
                     void *out)
{
    struct {
        struct fuse_getxattr_in in;
        char name[64];
    } packet = { .in = { .size = room } };

    strcpy(packet.name, name);
    return kernel_ask(kernel, FUSE_GETXATTR, nodeid, &packet, sizeof(packet.in) + strlen(name) + 1,
                      out, room ? room : 8);
}

static void the_gfid_is_told_without_the_child(void)
{
    struct kernel *kernel = kernel_new(NULL);
    uint64_t nodeid = file_lookup(kernel);
    unsigned before = kernel->calls;
    struct fuse_getxattr_out size;
    char out[64];

    check_equal(xattr_ask(kernel, nodeid, "glusterfs.gfid", 64, out), 16);
    check(memcmp(out, &file_gfid, 16) == 0);
    check_equal(xattr_ask(kernel, nodeid, "glusterfs.gfid.string", 64, out), 36);
    check(memcmp(out, "01020304-0506-0708-090a-0b0c0d0e0f10", 36) == 0);
    check_equal(xattr_ask(kernel, nodeid, "glusterfs.gfid.string", 0, &size), sizeof(size));
    check_equal(size.size, 36);
    check_equal(xattr_ask(kernel, nodeid, "glusterfs.gfid.string", 35, out), -ERANGE);
    check_equal(xattr_ask(kernel, nodeid, "security.selinux", 64, out), -ENODATA);
    check_equal(xattr_ask(kernel, nodeid, "system.posix_acl_access", 64, out), -EOPNOTSUPP);
    check_equal(kernel->calls, before);
    kernel_free(kernel);
}

static void brick_identity_is_not_writable(void)
{
    struct kernel *kernel = kernel_new(NULL);
    static const char *names[] = { "trusted.gfid", "trusted.glusterfs.volume-id" };
    char out[8];

    kernel_init(kernel);
    kernel->calls = 0;
    for (int i = 0; i < 2; i++) {
        struct {
            struct fuse_setxattr_in in;
            char text[64];
        } packet = { .in = { .size = 1 } };
        strcpy(packet.text, names[i]);
        check_equal(kernel_ask(kernel, FUSE_SETXATTR, 1, &packet,
                               sizeof(packet.in) + strlen(names[i]) + 2, out, 8),
                    -EPERM);
        check_equal(kernel_ask(kernel, FUSE_REMOVEXATTR, 1, names[i], strlen(names[i]) + 1, out, 8),
                    -EPERM);
    }
    check_equal(kernel->calls, 0);
    kernel_free(kernel);
}

static int setxattr_checked(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                            void *reply)
{
    const struct setxattr_args *in = args;
    const struct dict_value *value = dict_get(in->dict, "user.x");

    (void)kernel;
    (void)call;
    (void)reply;
    check_equal(op, FOP_SETXATTR);
    check(value && value->type == DICT_PTR && value->bytes == 3 && !memcmp(value->data, "a\0b", 3));
    check_equal(in->flags, 1);
    return 0;
}

static void xattr_values_are_bytes_in_both_forms_of_the_request(void)
{
    struct {
        struct fuse_setxattr_in in;
        char text[10];
    } packet = { .in = { .size = 3, .flags = 1 }, .text = "user.x\0a\0b" };
    char old[8 + 10], out[8];

    for (int extended = 0; extended < 2; extended++) {
        struct kernel *kernel = kernel_new(NULL);
        if (extended)
            kernel_init(kernel);
        kernel->calls = 0;
        kernel->answer = setxattr_checked;
        memcpy(old, &packet, 8);
        memcpy(old + 8, packet.text, 10);
        const void *body = extended ? (void *)&packet : old;
        size_t bytes = extended ? sizeof(packet.in) + 10 : sizeof(old);
        check_equal(kernel_ask(kernel, FUSE_SETXATTR, 1, body, bytes, out, 8), 0);
        check_equal(kernel->calls, 1);
        kernel_free(kernel);
    }
}

static int lists_xattrs(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                        void *reply)
{
    struct getxattr_reply *out = reply;

    (void)kernel;
    (void)call;
    check_equal(op, FOP_GETXATTR);
    check(((const struct getxattr_args *)args)->name == NULL);
    out->dict = dict_new();
    check_equal(dict_set_bytes(out->dict, "user.a", "1", 1), 0);
    check_equal(dict_set_bytes(out->dict, "trusted.b", "2", 1), 0);
    check_equal(dict_set_bytes(out->dict, "security.selinux", "3", 1), 0);
    return 0;
}

static void trusted_names_are_listed_for_root(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_getxattr_in in = { .size = 64 };
    char out[64];

    kernel->answer = lists_xattrs;
    check_equal(kernel_ask(kernel, FUSE_LISTXATTR, 1, &in, sizeof(in), out, 64), 17);
    check(memcmp(out, "user.a\0trusted.b", 17) == 0);
    in.size = 16;
    check_equal(kernel_ask(kernel, FUSE_LISTXATTR, 1, &in, sizeof(in), out, 64), -ERANGE);
    kernel->uid = 1000;
    check_equal(kernel_ask(kernel, FUSE_LISTXATTR, 1, &in, sizeof(in), out, 64), 7);
    kernel_free(kernel);
}

/* --- directories ------------------------------------------------------------------------------ */
static int lists_three(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                       void *reply)
{
    struct readdirp_reply *out = reply;
    struct iatt stat;

    (void)kernel;
    (void)call;
    (void)args;
    if (op != FOP_READDIRP)
        return 0;
    stat_of_file(&stat, S_IFREG | 0600);
    check_equal(dirents_add(&out->entries, ".", 1, 10, DT_DIR, &stat, NULL), 0);
    check_equal(dirents_add(&out->entries, "file", 99, 20, DT_REG, &stat, NULL), 0);
    check_equal(dirents_add(&out->entries, "unknown", 42, 30, DT_REG, &(struct iatt){}, NULL), 0);
    out->eof = true;
    return 3;
}

static uint64_t directory_open(struct kernel *kernel)
{
    struct fuse_open_in in = { .flags = O_RDONLY | O_DIRECTORY };
    struct fuse_open_out out;

    kernel->answer = NULL;
    check_equal(kernel_ask(kernel, FUSE_OPENDIR, 1, &in, sizeof(in), &out, sizeof(out)),
                sizeof(out));
    return out.fh;
}

static void a_listing_with_attributes_counts_lookups(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_read_in in = { .fh = directory_open(kernel), .size = 4096 };
    uint8_t out[4096];

    kernel->answer = lists_three;
    int ret = kernel_ask(kernel, FUSE_READDIRPLUS, 1, &in, sizeof(in), out, sizeof(out));
    check_equal(ret, 160 + 160 + 160);
    struct fuse_direntplus *entry = (void *)out;
    check_equal(entry->entry_out.nodeid, 0); /* "." is not looked up */
    check_equal(entry->dirent.off, 10);
    entry = (void *)(out + 160);
    check(entry->entry_out.nodeid > 1);
    check_equal(entry->dirent.ino, 0x090a0b0c0d0e0f10); /* as stat will say */
    check(memcmp(entry->dirent.name, "file", 4) == 0 && entry->dirent.namelen == 4);
    entry = (void *)(out + 320);
    check_equal(entry->entry_out.nodeid, 0); /* the kernel looks it up itself */
    check_equal(entry->dirent.ino, 42);
    check_equal(inode_table_count(kernel->graph.inodes), 2);

    in.offset = 30; /* the child has said that nothing follows */
    unsigned before = kernel->calls;
    check_equal(kernel_ask(kernel, FUSE_READDIRPLUS, 1, &in, sizeof(in), out, sizeof(out)), 0);
    check_equal(kernel->calls, before);
    kernel_free(kernel);
}

static void a_listing_keeps_to_its_room(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_read_in in = { .fh = directory_open(kernel), .size = 80 };
    uint8_t out[4096];

    kernel->answer = lists_three;
    check_equal(kernel_ask(kernel, FUSE_READDIR, 1, &in, sizeof(in), out, sizeof(out)), 32 + 32);
    in.offset = 20;
    unsigned before = kernel->calls;
    check(kernel_ask(kernel, FUSE_READDIR, 1, &in, sizeof(in), out, sizeof(out)) > 0);
    check_equal(kernel->calls, before + 1); /* the end had not been shown */
    in.size = 16;
    check_equal(kernel_ask(kernel, FUSE_READDIR, 1, &in, sizeof(in), out, sizeof(out)), -EINVAL);
    kernel_free(kernel);
}

/* --- before the child is up ------------------------------------------------------------------- */
static void requests_wait_for_the_child(void)
{
    struct kernel *kernel = kernel_new(NULL);
    struct fuse_entry_out entry;
    size_t bytes;
    uint64_t answered;

    kernel->fuse->up = false;
    kernel->answer = lookup_finds;
    kernel_init(kernel); /* does not */
    uint64_t unique = kernel_send(kernel, FUSE_LOOKUP, 1, "f", 2);
    env_sleep(20 * NS_PER_MS);
    check_equal(kernel->calls, 0);
    xlator_notify(&kernel->child, EVENT_CHILD_UP, NULL);
    check_equal(kernel_receive(kernel, &answered, &entry, sizeof(entry), &bytes), 0);
    check_equal(answered, unique);
    kernel_free(kernel);
}

static void the_end_of_the_mount_ends_waiting_requests(void)
{
    struct kernel *kernel = kernel_new(NULL);

    kernel->fuse->up = false;
    kernel_send(kernel, FUSE_LOOKUP, 1, "f", 2);
    env_sleep(10 * NS_PER_MS);
    kernel_free(kernel); /* finds nothing left */
}

/* --- mount options ---------------------------------------------------------------------------- */
static void mount_words_become_flags(void)
{
    unsigned long flags = MS_RDONLY;
    char data[128] = "fd=3", small[12] = "fd=3";

    check_equal(mount_options_split("noatime,rw,context=\"a:b,c\",nosuid,auto_unmount,max_read=5",
                                    &flags, data, sizeof(data)),
                0);
    check_equal(flags, MS_NOATIME | MS_NOSUID);
    check_equal(strcmp(data, "fd=3,context=\"a:b,c\",max_read=5"), 0);
    check_equal(mount_options_split("blksize=512", &flags, small, sizeof(small)), -E2BIG);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(init_takes_only_what_is_offered, REAL),
    FIBER_CASE(init_honours_options, REAL),
    FIBER_CASE(locks_are_the_kernels_where_the_volume_has_none, REAL),
    FIBER_CASE(a_kernel_too_old_is_refused, REAL),
    FIBER_CASE(a_newer_major_asks_again, REAL),
    FIBER_CASE(an_entry_tells_what_the_child_said, REAL),
    FIBER_CASE(an_inode_lives_until_all_lookups_are_forgotten, REAL),
    FIBER_CASE(absence_is_remembered_only_if_asked, REAL),
    FIBER_CASE(malformed_requests_do_not_reach_the_child, REAL),
    FIBER_CASE(rename_flags_are_refused, REAL),
    FIBER_CASE(a_childs_enosys_is_not_the_mounts, REAL),
    FIBER_CASE(written_bytes_arrive_on_a_page, REAL),
    FIBER_CASE(read_bytes_are_the_childs, REAL),
    FIBER_CASE(direct_opens_bypass_the_page_cache, REAL),
    FIBER_CASE(flush_reaches_the_child_after_writes_and_locks_only, REAL),
    FIBER_CASE(a_write_takes_set_user_id_away, REAL),
    FIBER_CASE(fallocate_modes_become_operations, REAL),
    FIBER_CASE(a_signal_ends_the_wait_for_a_lock, REAL),
    FIBER_CASE(a_signal_does_not_end_other_requests, REAL),
    FIBER_CASE(a_killed_caller_is_answered_at_once, REAL),
    FIBER_CASE(the_last_close_gives_back_what_flush_did_not, REAL),
    FIBER_CASE(the_gfid_is_told_without_the_child, REAL),
    FIBER_CASE(brick_identity_is_not_writable, REAL),
    FIBER_CASE(xattr_values_are_bytes_in_both_forms_of_the_request, REAL),
    FIBER_CASE(trusted_names_are_listed_for_root, REAL),
    FIBER_CASE(a_listing_with_attributes_counts_lookups, REAL),
    FIBER_CASE(a_listing_keeps_to_its_room, REAL),
    FIBER_CASE(requests_wait_for_the_child, REAL),
    FIBER_CASE(the_end_of_the_mount_ends_waiting_requests, REAL),
    FIBER_CASE(mount_words_become_flags, REAL),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
