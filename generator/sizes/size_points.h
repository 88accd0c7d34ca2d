// Message sizes with the expected loss of each strategy, and the choice at each of them.
#ifndef GENTABLES_SIZE_POINTS_H
#define GENTABLES_SIZE_POINTS_H

#include "estimate/evidence.h"
#include "size_times.h"

// A size without a strategy that has a time at all of its shapes is no point.
struct size_points {
    size_t count, width;
    uint8_t strategies[NAMES_MAX]; // by column, ascending
    uint64_t *size_bytes;          // ascending
    double *loss;    // [point][column], a share of the best time; NAN: the strategy lacks a time
    uint8_t *chosen; // by point: the column of its choice; NULL: none is chosen yet
    uint64_t first_measured, last_measured; // bytes, of the points with a measured time
    bool has_measured;
};

// The points of the strategies that `may_win` (by strategy). Of a size with measured shapes only these count.
// Strategies with evidence (NULL: none has) lose what it shows at shapes of this fusion, others what their
// times differ from the best. False: out of memory. Call size_points_free in either case.
bool size_points_make(const struct size_times *times, const bool *may_win, const struct evidence *evidence,
                      uint8_t fusion, struct size_points *points);
void size_points_free(struct size_points *points);

// A copy without the losses of one strategy, and without its choices. False and size_points_free as above.
bool size_points_without(const struct size_points *points, uint8_t strategy, struct size_points *copy);

// Chooses at each point, with the fewest borders; see borders.h. `regret`: the loss that a choice may have
// for their sake, as a share. False: out of memory.
bool size_points_choose(struct size_points *points, double regret);

// The number of points from `first` on with the same choice as it.
size_t size_points_alike(const struct size_points *points, size_t first);

// The largest size with the choice of `point`, if the next point has another one; UINT64_MAX of the last one.
uint64_t size_points_border(const struct size_points *points, size_t point);

// The first point of at least this size; `count` if there is none.
size_t size_points_from(const struct size_points *points, uint64_t size_bytes);

#endif
