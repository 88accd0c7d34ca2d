// What a GPU did and when, by CUPTI's activity records; CUPTI is loaded when it is asked for.
//
//   gpu_activity_begin, then for each action gpu_activity_enter, its launches, gpu_activity_leave; then
//   gpu_activity_launched, and when all is done gpu_activity_end and gpu_activity_each.
#ifndef BENCH_WORKLOAD_GPU_ACTIVITY_H
#define BENCH_WORKLOAD_GPU_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workload/step.h"

// False, with `reason`: it is not there, too old, or held by another profiler.
bool gpu_activity_open(char reason[], size_t reason_size);
void gpu_activity_close(void);

// Recording begins; what is told of earlier launches from now on is nobody's.
bool gpu_activity_begin(void);

// Between these what is launched is for `id`, of 0 and above.
void gpu_activity_enter(uint32_t id);
void gpu_activity_leave(void);

// Nothing more is launched: calls of the driver are not recorded any more, for those that ask whether all is
// done are many.
void gpu_activity_launched(void);

// What has to have been recorded for an id; the last: its records are there, with times that are not of its
// step.
enum need { NEEDS_NOTHING, NEEDS_WORK, NEEDS_KERNEL, NEEDS_TIME };

// Recording ends, when the GPU has nothing to do any more; waits for records that are late. An id has a need
// afterwards where it lacks that record, or has one without times or with none between these two (of
// clock_ns()). False where what was recorded cannot be had or is not all there; `reason` goes on behind
// "CUPTI".
struct gpu_activity_wish {
    enum need *needs; // by id
    size_t count;
    uint64_t begin_ns, end_ns;
};
bool gpu_activity_end(const struct gpu_activity_wish *wish, char reason[], size_t reason_size);

// Hands over all kernels and copies that were recorded, once no id lacks one: with the id in the place of the
// action, on the clock of clock_ns(). Names stay until it is closed.
void gpu_activity_each(void (*take)(void *context, const struct work *work), void *context);

#endif
