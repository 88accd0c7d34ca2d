// What a GPU did and when, by CUPTI's activity records. CUPTI is loaded by gpu_activity_open.
//
//   gpu_activity_begin, then for each action gpu_activity_enter, its launches, gpu_activity_leave; then
//   gpu_activity_launched, and when all is done gpu_activity_end and gpu_activity_each.
#ifndef BENCH_WORKLOAD_GPU_ACTIVITY_H
#define BENCH_WORKLOAD_GPU_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workload/step.h"

// False, with `reason`: CUPTI is absent, too old, or used by another profiler.
bool gpu_activity_open(char reason[], size_t reason_size);
void gpu_activity_close(void);

// Begins a recording; records of earlier launches are ignored from now on.
bool gpu_activity_begin(void);

// Launches between these two calls belong to `id`, from 0.
void gpu_activity_enter(uint32_t id);
void gpu_activity_leave(void);

// Called after the last launch: from now on calls of the driver are not recorded, because waiting makes many
// of them.
void gpu_activity_launched(void);

// What must be recorded for an id. NEEDS_TIME: its records are complete, but their times are outside its
// step.
enum need { NEEDS_NOTHING, NEEDS_ACTIVITY, NEEDS_KERNEL, NEEDS_TIME };

// Ends a recording, when the GPU is idle; waits for late records. Afterwards an id still has a need if it
// lacks that record, or has a record without times, or with times not between these two (of clock_ns()).
// False: records cannot be read, or are incomplete; `reason` continues a sentence after "CUPTI".
struct gpu_activity_needs {
    enum need *needs; // by id
    size_t count;
    uint64_t begin_ns, end_ns;
};
bool gpu_activity_end(const struct gpu_activity_needs *needs, char reason[], size_t reason_size);

// Calls `take` for all recorded kernels and copies, once no id lacks one, with the id as the action and times
// of clock_ns(). Names are valid until gpu_activity_close.
void gpu_activity_each(void (*take)(void *context, const struct gpu_activity *activity), void *context);

#endif
