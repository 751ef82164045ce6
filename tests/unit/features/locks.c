/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* features/locks by its promises: fcntl(2)'s rules for lk, spec/wire.md 4.1 for the rest. */
#include "fixture.h"

#include <errno.h>

extern const struct xlator_type xlator_features_locks;

enum { GETLK, SETLK, SETLKW };
enum { ENTRY_LOCK, ENTRY_UNLOCK, ENTRY_TRY };
enum { CLIENTS = 4 };

/* --- a file, some clients, their open files --------------------------------------------------- */

struct world {
    struct fixture *fx;
    struct inode *inode;
    struct client *client[CLIENTS];
    struct fd *fd[CLIENTS];
};

static struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof(*world));
    world->fx = fixture_new(&xlator_features_locks, NULL);
    world->inode = fixture_inode(world->fx, 1);
    for (int i = 0; i < CLIENTS; i++) {
        char uid[32];
        snprintf(uid, sizeof(uid), "client-%d", i);
        world->client[i] = client_new(uid, "here");
        world->fd[i] = fd_new(world->inode, 2, 1);
    }
    return world;
}

static void client_goes(struct world *world, int i)
{
    world->client[i]->gone = true;
    xlator_client_gone(world->fx->top, world->client[i]);
}

static void world_free(struct world *world)
{
    for (int i = 0; i < CLIENTS; i++) {
        client_goes(world, i);
        fd_unref(world->fd[i]);
        client_unref(world->client[i]);
    }
    inode_unref(world->inode);
    fixture_free(world->fx);
    free(world);
}

static int lk_through(struct world *world, struct fd *fd, int client, const char *owner,
                      uint32_t cmd, uint32_t type, uint64_t start, uint64_t len,
                      struct lock *ret_lock)
{
    struct call call = call_of(client < 0 ? NULL : world->client[client], owner);
    struct lk_reply out = { 0 };
    const struct lk_args in = { .fd = fd, .cmd = cmd, .type = type,
                                .lock = { .type = type, .start = start, .len = len, .pid = 9 } };
    int ret = fop_lk(world->fx->top, &call, &in, &out);
    if (ret_lock)
        *ret_lock = out.lock;
    lk_reply_fini(&out);
    return ret;
}

static int lk(struct world *world, int client, const char *owner, uint32_t cmd, uint32_t type,
              uint64_t start, uint64_t len)
{
    return lk_through(world, world->fd[client], client, owner, cmd, type, start, len, NULL);
}

static int flush(struct world *world, int client, const char *owner)
{
    struct call call = call_of(world->client[client], owner);
    struct flush_reply out = { 0 };
    return fop_flush(world->fx->top, &call, &(struct flush_args){ .fd = world->fd[client] }, &out);
}

/* How many locks of fcntl there are on the file. */
static unsigned held_count(struct world *world)
{
    struct call call = call_of(NULL, "");
    struct getactivelk_reply out = { 0 };
    int ret = fop_getactivelk(world->fx->top, &call,
                              &(struct getactivelk_args){ .inode = world->inode }, &out);
    check_equal(ret, out.locks.count);
    getactivelk_reply_fini(&out);
    return (unsigned)ret;
}

/* What stands in the way of a write lock on that byte for a stranger: "r", "w" or "-". */
static char who_holds(struct world *world, uint64_t byte)
{
    struct lock lock;
    check_equal(lk_through(world, world->fd[0], -1, "stranger", GETLK, RANGE_WRITE, byte, 1, &lock),
                0);
    return "rw-"[lock.type];
}

/* "w w r - -": the first bytes of the file. */
static void check_bytes(struct world *world, const char *expected)
{
    char found[65] = "";
    for (size_t i = 0; i < strlen(expected); i++)
        found[i] = who_holds(world, i);
    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "locked %s, not %s\n", found, expected);
        abort();
    }
}

/* --- ranges of one owner ---------------------------------------------------------------------- */

static void one_owners_ranges_split_merge_and_change_type(void)
{
    struct world *world = world_new();

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 2, 6), 0);
    check_bytes(world, "--wwwwww--");
    check_equal(lk(world, 0, "a", SETLK, RANGE_READ, 4, 2), 0); /* downgrade in the middle */
    check_bytes(world, "--wwrrww--");
    check_equal(held_count(world), 3);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 4, 2), 0); /* and back: one lock again */
    check_bytes(world, "--wwwwww--");
    check_equal(held_count(world), 1);
    check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 5, 1), 0); /* split */
    check_bytes(world, "--www-ww--");
    check_equal(held_count(world), 2);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 5, 1), 0); /* merged on both sides */
    check_equal(held_count(world), 1);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 8, 2), 0); /* a neighbour joins */
    check_equal(held_count(world), 1);
    check_bytes(world, "--wwwwwwww");
    check_equal(lk(world, 0, "a", SETLK, RANGE_READ, 0, 0), 0); /* to the end of any file */
    check_bytes(world, "rrrrrrrrrr");
    check_equal(held_count(world), 1);
    check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 3, 0), 0);
    check_bytes(world, "rrr-------");
    check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 0, 0), 0);
    check_equal(held_count(world), 0);
    world_free(world);
}

/* The same part of a lock taken again stays one lock, wherever it stands in the list. */
static void a_part_taken_again_stays_one_lock(void)
{
    struct world *world = world_new();
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 10), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 4, 2), 0);
    check_equal(held_count(world), 1);
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, 20, 1), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 3, 3), 0);
    check_equal(held_count(world), 2);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 10), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 3), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 8, 2), 0);
    check_equal(held_count(world), 2);
    world_free(world);
}

static void the_ends_of_ranges_are_exact(void)
{
    struct world *world = world_new();
    struct lock lock;
    const uint64_t last = INT64_MAX;

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, last, 1), 0);
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, 0, last), 0); /* all but that byte */
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, last, 0), -EAGAIN);
    check_equal(lk(world, 1, "b", SETLK, RANGE_READ, 5, 0), -EAGAIN);
    check_equal(lk_through(world, world->fd[1], 1, "b", GETLK, RANGE_READ, 5, 0, &lock), 0);
    check_equal(lock.start, last);
    check_equal(lock.len, 1);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, last + 1, 0), -EINVAL);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, (uint64_t)-3), -EINVAL);
    check_equal(lk(world, 0, "a", SETLK, 3, 0, 0), -EINVAL);
    check_equal(lk(world, 0, "a", 3, RANGE_WRITE, 0, 0), -EINVAL);
    check_equal(lk(world, 0, "a", 77, RANGE_WRITE, 0, 0), -EINVAL);
    check_equal(held_count(world), 2);
    world_free(world);
}

static void getlk_tells_who_is_in_the_way(void)
{
    struct world *world = world_new();
    struct lock lock;

    check_equal(lk(world, 0, "aa", SETLK, RANGE_READ, 10, 0), 0);
    check_equal(lk_through(world, world->fd[1], 1, "b", GETLK, RANGE_WRITE, 100, 1, &lock), 0);
    check_equal(lock.type, RANGE_READ);
    check_equal(lock.start, 10);
    check_equal(lock.len, 0); /* to the end */
    check_equal(lock.pid, 9);
    check_equal(lock.owner.bytes, 2);
    check(memcmp(lock.owner.data, "aa", 2) == 0);
    check_equal(lk_through(world, world->fd[1], 1, "b", GETLK, RANGE_READ, 100, 1, &lock), 0);
    check_equal(lock.type, RANGE_UNLOCK); /* readers share */
    check_equal(lock.start, 100); /* what was asked comes back, as from a genuine brick */
    check_equal(lock.len, 1);
    check_equal(lk_through(world, world->fd[0], 0, "aa", GETLK, RANGE_WRITE, 100, 1, &lock), 0);
    check_equal(lock.type, RANGE_UNLOCK); /* one's own is not in the way */
    check_equal(lk_through(world, world->fd[1], 1, "b", GETLK, RANGE_WRITE, 0, 10, &lock), 0);
    check_equal(lock.type, RANGE_UNLOCK);
    check_equal(lk_through(world, world->fd[1], 1, "b", GETLK, RANGE_UNLOCK, 0, 10, &lock),
                -EINVAL); /* fcntl(2) too knows no test for unlocking */
    check_equal(held_count(world), 1);
    world_free(world);
}

/* Clients that name the same owner are two owners; two owners of a client are two. */
static void an_owner_is_a_client_and_its_word(void)
{
    struct world *world = world_new();
    struct lock lock;

    check_equal(lk(world, 0, "same", SETLK, RANGE_WRITE, 0, 4), 0);
    check_equal(lk(world, 1, "same", SETLK, RANGE_WRITE, 0, 4), -EAGAIN);
    check_equal(lk(world, 0, "other", SETLK, RANGE_READ, 3, 1), -EAGAIN);
    check_equal(lk(world, 0, "sam", SETLK, RANGE_READ, 3, 1), -EAGAIN); /* no prefix rule */
    check_equal(lk(world, 1, "same", SETLK, RANGE_UNLOCK, 0, 0), 0); /* not its own: nothing */
    check_equal(held_count(world), 1);
    check_equal(lk_through(world, world->fd[1], 1, "same", SETLK, RANGE_WRITE, 0, 1, &lock),
                -EAGAIN);
    check_equal(lock.type + lock.start + lock.len + lock.owner.bytes, 0); /* zeroed: wire.md */
    check_equal(lk_through(world, world->fd[1], 1, "same", SETLK, RANGE_WRITE, 9, 1, &lock), 0);
    check_equal(lock.owner.bytes, 4); /* replies carry the credential's owner */
    world_free(world);
}

/* --- against a model -------------------------------------------------------------------------- */

enum { BYTES = 24, OWNERS = 5, MODEL_ROUNDS = 20000 };

struct model {
    uint8_t held[OWNERS][BYTES]; /* 0: not, 1: read, 2: write */
};

static bool model_conflict(const struct model *model, int owner, int type, int from, int to)
{
    for (int i = 0; i < OWNERS; i++)
        for (int b = from; i != owner && b <= to; b++)
            if (model->held[i][b] == 2 || (model->held[i][b] == 1 && type == RANGE_WRITE))
                return true;
    return false;
}

static unsigned model_locks(const struct model *model)
{
    unsigned count = 0;
    for (int i = 0; i < OWNERS; i++)
        for (int b = 0; b < BYTES; b++)
            count += model->held[i][b] && (b == 0 || model->held[i][b] != model->held[i][b - 1]);
    return count;
}

static void random_locks_agree_with_a_table_of_bytes(void)
{
    static const char *const names[OWNERS] = { "a", "b", "c", "d", "e" };
    struct world *world = world_new();
    struct model model = { 0 };
    uint64_t random = (uint64_t)getpid() << 20 | 1;

    for (int round = 0; round < MODEL_ROUNDS; round++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        int owner = (int)(random >> 33) % OWNERS, from = (int)(random >> 37) % BYTES;
        int to = from + (int)(random >> 43) % (BYTES - from), type = (int)(random >> 50) % 3;
        int expected = 0;
        if (type != RANGE_UNLOCK && model_conflict(&model, owner, type, from, to))
            expected = -EAGAIN;
        check_equal(lk(world, owner % 2, names[owner], SETLK, (uint32_t)type, (uint64_t)from,
                       (uint64_t)(to - from + 1)), expected);
        for (int b = from; expected == 0 && b <= to; b++)
            model.held[owner][b] = (uint8_t)(type == RANGE_UNLOCK ? 0 : type + 1);
        check_equal(held_count(world), model_locks(&model));
    }
    world_free(world);
}

/* --- waiting ---------------------------------------------------------------------------------- */

struct waiter {
    struct world *world;
    int client;
    const char *owner;
    uint32_t type;
    uint64_t start, len;
    struct call_cancel *cancel;
    int result;
    bool done;
    unsigned order; /* of its answer, counted from 1 */
};
static unsigned answers;

static void waiter_fiber(void *arg)
{
    struct waiter *waiter = arg;
    struct world *world = waiter->world;
    struct call call = call_of(world->client[waiter->client], waiter->owner);
    struct lk_reply out = { 0 };
    const struct lk_args in = { .fd = world->fd[waiter->client], .cmd = SETLKW,
                                .type = waiter->type,
                                .lock = { .type = waiter->type, .start = waiter->start,
                                          .len = waiter->len } };
    call.cancel = waiter->cancel;
    waiter->result = fop_lk(world->fx->top, &call, &in, &out);
    waiter->done = true;
    waiter->order = ++answers;
    lk_reply_fini(&out);
}

static void settle(void)
{
    for (int i = 0; i < 20; i++)
        fiber_yield();
}

static void starts_to_wait(struct waiter *waiter)
{
    check_equal(fiber_start("waiter", waiter_fiber, waiter), 0);
    settle();
}

static void waiters_are_granted_in_order(void)
{
    struct world *world = world_new();
    struct waiter w[3] = {
        { world, 1, "b", RANGE_WRITE, 0, 1, NULL, 0, false, 0 },
        { world, 2, "c", RANGE_WRITE, 0, 1, NULL, 0, false, 0 },
        { world, 3, "d", RANGE_WRITE, 0, 1, NULL, 0, false, 0 },
    };

    answers = 0;
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
    for (int i = 0; i < 3; i++)
        starts_to_wait(&w[i]);
    check_equal(answers, 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 0, 1), 0);
    settle();
    check_equal(answers, 1);
    for (int i = 0; i < 3; i++) {
        check(w[i].done);
        check_equal(w[i].result, 0);
        check_equal(w[i].order, i + 1);
        check_equal(lk(world, i + 1, w[i].owner, SETLK, RANGE_UNLOCK, 0, 1), 0);
        settle();
    }
    check_equal(held_count(world), 0);
    world_free(world);
}

/* Readers in the queue come in together, past a writer that cannot yet. */
static void who_can_be_granted_is_granted(void)
{
    struct world *world = world_new();
    struct waiter w[4] = {
        { world, 1, "b", RANGE_READ, 0, 10, NULL, 0, false, 0 },
        { world, 2, "c", RANGE_WRITE, 5, 10, NULL, 0, false, 0 },
        { world, 3, "d", RANGE_READ, 0, 3, NULL, 0, false, 0 },
        { world, 3, "e", RANGE_WRITE, 30, 1, NULL, 0, false, 0 },
    };

    answers = 0;
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 0), 0);
    for (int i = 0; i < 4; i++)
        starts_to_wait(&w[i]);
    check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 0, 20), 0);
    settle();
    check(w[0].done && !w[1].done && w[2].done && !w[3].done);
    check_equal(flush(world, 1, "b"), 0);
    settle();
    check(w[1].done && !w[3].done);
    check_equal(flush(world, 0, "a"), 0);
    settle();
    check(w[3].done);
    check_equal(answers, 4);
    world_free(world);
}

/* A downgrade lets readers in: the holder's own, and that of a waiter who is granted later in the
 * queue than who it stood in the way of. */
static void a_downgrade_lets_readers_in(void)
{
    struct world *world = world_new();
    struct waiter reader = { world, 1, "b", RANGE_READ, 0, 10, NULL, 0, false, 0 };
    struct waiter downgrader = { world, 0, "a", RANGE_READ, 0, 20, NULL, 0, false, 0 };

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 10), 0);
    starts_to_wait(&reader);
    check(!reader.done);
    check_equal(lk(world, 0, "a", SETLK, RANGE_READ, 0, 10), 0);
    settle();
    check(reader.done);
    check_equal(flush(world, 1, "b"), 0);
    check_equal(flush(world, 0, "a"), 0);

    reader.done = false;
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 10), 0);
    check_equal(lk(world, 2, "c", SETLK, RANGE_WRITE, 10, 10), 0);
    starts_to_wait(&reader);     /* for what a holds */
    starts_to_wait(&downgrader); /* for what c holds; then a's write lock is a read lock */
    check(!reader.done && !downgrader.done);
    check_equal(flush(world, 2, "c"), 0);
    settle();
    check(downgrader.done);
    check(reader.done);
    world_free(world);
}

static void an_interrupted_wait_ends_with_eintr(void)
{
    struct world *world = world_new();
    struct call_cancel cancel;
    struct waiter waiter = { world, 1, "b", RANGE_WRITE, 0, 1, &cancel, 0, false, 0 };

    call_cancel_init(&cancel);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
    starts_to_wait(&waiter);
    call_cancel_fire(&cancel);
    settle();
    check(waiter.done);
    check_equal(waiter.result, -EINTR);
    call_cancel_fire(&cancel); /* once more is once too many, and harmless */
    check_equal(held_count(world), 1);
    check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 0, 1), 0);
    check_equal(held_count(world), 0);

    waiter.done = false; /* interrupted before it asks */
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
    starts_to_wait(&waiter);
    check(waiter.done);
    check_equal(waiter.result, -EINTR);
    call_cancel_fini(&cancel);
    world_free(world);
}

/* Grant and interrupt at once, in either order: one answer, and the lock is there if it is 0. */
static void an_interrupt_races_a_grant(void)
{
    for (int first = 0; first < 2; first++) {
        struct world *world = world_new();
        struct call_cancel cancel;
        struct waiter waiter = { world, 1, "b", RANGE_WRITE, 0, 1, &cancel, 0, false, 0 };

        call_cancel_init(&cancel);
        check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
        starts_to_wait(&waiter);
        if (first == 0)
            call_cancel_fire(&cancel);
        check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 0, 1), 0);
        if (first == 1)
            call_cancel_fire(&cancel);
        settle();
        check(waiter.done);
        check_equal(waiter.result, first == 0 ? -EINTR : 0);
        check_equal(held_count(world), waiter.result == 0);
        call_cancel_fini(&cancel);
        world_free(world);
    }
}

struct racer { /* fires from another lane */
    struct call_cancel *cancel;
    unsigned *fired;
};

static void fire_fiber(void *arg)
{
    struct racer *racer = arg;
    call_cancel_fire(racer->cancel);
    __atomic_fetch_add(racer->fired, 1, __ATOMIC_ACQ_REL);
}

static void interrupts_from_another_lane_race_grants(void)
{
    struct world *world = world_new();
    unsigned granted = 0, interrupted = 0;

    lanes_grow(2);
    for (int round = 0; round < 500; round++) {
        struct call_cancel cancel;
        unsigned fired = 0;
        struct waiter waiter = { world, 1, "b", RANGE_WRITE, 0, 1, &cancel, 0, false, 0 };
        struct racer racer = { &cancel, &fired };

        call_cancel_init(&cancel);
        check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
        starts_to_wait(&waiter);
        check_equal(fiber_start_on(lane_get(1), "fire", fire_fiber, &racer), 0);
        for (volatile int spin = 0; spin < round * 40; spin++) {
        }
        check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 0, 1), 0);
        await_count(&fired, 1);
        settle();
        check(waiter.done);
        check(waiter.result == 0 || waiter.result == -EINTR);
        check_equal(held_count(world), waiter.result == 0);
        *(waiter.result == 0 ? &granted : &interrupted) += 1;
        check_equal(flush(world, 1, "b"), 0);
        call_cancel_fini(&cancel);
    }
    fprintf(stderr, "# granted %u, interrupted %u\n", granted, interrupted);
    world_free(world);
}

/* --- clients and files that go ---------------------------------------------------------------- */

static void a_client_that_goes_takes_its_locks_and_waiters_along(void)
{
    struct world *world = world_new();
    struct waiter own = { world, 0, "a2", RANGE_WRITE, 5, 1, NULL, 0, false, 0 };
    struct waiter other = { world, 1, "b", RANGE_WRITE, 0, 1, NULL, 0, false, 0 };
    struct waiter third = { world, 2, "c", RANGE_READ, 0, 1, NULL, 0, false, 0 };

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
    check_equal(lk(world, 3, "d", SETLK, RANGE_WRITE, 5, 1), 0);
    starts_to_wait(&own);
    starts_to_wait(&other);
    starts_to_wait(&third);
    client_goes(world, 0);
    settle();
    check_equal(own.result, -ENOTCONN);
    check(own.done && other.done && !third.done);
    check_equal(other.result, 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_READ, 50, 1), -ENOTCONN); /* too late for it */
    client_goes(world, 1);
    settle();
    check(third.done);
    check_equal(third.result, 0);
    check_equal(held_count(world), 2);
    world_free(world);
}

static void flush_drops_the_owners_and_only_those(void)
{
    struct world *world = world_new();

    check_equal(lk(world, 0, "a", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 4, 1), 0);
    check_equal(lk(world, 0, "a2", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(lk(world, 1, "a", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(flush(world, 0, "a"), 0);
    check_equal(held_count(world), 2);
    check_equal(fixture_count(world->fx, FOP_FLUSH), 1); /* it goes on to the child */
    check_equal(flush(world, 2, "a"), 0);
    check_equal(held_count(world), 2);
    world_free(world);
}

static void an_fds_end_drops_what_was_locked_through_it(void)
{
    struct world *world = world_new();
    struct fd *second = fd_new(world->inode, 2, 1);
    struct waiter waiter = { world, 1, "b", RANGE_WRITE, 8, 1, NULL, 0, false, 0 };

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
    check_equal(lk_through(world, second, 0, "a", SETLK, RANGE_WRITE, 8, 1, NULL), 0);
    starts_to_wait(&waiter);
    check(!waiter.done);
    fd_unref(second);
    settle();
    check(waiter.done);
    check_equal(waiter.result, 0);
    check_bytes(world, "w-------w");
    world_free(world);
}

/* --- deadlock --------------------------------------------------------------------------------- */

static void rings_of_two_and_three_are_refused(void)
{
    struct world *world = world_new();
    struct waiter w[2] = {
        { world, 0, "a", RANGE_WRITE, 1, 1, NULL, 0, false, 0 },
        { world, 1, "b", RANGE_WRITE, 2, 1, NULL, 0, false, 0 },
    };

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, 1, 1), 0);
    check_equal(lk(world, 2, "c", SETLK, RANGE_WRITE, 2, 1), 0);
    starts_to_wait(&w[0]); /* a -> b */
    check_equal(lk(world, 1, "b", SETLKW, RANGE_WRITE, 0, 1), -EDEADLK);
    starts_to_wait(&w[1]); /* b -> c */
    check_equal(lk(world, 2, "c", SETLKW, RANGE_WRITE, 0, 1), -EDEADLK);
    check_equal(lk(world, 2, "c", SETLK, RANGE_WRITE, 0, 1), -EAGAIN); /* who does not wait may */
    check(!w[0].done && !w[1].done);
    check_equal(flush(world, 2, "c"), 0);
    settle();
    check(w[1].done && !w[0].done);
    check_equal(flush(world, 1, "b"), 0);
    settle();
    check(w[0].done);
    world_free(world);
}

/* Who waits for several holders waits for each of them: the ring may close over the second. */
static void a_ring_through_one_of_several_readers_is_refused(void)
{
    struct world *world = world_new();
    struct waiter writer = { world, 0, "a", RANGE_WRITE, 0, 1, NULL, 0, false, 0 };

    check_equal(lk(world, 1, "b", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(lk(world, 2, "c", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 9, 1), 0);
    starts_to_wait(&writer); /* a -> b and c */
    check_equal(lk(world, 2, "c", SETLKW, RANGE_READ, 9, 1), -EDEADLK);
    check_equal(lk(world, 1, "b", SETLKW, RANGE_READ, 9, 1), -EDEADLK);
    check_equal(flush(world, 1, "b"), 0);
    check_equal(flush(world, 2, "c"), 0);
    settle();
    check(writer.done);
    world_free(world);
}

static void a_ring_over_two_files_is_refused(void)
{
    struct world *world = world_new();
    struct inode *other = fixture_inode(world->fx, 2);
    struct fd *fd = fd_new(other, 2, 1);
    struct waiter waiter = { world, 1, "b", RANGE_WRITE, 0, 1, NULL, 0, false, 0 };

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 1), 0);
    check_equal(lk_through(world, fd, 1, "b", SETLK, RANGE_WRITE, 0, 1, NULL), 0);
    starts_to_wait(&waiter);
    check_equal(lk_through(world, fd, 0, "a", SETLKW, RANGE_WRITE, 0, 1, NULL), -EDEADLK);
    check_equal(flush(world, 0, "a"), 0);
    settle();
    check(waiter.done);
    fd_unref(fd);
    inode_unref(other);
    world_free(world);
}

/* Many readers, many waiters on all of them: looking for a ring takes its time, but not all day. */
static void looking_for_rings_is_bounded(void)
{
    enum { MANY = 120 };
    struct world *world = world_new();
    struct waiter *waiters = calloc(MANY, sizeof(*waiters));
    char (*names)[16] = calloc(MANY, sizeof(*names));
    uint64_t before = env_now_ns();

    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "r%d", i);
        check_equal(lk(world, i % 2, names[i], SETLK, RANGE_READ, 0, 1), 0);
    }
    answers = 0;
    for (int i = 0; i < MANY; i++) {
        waiters[i] = (struct waiter){ .world = world, .client = i % 2, .owner = names[i],
                                      .type = RANGE_WRITE, .len = 1 };
        check_equal(fiber_start("waiter", waiter_fiber, &waiters[i]), 0);
    }
    settle();
    check_equal(answers, MANY - 1); /* the first one waits, all others would close a ring */
    check(env_now_ns() - before < 20 * NS_PER_S);
    client_goes(world, 0);
    client_goes(world, 1);
    settle();
    check_equal(answers, MANY);
    free(waiters);
    free(names);
    world_free(world);
}

/* --- inodelk, entrylk ------------------------------------------------------------------------- */

static int inodelk(struct world *world, int client, const char *owner, const char *domain,
                   uint32_t cmd, uint32_t type, uint64_t start, uint64_t len)
{
    struct call call = call_of(world->client[client], owner);
    struct inodelk_reply out = { 0 };
    const struct inodelk_args in = { .inode = world->inode, .cmd = cmd, .type = type,
                                     .lock = { .type = type, .start = start, .len = len },
                                     .domain = domain };
    return fop_inodelk(world->fx->top, &call, &in, &out);
}

static int finodelk(struct world *world, int client, const char *owner, const char *domain,
                    uint32_t cmd, uint32_t type, uint64_t start, uint64_t len)
{
    struct call call = call_of(world->client[client], owner);
    struct finodelk_reply out = { 0 };
    const struct finodelk_args in = { .fd = world->fd[client], .cmd = cmd, .type = type,
                                      .lock = { .type = type, .start = start, .len = len },
                                      .domain = domain };
    return fop_finodelk(world->fx->top, &call, &in, &out);
}

static void inodelk_keeps_domains_apart(void)
{
    struct world *world = world_new();

    check_equal(inodelk(world, 0, "a", "one", SETLK, RANGE_WRITE, 0, 0), 0);
    check_equal(inodelk(world, 1, "b", "one", SETLK, RANGE_READ, 5, 1), -EAGAIN);
    check_equal(finodelk(world, 1, "b", "one", SETLK, RANGE_READ, 5, 1), -EAGAIN);
    check_equal(inodelk(world, 1, "b", "two", SETLK, RANGE_WRITE, 5, 1), 0);
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, 5, 1), 0); /* nor is it a lock of fcntl */
    check_equal(flush(world, 0, "a"), 0);                        /* which flush ends */
    check_equal(inodelk(world, 1, "b", "one", SETLK, RANGE_READ, 5, 1), -EAGAIN);
    check_equal(finodelk(world, 0, "a", "one", SETLK, RANGE_UNLOCK, 0, 0), 0);
    check_equal(inodelk(world, 1, "b", "one", SETLK, RANGE_READ, 5, 1), 0);
    check_equal(inodelk(world, 1, "b", "one", GETLK, RANGE_READ, 5, 1), -EOPNOTSUPP);
    check_equal(inodelk(world, 1, "b", NULL, SETLK, RANGE_READ, 5, 1), -EINVAL);
    world_free(world);
}

static void inodelk_is_unlocked_as_it_was_locked(void)
{
    struct world *world = world_new();
    const uint64_t metadata = 0x7ffffffffffffffeull; /* what replicate locks for metadata */

    check_equal(inodelk(world, 0, "a", "d", SETLK, RANGE_WRITE, 0, 10), 0);
    check_equal(inodelk(world, 0, "a", "d", SETLK, RANGE_WRITE, metadata, 0), 0);
    check_equal(inodelk(world, 0, "a", "d", SETLK, RANGE_UNLOCK, 0, 5), -EINVAL);
    check_equal(inodelk(world, 0, "a", "d", SETLK, RANGE_UNLOCK, 0, 0), -EINVAL);
    check_equal(inodelk(world, 0, "a", "x", SETLK, RANGE_UNLOCK, 0, 10), -EINVAL);
    check_equal(inodelk(world, 0, "b", "d", SETLK, RANGE_UNLOCK, 0, 10), -EINVAL);
    check_equal(inodelk(world, 1, "a", "d", SETLK, RANGE_UNLOCK, 0, 10), -EINVAL);
    check_equal(inodelk(world, 0, "a", "d", SETLK, RANGE_UNLOCK, 0, 10), 0);
    check_equal(inodelk(world, 0, "a", "d", SETLK, RANGE_UNLOCK, 0, 10), -EINVAL);
    check_equal(inodelk(world, 1, "b", "d", SETLK, RANGE_WRITE, 0, 10), 0);
    check_equal(inodelk(world, 1, "b", "d", SETLK, RANGE_WRITE, metadata, 0), -EAGAIN);
    check_equal(inodelk(world, 0, "a", "d", SETLK, RANGE_UNLOCK, metadata, 0), 0);
    world_free(world);
}

static int entrylk(struct world *world, int client, const char *owner, const char *name,
                   uint32_t cmd, uint32_t type)
{
    struct call call = call_of(world->client[client], owner);
    struct entrylk_reply out = { 0 };
    const struct entrylk_args in = { .inode = world->inode, .cmd = cmd, .type = type, .name = name,
                                     .domain = "d" };
    return fop_entrylk(world->fx->top, &call, &in, &out);
}

static int fentrylk(struct world *world, int client, const char *owner, const char *name,
                    uint32_t cmd, uint32_t type)
{
    struct call call = call_of(world->client[client], owner);
    struct fentrylk_reply out = { 0 };
    const struct fentrylk_args in = { .fd = world->fd[client], .cmd = cmd, .type = type,
                                      .name = name, .domain = "d" };
    return fop_fentrylk(world->fx->top, &call, &in, &out);
}

static void entrylk_locks_names_or_all_of_them(void)
{

    struct world *world = world_new();

    check_equal(entrylk(world, 0, "a", "x", ENTRY_TRY, RANGE_WRITE), 0);
    check_equal(entrylk(world, 1, "b", "x", ENTRY_TRY, RANGE_WRITE), -EAGAIN);
    check_equal(fentrylk(world, 1, "b", "y", ENTRY_TRY, RANGE_WRITE), 0);
    check_equal(entrylk(world, 2, "c", NULL, ENTRY_TRY, RANGE_WRITE), -EAGAIN);
    check_equal(entrylk(world, 0, "a", NULL, ENTRY_UNLOCK, RANGE_WRITE), -EINVAL);
    check_equal(entrylk(world, 0, "a", "x", ENTRY_UNLOCK, RANGE_WRITE), 0);
    check_equal(entrylk(world, 0, "a", "x", ENTRY_UNLOCK, RANGE_WRITE), -EINVAL);
    check_equal(entrylk(world, 1, "b", "y", ENTRY_UNLOCK, RANGE_WRITE), 0);
    check_equal(entrylk(world, 2, "c", NULL, ENTRY_LOCK, RANGE_WRITE), 0);
    check_equal(entrylk(world, 0, "a", "z", ENTRY_TRY, RANGE_WRITE), -EAGAIN);
    check_equal(entrylk(world, 2, "c", NULL, ENTRY_UNLOCK, RANGE_WRITE), 0);
    check_equal(entrylk(world, 0, "a", "z", ENTRY_TRY, RANGE_READ), 0);
    /* names have one owner, whatever type he asks for (seen on a genuine 10.3 brick) */
    check_equal(entrylk(world, 1, "b", "z", ENTRY_TRY, RANGE_READ), -EAGAIN);
    check_equal(entrylk(world, 0, "a", "z", ENTRY_TRY, RANGE_WRITE), 0); /* his own twice */
    check_equal(entrylk(world, 0, "a", "z", 3, RANGE_WRITE), -EINVAL);
    check_equal(entrylk(world, 0, "a", "z", ENTRY_TRY, 2), -EINVAL);
    world_free(world);
}

struct entry_waiter {
    struct world *world;
    int result;
    unsigned done;
};

static void entry_waiter_fiber(void *arg)
{
    struct entry_waiter *waiter = arg;
    waiter->result = entrylk(waiter->world, 1, "b", "x", ENTRY_LOCK, RANGE_WRITE);
    waiter->done++;
}

static void a_waiter_for_a_name_gets_it(void)
{
    struct world *world = world_new();
    struct entry_waiter waiter = { world, -1, 0 };

    check_equal(entrylk(world, 0, "a", NULL, ENTRY_TRY, RANGE_WRITE), 0);
    check_equal(fiber_start("waiter", entry_waiter_fiber, &waiter), 0);
    settle();
    check_equal(waiter.done, 0);
    check_equal(entrylk(world, 0, "a", NULL, ENTRY_UNLOCK, RANGE_WRITE), 0);
    settle();
    check_equal(waiter.done, 1);
    check_equal(waiter.result, 0);
    check_equal(entrylk(world, 0, "a", "x", ENTRY_TRY, RANGE_WRITE), -EAGAIN);
    check_equal(entrylk(world, 0, "a", "y", ENTRY_TRY, RANGE_WRITE), 0);
    check_equal(entrylk(world, 1, "b", "x", ENTRY_UNLOCK, RANGE_WRITE), 0);
    world_free(world);
}

/* --- what look-ups tell ----------------------------------------------------------------------- */

static int answer_lookup(struct fixture *fx, struct call *call, enum fop op, const void *args,
                         void *reply)
{
    (void)fx;
    (void)call;
    (void)args;
    if (op == FOP_LOOKUP)
        ((struct lookup_reply *)reply)->stat.gfid = gfid_of(1);
    return 0;
}

/* The count that a look-up of the file with that key answers; -1: none. */
static int64_t asked(struct world *world, const char *key, const char *text, const char *answer,
                     const char *name)
{
    struct call call = call_of(world->client[3], "");
    struct lookup_reply out = { 0 };
    AUTO(dict) xdata = dict_new();
    int64_t count = -1;

    check_equal(text ? dict_set_str(xdata, key, text) : dict_set_uint(xdata, key, 0), 0);
    const struct lookup_args in = { .parent = world->inode, .name = name, .xdata = xdata };
    check_equal(fop_lookup(world->fx->top, &call, &in, &out), 0);
    if (dict_get_int(out.xdata, answer, &count) < 0)
        count = -1;
    lookup_reply_fini(&out);
    return count;
}

static void lookups_are_told_of_locks_when_they_ask(void)
{
    struct world *world = world_new();
    const char *const inodelks = "glusterfs.inodelk-count", *const entrylks =
        "glusterfs.entrylk-count", *const posixlks = "glusterfs.posixlk-count";

    world->fx->answer = answer_lookup;
    check_equal(inodelk(world, 0, "a", "one", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(inodelk(world, 1, "b", "one", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(inodelk(world, 1, "b", "two", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(entrylk(world, 0, "a", "x", ENTRY_TRY, RANGE_WRITE), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_READ, 0, 1), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_READ, 2, 1), 0);
    check_equal(asked(world, inodelks, NULL, inodelks, "x"), 3);
    check_equal(asked(world, entrylks, NULL, entrylks, "x"), 1);
    check_equal(asked(world, posixlks, NULL, posixlks, "x"), 2);
    check_equal(asked(world, inodelks, NULL, posixlks, "x"), -1); /* only what was asked */
    check_equal(asked(world, "glusterfs.inodelk-dom-count", "one", inodelks, "x"), 2);
    check_equal(asked(world, "glusterfs.inodelk-dom-count", "none", inodelks, "x"), 0);
    check_equal(asked(world, "glusterfs.parent-entrylk", NULL, "glusterfs.parent-entrylk", "x"), 1);
    check_equal(asked(world, "glusterfs.parent-entrylk", NULL, "glusterfs.parent-entrylk", "y"), 0);
    world_free(world);
}

static void active_locks_name_their_clients(void)
{
    struct world *world = world_new();
    struct call call = call_of(NULL, "");
    struct getactivelk_reply out = { 0 };

    check_equal(lk(world, 2, "owner", SETLK, RANGE_WRITE, 3, 4), 0);
    check_equal(fop_getactivelk(world->fx->top, &call,
                                &(struct getactivelk_args){ .inode = world->inode }, &out), 1);
    check(strcmp(out.locks.first->client_uid, "client-2") == 0);
    check_equal(out.locks.first->lock.start, 3);
    check_equal(out.locks.first->lock.len, 4);
    getactivelk_reply_fini(&out);
    world_free(world);
}

/* --- flock, and waits that are given up from afar -------------------------------------------- */

/* Over the wire flock(2) looks like fcntl(2); our mounts say in xdata which it is. */
static int flock_of(struct world *world, int client, const char *owner, uint32_t cmd, uint32_t type)
{
    struct call call = call_of(world->client[client], owner);
    struct lk_reply out = { 0 };
    AUTO(dict) xdata = dict_new();
    const struct lk_args in = { .fd = world->fd[client], .cmd = cmd, .type = type,
                                .lock = { .type = type }, .xdata = xdata };
    check_equal(dict_set_int(xdata, "mortar.flock", 1), 0);
    int ret = fop_lk(world->fx->top, &call, &in, &out);
    lk_reply_fini(&out);
    return ret;
}

static void flock_and_fcntl_do_not_see_each_other(void)
{
    struct world *world = world_new();

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 0), 0);
    check_equal(flock_of(world, 1, "b", SETLK, RANGE_WRITE), 0);
    check_equal(flock_of(world, 2, "c", SETLK, RANGE_READ), -EAGAIN);
    check_equal(flock_of(world, 1, "b", SETLK, RANGE_READ), 0); /* a downgrade */
    check_equal(flock_of(world, 2, "c", SETLK, RANGE_READ), 0);
    check_equal(flock_of(world, 0, "a", SETLK, RANGE_UNLOCK), 0); /* not held: nothing */
    check_equal(lk(world, 1, "b", SETLK, RANGE_READ, 0, 1), -EAGAIN);
    check_equal(flock_of(world, 1, "b", SETLK, RANGE_UNLOCK), 0);
    check_equal(flock_of(world, 2, "c", SETLK, RANGE_WRITE), 0);
    client_goes(world, 2);
    check_equal(flock_of(world, 1, "b", SETLK, RANGE_WRITE), 0);
    fd_unref(world->fd[1]); /* it ends with its file */
    world->fd[1] = fd_new(world->inode, 2, 1);
    check_equal(flock_of(world, 3, "d", SETLK, RANGE_WRITE), 0);
    world_free(world);
}

/* A genuine client whose caller was interrupted asks by an xattr's name to end its wait. */
static int interrupt(struct world *world, int client, const char *owner, const char *range)
{
    struct call call = call_of(world->client[client], owner);
    struct getxattr_reply out = { 0 };
    char name[128];
    snprintf(name, sizeof(name), "glusterfs.intrlk.tposix.kblocked.%s", range);
    const struct getxattr_args in = { .inode = world->inode, .name = name };
    int ret = fop_getxattr(world->fx->top, &call, &in, &out);
    if (ret >= 0)
        check(dict_get_str(out.dict, name) != NULL);
    getxattr_reply_fini(&out);
    return ret;
}

static void a_wait_is_given_up_from_afar(void)
{
    struct world *world = world_new();
    struct waiter waiter = { .world = world, .client = 1, .owner = "b", .type = RANGE_WRITE,
                             .start = 4, .len = 6 };

    check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 0, 0), 0);
    starts_to_wait(&waiter);
    check_equal(interrupt(world, 1, "b", "0,4-7"), 0); /* another range */
    check_equal(interrupt(world, 2, "b", "0,4-6"), 0); /* another client */
    settle();
    check(!waiter.done);
    static const char *const nonsense[] = { "", "0,4", "0,4-6x", "0;4-6", "x", "0,-1-6" };
    for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++)
        check(interrupt(world, 1, "b", nonsense[i]) <= 0);
    settle();
    check(!waiter.done);
    check_equal(interrupt(world, 1, "b", "0,4-6"), 0);
    settle();
    check(waiter.done);
    check_equal(waiter.result, -EINTR);
    check_equal(interrupt(world, 1, "b", "0,4-6"), 0); /* nobody waits any more */
    check_equal(held_count(world), 1);
    world_free(world);
}

/* --- bounds ----------------------------------------------------------------------------------- */

static void thousands_of_locks_come_and_go(void)
{
    enum { MANY = 3000 };
    struct world *world = world_new();

    for (uint64_t i = 0; i < MANY; i++)
        check_equal(lk(world, 0, "a", SETLK, RANGE_WRITE, 2 * i, 1), 0);
    check_equal(held_count(world), MANY);
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, 2 * (MANY - 1), 1), -EAGAIN);
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, 2 * (MANY - 1) + 1, 1), 0);
    check_equal(lk(world, 0, "a", SETLK, RANGE_UNLOCK, 0, MANY), 0);
    check_equal(held_count(world), MANY / 2 + 1);
    check_equal(flush(world, 0, "a"), 0);
    check_equal(held_count(world), 1);
    world_free(world);
}

/* A client may hold so many locks and no more, however it comes by them; others go on. */
static void a_clients_locks_are_bounded(void)
{
    enum { LIMIT = 65536, FILES = 512 };
    struct world *world = world_new();
    struct inode *inodes[FILES];
    struct fd *fds[FILES];
    int ret = 0;
    unsigned taken = 0;

    for (unsigned f = 0; f < FILES; f++) { /* over many files: lists stay short */
        inodes[f] = fixture_inode(world->fx, 100 + f);
        fds[f] = fd_new(inodes[f], 2, 1);
        for (uint64_t i = 0; i < LIMIT / FILES + 1 && ret == 0; i++, taken += ret == 0)
            ret = lk_through(world, fds[f], 0, "a", SETLK, RANGE_WRITE, 10 * i, 4, NULL);
    }
    check_equal(ret, -ENOLCK);
    check(taken > LIMIT - 8 && taken <= LIMIT);
    check_equal(lk(world, 1, "b", SETLK, RANGE_WRITE, 0, 1), 0);
    for (unsigned i = 0; i < 16 && ret == -ENOLCK; i++) /* unlocking the middle makes two of one */
        ret = lk_through(world, fds[i / 8], 0, "a", SETLK, RANGE_UNLOCK, 10 * (i % 8) + 1, 1, NULL);
    ret = 0;
    for (unsigned i = 0; i < 64 && ret == 0; i++)
        ret = lk_through(world, fds[i / 8], 0, "a", SETLK, RANGE_UNLOCK, 10 * (i % 8) + 2, 1, NULL);
    check_equal(ret, -ENOLCK);
    check_equal(lk_through(world, fds[9], 0, "a", SETLK, RANGE_UNLOCK, 0, 0, NULL), 0);
    check_equal(lk_through(world, fds[9], 0, "a", SETLK, RANGE_WRITE, 0, 1, NULL), 0);
    for (unsigned f = 0; f < FILES; f++) {
        fd_unref(fds[f]);
        inode_unref(inodes[f]);
    }
    world_free(world);
}

/* Domains nobody uses any more make room for others. */
static void domains_do_not_pile_up(void)
{
    struct world *world = world_new();
    char domain[32];

    for (int i = 0; i < 2000; i++) {
        snprintf(domain, sizeof(domain), "domain-%d", i);
        check_equal(inodelk(world, 0, "a", domain, SETLK, RANGE_WRITE, 0, 0), 0);
        check_equal(inodelk(world, 0, "a", domain, SETLK, RANGE_UNLOCK, 0, 0), 0);
    }
    world_free(world);
}

static void mandatory_locking_is_refused_with_its_reason(void)
{
    struct fixture *fx;
    check_equal(fixture_try(&xlator_features_locks,
                            (const char *[]){ "mandatory-locking", "forced", NULL }, &fx),
                -EOPNOTSUPP);
    fx = fixture_new(&xlator_features_locks, (const char *[]){ "mandatory-locking", "off", NULL });
    check_equal(fixture_reconfigure(fx, (const char *[]){ "notify-contention", "yes", NULL }), 0);
    fixture_free(fx);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(one_owners_ranges_split_merge_and_change_type, ALL),
    FIBER_CASE(a_part_taken_again_stays_one_lock, REAL),
    FIBER_CASE(the_ends_of_ranges_are_exact, REAL),
    FIBER_CASE(getlk_tells_who_is_in_the_way, REAL),
    FIBER_CASE(an_owner_is_a_client_and_its_word, REAL),
    FIBER_CASE(random_locks_agree_with_a_table_of_bytes, PLAIN_ONLY),
    FIBER_CASE(waiters_are_granted_in_order, ALL),
    FIBER_CASE(who_can_be_granted_is_granted, ALL),
    FIBER_CASE(a_downgrade_lets_readers_in, ALL),
    FIBER_CASE(an_interrupted_wait_ends_with_eintr, REAL),
    FIBER_CASE(an_interrupt_races_a_grant, REAL),
    FIBER_CASE(interrupts_from_another_lane_race_grants, REAL),
    FIBER_CASE(a_client_that_goes_takes_its_locks_and_waiters_along, ALL),
    FIBER_CASE(flush_drops_the_owners_and_only_those, REAL),
    FIBER_CASE(an_fds_end_drops_what_was_locked_through_it, REAL),
    FIBER_CASE(rings_of_two_and_three_are_refused, ALL),
    FIBER_CASE(a_ring_through_one_of_several_readers_is_refused, ALL),
    FIBER_CASE(a_ring_over_two_files_is_refused, REAL),
    FIBER_CASE(looking_for_rings_is_bounded, PLAIN_ONLY),
    FIBER_CASE(inodelk_keeps_domains_apart, REAL),
    FIBER_CASE(inodelk_is_unlocked_as_it_was_locked, REAL),
    FIBER_CASE(entrylk_locks_names_or_all_of_them, REAL),
    FIBER_CASE(a_waiter_for_a_name_gets_it, ALL),
    FIBER_CASE(lookups_are_told_of_locks_when_they_ask, REAL),
    FIBER_CASE(active_locks_name_their_clients, REAL),
    FIBER_CASE(flock_and_fcntl_do_not_see_each_other, REAL),
    FIBER_CASE(a_wait_is_given_up_from_afar, REAL),
    FIBER_CASE(thousands_of_locks_come_and_go, PLAIN_ONLY),
    FIBER_CASE(a_clients_locks_are_bounded, PLAIN_ONLY),
    FIBER_CASE(domains_do_not_pile_up, PLAIN_ONLY),
    FIBER_CASE(mandatory_locking_is_refused_with_its_reason, PLAIN_ONLY),
};

int main(void)
{
    return on_backends(cases, ARRAY_SIZE(cases));
}
