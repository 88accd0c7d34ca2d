// CUPTI's records of a step: what a step needs of them, and what they lack.
#ifndef BENCH_WORKLOAD_GPU_RECORDS_H
#define BENCH_WORKLOAD_GPU_RECORDS_H

#include "gpu_activity.h"
#include "workload/engine.h"

// If records have times outside their step, it runs again, in total at most so often; then it has failed.
enum { STEP_TRIES = 3 };

// Of `ranks` that share a GPU, or of one. Actions are numbered [rank][action], and a collective of all of
// them is the first one's.
struct gpu_records {
    const struct program *program;
    int ranks;
    bool are_taken;       // of noted steps; false: events time their actions
    enum need *needs;     // by action
    bool are_outside;     // records lack only times within the step, because the clocks were read badly
    char lack[TEXT_SIZE]; // what the last step's records lack, to follow the word "CUPTI"; "": nothing
};

// False: out of memory.
bool gpu_records_open(struct gpu_records *records, const struct program *program, int ranks);
void gpu_records_close(struct gpu_records *records); // and ends CUPTI, where they are taken

// Whether this step is recorded.
static inline bool gpu_records_step(const struct gpu_records *records, enum step_mode mode) {
    return records->are_taken && step_is_noted(mode);
}

// Before a step; begins to record it where `mode` is recorded. False, with `reason`: CUPTI fails.
bool gpu_records_begin(struct gpu_records *records, enum step_mode mode, char reason[PROGRAM_REASON]);

// After a step between these two times (of clock_ns()), when the GPU is idle. Returns whether nothing is
// missing: each GEMM has a kernel, and each collective something that ran, unless it neither sends nor
// receives.
bool gpu_records_end(struct gpu_records *records, enum step_mode mode, uint64_t begin_ns, uint64_t end_ns);

#endif
