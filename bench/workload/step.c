// Runs one step; see step.h.
#include "step.h"

#include <stdlib.h>

bool step_keep_activity(struct step_notes *notes, const struct gpu_activity *activity) {
    if (notes->activity_count == notes->activity_capacity) {
        size_t room = notes->activity_capacity > 0 ? 2 * notes->activity_capacity : 64;
        struct gpu_activity *activities = realloc(notes->activities, room * sizeof *activities);
        if (activities == NULL) return false;
        notes->activities = activities;
        notes->activity_capacity = room;
    }
    notes->activities[notes->activity_count++] = *activity;
    return true;
}

static int by_action(const void *a, const void *b) {
    const struct gpu_activity *one = a, *other = b;
    if (one->action != other->action) return one->action < other->action ? -1 : 1;
    return (one->begin_ns > other->begin_ns) - (one->begin_ns < other->begin_ns);
}

void step_sort_activities(struct step_notes *notes) {
    if (notes->activity_count > 0)
        qsort(notes->activities, notes->activity_count, sizeof *notes->activities, by_action);
}

static void act(const struct program *program, const struct multiplier *multiplier, struct comm_pool *pool,
                enum step_mode mode, struct action action) {
    if (action.kind == DO_GEMM) {
        multiplier_run(multiplier, &program->gemms[action.index]);
    } else if (!step_communicates(mode)) {
        return;
    } else if (action.kind == DO_POST) {
        comm_pool_post(pool, action.index);
        if (mode == STEP_SERIAL) comm_pool_await(pool, action.index);
    } else {
        comm_pool_await(pool, action.index);
    }
}

// A reading of this thread's processor time, and when it was requested; 0: there is none.
struct reading {
    uint64_t cpu_ns, read_ns;
};

enum { QUICK_NS = 5000 };

// Returns the time from which the next interval counts. Reading the processor time takes far longer than
// reading the clock (1.3 us instead of 0.05), so two GEMMs in a row share the reading between them. In that
// system call a thread that was computing loses its core to others, and the switches, tens of microseconds,
// are charged to it: a reading that took so long is not used for the next interval, and is repeated once.
static uint64_t begin_reading(struct reading *reading) {
    uint64_t now_ns = clock_ns();
    for (int tries = 0; tries < 2 && now_ns - reading->read_ns > QUICK_NS; tries++) {
        *reading = (struct reading){.read_ns = now_ns, .cpu_ns = thread_cpu_ns()};
        now_ns = clock_ns();
    }
    return now_ns;
}

// The processor time since the reading, limited to the interval: time charged beyond it, until this
// reading was made, was not the interval's work.
static uint64_t end_reading(struct reading *reading, uint64_t end_ns, uint64_t interval_ns) {
    uint64_t before_ns = reading->cpu_ns;
    *reading = (struct reading){.read_ns = end_ns, .cpu_ns = thread_cpu_ns()};
    uint64_t ran_ns = reading->cpu_ns - before_ns;
    return ran_ns < interval_ns ? ran_ns : interval_ns;
}

// `reading`: at the end of the last action, if that was a GEMM.
static void act_and_note(const struct program *program, const struct multiplier *multiplier,
                         struct comm_pool *pool, enum step_mode mode, struct action action, struct note *note,
                         struct reading *reading) {
    bool is_gemm = action.kind == DO_GEMM;
    note->begin_ns = is_gemm ? begin_reading(reading) : clock_ns();
    note->launch_ns = clock_ns();
    note->work_ns = note->launched_ns = clock_ns();
    note->is_recorded = false;
    act(program, multiplier, pool, mode, action);
    note->work_end_ns = clock_ns();
    note->end_ns = clock_ns();
    if (is_gemm)
        note->cpu_ns = end_reading(reading, note->end_ns, note->work_end_ns - note->work_ns);
    else
        *reading = (struct reading){0};
}

// Waits for collectives that are still in progress. `notes`: NULL, or they get the waits.
static void await_rest(const struct program *program, struct comm_pool *pool, struct step_notes *notes) {
    for (int i = 0; i < (int)program->collective_count; i++) {
        if (comm_pool_is_done(pool, i)) continue;
        uint64_t begin_ns = notes != NULL ? clock_ns() : 0;
        comm_pool_await(pool, i);
        if (notes != NULL)
            notes->final_waits[notes->final_wait_count++] = (struct final_wait){begin_ns, clock_ns(), i};
    }
}

uint64_t step_run(const struct program *program, const struct multiplier *multiplier, struct comm_pool *pool,
                  enum step_mode mode, struct step_notes *notes) {
    struct reading reading = {0};
    bool is_noted = step_is_noted(mode);
    comm_pool_set_idle(pool, !step_communicates(mode));
    pool->spans = is_noted ? notes->spans : NULL; // visible to all threads with the first post
    if (is_noted) notes->final_wait_count = 0;
    uint64_t begin_ns = clock_ns();
    for (size_t i = 0; i < program->action_count; i++) {
        if (is_noted)
            act_and_note(program, multiplier, pool, mode, program->actions[i], &notes->notes[i], &reading);
        else
            act(program, multiplier, pool, mode, program->actions[i]);
    }
    if (step_communicates(mode)) await_rest(program, pool, is_noted ? notes : NULL);
    uint64_t end_ns = clock_ns();
    if (is_noted) {
        notes->begin_ns = begin_ns;
        notes->end_ns = end_ns;
    }
    return end_ns - begin_ns;
}
