// Losses over bins; see bins.h.
#include "bins.h"

#include <math.h>
#include <stdbool.h>

// A place of a bin on one axis, as in struct bin_shape, and its weight.
struct place {
    double share, weight;
};

enum { PLACES_MAX = 3 };

// The middle and borders of the bin on an axis of `count` sizes.
static size_t places_of(enum lookup lookup, size_t at, size_t count, struct place places[PLACES_MAX]) {
    size_t found = 0;
    places[found++] = (struct place){0, lookup == LOOKUP_NEAREST ? 2 : 1};
    if (lookup == LOOKUP_NEAREST && at > 0) places[found++] = (struct place){-0.5, 1};
    if (lookup == LOOKUP_NEAREST && at + 1 < count) places[found++] = (struct place){0.5, 1};
    if (lookup == LOOKUP_FLOOR && at + 1 < count) {
        places[found++] = (struct place){0.5, 2};
        places[found++] = (struct place){1, 1};
    }
    return found;
}

// The level `share` of the way from `own` to its neighbour.
static double moved(double own, double neighbour, double share) {
    return share == 0 || isnan(neighbour) ? own : own + fabs(share) * (neighbour - own);
}

// The place that lies in the direction of `share`, where the axis goes on there.
static size_t neighbour_of(size_t at, double share, size_t count) {
    if (share > 0 && at + 1 < count) return at + 1;
    return share < 0 && at > 0 ? at - 1 : at;
}

// The level of a strategy at a shape of the bin: first along the tokens, then along the hidden sizes.
static double level_at(const struct plane *plane, const double *levels, const struct bin_shape *shape) {
    size_t tokens = neighbour_of(shape->tokens, shape->tokens_share, plane->num_tokens);
    size_t hidden = neighbour_of(shape->hidden, shape->hidden_share, plane->hidden_sizes);
    const double *row = levels + shape->hidden * plane->num_tokens,
                 *other = levels + hidden * plane->num_tokens;
    double own = moved(row[shape->tokens], row[tokens], shape->tokens_share);
    if (shape->hidden_share == 0) return own;
    return moved(own, moved(other[shape->tokens], other[tokens], shape->tokens_share), shape->hidden_share);
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
    size_t across_count = places_of(bins->lookup, hidden, tally->plane->hidden_sizes, across);
    size_t along_count = places_of(bins->lookup, tokens, tally->plane->num_tokens, along);
    for (size_t i = 0; i < across_count; i++) {
        for (size_t j = 0; j < along_count; j++) {
            const struct bin_shape shape = {hidden, tokens, across[i].share, along[j].share,
                                            across[i].weight * along[j].weight};
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
