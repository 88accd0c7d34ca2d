// One step of a workload on the computing thread.
//
// GEMMS: the GEMMs alone. SERIAL: waits for each collective as soon as it is posted. OVERLAPPED: waits for it
// when its result is needed, at the latest at the end of the step. All three are the same program on the same
// threads. TRACED is OVERLAPPED, and GEMMS_TRACED is GEMMS, with notes of the times of all actions: they show
// the time of GEMMs with and without communication, by the same clock.
#ifndef BENCH_WORKLOAD_STEP_H
#define BENCH_WORKLOAD_STEP_H

#include "comm_threads.h"
#include "multiply.h"

enum step_mode { STEP_GEMMS, STEP_SERIAL, STEP_OVERLAPPED, STEP_TRACED, STEP_GEMMS_TRACED, STEP_MODES };

static inline bool step_is_noted(enum step_mode mode) {
    return mode == STEP_TRACED || mode == STEP_GEMMS_TRACED;
}

static inline bool step_communicates(enum step_mode mode) {
    return mode != STEP_GEMMS && mode != STEP_GEMMS_TRACED;
}

#define NO_CPU UINT64_MAX // no processor time

// The times of one action on the host's clock. Its work is what it launches: a GEMM or a collective.
struct note {
    uint64_t begin_ns;    // of the action
    uint64_t launch_ns;   // the launch of its work begins: on this thread, on another one or on a GPU
    uint64_t launched_ns; // the launch ends
    uint64_t work_ns;     // the GEMM begins
    uint64_t work_end_ns; // it ends
    uint64_t end_ns;
    uint64_t cpu_ns;  // of the GEMM, or NO_CPU
    bool is_recorded; // a profiler recorded its work
};

// A kernel, a copy or a memset that a GPU ran for an action, as a profiler recorded it.
enum activity_kind { ACTIVITY_KERNEL, ACTIVITY_MEMCPY, ACTIVITY_MEMSET };
struct gpu_activity {
    size_t action;
    enum activity_kind kind;
    uint64_t begin_ns, end_ns;
    uint64_t launch_ns, launched_ns; // the call that launched it; 0: not recorded
    const char *name;                // of a kernel; NULL: not recorded
    uint32_t context;
    int32_t grid[3], block[3]; // of a kernel, as the next two
    uint32_t registers, shared_bytes;
    uint64_t bytes; // of a copy
};

// A wait for a collective at a step's end.
struct final_wait {
    uint64_t begin_ns, end_ns;
    int collective;
};

// The notes of one step.
struct step_notes {
    uint64_t begin_ns, end_ns;
    struct final_wait *final_waits; // in order, with room for each collective
    int final_wait_count;           // 0: nothing was still in progress, or streams waited for it
    struct note *notes;             // by action
    struct span *spans;             // [collective][thread]; of a step that communicates
    bool is_recorded;               // by a profiler: `activities` has all that ran, by action
    struct gpu_activity *activities;
    size_t activity_count, activity_capacity;
};

// Extends the times of an action's work by an activity: of a GEMM in `note`, of a collective in `span`.
static inline void extend_note(struct note *note, struct span *span, const struct gpu_activity *activity) {
    uint64_t *begin = span != NULL ? &span->begin_ns : &note->work_ns;
    uint64_t *end = span != NULL ? &span->end_ns : &note->work_end_ns;
    if (!note->is_recorded || activity->begin_ns < *begin) *begin = activity->begin_ns;
    if (!note->is_recorded || activity->end_ns > *end) *end = activity->end_ns;
    note->is_recorded = true;
}

// Keeps a copy. False: out of memory.
bool step_keep_activity(struct step_notes *notes, const struct gpu_activity *activity);

// Sorts by action, and the activities of an action by their beginning.
void step_sort_activities(struct step_notes *notes);

// Runs a step, with `notes` if it is noted. Returns its time in nanoseconds.
uint64_t step_run(const struct program *program, const struct multiplier *multiplier, struct comm_pool *pool,
                  enum step_mode mode, struct step_notes *notes);

#endif
