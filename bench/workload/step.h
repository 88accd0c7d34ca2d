// One step of a workload, as the thread that computes does it.
//
// GEMMS: the GEMMs alone. SERIAL: each collective is waited for as soon as it is handed over. OVERLAPPED: it
// is waited for when its result is needed, at the end of the step at the latest. All three are the same
// program on the same threads. TRACED is OVERLAPPED, and GEMMS_TRACED is GEMMS, with notes of when what was
// done: they say what GEMMs take beside communication, and without it, by the same clock.
#ifndef BENCH_WORKLOAD_STEP_H
#define BENCH_WORKLOAD_STEP_H

#include "crew.h"
#include "multiply.h"

enum step_mode { STEP_GEMMS, STEP_SERIAL, STEP_OVERLAPPED, STEP_TRACED, STEP_GEMMS_TRACED, STEP_MODES };

static inline bool step_is_noted(enum step_mode mode) {
    return mode == STEP_TRACED || mode == STEP_GEMMS_TRACED;
}

static inline bool step_communicates(enum step_mode mode) {
    return mode != STEP_GEMMS && mode != STEP_GEMMS_TRACED;
}

#define NO_CPU UINT64_MAX // nobody's processor time

// What the computing thread noted of one action.
struct note {
    uint64_t begin_ns;    // of the action
    uint64_t launch_ns;   // hands its work over, to itself, to another thread or to a GPU
    uint64_t launched_ns; // that is done
    uint64_t work_ns;     // the GEMM begins
    uint64_t work_end_ns; // it ends
    uint64_t end_ns;
    uint64_t cpu_ns; // of the GEMM, or NO_CPU
    bool is_told;    // a profiler told of its work: see struct work
};

// What ran on a GPU for an action, as a profiler told.
enum work_kind { WORK_KERNEL, WORK_MEMCPY, WORK_MEMSET };
struct work {
    size_t action;
    enum work_kind kind;
    uint64_t begin_ns, end_ns;
    uint64_t launch_ns, launched_ns; // the call that launched it; 0: not told
    const char *name;                // of a kernel; NULL: not told
    uint32_t context;
    int32_t grid[3], block[3]; // of a kernel, as the next two
    uint32_t registers, shared_bytes;
    uint64_t bytes; // of a copy
};

// At a step's end it waited for this collective.
struct rest {
    uint64_t begin_ns, end_ns;
    int collective;
};

// What was noted of one step.
struct step_notes {
    uint64_t begin_ns, end_ns;
    struct rest *rests; // in order, with room for each collective
    int rest_count;     // 0: nothing was still under way, or streams waited for it
    struct note *notes; // by action
    struct span *spans; // [collective][thread]; of a step that communicates
    bool is_told;       // by a profiler: what ran is in `works`, by action, and nothing else did
    struct work *works;
    size_t work_count, work_room;
};

// Adds what ran for an action to what was noted of it: of a GEMM, or, with a `span`, of a collective.
static inline void note_work(struct note *note, struct span *span, const struct work *work) {
    uint64_t *begin = span != NULL ? &span->begin_ns : &note->work_ns;
    uint64_t *end = span != NULL ? &span->end_ns : &note->work_end_ns;
    if (!note->is_told || work->begin_ns < *begin) *begin = work->begin_ns;
    if (!note->is_told || work->end_ns > *end) *end = work->end_ns;
    note->is_told = true;
}

// Keeps what ran. False: there is no memory for it.
bool step_keep_work(struct step_notes *notes, const struct work *work);

// By action; of one in the order in which it ran.
void step_sort_works(struct step_notes *notes);

// Runs the step; `notes` for one that is noted. Returns how long it took, in nanoseconds.
uint64_t step_run(const struct program *program, const struct multiplier *multiplier, struct crew *crew,
                  enum step_mode mode, struct step_notes *notes);

#endif
