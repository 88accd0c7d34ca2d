// What a GPU did and when, by CUPTI's activity records; CUPTI is loaded when it is asked for.
#ifndef BENCH_WORKLOAD_GPU_ACTIVITY_H
#define BENCH_WORKLOAD_GPU_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workload/step.h"

// False, with `reason`: it is not there, too old, or held by another profiler.
bool gpu_activity_open(char reason[], size_t reason_size);
void gpu_activity_close(void);

// Between these is recorded; the second returns false where records were lost or it failed.
bool gpu_activity_begin(void);
bool gpu_activity_end(void);

// Between these what is launched is for `id`, of 1 and above.
void gpu_activity_enter(uint64_t id);
void gpu_activity_leave(void);

// Hands over all kernels and copies that were recorded, once, those of an id in the order of their launches:
// with the id in the place of the action, on the clock of clock_ns(). Names stay.
void gpu_activity_each(void (*take)(void *context, const struct work *work), void *context);

#endif
