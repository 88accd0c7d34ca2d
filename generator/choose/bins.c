// Losses over bins; see bins.h.
#include "bins.h"

#include <math.h>
#include <stdlib.h>

// The length, in octaves, of the part of a bin that begins at this size. A bin of powers of two has a part
// for each size: it ends at the next size or at the next power. Other bins have one part, of length 1.
static double length_of(enum lookup lookup, const struct axis *axis, size_t at) {
    if (lookup != LOOKUP_LOG2) return 1;
    double end = 2.0 * grid_power_below(axis->value[at]);
    if (at + 1 < axis->count) end = fmin(end, axis->value[at + 1]);
    return log2(end / axis->value[at]);
}

// The same length as a share of the distance to the next size. For the last size: of the distance from the
// previous one, and at most that distance, because extrapolation from two close sizes amplifies their noise.
static double reach_of(enum lookup lookup, const struct axis *axis, size_t at) {
    bool is_last = at + 1 == axis->count;
    size_t next = is_last ? at : at + 1;
    if (lookup != LOOKUP_LOG2) return 1;
    double reach = length_of(lookup, axis, at) / log2((double)axis->value[next] / axis->value[next - 1]);
    return is_last ? fmin(reach, 1) : reach;
}

struct bins_span bins_span_of(enum lookup lookup, const struct axis *axis, size_t at) {
    struct bins_span span = {at, at};
    if (lookup != LOOKUP_LOG2) return span;
    uint32_t power = grid_power_below(axis->value[at]);
    while (span.first > 0 && axis->value[span.first - 1] >= power) span.first--;
    while (span.last + 1 < axis->count && axis->value[span.last + 1] < 2 * (uint64_t)power) span.last++;
    return span;
}

static void add_node(struct bin_nodes *nodes, double share, double weight) {
    nodes->share[nodes->count] = share;
    nodes->weight[nodes->count++] = weight;
}

// The middle and the borders of the bin of one size.
static struct bin_nodes nodes_at(enum lookup lookup, const struct axis *axis, size_t at, bool below) {
    struct bin_nodes nodes = {.span = bins_span_of(lookup, axis, at), .length = length_of(lookup, axis, at)};
    add_node(&nodes, 0, lookup == LOOKUP_NEAREST ? 2 : 1);
    if (axis->count == 1 || lookup == LOOKUP_EXACT) return nodes;
    if (lookup == LOOKUP_FLOOR || lookup == LOOKUP_LOG2) {
        double reach = reach_of(lookup, axis, at);
        add_node(&nodes, reach / 2, 2);
        add_node(&nodes, reach, 1);
    } else {
        if (at > 0 || below) add_node(&nodes, -0.5, 1);
        add_node(&nodes, 0.5, 1);
    }
    return nodes;
}

struct bin_nodes *bins_nodes(enum lookup lookup, const struct axis *axis, bool below) {
    struct bin_nodes *nodes = malloc((axis->count + 1) * sizeof *nodes);
    for (size_t i = 0; nodes != NULL && i < axis->count; i++) nodes[i] = nodes_at(lookup, axis, i, below);
    return nodes;
}

// The level at `share` of the distance to the neighbour, of `count` levels that lie `stride` apart: on the
// line to the neighbour or, beyond the last level, on the line from the previous one. If the neighbour has no
// level, returns *own.
static double moved(const double *own, size_t at, size_t count, size_t stride, double share) {
    if (share == 0 || count == 1) return *own;
    bool is_beyond = share > 0 ? at + 1 == count : at == 0;
    bool goes_up = share > 0 ? !is_beyond : is_beyond;
    double neighbour = goes_up ? own[stride] : own[-(ptrdiff_t)stride];
    if (isnan(neighbour)) return *own;
    return *own + (is_beyond ? -1 : 1) * fabs(share) * (neighbour - *own);
}

// The level of a strategy at a shape of the bin: that of the cell, with the changes along both axes.
static double level_at(const struct plane_levels *plane, const double *levels,
                       const struct bin_shape *shape) {
    const double *own = levels + shape->hidden * plane->num_tokens->count + shape->tokens;
    size_t hidden_sizes = plane->hidden_sizes->count, num_tokens = plane->num_tokens->count;
    double along = moved(own, shape->tokens, num_tokens, 1, shape->tokens_share);
    double across = moved(own, shape->hidden, hidden_sizes, num_tokens, shape->hidden_share);
    return along + across - *own;
}

// Sums of losses.
struct tally {
    const struct plane_levels *plane;
    struct loss *losses;
    double weight;
};

// Adds the loss of each strategy at one shape. A strategy without a level (NAN) counts as twice as slow as
// the best.
static void add_levels(struct tally *tally, const double *levels, double weight) {
    double least = INFINITY;
    for (size_t s = 0; s < tally->plane->strategies; s++) least = levels[s] < least ? levels[s] : least;
    if (isinf(least)) return; // no strategy has a level there
    for (size_t s = 0; s < tally->plane->strategies; s++) {
        struct loss *loss = &tally->losses[s];
        double share = isnan(levels[s]) ? 1 : levels[s] == least ? 0 : exp2(levels[s] - least) - 1;
        loss->expected += weight * share;
        if (share > loss->worst) loss->worst = share;
    }
    tally->weight += weight;
}

static void add_shape(void *context, const struct bin_shape *shape) {
    struct tally *tally = context;
    const struct plane_levels *plane = tally->plane;
    size_t cells = plane->hidden_sizes->count * plane->num_tokens->count;
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

// ---- the shapes of a bin

// A function to call for the shapes of a bin, and whether the bin has any.
struct visitor {
    const struct plane_levels *plane;
    const struct bins *bins;
    void *context;
    void (*use)(void *, const struct bin_shape *);
    bool has_shapes;
};

static void visit(struct visitor *visitor, const struct bin_shape *shape) {
    visitor->has_shapes = true;
    visitor->use(visitor->context, shape);
}

static void visit_workload(struct visitor *visitor, size_t hidden, size_t tokens) {
    for (size_t i = 0; i < visitor->bins->workload_count; i++) {
        const struct bin_shape *shape = &visitor->bins->workload[i];
        if (shape->hidden == hidden && shape->tokens == tokens && shape->weight > 0) visit(visitor, shape);
    }
}

static void visit_uniformly(struct visitor *visitor, size_t hidden, size_t tokens) {
    const struct bins *bins = visitor->bins;
    const struct axis *hidden_sizes = visitor->plane->hidden_sizes, *num_tokens = visitor->plane->num_tokens;
    const struct bin_nodes *across = &bins->across[hidden], *along = &bins->along[tokens];
    double area = across->length * along->length;
    for (size_t i = 0; i < across->count; i++) {
        for (size_t j = 0; j < along->count; j++) {
            double weight = area * across->weight[i] * along->weight[j];
            const struct bin_shape shape = {hidden, tokens, across->share[i], along->share[j], weight, NULL};
            visit(visitor, &shape);
        }
    }
    for (size_t i = 0; i < bins->extra_count; i++) {
        const struct shape_levels *extra = &bins->extra[i];
        if (extra->hidden != hidden || extra->tokens != tokens) continue;
        double hidden_share = bins_share_of(hidden_sizes, hidden, extra->hidden_size);
        double tokens_share = bins_share_of(num_tokens, tokens, extra->num_tokens);
        const struct bin_shape shape = {hidden, tokens, hidden_share, tokens_share, 1, extra->levels};
        visit(visitor, &shape);
    }
}

// Calls of_part for each part of a bin.
static void visit_parts(struct visitor *visitor, size_t hidden, size_t tokens,
                        void of_part(struct visitor *, size_t, size_t)) {
    struct bins_span across = visitor->bins->across[hidden].span, along = visitor->bins->along[tokens].span;
    for (size_t h = across.first; h <= across.last; h++) {
        for (size_t t = along.first; t <= along.last; t++) of_part(visitor, h, t);
    }
}

void bins_each_shape(const struct plane_levels *plane, const struct bins *bins, size_t hidden, size_t tokens,
                     void *context, void use(void *, const struct bin_shape *)) {
    struct visitor visitor = {plane, bins, context, use, false};
    visit_parts(&visitor, hidden, tokens, visit_workload);
    if (!visitor.has_shapes) visit_parts(&visitor, hidden, tokens, visit_uniformly);
}

double bins_share_of(const struct axis *axis, size_t at, uint32_t value) {
    double own = log2(axis->value[at]), wanted = log2(value);
    if (wanted < own) return at == 0 ? 0 : (wanted - own) / (own - log2(axis->value[at - 1]));
    return at + 1 == axis->count ? 0 : (wanted - own) / (log2(axis->value[at + 1]) - own);
}

double bins_log2_size(const struct axis *axis, size_t at, double share) {
    double own = log2(axis->value[at]);
    if (share == 0 || axis->count == 1) return own;
    bool is_beyond = share > 0 ? at + 1 == axis->count : at == 0;
    bool goes_up = share > 0 ? !is_beyond : is_beyond;
    double neighbour = log2(axis->value[goes_up ? at + 1 : at - 1]);
    return own + (is_beyond ? -1 : 1) * fabs(share) * (neighbour - own);
}

void bins_losses(const struct plane_levels *plane, const struct bins *bins, size_t hidden, size_t tokens,
                 struct loss *losses) {
    if (plane->strategies == 0) return;
    size_t cells = plane->hidden_sizes->count * plane->num_tokens->count;
    struct tally tally = {plane, losses, 0};
    for (size_t s = 0; s < plane->strategies; s++) {
        double own = plane->levels[s * cells + hidden * plane->num_tokens->count + tokens];
        losses[s] = (struct loss){isnan(own) ? INFINITY : 0, 0, NAN};
    }
    bins_each_shape(plane, bins, hidden, tokens, &tally, add_shape);
    for (size_t s = 0; s < plane->strategies && tally.weight > 0; s++) losses[s].expected /= tally.weight;
}
