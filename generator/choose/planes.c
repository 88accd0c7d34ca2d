// Planes laid out; see planes.h.
#include "planes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_barred_loopback(const struct material *of, uint8_t placement) {
    return placement == of->loopback && !of->selection->loopback;
}

static bool competes(const struct material *of, const struct row *row) {
    return !is_barred_loopback(of, row->placement) && of->selection->may_win[row->strategy];
}

static bool is_in_plane(const struct layout *layout, const struct cell_key *key) {
    const struct grid_block *block = layout->block;
    return key->world_size == block->world_size && key->dtype == block->dtype && key->op == block->op &&
           key->mode == block->mode && key->fusion == block->fusion[layout->fusion];
}

// ---- the cells

static void add_strategy(struct layout *layout, uint8_t strategy) {
    if (layout->place_of[strategy] != NAME_NONE) return;
    layout->place_of[strategy] = (uint8_t)layout->strategy_count;
    layout->strategies[layout->strategy_count++] = strategy;
}

// The strategies that have a time in the plane and may win; counts the rows of others.
static void find_strategies(struct layout *layout, struct left_out *left_out) {
    const struct material *of = layout->of;
    memset(layout->place_of, NAME_NONE, sizeof layout->place_of);
    for (size_t cell = layout->first_cell; cell < layout->first_cell + layout->cells; cell++) {
        for (uint32_t at = of->chains.first[cell]; at != NO_ROW; at = of->chains.next[at]) {
            const struct row *row = &of->rows->row[at];
            if (competes(of, row)) {
                add_strategy(layout, row->strategy);
            } else if (is_barred_loopback(of, row->placement)) {
                left_out->loopback_rows++;
            } else {
                left_out->rows_of_others[row->strategy]++;
            }
        }
    }
}

static bool allocate(struct layout *layout) {
    size_t levels = layout->strategy_count * layout->cells;
    layout->levels = malloc((levels + 1) * sizeof *layout->levels);
    layout->spreads = calloc(levels + 1, sizeof *layout->spreads);
    layout->noises = calloc(levels + 1, sizeof *layout->noises);
    layout->row_of = malloc((levels + 1) * sizeof *layout->row_of);
    if (layout->levels == NULL || layout->spreads == NULL || layout->noises == NULL ||
        layout->row_of == NULL) {
        return false;
    }
    memset(layout->row_of, 0xff, (levels + 1) * sizeof *layout->row_of);
    for (size_t i = 0; i < levels; i++) layout->levels[i] = NAN;
    return true;
}

static void lay_out_rows(struct layout *layout) {
    const struct material *of = layout->of;
    for (size_t cell = 0; cell < layout->cells; cell++) {
        uint32_t first = of->chains.first[layout->first_cell + cell];
        for (uint32_t at = first; at != NO_ROW; at = of->chains.next[at]) {
            const struct row *row = &of->rows->row[at];
            if (!competes(of, row)) continue;
            size_t level = layout->place_of[row->strategy] * layout->cells + cell;
            layout->levels[level] = log2(row->time_us);
            layout->row_of[level] = at;
        }
    }
}

// What was not measured, and follows from what was.
static void lay_out_derived(struct layout *layout) {
    const struct selection *selection = layout->of->selection;
    for (size_t i = 0; i < selection->derived_count; i++) {
        const struct derived_time *derived = &selection->derived[i];
        if (!is_in_plane(layout, &derived->key) || layout->place_of[derived->strategy] == NAME_NONE) continue;
        if (is_barred_loopback(layout->of, derived->placement)) continue;
        size_t cell = grid_place(layout->block, layout->fusion, &derived->key);
        if (cell == GRID_NO_CELL) continue;
        size_t at = layout->place_of[derived->strategy] * layout->cells + cell - layout->first_cell;
        if (layout->row_of[at] != NO_ROW) continue;
        layout->levels[at] = log2(derived->time_us);
        layout->spreads[at] = derived->spread;
        layout->noises[at] = derived->noise;
        layout->derived_placement = derived->placement;
    }
}

// ---- shapes that are no cell

// The cell that answers for a shape; false where none does.
static bool find_answering(const struct layout *layout, uint32_t hidden_size, uint32_t num_tokens,
                           size_t *hidden, size_t *tokens) {
    enum lookup lookup = layout->of->selection->lookup;
    *hidden = grid_answering(&layout->block->hidden_sizes, hidden_size, lookup);
    *tokens = grid_answering(&layout->block->num_tokens, num_tokens, lookup);
    return *hidden != GRID_NO_CELL && *tokens != GRID_NO_CELL;
}

// Adds a shape that a cell answers for, of which nothing is known yet. False: out of memory.
static bool add_extra(struct layout *layout, const struct cell_key *key, size_t hidden, size_t tokens) {
    size_t count = layout->bins.extra_count, width = layout->strategy_count;
    struct shape_levels *extra = realloc(layout->extra, (count + 1) * sizeof *extra);
    if (extra != NULL) layout->extra = extra;
    double *levels = realloc(layout->extra_levels, (count + 1) * width * sizeof *levels);
    if (levels != NULL) layout->extra_levels = levels;
    uint32_t *row_of = realloc(layout->extra_rows, (count + 1) * width * sizeof *row_of);
    if (row_of != NULL) layout->extra_rows = row_of;
    if (extra == NULL || levels == NULL || row_of == NULL) return false;
    for (size_t s = 0; s < width; s++) {
        levels[count * width + s] = NAN;
        row_of[count * width + s] = NO_ROW;
    }
    extra[count] = (struct shape_levels){NULL, hidden, tokens, key->hidden_size, key->num_tokens};
    layout->bins.extra_count++;
    return true;
}

// Rows of shapes that are no cell, gathered by shape.
static bool lay_out_elsewhere(struct layout *layout) {
    const struct material *of = layout->of;
    const struct chains *chains = &of->chains;
    const struct cell_key *last = NULL;
    for (size_t i = 0; i < chains->elsewhere_count; i++) {
        const struct row *row = &of->rows->row[chains->elsewhere[i]];
        size_t hidden, tokens;
        if (!is_in_plane(layout, &row->key) || layout->place_of[row->strategy] == NAME_NONE ||
            !competes(of, row) ||
            !find_answering(layout, row->key.hidden_size, row->key.num_tokens, &hidden, &tokens)) {
            continue;
        }
        bool is_new = last == NULL || !cell_key_equal(last, &row->key);
        if (is_new && !add_extra(layout, &row->key, hidden, tokens)) return false;
        last = &row->key;
        size_t at = (layout->bins.extra_count - 1) * layout->strategy_count + layout->place_of[row->strategy];
        layout->extra_levels[at] = log2(row->time_us);
        layout->extra_rows[at] = chains->elsewhere[i];
    }
    for (size_t i = 0; i < layout->bins.extra_count; i++) {
        layout->extra[i].levels = layout->extra_levels + i * layout->strategy_count;
    }
    layout->bins.extra = layout->extra;
    return true;
}

// ---- cells whose own shape is unmeasured

static bool has_level(const struct layout *layout, size_t cell) {
    for (size_t s = 0; s < layout->strategy_count; s++) {
        if (!isnan(layout->levels[s * layout->cells + cell])) return true;
    }
    return false;
}

// A shape whose levels may be used for a cell, and its distance from the cell, in octaves.
struct stand_in {
    double distance;
    size_t cell, extra; // one of the two, the other SIZE_MAX
};

static void find_nearest_cell(const struct layout *layout, size_t hidden, size_t tokens,
                              struct stand_in *nearest) {
    const struct axis *hidden_sizes = &layout->block->hidden_sizes, *num_tokens = &layout->block->num_tokens;
    struct bins_span across = bins_span_of(layout->bins.lookup, hidden_sizes, hidden);
    struct bins_span along = bins_span_of(layout->bins.lookup, num_tokens, tokens);
    for (size_t h = hidden; h <= across.last; h++) {
        for (size_t t = tokens; t <= along.last; t++) {
            double distance = log2((double)hidden_sizes->value[h] / hidden_sizes->value[hidden]) +
                              log2((double)num_tokens->value[t] / num_tokens->value[tokens]);
            size_t cell = h * num_tokens->count + t;
            if (distance >= nearest->distance || !has_level(layout, cell)) continue;
            *nearest = (struct stand_in){distance, cell, SIZE_MAX};
        }
    }
}

static void find_nearest_extra(const struct layout *layout, size_t hidden, size_t tokens,
                               struct stand_in *nearest) {
    const struct grid_block *block = layout->block;
    for (size_t i = 0; i < layout->bins.extra_count; i++) {
        const struct shape_levels *extra = &layout->extra[i];
        if (extra->hidden != hidden || extra->tokens != tokens) continue;
        double distance = log2((double)extra->hidden_size / block->hidden_sizes.value[hidden]) +
                          log2((double)extra->num_tokens / block->num_tokens.value[tokens]);
        if (distance < nearest->distance) *nearest = (struct stand_in){distance, SIZE_MAX, i};
    }
}

static void stand_in_for(struct layout *layout, size_t cell, const struct stand_in *shape) {
    for (size_t s = 0; s < layout->strategy_count; s++) {
        size_t to = s * layout->cells + cell;
        if (shape->extra != SIZE_MAX) {
            size_t from = shape->extra * layout->strategy_count + s;
            layout->levels[to] = layout->extra_levels[from];
            layout->row_of[to] = layout->extra_rows[from];
        } else {
            size_t from = s * layout->cells + shape->cell;
            layout->levels[to] = layout->levels[from];
            layout->spreads[to] = layout->spreads[from];
            layout->noises[to] = layout->noises[from];
            layout->row_of[to] = layout->row_of[from];
        }
    }
}

// The lookup of a table by powers of two sends 2880 to the cell of 2048, measured or not; so the times at
// 2880 count for that cell, too.
static void lay_out_stand_ins(struct layout *layout) {
    size_t count = layout->block->num_tokens.count;
    for (size_t cell = 0; cell < layout->cells && layout->bins.lookup == LOOKUP_LOG2; cell++) {
        if (has_level(layout, cell)) continue;
        struct stand_in nearest = {INFINITY, SIZE_MAX, SIZE_MAX};
        find_nearest_cell(layout, cell / count, cell % count, &nearest);
        find_nearest_extra(layout, cell / count, cell % count, &nearest);
        if (!isinf(nearest.distance)) stand_in_for(layout, cell, &nearest);
    }
}

// ---- the workload

// How far `value` lies from the size at `place` of an axis towards its neighbour, as in struct bin_shape.
static double share_of(const struct axis *axis, size_t place, uint32_t value) {
    double own = log2(axis->value[place]), asked = log2(value);
    if (asked < own) return place == 0 ? 0 : (asked - own) / (own - log2(axis->value[place - 1]));
    return place + 1 == axis->count ? 0 : (asked - own) / (log2(axis->value[place + 1]) - own);
}

// The levels of a shape that is no cell, if it was measured; else NULL.
static const double *measured_levels(const struct layout *layout, const struct workload_shape *shape) {
    for (size_t i = 0; i < layout->bins.extra_count; i++) {
        const struct shape_levels *extra = &layout->extra[i];
        if (extra->hidden_size == shape->hidden_size && extra->num_tokens == shape->num_tokens) {
            return extra->levels;
        }
    }
    return NULL;
}

// The shapes of the workload, by the cells to which the lookup sends them.
static bool lay_out_workload(struct layout *layout) {
    const struct selection *selection = layout->of->selection;
    const struct axis *hidden_sizes = &layout->block->hidden_sizes, *num_tokens = &layout->block->num_tokens;
    layout->workload = malloc((selection->workload_count + 1) * sizeof *layout->workload);
    if (layout->workload == NULL) return false;
    for (size_t i = 0; i < selection->workload_count; i++) {
        const struct workload_shape *shape = &selection->workload[i];
        size_t hidden, tokens;
        if (!find_answering(layout, shape->hidden_size, shape->num_tokens, &hidden, &tokens)) continue;
        layout->workload[layout->bins.workload_count++] =
            (struct bin_shape){hidden,
                               tokens,
                               share_of(hidden_sizes, hidden, shape->hidden_size),
                               share_of(num_tokens, tokens, shape->num_tokens),
                               shape->weight,
                               measured_levels(layout, shape)};
    }
    layout->bins.workload = layout->workload;
    return true;
}

// ---- all of it

bool layout_make(struct layout *layout, const struct material *of, const struct grid_block *block,
                 size_t fusion, struct left_out *left_out) {
    *layout = (struct layout){
        .of = of,
        .block = block,
        .fusion = fusion,
        .cells = block->hidden_sizes.count * block->num_tokens.count,
        .bins.lookup = of->selection->lookup,
    };
    layout->first_cell = block->first_cell + fusion * layout->cells;
    find_strategies(layout, left_out);
    if (!allocate(layout)) return false;
    lay_out_rows(layout);
    lay_out_derived(layout);
    if (!lay_out_elsewhere(layout)) return false;
    lay_out_stand_ins(layout);
    return lay_out_workload(layout);
}

void layout_drop(struct layout *layout, size_t strategy) {
    for (size_t cell = 0; cell < layout->cells; cell++) {
        layout->levels[strategy * layout->cells + cell] = NAN;
        layout->row_of[strategy * layout->cells + cell] = NO_ROW;
    }
    for (size_t i = 0; i < layout->bins.extra_count; i++) {
        layout->extra_levels[i * layout->strategy_count + strategy] = NAN;
        layout->extra_rows[i * layout->strategy_count + strategy] = NO_ROW;
    }
}

void layout_free(struct layout *layout) {
    free(layout->levels);
    free(layout->spreads);
    free(layout->noises);
    free(layout->row_of);
    free(layout->extra);
    free(layout->extra_levels);
    free(layout->extra_rows);
    free(layout->workload);
}
