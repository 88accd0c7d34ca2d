// Which rank differs from the others (bench/start/consistency.h), and in which trait.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "start/consistency.h"

enum { RANKS = 4 };

static struct identity ranks[RANKS];

static int new_ranks(void **state) {
    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        for (int trait = 0; trait < TRAITS; trait++) ranks[rank].traits[trait] = 100 + (uint64_t)trait;
    }
    return 0;
}

static void expect(int odd_rank, enum trait wanted, int count) {
    enum trait trait;
    assert_int_equal(consistency_find_odd_rank(ranks, count, &trait), odd_rank);
    if (odd_rank >= 0) assert_int_equal(trait, wanted);
}

static void ranks_that_are_alike_have_no_stranger(void **state) {
    (void)state;
    expect(-1, TRAITS, RANKS);
    expect(-1, TRAITS, 1);
}

static void the_one_that_differs_from_most_is_it(void **state) {
    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        for (int trait = 0; trait < TRAITS; trait++) {
            ranks[rank].traits[trait]++;
            expect(rank, (enum trait)trait, RANKS);
            ranks[rank].traits[trait]--;
        }
    }
}

static void of_two_it_is_not_rank_0(void **state) {
    (void)state;
    ranks[0].traits[TRAIT_CANDIDATES]++;
    expect(1, TRAIT_CANDIDATES, 2);
}

static void the_binary_explains_the_candidates(void **state) {
    (void)state;
    ranks[3].traits[TRAIT_CANDIDATES]++;
    ranks[2].traits[TRAIT_BINARY]++;
    expect(2, TRAIT_BINARY, RANKS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ranks_that_are_alike_have_no_stranger, new_ranks),
        cmocka_unit_test_setup(the_one_that_differs_from_most_is_it, new_ranks),
        cmocka_unit_test_setup(of_two_it_is_not_rank_0, new_ranks),
        cmocka_unit_test_setup(the_binary_explains_the_candidates, new_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
