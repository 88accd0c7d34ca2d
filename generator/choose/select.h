// The choice of a cell's strategy, and its confidence. See select.c for the rule.
#ifndef GENTABLES_SELECT_H
#define GENTABLES_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins.h"
#include "borders.h"
#include "table/table.h"

// One strategy in a cell.
struct candidate {
    double level; // log2 of microseconds at the cell's own shape
    struct loss loss;
    uint8_t strategy; // its index in the list of strategies
};

enum { NO_RUNNER_UP = -1 };

struct choice {
    int runner_up; // the index of the best other candidate, or NO_RUNNER_UP
    double margin; // expected loss of the runner-up minus that of the winner; NAN without one
    enum state state;
    double confidence; // probability that the choice loses at most 2 % over the bin; NAN: unknown
    double expected;   // mean loss over the bin, as a share of the best time; NAN: unknown
    double worst;      // 95 % quantile of the loss over the bin, likewise
    double worst_us;   // the same as time at the cell's own shape
};

// A choice is certain, or a tie, if it has at least this confidence and at most this expected loss; without
// launches, if it has at least this margin.
#define SELECT_CONFIDENCE    0.9
#define SELECT_EXPECTED_LOSS 0.01
#define SELECT_MARGIN        0.05

// The loss beyond the best, as a share, that a choice may have to keep the incumbent or, if times are noisy,
// for fewer borders.
#define SELECT_TOLERANCE 0.0025

// The rule: marks the options that a point may have, of at least one. These are the one with the least
// expected loss (of equal ones that of the strategy that comes first in the list), and those that lose at
// most `regret` more or, if times are `noisy`, 0.25 %. An incumbent (NAME_NONE: none) that loses at most 0.25
// % more stays; then only options that `regret` allows are marked beside it.
void select_allow(struct border_option *options, size_t count, uint8_t incumbent, double regret, bool noisy);

// The figures of the choice of candidates[winner].
struct choice select_describe(const struct candidate *candidates, size_t count, size_t winner);

#endif
