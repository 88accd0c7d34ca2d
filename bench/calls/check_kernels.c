// The loops of cell_check; see check_kernels.h. The build compiles this file once per instruction set, and
// defines CHECK_KERNEL, the name of its function.
//
// Loops handle a span of elements at a time, so that intermediate values stay in the first-level cache. They
// count wrong elements without branches, so that compilers turn them into vectors; the first wrong element is
// searched only if there is one. The reference is computed again for each comparison: this takes less time
// than reading it from memory.
#include "check_kernels.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/element.h"
#include "elements/fusion.h"
#include "elements/values.h"

enum {
    SPAN = 512, // elements: a multiple of the blocks of all fusions
    PARTIAL_SUMS = 8,
};

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

// ---- elements as floats -------------------------------------------------------------------------

static void widen(enum dtype dtype, const void *array, size_t first, size_t count, float to[]) {
    const uint16_t *halves = (const uint16_t *)array + first;
    switch (dtype) {
    case DTYPE_BFLOAT16:
        for (size_t i = 0; i < count; i++) to[i] = float_of_bfloat16(halves[i]);
        break;
    case DTYPE_FLOAT16:
        for (size_t i = 0; i < count; i++) to[i] = float_of_float16(halves[i]);
        break;
    default: memcpy(to, (const float *)array + first, count * sizeof *to);
    }
}

// ---- the reference ---------------------------------------------------------------------------------------

static void values_at(uint32_t seed, size_t first, size_t count, int bits, float to[]) {
    uint32_t at = (uint32_t)first * STEP + seed;
    for (size_t i = 0; i < count; i++, at += STEP) to[i] = value_of(at, bits);
}

// The sums over the ranks, for the elements of the results from `first` on. They are exact.
static void sums_at(const struct cell *cell, size_t data_set, size_t first, size_t count, double to[]) {
    int bits = dtype_significand_bits[cell->shape.dtype];
    size_t at = cell->traffic.send_at[cell->rank] + data_set * cell->stride + first;
    for (size_t i = 0; i < count; i++) to[i] = 0;
    for (int rank = 0; rank < cell->ranks; rank++) {
        uint32_t unmixed = (uint32_t)at * STEP + seed_of(cell->seed, rank);
        for (size_t i = 0; i < count; i++, unmixed += STEP) to[i] += (double)value_of(unmixed, bits);
    }
}

// ---- comparisons --------------------------------------------------------------------------------

// What a comparison reports: where, what, and its size.
struct report {
    char *what;
    size_t what_size;
};

static bool wrong(struct report report, const char *name, size_t index, double is, double should,
                  double at_most) {
    snprintf(report.what, report.what_size, "wrong result: %s[%zu] is %.9g, should be %.9g within %.2g", name,
             index, is, should, at_most);
    return false;
}

// NaN is outside.
static inline bool is_outside(float value, double expected, double tolerance) {
    return !(fabs((double)value - expected) <= tolerance);
}

// Whether all values of a span, which begins at element `first` of array `name`, are within their tolerances.
static bool all_within(struct report report, const char *name, size_t first, size_t count,
                       const float values[], const double expected[], const double tolerances[]) {
    uint64_t outside = 0;
    size_t i = 0;
    for (size_t k = 0; k < count; k++) outside += is_outside(values[k], expected[k], tolerances[k]);
    if (outside == 0) return true;
    while (!is_outside(values[i], expected[i], tolerances[i])) i++;
    return wrong(report, name, first + i, (double)values[i], expected[i], tolerances[i]);
}

// The intervals of a small format, by code.
struct code_ranges {
    double value[256], low[256], high[256];
};
static struct code_ranges ranges_of_e4m3, ranges_of_e2m1;
static pthread_once_t ranges_once = PTHREAD_ONCE_INIT; // ranks may be threads

static void make_ranges_of(const struct minifloat *format, struct code_ranges *ranges) {
    struct code_range each[256];
    minifloat_ranges(format, each);
    for (unsigned code = 0; code < 2u << format->sign_bit; code++) {
        ranges->value[code] = each[code].value;
        ranges->low[code] = each[code].low;
        ranges->high[code] = each[code].high;
    }
}

static void make_ranges(void) {
    make_ranges_of(&minifloat_e4m3, &ranges_of_e4m3);
    make_ranges_of(&minifloat_e2m1, &ranges_of_e2m1);
}

static const struct code_ranges *ranges_of(const struct minifloat *format) {
    pthread_once(&ranges_once, make_ranges);
    return format == &minifloat_e4m3 ? &ranges_of_e4m3 : &ranges_of_e2m1;
}

// Whether a code is what some value within `reach` of `value` rounds to. No value rounds to a NaN.
static inline bool code_fits(const struct code_ranges *ranges, unsigned char code, double value,
                             double reach) {
    return (value + reach >= ranges->low[code]) & (value - reach <= ranges->high[code]);
}

// Whether all codes of a span fit; it begins at element `first` of the result.
static bool all_codes_fit(struct report report, const struct code_ranges *ranges, size_t first, size_t count,
                          const unsigned char codes[], const double values[], const double reaches[]) {
    uint64_t misfits = 0;
    size_t i = 0;
    for (size_t k = 0; k < count; k++) misfits += !code_fits(ranges, codes[k], values[k], reaches[k]);
    if (misfits == 0) return true;
    while (code_fits(ranges, codes[i], values[i], reaches[i])) i++;
    return wrong(report, "out", first + i, ranges->value[codes[i]], values[i], reaches[i]);
}

// ---- sums ---------------------------------------------------------------------------------------

// How many times as large as that of a correct rounding the error of a rounding may be.
static double rounding_error(enum sum_rounding rounding) {
    return rounding == SUM_FAITHFUL ? 2 : 1;
}

// The error that a right sum may have besides its own rounding. Inputs are smaller than 1 in magnitude, so
// the sum of their magnitudes is below the number of ranks.
static double sum_tolerance(const struct cell *cell, enum sum_rounding rounding) {
    double ranks = cell->ranks, unit = dtype_unit_roundoff(cell->shape.dtype);
    if (rounding != SUM_NATIVE) unit = rounding_error(rounding) * 0x1p-24;
    return 1.01 * (ranks - 1) * unit * ranks + 0x1p-40;
}

static bool check_sums(const struct cell *cell, size_t data_set, struct cell_part part,
                       enum sum_rounding rounding, struct report report) {
    double unit = rounding_error(rounding) * dtype_unit_roundoff(cell->shape.dtype);
    double absolute = sum_tolerance(cell, rounding);
    double expected[SPAN], tolerances[SPAN];
    float out[SPAN];
    for (size_t at = part.first, n; at < part.first + part.count; at += n) {
        n = least(SPAN, part.first + part.count - at);
        sums_at(cell, data_set, at, n, expected);
        widen(cell->shape.dtype, cell->out, at, n, out);
        for (size_t i = 0; i < n; i++) tolerances[i] = unit * fabs(expected[i]) + absolute;
        if (!all_within(report, "out", at, n, out, expected, tolerances)) return false;
    }
    return true;
}

// Moved data must not change.
static bool check_moved(const struct cell *cell, size_t data_set, struct report report) {
    const struct traffic *traffic = &cell->traffic;
    int bits = dtype_significand_bits[cell->shape.dtype];
    size_t first = traffic->send_at[cell->rank] + data_set * cell->stride;
    double expected[SPAN], tolerances[SPAN] = {0};
    float sent[SPAN], out[SPAN];
    for (int rank = 0; rank < cell->ranks; rank++) {
        for (size_t at = 0, n; at < traffic->received[rank]; at += n) {
            n = least(SPAN, traffic->received[rank] - at);
            values_at(seed_of(cell->seed, rank), first + at, n, bits, sent);
            for (size_t i = 0; i < n; i++) expected[i] = (double)sent[i];
            widen(cell->shape.dtype, cell->out, traffic->receive_at[rank] + at, n, out);
            if (!all_within(report, "out", traffic->receive_at[rank] + at, n, out, expected, tolerances))
                return false;
        }
    }
    return true;
}

// ---- rows with an epilogue ----------------------------------------------------------------------

// The check of one row after another.
struct row_check {
    const struct cell *cell;
    size_t data_set, row;
    enum sum_rounding rounding;
    struct report report;
    float *gamma, *residual_out; // of one row
};

// A span of a row: its first element in the results, and its norm in float64.
struct norm_span {
    size_t row, first, count;
    double y[SPAN], tolerances[SPAN];
};

static bool check_residual(const struct row_check *check) {
    const struct cell *cell = check->cell;
    size_t hidden_size = cell->shape.hidden_size, first = check->row * hidden_size;
    double unit = dtype_unit_roundoff(cell->shape.dtype), of_sum = rounding_error(check->rounding);
    double absolute = sum_tolerance(cell, check->rounding) + 0x1p-24;
    double expected[SPAN], tolerances[SPAN];
    float residual[SPAN];
    for (size_t at = 0, n; at < hidden_size; at += n) {
        n = least(SPAN, hidden_size - at);
        sums_at(cell, check->data_set, first + at, n, expected);
        widen(cell->shape.dtype, cell->residual, check->data_set * hidden_size + first + at, n, residual);
        for (size_t i = 0; i < n; i++) {
            double sum = expected[i];
            expected[i] = sum + (double)residual[i];
            // The sum may have been rounded on its way, before the residual was added.
            tolerances[i] = 1.01 * unit * (of_sum * fabs(sum) + fabs(expected[i])) + absolute;
        }
        if (!all_within(check->report, "residual_out", first + at, n, check->residual_out + at, expected,
                        tolerances))
            return false;
    }
    return true;
}

static double sum_of_squares(const float values[], size_t count) {
    double sums[PARTIAL_SUMS] = {0}, total = 0;
    size_t i = 0;
    for (; i + PARTIAL_SUMS <= count; i += PARTIAL_SUMS) {
        for (size_t k = 0; k < PARTIAL_SUMS; k++) sums[k] += (double)values[i + k] * (double)values[i + k];
    }
    for (; i < count; i++) total += (double)values[i] * (double)values[i];
    for (size_t k = 0; k < PARTIAL_SUMS; k++) total += sums[k];
    return total;
}

// If the backend provides the norm that was quantised, compares that norm; the codes must then be exactly
// those of it.
static bool take_rounded_norm(const struct cell *cell, struct norm_span *span, struct report report) {
    float norm[SPAN];
    widen(cell->shape.dtype, cell->norm_out, span->first, span->count, norm);
    if (!all_within(report, "norm", span->first, span->count, norm, span->y, span->tolerances)) return false;
    for (size_t i = 0; i < span->count; i++) {
        span->y[i] = (double)norm[i];
        span->tolerances[i] = 0;
    }
    return true;
}

// The results of a span against its norm: check_SHORT of each fusion.
#define FUSION_CHECK
#include "fusion_files.h"
typedef bool result_check(const struct cell *cell, const struct norm_span *span, struct report report);
#define EPILOGUE(fusion, short_name, class_name) [fusion] = check_##short_name,
static result_check *const result_checks[FUSIONS] = {EPILOGUES(EPILOGUE)};
#undef EPILOGUE

// The norm is that of the residual that was written, in float64.
static bool check_norm(const struct row_check *check) {
    const struct cell *cell = check->cell;
    size_t hidden_size = cell->shape.hidden_size;
    const float *r = check->residual_out;
    double factor = 1 / sqrt(sum_of_squares(r, hidden_size) / (double)hidden_size + (double)CELL_EPSILON);
    // Eight or more partial sums of squares in fp32, then a handful of operations, then one rounding.
    double relative = ((double)hidden_size / 4 + 16) * 0x1p-24 + dtype_unit_roundoff(cell->shape.dtype);
    struct norm_span span = {.row = check->row};
    for (size_t at = 0; at < hidden_size; at += span.count) {
        span.first = check->row * hidden_size + at;
        span.count = least(SPAN, hidden_size - at);
        for (size_t i = 0; i < span.count; i++) {
            span.y[i] = (double)r[at + i] * factor * (double)check->gamma[at + i];
            span.tolerances[i] = relative * fabs(span.y[i]) + 0x1p-24;
        }
        if (cell->norm_out != NULL && fusion_has_codes(cell->shape.fusion) &&
            !take_rounded_norm(cell, &span, check->report))
            return false;
        if (!result_checks[cell->shape.fusion](cell, &span, check->report)) return false;
    }
    return true;
}

static bool check_rows(const struct cell *cell, size_t data_set, struct cell_part part,
                       enum sum_rounding rounding, struct report report) {
    size_t hidden_size = cell->shape.hidden_size, last = (part.first + part.count) / hidden_size;
    float *room = malloc(2 * hidden_size * sizeof *room);
    if (room == NULL) {
        snprintf(report.what, report.what_size, "out of memory for the check");
        return false;
    }
    struct row_check check = {.cell = cell,
                              .data_set = data_set,
                              .rounding = rounding,
                              .report = report,
                              .gamma = room,
                              .residual_out = room + hidden_size};
    bool right = true;
    widen(cell->shape.dtype, cell->gamma, 0, hidden_size, check.gamma);
    for (check.row = part.first / hidden_size; right && check.row < last; check.row++) {
        widen(cell->shape.dtype, cell->residual_out, check.row * hidden_size, hidden_size,
              check.residual_out);
        right = check_residual(&check) && check_norm(&check);
    }
    free(room);
    return right;
}

// ---- the kernel ---------------------------------------------------------------------------------

bool CHECK_KERNEL(const struct cell *cell, size_t data_set, struct cell_part part, enum sum_rounding rounding,
                  char what[], size_t what_size) {
    struct report report = {what, what_size};
    if (!op_sums[cell->shape.op]) return check_moved(cell, data_set, report);
    return cell->shape.fusion == FUSION_NONE ? check_sums(cell, data_set, part, rounding, report)
                                             : check_rows(cell, data_set, part, rounding, report);
}
