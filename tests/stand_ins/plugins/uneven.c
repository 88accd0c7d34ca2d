// A plug-in for float32 that does an alltoallv, by gathering the data of all ranks. It uses the given counts
// and offsets, of which some may be 0. It writes nothing if it gets nothing, except with BAD_NOTHING.
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

enum { MOST_RANKS = 16 };

struct plan {
    gt_rank *rank;
    size_t send_elements, send_offset, counts[MOST_RANKS], offsets[MOST_RANKS];
};

static gt_status uneven_init(const gt_rank *rank, void **state) {
    *state = malloc(sizeof *rank);
    if (*state == NULL) return GT_FAILED;
    memcpy(*state, rank, sizeof *rank);
    return GT_OK;
}

static gt_status uneven_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                                void **plan) {
    struct plan *made = calloc(1, sizeof *made);
    (void)candidate;
    if (made == NULL) return GT_FAILED;
    made->rank = state;
    made->send_elements = call->send_elements; // the same on all ranks: weights are of destinations
    made->send_offset = call->send_offsets[made->rank->rank];
    for (int from = 0; from < made->rank->world_size; from++) {
        made->counts[from] = call->receive_counts[from];
        made->offsets[from] = call->receive_offsets[from];
    }
    *workspace_bytes = (size_t)made->rank->world_size * made->send_elements * sizeof(float);
    *plan = made;
    return GT_OK;
}

static gt_status uneven_run(void *of, const gt_buffers *buffers, void *stream) {
    const struct plan *plan = of;
    const gt_host *host = plan->rank->host;
    const float *all = buffers->workspace;
    float *receive = buffers->receive;
    (void)stream;
    if (host->allgather(host->context, buffers->send, buffers->workspace,
                        plan->send_elements * sizeof(float)) != 0)
        return GT_FAILED;
    for (size_t from = 0; from < (size_t)plan->rank->world_size; from++) {
        for (size_t i = 0; i < plan->counts[from]; i++)
            receive[plan->offsets[from] + i] = all[from * plan->send_elements + plan->send_offset + i];
    }
#ifdef BAD_NOTHING
    if (plan->counts[0] == 0) receive[0] = 1;
#endif
    return GT_OK;
}

static const char *uneven_error(void *state) {
    (void)state;
    return "no memory, or no allgather";
}

static const gt_candidate gathered = {
    .size = sizeof gathered,
    .name = "GATHERED",
    .ops = 1u << GT_OP_ALLTOALLV,
    .dtypes = 1u << GT_FLOAT32,
    .fusions = 1u << GT_FUSION_NONE,
    .memory = GT_MEMORY_HOST,
    .places = GT_PLACE_OUT,
    .flags = GT_FLAG_COLLECTIVE_RUN,
};
static const gt_candidate *const candidates[] = {&gathered};
static const gt_plugin plugin = {
    .size = sizeof plugin,
    .abi = GENTABLES_PLUGIN_ABI,
    .name = "uneven",
    .version = "1",
    .candidate_count = 1,
    .candidates = candidates,
    .init = uneven_init,
    .prepare = uneven_prepare,
    .run = uneven_run,
    .release = free,
    .fini = free,
    .error = uneven_error,
};

const gt_plugin *gentables_plugin(uint32_t abi) {
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
