// Conversions between floats and narrower formats, one element at a time, to nearest even. Plain operations
// on bits, which compilers turn into vectors. The strategies' own conversions, in
// templates/bench/kernels.c.tmpl and cuda/kernels/types.h, use the processor's or the GPU's instructions;
// tests compare them with these.
#ifndef BENCH_CONVERSIONS_H
#define BENCH_CONVERSIONS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float bits_as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t float_as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// A bfloat16 is the upper half of a float.
static inline float float_of_bfloat16(uint16_t half) {
    return bits_as_float((uint32_t)half << 16);
}

static inline uint16_t bfloat16_of_float(float value) {
    uint32_t bits = float_as_bits(value);
    bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return (uint16_t)((is_nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The exponent and mantissa of an fp16, read as those of a float, are 2^112 times too small; so are those of
// subnormal numbers.
static inline float float_of_float16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t finite = float_as_bits(bits_as_float(magnitude) * 0x1p112f);
    return bits_as_float(sign | ((half & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : finite));
}

// Normal numbers are rounded by an addition to their bits. Subnormal numbers are rounded by adding 0.5: its
// last place in a float is the step of subnormal fp16 numbers.
static inline uint16_t float16_of_float(float value) {
    uint32_t bits = float_as_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t subnormal = float_as_bits(bits_as_float(magnitude) + 0.5f) - float_as_bits(0.5f);
    uint32_t code = magnitude < 113u << 23 ? subnormal : normal;
    return (uint16_t)(sign | (magnitude > 0x7f800000 ? 0x7e00 : magnitude >= 0x47800000 ? 0x7c00 : code));
}

// The value of a code without its sign, in a format that has `mantissa_bits` and subnormal numbers at
// exponent 0. Codes that the format has for infinity or NaN get the value that the next number would have.
static inline double minifloat_magnitude(unsigned code, int mantissa_bits, int bias) {
    int exponent = (int)(code >> mantissa_bits);
    unsigned implicit = exponent == 0 ? 0 : 1u << mantissa_bits;
    unsigned mantissa = (code & ((1u << mantissa_bits) - 1)) + implicit;
    return ldexp((double)mantissa, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

#endif
