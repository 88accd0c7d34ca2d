// Replaces cudnn.c in a build without cuDNN's headers.
#include <stdio.h>

#include "replay/math_library.h"

static int refuse(int threads, char reason[REASON_SIZE]) {
    (void)threads;
    snprintf(reason, REASON_SIZE, "built without cuDNN 9 (its headers)");
    return -1;
}

const struct library library_cudnn = {
    .name = "cudnn", .kinds = 1 << OP_CONVOLUTION, .types = ~0U, .open = refuse};
