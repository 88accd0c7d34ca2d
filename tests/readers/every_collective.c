// Calls collectives of every kind, blocking and not, and compares the sums of allreduces of several sizes: a
// selection of algorithms that lacks a collective ends the program. Rank 0 prints "done".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANKS = 16, MOST_COUNT = 1 << 18 };

static int ranks, rank;
static int in[MOST_COUNT], out[MOST_COUNT * 2], counts[MOST_RANKS], places[MOST_RANKS];

static void one_to_all_and_back(MPI_Comm comm) {
    MPI_Barrier(comm);
    MPI_Bcast(in, 4, MPI_INT, 0, comm);
    MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    MPI_Gatherv(in, 1, MPI_INT, out, counts, places, MPI_INT, 0, comm);
    MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    MPI_Scatterv(in, counts, places, MPI_INT, out, 1, MPI_INT, 0, comm);
    MPI_Reduce(in, out, 4, MPI_INT, MPI_SUM, 0, comm);
}

static void all_to_all(MPI_Comm comm) {
    MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
    MPI_Allgatherv(in, 1, MPI_INT, out, counts, places, MPI_INT, comm);
    MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, comm);
    MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm);
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_SUM, comm);
    MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, comm);
    MPI_Exscan(in, out, 1, MPI_INT, MPI_SUM, comm);
}

static void without_blocking(MPI_Comm comm) {
    MPI_Request requests[5];
    MPI_Ibarrier(comm, &requests[0]);
    MPI_Ibcast(in, 4, MPI_INT, 0, comm, &requests[1]);
    MPI_Iallreduce(in, out, 4, MPI_INT, MPI_SUM, comm, &requests[2]);
    MPI_Iallgather(in, 1, MPI_INT, out + 64, 1, MPI_INT, comm, &requests[3]);
    MPI_Ialltoall(in, 1, MPI_INT, out + 128, 1, MPI_INT, comm, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
}

static void neighbours(MPI_Comm comm) {
    MPI_Comm ring;
    int periodic = 1;
    MPI_Cart_create(comm, 1, &ranks, &periodic, 0, &ring);
    MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, ring);
    MPI_Neighbor_alltoall(in, 1, MPI_INT, out, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

static void sums(MPI_Comm comm) {
    for (int count = 1; count <= MOST_COUNT; count *= 4) {
        for (int i = 0; i < count; i++) in[i] = i + rank;
        MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++) {
            if (out[i] != ranks * i + ranks * (ranks - 1) / 2) MPI_Abort(comm, 1);
        }
    }
}

static void communicators(MPI_Comm comm) {
    MPI_Comm part, copy;
    MPI_Comm_split(comm, rank % 2, 0, &part);
    MPI_Allreduce(in, out, 1024, MPI_INT, MPI_SUM, part);
    MPI_Comm_dup(comm, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ranks && i < MOST_RANKS; i++) counts[i] = 1, places[i] = i;
    one_to_all_and_back(MPI_COMM_WORLD);
    all_to_all(MPI_COMM_WORLD);
    without_blocking(MPI_COMM_WORLD);
    neighbours(MPI_COMM_WORLD);
    communicators(MPI_COMM_WORLD);
    sums(MPI_COMM_WORLD);
    if (rank == 0) puts("done");
    MPI_Finalize();
    return 0;
}
