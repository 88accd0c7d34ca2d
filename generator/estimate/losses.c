// Losses over a bin, by draws; see losses.h.
#include "losses.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "cholesky.h"

enum { PAIRS = 256, DRAWS = 2 * PAIRS }; // each draw, and the same one mirrored
static const double JITTER = 1e-9;
static const double WORST = 0.95;

// The next number of a sequence that is the same on every machine: SplitMix64 (Steele, Lea, Flood, 2014).
static uint64_t next_bits(uint64_t *state) {
    uint64_t bits = *state += 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
}

// An approximately normal number: the sum of twelve uniform ones has the same moments up to the third. It is
// the same on every machine, unlike a logarithm.
static double next_normal(uint64_t *state) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)(next_bits(state) >> 11) * 0x1p-53;
    return sum;
}

static int by_value(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

// A bin while it is drawn. loss[strategy * DRAWS + draw].
struct drawing {
    const double *mean, *factor, *weights;
    size_t shapes, strategies;
    double *normal, *moved, *level, *loss;
};

// Adds the loss of each strategy at one shape of a draw.
static void add_shape(const struct drawing *drawing, const double *level, double weight, size_t draw) {
    double least = INFINITY;
    for (size_t s = 0; s < drawing->strategies; s++) least = fmin(least, level[s]);
    for (size_t s = 0; s < drawing->strategies; s++) {
        if (level[s] > least) drawing->loss[s * DRAWS + draw] += weight * (exp2(level[s] - least) - 1);
    }
}

// One draw: the mean and `side` times the deviation.
static void add_draw(const struct drawing *drawing, double side, size_t draw) {
    size_t n = drawing->shapes * drawing->strategies;
    for (size_t i = 0; i < n; i++) drawing->level[i] = drawing->mean[i] + side * drawing->moved[i];
    for (size_t k = 0; k < drawing->shapes; k++) {
        add_shape(drawing, drawing->level + k * drawing->strategies, drawing->weights[k], draw);
    }
}

static void draw_all(const struct drawing *drawing) {
    uint64_t state = 0;
    size_t n = drawing->shapes * drawing->strategies;
    for (size_t pair = 0; pair < PAIRS; pair++) {
        for (size_t i = 0; i < n; i++) drawing->normal[i] = next_normal(&state);
        for (size_t i = 0; i < n; i++) {
            drawing->moved[i] = cholesky_product(drawing->factor + i * n, drawing->normal, i + 1);
        }
        add_draw(drawing, 1, 2 * pair);
        add_draw(drawing, -1, 2 * pair + 1);
    }
}

static struct loss_figures figures_of(double *loss, double weight) {
    struct loss_figures figures = {0, 0, 0};
    for (size_t draw = 0; draw < DRAWS; draw++) {
        loss[draw] /= weight;
        figures.expected += loss[draw] / DRAWS;
        if (loss[draw] <= LOSSES_RIGHT) figures.confidence += 1.0 / DRAWS;
    }
    qsort(loss, DRAWS, sizeof *loss, by_value);
    figures.worst = loss[(size_t)(WORST * DRAWS)];
    return figures;
}

bool losses_over_bin(const double *mean, double *covariance, size_t shapes, size_t strategies,
                     const double *weights, struct loss_figures *figures) {
    size_t n = shapes * strategies;
    double *room = calloc(3 * n + strategies * DRAWS + 1, sizeof *room);
    for (size_t i = 0; i < n; i++) covariance[i * n + i] += JITTER;
    if (room == NULL || !cholesky_factor(covariance, n)) {
        free(room);
        return false;
    }
    struct drawing drawing = {mean, covariance, weights,      shapes,      strategies,
                              room, room + n,   room + 2 * n, room + 3 * n};
    draw_all(&drawing);
    double weight = 0;
    for (size_t k = 0; k < shapes; k++) weight += weights[k];
    for (size_t s = 0; s < strategies; s++) figures[s] = figures_of(drawing.loss + s * DRAWS, weight);
    free(room);
    return true;
}
