// select.c: who wins a cell, and what is said of the choice.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../generator/select.h"

static void expect_near(double value, double expected) {
    if (!(fabs(value - expected) < 1e-6)) fail_msg("%.9g, not %.9g", value, expected);
}

static void the_least_median_wins(void **state) {
    (void)state;
    const struct candidate candidates[] = {{8, NAN, NAN, 0}, {5, NAN, NAN, 1}, {6, NAN, NAN, 2}};
    struct choice choice = select_choose(candidates, 3);
    assert_int_equal(choice.winner, 1);
    assert_int_equal(choice.runner_up, 2);
    expect_near(choice.margin, 0.2);
    assert_true(isnan(choice.confidence));
    assert_true(isnan(choice.regret));
}

static void equal_medians_keep_the_order_of_the_list(void **state) {
    (void)state;
    const struct candidate candidates[] = {{5, NAN, NAN, 7}, {5, NAN, NAN, 2}, {5, NAN, NAN, 4}};
    struct choice choice = select_choose(candidates, 3);
    assert_int_equal(choice.winner, 1);
    assert_int_equal(choice.runner_up, 2);
    expect_near(choice.margin, 0);
}

static void a_single_candidate_has_nothing_to_compare(void **state) {
    (void)state;
    const struct candidate candidates[] = {{5, 4, 6, 7}};
    struct choice choice = select_choose(candidates, 1);
    assert_int_equal(choice.winner, 0);
    assert_int_equal(choice.runner_up, NO_RUNNER_UP);
    assert_true(isnan(choice.margin) && isnan(choice.confidence) && isnan(choice.regret));
}

static void confidence_is_the_chance_that_the_order_is_right(void **state) {
    (void)state;
    // Intervals of ±1.96 are standard deviations of 1; medians √2 apart are one deviation of their
    // difference.
    const struct candidate apart[] = {
        {10, 10 - 1.959963985, 10 + 1.959963985, 0},
        {10 + sqrt(2), 10 + sqrt(2) - 1.959963985, 10 + sqrt(2) + 1.959963985, 1}};
    expect_near(select_choose(apart, 2).confidence, 0.8413447);
    const struct candidate alike[] = {{10, 9, 11, 0}, {10, 9, 11, 1}};
    expect_near(select_choose(alike, 2).confidence, 0.5);
    const struct candidate exact[] = {{10, 10, 10, 0}, {11, 11, 11, 1}};
    expect_near(select_choose(exact, 2).confidence, 1);
    const struct candidate half_known[] = {{10, 9, 11, 0}, {11, NAN, NAN, 1}};
    assert_true(isnan(select_choose(half_known, 2).confidence));
}

static void regret_is_the_most_that_the_choice_can_lose(void **state) {
    (void)state;
    // The third has the lowest low, though the second is the runner-up.
    const struct candidate candidates[] = {{10, 9, 12, 0}, {11, 10, 12, 1}, {13, 8, 20, 2}};
    struct choice choice = select_choose(candidates, 3);
    assert_int_equal(choice.runner_up, 1);
    expect_near(choice.regret, 0.5);
    const struct candidate clear[] = {{10, 9, 11, 0}, {20, 19, 21, 1}};
    expect_near(select_choose(clear, 2).regret, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_median_wins),
        cmocka_unit_test(equal_medians_keep_the_order_of_the_list),
        cmocka_unit_test(a_single_candidate_has_nothing_to_compare),
        cmocka_unit_test(confidence_is_the_chance_that_the_order_is_right),
        cmocka_unit_test(regret_is_the_most_that_the_choice_can_lose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
