// The scales of the operands of a product: 1 or 2, as a hash of the row and the block of K decides, so that
// neighbours differ, and a library that reads them in another order has a wrong result. The check computes
// with them by row and K; the library's call has them in memory, in the order that the library requires.
#ifndef REPLAY_SCALES_H
#define REPLAY_SCALES_H

#include "op.h"

// The scales of an operand: its rows are those of A, or the columns of B. A block is so many rows by so many
// elements of K, as powers of two.
struct scales {
    bool are_there; // false: they are all 1
    int row_bits, k_bits;
    uint64_t seed;
};

// The scales of A, or of B, in a product of operands of this type.
struct scales scales_of_a(const struct gemm *gemm, enum data_type type);
struct scales scales_of_b(const struct gemm *gemm, enum data_type type);

// The exponent to 2 of a scale, by the numbers of its block.
static inline int scale_exponent(const struct scales *scales, uint64_t row_block, uint64_t k_block) {
    uint64_t mixed = scales->seed + row_block * 0x9E3779B97F4A7C15 + k_block * 0xC2B2AE3D27D4EB4F;
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9;
    return (int)(mixed >> 63);
}

// The scale of an element.
static inline double scale_at(const struct scales *scales, size_t row, size_t k) {
    if (!scales->are_there) return 1;
    return scale_exponent(scales, (uint64_t)row >> scales->row_bits, (uint64_t)k >> scales->k_bits) + 1;
}

#endif
