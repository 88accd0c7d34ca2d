// A stand-in for libcudnn.so beside that of the driver: descriptors with their attributes, and convolutions
// in the host's memory, by plain loops over the given strides. Settings in STAND_IN:
//
//   algorithms_us=50,20,80   the time of each engine, and their number
//   wrong=1 near=2           engine 1 has a result that is wrong by one; those of engine 2 are off by 0.01
//   wrong_bias=1             the gradient of a bias is wrong by one
//   notes=1,32               bits of the numerical notes of each engine
//   fallback=1               in mode fallback there is one engine, with the global index 70
//   refuses, no_engine       no graph is supported; no engine is found
#include <cudnn_cnn.h>
#include <cudnn_graph.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "replay/data.h"

struct CUstream_st;
void stand_in_meet(struct CUstream_st *stream, int ranks, void (*together)(void **, int), void *argument);
void stand_in_pass(float ms);
int stand_in_number(const char *name, int n, int otherwise);
void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value);

enum { FALLBACK = 30 }; // an engine

enum { MOST_ATTRIBUTES = 12, MOST_VALUES = 16, MOST_DIMENSIONS = 5 };

struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool is_final;
    int engine;
    struct descriptor *graph; // of a configuration and of its plan
    struct {
        cudnnBackendAttributeName_t name;
        int64_t count;
        union {
            int64_t integers[MOST_VALUES];
            struct descriptor *descriptors[MOST_VALUES];
            void *pointers[MOST_VALUES];
        } values;
    } attributes[MOST_ATTRIBUTES];
    int count;
};

static struct CUstream_st *stream_of_all;

size_t cudnnGetVersion(void) {
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    static int there;
    *handle = (cudnnHandle_t)(void *)&there;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    (void)handle;
    stream_of_all = (struct CUstream_st *)stream;
    return CUDNN_STATUS_SUCCESS;
}

// ---- descriptors ----------------------------------------------------------------------------------------

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *made) {
    struct descriptor *descriptor = calloc(1, sizeof *descriptor);
    descriptor->type = type;
    *made = (cudnnBackendDescriptor_t)descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    free((void *)descriptor);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_POINTWISE_MODE: return sizeof(int);
    default: return sizeof(int64_t);
    }
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    struct descriptor *at = (struct descriptor *)of;
    if (at->is_final || at->count == MOST_ATTRIBUTES || count > MOST_VALUES) return CUDNN_STATUS_BAD_PARAM;
    at->attributes[at->count].name = name;
    at->attributes[at->count].count = count;
    for (int64_t i = 0; i < count; i++)
        memcpy(&at->attributes[at->count].values.integers[i],
               (const char *)values + (size_t)i * size_of(type), size_of(type));
    at->count++;
    return CUDNN_STATUS_SUCCESS;
}

// The values of an attribute; NULL: it was not set.
static const int64_t *values_of(const struct descriptor *at, cudnnBackendAttributeName_t name,
                                int64_t *count) {
    for (int i = 0; at != NULL && i < at->count; i++) {
        if (at->attributes[i].name != name) continue;
        if (count != NULL) *count = at->attributes[i].count;
        return at->attributes[i].values.integers;
    }
    return NULL;
}

static struct descriptor *descriptor_of(const struct descriptor *at, cudnnBackendAttributeName_t name,
                                        int n) {
    const int64_t *values = values_of(at, name, NULL);
    return values != NULL ? (struct descriptor *)(uintptr_t)values[n] : NULL;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of) {
    struct descriptor *at = (struct descriptor *)of;
    at->is_final = true;
    if (at->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && stand_in_number("refuses", 0, 0) != 0)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (at->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        const struct descriptor *from = descriptor_of(at, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
        at->engine = from->engine;
        at->graph = from->graph;
    }
    return CUDNN_STATUS_SUCCESS;
}

// Fills `found` with the engines; returns their number.
static int64_t name_engines(const struct descriptor *advice, int64_t most, struct descriptor *found[]) {
    bool falls_back = *values_of(advice, CUDNN_ATTR_ENGINEHEUR_MODE, NULL) == CUDNN_HEUR_MODE_FALLBACK &&
                      stand_in_number("fallback", 0, 0) != 0;
    int64_t count = 0;
    for (int i = 0; i < most && (i == 0 || stand_in_number("algorithms_us", i, -1) >= 0); i++) {
        if (falls_back && i > 0) break;
        found[i]->engine = falls_back ? FALLBACK : i;
        found[i]->graph = descriptor_of(advice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
        count = i + 1;
    }
    return stand_in_number("no_engine", 0, 0) != 0 ? 0 : count;
}

static cudnnStatus_t tell_notes(const struct descriptor *engine, cudnnBackendAttributeType_t type,
                                int64_t most, int64_t *count, cudnnBackendNumericalNote_t to[]) {
    if (engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR || type != CUDNN_TYPE_NUMERICAL_NOTE)
        return CUDNN_STATUS_BAD_PARAM;
    int notes = engine->engine == FALLBACK ? 0 : stand_in_number("notes", engine->engine, 0);
    *count = 0;
    for (int note = 0; note < CUDNN_NUMERICAL_NOTE_TYPE_COUNT && *count < most; note++) {
        if ((notes >> note & 1) != 0) to[(*count)++] = (cudnnBackendNumericalNote_t)note;
    }
    return CUDNN_STATUS_SUCCESS;
}

// The engines of a heuristic; the engine of a configuration, its global index and notes; a plan's workspace.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const of, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t *count,
                                       void *values) {
    struct descriptor *at = (struct descriptor *)of, **found = values;
    *count = 1;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        *count = name_engines(at, most, found);
    else if (name == CUDNN_ATTR_ENGINECFG_ENGINE)
        found[0]->engine = at->engine;
    else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
        return tell_notes(at, type, most, count, values);
    else if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX)
        *(int64_t *)values = at->engine + 40;
    else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
        *(int64_t *)values = 1024;
    else
        return CUDNN_STATUS_BAD_PARAM;
    return CUDNN_STATUS_SUCCESS;
}

// ---- convolutions ---------------------------------------------------------------------------------------

// A tensor with its data; it always has three spatial dimensions.
struct array {
    enum data_type type;
    int64_t size[MOST_DIMENSIONS], step[MOST_DIMENSIONS];
    void *data;
};

static struct array array_of(const struct descriptor *tensor, const struct descriptor *pack) {
    struct array made = {.type = FLOAT32};
    int64_t dimensions, count, missing;
    const int64_t *size = values_of(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, &dimensions);
    const int64_t *step = values_of(tensor, CUDNN_ATTR_TENSOR_STRIDES, NULL);
    const int64_t *ids = values_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &count);
    const int64_t *data = values_of(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, NULL);
    int type = (int)*values_of(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, NULL);
    made.type = type == CUDNN_DATA_BFLOAT16 ? BFLOAT16 : type == CUDNN_DATA_HALF ? FLOAT16 : FLOAT32;
    missing = MOST_DIMENSIONS - dimensions;
    for (int64_t i = 0; i < MOST_DIMENSIONS; i++) {
        bool is_missing = i >= 2 && i < 2 + missing;
        made.size[i] = is_missing ? 1 : size[i < 2 ? i : i - missing];
        made.step[i] = is_missing ? 0 : step[i < 2 ? i : i - missing];
    }
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] == *values_of(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, NULL))
            made.data = (void *)(uintptr_t)data[i];
    }
    return made;
}

static size_t place_of(const struct array *at, const int64_t index[]) {
    int64_t place = 0;
    for (int i = 0; i < MOST_DIMENSIONS; i++) place += index[i] * at->step[i];
    return (size_t)place;
}

static double value_at(const struct array *at, const int64_t index[]) {
    return tensor_value(&(struct tensor){.type = at->type, .data = at->data}, place_of(at, index));
}

// The next index, or false after the last.
static bool next(const struct array *at, int64_t index[]) {
    for (int i = MOST_DIMENSIONS - 1; i >= 0; i--) {
        if (++index[i] < at->size[i]) return true;
        index[i] = 0;
    }
    return false;
}

// What an operation computes.
enum direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTER, DIRECTIONS };

struct task {
    struct array input, filter, output, bias; // of BACKWARD_FILTER the filter is computed
    int64_t padding[3], after[3], stride[3], dilation[3];
    enum direction direction;
    bool has_bias;
    int engine;
};

static struct array *result_of(struct task *at) {
    return at->direction == BACKWARD_FILTER ? &at->filter : &at->output;
}

// An attribute with a value for each spatial dimension, extended to three dimensions.
static void read_spatial(const struct descriptor *steps, cudnnBackendAttributeName_t name, int64_t otherwise,
                         int64_t to[3]) {
    int64_t count;
    const int64_t *values = values_of(steps, name, &count);
    for (int64_t i = 0; i < 3; i++) to[i] = i < 3 - count ? otherwise : values[i - (3 - count)];
}

// Adds up the products of elements and filter taps, in doubles. A transposed convolution goes the other way:
// from the small side to the large one. The gradient of the filter meets both sides.
static void meet(const struct task *at, double sums[]) {
    bool is_transposed = at->direction == BACKWARD_DATA; // a plain convolution reads the large side
    const struct array *small = is_transposed ? &at->input : &at->output;
    const struct array *large = is_transposed ? &at->output : &at->input;
    int64_t groups = large->size[1] / at->filter.size[1], each = small->size[1] / groups;
    int64_t index[MOST_DIMENSIONS] = {0};
    do {
        struct array taps = at->filter;
        int64_t tap[MOST_DIMENSIONS] = {0};
        taps.size[0] = 1;
        do {
            int64_t filter[] = {index[1], tap[1], tap[2], tap[3], tap[4]};
            int64_t other[] = {index[0], index[1] / each * at->filter.size[1] + tap[1], 0, 0, 0};
            bool is_inside = true;
            for (int i = 0; i < 3; i++) {
                other[2 + i] = index[2 + i] * at->stride[i] - at->padding[i] + tap[2 + i] * at->dilation[i];
                is_inside = is_inside && other[2 + i] >= 0 && other[2 + i] < large->size[2 + i];
            }
            if (!is_inside) continue;
            if (at->direction == BACKWARD_FILTER)
                sums[place_of(&at->filter, filter)] += value_at(small, index) * value_at(large, other);
            else if (is_transposed)
                sums[place_of(large, other)] += value_at(&at->filter, filter) * value_at(small, index);
            else
                sums[place_of(small, index)] += value_at(&at->filter, filter) * value_at(large, other);
        } while (next(&taps, tap));
    } while (next(small, index));
}

static void convolve(void **arguments, int count) {
    (void)count;
    struct task *at = arguments[0];
    struct array *out = result_of(at);
    int64_t elements = 1, index[MOST_DIMENSIONS] = {0};
    for (int i = 0; i < MOST_DIMENSIONS; i++) elements *= out->size[i];
    double *sums = calloc((size_t)elements, sizeof *sums);
    meet(at, sums);
    if (stand_in_number("wrong", 0, -1) == at->engine) sums[0] += 1;
    double off = stand_in_number("near", 0, -1) == at->engine ? 0.01 : 0;
    do {
        const int64_t channel[] = {0, index[1], 0, 0, 0};
        double sum = sums[place_of(out, index)] + off + (at->has_bias ? value_at(&at->bias, channel) : 0);
        stand_in_store((int)data_type_size(out->type), out->type == BFLOAT16, out->data, place_of(out, index),
                       sum);
    } while (next(out, index));
    free(sums);
    stand_in_pass((float)stand_in_number("algorithms_us", at->engine, 5) / 1000);
    free(at);
}

// The names of an operation's attributes; `input` and `output` have the place of a plain convolution's.
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t steps, input, filter, output;
} directions[DIRECTIONS] = {
    [FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [BACKWARD_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
    [BACKWARD_FILTER] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

// Whether the sizes of the small side are those that the large one, the filter and the padding give, as the
// real library requires. A task with other sizes fails.
static bool has_sizes(const struct task *at) {
    const struct array *small = at->direction == BACKWARD_DATA ? &at->input : &at->output;
    const struct array *large = at->direction == BACKWARD_DATA ? &at->output : &at->input;
    for (int i = 0; i < 3; i++) {
        int64_t reach = at->dilation[i] * (at->filter.size[2 + i] - 1) + 1;
        int64_t room = large->size[2 + i] + at->padding[i] + at->after[i] - reach;
        if (room < 0 || room / at->stride[i] + 1 != small->size[2 + i]) return false;
    }
    return small->size[1] == at->filter.size[0];
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t of,
                                  cudnnBackendDescriptor_t with) {
    (void)handle;
    const struct descriptor *plan = (const struct descriptor *)of, *pack = (const struct descriptor *)with;
    const struct descriptor *operation = descriptor_of(plan->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0);
    int direction = 0;
    while (direction < DIRECTIONS - 1 && directions[direction].type != operation->type) direction++;
    int64_t operations;
    values_of(plan->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &operations);
    const struct descriptor *steps = descriptor_of(operation, directions[direction].steps, 0);
    const struct descriptor *output = descriptor_of(operation, directions[direction].output, 0);
    struct task *task = calloc(1, sizeof *task);
    *task = (struct task){
        .direction = (enum direction)direction, .has_bias = operations == 2, .engine = plan->engine};
    if (task->has_bias) {
        const struct descriptor *addition = descriptor_of(plan->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 1);
        output = descriptor_of(addition, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
        task->bias = array_of(descriptor_of(addition, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0), pack);
    }
    task->input = array_of(descriptor_of(operation, directions[direction].input, 0), pack);
    task->filter = array_of(descriptor_of(operation, directions[direction].filter, 0), pack);
    task->output = array_of(output, pack);
    read_spatial(steps, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0, task->padding);
    read_spatial(steps, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0, task->after);
    read_spatial(steps, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1, task->stride);
    read_spatial(steps, CUDNN_ATTR_CONVOLUTION_DILATIONS, 1, task->dilation);
    if (!has_sizes(task)) {
        free(task);
        return CUDNN_STATUS_BAD_PARAM;
    }
    stand_in_meet(stream_of_all, 1, convolve, task);
    return CUDNN_STATUS_SUCCESS;
}

// ---- the gradient of a bias -----------------------------------------------------------------------------

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *made) {
    *made = (cudnnTensorDescriptor_t)calloc(1, sizeof(struct array));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t of) {
    free((void *)of);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t of, cudnnDataType_t type, int dimensions,
                                         const int sizes[], const int steps[]) {
    struct array *at = (struct array *)of;
    if (dimensions < 4 || dimensions > MOST_DIMENSIONS) return CUDNN_STATUS_NOT_SUPPORTED;
    at->type = type == CUDNN_DATA_BFLOAT16 ? BFLOAT16 : type == CUDNN_DATA_HALF ? FLOAT16 : FLOAT32;
    for (int i = 0; i < MOST_DIMENSIONS; i++) {
        at->size[i] = i < dimensions ? sizes[i] : 1;
        at->step[i] = i < dimensions ? steps[i] : 0;
    }
    return CUDNN_STATUS_SUCCESS;
}

// Sums over all but the channels: operands are the gradient of the result, and that of the bias.
struct summed {
    struct array from, to;
};

static void sum_channels(void **arguments, int count) {
    (void)count;
    struct summed *at = arguments[0];
    int64_t index[MOST_DIMENSIONS] = {0};
    double *sums = calloc((size_t)at->to.size[1], sizeof *sums);
    do sums[index[1]] += value_at(&at->from, index);
    while (next(&at->from, index));
    if (stand_in_number("wrong_bias", 0, 0) != 0) sums[0] += 1;
    for (int64_t i = 0; i < at->to.size[1]; i++)
        stand_in_store((int)data_type_size(at->to.type), at->to.type == BFLOAT16, at->to.data, (size_t)i,
                       sums[i]);
    free(sums);
    free(at);
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                                           const cudnnTensorDescriptor_t from, const void *from_data,
                                           const void *beta, const cudnnTensorDescriptor_t to,
                                           void *to_data) {
    (void)handle;
    (void)alpha;
    (void)beta;
    struct summed *task = malloc(sizeof *task);
    *task = (struct summed){*(const struct array *)from, *(const struct array *)to};
    task->from.data = (void *)(uintptr_t)from_data;
    task->to.data = to_data;
    stand_in_meet(stream_of_all, 1, sum_channels, task);
    return CUDNN_STATUS_SUCCESS;
}
