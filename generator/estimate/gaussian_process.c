// The Gaussian process of strategies' levels; see gaussian_process.h.
#include "gaussian_process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cholesky.h"

// Standard deviations in log2. Choices hardly depend on them within a factor of 1.5.
static const double OWN_SD = 0.18;        // of a strategy around its library's
static const double FAMILY_SD = 0.45;     // of all algorithms of a library together
static const double CELL_SD = 0.025;      // of one cell
static const double OFFSET_SD = 1;        // of a strategy, at all shapes
static const double SLOPE_SD = 0.15;      // per octave of bytes
static const double FUSED_SD = 0.1;       // of a strategy with a fusion
static const double REST_SD = 0.5;        // of a strategy that passes messages in parts, by remainder
static const double OCTAVES_OF_BYTES = 2; // lengths of the smooth terms
static const double OCTAVES_OF_RATIO = 20;
static const double BETWEEN_FUSIONS = 0.98; // correlation of the smooth terms, and of rests
static const double OF_A_METHOD = 0.995;    // correlation of variants' own terms
static const double IN_A_CELL = 0.9;        // correlation of variants in one cell
static const double MIDDLE_OF_BYTES = 16;   // log2: the slope's term is 0 here
static const double JITTER = 1e-9;
static const double SAME_SHAPE = 1e-6; // octaves

// An observation: how much slower a strategy is than `reference`, another one of the same cell.
struct contrast {
    uint8_t strategy, reference;
    double slower;
};

// A measured cell: its contrasts, and the covariance of their noise, row by row.
struct process_cell {
    struct process_shape shape;
    size_t first, count;
    double *noise;
};

struct gaussian_process {
    struct process_strategy *strategies;
    size_t strategy_count, cell_count, contrast_count;
    double *noise;
    struct process_cell *cells;
    struct contrast *contrasts;
    struct process_near *whole; // of all cells; NULL: these are too many
};

// The chosen cells, the factor of their contrasts' covariance, and its inverse times the contrasts.
struct process_near {
    const struct gaussian_process *process;
    size_t cell_count, count;
    size_t *cells;
    double *factor, *weight;
};

// ---- covariance

static double matern(double distance) {
    double scaled = sqrt(3) * distance;
    return (1 + scaled) * exp(-scaled);
}

// The parts of the covariance of two shapes that do not depend on strategies.
struct shared_parts {
    double smooth, line, rest;
    bool is_same_fusion, is_same_cell;
};

static struct shared_parts parts_of(const struct process_shape *a, const struct process_shape *b) {
    struct shared_parts parts;
    parts.is_same_fusion = a->fusion == b->fusion;
    parts.is_same_cell = a->cell == b->cell && a->cell != PROCESS_NO_CELL;
    parts.smooth = matern(fabs(a->log2_bytes - b->log2_bytes) / OCTAVES_OF_BYTES) *
                   matern(fabs(a->log2_ratio - b->log2_ratio) / OCTAVES_OF_RATIO);
    parts.rest = REST_SD * REST_SD * a->remainder * b->remainder;
    if (!parts.is_same_fusion) {
        parts.smooth *= BETWEEN_FUSIONS;
        parts.rest *= BETWEEN_FUSIONS;
    }
    parts.line = OFFSET_SD * OFFSET_SD +
                 SLOPE_SD * SLOPE_SD * (a->log2_bytes - MIDDLE_OF_BYTES) * (b->log2_bytes - MIDDLE_OF_BYTES);
    if (parts.is_same_fusion) parts.line += FUSED_SD * FUSED_SD;
    return parts;
}

// The covariance of the terms of one cell, of a strategy with itself or with another variant of its method.
static double in_a_cell(bool is_itself) {
    return (is_itself ? 1 : IN_A_CELL) * CELL_SD * CELL_SD;
}

static double covariance(const struct gaussian_process *process, const struct shared_parts *parts, uint8_t s,
                         uint8_t t) {
    double sum = 0;
    const struct process_strategy *strategies = process->strategies;
    if (strategies[s].family != 0 && strategies[s].family == strategies[t].family) {
        sum += FAMILY_SD * FAMILY_SD * parts->smooth;
    }
    if (strategies[s].method != strategies[t].method) return sum;
    double own = OWN_SD * OWN_SD * parts->smooth + parts->line;
    if (strategies[s].has_parts && strategies[t].has_parts) own += parts->rest;
    sum += s == t ? own : OF_A_METHOD * own;
    if (parts->is_same_cell) sum += in_a_cell(s == t);
    return sum;
}

// ---- equations

// A cell and its resemblance to a shape.
struct resemblance {
    double smooth;
    size_t cell;
};

static int most_first(const void *a, const void *b) {
    const struct resemblance *left = a, *right = b;
    if (left->smooth != right->smooth) return left->smooth > right->smooth ? -1 : 1;
    return (left->cell > right->cell) - (left->cell < right->cell);
}

// Chooses the cells that resemble a shape most, until they have `most` contrasts. False: out of memory.
static bool choose_cells(struct process_near *near, const struct process_shape *shape, size_t most) {
    const struct gaussian_process *process = near->process;
    struct resemblance *order = malloc((process->cell_count + 1) * sizeof *order);
    near->cells = malloc((process->cell_count + 1) * sizeof *near->cells);
    if (order == NULL || near->cells == NULL) {
        free(order);
        return false;
    }
    for (size_t i = 0; i < process->cell_count; i++) {
        order[i] = (struct resemblance){parts_of(shape, &process->cells[i].shape).smooth, i};
    }
    qsort(order, process->cell_count, sizeof *order, most_first);
    for (size_t i = 0; i < process->cell_count && near->count < most; i++) {
        near->cells[near->cell_count++] = order[i].cell;
        near->count += process->cells[order[i].cell].count;
    }
    free(order);
    return true;
}

static double between_contrasts(const struct gaussian_process *process, const struct shared_parts *parts,
                                const struct contrast *a, const struct contrast *b) {
    return covariance(process, parts, a->strategy, b->strategy) -
           covariance(process, parts, a->strategy, b->reference) -
           covariance(process, parts, a->reference, b->strategy) +
           covariance(process, parts, a->reference, b->reference);
}

// Fills the covariances of the contrasts of one cell (rows from `row`) with those of another before it, or
// with its own, to which their noise is added.
static void fill_block(struct process_near *near, const struct process_cell *a, size_t row,
                       const struct process_cell *b, size_t column) {
    const struct gaussian_process *process = near->process;
    struct shared_parts parts = parts_of(&a->shape, &b->shape);
    for (size_t i = 0; i < a->count; i++) {
        double *out = near->factor + (row + i) * near->count + column;
        for (size_t j = 0; j < (a == b ? i + 1 : b->count); j++) {
            out[j] = between_contrasts(process, &parts, &process->contrasts[a->first + i],
                                       &process->contrasts[b->first + j]);
            if (a == b) out[j] += a->noise[i * a->count + j] + (i == j ? JITTER : 0);
        }
    }
}

static bool solve(struct process_near *near) {
    const struct gaussian_process *process = near->process;
    near->factor = malloc((near->count * near->count + 1) * sizeof *near->factor);
    near->weight = malloc((near->count + 1) * sizeof *near->weight);
    if (near->factor == NULL || near->weight == NULL) return false;
    size_t row = 0;
    for (size_t i = 0; i < near->cell_count; i++) {
        const struct process_cell *a = &process->cells[near->cells[i]];
        size_t column = 0;
        for (size_t j = 0; j <= i; j++) {
            const struct process_cell *b = &process->cells[near->cells[j]];
            fill_block(near, a, row, b, column);
            column += b->count;
        }
        for (size_t k = 0; k < a->count; k++) {
            near->weight[row + k] = process->contrasts[a->first + k].slower;
        }
        row += a->count;
    }
    if (!cholesky_factor(near->factor, near->count)) return false;
    cholesky_forward(near->factor, near->count, near->weight, 1);
    cholesky_backward(near->factor, near->count, near->weight);
    return true;
}

static void free_near(struct process_near *near) {
    if (near == NULL) return;
    free(near->cells);
    free(near->factor);
    free(near->weight);
    free(near);
}

static struct process_near *make_near(const struct gaussian_process *process,
                                      const struct process_shape *shape, size_t most) {
    struct process_near *near = calloc(1, sizeof *near);
    if (near == NULL) return NULL;
    near->process = process;
    if (choose_cells(near, shape, most) && solve(near)) return near;
    free_near(near);
    return NULL;
}

// ---- fit

// Takes the contrasts of a cell's other strategies with its first one. Returns false if memory is short.
static bool add_cell(struct gaussian_process *process, const struct process_shape *shape,
                     const struct visit_time *times, size_t count) {
    struct cell_levels levels;
    if (!contrasts_levels(times, count, process->noise, &levels)) return false;
    size_t n = levels.count;
    struct process_cell *cell = &process->cells[process->cell_count++];
    *cell = (struct process_cell){*shape, process->contrast_count, n - 1, malloc(n * n * sizeof(double))};
    const double *c = levels.covariance;
    for (size_t i = 1; i < n && cell->noise != NULL; i++) {
        process->contrasts[process->contrast_count++] =
            (struct contrast){levels.strategy[i], levels.strategy[0], levels.level[i] - levels.level[0]};
        for (size_t j = 1; j <= i; j++) {
            cell->noise[(i - 1) * (n - 1) + j - 1] = c[i * n + j] - c[i * n] - c[j * n] + c[0];
        }
    }
    contrasts_free(&levels);
    return cell->noise != NULL;
}

static bool fit(struct gaussian_process *process, const struct visit_time *times, size_t count,
                const struct process_shape *shapes) {
    if (!contrasts_noise(times, count, process->strategy_count, process->noise)) return false;
    for (size_t from = 0, to; from < count; from = to) {
        to = contrasts_end_of_cell(times, count, from);
        if (!add_cell(process, &shapes[times[from].cell], times + from, to - from)) return false;
    }
    if (process->contrast_count > PROCESS_WHOLE || process->cell_count == 0) return true;
    process->whole = make_near(process, &process->cells[0].shape, SIZE_MAX);
    return process->whole != NULL;
}

struct gaussian_process *process_fit(const struct visit_time *times, size_t count,
                                     const struct process_shape *shapes,
                                     const struct process_strategy *strategies, size_t strategy_count) {
    struct gaussian_process *process = calloc(1, sizeof *process);
    if (process == NULL) return NULL;
    process->strategy_count = strategy_count;
    process->strategies = malloc((strategy_count + 1) * sizeof *process->strategies);
    process->noise = malloc((strategy_count + 1) * sizeof *process->noise);
    process->cells = malloc((count + 1) * sizeof *process->cells);
    process->contrasts = malloc((count + 1) * sizeof *process->contrasts);
    if (process->strategies != NULL && process->noise != NULL && process->cells != NULL &&
        process->contrasts != NULL) {
        memcpy(process->strategies, strategies, strategy_count * sizeof *strategies);
        if (fit(process, times, count, shapes)) return process;
    }
    process_free(process);
    return NULL;
}

void process_free(struct gaussian_process *process) {
    if (process == NULL) return;
    free_near(process->whole);
    for (size_t i = 0; i < process->cell_count; i++) free(process->cells[i].noise);
    free(process->strategies);
    free(process->noise);
    free(process->cells);
    free(process->contrasts);
    free(process);
}

const struct process_near *process_near(const struct gaussian_process *process,
                                        const struct process_shape *shape) {
    return process->whole != NULL ? process->whole : make_near(process, shape, PROCESS_NEAR);
}

void process_near_free(const struct process_near *near) {
    if (near != NULL && near != near->process->whole) free_near((struct process_near *)near);
}

// ---- prediction

// The covariances of a point with all contrasts.
static void fill_row(const struct process_near *near, const struct process_point *point, double *row) {
    const struct gaussian_process *process = near->process;
    for (size_t i = 0; i < near->cell_count; i++) {
        const struct process_cell *cell = &process->cells[near->cells[i]];
        struct shared_parts parts = parts_of(&point->shape, &cell->shape);
        for (size_t j = 0; j < cell->count; j++) {
            const struct contrast *contrast = &process->contrasts[cell->first + j];
            *row++ = covariance(process, &parts, point->strategy, contrast->strategy) -
                     covariance(process, &parts, point->strategy, contrast->reference);
        }
    }
}

// Whether two points are in the same cell, an unmeasured one.
static bool share_new_cell(const struct process_shape *a, const struct process_shape *b) {
    return a->cell == PROCESS_NO_CELL && b->cell == PROCESS_NO_CELL && a->fusion == b->fusion &&
           fabs(a->log2_bytes - b->log2_bytes) + fabs(a->log2_ratio - b->log2_ratio) < SAME_SHAPE;
}

bool process_predict(const struct process_near *near, const struct process_point *points, size_t count,
                     double *mean, double *covariances) {
    const struct gaussian_process *process = near->process;
    size_t n = near->count;
    double *solved = malloc((count * n + 1) * sizeof *solved); // by point: L^-1 times its covariances
    if (solved == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        fill_row(near, &points[i], solved + i * n);
        mean[i] = cholesky_product(solved + i * n, near->weight, n);
    }
    cholesky_forward(near->factor, n, solved, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j <= i; j++) {
            struct shared_parts parts = parts_of(&points[i].shape, &points[j].shape);
            covariances[i * count + j] = covariance(process, &parts, points[i].strategy, points[j].strategy) -
                                         cholesky_product(solved + i * n, solved + j * n, n);
            bool is_one_method = process->strategies[points[i].strategy].method ==
                                 process->strategies[points[j].strategy].method;
            if (is_one_method && share_new_cell(&points[i].shape, &points[j].shape))
                covariances[i * count + j] += in_a_cell(points[i].strategy == points[j].strategy);
        }
    }
    free(solved);
    return true;
}

bool process_means(const struct process_near *near, const struct process_point *points, size_t count,
                   double *mean) {
    double *row = malloc((near->count + 1) * sizeof *row);
    for (size_t i = 0; row != NULL && i < count; i++) {
        fill_row(near, &points[i], row);
        mean[i] = cholesky_product(row, near->weight, near->count);
    }
    free(row);
    return row != NULL;
}
