/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/locks: the locks of a brick: fcntl/flock ranges (lk), and the ranges and names that
 * clustering translators lock (inodelk, entrylk) in domains of their own.
 * Promises: two owners never hold what conflicts. An owner is (client, lock owner of the call). A
 *           waiter is granted in the order of asking among those that can be, is answered -EINTR
 *           when its caller gives up and -ENOTCONN when its client is gone, whose locks go with it.
 *           Locks of fcntl end with flush by their owner and with the fd they were taken through.
 *           A ring of waiting fcntl owners is refused (-EDEADLK), unless it hides behind a million
 *           locks and waiters.
 * Keeps:    per inode the granted and the waiting, per client all of its own; nothing on disk.
 * Locks:    `mutex` over all of it; never held while parking. A call's cancel guard comes before
 *           it.
 *
 *   inode slot: granted -> held -> held        client slot: all -> held -> held -> held
 *               waiting -> held (fiber parked)
 */
#include "xlators/features/locks/locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum lk_cmd { LK_GET, LK_SET, LK_SET_WAIT, LK_GET_FD = 6 };
enum inodelk_cmd { INODELK_GET, INODELK_SET, INODELK_SET_WAIT };
enum entrylk_cmd { ENTRYLK_LOCK, ENTRYLK_UNLOCK, ENTRYLK_LOCK_NB };

/* --- ranges of the wire ---------------------------------------------------------------------- */
static int range_of(const struct lock *lock, struct held *held)
{
    if (lock->whence != SEEK_SET || lock->start > INT64_MAX || lock->len > INT64_MAX)
        return -EINVAL; /* the front doors resolve whence; fcntl has no negative ranges then */
    held->start = lock->start;
    held->end = lock->len ? lock->start + lock->len - 1 : UINT64_MAX;
    held->pid = lock->pid;
    return 0;
}

static void lock_of(const struct held *held, struct lock *lock)
{
    *lock = (struct lock){ .type = held->type, .start = held->start, .pid = held->pid,
                           .owner = held->owner };
    lock->len = held->end == UINT64_MAX ? 0 : held->end - held->start + 1;
}

/* --- fcntl and flock ------------------------------------------------------------------------- */
/* flock(2) and fcntl(2) locks do not see each other. The wire knows one kind only: our mounts say
 * in xdata that a lock is flock's, which a genuine brick passes over. */
#define FLOCK_KEY "mortar.flock"

static enum held_kind kind_of(const struct lk_args *in)
{
    return dict_get(in->xdata, FLOCK_KEY) ? HELD_FLOCK : HELD_POSIX;
}

static int get_lock(struct xlator *xl, struct inode *inode, struct held *want, struct lock *out)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = slot_get(&inode->slots, xl);

    HOLD(&locks->mutex);
    struct held *blocker = li ? held_conflict_locked(li, want) : NULL;
    lock_of(blocker ? blocker : want, out);
    if (!blocker)
        out->type = RANGE_UNLOCK;
    return 0;
}

static int unlock_range(struct xlator *xl, struct inode *inode, struct held *want,
                        const struct call *call)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = slot_get(&inode->slots, xl);

    if (!li) {
        held_free(want);
        return 0;
    }
    want->inode = li;
    want->spare[0] = held_new(want->kind, call);
    want->spare[1] = held_new(want->kind, call);
    if (!want->spare[0] || !want->spare[1]) {
        held_free(want);
        return -ENOLCK;
    }
    HOLD(&locks->mutex);
    if (want->client->count >= LOCKS_PER_CLIENT_MAX && posix_splits_locked(li, want)) {
        held_free(want);
        return -ENOLCK;
    }
    posix_apply_locked(li, want);
    locks_grant_locked(xl, li);
    return 0;
}

/* The fd's end takes its locks along: mark it once (release is called for marked fds). */
static int mark_fd(struct xlator *xl, struct fd *fd)
{
    return slot_add(&fd->slots, xl, fd) ? 0 : -ENOMEM;
}

static int locks_lk(struct xlator *xl, struct call *call, const struct lk_args *in,
                    struct lk_reply *out)
{
    struct held *want = held_new(kind_of(in), call);
    if (!want)
        return -ENOLCK;
    int ret = range_of(&in->lock, want);
    want->type = in->lock.type;
    want->fd = in->fd;
    want->client = locks_client_of(xl, call->client);
    if (ret == 0 && (want->type > RANGE_UNLOCK || in->cmd > LK_SET_WAIT))
        ret = -EINVAL;
    if (ret == 0 && !want->client)
        ret = -ENOLCK;
    if (ret < 0 || in->cmd == LK_GET) {
        if (ret == 0 && want->type == RANGE_UNLOCK)
            ret = -EINVAL; /* as fcntl(2) */
        if (ret == 0)
            ret = get_lock(xl, in->fd->inode, want, &out->lock);
        held_free(want);
        return ret;
    }
    out->lock = in->lock;
    out->lock.owner = call->owner;
    if (want->type == RANGE_UNLOCK)
        return unlock_range(xl, in->fd->inode, want, call);
    ret = mark_fd(xl, in->fd);
    if (ret < 0)
        held_free(want);
    else
        ret = held_take(xl, call, in->fd->inode, want, NULL, in->cmd == LK_SET_WAIT);
    if (ret < 0)
        out->lock = (struct lock){};
    return ret;
}

static bool is_ranges(const struct held *held)
{
    return held->kind == HELD_POSIX || held->kind == HELD_FLOCK;
}

/* Drops the fcntl and flock locks for which `is_it` holds. */
static void drop_posix(struct xlator *xl, struct inode *inode,
                       bool (*is_it)(const struct held *held, const void *arg), const void *arg)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = inode ? slot_get(&inode->slots, xl) : NULL;
    bool dropped = false;

    if (!li)
        return;
    HOLD(&locks->mutex);
    for (struct held *held = TAILQ_FIRST(&li->granted), *next; held; held = next) {
        next = TAILQ_NEXT(held, in_inode);
        if (is_ranges(held) && is_it(held, arg)) {
            held_drop_locked(held);
            dropped = true;
        }
    }
    if (dropped)
        locks_grant_locked(xl, li);
}

static bool is_callers(const struct held *held, const void *arg)
{
    const struct held *caller = arg;
    return held->client == caller->client && lkowner_equal(&held->owner, &caller->owner);
}

static int locks_flush(struct xlator *xl, struct call *call, const struct flush_args *in,
                       struct flush_reply *out)
{
    if (slot_get(&in->fd->inode->slots, xl)) {
        struct held caller = { .client = locks_client_of(xl, call->client), .owner = call->owner };
        drop_posix(xl, in->fd->inode, is_callers, &caller);
    }
    return fop_flush(first_child(xl), call, in, out);
}

static bool is_through_fd(const struct held *held, const void *arg)
{
    return held->fd == arg;
}

static void locks_release(struct xlator *xl, struct fd *fd, void *state)
{
    (void)state;
    drop_posix(xl, fd->inode, is_through_fd, fd);
}

/* --- inodelk --------------------------------------------------------------------------------- */
static int unlock_exact(struct xlator *xl, struct inode *inode, const struct held *want,
                        const char *domain)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = slot_get(&inode->slots, xl);
    struct held *held;

    if (!li)
        return -EINVAL;
    HOLD(&locks->mutex);
    TAILQ_FOREACH (held, &li->granted, in_inode) {
        bool names = (!held->name && !want->name) ||
                     (held->name && want->name && strcmp(held->name, want->name) == 0);
        if (held->kind == want->kind && is_callers(held, want) &&
            strcmp(held->domain, domain) == 0 && names && held->start == want->start &&
            held->end == want->end)
            break;
    }
    if (!held)
        return -EINVAL; /* not held: what the genuine one answers too */
    held_drop_locked(held);
    locks_grant_locked(xl, li);
    return 0;
}

static int inode_lock(struct xlator *xl, struct call *call, struct inode *inode, uint32_t cmd,
                      const struct lock *lock, const char *domain)
{
    struct held *want = held_new(HELD_INODELK, call);
    if (!want)
        return -ENOLCK;
    int ret = range_of(lock, want);
    want->type = lock->type;
    want->client = locks_client_of(xl, call->client);
    if (ret == 0 && (want->type > RANGE_UNLOCK || !domain || cmd > INODELK_SET_WAIT))
        ret = -EINVAL;
    if (ret == 0 && cmd == INODELK_GET)
        ret = -EOPNOTSUPP; /* as the genuine brick */
    if (ret == 0 && want->type != RANGE_UNLOCK)
        return held_take(xl, call, inode, want, domain, cmd == INODELK_SET_WAIT);
    if (ret == 0)
        ret = unlock_exact(xl, inode, want, domain);
    held_free(want);
    return ret;
}

static int locks_inodelk(struct xlator *xl, struct call *call, const struct inodelk_args *in,
                         struct inodelk_reply *out)
{
    (void)out;
    return inode_lock(xl, call, in->inode, in->cmd, &in->lock, in->domain);
}

static int locks_finodelk(struct xlator *xl, struct call *call, const struct finodelk_args *in,
                          struct finodelk_reply *out)
{
    (void)out;
    return inode_lock(xl, call, in->fd->inode, in->cmd, &in->lock, in->domain);
}

/* --- entrylk --------------------------------------------------------------------------------- */
static int entry_lock(struct xlator *xl, struct call *call, struct inode *inode, uint32_t cmd,
                      uint32_t type, const char *name, const char *domain)
{
    struct held *want = held_new(HELD_ENTRYLK, call);
    if (!want)
        return -ENOLCK;
    int ret = cmd > ENTRYLK_LOCK_NB || type > RANGE_WRITE || !domain ? -EINVAL : 0;
    want->type = type;
    want->client = locks_client_of(xl, call->client);
    if (ret == 0 && name && !(want->name = strdup(name)))
        ret = -ENOLCK;
    if (ret == 0 && cmd != ENTRYLK_UNLOCK)
        return held_take(xl, call, inode, want, domain, cmd == ENTRYLK_LOCK);
    if (ret == 0)
        ret = unlock_exact(xl, inode, want, domain);
    held_free(want);
    return ret;
}

static int locks_entrylk(struct xlator *xl, struct call *call, const struct entrylk_args *in,
                         struct entrylk_reply *out)
{
    (void)out;
    return entry_lock(xl, call, in->inode, in->cmd, in->type, in->name, in->domain);
}

static int locks_fentrylk(struct xlator *xl, struct call *call, const struct fentrylk_args *in,
                          struct fentrylk_reply *out)
{
    (void)out;
    return entry_lock(xl, call, in->fd->inode, in->cmd, in->type, in->name, in->domain);
}

/* --- what others ask about locks ------------------------------------------------------------- */
static int64_t count_kind(struct xlator *xl, struct inode *inode, enum held_kind kind,
                          const char *domain)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = inode ? slot_get(&inode->slots, xl) : NULL;
    struct held *held;
    int64_t count = 0;

    if (!li)
        return 0;
    HOLD(&locks->mutex);
    TAILQ_FOREACH (held, &li->granted, in_inode)
        if (held->kind == kind && (!domain || strcmp(held->domain, domain) == 0))
            count++;
    return count;
}

static bool parent_entry_locked(struct xlator *xl, struct inode *parent, const char *name)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = parent ? slot_get(&parent->slots, xl) : NULL;
    struct held *held;

    if (!li || !name)
        return false;
    HOLD(&locks->mutex);
    TAILQ_FOREACH (held, &li->granted, in_inode)
        if (held->kind == HELD_ENTRYLK && (!held->name || strcmp(held->name, name) == 0))
            return true;
    return false;
}

/* Keys of spec/wire.md 4.3 that a look-up may carry. */
static int add_counts(struct xlator *xl, const struct lookup_args *in, struct inode *inode,
                      struct lookup_reply *out)
{
    static const struct {
        const char *key;
        enum held_kind kind;
    } counts[] = { { "glusterfs.inodelk-count", HELD_INODELK },
                   { "glusterfs.entrylk-count", HELD_ENTRYLK },
                   { "glusterfs.posixlk-count", HELD_POSIX } };
    const char *domain = dict_get_str(in->xdata, "glusterfs.inodelk-dom-count");
    bool parent = dict_get(in->xdata, "glusterfs.parent-entrylk") != NULL, any = parent || domain;
    int ret = 0;

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        any |= dict_get(in->xdata, counts[i].key) != NULL;
    if (!any)
        return 0;
    if (!out->xdata && !(out->xdata = dict_new()))
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(counts) && ret == 0; i++)
        if (dict_get(in->xdata, counts[i].key))
            ret = dict_set_int(out->xdata, counts[i].key,
                               count_kind(xl, inode, counts[i].kind, NULL));
    if (ret == 0 && domain)
        ret = dict_set_int(out->xdata, "glusterfs.inodelk-count",
                           count_kind(xl, inode, HELD_INODELK, domain));
    if (ret == 0 && parent)
        ret = dict_set_int(out->xdata, "glusterfs.parent-entrylk",
                           parent_entry_locked(xl, in->parent, in->name));
    return ret;
}

static int locks_lookup(struct xlator *xl, struct call *call, const struct lookup_args *in,
                        struct lookup_reply *out)
{
    int ret = fop_lookup(first_child(xl), call, in, out);
    if (ret < 0 || dict_count(in->xdata) == 0)
        return ret;
    AUTO(inode) inode = inode_find(xl->graph->inodes, &out->stat.gfid);
    int added = add_counts(xl, in, inode, out);
    return added < 0 ? added : ret;
}

static int locks_getactivelk(struct xlator *xl, struct call *call,
                             const struct getactivelk_args *in, struct getactivelk_reply *out)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = slot_get(&in->inode->slots, xl);
    struct held *held;
    int ret = 0;

    (void)call;
    if (!li)
        return 0;
    HOLD(&locks->mutex);
    TAILQ_FOREACH (held, &li->granted, in_inode) {
        struct lock lock;
        if (held->kind != HELD_POSIX || ret < 0)
            continue;
        lock_of(held, &lock);
        ret = locklist_add(&out->locks, &lock, held->client->uid, 0);
    }
    return ret < 0 ? ret : (int)out->locks.count;
}

/* --- giving up a wait from afar --------------------------------------------------------------- */
#define INTERRUPT_KEY "glusterfs.intrlk.tposix.kblocked."

/* A genuine client whose caller was interrupted asks by an xattr's name,
 * "<key><whence>,<start>-<len>", to have the caller's blocked lock taken back (seen on the wire; in
 * no document). */
static struct held *waiting_locked(struct locks_inode *li, const struct held *asked)
{
    struct held *held;

    TAILQ_FOREACH (held, &li->waiting, in_inode)
        if (held->kind == HELD_POSIX && held->client == asked->client &&
            held->start == asked->start && held->end == asked->end &&
            (lkowner_equal(&held->owner, &asked->owner) || held->caller_pid == asked->caller_pid))
            return held;
    return NULL;
}

static int interrupt_wait(struct xlator *xl, struct call *call, struct inode *inode,
                          const char *range, struct dict **ret_dict)
{
    struct locks *locks = xl->state;
    struct locks_inode *li = slot_get(&inode->slots, xl);
    struct held asked = { .client = locks_client_of(xl, call->client), .owner = call->owner,
                          .caller_pid = call->pid };
    struct lock lock = {};
    int length = 0;
    bool found = false;

    if (sscanf(range, "%u,%lu-%lu%n", &lock.whence, &lock.start, &lock.len, &length) != 3 ||
        range[length] != '\0' || range_of(&lock, &asked) < 0)
        return -EINVAL;
    if (li) {
        HOLD(&locks->mutex);
        struct held *waiting = waiting_locked(li, &asked);
        found = waiting != NULL;
        if (waiting)
            held_decide_locked(waiting, -EINTR);
    }
    if (!*ret_dict && !(*ret_dict = dict_new()))
        return -ENOMEM;
    char key[sizeof(INTERRUPT_KEY) + 64], text[64];
    snprintf(key, sizeof(key), INTERRUPT_KEY "%.63s", range);
    snprintf(text, sizeof(text), "posix: blocked locks=%d granted locks=0", found);
    return dict_set_str(*ret_dict, key, text);
}

static bool asks_interrupt(const char *name)
{
    return name && strncmp(name, INTERRUPT_KEY, sizeof(INTERRUPT_KEY) - 1) == 0;
}

static int locks_getxattr(struct xlator *xl, struct call *call, const struct getxattr_args *in,
                          struct getxattr_reply *out)
{
    if (asks_interrupt(in->name))
        return interrupt_wait(xl, call, in->inode, in->name + sizeof(INTERRUPT_KEY) - 1,
                              &out->dict);
    return fop_getxattr(first_child(xl), call, in, out);
}

static int locks_fgetxattr(struct xlator *xl, struct call *call, const struct fgetxattr_args *in,
                           struct fgetxattr_reply *out)
{
    if (asks_interrupt(in->name))
        return interrupt_wait(xl, call, in->fd->inode, in->name + sizeof(INTERRUPT_KEY) - 1,
                              &out->dict);
    return fop_fgetxattr(first_child(xl), call, in, out);
}

/* --- ends ------------------------------------------------------------------------------------ */
static void drop_client_locked(struct xlator *xl, struct held *held)
{
    struct locks_inode *li = held->inode;
    AUTO(inode) inode = inode_ref(li->inode); /* until its waiters were looked at */

    if (held->waiter)
        held_decide_locked(held, -ENOTCONN);
    else
        held_drop_locked(held);
    locks_grant_locked(xl, li);
}

static void locks_client_gone(struct xlator *xl, struct client *client)
{
    struct locks *locks = xl->state;
    struct locks_client *lc = locks_client_of(xl, client);
    struct held *held;

    if (!lc)
        return;
    HOLD(&locks->mutex);
    lc->gone = true;
    while ((held = TAILQ_FIRST(&lc->all)) != NULL)
        drop_client_locked(xl, held);
}

static void locks_client_free(struct xlator *xl, struct client *client, void *state)
{
    struct locks_client *lc = state;
    (void)xl;
    (void)client;
    assert(TAILQ_EMPTY(&lc->all));
    free(lc);
}

static void locks_forget(struct xlator *xl, struct inode *inode, void *state)
{
    struct locks_inode *li = state;
    (void)xl;
    (void)inode;
    assert(TAILQ_EMPTY(&li->granted) && TAILQ_EMPTY(&li->waiting));
    for (struct domain *domain = li->domains, *next; domain; domain = next) {
        next = domain->next;
        free(domain);
    }
    free(li);
}

/* --- life ------------------------------------------------------------------------------------ */
static int check_mandatory(struct xlator *xl)
{
    struct locks *locks = xl->state;
    if (strcmp(locks->mandatory, "off") == 0)
        return 0;
    log_error(xl, 0, "mandatory-locking %s: mandatory locks are not in this version; set it to off",
              locks->mandatory);
    return -EOPNOTSUPP;
}

static int locks_init(struct xlator *xl)
{
    struct locks *locks = xl->state;
    pthread_mutex_init(&locks->mutex, NULL);
    locks_client_init(&locks->internal, "");
    return check_mandatory(xl);
}

static int locks_reconfigure(struct xlator *xl, const struct option_set *set)
{
    (void)set;
    return check_mandatory(xl);
}

static void locks_fini(struct xlator *xl)
{
    struct locks *locks = xl->state;
    pthread_mutex_destroy(&locks->mutex);
}

static void locks_dump(struct xlator *xl, struct dump *dump)
{
    struct locks *locks = xl->state;
    dump_value(dump, "granted", "%lu", (unsigned long)locks->granted);
    dump_value(dump, "blocked", "%lu", (unsigned long)locks->blocked);
    dump_value(dump, "refused", "%lu", (unsigned long)locks->refused);
}

static const char *const mandatory_modes[] = { "off", "file", "forced", "optimal", NULL };

#define NO_REVOCATION "Locks are not revoked: a holder that is gone loses them at once."
#define NO_CONTENTION "Holders are not told of contention in this version."

static const struct option locks_options[] = {
    OPTION_STR(struct locks, mandatory, "mandatory-locking", .fallback = "off",
               .values = mandatory_modes, .help = "Only off is served."),
    OPTION_NONE(OPT_BOOL, "trace", .help = "debug/trace shows lock operations."),
    OPTION_NONE(OPT_BOOL, "monkey-unlocking", .help = "A test aid of the genuine one."),
    OPTION_NONE(OPT_INT, "revocation-secs", .min = 0, .max = 2147483647, .help = NO_REVOCATION),
    OPTION_NONE(OPT_BOOL, "revocation-clear-all", .help = NO_REVOCATION),
    OPTION_NONE(OPT_INT, "revocation-max-blocked", .min = 0, .max = 2147483647,
                .help = NO_REVOCATION),
    OPTION_NONE(OPT_BOOL, "notify-contention", .help = NO_CONTENTION),
    OPTION_NONE(OPT_INT, "notify-contention-delay", .min = 0, .max = 60, .help = NO_CONTENTION),
    OPTION_NONE(OPT_BOOL, "enforce-mandatory-lock",
                .help = "Mandatory locks are not in this version."),
    OPTION_NONE(OPT_BOOL, "mandatory-locks", .aliases = { "mandatory" },
                .help = "Ended with 3.7; see mandatory-locking."),
    OPTION_END,
};

const struct xlator_type xlator_features_locks = {
    .name = "features/locks",
    .aliases = { "features/posix-locks" },
    .state_size = sizeof(struct locks),
    .options = locks_options,
    .children_min = 1,
    .children_max = 1,
    .init = locks_init,
    .fini = locks_fini,
    .reconfigure = locks_reconfigure,
    .forget = locks_forget,
    .release = locks_release,
    .client_gone = locks_client_gone,
    .client_free = locks_client_free,
    .dump = locks_dump,
    .fops = {
        .lk = locks_lk,
        .flush = locks_flush,
        .inodelk = locks_inodelk,
        .finodelk = locks_finodelk,
        .entrylk = locks_entrylk,
        .fentrylk = locks_fentrylk,
        .lookup = locks_lookup,
        .getactivelk = locks_getactivelk,
        .getxattr = locks_getxattr,
        .fgetxattr = locks_fgetxattr,
    },
};
