// Convolutions and their gradients by cuDNN's graph interface. For a graph the library lists configurations
// of its engines. The algorithms are the configurations of which a plan can be made, in the library's order.
// A backward convolution has a graph for each of the gradients of the input and of the filters; its
// algorithms differ in one of them. The gradient of the bias has a function of its own.
#include <cudnn_cnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_graph.h"
#include "gpu.h"
#include "replay/math_library.h"

enum { MOST_PLANS = 16, MOST_GRAPHS = 2 };

// cuDNN's older interface, which has the gradient of a bias. It is loaded when it is needed.
#define SUM_FUNCTIONS(X)                                                                                     \
    X(cudnnCreateTensorDescriptor)                                                                           \
    X(cudnnDestroyTensorDescriptor)                                                                          \
    X(cudnnSetTensorNdDescriptor)                                                                            \
    X(cudnnConvolutionBackwardBias)

static struct { SUM_FUNCTIONS(FUNCTION_MEMBER) } sums;

static int load_functions(const char *const *names, void *to, char reason[REASON_SIZE]) {
    char name[32];
    snprintf(name, sizeof name, "libcudnn.so.%d", CUDNN_MAJOR);
    const struct gpu_library wanted = {"GENTABLES_CUDNN", name, "cuDNN", names, to};
    return gpu_load(&wanted, reason, REASON_SIZE);
}

static int open_library(int threads, char reason[REASON_SIZE]) {
    (void)threads;
    if (load_functions(FUNCTION_NAMES(CUDNN_FUNCTIONS), &cudnn, reason) != 0) return -1;
    cudnnStatus_t status = cudnn.cudnnCreate(&cudnn.handle);
    if (status == CUDNN_STATUS_SUCCESS) status = cudnn.cudnnSetStream(cudnn.handle, (cudaStream_t)gpu.stream);
    if (status == CUDNN_STATUS_SUCCESS) return 0;
    snprintf(reason, REASON_SIZE, "cuDNN does not start: %s", cudnn.cudnnGetErrorString(status));
    return -1;
}

static void describe(char text[], size_t size) {
    snprintf(text, size, "version=%zu workspace_mib=%d", cudnn.cudnnGetVersion(), WORKSPACE_BYTES >> 20);
}

// ---- plans ----------------------------------------------------------------------------------------------

// The plans of a graph.
struct plans {
    struct descriptors descriptors;
    cudnnBackendDescriptor_t list[MOST_PLANS], pack;
    unsigned notes[MOST_PLANS]; // of the plans' engines
    int count, chosen;
    int64_t engine;           // of the first plan
    unsigned unwanted;        // notes that no engine may have
    int configurations, less; // all, and those that may have an engine of lower precision
};

struct state {
    struct plans graphs[MOST_GRAPHS];
    int graph_count;
    cudnnTensorDescriptor_t result, bias; // of the gradient of the bias; NULL: it is not computed
    const void *result_data;
    void *bias_data;
};

// Numerical notes of an engine are bits 1 << CUDNN_NUMERICAL_NOTE_...

// The notes of engines that compute in a lower precision than the requested type. A float32 engine may use
// TF32 on tensor cores, which PyTorch without allow_tf32 does not, or reduce sums in fewer bits. The check
// cannot detect this, since its small integers are exact even then.
static unsigned notes_of_less(enum data_type type) {
    unsigned down = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    if (type != FLOAT32) return down;
    return down | 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE |
           1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
}

// The notes of engines that transform their operands: their sums are right within rounding only.
enum {
    NOTES_OF_TRANSFORMS = 1 << CUDNN_NUMERICAL_NOTE_FFT | 1 << CUDNN_NUMERICAL_NOTE_WINOGRAD |
                          1 << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 |
                          1 << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |
                          1 << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13
};

// The engine of a configuration; NULL: cuDNN does not return it.
static cudnnBackendDescriptor_t engine_of(struct descriptors *at, cudnnBackendDescriptor_t configuration) {
    int64_t count = 0;
    cudnnBackendDescriptor_t engine = descriptor_make(at, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (engine == NULL || cudnn.cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                                         (void *)&engine) != CUDNN_STATUS_SUCCESS)
        return NULL;
    return engine;
}

static int64_t number_of(cudnnBackendDescriptor_t engine) {
    int64_t count = 0, index = -1;
    cudnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                   &index);
    return index;
}

// The numerical notes of an engine; all of them, if they cannot be read.
static unsigned notes_of(cudnnBackendDescriptor_t engine) {
    cudnnBackendNumericalNote_t list[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    unsigned notes = 0;
    if (engine == NULL ||
        cudnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                       CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, list) != CUDNN_STATUS_SUCCESS)
        return ~0u;
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        if ((unsigned)list[i] < CUDNN_NUMERICAL_NOTE_TYPE_COUNT) notes |= 1u << list[i];
    }
    return notes;
}

// Makes a plan of a configuration, if its engine computes in the requested type, and the plan needs at most
// the workspace.
static void add_plan(struct plans *at, cudnnBackendDescriptor_t configuration) {
    int64_t count = 0, bytes = 0;
    cudnnBackendDescriptor_t engine = engine_of(&at->descriptors, configuration);
    unsigned notes = notes_of(engine);
    at->configurations++;
    if ((notes & at->unwanted) != 0) {
        at->less++;
        return;
    }
    cudnnBackendDescriptor_t plan =
        descriptor_make(&at->descriptors, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    descriptor_set(&at->descriptors, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                   (const void *)&cudnn.handle);
    descriptor_refer(&at->descriptors, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (at->descriptors.status != CUDNN_STATUS_SUCCESS ||
        cudnn.cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
        return;
    if (cudnn.cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                       &count, &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes > WORKSPACE_BYTES)
        return;
    if (at->count == 0) at->engine = number_of(engine);
    at->notes[at->count] = notes;
    at->list[at->count++] = plan;
}

// Adds the plans of the configurations that the library lists in this mode.
static void ask(struct plans *at, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode) {
    cudnnBackendDescriptor_t found[MOST_CONFIGURATIONS];
    cudnnBackendDescriptor_t advice = descriptor_make(&at->descriptors, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = 0;
    descriptor_refer(&at->descriptors, advice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    descriptor_set(&at->descriptors, advice, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (at->descriptors.status != CUDNN_STATUS_SUCCESS ||
        cudnn.cudnnBackendFinalize(advice) != CUDNN_STATUS_SUCCESS)
        return; // no configurations in this mode
    for (int i = 0; i < MOST_CONFIGURATIONS; i++)
        found[i] = descriptor_make(&at->descriptors, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (at->descriptors.status == CUDNN_STATUS_SUCCESS)
        at->descriptors.status = cudnn.cudnnBackendGetAttribute(advice, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                                CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                                MOST_CONFIGURATIONS, &count, (void *)found);
    if (count > MOST_CONFIGURATIONS) count = MOST_CONFIGURATIONS; // the library may return a larger number
    for (int64_t i = 0; i < count && at->count < MOST_PLANS; i++) add_plan(at, found[i]);
}

// The tensors of a graph.
struct graph_data {
    void *input, *filter, *bias, *output; // bias NULL: none
};

// Makes the list of the addresses of the tensors.
static void pack(struct plans *at, const struct graph_data *of) {
    void *workspace = (void *)(uintptr_t)gpu.workspace; // NOLINT: an address of the GPU's
    const int64_t ids[] = {INPUT, FILTER, OUTPUT, BIAS};
    void *const data[] = {of->input, of->filter, of->output, of->bias};
    int64_t count = of->bias != NULL ? 4 : 3;
    struct descriptors *list = &at->descriptors;
    at->pack = descriptor_make(list, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    descriptor_set(list, at->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    descriptor_set(list, at->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                   (const void *)data);
    descriptor_set(list, at->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                   (const void *)&workspace);
    descriptor_finalize(list, at->pack);
}

// ---- a call ---------------------------------------------------------------------------------------------

static cudnnStatus_t sum_bias(const struct state *at) {
    const float one = 1, zero = 0;
    return sums.cudnnConvolutionBackwardBias(cudnn.handle, &one, at->result, at->result_data, &zero, at->bias,
                                             at->bias_data);
}

static int run(void *state) {
    struct state *at = state;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < at->graph_count && status == CUDNN_STATUS_SUCCESS; i++) {
        const struct plans *plans = &at->graphs[i];
        status = cudnn.cudnnBackendExecute(cudnn.handle, plans->list[plans->chosen], plans->pack);
    }
    if (status == CUDNN_STATUS_SUCCESS && at->bias != NULL) status = sum_bias(at);
    return status == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

static int algorithms_of(const struct state *at) {
    int count = 0;
    for (int i = 0; i < at->graph_count; i++) count += at->graphs[i].count - (i > 0 ? 1 : 0);
    return count;
}

// 0 is the first plan of each graph; the next numbers are the other plans of the first graph, then those of
// the second.
static int choose(void *state, int algorithm) {
    struct state *at = state;
    if (algorithm < 0 || (algorithm > 0 && algorithm >= algorithms_of(at))) return -1;
    for (int i = 0; i < at->graph_count; i++) {
        int others = at->graphs[i].count - 1;
        bool is_here = algorithm >= 1 && algorithm <= others;
        at->graphs[i].chosen = is_here ? algorithm : 0;
        algorithm = is_here ? 0 : algorithm - (algorithm > 0 ? others : 0);
    }
    return 0;
}

static bool is_near(void *state) {
    const struct state *at = state;
    unsigned notes = 0;
    for (int i = 0; i < at->graph_count; i++) notes |= at->graphs[i].notes[at->graphs[i].chosen];
    return (notes & NOTES_OF_TRANSFORMS) != 0;
}

static void end(void *state) {
    struct state *at = state;
    for (int i = 0; i < at->graph_count; i++) descriptors_end(&at->graphs[i].descriptors);
    if (at->result != NULL) sums.cudnnDestroyTensorDescriptor(at->result);
    if (at->bias != NULL) sums.cudnnDestroyTensorDescriptor(at->bias);
    free(at);
}

// ---- preparing ------------------------------------------------------------------------------------------

// Why there is no plan.
static const char *refusal_of(const struct plans *at) {
    if (at->descriptors.status != CUDNN_STATUS_SUCCESS)
        return cudnn.cudnnGetErrorString(at->descriptors.status);
    if (at->configurations == 0) return "it lists no engine";
    return at->less == at->configurations
               ? "all of its engines have a lower precision than this type, or no note on their precision"
               : "none of its engines runs in this workspace";
}

// Adds text to the kernel's name or the note.
static void append(char to[], size_t size, const char *separator, const char *text) {
    size_t length = strlen(to);
    snprintf(to + length, size - length, "%s%s", length > 0 ? separator : "", text);
}

static void note_less(const struct plans *at, enum data_type type, struct prepared_op *prepared) {
    char text[sizeof prepared->note];
    if (at->less == 0) return;
    snprintf(text, sizeof text,
             "%d of %d engine configurations left out, with a lower precision or without a note on it%s",
             at->less, at->configurations,
             type == FLOAT32 ? ": TF32, the default of PyTorch's convolutions" : "");
    append(prepared->note, sizeof prepared->note, "; ", text);
}

// Adds the plans of a convolution (`of_filter`: of the gradient of its filters). -1, with a reason.
static int add_graph(struct state *at, const struct convolution *of, bool of_filter, enum data_type type,
                     const struct graph_data *data, struct prepared_op *prepared, char reason[REASON_SIZE]) {
    struct plans *plans = &at->graphs[at->graph_count++];
    char engine[32];
    plans->unwanted = notes_of_less(type);
    cudnnBackendDescriptor_t graph =
        of_filter ? cudnn_filter_graph(&plans->descriptors, of, cudnn_type_of(type))
                  : cudnn_convolution_graph(&plans->descriptors, of, cudnn_type_of(type));
    ask(plans, graph, CUDNN_HEUR_MODE_A);
    if (plans->count == 0) ask(plans, graph, CUDNN_HEUR_MODE_FALLBACK);
    pack(plans, data);
    if (plans->descriptors.status != CUDNN_STATUS_SUCCESS || plans->count == 0) {
        snprintf(reason, REASON_SIZE, "cuDNN does not compute this (%s%s)",
                 of_filter ? "the filters' gradient: " : "", refusal_of(plans));
        return -1;
    }
    snprintf(engine, sizeof engine, "engine_%lld", (long long)plans->engine);
    append(prepared->kernel, sizeof prepared->kernel, "+", engine);
    note_less(plans, type, prepared);
    return 0;
}

static cudnnStatus_t describe_tensor(const struct convolution *of, enum data_type type, int64_t first,
                                     const int64_t extents[], cudnnTensorDescriptor_t *made) {
    int64_t sizes[MOST_CUDNN_DIMENSIONS], steps[MOST_CUDNN_DIMENSIONS];
    int narrow_sizes[MOST_CUDNN_DIMENSIONS], narrow_steps[MOST_CUDNN_DIMENSIONS];
    int count = cudnn_layout(of, first, of->out_channels, extents, of->input_channels_last, sizes, steps);
    for (int i = 0; i < count; i++) {
        if (sizes[i] > INT32_MAX || steps[i] > INT32_MAX) return CUDNN_STATUS_NOT_SUPPORTED;
        narrow_sizes[i] = (int)sizes[i];
        narrow_steps[i] = (int)steps[i];
    }
    cudnnStatus_t status = sums.cudnnCreateTensorDescriptor(made);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return sums.cudnnSetTensorNdDescriptor(*made, cudnn_type_of(type), count, narrow_sizes, narrow_steps);
}

// The gradient of the bias. PyTorch sums with a kernel of its own. -1, with a reason.
static int add_bias(struct state *at, const struct convolution *of, const struct tensor *result,
                    const struct tensor *bias, struct prepared_op *prepared, char reason[REASON_SIZE]) {
    static const int64_t one[MOST_SPATIAL] = {1, 1, 1};
    if (load_functions(FUNCTION_NAMES(SUM_FUNCTIONS), &sums, reason) != 0) return -1;
    at->result_data = result->data;
    at->bias_data = bias->data;
    cudnnStatus_t status = describe_tensor(of, result->type, of->batch, of->output, &at->result);
    if (status == CUDNN_STATUS_SUCCESS) status = describe_tensor(of, bias->type, 1, one, &at->bias);
    if (status != CUDNN_STATUS_SUCCESS) {
        snprintf(reason, REASON_SIZE, "cuDNN does not compute this (the bias' gradient: %s)",
                 cudnn.cudnnGetErrorString(status));
        return -1;
    }
    append(prepared->kernel, sizeof prepared->kernel, "+", "sum");
    append(prepared->note, sizeof prepared->note, "; ",
           "the bias' gradient by cuDNN; PyTorch sums with its own kernel");
    return 0;
}

static int add_gradients(struct state *at, const struct convolution *of, const struct operands *operands,
                         struct prepared_op *prepared, char reason[REASON_SIZE]) {
    const struct gradients gradients = gradients_in(&operands->out, of);
    const struct convolution other = convolution_of_gradient(of);
    enum data_type type = operands->a.type;
    void *result = operands->a.data;
    const struct graph_data of_input = {result, operands->b.data, NULL, gradients.of[OF_INPUT].data};
    const struct graph_data of_filter = {operands->c.data, gradients.of[OF_FILTER].data, NULL, result};
    if (has_gradient(of, OF_INPUT) && add_graph(at, &other, false, type, &of_input, prepared, reason) != 0)
        return -1;
    if (has_gradient(of, OF_FILTER) && add_graph(at, of, true, type, &of_filter, prepared, reason) != 0)
        return -1;
    if (!has_gradient(of, OF_BIAS)) return 0;
    return add_bias(at, of, &operands->a, &gradients.of[OF_BIAS], prepared, reason);
}

static int prepare(const struct op *op, const struct operands *operands, struct prepared_op *prepared,
                   char reason[REASON_SIZE]) {
    struct state *at = calloc(1, sizeof *at);
    if (at == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    *prepared = (struct prepared_op){.run = run, .end = end, .state = at};
    const struct graph_data data = {operands->a.data, operands->b.data, operands->c.data, operands->out.data};
    int status = op->kind == OP_CONVOLUTION
                     ? add_graph(at, &op->convolution, false, operands->a.type, &data, prepared, reason)
                     : add_gradients(at, &op->convolution, operands, prepared, reason);
    if (status != 0) {
        end(at);
        return -1;
    }
    prepared->algorithms = algorithms_of(at);
    prepared->choose = choose;
    prepared->is_near = is_near;
    return 0;
}

const struct library library_cudnn = {
    .name = "cudnn",
    .kinds = 1 << OP_CONVOLUTION | 1 << OP_CONVOLUTION_BACKWARD,
    .types = 1 << FLOAT32 | 1 << BFLOAT16 | 1 << FLOAT16,
    .open = open_library,
    .describe = describe,
    .prepare = prepare,
};
