// An example of a plug-in: an allreduce through shared memory, in chunks of a given size. Each rank
// copies a chunk to shared memory, waits for the chunks of the others, and sums all of them in rank order.
//
//   cc -O2 -shared -fPIC -I bench/plugins bench/plugins/examples/chunked.c -o chunked.so
//   build/bin/gentables tune --op allreduce --sizes 1K:1M --dtype float32 --plugin ./chunked.so
#include "plugin.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 2, SLOTS = 2, LARGEST_CHUNK = 64 << 10, LINE = 64, SPINS = 2000 };
static const size_t chunk_bytes[CHUNKS] = {8 << 10, LARGEST_CHUNK};

// What one rank writes and the others read.
struct shared {
    _Alignas(LINE) _Atomic uint32_t published; // chunks so far
    _Alignas(LINE) unsigned char slots[SLOTS][LARGEST_CHUNK];
};

struct state {
    gt_rank rank;
    const gt_host *host;
    struct shared *shared; // one per rank
    uint32_t chunks;       // so far, on every rank
    const char *error;
};

struct plan {
    struct state *state;
    size_t chunk, count;
};

static gt_status chunked_init(const gt_rank *rank, void **state) {
    struct state *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->rank = *rank;
    made->host = rank->host;
    made->error = "";
    made->shared =
        made->host->allocate(made->host->context, (size_t)rank->world_size * sizeof *made->shared, 1);
    *state = made;
    if (made->shared != NULL) return GT_OK;
    free(made);
    return GT_FAILED;
}

static gt_status chunked_prepare(void *state, uint32_t candidate, const gt_call *call,
                                 size_t *workspace_bytes, void **plan) {
    struct plan *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    *made = (struct plan){state, chunk_bytes[candidate], (size_t)call->count};
    *workspace_bytes = 0;
    *plan = made;
    return GT_OK;
}

// After some polls the rank yields its processor, since ranks may share one.
static int wait_for(const struct state *state, const _Atomic uint32_t *published, uint32_t target) {
    for (unsigned polls = 0; (int32_t)(atomic_load_explicit(published, memory_order_acquire) - target) < 0;
         polls++) {
        if (polls > SPINS) sched_yield();
        if (*state->host->cancel) return -1;
    }
    return 0;
}

static void add_up(float *out, const float *const sources[], int ranks, size_t count) {
    memmove(out, sources[0], count * sizeof *out);
    for (int rank = 1; rank < ranks; rank++) {
        for (size_t i = 0; i < count; i++) out[i] += sources[rank][i];
    }
}

// A rank that publishes chunk c has added chunk c-1, for which all ranks had published c-1 and so had added
// c-2. With two slots, the slot of c is free by then.
static gt_status chunked_run(void *plan, const gt_buffers *buffers, void *stream) {
    const struct plan *todo = plan;
    struct state *state = todo->state;
    int ranks = state->rank.world_size;
    size_t per_chunk = todo->chunk / sizeof(float);
    (void)stream;
    for (size_t first = 0; first < todo->count; first += per_chunk) {
        size_t count = todo->count - first < per_chunk ? todo->count - first : per_chunk;
        uint32_t number = state->chunks++;
        struct shared *mine = &state->shared[state->rank.rank];
        const float *sources[64];
        memcpy(mine->slots[number % SLOTS], (const float *)buffers->send + first, count * sizeof(float));
        atomic_store_explicit(&mine->published, number + 1, memory_order_release);
        for (int rank = 0; rank < ranks; rank++) {
            if (wait_for(state, &state->shared[rank].published, number + 1) != 0) {
                state->error = "cancelled";
                return GT_FAILED;
            }
            sources[rank] = (const float *)(const void *)state->shared[rank].slots[number % SLOTS];
        }
        add_up((float *)buffers->receive + first, sources, ranks, count);
    }
    return GT_OK;
}

static void chunked_release(void *plan) {
    free(plan);
}

static void chunked_fini(void *state) {
    struct state *old = state;
    old->host->free(old->host->context, old->shared);
    free(old);
}

static const char *chunked_error(void *state) {
    return state == NULL ? "no memory" : ((struct state *)state)->error;
}

#define CANDIDATE(bytes)                                                                                     \
    {                                                                                                        \
        .size = sizeof(gt_candidate), .name = "CHUNKED_" #bytes, .parameters = "chunk_bytes=" #bytes,        \
        .ops = 1u << GT_OP_ALLREDUCE, .dtypes = 1u << GT_FLOAT32, .reduce_ops = 1u << GT_SUM,                \
        .fusions = 1u << GT_FUSION_NONE, .memory = GT_MEMORY_HOST, .places = GT_PLACE_OUT | GT_PLACE_IN,     \
        .flags = GT_FLAG_FP32, .alignment = sizeof(float)                                                    \
    }
static const gt_candidate small = CANDIDATE(8192), large = CANDIDATE(65536);
static const gt_candidate *const candidates[CHUNKS] = {&small, &large};

static const gt_plugin plugin = {
    .size = sizeof plugin,
    .abi = GENTABLES_PLUGIN_ABI,
    .name = "chunked",
    .version = "1",
    .candidate_count = CHUNKS,
    .candidates = candidates,
    .init = chunked_init,
    .prepare = chunked_prepare,
    .run = chunked_run,
    .release = chunked_release,
    .fini = chunked_fini,
    .error = chunked_error,
};

const gt_plugin *gentables_plugin(uint32_t abi) {
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
