// Convolutions and matrix products by oneDNN. As PyTorch does with operands that were not packed before, each
// call reorders operands for which the library requires another layout, and copies the result back to the
// tensor's layout; channels_last tensors are not reordered.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn_api.h"
#include "replay/addend.h"
#include "replay/math_library.h"

enum { MOST_STEPS = 4, MOST_ARGUMENTS = 4, MOST_MEMORIES = 8, MOST_DIMENSIONS = MOST_SPATIAL + 3 };

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
    int step_count;
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
    onednn.dnnl_primitive_desc_destroy(description);
    return added;
}

// An operand for the primitive: its own memory, or other memory that a step fills beforehand.
static dnnl_memory_t add_operand(struct state *at, dnnl_primitive_desc_t description, dnnl_query_t query,
                                 const struct onednn_layout *layout, void *data) {
    onednn_layout_pointer own = onednn_layout_of(layout);
    onednn_layout_pointer wanted = onednn.dnnl_primitive_desc_query_md(description, query, 0);
    dnnl_memory_t memory = add_memory(at, own, data);
    if (memory == NULL || onednn.dnnl_memory_desc_equal(own, wanted)) return memory;
    dnnl_memory_t other = add_memory(at, wanted, NULL);
    return other != NULL && add_reorder(at, own, memory, wanted, other) ? other : NULL;
}

// The steps of a primitive. `layouts`: those of the operands; bias NULL: none.
static bool add_all(struct state *at, dnnl_primitive_desc_t description,
                    const struct onednn_layouts *layouts) {
    const struct operands *data = &at->operands;
    onednn_layout_pointer own = onednn_layout_of(layouts->output);
    onednn_layout_pointer wanted = onednn.dnnl_primitive_desc_query_md(description, dnnl_query_dst_md, 0);
    dnnl_memory_t out = add_memory(at, own, data->out.data), result = out;
    bool reorders = !onednn.dnnl_memory_desc_equal(own, wanted);
    if (reorders) result = add_memory(at, wanted, NULL);
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS] = {
        {DNNL_ARG_SRC, add_operand(at, description, dnnl_query_src_md, layouts->input, data->a.data)},
        {DNNL_ARG_WEIGHTS,
         add_operand(at, description, dnnl_query_weights_md, layouts->filter, data->b.data)},
        {DNNL_ARG_DST, result},
    };
    int count = 3;
    if (layouts->bias != NULL) {
        arguments[count].arg = DNNL_ARG_BIAS;
        arguments[count++].memory = add_memory(at, onednn_layout_of(layouts->bias), data->c.data);
    }
    for (int i = 0; i < count; i++) {
        if (arguments[i].memory == NULL) return false;
    }
    if (out == NULL || !add_step(at, description, arguments, count)) return false;
    return !reorders || add_reorder(at, wanted, result, own, out);
}

// The library's name of the kernel that it chose.
static const char *kernel_of(dnnl_primitive_desc_t description) {
    const char *kernel = NULL;
    dnnl_status_t status =
        onednn.dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&kernel);
    return status == dnnl_success && kernel != NULL ? kernel : "unknown";
}

static void take_kernel(dnnl_primitive_desc_t description, struct prepared_op *prepared) {
    snprintf(prepared->kernel, sizeof prepared->kernel, "%s", kernel_of(description));
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

static dnnl_status_t describe_convolution(const struct convolution *convolution, const struct state *at,
                                          struct layouts *layouts, dnnl_primitive_desc_t *to) {
    dnnl_status_t status = convolution_layouts(convolution, &at->operands, layouts);
    struct onednn_layouts requested = pointers(layouts, layouts->requested);
    return status == dnnl_success ? onednn_convolution(&requested, convolution, to) : status;
}

// If the library has only its slow reference implementation for the layouts of a product, it may choose them.
static dnnl_status_t describe_op(const struct op *op, struct state *at, struct layouts *layouts,
                                 dnnl_primitive_desc_t *to) {
    if (op->kind == OP_CONVOLUTION) return describe_convolution(&op->convolution, at, layouts, to);
    dnnl_status_t status = describe_gemm(&op->gemm, at, false, layouts, to);
    if (status != dnnl_success || strncmp(kernel_of(*to), "ref", 3) != 0) return status;
    onednn.dnnl_primitive_desc_destroy(*to);
    *to = NULL;
    end_layouts(layouts);
    *layouts = (struct layouts){.has_bias = false};
    return describe_gemm(&op->gemm, at, true, layouts, to);
}

static int prepare(const struct op *op, const struct operands *operands, struct prepared_op *prepared,
                   char reason[REASON_SIZE]) {
    struct state *at = calloc(1, sizeof *at);
    struct layouts layouts = {.has_bias = false};
    dnnl_primitive_desc_t description = NULL;
    if (at == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    at->operands = *operands;
    dnnl_status_t status = describe_op(op, at, &layouts, &description);
    struct onednn_layouts own = pointers(&layouts, layouts.own);
    bool is_ready = status == dnnl_success && add_all(at, description, &own);
    *prepared = (struct prepared_op){.run = run, .end = end, .state = at};
    if (is_ready) take_kernel(description, prepared);
    if (at->step_count > 1)
        snprintf(prepared->note, sizeof prepared->note, "reorders its operands in each call");
    if (description != NULL) onednn.dnnl_primitive_desc_destroy(description);
    end_layouts(&layouts);
    if (is_ready) return 0;
    snprintf(reason, REASON_SIZE, "oneDNN does not compute this (status %d)", (int)status);
    end(at);
    return -1;
}

const struct library library_onednn = {
    .name = "onednn",
    .kinds = 1 << OP_GEMM | 1 << OP_CONVOLUTION,
    .types = 1 << FLOAT32 | 1 << BFLOAT16,
    .open = open_onednn,
    .describe = describe,
    .is_fast = is_fast,
    .prepare = prepare,
};
