// The fewest borders, by dynamic programming.
//
// Noise causes changes of the choice that no reader needs. So of all choices that lose no more than allowed,
// those with the fewest borders are taken, and of these the one with the least total badness. A greedy
// search, which keeps a strategy for as long as it is allowed, finds as few borders, but not the least
// badness. The pair (borders, badness) is a sum over points and is compared in this order. So a best path to
// a point extends a best path to the previous point, and the result is exact. A path either keeps its
// strategy or changes from the best path of all, so the time is linear in the number of options.
#include "borders.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The best path to an option: its number of borders and its badness so far, and the option at the previous
// point.
struct path {
    size_t borders, from;
    double badness;
};

static const struct path no_path = {SIZE_MAX, BORDER_NONE, INFINITY};

static bool is_better(const struct path *a, const struct path *b) {
    return a->borders != b->borders ? a->borders < b->borders : a->badness < b->badness;
}

static bool has_allowed(const struct border_point *point) {
    for (size_t i = 0; i < point->count; i++) {
        if (point->options[i].allowed) return true;
    }
    return false;
}

// The allowed option with the best path; if several are equal, the first.
static size_t best_of(const struct border_point *point, const struct path *paths) {
    size_t best = BORDER_NONE;
    for (size_t i = 0; i < point->count; i++) {
        if (!point->options[i].allowed) continue;
        if (best == BORDER_NONE || is_better(&paths[i], &paths[best])) best = i;
    }
    return best;
}

static void begin_paths(const struct border_point *point, struct path *paths) {
    for (size_t i = 0; i < point->count; i++) {
        paths[i] = (struct path){0, BORDER_NONE, point->options[i].badness};
    }
}

// Extends the paths to the previous point by one point.
static void extend(const struct border_point *point, struct path *paths, const struct border_point *before,
                   const struct path *paths_before) {
    enum { NONE = UINT8_MAX }; // a point has fewer options than that
    uint8_t index_of[UINT8_MAX + 1];
    size_t best = best_of(before, paths_before);
    memset(index_of, NONE, sizeof index_of);
    for (size_t i = 0; i < before->count; i++) {
        if (before->options[i].allowed) index_of[before->options[i].strategy] = (uint8_t)i;
    }
    for (size_t i = 0; i < point->count; i++) {
        const struct border_option *option = &point->options[i];
        size_t same = index_of[option->strategy];
        struct path change = {paths_before[best].borders + 1, best, paths_before[best].badness};
        struct path stay = no_path;
        if (same != NONE) stay = (struct path){paths_before[same].borders, same, paths_before[same].badness};
        paths[i] = is_better(&change, &stay) ? change : stay;
        paths[i].badness += option->badness;
    }
}

// Chooses points[first .. end - 1], all of which have an allowed option; `paths` has `width` entries for
// each.
static void choose_run(struct border_point *points, size_t first, size_t end, struct path *paths,
                       size_t width) {
    begin_paths(&points[first], &paths[first * width]);
    for (size_t i = first + 1; i < end; i++) {
        extend(&points[i], &paths[i * width], &points[i - 1], &paths[(i - 1) * width]);
    }
    size_t chosen = best_of(&points[end - 1], &paths[(end - 1) * width]);
    for (size_t i = end; i-- > first; chosen = paths[i * width + chosen].from) points[i].chosen = chosen;
}

bool borders_choose(struct border_point *points, size_t count) {
    size_t width = 1;
    for (size_t i = 0; i < count; i++) width = points[i].count > width ? points[i].count : width;
    struct path *paths = malloc((count * width + 1) * sizeof *paths);
    if (paths == NULL) return false;
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        points[first].chosen = BORDER_NONE;
        if (!has_allowed(&points[first])) continue;
        while (end < count && has_allowed(&points[end])) end++;
        choose_run(points, first, end, paths, width);
    }
    free(paths);
    return true;
}
