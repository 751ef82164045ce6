/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/mount/fuse/device.h"

#include <errno.h>

#include "core/env.h"
#include "xlators/mount/fuse/request.h"

enum {
    PAUSE_NS = 10 * NS_PER_MS,
    READ_BATCH = 16, /* requests that are read before the first of them must get its turn */
};

/* A WRITE's headers are 80 bytes: its data begins where the landing buffer does, on a page, and can
 * go to an O_DIRECT descriptor without a copy. */
static ssize_t device_read(struct device *device)
{
    struct iovec iov[2] = {
        { .iov_base = device->head, .iov_len = sizeof(device->head) },
        { .iov_base = device->landing->data, .iov_len = FUSE_REQUEST_BYTES_MAX },
    };
    return env_readv(device->fd, iov, 2);
}

/* The connection's end, by umount(8) or abort, and what we cannot go on from. */
static bool read_is_final(ssize_t ret)
{
    switch (ret) {
    case -ENOENT: /* the request was taken back while it was read */
    case -EINTR:
    case -EAGAIN:
        return false;
    case -ENOMEM:
        env_sleep(PAUSE_NS);
        return false;
    default:
        return true;
    }
}

static void device_handle(struct device *device, size_t bytes)
{
    int ret;
    struct request *req = request_new(device, bytes, &ret);

    if (req)
        request_start(req);
    else
        log_error(device->fuse->xl, ret, "cannot take a request of %zu bytes of the kernel", bytes);
}

static void device_end(struct device *device, ssize_t ret)
{
    struct fuse *fuse = device->fuse;
    void (*ended)(void *arg) = NULL;

    if (ret != 0 && ret != -ENODEV && ret != -ECONNABORTED)
        log_error(fuse->xl, (int)ret, "cannot read requests of the kernel: the mount ends");
    buf_unref(TAKE(device->landing));
    {
        HOLD(&fuse->mutex);
        fuse->readers--;
        if (!fuse->end_seen && !fuse->stopping)
            ended = fuse->ended;
        fuse->end_seen = true;
        fcond_wake_all(&fuse->changed);
    }
    if (ended)
        ended(fuse->ended_arg);
}

static void device_run(void *arg)
{
    struct device *device = arg;
    ssize_t ret;

    for (unsigned turn = 1;; turn++) {
        ret = device_read(device);
        if (ret > 0)
            device_handle(device, (size_t)ret);
        else if (read_is_final(ret))
            break;
        if (turn % READ_BATCH == 0)
            fiber_yield();
    }
    device_end(device, ret);
}

int device_start(struct fuse *fuse, int fd, struct lane *lane)
{
    struct device *device = &fuse->devices[fuse->device_count];

    *device = (struct device){
        .fuse = fuse, .fd = fd, .lane = lane, .landing = buf_get(FUSE_REQUEST_BYTES_MAX)
    };
    {
        HOLD(&fuse->mutex);
        fuse->readers++;
        fuse->device_count++;
    }
    int ret = fiber_start_on(lane, "fuse reader", device_run, device);
    if (ret == 0)
        return 0;
    buf_unref(device->landing);
    env_close(fd);
    HOLD(&fuse->mutex);
    fuse->readers--;
    fuse->device_count--;
    return ret;
}

void devices_close(struct fuse *fuse)
{
    for (uint32_t i = 0; i < fuse->device_count; i++)
        env_close(fuse->devices[i].fd);
    fuse->device_count = 0;
}
