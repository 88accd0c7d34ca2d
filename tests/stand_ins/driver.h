// Shared by the parts of the stand-in for libcuda.so.1: settings, the current GPU, and operations of streams.
#ifndef TESTS_CUDA_STAND_IN_DRIVER_H
#define TESTS_CUDA_STAND_IN_DRIVER_H

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <sys/types.h>

namespace stand_in {

extern std::mutex lock;              // guards all state that calls change
extern double clock_ms;              // the counter that gives all times
extern thread_local int current_gpu; // -1: without a context
extern thread_local int captures;    // number of captures that this thread has begun and not ended

extern bool has_imported; // memory of another process

// The value of a setting in STAND_IN; "" if it has none; NULL: STAND_IN lacks the setting.
const char *setting(const char *name);
// The value as a number, or `otherwise`.
int number(const char *name, int otherwise);

// The n-th number of a setting, from 0; the last one if there are fewer; `otherwise` without the setting.
int number_of(const char *name, int n, int otherwise);

// Whether a setting is the rank of this process in Open MPI.
bool is_rank(const char *name);

// The index of a GPU in the machine; `device` is its index among the GPUs that this process may use.
int place_of(CUdevice device);

// Appends an operation to a stream, or to its capture; `run` is called when the operation is the first one.
CUresult enqueue(CUstream stream, std::function<void()> run);

// Waits until a stream has no operation left; NULL: all streams of the current GPU.
CUresult drain(CUstream stream);

// For calls that are not allowed during a capture: invalidates the capture of this thread. Returns whether
// there was one.
bool spoils_capture();

// The size of a GPU's memory.
size_t all_bytes();

// The place of mapped memory in a file, which has no byte of it elsewhere. The file is -1 for other memory.
// The caller holds `lock`, and does not close the file.
struct InFile {
    int file;
    off_t at;
};
InFile in_file(CUdeviceptr address, size_t bytes);

// Whether memory of the host is pinned. The caller holds `lock`.
bool is_pinned(const void *memory, size_t bytes);

} // namespace stand_in

// Return an error from a call that needs a context, or that is not allowed during a capture.
#define REFUSE_WITHOUT_CONTEXT                                                                               \
    if (current_gpu < 0) return CUDA_ERROR_INVALID_CONTEXT
#define REFUSE_IN_CAPTURE                                                                                    \
    if (captures > 0 && spoils_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

#endif
