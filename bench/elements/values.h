// The data of cells: every element is a function of a seed and its index, so that a check needs no copy of
// what ranks sent. Plain operations, which compilers turn into vectors.
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "conversions.h"
#include "random.h"

// Consecutive elements differ by this number before they are mixed.
static const uint32_t STEP = 0x9e3779b9u;

// A value in (-1, 1) that `bits` bits of significand hold exactly, with one of four exponents.
static inline float value_of(uint32_t unmixed, int bits) {
    uint32_t x = mix(unmixed);
    uint32_t exponent_bits = (127 - (uint32_t)bits - (x >> 1 & 3)) << 23 | x << 31;
    return (float)(int32_t)(x >> (32 - bits)) * bits_as_float(exponent_bits);
}

static inline float value_at(uint32_t seed, size_t index, int bits) {
    return value_of((uint32_t)index * STEP + seed, bits);
}

static inline uint32_t seed_of(uint32_t seed, int stream) {
    return mix(seed * STEP + (uint32_t)stream + 1);
}

#endif
