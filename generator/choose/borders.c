// The fewest borders, by dynamic programming.
//
// Noise makes flips and physics makes borders, and a reader searches what is left: so, among all choices that
// lose no more than allowed, the one with the fewest borders; of those, the one with the least total badness.
// Going on with a strategy for as long as it is allowed would find as few borders, but not the least badness
// among them: where two are allowed at a point, what comes later decides which is better. The pair (borders,
// badness) adds up point by point and is compared in this order, so that the best way to a point goes on from
// a best way to the point before, and the result is exact. A way either stays with its strategy or changes
// from the best of all ways, which makes it linear in the number of options.
#include "borders.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The best way to an option: how many borders, the badness so far, the option of the point before.
struct way {
    size_t borders, from;
    double badness;
};

static const struct way no_way = {SIZE_MAX, BORDER_NONE, INFINITY};

static bool is_better(const struct way *a, const struct way *b) {
    return a->borders != b->borders ? a->borders < b->borders : a->badness < b->badness;
}

static bool has_allowed(const struct border_point *point) {
    for (size_t i = 0; i < point->count; i++) {
        if (point->options[i].allowed) return true;
    }
    return false;
}

// The allowed option with the best way; of equal ones the first.
static size_t best_of(const struct border_point *point, const struct way *ways) {
    size_t best = BORDER_NONE;
    for (size_t i = 0; i < point->count; i++) {
        if (!point->options[i].allowed) continue;
        if (best == BORDER_NONE || is_better(&ways[i], &ways[best])) best = i;
    }
    return best;
}

static void begin_ways(const struct border_point *point, struct way *ways) {
    for (size_t i = 0; i < point->count; i++) {
        ways[i] = (struct way){0, BORDER_NONE, point->options[i].badness};
    }
}

// The ways to a point from those to the point before.
static void go_on(const struct border_point *point, struct way *ways, const struct border_point *before,
                  const struct way *ways_before) {
    size_t index_of[UINT8_MAX + 1], best = best_of(before, ways_before);
    memset(index_of, 0xff, sizeof index_of);
    for (size_t i = 0; i < before->count; i++) {
        if (before->options[i].allowed) index_of[before->options[i].strategy] = i;
    }
    for (size_t i = 0; i < point->count; i++) {
        const struct border_option *option = &point->options[i];
        size_t same = index_of[option->strategy];
        struct way change = {ways_before[best].borders + 1, best, ways_before[best].badness};
        struct way stay = no_way;
        if (same != BORDER_NONE)
            stay = (struct way){ways_before[same].borders, same, ways_before[same].badness};
        ways[i] = is_better(&change, &stay) ? change : stay;
        ways[i].badness += option->badness;
    }
}

// Chooses points[first .. end - 1], all of which have an allowed option; `ways` has `width` entries for each.
static void choose_run(struct border_point *points, size_t first, size_t end, struct way *ways,
                       size_t width) {
    begin_ways(&points[first], &ways[first * width]);
    for (size_t i = first + 1; i < end; i++) {
        go_on(&points[i], &ways[i * width], &points[i - 1], &ways[(i - 1) * width]);
    }
    size_t chosen = best_of(&points[end - 1], &ways[(end - 1) * width]);
    for (size_t i = end; i-- > first; chosen = ways[i * width + chosen].from) points[i].chosen = chosen;
}

bool borders_choose(struct border_point *points, size_t count) {
    size_t width = 1;
    for (size_t i = 0; i < count; i++) width = points[i].count > width ? points[i].count : width;
    struct way *ways = malloc((count * width + 1) * sizeof *ways);
    if (ways == NULL) return false;
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        points[first].chosen = BORDER_NONE;
        if (!has_allowed(&points[first])) continue;
        while (end < count && has_allowed(&points[end])) end++;
        choose_run(points, first, end, ways, width);
    }
    free(ways);
    return true;
}
