// RESIDUAL_RMS_NORM_QUANT_NVFP4: e2m1, two elements a byte, with a scale in e4m3 for each block of 16
// elements of a row. `scale` is the global scale. fp8.h describes the parts of this file.
#if defined FUSION_ON_CPU

// A group is LANES blocks of 16 elements, so that a vector has their scales.
enum { OF_TYPE(NVFP4_GROUP) = LANES * SCALED_ELEMENTS };

// The codes of a group, two in a byte, and the codes of its scales, without their layout.
static inline void OF_TYPE(nvfp4_group)(uint8_t out[], uint8_t scales[LANES], const char *residual,
                                        const char *gamma, float factor, float scale) {
    enum { PARTS = OF_TYPE(NVFP4_GROUP) / BLOCK_ELEMENTS, PARTS_OF_RUN = PARTS / RUN };
    struct block y[PARTS];
    vuint largest[RUN] = {{0}};
    for (size_t part = 0; part < PARTS; part++) {
        size_t at = part * BLOCK_ELEMENTS * ELEMENT_BYTES;
        y[part] = OF_TYPE(norm_pairs)(residual + at, gamma + at, factor);
        vuint even = (vuint)y[part].part[0] & 0x7fffffff, odd = (vuint)y[part].part[1] & 0x7fffffff;
        largest[part / PARTS_OF_RUN] = larger(largest[part / PARTS_OF_RUN], larger(even, odd));
    }
    vuint scale_codes = e4m3_codes(scale * (vfloat)largest_of_runs(largest) / 6.0f);
    vbyte scale_bytes = __builtin_convertvector(scale_codes, vbyte);
    memcpy(scales, &scale_bytes, sizeof scale_bytes);
    uint32_t inverses[LANES];
    vuint quotients = (vuint)(scale / e4m3_values(scale_codes));
    vuint inverse_bits = where_less(scale_codes, all_lanes(1), all_lanes(0), quotients);
    memcpy(inverses, &inverse_bits, sizeof inverses);
    for (size_t part = 0; part < PARTS; part++) {
        vfloat inverse = (vfloat)spread_over_runs(inverses + part * BLOCK_ELEMENTS / SCALED_ELEMENTS);
        vuint codes = e2m1_codes(y[part].part[0] * inverse) | e2m1_codes(y[part].part[1] * inverse) << 4;
        vbyte bytes = __builtin_convertvector(codes, vbyte);
        memcpy(out + part * LANES, &bytes, sizeof bytes);
    }
}

// Stores the scales of `blocks` blocks from block `first` on, a multiple of 4; four are stored side by side.
static inline void OF_TYPE(store_scales)(const struct norm_row *row, size_t first, const uint8_t scales[],
                                         size_t blocks) {
    for (size_t block = 0; block < blocks; block += 4) {
        size_t offset = block_scale_offset(row->row, first + block, row->hidden_size);
        memcpy(row->block_scales + offset, scales + block, blocks - block < 4 ? blocks - block : 4);
    }
}

static void OF_TYPE(epilogue_nvfp4)(const struct norm_row *row) {
    enum { GROUP = OF_TYPE(NVFP4_GROUP), GROUP_BYTES = GROUP * ELEMENT_BYTES };
    const char *residual = row->residual, *gamma = row->gamma;
    float factor = reciprocal_rms(row);
    uint8_t *out = row->out, scales[LANES];
    size_t i = 0, count = row->hidden_size;
    for (; i + GROUP <= count; i += GROUP) {
        size_t at = i * ELEMENT_BYTES;
        OF_TYPE(nvfp4_group)(out + i / 2, scales, residual + at, gamma + at, factor, row->scale);
        OF_TYPE(store_scales)(row, i / SCALED_ELEMENTS, scales, LANES);
    }
    if (i < count) {
        uint8_t whole[GROUP / 2];
        char last_residual[GROUP_BYTES], last_gamma[GROUP_BYTES];
        copy_tail(last_residual, residual, i, count, ELEMENT_BYTES, GROUP_BYTES);
        copy_tail(last_gamma, gamma, i, count, ELEMENT_BYTES, GROUP_BYTES);
        OF_TYPE(nvfp4_group)(whole, scales, last_residual, last_gamma, factor, row->scale);
        memcpy(out + i / 2, whole, (count - i) / 2);
        OF_TYPE(store_scales)(row, i / SCALED_ELEMENTS, scales, (count - i) / SCALED_ELEMENTS);
    }
}

#elif defined FUSION_ON_GPU

// The offset of the scale of elements 16 * column .. 16 * column + 15 of a row in TensorRT-LLM's swizzled
// layout: tiles of 128 rows and 4 columns.
DEVICE_FUNCTION size_t swizzled_scale_offset(size_t row, size_t column, size_t hidden_size) {
    size_t tiles = (hidden_size + 63) / 64;
    return row / 128 * tiles * 512 + column / 4 * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
}

// A block of 16 elements is spread over 16 / n neighbouring threads of one warp; all threads of the warp take
// part.
struct Nvfp4 {
    static constexpr bool quantises = true;
    static constexpr bool needs_registers = true;
    static constexpr bool by_warp = true;
    template <class Type>
    static DEVICE_MEMBER void store(const Call &call, size_t token, int column, bool active,
                                    const float *norm) {
        constexpr int n = Type::per_access;
        float largest = 0;
        for (int i = 0; i < n; i++) {
            float magnitude = float_of_bits(bits_of_float(norm[i]) & 0x7fffffffu);
            if (magnitude > largest) largest = magnitude;
        }
        for (int mask = 1; mask < 16 / n; mask *= 2) {
            float other = shuffle_xor(largest, mask);
            if (other > largest) largest = other;
        }
        size_t hidden_size = static_cast<size_t>(call.accesses_per_token) * n;
        size_t first = static_cast<size_t>(column) * n;
        uint32_t block_scale = e4m3_codes(call.scale * largest / 6.0f, 0.0f);
        float inverse = block_scale == 0 ? 0.0f : call.scale / e4m3_value(block_scale);
        if (active && first % 16 == 0) {
            size_t offset = call.linear_scales ? token * (hidden_size / 16) + first / 16
                                               : swizzled_scale_offset(token, first / 16, hidden_size);
            store_byte(call.block_scales + offset, static_cast<uint8_t>(block_scale));
        }
        uint64_t codes = 0;
        for (int i = 0; i < n; i++) codes |= static_cast<uint64_t>(e2m1_code(norm[i] * inverse)) << 4 * i;
        if (active) store_bytes(call.codes + (token * hidden_size + first) / 2, codes, n / 2);
    }
};

#elif defined FUSION_CHECK

// Checks the scale of the block that begins at element `at` of the span, and sets what its codes stand for.
static bool check_nvfp4_block(const struct cell *cell, const struct norm_span *span, size_t at,
                              struct report report, double scaled[], double reaches[]) {
    enum { BLOCK = 16 };
    const struct code_ranges *ranges = ranges_of(&minifloat_e4m3);
    double largest = 0, reach = 0, scale = (double)fusion_facts[cell->shape.fusion].scale;
    for (size_t i = at; i < at + BLOCK; i++) {
        double magnitude = fabs(span->y[i]), tolerance = span->tolerances[i];
        largest = magnitude > largest ? magnitude : largest;
        reach = tolerance > reach ? tolerance : reach;
    }
    size_t hidden_size = cell->shape.hidden_size, column = (span->first + at) % hidden_size / BLOCK;
    size_t offset = block_scale_offset(span->row, column, hidden_size);
    unsigned char code = cell->block_scales[offset];
    double expected = scale * largest / 6, around = scale * reach / 6 + 1e-6 * expected;
    if (!code_fits(ranges, code, expected, around))
        return wrong(report, "block_scales", offset, ranges->value[code], expected, around);
    double factor = ranges->value[code] == 0 ? 0 : scale / ranges->value[code];
    for (size_t i = at; i < at + BLOCK; i++) {
        scaled[i] = span->y[i] * factor;
        reaches[i] = span->tolerances[i] * factor + 1e-6 * fabs(scaled[i]);
    }
    return true;
}

static bool check_nvfp4(const struct cell *cell, const struct norm_span *span, struct report report) {
    double scaled[SPAN], reaches[SPAN];
    unsigned char codes[SPAN];
    for (size_t at = 0; at < span->count; at += 16) {
        if (!check_nvfp4_block(cell, span, at, report, scaled, reaches)) return false;
    }
    for (size_t i = 0; i < span->count / 2; i++) {
        unsigned char pair = cell->out[span->first / 2 + i];
        codes[2 * i] = pair & 0xf;
        codes[2 * i + 1] = pair >> 4;
    }
    return all_codes_fit(report, ranges_of(&minifloat_e2m1), span->first, span->count, codes, scaled,
                         reaches);
}

#endif
