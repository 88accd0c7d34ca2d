// The GPU that replays run on, for the libraries that compute there.
#ifndef REPLAY_GPU_H
#define REPLAY_GPU_H

#include "cuda/driver.h"

// What a call may use besides its operands.
enum { WORKSPACE_BYTES = 64 << 20 };

struct gpu {
    const struct cuda_driver *driver; // NULL: there is none
    CUstream stream;                  // of all calls
    CUdeviceptr workspace, ones;      // WORKSPACE_BYTES; and floats of 1, ONES of them
};

enum { ONES = 1 << 20 };

extern struct gpu gpu;

// Opens the GPU with this number for the calling thread; once in a process. -1, with a reason.
int gpu_open(int number, char reason[], size_t reason_size);

// Loads a library by the environment's word for it or by its name. NULL, with a reason.
void *gpu_library(const char *variable, const char *name, char reason[], size_t reason_size);

// The address of memory that was placed.
CUdeviceptr gpu_address(const void *data);

#endif
