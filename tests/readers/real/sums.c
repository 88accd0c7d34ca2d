// Ranks that add up float32 once for each size in bytes (arguments), on all ranks, and make no communicator:
// MPI libraries do allreduces of their own for that. Rank 0 prints "done".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        int count = atoi(argv[i]) / (int)sizeof(float);
        float *in = calloc((size_t)count + 1, sizeof *in), *out = calloc((size_t)count + 1, sizeof *out);
        if (in == NULL || out == NULL) abort();
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        free(in);
        free(out);
    }
    if (rank == 0) puts("done");
    MPI_Finalize();
    return 0;
}
