// Rows to winners: the choice for the cells of a table.
//
// The rule is GMP tuneup's: minimise total badness, the share of time that is lost against the best choice.
// - A cell answers for a bin of shapes, all those that the reader's lookup sends to it. So the loss of a
//   strategy is that over the bin (bins.c), and not that at the cell's own shape alone.
// - Times are noisy, so a loss has a distribution. It follows from the launches of the bench: a slow
//   launch slows all its strategies, which cancels; times at one shape contain information about its
//   neighbours (evidence.c). Rows without launches have no distribution; there, levels are taken as exact.
// - A cell gets the strategy with the least expected loss. A choice that gives fewer borders along a row of
//   token counts (borders.c), or keeps the incumbent, is taken if it loses at most SELECT_TOLERANCE more:
//   noise causes most small changes along a row. The option `regret` allows more for fewer borders. Where
//   levels are exact only the incumbent has that tolerance.
// - Of strategies that lose equally much, the first in the list of strategies wins. Nothing depends on the
//   order of rows.
// - Choices by message size (by_bytes.lua) follow the same rule: the shapes of a size are its bin.
//
// The caller decides before which strategies may win: no strategy that is not a candidate (AUTO is the call
// through a table), none that the format cannot name, none with other bits where numerics matter, no loopback
// row in the table of real hardware.
#include "select.h"

#include <math.h>

#include "estimate/losses.h"

static bool precedes(double loss, uint8_t strategy, double other_loss, uint8_t other_strategy) {
    return loss != other_loss ? loss < other_loss : strategy < other_strategy;
}

void select_allow(struct border_option *options, size_t count, uint8_t incumbent, double regret, bool noisy) {
    const struct border_option *best = &options[0];
    bool stays = false;
    for (size_t i = 1; i < count; i++) {
        if (precedes(options[i].badness, options[i].strategy, best->badness, best->strategy))
            best = &options[i];
    }
    for (size_t i = 0; i < count; i++) {
        double more = options[i].badness - best->badness;
        options[i].allowed = &options[i] == best || (noisy && more <= SELECT_TOLERANCE);
        stays = stays || (more <= SELECT_TOLERANCE && options[i].strategy == incumbent);
    }
    for (size_t i = 0; i < count; i++) {
        if (stays) options[i].allowed = options[i].strategy == incumbent;
        if (regret > 0 && options[i].badness - best->badness <= regret) options[i].allowed = true;
    }
}

// ---- figures of a choice

static bool is_right(const struct loss *loss) {
    return loss->confidence >= SELECT_CONFIDENCE && loss->expected <= SELECT_EXPECTED_LOSS;
}

static enum state state_of(const struct candidate *candidates, size_t count, size_t winner, double margin) {
    const struct loss *own = &candidates[winner].loss;
    if (isnan(own->confidence))
        return count == 1 || margin >= SELECT_MARGIN ? STATE_CERTAIN : STATE_UNCERTAIN;
    if (!is_right(own)) return STATE_UNCERTAIN;
    for (size_t i = 0; i < count; i++) {
        if (i != winner && is_right(&candidates[i].loss)) return STATE_TIE;
    }
    return STATE_CERTAIN;
}

static int runner_up_of(const struct candidate *candidates, size_t count, size_t winner) {
    int best = NO_RUNNER_UP;
    for (size_t i = 0; i < count; i++) {
        if (i == winner) continue;
        const struct candidate *own = &candidates[i],
                               *other = &candidates[best == NO_RUNNER_UP ? (int)i : best];
        bool is_better = precedes(own->loss.expected, own->strategy, other->loss.expected, other->strategy);
        if (best == NO_RUNNER_UP || is_better) best = (int)i;
    }
    return best;
}

struct choice select_describe(const struct candidate *candidates, size_t count, size_t winner) {
    const struct loss *own = &candidates[winner].loss;
    struct choice choice = {
        runner_up_of(candidates, count, winner), NAN, STATE_UNCERTAIN, NAN, NAN, NAN, NAN};
    if (choice.runner_up != NO_RUNNER_UP) {
        choice.margin = candidates[choice.runner_up].loss.expected - own->expected;
    }
    choice.state = state_of(candidates, count, winner, choice.margin);
    if (isnan(own->confidence)) return choice;
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) least = fmin(least, candidates[i].level);
    choice.confidence = own->confidence;
    choice.expected = own->expected;
    choice.worst = own->worst;
    choice.worst_us = own->worst * exp2(least);
    return choice;
}
