/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the simulator's parts. All of it runs on the one lane.
 *
 *     if (sim_random(8) == 0) ...              // one time in eight, by the seed
 */
#pragma once

#include "core/env_internal.h"

uint32_t sim_random(uint32_t below) nowait;

/* env_sim_net.c */
void sim_net_reset(void);
int sim_resolve(const char *host, uint16_t port, int family, struct env_address *ret_addresses,
                int max);
int sim_listen(const struct env_address *address, int backlog);
int sim_local_address(int fd, struct env_address *ret_address);
int sim_accept(int listener, struct env_address *ret_peer);
int sim_connect(const struct env_address *address, const struct env_address *bind,
                uint64_t until_ns);
ssize_t sim_send(int fd, const struct iovec *iov, int count);
ssize_t sim_recv(int fd, void *buffer, size_t bytes);
ssize_t sim_recv_all(int fd, const struct iovec *iov, int count);
int sim_shutdown(int fd);
int sim_close(int fd);
int sim_tcp_options(int fd, int keepalive_s, int interval_s, int count, int user_timeout_s);
int sim_peer_creds(int fd, struct env_creds *ret_creds);
