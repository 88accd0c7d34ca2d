// What steps need of CUPTI's records, and what they lack of them.
#ifndef BENCH_WORKLOAD_GPU_NEEDS_H
#define BENCH_WORKLOAD_GPU_NEEDS_H

#include "gpu_activity.h"

// So often a step is run whose times are outside it, before that is a failure.
enum { STEP_TRIES = 3 };

// Of so many ranks' actions, [rank][action], where one launch of the first one's is a collective of all of
// them: a GEMM has a kernel, and a collective something that ran, where it has something to send or to
// receive.
void gpu_needs_set(enum need needs[], const struct program *program, int ranks, enum step_mode mode);

// Says behind "CUPTI" what the step lacks of that; it stays as it is where that is nothing. True: there are
// but times outside the step, for clocks were read badly; the same step may have good ones the next time.
bool gpu_needs_say(const enum need needs[], const struct program *program, int ranks, char text[],
                   size_t text_size);

#endif
