// A thread that waits for a processor, or a suspended program, gets more time; a thread that runs gets none.
#define HAS_OWN_MAIN
#include "../../unit_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ranks/waited_time.h"

static const uint64_t LOOK = WAITED_TIME_UPDATE_NS, FOR_LONG = 3600000000000u;
enum { SKIPPED = 77 };

static bool not_counted; // this kernel does not count how long a thread waits for a processor

TEST(time_that_was_looked_at_counts) {
    struct waited_time waited;
    waited_time_begin(&waited, 100, 7);
    for (uint64_t i = 1; i <= 500; i++) waited_time_update(&waited, 100 + i * LOOK, 7);
    assert_true(waited.had_ns == 500 * LOOK);
}

TEST(time_without_a_processor_counts_half) {
    struct waited_time waited;
    waited_time_begin(&waited, 0, 0);
    for (uint64_t i = 1; i <= 500; i++) waited_time_update(&waited, i * LOOK, i * LOOK);
    assert_true(waited.had_ns == 250 * LOOK);
    waited_time_update(&waited, 501 * LOOK, 500 * LOOK);
    assert_true(waited.had_ns == 251 * LOOK);
}

TEST(time_between_two_checks_counts_little) {
    struct waited_time waited;
    waited_time_begin(&waited, 0, 0);
    waited_time_update(&waited, FOR_LONG, 0);
    assert_true(waited.had_ns == 2 * LOOK);
    waited_time_update(&waited, FOR_LONG + LOOK,
                       2 * LOOK); // the thread waited longer than the interval lasted
    assert_true(2 * waited.had_ns == 5 * LOOK);
}

// The total nanoseconds that this thread has waited for a processor, as the kernel counts them.
static uint64_t waited_ns(void) {
    unsigned long long ran = 0, waited = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu %llu", &ran, &waited) != 2) waited = 0;
    fclose(file);
    return waited;
}

static uint64_t ran_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void *spin_until(void *argument) {
    const atomic_bool *over = argument;
    while (!atomic_load(over)) {
    }
    return NULL;
}

// Keeps this thread and another one on one processor until this one has waited for the processor, or has run
// for two seconds.
static void wait_for_a_processor(void) {
    cpu_set_t all, one;
    pthread_t other;
    atomic_bool over = false;
    uint64_t waited = waited_ns(), ran = ran_ns();
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(pthread_create(&other, NULL, spin_until, &over), 0);
    while (waited_ns() == waited && ran_ns() - ran < 2000000000u) {
    }
    atomic_store(&over, true);
    pthread_join(other, NULL);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(who_waited_for_a_processor_has_been_starved) {
    uint64_t first = waited_time_starved_ns(gettid());
    wait_for_a_processor();
    uint64_t before = waited_ns(), starved = waited_time_starved_ns(gettid()), after = waited_ns();
    if (after == 0) {
        not_counted = true;
        skip();
    }
    assert_true(starved > first);
    assert_true(before <= starved && starved <= after);
}

TEST(a_missing_thread_was_not_starved) {
    assert_true(waited_time_starved_ns(-1) == 0);
}

int main(void) {
    int failed = run_unit_tests();
    if (failed != 0 || !not_counted) return failed;
    puts("skipped: this kernel does not count how long a thread waits for a processor");
    return SKIPPED;
}
