// Calls on the driver's first GPU, timed by events on their stream. Other work is enqueued before a call and
// keeps the GPU busy until the whole call is enqueued, so that its time does not include the launch.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"
#include "replay/compute_device.h"

enum { ALIGNMENT = 256, LEAST_FLUSH = 32 << 20 };

struct gpu gpu;

static struct {
    CUevent from, to;
    CUdeviceptr memory, flush;
    size_t memory_bytes, flush_bytes;
    char name[200];
} here;

CUdeviceptr gpu_address(const void *data) {
    return (CUdeviceptr)(uintptr_t)data;
}

int gpu_load(const struct gpu_library *wanted, char reason[], size_t reason_size) {
    void *library =
        library_open(wanted->variable, (const char *const[]){wanted->soname, NULL}, reason, reason_size);
    const char *missing =
        library != NULL ? functions_look_up(library, wanted->names, wanted->functions) : NULL;
    if (library != NULL && missing == NULL) return 0;
    if (missing != NULL)
        snprintf(reason, reason_size, "the library loaded as %s lacks %s", wanted->title, missing);
    else if (*reason == '\0')
        snprintf(reason, reason_size, "%s was not found; add its folder to LD_LIBRARY_PATH, or set %s=FILE",
                 wanted->soname, wanted->variable);
    return -1;
}

static bool ok(CUresult result, const char *what, char reason[REASON_SIZE]) {
    return driver_ok(gpu.driver, result, what, reason, REASON_SIZE);
}

bool gpu_finish(char reason[]) {
    if (!ok(gpu.driver->cuEventRecord(here.to, gpu.stream), "an event", reason)) return false;
    CUresult result;
    while ((result = gpu.driver->cuEventQuery(here.to)) == CUDA_ERROR_NOT_READY) sched_yield();
    return ok(result, "the GPU", reason);
}

// Allocates the workspace and a scale.
static bool reserve(const struct cuda_driver *driver, CUdevice device, char reason[REASON_SIZE]) {
    int cache = 0;
    driver->cuDeviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
    here.flush_bytes = (size_t)cache * 2 > LEAST_FLUSH ? (size_t)cache * 2 : LEAST_FLUSH;
    const unsigned one = 0x3F800000; // as a float
    return ok(driver->cuMemAlloc(&here.flush, here.flush_bytes), "memory for cold caches", reason) &&
           ok(driver->cuMemAlloc(&gpu.workspace, WORKSPACE_BYTES), "a workspace", reason) &&
           ok(driver->cuMemAlloc(&gpu.one, sizeof(float)), "a scale", reason) &&
           ok(driver->cuMemsetD32Async(gpu.one, one, 1, gpu.stream), "a scale", reason) && gpu_finish(reason);
}

int gpu_open(int number, char text[], size_t text_size) {
    char reason[REASON_SIZE] = "";
    CUdevice device;
    CUcontext context;
    const struct cuda_driver *driver = gpu.driver = driver_load(reason, REASON_SIZE);
    bool is_open = driver != NULL && ok(driver->cuDeviceGet(&device, number), "the GPU", reason) &&
                   ok(driver->cuDeviceGetName(here.name, sizeof here.name, device), "its name", reason) &&
                   ok(driver->cuDevicePrimaryCtxRetain(&context, device), "its context", reason) &&
                   ok(driver->cuCtxSetCurrent(context), "its context", reason) &&
                   ok(driver->cuStreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING), "a stream", reason) &&
                   ok(driver->cuEventCreate(&here.from, CU_EVENT_DEFAULT), "an event", reason) &&
                   ok(driver->cuEventCreate(&here.to, CU_EVENT_DEFAULT), "an event", reason) &&
                   reserve(driver, device, reason);
    if (!is_open) snprintf(text, text_size, "%s", reason);
    return is_open ? 0 : -1;
}

static int open_gpu(int threads, char reason[REASON_SIZE]) {
    (void)threads;
    return gpu_open(0, reason, REASON_SIZE);
}

static void describe(char name[], size_t size) {
    snprintf(name, size, "%s", here.name);
}

// ---- operands -------------------------------------------------------------------------------------------

static size_t padded(const struct tensor *tensor) {
    return (tensor_bytes(tensor) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool provide(size_t bytes, char reason[REASON_SIZE]) {
    if (bytes <= here.memory_bytes) return true;
    if (here.memory != 0) gpu.driver->cuMemFree(here.memory);
    here.memory = here.memory_bytes = 0;
    char what[64];
    snprintf(what, sizeof what, "%.1f GB of the GPU's memory", (double)bytes / 1e9);
    if (!ok(gpu.driver->cuMemAlloc(&here.memory, bytes), what, reason)) return false;
    here.memory_bytes = bytes;
    return true;
}

static int load(const struct operands *operands, struct operands *loaded, char reason[REASON_SIZE]) {
    *loaded = *operands;
    struct tensor *const tensors[] = {&loaded->a, &loaded->b, &loaded->c, &loaded->out};
    enum { TENSORS = sizeof tensors / sizeof tensors[0] };
    size_t bytes = 0;
    for (int i = 0; i < TENSORS; i++) bytes += padded(tensors[i]);
    if (!provide(bytes, reason)) return -1;
    CUdeviceptr at = here.memory;
    for (int i = 0; i < TENSORS; i++) {
        const void *from = tensors[i]->data;
        if (tensors[i]->count == 0) continue;
        tensors[i]->data = (void *)(uintptr_t)at; // NOLINT: an address of the GPU's
        if (tensors[i] != &loaded->out &&
            !ok(gpu.driver->cuMemcpyHtoDAsync(at, from, tensor_bytes(tensors[i]), gpu.stream), "a copy",
                reason))
            return -1;
        at += padded(tensors[i]);
    }
    return gpu_finish(reason) ? 0 : -1;
}

static int poison(const struct operands *loaded) {
    char reason[REASON_SIZE];
    const struct tensor *out = &loaded->out;
    return ok(gpu.driver->cuMemsetD8Async(gpu_address(out->data), 0xFF, tensor_bytes(out), gpu.stream),
              "the result's memory", reason) &&
                   gpu_finish(reason)
               ? 0
               : -1;
}

static int fetch(const struct operands *loaded, const struct operands *operands) {
    char reason[REASON_SIZE];
    const struct tensor *out = &loaded->out;
    return ok(gpu.driver->cuMemcpyDtoHAsync(operands->out.data, gpu_address(out->data), tensor_bytes(out),
                                            gpu.stream),
              "the result", reason) &&
                   gpu_finish(reason)
               ? 0
               : -1;
}

// ---- time -----------------------------------------------------------------------------------------------

// First comes a write to other memory, which flushes the caches and keeps the GPU busy. Before a warm call
// the same call is made once more.
static int time_call(const struct prepared_op *prepared, const struct operands *loaded, bool is_cold,
                     double *us) {
    (void)loaded;
    char reason[REASON_SIZE];
    float ms = 0;
    if (!ok(gpu.driver->cuMemsetD8Async(here.flush, 1, here.flush_bytes, gpu.stream), "a fill", reason))
        return -1;
    if (!is_cold && prepared->run(prepared->state) != 0) return -1;
    if (!ok(gpu.driver->cuEventRecord(here.from, gpu.stream), "an event", reason)) return -1;
    if (prepared->run(prepared->state) != 0 || !gpu_finish(reason)) return -1;
    if (!ok(gpu.driver->cuEventElapsedTime(&ms, here.from, here.to), "a time", reason)) return -1;
    *us = (double)ms * 1e3;
    return 0;
}

// ---- a kernel that does nothing --------------------------------------------------------------------------

// The driver compiles this for its GPU.
static const char empty_kernel[] = ".version 7.0\n"
                                   ".target sm_80\n"
                                   ".address_size 64\n"
                                   ".visible .entry gentables_empty() { ret; }\n";

static int run_empty(void *state) {
    enum { THREADS = 128 };
    const CUlaunchConfig one = {.gridDimX = 1,
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = THREADS,
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .hStream = gpu.stream};
    return gpu.driver->cuLaunchKernelEx(&one, (CUfunction)state, NULL, NULL) == CUDA_SUCCESS ? 0 : -1;
}

static void keep_empty(void *state) {
    (void)state; // it is loaded once
}

static int prepare_empty(struct prepared_op *prepared, char reason[REASON_SIZE]) {
    static CUfunction kernel;
    CUmodule module;
    if (kernel == NULL &&
        (!ok(gpu.driver->cuModuleLoadData(&module, empty_kernel), "an empty kernel", reason) ||
         !ok(gpu.driver->cuModuleGetFunction(&kernel, module, "gentables_empty"), "an empty kernel", reason)))
        return -1;
    *prepared = (struct prepared_op){.run = run_empty, .end = keep_empty, .state = kernel};
    return 0;
}

// After an error of a kernel, every later call of the driver returns that error.
static bool is_lost(void) {
    char reason[REASON_SIZE];
    return !gpu_finish(reason);
}

static const struct library *library_at(int index) {
    return index == 0 ? &library_cublaslt : index == 1 ? &library_cudnn : NULL;
}

const struct compute_device device_cuda = {
    .name = "cuda",
    .loads_at_launch = true, // by the driver's default
    .library = library_at,
    .open = open_gpu,
    .describe = describe,
    .load = load,
    .poison = poison,
    .time = time_call,
    .prepare_empty = prepare_empty,
    .fetch = fetch,
    .is_lost = is_lost,
};
