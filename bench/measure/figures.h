// Figures: the numbers that the bench measures for one candidate in one cell, and that benchmark files keep.
// Each is a row with `bench` in generator/lists/columns.lua and a function in figures.c.
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include <stdio.h>

#include "elements/statistics.h"
#include "figures_list.h"

// What was measured of one candidate in one cell, on rank 0. The arrays belong to the caller.
struct measurement {
    struct summary time_us;
    const double *times_us; // of each sample, the longest of all ranks; sorted; time_us.samples of them
    double *skews_us;       // of each sample, last start - first start, in any order; NULL: unknown
    double bound_us;        // the physical bound of the cell
    double floor_us;        // time of a call that does nothing, launched in the same way; 0: unknown
    int calls;              // in a sample; 0: unknown
};

// Sets the figures in the order of the list; NAN: unknown. May sort `skews_us`.
void figures_of(const struct measurement *measurement, double figures[FIGURES]);

// Writes " key=VALUE" for each known figure.
void figures_write(FILE *out, const double figures[FIGURES]);

#endif
