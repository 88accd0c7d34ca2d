// The matrix that addmm and baddbmm add: it is copied to the result before the product is added to it, as in
// PyTorch if a library does not add by itself.
#ifndef REPLAY_ADDEND_H
#define REPLAY_ADDEND_H

#include "data.h"

// Copies the addend to all of the result, on several threads if it is large.
void copy_addend(const struct gemm *gemm, const struct operands *operands, int threads);

#endif
