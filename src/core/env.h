/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one door to everything outside: clock, randomness, files, sockets, timers (DESIGN section 1).
 *
 * Calls look like system calls and return a count, a descriptor or 0, or -errno. On a fiber the
 * waiting ones park it; on a worker (inside hop) or native thread they act directly and block.
 * EINTR is handled inside. Descriptors are plain ints; under `sim` sockets are numbers of its own.
 *
 * Backends: uring (io_uring), plain (epoll and system calls; taken where io_uring is refused),
 * sim (virtual clock, seeded randomness, a network inside the process, files of the real disk
 * reached in a deterministic order; its disks that forget come with fault injection). */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#include "core/auto.h"
#include "core/fiber.h"

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

enum env_kind {
    ENV_URING,
    ENV_PLAIN,
    ENV_SIM
};

/* Chooses the backend, before lanes_run. NULL: $MORTAR_ENV (uring | plain | sim), else uring where
 * the kernel grants it, else plain. -EINVAL: unknown name. seed counts for sim only. */
must_check int env_init(const char *name, uint64_t sim_seed);
enum env_kind env_kind(void) nowait;
const char *env_name(void) nowait;

/* --- clock and randomness ------------------------------------------------------------------- */
uint64_t env_now_ns(void) nowait; /* monotonic */
struct timespec env_wallclock(void) nowait;
void env_random(void *bytes, size_t count) nowait;
void env_sleep(uint64_t ns);

/* A timer calls fn(arg) as a fiber of the lane that armed it. */
struct env_timer;
must_check int env_timer_start(uint64_t after_ns, fiber_fn *fn, void *arg,
                               struct env_timer **ret_timer) nowait;
/* true: stopped before it ran (fn will not run); false: it runs or ran. Either way it is freed. */
bool env_timer_cancel(struct env_timer *timer) nowait;

/* --- file data: these may use the ring ------------------------------------------------------- */
ssize_t env_preadv(int fd, const struct iovec *iov, int count, uint64_t offset);
ssize_t env_pwritev(int fd, const struct iovec *iov, int count, uint64_t offset, int rwf_flags);
/* flags for what the caller knows: direct (O_DIRECT descriptor) goes to the ring, buffered writes
 * go to pwritev2 or a worker (perf-lab section 0.5). */
enum {
    ENV_DIRECT = 1
};
ssize_t env_readv_file(int fd, const struct iovec *iov, int count, uint64_t offset, int env_flags);
ssize_t env_writev_file(int fd, const struct iovec *iov, int count, uint64_t offset, int env_flags);
must_check int env_fsync(int fd, bool data_only);

/* --- files and names: direct system calls; inside hop when they may wait for the disk --------- */
must_check int env_openat(int dir, const char *path, int flags, mode_t mode);
/* resolve: RESOLVE_* of openat2(2). */
must_check int env_openat2(int dir, const char *path, uint64_t flags, uint64_t mode,
                           uint64_t resolve);
int env_close(int fd);
must_check int env_fstat(int fd, struct stat *ret_stat);
must_check int env_fstatat(int dir, const char *path, struct stat *ret_stat, int flags);
must_check int env_statx(int dir, const char *path, int flags, unsigned mask,
                         struct statx *ret_statx);
must_check int env_fstatvfs(int fd, struct statvfs *ret_statvfs);
must_check int env_mkdirat(int dir, const char *path, mode_t mode);
must_check int env_mknodat(int dir, const char *path, mode_t mode, dev_t dev);
must_check int env_symlinkat(const char *target, int dir, const char *path);
ssize_t env_readlinkat(int dir, const char *path, char *buffer, size_t size);
must_check int env_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
must_check int env_unlinkat(int dir, const char *path, int flags);
must_check int env_renameat2(int from_dir, const char *from, int to_dir, const char *to,
                             unsigned flags);
must_check int env_fchmod(int fd, mode_t mode);
must_check int env_fchmodat(int dir, const char *path, mode_t mode, int flags);
must_check int env_fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags);
must_check int env_utimensat(int dir, const char *path, const struct timespec times[2], int flags);
must_check int env_ftruncate(int fd, uint64_t size);
must_check int env_fallocate(int fd, int mode, uint64_t offset, uint64_t size);
must_check int env_faccessat(int dir, const char *path, int mode, int flags);
int64_t env_lseek(int fd, int64_t offset, int whence);
ssize_t env_getdents(int fd, void *buffer, size_t bytes); /* struct dirent64 records */
ssize_t env_copy_file_range(int in, uint64_t in_offset, int out, uint64_t out_offset, size_t bytes);
ssize_t env_fgetxattr(int fd, const char *name, void *value, size_t size);
must_check int env_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
ssize_t env_flistxattr(int fd, char *names, size_t size);
must_check int env_fremovexattr(int fd, const char *name);
/* By path, symlink not followed (for what cannot be opened, through /proc/self/fd/N of an O_PATH
 * descriptor use the functions above with that path and follow). */
ssize_t env_getxattr(const char *path, const char *name, void *value, size_t size, bool follow);
must_check int env_setxattr(const char *path, const char *name, const void *value, size_t size,
                            int flags, bool follow);
ssize_t env_listxattr(const char *path, char *names, size_t size, bool follow);
must_check int env_removexattr(const char *path, const char *name, bool follow);
must_check int env_flock_ofd(int fd, int cmd, struct flock *lock); /* F_OFD_* */

/* The identity of the calling worker thread for file access; only inside hop. Groups are the full
 * supplementary list. env_identity_restore goes back to the daemon's own. */
must_check int env_identity_set(uid_t uid, gid_t gid, const gid_t *groups, unsigned count);
void env_identity_restore(void);

/* --- pipes, devices: descriptors that can be polled ------------------------------------------- */
/* Parks until one of poll(2)'s events, or until_ns of env's clock (0: for ever). What is ready, or
 * -ETIMEDOUT. */
must_check int env_poll(int fd, short events, uint64_t until_ns);
/* Reads or writes once, parking while the descriptor is not ready; on a fiber it must be
 * O_NONBLOCK. */
ssize_t env_read(int fd, void *buffer, size_t bytes);
ssize_t env_readv(int fd, const struct iovec *iov, int count);
ssize_t env_writev(int fd, const struct iovec *iov, int count);

/* --- devices that take commands over a ring (FUSE over io_uring) ------------------------------ */
enum { ENV_COMMAND_BYTES = 80 };
struct env_command {
    int fd;
    uint32_t op;
    const struct iovec *iov; /* outlive the call */
    uint32_t iov_count;
    uint8_t data[ENV_COMMAND_BYTES];
};
/* Only where FUSE is allowed to use it (fuse.enable_uring), and on the uring backend. */
bool env_has_commands(void) nowait;
/* Parks until the device has completed it: its result. -EOPNOTSUPP: see above. On a fiber. */
int env_command(const struct env_command *command);

/* --- sockets ---------------------------------------------------------------------------------- */
struct env_address { /* a resolved address: ip or unix */
    struct sockaddr_storage sockaddr;
    socklen_t bytes;
};
/* host: name, IPv4, IPv6; runs on a worker. path addresses: env_address_unix. Up to max results;
 * returns their count or -errno (-ENOENT: unknown name). */
must_check int env_resolve(const char *host, uint16_t port, int family,
                           struct env_address *ret_addresses, int max);
must_check int env_address_unix(const char *path, struct env_address *ret_address) nowait;
void env_address_format(const struct env_address *address, char *text, size_t size) nowait;

must_check int env_listen(const struct env_address *address, int backlog);
/* The address that a listener or connection is bound to. */
must_check int env_local_address(int fd, struct env_address *ret_address) nowait;
must_check int env_accept(int listener, struct env_address *ret_peer);
/* bind may be NULL. until_ns of env's clock, or 0: -ETIMEDOUT. */
must_check int env_connect(const struct env_address *address, const struct env_address *bind,
                           uint64_t until_ns);
/* Whole message (MSG_WAITALL semantics): returns bytes sent (= all) or -errno. */
ssize_t env_send(int fd, const struct iovec *iov, int count);
/* At least one byte, 0 at the end of the stream. */
ssize_t env_recv(int fd, void *buffer, size_t bytes);
/* Exactly the iov's bytes, or fewer at the end of the stream, or -errno. */
ssize_t env_recv_all(int fd, const struct iovec *iov, int count);
int env_shutdown(int fd); /* both directions: parked env_recv/env_send/env_accept return */
/* TCP_NODELAY, keepalive, TCP_USER_TIMEOUT as spec/wire.md 1.1; 0 leaves a value alone. */
must_check int env_tcp_options(int fd, int keepalive_s, int interval_s, int count,
                               int user_timeout_s) nowait;
struct env_creds {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};
must_check int env_peer_creds(int fd, struct env_creds *ret_creds) nowait; /* unix sockets */

/* --- signals: read as events by a fiber ------------------------------------------------------- */
/* Blocks these signals for the whole process (before threads start) and returns a descriptor for
 * env_signal_wait. */
must_check int env_signal_open(const int *signals, int count);
must_check int env_signal_wait(int fd); /* the signal's number */

/* This process's number; the simulator's is always the same. */
pid_t env_pid(void) nowait;
/* The environment variable, or NULL. */
const char *env_variable(const char *name) nowait;
