// Elements one at a time; see element.h.
#include "element.h"

#include <math.h>
#include <string.h>

const struct minifloat minifloat_e4m3 = {.mantissa_bits = 3, .bias = 7, .codes = 0x7f, .sign_bit = 7};
const struct minifloat minifloat_e2m1 = {.mantissa_bits = 1, .bias = 1, .codes = 8, .sign_bit = 3};

// The value of a code without sign. One past the last finite code, it is where the next would be.
static double magnitude_of(const struct minifloat *format, unsigned code) {
    unsigned exponent = code >> format->mantissa_bits;
    unsigned mantissa = code & ((1u << format->mantissa_bits) - 1);
    unsigned implicit = exponent == 0 ? 0 : 1u << format->mantissa_bits;
    int power = (exponent == 0 ? 1 : (int)exponent) - format->bias - format->mantissa_bits;
    return ldexp((double)(implicit + mantissa), power);
}

void minifloat_ranges(const struct minifloat *format, struct code_range ranges[]) {
    unsigned sign = 1u << format->sign_bit;
    for (unsigned code = 0; code < sign; code++) {
        double value = magnitude_of(format, code);
        double below = code == 0 ? -magnitude_of(format, 1) : magnitude_of(format, code - 1);
        struct code_range range = {value, (value + below) / 2, (value + magnitude_of(format, code + 1)) / 2};
        if (code + 1 == format->codes) range.high = INFINITY;
        if (code >= format->codes) range = (struct code_range){NAN, INFINITY, -INFINITY};
        ranges[code] = range;
        ranges[code | sign] = (struct code_range){-range.value, -range.high, -range.low};
        if (code >= format->codes) ranges[code | sign] = range;
    }
}

static float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double half_value(uint16_t half) {
    double sign = half >> 15 ? -1 : 1;
    int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    if (exponent == 0x1f) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, -24);
    return sign * ldexp(mantissa + 0x400, exponent - 25);
}

static uint16_t half_from_float(float value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs((double)value);
    if (isnan(value)) return sign | 0x7e00;
    if (magnitude >= 65520) return sign | 0x7c00;
    if (magnitude == 0) return sign;
    int exponent;
    frexp(magnitude, &exponent); // magnitude = fraction * 2^exponent, fraction in [0.5, 1)
    if (exponent < -13) exponent = -13;
    double steps = nearbyint(ldexp(magnitude, 11 - exponent)); // in units of the last place, ties to even
    return (uint16_t)(sign | (unsigned)((exponent + 13) * 0x400 + (int)steps));
}

static uint16_t bfloat16_from_float(float value) {
    uint32_t bits = bits_from_float(value);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double element_value(enum dtype dtype, const void *array, size_t index) {
    switch (dtype) {
    case DTYPE_BFLOAT16: return (double)float_from_bits((uint32_t)((const uint16_t *)array)[index] << 16);
    case DTYPE_FLOAT16: return half_value(((const uint16_t *)array)[index]);
    default: return (double)((const float *)array)[index];
    }
}

void element_store(enum dtype dtype, void *array, size_t index, float value) {
    switch (dtype) {
    case DTYPE_BFLOAT16: ((uint16_t *)array)[index] = bfloat16_from_float(value); break;
    case DTYPE_FLOAT16: ((uint16_t *)array)[index] = half_from_float(value); break;
    default: ((float *)array)[index] = value; break;
    }
}

double dtype_unit_roundoff(enum dtype dtype) {
    switch (dtype) {
    case DTYPE_BFLOAT16: return 0x1p-8;
    case DTYPE_FLOAT16: return 0x1p-11;
    default: return 0x1p-24;
    }
}
