// The Gaussian process of strategies' levels; see gaussian_process.h.
#include "gaussian_process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cholesky.h"

// Standard deviations in log2. Choices hardly depend on them within a factor of 1.5.
static const double OWN_SD = 0.18;        // of a strategy around its library's
static const double FAMILY_SD = 0.45;     // of a library's algorithms, all alike
static const double CELL_SD = 0.04;       // of one cell
static const double OFFSET_SD = 1;        // of a strategy, at all shapes
static const double SLOPE_SD = 0.15;      // per octave of bytes
static const double FUSED_SD = 0.1;       // of a strategy with a fusion
static const double OCTAVES_OF_BYTES = 2; // lengths of the smooth terms
static const double OCTAVES_OF_RATIO = 20;
static const double BETWEEN_FUSIONS = 0.98; // correlation of the smooth terms
static const double MIDDLE_OF_BYTES = 16;   // log2: where the slope turns
static const double JITTER = 1e-9;

// An observation: how much slower `point` is than `reference`, a strategy of the same cell.
struct contrast {
    struct process_shape shape;
    uint8_t strategy, reference;
};

struct gaussian_process {
    const uint8_t *family;
    size_t strategies, count, room;
    double *noise;
    struct contrast *contrasts;
    double *factor; // of the observations' covariance, count * count
    double *weight; // its inverse times the observations
};

// ---- covariance

static double matern(double distance) {
    double scaled = sqrt(3) * distance;
    return (1 + scaled) * exp(-scaled);
}

// The parts of the covariance of two shapes that no strategy changes.
struct shared_parts {
    double smooth, line;
    bool is_same_fusion, is_same_cell;
};

static struct shared_parts parts_of(const struct process_shape *a, const struct process_shape *b) {
    struct shared_parts parts;
    parts.is_same_fusion = a->fusion == b->fusion;
    parts.is_same_cell = a->cell == b->cell && a->cell != PROCESS_NO_CELL;
    parts.smooth = matern(fabs(a->log2_bytes - b->log2_bytes) / OCTAVES_OF_BYTES) *
                   matern(fabs(a->log2_ratio - b->log2_ratio) / OCTAVES_OF_RATIO);
    if (!parts.is_same_fusion) parts.smooth *= BETWEEN_FUSIONS;
    parts.line = OFFSET_SD * OFFSET_SD +
                 SLOPE_SD * SLOPE_SD * (a->log2_bytes - MIDDLE_OF_BYTES) * (b->log2_bytes - MIDDLE_OF_BYTES);
    if (parts.is_same_fusion) parts.line += FUSED_SD * FUSED_SD;
    return parts;
}

static double covariance(const struct gaussian_process *process, const struct shared_parts *parts, uint8_t s,
                         uint8_t t) {
    double sum = 0;
    if (process->family[s] != 0 && process->family[s] == process->family[t]) {
        sum += FAMILY_SD * FAMILY_SD * parts->smooth;
    }
    if (s == t) sum += OWN_SD * OWN_SD * parts->smooth + parts->line;
    if (s == t && parts->is_same_cell) sum += CELL_SD * CELL_SD;
    return sum;
}

static double between_contrasts(const struct gaussian_process *process, const struct contrast *a,
                                const struct contrast *b) {
    struct shared_parts parts = parts_of(&a->shape, &b->shape);
    return covariance(process, &parts, a->strategy, b->strategy) -
           covariance(process, &parts, a->strategy, b->reference) -
           covariance(process, &parts, a->reference, b->strategy) +
           covariance(process, &parts, a->reference, b->reference);
}

// ---- fit

static bool make_room(struct gaussian_process *process, size_t more) {
    size_t needed = process->count + more;
    if (needed <= process->room) return true;
    size_t room = needed * 2;
    struct contrast *contrasts = realloc(process->contrasts, room * sizeof *contrasts);
    if (contrasts != NULL) process->contrasts = contrasts;
    double *weight = realloc(process->weight, room * sizeof *weight);
    if (weight != NULL) process->weight = weight;
    if (contrasts == NULL || weight == NULL) return false;
    process->room = room;
    return true;
}

// The covariances of the noise of one cell's contrasts, kept until the matrix has room for them.
struct noise_block {
    size_t first;
    struct cell_levels levels;
};

static bool add_cell(struct gaussian_process *process, const struct process_shape *shape,
                     struct noise_block *block, const struct visit_time *times, size_t count) {
    block->first = process->count;
    if (!contrasts_levels(times, count, process->noise, &block->levels)) return false;
    if (!make_room(process, block->levels.count)) return false;
    for (size_t i = 1; i < block->levels.count; i++) {
        process->contrasts[process->count] =
            (struct contrast){*shape, block->levels.strategy[i], block->levels.strategy[0]};
        process->weight[process->count++] = block->levels.level[i] - block->levels.level[0];
    }
    return true;
}

// The covariance of the noise of two contrasts with the same reference.
static double noise_between(const struct cell_levels *levels, size_t i, size_t j) {
    const double *c = levels->covariance;
    size_t n = levels->count;
    return c[i * n + j] - c[i * n] - c[j * n] + c[0];
}

static bool factor_covariance(struct gaussian_process *process, const struct noise_block *blocks,
                              size_t block_count) {
    size_t n = process->count;
    process->factor = malloc((n * n + 1) * sizeof *process->factor);
    if (process->factor == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            process->factor[i * n + j] =
                between_contrasts(process, &process->contrasts[i], &process->contrasts[j]);
        }
        process->factor[i * n + i] += JITTER;
    }
    for (size_t b = 0; b < block_count; b++) {
        size_t first = blocks[b].first;
        for (size_t i = 1; i < blocks[b].levels.count; i++) {
            for (size_t j = 1; j <= i; j++) {
                process->factor[(first + i - 1) * n + first + j - 1] +=
                    noise_between(&blocks[b].levels, i, j);
            }
        }
    }
    return cholesky_factor(process->factor, n);
}

static size_t end_of_cell(const struct visit_time *times, size_t count, size_t from) {
    size_t to = from;
    while (to < count && times[to].cell == times[from].cell) to++;
    return to;
}

static bool fit(struct gaussian_process *process, const struct visit_time *times, size_t count,
                const struct process_shape *shapes, struct noise_block *blocks) {
    size_t block_count = 0;
    if (!contrasts_noise(times, count, process->strategies, process->noise)) return false;
    bool is_fitted = true;
    for (size_t from = 0, to; from < count && is_fitted; from = to) {
        to = end_of_cell(times, count, from);
        is_fitted =
            add_cell(process, &shapes[times[from].cell], &blocks[block_count++], times + from, to - from);
    }
    is_fitted = is_fitted && factor_covariance(process, blocks, block_count);
    for (size_t b = 0; b < block_count; b++) contrasts_free(&blocks[b].levels);
    if (!is_fitted) return false;
    cholesky_forward(process->factor, process->count, process->weight, 1);
    cholesky_backward(process->factor, process->count, process->weight);
    return true;
}

struct gaussian_process *process_fit(const struct visit_time *times, size_t count,
                                     const struct process_shape *shapes, size_t cells, const uint8_t *family,
                                     size_t strategies) {
    struct gaussian_process *process = calloc(1, sizeof *process);
    struct noise_block *blocks = calloc(cells + 1, sizeof *blocks);
    bool is_fitted = false;
    if (process != NULL && blocks != NULL) {
        uint8_t *own = malloc(strategies + 1);
        *process = (struct gaussian_process){.family = own, .strategies = strategies};
        process->noise = malloc((strategies + 1) * sizeof *process->noise);
        if (own != NULL && process->noise != NULL) {
            memcpy(own, family, strategies);
            is_fitted = fit(process, times, count, shapes, blocks);
        }
    }
    free(blocks);
    if (is_fitted) return process;
    process_free(process);
    return NULL;
}

void process_free(struct gaussian_process *process) {
    if (process == NULL) return;
    free((void *)process->family);
    free(process->noise);
    free(process->contrasts);
    free(process->factor);
    free(process->weight);
    free(process);
}

const double *process_noise(const struct gaussian_process *process) {
    return process->noise;
}

size_t process_strategies(const struct gaussian_process *process) {
    return process->strategies;
}

// ---- prediction

static double with_contrast(const struct gaussian_process *process, const struct process_point *point,
                            const struct contrast *contrast) {
    struct shared_parts parts = parts_of(&point->shape, &contrast->shape);
    return covariance(process, &parts, point->strategy, contrast->strategy) -
           covariance(process, &parts, point->strategy, contrast->reference);
}

bool process_predict(const struct gaussian_process *process, const struct process_point *points, size_t count,
                     double *mean, double *covariances) {
    size_t n = process->count;
    double *solved = malloc((count * n + 1) * sizeof *solved); // by point: L^-1 times its covariances
    if (solved == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        double *row = solved + i * n;
        for (size_t j = 0; j < n; j++) row[j] = with_contrast(process, &points[i], &process->contrasts[j]);
        mean[i] = cholesky_product(row, process->weight, n);
    }
    cholesky_forward(process->factor, n, solved, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j <= i; j++) {
            struct shared_parts parts = parts_of(&points[i].shape, &points[j].shape);
            covariances[i * count + j] = covariance(process, &parts, points[i].strategy, points[j].strategy) -
                                         cholesky_product(solved + i * n, solved + j * n, n);
        }
        // An unmeasured cell has something of its own, too.
        if (points[i].shape.cell == PROCESS_NO_CELL) covariances[i * count + i] += CELL_SD * CELL_SD;
    }
    free(solved);
    return true;
}
