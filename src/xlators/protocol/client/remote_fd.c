/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Open files: which number the brick gave each, on which connection, and opening them anew. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "xlators/protocol/client/remote.h"

enum { REOPENS_AT_ONCE = 32 };

/* --- references ------------------------------------------------------------------------------- */

static void rfd_unref_locked(struct remote_fd *rfd)
{
    if (--rfd->refs == 0)
        free(rfd);
}

static void rfd_unref(struct remote *remote, struct remote_fd *rfd)
{
    HOLD(&remote->mutex);
    rfd_unref_locked(rfd);
}

static struct remote_fd *rfd_new(const struct fd *fd, bool is_dir)
{
    struct remote_fd *rfd = calloc(1, sizeof(*rfd));
    if (!rfd)
        return NULL;
    rfd->refs = 1;
    rfd->gfid = *fd_gfid(fd);
    rfd->flags = fd->flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
    rfd->is_dir = is_dir;
    rfd->number = FD_NONE;
    return rfd;
}

/* The fd's slot, made when there is none; NULL: no memory. */
static struct remote_fd *rfd_of(struct remote *remote, struct fd *fd, bool is_dir)
{
    struct remote_fd *rfd = slot_get(&fd->slots, remote->xl);
    if (rfd)
        return rfd;
    struct remote_fd *mine = rfd_new(fd, is_dir);
    if (!mine)
        return NULL;
    hold_begin(&remote->mutex);
    rfd = slot_add(&fd->slots, remote->xl, mine);
    if (rfd == mine)
        LIST_INSERT_HEAD(&remote->fds, mine, link);
    pthread_mutex_t *mutex = &remote->mutex;
    hold_end(&mutex);
    if (rfd != mine)
        free(mine);
    return rfd;
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* Takes over a number that the brick gave. One that is not wanted is released. */
static void rfd_set_number(struct remote *remote, struct remote_fd *rfd, int64_t number,
                           uint32_t generation)
{
    int64_t surplus = number;
    hold_begin(&remote->mutex);
    if (!rfd->is_released && rfd->generation != generation) {
        rfd->number = number;
        rfd->generation = generation;
        surplus = FD_NONE;
    }
    pthread_mutex_t *mutex = &remote->mutex;
    hold_end(&mutex);
    if (surplus != FD_NONE)
        remote_send_release(remote, &rfd->gfid, surplus, rfd->is_dir, generation);
}

int remote_fd_add(struct remote *remote, struct fd *fd, bool is_dir, int64_t number,
                  uint32_t generation)
{
    struct remote_fd *rfd = rfd_of(remote, fd, is_dir);
    if (!rfd)
        return -ENOMEM;
    rfd_set_number(remote, rfd, number, generation);
    return 0;
}

/* As the process itself, with what the file was opened with. */
static int rfd_open(struct remote *remote, struct remote_fd *rfd, uint32_t generation)
{
    AUTO(inode) inode = inode_get(remote->xl->graph->inodes, &rfd->gfid);
    static const int64_t no_numbers[2] = { FD_NONE, FD_NONE };
    struct call call = { 0 };
    bool is_lost;
    int ret = -ENOMEM;
    if (inode && rfd->is_dir) {
        const struct opendir_args in = { .inode = inode };
        struct opendir_reply out = { 0 };
        ret = remote_exchange(remote, &call, FOP_OPENDIR, &in, no_numbers, generation, &out,
                              &is_lost);
        if (ret >= 0)
            rfd_set_number(remote, rfd, out.fd, generation);
        opendir_reply_fini(&out);
    } else if (inode) {
        const struct open_args in = { .inode = inode, .flags = rfd->flags };
        struct open_reply out = { 0 };
        ret = remote_exchange(remote, &call, FOP_OPEN, &in, no_numbers, generation, &out, &is_lost);
        if (ret >= 0)
            rfd_set_number(remote, rfd, out.fd, generation);
        open_reply_fini(&out);
    }
    return MIN(ret, 0);
}

/* Operations that the brick also serves on "any descriptor of this inode" (spec/wire.md 4.1). */
static bool may_be_anonymous(enum fop op)
{
    return op == FOP_READV || op == FOP_WRITEV || op == FOP_FSYNC || op == FOP_FXATTROP ||
           op == FOP_FINODELK || op == FOP_COPY_FILE_RANGE;
}

/* false: it has none on that connection. *ret_bad: nor may it get one. */
static bool rfd_number(struct remote *remote, const struct remote_fd *rfd, uint32_t generation,
                       int64_t *ret_number, bool *ret_bad)
{
    HOLD(&remote->mutex);
    *ret_bad = rfd->is_bad;
    *ret_number = rfd->number;
    return !rfd->is_bad && rfd->generation == generation;
}

/* Not opened here, or not on this connection: opens it now, or does without. */
static int number_anew(struct remote *remote, enum fop op, struct remote_fd *rfd,
                       uint32_t generation, int64_t *ret_number)
{
    bool is_bad;
    int ret = rfd_open(remote, rfd, generation);
    if (rfd_number(remote, rfd, generation, ret_number, &is_bad))
        return 0;
    if (ret == -ENOTCONN || ret == -ETIMEDOUT)
        return ret;
    *ret_number = FD_ANONYMOUS;
    return may_be_anonymous(op) ? 0 : -EBADFD;
}

int remote_fd_number(struct remote *remote, enum fop op, struct fd *fd, uint32_t generation,
                     int64_t *ret_number)
{
    bool is_bad;
    if (fd->anonymous) {
        *ret_number = FD_ANONYMOUS;
        return 0;
    }
    struct remote_fd *rfd = rfd_of(remote, fd, fd->is_dir);
    if (!rfd)
        return -ENOMEM;
    if (rfd_number(remote, rfd, generation, ret_number, &is_bad))
        return 0;
    return is_bad ? -EBADFD : number_anew(remote, op, rfd, generation, ret_number);
}

void remote_fd_release(struct remote *remote, struct remote_fd *rfd)
{
    hold_begin(&remote->mutex);
    LIST_REMOVE(rfd, link);
    rfd->is_released = true;
    int64_t number = rfd->number;
    uint32_t generation = rfd->generation;
    pthread_mutex_t *mutex = &remote->mutex;
    hold_end(&mutex);
    if (generation && generation == rpc_client_generation(remote->rpc))
        remote_send_release(remote, &rfd->gfid, number, rfd->is_dir, generation);
    rfd_unref(remote, rfd);
}

void remote_fd_set_locks(struct remote *remote, struct fd *fd)
{
    struct remote_fd *rfd = slot_get(&fd->slots, remote->xl);
    HOLD(&remote->mutex);
    if (rfd)
        rfd->has_locks = true;
}

void remote_fds_lost(struct remote *remote)
{
    struct remote_fd *rfd;
    bool is_strict = remote->strict_locks;
    HOLD(&remote->mutex);
    LIST_FOREACH(rfd, &remote->fds, link) {
        rfd->is_bad |= is_strict && rfd->has_locks;
        rfd->has_locks = false;
    }
}

unsigned remote_fds_count(struct remote *remote)
{
    struct remote_fd *rfd;
    unsigned count = 0;
    HOLD(&remote->mutex);
    LIST_FOREACH(rfd, &remote->fds, link)
        count++;
    return count;
}

/* --- after a reconnect ------------------------------------------------------------------------ */

struct reopen {
    struct remote *remote;
    struct remote_fd *rfd;
    uint32_t generation;
};

static void reopen_leg(void *arg)
{
    struct reopen *reopen = arg;
    int ret = rfd_open(reopen->remote, reopen->rfd, reopen->generation);
    if (ret < 0 && ret != -ENOTCONN) {
        char gfid[UUID_TEXT_SIZE];
        log_warn(reopen->remote->xl, ret,
                 "cannot open gfid %s again: what needs its descriptor fails",
                 gfid_format(&reopen->rfd->gfid, gfid));
    }
    rfd_unref(reopen->remote, reopen->rfd);
    free(reopen);
}

/* References to all that are to be opened; *ret_list to free. */
static int collect(struct remote *remote, struct remote_fd ***ret_list, unsigned *ret_count)
{
    struct remote_fd *rfd;
    unsigned count = 0;
    HOLD(&remote->mutex);
    LIST_FOREACH(rfd, &remote->fds, link)
        count++;
    struct remote_fd **list = calloc(count + 1, sizeof(struct remote_fd *));
    if (!list)
        return -ENOMEM;
    count = 0;
    LIST_FOREACH(rfd, &remote->fds, link)
        if (!rfd->is_bad) {
            rfd->refs++;
            list[count++] = rfd;
        }
    *ret_list = list;
    *ret_count = count;
    return 0;
}

static void reopen_start(struct remote *remote, struct fgroup *group, struct remote_fd *rfd,
                         uint32_t generation)
{
    struct reopen *reopen = malloc(sizeof(*reopen));
    if (reopen)
        *reopen = (struct reopen){ remote, rfd, generation };
    if (!reopen || fgroup_start(group, "reopen", reopen_leg, reopen) < 0) {
        free(reopen);
        rfd_unref(remote, rfd); /* it is opened when it is used next */
    }
}

int remote_fds_reopen(struct remote *remote, uint32_t generation)
{
    AUTO_FREE struct remote_fd **list = NULL;
    struct fgroup group;
    unsigned count = 0;
    int ret = collect(remote, &list, &count);
    if (ret < 0)
        return ret;
    fgroup_init(&group, REOPENS_AT_ONCE);
    for (unsigned i = 0; i < count; i++)
        reopen_start(remote, &group, list[i], generation);
    fgroup_wait(&group, NULL, NULL);
    fgroup_fini(&group);
    return rpc_client_generation(remote->rpc) == generation ? 0 : -ENOTCONN;
}
