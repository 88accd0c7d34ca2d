// Verifies the results of a step: every GEMM, by a product with a random vector that is exact in doubles
// (Freivalds, Fast Probabilistic Algorithms, 1979: a wrong result passes with a probability below 1 in 900),
// and every element of every collective, against MPI's blocking one. Elements of all dtypes are compared as
// floats, which represent them, and all sums of a step, exactly.
#ifndef BENCH_WORKLOAD_VERIFY_H
#define BENCH_WORKLOAD_VERIFY_H

#include <mpi.h>

#include "program.h"

// Collective, while no collective is in progress. Returns how many results are wrong on this rank, -1: out of
// memory; `first` names the first of them.
int verify(const struct program *program, MPI_Comm comm, char first[PROGRAM_REASON]);

#endif
