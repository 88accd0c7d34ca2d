// Message sizes with the loss of each way of a reader, for readers that try their ways in a fixed order. A
// way is what a reader has a name for: one or several strategies.
#ifndef GENTABLES_WAY_POINTS_H
#define GENTABLES_WAY_POINTS_H

#include "size_points.h"

enum { WAYS_MAX = 16, WAY_NONE = 0xff };

struct way_points {
    size_t count, ways;
    uint64_t *size_bytes; // ascending
    double *loss;         // [point][way]: the least of its strategies; NAN: no time
};

// What a reader answers at sizes up to `last`, and above those of the answer before.
struct way_answer {
    uint64_t last; // bytes, inclusive
    uint8_t way;
};

// A way of a reader within the order in which its ways can follow each other.
struct way_state {
    uint8_t way, beyond; // `beyond`: the way above `most`; WAY_NONE: a way that no point has
    uint64_t most;       // the largest size of the way
    bool is_off;
    size_t after[WAYS_MAX], after_count; // the states that may precede
};

// The range of a path in which a state holds: indices of points, both inclusive.
struct way_range {
    size_t first, last; // first > last: it never holds
};

// Sizes at which a reader does not answer the choice.
struct way_miss {
    uint64_t first, last; // bytes, both inclusive; UINT64_MAX: no end
    uint8_t chosen, answered;
    double mean, most; // loss of the answer over the points in between; NAN: no point has a time of both
};

// The points for ways: way_of[column of the points], or WAY_NONE. False: out of memory. Call way_points_free
// in either case.
bool way_points_make(const struct size_points *of, const uint8_t *way_of, size_t ways,
                     struct way_points *points);
void way_points_free(struct way_points *points);

// The points for two ways: `way`, and, as the second one, the answers. False and way_points_free as above.
bool way_points_beside(const struct way_points *of, uint8_t way, const struct way_answer *answers,
                       struct way_points *points);

bool way_points_have(const struct way_points *points, uint8_t way);

// The answer at a size; the last answer has no end.
uint8_t way_answer_at(const struct way_answer *answers, uint64_t size_bytes);

// Sets ranges[state], of the path through the states with the least total loss over the points up to `most`
// bytes. A change of the state that gains less than `regret` is noise. Returns the number of these points;
// SIZE_MAX: out of memory.
size_t way_points_path(const struct way_points *points, const struct way_state *states, size_t state_count,
                       double regret, uint64_t most, struct way_range *ranges);

// Calls use(context, miss) for each miss of a reader, ascending. `chosen`: the points with choices, of which
// `points` are the ways. `step`: the reader has no other sizes than its multiples.
void way_points_misses(const struct size_points *chosen, const struct way_points *points,
                       const uint8_t *way_of, const struct way_answer *answers, uint64_t step, void *context,
                       void use(void *, const struct way_miss *));

#endif
