// Generators of random numbers, each with its state in one number.
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>

// Scrambles the bits of a number (murmur3's finalizer): a hash, and the basis of values at any index.
static inline uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

// Marsaglia's xorshift32, for random orders. The state is never 0.
static inline uint32_t random_32(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

// splitmix64, for contents of arrays.
static inline uint64_t random_64(uint64_t *state) {
    uint64_t bits = *state += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

#endif
