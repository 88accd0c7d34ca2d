// Makes graphs of cuDNN; see cudnn_graph.h. A convolution with a bias is two operations in one graph. A
// transposed convolution is the gradient of a convolution with respect to its input.
#include "cudnn_graph.h"

struct cudnn cudnn;

// ---- descriptors ----------------------------------------------------------------------------------------

cudnnBackendDescriptor_t descriptor_make(struct descriptors *at, cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = NULL;
    if (at->status != CUDNN_STATUS_SUCCESS) return NULL;
    if (at->count == MOST_DESCRIPTORS) {
        at->status = CUDNN_STATUS_INTERNAL_ERROR;
        return NULL;
    }
    at->status = cudnn.cudnnBackendCreateDescriptor(type, &made);
    if (at->status == CUDNN_STATUS_SUCCESS) at->list[at->count++] = made;
    return made;
}

void descriptor_set(struct descriptors *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    if (at->status == CUDNN_STATUS_SUCCESS)
        at->status = cudnn.cudnnBackendSetAttribute(of, name, type, count, values);
}

void descriptor_refer(struct descriptors *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptor_t value) {
    descriptor_set(at, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, (const void *)&value);
}

static void set_type(struct descriptors *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                     cudnnDataType_t value) {
    descriptor_set(at, of, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

void descriptor_finalize(struct descriptors *at, cudnnBackendDescriptor_t of) {
    if (at->status == CUDNN_STATUS_SUCCESS) at->status = cudnn.cudnnBackendFinalize(of);
}

void descriptors_end(struct descriptors *at) {
    for (int i = at->count - 1; i >= 0; i--) cudnn.cudnnBackendDestroyDescriptor(at->list[i]);
    at->count = 0;
}

// ---- tensors --------------------------------------------------------------------------------------------

cudnnDataType_t cudnn_type_of(enum data_type type) {
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

int cudnn_layout(const struct convolution *of, int64_t first, int64_t channels, const int64_t extents[],
                 bool channels_last, int64_t sizes[MOST_CUDNN_DIMENSIONS],
                 int64_t steps[MOST_CUDNN_DIMENSIONS]) {
    int spatial = spatial_of(of);
    int64_t step = channels_last ? channels : 1;
    sizes[0] = first;
    sizes[1] = channels;
    spread_out(of, extents, 1, sizes + 2);
    for (int i = spatial - 1; i >= 0; i--) {
        steps[2 + i] = step;
        step *= sizes[2 + i];
    }
    steps[1] = channels_last ? 1 : step;
    steps[0] = channels_last ? step : step * channels;
    return spatial + 2;
}

static cudnnBackendDescriptor_t tensor(struct descriptors *at, enum uid uid, const struct convolution *of,
                                       cudnnDataType_t type, int64_t first, int64_t channels,
                                       const int64_t extents[], bool channels_last) {
    int64_t sizes[MOST_CUDNN_DIMENSIONS], steps[MOST_CUDNN_DIMENSIONS], id = uid, alignment = 16;
    int dimensions = cudnn_layout(of, first, channels, extents, channels_last, sizes, steps);
    bool is_virtual = uid == BETWEEN;
    cudnnBackendDescriptor_t made = descriptor_make(at, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(at, made, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    descriptor_set(at, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dimensions, sizes);
    descriptor_set(at, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, dimensions, steps);
    descriptor_set(at, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    descriptor_set(at, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (is_virtual)
        descriptor_set(at, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    descriptor_finalize(at, made);
    return made;
}

// ---- operations -----------------------------------------------------------------------------------------

static cudnnBackendDescriptor_t steps_of(struct descriptors *at, const struct convolution *of) {
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = spatial_of(of), padding[MOST_SPATIAL], after[MOST_SPATIAL], stride[MOST_SPATIAL],
            dilation[MOST_SPATIAL];
    spread_out(of, of->padding, 0, padding);
    spread_out(of, of->padding, 0, after);
    for (int i = 0; i < of->spatial && !of->transposed; i++) // of the gradient of a transposed one
        after[spatial - of->spatial + i] -= of->output_padding[i];
    spread_out(of, of->stride, 1, stride);
    spread_out(of, of->dilation, 1, dilation);
    cudnnBackendDescriptor_t made = descriptor_make(at, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_type(at, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    descriptor_set(at, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    descriptor_set(at, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    descriptor_set(at, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial, padding);
    descriptor_set(at, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial, after);
    descriptor_set(at, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial, stride);
    descriptor_set(at, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial, dilation);
    descriptor_finalize(at, made);
    return made;
}

// The names of an operation's attributes, by direction. The operation computes `output`; or, that of the
// gradient of filters, `filter`.
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
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
                               of_filter = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

struct tensors {
    cudnnBackendDescriptor_t input, filter, bias, output, between; // between: before the bias, or the output
};

static struct tensors tensors_of(struct descriptors *at, const struct convolution *of, cudnnDataType_t type) {
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

static cudnnBackendDescriptor_t operation_of(struct descriptors *at, const struct convolution *of,
                                             const struct attributes *names, const struct tensors *on) {
    const float alpha = 1, beta = 0;
    cudnnBackendDescriptor_t steps = steps_of(at, of), made = descriptor_make(at, names->type);
    descriptor_refer(at, made, names->steps, steps);
    descriptor_refer(at, made, names->input, on->input);
    descriptor_refer(at, made, names->filter, on->filter);
    descriptor_refer(at, made, names->output, on->between);
    descriptor_set(at, made, names->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    descriptor_set(at, made, names->beta, CUDNN_TYPE_FLOAT, 1, &beta);
    descriptor_finalize(at, made);
    return made;
}

static cudnnBackendDescriptor_t addition_of(struct descriptors *at, const struct tensors *on) {
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    cudnnBackendDescriptor_t add = descriptor_make(at, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    descriptor_set(at, add, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(at, add, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    descriptor_finalize(at, add);
    cudnnBackendDescriptor_t made = descriptor_make(at, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    descriptor_refer(at, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
    descriptor_refer(at, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, on->between);
    descriptor_refer(at, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, on->bias);
    descriptor_refer(at, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, on->output);
    descriptor_finalize(at, made);
    return made;
}

static cudnnBackendDescriptor_t graph_of(struct descriptors *at, cudnnBackendDescriptor_t operations[],
                                         int64_t count) {
    cudnnBackendDescriptor_t made = descriptor_make(at, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    descriptor_set(at, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                   (const void *)&cudnn.handle);
    descriptor_set(at, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                   (const void *)operations);
    descriptor_finalize(at, made);
    return made;
}

cudnnBackendDescriptor_t cudnn_convolution_graph(struct descriptors *at, const struct convolution *of,
                                                 cudnnDataType_t type) {
    const struct tensors tensors = tensors_of(at, of, type);
    cudnnBackendDescriptor_t operations[2] = {
        operation_of(at, of, of->transposed ? &transposed : &forward, &tensors)};
    if (of->has_bias) operations[1] = addition_of(at, &tensors);
    return graph_of(at, operations, of->has_bias ? 2 : 1);
}

// A transposed convolution is linear in the operands of the gradient of a plain one, from its output to its
// input: so is the gradient of its filters, with these in each other's place.
cudnnBackendDescriptor_t cudnn_filter_graph(struct descriptors *at, const struct convolution *of,
                                            cudnnDataType_t type) {
    struct tensors tensors = tensors_of(at, of, type);
    if (of->transposed) {
        cudnnBackendDescriptor_t input = tensors.input;
        tensors.input = tensors.between;
        tensors.between = input;
    }
    cudnnBackendDescriptor_t operation = operation_of(at, of, &of_filter, &tensors);
    return graph_of(at, &operation, 1);
}
