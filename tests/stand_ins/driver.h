// What the parts of the stand-in for libcuda.so.1 share: its settings, its GPU of the moment, and the way
// into its streams.
#ifndef TESTS_CUDA_STAND_IN_DRIVER_H
#define TESTS_CUDA_STAND_IN_DRIVER_H

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <mutex>

namespace stand_in {

extern std::mutex lock;              // of all that calls change
extern double clock_ms;              // the counter that times come from
extern thread_local int current_gpu; // -1: without a context
extern thread_local int captures;    // that this thread has begun

// The value of a word of STAND_IN; "" for a word without one; NULL: it is not there.
const char *setting(const char *name);
int number(const char *name, int otherwise);

// The n-th of the numbers of a word of STAND_IN, from 0, or the last one.
int number_of(const char *name, int n, int otherwise);

// Whether this process is the rank of Open MPI's that a setting names.
bool is_rank(const char *name);

// The place of a GPU in the machine, where not all are seen.
int place_of(CUdevice device);

// What is to run when it is its turn in a stream, or goes into its capture.
CUresult enqueue(CUstream stream, std::function<void()> run);

// Waits until nothing is left to do in a stream, or, with NULL, on this GPU.
CUresult drain(CUstream stream);

// A call that is not allowed while this thread captures: it spoils the capture. Whether there is one.
bool spoils_capture();

// The memory of a GPU.
size_t all_bytes();

} // namespace stand_in

// Returns from a call of the driver that has no business here.
#define REFUSE_WITHOUT_CONTEXT                                                                               \
    if (current_gpu < 0) return CUDA_ERROR_INVALID_CONTEXT
#define REFUSE_IN_CAPTURE                                                                                    \
    if (captures > 0 && spoils_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

#endif
