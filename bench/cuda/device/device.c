// The GPU of one rank; see device.h.
#include "device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libraries/nccl_library.h"
#include "ranks/fault_report.h"

enum {
    DEFAULT_WORKSPACE_BYTES = 64 << 20,
    ARENA_MESSAGES = 8, // of the largest size, that the data of calls have room for
    ARENA_USUAL_BYTES = 64 << 20,
    AFTER_GIVING_UP_S = 2,
    GROUP_PATIENCE = 4, // times a GPU's, so that the rank that hangs is reported, not one that waits for it
    BANDWIDTH_REPEATS = 4,
    DELAY_NS = 100000, // at first
};

// ---- errors ---------------------------------------------------------------------------------------

bool device_is_joint(const struct device *device) {
    return device->options.loopback && !device->options.streams && device->group->shares_process;
}

bool device_enqueues(const struct device *device) {
    return !device_is_joint(device) || device->group->rank == 0;
}

// Fails the group, with the name of the candidate or plug-in that is at work.
__attribute__((format(printf, 2, 3))) static void problem(struct device *device, const char *format, ...) {
    const char *who = fault_current_work();
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(device->problem, sizeof device->problem, "%s%s", who != NULL ? who : "",
                          who != NULL ? ": " : "");
    vsnprintf(device->problem + length, sizeof device->problem - (size_t)length, format, arguments);
    va_end(arguments);
    group_fail(device->group, device->problem);
}

bool device_ok(struct device *device, CUresult result, const char *what) {
    char error[REASON_SIZE];
    if (driver_ok(device->driver, result, what, error, sizeof error)) return true;
    bool is_astray = result == CUDA_ERROR_ILLEGAL_ADDRESS && fault_current_work() != NULL;
    problem(device, "%s%s", is_astray ? "touched memory beyond a buffer: " : "", error);
    return false;
}

bool ranks_are_fine(struct group *group, char reason[REASON_SIZE]) {
    return group_all_right(group, reason[0] == '\0', reason, REASON_SIZE);
}

static int attribute(const struct device *device, CUdevice_attribute which) {
    int value = 0;
    device->driver->cuDeviceGetAttribute(&value, which, device->id);
    return value;
}

// ---- which GPU --------------------------------------------------------------------------------------

static void refuse_count(const struct device *device, int count, char reason[REASON_SIZE]) {
    int ranks = device->group->size;
    snprintf(reason, REASON_SIZE, "%d ranks need %d GPUs, and here %s %d; --loopback puts all ranks on one",
             ranks, ranks, count == 1 ? "is" : "are", count);
}

static void refuse_sharing(const struct device *device, char reason[REASON_SIZE]) {
    int count = 0;
    device->driver->cuDeviceGetCount(&count);
    snprintf(reason, REASON_SIZE,
             "unavailable: shared GPU: %d processes, and each sees %d; give each its own, or run the "
             "ranks as threads (gentables-bench-cuda --loopback)",
             device->group->size, count);
}

// Rank r takes GPU r, and in loopback GPU 0. A process that sees fewer GPUs than there are ranks takes its
// first: some launchers show each rank another GPU, which compare_gpus checks.
static void choose(struct device *device, char reason[REASON_SIZE]) {
    int count = 0;
    device->driver->cuDeviceGetCount(&count);
    bool sees_all = count >= device->group->size;
    device->ordinal = device->options.loopback || !sees_all ? 0 : device->group->rank;
    if (device->options.loopback && !device->group->shares_process && !device->options.shares_gpu) {
        refuse_sharing(device, reason);
    } else if (!device->options.loopback && !sees_all && device->group->shares_process) {
        refuse_count(device, count, reason);
    }
}

static void describe(struct device *device) {
    const struct cuda_driver *driver = device->driver;
    size_t bytes = 0;
    driver->cuDeviceGetName(device->name, sizeof device->name, device->id);
    driver->cuDeviceGetPCIBusId(device->bus, sizeof device->bus, device->id);
    driver->cuDeviceTotalMem(&bytes, device->id);
    device->sm = 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                 attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->multiprocessors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    device->l2_bytes = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    device->can_fabric = attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED) != 0;
    device->can_file =
        attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
    device->can_multicast = !device->options.no_multicast && driver_has_multicast(driver) &&
                            attribute(device, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) != 0;
}

// Opens the GPU, its context and the modules.
static void take(struct device *device, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    CUresult result = driver->cuDeviceGet(&device->id, device->ordinal);
    if (result == CUDA_SUCCESS) result = driver->cuDevicePrimaryCtxRetain(&device->context, device->id);
    if (result == CUDA_SUCCESS) result = driver->cuCtxSetCurrent(device->context);
    if (!driver_ok(driver, result, "taking a GPU", reason, REASON_SIZE)) return;
    describe(device);
    kernels_load(device, reason);
}

// What ranks exchange about their GPUs.
struct gpu_traits {
    int sm, multiprocessors;
    CUuuid uuid;
    int can_fabric, can_file, can_multicast;
    char bus[32];
};

// Whether this GPU reaches another rank's. If this process does not see that GPU, only mapping its memory
// shows it; until then it counts as reached.
static bool reaches(struct device *device, const struct gpu_traits *other) {
    CUdevice id;
    int can = 1;
    if (device->driver->cuDeviceGetByPCIBusId(&id, other->bus) != CUDA_SUCCESS) {
        device->has_hidden_peers = true;
    } else if (id != device->id) {
        device->driver->cuDeviceCanAccessPeer(&can, device->id, id);
    }
    return can != 0;
}

// Checks that all ranks have GPUs of one kind, each its own. Multicast and kinds of handles are used only if
// all ranks have them.
static void compare_gpus(struct device *device, char reason[REASON_SIZE]) {
    struct gpu_traits mine = {.sm = device->sm,
                              .multiprocessors = device->multiprocessors,
                              .can_fabric = device->can_fabric,
                              .can_file = device->can_file,
                              .can_multicast = device->can_multicast},
                      all[MAX_TP];
    device->driver->cuDeviceGetUuid(&mine.uuid, device->id);
    snprintf(mine.bus, sizeof mine.bus, "%s", device->bus);
    if (!group_exchange(device->group, &mine, sizeof mine, all)) {
        snprintf(reason, REASON_SIZE, "%s", group_failure(device->group));
        return;
    }
    device->all_peers = true;
    device->common_multiprocessors = device->multiprocessors;
    for (int rank = 0; rank < device->group->size; rank++) {
        bool is_other = rank != device->group->rank && !device->options.loopback;
        if (all[rank].sm != mine.sm && reason[0] == '\0') {
            snprintf(reason, REASON_SIZE,
                     "GPUs of several kinds: rank %d has sm_%d, rank %d sm_%d; CUDA_VISIBLE_DEVICES chooses",
                     device->group->rank, mine.sm, rank, all[rank].sm);
        }
        if (all[rank].multiprocessors < device->common_multiprocessors)
            device->common_multiprocessors = all[rank].multiprocessors;
        device->can_fabric = device->can_fabric && all[rank].can_fabric;
        device->can_file = device->can_file && all[rank].can_file;
        device->can_multicast = device->can_multicast && all[rank].can_multicast;
        if (!is_other) continue;
        bool is_mine = memcmp(&all[rank].uuid, &mine.uuid, sizeof mine.uuid) == 0;
        if (is_mine && reason[0] == '\0') refuse_sharing(device, reason); // threads take GPUs by their ranks
        device->all_peers = reaches(device, &all[rank]) && device->all_peers;
    }
    if (device->options.loopback) device->can_multicast = false; // a team is of different GPUs
}

// ---- launches and waiting -----------------------------------------------------------------------------

enum { LAUNCH_ATTRIBUTES = 2 };

// `attributes` has room for LAUNCH_ATTRIBUTES.
static CUlaunchConfig launch_config(const struct device *device, struct grid grid,
                                    CUlaunchAttribute attributes[]) {
    unsigned count = 0;
    if (grid.programmatic && device->can_wait_for_launches)
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                  .value.programmaticStreamSerializationAllowed = 1};
    if (grid.cluster > 1)
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                  .value.clusterDim = {grid.cluster, 1, 1}};
    return (CUlaunchConfig){.gridDimX = grid.blocks,
                            .gridDimY = grid.ranks,
                            .gridDimZ = 1,
                            .blockDimX = grid.threads,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .hStream = device->stream,
                            .attrs = attributes,
                            .numAttrs = count};
}

bool device_launch(struct device *device, CUfunction kernel, struct grid grid, const void *parameters,
                   size_t bytes) {
    CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES];
    CUlaunchConfig config = launch_config(device, grid, attributes);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)parameters,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    return device_ok(device, device->driver->cuLaunchKernelEx(&config, kernel, NULL, extra), "a launch");
}

// Launches for which a GPU must have room at once. The next launch may be resident already. It needs room
// beside this one only if several ranks share the GPU: it starts after all blocks of this one on its rank,
// but may take the room of another rank's.
static unsigned resident_launches(const struct device *device, bool programmatic) {
    unsigned sharers = device->options.loopback ? (unsigned)device->group->size : 1;
    return sharers * (programmatic && sharers > 1 ? 2 : 1);
}

unsigned device_resident_blocks(struct device *device, CUfunction kernel, unsigned threads,
                                bool programmatic) {
    int per_multiprocessor = 0;
    device->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, (int)threads, 0);
    unsigned blocks = (unsigned)(per_multiprocessor * device->common_multiprocessors) /
                      resident_launches(device, programmatic);
    return blocks > MAX_BLOCKS ? MAX_BLOCKS : blocks;
}

// The clusters that this rank's GPU can hold at once.
static unsigned resident_clusters_here(const struct device *device, CUfunction kernel, struct grid grid) {
    const struct cuda_driver *driver = device->driver;
    CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES];
    CUlaunchConfig config = launch_config(device, grid, attributes);
    int clusters = 0;
    if (!device->has_clusters ||
        driver->cuOccupancyMaxActiveClusters(&clusters, kernel, &config) != CUDA_SUCCESS)
        return 0;
    return (unsigned)clusters / resident_launches(device, grid.programmatic);
}

// GPUs of one kind may differ in the multiprocessors of a GPC, and so in the clusters that they hold. Ranks
// exchange the number once: their calls, and so what they find here, are the same.
unsigned device_resident_clusters(struct device *device, CUfunction kernel, struct grid grid) {
    for (int i = 0; i < CLUSTER_COUNTS; i++) {
        const struct cluster_count *known = &device->cluster_counts[i];
        if (known->kernel == kernel && known->threads == grid.threads && known->cluster == grid.cluster &&
            known->is_programmatic == grid.programmatic)
            return known->clusters;
    }
    unsigned clusters = resident_clusters_here(device, kernel, grid);
    if (!device->options.loopback) clusters = (unsigned)group_min(device->group, (long)clusters);
    device->cluster_counts[device->counted++ % CLUSTER_COUNTS] =
        (struct cluster_count){kernel, grid.threads, grid.cluster, clusters, grid.programmatic};
    return clusters;
}

static void *abort_all(void *unused) {
    nccl_abort_all();
    return unused;
}

// Makes kernels leave their waits. Returns whether the event has passed then. NCCL's abort waits for graphs
// that contain its kernels, so another thread calls it.
static bool give_up(struct device *device, CUevent event) {
    pthread_t thread;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += AFTER_GIVING_UP_S;
    __atomic_store_n(device->give_up, 1, __ATOMIC_RELAXED);
    bool aborts = pthread_create(&thread, NULL, abort_all, NULL) == 0;
    uint64_t until_ns = clock_ns() + AFTER_GIVING_UP_S * 1000000000ull;
    bool left = false;
    while (!left && clock_ns() < until_ns) {
        left = device->driver->cuEventQuery(event) != CUDA_ERROR_NOT_READY;
        if (!left) usleep(1000);
    }
    if (aborts && pthread_timedjoin_np(thread, NULL, &until) != 0) pthread_detach(thread);
    return left;
}

// The clock is read before the event is queried, so that the event has a last chance after the deadline.
bool device_wait(struct device *device, CUevent event) {
    uint64_t since_ns = clock_ns(), waited_ns = 0;
    for (uint64_t polls = 1;; polls++) {
        if (polls % 64 == 0) waited_ns = clock_ns() - since_ns;
        CUresult result = device->driver->cuEventQuery(event);
        if (result == CUDA_SUCCESS) return true;
        if (result != CUDA_ERROR_NOT_READY) return device_ok(device, result, "a kernel");
        if (polls % 64 != 0) continue;
        if (device->group->oversubscribed) usleep(20);
        if ((double)waited_ns * 1e-9 < device->deadline_s) continue;
        bool left = give_up(device, event);
        problem(device, "rank %d's GPU hung for %g s%s", device->group->rank, device->deadline_s,
                left ? "; its kernels gave up" : ", and did not give up");
        return false;
    }
}

bool device_finish(struct device *device) {
    return device_ok(device, device->driver->cuEventRecord(device->after, device->stream), "an event") &&
           device_wait(device, device->after);
}

bool device_barrier(struct device *device, int times) {
    struct group *group = device->group;
    bool joint = device_is_joint(device);
    struct BarrierParameters parameters = {.give_up = (const uint32_t *)device->give_up_address,
                                           .tp = group->size,
                                           .rank = joint ? 0 : group->rank,
                                           .times = times};
    for (int rank = 0; rank < group->size; rank++) {
        parameters.flags[rank] = (uint32_t *)device->barrier_memory.of[rank];
        int of = joint ? rank : group->rank;
        parameters.epochs[rank] = (uint32_t *)device->barrier_memory.of[of] + MAX_TP;
    }
    CUfunction kernel = device_kernel(device, "gentables_barrier");
    struct grid grid = {.blocks = 1, .ranks = joint ? (unsigned)group->size : 1, .threads = 32};
    return device_launch(device, kernel, grid, &parameters, sizeof parameters);
}

bool device_delay(struct device *device, uint64_t nanoseconds) {
    struct DelayParameters parameters = {.nanoseconds = nanoseconds};
    struct grid grid = {.blocks = 1, .ranks = 1, .threads = 32};
    return device_launch(device, device_kernel(device, "gentables_delay"), grid, &parameters,
                         sizeof parameters);
}

// ---- resources of a rank --------------------------------------------------------------------------------

// Times copies of all ranks to the next rank at once. Returns the bytes per microsecond of the slowest; 0:
// there are no links.
static double measure_links(struct device *device) {
    const struct cuda_driver *driver = device->driver;
    struct group *group = device->group;
    if (device->options.loopback || device->reach == REACH_NONE || group->size == 1) return 0;
    size_t bytes = device->arena.bytes / 2 < (64u << 20) ? device->arena.bytes / 2 : 64u << 20;
    CUdeviceptr from = device->arena.of[group->rank],
                to = device->arena.of[(group->rank + 1) % group->size] + bytes;
    float best_ms = 0;
    for (int i = 0; i <= BANDWIDTH_REPEATS; i++) {
        float ms = 0;
        if (!group_barrier(group)) return 0;
        driver->cuEventRecord(device->before, device->stream);
        driver->cuMemcpyDtoDAsync(to, from, bytes, device->stream);
        if (!device_finish(device)) return 0;
        driver->cuEventElapsedTime(&ms, device->before, device->after);
        if (i > 0 && (best_ms <= 0 || ms < best_ms)) best_ms = ms;
    }
    double slowest_us = group_max(group, (double)best_ms * 1000);
    return slowest_us > 0 ? (double)bytes / slowest_us : 0;
}

static void make_stream(struct device *device, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    void *flag = NULL;
    CUresult result = driver->cuStreamCreate(&device->stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) result = driver->cuEventCreate(&device->before, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS) result = driver->cuEventCreate(&device->checked, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS) result = driver->cuEventCreate(&device->after, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS) {
        result = driver->cuMemHostAlloc(&flag, 2 * sizeof(uint32_t),
                                        CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
    }
    if (result == CUDA_SUCCESS) {
        device->give_up = flag;
        device->give_up[0] = device->give_up[1] = 0;
        result = driver->cuMemHostGetDevicePointer(&device->give_up_address, flag, 0);
        device->held.flag = device->give_up + 1;
        device->held.address = device->give_up_address + sizeof(uint32_t);
        pthread_mutex_init(&device->held.lock, NULL);
        pthread_cond_init(&device->held.changed, NULL);
    }
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAlloc(&device->states, CUDA_KERNELS * sizeof(struct RankState));
    if (result == CUDA_SUCCESS) result = driver->cuMemAlloc(&device->counter, sizeof(uint64_t));
    if (result == CUDA_SUCCESS) result = driver->cuMemAlloc(&device->flush, 2 * device->l2_bytes + 4096);
    driver_ok(driver, result, "preparing a GPU", reason, REASON_SIZE);
}

// Collective. Makes the memory for barriers and for the data of calls.
static int make_memory(struct device *device, char reason[REASON_SIZE]) {
    size_t message = device->options.workspace_bytes;
    device->workspace_bytes = message > 0 ? message : DEFAULT_WORKSPACE_BYTES;
    size_t least = ARENA_MESSAGES * device->workspace_bytes;
    size_t arena = least < ARENA_USUAL_BYTES ? ARENA_USUAL_BYTES : least;
    if (device->options.arena_bytes > 0) arena = device->options.arena_bytes;
    arena = arena_budget(device, arena, least, reason);
    if (arena == 0 || reach_open_arena(device, arena, reason) != 0) return -1;
    if (device->reach == REACH_NONE) return 0;
    return shared_memory_open(device, BARRIER_BYTES, false, "--arena", &device->barrier_memory, reason);
}

// Collective. Rank 0 makes it; all ranks are threads and see it.
static int open_joint(struct device *device, char reason[REASON_SIZE]) {
    if (!device_is_joint(device)) return 0;
    if (device->group->rank == 0) device->joint = calloc(1, sizeof *device->joint);
    group_broadcast(device->group, 0, &device->joint, sizeof device->joint);
    if (device->joint == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    device->joint->states[device->group->rank] = device->states;
    return group_barrier(device->group) ? 0 : -1;
}

static int open_parts(struct device *device, struct group *group, char reason[REASON_SIZE]) {
    device->driver = device_driver(reason, REASON_SIZE);
    if (reason[0] == '\0') choose(device, reason);
    if (!ranks_are_fine(group, reason)) return -1;
    take(device, reason);
    if (!ranks_are_fine(group, reason)) return -1;
    compare_gpus(device, reason);
    if (!ranks_are_fine(group, reason)) return -1;
    reach_choose(device);
    make_stream(device, reason);
    if (!ranks_are_fine(group, reason)) return -1;
    if (make_memory(device, reason) != 0) return -1;
    device->link_bytes_per_us = measure_links(device);
    if (open_joint(device, reason) != 0) return -1;
    char line[LINE_SIZE];
    detect_line(device, line, sizeof line);
    return group_exchange(group, line, sizeof line, device->lines) ? 0 : -1;
}

int device_open(struct group *group, const struct device_options *options, char reason[REASON_SIZE]) {
    if (!group_is_on_one_node(group, reason, REASON_SIZE)) return -1;
    struct device *device = calloc(1, sizeof *device);
    reason[0] = '\0';
    if (device == NULL) snprintf(reason, REASON_SIZE, "out of memory");
    bool is_open = ranks_are_fine(group, reason);
    if (is_open) {
        *device = (struct device){
            .group = group, .options = *options, .deadline_s = group->timeout_s, .delay_ns = DELAY_NS};
        group->device = device;
        group->timeout_s *= (double)GROUP_PATIENCE;
        is_open = open_parts(device, group, reason) == 0;
    }
    if (is_open) return 0;
    group->device = NULL;
    free(device);
    return -1;
}

void device_close(struct group *group) {
    struct device *device = device_of(group);
    const struct cuda_driver *driver = device->driver;
    shared_memory_close(device, &device->barrier_memory);
    shared_memory_close(device, &device->arena);
    driver->cuMemFree(device->flush);
    driver->cuMemFree(device->states);
    driver->cuMemFree(device->counter);
    driver->cuMemFreeHost(device->give_up);
    driver->cuEventDestroy(device->before);
    driver->cuEventDestroy(device->checked);
    driver->cuEventDestroy(device->after);
    driver->cuStreamDestroy(device->stream);
    for (int i = 0; i < 2; i++) {
        if (device->modules[i] != NULL) driver->cuModuleUnload(device->modules[i]);
    }
    driver->cuDevicePrimaryCtxRelease(device->id);
    if (group->rank == 0) free(device->joint);
    free(device);
    group->device = NULL;
}
