// The link between the nodes of a group (node_link.h) over MPI.
#ifndef BENCH_MPI_NODE_LINK_H
#define BENCH_MPI_NODE_LINK_H

#include <mpi.h>

#include "group_state.h"

// Collective. Opens group->link over the ranks of `comm`, which are on several nodes. False on all ranks: one
// of them is out of memory.
bool mpi_node_link_open(struct group *group, MPI_Comm comm);

#endif
