// Rows to winners: the choice for the cells of a table.
//
// The rule is GMP tuneup's: minimise total badness, the share of time that is lost against the best choice.
// - A cell answers for a bin of shapes, all those that the reader's lookup sends to it. So what a strategy
//   loses against the best one is expected over the bin (bins.c), and not that at the bin's corner alone.
// - A time is the median, because single calls are disturbed from above and never from below, so that a mean
//   measures the disturbance, and a minimum the one call that had luck.
// - Differences within noise decide nothing. Noise is what the launches of the bench differ by, strategy
//   against strategy within the same launch; if the rows have no launches, the intervals of the medians.
// - Among those within noise of the best, the incumbent stays. Without one, the choice is made that changes
//   least along a row of token counts (borders.c), since noise makes flips and physics makes borders; then
//   the least badness; then the order of the list of strategies. Nothing depends on the order of rows.
// - The option `regret` allows more loss than noise for the sake of fewer borders.
// - Choices by message size (by_bytes.lua) follow the same rule: a size has several shapes, over which losses
//   are means.
//
// The caller decides before which strategies may win: no strategy that is not a candidate (AUTO is the call
// through a table), none that the format cannot name, none with other bits where numerics matter, no loopback
// row in the table of real hardware.
#include "select.h"

#include <math.h>

#include "base/student.h"

static const double LN_2 = 0.6931471805599453;

// Where 97.5% of a t distribution lie below, by degrees of freedom from 1; the last is the normal one.
static const double T_975[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                               2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 1.960};
enum { T_COUNT = sizeof T_975 / sizeof *T_975, FEWEST_LAUNCHES = 3 };

// The standard error of how much slower one strategy is than another at the cell's shape, in log2; `quantile`
// of them are the half of a 95% interval.
struct difference {
    double error, quantile;
    size_t freedom; // degrees of it, of the error's estimate; 0: it is taken as known
};

static bool precedes(double badness, uint8_t strategy, double other_badness, uint8_t other_strategy) {
    return badness != other_badness ? badness < other_badness : strategy < other_strategy;
}

static bool is_first(const struct candidate *a, const struct candidate *b) {
    return precedes(a->badness, a->strategy, b->badness, b->strategy);
}

size_t select_best(const struct candidate *candidates, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (is_first(&candidates[i], &candidates[best])) best = i;
    }
    return best;
}

// ---- noise

// The standard error of a level, from its interval or its spread; NAN if it has neither. `noise`: only as
// far as measuring again would change it. A prediction is off, too, for what it follows from is elsewhere,
// but that way it is off each time: it makes no flips.
static double error_of(const struct candidate *candidate, bool noise) {
    if (candidate->spread > 0) return noise ? candidate->noise : candidate->spread;
    return (log2(candidate->high_us) - log2(candidate->low_us)) / (2 * T_975[T_COUNT - 1]);
}

// Launch by launch, which leaves out what slowed both.
static bool compare_launches(const struct candidate *a, const struct candidate *b, struct difference *found) {
    size_t launches = a->launches < b->launches ? a->launches : b->launches, count = 0;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < launches; i++) {
        if (isnan(a->launch_us[i]) || isnan(b->launch_us[i])) continue;
        double slower = log2(b->launch_us[i] / a->launch_us[i]);
        sum += slower;
        squares += slower * slower;
        count++;
    }
    if (count < FEWEST_LAUNCHES) return false;
    double n = (double)count, mean = sum / n;
    size_t freedom = count - 1 < T_COUNT ? count - 1 : T_COUNT;
    double variance = fmax(0, (squares - n * mean * mean) / (n - 1));
    *found = (struct difference){sqrt(variance / n), T_975[freedom - 1], count - 1};
    return true;
}

static struct difference compare(const struct candidate *a, const struct candidate *b, bool noise) {
    struct difference found;
    if (compare_launches(a, b, &found)) return found;
    double error = hypot(error_of(a, noise), error_of(b, noise));
    return (struct difference){error, T_975[T_COUNT - 1], 0};
}

double select_noise(const struct candidate *best, const struct candidate *other) {
    struct difference found = compare(best, other, true);
    return found.quantile * found.error * LN_2;
}

double select_excess(const struct candidate *best, const struct candidate *other) {
    double loss = other->badness - best->badness;
    if (loss <= 0) return 0;
    double noise = select_noise(best, other);
    return isnan(noise) ? loss : fmax(0, loss - noise);
}

// ---- the rule

void select_allow(struct border_option *options, size_t count, uint8_t incumbent, double regret) {
    const struct border_option *best = &options[0];
    double least_excess = INFINITY;
    bool stays = false;
    for (size_t i = 0; i < count; i++) {
        if (precedes(options[i].badness, options[i].strategy, best->badness, best->strategy))
            best = &options[i];
        least_excess = fmin(least_excess, options[i].excess);
    }
    for (size_t i = 0; i < count; i++) {
        options[i].allowed = &options[i] == best || options[i].excess <= least_excess;
        stays = stays || (options[i].allowed && options[i].strategy == incumbent);
    }
    for (size_t i = 0; i < count; i++) {
        if (stays) options[i].allowed = options[i].strategy == incumbent;
        if (regret > 0 && options[i].badness - best->badness <= regret) options[i].allowed = true;
    }
}

// ---- figures of a choice

// The probability that the winner loses less over the bin than the runner-up. Their difference is that of the
// margin; its error is known at the cell's own shape, as for the rule.
static double confidence(const struct candidate *winner, const struct candidate *runner_up) {
    struct difference found = compare(winner, runner_up, false);
    double slower = log2((1 + runner_up->badness) / (1 + winner->badness));
    if (isnan(found.error)) return NAN;
    if (found.error == 0) return slower > 0 ? 1 : slower < 0 ? 0 : 0.5;
    return student_upper_tail(-slower / found.error, found.freedom);
}

// Where the 95% interval of a candidate begins (side -1) or ends (1); of a derived one by its spread.
static double end_of(const struct candidate *candidate, int side) {
    if (candidate->spread > 0) return exp2(candidate->level + side * T_975[T_COUNT - 1] * candidate->spread);
    return side < 0 ? candidate->low_us : candidate->high_us;
}

// At the cell's own shape the winner as slow as its interval allows, and the best of the others as fast as
// theirs allow; elsewhere in the bin what it loses at worst.
static double regret(const struct candidate *candidates, size_t count, size_t winner) {
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (i == winner) continue;
        if (isnan(end_of(&candidates[i], -1))) return NAN;
        least = fmin(least, end_of(&candidates[i], -1));
    }
    double high = end_of(&candidates[winner], 1);
    if (count == 1 || isnan(high) || !(least > 0)) return NAN;
    return fmax(candidates[winner].worst, fmax(0, high / least - 1));
}

struct choice select_describe(const struct candidate *candidates, size_t count, size_t winner) {
    struct choice choice = {NO_RUNNER_UP, NAN, NAN, NAN};
    for (size_t i = 0; i < count; i++) {
        if (i == winner) continue;
        if (choice.runner_up == NO_RUNNER_UP || is_first(&candidates[i], &candidates[choice.runner_up])) {
            choice.runner_up = (int)i;
        }
    }
    if (choice.runner_up == NO_RUNNER_UP) return choice;
    choice.margin = candidates[choice.runner_up].badness - candidates[winner].badness;
    choice.confidence = confidence(&candidates[winner], &candidates[choice.runner_up]);
    choice.regret = regret(candidates, count, winner);
    return choice;
}
