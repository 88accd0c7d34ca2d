// Streams and their events; see gpu_streams.h.
#include "gpu_streams.h"

#include <stdlib.h>

enum { LEAST_READINGS = 4, MOST_READINGS = 32 };

struct gpu_streams gpu_streams;

const char *gpu_streams_load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW); // which is loaded already
    return functions_look_up(library, FUNCTION_NAMES(GPU_STREAM_FUNCTIONS), &gpu_streams);
}

CUresult gpu_streams_make_first(CUstream *stream) {
    int least = 0, greatest = 0;
    CUresult result = gpu_streams.cuCtxGetStreamPriorityRange(&least, &greatest);
    if (result != CUDA_SUCCESS) return result;
    return gpu_streams.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, greatest);
}

CUresult gpu_events_make(const struct cuda_driver *driver, struct gpu_events **events, size_t count) {
    *events = calloc(count + 1, sizeof **events);
    CUresult result = *events != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = driver->cuEventCreate(&(*events)[i].begin, CU_EVENT_DEFAULT);
        if (result == CUDA_SUCCESS) result = driver->cuEventCreate(&(*events)[i].end, CU_EVENT_DEFAULT);
    }
    return result;
}

bool gpu_clock_is_close(struct gpu_clock *clock, uint64_t width_ns) {
    if (clock->readings++ == 0 || width_ns < clock->least_ns) clock->least_ns = width_ns;
    if (clock->readings < LEAST_READINGS) return false;
    return width_ns <= 2 * clock->least_ns || clock->readings == MOST_READINGS;
}
