// Compares a cell's results with its reference; see cell_check.h.
#include "cell_check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cell_data.h"
#include "elements/element.h"
#include "elements/fusion.h"

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

// The error that a right sum may have besides its own rounding. Inputs are smaller than 1 in magnitude, so
// the sum of their magnitudes is below the number of ranks.
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

static bool check_sum(const struct cell *cell, size_t data_set, bool accumulates_fp32, char what[],
                      size_t what_size) {
    size_t count = cell->out_elements;
    const double *expected = cell->sum + data_set * cell->stride;
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

static bool check_residual(const struct cell *cell, size_t data_set, size_t row, bool accumulates_fp32,
                           char what[], size_t what_size) {
    size_t hidden_size = cell->shape.hidden_size, first = row * hidden_size;
    const double *sum = cell->sum + data_set * hidden_size + first;
    struct reader residual = reader_of(cell->shape.dtype, cell->residual);
    struct reader out = reader_of(cell->shape.dtype, cell->residual_out);
    double unit = dtype_unit_roundoff(cell->shape.dtype),
           absolute = sum_tolerance(cell, accumulates_fp32) + 0x1p-40;
    for (size_t i = 0; i < hidden_size; i++) {
        double expected = sum[i] + read_at(residual, data_set * hidden_size + first + i);
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

// If the backend provides the norm that was quantised, that is compared, and the codes must be exactly its
// own.
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

// The results of a row against its norm `y` in float64: check_SHORT of each fusion.
#define FUSION_CHECK
#include "fusion_files.h"
typedef bool result_check(const struct cell *cell, size_t row, const double y[], const double tolerance[],
                          char what[], size_t what_size);
#define EPILOGUE(fusion, short_name, class_name) [fusion] = check_##short_name,
static result_check *const result_checks[FUSIONS] = {EPILOGUES(EPILOGUE)};
#undef EPILOGUE

static bool check_row(const struct cell *cell, size_t row, double y[], double tolerance[], char what[],
                      size_t what_size) {
    norm_truth(cell, row, y, tolerance);
    if (cell->norm_out != NULL && fusion_has_codes(cell->shape.fusion) &&
        !take_rounded_norm(cell, row, y, tolerance, what, what_size))
        return false;
    return result_checks[cell->shape.fusion](cell, row, y, tolerance, what, what_size);
}

// Moved data must not change.
static bool check_moved(const struct cell *cell, size_t data_set, char what[], size_t what_size) {
    const struct traffic *traffic = &cell->traffic;
    struct reader out = reader_of(cell->shape.dtype, cell->out);
    int bits = dtype_significand_bits[cell->shape.dtype];
    size_t first = traffic->send_at[cell->rank] + data_set * cell->stride;
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

bool cell_check(const struct cell *cell, size_t data_set, bool accumulates_fp32, char what[],
                size_t what_size) {
    if (!op_sums[cell->shape.op]) return check_moved(cell, data_set, what, what_size);
    if (cell->shape.fusion == FUSION_NONE)
        return check_sum(cell, data_set, accumulates_fp32, what, what_size);
    double *y = malloc(2 * cell->shape.hidden_size * sizeof *y);
    if (y == NULL) {
        snprintf(what, what_size, "out of memory for the check");
        return false;
    }
    bool right = true;
    for (size_t row = 0; right && row < cell->shape.num_tokens; row++) {
        right = check_residual(cell, data_set, row, accumulates_fp32, what, what_size) &&
                check_row(cell, row, y, y + cell->shape.hidden_size, what, what_size);
    }
    free(y);
    return right;
}
