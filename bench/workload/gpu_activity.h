// What a GPU did and when, by CUPTI's activity records; CUPTI is loaded when it is asked for.
#ifndef BENCH_WORKLOAD_GPU_ACTIVITY_H
#define BENCH_WORKLOAD_GPU_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A kernel that ran for what `id` was told of; on the clock of clock_ns().
struct gpu_activity {
    uint64_t id, begin_ns, end_ns;
    const char *kernel; // stays
};

// False, with `reason`: it is not there, too old, or held by another profiler.
bool gpu_activity_open(char reason[], size_t reason_size);
void gpu_activity_close(void);

// Between these is recorded; the second returns false where records were lost or it failed.
bool gpu_activity_begin(void);
bool gpu_activity_end(void);

// Between these what is launched is for `id`, of 1 and above.
void gpu_activity_enter(uint64_t id);
void gpu_activity_leave(void);

// Hands over all kernels that were recorded, once.
void gpu_activity_each(void (*take)(void *context, const struct gpu_activity *activity), void *context);

#endif
