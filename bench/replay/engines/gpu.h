// The GPU that replays run on, for the libraries that compute there.
#ifndef REPLAY_GPU_H
#define REPLAY_GPU_H

#include "libraries/cuda_driver.h"
#include "libraries/functions.h"

// The workspace of calls.
enum { WORKSPACE_BYTES = 64 << 20 };

struct gpu {
    const struct cuda_driver *driver; // NULL: there is none
    CUstream stream;                  // of all calls
    CUdeviceptr workspace, one;       // WORKSPACE_BYTES; and a float of 1
};

extern struct gpu gpu;

// Opens the GPU with this number for the calling thread; once in a process. -1, with a reason.
int gpu_open(int number, char reason[], size_t reason_size);

// Waits until the stream is idle. false, with a reason of REASON_SIZE: the GPU failed.
bool gpu_finish(char reason[]);

// A library that is loaded at run time, by its environment variable, or by its name.
struct gpu_library {
    const char *variable, *soname, *title; // "GENTABLES_CUBLASLT", "libcublasLt.so.13", "cuBLASLt"
    const char *const *names;              // of its functions
    void *functions;                       // where they go (libraries/functions.h)
};

// Loads the library. -1, with a reason.
int gpu_load(const struct gpu_library *wanted, char reason[], size_t reason_size);

// Loads cuBLASLt, without using a GPU. -1 with `reason`.
int cublaslt_load(char reason[], size_t reason_size);

// The GPU address of loaded data.
CUdeviceptr gpu_address(const void *data);

#endif
