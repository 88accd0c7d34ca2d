// Estimates the levels of a cell's strategies from its launches, without effects on a whole launch.
//
// A visit is one launch that measured a cell with several strategies. With levels in log2 of microseconds,
//
//     level(strategy, visit) = level(strategy) + shift(visit) + noise
//
// where the shift is common to all strategies of the visit, and noise has a standard deviation for each
// strategy. Outliers among visits get less weight (Student weights with NU degrees of freedom: Lange, Little,
// Taylor, Robust statistical modeling using the t distribution, 1989).
#ifndef GENTABLES_CONTRASTS_H
#define GENTABLES_CONTRASTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One time: log2 of microseconds of a strategy in a launch.
struct visit_time {
    uint32_t cell, launch;
    uint8_t strategy;
    double level;
};

// The end of the times of the cell that begins at `from`, of `count` times sorted by cell.
size_t contrasts_end_of_cell(const struct visit_time *times, size_t count, size_t from);

// The levels of a cell's strategies: `count` of them, with their covariance (count * count, row by row). The
// common part of all levels is uncertain by the shift of a launch; only differences of levels are useful.
struct cell_levels {
    size_t count;
    uint8_t *strategy;
    double *level, *covariance;
};

enum { CONTRASTS_STRATEGIES_MAX = 256 };

// The standard deviation of the noise of each strategy, into noise[strategies], estimated from the visits of
// all cells; `times` is sorted by cell, then by launch. For strategies with few visits the noise of all
// strategies dominates, and a prior if that shows little. Returns false if memory is short, or the equations
// of a cell have no solution.
bool contrasts_noise(const struct visit_time *times, size_t count, size_t strategies, double *noise);

// The levels of one cell from its times (count of them, sorted by launch). If they vary more than the noise,
// their covariance is larger. Returns false if memory is short, or its equations have no solution;
// contrasts_free frees them.
bool contrasts_levels(const struct visit_time *times, size_t count, const double *noise,
                      struct cell_levels *levels);
void contrasts_free(struct cell_levels *levels);

#endif
