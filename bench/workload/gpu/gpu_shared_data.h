// Shared memory of ranks that share a GPU: their layouts, from which rank 0 enqueues the work of all of them,
// their arrays on the way to the GPU and back, and the notes of a step.
#ifndef BENCH_WORKLOAD_GPU_SHARED_DATA_H
#define BENCH_WORKLOAD_GPU_SHARED_DATA_H

#include "gpu_rank.h"
#include "ranks/group.h"
#include "workload/step.h"

// Where a rank's message lies in its memory, and how many elements go to each rank (ALL_TO_ALL).
struct gpu_message {
    size_t in, in_bytes, out, sent[MAX_NODE_RANKS];
};

struct gpu_shared_data {
    struct group *group;
    const struct program *program;
    struct gpu_rank layout; // of this rank
    size_t bytes[MAX_NODE_RANKS], from[MAX_NODE_RANKS],
        all_bytes;                 // of each rank's arrays, and where they begin
    struct gpu_gemm_shape *shapes; // [rank][gemm], in memory that begins at 0
    struct gpu_message *messages;  // [rank][collective]
    struct note *notes;            // [rank][action]
    struct span *spans;            // [rank][collective]
    unsigned char *arrays;         // [rank][its bytes]
};

// Collective. Maps the memory, and every rank writes its layout there, which the caller has set. False with
// `reason`, the same on all ranks; then it is closed as well.
bool gpu_shared_open(struct gpu_shared_data *shared, struct group *group, const struct program *program,
                     char reason[PROGRAM_REASON]);
void gpu_shared_close(struct gpu_shared_data *shared);

const struct gpu_gemm_shape *gpu_shared_shapes(const struct gpu_shared_data *shared, int rank);
const struct gpu_message *gpu_shared_message(const struct gpu_shared_data *shared, int rank, int collective);
size_t gpu_shared_largest_message(const struct gpu_shared_data *shared); // in bytes; at least 1
struct note *gpu_shared_notes(const struct gpu_shared_data *shared, int rank);
struct span *gpu_shared_spans(const struct gpu_shared_data *shared, int rank);

// Copies this rank's arrays to the shared memory, or from there.
void gpu_shared_write_arrays(const struct gpu_shared_data *shared);
void gpu_shared_read_arrays(const struct gpu_shared_data *shared);

// Copies this rank's notes.
void gpu_shared_read_notes(const struct gpu_shared_data *shared, struct step_notes *notes);

#endif
