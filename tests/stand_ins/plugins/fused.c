// A plug-in for GPUs that fuses by itself: after NCCL's sum, a function of the host, in order on the stream,
// does the epilogue in pinned memory. With NOTES=PATH in the environment it appends a line for each run to
// PATH.RANK: elements and fusion. With BAD_WEIGHT it forgets the weights, and with BAD_BEYOND it writes
// behind the norm.
#include <cuda.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define gentables_plugin gentables_plugin_of_example
#include "examples/nccl_allreduce.c"
#undef gentables_plugin

// The name of a function in the library, to which the header may define another one.
#define TEXT(name)    #name
#define NAME_OF(name) TEXT(name)

struct driver {
    void *library;
    __typeof__(&cuMemcpyDtoHAsync) to_host;
    __typeof__(&cuMemcpyHtoDAsync) to_device;
    __typeof__(&cuLaunchHostFunc) call;
    __typeof__(&cuMemHostAlloc) allocate;
    __typeof__(&cuMemFreeHost) free;
};

// The data of the host's function; all bfloat16.
struct rows {
    size_t count, hidden;
    float epsilon;
    uint16_t *sum, *residual, *weight, *norm; // sum becomes the new residual
};

struct fused_state {
    struct state wrapped;
    struct driver driver;
    gt_rank rank;
};

struct fused_plan {
    struct plan wrapped;
    struct fused_state *state;
    int fusion;
    struct rows rows;
};

static float widened(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// To nearest, ties to even.
static uint16_t rounded(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void CUDA_CB norm_rows(void *of) {
    const struct rows *rows = of;
    for (size_t first = 0; first < rows->count; first += rows->hidden) {
        float squares = 0;
        for (size_t i = first; i < first + rows->hidden; i++) {
            rows->sum[i] = rounded(widened(rows->sum[i]) + widened(rows->residual[i]));
            squares += widened(rows->sum[i]) * widened(rows->sum[i]);
        }
        float factor = 1 / sqrtf(squares / (float)rows->hidden + rows->epsilon);
        for (size_t i = 0; i < rows->hidden; i++) {
            float weight = widened(rows->weight[i]);
#ifdef BAD_WEIGHT
            weight = 1;
#endif
            rows->norm[first + i] = rounded(widened(rows->sum[first + i]) * factor * weight);
        }
    }
}

static bool look_up(struct driver *driver) {
    driver->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver->library == NULL) return false;
    *(void **)&driver->to_host = dlsym(driver->library, NAME_OF(cuMemcpyDtoHAsync));
    *(void **)&driver->to_device = dlsym(driver->library, NAME_OF(cuMemcpyHtoDAsync));
    *(void **)&driver->call = dlsym(driver->library, NAME_OF(cuLaunchHostFunc));
    *(void **)&driver->allocate = dlsym(driver->library, NAME_OF(cuMemHostAlloc));
    *(void **)&driver->free = dlsym(driver->library, NAME_OF(cuMemFreeHost));
    return driver->to_host && driver->to_device && driver->call && driver->allocate && driver->free;
}

static gt_status fused_init(const gt_rank *rank, void **state) {
    struct fused_state *made = calloc(1, sizeof *made);
    void *wrapped;
    if (made == NULL) return GT_FAILED;
    if (!look_up(&made->driver) || wrap_init(rank, &wrapped) != GT_OK) {
        if (made->driver.library != NULL) dlclose(made->driver.library);
        free(made);
        return GT_FAILED;
    }
    made->wrapped = *(struct state *)wrapped;
    made->rank = *rank;
    free(wrapped);
    *state = made;
    return GT_OK;
}

static void fused_release(void *of) {
    struct fused_plan *plan = of;
    if (plan->rows.sum != NULL) plan->state->driver.free(plan->rows.sum);
    free(plan);
}

static gt_status fused_prepare(void *state, uint32_t candidate, const gt_call *call, size_t *workspace_bytes,
                               void **plan) {
    struct fused_plan *made = calloc(1, sizeof *made);
    void *wrapped, *memory = NULL;
    if (made == NULL || wrap_prepare(state, candidate, call, workspace_bytes, &wrapped) != GT_OK) {
        free(made);
        return GT_FAILED;
    }
    made->wrapped = *(struct plan *)wrapped;
    free(wrapped);
    made->state = state;
    made->fusion = call->fusion;
    *plan = made;
    if (call->fusion == GT_FUSION_NONE) return GT_OK;
    size_t count = call->count, hidden = call->hidden_size;
    if (made->state->driver.allocate(&memory, (3 * count + hidden) * sizeof(uint16_t), 0) != CUDA_SUCCESS) {
        fused_release(made);
        return GT_FAILED;
    }
    uint16_t *first = memory;
    made->rows = (struct rows){
        count, hidden, call->epsilon, first, first + count, first + 3 * count, first + 2 * count};
    return GT_OK;
}

static void note(const struct fused_plan *plan) {
    char path[512];
    if (getenv("NOTES") == NULL) return;
    snprintf(path, sizeof path, "%s.%d", getenv("NOTES"), (int)plan->state->rank.rank);
    FILE *file = fopen(path, "a");
    if (file == NULL) return;
    fprintf(file, "%zu %d\n", plan->wrapped.count, plan->fusion);
    fclose(file);
}

static CUdeviceptr at(const void *buffer) {
    return (CUdeviceptr)(uintptr_t)buffer;
}

static gt_status fused_run(void *of, const gt_buffers *buffers, void *stream) {
    struct fused_plan *plan = of;
    const struct driver *driver = &plan->state->driver;
    struct rows *rows = &plan->rows;
    size_t bytes = rows->count * sizeof(uint16_t), weight_bytes = rows->hidden * sizeof(uint16_t);
    note(plan);
    if (plan->fusion == GT_FUSION_NONE) return wrap_run(&plan->wrapped, buffers, stream);
    gt_buffers sum = *buffers;
    sum.receive = buffers->residual_out;
    if (wrap_run(&plan->wrapped, &sum, stream) != GT_OK) return GT_FAILED;
    driver->to_host(rows->sum, at(buffers->residual_out), bytes, stream);
    driver->to_host(rows->residual, at(buffers->residual_in), bytes, stream);
    driver->to_host(rows->weight, at(buffers->norm_weight), weight_bytes, stream);
    driver->call(stream, norm_rows, rows);
    driver->to_device(at(buffers->residual_out), rows->sum, bytes, stream);
    driver->to_device(at(buffers->norm_out), rows->norm, bytes, stream);
#ifdef BAD_BEYOND
    driver->to_device(at(buffers->norm_out) + bytes, rows->norm, sizeof(uint16_t), stream);
#endif
    return GT_OK;
}

static void fused_fini(void *of) {
    struct fused_state *state = of;
    dlclose(state->wrapped.library);
    dlclose(state->driver.library);
    free(state);
}

const gt_plugin *gentables_plugin(uint32_t abi) {
    static gt_candidate noted;
    static const gt_candidate *const one[] = {&noted};
    static gt_plugin fused;
    noted = nccl;
    noted.name = "NOTED";
    noted.dtypes = 1u << GT_BFLOAT16;
    noted.fusions = 1u << GT_FUSION_NONE | 1u << GT_FUSION_RESIDUAL_RMS_NORM;
    noted.places = GT_PLACE_OUT;
    noted.flags = 0;
    fused = plugin;
    fused.name = "fused";
    fused.candidates = one;
    fused.init = fused_init;
    fused.prepare = fused_prepare;
    fused.run = fused_run;
    fused.release = fused_release;
    fused.fini = fused_fini;
    return gentables_plugin_of_example(abi) == NULL ? NULL : &fused;
}
