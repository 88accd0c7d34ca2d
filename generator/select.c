// Rows to winners: the choice of one cell.
//
// The rule: the least median wins; of equal ones the strategy that stands first in the list of strategies.
// The median, because single calls are disturbed from above and never from below, so that a mean measures the
// disturbance, and a minimum the one call that had luck. The list's order, because a choice must not depend
// on the order of rows.
//
// What may win is decided before, by who calls: no strategy that is not a candidate (AUTO is the call through
// a table), none that the format cannot name, no loopback row in the table of real hardware. Nothing here
// looks at what won before, or at neighbours; the margin, confidence and regret say how much to trust the
// choice.
#include "select.h"

#include <math.h>

// The 95% interval of a normal distribution is this many standard deviations wide, on either side.
static const double DEVIATIONS_OF_95_PERCENT = 1.959963984540054;

static int comes_first(const struct candidate *a, const struct candidate *b) {
    if (a->time_us != b->time_us) return a->time_us < b->time_us;
    return a->strategy < b->strategy;
}

// The standard error of a median, from its interval; NAN without one.
static double deviation(const struct candidate *candidate) {
    return (candidate->high_us - candidate->low_us) / (2 * DEVIATIONS_OF_95_PERCENT);
}

// P(winner's median < runner-up's), both taken as normal around what was measured.
static double confidence(const struct candidate *winner, const struct candidate *runner_up) {
    double distance = runner_up->time_us - winner->time_us;
    double variance = deviation(winner) * deviation(winner) + deviation(runner_up) * deviation(runner_up);
    if (isnan(variance)) return NAN;
    double spread = sqrt(variance);
    if (spread == 0) return distance > 0 ? 1 : 0.5;
    return 0.5 * erfc(-distance / spread / sqrt(2));
}

// The winner as slow as its interval allows, and the best of the others as fast as theirs allow.
static double regret(const struct candidate *candidates, size_t count, size_t winner) {
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (i == winner) continue;
        if (isnan(candidates[i].low_us)) return NAN;
        least = fmin(least, candidates[i].low_us);
    }
    double high = candidates[winner].high_us;
    if (count == 1 || isnan(high) || !(least > 0)) return NAN;
    return fmax(0, high / least - 1);
}

struct choice select_choose(const struct candidate *candidates, size_t count) {
    struct choice choice = {0, NO_RUNNER_UP, NAN, NAN, NAN};
    for (size_t i = 1; i < count; i++) {
        if (comes_first(&candidates[i], &candidates[choice.winner])) choice.winner = i;
    }
    for (size_t i = 0; i < count; i++) {
        if (i == choice.winner) continue;
        if (choice.runner_up == NO_RUNNER_UP || comes_first(&candidates[i], &candidates[choice.runner_up])) {
            choice.runner_up = (int)i;
        }
    }
    if (choice.runner_up == NO_RUNNER_UP) return choice;
    const struct candidate *winner = &candidates[choice.winner], *runner_up = &candidates[choice.runner_up];
    choice.margin = runner_up->time_us / winner->time_us - 1;
    choice.confidence = confidence(winner, runner_up);
    choice.regret = regret(candidates, count, choice.winner);
    return choice;
}
