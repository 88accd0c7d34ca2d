// Loads oneDNN, and hides the differences between its versions; see onednn_api.h.
#include "onednn_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct onednn onednn;

// ---- loading --------------------------------------------------------------------------------------------

// oneDNN's threads are those of OpenMP, which reads the environment when it is loaded. By default GNU's
// threads poll for the next call for some milliseconds, and would share the cores with the threads that
// flush caches and check results between calls. So the time of polling is limited; waits within a call, and
// between warm calls, are much shorter.
static void prepare_threads(int threads) {
    static const char polls[] = "20000";
    char text[16];
    snprintf(text, sizeof text, "%d", threads);
    setenv("OMP_NUM_THREADS", text, 1);
    if (getenv("OMP_WAIT_POLICY") == NULL) setenv("GOMP_SPINCOUNT", polls, 0);
}

int onednn_load(int threads, char reason[REASON_SIZE]) {
    prepare_threads(threads);
    char name[32];
    snprintf(name, sizeof name, "libdnnl.so.%d", DNNL_VERSION_MAJOR);
    void *library = library_open("GENTABLES_ONEDNN", (const char *const[]){name, NULL}, reason, REASON_SIZE);
    if (library == NULL && *reason == '\0')
        snprintf(reason, REASON_SIZE, "no oneDNN: no %s (Debian: libdnnl2; or GENTABLES_ONEDNN=FILE)", name);
    if (library == NULL) return -1;
    const char *missing = functions_look_up(library, FUNCTION_NAMES(ONEDNN_FUNCTIONS), &onednn);
    if (missing != NULL) {
        snprintf(reason, REASON_SIZE, "the library loaded as oneDNN %d lacks %s", DNNL_VERSION_MAJOR,
                 missing);
        return -1;
    }
    if (onednn.dnnl_version()->major != DNNL_VERSION_MAJOR) {
        snprintf(reason, REASON_SIZE, "oneDNN is of version %d, and this was built for %d",
                 onednn.dnnl_version()->major, DNNL_VERSION_MAJOR);
        return -1;
    }
    if (onednn.dnnl_engine_create(&onednn.engine, dnnl_cpu, 0) == dnnl_success &&
        onednn.dnnl_stream_create(&onednn.stream, onednn.engine, dnnl_stream_default_flags) == dnnl_success)
        return 0;
    snprintf(reason, REASON_SIZE, "oneDNN has no CPU engine");
    return -1;
}

// ---- differences between the versions -------------------------------------------------------------------

struct steps {
    dnnl_dims_t stride, dilation, before, after;
};

static struct steps steps_of(const struct convolution *at) {
    struct steps steps = {.stride = {0}};
    for (int i = 0; i < at->spatial; i++) {
        steps.stride[i] = at->stride[i];
        steps.dilation[i] = at->dilation[i] - 1;
        steps.before[i] = at->padding[i];
        steps.after[i] = at->padding[i] - at->output_padding[i];
    }
    return steps;
}

dnnl_status_t onednn_attributes(double scale, double addend_scale, dnnl_primitive_attr_t *to) {
    dnnl_post_ops_t after;
    dnnl_status_t status = onednn.dnnl_post_ops_create(&after);
    if (status != dnnl_success) return status;
#if DNNL_VERSION_MAJOR >= 3
    if (scale != 1) status = onednn.dnnl_post_ops_append_eltwise(after, dnnl_eltwise_linear, (float)scale, 0);
    if (status == dnnl_success && addend_scale != 0)
        status = onednn.dnnl_post_ops_append_sum(after, (float)addend_scale, 0, dnnl_data_type_undef);
#else
    if (scale != 1)
        status = onednn.dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_linear, (float)scale, 0);
    if (status == dnnl_success && addend_scale != 0)
        status = onednn.dnnl_post_ops_append_sum(after, (float)addend_scale);
#endif
    if (status == dnnl_success) status = onednn.dnnl_primitive_attr_create(to);
    if (status == dnnl_success) status = onednn.dnnl_primitive_attr_set_post_ops(*to, after);
    onednn.dnnl_post_ops_destroy(after);
    return status;
}

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t onednn_layout_make(struct onednn_layout *to, int dimensions, const int64_t sizes[],
                                 const int64_t steps[], dnnl_data_type_t type, bool is_free) {
    if (is_free)
        return onednn.dnnl_memory_desc_create_with_tag(&to->layout, dimensions, sizes, type,
                                                       dnnl_format_tag_any);
    return onednn.dnnl_memory_desc_create_with_strides(&to->layout, dimensions, sizes, type, steps);
}

void onednn_layout_end(struct onednn_layout *layout) {
    if (layout->layout != NULL) onednn.dnnl_memory_desc_destroy(layout->layout);
}

onednn_layout_pointer onednn_layout_of(const struct onednn_layout *layout) {
    return layout != NULL ? layout->layout : NULL;
}

dnnl_status_t onednn_matmul(const struct onednn_layouts *of, dnnl_primitive_attr_t attributes,
                            dnnl_primitive_desc_t *to) {
    return onednn.dnnl_matmul_primitive_desc_create(to, onednn.engine, onednn_layout_of(of->input),
                                                    onednn_layout_of(of->filter), onednn_layout_of(of->bias),
                                                    onednn_layout_of(of->output), attributes);
}

dnnl_status_t onednn_convolution(const struct onednn_layouts *of, const struct convolution *at,
                                 dnnl_primitive_desc_t *to) {
    struct steps steps = steps_of(at);
    if (at->transposed)
        return onednn.dnnl_deconvolution_forward_primitive_desc_create(
            to, onednn.engine, dnnl_forward_inference, dnnl_deconvolution_direct, onednn_layout_of(of->input),
            onednn_layout_of(of->filter), onednn_layout_of(of->bias), onednn_layout_of(of->output),
            steps.stride, steps.dilation, steps.before, steps.after, NULL);
    return onednn.dnnl_convolution_forward_primitive_desc_create(
        to, onednn.engine, dnnl_forward_inference, dnnl_convolution_direct, onednn_layout_of(of->input),
        onednn_layout_of(of->filter), onednn_layout_of(of->bias), onednn_layout_of(of->output), steps.stride,
        steps.dilation, steps.before, steps.after, NULL);
}

// It takes the description of the forward convolution as a hint.
dnnl_status_t onednn_filter_gradient(const struct onednn_layouts *of, const struct convolution *at,
                                     dnnl_primitive_desc_t *to) {
    struct steps steps = steps_of(at);
    dnnl_primitive_desc_t forward = NULL;
    dnnl_status_t status = onednn_convolution(of, at, &forward);
    if (status != dnnl_success) return status;
    if (at->transposed)
        status = onednn.dnnl_deconvolution_backward_weights_primitive_desc_create(
            to, onednn.engine, dnnl_deconvolution_direct, onednn_layout_of(of->input),
            onednn_layout_of(of->filter), onednn_layout_of(of->bias), onednn_layout_of(of->output),
            steps.stride, steps.dilation, steps.before, steps.after, forward, NULL);
    else
        status = onednn.dnnl_convolution_backward_weights_primitive_desc_create(
            to, onednn.engine, dnnl_convolution_direct, onednn_layout_of(of->input),
            onednn_layout_of(of->filter), onednn_layout_of(of->bias), onednn_layout_of(of->output),
            steps.stride, steps.dilation, steps.before, steps.after, forward, NULL);
    onednn.dnnl_primitive_desc_destroy(forward);
    return status;
}

dnnl_status_t onednn_sum(const struct onednn_layout *from, const struct onednn_layout *sums,
                         dnnl_primitive_desc_t *to) {
    return onednn.dnnl_reduction_primitive_desc_create(
        to, onednn.engine, dnnl_reduction_sum, onednn_layout_of(from), onednn_layout_of(sums), 0, 0, NULL);
}

#else

dnnl_status_t onednn_layout_make(struct onednn_layout *to, int dimensions, const int64_t sizes[],
                                 const int64_t steps[], dnnl_data_type_t type, bool is_free) {
    if (is_free)
        return onednn.dnnl_memory_desc_init_by_tag(&to->layout, dimensions, sizes, type, dnnl_format_tag_any);
    return onednn.dnnl_memory_desc_init_by_strides(&to->layout, dimensions, sizes, type, steps);
}

void onednn_layout_end(struct onednn_layout *layout) {
    (void)layout;
}

onednn_layout_pointer onednn_layout_of(const struct onednn_layout *layout) {
    return layout != NULL ? &layout->layout : NULL;
}

dnnl_status_t onednn_matmul(const struct onednn_layouts *of, dnnl_primitive_attr_t attributes,
                            dnnl_primitive_desc_t *to) {
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status =
        onednn.dnnl_matmul_desc_init(&matmul, onednn_layout_of(of->input), onednn_layout_of(of->filter),
                                     onednn_layout_of(of->bias), onednn_layout_of(of->output));
    if (status != dnnl_success) return status;
    return onednn.dnnl_primitive_desc_create(to, &matmul, attributes, onednn.engine, NULL);
}

dnnl_status_t onednn_convolution(const struct onednn_layouts *of, const struct convolution *at,
                                 dnnl_primitive_desc_t *to) {
    struct steps steps = steps_of(at);
    dnnl_convolution_desc_t convolution; // also of a transposed one
    dnnl_status_t status;
    if (at->transposed)
        status = onednn.dnnl_dilated_deconvolution_forward_desc_init(
            &convolution, dnnl_forward_inference, dnnl_deconvolution_direct, onednn_layout_of(of->input),
            onednn_layout_of(of->filter), onednn_layout_of(of->bias), onednn_layout_of(of->output),
            steps.stride, steps.dilation, steps.before, steps.after);
    else
        status = onednn.dnnl_dilated_convolution_forward_desc_init(
            &convolution, dnnl_forward_inference, dnnl_convolution_direct, onednn_layout_of(of->input),
            onednn_layout_of(of->filter), onednn_layout_of(of->bias), onednn_layout_of(of->output),
            steps.stride, steps.dilation, steps.before, steps.after);
    if (status != dnnl_success) return status;
    return onednn.dnnl_primitive_desc_create(to, &convolution, NULL, onednn.engine, NULL);
}

// It takes the description of the forward convolution as a hint.
dnnl_status_t onednn_filter_gradient(const struct onednn_layouts *of, const struct convolution *at,
                                     dnnl_primitive_desc_t *to) {
    struct steps steps = steps_of(at);
    dnnl_convolution_desc_t gradient; // also of a transposed one
    dnnl_primitive_desc_t forward = NULL;
    dnnl_status_t status = onednn_convolution(of, at, &forward);
    if (status != dnnl_success) return status;
    if (at->transposed)
        status = onednn.dnnl_dilated_deconvolution_backward_weights_desc_init(
            &gradient, dnnl_deconvolution_direct, onednn_layout_of(of->input), onednn_layout_of(of->filter),
            onednn_layout_of(of->bias), onednn_layout_of(of->output), steps.stride, steps.dilation,
            steps.before, steps.after);
    else
        status = onednn.dnnl_dilated_convolution_backward_weights_desc_init(
            &gradient, dnnl_convolution_direct, onednn_layout_of(of->input), onednn_layout_of(of->filter),
            onednn_layout_of(of->bias), onednn_layout_of(of->output), steps.stride, steps.dilation,
            steps.before, steps.after);
    if (status == dnnl_success)
        status = onednn.dnnl_primitive_desc_create(to, &gradient, NULL, onednn.engine, forward);
    onednn.dnnl_primitive_desc_destroy(forward);
    return status;
}

dnnl_status_t onednn_sum(const struct onednn_layout *from, const struct onednn_layout *sums,
                         dnnl_primitive_desc_t *to) {
    dnnl_reduction_desc_t reduction;
    dnnl_status_t status = onednn.dnnl_reduction_desc_init(
        &reduction, dnnl_reduction_sum, onednn_layout_of(from), onednn_layout_of(sums), 0, 0);
    if (status != dnnl_success) return status;
    return onednn.dnnl_primitive_desc_create(to, &reduction, NULL, onednn.engine, NULL);
}

#endif
