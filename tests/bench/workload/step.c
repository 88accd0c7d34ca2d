// Traced steps: a GEMM's processor time does not include other time that is charged to the thread, and waits
// at a step's end are noted, if there are any. Clocks are simulated where times are compared.
#include "../../unit_test.h"

#include "workload/step.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GEMMS = 4 };

// ---- clocks -------------------------------------------------------------------------------------

static bool is_made_up;
static uint64_t now_ns, cpu_ns; // of both clocks; reading them takes time
static int cpu_readings;
static int slow_reading; // this one takes long: the thread loses its core, and its CPU time includes that
enum { CLOCK_TAKES = 50, CPU_TAKES = 1300, CHARGED_BEFORE = 30000, AWAY = 40000, CHARGED_AFTER = 20000 };

static void pass(uint64_t ns, uint64_t of_cpu_ns) {
    now_ns += ns;
    cpu_ns += of_cpu_ns;
}

static uint64_t read_made_up(clockid_t clock) {
    if (clock != CLOCK_THREAD_CPUTIME_ID) {
        pass(CLOCK_TAKES, CLOCK_TAKES);
        return now_ns;
    }
    bool is_slow = ++cpu_readings == slow_reading;
    if (is_slow) pass(CHARGED_BEFORE + AWAY, CHARGED_BEFORE);
    pass(CPU_TAKES / 2, CPU_TAKES / 2);
    uint64_t read_ns = cpu_ns;
    if (is_slow) pass(AWAY + CHARGED_AFTER, CHARGED_AFTER);
    pass(CPU_TAKES / 2, CPU_TAKES / 2);
    return read_ns;
}

// In place of the C library's.
int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!is_made_up) return (int)syscall(SYS_clock_gettime, clock, time);
    uint64_t ns = read_made_up(clock);
    *time = (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    return 0;
}

// ---- processor time -----------------------------------------------------------------------------

// A GEMM takes as many microseconds as it has rows; the thread runs for as many of them as it has columns.
static void sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    (void)order, (void)trans_a, (void)trans_b, (void)k, (void)alpha, (void)a, (void)lda;
    (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    pass((uint64_t)m * 1000, (uint64_t)n * 1000);
}

static struct note notes[GEMMS];

// A step of only GEMMs that is noted, with simulated clocks; a later one is the same.
static void run_gemms(int slow) {
    static const size_t shapes[GEMMS][2] = {{100, 100}, {200, 120}, {80, 80}, {300, 10}};
    static struct gemm gemms[GEMMS];
    static struct action actions[GEMMS];
    for (int i = 0; i < GEMMS; i++) {
        gemms[i] = (struct gemm){.dtype = DTYPE_FLOAT32, .m = shapes[i][0], .n = shapes[i][1]};
        actions[i] = (struct action){DO_GEMM, i};
    }
    const struct program program = {
        .gemms = gemms, .gemm_count = GEMMS, .actions = actions, .action_count = GEMMS};
    const struct blas blas = {.sgemm = sgemm};
    const struct multiplier multiplier = {.blas = &blas};
    struct comm_pool pool = {.wait = WAIT_FUTEX};
    struct step_notes step = {.notes = notes};
    now_ns = 1000000000;
    cpu_ns = 1000;
    cpu_readings = 0;
    slow_reading = slow;
    memset(notes, 0xff, sizeof notes);
    is_made_up = true;
    step_run(&program, &multiplier, &pool, STEP_GEMMS_TRACED, &step);
    is_made_up = false;
    for (int i = 0; i < GEMMS; i++) {
        uint64_t interval_ns = notes[i].work_end_ns - notes[i].work_ns;
        assert_in_range(interval_ns, gemms[i].m * 1000, gemms[i].m * 1000 + CLOCK_TAKES);
        assert_in_range(notes[i].cpu_ns, gemms[i].n * 1000, gemms[i].n * 1000 + 2 * (uint64_t)CPU_TAKES);
        assert_true(notes[i].cpu_ns <= interval_ns);
    }
}

TEST(processor_time_is_read_once_between_two_gemms) {
    run_gemms(0);
    assert_int_equal(cpu_readings, GEMMS + 1);
}

TEST(what_a_thread_is_charged_for_between_gemms_is_no_gemms) {
    run_gemms(1); // before the first
    assert_int_equal(cpu_readings, GEMMS + 2);
    run_gemms(2); // between the first, which has run all the time, and the second, which has not run
    assert_int_equal(cpu_readings, GEMMS + 2);
    run_gemms(4);
}

// ---- the end of a step --------------------------------------------------------------------------

static struct comm_pool pool;

static void begin(struct slice *slice) {
    slice->active = true;
}

// The collective ends when the computing thread waits for it.
static bool progress(struct slice *slice) {
    slice->active = atomic_load(&pool.done_events.sleeping) == 0;
    if (slice->active) sched_yield();
    return true;
}

// A step with these two actions, or the first of them, on collectives 0 and 1; returns its notes.
static struct step_notes step_of(size_t count, struct action actions[], enum step_mode mode) {
    static struct event_count event_counts[MAX_THREADS];
    static struct group group = {.rank = 0, .size = 1};
    static struct span spans[2 * MAX_THREADS];
    static struct final_wait final_waits[2];
    static const struct transport_kind kind = {.begin = begin, .progress = progress};
    static struct transport transport = {
        .kind = &kind, .group = &group, .channels = 1, .threads = 1, .event_counts = event_counts};
    static struct collective collectives[2];
    struct program program = {
        .collectives = collectives, .collective_count = 2, .actions = actions, .action_count = count};
    struct step_notes step = {
        .notes = notes, .spans = spans, .final_waits = final_waits, .final_wait_count = 7};
    assert_int_equal(comm_pool_start(&pool, &transport, &program, WAIT_FUTEX), 0);
    step_run(&program, NULL, &pool, mode, &step);
    comm_pool_end(&pool);
    return step;
}

static struct action handed_over[] = {{DO_POST, 1}, {DO_AWAIT, 1}}; // and, or not, waited for

TEST(what_is_waited_for_at_the_end_is_noted) {
    struct step_notes step = step_of(1, handed_over, STEP_TRACED);
    assert_int_equal(step.final_wait_count, 1);
    assert_int_equal(step.final_waits[0].collective, 1);
    assert_true(step.final_waits[0].begin_ns >= notes[0].end_ns &&
                step.final_waits[0].begin_ns < step.final_waits[0].end_ns &&
                step.final_waits[0].end_ns <= step.end_ns);
}

// The first ends only after a thread sleeps for it; the second may have ended by then.
TEST(each_that_is_waited_for_at_the_end_is_noted) {
    struct action both[] = {{DO_POST, 0}, {DO_POST, 1}};
    struct step_notes step = step_of(2, both, STEP_TRACED);
    assert_in_range(step.final_wait_count, 1, 2);
    assert_int_equal(step.final_waits[0].collective, 0);
    if (step.final_wait_count == 1) return;
    assert_int_equal(step.final_waits[1].collective, 1);
    assert_true(step.final_waits[1].begin_ns > step.final_waits[0].end_ns &&
                step.final_waits[1].end_ns <= step.end_ns);
}

TEST(nothing_is_noted_where_nothing_is_waited_for_at_the_end) {
    assert_int_equal(step_of(2, handed_over, STEP_TRACED).final_wait_count, 0);
    assert_int_equal(step_of(2, handed_over, STEP_GEMMS_TRACED).final_wait_count, 0);
    step_of(1, handed_over, STEP_OVERLAPPED); // waits, and notes nothing
}
