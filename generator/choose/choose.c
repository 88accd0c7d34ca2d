// Rows to the cells of a table; see choose.h, and select.c for the rule.
//
// Planes (one block and fusion) are chosen independently. For each: lay out the plane (planes.c); compute the
// losses in the bin of every cell (bins.c); choose each row of token counts as a whole (borders.c).
#include "choose.h"

#include <math.h>
#include <stdlib.h>

#include "borders.h"
#include "cell_losses.h"
#include "numerics.h"
#include "planes.h"
#include "select.h"
#include "system/huge_pages.h"
#include "system/parallel.h"

struct choosing {
    struct inputs of;
    struct table *table;
    uint8_t *incumbents;        // by cell; NAME_NONE: none. NULL: there is no earlier table
    uint8_t *stable_as;         // the same, of the table with the classes that rows keep
    uint8_t *judged[2];         // the same, of the tables to judge
    struct evidence **evidence; // by block; NULL: none
    struct plane_task {
        size_t block, fusion;
        bool failed; // out of memory
    } * tasks;
    size_t task_count;
};

// ---- choosing a row

struct row_of_cells {
    struct border_point *points;   // by cell; its options are in the order of its candidates
    struct candidate *candidates;  // [cell][strategy]
    struct border_option *options; // the same
    struct loss *losses;           // [first cell of a bin][strategy]
    size_t *computed_for;          // by first cell of a bin: the cell of the plane with these losses
};

enum { NOTHING = SIZE_MAX };

static bool allocate_row(struct row_of_cells *row, size_t tokens, size_t strategies) {
    row->points = calloc(tokens + 1, sizeof *row->points);
    row->candidates = malloc((tokens * strategies + 1) * sizeof *row->candidates);
    row->options = malloc((tokens * strategies + 1) * sizeof *row->options);
    row->losses = malloc((tokens * strategies + 1) * sizeof *row->losses);
    row->computed_for = malloc((tokens + 1) * sizeof *row->computed_for);
    for (size_t t = 0; row->computed_for != NULL && t < tokens; t++) row->computed_for[t] = NOTHING;
    return row->points != NULL && row->candidates != NULL && row->options != NULL && row->losses != NULL &&
           row->computed_for != NULL;
}

static void free_row(struct row_of_cells *row) {
    free(row->points);
    free(row->candidates);
    free(row->options);
    free(row->losses);
    free(row->computed_for);
}

// Whether the same strategies have a level, and the same ones are untried, at two cells.
static bool have_same_strategies(const struct plane *plane, size_t cell, size_t other) {
    for (size_t s = 0; s < plane->strategy_count; s++) {
        const double *levels = plane->levels + s * plane->cells;
        const bool *untried = plane->untried + s * plane->cells;
        if (isnan(levels[cell]) != isnan(levels[other]) || untried[cell] != untried[other]) return false;
    }
    return true;
}

// The loss of each strategy in the bin of a cell; NULL: out of memory. Cells of one bin of powers of two with
// the same strategies have equal losses, which are computed once for each row of bins.
static const struct loss *losses_of(const struct plane *plane, const struct evidence *evidence,
                                    struct row_of_cells *row, size_t hidden, size_t tokens) {
    const struct axis *num_tokens = &plane->block->num_tokens;
    struct bins_span across = plane->across[hidden].span;
    size_t along = plane->along[tokens].span.first;
    size_t cell = hidden * num_tokens->count + tokens, *computed_for = &row->computed_for[along];
    struct loss *losses = row->losses + along * plane->strategy_count;
    bool is_there = *computed_for != NOTHING && *computed_for / num_tokens->count >= across.first &&
                    have_same_strategies(plane, cell, *computed_for);
    *computed_for = cell;
    return is_there || cell_losses(plane, evidence, hidden, tokens, losses) ? losses : NULL;
}

static struct candidate candidate_of(const struct plane *plane, size_t strategy, size_t cell,
                                     const struct loss *loss) {
    size_t at = strategy * plane->cells + cell;
    return (struct candidate){plane->levels[at], *loss, plane->strategies[strategy]};
}

// Makes the options of a cell from its candidates, and marks those that are allowed.
static void allow_options(const struct choosing *choosing, const struct plane *plane, size_t cell,
                          const struct candidate *candidates, size_t count, struct border_option *options) {
    uint8_t incumbent =
        choosing->incumbents == NULL ? NAME_NONE : choosing->incumbents[plane->first_cell + cell];
    for (size_t i = 0; i < count; i++) {
        options[i] = (struct border_option){candidates[i].loss.expected, candidates[i].strategy, false};
    }
    bool noisy = false; // slow strategies have no confidence, even if others have one
    for (size_t i = 0; i < count; i++) noisy = noisy || !isnan(candidates[i].loss.confidence);
    select_allow(options, count, incumbent, choosing->of.selection->regret, noisy);
}

static bool fill_cell(const struct choosing *choosing, const struct plane *plane,
                      const struct evidence *evidence, struct row_of_cells *row, size_t hidden,
                      size_t tokens) {
    size_t cell = hidden * plane->block->num_tokens.count + tokens, width = plane->strategy_count;
    struct candidate *candidates = row->candidates + tokens * width;
    struct border_option *options = row->options + tokens * width;
    const struct loss *losses = losses_of(plane, evidence, row, hidden, tokens);
    size_t count = 0;
    for (size_t s = 0; losses != NULL && s < width; s++) {
        if (!isinf(losses[s].expected)) candidates[count++] = candidate_of(plane, s, cell, &losses[s]);
    }
    row->points[tokens] = (struct border_point){.options = options, .count = count};
    if (count > 0) allow_options(choosing, plane, cell, candidates, count, options);
    return losses != NULL;
}

// Marks a cell as not measured. Nothing about a predicted choice was measured at its number of nodes, so it
// is uncertain.
static void set_basis(struct cell *cell, const struct derived_time *predicted) {
    cell->basis = predicted == NULL ? BASIS_DERIVED : BASIS_PREDICTED;
    if (predicted == NULL) return;
    cell->low_us = predicted->low_us;
    cell->high_us = predicted->high_us;
    cell->state = STATE_UNCERTAIN;
}

static struct cell cell_of(const struct plane *plane, const struct row_of_cells *of, size_t hidden,
                           size_t tokens) {
    const struct rows *rows = plane->of->rows;
    const struct border_point *point = &of->points[tokens];
    const struct candidate *candidates = of->candidates + tokens * plane->strategy_count;
    if (point->chosen == BORDER_NONE) return table_unmeasured;
    const struct candidate *winner = &candidates[point->chosen];
    struct choice choice = select_describe(candidates, point->count, point->chosen);
    size_t cell = hidden * plane->block->num_tokens.count + tokens;
    size_t at = plane->index_of[winner->strategy] * plane->cells + cell;
    uint32_t row = plane->row_of[at];
    const struct row_detail *detail = row == NO_ROW ? &rows_no_detail : rows_detail_of(rows, row);
    struct cell found = {
        .time_us = row == NO_ROW ? exp2(winner->level) : rows->row[row].time_us,
        .margin = choice.margin,
        .confidence = choice.confidence,
        .expected = choice.expected,
        .worst = choice.worst,
        .worst_us = choice.worst_us,
        .state = choice.state,
        .bound_us = detail->number[NUMBER_BOUND_US],
        .strategy = winner->strategy,
        .runner_up = choice.runner_up == NO_RUNNER_UP ? NAME_NONE : candidates[choice.runner_up].strategy,
        .placement = row == NO_ROW ? plane->derived_placement : rows->row[row].placement,
        .low_us = NAN,
        .high_us = NAN,
    };
    if (row == NO_ROW) set_basis(&found, plane->predicted == NULL ? NULL : plane->predicted[at]);
    return found;
}

// Computes the losses of the judged tables' choices in the bin of a cell.
static void judge_cell(const struct choosing *choosing, const struct plane *plane,
                       const struct row_of_cells *of, size_t hidden, size_t tokens) {
    size_t cell = plane->first_cell + hidden * plane->block->num_tokens.count + tokens;
    const struct border_point *point = &of->points[tokens];
    for (size_t i = 0; i < 2; i++) {
        if (choosing->judged[i] == NULL) continue;
        double *loss = &choosing->table->judged[i][cell];
        *loss = NAN;
        for (size_t s = 0; s < point->count; s++) {
            if (point->options[s].strategy == choosing->judged[i][cell]) *loss = point->options[s].badness;
        }
    }
}

// Chooses the rows of the plane that are of this class; class_of_row NULL: all.
static bool choose_rows(const struct choosing *choosing, const struct plane *plane,
                        const struct evidence *evidence, const uint8_t *class_of_row, uint8_t class) {
    size_t tokens = plane->block->num_tokens.count, hidden_sizes = plane->block->hidden_sizes.count;
    struct row_of_cells row = {NULL, NULL, NULL, NULL, NULL};
    bool ok = allocate_row(&row, tokens, plane->strategy_count);
    for (size_t h = 0; ok && h < hidden_sizes; h++) {
        if (class_of_row != NULL && class_of_row[h] != class) continue;
        for (size_t t = 0; ok && t < tokens; t++) ok = fill_cell(choosing, plane, evidence, &row, h, t);
        ok = ok && borders_choose(row.points, tokens);
        struct cell *cells = choosing->table->cells + plane->first_cell + h * tokens;
        for (size_t t = 0; ok && t < tokens; t++) cells[t] = cell_of(plane, &row, h, t);
        for (size_t t = 0; ok && t < tokens; t++) judge_cell(choosing, plane, &row, h, t);
    }
    free_row(&row);
    return ok;
}

// ---- numerics

// The classes of equal bits in a plane. False: out of memory.
static bool find_classes(const struct plane *plane, uint8_t class_of[NAMES_MAX]) {
    const struct inputs *of = plane->of;
    struct cell_key first = grid_block_key(plane->block);
    first.fusion = plane->block->fusion[plane->fusion];
    first.hidden_size = plane->block->hidden_sizes.value[0];
    struct numerics *numerics = malloc(sizeof *numerics);
    uint8_t barred = of->selection->loopback ? NAME_NONE : of->loopback;
    bool ok =
        numerics != NULL && numerics_relate(of->rows, slice_key_of(&first), barred, of->lists, numerics);
    if (ok) numerics_classes(numerics, of->selection->same_bits_as, class_of);
    free(numerics);
    return ok;
}

// Removes the levels, derived ones too, of strategies of other classes.
static void drop_other_bits(struct plane *plane, const uint8_t class_of[NAMES_MAX], uint8_t class) {
    for (size_t s = 0; s < plane->strategy_count; s++) {
        if (class_of[plane->strategies[s]] != class) plane_drop(plane, s);
    }
}

// Chooses the rows of one class, as if no other strategy had been measured.
static bool choose_class(const struct choosing *choosing, const struct plane *whole,
                         const struct evidence *evidence, const uint8_t class_of[NAMES_MAX],
                         const uint8_t *class_of_row, uint8_t class) {
    struct plane plane;
    bool ok = plane_make(&plane, whole->of, whole->block, whole->fusion);
    if (ok) drop_other_bits(&plane, class_of, class);
    ok = ok && choose_rows(choosing, &plane, evidence, class_of_row, class);
    plane_free(&plane);
    return ok;
}

static bool choose_stable_rows(const struct choosing *choosing, const struct plane *plane,
                               const struct evidence *evidence, const uint8_t class_of[NAMES_MAX]) {
    uint8_t *class_of_row = malloc(plane->block->hidden_sizes.count + 1);
    bool is_done[NAME_NONE + 1] = {false};
    bool ok = class_of_row != NULL &&
              stable_class_of_rows(plane, evidence, choosing->stable_as, class_of, class_of_row);
    for (size_t h = 0; ok && h < plane->block->hidden_sizes.count; h++) {
        uint8_t class = class_of_row[h];
        ok = is_done[class] || choose_class(choosing, plane, evidence, class_of, class_of_row, class);
        is_done[class] = true;
    }
    free(class_of_row);
    return ok;
}

static bool choose_in_classes(const struct choosing *choosing, struct plane *plane,
                              const struct evidence *evidence) {
    const struct selection *selection = choosing->of.selection;
    uint8_t class_of[NAMES_MAX];
    if (!find_classes(plane, class_of)) return false;
    if (selection->is_stable) return choose_stable_rows(choosing, plane, evidence, class_of);
    drop_other_bits(plane, class_of, selection->same_bits_as);
    return choose_rows(choosing, plane, evidence, NULL, NAME_NONE);
}

// Whether the cells of a block get choices.
static bool is_chosen(const struct selection *selection, const struct grid_block *block) {
    return selection->dtype == NAME_NONE || block->dtype == selection->dtype;
}

static void leave_unmeasured(struct table *table, const struct grid_block *block, size_t fusion) {
    size_t cells = block->hidden_sizes.count * block->num_tokens.count;
    size_t first = block->first_cell + fusion * cells;
    for (size_t cell = first; cell < first + cells; cell++) {
        table->cells[cell] = table_unmeasured;
        for (size_t i = 0; i < 2; i++) {
            if (table->judged[i] != NULL) table->judged[i][cell] = NAN;
        }
    }
}

static void choose_plane(void *context, size_t index) {
    const struct choosing *choosing = context;
    const struct selection *selection = choosing->of.selection;
    struct plane_task *task = &choosing->tasks[index];
    const struct grid_block *block = &choosing->table->grid.blocks[task->block];
    const struct evidence *evidence = choosing->evidence[task->block];
    if (!is_chosen(selection, block)) {
        leave_unmeasured(choosing->table, block, task->fusion);
        return;
    }
    struct plane plane;
    bool ok = plane_make(&plane, &choosing->of, block, task->fusion);
    if (ok && (selection->is_stable || selection->same_bits_as != NAME_NONE)) {
        ok = choose_in_classes(choosing, &plane, evidence);
    } else if (ok) {
        ok = choose_rows(choosing, &plane, evidence, NULL, NAME_NONE);
    }
    plane_free(&plane);
    task->failed = !ok;
}

// ---- all planes

static bool list_planes(struct choosing *choosing) {
    const struct grid *grid = &choosing->table->grid;
    for (size_t i = 0; i < grid->block_count; i++) choosing->task_count += grid->blocks[i].fusion_count;
    choosing->tasks = calloc(choosing->task_count + 1, sizeof *choosing->tasks);
    if (choosing->tasks == NULL) return false;
    size_t count = 0;
    for (size_t i = 0; i < grid->block_count; i++) {
        for (size_t fusion = 0; fusion < grid->blocks[i].fusion_count; fusion++) {
            choosing->tasks[count].block = i;
            choosing->tasks[count++].fusion = fusion;
        }
    }
    return true;
}

// The choices of another table for each cell; NAME_NONE: none. False: out of memory.
static bool find_choices(const struct grid *grid, struct table *other, uint8_t **choices) {
    if (other == NULL) return true;
    *choices = malloc(grid->cell_count + 1);
    if (*choices == NULL) return false;
    for (size_t i = 0; i < grid->cell_count; i++) {
        struct cell_key key = grid_key(grid, i);
        const struct cell *cell = table_find(other, &key);
        (*choices)[i] = cell == NULL ? NAME_NONE : cell->strategy;
    }
    return true;
}

static bool find_other_tables(struct choosing *choosing) {
    const struct selection *selection = choosing->of.selection;
    struct table *table = choosing->table;
    bool ok = find_choices(&table->grid, selection->incumbent, &choosing->incumbents) &&
              find_choices(&table->grid, selection->stable_as, &choosing->stable_as);
    for (size_t i = 0; ok && i < 2; i++) {
        ok = find_choices(&table->grid, selection->judged[i], &choosing->judged[i]);
        if (!ok || selection->judged[i] == NULL) continue;
        table->judged[i] = malloc((table->grid.cell_count + 1) * sizeof *table->judged[i]);
        ok = table->judged[i] != NULL;
    }
    return ok;
}

static bool find_evidence(struct choosing *choosing) {
    const struct inputs *of = &choosing->of;
    const struct grid *grid = &choosing->table->grid;
    choosing->evidence = calloc(grid->block_count + 1, sizeof *choosing->evidence);
    bool ok = choosing->evidence != NULL;
    for (size_t i = 0; ok && i < grid->block_count; i++) {
        if (!is_chosen(of->selection, &grid->blocks[i])) continue;
        const struct cell_key first = grid_key(grid, grid->blocks[i].first_cell);
        const struct evidence_scope scope = {
            .block = slice_key_of(&first),
            .may_win = of->selection->may_win,
            .keeps_far = of->selection->same_bits_as != NAME_NONE || of->selection->is_stable,
            .barred = of->selection->loopback ? NAME_NONE : of->loopback,
            .oversubscribed = names_index(&of->lists->placements, "oversubscribed"),
        };
        ok = evidence_make(of->rows, &scope, of->lists, &choosing->evidence[i]);
    }
    return ok;
}

// Uses a thread for each CELLS_FOR_A_THREAD cells. A cell with evidence takes about as long as a hundred
// cells without it.
static bool choose_planes(struct choosing *choosing) {
    enum { CELLS_FOR_A_THREAD = 4096, WITH_EVIDENCE = 32 };
    struct table *table = choosing->table;
    bool has_evidence = false;
    for (size_t i = 0; i < table->grid.block_count; i++) {
        has_evidence = has_evidence || choosing->evidence[i] != NULL;
    }
    size_t cells = has_evidence ? WITH_EVIDENCE : CELLS_FOR_A_THREAD;
    parallel_run(choosing->task_count, 1 + table->grid.cell_count / cells, choose_plane, choosing);
    bool ok = true;
    for (size_t i = 0; i < choosing->task_count; i++) ok = ok && !choosing->tasks[i].failed;
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

// Adds the cell to which the lookup of a table by powers of two sends a shape.
static bool add_answering(struct grid *grid, const struct cell_key *key, enum lookup lookup) {
    struct cell_key answering = *key;
    if (lookup != LOOKUP_LOG2 || key->hidden_size == HIDDEN_SIZE_NONE) return true;
    answering.hidden_size = grid_power_below(key->hidden_size);
    answering.num_tokens = grid_power_below(key->num_tokens);
    return grid_add(grid, &answering);
}

static bool add_cell(struct grid *grid, const struct cell_key *key, enum lookup lookup) {
    return grid_add(grid, key) && add_answering(grid, key, lookup);
}

static bool add_cells(struct grid *grid, const struct rows *rows, const struct selection *selection) {
    for (size_t i = 0; i < selection->more_cell_count; i++) {
        if (!add_cell(grid, &selection->more_cells[i], selection->lookup)) return false;
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
        ok = lies_between ? add_answering(grid, key, selection->lookup)
                          : add_cell(grid, key, selection->lookup);
    }
    free(spans);
    return ok;
}

static bool choose(struct choosing *choosing, struct problem *problem) {
    struct table *table = choosing->table;
    struct chains *chains = &choosing->of.chains;
    size_t cells = table->grid.cell_count, rows = choosing->of.rows->count;
    table->cells = large_allocate((cells + 1) * sizeof *table->cells);
    chains->first = large_allocate((cells + 1) * sizeof *chains->first);
    chains->next = large_allocate((rows + 1) * sizeof *chains->next);
    chains->elsewhere =
        malloc((choosing->of.selection->only_more_cells ? rows + 1 : 1) * sizeof *chains->elsewhere);
    if (table->cells == NULL || chains->first == NULL || chains->next == NULL || chains->elsewhere == NULL ||
        rows >= NO_ROW || !list_planes(choosing) || !find_other_tables(choosing) ||
        !find_evidence(choosing)) {
        return problem_set(problem, "out of memory");
    }
    if (!chains_fill(&choosing->of, table, problem)) return false;
    return choose_planes(choosing) || problem_set(problem, "out of memory");
}

struct table *table_select(const struct rows *rows, const struct selection *selection,
                           const struct lists *lists, struct problem *problem) {
    struct table *table = calloc(1, sizeof *table);
    struct choosing choosing = {
        .of = {.rows = rows,
               .selection = selection,
               .lists = lists,
               .loopback = names_index(&lists->placements, "loopback")},
        .table = table,
    };
    bool ok =
        (table != NULL && add_cells(&table->grid, rows, selection)) || problem_set(problem, "out of memory");
    ok = ok && grid_close(&table->grid, problem) && choose(&choosing, problem);
    free(choosing.of.chains.first);
    free(choosing.of.chains.next);
    free(choosing.of.chains.elsewhere);
    for (size_t i = 0; choosing.evidence != NULL && i < table->grid.block_count; i++) {
        evidence_free(choosing.evidence[i]);
    }
    free(choosing.evidence);
    free(choosing.incumbents);
    free(choosing.stable_as);
    for (size_t i = 0; i < 2; i++) free(choosing.judged[i]);
    free(choosing.tasks);
    if (ok) return table;
    table_free(table);
    return NULL;
}
