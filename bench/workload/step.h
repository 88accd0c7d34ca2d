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

// The times of one action.
struct note {
    uint64_t begin_ns;    // of the action
    uint64_t launch_ns;   // begins to launch its work: on itself, on another thread or on a GPU
    uint64_t launched_ns; // ends to launch it
    uint64_t work_ns;     // the GEMM begins
    uint64_t work_end_ns; // it ends
    uint64_t end_ns;
    uint64_t cpu_ns;  // of the GEMM, or NO_CPU
    bool is_recorded; // a profiler recorded its work: see struct work
};

// What ran on a GPU for an action, as a profiler recorded it.
enum work_kind { WORK_KERNEL, WORK_MEMCPY, WORK_MEMSET };
struct work {
    size_t action;
    enum work_kind kind;
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
    bool is_recorded;               // by a profiler: `works` has all that ran, by action
    struct work *works;
    size_t work_count, work_room;
};

// Extends the times of an action by a work of it: of a GEMM, or, with a `span`, of a collective.
static inline void note_work(struct note *note, struct span *span, const struct work *work) {
    uint64_t *begin = span != NULL ? &span->begin_ns : &note->work_ns;
    uint64_t *end = span != NULL ? &span->end_ns : &note->work_end_ns;
    if (!note->is_recorded || work->begin_ns < *begin) *begin = work->begin_ns;
    if (!note->is_recorded || work->end_ns > *end) *end = work->end_ns;
    note->is_recorded = true;
}

// Keeps a work. False: out of memory.
bool step_keep_work(struct step_notes *notes, const struct work *work);

// Sorts by action, and the works of an action by their beginning.
void step_sort_works(struct step_notes *notes);

// Runs a step, with `notes` if it is noted. Returns its time in nanoseconds.
uint64_t step_run(const struct program *program, const struct multiplier *multiplier, struct comm_pool *pool,
                  enum step_mode mode, struct step_notes *notes);

#endif
