/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* confine [--uid N] [--memlock BYTES] [--no-io-uring] PROGRAM [ARG...]
 *
 * Runs a program as a hardened host would: as another user that keeps only the capabilities that a
 * brick needs, with little memory to lock, under a seccomp filter that refuses io_uring. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What docs/translators/storage-posix.md says a brick's user needs. */
static const int brick_caps[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
                                  CAP_FSETID, CAP_SETGID, CAP_SETUID, CAP_MKNOD, CAP_SYS_ADMIN,
                                  CAP_NET_BIND_SERVICE };

static void die(const char *what)
{
    fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
    exit(125);
}

static void refuse_io_uring(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        die("seccomp");
}

static void set_caps(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };

    for (size_t i = 0; i < sizeof(brick_caps) / sizeof(brick_caps[0]); i++) {
        unsigned bit = 1u << (brick_caps[i] % 32);
        struct __user_cap_data_struct *half = &data[brick_caps[i] / 32];
        half->effective |= bit;
        half->permitted |= bit;
        half->inheritable |= bit;
    }
    if (syscall(SYS_capset, &header, data) < 0)
        die("capset");
    for (size_t i = 0; i < sizeof(brick_caps) / sizeof(brick_caps[0]); i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, brick_caps[i], 0, 0) < 0)
            die("ambient capability");
}

static void become(uid_t uid)
{
    if (prctl(PR_SET_KEEPCAPS, 1L, 0L, 0L, 0L) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(uid, uid, uid) < 0 ||
        setresuid(uid, uid, uid) < 0)
        die("change of user");
    set_caps();
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "uid", required_argument, NULL, 'u' },
                                             { "memlock", required_argument, NULL, 'm' },
                                             { "no-io-uring", no_argument, NULL, 'n' },
                                             { NULL, 0, NULL, 0 } };
    uid_t uid = 0;
    int refuse = 0;

    for (int option; (option = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        struct rlimit limit;
        switch (option) {
        case 'u':
            uid = (uid_t)atoi(optarg);
            break;
        case 'm':
            limit.rlim_cur = limit.rlim_max = (rlim_t)atol(optarg);
            if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
                die("memlock");
            break;
        case 'n':
            refuse = 1;
            break;
        default:
            return 125;
        }
    }
    if (optind >= argc) {
        fprintf(stderr, "confine: which program?\n");
        return 125;
    }
    if (uid)
        become(uid);
    if (refuse)
        refuse_io_uring();
    execvp(argv[optind], argv + optind);
    die(argv[optind]);
}
