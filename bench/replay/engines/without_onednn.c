// Replaces onednn.c in a build without oneDNN's headers.
#include <stdio.h>

#include "replay/math_library.h"

static int refuse(int threads, char reason[REASON_SIZE]) {
    (void)threads;
    snprintf(reason, REASON_SIZE, "built without oneDNN (Debian: libdnnl-dev)");
    return -1;
}

const struct library library_onednn = {.name = "onednn",
                                       .kinds = 1 << OP_GEMM | 1 << OP_CONVOLUTION,
                                       .types = 1 << FLOAT32 | 1 << BFLOAT16,
                                       .open = refuse};
