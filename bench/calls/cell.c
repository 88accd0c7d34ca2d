// A cell's data and its truth; see cell.h.
#include "cell.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/element.h"
#include "elements/kernels.h"

enum {
    PAGE = 4096,
    MANY_SHIFTS_UP_TO_BYTES = 256 << 10, // larger cells have fewer shifts: each is checked once per strategy
    FEW_SHIFTS = 3,
    WHO_RESIDUAL = 1000, // seeds beside those of the ranks
    WHO_GAMMA = 1001,
};

static const float EPSILON = 1e-5f;
static const float FP8_SCALE = 1.0f / 128; // a few elements saturate
static const float NVFP4_SCALE = 128.0f;

// ---- data ---------------------------------------------------------------------------------------

static uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

static int significand_bits(enum dtype dtype) {
    switch (dtype) {
    case DTYPE_BFLOAT16: return 8;
    case DTYPE_FLOAT16: return 11;
    default: return 24;
    }
}

// A value in (-1, 1) that `bits` bits of significand hold exactly, with one of four exponents.
static inline float value_at(uint32_t seed, size_t index, int bits) {
    uint32_t x = mix((uint32_t)index * 0x9e3779b9u + seed);
    uint32_t exponent_bits = (127 - (uint32_t)bits - (x >> 1 & 3)) << 23 | x << 31;
    float power;
    memcpy(&power, &exponent_bits, sizeof power);
    return (float)(x >> (32 - bits)) * power;
}

static uint32_t seed_of(uint32_t seed, int who) {
    return mix(seed * 0x9e3779b9u + (uint32_t)who + 1);
}

static void fill(enum dtype dtype, void *to, size_t count, uint32_t seed) {
    int bits = significand_bits(dtype);
    for (size_t i = 0; i < count; i++) {
        float value = value_at(seed, i, bits);
        uint32_t float_bits;
        memcpy(&float_bits, &value, sizeof float_bits);
        if (dtype == DTYPE_FLOAT32)
            ((float *)to)[i] = value;
        else if (dtype == DTYPE_BFLOAT16)
            ((uint16_t *)to)[i] = (uint16_t)(float_bits >> 16);
        else
            element_store(dtype, to, i, value);
    }
}

// Weights of a norm are near 1.
static void fill_gamma(enum dtype dtype, void *to, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) element_store(dtype, to, i, 1 + value_at(seed, i, 6) / 2);
}

// Elements that all calls of a cell read together, if one reads `elements`.
static size_t with_shifts(const struct cell *cell, size_t elements) {
    return elements + (cell->shifts - 1) * cell->stride;
}

// What this rank gets of the sum begins where its share of every input does.
static void sum_over_ranks(struct cell *cell) {
    int bits = significand_bits(cell->shape.dtype);
    size_t count = with_shifts(cell, cell->out_elements), first = cell->traffic.send_at[cell->rank];
    for (size_t i = 0; i < count; i++) cell->sum[i] = 0;
    for (int rank = 0; rank < cell->ranks; rank++) {
        uint32_t rank_seed = seed_of(cell->seed, rank);
        for (size_t i = 0; i < count; i++) cell->sum[i] += (double)value_at(rank_seed, first + i, bits);
    }
}

// ---- open and close -----------------------------------------------------------------------------

const char *shape_refusal(const struct shape *shape) {
    if (shape->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4 && shape->hidden_size % 16 != 0) {
        return "NVFP4 needs a hidden size that is a multiple of 16";
    }
    if (shape->fusion != FUSION_NONE && shape->op != OP_ALLREDUCE) return "only an allreduce has an epilogue";
    return NULL;
}

const char *shape_refusal_of_ranks(const struct shape *shape, int ranks) {
    size_t elements = shape->num_tokens * shape->hidden_size;
    if (!traffic_moves(shape->op, shape->splits, ranks)) return "the splits leave nothing for these ranks";
    if (elements % traffic_unit(shape->op, shape->splits, ranks) != 0) {
        return "the elements do not divide among the ranks";
    }
    return shape_refusal(shape);
}

static size_t whole_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *pages(size_t bytes) {
    return bytes == 0 ? NULL : aligned_alloc(PAGE, whole_pages(bytes));
}

// All of a cell but its arrays.
static void set_sizes(struct cell *cell, const struct shape *shape, int rank, int ranks, uint32_t seed) {
    size_t elements = shape->num_tokens * shape->hidden_size;
    *cell = (struct cell){.shape = *shape, .rank = rank, .ranks = ranks, .seed = seed};
    bool is_small = elements * dtype_sizes_bytes[shape->dtype] <= MANY_SHIFTS_UP_TO_BYTES;
    cell->shifts = is_small ? MAX_SHIFTS : FEW_SHIFTS;
    cell->input_elements = cell->out_elements = elements;
    cell->stride = shape->hidden_size;
    if (shape->op != OP_ALLREDUCE) {
        traffic_of(shape->op, shape->splits, elements, cell->rank, cell->ranks, 0, &cell->traffic);
        cell->input_elements = cell->traffic.send_elements;
        cell->out_elements = cell->traffic.receive_elements;
        cell->stride = CELL_STRIDE_ELEMENTS;
    }
    size_t bytes = cell->out_elements * dtype_sizes_bytes[shape->dtype];
    cell->out_bytes = bytes;
    cell->residual_out_bytes = shape->fusion == FUSION_NONE ? 0 : bytes;
    cell->block_scales_bytes = 0;
    if (shape->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_FP8) cell->out_bytes = elements;
    if (shape->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4) {
        cell->out_bytes = elements / 2;
        cell->block_scales_bytes = block_scales_bytes(shape->num_tokens, shape->hidden_size);
    }
}

static bool has_sum(const struct shape *shape) {
    return shape->op == OP_ALLREDUCE || shape->op == OP_REDUCESCATTER;
}

// Bytes of the arrays that results are not in.
struct read_bytes {
    size_t input, residual, gamma, sum;
};

static struct read_bytes read_bytes_of(const struct cell *cell) {
    const struct shape *shape = &cell->shape;
    size_t element_bytes = dtype_sizes_bytes[shape->dtype];
    bool fused = shape->fusion != FUSION_NONE;
    size_t input = with_shifts(cell, cell->input_elements) * element_bytes;
    return (struct read_bytes){
        .input = input,
        .residual = fused ? input : 0,
        .gamma = fused ? shape->hidden_size * element_bytes : 0,
        .sum = has_sum(shape) ? with_shifts(cell, cell->out_elements) * sizeof *cell->sum : 0};
}

size_t cell_bytes(const struct shape *shape, int rank, int ranks) {
    struct cell cell;
    set_sizes(&cell, shape, rank, ranks, 0);
    struct read_bytes read = read_bytes_of(&cell);
    return whole_pages(read.input) + whole_pages(read.residual) + whole_pages(read.gamma) +
           whole_pages(read.sum) + whole_pages(cell.out_bytes) + whole_pages(cell.residual_out_bytes) +
           whole_pages(cell.block_scales_bytes);
}

int cell_open(struct cell *cell, const struct shape *shape, int rank, int ranks, uint32_t seed) {
    set_sizes(cell, shape, rank, ranks, seed);
    struct read_bytes read = read_bytes_of(cell);
    size_t elements = with_shifts(cell, cell->input_elements);
    bool fused = shape->fusion != FUSION_NONE;
    cell->input = pages(read.input);
    cell->sum = pages(read.sum);
    cell->out = pages(cell->out_bytes > 0 ? cell->out_bytes : 1); // who gets nothing has an address, too
    cell->residual = pages(read.residual);
    cell->gamma = pages(read.gamma);
    cell->residual_out = pages(cell->residual_out_bytes);
    cell->block_scales = pages(cell->block_scales_bytes);
    bool complete = cell->input && (cell->sum || !has_sum(shape)) && cell->out &&
                    (!fused || (cell->residual && cell->gamma && cell->residual_out)) &&
                    (cell->block_scales_bytes == 0 || cell->block_scales);
    if (!complete) {
        cell_close(cell);
        cell->shape = *shape;
        return -1;
    }
    fill(shape->dtype, cell->input, elements, seed_of(seed, rank));
    if (fused) {
        fill(shape->dtype, cell->residual, elements, seed_of(seed, WHO_RESIDUAL));
        fill_gamma(shape->dtype, cell->gamma, shape->hidden_size, seed_of(seed, WHO_GAMMA));
    }
    if (has_sum(shape)) sum_over_ranks(cell);
    return 0;
}

void cell_close(struct cell *cell) {
    free(cell->input);
    free(cell->sum);
    free(cell->out);
    free(cell->residual);
    free(cell->gamma);
    free(cell->residual_out);
    free(cell->block_scales);
    *cell = (struct cell){0};
}

struct call cell_call(const struct cell *cell, size_t shift) {
    const struct shape *shape = &cell->shape;
    size_t offset = shift * cell->stride * dtype_sizes_bytes[shape->dtype];
    return (struct call){
        .op = shape->op,
        .traffic = shape->op == OP_ALLREDUCE ? NULL : &cell->traffic,
        .dtype = shape->dtype,
        .fusion = shape->fusion,
        .num_tokens = shape->num_tokens,
        .hidden_size = shape->hidden_size,
        .is_size_alone = shape->is_size_alone,
        .input = cell->input + offset,
        .residual = cell->residual ? cell->residual + offset : NULL,
        .gamma = cell->gamma,
        .residual_out = cell->residual_out,
        .out = cell->out,
        .block_scales = cell->block_scales,
        .epsilon = EPSILON,
        .scale = shape->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_FP8 ? FP8_SCALE : NVFP4_SCALE,
    };
}

void cell_poison(struct cell *cell) {
    memset(cell->out, 0xff, cell->out_bytes);
    if (cell->residual_out) memset(cell->residual_out, 0xff, cell->residual_out_bytes);
    // The padding of the scales belongs to nobody; it stays the same, so that hashes can be compared.
    if (cell->block_scales) memset(cell->block_scales, 0xff, cell->block_scales_bytes);
}

uint64_t cell_hash(const struct cell *cell, uint64_t (*hash)(const void *, size_t)) {
    uint64_t total = hash(cell->out, cell->out_bytes);
    if (cell->residual_out) total = total * 31 + hash(cell->residual_out, cell->residual_out_bytes);
    if (cell->block_scales) total = total * 31 + hash(cell->block_scales, cell->block_scales_bytes);
    return total;
}

static void make_zeros_positive(enum dtype dtype, void *array, size_t count) {
    if (dtype == DTYPE_FLOAT32) {
        uint32_t *words = array;
        for (size_t i = 0; i < count; i++) words[i] = words[i] == 0x80000000u ? 0 : words[i];
    } else {
        uint16_t *words = array;
        for (size_t i = 0; i < count; i++) words[i] = words[i] == 0x8000u ? 0 : words[i];
    }
}

// Of FP8 codes the sign is bit 7; of NVFP4, two codes a byte, also bit 3.
static void make_zero_codes_positive(enum fusion fusion, unsigned char *codes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        unsigned low = codes[i] & 0xf, high = codes[i] & 0xf0;
        if (fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_FP8) {
            codes[i] = codes[i] == 0x80 ? 0 : codes[i];
        } else {
            codes[i] = (unsigned char)((low == 0x8 ? 0 : low) | (high == 0x80 ? 0 : high));
        }
    }
}

uint64_t cell_bits(struct cell *cell, uint64_t (*hash)(const void *, size_t)) {
    const struct shape *shape = &cell->shape;
    size_t elements = cell->out_elements;
    bool are_codes = shape->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_FP8 ||
                     shape->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4;
    if (are_codes) {
        make_zero_codes_positive(shape->fusion, cell->out, cell->out_bytes);
    } else {
        make_zeros_positive(shape->dtype, cell->out, elements);
    }
    if (cell->residual_out != NULL) make_zeros_positive(shape->dtype, cell->residual_out, elements);
    return cell_hash(cell, hash);
}

// ---- the check ----------------------------------------------------------------------------------

// All values of the 16-bit types, since one look-up is faster than one conversion.
static float values_of_16_bits[DTYPES][65536];
static struct code_range ranges_of_e4m3[256], ranges_of_e2m1[16];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT; // ranks may be threads

static void make_tables(void) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (uint32_t i = 0; i < 65536 && dtype != DTYPE_FLOAT32; i++) {
            uint16_t bits = (uint16_t)i;
            values_of_16_bits[dtype][i] = (float)element_value((enum dtype)dtype, &bits, 0);
        }
    }
    minifloat_ranges(&minifloat_e4m3, ranges_of_e4m3);
    minifloat_ranges(&minifloat_e2m1, ranges_of_e2m1);
}

// Reads many elements of one array.
struct reader {
    const float *table; // NULL: the array is of floats
    const void *array;
};

static struct reader reader_of(enum dtype dtype, const void *array) {
    pthread_once(&tables_once, make_tables);
    return (struct reader){.table = dtype == DTYPE_FLOAT32 ? NULL : values_of_16_bits[dtype], .array = array};
}

static inline double read_at(struct reader reader, size_t index) {
    if (reader.table == NULL) return (double)((const float *)reader.array)[index];
    return (double)reader.table[((const uint16_t *)reader.array)[index]];
}

// How far a right sum may be from the exact one, beside `rounding` times its size. Inputs are smaller than 1,
// so the sum of their sizes is below the number of ranks.
static double sum_tolerance(const struct cell *cell, bool accumulates_fp32) {
    double ranks = cell->ranks;
    double unit = accumulates_fp32 ? 0x1p-24 : dtype_unit_roundoff(cell->shape.dtype);
    return 1.01 * (ranks - 1) * unit * ranks;
}

static bool wrong(char what[], size_t what_size, const char *name, size_t index, double is, double should,
                  double at_most) {
    snprintf(what, what_size, "wrong result: %s[%zu] is %.9g, should be %.9g within %.2g", name, index, is,
             should, at_most);
    return false;
}

static bool check_sum(const struct cell *cell, size_t shift, bool accumulates_fp32, char what[],
                      size_t what_size) {
    size_t count = cell->out_elements;
    const double *expected = cell->sum + shift * cell->stride;
    struct reader out = reader_of(cell->shape.dtype, cell->out);
    double unit = dtype_unit_roundoff(cell->shape.dtype),
           absolute = sum_tolerance(cell, accumulates_fp32) + 0x1p-40;
    for (size_t i = 0; i < count; i++) {
        double tolerance = unit * fabs(expected[i]) + absolute;
        double value = read_at(out, i);
        if (!(fabs(value - expected[i]) <= tolerance))
            return wrong(what, what_size, "out", i, value, expected[i], tolerance);
    }
    return true;
}

static bool check_residual(const struct cell *cell, size_t shift, size_t row, bool accumulates_fp32,
                           char what[], size_t what_size) {
    size_t hidden_size = cell->shape.hidden_size, first = row * hidden_size;
    const double *sum = cell->sum + shift * hidden_size + first;
    struct reader residual = reader_of(cell->shape.dtype, cell->residual);
    struct reader out = reader_of(cell->shape.dtype, cell->residual_out);
    double unit = dtype_unit_roundoff(cell->shape.dtype),
           absolute = sum_tolerance(cell, accumulates_fp32) + 0x1p-40;
    for (size_t i = 0; i < hidden_size; i++) {
        double expected = sum[i] + read_at(residual, shift * hidden_size + first + i);
        // The sum may have been rounded on its way, before the residual was added.
        double tolerance = 1.01 * unit * (fabs(sum[i]) + fabs(expected)) + absolute + 0x1p-24;
        double value = read_at(out, first + i);
        if (!(fabs(value - expected) <= tolerance)) {
            return wrong(what, what_size, "residual_out", first + i, value, expected, tolerance);
        }
    }
    return true;
}

// The norm of the residual that was written, in float64.
static void norm_truth(const struct cell *cell, size_t row, double y[], double tolerance[]) {
    size_t hidden_size = cell->shape.hidden_size;
    struct reader r = reader_of(cell->shape.dtype, cell->residual_out),
                  gamma = reader_of(cell->shape.dtype, cell->gamma);
    double squares = 0;
    for (size_t i = 0; i < hidden_size; i++)
        squares += read_at(r, row * hidden_size + i) * read_at(r, row * hidden_size + i);
    double factor = 1 / sqrt(squares / (double)hidden_size + (double)EPSILON);
    // Sixteen or more partial sums of squares in fp32, then a handful of operations, then one rounding.
    double relative = ((double)hidden_size / 4 + 16) * 0x1p-24 + dtype_unit_roundoff(cell->shape.dtype);
    for (size_t i = 0; i < hidden_size; i++) {
        y[i] = read_at(r, row * hidden_size + i) * factor * read_at(gamma, i);
        tolerance[i] = relative * fabs(y[i]) + 0x1p-24;
    }
}

static const struct code_range *ranges_of(const struct minifloat *format) {
    pthread_once(&tables_once, make_tables);
    return format == &minifloat_e4m3 ? ranges_of_e4m3 : ranges_of_e2m1;
}

// Whether a code is what some value in [low, high] rounds to.
static bool code_fits(struct code_range range, double low, double high) {
    return high >= range.low && low <= range.high;
}

static bool check_norm(const struct cell *cell, const char *name, const void *norm, size_t row,
                       const double y[], const double tolerance[], char what[], size_t what_size) {
    struct reader out = reader_of(cell->shape.dtype, norm);
    for (size_t i = 0; i < cell->shape.hidden_size; i++) {
        size_t index = row * cell->shape.hidden_size + i;
        double value = read_at(out, index);
        if (!(fabs(value - y[i]) <= tolerance[i]))
            return wrong(what, what_size, name, index, value, y[i], tolerance[i]);
    }
    return true;
}

// Where the norm that was quantised is known, it is compared itself, and codes have to be exactly its own.
static bool take_rounded_norm(const struct cell *cell, size_t row, double y[], double tolerance[],
                              char what[], size_t what_size) {
    struct reader norm = reader_of(cell->shape.dtype, cell->norm_out);
    if (!check_norm(cell, "norm", cell->norm_out, row, y, tolerance, what, what_size)) return false;
    for (size_t i = 0; i < cell->shape.hidden_size; i++) {
        y[i] = read_at(norm, row * cell->shape.hidden_size + i);
        tolerance[i] = 0;
    }
    return true;
}

static bool check_fp8(const struct cell *cell, size_t row, const double y[], const double tolerance[],
                      char what[], size_t what_size) {
    const struct code_range *ranges = ranges_of(&minifloat_e4m3);
    for (size_t i = 0; i < cell->shape.hidden_size; i++) {
        size_t index = row * cell->shape.hidden_size + i;
        double scaled = y[i] / (double)FP8_SCALE, reach = 1.001 * tolerance[i] / (double)FP8_SCALE;
        struct code_range code = ranges[cell->out[index]];
        if (!code_fits(code, scaled - reach, scaled + reach)) {
            return wrong(what, what_size, "out", index, code.value, scaled, reach);
        }
    }
    return true;
}

static bool check_nvfp4_block(const struct cell *cell, size_t row, size_t block, const double y[],
                              const double tolerance[], char what[], size_t what_size) {
    double largest = 0, reach = 0, scale = (double)NVFP4_SCALE;
    for (size_t i = block * 16; i < block * 16 + 16; i++) {
        largest = fmax(largest, fabs(y[i]));
        reach = fmax(reach, tolerance[i]);
    }
    size_t hidden_size = cell->shape.hidden_size, offset = block_scale_offset(row, block, hidden_size);
    struct code_range block_scale = ranges_of(&minifloat_e4m3)[cell->block_scales[offset]];
    double expected = scale * largest / 6, around = scale * reach / 6 + 1e-6 * expected;
    if (!code_fits(block_scale, expected - around, expected + around)) {
        return wrong(what, what_size, "block_scales", offset, block_scale.value, expected, around);
    }
    for (size_t i = block * 16; i < block * 16 + 16; i++) {
        size_t index = row * hidden_size + i;
        struct code_range code = ranges_of(&minifloat_e2m1)[cell->out[index / 2] >> (index % 2 * 4) & 0xf];
        double factor = block_scale.value == 0 ? 0 : scale / block_scale.value;
        double scaled = y[i] * factor, within = tolerance[i] * factor + 1e-6 * fabs(scaled);
        if (!code_fits(code, scaled - within, scaled + within)) {
            return wrong(what, what_size, "out", index, code.value, scaled, within);
        }
    }
    return true;
}

static bool check_row(const struct cell *cell, size_t row, double y[], double tolerance[], char what[],
                      size_t what_size) {
    norm_truth(cell, row, y, tolerance);
    bool is_norm = cell->shape.fusion == FUSION_RESIDUAL_RMS_NORM;
    if (cell->norm_out != NULL && !is_norm && !take_rounded_norm(cell, row, y, tolerance, what, what_size))
        return false;
    switch (cell->shape.fusion) {
    case FUSION_RESIDUAL_RMS_NORM:
        return check_norm(cell, "out", cell->out, row, y, tolerance, what, what_size);
    case FUSION_RESIDUAL_RMS_NORM_QUANT_FP8: return check_fp8(cell, row, y, tolerance, what, what_size);
    default:
        for (size_t block = 0; block < cell->shape.hidden_size / 16; block++) {
            if (!check_nvfp4_block(cell, row, block, y, tolerance, what, what_size)) return false;
        }
        return true;
    }
}

// What is moved, is moved as it is.
static bool check_moved(const struct cell *cell, size_t shift, char what[], size_t what_size) {
    const struct traffic *traffic = &cell->traffic;
    struct reader out = reader_of(cell->shape.dtype, cell->out);
    int bits = significand_bits(cell->shape.dtype);
    size_t first = traffic->send_at[cell->rank] + shift * cell->stride;
    for (int rank = 0; rank < cell->ranks; rank++) {
        uint32_t rank_seed = seed_of(cell->seed, rank);
        for (size_t i = 0; i < traffic->received[rank]; i++) {
            double expected = (double)value_at(rank_seed, first + i, bits);
            double value = read_at(out, traffic->receive_at[rank] + i);
            if (value != expected)
                return wrong(what, what_size, "out", traffic->receive_at[rank] + i, value, expected, 0);
        }
    }
    return true;
}

bool cell_check(const struct cell *cell, size_t shift, bool accumulates_fp32, char what[], size_t what_size) {
    if (!has_sum(&cell->shape)) return check_moved(cell, shift, what, what_size);
    if (cell->shape.fusion == FUSION_NONE) return check_sum(cell, shift, accumulates_fp32, what, what_size);
    double *y = malloc(2 * cell->shape.hidden_size * sizeof *y);
    if (y == NULL) {
        snprintf(what, what_size, "out of memory for the check");
        return false;
    }
    bool right = true;
    for (size_t row = 0; right && row < cell->shape.num_tokens; row++) {
        right = check_residual(cell, shift, row, accumulates_fp32, what, what_size) &&
                check_row(cell, row, y, y + cell->shape.hidden_size, what, what_size);
    }
    free(y);
    return right;
}
