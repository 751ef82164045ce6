/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/storage/posix/node.h"

#include <stdlib.h>

struct desc *desc_new(int fd)
{
    struct desc *desc = malloc(sizeof(*desc));
    if (!desc) {
        env_close(fd);
        return NULL;
    }
    *desc = (struct desc){ .fd = fd, .refs = 1 };
    return desc;
}

struct desc *desc_ref(struct desc *desc)
{
    if (desc)
        desc->refs++;
    return desc;
}

void desc_unref(struct desc *desc)
{
    if (!desc || --desc->refs > 0)
        return;
    env_close(desc->fd);
    free(desc);
}

void node_free(struct node *node)
{
    if (!node)
        return;
    for (int i = 0; i < NODE_DESCS; i++)
        desc_unref(node->desc[i]);
    fmutex_fini(&node->append);
    pthread_mutex_destroy(&node->mutex);
    free(node);
}

struct node *node_find(struct posix *posix, struct inode *inode)
{
    return slot_get(&inode->slots, posix->xl);
}

struct node *node_get(struct posix *posix, struct inode *inode)
{
    struct node *node = node_find(posix, inode);
    if (node)
        return node;

    node = calloc(1, sizeof(*node));
    if (!node)
        return NULL;
    node->inode = inode;
    pthread_mutex_init(&node->mutex, NULL);
    fmutex_init(&node->append);
    struct node *stored = slot_add(&inode->slots, posix->xl, node);
    if (stored != node)
        node_free(node); /* another was faster, or there is no memory */
    return stored;
}

/* Second chance: what was used since its last turn goes to the end once more. */
static struct node *evict_locked(struct posix *posix)
{
    struct node *node;
    while ((node = TAILQ_FIRST(&posix->kept))) {
        TAILQ_REMOVE(&posix->kept, node, kept_link);
        if (!node->is_recent)
            break;
        node->is_recent = false;
        TAILQ_INSERT_TAIL(&posix->kept, node, kept_link);
    }
    if (node) {
        node->is_kept = false;
        posix->kept_count--;
    }
    return node;
}

static void node_take_descs(struct node *node, struct desc *taken[NODE_DESCS])
{
    HOLD(&node->mutex);
    for (int i = 0; i < NODE_DESCS; i++)
        taken[i] = TAKE(node->desc[i]);
}

/* Lets a node that was taken off the list go, with the reference that the list had. */
static void node_let_go(struct node *node)
{
    struct desc *taken[NODE_DESCS];
    node_take_descs(node, taken);
    inode_unref(node->inode); /* may free the node */
    for (int i = 0; i < NODE_DESCS; i++)
        desc_unref(taken[i]);
}

void node_keep(struct posix *posix, struct node *node)
{
    struct node *evicted = NULL;

    node->is_recent = true;
    if (__atomic_load_n(&node->is_kept, __ATOMIC_RELAXED))
        return;
    {
        HOLD(&posix->mutex);
        if (node->is_kept || posix->stopping)
            return;
        inode_ref(node->inode);
        __atomic_store_n(&node->is_kept, true, __ATOMIC_RELAXED);
        TAILQ_INSERT_TAIL(&posix->kept, node, kept_link);
        if (++posix->kept_count > posix->kept_max)
            evicted = evict_locked(posix);
    }
    if (evicted)
        node_let_go(evicted);
}

void nodes_drop(struct posix *posix)
{
    for (;;) {
        struct node *node;
        {
            HOLD(&posix->mutex);
            node = TAILQ_FIRST(&posix->kept);
            if (node) {
                TAILQ_REMOVE(&posix->kept, node, kept_link);
                node->is_kept = false;
                posix->kept_count--;
            }
        }
        if (!node)
            return;
        node_let_go(node);
    }
}

struct desc *node_desc(struct node *node, enum node_desc which)
{
    HOLD(&node->mutex);
    return desc_ref(node->desc[which]);
}

struct desc *node_set_desc(struct posix *posix, struct node *node, enum node_desc which, int fd)
{
    struct desc *desc = desc_new(fd), *spare = NULL;
    if (!desc)
        return NULL;
    {
        HOLD(&node->mutex);
        if (node->desc[which]) {
            spare = desc;
            desc = node->desc[which];
        } else {
            node->desc[which] = desc;
        }
        desc_ref(desc);
    }
    desc_unref(spare);
    node_keep(posix, node);
    return desc;
}

void node_changed(struct node *node)
{
    HOLD(&node->mutex);
    node->last_valid = false;
}

void node_reset(struct posix *posix, struct node *node)
{
    struct desc *taken[NODE_DESCS];

    (void)posix;
    node_take_descs(node, taken);
    {
        HOLD(&node->mutex);
        if (!node->is_dirty)
            node->mdata_state = MDATA_UNKNOWN;
        node->last_valid = false;
    }
    node->has_handle = false;
    for (int i = 0; i < NODE_DESCS; i++)
        desc_unref(taken[i]);
}
