// Elements of 16-bit types become floats and come back as one by one (element.h); products of each type are
// right where OpenBLAS is here, whether they add to what is there or not.
#include "workload/multiply.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the above first.
#include <cmocka.h>

#include "elements/element.h"

enum { CODES = 1 << 16 };

static const enum dtype small_types[] = {DTYPE_BFLOAT16, DTYPE_FLOAT16};
enum { SMALL_TYPES = sizeof small_types / sizeof small_types[0] };

static void every_element_is_widened(void **state) {
    static uint16_t codes[CODES];
    static float floats[CODES];
    (void)state;
    for (size_t i = 0; i < CODES; i++) codes[i] = (uint16_t)i;
    for (size_t t = 0; t < SMALL_TYPES; t++) {
        elements_widen(small_types[t], codes, floats, CODES);
        for (size_t i = 0; i < CODES; i++) {
            float expected = (float)element_value(small_types[t], codes, i);
            if (isnan(expected))
                assert_true(isnan(floats[i]));
            else
                assert_memory_equal(&floats[i], &expected, sizeof expected);
        }
    }
}

// Of every exponent, at and around what lies half-way between two elements.
static void every_float_is_rounded_to_the_nearest(void **state) {
    static const uint32_t tails[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x2fff,
                                     0x3000, 0x7fff, 0x8000, 0x8001, 0x18000};
    (void)state;
    for (size_t t = 0; t < SMALL_TYPES; t++) {
        for (uint32_t code = 0; code < CODES; code++) {
            for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
                uint32_t bits = (code << 16) + tails[i];
                float value;
                uint16_t found, expected;
                memcpy(&value, &bits, sizeof value);
                elements_narrow(small_types[t], &value, &found, 1);
                element_store(small_types[t], &expected, 0, value);
                if (!isnan(value))
                    assert_int_equal(found, expected);
                else
                    assert_true(isnan(element_value(small_types[t], &found, 0)));
            }
        }
    }
}

static void products_are_of_their_type(void **state) {
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
    (void)state;
    if (blas_open(&blas, 1, reason, sizeof reason) != 0) skip();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(program_read(&program, lines[i], reason), i + 1 < sizeof lines / sizeof lines[0]);
    assert_int_equal(multiplier_open(&multiplier, &blas, &program), 0);
    for (size_t g = 0; g < program.gemm_count; g++) {
        const struct gemm *gemm = &program.gemms[g];
        double expected[16];
        for (size_t i = 0; i < gemm->m * gemm->n; i++) {
            size_t row = i / gemm->n, column = i % gemm->n;
            expected[i] = gemm->accumulate ? element_value(gemm->dtype, gemm->c, i) : 0;
            for (size_t p = 0; p < gemm->k; p++) {
                size_t a = gemm->trans_a ? p * gemm->m + row : row * gemm->k + p;
                size_t b = gemm->trans_b ? column * gemm->k + p : p * gemm->n + column;
                expected[i] +=
                    element_value(gemm->dtype, gemm->a, a) * element_value(gemm->dtype, gemm->b, b);
            }
        }
        multiplier_run(&multiplier, gemm);
        for (size_t i = 0; i < gemm->m * gemm->n; i++)
            assert_true(fabs(element_value(gemm->dtype, gemm->c, i) - expected[i]) < 0.5);
    }
    multiplier_close(&multiplier);
    program_free(&program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_widened),
        cmocka_unit_test(every_float_is_rounded_to_the_nearest),
        cmocka_unit_test(products_are_of_their_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
