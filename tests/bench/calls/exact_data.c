// Sums of the exact data (bench/calls/exact_data.h) are exact in every order, for each number of ranks, and a
// rank that is left out, or counted twice, makes a wrong result.
#include "../../unit_test.h"

#include <string.h>

#include "calls/exact_data.h"
#include "elements/element.h"

enum { ELEMENTS = 16288 + 100 }; // more than a period

static void is_exact(enum dtype dtype, int ranks) {
    struct pool pool;
    float sum[ELEMENTS] = {0}, positive[ELEMENTS] = {0}, negative[ELEMENTS] = {0};
    static unsigned char out[4 * ELEMENTS];
    assert_int_equal(pool_open(&pool, dtype, ELEMENTS, ranks, kernels_best()), 0);
    const struct call call = {.dtype = dtype, .num_tokens = 1, .hidden_size = ELEMENTS, .out = out};
    for (int rank = 0; rank < ranks; rank++) {
        const void *input = pool_input(&pool, OP_ALLREDUCE, rank, 1);
        for (size_t i = 0; i < ELEMENTS; i++) {
            float value = (float)element_value(dtype, input, i);
            sum[i] += value;
            *(value > 0 ? &positive[i] : &negative[i]) += value;
        }
    }
    for (size_t i = 0; i < ELEMENTS; i++) {
        element_store(dtype, out, i, sum[i]);
        assert_true((float)element_value(dtype, out, i) == sum[i]);
        assert_true(positive[i] <= 32 && negative[i] >= -32); // no partial sum is beyond them
    }
    assert_true(pool_is_right(&pool, &call, 0, 1));
    for (int rank = 0; rank < ranks; rank += ranks < 8 ? 1 : ranks / 8) {
        const void *input = pool_input(&pool, OP_ALLREDUCE, rank, 1);
        for (size_t i = 0; i < ELEMENTS; i++) {
            element_store(dtype, out, i, sum[i] - (float)element_value(dtype, input, i));
        }
        assert_false(pool_is_right(&pool, &call, 0, 1));
    }
    pool_close(&pool);
}

TEST(sums_are_exact_for_every_number_of_ranks) {
    const int ranks[] = {2, MAX_NODE_RANKS, 24, 36, 37, 64, 65, 333, MAX_RANKS};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        is_exact(DTYPE_BFLOAT16, ranks[i]);
    }
    is_exact(DTYPE_FLOAT16, MAX_RANKS);
    is_exact(DTYPE_FLOAT32, MAX_RANKS);
}

// Moved data have no zeros, by which one share could be another one.
TEST(moved_data_are_numbers) {
    struct pool pool;
    assert_int_equal(pool_open(&pool, DTYPE_FLOAT32, 64, MAX_RANKS, kernels_best()), 0);
    for (int rank = 0; rank < MAX_RANKS; rank++) {
        const float *input = pool_input(&pool, OP_ALLTOALL, rank, 0);
        for (size_t i = 0; i < 64; i++) assert_true(input[i] > 0 || input[i] < 0);
    }
    pool_close(&pool);
}
