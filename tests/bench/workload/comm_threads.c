// Communicating threads poll for work if they wait by polling, but sleep while a step has none for them; work
// that is posted then is still done.
#include "../../unit_test.h"

#include "workload/comm_threads.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 2 };

static const double PATIENCE_S = 60; // for events that happen at once, on a busy machine

static _Atomic int begun;

static void begin(struct slice *slice) {
    atomic_fetch_add(&begun, 1);
    slice->active = false;
}

static bool progress(struct slice *slice) {
    (void)slice;
    return false;
}

// 'S' for a thread that sleeps, 'R' for one that polls, as the kernel sees it.
static char state_of(int tid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    return strrchr(line, ')')[2];
}

static bool comes_to(const struct comm_pool *pool, char state) {
    for (uint64_t since_ns = clock_ns(); (double)(clock_ns() - since_ns) * 1e-9 < PATIENCE_S; sched_yield()) {
        int there = 0;
        for (int i = 0; i < pool->size; i++) there += state_of(pool->threads[i].tid) == state;
        if (there == pool->size) return true;
    }
    return false;
}

TEST(threads_sleep_without_work) {
    static struct event_count event_counts[MAX_THREADS];
    static struct group group = {.rank = 0, .size = 1};
    const struct transport_kind kind = {.begin = begin, .progress = progress};
    struct transport transport = {.kind = &kind,
                                  .group = &group,
                                  .channels = THREADS,
                                  .threads = THREADS,
                                  .event_counts = event_counts};
    struct collective collective = {0};
    struct program program = {.collectives = &collective, .collective_count = 1};
    const enum wait waits[] = {WAIT_SPIN, WAIT_YIELD, WAIT_FUTEX};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct comm_pool pool;
        assert_int_equal(comm_pool_start(&pool, &transport, &program, waits[i]), 0);
        assert_true(comes_to(&pool, waits[i] == WAIT_FUTEX ? 'S' : 'R'));
        comm_pool_set_idle(&pool, true);
        assert_true(comes_to(&pool, 'S'));
        atomic_store(&begun, 0);
        comm_pool_post(&pool, 0);
        comm_pool_await(&pool, 0);
        assert_int_equal(atomic_load(&begun), THREADS);
        comm_pool_set_idle(&pool, false);
        assert_true(comes_to(&pool, waits[i] == WAIT_FUTEX ? 'S' : 'R'));
        comm_pool_post(&pool, 0);
        comm_pool_await(&pool, 0);
        assert_int_equal(atomic_load(&begun), 2 * THREADS);
        comm_pool_end(&pool);
    }
}
