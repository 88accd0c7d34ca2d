// Which algorithms Open MPI runs: a library to be preloaded. It replaces the functions of libmpi that
// coll/tuned calls, and counts their calls, and those of MPI_Comm_dup. At its end rank 0 writes a line `NAME
// CALLS` for each called function to the file in the environment variable TAKEN.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// All arguments are pointers or integers, ten at most; unused ones are passed on unread.
typedef int algorithm(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);

enum { MOST = 64 };
static struct {
    const char *name;
    unsigned calls;
} taken[MOST];

static int depth; // an algorithm may call others, which are not counted

static void count(const char *name) {
    int i = 0;
    while (i < MOST - 1 && taken[i].name != NULL && strcmp(taken[i].name, name) != 0) i++;
    taken[i].name = name;
    taken[i].calls++;
}

// Finds the real algorithm, once, and calls it.
static int pass_on(const char *name, algorithm **next, void *const arguments[10]) {
    if (*next == NULL) *(void **)next = dlsym(RTLD_NEXT, name);
    if (depth++ == 0) count(name);
    void *const *a = arguments;
    int status = (*next)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
    depth--;
    return status;
}

#define COUNTED(name)                                                                                        \
    algorithm name;                                                                                          \
    int name(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j) {     \
        static algorithm *next;                                                                              \
        return pass_on(#name, &next, (void *[]){a, b, c, d, e, f, g, h, i, j});                              \
    }

COUNTED(ompi_coll_base_allreduce_intra_basic_linear)
COUNTED(ompi_coll_base_allreduce_intra_nonoverlapping)
COUNTED(ompi_coll_base_allreduce_intra_recursivedoubling)
COUNTED(ompi_coll_base_allreduce_intra_ring)
COUNTED(ompi_coll_base_allreduce_intra_ring_segmented)
COUNTED(ompi_coll_base_allreduce_intra_redscat_allgather)
COUNTED(ompi_coll_base_allgather_intra_basic_linear)
COUNTED(ompi_coll_base_allgather_intra_bruck)
COUNTED(ompi_coll_base_allgather_intra_recursivedoubling)
COUNTED(ompi_coll_base_allgather_intra_ring)
COUNTED(ompi_coll_base_allgather_intra_neighborexchange)
COUNTED(ompi_coll_base_allgather_intra_two_procs)
COUNTED(ompi_coll_base_reduce_scatter_block_basic_linear)
COUNTED(ompi_coll_base_reduce_scatter_block_intra_recursivedoubling)
COUNTED(ompi_coll_base_reduce_scatter_block_intra_recursivehalving)
COUNTED(ompi_coll_base_reduce_scatter_block_intra_butterfly)
COUNTED(ompi_coll_base_alltoall_intra_basic_linear)
COUNTED(ompi_coll_base_alltoall_intra_pairwise)
COUNTED(ompi_coll_base_alltoall_intra_bruck)
COUNTED(ompi_coll_base_alltoall_intra_linear_sync)
COUNTED(ompi_coll_base_alltoall_intra_two_procs)
COUNTED(ompi_coll_base_alltoallv_intra_basic_linear)
COUNTED(ompi_coll_base_alltoallv_intra_pairwise)
COUNTED(ompi_coll_base_bcast_intra_basic_linear)
COUNTED(ompi_coll_base_bcast_intra_pipeline)
COUNTED(ompi_coll_base_bcast_intra_binomial)
COUNTED(ompi_coll_base_bcast_intra_chain)
COUNTED(ompi_coll_base_bcast_intra_split_bintree)

COUNTED(MPI_Comm_dup)

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("TAKEN"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (path == NULL || rank == NULL || strcmp(rank, "0") != 0) return;
    FILE *out = fopen(path, "w");
    for (int i = 0; out != NULL && i < MOST && taken[i].name != NULL; i++) {
        fprintf(out, "%s %u\n", taken[i].name, taken[i].calls);
    }
    if (out != NULL) fclose(out);
}
