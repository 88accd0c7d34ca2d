// An allreduce between ranks that share a GPU; see gpu_allreduce.h.
#include "workload/gpu_allreduce.h"

#include <stdio.h>
#include <string.h>

#include "cuda/device.h"

enum { PHASES = 2, MESSAGES = 2, ACCESS = 16, WARP = 32, ALIGNMENT = 256, KERNEL_NAME = 96 };

// A launch's parameters, as cuda/parameters.h lays them out.
struct parameters {
    _Alignas(8) unsigned char bytes[sizeof(struct CallParameters) +
                                    MAX_TP * (2 * sizeof(CUdeviceptr) + sizeof(struct RankParameters))];
    size_t used;
};

// ---- opening --------------------------------------------------------------------------------------------

static bool load(struct gpu_allreduce *own, enum dtype dtype, char reason[], size_t reason_size) {
    static const char *const words[DTYPES] = {
        [DTYPE_FLOAT32] = "fp32", [DTYPE_BFLOAT16] = "bf16", [DTYPE_FLOAT16] = "fp16"};
    const struct cuda_driver *driver = own->driver;
    const void *image = cuda_kernels(own->ranks);
    char name[KERNEL_NAME];
    if (image == NULL) {
        snprintf(reason, reason_size,
                 "our kernels are built for %s ranks, not %d; -DGENTABLES_CUDA_TP=... builds others",
                 cuda_kernel_sizes, own->ranks);
        return false;
    }
    CUresult result = driver->cuModuleLoadData(&own->module, image);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        snprintf(reason, reason_size,
                 "our kernels are built for %s, not for this GPU; `cmake --preset cuda-all` builds for all",
                 cuda_architectures);
        return false;
    }
    snprintf(name, sizeof name, "gentables_twoshot_%s_fp32_none_tp%d", words[dtype], own->ranks);
    return driver_ok(driver, result, "loading kernels", reason, reason_size) &&
           driver_ok(driver, driver->cuModuleGetFunction(&own->kernel, own->module, name), name, reason,
                     reason_size);
}

// Blocks that wait for each other have to be there together.
static bool fits(const struct gpu_allreduce *own, CUdevice device, char reason[], size_t reason_size) {
    int of_each = 0, multiprocessors = 0;
    if (own->threads % WARP != 0) {
        snprintf(reason, reason_size, "blocks of %u threads: multiples of %d would be right, by --threads",
                 own->threads, WARP);
        return false;
    }
    own->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, own->kernel, (int)own->threads, 0);
    own->driver->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    unsigned most = (unsigned)of_each * (unsigned)multiprocessors / (unsigned)own->ranks;
    if (own->blocks <= most) return true;
    snprintf(reason, reason_size,
             "%u blocks of %u threads for each of %d ranks: this GPU holds %u of them at once, by --channels",
             own->blocks, own->threads, own->ranks, most);
    return false;
}

static bool make_workspaces(struct gpu_allreduce *own, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = own->driver;
    size_t slots = MESSAGES * own->capacity;
    size_t flags = PHASES * (size_t)own->ranks * own->blocks * sizeof(uint32_t);
    size_t each = (slots + flags + sizeof(struct RankState) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    CUresult result = driver->cuMemAlloc(&own->memory, each * (size_t)own->ranks);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemsetD8Async(own->memory, 0, each * (size_t)own->ranks, own->stream);
    for (int rank = 0; rank < own->ranks; rank++) {
        own->slots[rank] = own->memory + each * (size_t)rank;
        own->flags[rank] = own->slots[rank] + slots;
        own->states[rank] = own->flags[rank] + (flags + 7) / 8 * 8;
    }
    return driver_ok(driver, result, "workspaces", reason, reason_size);
}

static bool make_give_up(struct gpu_allreduce *own, char reason[], size_t reason_size) {
    const struct cuda_driver *driver = own->driver;
    void *word = NULL;
    CUresult result = driver->cuMemHostAlloc(&word, sizeof *own->give_up, CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) result = driver->cuMemHostGetDevicePointer(&own->give_up_address, word, 0);
    own->give_up = word;
    if (word != NULL) *own->give_up = 0;
    return driver_ok(driver, result, "pinned memory", reason, reason_size);
}

bool gpu_allreduce_open(struct gpu_allreduce *own, const struct cuda_driver *driver,
                        const struct gpu_allreduce_wish *wish, char reason[], size_t reason_size) {
    size_t bytes = wish->bytes + (wish->threads + 1) * ACCESS; // the last row may end beyond the message
    *own = (struct gpu_allreduce){.driver = driver,
                                  .stream = wish->stream,
                                  .ranks = wish->ranks,
                                  .blocks = wish->blocks,
                                  .threads = wish->threads,
                                  .capacity = bytes / ALIGNMENT * ALIGNMENT + ALIGNMENT};
    return load(own, wish->dtype, reason, reason_size) && fits(own, wish->device, reason, reason_size) &&
           make_give_up(own, reason, reason_size) && make_workspaces(own, reason, reason_size);
}

void gpu_allreduce_close(struct gpu_allreduce *own) {
    if (own->memory != 0) own->driver->cuMemFree(own->memory);
    if (own->give_up != NULL) own->driver->cuMemFreeHost(own->give_up);
    if (own->module != NULL) own->driver->cuModuleUnload(own->module);
    *own = (struct gpu_allreduce){0};
}

// ---- calls ----------------------------------------------------------------------------------------------

static void append(struct parameters *parameters, const void *bytes, size_t count) {
    memcpy(parameters->bytes + parameters->used, bytes, count);
    parameters->used += count;
}

// The message as rows of accesses, of which every thread of a block has one: at least one row for each rank,
// where there are so many accesses. The last row may end beyond the message.
static struct CallParameters call_of(const struct gpu_allreduce *own, size_t bytes) {
    size_t accesses = (bytes + ACCESS - 1) / ACCESS, ranks = (size_t)own->ranks;
    size_t row = (accesses + ranks - 1) / ranks;
    if (row > own->threads) row = own->threads;
    return (struct CallParameters){.num_tokens = (int32_t)((accesses + row - 1) / row),
                                   .accesses_per_token = (int32_t)row,
                                   .max_blocks = (int32_t)own->blocks,
                                   .capacity = own->capacity / ACCESS,
                                   .give_up = (const uint32_t *)own->give_up_address}; // NOLINT
}

CUresult gpu_allreduce_enqueue(const struct gpu_allreduce *own, const CUdeviceptr in[],
                               const CUdeviceptr out[], size_t bytes) {
    struct parameters parameters = {.used = 0};
    const struct CallParameters call = call_of(own, bytes);
    size_t pointers = (size_t)own->ranks * sizeof(CUdeviceptr);
    append(&parameters, &call, sizeof call);
    append(&parameters, own->slots, pointers);
    append(&parameters, own->flags, pointers);
    for (int rank = 0; rank < own->ranks; rank++) {
        const struct RankParameters mine = {.rank = rank,
                                            .input = (const void *)in[rank], // NOLINT: the GPU's addresses
                                            .out = (void *)out[rank],        // NOLINT
                                            .state = (struct RankState *)own->states[rank]}; // NOLINT
        append(&parameters, &mine, sizeof mine);
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
    return own->driver->cuLaunchKernelEx(&config, own->kernel, NULL, extra);
}

void gpu_allreduce_give_up(struct gpu_allreduce *own) {
    __atomic_store_n(own->give_up, 1, __ATOMIC_RELAXED);
}
