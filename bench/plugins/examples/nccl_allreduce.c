// An example of a plug-in for GPUs that wraps another library's call: NCCL's allreduce, on the communicator
// in gt_rank. The NCCL library of that communicator is already loaded in the process.
//
//   cc -O2 -shared -fPIC -I bench/plugins bench/plugins/examples/nccl_allreduce.c -o nccl_allreduce.so
//   build/bin/gentables tune --backend cuda --op allreduce --sizes 1M:64M --plugin ./nccl_allreduce.so
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

// As in nccl.h, so that it need not be installed.
typedef int nccl_allreduce(const void *send, void *receive, size_t count, int dtype, int op, void *comm,
                           void *stream);
enum { NCCL_FLOAT16 = 6, NCCL_FLOAT32 = 7, NCCL_BFLOAT16 = 9, NCCL_SUM = 0 };

struct state {
    void *const *comm;
    void *library;
    nccl_allreduce *allreduce;
    char error[64];
};

struct plan {
    struct state *state;
    size_t count;
    int dtype;
};

static gt_status wrap_init(const gt_rank *rank, void **state) {
    struct state *made = calloc(1, sizeof *made);
    if (made == NULL) return GT_FAILED;
    made->comm = rank->comm;
    made->library = dlopen("libnccl.so.2", RTLD_NOW);
    if (made->library != NULL) *(void **)&made->allreduce = dlsym(made->library, "ncclAllReduce");
    *state = made;
    if (made->allreduce != NULL && rank->comm_kind == GT_COMM_NCCL) return GT_OK;
    if (made->library != NULL) dlclose(made->library);
    free(made);
    return GT_FAILED;
}

static gt_status wrap_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                              void **plan) {
    struct plan *made = malloc(sizeof *made);
    (void)candidate;
    if (made == NULL) return GT_FAILED;
    *made = (struct plan){.state = state,
                          .count = call->send_elements,
                          .dtype = call->dtype == GT_FLOAT32   ? NCCL_FLOAT32
                                   : call->dtype == GT_FLOAT16 ? NCCL_FLOAT16
                                                               : NCCL_BFLOAT16};
    *workspace_bytes = 0;
    *plan = made;
    return GT_OK;
}

static gt_status wrap_run(void *of, const gt_buffers *buffers, void *stream) {
    const struct plan *plan = of;
    struct state *state = plan->state;
    int result = state->allreduce(buffers->send, buffers->receive, plan->count, plan->dtype, NCCL_SUM,
                                  *state->comm, stream);
    if (result == 0) return GT_OK;
    snprintf(state->error, sizeof state->error, "ncclAllReduce returned %d", result);
    return GT_FAILED;
}

static void wrap_release(void *plan) {
    free(plan);
}

static void wrap_fini(void *of) {
    struct state *state = of;
    dlclose(state->library);
    free(state);
}

static const char *wrap_error(void *state) {
    return state == NULL ? "there is no NCCL" : ((struct state *)state)->error;
}

static const gt_candidate nccl = {
    .size = sizeof nccl,
    .name = "WRAPPED_NCCL",
    .ops = 1u << GT_OP_ALLREDUCE,
    .dtypes = 1u << GT_BFLOAT16 | 1u << GT_FLOAT16 | 1u << GT_FLOAT32,
    .reduce_ops = 1u << GT_SUM,
    .fusions = 1u << GT_FUSION_NONE,
    .memory = GT_MEMORY_CUDA,
    .places = GT_PLACE_OUT | GT_PLACE_IN,
    .comm = GT_COMM_NCCL,
    .flags = GT_FLAG_CAPTURABLE,
};
static const gt_candidate *const candidates[] = {&nccl};

static const gt_plugin plugin = {
    .size = sizeof plugin,
    .abi = GENTABLES_PLUGIN_ABI,
    .name = "nccl_allreduce",
    .version = "1",
    .candidate_count = 1,
    .candidates = candidates,
    .init = wrap_init,
    .prepare = wrap_prepare,
    .run = wrap_run,
    .release = wrap_release,
    .fini = wrap_fini,
    .error = wrap_error,
};

const gt_plugin *gentables_plugin(uint32_t abi) {
    return GENTABLES_PLUGIN_MAJOR_OF(abi) == GENTABLES_PLUGIN_MAJOR ? &plugin : NULL;
}
