/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol/client against a brick that does what we need it to do: lose connections, refuse, lie.
 * */
#include "../core/backends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "core/sync.h"
#include "fop/fop_codec.h"
#include "graph/fop_call.h"
#include "graph/graph.h"
#include "rpc/dict_wire.h"
#include "rpc/server.h"

enum { FOP_PROGRAM = 1298437, PROCEDURES = 57, RELEASE = 41, RELEASEDIR = 42 };

/* --- the brick -------------------------------------------------------------------------------- */

static struct {
    struct rpc_server *server;
    struct env_address address;
    int calls[PROCEDURES];        /* by procedure */
    int64_t next_fd, released;
    uint32_t flags;               /* of the latest OPEN, CREATE, WRITE or READ */
    struct rpc_cred cred;         /* of the latest operation */
    int lose_every, seen;         /* each time that so many were seen, one is lost */
    int lose;                     /* so many operations end the connection instead of an answer */
    int setvolume_errno;          /* refuse SETVOLUME with it */
    char identities[4][400];
    int handshakes;
    enum { HONEST, SHORT_READ, NO_GFID, BAD_FD, BAD_ERRNO, GARBAGE } lie;
    struct fiber *held;
    int unlocks;
} brick;

static const gfid_t file_gfid = { { [15] = 42 } };

static void brick_setvolume(struct rpc_request *req)
{
    uint8_t *bytes = NULL;
    uint32_t count = 0;
    AUTO(dict) dict = NULL;
    AUTO(dict) answer = dict_new();
    check_equal(reader_opaque(&req->body, 1 << 16, &bytes, &count), 0);
    check_equal(dict_decode_legacy(bytes, count, &dict), 0);
    check(strcmp(dict_get_str(dict, "remote-subvolume"), "brick") == 0);
    check(strcmp(dict_get_str(dict, "fops-version"), "1298437") == 0);
    check(strcmp(dict_get_str(dict, "ping-timeout"), "7") == 0); /* options go verbatim */
    check_equal(req->cred.flavor, RPC_AUTH_V3);
    snprintf(brick.identities[brick.handshakes++ % 4], 400, "%s",
             dict_get_str(dict, "process-uuid"));
    check_equal(dict_set_str(answer, "ERROR", brick.setvolume_errno ? "go away" : "Success"), 0);
    check_equal(dict_set_str(answer, "child_up", "1"), 0);
    rpc_conn_set_user(req->conn, &brick);
    struct writer *w = rpc_reply_begin(req);
    writer_u32(w, brick.setvolume_errno ? (uint32_t)-1 : 0);
    writer_u32(w, (uint32_t)brick.setvolume_errno);
    dict_encode_legacy(w, answer);
    rpc_reply_send(req, NULL);
}

static int work_open(int64_t *ret_fd)
{
    *ret_fd = brick.lie == BAD_FD ? -1 : brick.next_fd++;
    return 0;
}

static int work_create(const struct create_args *in, struct create_reply *out)
{
    brick.flags = in->flags;
    out->stat.gfid = brick.lie == NO_GFID ? gfid_null : file_gfid;
    out->stat.mode = S_IFREG | 0644;
    return work_open(&out->fd);
}

static int work_read(const struct readv_args *in, struct readv_reply *out)
{
    brick.flags = in->flags;
    check_equal(payload_alloc(&out->payload, in->size), 0);
    for (uint32_t i = 0; i < out->payload.segs; i++)
        memset(out->payload.iov[i].iov_base, 'r', out->payload.iov[i].iov_len);
    return (int)in->size - (brick.lie == SHORT_READ);
}

static int work_lk(const struct lk_args *in)
{
    brick.unlocks += in->lock.type == RANGE_UNLOCK;
    if (in->cmd == 2) { /* waits until the test grants it */
        brick.held = fiber_self();
        fiber_park("test");
    }
    return 0;
}

static int brick_work(enum fop op, const union fop_args *args, union fop_reply *reply)
{
    if (brick.lie == BAD_ERRNO)
        return -70000;
    switch (op) {
    case FOP_OPEN:
        brick.flags = args->open.flags;
        return work_open(&reply->open.fd);
    case FOP_CREATE:
        return work_create(&args->create, &reply->create);
    case FOP_READV:
        return work_read(&args->readv, &reply->readv);
    case FOP_WRITEV:
        brick.flags = args->writev.flags;
        return (int)args->writev.payload.bytes;
    case FOP_LK:
        return work_lk(&args->lk);
    default:
        return 0;
    }
}

static bool brick_loses(struct rpc_request *req)
{
    bool is_due = brick.lose_every && ++brick.seen % brick.lose_every == 0;
    if (brick.lose == 0 && !is_due)
        return false;
    brick.lose -= brick.lose > 0;
    rpc_conn_close(req->conn);
    rpc_no_reply(req);
    return true;
}

static void brick_fop(struct rpc_request *req)
{
    enum fop op = fop_of_procedure(req->procedure);
    union fop_args args;
    union fop_reply reply;
    struct fop_refs refs;
    check(op != FOP_COUNT);
    brick.calls[req->procedure]++;
    brick.cred = req->cred;
    check_equal(fop_decode_args(op, &req->body, &req->payload, &args, &refs), 0);
    memset(&reply, 0, sizeof(reply));
    if (!brick_loses(req)) {
        int ret = brick_work(op, &args, &reply);
        fop_encode_reply(op, ret, &reply, rpc_reply_begin(req));
        if (brick.lie == GARBAGE) {
            rpc_reply_error(req, RPC_GARBAGE_ARGS);
        } else {
            rpc_reply_send(req, fop_reply_payload(op, &reply));
        }
    }
    fop_args_fini(op, &args);
    fop_reply_fini(op, &reply);
}

static void brick_release(struct rpc_request *req)
{
    gfid_t gfid;
    brick.calls[req->procedure]++;
    check_equal(reader_gfid(&req->body, &gfid), 0);
    check_equal(reader_i64(&req->body, &brick.released), 0);
    check_equal(reader_left(&req->body), 12); /* no dict */
    struct writer *w = rpc_reply_begin(req);
    writer_u64(w, 0);
    dict_encode(w, NULL);
    rpc_reply_send(req, NULL);
}

static struct rpc_procedure fop_procedures[PROCEDURES];
static struct rpc_program fop_program = { FOP_PROGRAM, 400, "GlusterFS 4.x v1", fop_procedures,
                                          PROCEDURES };
static const struct rpc_procedure handshake_procedures[] = {
    [1] = { "SETVOLUME", brick_setvolume },
};
static const struct rpc_program handshake_program = { 14398633, 2, "GlusterFS Handshake",
                                                      handshake_procedures, 2 };

static void brick_start(uint16_t port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct rpc_server_config config = { .name = "brick" };
    for (int i = 0; i < PROCEDURES; i++)
        fop_procedures[i] = (struct rpc_procedure){ .name = "FOP", .handler = brick_fop };
    fop_procedures[RELEASE].handler = fop_procedures[RELEASEDIR].handler = brick_release;
    fop_procedures[13].payload_fixed = 52;
    fop_procedures[13].payload_size_at = 40;
    brick.address = (struct env_address){ .bytes = sizeof(in) };
    memcpy(&brick.address.sockaddr, &in, sizeof(in));
    check_equal(rpc_server_new(&config, &brick.server), 0);
    check_equal(rpc_server_register(brick.server, &fop_program), 0);
    check_equal(rpc_server_register(brick.server, &handshake_program), 0);
    check_equal(rpc_server_listen(brick.server, &brick.address), 0);
    check_equal(rpc_server_address(brick.server, &brick.address), 0);
}

static void brick_stop(void)
{
    rpc_server_stop(brick.server);
    rpc_server_free(brick.server);
}

static uint16_t brick_port(void)
{
    return ntohs(((const struct sockaddr_in *)(const void *)&brick.address.sockaddr)->sin_port);
}

/* --- the client ------------------------------------------------------------------------------- */

static struct graph *graph;
static struct xlator *top;
static int ups, downs, refusals;
static struct call user = { .pid = 77, .uid = 10, .gid = 20, .owner = { 4, "me.." } };

static void on_event(struct graph *g, enum xlator_event event, void *data)
{
    (void)g;
    ups += event == EVENT_CHILD_UP;
    downs += event == EVENT_CHILD_DOWN;
    if (event == EVENT_AUTH_FAILED) {
        check(strcmp(data, "go away") == 0);
        refusals++;
    }
}

static void client_start(const char *options)
{
    char text[1024], error[VOLFILE_ERROR_SIZE];
    AUTO(volfile) volfile = NULL;
    const struct graph_config config = { .id = 3, .uuid = "test" };
    snprintf(text, sizeof(text),
             "volume c\n type protocol/client\n option remote-host 127.0.0.1\n"
             " option remote-port %u\n option remote-subvolume brick\n option ping-timeout 7\n"
             "%send-volume\n", brick_port(), options);
    ups = downs = refusals = 0;
    check_equal(volfile_parse(text, strlen(text), error, &volfile), 0);
    check_equal(graph_new(volfile, &config, &graph), 0);
    graph->on_event = on_event;
    top = graph->top;
    check_equal(graph_init(graph), 0);
    check_equal(graph_start(graph), 0);
}

static void wait_for(const int *count, int expected)
{
    uint64_t until_ns = env_now_ns() + 20 * NS_PER_S;
    while (*count < expected) {
        check(env_now_ns() < until_ns);
        env_sleep(NS_PER_MS);
    }
}

static void begin(const char *options)
{
    memset(&brick, 0, sizeof(brick));
    fop_program.version = 400;
    brick_start(0);
    client_start(options);
    wait_for(&ups, 1);
}

static void end(void)
{
    graph_stop(graph);
    graph_free(graph);
    brick_stop();
}

static struct fd *open_file(uint32_t flags, int expected)
{
    AUTO(inode) inode = inode_get(graph->inodes, &file_gfid);
    struct fd *fd = fd_new(inode, flags, 1);
    struct open_reply out = { 0 };
    const struct open_args in = { .inode = inode, .fd = fd, .flags = flags };
    check_equal(fop_open(top, &user, &in, &out), expected);
    open_reply_fini(&out);
    return fd;
}

static int read_file(struct fd *fd)
{
    struct readv_reply out = { 0 };
    const struct readv_args in = { .fd = fd, .size = 5000, .flags = fd->flags };
    int ret = fop_readv(top, &user, &in, &out);
    if (ret >= 0)
        check_equal(((uint8_t *)out.payload.iov[0].iov_base)[ret - 1], 'r');
    readv_reply_fini(&out);
    return ret;
}

static int write_file(struct fd *fd)
{
    struct writev_reply out = { 0 };
    struct writev_args in = { .fd = fd, .flags = fd->flags };
    check_equal(payload_alloc(&in.payload, 3000), 0);
    int ret = fop_writev(top, &user, &in, &out);
    payload_fini(&in.payload);
    writev_reply_fini(&out);
    return ret;
}

static int create_file(void)
{
    AUTO(inode) parent = inode_get(graph->inodes, &gfid_root);
    AUTO(fd) fd = fd_new(NULL, O_RDWR, 1);
    struct create_reply out = { 0 };
    const struct create_args in = { .parent = parent, .name = "f", .fd = fd,
                                    .flags = O_CREAT | O_RDWR | O_DIRECT, .mode = S_IFREG | 0644 };
    int ret = fop_create(top, &user, &in, &out);
    check(ret < 0 || gfid_equal(fd_gfid(fd), &file_gfid));
    create_reply_fini(&out);
    return ret;
}

static int lock_file(struct fd *fd, uint32_t cmd, uint32_t type)
{
    struct lk_reply out = { 0 };
    const struct lk_args in = { .fd = fd, .cmd = cmd, .type = type,
                                .lock = { .type = type, .len = 10 } };
    int ret = fop_lk(top, &user, &in, &out);
    lk_reply_fini(&out);
    return ret;
}

/* --- numbers of files ------------------------------------------------------------------------- */

static void the_last_close_releases_the_number(void)
{
    begin("");
    struct fd *first = open_file(O_RDWR, 0), *second = open_file(O_RDWR, 0);
    check_equal(read_file(second), 5000);
    fd_unref(second);
    wait_for(&brick.calls[RELEASE], 1);
    check_equal(brick.released, 1);
    fd_unref(first);
    wait_for(&brick.calls[RELEASE], 2);
    check_equal(brick.released, 0);
    check_equal(create_file(), 0); /* closes what it made */
    wait_for(&brick.calls[RELEASE], 3);
    check_equal(brick.released, 2);
    end();
}

static void credentials_and_flags_are_the_callers(void)
{
    static const uint32_t groups[] = { 5, 6, 7 };
    begin("");
    user.groups = groups;
    user.group_count = 3;
    user.times = TIMES_MTIME;
    user.ctime_sec = 99;
    check_equal(create_file(), 0);
    check_equal(brick.cred.pid, 77);
    check_equal(brick.cred.uid, 10);
    check_equal(brick.cred.gid, 20);
    check_equal(brick.cred.group_count, 3);
    check_equal(brick.cred.groups[2], 7);
    check_equal(brick.cred.flags, TIMES_MTIME);
    check_equal(brick.cred.ctime_sec, 99);
    check_equal(brick.cred.lk_owner_bytes, 4);
    check(brick.flags & O_DIRECT);
    end();
    begin(" option send-gids off\n option filter-O_DIRECT on\n");
    check_equal(create_file(), 0);
    check_equal(brick.cred.group_count, 1);
    check_equal(brick.cred.groups[0], 20);
    check(!(brick.flags & O_DIRECT));
    user.group_count = 0;
    end();
}

/* --- lost connections ------------------------------------------------------------------------- */

static void what_does_no_harm_twice_is_sent_again(void)
{
    begin("");
    struct fd *fd = open_file(O_RDWR, 0);
    brick.lose = 1;
    check_equal(read_file(fd), 5000);
    check_equal(brick.calls[12], 2);
    check_equal(brick.calls[11], 2); /* opened anew first */
    wait_for(&ups, 2);
    check_equal(downs, 1);
    brick.lose = 1;
    check_equal(write_file(fd), 3000);
    wait_for(&ups, 3);
    brick.lose = 1;
    check_equal(create_file(), -ENOTCONN);
    check_equal(brick.calls[23], 1);
    wait_for(&ups, 4);
    check(strcmp(brick.identities[0], brick.identities[1]) != 0);
    fd_unref(fd);
    end();
}

static void an_append_is_not_sent_again(void)
{
    begin("");
    struct fd *fd = open_file(O_WRONLY | O_APPEND, 0);
    brick.lose = 1;
    check_equal(write_file(fd), -ENOTCONN);
    check_equal(brick.calls[13], 1);
    wait_for(&ups, 2);
    check_equal(write_file(fd), 3000);
    fd_unref(fd);
    end();
}

static void calls_fail_while_there_is_no_brick(void)
{
    begin("");
    struct fd *fd = open_file(O_RDWR, 0);
    uint16_t port = brick_port();
    brick_stop();
    uint64_t begin_ns = env_now_ns();
    check_equal(read_file(fd), -ENOTCONN);
    check(env_now_ns() - begin_ns < 2 * NS_PER_S);
    begin_ns = env_now_ns();
    check_equal(read_file(fd), -ENOTCONN);
    check(env_now_ns() - begin_ns < 100 * NS_PER_MS); /* no more patience */
    check_equal(brick.calls[11], 1);
    brick_start(port);
    wait_for(&ups, 2);
    check_equal(brick.calls[11], 2); /* opened anew before the parents heard of it */
    check_equal(read_file(fd), 5000);
    fd_unref(fd);
    end();
}

static void lost_locks_are_not_forgotten_when_that_is_wanted(void)
{
    begin(" option strict-locks on\n");
    struct fd *locked = open_file(O_RDWR, 0), *other = open_file(O_RDWR, 0);
    check_equal(lock_file(locked, 1, RANGE_WRITE), 0);
    brick.lose = 1;
    check_equal(read_file(other), 5000);
    wait_for(&ups, 2);
    check_equal(read_file(locked), -EBADFD);
    check_equal(read_file(other), 5000);
    fd_unref(locked);
    fd_unref(other);
    end();
}

static int waited = 1;

static void waits_for_a_lock(void *arg)
{
    waited = lock_file(arg, 2, RANGE_WRITE);
}

static void a_lock_granted_too_late_is_given_back(void)
{
    struct call_cancel cancel;
    begin("");
    struct fd *fd = open_file(O_RDWR, 0);
    call_cancel_init(&cancel);
    user.cancel = &cancel;
    waited = 1;
    check_equal(fiber_start("waiter", waits_for_a_lock, fd), 0);
    while (!brick.held)
        env_sleep(NS_PER_MS);
    call_cancel_fire(&cancel);
    env_sleep(20 * NS_PER_MS);
    check_equal(waited, -EINTR);
    check_equal(brick.unlocks, 0);
    fiber_wake(brick.held);
    wait_for(&brick.unlocks, 1);
    user.cancel = NULL;
    call_cancel_fini(&cancel);
    fd_unref(fd);
    end();
}

/* --- a storm ---------------------------------------------------------------------------------- */

enum { STORM_FIBERS = 24, STORM_ROUNDS = 60, STORM_LOSS_EVERY = 997 };

struct storm {
    pthread_mutex_t mutex;
    struct fcond cond;
    int running, answered, lost;
};

static bool storm_one(struct fd *fd, int round)
{
    int ret = round % 3 == 0 ? write_file(fd) : read_file(fd);
    check(ret == 5000 || ret == 3000 || ret == -ENOTCONN);
    if (ret < 0)
        env_sleep(100 * NS_PER_MS);
    return ret > 0;
}

static void storm_fiber(void *arg)
{
    struct storm *storm = arg;
    int answered = 0, lost = 0;
    for (int i = 0; i < STORM_ROUNDS; i++) {
        AUTO(inode) inode = inode_get(graph->inodes, &file_gfid);
        AUTO(fd) fd = fd_new(inode, O_RDWR, 1); /* opened when first used */
        *(storm_one(fd, i) ? &answered : &lost) += 1;
        *(storm_one(fd, i + 1) ? &answered : &lost) += 1;
    }
    HOLD(&storm->mutex);
    storm->answered += answered;
    storm->lost += lost;
    storm->running--;
    fcond_wake_all(&storm->cond);
}

/* Many fibers, on two lanes where there are such, while every so many operations end the
 * connection: everybody gets an answer or -ENOTCONN, the brick gets all its numbers back. */
static void everybody_is_answered_in_a_storm_of_losses(void)
{
    struct storm storm = { .mutex = PTHREAD_MUTEX_INITIALIZER, .running = STORM_FIBERS };
    fcond_init(&storm.cond);
    begin("");
    brick.lose_every = STORM_LOSS_EVERY;
    unsigned lanes = env_kind() == ENV_SIM ? 1 : lanes_grow(2);
    for (unsigned i = 0; i < STORM_FIBERS; i++)
        check_equal(fiber_start_on(lane_get(i % lanes), "storm", storm_fiber, &storm), 0);
    {
        HOLD(&storm.mutex);
        while (storm.running)
            fcond_wait(&storm.cond, &storm.mutex, "storm");
    }
    check_equal(storm.answered + storm.lost, STORM_FIBERS * STORM_ROUNDS * 2);
    check(storm.answered > storm.lost);
    check(brick.handshakes > 3);
    brick.lose_every = 0;
    wait_for(&ups, downs + 1);
    AUTO(inode) inode = inode_get(graph->inodes, &file_gfid);
    fd_unref(open_file(O_RDWR, 0));
    inode_unref(TAKE(inode));
    end();
}

/* --- refusals and lies ------------------------------------------------------------------------ */

static void a_refusal_is_told_upwards(void)
{
    memset(&brick, 0, sizeof(brick));
    fop_program.version = 400;
    brick_start(0);
    brick.setvolume_errno = EACCES;
    client_start("");
    wait_for(&refusals, 1);
    check_equal(ups, 0);
    brick.setvolume_errno = EAGAIN; /* "not yet": nobody has to know */
    int before = refusals, tries = brick.handshakes;
    wait_for(&brick.handshakes, tries + 1);
    check_equal(refusals, before);
    brick.setvolume_errno = 0;
    wait_for(&ups, 1);
    end();
}

static void a_peer_of_another_version_is_not_used(void)
{
    memset(&brick, 0, sizeof(brick));
    fop_program.version = 330;
    brick_start(0);
    client_start("");
    wait_for(&downs, 1);
    check_equal(brick.handshakes, 0);
    check_equal(ups, 0);
    struct statfs_reply out = { 0 };
    struct inode *of = inode_get(graph->inodes, &gfid_root);
    check_equal(fop_statfs(top, &user, &(struct statfs_args){ .inode = of }, &out), -ENOTCONN);
    inode_unref(of);
    end();
    fop_program.version = 400;
}

static void lies_are_not_believed(void)
{
    begin("");
    struct fd *fd = open_file(O_RDWR, 0);
    brick.lie = BAD_ERRNO;
    check_equal(write_file(fd), -EIO);
    check_equal(ups, 1); /* no reason to end the connection */
    brick.lie = NO_GFID;
    check_equal(create_file(), -EINVAL);
    brick.lie = GARBAGE;
    check_equal(write_file(fd), -ENOTCONN);
    brick.lie = SHORT_READ;
    check_equal(read_file(fd), -EIO);
    brick.lie = HONEST;
    wait_for(&ups, 2);
    brick.lie = BAD_FD;
    fd_unref(open_file(O_RDWR, -EIO));
    brick.lie = HONEST;
    wait_for(&ups, 3);
    check_equal(read_file(fd), 5000);
    fd_unref(fd);
    end();
}

static void tell_child(struct rpc_conn *conn, void *arg)
{
    check_equal(rpc_callback(conn, RPC_CALLBACK_PROGRAM, RPC_CALLBACK_VERSION, *(uint32_t *)arg,
                             NULL, 0), 0);
}

static void the_bricks_own_state_is_passed_on(void)
{
    uint32_t child_down = 7, child_up = 6;
    begin("");
    rpc_server_each(brick.server, tell_child, &child_down);
    wait_for(&downs, 1);
    rpc_server_each(brick.server, tell_child, &child_up);
    wait_for(&ups, 2);
    check_equal(brick.handshakes, 1);
    end();
}

static const struct fiber_case cases[] = {
    FIBER_CASE(the_last_close_releases_the_number, ALL),
    FIBER_CASE(credentials_and_flags_are_the_callers, ALL),
    FIBER_CASE(what_does_no_harm_twice_is_sent_again, ALL),
    FIBER_CASE(an_append_is_not_sent_again, ALL),
    FIBER_CASE(calls_fail_while_there_is_no_brick, ALL),
    FIBER_CASE(lost_locks_are_not_forgotten_when_that_is_wanted, ALL),
    FIBER_CASE(a_lock_granted_too_late_is_given_back, ALL),
    FIBER_CASE(everybody_is_answered_in_a_storm_of_losses, ALL),
    FIBER_CASE(a_refusal_is_told_upwards, ALL),
    FIBER_CASE(a_peer_of_another_version_is_not_used, ALL),
    FIBER_CASE(lies_are_not_believed, ALL),
    FIBER_CASE(the_bricks_own_state_is_passed_on, ALL),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
