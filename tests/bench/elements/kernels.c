// The fast conversions and sums of every instruction set against the plain ones of element.h.
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/element.h"
#include "elements/kernels.h"
#include "isas.h"

enum { MOST = 200 };

static float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// All bit patterns of interest: every exponent, with mantissas at and around the ties of every format.
static float interesting(uint32_t index) {
    static const uint32_t mantissas[] = {0,        1,        0x0fff,   0x1000,   0x1001,   0x2fff,
                                         0x3000,   0x7fff,   0x8000,   0x8001,   0x17fff,  0x18000,
                                         0x7ffff,  0x80000,  0x80001,  0xfffff,  0x100000, 0x180000,
                                         0x1fffff, 0x200000, 0x200001, 0x3fffff, 0x400000, 0x7fffff};
    uint32_t count = sizeof mantissas / sizeof *mantissas;
    return float_from_bits((index / count / 2 % 256) << 23 | mantissas[index % count] |
                           (index / count % 2) << 31);
}
enum { INTERESTING = 24 * 2 * 256 };

static bool same_value(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void check_sums(const struct kernels *kernels) {
    float exact[MOST];
    _Alignas(64) static unsigned char arrays[MAX_RANKS][MOST * 4];
    _Alignas(64) unsigned char out[MOST * 4 + 64], expected[MOST * 4];
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (int n = 1; n <= MAX_RANKS; n += n <= MAX_NODE_RANKS ? 1 : MAX_RANKS - MAX_NODE_RANKS - 1) {
            for (size_t count = 1; count < MOST; count += 13) {
                const void *sources[MAX_RANKS];
                for (int k = 0; k < n; k++) {
                    sources[k] = arrays[k];
                    for (size_t i = 0; i < count; i++) {
                        element_store((enum dtype)dtype, arrays[k], i, (float)(rand() % 2001 - 1000) / 64.0f);
                        float value = (float)element_value((enum dtype)dtype, arrays[k], i);
                        exact[i] = k == 0 ? value : exact[i] + value;
                    }
                }
                for (size_t i = 0; i < count; i++) element_store((enum dtype)dtype, expected, i, exact[i]);
                memset(out, 0x5a, sizeof out);
                kernels_sum(kernels, (enum dtype)dtype, out, sources, n, count);
                size_t bytes = count * dtype_sizes_bytes[dtype];
                assert_memory_equal(out, expected, bytes);
                for (size_t i = bytes; i < sizeof out; i++) assert_int_equal(out[i], 0x5a);
            }
        }
    }
}

TEST(sums_are_rounded_once_in_rank_order) {
    for_each_isa(check_sums);
}

// The sum of one source and a residual of 0 is the source: every kind of element is read and stored.
static void check_rounding(const struct kernels *kernels) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (uint32_t i = 0; i < INTERESTING; i++) {
            unsigned char in[4], zero[4] = {0}, out[4], expected[4];
            element_store((enum dtype)dtype, in, 0, interesting(i));
            float square = kernels->sum_residual[dtype][1](out, zero, (const void *const[]){in}, 1, 1);
            double value = element_value((enum dtype)dtype, in, 0);
            element_store((enum dtype)dtype, expected, 0, (float)value);
            if (!same_value(element_value((enum dtype)dtype, out, 0),
                            element_value((enum dtype)dtype, expected, 0))) {
                fail_msg("%s %s: %a became %a", kernels->isa, dtype_names[dtype], value,
                         element_value((enum dtype)dtype, out, 0));
            }
            float exact = (float)element_value((enum dtype)dtype, out, 0);
            assert_true(same_value(square, exact * exact));
        }
    }
}

TEST(every_element_survives_reading_and_rounding) {
    for_each_isa(check_rounding);
}

// Sums of pairs, with exact values on, below and above ties of the type.
static void check_ties(const struct kernels *kernels) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (uint32_t i = 0; i < INTERESTING; i++) {
            for (uint32_t j = 0; j < 40; j++) {
                unsigned char a[4], b[4], out[4], expected[4];
                element_store((enum dtype)dtype, a, 0, interesting(i));
                element_store((enum dtype)dtype, b, 0, interesting(i + 48 * (j / 2) + j % 2 * 24));
                float sum = (float)element_value((enum dtype)dtype, a, 0) +
                            (float)element_value((enum dtype)dtype, b, 0);
                element_store((enum dtype)dtype, expected, 0, sum);
                kernels->sum[dtype][2](out, (const void *const[]){a, b}, 2, 1);
                double is = element_value((enum dtype)dtype, out, 0);
                double should = element_value((enum dtype)dtype, expected, 0);
                if (!same_value(is, should))
                    fail_msg("%s %s: %a, not %a", kernels->isa, dtype_names[dtype], is, should);
            }
        }
    }
}

TEST(ties_go_to_even_and_large_sums_to_infinity) {
    for_each_isa(check_ties);
}

// One row of 16 float32 elements with the residual itself as norm: mean of squares 1, epsilon 0, gamma 1.
static struct norm_row row_of(const float residual[16], const float gamma[16], uint8_t *out,
                              uint8_t *scales) {
    return (struct norm_row){.residual = residual,
                             .gamma = gamma,
                             .out = out,
                             .block_scales = scales,
                             .hidden_size = 16,
                             .sum_of_squares = 16,
                             .scale = 1};
}

static void check_fp8(const struct kernels *kernels) {
    struct code_range ranges[256];
    float gamma[16], residual[16];
    minifloat_ranges(&minifloat_e4m3, ranges);
    for (int i = 0; i < 16; i++) gamma[i] = 1;
    for (uint32_t first = 0; first < INTERESTING; first += 16) {
        uint8_t codes[16];
        for (uint32_t i = 0; i < 16; i++) residual[i] = interesting(first + i);
        struct norm_row row = row_of(residual, gamma, codes, NULL);
        kernels->norm[DTYPE_FLOAT32][FUSION_RESIDUAL_RMS_NORM_QUANT_FP8](&row);
        for (int i = 0; i < 16; i++) {
            double value = (double)residual[i];
            if (isnan(value)) {
                assert_int_equal(codes[i] & 0x7f, 0x7f);
                continue;
            }
            struct code_range range = ranges[codes[i]];
            if (!(value >= range.low && value <= range.high))
                fail_msg("%s: %a became code %02x", kernels->isa, value, codes[i]);
            bool is_tie = fabs(value) == fabs(range.low) || fabs(value) == fabs(range.high);
            if (is_tie && fabs(value) < 448) assert_int_equal(codes[i] & 1, 0);
            assert_int_equal(codes[i] >> 7, signbit(residual[i]) != 0);
        }
    }
}

TEST(fp8_is_nearest_even_and_saturates) {
    for_each_isa(check_fp8);
}

static void check_nvfp4(const struct kernels *kernels) {
    // 6 * e4m3(1) = 6 fills the range: the block scale is 1 and codes are those of the values themselves.
    float residual[16] = {6,     -6,   0.25f, 0.75f, -0.75f, 1.25f, 1.75f, 2.5f,
                          -2.5f, 3.5f, 5,     -5,    0,      4.9f,  5.1f,  0.2f};
    const uint8_t expected[8] = {0xf7, 0x20, 0x2a, 0x44, 0x6c, 0xe6, 0x60, 0x07};
    float gamma[16];
    for (int i = 0; i < 16; i++) gamma[i] = 1;
    uint8_t codes[8], scales[512] = {0};
    struct norm_row row = row_of(residual, gamma, codes, scales);
    kernels->norm[DTYPE_FLOAT32][FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4](&row);
    assert_int_equal(scales[0], 0x38); // e4m3 1.0
    assert_memory_equal(codes, expected, sizeof expected);
    memset(residual, 0, sizeof residual);
    kernels->norm[DTYPE_FLOAT32][FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4](&row);
    assert_int_equal(scales[0], 0);
    for (int i = 0; i < 8; i++) assert_int_equal(codes[i], 0);
}

TEST(nvfp4_packs_low_nibble_first_and_zero_blocks_are_zero) {
    for_each_isa(check_nvfp4);
}

TEST(the_swizzled_layout_is_the_documented_one) {
    assert_int_equal(block_scale_offset(0, 0, 128), 0);
    assert_int_equal(block_scale_offset(0, 3, 128), 3);
    assert_int_equal(block_scale_offset(0, 4, 128), 512);
    assert_int_equal(block_scale_offset(1, 0, 128), 16);
    assert_int_equal(block_scale_offset(32, 0, 128), 4);
    assert_int_equal(block_scale_offset(127, 7, 128), 512 + 31 * 16 + 3 * 4 + 3);
    assert_int_equal(block_scale_offset(128, 0, 128), 2 * 512);
    assert_int_equal(block_scales_bytes(129, 80), 256 * 8);
}

static uint64_t first_hash;

static void check_hash(const struct kernels *kernels) {
    unsigned char data[1000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7);
    uint64_t hash = kernels->hash(data, sizeof data);
    if (first_hash == 0) first_hash = hash;
    assert_int_equal(hash, first_hash);
    for (size_t i = 0; i < sizeof data; i += 37) {
        data[i] ^= 1;
        assert_int_not_equal(kernels->hash(data, sizeof data), hash);
        data[i] ^= 1;
    }
    assert_int_not_equal(kernels->hash(data, sizeof data - 1), hash);
}

TEST(the_hash_sees_every_byte_and_is_the_same_everywhere) {
    for_each_isa(check_hash);
}

static void check_streaming(const struct kernels *kernels) {
    _Alignas(64) unsigned char from[MOST * 4], to[MOST * 4 + 128];
    for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 7 + 1);
    for (size_t first = 0; first < 64; first += 3) {
        for (size_t bytes = 0; bytes < sizeof from; bytes += 31) {
            memset(to, 0x5a, sizeof to);
            kernels->stream(to + first, from, bytes);
            kernels->stream_end();
            assert_memory_equal(to + first, from, bytes);
            for (size_t i = 0; i < first; i++) assert_int_equal(to[i], 0x5a);
            for (size_t i = first + bytes; i < sizeof to; i++) assert_int_equal(to[i], 0x5a);
        }
    }
}

TEST(streaming_copies_all_and_no_more) {
    for_each_isa(check_streaming);
}
