// Convolutions by cuDNN's graph interface. Descriptors of tensors and operations form a graph, for which the
// library lists configurations of its engines. The algorithms are the configurations of which a plan can be
// made, in the library's order. A convolution with a bias is two operations in one graph. A transposed
// convolution is the gradient of a convolution with respect to its input.
#include <cudnn_graph.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"
#include "replay/math_library.h"

enum { MOST_PLANS = 16, MOST_CONFIGURATIONS = 64, MOST_DIMENSIONS = MOST_SPATIAL + 2 };
// A configuration has itself, its engine and its plan, in each of two modes; some more are of the graph.
enum { MOST_DESCRIPTORS = 2 * 3 * MOST_CONFIGURATIONS + 64 };

#define CUDNN_FUNCTIONS(X)                                                                                   \
    X(cudnnGetVersion)                                                                                       \
    X(cudnnGetErrorString)                                                                                   \
    X(cudnnCreate)                                                                                           \
    X(cudnnSetStream)                                                                                        \
    X(cudnnBackendCreateDescriptor)                                                                          \
    X(cudnnBackendDestroyDescriptor)                                                                         \
    X(cudnnBackendSetAttribute)                                                                              \
    X(cudnnBackendGetAttribute)                                                                              \
    X(cudnnBackendFinalize)                                                                                  \
    X(cudnnBackendExecute)

static struct {
    CUDNN_FUNCTIONS(FUNCTION_MEMBER)
    cudnnHandle_t handle;
} cudnn;

static int open_library(int threads, char reason[REASON_SIZE]) {
    (void)threads;
    char name[32];
    snprintf(name, sizeof name, "libcudnn.so.%d", CUDNN_MAJOR);
    const struct gpu_library wanted = {"GENTABLES_CUDNN", name, "cuDNN", FUNCTION_NAMES(CUDNN_FUNCTIONS),
                                       &cudnn};
    if (gpu_load(&wanted, reason, REASON_SIZE) != 0) return -1;
    cudnnStatus_t status = cudnn.cudnnCreate(&cudnn.handle);
    if (status == CUDNN_STATUS_SUCCESS) status = cudnn.cudnnSetStream(cudnn.handle, (cudaStream_t)gpu.stream);
    if (status == CUDNN_STATUS_SUCCESS) return 0;
    snprintf(reason, REASON_SIZE, "cuDNN does not start: %s", cudnn.cudnnGetErrorString(status));
    return -1;
}

static void describe(char text[], size_t size) {
    snprintf(text, size, "version=%zu workspace_mib=%d", cudnn.cudnnGetVersion(), WORKSPACE_BYTES >> 20);
}

// ---- descriptors ----------------------------------------------------------------------------------------

struct state {
    cudnnBackendDescriptor_t descriptors[MOST_DESCRIPTORS]; // all that were made
    int descriptor_count;
    cudnnStatus_t status; // of the first failure; later functions do nothing
    cudnnBackendDescriptor_t plans[MOST_PLANS], pack;
    unsigned notes[MOST_PLANS]; // of the plans' engines
    int count, chosen;
    int64_t engine;           // of the first plan
    unsigned unwanted;        // notes that no engine may have
    int configurations, less; // all, and those that may have an engine of lower precision
};

static cudnnBackendDescriptor_t make(struct state *at, cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = NULL;
    if (at->status != CUDNN_STATUS_SUCCESS) return NULL;
    if (at->descriptor_count == MOST_DESCRIPTORS) {
        at->status = CUDNN_STATUS_INTERNAL_ERROR;
        return NULL;
    }
    at->status = cudnn.cudnnBackendCreateDescriptor(type, &made);
    if (at->status == CUDNN_STATUS_SUCCESS) at->descriptors[at->descriptor_count++] = made;
    return made;
}

static void set(struct state *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    if (at->status == CUDNN_STATUS_SUCCESS)
        at->status = cudnn.cudnnBackendSetAttribute(of, name, type, count, values);
}

static void set_descriptor(struct state *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value) {
    set(at, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, (const void *)&value);
}

static void set_type(struct state *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                     cudnnDataType_t value) {
    set(at, of, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

static void finalize(struct state *at, cudnnBackendDescriptor_t of) {
    if (at->status == CUDNN_STATUS_SUCCESS) at->status = cudnn.cudnnBackendFinalize(of);
}

// ---- tensors --------------------------------------------------------------------------------------------

static cudnnDataType_t type_of(enum data_type type) {
    return type == BFLOAT16 ? CUDNN_DATA_BFLOAT16 : type == FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

// The number of spatial dimensions for cuDNN, at least 2: a line is an image of one row.
static int spatial_of(const struct convolution *at) {
    return at->spatial < 2 ? 2 : at->spatial;
}

// Copies the numbers of these dimensions from a list.
static void spread_out(const struct convolution *at, const int64_t list[], int64_t otherwise, int64_t to[]) {
    int first = spatial_of(at) - at->spatial;
    for (int i = 0; i < spatial_of(at); i++) to[i] = i < first ? otherwise : list[i - first];
}

// The identifiers of the tensors in the graph.
enum uid { INPUT = 1, FILTER, BIAS, OUTPUT, BETWEEN };

// A tensor of `first` images of `channels`, which are its last dimension, or come before the spatial ones.
static cudnnBackendDescriptor_t tensor(struct state *at, enum uid uid, const struct convolution *of,
                                       cudnnDataType_t type, int64_t first, int64_t channels,
                                       const int64_t extents[], bool channels_last) {
    int spatial = spatial_of(of), dimensions = spatial + 2;
    int64_t sizes[MOST_DIMENSIONS] = {first, channels}, steps[MOST_DIMENSIONS], id = uid, alignment = 16;
    spread_out(of, extents, 1, sizes + 2);
    int64_t step = channels_last ? channels : 1;
    for (int i = spatial - 1; i >= 0; i--) {
        steps[2 + i] = step;
        step *= sizes[2 + i];
    }
    steps[1] = channels_last ? 1 : step;
    steps[0] = channels_last ? step : step * channels;
    bool is_virtual = uid == BETWEEN;
    cudnnBackendDescriptor_t made = make(at, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(at, made, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(at, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dimensions, sizes);
    set(at, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, dimensions, steps);
    set(at, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(at, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (is_virtual) set(at, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    finalize(at, made);
    return made;
}

// ---- operations -----------------------------------------------------------------------------------------

static cudnnBackendDescriptor_t steps_of(struct state *at, const struct convolution *of) {
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = spatial_of(of), padding[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL];
    spread_out(of, of->padding, 0, padding);
    spread_out(of, of->stride, 1, stride);
    spread_out(of, of->dilation, 1, dilation);
    cudnnBackendDescriptor_t made = make(at, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_type(at, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(at, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(at, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    set(at, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial, padding);
    set(at, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial, padding);
    set(at, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial, stride);
    set(at, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial, dilation);
    finalize(at, made);
    return made;
}

// The names of an operation's attributes, by direction.
struct attributes {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t steps, input, filter, output, alpha, beta;
};

static const struct attributes forward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
                               transposed = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};

struct tensors {
    cudnnBackendDescriptor_t input, filter, bias, output, between; // between: before the bias, or the output
};

static struct tensors tensors_of(struct state *at, const struct convolution *of, cudnnDataType_t type) {
    static const int64_t one[MOST_SPATIAL] = {1, 1, 1};
    int64_t out = of->out_channels, in = of->in_channels, groups = of->groups;
    bool last = of->input_channels_last;
    struct tensors made = {
        .input = tensor(at, INPUT, of, type, of->batch, in, of->input, last),
        .filter = tensor(at, FILTER, of, type, of->transposed ? in : out,
                         of->transposed ? out / groups : in / groups, of->filter, of->filter_channels_last),
        .output = tensor(at, OUTPUT, of, type, of->batch, out, of->output, last),
    };
    made.between = made.output;
    if (!of->has_bias) return made;
    made.bias = tensor(at, BIAS, of, type, 1, out, one, last);
    made.between = tensor(at, BETWEEN, of, CUDNN_DATA_FLOAT, of->batch, out, of->output, last);
    return made;
}

static cudnnBackendDescriptor_t convolution_of(struct state *at, const struct convolution *of,
                                               const struct tensors *on) {
    const struct attributes *names = of->transposed ? &transposed : &forward;
    const float alpha = 1, beta = 0;
    cudnnBackendDescriptor_t steps = steps_of(at, of), made = make(at, names->type);
    set_descriptor(at, made, names->steps, steps);
    set_descriptor(at, made, names->input, on->input);
    set_descriptor(at, made, names->filter, on->filter);
    set_descriptor(at, made, names->output, on->between);
    set(at, made, names->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    set(at, made, names->beta, CUDNN_TYPE_FLOAT, 1, &beta);
    finalize(at, made);
    return made;
}

static cudnnBackendDescriptor_t addition_of(struct state *at, const struct tensors *on) {
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    cudnnBackendDescriptor_t add = make(at, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(at, add, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(at, add, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    finalize(at, add);
    cudnnBackendDescriptor_t made = make(at, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(at, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
    set_descriptor(at, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, on->between);
    set_descriptor(at, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, on->bias);
    set_descriptor(at, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, on->output);
    finalize(at, made);
    return made;
}

static cudnnBackendDescriptor_t graph_of(struct state *at, const struct convolution *of,
                                         const struct tensors *on) {
    cudnnBackendDescriptor_t operations[2] = {convolution_of(at, of, on)};
    if (of->has_bias) operations[1] = addition_of(at, on);
    cudnnBackendDescriptor_t made = make(at, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(at, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, (const void *)&cudnn.handle);
    set(at, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, of->has_bias ? 2 : 1,
        (const void *)operations);
    finalize(at, made);
    return made;
}

// ---- plans ----------------------------------------------------------------------------------------------

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
static cudnnBackendDescriptor_t engine_of(struct state *at, cudnnBackendDescriptor_t configuration) {
    int64_t count = 0;
    cudnnBackendDescriptor_t engine = make(at, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
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
static void add_plan(struct state *at, cudnnBackendDescriptor_t configuration) {
    int64_t count = 0, bytes = 0;
    cudnnBackendDescriptor_t engine = engine_of(at, configuration);
    unsigned notes = notes_of(engine);
    at->configurations++;
    if ((notes & at->unwanted) != 0) {
        at->less++;
        return;
    }
    cudnnBackendDescriptor_t plan = make(at, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(at, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, (const void *)&cudnn.handle);
    set_descriptor(at, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (at->status != CUDNN_STATUS_SUCCESS || cudnn.cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
        return;
    if (cudnn.cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                       &count, &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes > WORKSPACE_BYTES)
        return;
    if (at->count == 0) at->engine = number_of(engine);
    at->notes[at->count] = notes;
    at->plans[at->count++] = plan;
}

// Adds the plans of the configurations that the library lists in this mode.
static void ask(struct state *at, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode) {
    cudnnBackendDescriptor_t found[MOST_CONFIGURATIONS];
    cudnnBackendDescriptor_t advice = make(at, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = 0;
    set_descriptor(at, advice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(at, advice, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (at->status != CUDNN_STATUS_SUCCESS || cudnn.cudnnBackendFinalize(advice) != CUDNN_STATUS_SUCCESS)
        return; // no configurations in this mode
    for (int i = 0; i < MOST_CONFIGURATIONS; i++) found[i] = make(at, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (at->status == CUDNN_STATUS_SUCCESS)
        at->status = cudnn.cudnnBackendGetAttribute(advice, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_CONFIGURATIONS,
                                                    &count, (void *)found);
    if (count > MOST_CONFIGURATIONS) count = MOST_CONFIGURATIONS; // the library may return a larger number
    for (int64_t i = 0; i < count && at->count < MOST_PLANS; i++) add_plan(at, found[i]);
}

// Makes the list of the addresses of the operands.
static void pack(struct state *at, const struct operands *operands) {
    void *workspace = (void *)(uintptr_t)gpu.workspace; // NOLINT: an address of the GPU's
    const int64_t ids[] = {INPUT, FILTER, OUTPUT, BIAS};
    void *const data[] = {operands->a.data, operands->b.data, operands->out.data, operands->c.data};
    int64_t count = operands->c.count > 0 ? 4 : 3;
    at->pack = make(at, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(at, at->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    set(at, at->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, (const void *)data);
    set(at, at->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, (const void *)&workspace);
    finalize(at, at->pack);
}

// ---- a call ---------------------------------------------------------------------------------------------

static int run(void *state) {
    struct state *at = state;
    return cudnn.cudnnBackendExecute(cudnn.handle, at->plans[at->chosen], at->pack) == CUDNN_STATUS_SUCCESS
               ? 0
               : -1;
}

static int choose(void *state, int algorithm) {
    struct state *at = state;
    if (algorithm < 0 || algorithm >= at->count) return -1;
    at->chosen = algorithm;
    return 0;
}

static bool is_near(void *state) {
    const struct state *at = state;
    return (at->notes[at->chosen] & NOTES_OF_TRANSFORMS) != 0;
}

static void end(void *state) {
    struct state *at = state;
    for (int i = at->descriptor_count - 1; i >= 0; i--)
        cudnn.cudnnBackendDestroyDescriptor(at->descriptors[i]);
    free(at);
}

// Why there is no plan.
static const char *refusal_of(const struct state *at) {
    if (at->status != CUDNN_STATUS_SUCCESS) return cudnn.cudnnGetErrorString(at->status);
    if (at->configurations == 0) return "it lists no engine";
    return at->less == at->configurations
               ? "all of its engines have a lower precision than this type, or no note on their precision"
               : "none of its engines runs in this workspace";
}

static void note_less(const struct state *at, enum data_type type, struct prepared_op *prepared) {
    if (at->less == 0) return;
    snprintf(prepared->note, sizeof prepared->note,
             "%d of %d engine configurations left out, with a lower precision or without a note on it%s",
             at->less, at->configurations,
             type == FLOAT32 ? ": TF32, the default of PyTorch's convolutions" : "");
}

static int prepare(const struct op *op, const struct operands *operands, struct prepared_op *prepared,
                   char reason[REASON_SIZE]) {
    enum data_type type = operands->a.type;
    struct state *at = calloc(1, sizeof *at);
    if (at == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    at->unwanted = notes_of_less(type);
    struct tensors tensors = tensors_of(at, &op->convolution, type_of(type));
    cudnnBackendDescriptor_t graph = graph_of(at, &op->convolution, &tensors);
    ask(at, graph, CUDNN_HEUR_MODE_A);
    if (at->count == 0) ask(at, graph, CUDNN_HEUR_MODE_FALLBACK);
    pack(at, operands);
    if (at->status == CUDNN_STATUS_SUCCESS && at->count > 0) {
        *prepared = (struct prepared_op){.run = run,
                                         .end = end,
                                         .state = at,
                                         .algorithms = at->count,
                                         .choose = choose,
                                         .is_near = is_near};
        snprintf(prepared->kernel, sizeof prepared->kernel, "engine_%lld", (long long)at->engine);
        note_less(at, type, prepared);
        return 0;
    }
    snprintf(reason, REASON_SIZE, "cuDNN does not compute this (%s)", refusal_of(at));
    end(at);
    return -1;
}

const struct library library_cudnn = {
    .name = "cudnn",
    .kinds = 1 << OP_CONVOLUTION,
    .types = 1 << FLOAT32 | 1 << BFLOAT16 | 1 << FLOAT16,
    .open = open_library,
    .describe = describe,
    .prepare = prepare,
};
