// Data types of the kernels: conversions of sixteen bytes to floats and back, and the codes of FP8 and NVFP4.
// The same on a GPU and in tests.
#ifndef BENCH_CUDA_TYPES_H
#define BENCH_CUDA_TYPES_H

#include "layer.h"

struct Bfloat16 {
    static constexpr int per_access = 8;
    static constexpr bool is_bfloat16 = true;
    static DEVICE_MEMBER float low(uint32_t pair) { return float_of_bits(pair << 16); }
    static DEVICE_MEMBER float high(uint32_t pair) { return float_of_bits(pair & 0xffff0000u); }
    static DEVICE_MEMBER uint32_t pack(float low, float high) { return pack_bfloat16(low, high); }
};

struct Float16 {
    static constexpr int per_access = 8;
    static constexpr bool is_bfloat16 = false;
    static DEVICE_MEMBER float low(uint32_t pair) { return float_of_float16(pair & 0xffffu); }
    static DEVICE_MEMBER float high(uint32_t pair) { return float_of_float16(pair >> 16); }
    static DEVICE_MEMBER uint32_t pack(float low, float high) { return pack_float16(low, high); }
};

struct Float32 {
    static constexpr int per_access = 4;
};

// values[0 .. per_access-1] of a word.
template <class Type> DEVICE_FUNCTION void unpack(Word4 from, float *values) {
    for (int i = 0; i < 4; i++) {
        if constexpr (Type::per_access == 4) {
            values[i] = float_of_bits(from.word[i]);
        } else {
            values[2 * i] = Type::low(from.word[i]);
            values[2 * i + 1] = Type::high(from.word[i]);
        }
    }
}

// The reverse; rounds to nearest even, once.
template <class Type> DEVICE_FUNCTION Word4 pack(const float *values) {
    Word4 to;
    for (int i = 0; i < 4; i++) {
        if constexpr (Type::per_access == 4) {
            to.word[i] = bits_of_float(values[i]);
        } else {
            to.word[i] = Type::pack(values[2 * i], values[2 * i + 1]);
        }
    }
    return to;
}

// ---- FP8 and NVFP4 ------------------------------------------------------------------------------

// Rounds a finite magnitude, given as bits of a float, to nearest even in a small format; `smallest` is its
// least normal value. A carry goes into the exponent.
DEVICE_FUNCTION uint32_t round_small(uint32_t magnitude, unsigned mantissa_bits, unsigned bias,
                                     float smallest) {
    unsigned shift = 23 - mantissa_bits;
    if (float_of_bits(magnitude) < smallest) {
        // A sum with this power of two has the code in its last bits.
        float magic = smallest * static_cast<float>(1u << shift);
        return bits_of_float(float_of_bits(magnitude) + magic) - bits_of_float(magic);
    }
    uint32_t odd = magnitude >> shift & 1u;
    return (magnitude + ((1u << (shift - 1)) - 1) + odd - ((127 - bias) << 23)) >> shift;
}

// e4m3: to nearest even, saturating at 448; NaN is 0x7f, as GPUs convert it.
DEVICE_FUNCTION uint32_t e4m3_code(float value) {
    uint32_t bits = bits_of_float(value), magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7f;
    if (magnitude > 0x43e00000u) magnitude = 0x43e00000u;
    return round_small(magnitude, 3, 7, 0x1p-6f) | (bits >> 24 & 0x80u);
}

// Two of them, `low` in the low byte: one instruction from SM89 on, else about 40.
DEVICE_FUNCTION uint32_t e4m3_codes(float low, float high) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 890
    return pack_e4m3(low, high);
#else
    return e4m3_code(low) | e4m3_code(high) << 8;
#endif
}

DEVICE_FUNCTION float e4m3_value(uint32_t code) {
    uint32_t exponent = code >> 3 & 0xfu, mantissa = code & 7u;
    if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-9f;
    return float_of_bits((exponent + 120) << 23 | mantissa << 20);
}

// e2m1: to nearest even, saturating at 6; there is no NaN, which saturates as well.
DEVICE_FUNCTION uint32_t e2m1_code(float value) {
    uint32_t bits = bits_of_float(value), magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x40c00000u) magnitude = 0x40c00000u;
    return round_small(magnitude, 1, 1, 1.0f) | (bits >> 28 & 0x8u);
}

#endif
