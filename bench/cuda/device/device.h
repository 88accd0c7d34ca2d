// The GPU of one rank: which one it is, its kernels, its stream, and waiting for it. In loopback all ranks,
// threads of one process, have the same one.
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

struct place;

// What the threads of a joint launch tell rank 0: the calls of a sample.
struct joint {
    struct call calls[MAX_TP][MAX_SLOTS];
    struct place *places[MAX_TP]; // that these are of
    CUdeviceptr states[MAX_TP];
};

enum { MEETING_BYTES = 4096 };

// The shape of a launch. `programmatic`: it may start before the launch ahead has ended, and waits by itself.
struct grid {
    unsigned blocks, ranks, threads;
    bool programmatic;
};

// A stream that waits for a flag of the host's; see cuda_services.c.
struct held_stream {
    uint32_t *flag; // pinned
    CUdeviceptr address;
    uint32_t number; // that the flag gets
    bool is_held, is_over, has_waited;
    uint64_t patience_ns; // that the run has, until it is let go in the end
    pid_t runner;         // its thread
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

// Clocks, and why they are held back, in NVML's bits.
struct gpu_clocks {
    unsigned mhz, memory_mhz;
    unsigned long long throttle;
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
    double deadline_s;   // of one wait for the GPU, or for NCCL
    uint64_t delay_ns;   // that GPUs wait for their hosts before a call; alike on all ranks
    int multiprocessors, sm;
    size_t l2_bytes;
    char name[CUDA_NAME_SIZE], bus[32];
    bool can_fabric, can_file, can_multicast;
    bool all_peers;        // reach each other, as far as this process sees them
    bool has_hidden_peers; // some process does not see all GPUs: whether these reach each other shows late
    enum reach reach;
    char no_reach[REASON_SIZE]; // why not the one before
    uint32_t *give_up;          // pinned; not zero: kernels leave their waits
    CUdeviceptr give_up_address;
    struct shared_memory meeting; // flags and epochs of barriers between ranks, ours
    struct shared_memory workspaces[CUDA_KERNELS];
    int users[CUDA_KERNELS];
    size_t workspace_bytes;     // the largest message
    CUdeviceptr states;         // a RankState for each kernel
    struct shared_memory arena; // data of calls, of all places that are open
    size_t arena_taken;         // its bytes, alike on all ranks
    struct place *places;       // that are open
    struct joint *joint;        // rank 0's; NULL where each rank launches for itself
    bool is_published;          // the calls of a sample are in `joint`
    int slot;                   // of the call at hand
    CUdeviceptr flush, counter; // what a cache is emptied by; of bytes that differ
    struct held_stream held;
    double link_bytes_per_us;      // measured; 0: there are no links
    struct grid last;              // launch of a candidate; of one that does not say, the least
    struct gpu_clocks clocks_seen; // the least, and all reasons; 0: none yet
    bool is_told;                  // of rank 0's: somebody was told of the devices, and is in the end
    char lines[MAX_TP][LINE_SIZE]; // what the protocol says of each rank's
    char problem[REASON_SIZE];
};

static inline struct device *device_of(const struct group *group) {
    return group->device;
}

// Whether one launch is for all ranks.
bool device_is_joint(const struct device *device);

// Whether this rank enqueues what is for all: every rank where each has a stream, else rank 0.
bool device_enqueues(const struct device *device);

int device_open(struct group *group, const struct device_options *options, char reason[REASON_SIZE]);
void device_close(struct group *group);

// False, and the group has failed, if a call of the driver did.
bool device_ok(struct device *device, CUresult result, const char *what);

// Collective. Says the first rank's problem, if any has one, on all ranks; whether there was none.
bool ranks_are_fine(struct group *group, char reason[REASON_SIZE]);

// Which kernels there are: NULL where this name is not built in.
CUfunction device_kernel(struct device *device, const char *name);

// Enqueues a kernel.
bool device_launch(struct device *device, CUfunction kernel, struct grid grid, const void *parameters,
                   size_t bytes);

// Blocks of this kernel that the GPU holds at once, for one rank.
unsigned device_resident_blocks(struct device *device, CUfunction kernel, unsigned threads,
                                bool programmatic);

// Waits for an event until the group's time is over; then kernels give up and the group fails.
bool device_wait(struct device *device, CUevent event);
bool device_finish(struct device *device); // all that is in the stream

// Ranks meet `times` times, on their GPUs.
bool device_barrier(struct device *device, int times);
bool device_delay(struct device *device, uint64_t nanoseconds);

// Collective, memory.c. Zeroed memory that all ranks reach, and with `multicast` by one address, too, where
// the hardware can; `option` says how much. -1: there is no such memory, -2: the others do not get to it:
// `reason`, alike on all ranks.
int shared_memory_open(struct device *device, size_t bytes, bool multicast, const char *option,
                       struct shared_memory *memory, char reason[REASON_SIZE]);
void shared_memory_close(struct device *device, struct shared_memory *memory);

// The pieces that such memory of `bytes` is taken in, and what it takes with that.
size_t shared_memory_granularity(const struct device *device, size_t bytes, bool multicast);
size_t shared_memory_rounded(const struct device *device, size_t bytes, bool multicast);

// Collective, budget.c. The bytes of `wanted` that the data of calls get on each rank, and never less than
// `least` where that much is wanted. 0: `reason`, alike on all ranks.
size_t arena_budget(struct device *device, size_t wanted, size_t least, char reason[REASON_SIZE]);

// kernel_candidates.c: what a workspace takes on each rank.
size_t workspace_bytes_of(const struct device *device, enum cuda_kernel kernel);

// memory.c: memory of this rank alone, that the GPUs of a process reach, amid addresses without any. -1:
// there is none.
int memory_reserve(struct device *device, struct guarded *buffer, size_t bytes);
void memory_give_back(struct device *device, struct guarded *buffer);

// detect.c: what this machine's GPUs and links are, for people and for provenance. detect_line: of this rank.
// detect_look: takes note of clocks, and what holds them back, as they are now. detect_write_end, collective:
// what has become of them.
void detect_describe(char library[], size_t library_size, char isa[], size_t isa_size);
void detect_write(const struct group *group, FILE *out);
void detect_line(struct device *device, char line[], size_t line_size);
void detect_look(struct device *device);
void detect_write_end(struct group *group, FILE *out);

// images.c, made by the build: the compiled kernels of helpers (tp 0) and of a TP size; NULL: not built.
const void *cuda_kernels(int tp);
extern const char cuda_kernel_sizes[];  // such as "2, 4, 8"
extern const char cuda_architectures[]; // such as "sm_90"
extern const bool cuda_is_compiled;     // false: built with GENTABLES_CUDA_COMPILE=OFF

// Returns whether the driver refused the images because they hold no kernel for its GPU.
static inline bool cuda_images_lack(CUresult result) {
    return result == CUDA_ERROR_NO_BINARY_FOR_GPU || (result != CUDA_SUCCESS && !cuda_is_compiled);
}

#endif
