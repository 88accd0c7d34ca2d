// What plug-ins get on a GPU; see ground.h of the bench.
#ifndef BENCH_CUDA_GROUND_H
#define BENCH_CUDA_GROUND_H

#include "ground.h"

extern const struct ground cuda_ground;

#endif
