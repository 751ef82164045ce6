/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Payload buffers. Address space for the largest arena there may be is reserved once; memory comes
 * by touching it. It is handed out in extents of 1 MiB, each one 1 MiB buffer or many of one
 * smaller class:
 *
 *     extent      0         1                  2                      3 ...
 *     arena   | 1 MiB | 8 x 128 KiB | 128 KiB, 128 KiB, ... | 256 x 4 KiB | not used yet
 *
 * Free lists are last in, first out, which keeps them in the processor's cache. An extent that is
 * free as a whole serves another class when there are no fresh ones. One short mutex protects all.
 *
 * Who finds too little free waits in line; nobody overtakes, and a request for several buffers gets
 * all at once, so two half-served requests cannot wait for each other. */
#include "core/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/lane.h"
#include "core/log.h"
#include "core/sync.h"

#if CORE_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum {
    CLASSES = 4,
    EXTENT_BYTES = BUF_BYTES_MAX,
    EXTENTS_MAX = 16384, /* 16 GiB of address space */
    LIMIT_DEFAULT = 256, /* extents */
};
static const uint32_t class_bytes[CLASSES] = { 4096, 32768, 131072, BUF_BYTES_MAX };

struct extent {
    struct buf *bufs; /* an array; its length is by class */
    uint32_t class_;
    uint32_t used;  /* buffers that are not free */
    bool is_dirty;  /* has been touched since it was last given back to the kernel */
    bool is_recent; /* used since the last tidying */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
static struct extent *extents; /* reserved like the arena, touched as they come */
static uint32_t extent_count, extent_limit = LIMIT_DEFAULT;
static struct buf *free_bufs[CLASSES];
static uint64_t used_bytes, waits;

struct want { /* on the stack of who wants */
    TAILQ_ENTRY(want) next;
    const uint32_t *classes;
    struct buf **ret_bufs;
    uint32_t count;
    bool is_served;
};
static TAILQ_HEAD(, want) wants = TAILQ_HEAD_INITIALIZER(wants);
static struct fcond served = { .waiters = TAILQ_HEAD_INITIALIZER(served.waiters) };

/* --- extents ---------------------------------------------------------------------------------- */

static uint32_t extent_bufs(uint32_t class_)
{
    return EXTENT_BYTES / class_bytes[class_];
}

static struct extent *extent_of(const struct buf *buf)
{
    return &extents[(size_t)((char *)buf->data - arena) / EXTENT_BYTES];
}

static void *reserve(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        log_critical("core", -errno, "cannot reserve address space for buffers");
        abort();
    }
    return map;
}

static void arena_reserve(void)
{
    arena = reserve((size_t)EXTENTS_MAX * EXTENT_BYTES);
    extents = reserve(EXTENTS_MAX * sizeof(*extents));
}

/* Cuts the extent into free buffers. false: no memory for their descriptors. */
static bool extent_cut(uint32_t index, uint32_t class_)
{
    uint32_t n = extent_bufs(class_);
    struct buf *bufs = calloc(n, sizeof(*bufs));
    if (!bufs)
        return false;
    struct extent *extent = &extents[index];
    extent->bufs = bufs;
    extent->class_ = class_;
    char *data = arena + (size_t)index * EXTENT_BYTES;
    for (uint32_t i = n; i-- > 0;) {
        bufs[i] = (struct buf){ .data = data + (size_t)i * class_bytes[class_],
                                .capacity = class_bytes[class_],
                                .class_ = class_,
                                .next = free_bufs[class_] };
        free_bufs[class_] = &bufs[i];
    }
    ASAN_POISON_MEMORY_REGION(data, EXTENT_BYTES);
    return true;
}

/* Takes a wholly free extent's buffers off their list. */
static void extent_uncut(struct extent *extent)
{
    struct buf **at = &free_bufs[extent->class_];
    while (*at)
        if (extent_of(*at) == extent)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    free(extent->bufs);
    extent->bufs = NULL;
}

/* Makes free buffers of the class: of a fresh extent, or of one that another class left free. */
static bool class_grow_locked(uint32_t class_)
{
    if (!arena)
        arena_reserve();
    if (extent_count < extent_limit)
        return extent_cut(extent_count, class_) && ++extent_count;
    for (uint32_t i = 0; i < extent_count; i++)
        if (extents[i].used == 0 && extents[i].class_ != class_) {
            extent_uncut(&extents[i]);
            return extent_cut(i, class_);
        }
    return false;
}

/* --- taking and giving back ------------------------------------------------------------------- */

static struct buf *buf_take_locked(uint32_t class_)
{
    if (!free_bufs[class_] && !class_grow_locked(class_))
        return NULL;
    struct buf *buf = free_bufs[class_];
    free_bufs[class_] = buf->next;
    buf->next = NULL;
    buf->refs = 1;
    struct extent *extent = extent_of(buf);
    extent->used++;
    extent->is_dirty = extent->is_recent = true;
    used_bytes += buf->capacity;
    ASAN_UNPOISON_MEMORY_REGION(buf->data, buf->capacity);
    return buf;
}

static void buf_give_locked(struct buf *buf)
{
    ASAN_POISON_MEMORY_REGION(buf->data, buf->capacity);
    used_bytes -= buf->capacity;
    extent_of(buf)->used--;
    buf->next = free_bufs[buf->class_];
    free_bufs[buf->class_] = buf;
}

/* All that is wanted, or nothing. A larger class does where the right one is used up. */
static bool want_serve_locked(struct want *want)
{
    for (uint32_t i = 0; i < want->count; i++) {
        struct buf *buf = NULL;
        for (uint32_t class_ = want->classes[i]; !buf && class_ < CLASSES; class_++)
            buf = buf_take_locked(class_);
        if (!buf) {
            while (i-- > 0)
                buf_give_locked(want->ret_bufs[i]);
            return false;
        }
        want->ret_bufs[i] = buf;
    }
    want->is_served = true;
    return true;
}

static void serve_line_locked(void)
{
    bool any = false;
    for (struct want *want; (want = TAILQ_FIRST(&wants)) && want_serve_locked(want); any = true)
        TAILQ_REMOVE(&wants, want, next);
    if (any)
        fcond_wake_all(&served);
}

static void bufs_get(const uint32_t *classes, uint32_t count, struct buf **ret_bufs)
{
    struct want want = { .classes = classes, .count = count, .ret_bufs = ret_bufs };
    HOLD(&mutex);
    if (TAILQ_EMPTY(&wants) && want_serve_locked(&want))
        return;
    waits++;
    TAILQ_INSERT_TAIL(&wants, &want, next);
    while (!want.is_served)
        fcond_wait(&served, &mutex, "buffers");
}

static uint32_t class_for(size_t bytes)
{
    uint32_t class_ = 0;
    while (class_bytes[class_] < bytes)
        class_++;
    return class_;
}

struct buf *buf_get(size_t bytes)
{
    assert(bytes <= BUF_BYTES_MAX);
    uint32_t class_ = class_for(bytes);
    struct buf *buf;
    bufs_get(&class_, 1, &buf);
    return buf;
}

struct buf *buf_ref(struct buf *buf)
{
    uint32_t before = atomic_fetch_add_explicit(&buf->refs, 1, memory_order_relaxed);
    assert(before > 0);
    return buf;
}

void buf_unref(struct buf *buf)
{
    if (!buf)
        return;
    uint32_t before = atomic_fetch_sub_explicit(&buf->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    HOLD(&mutex);
    buf_give_locked(buf);
    if (!TAILQ_EMPTY(&wants))
        serve_line_locked();
}

/* --- limit, figures, tidying ------------------------------------------------------------------ */

void buf_get_stats(struct buf_stats *ret_stats)
{
    HOLD(&mutex);
    *ret_stats = (struct buf_stats){
        .arena_bytes = (uint64_t)extent_count * EXTENT_BYTES,
        .used_bytes = used_bytes,
        .limit_bytes = (uint64_t)extent_limit * EXTENT_BYTES,
        .waits = waits,
    };
}

/* At least what one largest message needs. A lower limit than what is in use only stops growth. */
void buf_set_limit(uint64_t bytes)
{
    HOLD(&mutex);
    uint64_t limit = MAX(bytes / EXTENT_BYTES, (uint64_t)PAYLOAD_SEGS_MAX);
    extent_limit = (uint32_t)MIN(limit, (uint64_t)EXTENTS_MAX);
    serve_line_locked();
}

bool buf_tidy(void)
{
    bool more = false;
    HOLD(&mutex);
    for (uint32_t i = 0; i < extent_count; i++) {
        struct extent *extent = &extents[i];
        if (extent->is_dirty && extent->used == 0 && !extent->is_recent) {
            madvise(arena + (size_t)i * EXTENT_BYTES, EXTENT_BYTES, MADV_DONTNEED);
            extent->is_dirty = false;
        }
        extent->is_recent = extent->used > 0;
        more = more || (extent->is_dirty && extent->used == 0);
    }
    return more;
}

/* --- payloads --------------------------------------------------------------------------------- */

static void payload_append(struct payload *payload, struct buf *buf, void *data, uint32_t bytes)
{
    assert(payload->segs < PAYLOAD_SEGS_MAX);
    payload->buf[payload->segs] = buf;
    payload->iov[payload->segs++] = (struct iovec){ .iov_base = data, .iov_len = bytes };
    payload->bytes += bytes;
}

void payload_add(struct payload *payload, struct buf *buf, uint32_t offset, uint32_t bytes)
{
    assert(offset <= buf->capacity && bytes <= buf->capacity - offset);
    payload_append(payload, buf, (char *)buf->data + offset, bytes);
}

void payload_add_borrowed(struct payload *payload, void *data, uint32_t bytes)
{
    payload_append(payload, NULL, data, bytes);
}

int payload_alloc(struct payload *payload, uint32_t bytes)
{
    uint32_t classes[PAYLOAD_SEGS_MAX], count = 0;
    struct buf *bufs[PAYLOAD_SEGS_MAX];
    if (bytes > PAYLOAD_BYTES_MAX ||
        payload->segs + (bytes + BUF_BYTES_MAX - 1) / BUF_BYTES_MAX > PAYLOAD_SEGS_MAX)
        return -E2BIG;
    for (uint32_t left = bytes; left > 0; left -= MIN(left, (uint32_t)BUF_BYTES_MAX))
        classes[count++] = class_for(MIN(left, (uint32_t)BUF_BYTES_MAX));
    if (count)
        bufs_get(classes, count, bufs);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = MIN(bytes, (uint32_t)BUF_BYTES_MAX);
        payload_add(payload, bufs[i], 0, part);
        bytes -= part;
    }
    return 0;
}

void payload_truncate(struct payload *payload, uint32_t bytes)
{
    while (payload->bytes > bytes) {
        struct iovec *last = &payload->iov[payload->segs - 1];
        uint32_t cut = MIN((uint32_t)last->iov_len, payload->bytes - bytes);
        last->iov_len -= cut;
        payload->bytes -= cut;
        if (last->iov_len == 0)
            buf_unref(payload->buf[--payload->segs]);
    }
}

void payload_ref(struct payload *to, const struct payload *from)
{
    for (uint32_t i = 0; i < from->segs; i++) {
        struct buf *buf = from->buf[i] ? buf_ref(from->buf[i]) : NULL;
        payload_append(to, buf, from->iov[i].iov_base, (uint32_t)from->iov[i].iov_len);
    }
}

void payload_fini(struct payload *payload)
{
    for (uint32_t i = 0; i < payload->segs; i++)
        buf_unref(payload->buf[i]);
    payload->segs = payload->bytes = 0;
}

void payload_copy_out(const struct payload *payload, void *to)
{
    char *at = to;
    for (uint32_t i = 0; i < payload->segs; i++) {
        memcpy(at, payload->iov[i].iov_base, payload->iov[i].iov_len);
        at += payload->iov[i].iov_len;
    }
}

void payload_copy_in(struct payload *payload, const void *from)
{
    const char *at = from;
    for (uint32_t i = 0; i < payload->segs; i++) {
        memcpy(payload->iov[i].iov_base, at, payload->iov[i].iov_len);
        at += payload->iov[i].iov_len;
    }
}
