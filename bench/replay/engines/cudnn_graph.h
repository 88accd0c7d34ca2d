// Graphs of cuDNN: descriptors of tensors, and of an operation on them.
#ifndef REPLAY_CUDNN_GRAPH_H
#define REPLAY_CUDNN_GRAPH_H

#include <cudnn_graph.h>

#include "libraries/functions.h"
#include "replay/op.h"

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

// The loaded functions, by their names.
struct cudnn {
    CUDNN_FUNCTIONS(FUNCTION_MEMBER)
    cudnnHandle_t handle;
};
extern struct cudnn cudnn;

enum { MOST_CONFIGURATIONS = 64, MOST_CUDNN_DIMENSIONS = MOST_SPATIAL + 2 };
// A configuration has itself, its engine and its plan, in each of two modes; some more are of the graph.
enum { MOST_DESCRIPTORS = 2 * 3 * MOST_CONFIGURATIONS + 64 };

// The descriptors of a graph and its plans.
struct descriptors {
    cudnnBackendDescriptor_t list[MOST_DESCRIPTORS]; // all that were made
    int count;
    cudnnStatus_t status; // of the first failure; later functions do nothing
};

cudnnBackendDescriptor_t descriptor_make(struct descriptors *at, cudnnBackendDescriptorType_t type);
void descriptor_set(struct descriptors *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values);
void descriptor_refer(struct descriptors *at, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptor_t value);
void descriptor_finalize(struct descriptors *at, cudnnBackendDescriptor_t of);
void descriptors_end(struct descriptors *at);

// The identifiers of the tensors in a graph. In that of a gradient of filters INPUT is the input, OUTPUT the
// gradient of the result, and FILTER is computed.
enum uid { INPUT = 1, FILTER, BIAS, OUTPUT, BETWEEN };

cudnnDataType_t cudnn_type_of(enum data_type type);

// The sizes and steps of a tensor of `first` images of `channels`, which are its last dimension, or come
// before the spatial ones; at least two of these, so that a line is an image of one row. Returns the number
// of dimensions.
int cudnn_layout(const struct convolution *of, int64_t first, int64_t channels, const int64_t extents[],
                 bool channels_last, int64_t sizes[MOST_CUDNN_DIMENSIONS],
                 int64_t steps[MOST_CUDNN_DIMENSIONS]);

// The graph of a convolution; or of the gradient of its filters.
cudnnBackendDescriptor_t cudnn_convolution_graph(struct descriptors *at, const struct convolution *of,
                                                 cudnnDataType_t type);
cudnnBackendDescriptor_t cudnn_filter_graph(struct descriptors *at, const struct convolution *of,
                                            cudnnDataType_t type);

#endif
