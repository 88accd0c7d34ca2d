// Median, its interval and the percentiles, on samples with known results.
#include "../../unit_test.h"

#include "elements/statistics.h"

static void check(double is, double should) {
    if (is != should) fail_msg("%g, not %g", is, should);
}

TEST(odd_and_even_medians) {
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    check(median(odd, 3), 2);
    check(median(even, 4), 2.5);
}

TEST(few_samples_have_their_range_as_interval) {
    double samples[] = {5, 1, 4, 2, 3};
    struct summary summary = summarise(samples, 5);
    check(summary.low, 1);
    check(summary.high, 5);
    check(summary.median, 3);
}

// Le Boudec, table of order statistics for 95%: n = 100 gives the 40th and the 61st.
TEST(the_interval_is_that_of_order_statistics) {
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

TEST(one_sample_is_everything) {
    double samples[] = {7};
    struct summary summary = summarise(samples, 1);
    check(summary.median, 7);
    check(summary.low, 7);
    check(summary.high, 7);
    check(summary.p99, 7);
}
