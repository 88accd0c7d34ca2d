// Calls in a row, as nccl-tests times them: no waiting for each other in between, one time for all.
#ifndef BENCH_BACK_TO_BACK_H
#define BENCH_BACK_TO_BACK_H

#include "harness.h"

struct back_to_back {
    uint32_t iterations, warm_up; // calls; iterations at most, where there is a budget
    double budget_us;             // for the iterations of a candidate; 0: as long as they take
    bool check;                   // before, and after the last one
};

// Collective. Measures one cell with every candidate that `request` wants, one after another; `results` is as
// in harness_measure, but the only time is the mean over the calls, of the slowest rank. -1: see
// group_failure.
int back_to_back_measure(struct harness *harness, const struct request *request,
                         const struct back_to_back *how, struct result results[]);

#endif
