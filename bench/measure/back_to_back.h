// Back-to-back calls, as nccl-tests times them: without a barrier in between, and with one time for all of
// them.
#ifndef BENCH_BACK_TO_BACK_H
#define BENCH_BACK_TO_BACK_H

#include "harness.h"

struct back_to_back {
    uint32_t iterations, warm_up; // calls; with a budget at most `iterations`
    double budget_us;             // for the iterations of a candidate; 0: no limit
    bool check;                   // verify one call before the timed ones, and the last timed one
};

// Collective. Measures one cell with every wanted candidate, one after another. `results` is as in
// harness_measure, but its only time is the mean over the calls of the slowest rank. -1: see group_failure.
int back_to_back_measure(struct harness *harness, const struct request *request,
                         const struct back_to_back *how, struct result results[]);

#endif
