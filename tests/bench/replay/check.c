// The check accepts a right result and rejects any other: one wrong element, row or channel, or an unwritten
// part. The loops here that compute results share no code with the check.
#include "../../unit_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/random.h"
#include "replay/check.h"
#include "replay/scales.h"

static uint64_t place_seed = 11;

// The code of a float8 that is nearest to a number, the even one of two.
static uint8_t float8_code(enum data_type type, double value) {
    unsigned best = 0;
    double least = INFINITY;
    for (unsigned code = 0; code < 0x7C; code++) {
        uint8_t byte = (uint8_t)code;
        struct tensor one = {.type = type, .count = 1, .data = &byte};
        double distance = fabs(tensor_value(&one, 0) - fabs(value));
        if (distance < least || (distance <= least && code % 2 == 0)) best = code;
        least = fmin(least, distance);
    }
    return (uint8_t)(value < 0 ? best | 0x80 : best);
}

static void set(struct tensor *tensor, size_t index, double value) {
    if (is_float8(tensor->type))
        ((uint8_t *)tensor->data)[index] = float8_code(tensor->type, value);
    else if (tensor->type == FLOAT64)
        ((double *)tensor->data)[index] = value;
    else if (tensor->type == FLOAT32)
        ((float *)tensor->data)[index] = (float)value;
    else {
        float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        bits += 0x7FFF + ((bits >> 16) & 1);
        ((uint16_t *)tensor->data)[index] = (uint16_t)(bits >> 16);
    }
}

static double at(const struct tensor *tensor, int64_t index) {
    return tensor_value(tensor, (size_t)index);
}

// ---- by plain loops -------------------------------------------------------------------------------------

static size_t scales_moved; // by so many rows and elements of K from their places

static double product(const struct gemm *g, struct operands *o, int64_t b, int64_t i, int64_t j) {
    double sum = 0;
    const struct scales of_a = scales_of_a(g, o->a.type), of_b = scales_of_b(g, o->b.type);
    for (int64_t k = 0; k < g->k; k++) {
        int64_t a = b * g->stride_a + (g->trans_a ? k * g->lda + i : i * g->lda + k);
        int64_t other = b * g->stride_b + (g->trans_b ? j * g->ldb + k : k * g->ldb + j);
        double term = at(&o->a, a) * at(&o->b, other);
        if (of_a.are_there) term *= scale_at(&of_a, (size_t)i + scales_moved, (size_t)k + scales_moved);
        if (of_b.are_there) term *= scale_at(&of_b, (size_t)j + scales_moved, (size_t)k + scales_moved);
        sum += term;
    }
    sum *= g->alpha;
    if (g->addend == ADD_ROW) sum += g->beta * at(&o->c, j);
    if (g->addend == ADD_MATRIX) sum += g->beta * at(&o->c, (b * g->m + i) * g->n + j);
    return sum;
}

static void multiply(const struct gemm *g, struct operands *o) {
    for (int64_t b = 0; b < g->batch; b++) {
        for (int64_t i = 0; i < g->m; i++) {
            for (int64_t j = 0; j < g->n; j++)
                set(&o->out, (size_t)((b * g->m + i) * g->n + j), product(g, o, b, i, j));
        }
    }
}

// For tensors with two dimensions in space.
static int64_t index_of(bool last, int64_t inner, const int64_t size[], int64_t o, int64_t i, int64_t y,
                        int64_t x) {
    if (last) return ((o * size[0] + y) * size[1] + x) * inner + i;
    return ((o * inner + i) * size[0] + y) * size[1] + x;
}

// The elements of input, filter and result that are multiplied with each other.
struct term {
    int64_t input, filter, output;
};

// Adds one term, to the sums of a result or of gradients.
typedef void (*add)(const struct operands *o, const struct term *term, double *sums[GRADIENTS]);

// Calls `add` for every input, tap and output channel that meet; the check computes in another order.
static void each_term(const struct convolution *c, const struct operands *o, add add_term,
                      double *sums[GRADIENTS]) {
    int64_t in_each = c->in_channels / c->groups, out_each = c->out_channels / c->groups;
    int64_t count = in_each * c->input[0] * c->input[1] * c->filter[0] * c->filter[1];
    for (int64_t i = 0; i < c->batch * c->out_channels * count; i++) {
        int64_t n = i / count / c->out_channels, to = i / count % c->out_channels;
        int64_t rest = i % count, tx = rest % c->filter[1], ty = (rest /= c->filter[1]) % c->filter[0];
        int64_t x = (rest /= c->filter[0]) % c->input[1], y = (rest /= c->input[1]) % c->input[0];
        int64_t from = rest / c->input[0], channel = to / out_each * in_each + from, py, px;
        if (c->transposed) {
            py = y * c->stride[0] - c->padding[0] + ty * c->dilation[0];
            px = x * c->stride[1] - c->padding[1] + tx * c->dilation[1];
        } else {
            py = y + c->padding[0] - ty * c->dilation[0];
            px = x + c->padding[1] - tx * c->dilation[1];
            if (py % c->stride[0] != 0 || px % c->stride[1] != 0) continue;
            py /= c->stride[0];
            px /= c->stride[1];
        }
        if (py < 0 || px < 0 || py >= c->output[0] || px >= c->output[1]) continue;
        struct term term = {
            .input = index_of(c->input_channels_last, c->in_channels, c->input, n, channel, y, x),
            .filter = c->transposed ? index_of(c->filter_channels_last, out_each, c->filter, channel,
                                               to % out_each, ty, tx)
                                    : index_of(c->filter_channels_last, in_each, c->filter, to, from, ty, tx),
            .output = index_of(c->input_channels_last, c->out_channels, c->output, n, to, py, px)};
        add_term(o, &term, sums);
    }
}

static void add_product(const struct operands *o, const struct term *term, double *sums[GRADIENTS]) {
    sums[0][term->output] += at(&o->a, term->input) * at(&o->b, term->filter);
}

// Calls `add` for each channel of the result at each position.
static void each_output(const struct convolution *c,
                        void (*add_one)(const struct operands *o, int64_t index, int64_t channel,
                                        double sums[]),
                        const struct operands *o, double sums[]) {
    int64_t positions = c->output[0] * c->output[1];
    for (int64_t i = 0; i < c->batch * c->out_channels * positions; i++) {
        int64_t channel = i / positions % c->out_channels, n = i / positions / c->out_channels;
        int64_t y = i % positions / c->output[1], x = i % c->output[1];
        int64_t index = index_of(c->input_channels_last, c->out_channels, c->output, n, channel, y, x);
        add_one(o, index, channel, sums);
    }
}

static void add_bias(const struct operands *o, int64_t index, int64_t channel, double sums[]) {
    sums[index] = at(&o->c, channel);
}

static void convolve(const struct convolution *c, struct operands *o) {
    double *out = calloc(o->out.count, sizeof *out);
    assert_non_null(out);
    if (c->has_bias) each_output(c, add_bias, o, out);
    each_term(c, o, add_product, (double *[GRADIENTS]){out});
    for (size_t i = 0; i < o->out.count; i++) set(&o->out, i, out[i]);
    free(out);
}

// Here A is the gradient of the result, and C the input. An operand of no gradient is not there.
static void add_gradients(const struct operands *o, const struct term *term, double *sums[GRADIENTS]) {
    double from = at(&o->a, term->output);
    if (o->b.count > 0) sums[OF_INPUT][term->input] += from * at(&o->b, term->filter);
    if (o->c.count > 0) sums[OF_FILTER][term->filter] += from * at(&o->c, term->input);
}

static void add_channel(const struct operands *o, int64_t index, int64_t channel, double sums[]) {
    sums[channel] += at(&o->a, index);
}

static void differentiate(const struct convolution *c, struct operands *o) {
    struct gradients gradients = gradients_in(&o->out, c);
    double *sums[GRADIENTS];
    for (int i = 0; i < GRADIENTS; i++) {
        sums[i] = calloc(gradients.of[i].count + 1, sizeof *sums[i]);
        assert_non_null(sums[i]);
    }
    each_term(c, o, add_gradients, sums);
    if (has_gradient(c, OF_BIAS)) each_output(c, add_channel, o, sums[OF_BIAS]);
    for (int i = 0; i < GRADIENTS; i++) {
        for (size_t k = 0; k < gradients.of[i].count; k++) set(&gradients.of[i], k, sums[i][k]);
        free(sums[i]);
    }
}

// ---- the tested ops -------------------------------------------------------------------------------------

static const char *const lines[] = {
    "gemm dtype=float32 batch=1 m=37 n=29 k=53 trans_a=0 trans_b=0 lda=53 ldb=29 stride_a=0 stride_b=0 "
    "addend=none",
    "gemm dtype=float64 batch=3 m=5 n=1 k=7 trans_a=1 trans_b=1 lda=9 ldb=8 stride_a=100 stride_b=0 "
    "addend=matrix alpha=0.3 beta=-1.7",
    "gemm dtype=bfloat16 batch=2 m=40 n=30 k=64 trans_a=0 trans_b=1 lda=64 ldb=64 stride_a=2560 "
    "stride_b=1920 addend=row alpha=1 beta=1",
    "gemm dtype=float32 batch=1 m=1 n=300 k=1 trans_a=1 trans_b=0 lda=1 ldb=300 stride_a=0 stride_b=0 "
    "addend=row alpha=2 beta=0.5",
    "gemm dtype=float8_e4m3fn batch=1 m=48 n=64 k=2000 trans_a=0 trans_b=1 lda=2000 ldb=2000 stride_a=0 "
    "stride_b=0 addend=row scaling=tensor out_dtype=float8_e4m3fn fast_accumulation=1",
    "gemm dtype=float8_e5m2 batch=1 m=40 n=32 k=60000 trans_a=0 trans_b=1 lda=60000 ldb=60000 stride_a=0 "
    "stride_b=0 addend=none scaling=tensor out_dtype=float8_e5m2 fast_accumulation=0",
    "gemm dtype=float8_e4m3fn batch=1 m=48 n=64 k=200 trans_a=0 trans_b=1 lda=200 ldb=200 stride_a=0 "
    "stride_b=0 addend=row scaling=row out_dtype=float32 fast_accumulation=1",
    "gemm dtype=float8_e4m3fn batch=1 m=150 n=140 k=400 trans_a=0 trans_b=1 lda=400 ldb=400 stride_a=0 "
    "stride_b=0 addend=none scaling=block block_a=1x128 block_b=128x128 out_dtype=bfloat16 "
    "fast_accumulation=0",
    "gemm dtype=float4_e2m1fn_x2 batch=2 m=40 n=30 k=96 trans_a=0 trans_b=1 lda=98 ldb=96 stride_a=4000 "
    "stride_b=2880 addend=none scaling=block block_a=1x16 block_b=1x16 out_dtype=float32 "
    "fast_accumulation=0",
    "convolution dtype=float32 spatial=2 batch=2 in_channels=4 out_channels=6 groups=2 input=9,7 filter=3,2 "
    "stride=2,1 padding=1,0 dilation=1,2 output_padding=0,0 transposed=0 bias=1 input_channels_last=0 "
    "filter_channels_last=0",
    "convolution dtype=bfloat16 spatial=2 batch=3 in_channels=5 out_channels=4 groups=1 input=6,8 "
    "filter=3,3 stride=1,1 padding=1,1 dilation=1,1 output_padding=0,0 transposed=0 bias=0 "
    "input_channels_last=1 filter_channels_last=1",
    "convolution dtype=float32 spatial=2 batch=2 in_channels=4 out_channels=6 groups=2 input=5,4 filter=3,2 "
    "stride=2,3 padding=1,0 dilation=2,1 output_padding=1,2 transposed=1 bias=1 input_channels_last=0 "
    "filter_channels_last=1",
    "convolution_backward dtype=float32 spatial=2 batch=2 in_channels=4 out_channels=6 groups=2 input=9,7 "
    "filter=3,2 stride=2,1 padding=1,0 dilation=1,2 output_padding=0,0 transposed=0 "
    "gradients=input,filter,bias input_channels_last=0 filter_channels_last=1",
    "convolution_backward dtype=bfloat16 spatial=2 batch=3 in_channels=5 out_channels=4 groups=1 input=6,8 "
    "filter=3,3 stride=1,1 padding=1,1 dilation=1,1 output_padding=0,0 transposed=0 gradients=filter,bias "
    "input_channels_last=1 filter_channels_last=1",
    "convolution_backward dtype=float32 spatial=2 batch=2 in_channels=4 out_channels=6 groups=2 input=5,4 "
    "filter=3,2 stride=2,3 padding=1,0 dilation=2,1 output_padding=1,2 transposed=1 "
    "gradients=input,filter,bias input_channels_last=0 filter_channels_last=0",
    "convolution_backward dtype=float32 spatial=2 batch=4 in_channels=6 out_channels=6 groups=6 input=5,5 "
    "filter=3,3 stride=1,1 padding=1,1 dilation=1,1 output_padding=0,0 transposed=0 gradients=input "
    "input_channels_last=1 filter_channels_last=0",
};
enum { LINES = sizeof lines / sizeof lines[0] };

// The op of a line with its operands and the right result.
static void make(int number, struct op *op, struct operands *operands) {
    char line[512], reason[REASON_SIZE];
    snprintf(line, sizeof line, "%s", lines[number]);
    assert_int_equal(op_read(line, op, reason), 0);
    assert_int_equal(operands_make(op, op->type, 2, operands, reason), 0);
    if (op->kind == OP_GEMM)
        multiply(&op->gemm, operands);
    else if (op->kind == OP_CONVOLUTION)
        convolve(&op->convolution, operands);
    else
        differentiate(&op->convolution, operands);
}

// The parts of a result: the gradients, or all of it.
static struct gradients parts_of(const struct op *op, struct operands *operands) {
    if (op->kind == OP_CONVOLUTION_BACKWARD) return gradients_in(&operands->out, &op->convolution);
    return (struct gradients){{operands->out}};
}

// Calls attempt(number, op, operands) for every line, with the right result in place.
static void with_all(void (*attempt)(int number, const struct op *op, struct operands *operands)) {
    for (int i = 0; i < LINES; i++) {
        struct op op;
        struct operands operands;
        make(i, &op, &operands);
        attempt(i, &op, &operands);
    }
}

static bool passes(const struct op *op, const struct operands *operands) {
    char reason[REASON_SIZE] = "";
    return check_result(op, operands, 2, reason) == 0;
}

static void expect_right(int number, const struct op *op, struct operands *operands) {
    if (!passes(op, operands)) fail_msg("line %d is taken for wrong", number);
}

TEST(what_is_right_passes) {
    with_all(expect_right);
}

// One more in an element is less than a rounding of a large bfloat16 or float8, so these are left out.
static void spoil_elements(int number, const struct op *op, struct operands *operands) {
    struct gradients parts = parts_of(op, operands);
    enum data_type type = operands->out.type;
    for (int trial = 0; trial < 20 && type != BFLOAT16 && !is_float8(type); trial++) {
        struct tensor *part = &parts.of[trial % GRADIENTS];
        if (part->count == 0) continue;
        size_t place = random_64(&place_seed) % part->count;
        double right = tensor_value(part, place);
        set(part, place, right + 1);
        if (passes(op, operands)) fail_msg("line %d, part %d, element %zu", number, trial % GRADIENTS, place);
        set(part, place, right);
    }
}

TEST(one_wrong_element_is_found) {
    with_all(spoil_elements);
}

static void forget_elements(int number, const struct op *op, struct operands *operands) {
    struct gradients parts = parts_of(op, operands);
    size_t width = data_type_size(operands->out.type);
    for (int i = 0; i < GRADIENTS; i++) {
        if (parts.of[i].count == 0) continue;
        char *last = (char *)parts.of[i].data + (parts.of[i].count - 1) * width, right[8];
        memcpy(right, last, width);
        memset(last, 0xFF, width);
        if (passes(op, operands)) fail_msg("line %d, the last element of part %d", number, i);
        memcpy(last, right, width);
    }
    tensor_poison(&operands->out, 1);
    if (passes(op, operands)) fail_msg("line %d, all elements", number);
}

TEST(what_was_not_written_is_found) {
    with_all(forget_elements);
}

// A gradient of filters that is transposed: those of its input and output channels change places.
TEST(exchanged_channels_of_filters_are_found) {
    char line[] =
        "convolution_backward dtype=float32 spatial=2 batch=2 in_channels=6 out_channels=6 groups=1 "
        "input=5,5 filter=1,1 stride=1,1 padding=0,0 dilation=1,1 output_padding=0,0 transposed=0 "
        "gradients=filter input_channels_last=0 filter_channels_last=0";
    enum { CHANNELS = 6 };
    struct op op;
    struct operands operands;
    char reason[REASON_SIZE];
    assert_int_equal(op_read(line, &op, reason), 0);
    assert_int_equal(operands_make(&op, FLOAT32, 1, &operands, reason), 0);
    differentiate(&op.convolution, &operands);
    assert_true(passes(&op, &operands));
    float *out = operands.out.data, other[CHANNELS * CHANNELS];
    for (int i = 0; i < CHANNELS * CHANNELS; i++) other[i] = out[i % CHANNELS * CHANNELS + i / CHANNELS];
    memcpy(out, other, sizeof other);
    assert_false(passes(&op, &operands));
}

static void clear(int number, const struct op *op, struct operands *operands) {
    memset(operands->out.data, 0, tensor_bytes(&operands->out));
    if (passes(op, operands)) fail_msg("line %d, zeros", number);
}

TEST(zeros_are_found) {
    with_all(clear);
}

// A library that takes the scales of other rows and blocks has a wrong result.
TEST(scales_in_a_wrong_order_are_found) {
    int tried = 0;
    for (int i = 0; i < LINES; i++) {
        struct op op;
        struct operands operands;
        if (strstr(lines[i], "scaling=row") == NULL && strstr(lines[i], "scaling=block") == NULL) continue;
        scales_moved = 128; // a block of any kind
        make(i, &op, &operands);
        scales_moved = 0;
        if (passes(&op, &operands)) fail_msg("line %d, moved scales", i);
        tried++;
    }
    assert_int_equal(tried, 3);
}

// Scales differ along rows and along K, for a mistake in one of them to be found.
TEST(scales_differ_in_both_directions) {
    struct gemm gemm = {.scaling = SCALE_BLOCK, .block_a = BLOCK_1X16, .block_b = BLOCK_128X128};
    const struct scales all[] = {scales_of_a(&gemm, FLOAT4_E2M1FN_X2), scales_of_b(&gemm, FLOAT8_E4M3FN)};
    enum { BLOCKS_EACH = 64, ENOUGH = BLOCKS_EACH * BLOCKS_EACH / 3 };
    for (int i = 0; i < 2; i++) {
        int rows = 0, along = 0;
        for (size_t row = 0; row < BLOCKS_EACH; row++) {
            for (size_t k = 0; k < BLOCKS_EACH; k++) {
                int here = scale_exponent(&all[i], row, k);
                rows += here != scale_exponent(&all[i], row + 1, k);
                along += here != scale_exponent(&all[i], row, k + 1);
            }
        }
        assert_true(rows > ENOUGH && along > ENOUGH);
    }
    gemm.scaling = SCALE_TENSOR;
    assert_false(scales_of_a(&gemm, FLOAT8_E4M3FN).are_there);
}

// Each row gets the place of the one before it.
static void move_rows(int number, const struct op *op, struct operands *operands) {
    size_t row = (size_t)op->gemm.n * data_type_size(operands->out.type), rows = (size_t)op->gemm.m;
    if (op->kind != OP_GEMM || !is_float8(op->type)) return;
    memmove(operands->out.data, (char *)operands->out.data + row, (rows - 1) * row);
    if (passes(op, operands)) fail_msg("line %d, moved rows", number);
}

// float8 has the largest bounds: of single wrong rows, some are within them.
TEST(moved_rows_of_float8_are_found) {
    with_all(move_rows);
}

// The memory of operands grows from op to op, and threads fill it.
TEST(operands_are_filled_to_the_last_element) {
    static const int rows[] = {1, 150, 151, 700, 80, 2000};
    enum { PERIOD = 65521, COLUMNS = 977 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct op op = {.kind = OP_GEMM, .type = FLOAT32};
        struct operands operands;
        char reason[REASON_SIZE];
        op.gemm = (struct gemm){.batch = 1, .m = rows[i], .n = 50, .k = COLUMNS, .lda = COLUMNS, .ldb = 50};
        assert_int_equal(operands_make(&op, FLOAT32, 3, &operands, reason), 0);
        for (size_t at = 0; at < operands.a.count; at++) {
            double want = tensor_value(&operands.a, at % PERIOD), got = tensor_value(&operands.a, at);
            if (!(fabs(got - want) <= 0)) // or it is NaN
                fail_msg("%d rows, element %zu: %g, not %g", rows[i], at, got, want);
        }
        tensor_poison(&operands.out, 1); // as a call writes it
        assert_false(tensor_value(&operands.a, 0) == 0 && tensor_value(&operands.a, 1) == 0);
    }
}
