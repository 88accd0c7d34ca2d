// The choice: which strategy a cell gets, and how sure that is. See select.c for the rule.
#ifndef GENTABLES_SELECT_H
#define GENTABLES_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "borders.h"

// One strategy in a cell. Levels are log2 of microseconds.
struct candidate {
    double level;            // at the cell's own shape
    double low_us, high_us;  // the interval of its median; NAN: none
    const double *launch_us; // the medians of its launches, NAN where there is none
    size_t launches;         // 0: unknown
    double spread;           // of a level that was not measured but derived: its standard error; else 0
    double noise;            // how much of that is noise of what it follows from
    double badness;          // the share of the best time that it loses, expected over the cell's bin
    double worst;            // the same at the bin's worst shape
    uint8_t strategy;        // its index in the list of strategies
};

enum { NO_RUNNER_UP = -1 };

struct choice {
    int runner_up;     // the index of the best other candidate, or NO_RUNNER_UP
    double margin;     // what the runner-up's badness is more than the winner's; NAN without one
    double confidence; // probability that the winner loses less than the runner-up; NAN: unknown
    double regret;     // the most that the choice can lose, as a share of the best; NAN: unknown
};

// The index of the candidate with the least badness, of at least one; of equal ones that of the strategy that
// comes first in the list.
size_t select_best(const struct candidate *candidates, size_t count);

// How much of what `other` loses against `best` may be noise: half of a 95% interval of their difference, as
// a share of time; NAN: unknown.
double select_noise(const struct candidate *best, const struct candidate *other);

// How much more than `best` another candidate loses beyond noise: all of it, where the noise is unknown.
double select_excess(const struct candidate *best, const struct candidate *other);

// The rule: marks the options that a point may have, of at least one. These are the one with the least
// badness (of equal ones that of the strategy that comes first in the list), and those with no more excess
// than the least, or of these `incumbent` alone (NAME_NONE: none) if it is one of them; and, if `regret` is
// above 0, those that lose that much more than the least at most.
void select_allow(struct border_option *options, size_t count, uint8_t incumbent, double regret);

// The figures of the choice of candidates[winner].
struct choice select_describe(const struct candidate *candidates, size_t count, size_t winner);

#endif
