/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/mdata.h"

#include <endian.h>
#include <errno.h>

#include "xlators/storage/posix/handle.h"

struct mdata_wire { /* all big-endian */
    uint8_t version;
    uint64_t flags;
    struct {
        uint64_t sec, nsec;
    } __attribute__((packed)) ctime, mtime, atime;
} __attribute__((packed));
static_assert(sizeof(struct mdata_wire) == MDATA_BYTES, "as genuine bricks store it");

void mdata_encode(const struct mdata *mdata, uint8_t bytes[MDATA_BYTES])
{
    struct mdata_wire wire = {
        .version = 1,
        .ctime = { htobe64((uint64_t)mdata->ctime.sec), htobe64(mdata->ctime.nsec) },
        .mtime = { htobe64((uint64_t)mdata->mtime.sec), htobe64(mdata->mtime.nsec) },
        .atime = { htobe64((uint64_t)mdata->atime.sec), htobe64(mdata->atime.nsec) },
    };
    memcpy(bytes, &wire, sizeof(wire));
}

#define TIME_OF(wire)                                                                              \
    (struct iatt_time)                                                                             \
    {                                                                                              \
        (int64_t)be64toh((wire).sec), (uint32_t)be64toh((wire).nsec)                               \
    }

int mdata_decode(const void *bytes, size_t count, struct mdata *ret_mdata)
{
    struct mdata_wire wire;

    if (count != sizeof(wire))
        return -EINVAL;
    memcpy(&wire, bytes, sizeof(wire));
    if (wire.version != 1)
        return -EINVAL;
    *ret_mdata = (struct mdata){
        .ctime = TIME_OF(wire.ctime), .mtime = TIME_OF(wire.mtime), .atime = TIME_OF(wire.atime),
    };
    return 0;
}

static bool is_later(struct iatt_time a, struct iatt_time b)
{
    return a.sec != b.sec ? a.sec > b.sec : a.nsec > b.nsec;
}

static void raise_to(struct iatt_time *time, struct iatt_time now)
{
    if (is_later(now, *time))
        *time = now;
}

void mdata_load(struct posix *posix, struct node *node, const struct object *object)
{
    uint8_t bytes[MDATA_BYTES];
    struct mdata mdata;

    if (!posix->ctime || __atomic_load_n(&node->mdata_state, __ATOMIC_ACQUIRE) != MDATA_UNKNOWN)
        return;
    ssize_t ret = object_getxattr(object, XATTR_MDATA, bytes, sizeof(bytes));
    bool is_there = ret >= 0 && mdata_decode(bytes, (size_t)ret, &mdata) == 0;
    HOLD(&node->mutex);
    if (node->mdata_state != MDATA_UNKNOWN)
        return;
    if (is_there)
        node->mdata = mdata;
    __atomic_store_n(&node->mdata_state, is_there ? MDATA_PRESENT : MDATA_ABSENT,
                     __ATOMIC_RELEASE);
}

bool mdata_is_known(struct posix *posix, struct node *node)
{
    return !posix->ctime ||
           __atomic_load_n(&node->mdata_state, __ATOMIC_ACQUIRE) != MDATA_UNKNOWN;
}

void mdata_show(struct posix *posix, struct node *node, struct iatt *iatt)
{
    if (!posix->ctime)
        return;
    HOLD(&node->mutex);
    if (node->mdata_state != MDATA_PRESENT)
        return;
    iatt->ctime = node->mdata.ctime;
    iatt->mtime = node->mdata.mtime;
    iatt->atime = node->mdata.atime;
}

/* --- storing ---------------------------------------------------------------------------------- */
static struct node *dirty_take(struct posix *posix)
{
    HOLD(&posix->mutex);
    struct node *node = TAILQ_FIRST(&posix->dirty);
    if (node) {
        TAILQ_REMOVE(&posix->dirty, node, dirty_link);
        node->is_listed = false;
    }
    return node;
}

static void store_one(struct posix *posix, struct node *node)
{
    uint8_t bytes[MDATA_BYTES];
    LOCATED located = {};

    {
        HOLD(&node->mutex);
        if (!node->is_dirty)
            return;
        node->is_dirty = false; /* before reading the times: a later touch lists it again */
        mdata_encode(&node->mdata, bytes);
    }
    if (locate(posix, node->inode, &located) < 0)
        return; /* deleted meanwhile */
    int ret = object_setxattr(&located.object, XATTR_MDATA, bytes, sizeof(bytes), 0);
    if (ret < 0 && ret != -ENOENT) {
        char text[UUID_TEXT_SIZE];
        log_warn(posix->xl, ret, "cannot store times of gfid %s: a restart will show older ones",
                 gfid_format(&node->inode->gfid, text));
    }
}

void mdata_store_all(struct posix *posix)
{
    struct node *node;
    while ((node = dirty_take(posix))) {
        store_one(posix, node);
        inode_unref(node->inode); /* may free node */
    }
}

void mdata_store(struct posix *posix, struct node *node)
{
    store_one(posix, node); /* stays listed: the flusher finds nothing to do */
}

bool mdata_is_dirty(struct node *node)
{
    return __atomic_load_n(&node->is_dirty, __ATOMIC_ACQUIRE);
}

static void store_all_hop(void *arg)
{
    mdata_store_all(arg);
}

/* Lives while something is dirty: the times of a busy file cost one write a second. */
static void flusher(void *arg)
{
    struct posix *posix = arg;
    uint64_t due_ns = env_now_ns() + MDATA_DELAY_NS;

    for (;;) {
        {
            HOLD(&posix->mutex);
            while (!posix->stopping &&
                   fcond_wait_until(&posix->wake, &posix->mutex, "times to store", due_ns) == 0)
                ;
        }
        hop(pool_default(), store_all_hop, posix);
        due_ns = env_now_ns() + MDATA_DELAY_NS;
        HOLD(&posix->mutex);
        if (TAILQ_EMPTY(&posix->dirty) || posix->stopping) {
            posix->flusher_runs = false;
            posix->fibers--;
            fcond_wake_all(&posix->wake);
            return;
        }
    }
}

/* Lists a node; it was marked dirty, and was not, by the caller. */
static void dirty_list(struct posix *posix, struct node *node)
{
    bool start;
    {
        HOLD(&posix->mutex);
        if (!node->is_listed) {
            inode_ref(node->inode);
            node->is_listed = true;
            TAILQ_INSERT_TAIL(&posix->dirty, node, dirty_link);
        }
        start = !posix->flusher_runs && !posix->stopping;
        if (start) {
            posix->flusher_runs = true;
            posix->fibers++;
        }
    }
    if (!start)
        return;
    struct lane *lane = lane_self() ? lane_self() : lane_get(0);
    if (fiber_start_on(lane, "posix-times", flusher, posix) == 0)
        return;
    HOLD(&posix->mutex); /* no stack: the next touch tries again */
    posix->flusher_runs = false;
    posix->fibers--;
}

/* --- changing --------------------------------------------------------------------------------- */
enum { TIMES_OWN = TIMES_CTIME | TIMES_MTIME | TIMES_ATIME };

/* Which of an object's times this call changes, and to what. A client without the utime translator
 * says nothing: then what the operation usually changes, by our clock, where times are stored at
 * all. Internal callers that say nothing change nothing. */
struct stamp {
    uint32_t times;
    bool may_create;
    struct iatt_time now;
};

static struct stamp stamp_of(const struct call *call, const struct dict *xdata, uint32_t said,
                             uint32_t usual)
{
    if (said || call->times || call->ctime_sec || call->pid < 0 || posix_is_internal(xdata))
        return (struct stamp){
            .times = said,
            .may_create = true,
            .now = { (int64_t)call->ctime_sec, call->ctime_nsec },
        };
    struct timespec wall = env_wallclock();
    return (struct stamp){ .times = usual, .now = { wall.tv_sec, (uint32_t)wall.tv_nsec } };
}

static bool stamp_locked(struct node *node, const struct stamp *stamp)
{
    struct mdata was = node->mdata;

    if (node->mdata_state == MDATA_UNKNOWN ||
        (node->mdata_state == MDATA_ABSENT && !stamp->may_create))
        return false;
    if (node->mdata_state == MDATA_ABSENT) {
        node->mdata = (struct mdata){ stamp->now, stamp->now, stamp->now };
        node->mdata_state = MDATA_PRESENT;
        return true;
    }
    if (stamp->times & TIMES_CTIME)
        raise_to(&node->mdata.ctime, stamp->now);
    if (stamp->times & TIMES_MTIME)
        raise_to(&node->mdata.mtime, stamp->now);
    if (stamp->times & TIMES_ATIME)
        raise_to(&node->mdata.atime, stamp->now);
    return memcmp(&was, &node->mdata, sizeof(was)) != 0;
}

static void node_stamp(struct posix *posix, struct node *node, const struct stamp *stamp)
{
    bool list;

    if (!posix->ctime || stamp->times == 0)
        return;
    {
        HOLD(&node->mutex);
        list = stamp_locked(node, stamp) && !node->is_dirty;
        if (list)
            __atomic_store_n(&node->is_dirty, true, __ATOMIC_RELEASE);
    }
    if (list)
        dirty_list(posix, node);
}

void mdata_touch(struct posix *posix, struct node *node, const struct call *call,
                 const struct dict *xdata, uint32_t times)
{
    struct stamp stamp = stamp_of(call, xdata, call->times & TIMES_OWN, times);
    node_stamp(posix, node, &stamp);
}

void mdata_touch_parent(struct posix *posix, struct node *node, const struct call *call,
                        const struct dict *xdata)
{
    uint32_t said = (call->times / TIMES_PARENT_CTIME) & TIMES_OWN;
    struct stamp stamp = stamp_of(call, xdata, said, TIMES_CTIME | TIMES_MTIME);
    node_stamp(posix, node, &stamp);
}
static_assert(TIMES_PARENT_CTIME / TIMES_CTIME == TIMES_PARENT_MTIME / TIMES_MTIME &&
              TIMES_PARENT_CTIME / TIMES_CTIME == TIMES_PARENT_ATIME / TIMES_ATIME,
              "a parent's bits are its own, shifted");

void mdata_set(struct posix *posix, struct node *node, const struct call *call,
               const struct iatt *stat, int32_t valid)
{
    struct timespec wall = env_wallclock();
    struct iatt_time now = { (int64_t)call->ctime_sec, call->ctime_nsec };
    bool list;

    if (!posix->ctime)
        return;
    if (call->ctime_sec == 0)
        now = (struct iatt_time){ wall.tv_sec, (uint32_t)wall.tv_nsec };
    {
        HOLD(&node->mutex);
        if (node->mdata_state != MDATA_PRESENT)
            return;
        if (valid & VALID_ATIME)
            node->mdata.atime = stat->atime;
        if (valid & VALID_MTIME)
            node->mdata.mtime = stat->mtime;
        raise_to(&node->mdata.ctime, now);
        list = !node->is_dirty;
        __atomic_store_n(&node->is_dirty, true, __ATOMIC_RELEASE);
    }
    if (list)
        dirty_list(posix, node);
}

bool mdata_fresh(struct posix *posix, const struct call *call, const struct dict *xdata,
                 struct mdata *ret_mdata)
{
    (void)xdata;
    if (!posix->ctime || !(call->times & TIMES_OWN))
        return false;
    struct iatt_time now = { (int64_t)call->ctime_sec, call->ctime_nsec };
    *ret_mdata = (struct mdata){ now, now, now };
    return true;
}

void mdata_born(struct node *node, const struct mdata *mdata)
{
    HOLD(&node->mutex);
    __atomic_store_n(&node->is_dirty, false, __ATOMIC_RELEASE);
    if (mdata)
        node->mdata = *mdata;
    __atomic_store_n(&node->mdata_state, mdata ? MDATA_PRESENT : MDATA_ABSENT, __ATOMIC_RELEASE);
}

void mdata_merge(struct posix *posix, struct node *node, const struct mdata *mdata, bool fresh_only)
{
    bool list;

    if (!posix->ctime)
        return;
    {
        HOLD(&node->mutex);
        if (node->mdata_state == MDATA_PRESENT && fresh_only)
            return;
        if (node->mdata_state == MDATA_PRESENT) {
            raise_to(&node->mdata.ctime, mdata->ctime);
            raise_to(&node->mdata.mtime, mdata->mtime);
            raise_to(&node->mdata.atime, mdata->atime);
        } else {
            node->mdata = *mdata;
            __atomic_store_n(&node->mdata_state, MDATA_PRESENT, __ATOMIC_RELEASE);
        }
        list = !node->is_dirty;
        __atomic_store_n(&node->is_dirty, true, __ATOMIC_RELEASE);
    }
    if (list)
        dirty_list(posix, node);
}

bool mdata_value(struct posix *posix, struct node *node, uint8_t bytes[MDATA_BYTES])
{
    if (!posix->ctime)
        return false;
    HOLD(&node->mutex);
    if (node->mdata_state != MDATA_PRESENT)
        return false;
    mdata_encode(&node->mdata, bytes);
    return true;
}
