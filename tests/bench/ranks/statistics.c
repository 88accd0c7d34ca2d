// Median, its interval and the percentiles, on samples with known answers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elements/statistics.h"

static void check(double is, double should) {
    if (is != should) fail_msg("%g, not %g", is, should);
}

static void odd_and_even_medians(void **state) {
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    check(median(odd, 3), 2);
    check(median(even, 4), 2.5);
}

static void few_samples_have_their_range_as_interval(void **state) {
    (void)state;
    double samples[] = {5, 1, 4, 2, 3};
    struct summary summary = summarise(samples, 5);
    check(summary.low, 1);
    check(summary.high, 5);
    check(summary.median, 3);
}

// Le Boudec, table of order statistics for 95%: n = 100 gives the 40th and the 61st.
static void the_interval_is_that_of_order_statistics(void **state) {
    (void)state;
    double samples[100];
    for (int i = 0; i < 100; i++) samples[i] = (double)((i * 37) % 100 + 1);
    struct summary summary = summarise(samples, 100);
    check(summary.low, 40);
    check(summary.high, 61);
    check(summary.median, 50.5);
    check(summary.min, 1);
    check(summary.p95, 95);
    check(summary.p99, 99);
}

static void one_sample_is_everything(void **state) {
    (void)state;
    double samples[] = {7};
    struct summary summary = summarise(samples, 1);
    check(summary.median, 7);
    check(summary.low, 7);
    check(summary.high, 7);
    check(summary.p99, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_and_even_medians),
        cmocka_unit_test(few_samples_have_their_range_as_interval),
        cmocka_unit_test(the_interval_is_that_of_order_statistics),
        cmocka_unit_test(one_sample_is_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
