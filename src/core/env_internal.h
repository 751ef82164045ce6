/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a backend of env is: one table of operations. env.c calls it from fibers; threads that are
 * no fibers get the system calls of env_direct_*.
 *
 *     const struct env_ops env_plain = { .kind = ENV_PLAIN, .name = "plain", ... };
 *     ret = fiber_self() ? env_ops->recv(fd, buffer, bytes) : env_direct_recv(fd, buffer, bytes);
 */
#pragma once

#include <errno.h>

#include "core/env.h"
#include "core/lane.h"

enum {
    ENV_INLINE_WRITE_MAX = 128 * 1024, /* larger buffered writes go to a worker (perf-lab 0.5) */
    ENV_INLINE_READ_MAX = 128 * 1024,
    ENV_WINDOW = 32, /* iovecs that a continued transfer passes at once */
};

struct env_ops {
    enum env_kind kind;
    const char *name;

    /* Can this backend work here? May be called again for a later run. */
    int (*probe)(uint64_t seed);
    /* On the lane's thread, before and after its loop. */
    int (*lane_open)(struct lane *lane);
    void (*lane_close)(struct lane *lane);
    /* Submits what is queued, reaps all that is there, waits for it until until_ns (0: not). */
    void (*lane_turn)(struct lane *lane, uint64_t until_ns);
    void (*lane_kick)(struct lane *lane); /* ends a wait, from any thread */

    uint64_t (*now_ns)(void);
    struct timespec (*wallclock)(void);
    void (*random)(void *bytes, size_t count);
    void (*sleep_off_fiber)(uint64_t ns);

    /* The rest runs on a fiber. */
    void (*hop)(struct pool *pool, hop_fn *fn, void *arg);
    /* poll(2)'s events, and what it answers; until 0: for ever */
    int (*wait_fd)(int fd, short events, uint64_t until_ns);
    ssize_t (*readv_file)(int fd, const struct iovec *iov, int count, uint64_t offset, int flags);
    ssize_t (*writev_file)(int fd, const struct iovec *iov, int count, uint64_t offset, int flags,
                           int rwf_flags);
    int (*fsync)(int fd, bool data_only);
    int (*command)(const struct env_command *command); /* NULL: none */
    bool (*has_commands)(void);
    int (*resolve)(const char *host, uint16_t port, int family, struct env_address *ret_addresses,
                   int max);
    int (*listen)(const struct env_address *address, int backlog);
    int (*local_address)(int fd, struct env_address *ret_address);
    int (*accept)(int listener, struct env_address *ret_peer);
    int (*connect)(const struct env_address *address, const struct env_address *bind,
                   uint64_t until_ns);
    ssize_t (*send)(int fd, const struct iovec *iov, int count);
    ssize_t (*recv)(int fd, void *buffer, size_t bytes);
    ssize_t (*recv_all)(int fd, const struct iovec *iov, int count);
    int (*shutdown)(int fd);
    int (*close)(int fd);
    int (*tcp_options)(int fd, int keepalive_s, int interval_s, int count, int user_timeout_s);
    int (*peer_creds)(int fd, struct env_creds *ret_creds);
};
extern const struct env_ops env_uring, env_plain, env_sim;
extern const struct env_ops *env_ops;
/* The backend cannot start its first lane after all: true if another was taken for it. */
bool env_give_way(int ret);

/* A system call's result as a count or -errno, EINTR repeated. */
#define env_call(call)                                                                             \
    ({                                                                                             \
        long ret_;                                                                                 \
        do                                                                                         \
            ret_ = (long)(call);                                                                   \
        while (ret_ < 0 && errno == EINTR);                                                        \
        ret_ < 0 ? -(long)errno : ret_;                                                            \
    })

uint64_t env_iov_bytes(const struct iovec *iov, int count) nowait;
/* The part of iov after `skip` bytes, as at most ENV_WINDOW iovecs; returns their count. */
int env_iov_window(const struct iovec *iov, int count, uint64_t skip,
                   struct iovec window[ENV_WINDOW]) nowait;

/* env_direct.c: for threads that are no fibers, and as parts for the backends */
uint64_t env_real_now_ns(void) nowait;
struct timespec env_real_wallclock(void) nowait;
void env_real_random(void *bytes, size_t count) nowait;
void env_direct_sleep(uint64_t ns);
int env_direct_wait_fd(int fd, short events, uint64_t until_ns);
ssize_t env_direct_readv_file(int fd, const struct iovec *iov, int count, uint64_t offset);
ssize_t env_direct_writev_file(int fd, const struct iovec *iov, int count, uint64_t offset,
                               int rwf_flags);
int env_direct_fsync(int fd, bool data_only);
int env_direct_resolve(const char *host, uint16_t port, int family,
                       struct env_address *ret_addresses, int max);

/* env_socket.c: kernel sockets on top of env_ops->wait_fd, or poll(2) off fibers. */
int env_socket_resolve(const char *host, uint16_t port, int family,
                       struct env_address *ret_addresses, int max);
int env_socket_listen(const struct env_address *address, int backlog);
int env_socket_local_address(int fd, struct env_address *ret_address);
int env_socket_accept(int listener, struct env_address *ret_peer);
int env_socket_connect(const struct env_address *address, const struct env_address *bind,
                       uint64_t until_ns);
ssize_t env_socket_send(int fd, const struct iovec *iov, int count);
ssize_t env_socket_recv(int fd, void *buffer, size_t bytes);
ssize_t env_socket_recv_all(int fd, const struct iovec *iov, int count);
int env_socket_shutdown(int fd);
int env_socket_close(int fd);
int env_socket_tcp_options(int fd, int keepalive_s, int interval_s, int count, int user_timeout_s);
int env_socket_peer_creds(int fd, struct env_creds *ret_creds);

/* timer.c */
uint64_t lane_timers_next(struct lane *lane) nowait; /* UINT64_MAX: none */
void lane_timers_expire(struct lane *lane, uint64_t now_ns) nowait;

void lane_timers_drop(struct lane *lane) nowait; /* none of them will run */

/* pool.c: hop on real threads */
void pool_hop(struct pool *pool, hop_fn *fn, void *arg);
