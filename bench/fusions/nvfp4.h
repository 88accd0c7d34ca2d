// RESIDUAL_RMS_NORM_QUANT_NVFP4: e2m1, two elements a byte, with a scale in e4m3 for each block of 16
// elements of a row. `scale` is the global scale. fp8.h describes the parts of this file.
#if defined FUSION_ON_CPU

// Blocks of 16 elements; hidden_size is a multiple of 16.
static void OF_TYPE(epilogue_nvfp4)(const struct norm_row *row) {
    enum { BLOCK = 16, VECTORS = BLOCK / LANES };
    float factor = reciprocal_rms(row);
    uint8_t *out = row->out;
    for (size_t i = 0; i < row->hidden_size; i += BLOCK) {
        vfloat y[VECTORS];
        vuint magnitudes = {0};
        for (int v = 0; v < VECTORS; v++) {
            y[v] = OF_TYPE(norm_at)(row, factor, i + (size_t)v * LANES);
            vuint magnitude = (vuint)y[v] & 0x7fffffff;
            magnitudes = select_bits(magnitude > magnitudes, magnitude, magnitudes);
        }
        uint32_t largest_bits = largest_lane(magnitudes);
        float largest;
        memcpy(&largest, &largest_bits, sizeof largest);
        vfloat scaled = {0};
        uint32_t block_scale = e4m3_codes(scaled + row->scale * largest / 6.0f)[0];
        float inverse = block_scale == 0 ? 0.0f : row->scale / e4m3_value(block_scale);
        row->block_scales[block_scale_offset(row->row, i / BLOCK, row->hidden_size)] = (uint8_t)block_scale;
        uint8_t codes[BLOCK];
        for (int v = 0; v < VECTORS; v++) {
            vbyte part = __builtin_convertvector(e2m1_codes(y[v] * inverse), vbyte);
            memcpy(codes + v * LANES, &part, sizeof part);
        }
        pack_nibbles(out + i / 2, codes);
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
