// select.c: the candidates of a cell, and the figures of a choice.
#include "../../unit_test.h"

#include <math.h>

#include "choose/select.h"

static void expect_near(double value, double expected) {
    if (!(fabs(value - expected) < 1e-9)) fail_msg("%.9g, not %.9g", value, expected);
}

// A strategy with these figures; `time_us` at the cell's own shape.
static struct candidate with(uint8_t strategy, double time_us, double expected, double worst,
                             double confidence) {
    return (struct candidate){log2(time_us), {expected, worst, confidence}, strategy};
}

TEST(the_runner_up_has_the_least_expected_loss_of_the_others) {
    const struct candidate candidates[] = {with(0, 8, 0.6, 0.6, 0), with(1, 5, 0, 0, 1),
                                           with(2, 6, 0.2, 0.3, 0)};
    struct choice choice = select_describe(candidates, 3, 1);
    assert_int_equal(choice.runner_up, 2);
    expect_near(choice.margin, 0.2);
    choice = select_describe(candidates, 3, 2);
    assert_int_equal(choice.runner_up, 1);
    expect_near(choice.margin, -0.2);
}

TEST(equal_ones_keep_the_order_of_the_list) {
    const struct candidate candidates[] = {with(7, 5, 0, 0, 1), with(2, 5, 0, 0, 1), with(4, 5, 0, 0, 1)};
    assert_int_equal(select_describe(candidates, 3, 1).runner_up, 2);
    assert_int_equal(select_describe(candidates, 3, 0).runner_up, 1);
}

static void expect_state(const struct candidate *candidates, size_t count, enum state state) {
    assert_int_equal(select_describe(candidates, count, 0).state, state);
}

TEST(a_choice_is_certain_a_tie_or_uncertain) {
    const struct candidate certain[] = {with(0, 5, 0.001, 0.01, 0.95), with(1, 6, 0.2, 0.3, 0.1)};
    expect_state(certain, 2, STATE_CERTAIN);
    const struct candidate tie[] = {with(0, 5, 0.004, 0.02, 0.93), with(1, 5, 0.005, 0.02, 0.92)};
    expect_state(tie, 2, STATE_TIE);
    const struct candidate unlikely[] = {with(0, 5, 0.004, 0.03, 0.89), with(1, 5, 0.005, 0.02, 0.92)};
    expect_state(unlikely, 2, STATE_UNCERTAIN);
    const struct candidate costly[] = {with(0, 5, 0.011, 0.3, 0.95), with(1, 5, 0.2, 0.3, 0.1)};
    expect_state(costly, 2, STATE_UNCERTAIN);
    expect_state(certain, 1, STATE_CERTAIN);
}

TEST(without_launches_a_clear_margin_is_certain) {
    const struct candidate clear[] = {with(0, 5, 0, 0, NAN), with(1, 5.3, 0.06, 0.06, NAN)};
    expect_state(clear, 2, STATE_CERTAIN);
    assert_true(isnan(select_describe(clear, 2, 0).confidence));
    assert_true(isnan(select_describe(clear, 2, 0).expected));
    const struct candidate close[] = {with(0, 5, 0, 0, NAN), with(1, 5.2, 0.04, 0.04, NAN)};
    expect_state(close, 2, STATE_UNCERTAIN);
    expect_state(close, 1, STATE_CERTAIN);
}

TEST(the_worst_loss_in_time_is_that_of_the_cells_own_shape) {
    const struct candidate candidates[] = {with(0, 12, 0.02, 0.25, 0.5), with(1, 10, 0.05, 0.3, 0.4)};
    struct choice choice = select_describe(candidates, 2, 0);
    expect_near(choice.worst, 0.25);
    expect_near(choice.worst_us, 2.5);
    expect_near(choice.expected, 0.02);
    expect_near(choice.confidence, 0.5);
}

TEST(a_single_candidate_has_nothing_to_compare) {
    const struct candidate candidates[] = {with(7, 5, 0, 0, 1)};
    struct choice choice = select_describe(candidates, 1, 0);
    assert_int_equal(choice.runner_up, NO_RUNNER_UP);
    assert_true(isnan(choice.margin));
}

enum { NO_INCUMBENT = 255 };

static void expect_allowed(struct border_option options[3], uint8_t incumbent, double regret, bool noisy,
                           const char *allowed) {
    select_allow(options, 3, incumbent, regret, noisy);
    for (size_t i = 0; i < 3; i++) assert_int_equal(options[i].allowed, allowed[i] == '+');
}

TEST(what_hardly_loses_more_is_allowed_or_the_incumbent_alone) {
    struct border_option options[] = {{0.30, 4, false}, {0.012, 5, false}, {0.01, 6, false}};
    expect_allowed(options, NO_INCUMBENT, 0, true, "-++");
    expect_allowed(options, NO_INCUMBENT, 0, false, "--+"); // exact times
    expect_allowed(options, 5, 0, true, "-+-");
    expect_allowed(options, 5, 0, false, "-+-");
    expect_allowed(options, 4, 0, true, "-++"); // it loses too much
    expect_allowed(options, 5, 0.02, true, "-++");
    expect_allowed(options, NO_INCUMBENT, 0.3, false, "+++");
    options[1].badness = 0.013;
    expect_allowed(options, 5, 0, true, "--+");
}
