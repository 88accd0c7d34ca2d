// borders.c: the fewest borders, and of those the least badness, as an exhaustive search finds them.
#include "../../unit_test.h"

#include <math.h>
#include <stdlib.h>

#include "choose/borders.h"

enum { POINTS = 6, STRATEGIES = 3 };

static size_t borders_of(const struct border_point *points, const size_t *chosen, size_t count) {
    size_t borders = 0;
    for (size_t i = 1; i < count; i++) {
        borders += points[i].options[chosen[i]].strategy != points[i - 1].options[chosen[i - 1]].strategy;
    }
    return borders;
}

static double badness_of(const struct border_point *points, const size_t *chosen, size_t count) {
    double badness = 0;
    for (size_t i = 0; i < count; i++) badness += points[i].options[chosen[i]].badness;
    return badness;
}

// The next choice of the search; false after the last.
static bool next_choice(const struct border_point *points, size_t *chosen, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (++chosen[i] < points[i].count) return true;
        chosen[i] = 0;
    }
    return false;
}

static bool is_allowed(const struct border_point *points, const size_t *chosen, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!points[i].options[chosen[i]].allowed) return false;
    }
    return true;
}

// Tries all choices.
static void expect_the_best(const struct border_point *points, size_t count) {
    size_t chosen[POINTS] = {0}, given[POINTS], least = SIZE_MAX;
    double least_badness = INFINITY;
    do {
        if (!is_allowed(points, chosen, count)) continue;
        size_t borders = borders_of(points, chosen, count);
        double badness = badness_of(points, chosen, count);
        if (borders > least || (borders == least && badness >= least_badness)) continue;
        least = borders;
        least_badness = badness;
    } while (next_choice(points, chosen, count));
    for (size_t i = 0; i < count; i++) given[i] = points[i].chosen;
    assert_true(is_allowed(points, given, count));
    assert_int_equal(borders_of(points, given, count), least);
    if (fabs(badness_of(points, given, count) - least_badness) > 1e-9) {
        fail_msg("badness %g, not %g", badness_of(points, given, count), least_badness);
    }
}

// Chooses, and expects these options.
static void expect_chosen(struct border_point *points, size_t count, const size_t *expected) {
    assert_true(borders_choose(points, count));
    for (size_t i = 0; i < count; i++) assert_int_equal(points[i].chosen, expected[i]);
}
#define EXPECT_CHOSEN(points, ...)                                                                           \
    expect_chosen(points, sizeof(points) / sizeof(points)[0], (const size_t[]){__VA_ARGS__})

TEST(no_other_choice_is_better) {
    srand(1);
    for (int round = 0; round < 3000; round++) {
        struct border_option options[POINTS][STRATEGIES];
        struct border_point points[POINTS];
        for (size_t i = 0; i < POINTS; i++) {
            size_t count = 0;
            for (uint8_t s = 0; s < STRATEGIES; s++) {
                if (rand() % 5 == 0) continue; // some strategies have no time at some points
                options[i][count++] = (struct border_option){rand() % 100 / 100.0, s, rand() % 2 == 0};
            }
            if (count == 0) options[i][count++] = (struct border_option){0, 0, true};
            options[i][(size_t)rand() % count].allowed = true;
            points[i] = (struct border_point){options[i], count, 0};
        }
        assert_true(borders_choose(points, POINTS));
        expect_the_best(points, POINTS);
    }
}

// Staying with the strategy that goes farthest finds as few borders, but a worse choice for the middle.
TEST(going_as_far_as_possible_is_not_enough) {
    const struct border_option left[] = {{0, 0, true}, {0.9, 1, false}};
    const struct border_option middle[] = {{0.3, 0, true}, {0, 1, true}};
    const struct border_option right[] = {{0.9, 0, false}, {0, 1, true}};
    struct border_point points[] = {{left, 2, 9}, {middle, 2, 9}, {right, 2, 9}};
    EXPECT_CHOSEN(points, 0, 1, 1);
}

TEST(a_flip_that_must_not_be_lost_stays) {
    const struct border_option usual[] = {{0, 0, true}, {0.4, 1, false}};
    const struct border_option other[] = {{0.2, 0, false}, {0, 1, true}};
    struct border_point points[] = {{usual, 2, 9}, {other, 2, 9}, {usual, 2, 9}};
    EXPECT_CHOSEN(points, 0, 1, 0);
}

TEST(a_flip_that_may_be_lost_is_none) {
    const struct border_option usual[] = {{0, 0, true}, {0.4, 1, false}};
    const struct border_option other[] = {{0.01, 0, true}, {0, 1, true}};
    struct border_point points[] = {{usual, 2, 9}, {other, 2, 9}, {usual, 2, 9}};
    EXPECT_CHOSEN(points, 0, 0, 0);
}

TEST(of_equal_ones_the_first_wins) {
    const struct border_option options[] = {{0.1, 7, true}, {0.1, 3, true}};
    struct border_point points[] = {{options, 2, 9}, {options, 2, 9}};
    EXPECT_CHOSEN(points, 0, 0);
}

TEST(points_without_an_option_part_the_axis) {
    const struct border_option left[] = {{0, 0, true}, {0.01, 1, true}};
    const struct border_option right[] = {{0.01, 0, true}, {0, 1, true}};
    const struct border_option forbidden[] = {{0, 0, false}};
    struct border_point points[] = {{left, 2, 9}, {NULL, 0, 9}, {right, 2, 9}, {forbidden, 1, 9}};
    EXPECT_CHOSEN(points, 0, BORDER_NONE, 1, BORDER_NONE);
    assert_true(borders_choose(points, 0));
}
