// Replaces cuda.c in a build without CUDA's headers.
#include <stdio.h>

#include "replay/compute_device.h"

static int refuse(int threads, char reason[REASON_SIZE]) {
    (void)threads;
    snprintf(reason, REASON_SIZE, "built without CUDA (12.8 or later, with the headers of cuBLASLt)");
    return -1;
}

const struct compute_device device_cuda = {.name = "cuda", .open = refuse};
