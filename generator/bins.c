// Losses over bins; see bins.h.
#include "bins.h"

#include <math.h>
#include <stdbool.h>

// A place of a bin on one axis, as in struct bin_shape, and its weight.
struct place {
    double share, weight;
};

enum { PLACES_MAX = 3 };

// The middle and borders of the bin on an axis of `count` sizes. Larger sizes than the largest go to it, too:
// its bin is taken to reach as far up as down. `below`: so do smaller ones than the smallest.
static size_t places_of(enum lookup lookup, size_t at, size_t count, bool below,
                        struct place places[PLACES_MAX]) {
    size_t found = 0;
    places[found++] = (struct place){0, lookup == LOOKUP_NEAREST ? 2 : 1};
    if (count == 1 || lookup == LOOKUP_EXACT) return found;
    if (lookup == LOOKUP_FLOOR) {
        places[found++] = (struct place){0.5, 2};
        places[found++] = (struct place){1, 1};
    } else {
        if (at > 0 || below) places[found++] = (struct place){-0.5, 1};
        places[found++] = (struct place){0.5, 1};
    }
    return found;
}

// The level at `share` of the way to the next of `count` levels, `stride` apart: on the line to it or, beyond
// the last, on the line from the one before. Where there is no such line, `own` counts.
static double moved(const double *own, size_t at, size_t count, size_t stride, double share) {
    if (share == 0 || count == 1) return *own;
    bool is_beyond = share > 0 ? at + 1 == count : at == 0;
    bool goes_up = share > 0 ? !is_beyond : is_beyond;
    double neighbour = goes_up ? own[stride] : own[-(ptrdiff_t)stride];
    if (isnan(neighbour)) return *own;
    return *own + (is_beyond ? -1 : 1) * fabs(share) * (neighbour - *own);
}

// The level of a strategy at a shape of the bin, as far as either axis moves it.
static double level_at(const struct plane *plane, const double *levels, const struct bin_shape *shape) {
    const double *own = levels + shape->hidden * plane->num_tokens + shape->tokens;
    double along = moved(own, shape->tokens, plane->num_tokens, 1, shape->tokens_share);
    double across = moved(own, shape->hidden, plane->hidden_sizes, plane->num_tokens, shape->hidden_share);
    return along + across - *own;
}

// Losses that are being summed up.
struct tally {
    const struct plane *plane;
    struct loss *losses;
    double weight;
};

// Adds what each strategy loses at one shape. What cannot do it (NAN) counts as taking twice the time.
static void add_levels(struct tally *tally, const double *levels, double weight) {
    double least = INFINITY;
    for (size_t s = 0; s < tally->plane->strategies; s++) least = fmin(least, levels[s]);
    for (size_t s = 0; s < tally->plane->strategies; s++) {
        struct loss *loss = &tally->losses[s];
        double share = isnan(levels[s]) ? 1 : exp2(levels[s] - least) - 1;
        loss->expected += weight * share;
        loss->worst = fmax(loss->worst, share);
    }
    tally->weight += weight;
}

static void add_shape(struct tally *tally, const struct bin_shape *shape) {
    const struct plane *plane = tally->plane;
    size_t cells = plane->hidden_sizes * plane->num_tokens;
    if (shape->levels != NULL) {
        add_levels(tally, shape->levels, shape->weight);
        return;
    }
    double levels[plane->strategies];
    for (size_t s = 0; s < plane->strategies; s++) {
        bool does = !isinf(tally->losses[s].expected);
        levels[s] = does ? level_at(plane, plane->levels + s * cells, shape) : NAN;
    }
    add_levels(tally, levels, shape->weight);
}

static void add_workload(struct tally *tally, const struct bins *bins, size_t hidden, size_t tokens) {
    for (size_t i = 0; i < bins->workload_count; i++) {
        const struct bin_shape *shape = &bins->workload[i];
        if (shape->hidden == hidden && shape->tokens == tokens) add_shape(tally, shape);
    }
}

static void add_uniformly(struct tally *tally, const struct bins *bins, size_t hidden, size_t tokens) {
    struct place across[PLACES_MAX], along[PLACES_MAX];
    size_t across_count = places_of(bins->lookup, hidden, tally->plane->hidden_sizes, true, across);
    size_t along_count = places_of(bins->lookup, tokens, tally->plane->num_tokens, false, along);
    for (size_t i = 0; i < across_count; i++) {
        for (size_t j = 0; j < along_count; j++) {
            const struct bin_shape shape = {
                hidden, tokens, across[i].share, along[j].share, across[i].weight * along[j].weight, NULL};
            add_shape(tally, &shape);
        }
    }
    for (size_t i = 0; i < bins->extra_count; i++) {
        const struct shape_levels *extra = &bins->extra[i];
        if (extra->hidden == hidden && extra->tokens == tokens) add_levels(tally, extra->levels, 1);
    }
}

void bins_losses(const struct plane *plane, const struct bins *bins, size_t hidden, size_t tokens,
                 struct loss *losses) {
    if (plane->strategies == 0) return;
    size_t cells = plane->hidden_sizes * plane->num_tokens;
    struct tally tally = {plane, losses, 0};
    for (size_t s = 0; s < plane->strategies; s++) {
        double own = plane->levels[s * cells + hidden * plane->num_tokens + tokens];
        losses[s] = (struct loss){isnan(own) ? INFINITY : 0, 0};
    }
    add_workload(&tally, bins, hidden, tokens);
    if (tally.weight == 0) add_uniformly(&tally, bins, hidden, tokens);
    for (size_t s = 0; s < plane->strategies; s++) losses[s].expected /= tally.weight;
}
