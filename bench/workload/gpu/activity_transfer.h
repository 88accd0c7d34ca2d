// Activities of a step on a GPU that ranks share: the process of rank 0 records all of them, and sends each
// rank its own.
#ifndef BENCH_WORKLOAD_ACTIVITY_TRANSFER_H
#define BENCH_WORKLOAD_ACTIVITY_TRANSFER_H

#include <stdio.h>

#include "workload/step.h"

struct activity_package {
    FILE *file;
    char *bytes; // each activity with the name of its kernel after it
    size_t size;
};

struct activity_transfer {
    struct activity_package packages[MAX_NODE_RANKS]; // rank 0's
    char **names;                                     // of kernels that this rank received
    size_t name_count;
};

// Rank 0: begin, then add each activity, then end. False: out of memory. If no run follows, drop.
void activity_transfer_begin(struct activity_transfer *transfer, int ranks);
void activity_transfer_add(struct activity_transfer *transfer, int rank, const struct gpu_activity *activity);
bool activity_transfer_end(struct activity_transfer *transfer, int ranks);
void activity_transfer_drop(struct activity_transfer *transfer);

// Collective. Each rank's activities become those of its notes. False: out of memory on this rank.
bool activity_transfer_run(struct activity_transfer *transfer, const struct group *group,
                           struct step_notes *notes);

// Frees the names, too, which notes have until then.
void activity_transfer_close(struct activity_transfer *transfer);

#endif
