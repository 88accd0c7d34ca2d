// What one rank does in a step of a workload: GEMMs and collectives, and the order in which they are
// computed, posted to the communication threads and awaited. It is read from request lines; its arrays are
// allocated in the host's memory. An array's elements have the dtype of its GEMM or collective, which
// represents every number of a step exactly.
//
//   begin name=dense gemms=2 collectives=1 actions=5 seed=1
//   collective name=bucket0 kind=allreduce dtype=float32 elements=4096
//   gemm name=ffn.up m=64 n=64 k=64 layout=NT phase=forward sequence=0
//   gemm name=ffn.up m=64 n=64 k=64 layout=TN phase=backward sequence=0 into=0@0
//   do gemm=0
//   do gemm=1
//   do post=0
//   do await=0
//   end
//
// m and k may differ between ranks (m=64,128). A collective's `elements` are those of the whole message for
// allreduce, and of one rank's part for all_gather and reduce_scatter; all_to_all has `matrix`: what rank 0
// sends to rank 0, to 1, ..., then what rank 1 sends. A GEMM's operands a, b and into may be
// COLLECTIVE@OFFSET: the output of that collective (a, b) or its input (into), with the same dtype; without
// them a GEMM has arrays of its own. accumulate=1 adds to the previous result. The default dtype is float32.
#ifndef BENCH_WORKLOAD_PROGRAM_H
#define BENCH_WORKLOAD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elements/kernels.h"
#include "workload_limits.h"

enum { PROGRAM_REASON = 200 };

enum collective_kind { ALLREDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, COLLECTIVE_KINDS };

struct collective {
    enum collective_kind kind;
    enum dtype dtype;
    char name[NAME_SIZE];
    size_t elements;
    size_t send[MAX_NODE_RANKS], receive[MAX_NODE_RANKS]; // all_to_all: of each peer
    bool even;                                            // all_to_all: the same between all ranks
    size_t in_elements, out_elements;
    void *in, *out;
};

// c[m, n] = a[m, k] * b[k, n], all of one dtype, with small whole numbers, so that the result is exact.
struct gemm {
    char name[NAME_SIZE];
    enum dtype dtype;
    size_t m, n, k;
    bool trans_a, trans_b; // stored as [k, m] and [n, k]
    bool accumulate, backward;
    size_t sequence; // a backward GEMM has its forward GEMM's
    size_t terms;    // products that are summed in an element of c, at most on any rank
    int a_from, b_from, into;
    size_t a_offset, b_offset, c_offset;
    void *a, *b, *c;
};

enum action_kind { DO_GEMM, DO_POST, DO_AWAIT };

struct action {
    enum action_kind kind;
    int index;
};

struct array {
    enum dtype dtype;
    void *data;
    size_t count;
};

static inline size_t array_bytes(const struct array *array) {
    return array->count * dtype_sizes_bytes[array->dtype];
}

struct program {
    char name[NAME_SIZE];
    int rank, ranks;
    uint64_t seed;
    double densities[DTYPES]; // share of the inputs that are not 0
    struct gemm *gemms;
    struct collective *collectives;
    struct action *actions;
    size_t gemm_count, collective_count, action_count;          // read so far
    size_t gemms_to_come, collectives_to_come, actions_to_come; // announced
    struct array *arrays;                                       // all that was allocated
    size_t array_count;
    size_t bytes; // of all arrays
};

// Reads one line. 1: more lines follow; 0: the program is complete, with its arrays filled; -1: `reason`. The
// first line is `begin`, for a zeroed program with rank and ranks.
int program_read(struct program *program, const char *line, char reason[PROGRAM_REASON]);

// The address of element `index` of such an array.
static inline void *element_at(void *array, enum dtype dtype, size_t index) {
    return (unsigned char *)array + index * dtype_sizes_bytes[dtype];
}

// Fills what a step writes with NaN, so that no old value passes for a result.
void program_poison(struct program *program);

void program_free(struct program *program);

#endif
