// estimate/: contrasts find what was planted, the process interpolates, losses equal their formulas.
#include "../../unit_test.h"

#include <math.h>

#include "estimate/cholesky.h"
#include "estimate/contrasts.h"
#include "estimate/gaussian_process.h"
#include "estimate/losses.h"

static void expect_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance)) fail_msg("%.9g, not %.9g", value, expected);
}

TEST(a_factor_solves_and_inverts) {
    double a[] = {4, 0, 0, 2, 5, 0, 1, 3, 6}, b[] = {1, 2, 3}, room[9];
    assert_true(cholesky_factor(a, 3));
    cholesky_forward(a, 3, b, 1);
    cholesky_backward(a, 3, b);
    expect_near(4 * b[0] + 2 * b[1] + b[2], 1, 1e-12);
    expect_near(2 * b[0] + 5 * b[1] + 3 * b[2], 2, 1e-12);
    expect_near(b[0] + 3 * b[1] + 6 * b[2], 3, 1e-12);
    cholesky_invert(a, 3, room);
    expect_near(4 * a[0] + 2 * a[3] + a[6], 1, 1e-12);
    expect_near(2 * a[0] + 5 * a[3] + 3 * a[6], 0, 1e-12);
    double indefinite[] = {1, 0, 2, 1};
    assert_false(cholesky_factor(indefinite, 2));
}

// ---- contrasts

// A number from -1 to 1 that looks random.
static double scatter(unsigned seed) {
    unsigned bits = seed * 2654435761u;
    bits ^= bits >> 15;
    bits *= 2246822519u;
    return (double)(bits >> 8) / (1 << 23) - 1;
}

enum { LAUNCHES = 8, STRATEGIES = 3 };
static const double planted[STRATEGIES] = {3, 3.5, 2.75};

// A cell in all launches, each of which slows all strategies by another amount; noise up to `noise`.
static size_t add_cell(struct visit_time *times, uint32_t cell, double noise) {
    size_t count = 0;
    for (uint32_t launch = 0; launch < LAUNCHES; launch++) {
        double shift = scatter(launch + 77);
        for (uint8_t s = 0; s < STRATEGIES; s++) {
            double own = noise * scatter(cell * 100 + launch * STRATEGIES + s);
            times[count++] = (struct visit_time){cell, launch, s, planted[s] + shift + own};
        }
    }
    return count;
}

TEST(a_slow_launch_slows_all_and_cancels) {
    struct visit_time times[LAUNCHES * STRATEGIES];
    size_t count = add_cell(times, 0, 0);
    const double noise[STRATEGIES] = {0.05, 0.05, 0.05};
    struct cell_levels levels;
    assert_true(contrasts_levels(times, count, noise, &levels));
    assert_int_equal(levels.count, STRATEGIES);
    for (size_t s = 1; s < STRATEGIES; s++) {
        expect_near(levels.level[s] - levels.level[0], planted[s] - planted[0], 1e-9);
        const double *c = levels.covariance;
        double variance = c[s * STRATEGIES + s] - 2 * c[s * STRATEGIES] + c[0];
        expect_near(variance, 2 * 0.05 * 0.05 / LAUNCHES, 0.3 * 2 * 0.05 * 0.05 / LAUNCHES);
    }
    contrasts_free(&levels);
}

// The variance of strategy 1 minus strategy 0 in a cell with noise up to `noise`, where 0.05 is expected.
static double variance_with(double noise) {
    struct visit_time times[LAUNCHES * STRATEGIES];
    size_t count = add_cell(times, 0, noise);
    const double expected[STRATEGIES] = {0.05, 0.05, 0.05};
    struct cell_levels levels;
    assert_true(contrasts_levels(times, count, expected, &levels));
    const double *c = levels.covariance;
    double variance = c[STRATEGIES + 1] - 2 * c[STRATEGIES] + c[0];
    contrasts_free(&levels);
    return variance;
}

TEST(a_cell_that_varies_more_is_less_sure) {
    double quiet = variance_with(0.01), noisy = variance_with(0.3);
    if (!(noisy > 3 * quiet)) fail_msg("%g, %g", quiet, noisy);
}

TEST(a_spoiled_time_counts_less) {
    struct visit_time times[LAUNCHES * STRATEGIES];
    size_t count = add_cell(times, 0, 0.02);
    times[4].level += 2; // strategy 1 in launch 1 took four times as long
    const double noise[STRATEGIES] = {0.02, 0.02, 0.02};
    struct cell_levels levels;
    assert_true(contrasts_levels(times, count, noise, &levels));
    expect_near(levels.level[1] - levels.level[0], planted[1] - planted[0], 0.04); // the mean is off by 0.25
    contrasts_free(&levels);
}

TEST(noise_is_estimated_per_strategy) {
    enum { CELLS = 40 };
    static struct visit_time times[CELLS * LAUNCHES * STRATEGIES];
    size_t count = 0;
    for (uint32_t cell = 0; cell < CELLS; cell++) count += add_cell(times + count, cell, 0);
    for (size_t i = 0; i < count; i++) {
        times[i].level += (times[i].strategy == 1 ? 0.3 : 0.01) * scatter((unsigned)i + 1234);
    }
    double noise[STRATEGIES];
    assert_true(contrasts_noise(times, count, STRATEGIES, noise));
    if (!(noise[1] > 3 * noise[0] && noise[1] > 3 * noise[2])) {
        fail_msg("%g, %g and %g", noise[0], noise[1], noise[2]);
    }
}

// Strategy 2 has two times alone. What the others show about the machine's noise counts for it.
TEST(noise_of_few_times_is_like_that_of_others) {
    enum { CELLS = 40 };
    static struct visit_time times[CELLS * LAUNCHES * STRATEGIES];
    size_t count = 0, kept = 0;
    for (uint32_t cell = 0; cell < CELLS; cell++) count += add_cell(times + count, cell, 0.01);
    for (size_t i = 0; i < count; i++) {
        if (times[i].strategy != 2 || (times[i].cell == 0 && times[i].launch < 2)) times[kept++] = times[i];
    }
    double noise[STRATEGIES];
    assert_true(contrasts_noise(times, kept, STRATEGIES, noise));
    if (!(noise[2] < 0.02)) fail_msg("%g beside %g", noise[2], noise[0]);
}

// ---- the process

static struct process_shape shape_at(double log2_bytes, uint32_t cell) {
    return (struct process_shape){.log2_bytes = log2_bytes, .cell = cell};
}

// Two strategies that cross at 16 octaves, measured at 12, 14, 18 and 20.
static struct gaussian_process *crossing(void) {
    static const double at[] = {12, 14, 18, 20};
    struct process_shape shapes[4];
    struct visit_time times[4 * 2 * 2];
    size_t count = 0;
    for (uint32_t cell = 0; cell < 4; cell++) {
        shapes[cell] = shape_at(at[cell], cell);
        for (uint32_t launch = 0; launch < 2; launch++) {
            times[count++] = (struct visit_time){cell, launch, 0, 1};
            times[count++] = (struct visit_time){cell, launch, 1, 1 + 0.2 * (at[cell] - 16)};
        }
    }
    const struct process_strategy strategies[2] = {{.method = 0}, {.method = 1}};
    return process_fit(times, count, shapes, strategies, 2);
}

// How much slower strategy 1 is than strategy 0 there, and its standard deviation.
static double difference_at(const struct gaussian_process *process, struct process_shape shape,
                            double *deviation) {
    const struct process_point points[] = {{shape, 0}, {shape, 1}};
    double mean[2], covariance[4];
    const struct process_near *near = process_near(process, &shape);
    assert_non_null(near);
    assert_true(process_predict(near, points, 2, mean, covariance));
    process_near_free(near);
    *deviation = sqrt(covariance[0] + covariance[3] - 2 * covariance[2]);
    return mean[1] - mean[0];
}

TEST(a_process_interpolates_and_is_less_sure_farther_away) {
    struct gaussian_process *process = crossing();
    assert_non_null(process);
    double measured, near, far;
    expect_near(difference_at(process, shape_at(14, 1), &measured), -0.4, 0.05);
    expect_near(difference_at(process, shape_at(16, PROCESS_NO_CELL), &near), 0, 0.05);
    expect_near(difference_at(process, shape_at(13, PROCESS_NO_CELL), &near), -0.6, 0.08);
    difference_at(process, shape_at(28, PROCESS_NO_CELL), &far);
    if (!(measured < near && near < far)) fail_msg("%g, %g, %g", measured, near, far);
    process_free(process);
}

// The standard deviation of the difference of two strategies that are equal in three cells, in a fourth one.
static double doubt_about_equals(uint8_t method_of_second) {
    struct process_shape shapes[3];
    struct visit_time times[3 * 2];
    for (uint32_t cell = 0; cell < 3; cell++) {
        shapes[cell] = shape_at(12 + 2 * cell, cell);
        times[2 * cell] = (struct visit_time){cell, 0, 0, 3};
        times[2 * cell + 1] = (struct visit_time){cell, 0, 1, 3};
    }
    const struct process_strategy strategies[2] = {{.method = 0}, {.method = method_of_second}};
    struct gaussian_process *process = process_fit(times, 3 * 2, shapes, strategies, 2);
    assert_non_null(process);
    double deviation;
    expect_near(difference_at(process, shape_at(15, PROCESS_NO_CELL), &deviation), 0, 0.01);
    process_free(process);
    return deviation;
}

TEST(variants_of_a_method_resemble_each_other) {
    double variant = doubt_about_equals(0), other = doubt_about_equals(1);
    if (!(variant < 0.5 * other)) fail_msg("%g, and %g of another method", variant, other);
}

// More contrasts than a process takes as a whole: only cells nearby count, and they suffice.
TEST(a_large_process_uses_the_cells_nearby) {
    enum { CELLS = PROCESS_WHOLE + 200 };
    static struct process_shape shapes[CELLS];
    static struct visit_time times[2 * CELLS];
    for (uint32_t cell = 0; cell < CELLS; cell++) {
        shapes[cell] = shape_at(10 + 20.0 * cell / CELLS, cell);
        double slower = 0.5 * sin(shapes[cell].log2_bytes);
        times[2 * cell] = (struct visit_time){cell, 0, 0, 3};
        times[2 * cell + 1] = (struct visit_time){cell, 0, 1, 3 + slower};
    }
    const struct process_strategy strategies[2] = {{.method = 0}, {.method = 1}};
    struct gaussian_process *process = process_fit(times, 2 * CELLS, shapes, strategies, 2);
    assert_non_null(process);
    for (double at = 11; at < 30; at += 4.5) {
        double deviation;
        expect_near(difference_at(process, shape_at(at, PROCESS_NO_CELL), &deviation), 0.5 * sin(at), 0.02);
    }
    process_free(process);
}

// Strategy 1 is slower by 0.8 octaves for a remainder of 1: what other sizes show about that counts at a size
// between them, for a strategy that passes messages in parts.
TEST(a_remainder_costs_the_same_at_other_sizes) {
    static const double remainder[] = {0, 0.5, 0, 0.25};
    struct process_shape shapes[4], between = shape_at(15, PROCESS_NO_CELL);
    struct visit_time times[4 * 2];
    for (uint32_t cell = 0; cell < 4; cell++) {
        shapes[cell] = shape_at(12 + 2 * cell, cell);
        shapes[cell].remainder = remainder[cell];
        times[2 * cell] = (struct visit_time){cell, 0, 0, 3};
        times[2 * cell + 1] = (struct visit_time){cell, 0, 1, 3 + 0.8 * remainder[cell]};
    }
    between.remainder = 0.5;
    for (int has_parts = 0; has_parts < 2; has_parts++) {
        const struct process_strategy strategies[2] = {{.method = 0}, {.method = 1, .has_parts = has_parts}};
        struct gaussian_process *process = process_fit(times, 4 * 2, shapes, strategies, 2);
        assert_non_null(process);
        double deviation, slower = difference_at(process, between, &deviation);
        if (has_parts) expect_near(slower, 0.4, 0.12);
        if (!has_parts && slower > 0.25) fail_msg("%g without parts", slower);
        process_free(process);
    }
}

// ---- losses

// The probability that a normal number is below z.
static double normal_below(double z) {
    return 0.5 * erfc(-z / sqrt(2));
}

TEST(losses_of_two_equal_their_formulas) {
    const double slower = 0.1, deviation = 0.08; // of the second, in log2
    const double mean[] = {0, slower}, weight[] = {1};
    double covariance[] = {0, 0, 0, deviation * deviation};
    struct loss_figures figures[2];
    assert_true(losses_over_bin(mean, covariance, 1, 2, weight, figures));
    // The first loses more than 2 % where the second is faster by more than log2 1.02.
    expect_near(figures[0].confidence, normal_below((slower + log2(1.02)) / deviation), 0.02);
    expect_near(figures[1].confidence, normal_below((log2(1.02) - slower) / deviation), 0.03);
    // The mean loss of the second is about ln 2 times the mean of what is above 0 of its level.
    double z = slower / deviation, density = exp(-z * z / 2) / sqrt(2 * acos(-1));
    double above = slower * normal_below(z) + deviation * density;
    expect_near(figures[1].expected, log(2) * above, 0.006);
    expect_near(figures[1].worst, exp2(slower + 1.645 * deviation) - 1, 0.02);
    expect_near(figures[0].worst, fmax(0, exp2(-slower + 1.645 * deviation) - 1), 0.01);
}

TEST(a_bin_takes_the_weighted_mean_of_its_shapes) {
    const double mean[] = {0, 1, 1, 0}, weight[] = {3, 1};
    double covariance[16] = {0};
    struct loss_figures figures[2];
    assert_true(losses_over_bin(mean, covariance, 2, 2, weight, figures));
    expect_near(figures[0].expected, 0.25, 1e-3);
    expect_near(figures[1].expected, 0.75, 1e-3);
    expect_near(figures[0].confidence, 0, 0);
}
