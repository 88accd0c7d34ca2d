// Functions of the driver that only steps of workloads need: streams with priorities, which wait for events.
#ifndef BENCH_WORKLOAD_GPU_STREAMS_H
#define BENCH_WORKLOAD_GPU_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "libraries/cuda_driver.h"
#include "libraries/functions.h"

#define GPU_STREAM_FUNCTIONS(X)                                                                              \
    X(cuCtxGetStreamPriorityRange)                                                                           \
    X(cuStreamCreateWithPriority)                                                                            \
    X(cuStreamSynchronize)                                                                                   \
    X(cuStreamWaitEvent)

struct gpu_streams {
    GPU_STREAM_FUNCTIONS(FUNCTION_MEMBER)
};
extern struct gpu_streams gpu_streams;

// Looks them up. NULL; or the name of one that the driver lacks.
const char *gpu_streams_load(void);

// Makes a stream of the highest priority for free multiprocessors.
CUresult gpu_streams_make_first(CUstream *stream);

// The events around work on a stream; other streams wait for `end`.
struct gpu_events {
    CUevent begin, end;
};

// An event and the host's clock read after it are one moment only if the thread kept its processor between
// them. So both are repeated until gpu_clock_is_close: `width_ns` is the time from before the event was
// recorded until the clock was read. Zero at first.
struct gpu_clock {
    uint64_t least_ns;
    int readings;
};
bool gpu_clock_is_close(struct gpu_clock *clock, uint64_t width_ns);

CUresult gpu_events_make(const struct cuda_driver *driver, struct gpu_events **events, size_t count);

#endif
