// The GPU of one rank: which one it is, its kernels, its stream, and waiting for it. In loopback all ranks
// have the same one.
#ifndef BENCH_CUDA_DEVICE_H
#define BENCH_CUDA_DEVICE_H

#include <pthread.h>
#include <sys/types.h>

#include "calls/backend.h"
#include "cuda/kernels/parameters.h"
#include "libraries/cuda_driver.h"

enum {
    CUDA_NAME_SIZE = 96,
    LINE_SIZE = 512,
};

// How ranks reach each other's memory.
enum reach { REACH_LOOPBACK, REACH_PROCESS, REACH_FABRIC, REACH_FILE, REACH_IPC, REACH_NONE };
extern const char *const reach_names[];

// Memory of all ranks, as this one addresses it.
struct shared_memory {
    size_t bytes; // of each rank, rounded up
    CUdeviceptr of[MAX_TP];
    CUdeviceptr multicast;          // all ranks' at once; 0: there is no such address,
    char no_multicast[REASON_SIZE]; // for this reason
    CUmemGenericAllocationHandle handles[MAX_TP], team;
    bool is_mapped[MAX_TP];
};

// Calls of a sample: of a chain, and of one that is SHORT_CHAIN times shorter.
enum { LONG_CHAIN = 32, SHORT_CHAIN = 4, MAX_SLOTS = LONG_CHAIN + LONG_CHAIN / SHORT_CHAIN };

struct cell_buffers;

// What rank 0 needs of the other threads for a joint launch: the calls of a sample.
struct joint {
    struct call calls[MAX_TP][MAX_SLOTS];
    struct cell_buffers *buffers[MAX_TP]; // of these calls
    CUdeviceptr states[MAX_TP];
};

enum { BARRIER_BYTES = 4096 };

// The shape of a launch. `cluster`: the number of blocks in a cluster; 0 or 1: no clusters. `programmatic`:
// it may start before the launch ahead has ended, and waits by itself.
struct grid {
    unsigned blocks, ranks, threads, cluster;
    bool programmatic;
};

// A stream that waits for a flag of the host's; see cuda_services.c.
struct held_stream {
    uint32_t *flag; // pinned
    CUdeviceptr address;
    uint32_t number; // the value of the flag that releases the stream
    bool is_held, is_over, has_waited;
    uint64_t patience_ns; // after which the stream is released, even if the run has not returned
    pid_t runner;         // its thread
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

// How many clusters of a kernel all ranks' GPUs can hold.
enum { CLUSTER_COUNTS = 64 };
struct cluster_count {
    CUfunction kernel;
    unsigned threads, cluster, clusters;
    bool is_programmatic;
};

// Clocks, and the reasons for their throttling, in NVML's bits.
struct gpu_clocks {
    unsigned mhz, memory_mhz;
    unsigned long long throttle;
};

// The SM version that kernels were compiled for, and the version of the PTX that they were compiled from; 90
// is 9.0.
struct kernel_versions {
    int binary, ptx;
};

struct device {
    const struct cuda_driver *driver;
    struct group *group;
    struct device_options options;
    int ordinal;
    CUdevice id;
    CUcontext context;
    CUstream stream;
    CUevent before, after, checked;
    CUmodule modules[2]; // helpers; the kernels of this TP size, where they were built
    struct kernel_versions versions;
    double deadline_s; // of one wait for the GPU, or for NCCL
    uint64_t delay_ns; // that GPUs wait for their hosts before a call; the same on all ranks
    int multiprocessors, sm;
    struct cluster_count cluster_counts[CLUSTER_COUNTS]; // the last ones that were counted
    unsigned counted;
    int common_multiprocessors; // the least of all ranks' GPUs, for grids that are equal on all ranks
    size_t l2_bytes;
    char name[CUDA_NAME_SIZE], bus[32];
    bool can_fabric, can_file, can_multicast;
    bool has_clusters;          // and so have the kernels
    bool can_wait_for_launches; // programmatic launches: kernels wait for the launch ahead by themselves
    bool all_peers;             // reach each other, as far as this process sees them
    bool has_hidden_peers;      // some process does not see all GPUs; only mapping shows what they reach
    enum reach reach;
    char no_reach[REASON_SIZE]; // why the previous way in enum reach failed
    uint32_t *give_up;          // pinned; not zero: kernels leave their waits
    CUdeviceptr give_up_address;
    struct shared_memory barrier_memory; // flags and epochs of barriers between ranks, ours
    struct shared_memory workspaces[CUDA_KERNELS];
    int users[CUDA_KERNELS];
    size_t workspace_bytes;            // the largest message
    CUdeviceptr states;                // a RankState for each kernel
    struct shared_memory arena;        // data of calls, of all open buffers
    size_t arena_taken;                // its bytes, the same on all ranks
    struct cell_buffers *open_buffers; // a list
    struct joint *joint;               // rank 0's; NULL where each rank launches for itself
    bool has_tried_nccl;               // to make a communicator
    bool is_published;                 // the calls of a sample are in `joint`
    int slot;                          // of the current call
    CUdeviceptr flush, counter;        // memory to flush caches by; the number of bytes that differ
    struct held_stream held;
    double link_bytes_per_us;      // measured; 0: there are no links
    struct grid last;              // the last launch of a candidate; the smallest, if the candidate sets none
    struct gpu_clocks clocks_seen; // the least, and all reasons; 0: none yet
    bool is_described;             // rank 0's: the output has lines of devices, and gets more at the end
    char lines[MAX_TP][LINE_SIZE]; // of each rank's device, for the protocol
    char problem[REASON_SIZE];
};

static inline struct device *device_of(const struct group *group) {
    return group->device;
}

// Whether one launch is for all ranks.
bool device_is_joint(const struct device *device);

// Whether this rank enqueues work: with joint launches rank 0 alone, for all ranks; else each rank its own.
bool device_enqueues(const struct device *device);

// detect.c: loads the driver and starts it, once per process, so that it loads all kernels of a module with
// the module. NULL: `reason`.
const struct cuda_driver *device_driver(char reason[], size_t reason_size);

// `open` of struct backend, and the end of the device.
int device_open(struct group *group, const struct device_options *options, char reason[REASON_SIZE]);
void device_close(struct group *group);

// Whether a call of the driver succeeded; if not, the group fails.
bool device_ok(struct device *device, CUresult result, const char *what);

// Collective. Whether no rank has a reason; if one has, all ranks get the first rank's.
bool ranks_are_fine(struct group *group, char reason[REASON_SIZE]);

// modules.c. Loads the kernels, and sets what they can do: clusters, programmatic launches and multicast. If
// the driver had to compile them, rank 0 prints a warning. False: `reason`.
bool kernels_load(struct device *device, char reason[REASON_SIZE]);

// Reads the versions of loaded kernels, those of the helpers. False: `reason`.
bool kernels_versions(const struct cuda_driver *driver, CUmodule helpers, struct kernel_versions *versions,
                      char reason[], size_t reason_size);

// Whether the driver compiled the kernels at load. nvcc compiles the code for sm_N from the PTX of compute_N,
// so the versions of other code differ (but not those of PTX that CUDA_FORCE_PTX_JIT prefers to such code).
bool kernels_compiled_at_load(struct kernel_versions versions);

// Whether they have no clusters, programmatic launches and multicast, though a GPU of this SM version does.
bool kernels_lack_features(struct kernel_versions versions, int sm);

// The reason why the device has no multicast; NULL: it has.
const char *device_no_multicast(const struct device *device);

// NULL: the program has no kernel of this name.
CUfunction device_kernel(struct device *device, const char *name);

// Enqueues a kernel.
bool device_launch(struct device *device, CUfunction kernel, struct grid grid, const void *parameters,
                   size_t bytes);

// Blocks of this kernel that each rank's GPU can hold at once, for one rank; the same on all ranks.
unsigned device_resident_blocks(struct device *device, CUfunction kernel, unsigned threads,
                                bool programmatic);

// Collective. Clusters of the grid's size that each rank's GPU can hold at once, for one rank. 0: the GPU or
// the kernel has no clusters.
unsigned device_resident_clusters(struct device *device, CUfunction kernel, struct grid grid);

// Waits for an event until the deadline; then kernels give up and the group fails.
bool device_wait(struct device *device, CUevent event);
bool device_finish(struct device *device); // all that is in the stream

// Enqueues `times` barriers of the ranks on their GPUs.
bool device_barrier(struct device *device, int times);

// Enqueues a kernel that runs for so long.
bool device_delay(struct device *device, uint64_t nanoseconds);

// Collective, memory.c. Makes zeroed memory that all ranks reach, with `multicast` also by one address, if
// the hardware can. `option` is the command line's option for its size. -1: it cannot be made; -2: other
// ranks cannot reach it; both with `reason`, the same on all ranks.
int shared_memory_open(struct device *device, size_t bytes, bool multicast, const char *option,
                       struct shared_memory *memory, char reason[REASON_SIZE]);
void shared_memory_close(struct device *device, struct shared_memory *memory);

// The granularity of such memory of `bytes`, and its size rounded up to that.
size_t shared_memory_granularity(const struct device *device, size_t bytes, bool multicast);
size_t shared_memory_rounded(const struct device *device, size_t bytes, bool multicast);

// Collective, budget.c. How many of the `wanted` bytes the data of calls get on each rank: at least `least`,
// or `wanted`, if that is smaller. 0: `reason`, the same on all ranks.
size_t arena_budget(struct device *device, size_t wanted, size_t least, char reason[REASON_SIZE]);

// Collective, reach.c. Chooses how ranks reach each other's memory; and makes the memory for the data of
// calls, which is the first shared memory. Only this shows whether hidden peers reach each other, and whether
// other processes can import handles. If one way of sharing fails, the next is tried; if all fail, each rank
// has private memory only. -1: there is no memory; `reason`, the same on all ranks.
void reach_choose(struct device *device);
int reach_open_arena(struct device *device, size_t bytes, char reason[REASON_SIZE]);

// kernel_candidates.c: the size of a kernel's workspace on each rank.
size_t workspace_bytes_of(const struct device *device, enum cuda_kernel kernel);

// memory.c: memory of this rank alone, which the GPUs of its process reach, between unmapped addresses. -1:
// out of memory.
int memory_reserve(struct device *device, struct guarded *buffer, size_t bytes);
void memory_give_back(struct device *device, struct guarded *buffer);

// detect.c: this machine's GPUs and links, for people and for provenance. detect_line describes this rank's
// GPU. detect_note_clocks records the present clocks and the reasons for their throttling. detect_write_end
// is collective, and writes the state at the end.
void detect_describe(char library[], size_t library_size, char isa[], size_t isa_size);
void detect_write(const struct group *group, FILE *out);
void detect_line(struct device *device, char line[], size_t line_size);
void detect_note_clocks(struct device *device);
void detect_write_end(struct group *group, FILE *out);

// images.c, made by the build: the compiled kernels of helpers (tp 0) and of a TP size; NULL: not built.
const void *cuda_kernels(int tp);
extern const char cuda_kernel_sizes[];  // such as "2, 4, 8"
extern const char cuda_architectures[]; // such as "sm_90"
extern const bool cuda_is_compiled;     // false: built with GENTABLES_CUDA_COMPILE=OFF

// Returns whether the driver refused the images because they hold no kernel for its GPU that it can load. It
// compiles only PTX of versions that it has, if its compiler is installed.
static inline bool cuda_images_lack(CUresult result) {
    switch (result) {
    case CUDA_SUCCESS: return false;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED: return true;
    default: return !cuda_is_compiled;
    }
}

#endif
