// Which elements share a scale; see scales.h.
#include "scales.h"

static const struct scales of_blocks[BLOCKS] = {
    [BLOCK_1X128] = {.are_there = true, .k_bits = 7},
    [BLOCK_128X128] = {.are_there = true, .row_bits = 7, .k_bits = 7},
    [BLOCK_1X32] = {.are_there = true, .k_bits = 5},
    [BLOCK_1X16] = {.are_there = true, .k_bits = 4},
};

// Only operands of at most 8 bits have scales.
static struct scales scales_of(const struct gemm *gemm, enum data_type type, enum block block,
                               uint64_t seed) {
    enum { ALL_OF_K = 63 };
    struct scales scales = {.are_there = false};
    if (!is_small(type)) return scales;
    if (gemm->scaling == SCALE_ROW) scales = (struct scales){.are_there = true, .k_bits = ALL_OF_K};
    if (gemm->scaling == SCALE_BLOCK) scales = of_blocks[block];
    scales.seed = seed;
    return scales;
}

struct scales scales_of_a(const struct gemm *gemm, enum data_type type) {
    return scales_of(gemm, type, gemm->block_a, 1);
}

struct scales scales_of_b(const struct gemm *gemm, enum data_type type) {
    return scales_of(gemm, type, gemm->block_b, 2);
}
