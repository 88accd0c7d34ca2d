// What an op moves: how many elements from which rank to which, for a shape of which the larger buffer is
// known, as nccl-tests has sizes.
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <stdbool.h>

#include "strategy.h"

// Uneven shares of an alltoallv: the weight of each destination, repeated over the ranks; four bits each, the
// first lowest, 0: no more.
enum { SPLITS_MAX = 16, SPLITS_BITS = 4, SPLITS_LARGEST = 15 };

// Reads "3:1" and the like. False where it is none.
bool splits_read(const char *text, uint64_t *splits);

// The text of splits, to be read back.
enum { SPLITS_TEXT = SPLITS_MAX * 3 };
void splits_print(uint64_t splits, char text[SPLITS_TEXT]);

// By what the elements of the larger buffer have to be divisible for `ranks` ranks.
size_t traffic_unit(enum op op, uint64_t splits, int ranks);

// The traffic of rank `rank`; `elements` is a multiple of the unit. Not for an allreduce.
void traffic_of(enum op op, uint64_t splits, size_t elements, int rank, int ranks, int root,
                struct traffic *traffic);

#endif
