// The choice of one cell: which strategy wins, and how sure that is. See select.c for the rule.
#ifndef GENTABLES_SELECT_H
#define GENTABLES_SELECT_H

#include <stddef.h>
#include <stdint.h>

// One strategy's times in a cell: its median and, where the row has one, the median's 95% interval (else
// NAN).
struct candidate {
    double time_us, low_us, high_us;
    uint8_t strategy; // its place in the list of strategies
};

enum { NO_RUNNER_UP = -1 };

struct choice {
    size_t winner;     // places among the candidates
    int runner_up;     // or NO_RUNNER_UP
    double margin;     // what the runner-up takes more, as a share of the winner's time; NAN without one
    double confidence; // probability that the winner's median is below the runner-up's; NAN without intervals
    double regret;     // the most that the choice can lose, as a share of the best; NAN without intervals
};

// Chooses among `count` candidates, at least one, each of another strategy. Their order does not matter.
struct choice select_choose(const struct candidate *candidates, size_t count);

#endif
