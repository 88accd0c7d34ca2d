// The interface of plug-ins: shared libraries with implementations of collectives ("candidates"), which
// gentables verifies, times and chooses from. C17 and C++17. bench/plugins/README.md shows how to write one.
//
// A library exports one function, gentables_plugin(abi). It returns a constant struct that the library owns,
// or NULL if the library does not support this major version. Every struct begins with its size in bytes, set
// to sizeof by the side that fills it; the reader takes members beyond that size as zero. Minor versions only
// append members, and may add enum values and mask bits; a reader rejects values that it does not know.
//
// Ownership: the harness owns buffers and workspaces, the library its states and plans. A library keeps no
// globals: several states may be in use at once, each in one thread. All ranks make the same calls in the
// same order. The collective callbacks (allgather, barrier, allocate of shared memory) may be called in init,
// prepare and fini, and in run only by candidates with GT_FLAG_COLLECTIVE_RUN. The library must not throw
// exceptions to its caller, install signal handlers or call exit.
#ifndef GENTABLES_PLUGIN_H
#define GENTABLES_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GENTABLES_PLUGIN_MAJOR         1u
#define GENTABLES_PLUGIN_MINOR         0u
#define GENTABLES_PLUGIN_ABI           (GENTABLES_PLUGIN_MAJOR << 16 | GENTABLES_PLUGIN_MINOR)
#define GENTABLES_PLUGIN_MAJOR_OF(abi) ((abi) >> 16)

typedef enum gt_status {
    GT_OK = 0,
    GT_UNSUPPORTED = 1, // of prepare: the candidate does not support this call; the call is skipped
    GT_FAILED = 2,      // error() returns the reason; the candidate is excluded
} gt_status;

// In masks: 1u << GT_OP_ALLREDUCE and the like.
typedef enum gt_op {
    GT_OP_ALLREDUCE,
    GT_OP_ALLGATHER,
    GT_OP_REDUCESCATTER,
    GT_OP_ALLTOALL,
    GT_OP_ALLTOALLV,
    GT_OP_BROADCAST,
} gt_op;

typedef enum gt_dtype { GT_BFLOAT16, GT_FLOAT16, GT_FLOAT32 } gt_dtype;
typedef enum gt_reduce_op { GT_SUM } gt_reduce_op;

typedef enum gt_fusion { // the epilogue of an allreduce
    // fusions: rendered from generator/lists/lists.lua
    GT_FUSION_NONE,
    GT_FUSION_RESIDUAL_RMS_NORM,             // r = sum + residual_in; norm_out = r / rms(r) * norm_weight
    GT_FUSION_RESIDUAL_RMS_NORM_QUANT_FP8,   // norm_out / scale in e4m3, to quant_out
    GT_FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4, // e2m1 codes to quant_out, swizzled block scales to scale_out
    // end of fusions
} gt_fusion;

enum { GT_MEMORY_HOST = 1, GT_MEMORY_CUDA = 2 };              // masks
enum { GT_PLACE_OUT = 1, GT_PLACE_IN = 2 };                   // masks; in place as NCCL defines it
enum { GT_COMM_NONE = 0, GT_COMM_MPI = 1, GT_COMM_NCCL = 2 }; // the communicator that a candidate needs
enum {
    GT_FLAG_COLLECTIVE_RUN = 1, // run calls allgather or barrier
    GT_FLAG_CAPTURABLE = 2,     // a CUDA run can be captured into a graph
    GT_FLAG_FP32 = 4,           // sums are accumulated in fp32 in rank order: all ranks have the same bits
};

// Callbacks of the harness; `context` is their first argument. They return 0, or a pointer that is not NULL,
// on success.
typedef struct gt_host {
    size_t size;
    void *context;
    // Collective: copies `bytes` of every rank to `out`, in rank order.
    int (*allgather)(void *context, const void *in, void *out, size_t bytes);
    int (*barrier)(void *context);
    // Zeroed memory, aligned to a cache line. With `shared` the call is collective, and all ranks map the
    // same memory.
    void *(*allocate)(void *context, size_t bytes, int shared);
    void (*free)(void *context, void *memory);
    void (*log)(void *context, const char *line);
    // Not 0: the call was cancelled. A loop that waits must check it, and return GT_FAILED. It is 0 again
    // when the state's next call begins.
    const volatile int32_t *cancel;
} gt_host;

typedef struct gt_rank {
    size_t size;
    int32_t rank, world_size, local_rank, local_size;
    int32_t threads;          // 1: ranks are threads of one process, without MPI
    int32_t device;           // CUDA device number; -1: none
    void *stream;             // a cudaStream_t, or NULL
    int32_t comm_kind;        // GT_COMM_...
    const void *comm;         // points to the communicator, an MPI_Comm or ncclComm_t; NULL: none
    const char *comm_library; // library of the communicator, with its version
    const gt_host *host;      // valid until fini
} gt_rank;

// One call of one rank. The arrays have an entry per rank, for ops with even shares, too; counts and offsets
// are in elements. `count`: all elements of an allreduce or broadcast; of other ops the elements that one
// rank sends to one other, of an alltoallv the largest such number. In an alltoallv a share or a whole buffer
// may have 0 elements.
typedef struct gt_call {
    size_t size;
    int32_t op, dtype, reduce_op, fusion;
    int32_t place; // GT_PLACE_OUT or GT_PLACE_IN
    int32_t root;
    int32_t captured;
    uint64_t count;
    const uint64_t *send_counts, *send_offsets, *receive_counts, *receive_offsets;
    uint64_t send_elements, receive_elements; // of the whole buffers
    uint32_t hidden_size;                     // elements of a row, for epilogues
    float epsilon, scale;
} gt_call;

typedef struct gt_buffers {
    size_t size;
    const void *send;
    void *receive;
    void *workspace; // of the size that prepare returned; aligned to 64 bytes, on GPUs to 256
    size_t workspace_bytes;
    const void *residual_in, *norm_weight;
    void *residual_out, *norm_out, *quant_out, *scale_out;
} gt_buffers;

// What a candidate supports. Sizes are those of the larger of a rank's send and receive buffers. 0 means no
// limit.
typedef struct gt_candidate {
    size_t size;
    const char *name;       // letters, digits and _, at most 60; unique among all loaded candidates
    const char *parameters; // for people, recorded with the results: "chunk_bytes=32768"; or NULL
    uint32_t ops, dtypes, reduce_ops, fusions; // masks
    uint32_t memory, places, comm, flags;
    uint64_t min_bytes, max_bytes;
    uint64_t count_multiple; // the elements of the larger buffer must be a multiple of it
    uint32_t alignment;      // of buffers in bytes, a power of two, at most 4096
    uint32_t world_sizes;    // mask: 1u << ranks; excludes 32 ranks and more
} gt_candidate;

typedef struct gt_plugin {
    size_t size;
    uint32_t abi; // GENTABLES_PLUGIN_ABI
    const char *name, *version;
    uint32_t candidate_count;
    const gt_candidate *const *candidates;
    // Collective. Makes one state for all candidates of this rank. If it fails on any rank, fini is called
    // only if all ranks have a state, since fini is collective.
    gt_status (*init)(const gt_rank *rank, void **state);
    // Collective. Makes a plan for calls of this shape, and returns the workspace that a run needs. `call`
    // is valid only during prepare.
    gt_status (*prepare)(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                         void **plan);
    // A host run returns when this rank's results are complete; a CUDA run only enqueues on `stream`.
    gt_status (*run)(void *plan, const gt_buffers *buffers, void *stream);
    void (*release)(void *plan);
    void (*fini)(void *state); // collective
    // The reason why the last call failed, valid until the state's next call; with state NULL, why init
    // failed.
    const char *(*error)(void *state);
} gt_plugin;

#if defined(_WIN32)
#define GENTABLES_EXPORT __declspec(dllexport)
#else
#define GENTABLES_EXPORT __attribute__((visibility("default")))
#endif

// The function that a library exports.
GENTABLES_EXPORT const gt_plugin *gentables_plugin(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
