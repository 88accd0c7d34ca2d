// Services for plug-ins on a GPU: its number, their rank's stream, NCCL's communicator if they need one, and
// callbacks that use the shared memory of the ranks, without MPI.
#include "cuda_services.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "candidate.h"
#include "libraries/nccl_library.h"
#include "ranks/waited_time.h"

enum { COMPARE_BLOCKS = 128, COMPARE_THREADS = 256, ALIGNMENT = 256, LOST = 0xff };

struct own {
    struct group *group;
    struct communicator *communicator; // NULL: no communicator was requested
    const void *comm;
    char library[32];
};

// ---- a rank -------------------------------------------------------------------------------------------

static int open_services(struct group *group, unsigned comm, gt_rank *rank, void **own,
                         char reason[REASON_SIZE]) {
    struct device *device = device_of(group);
    struct own *made = calloc(1, sizeof *made);
    char problem[REASON_SIZE] = "";
    if (made == NULL) snprintf(problem, sizeof problem, "out of memory");
    if (device->joint != NULL && problem[0] == '\0')
        snprintf(problem, sizeof problem, "plug-ins launch for each rank; use --streams");
    if (ranks_are_fine(group, problem) && comm == GT_COMM_NCCL) {
        made->communicator = nccl_open(device, &made->comm, problem);
        ranks_are_fine(group, problem);
    }
    if (problem[0] != '\0') {
        snprintf(reason, REASON_SIZE, "%s", problem);
        if (made != NULL && made->communicator != NULL) nccl_close(made->communicator);
        free(made);
        return -1;
    }
    made->group = group;
    rank->device = device->ordinal;
    rank->stream = device->stream;
    if (comm == GT_COMM_NCCL) {
        int version = nccl_version();
        snprintf(made->library, sizeof made->library, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
        rank->comm_kind = GT_COMM_NCCL;
        rank->comm = made->comm;
        rank->comm_library = made->library;
    }
    *own = made;
    return 0;
}

static void close_services(void *own) {
    struct own *made = own;
    if (made->communicator != NULL) nccl_close(made->communicator);
    free(made);
}

static int allgather(void *own, const void *in, void *out, size_t bytes) {
    return group_gather(((struct own *)own)->group, in, bytes, out) ? 0 : -1;
}

static int barrier(void *own) {
    return group_barrier(((struct own *)own)->group) ? 0 : -1;
}

static void enter(struct group *group) {
    struct device *device = device_of(group);
    device->driver->cuCtxSetCurrent(device->context);
}

// ---- memory -------------------------------------------------------------------------------------------

static int reserve(struct group *group, struct guarded *buffer, size_t bytes) {
    return memory_reserve(device_of(group), buffer, bytes);
}

static void give_back(struct group *group, struct guarded *buffer) {
    memory_give_back(device_of(group), buffer);
}

static CUdeviceptr address_of(const void *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

static bool put(struct group *group, void *to, const void *from, size_t bytes) {
    struct device *device = device_of(group);
    if (bytes == 0) return true;
    return device_ok(device, device->driver->cuMemcpyHtoDAsync(address_of(to), from, bytes, device->stream),
                     "a copy") &&
           device_finish(device);
}

// A copy to host memory waits for the stream in the driver, which has no deadline; so device_finish comes
// first.
static bool get(struct group *group, void *to, const void *from, size_t bytes) {
    struct device *device = device_of(group);
    if (bytes == 0) return device_finish(device);
    return device_finish(device) &&
           device_ok(device, device->driver->cuMemcpyDtoHAsync(to, address_of(from), bytes, device->stream),
                     "a copy") &&
           device_finish(device);
}

static bool fill(struct group *group, void *to, int byte, size_t bytes) {
    struct device *device = device_of(group);
    if (bytes == 0) return true;
    return device_ok(
               device,
               device->driver->cuMemsetD8Async(address_of(to), (unsigned char)byte, bytes, device->stream),
               "filling memory") &&
           device_finish(device);
}

// A kernel counts the bytes that differ; the host does not wait between the run and the kernel.
static bool compare(struct group *group, const void *is, const void *should, size_t bytes, bool *same) {
    struct device *device = device_of(group);
    const struct cuda_driver *driver = device->driver;
    struct ArrayParameters parameters = {.words = bytes};
    uint64_t differing = 0, blocks = (bytes + COMPARE_THREADS - 1) / COMPARE_THREADS;
    *same = true;
    if (bytes == 0) return device_finish(device); // a launch has at least one block
    struct grid grid = {.blocks = blocks < COMPARE_BLOCKS ? (unsigned)blocks : COMPARE_BLOCKS,
                        .ranks = 1,
                        .threads = COMPARE_THREADS};
    parameters.from[0] = is;
    parameters.from[1] = should;
    parameters.to[0] = (void *)(uintptr_t)device->counter;
    bool right =
        device_ok(device, driver->cuMemsetD8Async(device->counter, 0, sizeof differing, device->stream),
                  "a comparison") &&
        device_launch(device, device_kernel(device, "gentables_compare"), grid, &parameters,
                      sizeof parameters) &&
        device_finish(device) &&
        device_ok(device,
                  driver->cuMemcpyDtoHAsync(&differing, device->counter, sizeof differing, device->stream),
                  "a copy") &&
        device_finish(device);
    *same = differing == 0;
    return right;
}

static bool epilogue(struct group *group, const struct call *call) {
    return epilogue_launch(device_of(group), EPILOGUE_ONE, call);
}

static size_t device_bytes(const struct group *group) {
    const struct device *device = device_of(group);
    size_t left = 0, all = 0;
    if (device->driver->cuMemGetInfo(&left, &all) != CUDA_SUCCESS) return 0;
    return all - left;
}

// ---- holding a stream ---------------------------------------------------------------------------------

// The time so many nanoseconds from now, on the clock of condition variables.
static struct timespec in_ns(uint64_t nanoseconds) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    nanoseconds += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(nanoseconds / 1000000000);
    at.tv_nsec = (long)(nanoseconds % 1000000000);
    return at;
}

// A run that waits for the held stream would never return, so another thread releases the stream once the run
// has had its time; time in which the run's thread waited for a processor counts half.
static void *release_after_patience(void *context) {
    struct held_stream *held = context;
    struct waited_time waited;
    waited_time_begin(&waited, clock_ns(), waited_time_starved_ns(held->runner));
    pthread_mutex_lock(&held->lock);
    while (!held->is_over && waited.had_ns < held->patience_ns) {
        struct timespec next = in_ns(WAITED_TIME_UPDATE_NS);
        pthread_cond_clockwait(&held->changed, &held->lock, CLOCK_MONOTONIC, &next);
        waited_time_update(&waited, clock_ns(), waited_time_starved_ns(held->runner));
    }
    if (!held->is_over) {
        held->has_waited = true;
        __atomic_store_n(held->flag, held->number, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&held->lock);
    return NULL;
}

static bool hold(struct group *group, void *lost, size_t bytes) {
    struct device *device = device_of(group);
    struct held_stream *held = &device->held;
    held->is_over = held->has_waited = held->is_held = false;
    held->number++;
    held->patience_ns = (uint64_t)(device->deadline_s / 2 * 1e9);
    held->runner = gettid();
    CUresult result = device->driver->cuStreamWaitValue32(device->stream, held->address, held->number,
                                                          CU_STREAM_WAIT_VALUE_GEQ);
    if (result == CUDA_ERROR_NOT_SUPPORTED) return true; // a run that waits cannot be detected
    if (result == CUDA_SUCCESS && bytes > 0)
        result = device->driver->cuMemsetD8Async(address_of(lost), LOST, bytes, device->stream);
    if (!device_ok(device, result, "holding a stream")) {
        __atomic_store_n(held->flag, held->number, __ATOMIC_RELEASE); // releases a run that already waits
        return false;
    }
    held->is_held = pthread_create(&held->thread, NULL, release_after_patience, held) == 0;
    if (!held->is_held) __atomic_store_n(held->flag, held->number, __ATOMIC_RELEASE);
    return true;
}

static bool let_go(struct group *group, bool *has_waited) {
    struct held_stream *held = &device_of(group)->held;
    *has_waited = false;
    if (!held->is_held) return true;
    pthread_mutex_lock(&held->lock);
    held->is_over = true;
    *has_waited = held->has_waited;
    __atomic_store_n(held->flag, held->number, __ATOMIC_RELEASE);
    pthread_cond_signal(&held->changed);
    pthread_mutex_unlock(&held->lock);
    pthread_join(held->thread, NULL);
    held->is_held = false;
    return true;
}

const struct plugin_services cuda_plugin_services = {
    .memory = GT_MEMORY_CUDA,
    .where = "memory of GPUs",
    .comms = 1u << GT_COMM_NCCL,
    .comm_name = "NCCL's",
    .alignment = ALIGNMENT,
    .open = open_services,
    .close = close_services,
    .allgather = allgather,
    .barrier = barrier,
    .enter = enter,
    .reserve = reserve,
    .give_back = give_back,
    .put = put,
    .get = get,
    .fill = fill,
    .compare = compare,
    .hold = hold,
    .let_go = let_go,
    .epilogue = epilogue,
    .device_bytes = device_bytes,
};
