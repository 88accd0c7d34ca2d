// The interface of plug-ins: shared libraries with ways to do a collective, which gentables verifies, times
// and chooses from. C17 and C++17. bench/plugins/README.md shows how to write one.
//
// A library exports one function, gentables_plugin(abi), which gives a constant struct that the library owns,
// or NULL where it does not know this major version. Every struct begins with its size in bytes, as its
// writer knew it; what lies beyond counts as zero. Minor versions only append members. New numbers of enums
// and bits of masks may come with minor versions; who does not know one refuses it.
//
// Who owns what: the harness the buffers and workspaces, the library its states and plans. There are no
// globals: several states may be in use at once, each in one thread. The collective callbacks (allgather,
// barrier, allocate of shared memory) may be called in init, prepare and fini, and in run only by candidates
// with GT_FLAG_COLLECTIVE_RUN. All ranks make the same calls in the same order. No exception, signal handler
// or exit leaves the library.
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
    GT_UNSUPPORTED = 1, // prepare: not this call; it is left out
    GT_FAILED = 2,      // error() says why; the candidate is left out
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

typedef enum gt_fusion { // after an allreduce
    GT_FUSION_NONE,
    GT_FUSION_RESIDUAL_RMS_NORM,             // r = sum + residual_in; norm_out = r / rms(r) * norm_weight
    GT_FUSION_RESIDUAL_RMS_NORM_QUANT_FP8,   // norm_out / scale in e4m3, to quant_out
    GT_FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4, // e2m1 codes to quant_out, swizzled block scales to scale_out
} gt_fusion;

enum { GT_MEMORY_HOST = 1, GT_MEMORY_CUDA = 2 };              // masks
enum { GT_PLACE_OUT = 1, GT_PLACE_IN = 2 };                   // out of place, in place as NCCL defines it
enum { GT_COMM_NONE = 0, GT_COMM_MPI = 1, GT_COMM_NCCL = 2 }; // which handle is needed
enum {
    GT_FLAG_COLLECTIVE_RUN = 1, // run calls allgather or barrier
    GT_FLAG_CAPTURABLE = 2,     // a CUDA run can be captured into a graph
    GT_FLAG_FP32 = 4,           // sums are accumulated in fp32 in rank order: all ranks have the same bits
};

// Callbacks; `context` is passed back to them. 0 or not NULL: done.
typedef struct gt_host {
    size_t size;
    void *context;
    // Collective: bytes of every rank, in rank order, to `out`.
    int (*allgather)(void *context, const void *in, void *out, size_t bytes);
    int (*barrier)(void *context);
    // Zeroed memory, on cache lines; shared: collective, and all ranks map the same.
    void *(*allocate)(void *context, size_t bytes, int shared);
    void (*free)(void *context, void *memory);
    void (*log)(void *context, const char *line);
    // Not 0: the work is no longer wanted; who waits in a loop looks at it, and returns GT_FAILED. It is 0
    // again when the state's next call begins.
    const volatile int32_t *cancel;
} gt_host;

typedef struct gt_rank {
    size_t size;
    int32_t rank, world_size, local_rank, local_size;
    int32_t threads; // 1: ranks are threads of one process, and there is no MPI
    int32_t device;  // CUDA's; -1: none
    void *stream;    // a cudaStream_t, or NULL
    int32_t comm_kind;
    const void *comm;         // points to the handle, an MPI_Comm or ncclComm_t; NULL: none
    const char *comm_library; // who made it, with its version
    const gt_host *host;      // valid until fini
} gt_rank;

// One call, as one rank sees it. Counts and offsets are in elements, by rank; those of ops with even shares
// are filled in, too. count: of an allreduce and broadcast all elements; else what one rank sends one other
// (of an alltoallv the most that any sends any; there a share, and a whole buffer, may be of 0 elements).
typedef struct gt_call {
    size_t size;
    int32_t op, dtype, reduce_op, fusion;
    int32_t place; // GT_PLACE_OUT or GT_PLACE_IN
    int32_t root;
    int32_t captured;
    uint64_t count;
    const uint64_t *send_counts, *send_offsets, *receive_counts, *receive_offsets;
    uint64_t send_elements, receive_elements; // of the whole buffers
    uint32_t hidden_size;                     // of an epilogue
    float epsilon, scale;
} gt_call;

typedef struct gt_buffers {
    size_t size;
    const void *send;
    void *receive;
    void *workspace; // as many bytes as prepare asked for; aligned to 64 bytes, on GPUs to 256
    size_t workspace_bytes;
    const void *residual_in, *norm_weight;
    void *residual_out, *norm_out, *quant_out, *scale_out;
} gt_buffers;

// Sizes are those of the larger one of a rank's send and receive buffers. 0 of a limit: none.
typedef struct gt_candidate {
    size_t size;
    const char *name;                          // letters, digits and _; unique among all that are loaded
    const char *parameters;                    // for people and caches: "chunk_bytes=32768"; or NULL
    uint32_t ops, dtypes, reduce_ops, fusions; // masks
    uint32_t memory, places, comm, flags;
    uint64_t min_bytes, max_bytes;
    uint64_t count_multiple; // of the elements of the larger buffer
    uint32_t alignment;      // of buffers, in bytes
    uint32_t world_sizes;    // a mask: 1u << ranks
} gt_candidate;

typedef struct gt_plugin {
    size_t size;
    uint32_t abi; // GENTABLES_PLUGIN_ABI
    const char *name, *version;
    uint32_t candidate_count;
    const gt_candidate *const *candidates;
    // Collective. One state for all candidates of this rank. Where it fails on one rank, fini, which is
    // collective, is called on none.
    gt_status (*init)(const gt_rank *rank, void **state);
    // Collective. Gets ready for calls of this shape: a plan, and how much workspace a run takes. The call
    // is valid only during prepare.
    gt_status (*prepare)(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                         void **plan);
    // A host run returns when this rank's results are complete; a CUDA run only enqueues on `stream`.
    gt_status (*run)(void *plan, const gt_buffers *buffers, void *stream);
    void (*release)(void *plan);
    void (*fini)(void *state); // collective
    // Why the last call failed; valid until the state's next call. state NULL: of init.
    const char *(*error)(void *state);
} gt_plugin;

#if defined(_WIN32)
#define GENTABLES_EXPORT __declspec(dllexport)
#else
#define GENTABLES_EXPORT __attribute__((visibility("default")))
#endif

// What a library exports.
GENTABLES_EXPORT const gt_plugin *gentables_plugin(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
