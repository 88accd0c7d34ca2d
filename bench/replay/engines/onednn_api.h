// oneDNN's C interface as version 2 and version 3 have it, loaded at run time. Types and constants are
// those of the headers that this was built with; the library has to be of the same major version.
#ifndef REPLAY_ONEDNN_API_H
#define REPLAY_ONEDNN_API_H

#include <dnnl.h>

#include "libraries/functions.h"
#include "replay/op.h"

#define ONEDNN_COMMON(X)                                                                                     \
    X(dnnl_version)                                                                                          \
    X(dnnl_get_effective_cpu_isa)                                                                            \
    X(dnnl_engine_create)                                                                                    \
    X(dnnl_stream_create)                                                                                    \
    X(dnnl_stream_wait)                                                                                      \
    X(dnnl_memory_create)                                                                                    \
    X(dnnl_memory_destroy)                                                                                   \
    X(dnnl_memory_desc_equal)                                                                                \
    X(dnnl_primitive_attr_create)                                                                            \
    X(dnnl_primitive_attr_destroy)                                                                           \
    X(dnnl_primitive_attr_set_post_ops)                                                                      \
    X(dnnl_post_ops_create)                                                                                  \
    X(dnnl_post_ops_destroy)                                                                                 \
    X(dnnl_post_ops_append_eltwise)                                                                          \
    X(dnnl_post_ops_append_sum)                                                                              \
    X(dnnl_primitive_desc_query)                                                                             \
    X(dnnl_primitive_desc_query_md)                                                                          \
    X(dnnl_primitive_desc_destroy)                                                                           \
    X(dnnl_reorder_primitive_desc_create)                                                                    \
    X(dnnl_primitive_create)                                                                                 \
    X(dnnl_primitive_execute)                                                                                \
    X(dnnl_primitive_destroy)

#if DNNL_VERSION_MAJOR >= 3
#define ONEDNN_OWN(X)                                                                                        \
    X(dnnl_memory_desc_create_with_strides)                                                                  \
    X(dnnl_memory_desc_create_with_tag)                                                                      \
    X(dnnl_memory_desc_destroy)                                                                              \
    X(dnnl_convolution_forward_primitive_desc_create)                                                        \
    X(dnnl_convolution_backward_weights_primitive_desc_create)                                               \
    X(dnnl_deconvolution_forward_primitive_desc_create)                                                      \
    X(dnnl_deconvolution_backward_weights_primitive_desc_create)                                             \
    X(dnnl_reduction_primitive_desc_create)                                                                  \
    X(dnnl_matmul_primitive_desc_create)
typedef const_dnnl_memory_desc_t onednn_layout_pointer;
#else
#define ONEDNN_OWN(X)                                                                                        \
    X(dnnl_memory_desc_init_by_strides)                                                                      \
    X(dnnl_memory_desc_init_by_tag)                                                                          \
    X(dnnl_dilated_convolution_forward_desc_init)                                                            \
    X(dnnl_dilated_convolution_backward_weights_desc_init)                                                   \
    X(dnnl_dilated_deconvolution_forward_desc_init)                                                          \
    X(dnnl_dilated_deconvolution_backward_weights_desc_init)                                                 \
    X(dnnl_reduction_desc_init)                                                                              \
    X(dnnl_matmul_desc_init)                                                                                 \
    X(dnnl_primitive_desc_create)
typedef const dnnl_memory_desc_t *onednn_layout_pointer;
#endif

#define ONEDNN_FUNCTIONS(X) ONEDNN_COMMON(X) ONEDNN_OWN(X)

// The loaded functions, by their names.
struct onednn {
    ONEDNN_FUNCTIONS(FUNCTION_MEMBER)
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};
extern struct onednn onednn;

// Loads the library that GENTABLES_ONEDNN names, else the system's, for so many threads. -1 with a reason.
int onednn_load(int threads, char reason[REASON_SIZE]);

// The layout of a tensor in memory; with `is_free` the library chooses it.
struct onednn_layout {
    dnnl_memory_desc_t layout;
};
dnnl_status_t onednn_layout_make(struct onednn_layout *to, int dimensions, const int64_t sizes[],
                                 const int64_t steps[], dnnl_data_type_t type, bool is_free);
void onednn_layout_end(struct onednn_layout *layout);
onednn_layout_pointer onednn_layout_of(const struct onednn_layout *layout);

// Scales the result, then adds `addend_scale` times the previous contents of its memory; 0: adds nothing.
dnnl_status_t onednn_attributes(double scale, double addend_scale, dnnl_primitive_attr_t *to);

// The layouts of a primitive: of its input, filters (or B), bias (NULL: none) and result. The functions make
// its description, which the caller destroys.
struct onednn_layouts {
    const struct onednn_layout *input, *filter, *bias, *output;
};
dnnl_status_t onednn_matmul(const struct onednn_layouts *of, dnnl_primitive_attr_t attributes,
                            dnnl_primitive_desc_t *to);
dnnl_status_t onednn_convolution(const struct onednn_layouts *of, const struct convolution *at,
                                 dnnl_primitive_desc_t *to);
// The gradients of the filters and, unless it is NULL, of the bias.
dnnl_status_t onednn_filter_gradient(const struct onednn_layouts *of, const struct convolution *at,
                                     dnnl_primitive_desc_t *to);
// Sums over the dimensions that the result has with a size of 1.
dnnl_status_t onednn_sum(const struct onednn_layout *from, const struct onednn_layout *sums,
                         dnnl_primitive_desc_t *to);

#endif
