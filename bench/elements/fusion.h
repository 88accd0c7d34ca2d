// Sizes of the results of an epilogue, from the list of fusions.
#ifndef BENCH_FUSION_H
#define BENCH_FUSION_H

#include <stdbool.h>
#include <stddef.h>

#include "lists.h"

static inline bool fusion_has_codes(enum fusion fusion) {
    return fusion_facts[fusion].code_bits > 0;
}

// The bytes of `elements` elements of the result.
static inline size_t fusion_out_bytes(enum fusion fusion, enum dtype dtype, size_t elements) {
    unsigned bits = fusion_facts[fusion].code_bits;
    return bits > 0 ? elements * bits / 8 : elements * dtype_sizes_bytes[dtype];
}

// Bytes of the block scales in the SWIZZLED layout of TensorRT-LLM: rows are padded to 128, columns (one per
// block of 16 elements) to 4.
static inline size_t block_scales_bytes(size_t rows, size_t hidden_size) {
    return (rows + 127) / 128 * 128 * ((hidden_size + 63) / 64 * 4);
}

// The index of the scale of elements column*16 .. column*16+15 of `row` in that layout.
static inline size_t block_scale_offset(size_t row, size_t column, size_t hidden_size) {
    size_t tiles = (hidden_size + 63) / 64;
    return row / 128 * tiles * 512 + column / 4 * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
}

#endif
