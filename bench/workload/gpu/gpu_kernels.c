// Collectives between ranks that share a GPU; see gpu_kernels.h.
#include "gpu_kernels.h"

#include <stdio.h>
#include <string.h>

#include "cuda/device/device.h"

// One of so many multiprocessors, but at least one, stays free of our blocks. Else our blocks and those of a
// GEMM with blocks that wait for each other could each be resident in part, and wait for the other's room.
enum { OF_MULTIPROCESSORS_FREE = 8 };
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
static bool look_up(struct gpu_kernels *kernels, enum collective_kind kind, enum dtype dtype, char reason[],
                    size_t reason_size) {
    char name[KERNEL_NAME];
    if (kind == ALLREDUCE)
        snprintf(name, sizeof name, "gentables_twoshot_%s_fp32_none_tp%d", dtype_short_names[dtype],
                 kernels->ranks);
    else if (kind == REDUCE_SCATTER)
        snprintf(name, sizeof name, "gentables_reduce_scatter_%s_tp%d", dtype_short_names[dtype],
                 kernels->ranks);
    else
        snprintf(name, sizeof name, "gentables_exchange_tp%d", kernels->ranks);
    return driver_ok(
        kernels->driver,
        kernels->driver->cuModuleGetFunction(&kernels->functions[kind][dtype], kernels->module, name), name,
        reason, reason_size);
}

static bool load(struct gpu_kernels *kernels, const struct program *program, char reason[],
                 size_t reason_size) {
    const struct cuda_driver *driver = kernels->driver;
    const void *image = cuda_kernels(kernels->ranks);
    if (image == NULL) {
        snprintf(reason, reason_size,
                 "our kernels are built for %s ranks, not %d; -DGENTABLES_CUDA_TP=... builds others",
                 cuda_kernel_sizes, kernels->ranks);
        return false;
    }
    CUresult result = driver->cuModuleLoadData(&kernels->module, image);
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
        if (kernels->functions[kind][dtype] == NULL && !look_up(kernels, kind, dtype, reason, reason_size))
            return false;
    }
    return true;
}

// The blocks of all ranks that leave multiprocessors free, if each takes one.
static unsigned blocks_beside_gemms(struct gpu_kernels *kernels, CUdevice device) {
    int multiprocessors = 0;
    kernels->driver->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    int free_ones = multiprocessors / OF_MULTIPROCESSORS_FREE;
    kernels->multiprocessors = multiprocessors;
    kernels->free_multiprocessors = free_ones > 0 ? free_ones : 1;
    return (unsigned)(multiprocessors - kernels->free_multiprocessors);
}

// Limits the blocks. Those of all ranks wait for each other, so all of them must be resident together, also
// those of the largest kernel.
static bool limit_blocks(struct gpu_kernels *kernels, CUdevice device, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = kernels->driver;
    unsigned ranks = (unsigned)kernels->ranks, most = blocks_beside_gemms(kernels, device);
    if (kernels->threads % WARP != 0) {
        snprintf(reason, reason_size, "blocks of %u threads; --threads must be a multiple of %d",
                 kernels->threads, WARP);
        return false;
    }
    for (int i = 0; i < COLLECTIVE_KINDS * DTYPES; i++) {
        CUfunction kernel = kernels->functions[i / DTYPES][i % DTYPES];
        int of_each = 0;
        if (kernel == NULL) continue;
        CUresult result =
            driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, (int)kernels->threads, 0);
        if (!driver_ok(driver, result, "how many blocks fit", reason, reason_size)) return false;
        unsigned resident = (unsigned)of_each * (unsigned)kernels->multiprocessors;
        if (resident < most) most = resident;
    }
    kernels->most_blocks = most / ranks < MAX_BLOCKS ? most / ranks : MAX_BLOCKS;
    if (kernels->blocks > kernels->most_blocks) kernels->blocks = kernels->most_blocks;
    if (kernels->blocks > 0) return true;
    snprintf(reason, reason_size,
             "%u ranks need a block of %u threads each, and beside GEMMs this GPU has room for %u; use fewer "
             "--ranks or --threads",
             ranks, kernels->threads, most);
    return false;
}

static bool make_workspaces(struct gpu_kernels *kernels, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = kernels->driver;
    size_t slots = MESSAGES * kernels->capacity;
    size_t flags = PHASES * (size_t)kernels->ranks * kernels->blocks * sizeof(uint32_t);
    flags = (flags + ACCESS - 1) / ACCESS * ACCESS;
    size_t each = (slots + flags + sizeof(struct RankState) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    CUresult result = driver->cuMemAlloc(&kernels->memory, each * (size_t)kernels->ranks);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemsetD8Async(kernels->memory, 0, each * (size_t)kernels->ranks, kernels->stream);
    for (int rank = 0; rank < kernels->ranks; rank++) {
        kernels->slots[rank] = kernels->memory + each * (size_t)rank;
        kernels->flags[rank] = kernels->slots[rank] + slots;
        kernels->states[rank] = kernels->flags[rank] + flags;
    }
    return driver_ok(driver, result, "workspaces", reason, reason_size);
}

static bool make_give_up(struct gpu_kernels *kernels, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = kernels->driver;
    void *word = NULL;
    CUresult result = driver->cuMemHostAlloc(&word, sizeof *kernels->give_up, CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemHostGetDevicePointer(&kernels->give_up_address, word, 0);
    kernels->give_up = word;
    if (word != NULL) *kernels->give_up = 0;
    return driver_ok(driver, result, "pinned memory", reason, reason_size);
}

bool gpu_kernels_open(struct gpu_kernels *kernels, const struct cuda_driver *driver,
                      const struct gpu_kernels_options *options, char reason[], size_t reason_size) {
    size_t bytes = options->bytes + (options->threads + 1) * ACCESS; // the last row may end after the message
    *kernels = (struct gpu_kernels){.driver = driver,
                                    .stream = options->stream,
                                    .ranks = options->program->ranks,
                                    .blocks = options->blocks,
                                    .threads = options->threads,
                                    .capacity = bytes / ALIGNMENT * ALIGNMENT + ALIGNMENT};
    return load(kernels, options->program, reason, reason_size) &&
           limit_blocks(kernels, options->device, reason, reason_size) &&
           make_give_up(kernels, reason, reason_size) && make_workspaces(kernels, reason, reason_size);
}

void gpu_kernels_close(struct gpu_kernels *kernels) {
    if (kernels->memory != 0) kernels->driver->cuMemFree(kernels->memory);
    if (kernels->give_up != NULL) kernels->driver->cuMemFreeHost(kernels->give_up);
    if (kernels->module != NULL) kernels->driver->cuModuleUnload(kernels->module);
    *kernels = (struct gpu_kernels){0};
}

// ---- calls ----------------------------------------------------------------------------------------------

static void append(struct parameters *parameters, const void *bytes, size_t count) {
    memcpy(parameters->bytes + parameters->used, bytes, count);
    parameters->used += count;
}

// The message as rows of accesses, of which every thread of a block has one: at least one row for each rank,
// where there are so many accesses. The last row may end beyond the message.
static struct CallParameters call_of(const struct gpu_kernels *kernels, size_t bytes) {
    size_t accesses = (bytes + ACCESS - 1) / ACCESS, ranks = (size_t)kernels->ranks;
    size_t row = (accesses + ranks - 1) / ranks;
    if (row > kernels->threads) row = kernels->threads;
    return (struct CallParameters){.num_tokens = (int32_t)((accesses + row - 1) / row),
                                   .accesses_per_token = (int32_t)row,
                                   .accesses_per_block = (int32_t)row,
                                   .max_blocks = (int32_t)kernels->blocks,
                                   .capacity = kernels->capacity / ACCESS,
                                   .give_up = (const uint32_t *)kernels->give_up_address}; // NOLINT
}

// Appends the addresses of the ranks' workspaces and messages.
static void append_ranks(const struct gpu_kernels *kernels, const struct gpu_kernels_call *call,
                         struct parameters *parameters) {
    size_t pointers = (size_t)kernels->ranks * sizeof(CUdeviceptr);
    append(parameters, kernels->slots, pointers);
    append(parameters, kernels->flags, pointers);
    for (int rank = 0; rank < kernels->ranks; rank++) {
        const struct RankParameters mine = {.rank = rank,
                                            .input = (const void *)call->in[rank], // NOLINT: the GPU's
                                            .out = (void *)call->out[rank],        // NOLINT
                                            .state = (struct RankState *)kernels->states[rank]}; // NOLINT
        append(parameters, &mine, sizeof mine);
    }
}

static void append_exchange(const struct gpu_kernels *kernels, const struct gpu_kernels_call *call,
                            struct parameters *parameters) {
    const struct ExchangeCall exchange = {.give_up = (const uint32_t *)kernels->give_up_address, // NOLINT
                                          .max_blocks = (int32_t)kernels->blocks,
                                          .gathers = call->kind == ALL_GATHER,
                                          .reduces = call->kind == REDUCE_SCATTER};
    append(parameters, &exchange, sizeof exchange);
    append_ranks(kernels, call, parameters);
    for (int from = 0; from < kernels->ranks; from++) {
        for (int to = 0; to < kernels->ranks; to++) {
            size_t elements = call->kind == ALL_TO_ALL ? call->sent[from][to] : call->elements;
            uint64_t bytes = elements * dtype_sizes_bytes[call->dtype];
            append(parameters, &bytes, sizeof bytes);
        }
    }
}

CUresult gpu_kernels_enqueue(const struct gpu_kernels *kernels, const struct gpu_kernels_call *call) {
    struct parameters parameters = {.used = 0};
    if (call->kind == ALLREDUCE) {
        const struct CallParameters shared =
            call_of(kernels, call->elements * dtype_sizes_bytes[call->dtype]);
        append(&parameters, &shared, sizeof shared);
        append_ranks(kernels, call, &parameters);
    } else {
        append_exchange(kernels, call, &parameters);
    }
    CUlaunchConfig config = {.gridDimX = kernels->blocks,
                             .gridDimY = (unsigned)kernels->ranks,
                             .gridDimZ = 1,
                             .blockDimX = kernels->threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = kernels->stream};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters.bytes, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &parameters.used, CU_LAUNCH_PARAM_END};
    return kernels->driver->cuLaunchKernelEx(&config, kernels->functions[call->kind][call->dtype], NULL,
                                             extra);
}

void gpu_kernels_give_up(struct gpu_kernels *kernels) {
    __atomic_store_n(kernels->give_up, 1, __ATOMIC_RELAXED);
}
