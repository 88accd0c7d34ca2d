// An example of a plug-in for GPUs: an allgather and a broadcast by copies between GPUs. Each rank pushes its
// data into the outputs of the others, in pieces of a given size. It needs no nvcc and links to no
// CUDA library: it looks the driver's functions up at run time. Ranks are threads of one process that share
// addresses and events, on one GPU or on many.
//
//   FLAGS="-O2 -shared -fPIC -I bench/plugins -I /usr/local/cuda/include"
//   cc $FLAGS bench/plugins/examples/peer_copies.c -o peer_copies.so
//   build/bin/gentables tune --backend cuda --op allgather --sizes 1M:64M --plugin ./peer_copies.so
//
// The order on the GPUs: no rank pushes into an output before its owner has begun the call, and no call ends
// before all ranks have pushed. Events on the streams enforce both; the host waits for no GPU.
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name) // cuda.h turns names into those of a version
#define DRIVER_FUNCTIONS(FUNCTION)                                                                           \
    FUNCTION(cuMemcpyDtoDAsync)                                                                              \
    FUNCTION(cuEventCreate)                                                                                  \
    FUNCTION(cuEventDestroy)                                                                                 \
    FUNCTION(cuEventRecord)                                                                                  \
    FUNCTION(cuStreamWaitEvent)

enum { MOST_RANKS = 32, ERROR_SIZE = 96 };

struct driver {
#define FUNCTION(name) __typeof__(&(name)) name;
    DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    void *library;
};

struct state {
    gt_rank rank;
    struct driver driver;
    CUevent come, pushed; // this rank has come to the call; has pushed all of its data
    char error[ERROR_SIZE];
};

struct plan {
    struct state *state;
    size_t piece_bytes;
    bool is_broadcast;
    int root;
    size_t send_bytes;
};

// What a rank sends the others at the beginning of a call.
struct call_of_rank {
    CUdeviceptr receive;
    CUevent come, pushed;
};

static const size_t piece_sizes[] = {256 << 10, 0}; // by candidate; 0: all at once

// ---- init and fini ------------------------------------------------------------------------------

static bool load_driver(struct driver *driver) {
    driver->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver->library == NULL) return false;
#define FUNCTION(name)                                                                                       \
    *(void **)&driver->name = dlsym(driver->library, NAME_OF(name));                                         \
    if (driver->name == NULL) return false;
    DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return true;
}

static void copies_fini(void *of) {
    struct state *state = of;
    if (state->come != NULL) state->driver.cuEventDestroy(state->come);
    if (state->pushed != NULL) state->driver.cuEventDestroy(state->pushed);
    if (state->driver.library != NULL) dlclose(state->driver.library);
    free(state);
}

static gt_status copies_init(const gt_rank *rank, void **state) {
    struct state *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->rank = *rank;
    bool ready = rank->threads && rank->world_size <= MOST_RANKS && load_driver(&made->driver) &&
                 made->driver.cuEventCreate(&made->come, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
                 made->driver.cuEventCreate(&made->pushed, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
    if (ready) {
        *state = made;
        return GT_OK;
    }
    copies_fini(made);
    return GT_FAILED;
}

static const char *copies_error(void *of) {
    const struct state *state = of;
    return state == NULL ? "requires at most 32 ranks, which are threads, and libcuda.so.1" : state->error;
}

// ---- plans ----------------------------------------------------------------------------------------

static size_t bytes_of(int dtype) {
    return dtype == GT_FLOAT32 ? 4 : 2;
}

static gt_status copies_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                                void **plan) {
    struct plan *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->state = state;
    made->piece_bytes = piece_sizes[candidate];
    made->is_broadcast = call->op == GT_OP_BROADCAST;
    made->root = call->root;
    made->send_bytes = call->send_elements * bytes_of(call->dtype);
    *workspace_bytes = 0;
    *plan = made;
    return GT_OK;
}

static void copies_release(void *plan) {
    free(plan);
}

// ---- a call ---------------------------------------------------------------------------------------

static gt_status fail(struct state *state, const char *what) {
    snprintf(state->error, sizeof state->error, "%s", what);
    return GT_FAILED;
}

// Enqueues the copies into one rank's output.
static bool push(const struct plan *plan, CUdeviceptr from, CUdeviceptr to, CUstream stream) {
    size_t piece = plan->piece_bytes > 0 ? plan->piece_bytes : plan->send_bytes;
    if (from == to) return true; // in place
    for (size_t at = 0; at < plan->send_bytes; at += piece) {
        size_t left = plan->send_bytes - at;
        if (plan->state->driver.cuMemcpyDtoDAsync(to + at, from + at, left < piece ? left : piece, stream) !=
            CUDA_SUCCESS)
            return false;
    }
    return true;
}

static bool push_to_all(const struct plan *plan, const struct call_of_rank calls[], const gt_buffers *buffers,
                        CUstream stream) {
    const struct driver *driver = &plan->state->driver;
    int rank = plan->state->rank.rank, ranks = plan->state->rank.world_size;
    size_t place = plan->is_broadcast ? 0 : (size_t)rank * plan->send_bytes;
    if (plan->is_broadcast && rank != plan->root) return true;
    for (int peer = 0; peer < ranks; peer++) {
        CUdeviceptr to = calls[peer].receive + place;
        if (driver->cuStreamWaitEvent(stream, calls[peer].come, 0) != CUDA_SUCCESS) return false;
        if (!push(plan, (CUdeviceptr)(uintptr_t)buffers->send, to, stream)) return false;
    }
    return true;
}

static gt_status copies_run(void *of, const gt_buffers *buffers, void *on) {
    struct plan *plan = of;
    struct state *state = plan->state;
    const struct driver *driver = &state->driver;
    const gt_host *host = state->rank.host;
    CUstream stream = on;
    struct call_of_rank calls[MOST_RANKS];
    struct call_of_rank mine = {(CUdeviceptr)(uintptr_t)buffers->receive, state->come, state->pushed};
    if (driver->cuEventRecord(state->come, stream) != CUDA_SUCCESS) return fail(state, "no event");
    if (host->allgather(host->context, &mine, calls, sizeof mine) != 0) return fail(state, "no allgather");
    if (!push_to_all(plan, calls, buffers, stream)) return fail(state, "no copy");
    if (driver->cuEventRecord(state->pushed, stream) != CUDA_SUCCESS) return fail(state, "no event");
    if (host->barrier(host->context) != 0) return fail(state, "no barrier"); // all have recorded theirs
    for (int peer = 0; peer < state->rank.world_size; peer++) {
        if (driver->cuStreamWaitEvent(stream, calls[peer].pushed, 0) != CUDA_SUCCESS)
            return fail(state, "no wait");
    }
    // An event may be recorded again only once no rank waits for its last record any more.
    return host->barrier(host->context) == 0 ? GT_OK : fail(state, "no barrier");
}

// ---- the exported function ----------------------------------------------------------------------------

#define CANDIDATE(the_name, the_parameters)                                                                  \
    {                                                                                                        \
        .size = sizeof(gt_candidate), .name = the_name, .parameters = the_parameters,                        \
        .ops = 1u << GT_OP_ALLGATHER | 1u << GT_OP_BROADCAST,                                                \
        .dtypes = 1u << GT_BFLOAT16 | 1u << GT_FLOAT16 | 1u << GT_FLOAT32, .reduce_ops = 1u << GT_SUM,       \
        .fusions = 1u << GT_FUSION_NONE, .memory = GT_MEMORY_CUDA, .places = GT_PLACE_OUT | GT_PLACE_IN,     \
        .flags = GT_FLAG_COLLECTIVE_RUN                                                                      \
    }

static const gt_candidate in_pieces = CANDIDATE("PEER_COPIES_256K", "piece_bytes=262144");
static const gt_candidate at_once = CANDIDATE("PEER_COPIES", "piece_bytes=all");
static const gt_candidate *const candidates[] = {&in_pieces, &at_once};

static const gt_plugin plugin = {
    .size = sizeof plugin,
    .abi = GENTABLES_PLUGIN_ABI,
    .name = "peer_copies",
    .version = "1",
    .candidate_count = 2,
    .candidates = candidates,
    .init = copies_init,
    .prepare = copies_prepare,
    .run = copies_run,
    .release = copies_release,
    .fini = copies_fini,
    .error = copies_error,
};

const gt_plugin *gentables_plugin(uint32_t abi) {
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
