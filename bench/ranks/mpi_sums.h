// MPI's type and sum for each data type. MPI has no 16-bit floating-point types: these are summed by a
// commutative operation of ours, which rounds at every step.
#ifndef BENCH_MPI_SUMS_H
#define BENCH_MPI_SUMS_H

#include <mpi.h>

#include "elements/kernels.h"

struct mpi_sums {
    MPI_Datatype types[DTYPES];
    MPI_Op ops[DTYPES];
};

// The operations use these kernels, which must be the same for all of a process.
void mpi_sums_make(struct mpi_sums *sums, const struct kernels *kernels);
void mpi_sums_free(struct mpi_sums *sums);

#endif
