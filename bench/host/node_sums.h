// Sums over one rank of each node, by messages that do not block: several can be in flight, and advance while
// the rank does other work.
//
// Small arrays, and those of two nodes, are sent whole to all other nodes. Of larger ones each node sums a
// piece, and sends the sum to the others: every node then sends and receives 2 (nodes - 1) / nodes times the
// array, the minimum. Sums are in the order of the nodes, in fp32, and rounded once; all nodes get the same
// bits.
#ifndef BENCH_HOST_NODE_SUMS_H
#define BENCH_HOST_NODE_SUMS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "elements/kernels.h"

enum { NODE_SUMS = 4 }; // in flight

// One sum in flight.
struct node_sum {
    enum { NODE_SUM_OVER, NODE_SUM_INPUTS, NODE_SUM_RESULTS } state; // what it waits for
    bool is_whole;
    enum dtype dtype;
    size_t bytes;
    const unsigned char *mine;
    unsigned char *result;
    unsigned char *received; // from each node, whole inputs or pieces
    int input_count, result_count, sent_count;
    MPI_Request *inputs, *results,
        *sent; // one allocation: a request for each node, for each, and two for each
};

struct node_sums {
    MPI_Comm comm; // one rank of each node, in the order of the nodes
    int nodes, node;
    const struct kernels *kernels;
    size_t room; // bytes of a received input
    struct node_sum in_flight[NODE_SUMS];
};

// Opens sums of at most `bytes` each. False: out of memory. `comm` stays the caller's.
bool node_sums_open(struct node_sums *sums, MPI_Comm comm, const struct kernels *kernels, size_t bytes);
void node_sums_close(struct node_sums *sums);

// Begins sum `slot`, which must be over. `mine` and `result` must stay until it is over again.
void node_sums_begin(struct node_sums *sums, int slot, enum dtype dtype, const void *mine, void *result,
                     size_t bytes);

// Advances sum `slot`, and returns whether it is over.
bool node_sums_is_over(struct node_sums *sums, int slot);

#endif
