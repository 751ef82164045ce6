/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/mount/fuse/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "core/env.h"
#include "xlators/mount/fuse/request.h"

enum {
    COMMAND_REGISTER = 1,
    COMMAND_COMMIT_AND_FETCH = 2,
    PAYLOAD_BYTES = FUSE_REQUEST_BYTES_MAX,
    DEPTH = 8,            /* entries of a queue */
    DEPTH_SUM_MAX = 128,  /* of all: their payloads are touched sooner or later */
    REPLACED_MAX = 4096,  /* entries that waiting locks may add */
    RETRY_NS = NS_PER_MS, /* until the kernel has taken our INIT */
    RETRIES_MAX = 1000,
};

/* What kernel and we share about a request. */
struct ring_header {
    uint8_t in_out[128];    /* fuse_in_header when fetched, fuse_out_header when committed */
    uint8_t operation[128]; /* the first structure of the request */
    uint64_t flags, commit_id;
    uint32_t payload_bytes, pad;
    uint64_t reserved;
};
_Static_assert(sizeof(struct ring_header) == 288, "wire size");

struct ring_command { /* the data of both commands */
    uint64_t flags, commit_id;
    uint16_t qid;
    uint8_t pad[6];
};

struct ring_entry {
    struct fuse *fuse;
    struct ring_header header;
    struct iovec iov[2]; /* header, payload: as registered */
    uint64_t commit_id;
    uint16_t qid;
};

/* --- entries ---------------------------------------------------------------------------------- */
static struct ring_entry *entry_new(struct fuse *fuse, uint16_t qid)
{
    struct ring_entry *entry = calloc(1, sizeof(*entry));
    /* of the kernel's own size, not from the arena: what is never used costs no memory */
    void *payload = mmap(NULL, PAYLOAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);

    if (!entry || payload == MAP_FAILED) {
        free(entry);
        return NULL;
    }
    entry->fuse = fuse;
    entry->qid = qid;
    entry->iov[0] = (struct iovec){ .iov_base = &entry->header, .iov_len = sizeof(entry->header) };
    entry->iov[1] = (struct iovec){ .iov_base = payload, .iov_len = PAYLOAD_BYTES };
    return entry;
}

static void entry_free(struct ring_entry *entry)
{
    munmap(entry->iov[1].iov_base, PAYLOAD_BYTES);
    free(entry);
}

static int entry_command(struct ring_entry *entry, uint32_t op)
{
    struct env_command command = { .fd = entry->fuse->devices[0].fd, .op = op };
    struct ring_command data = { .commit_id = entry->commit_id, .qid = entry->qid };

    if (op == COMMAND_REGISTER) {
        command.iov = entry->iov;
        command.iov_count = 2;
    }
    memcpy(command.data, &data, sizeof(data));
    return env_command(&command);
}

/* --- one request ------------------------------------------------------------------------------ */
static struct request *entry_request(struct ring_entry *entry)
{
    const struct ring_header *header = &entry->header;
    struct fuse_in_header in;

    memcpy(&in, header->in_out, sizeof(in));
    entry->commit_id = header->commit_id;
    if (in.len < sizeof(in) || header->payload_bytes > in.len - sizeof(in) ||
        header->payload_bytes > PAYLOAD_BYTES ||
        in.len - sizeof(in) - header->payload_bytes > sizeof(header->operation))
        return NULL;
    return request_of_ring(entry->fuse, entry, &in, header->operation,
                           (uint32_t)(in.len - sizeof(in) - header->payload_bytes),
                           entry->iov[1].iov_base, header->payload_bytes);
}

void ring_reply(struct ring_entry *entry, const struct fuse_out_header *out,
                const struct iovec *iov, int count)
{
    struct fuse_out_header header = *out;
    uint8_t *at = entry->iov[1].iov_base;

    if (header.len - sizeof(header) > PAYLOAD_BYTES) {
        header = (struct fuse_out_header){ .len = sizeof(header),
                                           .error = -EIO,
                                           .unique = out->unique };
        count = 0;
    }
    memcpy(entry->header.in_out, &header, sizeof(header));
    entry->header.payload_bytes = header.len - (uint32_t)sizeof(header);
    for (int i = 0; i < count; i++) { /* copy: the kernel takes answers from here only */
        memcpy(at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
}

/* true: the entry goes on with this fiber. */
static bool entry_serve(struct ring_entry *entry)
{
    struct fuse_out_header refused = { .len = sizeof(refused), .error = -EPROTO };
    struct fuse_in_header in;
    struct request *req = entry_request(entry);

    if (req)
        return request_serve(req);
    memcpy(&in, entry->header.in_out, sizeof(in));
    log_error(entry->fuse->xl, 0, "cannot take a request of %u bytes of the kernel", in.len);
    refused.unique = in.unique;
    ring_reply(entry, &refused, NULL, 0);
    return true;
}

/* --- its life --------------------------------------------------------------------------------- */
static void entry_end(struct ring_entry *entry)
{
    struct fuse *fuse = entry->fuse;

    entry_free(entry);
    HOLD(&fuse->mutex);
    fuse->readers--;
    fcond_wake_all(&fuse->changed);
}

static void entry_loop(struct ring_entry *entry, int ret)
{
    while (ret >= 0) {
        if (!entry_serve(entry))
            return;
        ret = entry_command(entry, COMMAND_COMMIT_AND_FETCH);
    }
    if (ret != -ENOTCONN && ret != -ECONNABORTED && ret != -ENODEV && ret != -ECANCELED)
        log_error(entry->fuse->xl, ret, "the kernel ends an entry of its queue %u", entry->qid);
    entry_end(entry);
}

static void register_run(void *arg)
{
    struct ring_entry *entry = arg;
    int ret = entry_command(entry, COMMAND_REGISTER);

    for (int i = 0; ret == -EAGAIN && i < RETRIES_MAX; i++) { /* it is still busy with our INIT */
        env_sleep(RETRY_NS);
        ret = entry_command(entry, COMMAND_REGISTER);
    }
    entry_loop(entry, ret);
}

static void commit_run(void *arg)
{
    struct ring_entry *entry = arg;

    entry_loop(entry, entry_command(entry, COMMAND_COMMIT_AND_FETCH));
}

static int entry_start(struct fuse *fuse, uint16_t qid, struct lane *lane)
{
    struct ring_entry *entry = entry_new(fuse, qid);
    if (!entry)
        return -ENOMEM;
    {
        HOLD(&fuse->mutex);
        fuse->readers++;
    }
    int ret = fiber_start_on(lane, "fuse ring", register_run, entry);
    if (ret < 0)
        entry_end(entry);
    return ret;
}

void ring_entry_replace(struct ring_entry *entry)
{
    if (atomic_fetch_add(&entry->fuse->ring_replaced, 1) < REPLACED_MAX)
        (void)entry_start(entry->fuse, entry->qid, lane_self()); /* the queue has others */
}

void ring_entry_take_over(struct ring_entry *entry)
{
    if (fiber_start("fuse ring", commit_run, entry) < 0)
        log_error(entry->fuse->xl, -ENOMEM, "queue %u loses an entry", entry->qid);
}

void ring_start(struct fuse *fuse)
{
    unsigned queues = (unsigned)get_nprocs_conf();
    unsigned depth = MAX(MIN((unsigned)DEPTH, DEPTH_SUM_MAX / queues), 1u);
    int ret = 0;

    fuse->ring_is_used = true;
    for (unsigned i = 0; i < queues * depth && ret == 0; i++)
        ret = entry_start(fuse, (uint16_t)(i % queues), lane_get(i % queues % lanes_count()));
    if (ret < 0)
        log_error(fuse->xl, ret, "the kernel's %u queues do not all get their entries", queues);
}
