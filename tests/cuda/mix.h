// Numbers that look random and are the same for the same seed: what tests of kernels fill arrays with.
#ifndef TESTS_CUDA_MIX_H
#define TESTS_CUDA_MIX_H

#include <cstdint>

inline uint32_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return static_cast<uint32_t>(x >> 32);
}

#endif
