// Calls with input and output in one buffer.
#ifndef BENCH_IN_PLACE_H
#define BENCH_IN_PLACE_H

#include "elements/strategy.h"

// Whether input and output of the call are in place, as NCCL defines it.
bool call_is_in_place(const struct call *call, int rank);

// Sets the addresses of input and output to be in place in `buffer`, which has the size of the larger of
// them. Copies no data.
void call_put_in_place(struct call *call, int rank, void *buffer);

#endif
