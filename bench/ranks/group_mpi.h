// The group of ranks that MPI started (group.h), and their communicator.
#ifndef BENCH_GROUP_MPI_H
#define BENCH_GROUP_MPI_H

#include <mpi.h>
#include <string.h>

#include "group.h"

// Collective. Opens the group over all ranks of `comm`, which are on one node or on several with the same
// number of ranks. -1 with `reason` if that is impossible.
int group_open(struct group *group, MPI_Comm comm, double timeout_s, char reason[], size_t reason_size);

// Collective. Whether `well` is true on all ranks. It uses MPI alone, so it works after a failed wait, too.
bool group_mpi_all(const struct group *group, bool well);

static inline MPI_Comm group_comm(const struct group *group) {
    MPI_Comm comm;
    memcpy(&comm, group->comm, sizeof comm);
    return comm;
}

#endif
