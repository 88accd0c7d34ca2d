// Whether what a step left behind is right: every GEMM, by a product with a random vector that is exact in
// doubles (Freivalds, Fast Probabilistic Algorithms, 1979: what is wrong passes with a chance below 1 in
// 900), and every element of every collective, against MPI's blocking one. Whatever their dtype, elements are
// compared as floats, which hold them, and all sums of a step, exactly.
#ifndef BENCH_WORKLOAD_VERIFY_H
#define BENCH_WORKLOAD_VERIFY_H

#include <mpi.h>

#include "program.h"

// Collective, while nothing is under way. Returns how many are wrong on this rank, -1 without memory; `first`
// names the first of them.
int verify(const struct program *program, MPI_Comm comm, char first[PROGRAM_REASON]);

#endif
