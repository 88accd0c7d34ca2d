// Measures one cell after another with all candidates that apply: verified before they are timed and again on
// the timed calls, interleaved in random order, started together; the largest time over the ranks counts.
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "setup.h"

// Collective. Measures one cell; `results` has candidate_count() places and is filled on rank 0, for
// those that were wanted (others have candidate NULL). Texts in it live until the next call. -1: see
// group_failure.
int harness_measure(struct harness *harness, const struct request *request, struct result results[]);

#endif
