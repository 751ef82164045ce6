/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/client against a brick of the genuine glusterfsd, in namespaces of its own. Skipped
 * where there is no glusterfsd, or where we may not make namespaces. */
#include "../core/backends.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/sync.h"
#include "graph/fop_call.h"
#include "graph/graph.h"
#include "rpc/mgmt.h"

enum { SKIPPED = 77 };
#define BRICK_PORT "24999"

static const char brick_volfile[] =
    "volume posix\n type storage/posix\n option directory /mnt/b\nend-volume\n"
    "volume locks\n type features/locks\n subvolumes posix\nend-volume\n"
    "volume brick\n type performance/io-threads\n subvolumes locks\nend-volume\n"
    "volume server\n type protocol/server\n option transport-type tcp\n"
    " option transport.socket.listen-port " BRICK_PORT "\n"
    " option auth.addr.brick.allow *\n option auth.login.brick.allow u\n"
    " option auth.login.u.password p\n subvolumes brick\nend-volume\n";
#define CLIENT_VOLFILE(more)                                                                       \
    "volume c\n type protocol/client\n option transport-type tcp\n option remote-host 10.77.0.1\n" \
    " option remote-port " BRICK_PORT "\n option remote-subvolume brick\n" more "end-volume\n"

/* --- the genuine brick ------------------------------------------------------------------------ */

static pid_t brick;

static void brick_start(void)
{
    brick = fork();
    check(brick >= 0);
    if (brick == 0) {
        execlp("glusterfsd", "glusterfsd", "-N", "-f", "/mnt/brick.vol", "-l", "/mnt/brick.log",
               "-p", "/mnt/brick.pid", NULL);
        _exit(127);
    }
}

static void brick_stop(int signal)
{
    kill(brick, signal);
    check_equal(waitpid(brick, NULL, 0), brick);
}

/* Own namespaces, an address that is not loopback, a fresh file system with a brick directory. */
static void enter_namespaces(char **argv)
{
    if (getenv("GENUINE_INSIDE"))
        return;
    if (geteuid() != 0 || system("command -v glusterfsd >/dev/null") != 0) {
        fprintf(stderr, "skipped: needs root and the genuine glusterfsd\n");
        exit(SKIPPED);
    }
    if (system("unshare -n -m -p --fork --mount-proc --kill-child true") != 0) {
        fprintf(stderr, "skipped: namespaces cannot be made here\n");
        exit(SKIPPED);
    }
    setenv("GENUINE_INSIDE", "1", 1);
    execlp("unshare", "unshare", "-n", "-m", "-p", "--fork", "--mount-proc", "--kill-child",
           argv[0], NULL);
    exit(1);
}

static void prepare(void)
{
    check_equal(system("mount -t tmpfs x /mnt && mkdir /mnt/b && ip link set lo up && "
                       "ip addr add 10.77.0.1/24 dev lo"), 0);
    FILE *file = fopen("/mnt/brick.vol", "w");
    check(file && fputs(brick_volfile, file) >= 0 && fclose(file) == 0);
}

/* --- a graph of the client alone -------------------------------------------------------------- */

static struct graph *graph;
static struct xlator *top;
static int ups, downs, auth_failures;

static void on_event(struct graph *g, enum xlator_event event, void *data)
{
    (void)g;
    ups += event == EVENT_CHILD_UP;
    downs += event == EVENT_CHILD_DOWN;
    if (event == EVENT_AUTH_FAILED) {
        auth_failures++;
        check(data && strlen(data) > 0);
    }
}

static void graph_begin(const char *text)
{
    char error[VOLFILE_ERROR_SIZE];
    AUTO(volfile) volfile = NULL;
    const struct graph_config config = { .id = 0, .uuid = "test" };
    ups = downs = auth_failures = 0;
    check_equal(volfile_parse(text, strlen(text), error, &volfile), 0);
    check_equal(graph_new(volfile, &config, &graph), 0);
    graph->on_event = on_event;
    top = graph->top;
    check_equal(graph_init(graph), 0);
    check_equal(graph_start(graph), 0);
}

static void graph_end(void)
{
    graph_stop(graph);
    graph_free(graph);
}

static void wait_until_up(int count)
{
    uint64_t until_ns = env_now_ns() + 30 * NS_PER_S;
    while (ups < count) {
        check(env_now_ns() < until_ns);
        env_sleep(10 * NS_PER_MS);
    }
}

/* --- operations ------------------------------------------------------------------------------- */

static struct call root = { .pid = 1234 };

static struct dict *gfid_req(void)
{
    struct dict *dict = dict_new();
    gfid_t gfid;
    gfid_generate(&gfid);
    check_equal(dict_set_gfid(dict, "gfid-req", &gfid), 0);
    return dict;
}

static struct inode *inode_root(void)
{
    return inode_get(graph->inodes, &gfid_root);
}

static int lookup(struct inode *parent, const char *name, struct iatt *ret_stat)
{
    const struct lookup_args in = { .parent = parent, .name = name };
    struct lookup_reply out = { 0 };
    int ret = fop_lookup(top, &root, &in, &out);
    *ret_stat = out.stat;
    lookup_reply_fini(&out);
    return ret;
}

static int make_dir(struct inode *parent, const char *name, struct iatt *ret_stat)
{
    AUTO(dict) xdata = gfid_req();
    const struct mkdir_args in = { .parent = parent, .name = name, .mode = 0755, .xdata = xdata };
    struct mkdir_reply out = { 0 };
    int ret = fop_mkdir(top, &root, &in, &out);
    *ret_stat = out.stat;
    mkdir_reply_fini(&out);
    return ret;
}

static struct fd *create(struct inode *parent, const char *name, uint32_t flags)
{
    AUTO(dict) xdata = gfid_req();
    struct fd *fd = fd_new(NULL, flags | O_CREAT, root.pid);
    const struct create_args in = { .parent = parent, .name = name, .mode = 0100644,
                                    .flags = flags | O_CREAT, .fd = fd, .xdata = xdata };
    struct create_reply out = { 0 };
    check_equal(fop_create(top, &root, &in, &out), 0);
    check(fd->inode && gfid_equal(&fd->inode->gfid, &out.stat.gfid));
    create_reply_fini(&out);
    return fd;
}

static uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 7 + (at >> 12));
}

static int write_at(struct fd *fd, uint64_t offset, uint32_t bytes)
{
    struct writev_args in = { .fd = fd, .offset = offset, .flags = O_RDWR };
    struct writev_reply out = { 0 };
    uint8_t *data = malloc(bytes);
    for (uint32_t i = 0; i < bytes; i++)
        data[i] = pattern(offset + i);
    check_equal(payload_alloc(&in.payload, bytes), 0);
    payload_copy_in(&in.payload, data);
    int ret = fop_writev(top, &root, &in, &out);
    payload_fini(&in.payload);
    writev_reply_fini(&out);
    free(data);
    return ret;
}

static int read_at(struct fd *fd, uint64_t offset, uint32_t bytes, bool *ret_eof)
{
    const struct readv_args in = { .fd = fd, .offset = offset, .size = bytes, .flags = O_RDWR };
    struct readv_reply out = { 0 };
    int ret = fop_readv(top, &root, &in, &out);
    if (ret >= 0) {
        uint8_t *data = malloc(bytes + 1);
        check_equal(out.payload.bytes, ret);
        payload_copy_out(&out.payload, data);
        for (int i = 0; i < ret; i++)
            check_equal(data[i], pattern(offset + (uint64_t)i));
        free(data);
        *ret_eof = out.eof;
    }
    readv_reply_fini(&out);
    return ret;
}

static int unlink_name(struct inode *parent, const char *name)
{
    const struct unlink_args in = { .parent = parent, .name = name };
    struct unlink_reply out = { 0 };
    int ret = fop_unlink(top, &root, &in, &out);
    unlink_reply_fini(&out);
    return ret;
}

static int set_lock(struct fd *fd, struct call *call, uint32_t cmd, uint32_t type, uint64_t start,
                    uint64_t len)
{
    const struct lk_args in = { .fd = fd, .cmd = cmd, .type = type,
                                .lock = { .type = type, .start = start, .len = len, .pid = 1234 } };
    struct lk_reply out = { 0 };
    int ret = fop_lk(top, call, &in, &out);
    lk_reply_fini(&out);
    return ret;
}

/* --- cases ------------------------------------------------------------------------------------ */

static void names_and_attributes(void)
{
    struct iatt stat, again;
    AUTO(inode) dir = inode_root();
    check_equal(lookup(dir, "nothing", &stat), -ENOENT);
    check_equal(lookup(NULL, "", &stat), -EINVAL);
    check_equal(make_dir(dir, "d", &stat), 0);
    check_equal(stat.mode, S_IFDIR | 0755);
    check_equal(make_dir(dir, "d", &again), -EEXIST);
    check_equal(lookup(dir, "d", &again), 0);
    check(gfid_equal(&stat.gfid, &again.gfid));

    AUTO(inode) d = inode_get(graph->inodes, &stat.gfid);
    AUTO(dict) xdata = gfid_req();
    const struct symlink_args sin = {
        .parent = d, .name = "s", .target = "to/where", .xdata = xdata
    };
    struct symlink_reply sout = { 0 };
    check_equal(fop_symlink(top, &root, &sin, &sout), 0);
    AUTO(inode) s = inode_get(graph->inodes, &sout.stat.gfid);
    symlink_reply_fini(&sout);
    const struct readlink_args rin = { .inode = s, .size = 4096 };
    struct readlink_reply rout = { 0 };
    check_equal(fop_readlink(top, &root, &rin, &rout), 8);
    check(strcmp(rout.path, "to/where") == 0);
    readlink_reply_fini(&rout);

    const struct rename_args nin = {
        .oldparent = d, .oldname = "s", .newparent = dir, .newname = "t"
    };
    struct rename_reply nout = { 0 };
    check_equal(fop_rename(top, &root, &nin, &nout), 0);
    rename_reply_fini(&nout);
    check_equal(lookup(d, "s", &stat), -ENOENT);
    check_equal(lookup(dir, "t", &stat), 0);

    const struct setattr_args ain = { .inode = d, .stat = { .mode = 0700 }, .valid = VALID_MODE };
    struct setattr_reply aout = { 0 };
    check_equal(fop_setattr(top, &root, &ain, &aout), 0);
    check_equal(aout.poststat.mode, S_IFDIR | 0700);
    setattr_reply_fini(&aout);

    struct statfs_reply fout = { 0 };
    check_equal(fop_statfs(top, &root, &(struct statfs_args){ .inode = dir }, &fout), 0);
    check(fout.statfs.bsize > 0 && fout.statfs.namemax == 255);
    statfs_reply_fini(&fout);

    check_equal(unlink_name(dir, "t"), 0);
    struct rmdir_reply dout = { 0 };
    check_equal(fop_rmdir(top, &root, &(struct rmdir_args){ .parent = dir, .name = "d" }, &dout),
                0);
    rmdir_reply_fini(&dout);
}

static void data_of_every_size(void)
{
    static const uint32_t sizes[] = { 1, 511, 4096, 16384, 65537, 131072, 1 << 20, 3 << 20 };
    AUTO(inode) dir = inode_root();
    AUTO(fd) fd = create(dir, "data", O_RDWR | O_EXCL);
    bool eof = false;
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        check_equal(write_at(fd, 1000, sizes[i]), sizes[i]);
        check_equal(read_at(fd, 1000, sizes[i], &eof), sizes[i]);
        check_equal(read_at(fd, 1000, sizes[i] + 4096, &eof), sizes[i]);
        check(eof);
        check_equal(read_at(fd, 1000 + sizes[i], 4096, &eof), 0);
        check(eof);
    }
    struct fsync_reply sout = { 0 };
    check_equal(fop_fsync(top, &root, &(struct fsync_args){ .fd = fd, .datasync = 1 }, &sout), 0);
    fsync_reply_fini(&sout);
    struct ftruncate_reply tout = { 0 };
    check_equal(fop_ftruncate(top, &root, &(struct ftruncate_args){ .fd = fd, .offset = 1500 },
                              &tout),
                0);
    check_equal(tout.poststat.size, 1500);
    ftruncate_reply_fini(&tout);
    struct fstat_reply fout = { 0 };
    check_equal(fop_fstat(top, &root, &(struct fstat_args){ .fd = fd }, &fout), 0);
    check_equal(fout.stat.size, 1500);
    fstat_reply_fini(&fout);
    AUTO(fd) anonymous = fd_anonymous(fd->inode);
    check_equal(read_at(anonymous, 1000, 500, &eof), 500);
    check_equal(unlink_name(dir, "data"), 0);
    check_equal(read_at(fd, 1000, 500, &eof), 500); /* by its number: the name is gone */
}

static void attributes_of_users(void)
{
    AUTO(inode) dir = inode_root();
    AUTO(fd) fd = create(dir, "x", O_RDWR);
    AUTO(dict) dict = dict_new();
    check_equal(dict_set_bytes(dict, "trusted.name", "value", 5), 0);
    struct setxattr_reply sout = { 0 };
    check_equal(fop_setxattr(top, &root,
                             &(struct setxattr_args){ .inode = fd->inode, .dict = dict }, &sout),
                0);
    setxattr_reply_fini(&sout);
    struct getxattr_reply gout = { 0 };
    check_equal(fop_getxattr(top, &root,
                             &(struct getxattr_args){ .inode = fd->inode, .name = "trusted.name" },
                             &gout), 5);
    const struct dict_value *value = dict_get(gout.dict, "trusted.name");
    check(value && value->bytes == 5 && memcmp(value->data, "value", 5) == 0);
    getxattr_reply_fini(&gout);
    check_equal(fop_getxattr(top, &root,
                             &(struct getxattr_args){ .inode = fd->inode, .name = "trusted.other" },
                             &gout), -ENODATA);
    getxattr_reply_fini(&gout);
    check_equal(unlink_name(dir, "x"), 0);
}

static void directories_are_listed(void)
{
    enum { FILES = 500 };
    struct iatt stat;
    AUTO(inode) dir = inode_root();
    check_equal(make_dir(dir, "many", &stat), 0);
    AUTO(inode) many = inode_get(graph->inodes, &stat.gfid);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file-%d", i);
        fd_unref(create(many, name, O_RDWR));
    }
    AUTO(fd) fd = fd_new(many, O_RDONLY, 1);
    fd->is_dir = true;
    struct opendir_reply oout = { 0 };
    check_equal(fop_opendir(top, &root, &(struct opendir_args){ .inode = many, .fd = fd }, &oout),
                0);
    opendir_reply_fini(&oout);
    uint64_t offset = 0;
    int seen = 0;
    for (bool eof = false; !eof;) {
        struct readdirp_reply out = { 0 };
        int ret = fop_readdirp(top, &root,
                               &(struct readdirp_args){
                                   .fd = fd, .size = 131072, .offset = offset },
                               &out);
        check(ret >= 0);
        for (struct dirent_entry *e = out.entries.first; e; e = e->next) {
            seen += strncmp(e->name, "file-", 5) == 0;
            if (strncmp(e->name, "file-", 5) == 0)
                check_equal(e->stat->mode & S_IFMT, S_IFREG);
            offset = e->off;
        }
        eof = out.eof || ret == 0;
        readdirp_reply_fini(&out);
    }
    check_equal(seen, FILES);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file-%d", i);
        check_equal(unlink_name(many, name), 0);
    }
    struct rmdir_reply dout = { 0 };
    check_equal(fop_rmdir(top, &root, &(struct rmdir_args){ .parent = dir, .name = "many" }, &dout),
                0);
    rmdir_reply_fini(&dout);
}

/* --- locks ------------------------------------------------------------------------------------ */

static struct call one = { .pid = 1, .owner = { 8, "owner1.." } };
static struct call two = { .pid = 2, .owner = { 8, "owner2.." } };
static int waiter_ret;
static struct fd *waiter_fd;

static void lock_waiter(void *arg)
{
    (void)arg;
    waiter_ret = set_lock(waiter_fd, &two, 2, RANGE_WRITE, 0, 10);
}

static void an_interrupted_lock_is_not_left_behind(void)
{
    struct call_cancel cancel;
    AUTO(inode) dir = inode_root();
    AUTO(fd) fd = create(dir, "lock", O_RDWR);
    call_cancel_init(&cancel);
    check_equal(set_lock(fd, &one, 1, RANGE_WRITE, 0, 10), 0);
    check_equal(set_lock(fd, &two, 1, RANGE_WRITE, 5, 10), -EAGAIN);
    waiter_fd = fd;
    waiter_ret = 1;
    two.cancel = &cancel;
    check_equal(fiber_start("waiter", lock_waiter, NULL), 0);
    env_sleep(50 * NS_PER_MS);
    check_equal(waiter_ret, 1);
    call_cancel_fire(&cancel);
    env_sleep(10 * NS_PER_MS);
    check_equal(waiter_ret, -EINTR);
    two.cancel = NULL;
    call_cancel_fini(&cancel);
    check_equal(set_lock(fd, &one, 1, RANGE_UNLOCK, 0, 10), 0); /* now it is granted to nobody */
    int ret = -EAGAIN;
    for (int i = 0; i < 100 && ret == -EAGAIN; i++) {
        env_sleep(10 * NS_PER_MS);
        ret = set_lock(fd, &one, 1, RANGE_WRITE, 0, 10);
    }
    check_equal(ret, 0);
    check_equal(unlink_name(dir, "lock"), 0);
}

static void a_granted_lock_ends_its_wait(void)
{
    AUTO(inode) dir = inode_root();
    AUTO(fd) fd = create(dir, "lock", O_RDWR);
    check_equal(set_lock(fd, &one, 1, RANGE_WRITE, 0, 10), 0);
    waiter_fd = fd;
    waiter_ret = 1;
    check_equal(fiber_start("waiter", lock_waiter, NULL), 0);
    env_sleep(50 * NS_PER_MS);
    check_equal(waiter_ret, 1);
    check_equal(set_lock(fd, &one, 1, RANGE_UNLOCK, 0, 10), 0);
    env_sleep(50 * NS_PER_MS);
    check_equal(waiter_ret, 0);
    check_equal(set_lock(fd, &two, 1, RANGE_UNLOCK, 0, 10), 0);
    check_equal(unlink_name(dir, "lock"), 0);
}

/* --- connections ------------------------------------------------------------------------------ */

struct hammer {
    struct fd *fd;
    struct fgroup group;
    uint64_t done;
};

static void hammer_leg(void *arg)
{
    struct hammer *hammer = arg;
    bool eof;
    for (int i = 0; i < 200; i++) {
        check_equal(read_at(hammer->fd, (uint64_t)(i % 16) * 4096, 4096, &eof), 4096);
        hammer->done++;
    }
}

static void many_at_once(void)
{
    AUTO(inode) dir = inode_root();
    struct hammer hammer = { .fd = create(dir, "hammer", O_RDWR) };
    check_equal(write_at(hammer.fd, 0, 65536), 65536);
    uint64_t begin = env_now_ns();
    fgroup_init(&hammer.group, 0);
    for (int i = 0; i < 40; i++)
        check_equal(fgroup_start(&hammer.group, "hammer", hammer_leg, &hammer), 0);
    fgroup_wait(&hammer.group, NULL, NULL);
    fgroup_fini(&hammer.group);
    fprintf(stderr, "# %lu reads of 4 KiB, 40 at once: %lu a second\n", (unsigned long)hammer.done,
            (unsigned long)(hammer.done * NS_PER_S / (env_now_ns() - begin)));
    fd_unref(hammer.fd);
    check_equal(unlink_name(dir, "hammer"), 0);
}

static void files_are_opened_anew_after_a_restart(void)
{
    bool eof;
    int before = ups, downs_before = downs;
    AUTO(inode) dir = inode_root();
    AUTO(fd) fd = create(dir, "stays", O_RDWR);
    check_equal(write_at(fd, 0, 4096), 4096);
    brick_stop(SIGKILL);
    env_sleep(100 * NS_PER_MS);
    check_equal(downs, downs_before + 1);
    check_equal(write_at(fd, 0, 4096), -ENOTCONN); /* after its second of patience */
    brick_start();
    wait_until_up(before + 1);
    check_equal(write_at(fd, 4096, 4096), 4096);
    check_equal(unlink_name(dir, "stays"), 0);
    check_equal(read_at(fd, 0, 8192, &eof), 8192); /* by its new number: the name is gone */
}

static void on_genuine_brick(void)
{
    graph_begin(CLIENT_VOLFILE(" option ping-timeout 5\n"));
    wait_until_up(1);
    fprintf(stderr, "# %s\n", env_name());
    names_and_attributes();
    data_of_every_size();
    attributes_of_users();
    directories_are_listed();
    a_granted_lock_ends_its_wait();
    an_interrupted_lock_is_not_left_behind();
    many_at_once();
    files_are_opened_anew_after_a_restart();
    graph_end();
}

static void a_wrong_password_is_told(void)
{
    graph_begin(CLIENT_VOLFILE(" option username u\n option password wrong\n"));
    for (int i = 0; i < 500 && !auth_failures; i++)
        env_sleep(10 * NS_PER_MS);
    check(auth_failures > 0);
    check_equal(ups, 0);
    graph_end();
}

static void with_a_password_it_works(void)
{
    struct iatt stat;
    graph_begin(CLIENT_VOLFILE(" option username u\n option password p\n"));
    wait_until_up(1);
    struct inode *dir = inode_root();
    check_equal(lookup(dir, "nothing", &stat), -ENOENT);
    inode_unref(dir);
    graph_end();
}

/* --- glusterd --------------------------------------------------------------------------------- */

static unsigned fetchspecs;

static void on_callback(struct rpc_client *client, const struct rpc_header *header,
                        struct reader *body)
{
    (void)client;
    (void)body;
    fetchspecs += header->program == RPC_CALLBACK_PROGRAM &&
                  header->procedure == RPC_CALLBACK_FETCHSPEC;
}

static void set_option(void *arg)
{
    check_equal(system(arg), 0);
}

/* The volfile's first volume, which is a protocol/client without a port. */
static char *first_client(struct rpc_client *glusterd)
{
    char *spec, *servers;
    const struct getspec in = { .key = "v", .flags = GETSPEC_CLIENT };
    check_equal(glusterd_getspec(glusterd, &in, 0, &spec, &servers), 0);
    free(servers);
    check(strncmp(spec, "volume v-client-0\n", 18) == 0);
    check(strstr(spec, "option password ") != NULL); /* we are local: the trusted one */
    char *end = strstr(spec, "end-volume\n");
    check(end && !strstr(spec, "remote-port"));
    end[strlen("end-volume\n")] = 0;
    return spec;
}

static void a_brick_is_found_through_glusterd(void)
{
    struct rpc_client_config config = { .name = "getspec", .callback = on_callback };
    struct rpc_client *glusterd;
    const struct getspec unknown = { .key = "nosuch", .flags = GETSPEC_CLIENT };
    struct iatt stat;
    char *none;
    uint16_t port;
    fetchspecs = 0;
    check_equal(rpc_client_new(&config, &glusterd), 0);
    check_equal(rpc_connect_host(glusterd, "10.77.0.1", GLUSTERD_PORT, AF_UNSPEC, RPC_BIND_HIGH, 0),
                0);
    check_equal(glusterd_getspec(glusterd, &unknown, 0, &none, NULL), -ENOENT);
    check_equal(glusterd_port_of_brick(glusterd, "/no/such/brick", 0, &port), -ENOENT);
    AUTO_FREE char *spec = first_client(glusterd);
    hop(pool_default(), set_option,
        "gluster --mode=script volume set v performance.cache-size 64MB >/dev/null");
    for (int i = 0; i < 300 && !fetchspecs; i++)
        env_sleep(10 * NS_PER_MS);
    check(fetchspecs > 0);
    rpc_client_free(glusterd);

    graph_begin(spec);
    wait_until_up(1);
    struct inode *dir = inode_root();
    check_equal(make_dir(dir, "d", &stat), 0);
    struct rmdir_reply out = { 0 };
    check_equal(fop_rmdir(top, &root, &(struct rmdir_args){ .parent = dir, .name = "d" }, &out), 0);
    rmdir_reply_fini(&out);
    inode_unref(dir);
    graph_end();
}

static void glusterd_start(void)
{
    check_equal(system("mount -t tmpfs x /var/lib/glusterd && mount -t tmpfs x /var/log && "
                       "mount -t tmpfs x /run && mkdir -p /run/gluster /var/log/glusterfs/bricks"),
                0);
    check_equal(system(
                    "glusterd -N -L WARNING & "
                    "for i in $(seq 100); do gluster volume list >/dev/null 2>&1 && break; "
                    "sleep 0.1; done; "
                    "gluster --mode=script volume create v 10.77.0.1:/mnt/gb force >/dev/null && "
                    "gluster --mode=script volume start v >/dev/null"),
                0);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(a_brick_is_found_through_glusterd, REAL),
    FIBER_CASE(on_genuine_brick, REAL),
    FIBER_CASE(a_wrong_password_is_told, REAL),
    FIBER_CASE(with_a_password_it_works, REAL),
};

int main(int argc, char **argv)
{
    (void)argc;
    enter_namespaces(argv);
    prepare();
    glusterd_start();
    brick_start();
    int failed = on_backends(cases, ARRAY_SIZE(cases));
    brick_stop(SIGTERM);
    return failed;
}
