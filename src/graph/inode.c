/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "graph/inode.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/client.h"
#include "graph/xlator.h"

/* --- slots ----------------------------------------------------------------------------------- */
static void slots_init(struct slots *slots)
{
    *slots = (struct slots){};
    pthread_mutex_init(&slots->mutex, NULL);
}

static void slots_fini(struct slots *slots)
{
    free(slots->list);
    pthread_mutex_destroy(&slots->mutex);
}

static struct slot *slot_find_locked(struct slots *slots, const struct xlator *xl)
{
    for (uint32_t i = 0; i < slots->count; i++)
        if (slots->list[i].xl == xl)
            return &slots->list[i];
    return NULL;
}

void *slot_get(struct slots *slots, const struct xlator *xl)
{
    if (__atomic_load_n(&slots->count, __ATOMIC_ACQUIRE) == 0)
        return NULL;
    HOLD(&slots->mutex);
    struct slot *slot = slot_find_locked(slots, xl);
    return slot ? slot->state : NULL;
}

void *slot_add(struct slots *slots, const struct xlator *xl, void *state)
{
    HOLD(&slots->mutex);
    struct slot *slot = slot_find_locked(slots, xl);
    if (slot)
        return slot->state;
    if (slots->count == slots->room) {
        uint32_t room = slots->room ? slots->room * 2 : 2;
        struct slot *list = realloc(slots->list, room * sizeof(*list));
        if (!list)
            return NULL;
        slots->list = list;
        slots->room = room;
    }
    slots->list[slots->count] = (struct slot){ .xl = xl, .state = state };
    __atomic_store_n(&slots->count, slots->count + 1, __ATOMIC_RELEASE);
    return state;
}

void *slot_take(struct slots *slots, const struct xlator *xl)
{
    HOLD(&slots->mutex);
    struct slot *slot = slot_find_locked(slots, xl);
    if (!slot)
        return NULL;
    void *state = slot->state;
    *slot = slots->list[slots->count - 1];
    __atomic_store_n(&slots->count, slots->count - 1, __ATOMIC_RELEASE);
    return state;
}

/* --- inode table --------------------------------------------------------------------------------
 *
 *   table -> shard[gfid's last byte] -> bucket[hash] -> inode -> inode
 *
 * A shard's mutex covers its chains and the fall of a reference count to zero, so that inode_find
 * never revives an inode that is being freed. Chains grow with the shard (doubled at load 2). */
enum { SHARDS = 64, BUCKETS_FIRST = 16 };

struct shard {
    pthread_mutex_t mutex;
    struct inode **buckets;
    uint32_t bucket_count, inodes;
} __attribute__((aligned(64)));

struct inode_table {
    struct shard shards[SHARDS];
};

static uint64_t gfid_hash(const gfid_t *gfid)
{
    uint64_t half[2];
    memcpy(half, gfid, sizeof(half));
    uint64_t hash = (half[0] ^ half[1]) * 0x9e3779b97f4a7c15ull; /* gfids are random already */
    return hash ^ (hash >> 29);
}

static struct shard *shard_of(struct inode_table *table, uint64_t hash)
{
    return &table->shards[hash % SHARDS];
}

static struct inode **bucket_of(struct shard *shard, uint64_t hash)
{
    return &shard->buckets[(hash / SHARDS) & (shard->bucket_count - 1)];
}

int inode_table_new(struct inode_table **ret_table)
{
    struct inode_table *table = aligned_alloc(64, sizeof(*table));
    if (!table)
        return -ENOMEM;
    memset(table, 0, sizeof(*table));
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&table->shards[i].mutex, NULL);
    *ret_table = table;
    return 0;
}

void inode_table_free(struct inode_table *table)
{
    if (!table)
        return;
    for (int i = 0; i < SHARDS; i++) {
        assert(table->shards[i].inodes == 0);
        free(table->shards[i].buckets);
        pthread_mutex_destroy(&table->shards[i].mutex);
    }
    free(table);
}

static int shard_grow_locked(struct shard *shard)
{
    uint32_t count = shard->bucket_count ? shard->bucket_count * 2 : BUCKETS_FIRST;
    struct inode **buckets = calloc(count, sizeof(*buckets));
    struct inode **old = shard->buckets;
    uint32_t old_count = shard->bucket_count;

    if (!buckets)
        return old ? 0 : -ENOMEM; /* longer chains still work */
    shard->buckets = buckets;
    shard->bucket_count = count;
    for (uint32_t i = 0; i < old_count; i++) {
        for (struct inode *inode = old[i], *next; inode; inode = next) {
            next = inode->next;
            struct inode **bucket = bucket_of(shard, gfid_hash(&inode->gfid));
            inode->next = *bucket;
            *bucket = inode;
        }
    }
    free(old);
    return 0;
}

static struct inode *find_locked(struct shard *shard, uint64_t hash, const gfid_t *gfid)
{
    if (!shard->buckets)
        return NULL;
    for (struct inode *inode = *bucket_of(shard, hash); inode; inode = inode->next)
        if (gfid_equal(&inode->gfid, gfid))
            return inode;
    return NULL;
}

static struct inode *inode_new_locked(struct inode_table *table, struct shard *shard, uint64_t hash,
                                      const gfid_t *gfid)
{
    if (shard->inodes >= 2 * shard->bucket_count && shard_grow_locked(shard) < 0)
        return NULL;
    struct inode *inode = calloc(1, sizeof(*inode));
    if (!inode)
        return NULL;
    inode->gfid = *gfid;
    inode->table = table;
    inode->refs = 1;
    inode->type = gfid_is_root(gfid) ? S_IFDIR : 0;
    slots_init(&inode->slots);
    struct inode **bucket = bucket_of(shard, hash);
    inode->next = *bucket;
    *bucket = inode;
    shard->inodes++;
    return inode;
}

struct inode *inode_get(struct inode_table *table, const gfid_t *gfid)
{
    uint64_t hash = gfid_hash(gfid);
    struct shard *shard = shard_of(table, hash);

    HOLD(&shard->mutex);
    struct inode *inode = find_locked(shard, hash, gfid);
    if (inode)
        inode->refs++;
    else
        inode = inode_new_locked(table, shard, hash, gfid);
    return inode;
}

struct inode *inode_find(struct inode_table *table, const gfid_t *gfid)
{
    uint64_t hash = gfid_hash(gfid);
    struct shard *shard = shard_of(table, hash);

    HOLD(&shard->mutex);
    struct inode *inode = find_locked(shard, hash, gfid);
    if (inode)
        inode->refs++;
    return inode;
}

struct inode *inode_ref(struct inode *inode)
{
    uint32_t before = inode->refs++;
    assert(before > 0);
    return inode;
}

static void unlink_locked(struct shard *shard, uint64_t hash, struct inode *inode)
{
    struct inode **at = bucket_of(shard, hash);
    while (*at != inode)
        at = &(*at)->next;
    *at = inode->next;
    shard->inodes--;
}

static void inode_free(struct inode *inode)
{
    for (uint32_t i = 0; i < inode->slots.count; i++) {
        struct slot *slot = &inode->slots.list[i];
        if (slot->xl->type->forget)
            slot->xl->type->forget((struct xlator *)slot->xl, inode, slot->state);
    }
    slots_fini(&inode->slots);
    free(inode);
}

void inode_unref(struct inode *inode)
{
    if (!inode)
        return;
    uint32_t refs = inode->refs;
    while (refs > 1) /* not the last: no lock needed */
        if (atomic_compare_exchange_weak(&inode->refs, &refs, refs - 1))
            return;

    uint64_t hash = gfid_hash(&inode->gfid);
    struct shard *shard = shard_of(inode->table, hash);
    bool last;
    {
        HOLD(&shard->mutex);
        last = --inode->refs == 0; /* somebody may have found it meanwhile */
        if (last)
            unlink_locked(shard, hash, inode);
    }
    if (last)
        inode_free(inode);
}

uint64_t inode_table_count(struct inode_table *table)
{
    uint64_t count = 0;
    for (int i = 0; i < SHARDS; i++) {
        HOLD(&table->shards[i].mutex);
        count += table->shards[i].inodes;
    }
    return count;
}

static struct inode **shard_snapshot(struct shard *shard, uint32_t *ret_count)
{
    HOLD(&shard->mutex);
    struct inode **list = calloc(shard->inodes ? shard->inodes : 1, sizeof(*list));
    uint32_t count = 0;
    for (uint32_t b = 0; list && b < shard->bucket_count; b++) {
        for (struct inode *inode = shard->buckets[b]; inode; inode = inode->next) {
            inode->refs++;
            list[count++] = inode;
        }
    }
    *ret_count = count;
    return list;
}

void inode_table_each(struct inode_table *table, void (*fn)(struct inode *inode, void *arg),
                      void *arg)
{
    for (int i = 0; i < SHARDS; i++) {
        uint32_t count;
        AUTO_FREE struct inode **list = shard_snapshot(&table->shards[i], &count);
        for (uint32_t n = 0; n < count; n++) {
            fn(list[n], arg);
            inode_unref(list[n]);
        }
    }
}

const gfid_t *inode_gfid(const struct inode *inode)
{
    return &inode->gfid;
}

/* --- open files ------------------------------------------------------------------------------ */
struct fd *fd_new(struct inode *inode, uint32_t flags, int32_t pid)
{
    struct fd *fd = calloc(1, sizeof(*fd));
    if (!fd)
        return NULL;
    fd->inode = inode ? inode_ref(inode) : NULL;
    fd->refs = 1;
    fd->flags = flags;
    fd->pid = pid;
    slots_init(&fd->slots);
    return fd;
}

struct fd *fd_anonymous(struct inode *inode)
{
    struct fd *fd = fd_new(inode, 2 /* O_RDWR */, 0);
    if (fd)
        fd->anonymous = true;
    return fd;
}

void fd_bind(struct fd *fd, struct inode *inode)
{
    struct inode *none = NULL;
    struct inode *ref = inode_ref(inode);
    if (!atomic_compare_exchange_strong(&fd->inode, &none, ref))
        inode_unref(ref);
}

struct fd *fd_ref(struct fd *fd)
{
    uint32_t before = fd->refs++;
    assert(before > 0);
    return fd;
}

void fd_unref(struct fd *fd)
{
    if (!fd || --fd->refs > 0)
        return;
    for (uint32_t i = 0; i < fd->slots.count; i++) {
        struct slot *slot = &fd->slots.list[i];
        if (slot->xl->type->release)
            slot->xl->type->release((struct xlator *)slot->xl, fd, slot->state);
    }
    slots_fini(&fd->slots);
    inode_unref(fd->inode);
    free(fd);
}

const gfid_t *fd_gfid(const struct fd *fd)
{
    return fd->inode ? &fd->inode->gfid : &gfid_null;
}

/* --- clients --------------------------------------------------------------------------------- */
struct client *client_new(const char *uid, const char *address)
{
    struct client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->uid = strdup(uid);
    if (!client->uid) {
        free(client);
        return NULL;
    }
    client->refs = 1;
    strncpy(client->address, address, sizeof(client->address) - 1);
    slots_init(&client->slots);
    return client;
}

struct client *client_ref(struct client *client)
{
    client->refs++;
    return client;
}

void client_unref(struct client *client)
{
    if (!client || --client->refs > 0)
        return;
    for (uint32_t i = 0; i < client->slots.count; i++) {
        struct slot *slot = &client->slots.list[i];
        if (slot->xl->type->client_free)
            slot->xl->type->client_free((struct xlator *)slot->xl, client, slot->state);
    }
    slots_fini(&client->slots);
    free(client->uid);
    free(client);
}
