/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel for tests: the other end of a mount's connection, and a child that answers as it is
 * told.
 *
 *     struct kernel *kernel = kernel_new(NULL);              // mount/fuse over a fake child
 *     kernel->answer = lookup_found;                         // what the child does
 *     ret = kernel_ask(kernel, FUSE_LOOKUP, 1, "f", 2, &out, sizeof(out));
 */
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include "../core/backends.h"
#include "graph/fop_call.h"
#include "xlators/mount/fuse/device.h"
#include "xlators/mount/fuse/request.h"

enum {
    KERNEL_BYTES_MAX = (1 << 20) + 4096
};

struct kernel {
    unsigned notified; /* of attributes that are old */
    int fd;
    uint64_t unique;
    struct graph graph;
    struct xlator mount, child;
    struct xlator *list[2], *mount_child[1], *child_parent[1];
    struct fuse *fuse;
    uint32_t uid; /* in whose name it asks */
    pid_t pid;    /* 0: this process */
    int (*answer)(struct kernel *kernel, struct call *call, enum fop op, const void *args,
                  void *reply);
    unsigned calls; /* operations that reached the child */
    enum fop last;
    void *arg;
    uint8_t *packet;
};

/* --- the child -------------------------------------------------------------------------------- */
static int fake_any(struct xlator *xl, struct call *call, enum fop op, const void *args,
                    void *reply)
{
    struct kernel *kernel = *(struct kernel **)xl->state;

    kernel->calls++;
    kernel->last = op;
    return kernel->answer ? kernel->answer(kernel, call, op, args, reply) : 0;
}

static const struct xlator_type fake_type = { .name = "fake", .any = fake_any };

/* --- the graph -------------------------------------------------------------------------------- */
static void mount_options(struct xlator *mount, const char *const *options)
{
    char error[OPTION_ERROR_SIZE], key[64];

    for (; options && *options; options++) {
        const char *equal = strchr(*options, '=');
        snprintf(key, sizeof(key), "%.*s", (int)(equal - *options), *options);
        check_equal(option_set_put(&mount->options, key, equal + 1), 0);
    }
    check_equal(options_validate(mount->type->options, "fuse", &mount->options, error), 0);
    check_equal(options_apply(mount->type->options, &mount->options, mount->state, false), 0);
}

static void graph_make(struct kernel *kernel, const char *const *options)
{
    struct kernel **child_state = calloc(1, sizeof(*child_state));

    *child_state = kernel;
    kernel->list[0] = &kernel->child;
    kernel->list[1] = &kernel->mount;
    kernel->mount_child[0] = &kernel->child;
    kernel->child_parent[0] = &kernel->mount;
    kernel->graph = (struct graph){ .xlators = kernel->list, .count = 2, .top = &kernel->mount };
    check_equal(inode_table_new(&kernel->graph.inodes), 0);
    kernel->child = (struct xlator){ .name = "fake",
                                     .type = &fake_type,
                                     .state = child_state,
                                     .graph = &kernel->graph,
                                     .parents = kernel->child_parent,
                                     .parent_count = 1 };
    kernel->mount = (struct xlator){ .name = "fuse",
                                     .type = &xlator_mount_fuse,
                                     .state = calloc(1, xlator_mount_fuse.state_size),
                                     .graph = &kernel->graph,
                                     .children = kernel->mount_child,
                                     .child_count = 1 };
    kernel->mount.log.name = "fuse";
    mount_options(&kernel->mount, options);
    xlator_resolve(&kernel->child);
    xlator_resolve(&kernel->mount);
    check_equal(xlator_mount_fuse.init(&kernel->mount), 0);
    kernel->fuse = kernel->mount.state;
    kernel->fuse->root = inode_get(kernel->graph.inodes, &gfid_root);
    kernel->fuse->mountpoint = strdup("/nowhere");
}

/* options: "key=value", ..., NULL; or NULL */
static struct kernel *kernel_new(const char *const *options)
{
    struct kernel *kernel = calloc(1, sizeof(*kernel));
    int pair[2], bytes = 4 << 20;

    graph_make(kernel, options);
    check_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    for (int i = 0; i < 2; i++)
        (void)setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    kernel->fd = pair[0];
    kernel->unique = 2;
    kernel->packet = malloc(KERNEL_BYTES_MAX);
    check_equal(device_start(kernel->fuse, pair[1], lane_self()), 0);
    xlator_notify(&kernel->child, EVENT_CHILD_UP, NULL);
    return kernel;
}

static void kernel_free(struct kernel *kernel)
{
    kernel->fuse->ended = NULL;
    close(kernel->fd);
    fuse_unmount(kernel->fuse);
    check_equal(inode_table_count(kernel->graph.inodes), 0); /* nothing is held any more */
    xlator_mount_fuse.fini(&kernel->mount);
    options_fini(xlator_mount_fuse.options, kernel->mount.state);
    option_set_fini(&kernel->mount.options);
    inode_table_free(kernel->graph.inodes);
    free(kernel->mount.state);
    free(kernel->child.state);
    free(kernel->packet);
    free(kernel);
}

/* --- messages --------------------------------------------------------------------------------- */
/* Sends without waiting; returns the unique. */
static uint64_t kernel_send(struct kernel *kernel, uint32_t opcode, uint64_t nodeid,
                            const void *body, size_t bytes)
{
    struct fuse_in_header in = { .len = (uint32_t)(sizeof(in) + bytes),
                                 .opcode = opcode,
                                 .unique = kernel->unique,
                                 .nodeid = nodeid,
                                 .uid = kernel->uid,
                                 .gid = kernel->uid,
                                 .pid = (uint32_t)(kernel->pid ? kernel->pid : getpid()) };
    struct iovec iov[2] = { { .iov_base = &in, .iov_len = sizeof(in) },
                            { .iov_base = (void *)body, .iov_len = bytes } };

    kernel->unique += 2;
    check_equal(env_writev(kernel->fd, iov, 2), sizeof(in) + bytes);
    return in.unique;
}

/* The next answer: its error, the body's size in *ret_bytes. */
static int kernel_receive(struct kernel *kernel, uint64_t *ret_unique, void *body, size_t room,
                          size_t *ret_bytes)
{
    struct fuse_out_header out;
    ssize_t bytes;

    do { /* what is no answer to anything is a notification: of attributes that are old, here */
        bytes = env_read(kernel->fd, kernel->packet, KERNEL_BYTES_MAX);
        check(bytes >= (ssize_t)sizeof(out));
        memcpy(&out, kernel->packet, sizeof(out));
        check_equal(out.len, bytes);
        if (out.unique == 0) {
            check_equal(out.error, FUSE_NOTIFY_INVAL_INODE);
            kernel->notified++;
        }
    } while (out.unique == 0);
    check(out.error <= 0 && out.error > -512);
    *ret_unique = out.unique;
    *ret_bytes = (size_t)bytes - sizeof(out);
    memcpy(body, kernel->packet + sizeof(out), MIN(room, *ret_bytes));
    return out.error;
}

/* Sends, waits; -errno or the bytes of the body, of which out holds what it has room for. */
static int kernel_ask(struct kernel *kernel, uint32_t opcode, uint64_t nodeid, const void *body,
                      size_t bytes, void *out, size_t room)
{
    uint64_t unique = kernel_send(kernel, opcode, nodeid, body, bytes), answered;
    size_t got;
    int ret = kernel_receive(kernel, &answered, out, room, &got);

    check_equal(answered, unique);
    return ret < 0 ? ret : (int)got;
}

/* INIT with everything that Linux 6.18 offers. */
static void kernel_init(struct kernel *kernel)
{
    struct fuse_init_in in = {
        .major = 7, .minor = 45, .max_readahead = 131072, .flags = 0x73fffffb, .flags2 = 0x5fd
    };
    struct fuse_init_out out;

    check_equal(kernel_ask(kernel, FUSE_INIT, 0, &in, sizeof(in), &out, sizeof(out)), sizeof(out));
}
