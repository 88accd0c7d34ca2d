// The input of a pass, or of a trial: a file with a line `pass` and requests (protocol.h), which rank 0 reads
// and sends to all ranks.
//
//   pass samples=20 warm_up=5 seed=7 sync=pass nodes=1
//   measure op=allgather dtype=bfloat16 count=512 strategies=MPI,DIRECT
//
// Without `nodes` the ranks may be on any number of them. On GPUs consecutive requests with the same id are
// one op; without ids each request is an op of its own. On the host it always is.
#ifndef BENCH_PASS_INPUT_H
#define BENCH_PASS_INPUT_H

#include "measure/harness.h"

enum sync { SYNC_PASS, SYNC_OP, SYNC_BOTH };

struct pass_input {
    uint32_t samples, warm_up, seed;
    enum sync sync;
    size_t count;
    struct request *requests;
    uint64_t hash; // of the text
};

// Collective. Reads the file on rank 0; the path "-" is its stdin, up to a line `end`. -1 with `reason`, on
// all ranks.
int pass_input_read(struct pass_input *input, const char *path, struct group *group,
                    char reason[REASON_SIZE]);
void pass_input_free(struct pass_input *input);

// Collective. Compares the input, the candidates with their order and parameters, and the libraries of
// plug-ins between all ranks. -1 with `reason` on all ranks if any rank differs.
int pass_input_agree(const struct pass_input *input, struct group *group, char reason[REASON_SIZE]);

#endif
