// The conversions of elements/conversions.h are those of plain arithmetic; products of each type are right
// where OpenBLAS is installed, with and without accumulation.
#include "../../unit_test.h"

#include "workload/multiply.h"

#include <math.h>
#include <string.h>

#include "lists.h"

enum { CODES = 1 << 16 };

static const enum dtype small_types[] = {DTYPE_BFLOAT16, DTYPE_FLOAT16};
enum { SMALL_TYPES = sizeof small_types / sizeof small_types[0] };

// ---- plain arithmetic ---------------------------------------------------------------------------

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

static double value_of(enum dtype dtype, uint16_t code) {
    if (dtype == DTYPE_FLOAT16) return half_value(code);
    int exponent = code >> 7 & 0xff, mantissa = code & 0x7f;
    double sign = code >> 15 ? -1 : 1;
    if (exponent == 0xff) return mantissa ? (double)NAN : sign * INFINITY;
    return sign * ldexp(exponent == 0 ? mantissa : mantissa + 0x80, (exponent == 0 ? 1 : exponent) - 134);
}

static double value_at(enum dtype dtype, const void *array, size_t index) {
    if (dtype == DTYPE_FLOAT32) return (double)((const float *)array)[index];
    return value_of(dtype, ((const uint16_t *)array)[index]);
}

// For a bfloat16: which of the two neighbours is nearer to the float; of equally near ones the even one.
static uint16_t code_of(enum dtype dtype, float value) {
    if (dtype == DTYPE_FLOAT16) return half_from_float(value);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t below = (uint16_t)(bits >> 16), above = (uint16_t)(below + 1);
    if ((bits & 0xffff) == 0) return below;
    double next = (above & 0x7fff) == 0x7f80 ? 0x1p128 : fabs(value_of(dtype, above));
    double magnitude = fabs((double)value), to_below = magnitude - fabs(value_of(dtype, below));
    double to_above = next - magnitude;
    return to_below < to_above || (to_below == to_above && below % 2 == 0) ? below : above;
}

// ---- tests --------------------------------------------------------------------------------------

TEST(every_element_is_widened) {
    static uint16_t codes[CODES];
    static float floats[CODES];
    for (size_t i = 0; i < CODES; i++) codes[i] = (uint16_t)i;
    for (size_t t = 0; t < SMALL_TYPES; t++) {
        elements_widen(small_types[t], codes, floats, CODES);
        for (size_t i = 0; i < CODES; i++) {
            float expected = (float)value_of(small_types[t], codes[i]);
            if (isnan(expected))
                assert_true(isnan(floats[i]));
            else
                assert_memory_equal(&floats[i], &expected, sizeof expected);
        }
    }
}

// For every exponent, values at and around the middle of two elements.
TEST(every_float_is_rounded_to_the_nearest) {
    static const uint32_t tails[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x2fff,
                                     0x3000, 0x7fff, 0x8000, 0x8001, 0x18000};
    for (size_t t = 0; t < SMALL_TYPES; t++) {
        for (uint32_t code = 0; code < CODES; code++) {
            for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
                uint32_t bits = (code << 16) + tails[i];
                float value;
                uint16_t found;
                memcpy(&value, &bits, sizeof value);
                elements_narrow(small_types[t], &value, &found, 1);
                if (!isnan(value))
                    assert_int_equal(found, code_of(small_types[t], value));
                else
                    assert_true(isnan(value_of(small_types[t], found)));
            }
        }
    }
}

TEST(products_are_of_their_type) {
    static const char *const lines[] = {
        "begin name=x gemms=4 collectives=0 actions=1 seed=3",
        "gemm name=a m=3 n=4 k=5 layout=NT phase=forward sequence=0",
        "gemm name=b m=7 n=2 k=9 layout=NN phase=forward sequence=1 dtype=bfloat16",
        "gemm name=c m=2 n=8 k=3 layout=TN phase=backward sequence=1 dtype=bfloat16 accumulate=1",
        "gemm name=d m=4 n=4 k=4 layout=TN phase=backward sequence=1 dtype=float16",
        "do gemm=0",
        "end",
    };
    struct program program = {.rank = 0, .ranks = 1};
    struct multiplier multiplier;
    struct blas blas;
    char reason[PROGRAM_REASON];
    if (blas_open(&blas, 1, reason, sizeof reason) != 0) skip();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(program_read(&program, lines[i], reason), i + 1 < sizeof lines / sizeof lines[0]);
    assert_int_equal(multiplier_open(&multiplier, &blas, &program), 0);
    for (size_t g = 0; g < program.gemm_count; g++) {
        const struct gemm *gemm = &program.gemms[g];
        double expected[16];
        for (size_t i = 0; i < gemm->m * gemm->n; i++) {
            size_t row = i / gemm->n, column = i % gemm->n;
            expected[i] = gemm->accumulate ? value_at(gemm->dtype, gemm->c, i) : 0;
            for (size_t p = 0; p < gemm->k; p++) {
                size_t a = gemm->trans_a ? p * gemm->m + row : row * gemm->k + p;
                size_t b = gemm->trans_b ? column * gemm->k + p : p * gemm->n + column;
                expected[i] += value_at(gemm->dtype, gemm->a, a) * value_at(gemm->dtype, gemm->b, b);
            }
        }
        multiplier_run(&multiplier, gemm);
        for (size_t i = 0; i < gemm->m * gemm->n; i++)
            assert_true(fabs(value_at(gemm->dtype, gemm->c, i) - expected[i]) < 0.5);
    }
    multiplier_close(&multiplier);
    program_free(&program);
}
