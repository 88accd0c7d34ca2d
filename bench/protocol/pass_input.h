// The plan of a pass: a file with a line `plan` and requests (protocol.h), which rank 0 reads and sends to
// all ranks.
//
//   plan samples=20 warm_up=5 seed=7 sync=pass
//   measure op=allgather dtype=bfloat16 count=512 strategies=MPI,DIRECT
//
// Consecutive requests with the same id are one op; without ids each request is an op of its own.
#ifndef BENCH_PASS_INPUT_H
#define BENCH_PASS_INPUT_H

#include "measure/harness.h"

enum sync { SYNC_PASS, SYNC_OP, SYNC_BOTH };

struct pass_plan {
    uint32_t samples, warm_up, seed;
    enum sync sync;
    size_t count;
    struct request *cells;
    uint64_t hash; // of its text
};

// Collective. Reads the file on rank 0. -1 with `reason`, on all ranks.
int pass_plan_read(struct pass_plan *plan, const char *path, struct group *group, char reason[REASON_SIZE]);
void pass_plan_free(struct pass_plan *plan);

// Collective. Compares the plan, the candidates with their order and parameters, and the libraries of
// plug-ins of all ranks. -1 with `reason` on all ranks if any rank differs.
int pass_plan_agree(const struct pass_plan *plan, struct group *group, char reason[REASON_SIZE]);

#endif
