// Convolutions and matrix products by oneDNN. As PyTorch does with operands that were not packed before, each
// call reorders operands for which the library requires another layout, and copies the result back to the
// tensor's layout; channels_last tensors are not reordered.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn_api.h"
#include "replay/addend.h"
#include "replay/math_library.h"

// A backward convolution has a primitive for the input's gradient, and at most two for the others, each with
// reorders of its operands.
enum { MOST_STEPS = 12, MOST_ARGUMENTS = 4, MOST_MEMORIES = 20, MOST_DIMENSIONS = MOST_SPATIAL + 3 };

static int open_threads;

static int open_onednn(int threads, char reason[REASON_SIZE]) {
    open_threads = threads;
    return onednn_load(threads, reason);
}

static bool has_bfloat16(void) {
    unsigned isa = (unsigned)onednn.dnnl_get_effective_cpu_isa(), needed = dnnl_cpu_isa_avx512_core_bf16;
    return (isa & needed) == needed;
}

static void describe(char text[], size_t size) {
    const dnnl_version_t *version = onednn.dnnl_version();
    snprintf(text, size, "version=%d.%d.%d bfloat16=%s threads=%d", version->major, version->minor,
             version->patch, has_bfloat16() ? "native" : "none", open_threads);
}

static bool is_fast(enum data_type type) {
    return type != BFLOAT16 || has_bfloat16();
}

// ---- a call: primitives one after the other -------------------------------------------------------------

struct step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS];
    int count;
};

struct state {
    struct step steps[MOST_STEPS];
    int step_count, reorder_count;
    dnnl_memory_t memories[MOST_MEMORIES];
    int memory_count;
    bool copies_addend;
    struct gemm gemm;
    struct operands operands;
};

static int run(void *state) {
    struct state *at = state;
    if (at->copies_addend) copy_addend(&at->gemm, &at->operands, open_threads);
    for (int i = 0; i < at->step_count; i++) {
        const struct step *step = &at->steps[i];
        if (onednn.dnnl_primitive_execute(step->primitive, onednn.stream, step->count, step->arguments) !=
            dnnl_success)
            return -1;
    }
    return onednn.dnnl_stream_wait(onednn.stream) == dnnl_success ? 0 : -1;
}

static void end(void *state) {
    struct state *at = state;
    for (int i = 0; i < at->step_count; i++) onednn.dnnl_primitive_destroy(at->steps[i].primitive);
    for (int i = 0; i < at->memory_count; i++) onednn.dnnl_memory_destroy(at->memories[i]);
    free(at);
}

// Memory of this layout at `data`; with `data` NULL the library allocates it. NULL: out of memory.
static dnnl_memory_t add_memory(struct state *at, onednn_layout_pointer layout, void *data) {
    dnnl_memory_t memory;
    void *handle = data != NULL ? data : DNNL_MEMORY_ALLOCATE;
    if (at->memory_count == MOST_MEMORIES ||
        onednn.dnnl_memory_create(&memory, layout, onednn.engine, handle) != dnnl_success)
        return NULL;
    return at->memories[at->memory_count++] = memory;
}

static bool add_step(struct state *at, dnnl_primitive_desc_t description, const dnnl_exec_arg_t arguments[],
                     int count) {
    struct step *step = &at->steps[at->step_count];
    if (at->step_count == MOST_STEPS) return false;
    if (onednn.dnnl_primitive_create(&step->primitive, description) != dnnl_success) return false;
    for (int i = 0; i < count; i++) step->arguments[i] = arguments[i];
    step->count = count;
    at->step_count++;
    return true;
}

static bool add_reorder(struct state *at, onednn_layout_pointer from_layout, dnnl_memory_t from,
                        onednn_layout_pointer to_layout, dnnl_memory_t to) {
    dnnl_primitive_desc_t description;
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (onednn.dnnl_reorder_primitive_desc_create(&description, from_layout, onednn.engine, to_layout,
                                                  onednn.engine, NULL) != dnnl_success)
        return false;
    bool added = add_step(at, description, arguments, 2);
    at->reorder_count++;
    onednn.dnnl_primitive_desc_destroy(description);
    return added;
}

// An operand of a primitive: the argument, the query for the layout that the primitive requires, and the
// layout and the memory of the op's tensor.
struct role {
    int argument;
    dnnl_query_t query;
    int index; // of the query
    const struct onednn_layout *layout;
    void *data;
    bool is_result;
};

static onednn_layout_pointer required_layout(dnnl_primitive_desc_t description, const struct role *role) {
    return onednn.dnnl_primitive_desc_query_md(description, role->query, role->index);
}

// An operand for the primitive: its own memory, or other memory, which a step fills beforehand unless it is a
// result. NULL: out of memory.
static dnnl_memory_t add_operand(struct state *at, dnnl_primitive_desc_t description, const struct role *role,
                                 dnnl_memory_t own) {
    onednn_layout_pointer layout = onednn_layout_of(role->layout);
    onednn_layout_pointer wanted = required_layout(description, role);
    if (own == NULL || onednn.dnnl_memory_desc_equal(layout, wanted)) return own;
    dnnl_memory_t other = add_memory(at, wanted, NULL);
    if (other == NULL || role->is_result) return other;
    return add_reorder(at, layout, own, wanted, other) ? other : NULL;
}

// The steps of a primitive, and of the reorders before and after it.
static bool add_all(struct state *at, dnnl_primitive_desc_t description, const struct role roles[],
                    int count) {
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS] = {{0}};
    dnnl_memory_t own[MOST_ARGUMENTS];
    for (int i = 0; i < count; i++) {
        own[i] = add_memory(at, onednn_layout_of(roles[i].layout), roles[i].data);
        arguments[i] = (dnnl_exec_arg_t){roles[i].argument, add_operand(at, description, &roles[i], own[i])};
        if (arguments[i].memory == NULL) return false;
    }
    if (!add_step(at, description, arguments, count)) return false;
    for (int i = 0; i < count; i++) {
        if (roles[i].is_result && arguments[i].memory != own[i] &&
            !add_reorder(at, required_layout(description, &roles[i]), arguments[i].memory,
                         onednn_layout_of(roles[i].layout), own[i]))
            return false;
    }
    return true;
}

// The library's name of the kernel that it chose.
static const char *kernel_of(dnnl_primitive_desc_t description) {
    const char *kernel = NULL;
    dnnl_status_t status =
        onednn.dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&kernel);
    return status == dnnl_success && kernel != NULL ? kernel : "unknown";
}

// Adds it to the kernels of the op.
static void take_kernel(dnnl_primitive_desc_t description, struct prepared_op *prepared) {
    size_t length = strlen(prepared->kernel);
    snprintf(prepared->kernel + length, sizeof prepared->kernel - length, "%s%s", length > 0 ? "+" : "",
             kernel_of(description));
    for (char *space = prepared->kernel; (space = strchr(space, ' ')) != NULL;) *space = '_';
}

// ---- layouts --------------------------------------------------------------------------------------------

static dnnl_data_type_t type_of(const struct tensor *tensor) {
    return tensor->type == BFLOAT16 ? dnnl_bf16 : dnnl_f32;
}

// Writes the sizes and strides of the spatial dimensions of a tensor with a distance of `step` elements
// between neighbours.
static void write_spatial(const int64_t extents[], int spatial, int64_t step, int64_t sizes[],
                          int64_t steps[]) {
    for (int i = spatial - 1; i >= 0; i--) {
        sizes[i] = extents[i];
        steps[i] = step;
        step *= extents[i];
    }
}

static int64_t elements_of_space(const int64_t extents[MOST_SPATIAL]) {
    return extents[0] * extents[1] * extents[2];
}

// The layout of an input or a result.
static dnnl_status_t image_layout(const struct convolution *at, int64_t channels, const int64_t extents[],
                                  const struct tensor *tensor, bool is_free, struct onednn_layout *to) {
    int64_t sizes[MOST_DIMENSIONS] = {at->batch, channels}, elements = elements_of_space(extents);
    bool last = at->input_channels_last;
    int64_t steps[MOST_DIMENSIONS] = {channels * elements, last ? 1 : elements};
    write_spatial(extents, at->spatial, last ? channels : 1, sizes + 2, steps + 2);
    return onednn_layout_make(to, at->spatial + 2, sizes, steps, type_of(tensor), is_free);
}

// The layout of the filters; several groups are a dimension of their own.
static dnnl_status_t filter_layout(const struct convolution *at, const struct tensor *tensor, bool is_free,
                                   struct onednn_layout *to) {
    int64_t in = at->in_channels / at->groups, out = at->out_channels / at->groups;
    int64_t elements = elements_of_space(at->filter), inner_count = at->transposed ? out : in;
    bool last = at->filter_channels_last;
    int64_t inner = last ? 1 : elements, outer = inner_count * elements;
    int64_t sizes[MOST_DIMENSIONS] = {at->groups, out, in};
    int64_t steps[MOST_DIMENSIONS] = {outer * (at->transposed ? in : out), at->transposed ? inner : outer,
                                      at->transposed ? outer : inner};
    write_spatial(at->filter, at->spatial, last ? inner_count : 1, sizes + 3, steps + 3);
    int skip = at->groups == 1 ? 1 : 0;
    return onednn_layout_make(to, at->spatial + 3 - skip, sizes + skip, steps + skip, type_of(tensor),
                              is_free);
}

enum { INPUT, FILTER, BIAS, OUTPUT, OPERANDS };

// The layouts of an op: its own, and those requested of the library.
struct layouts {
    struct onednn_layout own[OPERANDS], requested[OPERANDS];
    bool has_bias;
};

static dnnl_status_t convolution_layouts(const struct convolution *at, const struct operands *operands,
                                         struct layouts *to) {
    dnnl_status_t status = dnnl_success;
    int64_t one = 1;
    to->has_bias = at->has_bias;
    for (int is_free = 0; is_free < 2 && status == dnnl_success; is_free++) {
        struct onednn_layout *layouts = is_free ? to->requested : to->own;
        bool is_image_free = is_free && !at->input_channels_last;
        status = image_layout(at, at->in_channels, at->input, &operands->a, is_image_free, &layouts[INPUT]);
        if (status == dnnl_success) status = filter_layout(at, &operands->b, is_free, &layouts[FILTER]);
        if (status == dnnl_success && at->has_bias)
            status =
                onednn_layout_make(&layouts[BIAS], 1, &at->out_channels, &one, type_of(&operands->c), false);
        if (status == dnnl_success)
            status = image_layout(at, at->out_channels, at->output, &operands->out, is_image_free,
                                  &layouts[OUTPUT]);
    }
    return status;
}

// is_free: the library may choose the layouts of A and B.
static dnnl_status_t gemm_layouts(const struct gemm *gemm, const struct operands *operands, bool is_free,
                                  struct layouts *to) {
    int64_t sizes[OPERANDS][3] = {[INPUT] = {gemm->stride_a > 0 ? gemm->batch : 1, gemm->m, gemm->k},
                                  [FILTER] = {gemm->stride_b > 0 ? gemm->batch : 1, gemm->k, gemm->n},
                                  [BIAS] = {1, 1, gemm->n},
                                  [OUTPUT] = {gemm->batch, gemm->m, gemm->n}};
    int64_t lda = gemm->lda, ldb = gemm->ldb, n = gemm->n;
    int64_t steps[OPERANDS][3] = {
        [INPUT] = {gemm->stride_a > 0 ? gemm->stride_a : 1, gemm->trans_a ? 1 : lda, gemm->trans_a ? lda : 1},
        [FILTER] = {gemm->stride_b > 0 ? gemm->stride_b : 1, gemm->trans_b ? 1 : ldb,
                    gemm->trans_b ? ldb : 1},
        [BIAS] = {n, n, 1},
        [OUTPUT] = {gemm->m * n, n, 1}};
    int skip = gemm->batch == 1 ? 1 : 0;
    dnnl_status_t status = dnnl_success;
    to->has_bias = gemm->addend == ADD_ROW && gemm->alpha == 1 && gemm->beta == 1;
    for (int i = 0; i < OPERANDS && status == dnnl_success; i++) {
        status = onednn_layout_make(&to->own[i], 3 - skip, sizes[i] + skip, steps[i] + skip,
                                    type_of(&operands->a), false);
        if (status == dnnl_success)
            status = onednn_layout_make(&to->requested[i], 3 - skip, sizes[i] + skip, steps[i] + skip,
                                        type_of(&operands->a), is_free && (i == INPUT || i == FILTER));
    }
    return status;
}

static void end_layouts(struct layouts *layouts) {
    for (int i = 0; i < OPERANDS; i++) {
        onednn_layout_end(&layouts->own[i]);
        onednn_layout_end(&layouts->requested[i]);
    }
}

static struct onednn_layouts pointers(const struct layouts *of, const struct onednn_layout which[OPERANDS]) {
    return (struct onednn_layouts){&which[INPUT], &which[FILTER], of->has_bias ? &which[BIAS] : NULL,
                                   &which[OUTPUT]};
}

// ---- preparing ------------------------------------------------------------------------------------------

static dnnl_status_t describe_gemm(const struct gemm *gemm, struct state *at, bool is_free,
                                   struct layouts *layouts, dnnl_primitive_desc_t *to) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = gemm_layouts(gemm, &at->operands, is_free, layouts);
    at->gemm = *gemm;
    at->copies_addend = gemm->addend != ADD_NOTHING && gemm->beta != 0 && !layouts->has_bias;
    struct onednn_layouts requested = pointers(layouts, layouts->requested);
    if (status == dnnl_success)
        status = onednn_attributes(gemm->alpha, at->copies_addend ? gemm->beta : 0, &attributes);
    if (status == dnnl_success) status = onednn_matmul(&requested, attributes, to);
    if (attributes != NULL) onednn.dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t describe_convolution(const struct convolution *convolution,
                                          const struct operands *operands, struct layouts *layouts,
                                          dnnl_primitive_desc_t *to) {
    dnnl_status_t status = convolution_layouts(convolution, operands, layouts);
    struct onednn_layouts requested = pointers(layouts, layouts->requested);
    return status == dnnl_success ? onednn_convolution(&requested, convolution, to) : status;
}

// If the library has only its slow reference implementation for the layouts of a product, it may choose them.
static dnnl_status_t describe_product(const struct gemm *gemm, struct state *at, struct layouts *layouts,
                                      dnnl_primitive_desc_t *to) {
    dnnl_status_t status = describe_gemm(gemm, at, false, layouts, to);
    if (status != dnnl_success || strncmp(kernel_of(*to), "ref", 3) != 0) return status;
    onednn.dnnl_primitive_desc_destroy(*to);
    *to = NULL;
    end_layouts(layouts);
    *layouts = (struct layouts){.has_bias = false};
    return describe_gemm(gemm, at, true, layouts, to);
}

// Adds the steps of a described primitive, and ends its description and layouts. `status` is that of the
// description.
static dnnl_status_t add_described(struct state *at, dnnl_status_t status, dnnl_primitive_desc_t description,
                                   struct layouts *layouts, const struct role roles[], int count,
                                   struct prepared_op *prepared) {
    if (status == dnnl_success && !add_all(at, description, roles, count)) status = dnnl_out_of_memory;
    if (status == dnnl_success) take_kernel(description, prepared);
    if (description != NULL) onednn.dnnl_primitive_desc_destroy(description);
    end_layouts(layouts);
    return status;
}

// A product, or a convolution.
static dnnl_status_t add_forward(struct state *at, const struct gemm *gemm,
                                 const struct convolution *convolution, const struct operands *operands,
                                 struct prepared_op *prepared) {
    struct layouts layouts = {.has_bias = false};
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = gemm != NULL ? describe_product(gemm, at, &layouts, &description)
                                        : describe_convolution(convolution, operands, &layouts, &description);
    const struct role roles[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, 0, &layouts.own[INPUT], operands->a.data, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0, &layouts.own[FILTER], operands->b.data, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, 0, &layouts.own[OUTPUT], operands->out.data, true},
        {DNNL_ARG_BIAS, dnnl_query_weights_md, 1, &layouts.own[BIAS], operands->c.data, false}};
    return add_described(at, status, description, &layouts, roles, layouts.has_bias ? 4 : 3, prepared);
}

// ---- gradients ------------------------------------------------------------------------------------------

// The gradient of the filters, with that of the bias in the same primitive, as in PyTorch.
static dnnl_status_t add_filter_gradient(struct state *at, const struct convolution *backward,
                                         const struct gradients *gradients, struct prepared_op *prepared) {
    const struct operands *from = &at->operands;
    struct convolution convolution = *backward;
    convolution.has_bias = has_gradient(backward, OF_BIAS);
    const struct operands operands = {from->c, gradients->of[OF_FILTER], gradients->of[OF_BIAS], from->a};
    struct layouts layouts = {.has_bias = false};
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = convolution_layouts(&convolution, &operands, &layouts);
    struct onednn_layouts requested = pointers(&layouts, layouts.requested);
    if (status == dnnl_success) status = onednn_filter_gradient(&requested, &convolution, &description);
    const struct role roles[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, 0, &layouts.own[INPUT], operands.a.data, false},
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0, &layouts.own[OUTPUT], operands.out.data, false},
        {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, 0, &layouts.own[FILTER], operands.b.data, true},
        {DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md, 1, &layouts.own[BIAS], operands.c.data, true}};
    return add_described(at, status, description, &layouts, roles, layouts.has_bias ? 4 : 3, prepared);
}

// The gradient of the bias alone: a sum over all dimensions but the channels.
static dnnl_status_t add_bias_gradient(struct state *at, const struct convolution *of,
                                       const struct gradients *gradients, struct prepared_op *prepared) {
    const struct tensor *from = &at->operands.a, *sums = &gradients->of[OF_BIAS];
    const int64_t steps[MOST_DIMENSIONS] = {of->out_channels, 1, 1, 1, 1};
    const int64_t sizes[MOST_DIMENSIONS] = {1, of->out_channels, 1, 1, 1};
    struct layouts layouts = {.has_bias = false};
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = image_layout(of, of->out_channels, of->output, from, false, &layouts.own[INPUT]);
    if (status == dnnl_success)
        status =
            onednn_layout_make(&layouts.own[OUTPUT], of->spatial + 2, sizes, steps, type_of(sums), false);
    if (status == dnnl_success) status = onednn_sum(&layouts.own[INPUT], &layouts.own[OUTPUT], &description);
    const struct role roles[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, 0, &layouts.own[INPUT], from->data, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, 0, &layouts.own[OUTPUT], sums->data, true}};
    return add_described(at, status, description, &layouts, roles, 2, prepared);
}

static dnnl_status_t add_gradients(struct state *at, const struct convolution *of,
                                   struct prepared_op *prepared) {
    const struct gradients gradients = gradients_in(&at->operands.out, of);
    const struct convolution other = convolution_of_gradient(of);
    const struct operands of_input = {
        .a = at->operands.a, .b = at->operands.b, .out = gradients.of[OF_INPUT]};
    dnnl_status_t status = dnnl_success;
    if (has_gradient(of, OF_INPUT)) status = add_forward(at, NULL, &other, &of_input, prepared);
    if (status != dnnl_success) return status;
    if (has_gradient(of, OF_FILTER)) return add_filter_gradient(at, of, &gradients, prepared);
    return has_gradient(of, OF_BIAS) ? add_bias_gradient(at, of, &gradients, prepared) : dnnl_success;
}

static dnnl_status_t add_op(struct state *at, const struct op *op, struct prepared_op *prepared) {
    switch (op->kind) {
    case OP_GEMM: return add_forward(at, &op->gemm, NULL, &at->operands, prepared);
    case OP_CONVOLUTION: return add_forward(at, NULL, &op->convolution, &at->operands, prepared);
    default: return add_gradients(at, &op->convolution, prepared);
    }
}

static int prepare(const struct op *op, const struct operands *operands, struct prepared_op *prepared,
                   char reason[REASON_SIZE]) {
    struct state *at = calloc(1, sizeof *at);
    if (at == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    at->operands = *operands;
    *prepared = (struct prepared_op){.run = run, .end = end, .state = at};
    dnnl_status_t status = add_op(at, op, prepared);
    if (status == dnnl_success) {
        if (at->reorder_count > 0)
            snprintf(prepared->note, sizeof prepared->note, "reorders its operands in each call");
        return 0;
    }
    snprintf(reason, REASON_SIZE, "oneDNN does not compute this (status %d)", (int)status);
    end(at);
    return -1;
}

const struct library library_onednn = {
    .name = "onednn",
    .kinds = 1 << OP_GEMM | 1 << OP_CONVOLUTION | 1 << OP_CONVOLUTION_BACKWARD,
    .types = 1 << FLOAT32 | 1 << BFLOAT16,
    .open = open_onednn,
    .describe = describe,
    .is_fast = is_fast,
    .prepare = prepare,
};
