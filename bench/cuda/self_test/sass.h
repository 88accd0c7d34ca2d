// The instructions of compiled kernels, as cuobjdump of a CUDA toolkit lists them.
#ifndef BENCH_CUDA_SASS_H
#define BENCH_CUDA_SASS_H

#include <stddef.h>

enum sass_end { SASS_RIGHT, SASS_NOT_CHECKED, SASS_WRONG };

// Checks that each kernel of an image (cuda_kernels) has the instructions for sm_`sm` that its waits, flags
// and messages need. Sets the number of kernels if they are right, else `reason`.
enum sass_end sass_check(const void *image, int sm, int *kernels, char reason[], size_t reason_size);

#endif
