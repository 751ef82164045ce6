/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xlators/features/locks/locks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct held *held_new(enum held_kind kind, const struct call *call)
{
    struct held *held = calloc(1, sizeof(*held));
    if (!held)
        return NULL;
    held->kind = kind;
    held->owner = call->owner;
    held->pid = (uint32_t)call->pid;
    held->caller_pid = call->pid;
    return held;
}

void held_free(struct held *held)
{
    if (!held)
        return;
    held_free(held->spare[0]);
    held_free(held->spare[1]);
    held_free(held->copy);
    free(held->name);
    free(held);
}

/* --- state of inodes and clients -------------------------------------------------------------- */
struct locks_inode *locks_inode_of(struct xlator *xl, struct inode *inode)
{
    struct locks_inode *li = slot_get(&inode->slots, xl);
    if (li)
        return li;
    li = calloc(1, sizeof(*li));
    if (!li)
        return NULL;
    li->inode = inode;
    TAILQ_INIT(&li->granted);
    TAILQ_INIT(&li->waiting);
    struct locks_inode *kept = slot_add(&inode->slots, xl, li);
    if (kept != li)
        free(li);
    return kept;
}

void locks_client_init(struct locks_client *lc, const char *uid)
{
    lc->uid = uid;
    TAILQ_INIT(&lc->all);
    TAILQ_INIT(&lc->waiting);
}

struct locks_client *locks_client_of(struct xlator *xl, struct client *client)
{
    struct locks *locks = xl->state;
    if (!client)
        return &locks->internal;
    struct locks_client *lc = slot_get(&client->slots, xl);
    if (lc)
        return lc;
    lc = calloc(1, sizeof(*lc));
    if (!lc)
        return NULL;
    locks_client_init(lc, client->uid);
    struct locks_client *kept = slot_add(&client->slots, xl, lc);
    if (kept != lc)
        free(lc);
    return kept;
}

static bool domain_is_used(const struct held_list *list, const struct domain *domain)
{
    const struct held *held;
    TAILQ_FOREACH (held, list, in_inode)
        if (held->domain == domain->name)
            return true;
    return false;
}

static void domains_sweep_locked(struct locks_inode *li)
{
    for (struct domain **at = &li->domains; *at;) {
        struct domain *domain = *at;
        if (domain_is_used(&li->granted, domain) || domain_is_used(&li->waiting, domain)) {
            at = &domain->next;
            continue;
        }
        *at = domain->next;
        li->domain_count--;
        free(domain);
    }
}

const char *domain_intern_locked(struct locks_inode *li, const char *name)
{
    for (struct domain *domain = li->domains; domain; domain = domain->next)
        if (strcmp(domain->name, name) == 0)
            return domain->name;
    size_t bytes = strlen(name) + 1;
    if (li->domain_count >= DOMAINS_PER_INODE_MAX)
        domains_sweep_locked(li);
    if (li->domain_count >= DOMAINS_PER_INODE_MAX || bytes > DOMAIN_BYTES_MAX)
        return NULL;
    struct domain *domain = malloc(sizeof(*domain) + bytes);
    if (!domain)
        return NULL;
    memcpy(domain->name, name, bytes);
    domain->next = li->domains;
    li->domains = domain;
    li->domain_count++;
    return domain->name;
}

/* --- who stands in whose way ----------------------------------------------------------------- */
static bool same_owner(const struct held *a, const struct held *b)
{
    return a->client == b->client && lkowner_equal(&a->owner, &b->owner);
}

static bool overlap(const struct held *a, const struct held *b)
{
    if (a->kind == HELD_ENTRYLK)
        return !a->name || !b->name || strcmp(a->name, b->name) == 0;
    return a->start <= b->end && b->start <= a->end;
}

/* Names are locked by one owner only, whatever type he asks for: as the genuine brick does. */
static bool conflict(const struct held *a, const struct held *b)
{
    bool excludes = a->type == RANGE_WRITE || b->type == RANGE_WRITE || a->kind == HELD_ENTRYLK;
    return a->kind == b->kind && a->domain == b->domain && !same_owner(a, b) && overlap(a, b) &&
           excludes;
}

struct held *held_conflict_locked(const struct locks_inode *li, const struct held *want)
{
    struct held *held;
    TAILQ_FOREACH (held, &li->granted, in_inode)
        if (conflict(held, want))
            return held;
    return NULL;
}

/* --- deadlock: would `want` (not yet queued) close a ring of waiting posix owners? ------------ */
enum { SEARCH_STEPS_MAX = 1000000 }; /* a ring that hides behind more is waited out */

struct search { /* breadth first; every waiter is looked at once */
    const struct held *want;
    uint64_t number;
    struct held_list todo;
    uint32_t steps;
};

/* Whether the owner of blocker is who wants; else what he waits for himself is to be looked at. */
static bool visit(struct search *search, const struct held *blocker)
{
    struct held *other;

    if (same_owner(search->want, blocker))
        return true;
    TAILQ_FOREACH (other, &blocker->client->waiting, in_waiting) {
        search->steps++;
        if (other->kind != HELD_POSIX || other->search == search->number ||
            !same_owner(other, blocker))
            continue;
        other->search = search->number;
        TAILQ_INSERT_TAIL(&search->todo, other, in_search);
    }
    return false;
}

static bool ring_closes(struct search *search, const struct locks_inode *li,
                        const struct held *waiting)
{
    struct held *held;
    TAILQ_FOREACH (held, &li->granted, in_inode) {
        if (++search->steps > SEARCH_STEPS_MAX)
            return false;
        if (conflict(held, waiting) && visit(search, held))
            return true;
    }
    return false;
}

static bool deadlocks_locked(struct locks *locks, const struct locks_inode *li,
                             const struct held *want)
{
    struct search search = { .want = want, .number = ++locks->searches };
    struct held *waiting;

    if (want->kind != HELD_POSIX)
        return false;
    TAILQ_INIT(&search.todo);
    if (ring_closes(&search, li, want))
        return true;
    while ((waiting = TAILQ_FIRST(&search.todo)) != NULL) {
        TAILQ_REMOVE(&search.todo, waiting, in_search);
        if (ring_closes(&search, waiting->inode, waiting))
            return true;
    }
    return false;
}

/* --- lists: every record on one holds a reference to its inode -------------------------------- */
static void enter_locked(struct held *held, struct held_list *list)
{
    TAILQ_INSERT_TAIL(list, held, in_inode);
    TAILQ_INSERT_TAIL(&held->client->all, held, in_client);
    if (held->waiter)
        TAILQ_INSERT_TAIL(&held->client->waiting, held, in_waiting);
    held->client->count++;
    inode_ref(held->inode->inode);
}

/* The caller keeps the inode alive by a reference of its own. */
static void leave_locked(struct held *held, struct held_list *list)
{
    TAILQ_REMOVE(list, held, in_inode);
    TAILQ_REMOVE(&held->client->all, held, in_client);
    if (held->waiter)
        TAILQ_REMOVE(&held->client->waiting, held, in_waiting);
    held->client->count--;
    inode_unref(held->inode->inode);
}

void held_grant_locked(struct held *held)
{
    enter_locked(held, &held->inode->granted);
}

void held_drop_locked(struct held *held)
{
    leave_locked(held, &held->inode->granted);
    held_free(held);
}

/* A waiter leaves the queue with its answer; its fiber frees it. */
void held_decide_locked(struct held *want, int result)
{
    struct fiber *waiter = want->waiter;
    leave_locked(want, &want->inode->waiting);
    want->decided = true;
    want->result = result;
    fiber_wake(waiter);
}

/* --- granting -------------------------------------------------------------------------------- */
static void take_granted_locked(struct locks_inode *li, struct held *want)
{
    if (want->kind == HELD_POSIX || want->kind == HELD_FLOCK)
        posix_apply_locked(li, want);
    else
        held_grant_locked(want);
}

/* The lock is entered here, not by the woken fiber: nobody may slip in between. The record that the
 * fiber looks at stays its own; a prepared copy becomes the lock. */
static void grant_waiter_locked(struct locks_inode *li, struct held *want)
{
    struct held *lock = want->copy;

    want->copy = NULL;
    lock->client = want->client;
    lock->inode = li;
    lock->type = want->type;
    lock->start = want->start;
    lock->end = want->end;
    lock->pid = want->pid;
    lock->fd = want->fd;
    lock->domain = want->domain;
    lock->name = TAKE(want->name);
    held_decide_locked(want, 0);
    take_granted_locked(li, lock);
}

/* A lock of fcntl that is granted may replace a stronger one of its owner: then those who came
 * before it are looked at again. */
void locks_grant_locked(struct xlator *xl, struct locks_inode *li)
{
    struct locks *locks = xl->state;
    struct held *want = TAILQ_FIRST(&li->waiting), *next;

    for (; want; want = next) {
        next = TAILQ_NEXT(want, in_inode);
        if (held_conflict_locked(li, want))
            continue;
        count_add(&locks->granted, 1);
        if (want->kind == HELD_POSIX || want->kind == HELD_FLOCK)
            next = want == TAILQ_FIRST(&li->waiting) ? next : TAILQ_FIRST(&li->waiting);
        grant_waiter_locked(li, want);
    }
}

/* --- waiting --------------------------------------------------------------------------------- */
struct cancel_arg {
    struct xlator *xl;
    struct held *want;
};

static void cancel_wait(void *arg)
{
    struct cancel_arg *cancel = arg;
    struct locks *locks = cancel->xl->state;

    HOLD(&locks->mutex);
    if (!cancel->want->decided)
        held_decide_locked(cancel->want, -EINTR);
}

static bool wait_is_over(struct locks *locks, struct held *want, int *ret_result)
{
    HOLD(&locks->mutex);
    *ret_result = want->result;
    return want->decided;
}

static int wait_for(struct xlator *xl, struct call *call, struct held *want)
{
    struct locks *locks = xl->state;
    struct cancel_arg arg = { xl, want };
    int result;

    if (call_cancel_arm(call->cancel, cancel_wait, &arg) < 0)
        cancel_wait(&arg);
    fiber_park("lock"); /* woken exactly once, by who decides */
    (void)call_cancel_disarm(call->cancel); /* the answer stands: granted beats interrupted */
    bool over = wait_is_over(locks, want, &result);
    assert(over);
    held_free(want);
    return result;
}

/* --- taking ---------------------------------------------------------------------------------- */
/* Everything that a grant may need is allocated first, so that it cannot fail half-way. */
static int prepare(struct held *want, const struct call *call, bool block)
{
    want->spare[0] = held_new(want->kind, call);
    want->spare[1] = held_new(want->kind, call);
    if (!want->spare[0] || !want->spare[1])
        return -ENOMEM;
    if (!block)
        return 0;
    want->copy = held_new(want->kind, call);
    return want->copy ? prepare(want->copy, call, false) : -ENOMEM;
}

/* 0: granted (want is consumed), 1: queued (the caller waits), or -errno (want is the caller's). */
static int take_locked(struct xlator *xl, struct locks_inode *li, struct held *want, bool block)
{
    struct locks *locks = xl->state;

    if (want->client->gone)
        return -ENOTCONN;
    if (want->client->count + 3 > LOCKS_PER_CLIENT_MAX)
        return -ENOLCK;
    if (!held_conflict_locked(li, want)) {
        count_add(&locks->granted, 1);
        take_granted_locked(li, want);
        locks_grant_locked(xl, li); /* a lock turned from write to read lets others in */
        return 0;
    }
    if (!block) {
        count_add(&locks->refused, 1);
        return -EAGAIN;
    }
    if (deadlocks_locked(locks, li, want))
        return -EDEADLK;
    count_add(&locks->blocked, 1);
    want->waiter = fiber_self();
    enter_locked(want, &li->waiting);
    return 1;
}

int held_take(struct xlator *xl, struct call *call, struct inode *inode, struct held *want,
              const char *domain, bool block)
{
    struct locks *locks = xl->state;
    int ret = prepare(want, call, block);

    want->inode = locks_inode_of(xl, inode);
    want->client = locks_client_of(xl, call->client);
    if (ret == 0 && (!want->inode || !want->client))
        ret = -ENOMEM;
    if (ret == 0) {
        HOLD(&locks->mutex);
        if (domain && !(want->domain = domain_intern_locked(want->inode, domain)))
            ret = -ENOLCK;
        if (ret == 0)
            ret = take_locked(xl, want->inode, want, block);
    }
    if (ret < 0)
        held_free(want);
    return ret <= 0 ? ret : wait_for(xl, call, want);
}
