// Evidence of launches; see evidence.h.
#include "evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gaussian_process.h"

// A strategy that is slower than the fastest at each shape of the bin by more than REACH standard deviations
// (of the cell's own shape) and ELSEWHERE octaves is never the fastest.
static const double REACH = 4, ELSEWHERE = 0.5;

// The maximum of shapes of a bin, SIDE along each axis: the time of draws grows with their square.
enum { SIDE = 6, SHAPES_MAX = SIDE * SIDE };

// A strategy that was measured in at least FEW cells, and is nowhere within FAR octaves of the fastest, is
// left out of the process, because its time grows with the cube of its size.
static const double FAR = 0.8;
enum { FEW = 3 };

// ONESHOT of two ranks on CPUs passes a message in chunks through SLOTS slots, which the ranks swap. Recorded
// times of three chunks and more jump where the last chunk is short: each byte that it lacks takes about REST
// times as long as a byte that is passed. The last of up to two chunks, or of SLOTS, has the same slots in
// each call, and costs nothing more.
enum { CHUNK_BYTES = 32 << 10, SLOTS = 4, CHUNKS_WITHOUT_REST = 2 };
static const double REST = 2.5;

// If ranks share cores, times have heavier tails than the process: the largest confidence of a cell without
// times of its own.
static const double CONFIDENCE_MAX = 0.97;

// A measured cell: its key, in the order of fusion, hidden size, tokens.
struct measured_cell {
    uint32_t hidden_size, num_tokens;
    uint8_t fusion;
};

struct evidence {
    struct measured_cell *cells; // ascending
    size_t cell_count;
    double log2_element_bytes;
    bool sizes_only, is_oversubscribed;
    bool is_of_cpus; // whether a row is of MPI
    bool has_chunks; // whether ONESHOT has CHUNK_BYTES
    size_t strategies;
    bool has_times[NAMES_MAX]; // by strategy
    bool is_known[NAMES_MAX];  // by strategy: whether it has times and is part of the process
    struct gaussian_process *process;
};

// The number of a strategy's library, from the beginning of its name; 0: none.
enum { FAMILY_MPI = 1 };

static uint8_t family_of(const char *name) {
    static const char *const libraries[] = {"MPI", "NCCL"};
    for (uint8_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (strncmp(name, libraries[i], strlen(libraries[i])) == 0) return (uint8_t)(i + FAMILY_MPI);
    }
    return 0;
}

// The number of the method of strategy `s`: that of ONESHOT for ONESHOT_NATIVE, which only rounds elsewhere.
static uint8_t method_of(const struct lists *lists, size_t s) {
    static const char variant[] = "_NATIVE";
    const char *name = lists->strategies.name[s];
    size_t length = strlen(name), less = strlen(variant);
    if (length <= less || strcmp(name + length - less, variant) != 0) return (uint8_t)s;
    for (size_t i = 0; i < lists->strategies.count; i++) {
        const char *other = lists->strategies.name[i];
        if (strlen(other) == length - less && strncmp(other, name, length - less) == 0) return (uint8_t)i;
    }
    return (uint8_t)s;
}

// ---- rows to times

static bool is_in_scope(const struct row *row, const struct evidence_scope *scope) {
    struct slice_key block = slice_key_of(&row->key);
    block.fusion = scope->block.fusion;
    return slice_key_equal(block, scope->block) && scope->may_win[row->strategy] &&
           (scope->barred == NAME_NONE || row->placement != scope->barred);
}

static int by_shape(const void *a, const void *b) {
    const struct measured_cell *left = a, *right = b;
    if (left->fusion != right->fusion) return left->fusion < right->fusion ? -1 : 1;
    if (left->hidden_size != right->hidden_size) return left->hidden_size < right->hidden_size ? -1 : 1;
    return (left->num_tokens > right->num_tokens) - (left->num_tokens < right->num_tokens);
}

static struct measured_cell cell_of(const struct row *row) {
    return (struct measured_cell){row->key.hidden_size, row->key.num_tokens, row->key.fusion};
}

static size_t find_cell(const struct evidence *evidence, const struct measured_cell *cell) {
    const struct measured_cell *found =
        bsearch(cell, evidence->cells, evidence->cell_count, sizeof *cell, by_shape);
    return found == NULL ? PROCESS_NO_CELL : (size_t)(found - evidence->cells);
}

// The number of times of a row: its launches, or its time alone.
static size_t count_times(const struct row_detail *detail) {
    size_t count = 0;
    for (size_t i = 0; i < detail->launches; i++) count += isnan(detail->launch_us[i]) ? 0 : 1;
    return detail->launches == 0 ? 1 : count;
}

// Collects the cells of the scope and the number of their times; 0: no row has launches. False: out of
// memory.
static bool collect_cells(struct evidence *evidence, const struct rows *rows,
                          const struct evidence_scope *scope, const struct lists *lists, size_t *times) {
    evidence->cells = malloc((rows->count + 1) * sizeof *evidence->cells);
    bool has_launches = false;
    *times = 0;
    if (evidence->cells == NULL) return false;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (!is_in_scope(row, scope)) continue;
        const struct row_detail *detail = rows_detail_of(rows, i);
        has_launches = has_launches || detail->launches > 0;
        *times += count_times(detail);
        evidence->cells[evidence->cell_count++] = cell_of(row);
        const char *strategy = lists->strategies.name[row->strategy];
        evidence->is_of_cpus = evidence->is_of_cpus || family_of(strategy) == FAMILY_MPI;
        evidence->is_oversubscribed = evidence->is_oversubscribed || row->placement == scope->oversubscribed;
        double elements = (double)row->key.num_tokens * row->key.hidden_size;
        evidence->log2_element_bytes = scope->block.sizes_only ? 0 : log2((double)row->size_bytes / elements);
    }
    qsort(evidence->cells, evidence->cell_count, sizeof *evidence->cells, by_shape);
    size_t kept = 0;
    for (size_t i = 0; i < evidence->cell_count; i++) {
        bool is_new = kept == 0 || by_shape(&evidence->cells[kept - 1], &evidence->cells[i]) != 0;
        if (is_new) evidence->cells[kept++] = evidence->cells[i];
    }
    evidence->cell_count = kept;
    if (!has_launches) *times = 0;
    return true;
}

static int by_cell_and_launch(const void *a, const void *b) {
    const struct visit_time *left = a, *right = b;
    if (left->cell != right->cell) return left->cell < right->cell ? -1 : 1;
    if (left->launch != right->launch) return left->launch < right->launch ? -1 : 1;
    if (left->strategy != right->strategy) return left->strategy < right->strategy ? -1 : 1;
    return (left->level > right->level) - (left->level < right->level);
}

// Rows without launches, beside others that have launches, are one further visit.
static struct visit_time *collect_times(const struct evidence *evidence, const struct rows *rows,
                                        const struct evidence_scope *scope, size_t count) {
    struct visit_time *times = malloc((count + 1) * sizeof *times);
    size_t at = 0;
    for (size_t i = 0; times != NULL && i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (!is_in_scope(row, scope)) continue;
        const struct row_detail *detail = rows_detail_of(rows, i);
        struct measured_cell cell = cell_of(row);
        uint32_t index = (uint32_t)find_cell(evidence, &cell);
        if (detail->launches == 0) {
            times[at++] = (struct visit_time){index, LAUNCHES_MAX, row->strategy, log2(row->time_us)};
        }
        for (uint32_t launch = 0; launch < detail->launches; launch++) {
            if (isnan(detail->launch_us[launch])) continue;
            times[at++] = (struct visit_time){index, launch, row->strategy, log2(detail->launch_us[launch])};
        }
    }
    if (times != NULL) qsort(times, count, sizeof *times, by_cell_and_launch);
    return times;
}

// The mean level of each strategy in a cell, NAN without times; returns the least.
static double mean_levels(const struct visit_time *times, size_t count, double level[NAMES_MAX]) {
    size_t found[NAMES_MAX] = {0};
    double least = INFINITY;
    for (size_t s = 0; s < NAMES_MAX; s++) level[s] = 0;
    for (size_t i = 0; i < count; i++) {
        level[times[i].strategy] += times[i].level;
        found[times[i].strategy]++;
    }
    for (size_t s = 0; s < NAMES_MAX; s++) {
        level[s] = found[s] == 0 ? NAN : level[s] / (double)found[s];
        least = fmin(least, level[s]);
    }
    return least;
}

// Finds the strategies that are part of the process, and drops the times of the others. Returns the number of
// times that remain.
static size_t drop_far(struct evidence *evidence, struct visit_time *times, size_t count, bool keeps_far) {
    size_t cells[NAMES_MAX] = {0}, kept = 0;
    for (size_t from = 0, to; from < count; from = to) {
        double level[NAMES_MAX];
        to = contrasts_end_of_cell(times, count, from);
        double least = mean_levels(times + from, to - from, level);
        for (size_t s = 0; s < NAMES_MAX; s++) {
            if (isnan(level[s])) continue;
            cells[s]++;
            if (level[s] <= least + FAR) evidence->is_known[s] = true;
        }
    }
    for (size_t s = 0; s < NAMES_MAX; s++) {
        evidence->has_times[s] = cells[s] > 0;
        if (cells[s] > 0 && (cells[s] < FEW || keeps_far)) evidence->is_known[s] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (evidence->is_known[times[i].strategy]) times[kept++] = times[i];
    }
    return kept;
}

// ---- the process

// How much longer a message takes because of a short last chunk, in octaves.
static double remainder_of(double log2_bytes) {
    double chunks = exp2(log2_bytes) / CHUNK_BYTES, whole = ceil(chunks - 1e-6);
    if (whole <= CHUNKS_WITHOUT_REST || whole == SLOTS) return 0;
    return log2(1 + REST * fmax(0, whole - chunks) / chunks);
}

static struct process_shape process_shape_of(const struct evidence *evidence, uint8_t fusion,
                                             double log2_hidden, double log2_tokens, size_t cell) {
    bool sizes_only = evidence->sizes_only;
    double log2_bytes = sizes_only ? log2_tokens : log2_hidden + log2_tokens + evidence->log2_element_bytes;
    return (struct process_shape){log2_bytes, sizes_only ? 0 : log2_tokens - log2_hidden,
                                  remainder_of(log2_bytes), fusion, (uint32_t)cell};
}

static bool fit(struct evidence *evidence, const struct visit_time *times, size_t count,
                const struct lists *lists) {
    struct process_strategy strategies[NAMES_MAX];
    for (size_t s = 0; s < lists->strategies.count; s++) {
        const char *name = lists->strategies.name[s];
        strategies[s] =
            (struct process_strategy){.family = family_of(name),
                                      .method = method_of(lists, s),
                                      .has_parts = evidence->has_chunks && strcmp(name, "ONESHOT") == 0};
    }
    struct process_shape *shapes = malloc((evidence->cell_count + 1) * sizeof *shapes);
    if (shapes == NULL) return false;
    for (size_t i = 0; i < evidence->cell_count; i++) {
        const struct measured_cell *cell = &evidence->cells[i];
        shapes[i] =
            process_shape_of(evidence, cell->fusion, log2(cell->hidden_size), log2(cell->num_tokens), i);
    }
    evidence->process = process_fit(times, count, shapes, strategies, evidence->strategies);
    free(shapes);
    return evidence->process != NULL;
}

bool evidence_make(const struct rows *rows, const struct evidence_scope *scope, const struct lists *lists,
                   struct evidence **evidence) {
    size_t count = 0;
    *evidence = NULL;
    if (rows->detail == NULL) return true;
    struct evidence *made = calloc(1, sizeof *made);
    if (made == NULL) return false;
    made->sizes_only = scope->block.sizes_only;
    made->strategies = lists->strategies.count;
    bool ok = collect_cells(made, rows, scope, lists, &count);
    made->has_chunks = made->is_of_cpus && !made->is_oversubscribed && scope->block.world_size == 2;
    if (ok && count > 0) {
        struct visit_time *times = collect_times(made, rows, scope, count);
        ok = times != NULL && fit(made, times, drop_far(made, times, count, scope->keeps_far), lists);
        free(times);
    }
    if (ok && count > 0) {
        *evidence = made;
    } else {
        evidence_free(made);
    }
    return ok;
}

void evidence_free(struct evidence *evidence) {
    if (evidence == NULL) return;
    free(evidence->cells);
    process_free(evidence->process);
    free(evidence);
}

// ---- losses

bool evidence_covers(const struct evidence *evidence, uint8_t strategy) {
    return evidence != NULL && evidence->is_known[strategy];
}

bool evidence_excludes(const struct evidence *evidence, uint8_t strategy) {
    return evidence->has_times[strategy] && !evidence->is_known[strategy];
}

static struct process_shape locate(const struct evidence *evidence, const struct evidence_shape *shape) {
    double hidden = exp2(shape->log2_hidden_size), tokens = exp2(shape->log2_num_tokens);
    struct measured_cell key = {evidence->sizes_only ? HIDDEN_SIZE_NONE : (uint32_t)lround(hidden),
                                (uint32_t)lround(tokens), shape->fusion};
    bool is_whole =
        fabs(hidden - round(hidden)) < 1e-6 * hidden && fabs(tokens - round(tokens)) < 1e-6 * tokens;
    size_t cell = is_whole ? find_cell(evidence, &key) : PROCESS_NO_CELL;
    return process_shape_of(evidence, shape->fusion, shape->log2_hidden_size, shape->log2_num_tokens, cell);
}

// A bin while its losses are computed: the strategies' points are those of `shapes`.
struct bin {
    const struct process_near *near;
    struct process_shape own, *shapes;
    double *weights;
    size_t shape_count;
};

// The strategies at each of the shapes. NULL: out of memory.
static struct process_point *points_of(const struct process_shape *shapes, size_t shape_count,
                                       const uint8_t *strategies, size_t count) {
    struct process_point *points = malloc((shape_count * count + 1) * sizeof *points);
    for (size_t k = 0; points != NULL && k < shape_count; k++) {
        for (size_t s = 0; s < count; s++) {
            points[k * count + s] = (struct process_point){shapes[k], strategies[s]};
        }
    }
    return points;
}

// The levels of strategies at shapes: their means and, behind these in the same memory, their covariance.
static double *predict(const struct process_near *near, const struct process_shape *shapes,
                       size_t shape_count, const uint8_t *strategies, size_t count) {
    size_t n = count * shape_count;
    struct process_point *points = points_of(shapes, shape_count, strategies, count);
    double *mean = malloc((n + n * n + 1) * sizeof *mean);
    bool ok = points != NULL && mean != NULL && process_predict(near, points, n, mean, mean + n);
    free(points);
    if (ok) return mean;
    free(mean);
    return NULL;
}

// Subtracts the level of the fastest strategy: the rest is how much slower each one is, in octaves.
static void subtract_least(double *mean, size_t count) {
    double least = INFINITY;
    for (size_t s = 0; s < count; s++) least = fmin(least, mean[s]);
    for (size_t s = 0; s < count; s++) mean[s] -= least;
}

// Computes the figures of the strategies' mean levels over the bin, and closest[count], the smallest distance
// of each from the fastest. False: out of memory.
static bool losses_of_means(const struct bin *bin, const uint8_t *strategies, size_t count, double *closest,
                            struct loss_figures *figures) {
    struct process_point *points = points_of(bin->shapes, bin->shape_count, strategies, count);
    double slower[NAMES_MAX], weight = 0;
    for (size_t s = 0; s < count; s++) {
        figures[s] = (struct loss_figures){0, 0, 0};
        closest[s] = INFINITY;
    }
    bool ok = points != NULL;
    for (size_t k = 0; ok && k < bin->shape_count; k++) {
        ok = process_means(bin->near, points + k * count, count, slower);
        if (!ok) break;
        subtract_least(slower, count);
        for (size_t s = 0; s < count; s++) {
            figures[s].expected += bin->weights[k] * (exp2(slower[s]) - 1);
            closest[s] = fmin(closest[s], slower[s]);
        }
        weight += bin->weights[k];
    }
    for (size_t s = 0; s < count; s++) figures[s].worst = figures[s].expected /= weight;
    free(points);
    return ok;
}

// Sorts the strategies that may be the fastest somewhere in the bin to the front of `order` (indices of
// `strategies`); returns their number, 0: out of memory. The others get the figures of their mean levels.
static size_t find_contenders(const struct bin *bin, const uint8_t *strategies, size_t count, size_t *order,
                              struct loss_figures *figures) {
    double closest[NAMES_MAX];
    if (!losses_of_means(bin, strategies, count, closest, figures)) return 0;
    double *mean = predict(bin->near, &bin->own, 1, strategies, count), *covariance = mean + count;
    size_t fastest = 0, kept = 0;
    if (mean == NULL) return 0;
    for (size_t s = 1; s < count; s++) fastest = mean[s] < mean[fastest] ? s : fastest;
    for (size_t s = 0; s < count; s++) {
        size_t low = s < fastest ? s : fastest, high = s < fastest ? fastest : s;
        double variance = covariance[s * count + s] + covariance[fastest * count + fastest] -
                          2 * covariance[high * count + low];
        if (closest[s] <= ELSEWHERE + REACH * sqrt(fmax(0, variance))) order[kept++] = s;
    }
    free(mean);
    return kept;
}

static bool losses_of_contenders(const struct bin *bin, const uint8_t *strategies, const size_t *order,
                                 size_t kept, struct loss_figures *figures) {
    uint8_t contenders[NAMES_MAX];
    struct loss_figures found[NAMES_MAX];
    for (size_t i = 0; i < kept; i++) contenders[i] = strategies[order[i]];
    double *mean = predict(bin->near, bin->shapes, bin->shape_count, contenders, kept);
    bool ok = mean != NULL && losses_over_bin(mean, mean + kept * bin->shape_count, bin->shape_count, kept,
                                              bin->weights, found);
    free(mean);
    for (size_t i = 0; ok && i < kept; i++) figures[order[i]] = found[i];
    return ok;
}

// The index of the part of a size, of SIDE parts from the least one to the largest.
static size_t part_of(double log2_size, double least, double most) {
    size_t part = most > least ? (size_t)(SIDE * (log2_size - least) / (most - least)) : 0;
    return part < SIDE ? part : SIDE - 1;
}

// Merges shapes into the mean ones of SIDE * SIDE parts of the bin; returns their number.
static size_t merge_shapes(const struct evidence_shape *shapes, size_t count,
                           struct evidence_shape merged[SHAPES_MAX]) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    struct evidence_shape sums[SHAPES_MAX] = {{0}};
    size_t members[SHAPES_MAX] = {0}, kept = 0;
    for (size_t k = 0; k < count; k++) {
        low[0] = fmin(low[0], shapes[k].log2_hidden_size);
        high[0] = fmax(high[0], shapes[k].log2_hidden_size);
        low[1] = fmin(low[1], shapes[k].log2_num_tokens);
        high[1] = fmax(high[1], shapes[k].log2_num_tokens);
    }
    for (size_t k = 0; k < count; k++) {
        size_t at = part_of(shapes[k].log2_hidden_size, low[0], high[0]) * SIDE +
                    part_of(shapes[k].log2_num_tokens, low[1], high[1]);
        sums[at].log2_hidden_size += shapes[k].log2_hidden_size;
        sums[at].log2_num_tokens += shapes[k].log2_num_tokens;
        sums[at].weight += shapes[k].weight;
        members[at]++;
    }
    for (size_t at = 0; at < SHAPES_MAX; at++) {
        if (members[at] == 0) continue;
        double share = 1 / (double)members[at];
        merged[kept++] = (struct evidence_shape){shapes->fusion, share * sums[at].log2_hidden_size,
                                                 share * sums[at].log2_num_tokens, sums[at].weight};
    }
    return kept;
}

bool evidence_losses(const struct evidence *evidence, const struct evidence_shape *own,
                     const struct evidence_shape *shapes, size_t shape_count, const uint8_t *strategies,
                     size_t count, struct loss_figures *figures) {
    struct evidence_shape merged[SHAPES_MAX];
    if (shape_count > SHAPES_MAX) {
        shape_count = merge_shapes(shapes, shape_count, merged);
        shapes = merged;
    }
    struct process_shape own_shape = locate(evidence, own);
    const struct process_near *near = process_near(evidence->process, &own_shape);
    struct bin bin = {
        .near = near,
        .own = own_shape,
        .shapes = malloc((shape_count + 1) * sizeof *bin.shapes),
        .weights = malloc((shape_count + 1) * sizeof *bin.weights),
        .shape_count = shape_count,
    };
    size_t order[NAMES_MAX], kept = 0;
    if (near != NULL && bin.shapes != NULL && bin.weights != NULL) {
        for (size_t k = 0; k < shape_count; k++) {
            bin.shapes[k] = locate(evidence, &shapes[k]);
            bin.weights[k] = shapes[k].weight;
        }
        kept = find_contenders(&bin, strategies, count, order, figures);
    }
    bool ok = kept > 0 && losses_of_contenders(&bin, strategies, order, kept, figures);
    bool is_capped = evidence->is_oversubscribed && own_shape.cell == PROCESS_NO_CELL;
    for (size_t s = 0; ok && is_capped && s < count; s++) {
        figures[s].confidence = fmin(figures[s].confidence, CONFIDENCE_MAX);
    }
    process_near_free(near);
    free(bin.shapes);
    free(bin.weights);
    return ok;
}
