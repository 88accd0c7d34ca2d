// Rows to the cells of a table; see table.h, and select.c for the rule.
//
// A plane (one block and fusion) is chosen at a time: the levels of all its strategies are laid out as one
// array, what was measured beside what is derived; every cell gets the losses of its bin; then each row of
// token counts is chosen together.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "borders.h"
#include "large.h"
#include "numerics.h"
#include "parallel.h"
#include "select.h"
#include "table.h"

enum { NO_ROW = UINT32_MAX };

// The rows of every cell, as lists: first[cell] is a row, next[row] another one of its cell. Rows of shapes
// that are no cell are in `elsewhere`, in their own order.
struct chains {
    uint32_t *first, *next, *elsewhere;
    size_t elsewhere_count;
};

// What did not compete.
struct left_out {
    size_t loopback_rows, rows_of_others[NAMES_MAX];
};

struct choosing {
    const struct rows *rows;
    const struct selection *selection;
    const struct lists *lists;
    uint8_t loopback; // the place of that name in the list of placements
    struct chains chains;
    struct table *table;
    uint8_t *incumbents; // by cell; NAME_NONE: none. NULL: no table was there
    struct plane_place {
        size_t block, fusion;
        struct left_out left_out;
        bool failed; // out of memory
    } * places;
    size_t place_count;
};

// One plane while it is chosen.
struct choosing_plane {
    const struct choosing *choosing;
    const struct grid_block *block;
    size_t fusion, first_cell, cells;
    uint8_t strategies[NAMES_MAX], place_of[NAMES_MAX];
    size_t strategy_count;
    double *levels, *spreads; // [strategy][cell]; spread 0: measured
    uint8_t derived_placement;
    uint32_t *row_of; // [strategy][cell], or NO_ROW
    struct shape_levels *extra;
    double *extra_levels; // [extra][strategy]
    uint32_t *extra_rows; // the same; NO_ROW: none
    struct bin_shape *workload;
    struct bins bins;
};

// ---- rows to their cells

static bool refuse_twice(const struct rows *rows, size_t earlier, size_t later, const struct lists *lists,
                         struct problem *problem) {
    const struct row *a = &rows->row[earlier], *b = &rows->row[later];
    return problem_set(problem,
                       "%s:%u: the same cell and strategy, %s, as in %s:%u; one time each would be right",
                       rows_file_of(rows, later)->path, b->line, lists->strategies.name[b->strategy],
                       rows_file_of(rows, earlier)->path, a->line);
}

// Where the row of this strategy stands in a list of rows, or the list's end.
static uint32_t *find_strategy(const struct rows *rows, const struct chains *chains, uint32_t *first,
                               uint8_t strategy) {
    while (*first != NO_ROW && rows->row[*first].strategy != strategy) first = &chains->next[*first];
    return first;
}

// Enters every row into the list of its cell; of repeated ones the least, or none: then they are a problem.
static bool chain_rows(const struct rows *rows, struct grid *grid, struct chains *chains, bool least,
                       const struct lists *lists, struct problem *problem) {
    memset(chains->first, 0xff, (grid->cell_count + 1) * sizeof *chains->first);
    uint32_t *first = NULL; // of the cell; the strategies of a cell mostly follow each other
    for (size_t i = 0; i < rows->count; i++) {
        bool as_before = i > 0 && cell_key_equal(&rows->row[i].key, &rows->row[i - 1].key);
        if (!as_before) {
            size_t cell = grid_find(grid, &rows->row[i].key);
            first = cell == GRID_NO_CELL ? NULL : &chains->first[cell];
        }
        if (first == NULL) {
            chains->elsewhere[chains->elsewhere_count++] = (uint32_t)i;
            continue;
        }
        uint32_t *other = find_strategy(rows, chains, first, rows->row[i].strategy);
        if (*other != NO_ROW) {
            if (!least) return refuse_twice(rows, *other, i, lists, problem);
            if (rows->row[i].time_us >= rows->row[*other].time_us) continue;
            chains->next[i] = chains->next[*other];
        } else {
            chains->next[i] = NO_ROW;
        }
        *other = (uint32_t)i;
    }
    return true;
}

static bool is_barred_loopback(const struct choosing *choosing, uint8_t placement) {
    return placement == choosing->loopback && !choosing->selection->loopback;
}

static bool competes(const struct choosing *choosing, const struct row *row) {
    return !is_barred_loopback(choosing, row->placement) && choosing->selection->may_win[row->strategy];
}

// ---- a plane's levels

static bool is_in_plane(const struct choosing_plane *plane, const struct cell_key *key) {
    const struct grid_block *block = plane->block;
    return key->world_size == block->world_size && key->dtype == block->dtype && key->op == block->op &&
           key->mode == block->mode && key->fusion == block->fusion[plane->fusion];
}

static void add_strategy(struct choosing_plane *plane, uint8_t strategy) {
    if (plane->place_of[strategy] != NAME_NONE) return;
    plane->place_of[strategy] = (uint8_t)plane->strategy_count;
    plane->strategies[plane->strategy_count++] = strategy;
}

// The strategies that have a time in the plane and may win; counts the rows of others.
static void find_strategies(struct choosing_plane *plane, struct left_out *left_out) {
    const struct choosing *choosing = plane->choosing;
    memset(plane->place_of, NAME_NONE, sizeof plane->place_of);
    for (size_t cell = plane->first_cell; cell < plane->first_cell + plane->cells; cell++) {
        uint32_t row = choosing->chains.first[cell];
        for (; row != NO_ROW; row = choosing->chains.next[row]) {
            const struct row *of = &choosing->rows->row[row];
            if (competes(choosing, of)) {
                add_strategy(plane, of->strategy);
            } else if (is_barred_loopback(choosing, of->placement)) {
                left_out->loopback_rows++;
            } else {
                left_out->rows_of_others[of->strategy]++;
            }
        }
    }
}

static bool allocate_plane(struct choosing_plane *plane) {
    size_t levels = plane->strategy_count * plane->cells;
    plane->levels = malloc((levels + 1) * sizeof *plane->levels);
    plane->spreads = calloc(levels + 1, sizeof *plane->spreads);
    plane->row_of = malloc((levels + 1) * sizeof *plane->row_of);
    if (plane->levels == NULL || plane->spreads == NULL || plane->row_of == NULL) return false;
    memset(plane->row_of, 0xff, (levels + 1) * sizeof *plane->row_of);
    for (size_t i = 0; i < levels; i++) plane->levels[i] = NAN;
    return true;
}

static void lay_out_rows(struct choosing_plane *plane) {
    const struct choosing *choosing = plane->choosing;
    for (size_t cell = 0; cell < plane->cells; cell++) {
        uint32_t row = choosing->chains.first[plane->first_cell + cell];
        for (; row != NO_ROW; row = choosing->chains.next[row]) {
            const struct row *of = &choosing->rows->row[row];
            if (!competes(choosing, of)) continue;
            size_t at = plane->place_of[of->strategy] * plane->cells + cell;
            plane->levels[at] = log2(of->time_us);
            plane->row_of[at] = row;
        }
    }
}

// What was not measured, and follows from what was.
static void lay_out_derived(struct choosing_plane *plane) {
    const struct selection *selection = plane->choosing->selection;
    for (size_t i = 0; i < selection->derived_count; i++) {
        const struct derived_time *derived = &selection->derived[i];
        if (!is_in_plane(plane, &derived->key) || plane->place_of[derived->strategy] == NAME_NONE) continue;
        if (is_barred_loopback(plane->choosing, derived->placement)) continue;
        size_t cell = grid_place(plane->block, plane->fusion, &derived->key);
        if (cell == GRID_NO_CELL) continue;
        size_t at = plane->place_of[derived->strategy] * plane->cells + cell - plane->first_cell;
        if (plane->row_of[at] != NO_ROW) continue;
        plane->levels[at] = log2(derived->time_us);
        plane->spreads[at] = derived->spread;
        plane->derived_placement = derived->placement;
    }
}

// Rows of shapes that are no cell, gathered by shape.
static bool lay_out_elsewhere(struct choosing_plane *plane) {
    const struct choosing *choosing = plane->choosing;
    const struct chains *chains = &choosing->chains;
    const struct cell_key *last = NULL;
    for (size_t i = 0; i < chains->elsewhere_count; i++) {
        const struct row *row = &choosing->rows->row[chains->elsewhere[i]];
        if (!is_in_plane(plane, &row->key) || plane->place_of[row->strategy] == NAME_NONE ||
            !competes(choosing, row)) {
            continue;
        }
        if (last == NULL || !cell_key_equal(last, &row->key)) {
            size_t count = plane->bins.extra_count, width = plane->strategy_count;
            struct shape_levels *extra = realloc(plane->extra, (count + 1) * sizeof *extra);
            if (extra != NULL) plane->extra = extra;
            double *levels = realloc(plane->extra_levels, (count + 1) * width * sizeof *levels);
            if (levels != NULL) plane->extra_levels = levels;
            uint32_t *of = realloc(plane->extra_rows, (count + 1) * width * sizeof *of);
            if (of != NULL) plane->extra_rows = of;
            if (extra == NULL || levels == NULL || of == NULL) return false;
            for (size_t s = 0; s < width; s++) {
                levels[count * width + s] = NAN;
                of[count * width + s] = NO_ROW;
            }
            extra[count].hidden_size = row->key.hidden_size;
            extra[count].num_tokens = row->key.num_tokens;
            extra[count].hidden = grid_answering(&plane->block->hidden_sizes, row->key.hidden_size,
                                                 choosing->selection->lookup == LOOKUP_FLOOR);
            extra[count].tokens = grid_answering(&plane->block->num_tokens, row->key.num_tokens,
                                                 choosing->selection->lookup == LOOKUP_FLOOR);
            plane->bins.extra_count++;
            last = &row->key;
        }
        size_t at = (plane->bins.extra_count - 1) * plane->strategy_count + plane->place_of[row->strategy];
        plane->extra_levels[at] = log2(row->time_us);
        plane->extra_rows[at] = chains->elsewhere[i];
    }
    for (size_t i = 0; i < plane->bins.extra_count; i++) {
        plane->extra[i].levels = plane->extra_levels + i * plane->strategy_count;
    }
    plane->bins.extra = plane->extra;
    return true;
}

// How far `value` lies from the size at `place` of an axis towards its neighbour, as in struct bin_shape.
static double share_of(const struct axis *axis, size_t place, uint32_t value) {
    double own = log2(axis->value[place]), asked = log2(value);
    if (asked < own) return place == 0 ? 0 : (asked - own) / (own - log2(axis->value[place - 1]));
    return place + 1 == axis->count ? 0 : (asked - own) / (log2(axis->value[place + 1]) - own);
}

// The levels of a shape that is no cell, if it was measured; else NULL.
static const double *measured_levels(const struct choosing_plane *plane, const struct workload_shape *shape) {
    for (size_t i = 0; i < plane->bins.extra_count; i++) {
        const struct shape_levels *extra = &plane->extra[i];
        if (extra->hidden_size == shape->hidden_size && extra->num_tokens == shape->num_tokens) {
            return extra->levels;
        }
    }
    return NULL;
}

// The shapes that the workload asks for, by the cells that answer.
static bool lay_out_workload(struct choosing_plane *plane) {
    const struct selection *selection = plane->choosing->selection;
    const struct axis *hidden_sizes = &plane->block->hidden_sizes, *num_tokens = &plane->block->num_tokens;
    bool floor = selection->lookup == LOOKUP_FLOOR;
    plane->workload = malloc((selection->workload_count + 1) * sizeof *plane->workload);
    if (plane->workload == NULL) return false;
    for (size_t i = 0; i < selection->workload_count; i++) {
        const struct workload_shape *shape = &selection->workload[i];
        size_t hidden = grid_answering(hidden_sizes, shape->hidden_size, floor);
        size_t tokens = grid_answering(num_tokens, shape->num_tokens, floor);
        plane->workload[i] = (struct bin_shape){hidden,
                                                tokens,
                                                share_of(hidden_sizes, hidden, shape->hidden_size),
                                                share_of(num_tokens, tokens, shape->num_tokens),
                                                shape->weight,
                                                measured_levels(plane, shape)};
    }
    plane->bins.workload = plane->workload;
    plane->bins.workload_count = selection->workload_count;
    return true;
}

static void free_plane(struct choosing_plane *plane) {
    free(plane->levels);
    free(plane->spreads);
    free(plane->row_of);
    free(plane->extra);
    free(plane->extra_levels);
    free(plane->extra_rows);
    free(plane->workload);
}

// ---- numerics

static void drop_strategy(struct choosing_plane *plane, size_t strategy) {
    for (size_t cell = 0; cell < plane->cells; cell++) plane->levels[strategy * plane->cells + cell] = NAN;
    for (size_t i = 0; i < plane->bins.extra_count; i++) {
        plane->extra_levels[i * plane->strategy_count + strategy] = NAN;
    }
}

// Takes the levels, derived ones too, of strategies with other bits than the one that is wanted. That one
// stays, even where its bits are not told or vary. False: out of memory.
static bool drop_other_bits(struct choosing_plane *plane) {
    const struct choosing *choosing = plane->choosing;
    const struct grid_block *block = plane->block;
    uint8_t wanted = choosing->selection->same_bits_as;
    if (wanted == NAME_NONE) return true;
    const struct slice_key slice = {block->splits,      block->world_size, block->dtype,
                                    block->op,          block->mode,       block->fusion[plane->fusion],
                                    block->has_no_shape};
    struct numerics *numerics = malloc(sizeof *numerics);
    uint8_t barred = choosing->selection->loopback ? NAME_NONE : choosing->loopback;
    bool ok = numerics != NULL && numerics_relate(choosing->rows, slice, barred, choosing->lists, numerics);
    for (size_t s = 0; ok && s < plane->strategy_count; s++) {
        uint8_t strategy = plane->strategies[s];
        if (strategy == wanted || numerics->relation[wanted][strategy] == BITS_EQUAL) continue;
        drop_strategy(plane, s);
    }
    free(numerics);
    return ok;
}

// ---- choosing a row

struct row_of_cells {
    struct border_point *points;   // by cell; its options stand in the order of its candidates
    struct candidate *candidates;  // [cell][strategy]
    struct border_option *options; // the same
    struct loss *losses;
};

static bool allocate_row(struct row_of_cells *row, size_t tokens, size_t strategies) {
    row->points = calloc(tokens + 1, sizeof *row->points);
    row->candidates = malloc((tokens * strategies + 1) * sizeof *row->candidates);
    row->options = malloc((tokens * strategies + 1) * sizeof *row->options);
    row->losses = malloc((strategies + 1) * sizeof *row->losses);
    return row->points != NULL && row->candidates != NULL && row->options != NULL && row->losses != NULL;
}

static void free_row(struct row_of_cells *row) {
    free(row->points);
    free(row->candidates);
    free(row->options);
    free(row->losses);
}

static struct candidate candidate_of(const struct choosing_plane *plane, size_t strategy, size_t cell,
                                     const struct loss *loss) {
    const struct rows *rows = plane->choosing->rows;
    size_t at = strategy * plane->cells + cell;
    uint32_t row = plane->row_of[at];
    const struct row_detail *detail =
        row == NO_ROW || rows->detail == NULL ? &rows_no_detail : &rows->detail[row];
    return (struct candidate){
        .level = plane->levels[at],
        .low_us = detail->low_us,
        .high_us = detail->high_us,
        .launch_us = detail->launch_us,
        .launches = detail->launches,
        .spread = plane->spreads[at],
        .badness = loss->expected,
        .worst = loss->worst,
        .strategy = plane->strategies[strategy],
    };
}

// Whether a strategy is slower than another one, beyond both intervals, at a measured shape of the cell's
// bin.
static bool is_slower_beside(const struct choosing_plane *plane, size_t strategy, size_t hidden,
                             size_t tokens) {
    const struct row_detail *detail = plane->choosing->rows->detail;
    size_t width = plane->strategy_count;
    for (size_t i = 0; detail != NULL && i < plane->bins.extra_count; i++) {
        const uint32_t *of = plane->extra_rows + i * width;
        if (plane->extra[i].hidden != hidden || plane->extra[i].tokens != tokens || of[strategy] == NO_ROW) {
            continue;
        }
        for (size_t s = 0; s < width; s++) {
            if (of[s] != NO_ROW && detail[of[strategy]].low_us > detail[of[s]].high_us) return true;
        }
    }
    return false;
}

// Who may win a cell: those within noise of its best, or where the incumbent is among them, it alone; and
// those that lose no more than may be lost for the sake of fewer borders. Within noise is nobody who is
// slower at a measured shape of the bin.
static void find_who_may_win(const struct choosing_plane *plane, size_t hidden, size_t tokens,
                             const struct candidate *candidates, size_t count,
                             struct border_option *options) {
    const struct choosing *choosing = plane->choosing;
    const struct candidate *best = &candidates[select_best(candidates, count)];
    size_t cell = plane->first_cell + hidden * plane->block->num_tokens.count + tokens;
    uint8_t incumbent = choosing->incumbents == NULL ? NAME_NONE : choosing->incumbents[cell];
    double regret = choosing->selection->regret;
    bool stays = false;
    for (size_t i = 0; i < count; i++) {
        bool within = &candidates[i] == best ||
                      (select_is_within_noise(best, &candidates[i]) &&
                       !is_slower_beside(plane, plane->place_of[candidates[i].strategy], hidden, tokens));
        options[i] = (struct border_option){candidates[i].badness, candidates[i].strategy, within};
        stays = stays || (within && candidates[i].strategy == incumbent);
    }
    for (size_t i = 0; i < count; i++) {
        if (stays) options[i].allowed = options[i].strategy == incumbent;
        if (regret > 0 && options[i].badness - best->badness <= regret) options[i].allowed = true;
    }
}

static void fill_cell(struct choosing_plane *plane, struct row_of_cells *row, size_t hidden, size_t tokens) {
    size_t cell = hidden * plane->block->num_tokens.count + tokens, width = plane->strategy_count;
    const struct plane levels = {plane->levels, width, plane->block->hidden_sizes.count,
                                 plane->block->num_tokens.count};
    struct candidate *candidates = row->candidates + tokens * width;
    struct border_option *options = row->options + tokens * width;
    size_t count = 0;
    bins_losses(&levels, &plane->bins, hidden, tokens, row->losses);
    for (size_t s = 0; s < width; s++) {
        if (!isinf(row->losses[s].expected))
            candidates[count++] = candidate_of(plane, s, cell, &row->losses[s]);
    }
    row->points[tokens] = (struct border_point){.options = options, .count = count};
    if (count > 0) find_who_may_win(plane, hidden, tokens, candidates, count, options);
}

static struct cell cell_of(const struct choosing_plane *plane, const struct row_of_cells *of, size_t hidden,
                           size_t tokens) {
    const struct rows *rows = plane->choosing->rows;
    const struct border_point *point = &of->points[tokens];
    const struct candidate *candidates = of->candidates + tokens * plane->strategy_count;
    if (point->chosen == BORDER_NONE) return table_unmeasured;
    const struct candidate *winner = &candidates[point->chosen];
    struct choice choice = select_describe(candidates, point->count, point->chosen);
    size_t cell = hidden * plane->block->num_tokens.count + tokens;
    uint32_t row = plane->row_of[plane->place_of[winner->strategy] * plane->cells + cell];
    return (struct cell){
        .time_us = row == NO_ROW ? exp2(winner->level) : rows->row[row].time_us,
        .margin = choice.margin,
        .confidence = choice.confidence,
        .regret = choice.regret,
        .bound_us = row == NO_ROW || rows->detail == NULL ? NAN : rows->detail[row].bound_us,
        .strategy = winner->strategy,
        .runner_up = choice.runner_up == NO_RUNNER_UP ? NAME_NONE : candidates[choice.runner_up].strategy,
        .placement = row == NO_ROW ? plane->derived_placement : rows->row[row].placement,
        .derived = row == NO_ROW,
    };
}

static bool choose_rows(struct choosing_plane *plane) {
    size_t tokens = plane->block->num_tokens.count, hidden_sizes = plane->block->hidden_sizes.count;
    struct row_of_cells row = {NULL, NULL, NULL, NULL};
    bool ok = allocate_row(&row, tokens, plane->strategy_count);
    for (size_t h = 0; ok && h < hidden_sizes; h++) {
        for (size_t t = 0; t < tokens; t++) fill_cell(plane, &row, h, t);
        ok = borders_choose(row.points, tokens);
        struct cell *cells = plane->choosing->table->cells + plane->first_cell + h * tokens;
        for (size_t t = 0; ok && t < tokens; t++) cells[t] = cell_of(plane, &row, h, t);
    }
    free_row(&row);
    return ok;
}

static void choose_plane(void *context, size_t index) {
    const struct choosing *choosing = context;
    struct plane_place *place = &choosing->places[index];
    const struct grid_block *block = &choosing->table->grid.blocks[place->block];
    struct choosing_plane plane = {
        .choosing = choosing,
        .block = block,
        .fusion = place->fusion,
        .cells = block->hidden_sizes.count * block->num_tokens.count,
        .bins.lookup = choosing->selection->lookup,
    };
    plane.first_cell = block->first_cell + place->fusion * plane.cells;
    find_strategies(&plane, &place->left_out);
    bool ok = allocate_plane(&plane);
    if (ok) {
        lay_out_rows(&plane);
        lay_out_derived(&plane);
        ok = lay_out_elsewhere(&plane) && lay_out_workload(&plane);
    }
    ok = ok && drop_other_bits(&plane) && choose_rows(&plane);
    free_plane(&plane);
    place->failed = !ok;
}

// ---- all planes

static bool list_planes(struct choosing *choosing) {
    const struct grid *grid = &choosing->table->grid;
    for (size_t i = 0; i < grid->block_count; i++) choosing->place_count += grid->blocks[i].fusion_count;
    choosing->places = calloc(choosing->place_count + 1, sizeof *choosing->places);
    if (choosing->places == NULL) return false;
    size_t count = 0;
    for (size_t i = 0; i < grid->block_count; i++) {
        for (size_t fusion = 0; fusion < grid->blocks[i].fusion_count; fusion++) {
            choosing->places[count].block = i;
            choosing->places[count++].fusion = fusion;
        }
    }
    return true;
}

// What the table that was there has for each cell.
static bool find_incumbents(struct choosing *choosing) {
    struct table *incumbent = choosing->selection->incumbent;
    const struct grid *grid = &choosing->table->grid;
    if (incumbent == NULL) return true;
    choosing->incumbents = malloc(grid->cell_count + 1);
    if (choosing->incumbents == NULL) return false;
    for (size_t i = 0; i < grid->cell_count; i++) {
        struct cell_key key = grid_key(grid, i);
        const struct cell *cell = table_find(incumbent, &key);
        choosing->incumbents[i] = cell == NULL ? NAME_NONE : cell->strategy;
    }
    return true;
}

// Small tables are not worth a second thread.
static bool choose_planes(struct choosing *choosing) {
    enum { CELLS_FOR_A_THREAD = 4096 };
    struct table *table = choosing->table;
    parallel_run(choosing->place_count, 1 + table->grid.cell_count / CELLS_FOR_A_THREAD, choose_plane,
                 choosing);
    bool ok = true;
    for (size_t i = 0; i < choosing->place_count; i++) {
        const struct plane_place *place = &choosing->places[i];
        ok = ok && !place->failed;
        table->loopback_rows += place->left_out.loopback_rows;
        for (size_t j = 0; j < NAMES_MAX; j++) table->rows_of_others[j] += place->left_out.rows_of_others[j];
    }
    return ok;
}

struct span {
    uint32_t least, most;
};

static struct span span_of(const struct axis *axis) {
    struct span span = {UINT32_MAX, 0};
    for (size_t i = 0; i < axis->count; i++) {
        if (axis->value[i] < span.least) span.least = axis->value[i];
        if (axis->value[i] > span.most) span.most = axis->value[i];
    }
    return span;
}

static bool is_in(const struct span *span, uint32_t value) {
    return value >= span->least && value <= span->most;
}

static bool add_cells(struct grid *grid, const struct rows *rows, const struct selection *selection) {
    for (size_t i = 0; i < selection->more_cell_count; i++) {
        if (!grid_add(grid, &selection->more_cells[i])) return false;
    }
    size_t block_count = selection->only_more_cells ? grid->block_count : 0;
    struct span *spans = malloc((2 * block_count + 1) * sizeof *spans);
    if (spans == NULL) return false;
    for (size_t i = 0; i < block_count; i++) {
        spans[2 * i] = span_of(&grid->blocks[i].hidden_sizes);
        spans[2 * i + 1] = span_of(&grid->blocks[i].num_tokens);
    }
    bool ok = true;
    for (size_t i = 0; ok && i < rows->count; i++) {
        const struct cell_key *key = &rows->row[i].key;
        if (i > 0 && cell_key_equal(key, &rows->row[i - 1].key)) continue;
        size_t block = grid_block_of(grid, key);
        bool lies_between = block < block_count && is_in(&spans[2 * block], key->hidden_size) &&
                            is_in(&spans[2 * block + 1], key->num_tokens);
        ok = lies_between || grid_add(grid, key);
    }
    free(spans);
    return ok;
}

static bool choose(struct choosing *choosing, const struct lists *lists, struct problem *problem) {
    struct table *table = choosing->table;
    struct chains *chains = &choosing->chains;
    size_t cells = table->grid.cell_count, rows = choosing->rows->count;
    table->cells = large_allocate((cells + 1) * sizeof *table->cells);
    chains->first = large_allocate((cells + 1) * sizeof *chains->first);
    chains->next = large_allocate((rows + 1) * sizeof *chains->next);
    chains->elsewhere =
        malloc((choosing->selection->only_more_cells ? rows + 1 : 1) * sizeof *chains->elsewhere);
    if (table->cells == NULL || chains->first == NULL || chains->next == NULL || chains->elsewhere == NULL ||
        rows >= NO_ROW || !list_planes(choosing) || !find_incumbents(choosing)) {
        return problem_set(problem, "out of memory");
    }
    if (!chain_rows(choosing->rows, &table->grid, chains, choosing->selection->least, lists, problem))
        return false;
    return choose_planes(choosing) || problem_set(problem, "out of memory");
}

struct table *table_select(const struct rows *rows, const struct selection *selection,
                           const struct lists *lists, struct problem *problem) {
    static const char loopback[] = "loopback";
    struct table *table = calloc(1, sizeof *table);
    struct choosing choosing = {
        .rows = rows,
        .selection = selection,
        .lists = lists,
        .loopback = names_find(&lists->placements, loopback, loopback + strlen(loopback)),
        .table = table,
    };
    bool ok =
        (table != NULL && add_cells(&table->grid, rows, selection)) || problem_set(problem, "out of memory");
    ok = ok && grid_close(&table->grid, problem) && choose(&choosing, lists, problem);
    free(choosing.chains.first);
    free(choosing.chains.next);
    free(choosing.chains.elsewhere);
    free(choosing.incumbents);
    free(choosing.places);
    if (ok) return table;
    table_free(table);
    return NULL;
}
