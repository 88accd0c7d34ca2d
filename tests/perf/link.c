// The link between two ranks: the median time in which both send so many bytes to each other at once.
//
//   mpirun -n 2 link BYTES...     prints `BYTES TIME_US` for each
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAST = 5, MOST = 51 };
static const double SECONDS = 1; // for each size

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double exchange_us(char *sent, char *received, int bytes, int other) {
    MPI_Barrier(MPI_COMM_WORLD);
    double since = MPI_Wtime();
    MPI_Sendrecv(sent, bytes, MPI_BYTE, other, 0, received, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return (MPI_Wtime() - since) * 1e6;
}

static double median_us(int bytes, int rank) {
    char *sent = calloc(1, (size_t)bytes), *received = calloc(1, (size_t)bytes);
    double times_us[MOST], begin = MPI_Wtime();
    if (sent == NULL || received == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    int count = 0, goes_on = 1;
    while (goes_on) {
        times_us[count++] = exchange_us(sent, received, bytes, 1 - rank);
        goes_on = count < LEAST || (count < MOST && MPI_Wtime() - begin < SECONDS);
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    free(sent);
    free(received);
    qsort(times_us, (size_t)count, sizeof *times_us, compare);
    return times_us[count / 2];
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        double time_us = median_us((int)strtol(argv[i], NULL, 10), rank);
        if (rank == 0) printf("%s %.1f\n", argv[i], time_us);
    }
    MPI_Finalize();
    return 0;
}
