// How often rank 1 adds in an allreduce of each size in bytes (arguments), and how many elements each time:
// that distinguishes Open MPI's algorithms from outside. Prints `bytes calls elements`.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int calls, elements;

static void add(void *in, void *in_out, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((float *)in_out)[i] += ((float *)in)[i];
    calls++;
    elements = *count;
}

int main(int argc, char **argv) {
    MPI_Op op;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Op_create(add, 1, &op);
    for (int i = 1; i < argc; i++) {
        int bytes = atoi(argv[i]), count = bytes / (int)sizeof(float);
        float *in = calloc((size_t)count, sizeof *in), *out = calloc((size_t)count, sizeof *out);
        calls = elements = 0;
        MPI_Allreduce(in, out, count, MPI_FLOAT, op, MPI_COMM_WORLD);
        if (rank == 1) printf("%d %d %d\n", bytes, calls, elements);
        free(in);
        free(out);
    }
    MPI_Op_free(&op);
    MPI_Finalize();
    return 0;
}
