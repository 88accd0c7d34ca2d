// The traffic of an op, for a shape that gives the size of the larger buffer, as in nccl-tests.
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <stdbool.h>

#include "strategy.h"

// The splits of an alltoallv: a weight per destination, repeated over the ranks. Each takes four bits, the
// first the lowest, with weight + 1, so that 0 ends the list. A rank of weight 0 receives nothing.
enum { SPLITS_MAX = 16, SPLITS_BITS = 4, SPLITS_LARGEST = 14 };

// Reads splits such as "3:1". False for other texts, and if all weights are 0.
bool splits_read(const char *text, uint64_t *splits);

// Writes splits as text that splits_read reads.
enum { SPLITS_TEXT = SPLITS_MAX * 3 };
void splits_print(uint64_t splits, char text[SPLITS_TEXT]);

// The elements of the larger buffer must be a multiple of this number for `ranks` ranks.
size_t traffic_unit(enum op op, uint64_t splits, int ranks);

// Whether any rank receives anything: not all of the weights of `ranks` ranks are 0.
bool traffic_moves(enum op op, uint64_t splits, int ranks);

// The traffic of rank `rank`; `elements` is a multiple of the unit. Not for an allreduce.
void traffic_of(enum op op, uint64_t splits, size_t elements, int rank, int ranks, int root,
                struct traffic *traffic);

#endif
