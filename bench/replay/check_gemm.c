// Checks matrix products; see check.h.
#include "check_parts.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "parallel_for.h"
#include "scales.h"
#include "wide.h"

// A matrix in a tensor: element (row, column) is at from + row * row_step + column * column_step. Its
// elements are multiplied by their scales, if it has any.
struct view {
    const struct tensor *tensor;
    size_t from, rows, columns, row_step, column_step;
    struct scales scales;
    bool scales_columns; // the rows of the scales are its columns
};

// Loads `count` elements from (row, column) on: of the row, or `down` the column.
static void load_line(const struct view *view, size_t row, size_t column, bool down, size_t count,
                      double line[]) {
    tensor_load(view->tensor, view->from + row * view->row_step + column * view->column_step,
                down ? view->row_step : view->column_step, count, line);
    for (size_t i = 0; i < count && view->scales.are_there; i++) {
        size_t y = down ? row + i : row, x = down ? column : column + i;
        line[i] *= view->scales_columns ? scale_at(&view->scales, x, y) : scale_at(&view->scales, y, x);
    }
}

// to = view * x. `squares`, unless NULL: for each row the sum of (|element| + widening)².
struct times {
    const struct view *view;
    const double *x;
    double *to, *squares, widening;
};

enum { PIECE = 512 }; // elements converted to doubles at once, which fit into the first-level cache

// Sums over a row: of its elements times x, and of (|element| + widening)².
struct sums {
    double product, squares;
};

enum { LANES = 16, AHEAD = 1024 }; // AHEAD: farther than the hardware prefetches

static inline void add_element(double value, double x, double widening, double *product, double *square) {
    double wide = fabs(value) + widening;
    *product += value * x;
    *square += wide * wide;
}

static void add_lanes(const double products[LANES], const double squares[LANES], struct sums *to) {
    for (size_t k = 0; k < LANES; k++) {
        to->product += products[k];
        to->squares += squares[k];
    }
}

WIDE static void add_doubles(size_t count, const double line[], const double x[], double widening,
                             struct sums *to) {
    double products[LANES] = {0}, squares[LANES] = {0};
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        for (size_t k = 0; k < LANES; k++)
            add_element(line[i + k], x[i + k], widening, &products[k], &squares[k]);
    }
    for (size_t i = whole; i < count; i++) add_element(line[i], x[i], widening, &to->product, &to->squares);
    add_lanes(products, squares, to);
}

WIDE static void add_floats(size_t count, const float line[], const double x[], double widening,
                            struct sums *to) {
    double products[LANES] = {0}, squares[LANES] = {0};
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        __builtin_prefetch(line + i + AHEAD);
        for (size_t k = 0; k < LANES; k++)
            add_element(line[i + k], x[i + k], widening, &products[k], &squares[k]);
    }
    for (size_t i = whole; i < count; i++) add_element(line[i], x[i], widening, &to->product, &to->squares);
    add_lanes(products, squares, to);
}

WIDE static void add_scaled(size_t count, const double line[], double factor, double to[]) {
    for (size_t k = 0; k < count; k++) to[k] += line[k] * factor;
}

static void multiply_rows(void *context, size_t from, size_t to) {
    const struct times *at = context;
    const struct view *view = at->view;
    bool are_floats = view->tensor->type == FLOAT32 && view->column_step == 1;
    double line[PIECE];
    for (size_t row = from; row < to; row++) {
        struct sums sums = {0, 0};
        size_t start = view->from + row * view->row_step;
        if (are_floats)
            add_floats(view->columns, (const float *)view->tensor->data + start, at->x, at->widening, &sums);
        for (size_t i = 0; i < view->columns && !are_floats; i += PIECE) {
            size_t count = view->columns - i < PIECE ? view->columns - i : PIECE;
            load_line(view, row, i, false, count, line);
            add_doubles(count, line, at->x + i, at->widening, &sums);
        }
        at->to[row] = sums.product;
        if (at->squares != NULL) at->squares[row] = sums.squares;
    }
}

// The rows from .. to of a column-major matrix.
static void multiply_columns(void *context, size_t from, size_t to) {
    const struct times *at = context;
    const struct view *view = at->view;
    double line[PIECE];
    for (size_t row = from; row < to; row += PIECE) {
        size_t count = to - row < PIECE ? to - row : PIECE;
        for (size_t k = 0; k < count; k++) at->to[row + k] = 0;
        for (size_t i = 0; i < view->columns; i++) {
            load_line(view, row, i, true, count, line);
            add_scaled(count, line, at->x[i], at->to + row);
        }
    }
}

static void multiply(const struct times *times, int threads) {
    enum { WORTH_A_THREAD = 1 << 20 }; // elements
    const struct view *view = times->view;
    struct times at = *times;
    bool by_rows = view->column_step <= view->row_step || at.squares != NULL;
    if (view->rows * view->columns < WORTH_A_THREAD) threads = 1;
    parallel_for(threads, view->rows, by_rows ? multiply_rows : multiply_columns, &at);
}

// The parts of product `b` of the batch.
struct parts {
    struct view a, b, c, out;
};

static struct parts parts_of(const struct gemm *gemm, const struct operands *operands, size_t b) {
    size_t m = (size_t)gemm->m, n = (size_t)gemm->n, k = (size_t)gemm->k;
    size_t lda = (size_t)gemm->lda, ldb = (size_t)gemm->ldb;
    bool has_matrix = gemm->addend == ADD_MATRIX;
    return (struct parts){
        .a = {&operands->a, b * (size_t)gemm->stride_a, m, k, gemm->trans_a ? 1 : lda,
              gemm->trans_a ? lda : 1, scales_of_a(gemm, operands->a.type), false},
        .b = {&operands->b, b * (size_t)gemm->stride_b, k, n, gemm->trans_b ? 1 : ldb,
              gemm->trans_b ? ldb : 1, scales_of_b(gemm, operands->b.type), true},
        .c = {.tensor = &operands->c,
              .from = has_matrix ? b * m * n : 0,
              .rows = m,
              .columns = n,
              .row_step = has_matrix ? n : 0,
              .column_step = 1},
        .out = {.tensor = &operands->out,
                .from = b * m * n,
                .rows = m,
                .columns = n,
                .row_step = n,
                .column_step = 1},
    };
}

// The number that is added to each magnitude before the bound of its error is computed: for the addend, since
// a library may round the product before it adds. A result in float8 is rounded once, but a float8 has few
// bits below its normal numbers.
static double widening_of(const struct gemm *gemm, enum data_type out) {
    return is_float8(out) ? data_type_least(out) : 2 * LARGEST_VALUE * fabs(gemm->beta);
}

struct scratch {
    double *x, *product, *want, *got, *added, *squares;
};

static int wrong_rows(const struct gemm *gemm, const struct parts *parts, const struct scratch *at,
                      int threads, char reason[]) {
    enum data_type out = parts->out.tensor->type;
    double error = data_type_error(out), widening = widening_of(gemm, out);
    multiply(&(struct times){&parts->b, at->x, at->product, NULL, 0}, threads);
    multiply(&(struct times){&parts->a, at->product, at->want, NULL, 0}, threads);
    multiply(&(struct times){&parts->out, at->x, at->got, at->squares, widening}, threads);
    if (gemm->addend != ADD_NOTHING) multiply(&(struct times){&parts->c, at->x, at->added, NULL, 0}, threads);
    for (int64_t i = 0; i < gemm->m; i++) {
        double want = gemm->alpha * at->want[i];
        if (gemm->addend != ADD_NOTHING) want += gemm->beta * at->added[i];
        double bound = SURE * error * sqrt(at->squares[i]);
        if (!(fabs(at->got[i] - want) <= bound)) return report_wrong("a row", at->got[i], want, reason);
    }
    return 0;
}

static double element(const struct view *view, size_t row, size_t column) {
    return tensor_value(view->tensor, view->from + row * view->row_step + column * view->column_step);
}

// Row i of A times column j of B.
static double product_of(const struct parts *parts, size_t i, size_t j) {
    const struct view *a = &parts->a, *b = &parts->b;
    double total = 0, row[PIECE], column[PIECE];
    for (size_t l = 0; l < a->columns; l += PIECE) {
        size_t count = a->columns - l < PIECE ? a->columns - l : PIECE;
        load_line(a, i, l, false, count, row);
        load_line(b, l, j, true, count, column);
        total += dot(count, row, column);
    }
    return total;
}

static int wrong_element(const struct gemm *gemm, const struct parts *parts, uint64_t *random,
                         char reason[]) {
    size_t i = random_64(random) % (uint64_t)gemm->m, j = random_64(random) % (uint64_t)gemm->n;
    enum data_type out = parts->out.tensor->type;
    double got = element(&parts->out, i, j), widening = widening_of(gemm, out);
    double want = gemm->alpha * product_of(parts, i, j);
    if (gemm->addend != ADD_NOTHING) want += gemm->beta * element(&parts->c, i, j);
    double bound = data_type_error(out) * (fabs(want) + widening);
    return fabs(got - want) <= bound ? 0 : report_wrong("an element", got, want, reason);
}

// ---- a batch --------------------------------------------------------------------------------------------

// The check of some products of a batch; it reports the first wrong one.
struct checking {
    const struct gemm *gemm;
    const struct operands *operands;
    int threads; // for each product
    pthread_mutex_t mutex;
    int status;
    char *reason;
};

static void end_checking(struct checking *at, int status, const char *reason) {
    pthread_mutex_lock(&at->mutex);
    if (status != 0 && at->status == 0) {
        at->status = status;
        snprintf(at->reason, REASON_SIZE, "%s", reason);
    }
    pthread_mutex_unlock(&at->mutex);
}

static void check_some(void *context, size_t from, size_t to) {
    struct checking *at = context;
    const struct gemm *gemm = at->gemm;
    size_t m = (size_t)gemm->m, n = (size_t)gemm->n, k = (size_t)gemm->k;
    char reason[REASON_SIZE];
    uint64_t random = 5 + from;
    double *room = malloc((n + k + 4 * m) * sizeof *room);
    int status = room != NULL ? 0 : report_no_memory(reason);
    struct scratch scratch = {.x = room, .product = room + n, .want = room + n + k};
    scratch.got = scratch.want + m;
    scratch.added = scratch.got + m;
    scratch.squares = scratch.added + m;
    for (size_t b = from; b < to && status == 0; b++) {
        struct parts parts = parts_of(gemm, at->operands, b);
        fill_signs(scratch.x, n, &random);
        status = wrong_rows(gemm, &parts, &scratch, at->threads, reason);
    }
    end_checking(at, status, reason);
    free(room);
}

int check_gemm(const struct gemm *gemm, const struct operands *operands, int threads, char reason[]) {
    size_t batch = (size_t)gemm->batch;
    bool is_large = operands->out.count * (size_t)gemm->k > 1 << 22;
    struct checking at = {
        .gemm = gemm, .operands = operands, .threads = batch > 1 ? 1 : threads, .reason = reason};
    pthread_mutex_init(&at.mutex, NULL);
    parallel_for(is_large ? threads : 1, batch, check_some, &at);
    pthread_mutex_destroy(&at.mutex);
    return at.status;
}

// Fewer elements with long sums: each term may miss all caches.
static int elements_of(const struct gemm *gemm) {
    enum { FEWEST = 8, TERMS = 1 << 19 };
    int64_t affordable = TERMS / gemm->k;
    return affordable > SINGLE_ELEMENTS ? SINGLE_ELEMENTS : affordable < FEWEST ? FEWEST : (int)affordable;
}

int check_gemm_elements(const struct gemm *gemm, const struct operands *operands, char reason[]) {
    uint64_t random = 6;
    for (int i = 0; i < elements_of(gemm); i++) {
        struct parts parts = parts_of(gemm, operands, random_64(&random) % (uint64_t)gemm->batch);
        if (wrong_element(gemm, &parts, &random, reason) != 0) return -1;
    }
    return 0;
}
