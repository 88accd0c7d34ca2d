// Change points of a series of levels (log2 of times), one for each run, in the order of the runs.
//
// Seeded binary segmentation (Kovacs, Li, Buehlmann, Munk, Seeded binary segmentation, Biometrika 2023): in
// intervals of all lengths, Student's test compares the means before and after each possible change; the most
// significant change splits the series, and both parts are searched again. Its probability counts as often as
// there were tests in the part. The variance is that within the two sides of the interval, or that of the
// differences of neighbours in the part if it is larger. So no noise is assumed, and few runs need a larger
// change.
//
// Single runs that went wrong must not look like a change: a level farther than CLIP standard deviations from
// the median of its neighbours counts as so far.
#ifndef GENTABLES_SEGMENTS_H
#define GENTABLES_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

struct segments_options {
    size_t shortest;  // the least number of runs on either side of a change; 1 at least
    bool clips;       // whether single levels count only up to CLIP
    double threshold; // in log2, above 0: smaller changes do not count
    double p;         // a part is split at changes that are more significant
};

struct segments_change {
    size_t at;       // the first index of the new level
    size_t from, to; // the part of the series that it splits
    double p;        // two-sided, of all tests in the part
    size_t parent;   // the change that split off this part: its index plus 1; 0: the part is the whole series
};

enum { SEGMENTS_MAX = 64 }; // changes of a series

// Finds the changes of `count` levels, parents before children, into changes[SEGMENTS_MAX]; `work` is
// memory for 3 * count + 2 numbers. Returns their number. Clips `levels` in place.
size_t segments_find(double *levels, size_t count, const struct segments_options *options, double *work,
                     struct segments_change *changes);

// The median of count > 0 values, which it reorders; the lower one of two.
double segments_median(double *values, size_t count);

// Moves the `rank` + 1 smallest of the values to the front; returns the largest of these.
double segments_select(double *values, size_t count, size_t rank);

#endif
