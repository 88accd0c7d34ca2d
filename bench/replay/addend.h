// What addmm and baddbmm add, put into the result before the product is added to it: what PyTorch does, too,
// where a library adds nothing by itself.
#ifndef REPLAY_ADDEND_H
#define REPLAY_ADDEND_H

#include "data.h"

// Copies the addend to all of the result; spread over threads where that is worth it.
void place_addend(const struct gemm *gemm, const struct operands *operands, int threads);

#endif
