// Strategies that are kernels of our own: ONESHOT, TWOSHOT and those by multicast, with their epilogues.
// Strategies with the same kernel share its workspace and state. A call is one launch; with joint launches
// (--loopback without --streams) it is one launch for all ranks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candidate.h"

enum {
    PHASES = 2,
    EMPTY_SLOT = (int)0x80000000,
    MOST_THREADS = 1024,
    ACCESS_BYTES = 16,
    WARP = 32,        // threads, and accesses
    WIDE_ROW = 512,   // accesses
    MOST_CLUSTER = 4, // blocks
    LEAST_SHARE = 64, // of a block in a row, in accesses
    MOST_SHARE = 512,
    SHARE_MULTIPLE = 4, // no block of elements with a common scale is in two shares
};

struct own {
    const struct candidate *candidate;
    const struct kernel_detail *detail;
    struct device *device;
    CUfunction kernels[DTYPES][FUSIONS];
};

// A launch's parameters, as cuda/kernels/parameters.h lays them out.
struct parameters {
    _Alignas(8) unsigned char bytes[sizeof(struct CallParameters) +
                                    MAX_TP * (2 * sizeof(void *) + sizeof(struct RankParameters))];
    size_t used;
};

// ---- the workspace ----------------------------------------------------------------------------------------

// Messages of the largest size that a kernel's workspace holds on each rank.
static size_t messages_of(enum cuda_kernel kernel, int ranks) {
    size_t messages = 0;
    switch (kernel) {
#define MESSAGES(its_kernel, function, strategy, its_messages, fp32)                                         \
    case its_kernel: messages = (size_t)(its_messages); break;
        CUDA_KERNEL_LIST(MESSAGES)
#undef MESSAGES
    case CUDA_KERNELS: break;
    }
    (void)ranks; // not every kernel's number depends on them
    return messages;
}

static size_t flags_offset(const struct device *device, enum cuda_kernel kernel) {
    return messages_of(kernel, device->group->size) * device->workspace_bytes;
}

// Empties the slots, and clears flags and state.
static bool clear_workspace(struct device *device, enum cuda_kernel kernel) {
    const struct cuda_driver *driver = device->driver;
    const struct shared_memory *memory = &device->workspaces[kernel];
    CUdeviceptr own = memory->of[device->group->rank];
    size_t flags_at = flags_offset(device, kernel);
    unsigned empty = cuda_kernel_facts[kernel].starts_empty ? (unsigned)EMPTY_SLOT : 0;
    CUdeviceptr state = device->states + (size_t)kernel * sizeof(struct RankState);
    CUresult result = driver->cuMemsetD32Async(own, empty, flags_at / 4, device->stream);
    if (result == CUDA_SUCCESS) {
        result = driver->cuMemsetD8Async(own + flags_at, 0, memory->bytes - flags_at, device->stream);
    }
    if (result == CUDA_SUCCESS)
        result = driver->cuMemsetD8Async(state, 0, sizeof(struct RankState), device->stream);
    return device_ok(device, result, "clearing a workspace") && device_finish(device);
}

size_t workspace_bytes_of(const struct device *device, enum cuda_kernel kernel) {
    size_t flags = (size_t)PHASES * (size_t)device->group->size * MAX_BLOCKS * sizeof(uint32_t);
    return flags_offset(device, kernel) + flags;
}

static int open_workspace(struct device *device, enum cuda_kernel kernel, char reason[REASON_SIZE]) {
    if (device->users[kernel] == 0) {
        if (shared_memory_open(device, workspace_bytes_of(device, kernel),
                               cuda_kernel_facts[kernel].needs_multicast, "--workspace",
                               &device->workspaces[kernel], reason) != 0)
            return -1;
        if (!clear_workspace(device, kernel) || !group_barrier(device->group)) {
            snprintf(reason, REASON_SIZE, "%s", group_failure(device->group));
            return -1;
        }
    }
    device->users[kernel]++;
    return 0;
}

static void close_workspace(struct device *device, enum cuda_kernel kernel) {
    if (--device->users[kernel] == 0) shared_memory_close(device, &device->workspaces[kernel]);
}

// ---- set-up ------------------------------------------------------------------------------------------

void kernel_name(char name[KERNEL_NAME_SIZE], enum cuda_kernel kernel, enum dtype dtype, bool fp32,
                 enum fusion fusion, int tp) {
    snprintf(name, KERNEL_NAME_SIZE, "gentables_%s_%s_%s_%s_tp%d", cuda_kernel_facts[kernel].name,
             dtype_short_names[dtype], fp32 ? "fp32" : "native", fusion_facts[fusion].short_name, tp);
}

static void find_kernels(struct own *own) {
    struct device *device = own->device;
    char name[KERNEL_NAME_SIZE];
    int tp = device->group->size;
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        bool fp32 = own->candidate->accumulates_fp32 || dtype == DTYPE_FLOAT32; // for which both are the same
        for (int fusion = 0; fusion < FUSIONS; fusion++) {
            kernel_name(name, own->detail->kernel, (enum dtype)dtype, fp32, (enum fusion)fusion, tp);
            own->kernels[dtype][fusion] = device_kernel(device, name);
        }
    }
}

// Sets the reason why none of its calls can be done on this device, or "".
static void check_device(const struct own *own, char reason[REASON_SIZE]) {
    const struct device *device = own->device;
    bool needs_multicast = cuda_kernel_facts[own->detail->kernel].needs_multicast;
    reason[0] = '\0';
    if (own->kernels[DTYPE_FLOAT32][FUSION_NONE] == NULL) {
        snprintf(reason, REASON_SIZE, "kernels are built for TP %s; -DGENTABLES_CUDA_TP=... builds others",
                 cuda_kernel_sizes);
    } else if (device->reach == REACH_NONE) {
        snprintf(reason, REASON_SIZE, "%s",
                 device->no_reach[0] != '\0' ? device->no_reach : "no peer access between the GPUs");
    } else if (needs_multicast && device->options.loopback) {
        snprintf(reason, REASON_SIZE, "a multicast team needs a GPU for each rank");
    } else if (needs_multicast && !device->can_multicast) {
        snprintf(reason, REASON_SIZE, "%s", device_no_multicast(device));
    }
}

static void own_teardown(void *state) {
    struct own *own = state;
    close_workspace(own->device, own->detail->kernel);
    free(own);
}

static int own_setup(const struct candidate *candidate, struct group *group, void **state,
                     char reason[REASON_SIZE]) {
    struct own *own = calloc(1, sizeof *own);
    if (group_min(group, own != NULL) == 0) {
        snprintf(reason, REASON_SIZE, "out of memory");
        free(own);
        return -1;
    }
    own->candidate = candidate;
    own->detail = candidate->detail;
    own->device = device_of(group);
    find_kernels(own);
    check_device(own, reason);
    if (reason[0] != '\0' || open_workspace(own->device, own->detail->kernel, reason) != 0) {
        free(own);
        return -1;
    }
    if (cuda_kernel_facts[own->detail->kernel].needs_multicast &&
        own->device->workspaces[own->detail->kernel].multicast == 0) {
        snprintf(reason, REASON_SIZE, "%s", own->device->workspaces[own->detail->kernel].no_multicast);
        own_teardown(own);
        return -1;
    }
    *state = own;
    return 0;
}

static const char *own_supports(const struct group *group, const struct call *call) {
    const struct device *device = group->device;
    const char *refusal = call_refusal(device, call);
    if (refusal != NULL) return refusal;
    if (call_bytes(call) > device->workspace_bytes)
        return "its message is larger than the workspace; see --workspace";
    return NULL;
}

// ---- shapes ------------------------------------------------------------------------------------------

// Whether each rank reduces a slice of the tokens.
static bool has_slices(const struct own *own) {
    return cuda_kernel_facts[own->detail->kernel].slices;
}

// The fusion that is part of the allreduce's kernel.
static enum fusion fusion_in_kernel(const struct own *own, const struct call *call) {
    return own->detail->epilogue == EPILOGUE_FUSED ? call->fusion : FUSION_NONE;
}

// The width of the rows of a call without an epilogue, in accesses, `most` at most. The aim is a row for each
// multiprocessor, of at least a warp and at most what a block moves at once: a single multiprocessor would
// need about a microsecond to store one token of 14 KiB to 8 ranks. Rows have equal widths, so the result is
// the nearest width that divides the size.
static size_t row_width(const struct own *own, size_t accesses, size_t most) {
    size_t sharers = own->device->options.loopback ? (size_t)own->device->group->size : 1;
    size_t wanted = accesses * sharers / (size_t)own->device->common_multiprocessors;
    wanted = wanted < WARP ? WARP : wanted > WIDE_ROW ? WIDE_ROW : wanted;
    if (wanted > most) wanted = most;
    size_t least = wanted < WARP ? wanted : WARP;
    for (size_t width = wanted; width >= least; width--) {
        if (accesses % width == 0) return width;
    }
    for (size_t width = wanted + 1; width <= MOST_THREADS && width <= most; width++) {
        if (accesses % width == 0) return width;
    }
    size_t narrow = least - 1;
    while (accesses % narrow != 0) narrow--;
    return narrow;
}

// The call with rows that suit the kernel, if the kernel has no epilogue: then rows are any equal parts.
static struct call with_rows(const struct own *own, const struct call *call) {
    struct call shaped = *call;
    size_t bytes = call_bytes(call), accesses = bytes / ACCESS_BYTES;
    size_t least = has_slices(own) ? (size_t)own->device->group->size : 1;
    if (fusion_in_kernel(own, call) != FUSION_NONE || accesses < least) return shaped;
    size_t width = row_width(own, accesses, accesses / least);
    shaped.num_tokens = accesses / width;
    shaped.hidden_size = width * ACCESS_BYTES / dtype_sizes_bytes[call->dtype];
    return shaped;
}

// Checks what the strategy requires of a call; own_supports checks what all of them require.
static int own_prepare(void *state, const struct call *call, char reason[REASON_SIZE]) {
    const struct own *own = state;
    const char *refused = NULL;
    size_t slices = call->is_size_alone ? with_rows(own, call).num_tokens : call->num_tokens;
    if (has_slices(own) && slices < (size_t)own->device->group->size)
        refused = call->is_size_alone ? "fewer than 16 bytes for each rank" : "fewer tokens than ranks";
    if (own->detail->epilogue != EPILOGUE_FUSED && call->fusion == FUSION_NONE)
        refused = "there is no epilogue to separate";
    if (refused == NULL) return 0;
    snprintf(reason, REASON_SIZE, "%s", refused);
    return -1;
}

// The accesses of a row that each block of a cluster has; the last ones may have fewer.
static size_t share_of(size_t accesses, unsigned cluster) {
    size_t share = (accesses + cluster - 1) / cluster;
    return (share + SHARE_MULTIPLE - 1) / SHARE_MULTIPLE * SHARE_MULTIPLE;
}

// ---- calls -------------------------------------------------------------------------------------------

static void append(struct parameters *parameters, const void *bytes, size_t count) {
    memcpy(parameters->bytes + parameters->used, bytes, count);
    parameters->used += count;
}

// For the ranks of this launch: all that share the GPU, or this rank.
static void fill_parameters(const struct own *own, const struct call *call, struct parameters *parameters) {
    struct device *device = own->device;
    enum cuda_kernel kernel = own->detail->kernel;
    const struct shared_memory *workspace = &device->workspaces[kernel];
    int ranks = device->group->size;
    struct CallParameters shared = call_parameters(device, call);
    size_t flags_at = flags_offset(device, kernel);
    parameters->used = 0;
    shared.multicast = (void *)workspace->multicast;
    if (device->last.cluster > 1)
        shared.accesses_per_block =
            (int32_t)share_of((size_t)shared.accesses_per_token, device->last.cluster);
    append(parameters, &shared, sizeof shared);
    for (int rank = 0; rank < ranks; rank++) append(parameters, &workspace->of[rank], sizeof(CUdeviceptr));
    for (int rank = 0; rank < ranks; rank++) {
        CUdeviceptr flags = workspace->of[rank] + flags_at;
        append(parameters, &flags, sizeof flags);
    }
    for (int i = 0; i < ranks; i++) {
        int rank = device->joint != NULL ? i : device->group->rank;
        const struct call *of = device->joint != NULL ? &device->joint->calls[rank][device->slot] : call;
        struct RankParameters mine = rank_parameters(rank, of);
        CUdeviceptr states = device->joint != NULL ? device->joint->states[rank] : device->states;
        if (own->detail->epilogue != EPILOGUE_FUSED) mine.out = of->residual_out; // the sum
        mine.state = (struct RankState *)(states + (size_t)kernel * sizeof(struct RankState));
        append(parameters, &mine, sizeof mine);
    }
}

unsigned kernel_threads(int tp) {
    return tp > 8 ? MOST_THREADS / 2 : MOST_THREADS;
}

// The threads of a block, which handles a row at a time. If a kernel with an epilogue has more rows than the
// GPU has multiprocessors, each thread has two accesses of a row. Then a multiprocessor holds two or more
// blocks, and one loads a row while another adds squares; it would hold a single block of a thread for each
// access of a row of 14 KiB.
static unsigned threads_of(const struct own *own, const struct call *call, size_t rows) {
    const struct device *device = own->device;
    size_t ranks = (size_t)device->group->size, sharers = device->options.loopback ? ranks : 1;
    unsigned threads = row_threads(call, kernel_threads((int)ranks));
    bool is_crowded = rows * sharers > (size_t)device->common_multiprocessors;
    if (fusion_in_kernel(own, call) == FUSION_NONE || !is_crowded) return threads;
    return (threads / WARP + 1) / 2 * WARP;
}

// With few rows, a cluster of blocks for each row of a kernel with an epilogue: for the instructions of a
// row, a single multiprocessor would need more time than its messages travel. Sets the blocks, threads and
// cluster of *grid, and returns true, if two blocks for each row occupy at most half of the multiprocessors.
// On an H200, clusters of 8 blocks, and clusters on more multiprocessors, were slower in most cells.
static bool share_rows(const struct own *own, const struct call *call, CUfunction kernel, size_t rows,
                       struct grid *grid) {
    struct device *device = own->device;
    size_t sharers = device->options.loopback ? (size_t)device->group->size : 1;
    size_t accesses = call->hidden_size * dtype_sizes_bytes[call->dtype] / ACCESS_BYTES;
    unsigned cluster = MOST_CLUSTER;
    if (fusion_in_kernel(own, call) == FUSION_NONE) return false;
    while (cluster > 1 && (rows * sharers * cluster > (size_t)device->common_multiprocessors / 2 ||
                           accesses < (size_t)cluster * LEAST_SHARE))
        cluster /= 2;
    size_t share = share_of(accesses, cluster);
    if (cluster == 1 || share > MOST_SHARE) return false;
    struct grid shared = *grid;
    shared.cluster = cluster;
    shared.blocks = (unsigned)rows * cluster;
    shared.threads = (unsigned)((share + WARP - 1) / WARP * WARP);
    if (device_resident_clusters(device, kernel, shared) < rows) return false;
    *grid = shared;
    return true;
}

// A block or a cluster of blocks for each row, as far as the GPU can hold them at once.
static struct grid grid_of(struct own *own, const struct call *call, CUfunction kernel) {
    struct device *device = own->device;
    size_t rows = call->num_tokens, ranks = (size_t)device->group->size;
    if (has_slices(own)) rows = (rows + ranks - 1) / ranks;
    struct grid grid = {.ranks = device->joint != NULL ? (unsigned)ranks : 1,
                        .threads = threads_of(own, call, rows),
                        .programmatic = !device_is_joint(device)};
    if (share_rows(own, call, kernel, rows, &grid)) return grid;
    unsigned resident = device_resident_blocks(device, kernel, grid.threads, grid.programmatic);
    grid.blocks = rows < resident ? (unsigned)rows : resident;
    return grid;
}

static int own_run(void *state, const struct call *call) {
    struct own *own = state;
    struct device *device = own->device;
    struct group *group = device->group;
    const struct call shaped = with_rows(own, call);
    struct parameters parameters;
    bool publishes = device->joint != NULL && !device->is_published;
    if (publishes) {
        device->slot = 0;
        device->joint->calls[group->rank][0] = *call;
        if (!group_barrier(group)) return -1;
    }
    CUfunction kernel = own->kernels[call->dtype][fusion_in_kernel(own, call)];
    device->last = grid_of(own, &shaped, kernel);
    bool launched = true;
    if (device->last.blocks == 0) {
        group_fail(group, "the GPU cannot hold a block of each rank");
        return -1;
    }
    if (device_enqueues(device)) {
        fill_parameters(own, &shaped, &parameters);
        launched = device_launch(device, kernel, device->last, parameters.bytes, parameters.used);
    }
    if (launched && own->detail->epilogue != EPILOGUE_FUSED)
        launched = epilogue_launch(device, own->detail->epilogue, call);
    if (publishes && !group_barrier(group)) return -1;
    return launched ? 0 : -1;
}

const struct strategy strategy_cuda_kernel = {
    .supports = own_supports,
    .setup = own_setup,
    .run = own_run,
    .teardown = own_teardown,
    .prepare = own_prepare,
};
