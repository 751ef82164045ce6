/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* env's door: chooses the backend and sends each call to it (from fibers) or straight to the kernel
 * (from threads). Calls on files and names are in env_file.c. */
#include "core/env.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/env_internal.h"
#include "core/log.h"

static const struct env_ops *const backends[] = { &env_uring, &env_plain, &env_sim };
const struct env_ops *env_ops = &env_plain; /* what a process that never calls env_init gets */

static bool is_chosen_by_us;

static int env_choose(const struct env_ops *ops, uint64_t seed)
{
    int ret = ops->probe(seed);
    if (ret == 0)
        env_ops = ops;
    return ret;
}

bool env_give_way(int ret)
{
    if (!is_chosen_by_us)
        return false;
    is_chosen_by_us = false; /* once */
    log_info("core", ret, "io_uring is not to be had here: using epoll and system calls");
    return env_choose(&env_plain, 0) == 0;
}

int env_init(const char *name, uint64_t sim_seed)
{
    if (!name)
        name = env_variable("MORTAR_ENV");
    is_chosen_by_us = !name || !*name;
    if (is_chosen_by_us) {
        int ret = env_choose(&env_uring, 0);
        return ret == 0 || env_give_way(ret) ? 0 : ret;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(backends); i++)
        if (strcmp(name, backends[i]->name) == 0)
            return env_choose(backends[i], sim_seed);
    return -EINVAL;
}

enum env_kind env_kind(void)
{
    return env_ops->kind;
}

const char *env_name(void)
{
    return env_ops->name;
}

pid_t env_pid(void)
{
    return env_ops->kind == ENV_SIM ? 1 : getpid();
}

const char *env_variable(const char *name)
{
    return getenv(name);
}

/* --- clock and randomness --------------------------------------------------------------------- */

uint64_t env_now_ns(void)
{
    return env_ops->now_ns();
}

struct timespec env_wallclock(void)
{
    return env_ops->wallclock();
}

void env_random(void *bytes, size_t n)
{
    env_ops->random(bytes, n);
}

void env_sleep(uint64_t ns)
{
    if (!fiber_self()) {
        env_ops->sleep_off_fiber(ns);
        return;
    }
    bool woken = fiber_wait_until("sleep", env_now_ns() + ns);
    assert(!woken);
}

/* --- iovecs ----------------------------------------------------------------------------------- */

uint64_t env_iov_bytes(const struct iovec *iov, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

int env_iov_window(const struct iovec *iov, int count, uint64_t skip,
                   struct iovec window[ENV_WINDOW])
{
    int n = 0;
    for (int i = 0; i < count && n < ENV_WINDOW; i++) {
        if (skip >= iov[i].iov_len) {
            skip -= iov[i].iov_len;
            continue;
        }
        window[n].iov_base = (char *)iov[i].iov_base + skip;
        window[n++].iov_len = iov[i].iov_len - skip;
        skip = 0;
    }
    return n;
}

/* --- file data -------------------------------------------------------------------------------- */

ssize_t env_readv_file(int fd, const struct iovec *iov, int count, uint64_t offset, int env_flags)
{
    return fiber_self() ? env_ops->readv_file(fd, iov, count, offset, env_flags)
                        : env_direct_readv_file(fd, iov, count, offset);
}

ssize_t env_writev_file(int fd, const struct iovec *iov, int count, uint64_t offset, int env_flags)
{
    return fiber_self() ? env_ops->writev_file(fd, iov, count, offset, env_flags, 0)
                        : env_direct_writev_file(fd, iov, count, offset, 0);
}

ssize_t env_preadv(int fd, const struct iovec *iov, int count, uint64_t offset)
{
    return env_readv_file(fd, iov, count, offset, 0);
}

ssize_t env_pwritev(int fd, const struct iovec *iov, int count, uint64_t offset, int rwf_flags)
{
    return fiber_self() ? env_ops->writev_file(fd, iov, count, offset, 0, rwf_flags)
                        : env_direct_writev_file(fd, iov, count, offset, rwf_flags);
}

int env_fsync(int fd, bool data_only)
{
    return fiber_self() ? env_ops->fsync(fd, data_only) : env_direct_fsync(fd, data_only);
}

/* --- sockets ---------------------------------------------------------------------------------- */

/* Under sim threads have no network: only fibers talk there. */
static bool is_sim_thread(void)
{
    return env_ops->kind == ENV_SIM && !fiber_self();
}

int env_resolve(const char *host, uint16_t port, int family, struct env_address *ret_addresses,
                int max)
{
    return fiber_self() || env_ops->kind == ENV_SIM
               ? env_ops->resolve(host, port, family, ret_addresses, max)
               : env_direct_resolve(host, port, family, ret_addresses, max);
}

int env_listen(const struct env_address *address, int backlog)
{
    return env_ops->listen(address, backlog);
}

int env_local_address(int fd, struct env_address *ret_address)
{
    return env_ops->local_address(fd, ret_address);
}

int env_accept(int listener, struct env_address *ret_peer)
{
    if (is_sim_thread())
        return -EOPNOTSUPP;
    return fiber_self() ? env_ops->accept(listener, ret_peer)
                        : env_socket_accept(listener, ret_peer);
}

int env_connect(const struct env_address *address, const struct env_address *bind,
                uint64_t until_ns)
{
    if (is_sim_thread())
        return -EOPNOTSUPP;
    return fiber_self() ? env_ops->connect(address, bind, until_ns)
                        : env_socket_connect(address, bind, until_ns);
}

ssize_t env_send(int fd, const struct iovec *iov, int count)
{
    if (is_sim_thread())
        return -EOPNOTSUPP;
    return fiber_self() ? env_ops->send(fd, iov, count) : env_socket_send(fd, iov, count);
}

ssize_t env_recv(int fd, void *buffer, size_t bytes)
{
    if (is_sim_thread())
        return -EOPNOTSUPP;
    return fiber_self() ? env_ops->recv(fd, buffer, bytes) : env_socket_recv(fd, buffer, bytes);
}

ssize_t env_recv_all(int fd, const struct iovec *iov, int count)
{
    if (is_sim_thread())
        return -EOPNOTSUPP;
    return fiber_self() ? env_ops->recv_all(fd, iov, count) : env_socket_recv_all(fd, iov, count);
}

int env_shutdown(int fd)
{
    return env_ops->shutdown(fd);
}

int env_close(int fd)
{
    return env_ops->close(fd);
}

int env_tcp_options(int fd, int keepalive_s, int interval_s, int count, int user_timeout_s)
{
    return env_ops->tcp_options(fd, keepalive_s, interval_s, count, user_timeout_s);
}

int env_peer_creds(int fd, struct env_creds *ret_creds)
{
    return env_ops->peer_creds(fd, ret_creds);
}

/* --- commands --------------------------------------------------------------------------------- */

bool env_has_commands(void)
{
    return env_ops->has_commands && env_ops->has_commands();
}

int env_command(const struct env_command *command)
{
    if (!fiber_self() || !env_has_commands())
        return -EOPNOTSUPP;
    return env_ops->command(command);
}
