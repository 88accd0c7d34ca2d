// Replaces the kernels that bench/cuda compiles, in a build without CUDA's compiler.
#include <stddef.h>

#include "cuda/device/device.h"

const char cuda_kernel_sizes[] = "no number of", cuda_architectures[] = "no GPU";
const bool cuda_is_compiled = false;

const void *cuda_kernels(int tp) {
    (void)tp;
    return NULL;
}
