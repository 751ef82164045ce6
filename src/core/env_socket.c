/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernel sockets, non-blocking: each call tries at once (MSG_DONTWAIT) and waits for readiness when
 * there is nothing to be had. All of plain's network, and uring's where an SQE has no advantage. */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/un.h>

#include "core/env_internal.h"

static int wait_fd(int fd, short events, uint64_t until_ns)
{
    return fiber_self() ? env_ops->wait_fd(fd, events, until_ns)
                        : env_direct_wait_fd(fd, events, until_ns);
}

/* --- addresses -------------------------------------------------------------------------------- */

int env_address_unix(const char *path, struct env_address *ret_address)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    size_t length = strlen(path);
    if (length == 0)
        return -EINVAL;
    if (length >= sizeof(un.sun_path))
        return -ENAMETOOLONG;
    memcpy(un.sun_path, path, length + 1);
    *ret_address = (struct env_address){
        .bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1)
    };
    memcpy(&ret_address->sockaddr, &un, ret_address->bytes);
    return 0;
}

void env_address_format(const struct env_address *address, char *text, size_t size)
{
    char ip[INET6_ADDRSTRLEN];
    if (address->sockaddr.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)&address->sockaddr;
        snprintf(text, size, "%s:%u", inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip)),
                 ntohs(in->sin_port));
    } else if (address->sockaddr.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)&address->sockaddr;
        snprintf(text, size, "[%s]:%u", inet_ntop(AF_INET6, &in->sin6_addr, ip, sizeof(ip)),
                 ntohs(in->sin6_port));
    } else if (address->sockaddr.ss_family == AF_UNIX &&
               address->bytes > offsetof(struct sockaddr_un, sun_path)) {
        const struct sockaddr_un *un = (const void *)&address->sockaddr;
        snprintf(text, size, "%.*s", (int)sizeof(un->sun_path), un->sun_path);
    } else
        snprintf(text, size, "-");
}

/* Numbers need neither a worker nor the resolver. */
static int resolve_number(const char *host, uint16_t port, int family,
                          struct env_address *ret_address)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    *ret_address = (struct env_address){ .bytes = 0 };
    if (host && family != AF_INET6 && inet_pton(AF_INET, host, &in.sin_addr) == 1) {
        memcpy(&ret_address->sockaddr, &in, ret_address->bytes = sizeof(in));
        return 1;
    }
    if (host && family != AF_INET && inet_pton(AF_INET6, host, &in6.sin6_addr) == 1) {
        memcpy(&ret_address->sockaddr, &in6, ret_address->bytes = sizeof(in6));
        return 1;
    }
    return 0;
}

struct resolve_job {
    const char *host;
    uint16_t port;
    int family, max, ret;
    struct env_address *addresses;
};

static void resolve_job(void *arg)
{
    struct resolve_job *job = arg;
    job->ret = env_direct_resolve(job->host, job->port, job->family, job->addresses, job->max);
}

int env_socket_resolve(const char *host, uint16_t port, int family,
                       struct env_address *ret_addresses, int max)
{
    if (max < 1)
        return -EINVAL;
    if (resolve_number(host, port, family, ret_addresses))
        return 1;
    struct resolve_job job = {
        .host = host, .port = port, .family = family, .max = max, .addresses = ret_addresses
    };
    hop(pool_default(), resolve_job, &job);
    return job.ret;
}

/* --- listening and connecting ----------------------------------------------------------------- */

static int socket_new(int family)
{
    return (int)env_call(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

static int option_set(int fd, int level, int option, int value)
{
    return (int)env_call(setsockopt(fd, level, option, &value, sizeof(value)));
}

static int socket_bind(int fd, const struct env_address *address)
{
    return (int)env_call(bind(fd, (const void *)&address->sockaddr, address->bytes));
}

int env_socket_listen(const struct env_address *address, int backlog)
{
    AUTO_FD fd = socket_new(address->sockaddr.ss_family);
    if (fd < 0)
        return fd;
    int ret = 0;
    if (address->sockaddr.ss_family != AF_UNIX)
        ret = option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (ret == 0 && address->sockaddr.ss_family == AF_INET6)
        ret = option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (ret == 0)
        ret = socket_bind(fd, address);
    if (ret == 0)
        ret = (int)env_call(listen(fd, backlog));
    return ret < 0 ? ret : TAKE_FD(fd);
}

int env_socket_local_address(int fd, struct env_address *ret_address)
{
    *ret_address = (struct env_address){ .bytes = sizeof(ret_address->sockaddr) };
    return (int)env_call(getsockname(fd, (void *)&ret_address->sockaddr, &ret_address->bytes));
}

/* Errors of a connection that died in the queue; the next one may be good. */
static bool is_accept_transient(int ret)
{
    return ret == -ECONNABORTED || ret == -EPROTO || ret == -ENETDOWN || ret == -EHOSTUNREACH ||
           ret == -ENETUNREACH || ret == -EHOSTDOWN || ret == -ENONET || ret == -ENOPROTOOPT;
}

int env_socket_accept(int listener, struct env_address *ret_peer)
{
    struct env_address ignored, *peer = ret_peer ? ret_peer : &ignored;
    for (;;) {
        *peer = (struct env_address){ .bytes = sizeof(peer->sockaddr) };
        int fd = (int)env_call(
            accept4(listener, (void *)&peer->sockaddr, &peer->bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (is_accept_transient(fd))
            continue;
        if (fd != -EAGAIN)
            return fd;
        int ret = wait_fd(listener, POLLIN, 0);
        if (ret < 0 || ret & POLLHUP) /* shut down: a unix listener would say EAGAIN for ever */
            return ret < 0 ? ret : -EINVAL;
    }
}

/* A unix listener whose backlog is full refuses without a way to wait: try again in a moment. */
static int connect_unix(int fd, const struct env_address *address, uint64_t until_ns)
{
    for (uint64_t wait_ns = NS_PER_MS;; wait_ns = MIN(2 * wait_ns, 100 * NS_PER_MS)) {
        int ret = (int)env_call(connect(fd, (const void *)&address->sockaddr, address->bytes));
        if (ret != -EAGAIN)
            return ret;
        if (until_ns && env_now_ns() + wait_ns > until_ns)
            return -ETIMEDOUT;
        env_sleep(wait_ns);
    }
}

static int connect_inet(int fd, const struct env_address *address, uint64_t until_ns)
{
    int error, ret = (int)env_call(connect(fd, (const void *)&address->sockaddr, address->bytes));
    if (ret != -EINPROGRESS)
        return ret;
    ret = wait_fd(fd, POLLOUT, until_ns);
    if (ret < 0)
        return ret;
    socklen_t bytes = sizeof(error);
    ret = (int)env_call(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes));
    return ret < 0 ? ret : -error;
}

int env_socket_connect(const struct env_address *address, const struct env_address *bind_to,
                       uint64_t until_ns)
{
    AUTO_FD fd = socket_new(address->sockaddr.ss_family);
    if (fd < 0)
        return fd;
    int ret = 0;
    if (bind_to && bind_to->sockaddr.ss_family != AF_UNIX)
        ret = option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (ret == 0 && bind_to)
        ret = socket_bind(fd, bind_to);
    if (ret == 0 && address->sockaddr.ss_family == AF_UNIX)
        ret = connect_unix(fd, address, until_ns);
    else if (ret == 0)
        ret = connect_inet(fd, address, until_ns);
    return ret < 0 ? ret : TAKE_FD(fd);
}

/* --- data ------------------------------------------------------------------------------------- */

ssize_t env_socket_send(int fd, const struct iovec *iov, int count)
{
    uint64_t sent = 0, bytes = env_iov_bytes(iov, count);
    struct iovec window[ENV_WINDOW];
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)iov,
                              .msg_iovlen = (size_t)MIN(count, IOV_MAX) };
    while (sent < bytes) {
        ssize_t ret = env_call(sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
        if (ret == -EAGAIN && (ret = wait_fd(fd, POLLOUT, 0)) >= 0)
            continue;
        if (ret < 0)
            return ret;
        sent += (uint64_t)ret;
        if (sent < bytes) {
            message.msg_iovlen = (size_t)env_iov_window(iov, count, sent, window);
            message.msg_iov = window;
        }
    }
    return (ssize_t)sent;
}

ssize_t env_socket_recv(int fd, void *buffer, size_t bytes)
{
    for (;;) {
        ssize_t ret = env_call(recv(fd, buffer, bytes, MSG_DONTWAIT));
        if (ret != -EAGAIN)
            return ret;
        ret = wait_fd(fd, POLLIN, 0);
        if (ret < 0)
            return ret;
    }
}

ssize_t env_socket_recv_all(int fd, const struct iovec *iov, int count)
{
    uint64_t got = 0, bytes = env_iov_bytes(iov, count);
    struct iovec window[ENV_WINDOW];
    while (got < bytes) {
        struct msghdr message = { .msg_iov = window };
        message.msg_iovlen = (size_t)env_iov_window(iov, count, got, window);
        ssize_t ret = env_call(recvmsg(fd, &message, MSG_DONTWAIT));
        if (ret == 0)
            break;
        if (ret == -EAGAIN && (ret = wait_fd(fd, POLLIN, 0)) >= 0)
            continue;
        if (ret < 0)
            return ret;
        got += (uint64_t)ret;
    }
    return (ssize_t)got;
}

int env_socket_shutdown(int fd)
{
    return (int)env_call(shutdown(fd, SHUT_RDWR));
}

int env_socket_close(int fd)
{
    return close(fd) < 0 && errno != EINTR ? -errno : 0; /* EINTR: it is closed (Linux) */
}

/* --- options ---------------------------------------------------------------------------------- */

int env_socket_tcp_options(int fd, int keepalive_s, int interval_s, int count, int user_timeout_s)
{
    int ret = option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (ret == 0 && keepalive_s)
        ret = option_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    if (ret == 0 && keepalive_s)
        ret = option_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_s);
    if (ret == 0 && interval_s)
        ret = option_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
    if (ret == 0 && count)
        ret = option_set(fd, IPPROTO_TCP, TCP_KEEPCNT, count);
    if (ret == 0 && user_timeout_s)
        ret = option_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_s * 1000);
    return ret;
}

int env_socket_peer_creds(int fd, struct env_creds *ret_creds)
{
    struct ucred ucred;
    socklen_t bytes = sizeof(ucred);
    int ret = (int)env_call(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &bytes));
    if (ret == 0)
        *ret_creds = (struct env_creds){ .pid = ucred.pid, .uid = ucred.uid, .gid = ucred.gid };
    return ret;
}

/* --- pipes, devices, signals ------------------------------------------------------------------ */

int env_poll(int fd, short events, uint64_t until_ns)
{
    return wait_fd(fd, events, until_ns);
}

ssize_t env_readv(int fd, const struct iovec *iov, int count)
{
    for (;;) {
        ssize_t ret = env_call(readv(fd, iov, count));
        if (ret != -EAGAIN)
            return ret;
        ret = wait_fd(fd, POLLIN, 0);
        if (ret < 0)
            return ret;
    }
}

ssize_t env_read(int fd, void *buffer, size_t bytes)
{
    struct iovec iov = { .iov_base = buffer, .iov_len = bytes };
    return env_readv(fd, &iov, 1);
}

ssize_t env_writev(int fd, const struct iovec *iov, int count)
{
    for (;;) {
        ssize_t ret = env_call(writev(fd, iov, count));
        if (ret != -EAGAIN)
            return ret;
        ret = wait_fd(fd, POLLOUT, 0);
        if (ret < 0)
            return ret;
    }
}

int env_signal_open(const int *signals, int count)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < count; i++)
        sigaddset(&set, signals[i]);
    int ret = -pthread_sigmask(SIG_BLOCK, &set, NULL);
    return ret < 0 ? ret : (int)env_call(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

int env_signal_wait(int fd)
{
    struct signalfd_siginfo info;
    ssize_t ret = env_read(fd, &info, sizeof(info));
    if (ret < 0)
        return (int)ret;
    return ret == sizeof(info) ? (int)info.ssi_signo : -EIO;
}
