/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The same seed gives the same order of everything; another seed, another. */
#include "backends.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/sync.h"

static char trace[65536];
static size_t trace_bytes;
static unsigned running;

static void note(const char *what, long n)
{
    int bytes = snprintf(trace + trace_bytes, sizeof(trace) - trace_bytes, "%llu %s %s %ld\n",
                         (unsigned long long)env_now_ns(), fiber_name(fiber_self()), what, n);
    trace_bytes += (size_t)bytes;
    check(trace_bytes < sizeof(trace));
}

static void nothing(void *arg)
{
    (void)arg;
}

static void serves(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char bytes[300];
    ssize_t got;
    while ((got = env_recv(fd, bytes, sizeof(bytes))) > 0) {
        note("got", got);
        hop(pool_default(), nothing, NULL);
        struct iovec iov = { bytes, (size_t)got };
        check_equal(env_send(fd, &iov, 1), got);
    }
    check_equal(env_close(fd), 0);
    running--;
}

static void accepts(void *arg)
{
    int fd;
    while ((fd = env_accept((int)(intptr_t)arg, NULL)) >= 0) {
        running++;
        check_equal(fiber_start("server", serves, (void *)(intptr_t)fd), 0);
    }
    running--;
}

static void calls(void *arg)
{
    int fd = env_connect(arg, NULL, 0);
    check(fd >= 0);
    for (unsigned i = 0; i < 5; i++) {
        char bytes[200];
        uint32_t size;
        env_random(&size, sizeof(size));
        struct iovec iov = { bytes, 1 + size % sizeof(bytes) };
        memset(bytes, (int)i, sizeof(bytes));
        check_equal(env_send(fd, &iov, 1), iov.iov_len);
        check_equal(env_recv_all(fd, &iov, 1), iov.iov_len);
        note("back", (long)iov.iov_len);
    }
    check_equal(env_close(fd), 0);
    running--;
}

static void scene(void *arg)
{
    (void)arg;
    struct env_address address;
    check_equal(env_resolve("server-1", 24007, AF_INET, &address, 1), 1);
    int listener = env_listen(&address, 10);
    check(listener >= 0);
    check_equal(env_listen(&address, 10), -EADDRINUSE);
    running = 1;
    check_equal(fiber_start("accept", accepts, (void *)(intptr_t)listener), 0);
    for (unsigned i = 0; i < 4; i++) {
        running++;
        check_equal(fiber_start(i % 2 ? "odd" : "even", calls, &address), 0);
    }
    while (running > 1)
        env_sleep(NS_PER_MS);
    check_equal(env_shutdown(listener), 0);
    while (running > 0)
        env_sleep(NS_PER_MS);
    check_equal(env_close(listener), 0);
    lanes_stop();
}

static char *play(uint64_t seed)
{
    trace_bytes = 0;
    check_equal(env_init("sim", seed), 0);
    check_equal(lanes_run(scene, NULL), 0);
    return strdup(trace);
}

static void same_seed_same_trace(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 20; seed++) {
        char *first = play(seed), *second = play(seed), *other = play(seed + 1000);
        assert_true(strlen(first) > 500);
        assert_string_equal(first, second);
        assert_string_not_equal(first, other);
        free(first);
        free(second);
        free(other);
    }
}

static void sleeps_for_a_year(void *arg)
{
    uint64_t start_ns = env_now_ns();
    struct timespec start = env_wallclock();
    env_sleep(365 * 86400 * NS_PER_S);
    check_equal(env_now_ns() - start_ns, 365 * 86400 * NS_PER_S);
    check_equal(env_wallclock().tv_sec - start.tv_sec, 365 * 86400);
    *(bool *)arg = true;
    lanes_stop();
}

static void year_passes_at_once(void **state)
{
    (void)state;
    bool is_done = false;
    assert_int_equal(env_init("sim", 1), 0);
    assert_int_equal(lanes_run(sleeps_for_a_year, &is_done), 0);
    assert_true(is_done);
}

static void waits_for_nothing(void *arg)
{
    (void)arg;
    fiber_park("what never comes");
}

static void stuck_simulation_says_who_waits(void **state)
{
    (void)state;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        check_equal(env_init("sim", 1), 0);
        check_equal(lanes_run(waits_for_nothing, NULL), 0);
        _exit(0);
    }
    close(ends[1]);
    char said[4096];
    ssize_t got, length = 0;
    while ((got = read(ends[0], said + length, sizeof(said) - 1 - (size_t)length)) > 0)
        length += got;
    said[length] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, "fiber \"main\" waits for: what never comes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_trace),
        cmocka_unit_test(year_passes_at_once),
        cmocka_unit_test(stuck_simulation_says_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
