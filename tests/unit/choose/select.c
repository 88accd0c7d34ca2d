// select.c: the winner of a cell, the noise, and the figures of the choice.
#include "../../unit_test.h"

#include <math.h>

#include "choose/select.h"

static void expect_near(double value, double expected) {
    if (!(fabs(value - expected) < 1e-6)) fail_msg("%.9g, not %.9g", value, expected);
}

// A strategy with this time at the cell's shape and nowhere else; `best_us` is the best of the cell.
static struct candidate with_time(uint8_t strategy, double time_us, double best_us) {
    double loss = time_us / best_us - 1;
    return (struct candidate){.level = log2(time_us),
                              .low_us = NAN,
                              .high_us = NAN,
                              .badness = loss,
                              .worst = loss,
                              .strategy = strategy};
}

static struct candidate with_interval(uint8_t strategy, double time_us, double best_us, double low_us,
                                      double high_us) {
    struct candidate candidate = with_time(strategy, time_us, best_us);
    candidate.low_us = low_us;
    candidate.high_us = high_us;
    return candidate;
}

TEST(the_least_badness_wins) {
    const struct candidate candidates[] = {with_time(0, 8, 5), with_time(1, 5, 5), with_time(2, 6, 5)};
    assert_int_equal(select_best(candidates, 3), 1);
    struct choice choice = select_describe(candidates, 3, 1);
    assert_int_equal(choice.runner_up, 2);
    expect_near(choice.margin, 0.2);
    assert_true(isnan(choice.confidence));
    assert_true(isnan(choice.regret));
}

TEST(equal_ones_keep_the_order_of_the_list) {
    const struct candidate candidates[] = {with_time(7, 5, 5), with_time(2, 5, 5), with_time(4, 5, 5)};
    assert_int_equal(select_best(candidates, 3), 1);
    struct choice choice = select_describe(candidates, 3, 1);
    assert_int_equal(choice.runner_up, 2);
    expect_near(choice.margin, 0);
}

TEST(a_single_candidate_has_nothing_to_compare) {
    const struct candidate candidates[] = {with_interval(7, 5, 5, 4, 6)};
    struct choice choice = select_describe(candidates, 1, 0);
    assert_int_equal(choice.runner_up, NO_RUNNER_UP);
    assert_true(isnan(choice.margin) && isnan(choice.confidence) && isnan(choice.regret));
}

TEST(confidence_is_the_chance_that_the_order_is_right) {
    // Intervals with ends a factor 2^1.96 away have a standard error of 1 in log2; levels sqrt(2) apart
    // are one standard error of their difference.
    double wide = exp2(1.96), apart = exp2(sqrt(2));
    const struct candidate unsure[] = {
        with_interval(0, 10, 10, 10 / wide, 10 * wide),
        with_interval(1, 10 * apart, 10, 10 * apart / wide, 10 * apart * wide)};
    expect_near(select_describe(unsure, 2, 0).confidence, 0.8413447460685429);
    const struct candidate half_known[] = {with_interval(0, 10, 10, 9, 11), with_time(1, 11, 10)};
    assert_true(isnan(select_describe(half_known, 2, 0).confidence));
}

// Launches differ by a factor of two, and yet the second strategy is 5% slower in each of them.
TEST(launches_are_compared_with_each_other) {
    const double fast[] = {10, 20, 10, 15, 20}, slow[] = {10.5, 21, 10.5, 15.75, 21.1};
    struct candidate candidates[] = {with_interval(0, 15, 15, 10, 20),
                                     with_interval(1, 15.75, 15, 10.5, 21.1)};
    expect_near(select_excess(&candidates[0], &candidates[1]), 0);
    candidates[0].launch_us = fast;
    candidates[1].launch_us = slow;
    candidates[0].launches = candidates[1].launches = 5;
    assert_true(select_excess(&candidates[0], &candidates[1]) > 0);
    assert_true(select_describe(candidates, 2, 0).confidence > 0.999);
}

TEST(launches_that_disagree_are_noise) {
    const double one[] = {10, 10, 10, 10, 10}, other[] = {11, 9, 12, 9.5, 10.5};
    struct candidate candidates[] = {with_time(0, 10, 10), with_time(1, 10.5, 10)};
    assert_true(select_excess(&candidates[0], &candidates[1]) > 0);
    candidates[0].launch_us = one;
    candidates[1].launch_us = other;
    candidates[0].launches = candidates[1].launches = 5;
    expect_near(select_excess(&candidates[0], &candidates[1]), 0);
}

// In the bin the first one loses less, at the cell's own shape the second one is faster, in each launch.
TEST(confidence_is_of_the_losses_that_decide) {
    const double slow[] = {11, 11.1, 10.9, 11}, fast[] = {10, 10.2, 9.9, 10};
    struct candidate candidates[] = {with_interval(0, 11, 10, 10.8, 11.2),
                                     with_interval(1, 10, 10, 9.8, 10.2)};
    candidates[0].badness = 0.02;
    candidates[1].badness = 0.2;
    struct choice choice = select_describe(candidates, 2, 0);
    expect_near(choice.margin, 0.18);
    assert_true(choice.confidence > 0.99);
    assert_true(select_describe(candidates, 2, 1).confidence < 0.01);
    candidates[0].launch_us = slow;
    candidates[1].launch_us = fast;
    candidates[0].launches = candidates[1].launches = 4;
    assert_true(select_describe(candidates, 2, 0).confidence > 0.99);
}

// A derived time may be far off, and has less confidence; the choice still minimises the expected loss, apart
// from noise.
TEST(derived_times_are_chosen_by_expected_loss) {
    struct candidate candidates[] = {with_time(0, 10, 10), with_time(1, 11, 10)};
    for (size_t i = 0; i < 2; i++) {
        candidates[i].spread = 0.3;
        candidates[i].noise = 0.02;
    }
    assert_true(select_excess(&candidates[0], &candidates[1]) > 0);
    double confidence = select_describe(candidates, 2, 0).confidence;
    assert_true(confidence > 0.5 && confidence < 0.7);
    candidates[0].noise = 0.1;
    expect_near(select_excess(&candidates[0], &candidates[1]), 0);
}

TEST(regret_is_the_most_that_the_intervals_allow) {
    const struct candidate candidates[] = {with_interval(0, 10, 10, 9, 12), with_interval(1, 11, 10, 10, 13),
                                           with_interval(2, 20, 10, 8, 30)};
    expect_near(select_describe(candidates, 3, 0).regret, 0.5);
    const struct candidate clear[] = {with_interval(0, 10, 10, 9, 11), with_interval(1, 20, 10, 19, 21)};
    expect_near(select_describe(clear, 2, 0).regret, 0);
}

// 10 us give or take 0.1 in log2, against a measured and a derived time.
TEST(regret_of_derived_times_follows_from_their_spread) {
    struct candidate candidates[] = {with_time(0, 10, 10), with_interval(1, 12, 10, 11, 13)};
    candidates[0].spread = 0.1;
    expect_near(select_describe(candidates, 2, 0).regret, 10 * exp2(0.196) / 11 - 1);
    candidates[1].spread = 0.2;
    expect_near(select_describe(candidates, 2, 0).regret, 10 * exp2(0.196) / (12 / exp2(0.392)) - 1);
}

enum { NO_INCUMBENT = 255 };

static void expect_allowed(struct border_option options[3], uint8_t incumbent, double regret, bool first,
                           bool second, bool third) {
    select_allow(options, 3, incumbent, regret);
    assert_int_equal(options[0].allowed, first);
    assert_int_equal(options[1].allowed, second);
    assert_int_equal(options[2].allowed, third);
}

TEST(what_is_within_noise_is_allowed_or_the_incumbent_alone) {
    struct border_option options[] = {{0.30, 4, false, 0.1}, {0.05, 5, false, 0}, {0, 6, false, 0}};
    expect_allowed(options, NO_INCUMBENT, 0, false, true, true);
    expect_allowed(options, 5, 0, false, true, false);
    expect_allowed(options, 4, 0, false, true, true); // slower than noise
    expect_allowed(options, 5, 0.02, false, true, true);
    expect_allowed(options, NO_INCUMBENT, 0.3, true, true, true);
}

// Over several shapes another strategy may have less excess than the one with the least badness.
TEST(the_least_badness_is_always_allowed) {
    struct border_option options[] = {{0.01, 7, false, 0.005}, {0.01, 3, false, 0.005}, {0.02, 5, false, 0}};
    expect_allowed(options, NO_INCUMBENT, 0, false, true, true);
}
