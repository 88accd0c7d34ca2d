// Whether all ranks are one bench: the same protocol, binary, list of candidates and options. Ranks that are
// not would wait for each other for ever, or time one thing under the name of another.
#ifndef BENCH_ALIKE_H
#define BENCH_ALIKE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

// What has to be alike, first the one that explains the others.
enum trait { TRAIT_PROTOCOL, TRAIT_BINARY, TRAIT_CANDIDATES, TRAIT_OPTIONS, TRAITS };

enum { ALIKE_REASON_SIZE = 512 };

// What a rank says of itself. Every version of the bench has to exchange the same, so this never changes.
struct identity {
    uint64_t traits[TRAITS];
};

// The rank that differs from most others (at a tie, from rank 0), and in what; -1: none does.
int consistency_find_odd_rank(const struct identity identities[], int count, enum trait *trait);

// Collective, and the first thing that ranks do together. -1 with `reason`, alike on all ranks, that names
// the rank.
int consistency_check(MPI_Comm comm, int argc, char **argv, char reason[], size_t reason_size);

#endif
