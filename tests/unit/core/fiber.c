/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "backends.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/lane.h"
#include "core/sync.h"

/* --- misuse: each in a child of its own, which must die and say why --------------------------- */

static struct fiber *victim;
static pthread_mutex_t plain_mutex = PTHREAD_MUTEX_INITIALIZER;

static void parks_with_a_plain_mutex(void *arg)
{
    (void)arg;
    HOLD(&plain_mutex);
    fiber_park("what never comes");
}

static void yields_with_a_plain_mutex(void *arg)
{
    (void)arg;
    HOLD(&plain_mutex);
    fiber_yield();
}

static void ends_with_a_plain_mutex(void *arg)
{
    (void)arg;
    hold_begin(&plain_mutex);
}

static void parks_for_long(void *arg)
{
    (void)arg;
    victim = fiber_self();
    fiber_park("long");
    fiber_park("longer");
}

static void wakes_twice(void *arg)
{
    (void)arg;
    check_equal(fiber_start("victim", parks_for_long, NULL), 0);
    fiber_yield();
    fiber_wake(victim);
    fiber_wake(victim);
}

static void wakes_a_running_fiber_twice(void *arg)
{
    (void)arg;
    fiber_wake(fiber_self());
    fiber_wake(fiber_self());
}

static void is_short(void *arg)
{
    (void)arg;
    victim = fiber_self();
}

static void wakes_the_dead(void *arg)
{
    (void)arg;
    check_equal(fiber_start("short", is_short, NULL), 0);
    fiber_yield();
    fiber_wake(victim);
}

static struct fmutex fiber_mutex;
static void ends_with_an_fmutex(void *arg)
{
    (void)arg;
    fmutex_init(&fiber_mutex);
    fmutex_lock(&fiber_mutex);
}

static struct frwlock fiber_rwlock;
static void ends_with_a_frwlock(void *arg)
{
    (void)arg;
    frwlock_init(&fiber_rwlock);
    frwlock_read(&fiber_rwlock);
}

static void locks_twice(void *arg)
{
    (void)arg;
    fmutex_init(&fiber_mutex);
    fmutex_lock(&fiber_mutex);
    fmutex_lock(&fiber_mutex);
}

static void unlocks_what_is_not_locked(void *arg)
{
    (void)arg;
    fmutex_init(&fiber_mutex);
    fmutex_unlock(&fiber_mutex);
}

static unsigned recurse(unsigned depth)
{
    volatile char room[1024];
    memset((char *)(uintptr_t)room, (int)depth, sizeof(room));
    return depth == 0 ? 0 : recurse(depth - 1) + (unsigned)room[depth % sizeof(room)];
}

static void overflows(void *arg)
{
    fiber_install_overflow_handler();
    *(unsigned *)arg = recurse(100000);
}

static void *park_on_a_thread(void *arg)
{
    (void)arg;
    fiber_park("nothing");
    return NULL;
}

static void parks_off_fibers(void *arg)
{
    (void)arg;
    pthread_t thread;
    pthread_create(&thread, NULL, park_on_a_thread, NULL);
    pthread_join(thread, NULL);
}

static void starts_misuse(void *arg)
{
    unsigned sink = 0;
    check_equal(fiber_start("misuser", (fiber_fn *)(uintptr_t)arg, &sink), 0);
    env_sleep(NS_PER_S);
    lanes_stop();
}

/* Runs fn as a fiber "misuser" in a child: its way to die, and what it said on stderr. */
static int run_in_child(fiber_fn *fn, char *said, size_t size)
{
    int ends[2], status;
    check_equal(pipe(ends), 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        if (lanes_run(starts_misuse, (void *)(uintptr_t)fn) < 0)
            _exit(3);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], said + length, size - 1 - length)) > 0)
        length += (size_t)got;
    said[length] = 0;
    close(ends[0]);
    check_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void must_abort(fiber_fn *fn, const char *first, const char *second)
{
    char said[8192];
    int status = run_in_child(fn, said, sizeof(said));
    if (!strstr(said, first) || !strstr(said, second))
        fprintf(stderr, "said: %s\n", said);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, first));
    assert_non_null(strstr(said, second));
}

static void misuse_aborts_with_names(void **state)
{
    (void)state;
    must_abort(parks_with_a_plain_mutex, "\"misuser\" parks while it holds a plain mutex",
               "what never comes");
    must_abort(yields_with_a_plain_mutex, "\"misuser\" parks while it holds a plain mutex",
               "yield");
    must_abort(ends_with_a_plain_mutex, "\"misuser\" ends with a plain mutex held", "");
    must_abort(wakes_twice, "\"victim\" is woken twice", "long");
    must_abort(wakes_a_running_fiber_twice, "\"misuser\" is woken twice", "");
    must_abort(wakes_the_dead, "\"short\" is woken after its end", "");
    must_abort(ends_with_an_fmutex, "\"misuser\" ends with a fiber lock held", "");
    must_abort(ends_with_a_frwlock, "\"misuser\" ends with a fiber lock held", "");
    must_abort(locks_twice, "\"misuser\" locks an fmutex that it has locked", "");
    must_abort(unlocks_what_is_not_locked, "\"misuser\" unlocks an fmutex that it has not locked",
               "");
    must_abort(parks_off_fibers, "a thread that is no fiber parks", "nothing");
}

static void overflow_is_named(void **state)
{
    (void)state;
    if (UNDER_SANITIZER)
        skip(); /* the sanitizer has a handler of its own */
    char said[8192];
    int status = run_in_child(overflows, said, sizeof(said));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_non_null(strstr(said, "fiber \"misuser\" overflows its stack"));
}

/* --- fibers by thousands ---------------------------------------------------------------------- */

enum {
    MANY = UNDER_SANITIZER == 2 ? 1000 : 5000
};
static unsigned ended;

static void sleeps_and_ends(void *arg)
{
    env_sleep((uint64_t)(uintptr_t)arg % 20 * NS_PER_MS);
    ended++;
}

static void thousands_run_to_their_end(void)
{
    ended = 0;
    uint64_t before = fiber_count();
    for (unsigned i = 0; i < MANY; i++)
        check_equal(fiber_start("many", sleeps_and_ends, (void *)(uintptr_t)i), 0);
    check_equal(fiber_count(), before + MANY);
    while (ended < MANY)
        env_sleep(NS_PER_MS);
    check_equal(fiber_count(), before);
}

static void parks_once(void *arg)
{
    struct fiber **self = arg;
    *self = fiber_self();
    fiber_park("test");
    ended++;
}

static void limit_of_fibers_is_an_error(void)
{
    if (UNDER_SANITIZER)
        return;
    static struct fiber *fibers[FIBERS_MAX];
    unsigned started = 0;
    ended = 0;
    int ret;
    while ((ret = fiber_start("crowd", parks_once, &fibers[started])) == 0)
        started++;
    check_equal(ret, -ENOMEM);
    check(started > 20000);
    fiber_yield();
    for (unsigned i = 0; i < started; i++)
        fiber_wake(fibers[i]);
    fiber_yield();
    check_equal(ended, started);
    check_equal(fiber_start("after", is_short, NULL), 0);
}

/* --- wakes ------------------------------------------------------------------------------------ */

static void wake_before_park_is_remembered(void)
{
    fiber_wake(fiber_self());
    fiber_park("remembered");
    fiber_wake(fiber_self());
    check_equal(fiber_park_until("remembered", env_now_ns() + NS_PER_S), 0);
    check_equal(fiber_park_until("nobody", env_now_ns() + NS_PER_MS), -ETIMEDOUT);
}

static void wakes_while_it_sleeps(void *arg)
{
    fiber_wake(arg);
}

static void wake_during_an_inner_wait_is_kept(void)
{
    uint64_t start_ns = env_now_ns();
    check_equal(fiber_start("waker", wakes_while_it_sleeps, fiber_self()), 0);
    env_sleep(10 * NS_PER_MS);
    check(env_now_ns() - start_ns >= 10 * NS_PER_MS);
    fiber_park("the wake that came while asleep");
}

enum {
    PLAYERS = 16,
    ROUNDS = UNDER_SANITIZER ? 500 : 5000
};
struct player {
    struct fiber *fiber;
    struct player *next;
    unsigned rounds;
};
static struct player players[PLAYERS];
static _Atomic unsigned players_ready, players_done;

/* A token goes round a ring of fibers on all lanes. */
static void plays(void *arg)
{
    struct player *player = arg;
    player->fiber = fiber_self();
    players_ready++;
    for (unsigned i = 0; i < ROUNDS; i++) {
        fiber_park("token");
        player->rounds++;
        if (i + 1 < ROUNDS || player->next != &players[0]) /* it has had all of its rounds */
            fiber_wake(player->next->fiber);
    }
    players_done++;
}

static void *wakes_first(void *arg)
{
    fiber_wake(((struct player *)arg)->fiber);
    return NULL;
}

static void cross_lane_wakes_lose_nothing(void)
{
    unsigned lanes = lanes_grow(4);
    check(lanes == 4 || env_kind() == ENV_SIM);
    players_ready = players_done = 0;
    for (unsigned i = 0; i < PLAYERS; i++) {
        players[i] = (struct player){ .next = &players[(i + 1) % PLAYERS] };
        check_equal(fiber_start_on(lane_get(i % lanes), "player", plays, &players[i]), 0);
    }
    while (players_ready < PLAYERS)
        env_sleep(NS_PER_MS);
    pthread_t thread; /* the first wake comes from a thread that is none of ours */
    check_equal(pthread_create(&thread, NULL, wakes_first, &players[0]), 0);
    pthread_join(thread, NULL);
    while (players_done < PLAYERS)
        env_sleep(NS_PER_MS);
    for (unsigned i = 0; i < PLAYERS; i++)
        check_equal(players[i].rounds, ROUNDS);
}

/* Every fiber of a storm is woken by some other lane at about the time at which its park ends. */
struct storm {
    struct fiber *fiber;
    _Atomic unsigned wakes;
    unsigned seen;
};
static struct storm storms[8];
static _Atomic unsigned storms_done;

static void is_stormed(void *arg)
{
    struct storm *storm = arg;
    storm->fiber = fiber_self();
    players_ready++;
    while (storm->seen < ROUNDS) {
        int ret = fiber_park_until("storm", env_now_ns() + storm->seen % 3 * 20 * NS_PER_US);
        if (ret == 0) {
            storm->seen++;
            storm->wakes--;
        } else
            check_equal(ret, -ETIMEDOUT);
    }
    storms_done++;
}

static void storms_on(void *arg)
{
    struct storm *storm = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (storm->wakes > 0)
            fiber_yield();
        storm->wakes++;
        fiber_wake(storm->fiber);
    }
    storms_done++;
}

static void wake_and_timeout_race_to_one_result(void)
{
    unsigned lanes = lanes_grow(4);
    players_ready = storms_done = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(storms); i++) {
        storms[i] = (struct storm){ .seen = 0 };
        check_equal(fiber_start_on(lane_get(i % lanes), "stormed", is_stormed, &storms[i]), 0);
    }
    while (players_ready < ARRAY_SIZE(storms))
        env_sleep(NS_PER_MS);
    for (unsigned i = 0; i < ARRAY_SIZE(storms); i++)
        check_equal(fiber_start_on(lane_get((i + 1) % lanes), "storm", storms_on, &storms[i]), 0);
    while (storms_done < 2 * ARRAY_SIZE(storms))
        env_sleep(NS_PER_MS);
}

/* --- timers ----------------------------------------------------------------------------------- */

static unsigned fired[100], fired_count;

static void fires(void *arg)
{
    fired[fired_count++] = (unsigned)(uintptr_t)arg;
}

static void timers_fire_in_order(void)
{
    struct env_timer *timers[100];
    fired_count = 0;
    uint64_t unit_ns = UNDER_SANITIZER ? NS_PER_MS : 200 * NS_PER_US;
    uint64_t first_ns = env_now_ns() + 300 * NS_PER_MS;
    for (unsigned i = 0; i < 100; i++) {
        unsigned after = i * 37 % 100;
        check_equal(env_timer_start(first_ns + after * unit_ns - env_now_ns(), fires,
                                    (void *)(uintptr_t)after, &timers[i]),
                    0);
    }
    for (unsigned i = 0; i < 100; i++)
        if (i * 37 % 100 % 3 == 0)
            check(env_timer_cancel(timers[i]));
    env_sleep(300 * NS_PER_MS + 150 * unit_ns);
    check_equal(fired_count, 66);
    for (unsigned i = 1; i < fired_count; i++) {
        check(fired[i - 1] < fired[i]);
        check(fired[i] % 3 != 0);
    }
    for (unsigned i = 0; i < 100; i++)
        if (i * 37 % 100 % 3 != 0)
            check(!env_timer_cancel(timers[i]));
}

struct cancel_job {
    struct env_timer *timer;
    _Atomic bool was_armed;
};

static void cancels(void *arg)
{
    struct cancel_job *job = arg;
    job->was_armed = env_timer_cancel(job->timer);
}

static void timer_can_be_cancelled_from_another_lane(void)
{
    struct cancel_job job = { .was_armed = false };
    unsigned lanes = lanes_grow(2);
    fired_count = 0;
    check_equal(env_timer_start(20 * NS_PER_MS, fires, NULL, &job.timer), 0);
    check_equal(fiber_start_on(lane_get(lanes - 1), "canceller", cancels, &job), 0);
    env_sleep(40 * NS_PER_MS);
    check(job.was_armed);
    check_equal(fired_count, 0);
}

/* --- workers ---------------------------------------------------------------------------------- */

static _Atomic unsigned hops;
static unsigned hop_fibers;

static void work(void *arg)
{
    check(!fiber_self());
    (*(unsigned *)arg)++;
    hops++;
}

static void hops_often(void *arg)
{
    (void)arg;
    struct fiber *self = fiber_self();
    unsigned n = 0;
    for (unsigned i = 0; i < 50; i++)
        hop(pool_default(), work, &n);
    check_equal(n, 50);
    check(fiber_self() == self);
    hop_fibers--;
}

static void many_fibers_hop(void)
{
    hops = 0;
    hop_fibers = 200;
    for (unsigned i = 0; i < 200; i++)
        check_equal(fiber_start("hopper", hops_often, NULL), 0);
    while (hop_fibers > 0)
        env_sleep(NS_PER_MS);
    check_equal(hops, 200 * 50);
}

static _Atomic unsigned at_work, at_work_most;

static void slow_work(void *arg)
{
    (void)arg;
    unsigned now = ++at_work;
    at_work_most = MAX(at_work_most, now);
    env_sleep(100 * NS_PER_MS);
    at_work--;
}

static void hops_slowly(void *arg)
{
    hop(arg, slow_work, NULL);
    hop_fibers--;
}

static void pool_runs_as_many_as_it_has_threads(void)
{
    struct pool *pool;
    check_equal(pool_new("test", 2, &pool), 0);
    at_work_most = 0;
    hop_fibers = 4;
    for (unsigned i = 0; i < 4; i++)
        check_equal(fiber_start("slow", hops_slowly, pool), 0);
    while (hop_fibers > 0)
        env_sleep(NS_PER_MS);
    check_equal(at_work_most, 2);
    pool_free(pool);
}

static void away_lane_is_counted(void)
{
    struct lane_stats before, after;
    lanes_get_stats(&before);
    uint64_t start_ns = env_now_ns();
    while (env_now_ns() - start_ns < 15 * NS_PER_MS)
        ;
    fiber_yield();
    lanes_get_stats(&after);
    check(after.aways > before.aways);
}

static const struct fiber_case cases[] = {
    FIBER_CASE(thousands_run_to_their_end, ALL),
    FIBER_CASE(limit_of_fibers_is_an_error, ALL),
    FIBER_CASE(wake_before_park_is_remembered, ALL),
    FIBER_CASE(wake_during_an_inner_wait_is_kept, ALL),
    FIBER_CASE(cross_lane_wakes_lose_nothing, REAL),
    FIBER_CASE(wake_and_timeout_race_to_one_result, REAL),
    FIBER_CASE(timers_fire_in_order, ALL),
    FIBER_CASE(timer_can_be_cancelled_from_another_lane, ALL),
    FIBER_CASE(many_fibers_hop, ALL),
    FIBER_CASE(pool_runs_as_many_as_it_has_threads, REAL),
    FIBER_CASE(away_lane_is_counted, REAL),
};

int main(void)
{
    const struct CMUnitTest misuse[] = {
        cmocka_unit_test(misuse_aborts_with_names),
        cmocka_unit_test(overflow_is_named),
    };
    check_equal(env_init("plain", 0), 0);
    int failed = cmocka_run_group_tests_name("misuse", misuse, NULL, NULL);
    return failed + on_backends(cases, ARRAY_SIZE(cases));
}
