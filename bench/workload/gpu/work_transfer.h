// Works of a step on a GPU that ranks share: the process of rank 0 records all of them, and sends each rank
// its own.
#ifndef BENCH_WORKLOAD_WORK_TRANSFER_H
#define BENCH_WORKLOAD_WORK_TRANSFER_H

#include <stdio.h>

#include "workload/step.h"

struct work_package {
    FILE *file;
    char *bytes; // each work with the name of its kernel after it
    size_t size;
};

struct work_transfer {
    struct work_package packages[MAX_RANKS]; // rank 0's
    char **names;                            // of kernels that this rank received
    size_t name_count;
};

// Rank 0: begin, then add each work, then end. False: out of memory. Without an end or a transfer, drop.
void work_transfer_begin(struct work_transfer *transfer, int ranks);
void work_transfer_add(struct work_transfer *transfer, int rank, const struct work *work);
bool work_transfer_end(struct work_transfer *transfer, int ranks);
void work_transfer_drop(struct work_transfer *transfer);

// Collective: each rank's works become those of its notes. False: out of memory on this rank.
bool work_transfer_run(struct work_transfer *transfer, const struct group *group, struct step_notes *notes);

// Frees the names, too, which notes have until then.
void work_transfer_close(struct work_transfer *transfer);

#endif
