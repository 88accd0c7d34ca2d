// Losses over bins; see bins.h.
#include "bins.h"

#include <math.h>

// A shape of a bin on one axis: halfway to the neighbour in direction `step` (0: the cell itself; 2: the
// neighbour itself), and its weight.
struct place {
    int step;
    double weight;
};

enum { PLACES_MAX = 3 };

// The middle and borders of the bin on an axis of `count` sizes.
static size_t places_of(enum lookup lookup, size_t at, size_t count, struct place places[PLACES_MAX]) {
    size_t found = 0;
    places[found++] = (struct place){0, lookup == LOOKUP_NEAREST ? 2 : 1};
    if (lookup == LOOKUP_NEAREST && at > 0) places[found++] = (struct place){-1, 1};
    if (lookup == LOOKUP_NEAREST && at + 1 < count) places[found++] = (struct place){1, 1};
    if (lookup == LOOKUP_FLOOR && at + 1 < count) {
        places[found++] = (struct place){1, 2};
        places[found++] = (struct place){2, 1};
    }
    return found;
}

// The level at `own`, moved by `step` halves towards its neighbour.
static double moved(double own, double neighbour, int step) {
    if (step == 0 || isnan(neighbour)) return own;
    return step == 2 || step == -2 ? neighbour : (own + neighbour) / 2;
}

static size_t neighbour_of(size_t at, int step) {
    return step > 0 ? at + 1 : step < 0 ? at - 1 : at;
}

// The level of a strategy at a place of the bin: first along the tokens, then along the hidden sizes.
static double level_at(const struct plane *plane, const double *levels, size_t hidden, size_t tokens,
                       int hidden_step, int tokens_step) {
    const double *row = levels + hidden * plane->num_tokens;
    double own = moved(row[tokens], row[neighbour_of(tokens, tokens_step)], tokens_step);
    if (hidden_step == 0) return own;
    const double *other = levels + neighbour_of(hidden, hidden_step) * plane->num_tokens;
    double there = moved(other[tokens], other[neighbour_of(tokens, tokens_step)], tokens_step);
    return moved(own, there, hidden_step);
}

// Adds what each strategy loses at one shape, where strategy s takes level(s); NAN: it cannot do it.
struct tally {
    struct loss *losses;
    size_t strategies;
    double weight;
};

static void add_shape(struct tally *tally, const double *levels, double weight) {
    double least = INFINITY;
    for (size_t s = 0; s < tally->strategies; s++) least = fmin(least, levels[s]);
    for (size_t s = 0; s < tally->strategies; s++) {
        struct loss *loss = &tally->losses[s];
        if (isinf(loss->expected)) continue;
        double share = isnan(levels[s]) ? 1 : exp2(levels[s] - least) - 1;
        loss->expected += weight * share;
        loss->worst = fmax(loss->worst, share);
    }
    tally->weight += weight;
}

void bins_losses(const struct plane *plane, enum lookup lookup, size_t hidden, size_t tokens,
                 const struct shape_levels *extra, size_t extra_count, struct loss *losses) {
    struct place across[PLACES_MAX], along[PLACES_MAX];
    size_t across_count = places_of(lookup, hidden, plane->hidden_sizes, across);
    size_t along_count = places_of(lookup, tokens, plane->num_tokens, along);
    size_t cells = plane->hidden_sizes * plane->num_tokens;
    struct tally tally = {losses, plane->strategies, 0};
    double levels[plane->strategies];
    for (size_t s = 0; s < plane->strategies; s++) {
        double own = plane->levels[s * cells + hidden * plane->num_tokens + tokens];
        losses[s] = (struct loss){isnan(own) ? INFINITY : 0, 0};
    }
    for (size_t i = 0; i < across_count; i++) {
        for (size_t j = 0; j < along_count; j++) {
            for (size_t s = 0; s < plane->strategies; s++) {
                levels[s] = isinf(losses[s].expected) ? NAN
                                                      : level_at(plane, plane->levels + s * cells, hidden, tokens,
                                                                 across[i].step, along[j].step);
            }
            add_shape(&tally, levels, across[i].weight * along[j].weight);
        }
    }
    for (size_t i = 0; i < extra_count; i++) {
        if (extra[i].hidden == hidden && extra[i].tokens == tokens) add_shape(&tally, extra[i].levels, 1);
    }
    for (size_t s = 0; s < plane->strategies; s++) losses[s].expected /= tally.weight;
}
