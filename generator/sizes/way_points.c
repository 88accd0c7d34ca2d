// Limits of readers with ways in a fixed order, by dynamic programming; see way_points.h.
#include "way_points.h"

#include <math.h>
#include <stdlib.h>

// The loss of a way without a time, as a share of the best one: more than a measured one.
static const double untimed = 1e6;

static bool allocate(struct way_points *points, size_t count, size_t ways) {
    *points = (struct way_points){.count = count, .ways = ways};
    points->size_bytes = malloc((count + 1) * sizeof *points->size_bytes);
    points->loss = malloc((count * ways + 1) * sizeof *points->loss);
    return points->size_bytes != NULL && points->loss != NULL;
}

bool way_points_make(const struct size_points *of, const uint8_t *way_of, size_t ways,
                     struct way_points *points) {
    if (!allocate(points, of->count, ways)) return false;
    for (size_t i = 0; i < of->count; i++) {
        double *losses = points->loss + i * ways;
        points->size_bytes[i] = of->size_bytes[i];
        for (size_t w = 0; w < ways; w++) losses[w] = NAN;
        for (size_t c = 0; c < of->width; c++) {
            if (way_of[c] != WAY_NONE)
                losses[way_of[c]] = fmin(losses[way_of[c]], of->loss[i * of->width + c]);
        }
    }
    return true;
}

void way_points_free(struct way_points *points) {
    free(points->size_bytes);
    free(points->loss);
}

static double loss_of(const struct way_points *points, size_t point, uint8_t way) {
    return way < points->ways ? points->loss[point * points->ways + way] : NAN;
}

uint8_t way_answer_at(const struct way_answer *answers, uint64_t size_bytes) {
    while (answers->last < size_bytes) answers++;
    return answers->way;
}

bool way_points_beside(const struct way_points *of, uint8_t way, const struct way_answer *answers,
                       struct way_points *points) {
    if (!allocate(points, of->count, 2)) return false;
    for (size_t i = 0; i < of->count; i++) {
        points->size_bytes[i] = of->size_bytes[i];
        points->loss[2 * i] = loss_of(of, i, way);
        points->loss[2 * i + 1] = loss_of(of, i, way_answer_at(answers, of->size_bytes[i]));
    }
    return true;
}

bool way_points_have(const struct way_points *points, uint8_t way) {
    for (size_t i = 0; i < points->count; i++) {
        if (!isnan(loss_of(points, i, way))) return true;
    }
    return false;
}

// ---- the cheapest path

static double loss_in(const struct way_points *points, size_t point, const struct way_state *state) {
    if (state->is_off) return INFINITY;
    bool is_above = points->size_bytes[point] > state->most;
    double loss = loss_of(points, point, is_above ? state->beyond : state->way);
    return isnan(loss) ? untimed : loss;
}

// The cheapest way to a state at a point, from the costs at the point before: its cost; *from: the state
// there.
static double cheapest_before(const struct way_state *state, const double *costs, size_t own, double regret,
                              uint8_t *from) {
    double least = costs[own];
    *from = (uint8_t)own;
    for (size_t i = 0; i < state->after_count; i++) {
        double cost = costs[state->after[i]] + regret;
        if (cost < least) least = cost, *from = (uint8_t)state->after[i];
    }
    return least;
}

// Fills from[point][state]; returns the last state of the path.
static size_t find_path(const struct way_points *points, size_t count, const struct way_state *states,
                        size_t state_count, double regret, uint8_t *from) {
    double costs[WAYS_MAX] = {0}, now[WAYS_MAX];
    for (size_t p = 0; p < count; p++) {
        for (size_t i = 0; i < state_count; i++) {
            double before = 0;
            if (p > 0) before = cheapest_before(&states[i], costs, i, regret, &from[p * state_count + i]);
            now[i] = before + loss_in(points, p, &states[i]);
        }
        for (size_t i = 0; i < state_count; i++) costs[i] = now[i];
    }
    size_t last = 0;
    for (size_t i = 0; i < state_count; i++) {
        if (costs[i] < costs[last]) last = i;
    }
    return last;
}

size_t way_points_path(const struct way_points *points, const struct way_state *states, size_t state_count,
                       double regret, uint64_t most, struct way_range *ranges) {
    size_t count = 0;
    while (count < points->count && points->size_bytes[count] <= most) count++;
    uint8_t *from = malloc(count * state_count + 1);
    if (from == NULL) return SIZE_MAX;
    for (size_t i = 0; i < state_count; i++) ranges[i] = (struct way_range){1, 0};
    size_t state = find_path(points, count, states, state_count, regret, from);
    for (size_t p = count; p-- > 0;) {
        bool is_new = ranges[state].first > ranges[state].last;
        ranges[state].last = is_new ? p : ranges[state].last;
        ranges[state].first = p;
        if (p > 0) state = from[p * state_count + state];
    }
    free(from);
    return count;
}

// ---- misses

// Sets the loss of the answer beside that of the choice over the points of a part.
static void set_loss(const struct size_points *chosen, const struct way_points *points,
                     struct way_miss *miss) {
    double sum = 0, most = 0;
    size_t count = 0;
    for (size_t p = size_points_from(chosen, miss->first);
         p < points->count && points->size_bytes[p] <= miss->last; p++) {
        double loss = (1 + loss_of(points, p, miss->answered)) / (1 + loss_of(points, p, miss->chosen)) - 1;
        if (isnan(loss)) continue;
        sum += loss;
        most = loss > most ? loss : most;
        count++;
    }
    miss->mean = count > 0 ? sum / (double)count : NAN;
    miss->most = count > 0 ? most : NAN;
}

void way_points_misses(const struct size_points *chosen, const struct way_points *points,
                       const uint8_t *way_of, const struct way_answer *answers, uint64_t step, void *context,
                       void use(void *, const struct way_miss *)) {
    uint64_t first = 0;
    for (size_t p = 0; p < chosen->count;) {
        p += size_points_alike(chosen, p);
        uint64_t last = size_points_border(chosen, p - 1);
        uint8_t column = chosen->chosen[p - 1];
        uint8_t way = column == NAME_NONE ? WAY_NONE : way_of[column];
        // The parts of a segment: an answer ends within it, or with it.
        for (const struct way_answer *answer = answers; first <= last; answer++) {
            if (answer->last < first) continue;
            struct way_miss miss = {.first = first, .last = last, .chosen = way, .answered = answer->way};
            if (answer->last < last) miss.last = answer->last;
            uint64_t size = (first / step + (first % step > 0)) * step;
            if (size == 0) size = step;
            if (size <= miss.last && way != answer->way) {
                set_loss(chosen, points, &miss);
                use(context, &miss);
            }
            if (miss.last == UINT64_MAX) return;
            first = miss.last + 1;
        }
    }
}
