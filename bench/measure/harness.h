// Measures cells one after another with all candidates that support them. Candidates are verified before they
// are timed, and again on the timed calls; their calls are interleaved in random order and start together on
// all ranks; the largest time over the ranks counts.
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "setup.h"

// Collective. Measures one cell. `results` has candidate_count() entries, and is filled on rank 0 for the
// wanted candidates (others have candidate NULL). Its texts are valid until the next call. -1: see
// group_failure.
int harness_measure(struct harness *harness, const struct request *request, struct result results[]);

#endif
