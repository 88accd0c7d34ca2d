// What a pass is to measure: a file of a line `plan` and requests (protocol.h), which every rank gets from
// rank 0.
//
//   plan samples=20 warm_up=5 seed=7 sync=pass
//   measure op=allgather dtype=bfloat16 count=512 strategies=MPI,DIRECT
//
// Requests of one id, one after the other, are of one op; without ids each is.
#ifndef BENCH_TUNE_PLAN_H
#define BENCH_TUNE_PLAN_H

#include "measure/harness.h"

enum sync { SYNC_PASS, SYNC_OP, SYNC_BOTH };

struct tune_plan {
    uint32_t samples, warm_up, seed;
    enum sync sync;
    size_t count;
    struct request *cells;
    uint64_t hash; // of its text
};

// Collective: reads the file on rank 0. -1 and `reason`, on all ranks alike.
int tune_plan_read(struct tune_plan *plan, const char *path, struct group *group, char reason[REASON_SIZE]);
void tune_plan_free(struct tune_plan *plan);

// Collective. Compares what all ranks are about to do: the plan, the candidates with their order and
// parameters, the libraries of plug-ins. -1 and `reason` on all ranks where any rank differs.
int tune_plan_agree(const struct tune_plan *plan, struct group *group, char reason[REASON_SIZE]);

#endif
