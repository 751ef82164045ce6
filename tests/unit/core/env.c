/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "backends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/lane.h"

static unsigned running;

static void start(const char *name, fiber_fn *fn, void *arg)
{
    running++;
    check_equal(fiber_start(name, fn, arg), 0);
}

static void wait_for_all(void)
{
    while (running > 0)
        env_sleep(NS_PER_MS);
}

/* --- sockets ---------------------------------------------------------------------------------- */

static struct env_address tcp_address(void)
{
    struct env_address address;
    check_equal(env_resolve("127.0.0.1", 0, AF_UNSPEC, &address, 1), 1);
    return address;
}

static struct env_address unix_address(void)
{
    struct env_address address;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/unit-core-env.%d", getpid());
    unlink(path);
    check_equal(env_address_unix(path, &address), 0);
    return address;
}

static int listen_on(struct env_address *address)
{
    int listener = env_listen(address, 128);
    check(listener >= 0);
    check_equal(env_local_address(listener, address), 0);
    return listener;
}

enum {
    LARGE = 3 << 20
};

static void fill(unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 7);
}

/* Sends back what it gets, as it gets it. */
static void echoes(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char *buffer = malloc(65536);
    ssize_t got;
    while ((got = env_recv(fd, buffer, 65536)) > 0) {
        struct iovec iov = { .iov_base = buffer, .iov_len = (size_t)got };
        check_equal(env_send(fd, &iov, 1), got);
    }
    check_equal(got, 0);
    free(buffer);
    check_equal(env_close(fd), 0);
    running--;
}

static void accepts(void *arg)
{
    int listener = (int)(intptr_t)arg;
    for (;;) {
        struct env_address peer;
        int fd = env_accept(listener, &peer);
        if (fd < 0) {
            check_equal(fd, -EINVAL);
            break;
        }
        start("echo", echoes, (void *)(intptr_t)fd);
    }
    running--;
}

struct sender {
    int fd;
    unsigned char *bytes;
    unsigned sizes[4];
};

static void sends_in_pieces(void *arg)
{
    struct sender *sender = arg;
    unsigned char *at = sender->bytes;
    for (unsigned i = 0; i < 4; i++) {
        struct iovec iov[60];
        for (unsigned j = 0; j < 60; j++) {
            iov[j] = (struct iovec){ .iov_base = at, .iov_len = sender->sizes[i] / 60 };
            at += iov[j].iov_len;
        }
        iov[59].iov_len += sender->sizes[i] % 60;
        at += sender->sizes[i] % 60;
        check_equal(env_send(sender->fd, iov, 60), sender->sizes[i]);
    }
    running--;
}

static void talk(const struct env_address *address)
{
    unsigned total = LARGE + 100 + 1 + 70000;
    struct sender sender = { .fd = env_connect(address, NULL, 0),
                             .bytes = malloc(total),
                             .sizes = { 100, LARGE, 1, 70000 } };
    unsigned char *back = malloc(total);
    check(sender.fd >= 0);
    fill(sender.bytes, total, (unsigned)sender.fd);
    start("sender", sends_in_pieces, &sender);
    struct iovec iov[40];
    unsigned done = 0;
    for (unsigned i = 0; i < 40; i++) {
        iov[i] = (struct iovec){ .iov_base = back + done, .iov_len = total / 40 };
        done += total / 40;
    }
    iov[39].iov_len += total - done;
    check_equal(env_recv_all(sender.fd, iov, 40), total);
    check_equal(memcmp(back, sender.bytes, total), 0);
    check_equal(env_shutdown(sender.fd), 0);
    check_equal(env_recv_all(sender.fd, iov, 40), 0);
    while (running > 2) /* sender, this connection's echo */
        env_sleep(NS_PER_MS);
    check_equal(env_close(sender.fd), 0);
    free(sender.bytes);
    free(back);
}

static void echo_over(struct env_address address)
{
    running = 0;
    int listener = listen_on(&address);
    start("accept", accepts, (void *)(intptr_t)listener);
    for (unsigned i = 0; i < 3; i++)
        talk(&address);
    check_equal(env_shutdown(listener), 0);
    wait_for_all();
    check_equal(env_close(listener), 0);
}

static void tcp_echoes_large_messages(void)
{
    echo_over(tcp_address());
}

static void unix_echoes_large_messages(void)
{
    echo_over(unix_address());
}

struct pair {
    int listener, here, there;
};

static void accepts_one(void *arg)
{
    struct pair *pair = arg;
    pair->there = env_accept(pair->listener, NULL);
    check(pair->there >= 0);
    running--;
}

static struct pair pair_new(struct env_address address)
{
    struct pair pair = { .listener = listen_on(&address) };
    running = 0;
    start("accept", accepts_one, &pair);
    pair.here = env_connect(&address, NULL, env_now_ns() + NS_PER_S);
    check(pair.here >= 0);
    wait_for_all();
    return pair;
}

static void pair_free(struct pair *pair)
{
    check_equal(env_close(pair->here), 0);
    check_equal(env_close(pair->there), 0);
    check_equal(env_close(pair->listener), 0);
}

/* Many fibers talk at once, a byte at a time. */
struct chat {
    struct env_address address;
    unsigned char id;
};

static void chats(void *arg)
{
    struct chat *chat = arg;
    int fd = env_connect(&chat->address, NULL, 0);
    check(fd >= 0);
    for (unsigned i = 0; i < 50; i++) {
        unsigned char byte = (unsigned char)(chat->id + i), back = 0;
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        check_equal(env_send(fd, &iov, 1), 1);
        check_equal(env_recv(fd, &back, 1), 1);
        check_equal(back, byte);
    }
    check_equal(env_shutdown(fd), 0);
    check_equal(env_close(fd), 0);
    running--;
}

static void hundred_connections_talk(void)
{
    static struct chat chat[100];
    struct env_address address = tcp_address();
    int listener = listen_on(&address);
    running = 0;
    start("accept", accepts, (void *)(intptr_t)listener);
    for (unsigned i = 0; i < 100; i++) {
        chat[i] = (struct chat){ .address = address, .id = (unsigned char)i };
        start("chat", chats, &chat[i]);
    }
    while (running > 1)
        env_sleep(NS_PER_MS);
    check_equal(env_shutdown(listener), 0);
    wait_for_all();
    check_equal(env_close(listener), 0);
}

static void receives_nothing(void *arg)
{
    char byte;
    check_equal(env_recv((int)(intptr_t)arg, &byte, 1), 0);
    running--;
}

static void sends_until_refused(void *arg)
{
    struct iovec iov = { .iov_base = calloc(1, 1 << 20), .iov_len = 1 << 20 };
    ssize_t ret;
    while ((ret = env_send((int)(intptr_t)arg, &iov, 1)) > 0)
        ;
    check(ret == -EPIPE || ret == -ECONNRESET);
    free(iov.iov_base);
    running--;
}

static void is_refused(void *arg)
{
    check_equal(env_accept((int)(intptr_t)arg, NULL), -EINVAL);
    running--;
}

static void shutdown_wakes_over(struct env_address address)
{
    struct pair pair = pair_new(address);
    start("receiver", receives_nothing, (void *)(intptr_t)pair.here);
    start("sender", sends_until_refused, (void *)(intptr_t)pair.here);
    start("acceptor", is_refused, (void *)(intptr_t)pair.listener);
    env_sleep(20 * NS_PER_MS);
    check_equal(running, 3);
    check_equal(env_shutdown(pair.here), 0);
    check_equal(env_shutdown(pair.listener), 0);
    wait_for_all();
    pair_free(&pair);
}

static void shutdown_wakes_who_is_parked(void)
{
    shutdown_wakes_over(tcp_address());
    shutdown_wakes_over(unix_address());
}

static void end_of_stream_shortens_the_last_receive(void)
{
    struct pair pair = pair_new(tcp_address());
    char text[20] = "0123456789", got[20] = "";
    struct iovec iov = { .iov_base = text, .iov_len = 10 }, to = { .iov_base = got, .iov_len = 20 };
    check_equal(env_send(pair.there, &iov, 1), 10);
    check_equal(env_shutdown(pair.there), 0);
    check_equal(env_recv_all(pair.here, &to, 1), 10);
    check_equal(memcmp(text, got, 10), 0);
    check_equal(env_recv(pair.here, got, 1), 0);
    pair_free(&pair);
}

static void connect_is_refused_or_times_out(void)
{
    struct env_address address = tcp_address();
    int listener = listen_on(&address);
    check_equal(env_close(listener), 0);
    check_equal(env_connect(&address, NULL, 0), -ECONNREFUSED);

    /* a listener that accepts nobody: TCP drops what finds its short queue full */
    address = tcp_address();
    listener = env_listen(&address, 0);
    check(listener >= 0);
    check_equal(env_local_address(listener, &address), 0);
    int fds[20], ret = 0, count = 0;
    uint64_t start_ns = env_now_ns();
    while (count < 20 && (ret = env_connect(&address, NULL, env_now_ns() + 50 * NS_PER_MS)) >= 0)
        fds[count++] = ret;
    check_equal(ret, -ETIMEDOUT);
    check(env_now_ns() - start_ns < 5 * NS_PER_S);
    while (count > 0)
        check_equal(env_close(fds[--count]), 0);
    check_equal(env_close(listener), 0);
}

static void addresses_read_well(void)
{
    struct env_address address;
    char text[128];
    check_equal(env_resolve("10.1.2.3", 24007, AF_UNSPEC, &address, 1), 1);
    env_address_format(&address, text, sizeof(text));
    check_equal(strcmp(text, "10.1.2.3:24007"), 0);
    check_equal(env_resolve("::1", 80, AF_UNSPEC, &address, 1), 1);
    env_address_format(&address, text, sizeof(text));
    check_equal(strcmp(text, "[::1]:80"), 0);
    check_equal(env_address_unix("/run/x.sock", &address), 0);
    env_address_format(&address, text, sizeof(text));
    check_equal(strcmp(text, "/run/x.sock"), 0);
    memset(text, 'x', 127);
    text[127] = 0;
    check_equal(env_address_unix(text, &address), -ENAMETOOLONG);
    check(env_resolve("localhost", 1, AF_INET, &address, 1) == 1);
}

static void unix_peer_is_known(void)
{
    struct pair pair = pair_new(unix_address());
    struct env_creds creds;
    check_equal(env_peer_creds(pair.there, &creds), 0);
    check_equal(creds.pid, getpid());
    check_equal(creds.uid, getuid());
    pair_free(&pair);
}

static void sends_two_mib(void *arg)
{
    struct iovec iov = { calloc(1, 2 << 20), 2 << 20 };
    check_equal(env_send((int)(intptr_t)arg, &iov, 1), 2 << 20);
    free(iov.iov_base);
    running--;
}

static void receives_a_word(void *arg)
{
    char got[4];
    check_equal(env_recv((int)(intptr_t)arg, got, 4), 4);
    running--;
}

/* One descriptor, a parked reader and a parked writer: what wakes one leaves the other waiting. */
static void reader_and_writer_park_on_one_socket(void)
{
    struct pair pair = pair_new(unix_address());
    struct iovec in = { malloc(2 << 20), 2 << 20 }, word = { (char *)"word", 4 };
    start("reader", receives_a_word, (void *)(intptr_t)pair.here);
    fiber_yield();
    start("writer", sends_two_mib, (void *)(intptr_t)pair.here);
    env_sleep(5 * NS_PER_MS);
    check_equal(running, 2);
    check_equal(env_recv_all(pair.there, &in, 1), 2 << 20);
    env_sleep(5 * NS_PER_MS);
    check_equal(running, 1); /* the writer is through */
    check_equal(env_send(pair.there, &word, 1), 4);
    wait_for_all();
    free(in.iov_base);
    pair_free(&pair);
}

/* --- files ------------------------------------------------------------------------------------ */

static int temporary_file(int flags)
{
    int fd = env_openat(AT_FDCWD, "/var/tmp", O_TMPFILE | O_RDWR | flags, 0600);
    check(fd >= 0);
    return fd;
}

static void round_trip(int fd, int flags)
{
    enum {
        BYTES = 1 << 20
    };
    unsigned char *out = aligned_alloc(4096, BYTES), *in = aligned_alloc(4096, BYTES);
    fill(out, BYTES, 7);
    for (uint64_t size = 4096, at = 0; size <= BYTES; at += size, size *= 4) {
        struct iovec to[2] = { { out, 4096 }, { out + 4096, size - 4096 } };
        struct iovec from[2] = { { in, size - 4096 }, { in + size - 4096, 4096 } };
        memset(in, 0, BYTES);
        check_equal(env_writev_file(fd, to, 2, at, flags), size);
        check_equal(env_readv_file(fd, from, 2, at, flags), size);
        check_equal(memcmp(in, out, size), 0);
        check_equal(env_readv_file(fd, from, 2, at + size, flags), 0);
    }
    check_equal(env_fsync(fd, true), 0);
    check_equal(env_fsync(fd, false), 0);
    free(out);
    free(in);
}

static void file_data_makes_the_round(void)
{
    int fd = temporary_file(0);
    round_trip(fd, 0);
    char text[] = "synced", got[8] = "";
    struct iovec iov = { text, 6 }, to = { got, 8 };
    check_equal(env_pwritev(fd, &iov, 1, 10 << 20, RWF_DSYNC), 6);
    check_equal(env_preadv(fd, &to, 1, 10 << 20), 6);
    check_equal(strcmp(got, "synced"), 0);
    check_equal(env_close(fd), 0);
    check_equal(env_preadv(fd, &to, 1, 0), -EBADF);
    check_equal(env_fsync(fd, false), -EBADF);
}

static void direct_file_data_makes_the_round(void)
{
    int fd = temporary_file(O_DIRECT);
    round_trip(fd, ENV_DIRECT);
    struct iovec odd = { malloc(512), 100 };
    check_equal(env_readv_file(fd, &odd, 1, 0, ENV_DIRECT), -EINVAL);
    free(odd.iov_base);
    check_equal(env_close(fd), 0);
}

/* --- pipes and signals ------------------------------------------------------------------------ */

static void writes_later(void *arg)
{
    env_sleep(5 * NS_PER_MS);
    struct iovec iov[2] = { { (char *)"ab", 2 }, { (char *)"cd", 2 } };
    check_equal(env_writev((int)(intptr_t)arg, iov, 2), 4);
    running--;
}

static void pipe_parks_its_reader(void)
{
    int ends[2];
    char got[8] = "";
    running = 0;
    check_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    start("writer", writes_later, (void *)(intptr_t)ends[1]);
    check_equal(env_read(ends[0], got, 8), 4);
    check_equal(strcmp(got, "abcd"), 0);
    wait_for_all();
    check_equal(env_close(ends[1]), 0);
    check_equal(env_read(ends[0], got, 8), 0);
    check_equal(env_close(ends[0]), 0);
}

static void fills(void *arg)
{
    struct iovec iov = { calloc(1, 65536), 65536 };
    for (unsigned done = 0; done < 1 << 20;) {
        ssize_t ret = env_writev((int)(intptr_t)arg, &iov, 1);
        check(ret > 0);
        done += (unsigned)ret;
        iov.iov_len = MIN((1u << 20) - done, 65536u);
    }
    free(iov.iov_base);
    running--;
}

/* A pipe that is at once read and written by two fibers each: no wake is lost. */
static void full_pipe_parks_its_writer(void)
{
    int ends[2];
    char *got = malloc(10000);
    running = 0;
    check_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    start("writer", fills, (void *)(intptr_t)ends[1]);
    start("writer", fills, (void *)(intptr_t)ends[1]);
    for (unsigned done = 0; done < 2 << 20;) {
        ssize_t ret = env_read(ends[0], got, 10000);
        check(ret > 0);
        done += (unsigned)ret;
    }
    wait_for_all();
    free(got);
    check_equal(env_close(ends[0]), 0);
    check_equal(env_close(ends[1]), 0);
}

static void raises(void *arg)
{
    (void)arg;
    env_sleep(5 * NS_PER_MS);
    kill(getpid(), SIGUSR1);
    running--;
}

static void signal_comes_as_an_event(void)
{
    running = 0;
    int signals[] = { SIGUSR1, SIGUSR2 };
    int fd = env_signal_open(signals, 2);
    check(fd >= 0);
    start("raise", raises, NULL);
    check_equal(env_signal_wait(fd), SIGUSR1);
    check_equal(env_close(fd), 0);
}

/* --- on threads, calls act directly ----------------------------------------------------------- */

static void talks_directly(void *arg)
{
    struct pair *pair = arg;
    char got[4];
    check(!fiber_self());
    check_equal(env_recv(pair->there, got, 4), 4);
    struct iovec iov = { got, 4 };
    check_equal(env_send(pair->there, &iov, 1), 4);
    struct iovec file = { got, 4 };
    int fd = temporary_file(0);
    check_equal(env_pwritev(fd, &file, 1, 0, 0), 4);
    check_equal(env_preadv(fd, &file, 1, 0), 4);
    check_equal(env_fsync(fd, false), 0);
    check_equal(env_close(fd), 0);
}

static void hops_to_talk(void *arg)
{
    hop(pool_default(), talks_directly, arg);
    running--;
}

static void workers_block(void)
{
    struct pair pair = pair_new(tcp_address());
    char got[4] = "";
    struct iovec iov = { (char *)"ping", 4 };
    start("hopper", hops_to_talk, &pair);
    env_sleep(5 * NS_PER_MS);
    check_equal(env_send(pair.here, &iov, 1), 4);
    check_equal(env_recv(pair.here, got, 4), 4);
    check_equal(memcmp(got, "ping", 4), 0);
    wait_for_all();
    pair_free(&pair);
}

static void identity_is_the_workers_own(void *arg)
{
    (void)arg;
    gid_t groups[] = { 4001, 4002 };
    char path[64];
    snprintf(path, sizeof(path), "/tmp/unit-core-identity.%d", getpid());
    int fd = env_openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    check(fd >= 0);
    check_equal(env_close(fd), 0);
    check_equal(env_identity_set(12345, 12346, groups, 2), 0);
    check_equal(env_openat(AT_FDCWD, path, O_WRONLY, 0), -EACCES);
    env_identity_restore();
    struct stat stat;
    check_equal(chown(path, 1, 4002), 0);
    check_equal(chmod(path, 0060), 0);
    check_equal(env_identity_set(12345, 12346, groups, 2), 0);
    fd = env_openat(AT_FDCWD, path, O_RDWR, 0);
    check(fd >= 0); /* by the supplementary group */
    env_identity_restore();
    check_equal(env_close(fd), 0);
    gid_t own[64];
    int own_count = getgroups(64, own);
    for (int i = 0; i < own_count; i++)
        check(own[i] != 4001 && own[i] != 4002);
    fd = temporary_file(0);
    check_equal(env_fstat(fd, &stat), 0);
    check_equal(stat.st_uid, geteuid());
    check_equal(stat.st_gid, getegid());
    check_equal(env_close(fd), 0);
    check_equal(env_unlinkat(AT_FDCWD, path, 0), 0);
}

static void identity_is_put_on_and_taken_off(void)
{
    if (geteuid() != 0) {
        fprintf(stderr, "# skipped: not root\n");
        return;
    }
    hop(pool_default(), identity_is_the_workers_own, NULL);
    check_equal(geteuid(), 0);
    struct stat stat;
    check_equal(env_fstatat(AT_FDCWD, "/root", &stat, 0), 0);
}

/* --- clock and randomness --------------------------------------------------------------------- */

static void clock_goes_on(void)
{
    uint64_t start_ns = env_now_ns();
    env_sleep(3 * NS_PER_MS);
    check(env_now_ns() - start_ns >= 3 * NS_PER_MS);
    check(env_wallclock().tv_sec > 1700000000);
    unsigned char bytes[600] = { 0 };
    env_random(bytes, sizeof(bytes));
    unsigned zeros = 0;
    for (unsigned i = 0; i < sizeof(bytes); i++)
        zeros += bytes[i] == 0;
    check(zeros < 20);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(clock_goes_on, ALL),
    FIBER_CASE(tcp_echoes_large_messages, ALL),
    FIBER_CASE(unix_echoes_large_messages, ALL),
    FIBER_CASE(hundred_connections_talk, ALL),
    FIBER_CASE(shutdown_wakes_who_is_parked, ALL),
    FIBER_CASE(reader_and_writer_park_on_one_socket, ALL),
    FIBER_CASE(end_of_stream_shortens_the_last_receive, ALL),
    FIBER_CASE(connect_is_refused_or_times_out, ALL),
    FIBER_CASE(addresses_read_well, ALL),
    FIBER_CASE(unix_peer_is_known, ALL),
    FIBER_CASE(file_data_makes_the_round, ALL),
    FIBER_CASE(direct_file_data_makes_the_round, ALL),
    FIBER_CASE(pipe_parks_its_reader, ALL),
    FIBER_CASE(full_pipe_parks_its_writer, ALL),
    FIBER_CASE(signal_comes_as_an_event, ALL),
    FIBER_CASE(workers_block, REAL),
    FIBER_CASE(identity_is_put_on_and_taken_off, ALL),
};

/* --- choosing the backend --------------------------------------------------------------------- */

static void refuse_io_uring(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };
    check_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    check_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void echo_and_stop(void *arg)
{
    (void)arg;
    tcp_echoes_large_messages();
    lanes_stop();
}

/* The backend that a child gets on its own, where it must also work. */
static int chosen_in_child(int refuse_with, bool little_memlock)
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        struct rlimit limit = { .rlim_cur = 65536, .rlim_max = 65536 };
        unsetenv("MORTAR_ENV");
        if (little_memlock) {
            check_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
            check_equal(setgid(65534) + setuid(65534), 0);
        }
        if (refuse_with)
            refuse_io_uring(refuse_with);
        check_equal(env_init(NULL, 0), 0);
        check_equal(lanes_run(echo_and_stop, NULL), 0);
        _exit(10 + (int)env_kind());
    }
    check_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) - 10 : -1;
}

static void refused_uring_means_plain(void **state)
{
    (void)state;
    assert_int_equal(chosen_in_child(EPERM, false), ENV_PLAIN);
    assert_int_equal(chosen_in_child(ENOSYS, false), ENV_PLAIN);
    assert_int_equal(chosen_in_child(ENOMEM, false), ENV_PLAIN);
    if (geteuid() == 0)
        assert_int_equal(chosen_in_child(EPERM, true), ENV_PLAIN);
}

static void little_locked_memory_is_enough(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    int with_much = chosen_in_child(0, false), with_little = chosen_in_child(0, true);
    assert_true(with_little == with_much || with_little == ENV_PLAIN);
}

static void names_choose(void **state)
{
    (void)state;
    assert_int_equal(env_init("nonsense", 0), -EINVAL);
    assert_int_equal(setenv("MORTAR_ENV", "plain", 1), 0);
    assert_int_equal(env_init(NULL, 0), 0);
    assert_int_equal(env_kind(), ENV_PLAIN);
    assert_string_equal(env_name(), "plain");
    unsetenv("MORTAR_ENV");
}

int main(void)
{
    const struct CMUnitTest choosing[] = {
        cmocka_unit_test(names_choose),
        cmocka_unit_test(refused_uring_means_plain),
        cmocka_unit_test(little_locked_memory_is_enough),
    };
    int failed = cmocka_run_group_tests_name("choosing", choosing, NULL, NULL);
    return failed + on_backends(cases, ARRAY_SIZE(cases));
}
