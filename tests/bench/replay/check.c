// The check accepts a right result and rejects any other: one wrong element, row or channel, or an unwritten
// part. The loops here that compute results share no code with the check.
#include "../../unit_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/random.h"
#include "replay/check.h"

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

static double product(const struct gemm *g, struct operands *o, int64_t b, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < g->k; k++) {
        int64_t a = b * g->stride_a + (g->trans_a ? k * g->lda + i : i * g->lda + k);
        int64_t other = b * g->stride_b + (g->trans_b ? j * g->ldb + k : k * g->ldb + j);
        sum += at(&o->a, a) * at(&o->b, other);
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

// Adds every input times every tap to the result; the check computes it in another order.
static void convolve(const struct convolution *c, struct operands *o) {
    double *out = calloc(o->out.count, sizeof *out);
    int64_t in_each = c->in_channels / c->groups, out_each = c->out_channels / c->groups;
    assert_non_null(out);
    for (int64_t n = 0; n < c->batch; n++) {
        for (int64_t to = 0; to < c->out_channels; to++) {
            for (int64_t y = 0; y < c->output[0] * c->output[1] && c->has_bias; y++)
                out[index_of(c->input_channels_last, c->out_channels, c->output, n, to, y / c->output[1],
                             y % c->output[1])] = at(&o->c, to);
            for (int64_t k = 0; k < in_each * c->input[0] * c->input[1] * c->filter[0] * c->filter[1]; k++) {
                int64_t rest = k, tx = rest % c->filter[1], ty = (rest /= c->filter[1]) % c->filter[0];
                int64_t x = (rest /= c->filter[0]) % c->input[1], y = (rest /= c->input[1]) % c->input[0];
                int64_t from = rest / c->input[0], group = to / out_each, py, px;
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
                int64_t channel = group * in_each + from;
                int64_t filter =
                    c->transposed ? index_of(c->filter_channels_last, out_each, c->filter, channel,
                                             to % out_each, ty, tx)
                                  : index_of(c->filter_channels_last, in_each, c->filter, to, from, ty, tx);
                double value =
                    at(&o->a, index_of(c->input_channels_last, c->in_channels, c->input, n, channel, y, x));
                out[index_of(c->input_channels_last, c->out_channels, c->output, n, to, py, px)] +=
                    value * at(&o->b, filter);
            }
        }
    }
    for (size_t i = 0; i < o->out.count; i++) set(&o->out, i, out[i]);
    free(out);
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
    "convolution dtype=float32 spatial=2 batch=2 in_channels=4 out_channels=6 groups=2 input=9,7 filter=3,2 "
    "stride=2,1 padding=1,0 dilation=1,2 output_padding=0,0 transposed=0 bias=1 input_channels_last=0 "
    "filter_channels_last=0",
    "convolution dtype=bfloat16 spatial=2 batch=3 in_channels=5 out_channels=4 groups=1 input=6,8 "
    "filter=3,3 stride=1,1 padding=1,1 dilation=1,1 output_padding=0,0 transposed=0 bias=0 "
    "input_channels_last=1 filter_channels_last=1",
    "convolution dtype=float32 spatial=2 batch=2 in_channels=4 out_channels=6 groups=2 input=5,4 filter=3,2 "
    "stride=2,3 padding=1,0 dilation=2,1 output_padding=1,2 transposed=1 bias=1 input_channels_last=0 "
    "filter_channels_last=1",
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
    else
        convolve(&op->convolution, operands);
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
    for (int trial = 0; trial < 20 && op->type != BFLOAT16 && !is_float8(op->type); trial++) {
        size_t place = random_64(&place_seed) % operands->out.count;
        double right = tensor_value(&operands->out, place);
        set(&operands->out, place, right + 1);
        if (passes(op, operands)) fail_msg("line %d, element %zu", number, place);
        set(&operands->out, place, right);
    }
}

TEST(one_wrong_element_is_found) {
    with_all(spoil_elements);
}

static void forget_elements(int number, const struct op *op, struct operands *operands) {
    struct tensor *out = &operands->out;
    size_t width = data_type_size(out->type);
    memset((char *)out->data + (out->count - 1) * width, 0xFF, width);
    if (passes(op, operands)) fail_msg("line %d, the last element", number);
    tensor_poison(out, 1);
    if (passes(op, operands)) fail_msg("line %d, all elements", number);
}

TEST(what_was_not_written_is_found) {
    with_all(forget_elements);
}

static void clear(int number, const struct op *op, struct operands *operands) {
    memset(operands->out.data, 0, operands->out.count * data_type_size(op->type));
    if (passes(op, operands)) fail_msg("line %d, zeros", number);
}

TEST(zeros_are_found) {
    with_all(clear);
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
