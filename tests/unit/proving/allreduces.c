// Ranks that call MPI_Allreduce once for each size in bytes (arguments): on all ranks, and on each half of
// them if there are four or more. Instead of a size:
//
//   WORD=FACTOR   calls of 1 MiB, so many of them: WORD is `with` or `without` a file of rules in the
//                 environment
//   hang, die     rank 1 waits for ever, or aborts, before the other sizes
//   linger        another process of the rank never ends
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sum(int bytes, MPI_Comm comm) {
    int count = bytes / (int)sizeof(float);
    float *in = calloc((size_t)count + 1, sizeof *in), *out = calloc((size_t)count + 1, sizeof *out);
    if (in == NULL || out == NULL) abort();
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm);
    free(in);
    free(out);
}

static void repeat(const char *argument) {
    enum { ONE_SIZE = 1 << 20 };
    int has_file = getenv("OMPI_MCA_coll_tuned_dynamic_rules_filename") != NULL;
    int is_with = strncmp(argument, "with=", 5) == 0;
    int times = is_with == has_file ? atoi(strchr(argument, '=') + 1) : 1;
    for (int i = 0; i < times; i++) sum(ONE_SIZE, MPI_COMM_WORLD);
}

static void misbehave(const char *how, int rank) {
    if (rank == 1 && strcmp(how, "die") == 0) abort();
    if (rank == 1 && strcmp(how, "hang") == 0) {
        for (;;) pause();
    }
    if (strcmp(how, "linger") == 0 && fork() == 0) {
        for (;;) pause();
    }
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    for (int i = 1; i < argc; i++) {
        if (strchr(argv[i], '=') != NULL) {
            repeat(argv[i]);
        } else if (atoi(argv[i]) == 0) {
            misbehave(argv[i], rank);
        } else {
            sum(atoi(argv[i]), MPI_COMM_WORLD);
            if (size >= 4) sum(atoi(argv[i]), half);
        }
    }
    printf("done\n");
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
