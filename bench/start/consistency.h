// Checks that all ranks are the same bench: the same protocol, binary, list of candidates and options.
// Otherwise they would wait for each other forever, or time one strategy under the name of another. And that
// their processors run the same kernels, since a time is that of the slowest rank.
#ifndef BENCH_CONSISTENCY_H
#define BENCH_CONSISTENCY_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

// What must be the same; a difference in one explains differences in the later ones.
enum trait { TRAIT_PROTOCOL, TRAIT_BINARY, TRAIT_CANDIDATES, TRAIT_OPTIONS, TRAITS };

enum { CONSISTENCY_REASON_SIZE = 512, ISA_SIZE = 32 };

// The hashes that ranks exchange. This struct never changes, since ranks of different versions exchange it,
// too.
struct identity {
    uint64_t traits[TRAITS];
};

// The rank that differs from most others (at a tie, from rank 0), and its trait that differs; -1: none.
int consistency_find_odd_rank(const struct identity identities[], int count, enum trait *trait);

// The first rank with kernels of another instruction set than rank 0; -1: none.
int consistency_find_other_isa(const char isas[][ISA_SIZE], int count);

// Collective; must be the first collective call of the ranks. -1: `reason` names the rank, on all ranks.
int consistency_check(MPI_Comm comm, int argc, char **argv, char reason[], size_t reason_size);

#endif
