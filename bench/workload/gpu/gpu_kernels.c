// Collectives between ranks that share a GPU; see gpu_kernels.h.
#include "gpu_kernels.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cuda/device/device.h"

enum { PHASES = 2, MESSAGES = 2, ACCESS = 16, WARP = 32, ALIGNMENT = 256, KERNEL_NAME = 96 };

// A launch's parameters, as cuda/kernels/parameters.h lays them out.
struct parameters {
    _Alignas(8) unsigned char bytes[sizeof(struct CallParameters) + sizeof(struct ExchangeCall) +
                                    MAX_TP * (2 * sizeof(CUdeviceptr) + sizeof(struct RankParameters)) +
                                    MAX_TP * MAX_TP * sizeof(uint64_t)];
    size_t used;
};

// ---- opening --------------------------------------------------------------------------------------------

// The kernel of this kind of collective on elements of this type.
static bool look_up(struct gpu_own *own, enum collective_kind kind, enum dtype dtype, char reason[],
                    size_t reason_size) {
    char name[KERNEL_NAME];
    if (kind == ALLREDUCE)
        snprintf(name, sizeof name, "gentables_twoshot_%s_fp32_none_tp%d", dtype_short_names[dtype],
                 own->ranks);
    else if (kind == REDUCE_SCATTER)
        snprintf(name, sizeof name, "gentables_reduce_scatter_%s_tp%d", dtype_short_names[dtype], own->ranks);
    else
        snprintf(name, sizeof name, "gentables_exchange_tp%d", own->ranks);
    return driver_ok(own->driver,
                     own->driver->cuModuleGetFunction(&own->kernels[kind][dtype], own->module, name), name,
                     reason, reason_size);
}

static bool load(struct gpu_own *own, const struct program *program, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = own->driver;
    const void *image = cuda_kernels(own->ranks);
    if (image == NULL) {
        snprintf(reason, reason_size,
                 "our kernels are built for %s ranks, not %d; -DGENTABLES_CUDA_TP=... builds others",
                 cuda_kernel_sizes, own->ranks);
        return false;
    }
    CUresult result = driver->cuModuleLoadData(&own->module, image);
    if (cuda_images_lack(result)) {
        snprintf(reason, reason_size,
                 "our kernels are built for %s, not for this GPU; `cmake --preset cuda-all` builds for all",
                 cuda_architectures);
        return false;
    }
    if (!driver_ok(driver, result, "loading kernels", reason, reason_size)) return false;
    for (size_t i = 0; i < program->collective_count; i++) {
        enum collective_kind kind = program->collectives[i].kind;
        enum dtype dtype = program->collectives[i].dtype;
        if (own->kernels[kind][dtype] == NULL && !look_up(own, kind, dtype, reason, reason_size))
            return false;
    }
    return true;
}

// Blocks that wait for each other must be resident together, also those of the largest kernel.
static bool fits(struct gpu_own *own, CUdevice device, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = own->driver;
    int of_each = 0, multiprocessors = 0;
    if (own->threads % WARP != 0) {
        snprintf(reason, reason_size, "blocks of %u threads; --threads must be a multiple of %d",
                 own->threads, WARP);
        return false;
    }
    driver->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    own->most_blocks = UINT_MAX;
    for (int i = 0; i < COLLECTIVE_KINDS * DTYPES; i++) {
        CUfunction kernel = own->kernels[i / DTYPES][i % DTYPES];
        if (kernel == NULL) continue;
        CUresult result =
            driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, (int)own->threads, 0);
        if (!driver_ok(driver, result, "how many blocks fit", reason, reason_size)) return false;
        unsigned most = (unsigned)of_each * (unsigned)multiprocessors / (unsigned)own->ranks;
        if (most < own->most_blocks) own->most_blocks = most;
    }
    if (own->most_blocks > MAX_BLOCKS) own->most_blocks = MAX_BLOCKS;
    if (own->blocks <= own->most_blocks) return true;
    snprintf(reason, reason_size,
             "%u blocks of %u threads for each of %d ranks: this GPU holds %u of them at once, by --channels",
             own->blocks, own->threads, own->ranks, own->most_blocks);
    return false;
}

static bool make_workspaces(struct gpu_own *own, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = own->driver;
    size_t slots = MESSAGES * own->capacity;
    size_t flags = PHASES * (size_t)own->ranks * own->blocks * sizeof(uint32_t);
    flags = (flags + ACCESS - 1) / ACCESS * ACCESS;
    size_t each = (slots + flags + sizeof(struct RankState) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    CUresult result = driver->cuMemAlloc(&own->memory, each * (size_t)own->ranks);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemsetD8Async(own->memory, 0, each * (size_t)own->ranks, own->stream);
    for (int rank = 0; rank < own->ranks; rank++) {
        own->slots[rank] = own->memory + each * (size_t)rank;
        own->flags[rank] = own->slots[rank] + slots;
        own->states[rank] = own->flags[rank] + flags;
    }
    return driver_ok(driver, result, "workspaces", reason, reason_size);
}

static bool make_give_up(struct gpu_own *own, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = own->driver;
    void *word = NULL;
    CUresult result = driver->cuMemHostAlloc(&word, sizeof *own->give_up, CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) result = driver->cuMemHostGetDevicePointer(&own->give_up_address, word, 0);
    own->give_up = word;
    if (word != NULL) *own->give_up = 0;
    return driver_ok(driver, result, "pinned memory", reason, reason_size);
}

bool gpu_own_open(struct gpu_own *own, const struct cuda_driver *driver, const struct gpu_own_wish *wish,
                  char reason[], size_t reason_size) {
    size_t bytes = wish->bytes + (wish->threads + 1) * ACCESS; // the last row may end after the message
    *own = (struct gpu_own){.driver = driver,
                            .stream = wish->stream,
                            .ranks = wish->program->ranks,
                            .blocks = wish->blocks,
                            .threads = wish->threads,
                            .capacity = bytes / ALIGNMENT * ALIGNMENT + ALIGNMENT};
    return load(own, wish->program, reason, reason_size) && fits(own, wish->device, reason, reason_size) &&
           make_give_up(own, reason, reason_size) && make_workspaces(own, reason, reason_size);
}

void gpu_own_close(struct gpu_own *own) {
    if (own->memory != 0) own->driver->cuMemFree(own->memory);
    if (own->give_up != NULL) own->driver->cuMemFreeHost(own->give_up);
    if (own->module != NULL) own->driver->cuModuleUnload(own->module);
    *own = (struct gpu_own){0};
}

// ---- calls ----------------------------------------------------------------------------------------------

static void append(struct parameters *parameters, const void *bytes, size_t count) {
    memcpy(parameters->bytes + parameters->used, bytes, count);
    parameters->used += count;
}

// The message as rows of accesses, of which every thread of a block has one: at least one row for each rank,
// where there are so many accesses. The last row may end beyond the message.
static struct CallParameters call_of(const struct gpu_own *own, size_t bytes) {
    size_t accesses = (bytes + ACCESS - 1) / ACCESS, ranks = (size_t)own->ranks;
    size_t row = (accesses + ranks - 1) / ranks;
    if (row > own->threads) row = own->threads;
    return (struct CallParameters){.num_tokens = (int32_t)((accesses + row - 1) / row),
                                   .accesses_per_token = (int32_t)row,
                                   .max_blocks = (int32_t)own->blocks,
                                   .capacity = own->capacity / ACCESS,
                                   .give_up = (const uint32_t *)own->give_up_address}; // NOLINT
}

// Appends the addresses of the ranks' workspaces and messages.
static void append_ranks(const struct gpu_own *own, const struct gpu_own_call *call,
                         struct parameters *parameters) {
    size_t pointers = (size_t)own->ranks * sizeof(CUdeviceptr);
    append(parameters, own->slots, pointers);
    append(parameters, own->flags, pointers);
    for (int rank = 0; rank < own->ranks; rank++) {
        const struct RankParameters mine = {.rank = rank,
                                            .input = (const void *)call->in[rank], // NOLINT: the GPU's
                                            .out = (void *)call->out[rank],        // NOLINT
                                            .state = (struct RankState *)own->states[rank]}; // NOLINT
        append(parameters, &mine, sizeof mine);
    }
}

static void append_exchange(const struct gpu_own *own, const struct gpu_own_call *call,
                            struct parameters *parameters) {
    const struct ExchangeCall exchange = {.give_up = (const uint32_t *)own->give_up_address, // NOLINT
                                          .max_blocks = (int32_t)own->blocks,
                                          .gathers = call->kind == ALL_GATHER,
                                          .reduces = call->kind == REDUCE_SCATTER};
    append(parameters, &exchange, sizeof exchange);
    append_ranks(own, call, parameters);
    for (int from = 0; from < own->ranks; from++) {
        for (int to = 0; to < own->ranks; to++) {
            size_t elements = call->kind == ALL_TO_ALL ? call->sent[from][to] : call->elements;
            uint64_t bytes = elements * dtype_sizes_bytes[call->dtype];
            append(parameters, &bytes, sizeof bytes);
        }
    }
}

CUresult gpu_own_enqueue(const struct gpu_own *own, const struct gpu_own_call *call) {
    struct parameters parameters = {.used = 0};
    if (call->kind == ALLREDUCE) {
        const struct CallParameters shared = call_of(own, call->elements * dtype_sizes_bytes[call->dtype]);
        append(&parameters, &shared, sizeof shared);
        append_ranks(own, call, &parameters);
    } else {
        append_exchange(own, call, &parameters);
    }
    CUlaunchConfig config = {.gridDimX = own->blocks,
                             .gridDimY = (unsigned)own->ranks,
                             .gridDimZ = 1,
                             .blockDimX = own->threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = own->stream};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters.bytes, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &parameters.used, CU_LAUNCH_PARAM_END};
    return own->driver->cuLaunchKernelEx(&config, own->kernels[call->kind][call->dtype], NULL, extra);
}

void gpu_own_give_up(struct gpu_own *own) {
    __atomic_store_n(own->give_up, 1, __ATOMIC_RELAXED);
}
