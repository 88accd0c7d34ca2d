// Message sizes with losses; see size_points.h.
//
// The shapes of a size are its bin, with equal weights. A shape with interpolated times only is less certain
// than the measured ones of its size, and may lack strategies that they have.
#include "size_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose/select.h"

// The points while they are made.
struct making {
    const struct size_times *times;
    const struct evidence *evidence;
    struct evidence_shape *shapes; // of one size
    uint8_t fusion;
    size_t column[NAMES_MAX]; // by column of the points: that of the times
    struct size_points *points;
};

static bool allocate(struct size_points *points, size_t count) {
    points->size_bytes = malloc((count + 1) * sizeof *points->size_bytes);
    points->loss = malloc((count * points->width + 1) * sizeof *points->loss);
    return points->size_bytes != NULL && points->loss != NULL;
}

// Whether a shape has a time of a strategy that may win; `only_measured`: a measured one.
static bool has_time(const struct making *making, size_t shape, bool only_measured) {
    const struct size_times *times = making->times;
    for (size_t c = 0; c < making->points->width; c++) {
        size_t place = shape * times->width + making->column[c];
        if (only_measured ? times->is_measured[place] : !isnan(times->time_us[place])) return true;
    }
    return false;
}

// Adds what each strategy loses at a shape, if times are exact.
static void add_shape(const struct making *making, size_t shape, double *sums, size_t *counts) {
    const double *times = making->times->time_us + shape * making->times->width;
    double least_us = INFINITY;
    for (size_t c = 0; c < making->points->width; c++) {
        double time_us = times[making->column[c]];
        if (time_us < least_us) least_us = time_us;
    }
    for (size_t c = 0; c < making->points->width; c++) {
        double time_us = times[making->column[c]];
        if (isnan(time_us)) continue;
        sums[c] += time_us / least_us - 1;
        counts[c]++;
    }
}

// Replaces the losses of strategies with evidence. False: out of memory.
static bool take_evidence(const struct making *making, size_t shape_count, double *losses) {
    const struct size_points *points = making->points;
    uint8_t covered[NAMES_MAX];
    size_t column[NAMES_MAX], count = 0;
    struct loss_figures figures[NAMES_MAX];
    if (making->evidence == NULL) return true;
    for (size_t c = 0; c < points->width; c++) {
        if (isnan(losses[c]) || !evidence_covers(making->evidence, points->strategies[c])) continue;
        column[count] = c;
        covered[count++] = points->strategies[c];
    }
    if (count == 0) return true;
    bool ok = evidence_losses(making->evidence, &making->shapes[0], making->shapes, shape_count, covered,
                              count, figures);
    for (size_t i = 0; ok && i < count; i++) losses[column[i]] = figures[i].expected;
    return ok;
}

// Sums the shapes first .. end - 1, which are of one size: those with a measured time or, if none has one,
// all. Sets the losses, and returns the number of strategies that have one.
static size_t sum_shapes(const struct making *making, size_t first, size_t end, bool only_measured,
                         double *losses, size_t *shape_count) {
    size_t width = making->points->width, counts[NAMES_MAX] = {0}, complete = 0;
    memset(losses, 0, width * sizeof *losses);
    *shape_count = 0;
    for (size_t i = first; i < end; i++) {
        if (!has_time(making, i, only_measured)) continue;
        const struct size_shape *shape = &making->times->shape[i];
        if (making->evidence != NULL) {
            making->shapes[*shape_count] =
                (struct evidence_shape){making->fusion, log2(shape->hidden_size), log2(shape->num_tokens), 1};
        }
        ++*shape_count;
        add_shape(making, i, losses, counts);
    }
    for (size_t c = 0; c < width; c++) {
        bool is_complete = *shape_count > 0 && counts[c] == *shape_count;
        losses[c] = is_complete ? losses[c] / (double)*shape_count : NAN;
        complete += is_complete;
    }
    return complete;
}

// Makes the point of the shapes first .. end - 1, if it has a loss. False: out of memory.
static bool add_point(const struct making *making, size_t first, size_t end) {
    struct size_points *points = making->points;
    double *losses = points->loss + points->count * points->width;
    uint64_t size_bytes = making->times->shape[first].size_bytes;
    bool is_measured = false;
    size_t shape_count;
    for (size_t i = first; i < end && !is_measured; i++) is_measured = has_time(making, i, true);
    if (sum_shapes(making, first, end, is_measured, losses, &shape_count) == 0) return true;
    if (!take_evidence(making, shape_count, losses)) return false;
    points->size_bytes[points->count++] = size_bytes;
    if (!is_measured) return true;
    if (!points->has_measured) points->first_measured = size_bytes;
    points->last_measured = size_bytes;
    points->has_measured = true;
    return true;
}

bool size_points_make(const struct size_times *times, const bool *may_win, const struct evidence *evidence,
                      uint8_t fusion, struct size_points *points) {
    struct making making = {.times = times, .evidence = evidence, .fusion = fusion, .points = points};
    *points = (struct size_points){.count = 0};
    for (size_t c = 0; c < times->width; c++) {
        if (!may_win[times->strategies[c]]) continue;
        making.column[points->width] = c;
        points->strategies[points->width++] = times->strategies[c];
    }
    making.shapes = malloc((times->count + 1) * sizeof *making.shapes);
    bool ok = allocate(points, times->count) && making.shapes != NULL;
    for (size_t first = 0, end; ok && first < times->count; first = end) {
        for (end = first + 1; end < times->count; end++) {
            if (times->shape[end].size_bytes != times->shape[first].size_bytes) break;
        }
        ok = add_point(&making, first, end);
    }
    free(making.shapes);
    return ok;
}

void size_points_free(struct size_points *points) {
    free(points->size_bytes);
    free(points->loss);
    free(points->chosen);
}

bool size_points_without(const struct size_points *points, uint8_t strategy, struct size_points *copy) {
    size_t width = points->width;
    *copy = *points;
    copy->count = 0;
    copy->chosen = NULL;
    if (!allocate(copy, points->count)) return false;
    for (size_t i = 0; i < points->count; i++) {
        double *losses = copy->loss + copy->count * width;
        bool has_loss = false;
        for (size_t c = 0; c < width; c++) {
            losses[c] = points->strategies[c] == strategy ? NAN : points->loss[i * width + c];
            has_loss |= !isnan(losses[c]);
        }
        if (has_loss) copy->size_bytes[copy->count++] = points->size_bytes[i];
    }
    return true;
}

// ---- choices

// Sets the options of a point, which are its finite losses. Returns their number.
static size_t set_options(const struct size_points *points, size_t point, double regret,
                          struct border_option *options) {
    size_t count = 0;
    for (size_t c = 0; c < points->width; c++) {
        double loss = points->loss[point * points->width + c];
        if (isfinite(loss)) options[count++] = (struct border_option){loss, (uint8_t)c, false};
    }
    if (count > 0) select_allow(options, count, NAME_NONE, regret, false);
    return count;
}

bool size_points_choose(struct size_points *points, double regret) {
    struct border_option *options = malloc((points->count * points->width + 1) * sizeof *options);
    struct border_point *of = malloc((points->count + 1) * sizeof *of);
    if (points->chosen == NULL) points->chosen = malloc(points->count + 1);
    bool ok = options != NULL && of != NULL && points->chosen != NULL;
    for (size_t i = 0; ok && i < points->count; i++) {
        struct border_option *own = options + i * points->width;
        of[i] = (struct border_point){.options = own, .count = set_options(points, i, regret, own)};
    }
    ok = ok && borders_choose(of, points->count);
    for (size_t i = 0; ok && i < points->count; i++) {
        bool has_choice = of[i].chosen != BORDER_NONE;
        points->chosen[i] = has_choice ? of[i].options[of[i].chosen].strategy : NAME_NONE;
    }
    free(options);
    free(of);
    return ok;
}

size_t size_points_alike(const struct size_points *points, size_t first) {
    size_t end = first + 1;
    while (end < points->count && points->chosen[end] == points->chosen[first]) end++;
    return end - first;
}

uint64_t size_points_border(const struct size_points *points, size_t point) {
    if (point + 1 == points->count) return UINT64_MAX;
    return grid_border(points->size_bytes[point], points->size_bytes[point + 1]);
}

size_t size_points_from(const struct size_points *points, uint64_t size_bytes) {
    size_t low = 0, high = points->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points->size_bytes[middle] < size_bytes) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
