// A plug-in for GPUs that works only in place: NCCL's allreduce and reducescatter. It fails if it is not
// called in place as NCCL defines it.
#include <stdbool.h>

#define gentables_plugin gentables_plugin_of_example
#include "examples/nccl_allreduce.c"
#undef gentables_plugin

typedef int nccl_reduce_scatter(const void *, void *, size_t, int, int, void *, void *);

struct placed_state {
    struct state wrapped;
    nccl_reduce_scatter *reduce_scatter;
    int rank;
};

struct placed_plan {
    struct plan wrapped;
    struct placed_state *state;
    bool is_scattered;
    size_t offset_bytes, part; // of the result within the input; its elements
};

static gt_status placed_init(const gt_rank *rank, void **state) {
    struct placed_state *made = calloc(1, sizeof *made);
    void *wrapped;
    if (made == NULL || wrap_init(rank, &wrapped) != GT_OK) {
        free(made);
        return GT_FAILED;
    }
    made->wrapped = *(struct state *)wrapped;
    free(wrapped);
    made->rank = rank->rank;
    *(void **)&made->reduce_scatter = dlsym(made->wrapped.library, "ncclReduceScatter");
    *state = made;
    return GT_OK;
}

static gt_status placed_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                                void **plan) {
    struct placed_state *own = state;
    struct placed_plan *made = calloc(1, sizeof *made);
    void *wrapped;
    if (made == NULL || wrap_prepare(&own->wrapped, candidate, call, workspace_bytes, &wrapped) != GT_OK) {
        free(made);
        return GT_FAILED;
    }
    made->wrapped = *(struct plan *)wrapped;
    free(wrapped);
    made->state = own;
    made->is_scattered = call->op == GT_OP_REDUCESCATTER;
    made->part = call->receive_elements;
    size_t offset = made->is_scattered ? call->send_offsets[own->rank] : 0;
    made->offset_bytes = offset * (call->dtype == GT_FLOAT32 ? 4 : 2);
    *plan = made;
    return call->place == GT_PLACE_IN ? GT_OK : GT_UNSUPPORTED;
}

static gt_status placed_run(void *of, const gt_buffers *buffers, void *stream) {
    struct placed_plan *plan = of;
    struct state *state = &plan->state->wrapped;
    if ((const char *)buffers->receive != (const char *)buffers->send + plan->offset_bytes) {
        snprintf(state->error, sizeof state->error, "it is not called in place");
        return GT_FAILED;
    }
    int result = plan->is_scattered
                     ? plan->state->reduce_scatter(buffers->send, buffers->receive, plan->part,
                                                   plan->wrapped.dtype, NCCL_SUM, *state->comm, stream)
                     : state->allreduce(buffers->send, buffers->receive, plan->part, plan->wrapped.dtype,
                                        NCCL_SUM, *state->comm, stream);
    return result == 0 ? GT_OK : GT_FAILED;
}

const gt_plugin *gentables_plugin(uint32_t abi) {
    static gt_candidate placed;
    static const gt_candidate *const all[] = {&placed};
    static gt_plugin own;
    placed = nccl;
    placed.name = "PLACED";
    placed.ops = 1u << GT_OP_ALLREDUCE | 1u << GT_OP_REDUCESCATTER;
    placed.places = GT_PLACE_IN;
    own = plugin;
    own.name = "in_place";
    own.candidates = all;
    own.init = placed_init;
    own.prepare = placed_prepare;
    own.run = placed_run;
    return gentables_plugin_of_example(abi) == NULL ? NULL : &own;
}
