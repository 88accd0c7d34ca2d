// Contrasts of strategies within launches; see contrasts.h.
#include "contrasts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cholesky.h"

static const double SHIFT_SD = 0.3;   // of a visit, in log2
static const double NU = 4;           // degrees of freedom of the Student weights
static const double PRIOR_SD = 0.08;  // of a strategy's noise, in log2
static const double PRIOR_WEIGHT = 8; // the weight of PRIOR_SD, in observations
static const double CELL_WEIGHT = 4;  // the weight of the noise of all cells in that of one
static const size_t ALL_STRATEGIES = SIZE_MAX;
enum { REWEIGHTINGS = 8, ROUNDS = 3, SCALINGS = 20 };

// The equations of one cell while they are solved.
struct equations {
    const struct visit_time *times;
    size_t count;
    const double *noise;
    size_t strategies;                          // of the cell
    uint8_t strategy[CONTRASTS_STRATEGIES_MAX]; // their indices in the list
    size_t place[256];                          // of a strategy in the cell
    double *weight;                             // by time: Student's, 1 at first
    double *matrix, *level;                     // strategies * strategies, strategies
};

static void collect_strategies(struct equations *cell) {
    bool is_seen[256] = {false};
    for (size_t i = 0; i < cell->count; i++) is_seen[cell->times[i].strategy] = true;
    for (size_t s = 0; s < 256 && cell->strategies < CONTRASTS_STRATEGIES_MAX; s++) {
        if (!is_seen[s]) continue;
        cell->place[s] = cell->strategies;
        cell->strategy[cell->strategies++] = (uint8_t)s;
    }
}

static size_t end_of_visit(const struct equations *cell, size_t from) {
    size_t to = from;
    while (to < cell->count && cell->times[to].launch == cell->times[from].launch) to++;
    return to;
}

static double precision(const struct equations *cell, size_t i) {
    double noise = cell->noise[cell->times[i].strategy];
    return cell->weight[i] / (noise * noise);
}

// Adds one visit to the normal equations, with its shift eliminated.
static void add_visit(struct equations *cell, size_t from, size_t to) {
    double sum = 1 / (SHIFT_SD * SHIFT_SD), weighted = 0;
    for (size_t i = from; i < to; i++) {
        sum += precision(cell, i);
        weighted += precision(cell, i) * cell->times[i].level;
    }
    for (size_t i = from; i < to; i++) {
        double w = precision(cell, i);
        size_t row = cell->place[cell->times[i].strategy];
        cell->matrix[row * cell->strategies + row] += w;
        cell->level[row] += w * (cell->times[i].level - weighted / sum);
        for (size_t j = from; j < to; j++) {
            size_t column = cell->place[cell->times[j].strategy];
            cell->matrix[row * cell->strategies + column] -= w * precision(cell, j) / sum;
        }
    }
}

// The shift of a visit, given the levels.
static double shift_of(const struct equations *cell, size_t from, size_t to) {
    double sum = 1 / (SHIFT_SD * SHIFT_SD), weighted = 0;
    for (size_t i = from; i < to; i++) {
        double above = cell->times[i].level - cell->level[cell->place[cell->times[i].strategy]];
        sum += precision(cell, i);
        weighted += precision(cell, i) * above;
    }
    return weighted / sum;
}

// Calls use(cell, i, residual, context) for each time.
static void each_residual(struct equations *cell, void *context,
                          void use(struct equations *, size_t, double, void *)) {
    for (size_t from = 0, to; from < cell->count; from = to) {
        to = end_of_visit(cell, from);
        double shift = shift_of(cell, from, to);
        for (size_t i = from; i < to; i++) {
            double level = cell->level[cell->place[cell->times[i].strategy]];
            use(cell, i, cell->times[i].level - level - shift, context);
        }
    }
}

static double student_weight(double residual, double noise) {
    double z = residual / noise;
    return (NU + 1) / (NU + z * z);
}

static void reweight(struct equations *cell, size_t i, double residual, void *context) {
    (void)context;
    cell->weight[i] = student_weight(residual, cell->noise[cell->times[i].strategy]);
}

// Solves the equations with the present weights; the matrix becomes its factor.
static bool solve(struct equations *cell) {
    size_t n = cell->strategies;
    memset(cell->matrix, 0, n * n * sizeof *cell->matrix);
    memset(cell->level, 0, n * sizeof *cell->level);
    for (size_t from = 0, to; from < cell->count; from = to) {
        to = end_of_visit(cell, from);
        add_visit(cell, from, to);
    }
    if (!cholesky_factor(cell->matrix, n)) return false;
    cholesky_forward(cell->matrix, n, cell->level, 1);
    cholesky_backward(cell->matrix, n, cell->level);
    return true;
}

// Computes the factor of the matrix, the levels and the weights of a cell. The caller frees weight, matrix
// and level.
static bool solve_cell(struct equations *cell, const struct visit_time *times, size_t count,
                       const double *noise) {
    *cell = (struct equations){.times = times, .count = count, .noise = noise};
    collect_strategies(cell);
    cell->weight = malloc(count * sizeof *cell->weight);
    cell->matrix = malloc(cell->strategies * cell->strategies * sizeof *cell->matrix);
    cell->level = malloc(cell->strategies * sizeof *cell->level);
    if (!cell->weight || !cell->matrix || !cell->level) return false;
    for (size_t i = 0; i < count; i++) cell->weight[i] = 1;
    for (int round = 0; round < REWEIGHTINGS; round++) {
        if (!solve(cell)) return false;
        each_residual(cell, NULL, reweight);
    }
    return true;
}

static void free_cell(struct equations *cell) {
    free(cell->weight);
    free(cell->matrix);
    free(cell->level);
}

size_t contrasts_end_of_cell(const struct visit_time *times, size_t count, size_t from) {
    size_t to = from;
    while (to < count && times[to].cell == times[from].cell) to++;
    return to;
}

// ---- noise

// The residuals of all cells, by strategy, each scaled up for the degrees of freedom of the fit.
struct residuals {
    double *of_time;
    double factor;
    size_t cell_first;
};

static void keep_residual(struct equations *cell, size_t i, double residual, void *context) {
    (void)cell;
    struct residuals *kept = context;
    kept->of_time[kept->cell_first + i] = residual * kept->factor;
}

static size_t count_visits(const struct equations *cell) {
    size_t visits = 0;
    for (size_t from = 0; from < cell->count; from = end_of_visit(cell, from)) visits++;
    return visits;
}

// Computes the residuals of a cell; NAN: a single visit or strategy has none.
static bool take_residuals(const struct visit_time *times, size_t count, const double *noise,
                           struct residuals *kept) {
    struct equations cell;
    bool is_solved = solve_cell(&cell, times, count, noise);
    if (is_solved) {
        size_t taken = count_visits(&cell) + cell.strategies - 1;
        kept->factor = count > taken ? sqrt((double)count / (double)(count - taken)) : NAN;
        each_residual(&cell, kept, keep_residual);
    }
    free_cell(&cell);
    return is_solved;
}

// The scale of residuals of a strategy, or of all, by the same Student weights, with a prior.
static double scale_of(const struct visit_time *times, const double *residual, size_t count, size_t strategy,
                       double prior) {
    double variance = prior * prior;
    for (int round = 0; round < SCALINGS; round++) {
        double squares = PRIOR_WEIGHT * prior * prior, weight = PRIOR_WEIGHT;
        for (size_t i = 0; i < count; i++) {
            bool counts = strategy == ALL_STRATEGIES || times[i].strategy == strategy;
            if (!counts || isnan(residual[i])) continue;
            squares += student_weight(residual[i], sqrt(variance)) * residual[i] * residual[i];
            weight += 1;
        }
        variance = squares / weight;
    }
    return sqrt(variance);
}

bool contrasts_noise(const struct visit_time *times, size_t count, size_t strategies, double *noise) {
    double *residual = malloc((count + 1) * sizeof *residual);
    if (residual == NULL) return false;
    for (size_t s = 0; s < strategies; s++) noise[s] = PRIOR_SD;
    bool is_solved = true;
    for (int round = 0; round < ROUNDS && is_solved; round++) {
        for (size_t from = 0, to; from < count && is_solved; from = to) {
            to = contrasts_end_of_cell(times, count, from);
            struct residuals kept = {residual, NAN, from};
            is_solved = take_residuals(times + from, to - from, noise, &kept);
        }
        double common = is_solved ? scale_of(times, residual, count, ALL_STRATEGIES, PRIOR_SD) : PRIOR_SD;
        for (size_t s = 0; s < strategies && is_solved; s++) {
            noise[s] = scale_of(times, residual, count, s, common);
        }
    }
    free(residual);
    return is_solved;
}

// ---- levels

static void add_square(struct equations *cell, size_t i, double residual, void *context) {
    double z = residual / cell->noise[cell->times[i].strategy];
    *(double *)context += cell->weight[i] * z * z;
}

// The variance of the noise in this cell, as a multiple of that in all; at least 1. Large messages may vary
// more.
static double spread_of(struct equations *cell) {
    double squares = CELL_WEIGHT;
    size_t taken = count_visits(cell) + cell->strategies - 1;
    each_residual(cell, &squares, add_square);
    return fmax(1, squares / (CELL_WEIGHT + (double)(cell->count - taken)));
}

bool contrasts_levels(const struct visit_time *times, size_t count, const double *noise,
                      struct cell_levels *levels) {
    struct equations cell;
    *levels = (struct cell_levels){0};
    bool is_solved = solve_cell(&cell, times, count, noise);
    size_t n = cell.strategies;
    levels->strategy = malloc(n);
    levels->covariance = malloc(n * n * sizeof *levels->covariance);
    if (is_solved && levels->strategy && levels->covariance) {
        memcpy(levels->strategy, cell.strategy, n);
        cholesky_invert(cell.matrix, n, levels->covariance);
        double spread = spread_of(&cell);
        for (size_t i = 0; i < n * n; i++) levels->covariance[i] *= spread;
        levels->count = n;
        levels->level = cell.level;
        cell.level = NULL;
    } else {
        is_solved = false;
    }
    free_cell(&cell);
    if (!is_solved) contrasts_free(levels);
    return is_solved;
}

void contrasts_free(struct cell_levels *levels) {
    free(levels->strategy);
    free(levels->level);
    free(levels->covariance);
    *levels = (struct cell_levels){0};
}
