// Single elements of every data type, as doubles and back, for the reference and the tests. The fast
// conversions are in templates/bench/kernels.c.tmpl.
#ifndef BENCH_ELEMENT_H
#define BENCH_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "conversions.h"
#include "lists.h"

// A small floating-point format. Exponent 0 is subnormal.
struct minifloat {
    int mantissa_bits;
    int bias;
    unsigned codes;    // codes of one sign that are finite: 0 .. codes-1
    unsigned sign_bit; // position of the sign
};

extern const struct minifloat minifloat_e4m3; // 448 at most, no infinity, 0x7f is NaN
extern const struct minifloat minifloat_e2m1; // 0 0.5 1 1.5 2 3 4 6

// The value of a code, and the interval of values that round to it (to nearest even, saturating); its ends
// may round to a neighbour. The interval of a code that is not finite is empty.
struct code_range {
    double value, low, high;
};

// Fills ranges[0 .. 2^(sign_bit+1)-1], by code.
void minifloat_ranges(const struct minifloat *format, struct code_range ranges[]);

// The value of element `index` of an array of `dtype`.
static inline double element_value(enum dtype dtype, const void *array, size_t index) {
    switch (dtype) {
    case DTYPE_BFLOAT16: return (double)float_of_bfloat16(((const uint16_t *)array)[index]);
    case DTYPE_FLOAT16: return (double)float_of_float16(((const uint16_t *)array)[index]);
    default: return (double)((const float *)array)[index];
    }
}

// Rounds to nearest even into element `index` of an array of `dtype`.
static inline void element_store(enum dtype dtype, void *array, size_t index, float value) {
    switch (dtype) {
    case DTYPE_BFLOAT16: ((uint16_t *)array)[index] = bfloat16_of_float(value); break;
    case DTYPE_FLOAT16: ((uint16_t *)array)[index] = float16_of_float(value); break;
    default: ((float *)array)[index] = value; break;
    }
}

// The distance of two numbers in units in the last place of the first one.
double ulps_between(enum dtype dtype, double from, double to);

// Largest relative error of one rounding to `dtype`.
double dtype_unit_roundoff(enum dtype dtype);

#endif
