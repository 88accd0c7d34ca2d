// What of the driver only steps of workloads call: streams of a priority, that wait for each other's events.
#ifndef BENCH_WORKLOAD_GPU_STREAMS_H
#define BENCH_WORKLOAD_GPU_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "libraries/cuda_driver.h"

#define GPU_STREAM_FUNCTIONS(X)                                                                              \
    X(cuCtxGetStreamPriorityRange)                                                                           \
    X(cuStreamCreateWithPriority)                                                                            \
    X(cuStreamSynchronize)                                                                                   \
    X(cuStreamWaitEvent)

struct gpu_streams {
#define MEMBER(name) __typeof__(&(name)) name;
    GPU_STREAM_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct gpu_streams gpu_streams;

// Looks them up. NULL; or the one that the driver has not.
const char *gpu_streams_load(void);

// The stream that goes first where multiprocessors get free.
CUresult gpu_streams_make_first(CUstream *stream);

// The events around something on a stream; `end` is waited for, too.
struct gpu_events {
    CUevent begin, end;
};

// An event and the host's clock read behind it are one moment only where the thread kept its processor
// between them. So both are taken again until this says that they lie close: `width_ns` from before the event
// was recorded until the clock was read. Begins as zero.
struct gpu_clock {
    uint64_t least_ns;
    int readings;
};
bool gpu_clock_is_close(struct gpu_clock *clock, uint64_t width_ns);

CUresult gpu_events_make(const struct cuda_driver *driver, struct gpu_events **events, size_t count);

#endif
