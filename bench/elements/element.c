// Small formats and their rounding; see element.h.
#include "element.h"

#include <math.h>

#include "conversions.h"

const struct minifloat minifloat_e4m3 = {.mantissa_bits = 3, .bias = 7, .codes = 0x7f, .sign_bit = 7};
const struct minifloat minifloat_e2m1 = {.mantissa_bits = 1, .bias = 1, .codes = 8, .sign_bit = 3};

static double magnitude_of(const struct minifloat *format, unsigned code) {
    return minifloat_magnitude(code, format->mantissa_bits, format->bias);
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

double ulps_between(enum dtype dtype, double from, double to) {
    double ulp = ldexp(1, ilogb(from == 0 ? 1 : from) - dtype_significand_bits[dtype] + 1);
    return fabs(to - from) / ulp;
}

double dtype_unit_roundoff(enum dtype dtype) {
    return ldexp(1, -dtype_significand_bits[dtype]);
}
