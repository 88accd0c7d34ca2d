// What an op moves: how many elements from which rank to which, for a shape of which the larger buffer is
// known, as nccl-tests has sizes.
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <stdbool.h>

#include "strategy.h"

// Uneven shares of an alltoallv: the weight of each destination, repeated over the ranks; four bits each, the
// first lowest, of a weight and one more, so that 0 is: no more. Who has weight 0 gets nothing from anybody.
enum { SPLITS_MAX = 16, SPLITS_BITS = 4, SPLITS_LARGEST = 14 };

// Reads "3:1" and the like. False where it is none, and where all weights are 0.
bool splits_read(const char *text, uint64_t *splits);

// The text of splits, to be read back.
enum { SPLITS_TEXT = SPLITS_MAX * 3 };
void splits_print(uint64_t splits, char text[SPLITS_TEXT]);

// By what the elements of the larger buffer have to be divisible for `ranks` ranks.
size_t traffic_unit(enum op op, uint64_t splits, int ranks);

// Whether anybody gets anything: the weights that `ranks` ranks have are not all 0.
bool traffic_moves(enum op op, uint64_t splits, int ranks);

// The traffic of rank `rank`; `elements` is a multiple of the unit. Not for an allreduce.
void traffic_of(enum op op, uint64_t splits, size_t elements, int rank, int ranks, int root,
                struct traffic *traffic);

#endif
