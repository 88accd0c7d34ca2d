// See mpi_sums.h.
#include "mpi_sums.h"

// MPI's operations have no argument for a state.
static const struct kernels *sum_kernels;

static void sum_bfloat16(void *in, void *in_out, int *count, MPI_Datatype *type) {
    (void)type;
    sum_kernels->sum[DTYPE_BFLOAT16][2](in_out, (const void *const[]){in, in_out}, 2, (size_t)*count);
}

static void sum_float16(void *in, void *in_out, int *count, MPI_Datatype *type) {
    (void)type;
    sum_kernels->sum[DTYPE_FLOAT16][2](in_out, (const void *const[]){in, in_out}, 2, (size_t)*count);
}

void mpi_sums_make(struct mpi_sums *sums, const struct kernels *kernels) {
    sum_kernels = kernels;
    sums->types[DTYPE_BFLOAT16] = sums->types[DTYPE_FLOAT16] = MPI_UINT16_T;
    sums->types[DTYPE_FLOAT32] = MPI_FLOAT;
    MPI_Op_create(sum_bfloat16, 1, &sums->ops[DTYPE_BFLOAT16]);
    MPI_Op_create(sum_float16, 1, &sums->ops[DTYPE_FLOAT16]);
    sums->ops[DTYPE_FLOAT32] = MPI_SUM;
}

void mpi_sums_free(struct mpi_sums *sums) {
    MPI_Op_free(&sums->ops[DTYPE_BFLOAT16]);
    MPI_Op_free(&sums->ops[DTYPE_FLOAT16]);
}
