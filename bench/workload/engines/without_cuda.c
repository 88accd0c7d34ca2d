// Replaces engine_cuda.c and engine_loopback.c in a build without CUDA's headers.
#include <stdio.h>

#include "workload/engine.h"

int gpus_usable(char reason[PROGRAM_REASON]) {
    snprintf(
        reason, PROGRAM_REASON,
        "this gentables-workload was built without CUDA: the headers of 12.8 or later, cuBLASLt and NCCL");
    return 0;
}

static int refuse(const struct engine_setup *setup, void **state, char reason[PROGRAM_REASON]) {
    (void)setup;
    (void)state;
    gpus_usable(reason);
    return -1;
}

const struct engine engine_cuda = {.name = "cuda", .open = refuse};
const struct engine engine_loopback = {.name = "cuda", .open = refuse};
