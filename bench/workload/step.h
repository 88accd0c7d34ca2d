// One step of a workload, as the thread that computes does it.
//
// GEMMS: the GEMMs alone. SERIAL: each collective is waited for as soon as it is handed over. OVERLAPPED: it
// is waited for when its result is needed, at the end of the step at the latest. All three are the same
// program on the same threads; TRACED is OVERLAPPED with notes of when what was done.
#ifndef BENCH_WORKLOAD_STEP_H
#define BENCH_WORKLOAD_STEP_H

#include "blas.h"
#include "workload/crew.h"

enum step_mode { STEP_GEMMS, STEP_SERIAL, STEP_OVERLAPPED, STEP_TRACED, STEP_MODES };

#define NO_CPU UINT64_MAX // nobody's processor time

// What the computing thread noted of one action.
struct note {
    uint64_t begin_ns;    // of the action
    uint64_t launch_ns;   // hands its work over, to itself, to another thread or to a GPU
    uint64_t launched_ns; // that is done
    uint64_t work_ns;     // the GEMM begins
    uint64_t work_end_ns; // it ends
    uint64_t end_ns;
    uint64_t cpu_ns;    // of the GEMM, or NO_CPU
    const char *kernel; // what ran, where a profiler told; NULL: who writes the trace says
};

// What was noted of one step.
struct step_notes {
    uint64_t begin_ns, end_ns;
    struct note *notes; // by action
    struct span *spans; // [collective][thread]
};

// Runs the step; `notes` for STEP_TRACED. Returns how long it took, in nanoseconds.
uint64_t step_run(const struct program *program, const struct blas *blas, struct crew *crew,
                  enum step_mode mode, struct step_notes *notes);

#endif
