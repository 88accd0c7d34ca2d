// Planes laid out; see planes.h.
#include "planes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_barred_loopback(const struct inputs *of, uint8_t placement) {
    return placement == of->loopback && !of->selection->loopback;
}

static bool competes(const struct inputs *of, const struct row *row) {
    return !is_barred_loopback(of, row->placement) && of->selection->may_win[row->strategy];
}

static bool is_in_plane(const struct plane *plane, const struct cell_key *key) {
    return key->fusion == plane->block->fusion[plane->fusion] && grid_block_is_of(plane->block, key);
}

// ---- rows to their cells

static bool refuse_twice(const struct rows *rows, size_t earlier, size_t later, const struct lists *lists,
                         struct problem *problem) {
    const struct row *a = &rows->row[earlier], *b = &rows->row[later];
    return problem_set(problem, "%s:%u: the same cell and strategy, %s, as in %s:%u; give one time",
                       rows_file_of(rows, later)->path, b->line, lists->strategies.name[b->strategy],
                       rows_file_of(rows, earlier)->path, a->line);
}

// The position of the row of this strategy in a list of rows, or the list's end.
static uint32_t *find_strategy(const struct rows *rows, const struct chains *chains, uint32_t *first,
                               uint8_t strategy) {
    while (*first != NO_ROW && rows->row[*first].strategy != strategy) first = &chains->next[*first];
    return first;
}

// The number of rows like this one, if it does not compete; else NULL.
static size_t *left_out_count(const struct inputs *of, const struct row *row, struct table *table) {
    if (competes(of, row)) return NULL;
    return is_barred_loopback(of, row->placement) ? &table->loopback_rows
                                                  : &table->rows_of_others[row->strategy];
}

// The list of the cell of row `index`; NULL: it has no cell.
static uint32_t *find_list(const struct inputs *of, struct grid *grid, size_t index) {
    size_t cell = grid_find(grid, &of->rows->row[index].key);
    return cell == GRID_NO_CELL ? NULL : &of->chains.first[cell];
}

bool chains_fill(struct inputs *of, struct table *table, struct problem *problem) {
    const struct rows *rows = of->rows;
    struct chains *chains = &of->chains;
    memset(chains->first, 0xff, (table->grid.cell_count + 1) * sizeof *chains->first);
    uint32_t *first = NULL; // of the cell; the strategies of a cell mostly follow each other
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (i == 0 || !cell_key_equal(&row->key, &rows->row[i - 1].key))
            first = find_list(of, &table->grid, i);
        if (first == NULL) {
            chains->elsewhere[chains->elsewhere_count++] = (uint32_t)i;
            continue;
        }
        uint32_t *other = find_strategy(rows, chains, first, row->strategy);
        size_t *count = left_out_count(of, row, table);
        if (*other != NO_ROW) {
            if (!of->selection->least) return refuse_twice(rows, *other, i, of->lists, problem);
            if (row->time_us >= rows->row[*other].time_us) continue;
            size_t *replaced = left_out_count(of, &rows->row[*other], table);
            if (replaced != NULL) --*replaced;
            chains->next[i] = chains->next[*other];
        } else {
            chains->next[i] = NO_ROW;
        }
        if (count != NULL) ++*count;
        *other = (uint32_t)i;
    }
    return true;
}

// ---- the cells

// Whether the time was predicted for the plane.
static bool is_predicted_in(const struct plane *plane, const struct derived_time *derived) {
    return derived->predicted && is_in_plane(plane, &derived->key);
}

// Finds the strategies that have a time in the plane, or are predicted or untried there, and may win, in the
// order of the list, so that the order of rows has no effect.
static void find_strategies(struct plane *plane) {
    const struct inputs *of = plane->of;
    bool is_found[NAMES_MAX] = {false};
    for (size_t cell = plane->first_cell; cell < plane->first_cell + plane->cells; cell++) {
        for (uint32_t at = of->chains.first[cell]; at != NO_ROW; at = of->chains.next[at]) {
            const struct row *row = &of->rows->row[at];
            if (competes(of, row)) is_found[row->strategy] = true;
        }
    }
    const struct selection *selection = of->selection;
    for (size_t i = 0; i < selection->untried_count; i++) {
        const struct untried_strategy *untried = &selection->untried[i];
        bool counts = selection->may_win[untried->strategy] && is_in_plane(plane, &untried->key);
        is_found[untried->strategy] = is_found[untried->strategy] || counts;
    }
    for (size_t i = 0; i < selection->derived_count; i++) {
        const struct derived_time *derived = &selection->derived[i];
        bool counts = selection->may_win[derived->strategy] && is_predicted_in(plane, derived);
        is_found[derived->strategy] = is_found[derived->strategy] || counts;
        plane->has_predicted = plane->has_predicted || counts;
    }
    memset(plane->index_of, NAME_NONE, sizeof plane->index_of);
    for (size_t s = 0; s < NAMES_MAX; s++) {
        if (!is_found[s]) continue;
        plane->index_of[s] = (uint8_t)plane->strategy_count;
        plane->strategies[plane->strategy_count++] = (uint8_t)s;
    }
}

static bool allocate(struct plane *plane) {
    size_t levels = plane->strategy_count * plane->cells;
    plane->levels = malloc((levels + 1) * sizeof *plane->levels);
    plane->row_of = malloc((levels + 1) * sizeof *plane->row_of);
    plane->untried = calloc(levels + 1, sizeof *plane->untried);
    if (plane->levels == NULL || plane->row_of == NULL || plane->untried == NULL) return false;
    memset(plane->row_of, 0xff, (levels + 1) * sizeof *plane->row_of);
    for (size_t i = 0; i < levels; i++) plane->levels[i] = NAN;
    if (!plane->has_predicted) return true;
    plane->predicted = calloc(levels + 1, sizeof(const struct derived_time *));
    return plane->predicted != NULL;
}

static void lay_out_rows(struct plane *plane) {
    const struct inputs *of = plane->of;
    for (size_t cell = 0; cell < plane->cells; cell++) {
        uint32_t first = of->chains.first[plane->first_cell + cell];
        for (uint32_t at = first; at != NO_ROW; at = of->chains.next[at]) {
            const struct row *row = &of->rows->row[at];
            if (!competes(of, row)) continue;
            size_t level = plane->index_of[row->strategy] * plane->cells + cell;
            plane->levels[level] = log2(row->time_us);
            plane->row_of[level] = at;
        }
    }
}

enum { NO_LEVEL = SIZE_MAX };

// The index in `levels` of a strategy at a cell; NO_LEVEL: the plane does not have it.
static size_t level_of(const struct plane *plane, const struct cell_key *key, uint8_t strategy) {
    if (!is_in_plane(plane, key) || plane->index_of[strategy] == NAME_NONE) return NO_LEVEL;
    size_t cell = grid_cell_number(plane->block, plane->fusion, key);
    if (cell == GRID_NO_CELL) return NO_LEVEL;
    return plane->index_of[strategy] * plane->cells + cell - plane->first_cell;
}

// Enters derived times, at cells without measured ones.
static void lay_out_derived(struct plane *plane) {
    const struct selection *selection = plane->of->selection;
    for (size_t i = 0; i < selection->derived_count; i++) {
        const struct derived_time *derived = &selection->derived[i];
        size_t at = level_of(plane, &derived->key, derived->strategy);
        if (at == NO_LEVEL || plane->row_of[at] != NO_ROW) continue;
        if (is_barred_loopback(plane->of, derived->placement)) continue;
        plane->levels[at] = log2(derived->time_us);
        plane->derived_placement = derived->placement;
        if (derived->predicted && plane->predicted != NULL) plane->predicted[at] = derived;
    }
}

// Marks untried strategies, at cells where they have no level.
static void lay_out_untried(struct plane *plane) {
    const struct selection *selection = plane->of->selection;
    for (size_t i = 0; i < selection->untried_count; i++) {
        const struct untried_strategy *untried = &selection->untried[i];
        size_t at = level_of(plane, &untried->key, untried->strategy);
        if (at != NO_LEVEL) plane->untried[at] = isnan(plane->levels[at]);
    }
}

// ---- shapes outside of the grid

// The cell to which the lookup sends a shape; false: none.
static bool find_cell_of(const struct plane *plane, uint32_t hidden_size, uint32_t num_tokens, size_t *hidden,
                         size_t *tokens) {
    enum lookup lookup = plane->of->selection->lookup;
    *hidden = grid_answering(&plane->block->hidden_sizes, hidden_size, lookup);
    *tokens = grid_answering(&plane->block->num_tokens, num_tokens, lookup);
    return *hidden != GRID_NO_CELL && *tokens != GRID_NO_CELL;
}

// Adds a shape outside of the grid, without levels, to a cell's bin. False: out of memory.
static bool add_extra(struct plane *plane, const struct cell_key *key, size_t hidden, size_t tokens) {
    size_t count = plane->bins.extra_count, width = plane->strategy_count;
    struct shape_levels *extra = realloc(plane->extra, (count + 1) * sizeof *extra);
    if (extra != NULL) plane->extra = extra;
    double *levels = realloc(plane->extra_levels, (count + 1) * width * sizeof *levels);
    if (levels != NULL) plane->extra_levels = levels;
    uint32_t *row_of = realloc(plane->extra_rows, (count + 1) * width * sizeof *row_of);
    if (row_of != NULL) plane->extra_rows = row_of;
    if (extra == NULL || levels == NULL || row_of == NULL) return false;
    for (size_t s = 0; s < width; s++) {
        levels[count * width + s] = NAN;
        row_of[count * width + s] = NO_ROW;
    }
    extra[count] = (struct shape_levels){NULL, hidden, tokens, key->hidden_size, key->num_tokens};
    plane->bins.extra_count++;
    return true;
}

// Enters the rows of shapes outside of the grid, by shape. False: out of memory.
static bool lay_out_elsewhere(struct plane *plane) {
    const struct inputs *of = plane->of;
    const struct chains *chains = &of->chains;
    const struct cell_key *last = NULL;
    for (size_t i = 0; i < chains->elsewhere_count; i++) {
        const struct row *row = &of->rows->row[chains->elsewhere[i]];
        size_t hidden, tokens;
        if (!is_in_plane(plane, &row->key) || plane->index_of[row->strategy] == NAME_NONE ||
            !competes(of, row) ||
            !find_cell_of(plane, row->key.hidden_size, row->key.num_tokens, &hidden, &tokens)) {
            continue;
        }
        bool is_new = last == NULL || !cell_key_equal(last, &row->key);
        if (is_new && !add_extra(plane, &row->key, hidden, tokens)) return false;
        last = &row->key;
        size_t at = (plane->bins.extra_count - 1) * plane->strategy_count + plane->index_of[row->strategy];
        plane->extra_levels[at] = log2(row->time_us);
        plane->extra_rows[at] = chains->elsewhere[i];
    }
    for (size_t i = 0; i < plane->bins.extra_count; i++) {
        plane->extra[i].levels = plane->extra_levels + i * plane->strategy_count;
    }
    plane->bins.extra = plane->extra;
    return true;
}

// ---- cells with an unmeasured shape of their own

static bool has_level(const struct plane *plane, size_t cell) {
    for (size_t s = 0; s < plane->strategy_count; s++) {
        if (!isnan(plane->levels[s * plane->cells + cell])) return true;
    }
    return false;
}

// A measured shape in a cell's bin, and its distance from the cell, in octaves.
struct stand_in {
    double distance;
    size_t cell, extra; // one of the two, the other SIZE_MAX
};

static void find_nearest_cell(const struct plane *plane, size_t hidden, size_t tokens,
                              struct stand_in *nearest) {
    const struct axis *hidden_sizes = &plane->block->hidden_sizes, *num_tokens = &plane->block->num_tokens;
    struct bins_span across = bins_span_of(plane->bins.lookup, hidden_sizes, hidden);
    struct bins_span along = bins_span_of(plane->bins.lookup, num_tokens, tokens);
    for (size_t h = hidden; h <= across.last; h++) {
        double from_hidden = log2((double)hidden_sizes->value[h] / hidden_sizes->value[hidden]);
        if (from_hidden >= nearest->distance) break; // as do all larger sizes
        for (size_t t = tokens; t <= along.last; t++) {
            double distance = from_hidden + log2((double)num_tokens->value[t] / num_tokens->value[tokens]);
            size_t cell = h * num_tokens->count + t;
            if (distance >= nearest->distance) break;
            if (has_level(plane, cell)) *nearest = (struct stand_in){distance, cell, SIZE_MAX};
        }
    }
}

static void find_nearest_extra(const struct plane *plane, size_t hidden, size_t tokens,
                               struct stand_in *nearest) {
    const struct grid_block *block = plane->block;
    for (size_t i = 0; i < plane->bins.extra_count; i++) {
        const struct shape_levels *extra = &plane->extra[i];
        if (extra->hidden != hidden || extra->tokens != tokens) continue;
        double distance = log2((double)extra->hidden_size / block->hidden_sizes.value[hidden]) +
                          log2((double)extra->num_tokens / block->num_tokens.value[tokens]);
        if (distance < nearest->distance) *nearest = (struct stand_in){distance, SIZE_MAX, i};
    }
}

static void stand_in_for(struct plane *plane, size_t cell, const struct stand_in *shape) {
    for (size_t s = 0; s < plane->strategy_count; s++) {
        size_t to = s * plane->cells + cell;
        if (shape->extra != SIZE_MAX) {
            size_t from = shape->extra * plane->strategy_count + s;
            plane->levels[to] = plane->extra_levels[from];
            plane->row_of[to] = plane->extra_rows[from];
        } else {
            size_t from = s * plane->cells + shape->cell;
            plane->levels[to] = plane->levels[from];
            plane->row_of[to] = plane->row_of[from];
            if (plane->predicted != NULL) plane->predicted[to] = plane->predicted[from];
        }
    }
}

// The lookup of a table by powers of two sends size 2880 to the cell of 2048. If that cell was not measured,
// it gets the times of the nearest measured shape in its bin.
static void lay_out_stand_ins(struct plane *plane) {
    size_t count = plane->block->num_tokens.count;
    for (size_t cell = 0; cell < plane->cells && plane->bins.lookup == LOOKUP_LOG2; cell++) {
        if (has_level(plane, cell)) continue;
        struct stand_in nearest = {INFINITY, SIZE_MAX, SIZE_MAX};
        find_nearest_cell(plane, cell / count, cell % count, &nearest);
        find_nearest_extra(plane, cell / count, cell % count, &nearest);
        if (!isinf(nearest.distance)) stand_in_for(plane, cell, &nearest);
    }
}

// ---- the workload

// The levels of a measured shape outside of the grid; NULL: it was not measured.
static const double *measured_levels(const struct plane *plane, const struct workload_shape *shape) {
    for (size_t i = 0; i < plane->bins.extra_count; i++) {
        const struct shape_levels *extra = &plane->extra[i];
        if (extra->hidden_size == shape->hidden_size && extra->num_tokens == shape->num_tokens) {
            return extra->levels;
        }
    }
    return NULL;
}

// Finds the cells of the workload's shapes. False: out of memory.
static bool lay_out_workload(struct plane *plane) {
    const struct selection *selection = plane->of->selection;
    const struct axis *hidden_sizes = &plane->block->hidden_sizes, *num_tokens = &plane->block->num_tokens;
    plane->workload = malloc((selection->workload_count + 1) * sizeof *plane->workload);
    if (plane->workload == NULL) return false;
    for (size_t i = 0; i < selection->workload_count; i++) {
        const struct workload_shape *shape = &selection->workload[i];
        size_t hidden, tokens;
        if (!find_cell_of(plane, shape->hidden_size, shape->num_tokens, &hidden, &tokens)) continue;
        plane->workload[plane->bins.workload_count++] =
            (struct bin_shape){hidden,
                               tokens,
                               bins_share_of(hidden_sizes, hidden, shape->hidden_size),
                               bins_share_of(num_tokens, tokens, shape->num_tokens),
                               shape->weight,
                               measured_levels(plane, shape)};
    }
    plane->bins.workload = plane->workload;
    return true;
}

// ---- all of it

bool plane_make(struct plane *plane, const struct inputs *of, const struct grid_block *block, size_t fusion) {
    *plane = (struct plane){
        .of = of,
        .block = block,
        .fusion = fusion,
        .cells = block->hidden_sizes.count * block->num_tokens.count,
        .bins.lookup = of->selection->lookup,
    };
    plane->first_cell = block->first_cell + fusion * plane->cells;
    find_strategies(plane);
    plane->bins.across = plane->across = bins_nodes(plane->bins.lookup, &block->hidden_sizes, true);
    plane->bins.along = plane->along = bins_nodes(plane->bins.lookup, &block->num_tokens, false);
    if (!allocate(plane) || plane->across == NULL || plane->along == NULL) return false;
    lay_out_rows(plane);
    lay_out_derived(plane);
    lay_out_untried(plane);
    if (!lay_out_elsewhere(plane)) return false;
    lay_out_stand_ins(plane);
    return lay_out_workload(plane);
}

void plane_drop(struct plane *plane, size_t strategy) {
    for (size_t cell = 0; cell < plane->cells; cell++) {
        plane->levels[strategy * plane->cells + cell] = NAN;
        plane->row_of[strategy * plane->cells + cell] = NO_ROW;
        plane->untried[strategy * plane->cells + cell] = false;
    }
    for (size_t i = 0; i < plane->bins.extra_count; i++) {
        plane->extra_levels[i * plane->strategy_count + strategy] = NAN;
        plane->extra_rows[i * plane->strategy_count + strategy] = NO_ROW;
    }
}

void plane_free(struct plane *plane) {
    free(plane->levels);
    free(plane->row_of);
    free(plane->untried);
    free(plane->predicted);
    free(plane->extra);
    free(plane->extra_levels);
    free(plane->extra_rows);
    free(plane->workload);
    free(plane->across);
    free(plane->along);
}
