// Which rank differs from the others (bench/start/consistency.h), and in which trait.
#include "../../unit_test.h"

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

TEST_WITH(new_ranks, NULL, ranks_that_are_alike_have_no_stranger) {
    expect(-1, TRAITS, RANKS);
    expect(-1, TRAITS, 1);
}

TEST_WITH(new_ranks, NULL, the_one_that_differs_from_most_is_it) {
    for (int rank = 0; rank < RANKS; rank++) {
        for (int trait = 0; trait < TRAITS; trait++) {
            ranks[rank].traits[trait]++;
            expect(rank, (enum trait)trait, RANKS);
            ranks[rank].traits[trait]--;
        }
    }
}

TEST_WITH(new_ranks, NULL, of_two_it_is_not_rank_0) {
    ranks[0].traits[TRAIT_CANDIDATES]++;
    expect(1, TRAIT_CANDIDATES, 2);
}

TEST(the_rank_with_other_kernels_than_rank_0_is_named) {
    const char isas[RANKS][ISA_SIZE] = {"avx512", "avx512", "avx2", "portable"};
    assert_int_equal(consistency_find_other_isa(isas, 2), -1);
    assert_int_equal(consistency_find_other_isa(isas, RANKS), 2);
}

TEST_WITH(new_ranks, NULL, the_binary_explains_the_candidates) {
    ranks[3].traits[TRAIT_CANDIDATES]++;
    ranks[2].traits[TRAIT_BINARY]++;
    expect(2, TRAIT_BINARY, RANKS);
}
