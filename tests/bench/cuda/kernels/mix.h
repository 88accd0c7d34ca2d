// Pseudo-random numbers, with which tests of kernels fill arrays, and their seed.
#ifndef TESTS_CUDA_MIX_H
#define TESTS_CUDA_MIX_H

#include <cstdint>
#include <cstdlib>
#include <ctime>

inline uint32_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return static_cast<uint32_t>(x >> 32);
}

// The seed of a run: the argument, unless that is 0; then the time of day if the environment has
// GENTABLES_NIGHTLY, else always the same.
inline uint64_t seed_of(const char *argument) {
    constexpr uint64_t OF_EACH_DAY = 20250117;
    uint64_t seed = std::strtoull(argument, nullptr, 0);
    if (seed != 0) return seed;
    return std::getenv("GENTABLES_NIGHTLY") ? static_cast<uint64_t>(std::time(nullptr)) : OF_EACH_DAY;
}

#endif
