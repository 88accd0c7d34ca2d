// The common effects of the series of a history: expresses the levels of many series (one for each cell and
// strategy) over runs as the sum of the series' own level, the effects of the groups that it is in, and a
// rest.
//
//   effect(group, run)  the mean over the group's series of their level in the run above their own level,
//                       without the tenth at either end
//   rest(series, run)   the level above the series' own and the effect of its smallest group; less the mean
//                       of the same of its cell's other strategies, which were measured in the same launches
//
// A group is a strategy, or a part of one; each series has one group in each level of groups, and the groups
// of a level lie within those of the level before. Unmeasured levels are NAN.
#ifndef GENTABLES_EFFECTS_H
#define GENTABLES_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>

enum { EFFECTS_LEVELS = 3 };

struct effects_series {
    size_t group[EFFECTS_LEVELS];
    size_t cell;
};

struct effects {
    size_t runs, count; // of runs and of series
    struct effects_series *series;
    size_t groups[EFFECTS_LEVELS];  // in each level
    double *levels;                 // [series * runs + run], log2
    double *effect[EFFECTS_LEVELS]; // [group * runs + run]
    double *work;                   // max(runs, count) numbers
};

// Allocates everything; all levels are NAN. The series of a cell are neighbours; `series` is copied. NULL if
// memory is short.
struct effects *effects_new(size_t runs, size_t count, const struct effects_series *series);
void effects_free(struct effects *effects);

// Computes the effects, and subtracts the series' own levels from all levels. Returns false if memory is
// short.
bool effects_solve(struct effects *effects);

// The rest of a series, into values[runs]; after effects_solve.
void effects_rest(const struct effects *effects, size_t series, double *values);

#endif
