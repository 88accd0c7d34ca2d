// Losses of cells; see cell_losses.h.
#include "cell_losses.h"

#include <math.h>
#include <stdlib.h>

// The shapes of a bin for evidence_losses, and the strategies without a time in one of its cells.
struct bin_shapes {
    const struct plane *plane;
    struct evidence_shape *shapes; // NULL: out of memory
    size_t count, room;
    bool lacks_cell[NAMES_MAX]; // by index in the plane
};

// A bin of powers of two has several cells. A strategy that could not run in one of them has no level there.
static void find_lacking(struct bin_shapes *bin, size_t cell) {
    const struct plane *plane = bin->plane;
    for (size_t s = 0; s < plane->strategy_count; s++) {
        if (isnan(plane->levels[s * plane->cells + cell])) bin->lacks_cell[s] = true;
    }
}

static void add_bin_shape(void *context, const struct bin_shape *shape) {
    struct bin_shapes *bin = context;
    const struct grid_block *block = bin->plane->block;
    if (bin->count == bin->room) {
        bin->room = 2 * bin->room + 16;
        struct evidence_shape *shapes = realloc(bin->shapes, bin->room * sizeof *shapes);
        if (shapes == NULL) free(bin->shapes);
        bin->shapes = shapes;
    }
    if (bin->shapes == NULL) return;
    if (shape->levels == NULL) find_lacking(bin, shape->hidden * block->num_tokens.count + shape->tokens);
    bin->shapes[bin->count++] = (struct evidence_shape){
        block->fusion[bin->plane->fusion],
        bins_log2_size(&block->hidden_sizes, shape->hidden, shape->hidden_share),
        bins_log2_size(&block->num_tokens, shape->tokens, shape->tokens_share),
        shape->weight,
    };
}

// Appends to places[count] the indices in the plane of the strategies that were not tried in a cell, and may
// be the fastest there. Returns the new count.
static size_t add_rivals(const struct plane *plane, const struct evidence *evidence, size_t cell,
                         size_t *places, size_t count) {
    for (size_t s = 0; s < plane->strategy_count; s++) {
        bool is_untried = plane->untried[s * plane->cells + cell];
        if (is_untried && !evidence_excludes(evidence, plane->strategies[s])) places[count++] = s;
    }
    return count;
}

// Replaces the losses of the `count` strategies at these indices of the plane by losses estimated from
// launches, against the rivals, too: the indices from `count` up to `all`. False: out of memory.
static bool take_evidence(const struct evidence *evidence, const struct bin_shapes *bin, size_t hidden,
                          size_t tokens, const size_t *places, size_t count, size_t all,
                          struct loss *losses) {
    const struct plane *plane = bin->plane;
    const struct grid_block *block = plane->block;
    const struct evidence_shape own = {block->fusion[plane->fusion], log2(block->hidden_sizes.value[hidden]),
                                       log2(block->num_tokens.value[tokens]), 1};
    uint8_t strategies[NAMES_MAX];
    struct loss_figures figures[NAMES_MAX];
    for (size_t i = 0; i < all; i++) strategies[i] = plane->strategies[places[i]];
    bool ok = evidence_losses(evidence, &own, bin->shapes, bin->count, strategies, all, figures);
    for (size_t i = 0; ok && i < count; i++) {
        losses[places[i]] = (struct loss){figures[i].expected, figures[i].worst, figures[i].confidence};
    }
    return ok;
}

bool cell_losses(const struct plane *plane, const struct evidence *evidence, size_t hidden, size_t tokens,
                 struct loss *losses) {
    const struct grid_block *block = plane->block;
    const struct plane_levels levels = {plane->levels, plane->strategy_count, &block->hidden_sizes,
                                        &block->num_tokens};
    size_t places[NAMES_MAX], count = 0;
    bins_losses(&levels, &plane->bins, hidden, tokens, losses);
    if (evidence == NULL) return true;
    struct bin_shapes bin = {.plane = plane};
    bins_each_shape(&levels, &plane->bins, hidden, tokens, &bin, add_bin_shape);
    for (size_t s = 0; s < plane->strategy_count; s++) {
        bool has_evidence = evidence_covers(evidence, plane->strategies[s]);
        if (has_evidence && !isinf(losses[s].expected) && !bin.lacks_cell[s]) places[count++] = s;
    }
    size_t all = add_rivals(plane, evidence, hidden * block->num_tokens.count + tokens, places, count);
    bool ok = bin.shapes != NULL &&
              (count == 0 || take_evidence(evidence, &bin, hidden, tokens, places, count, all, losses));
    free(bin.shapes);
    return ok;
}
