// RESIDUAL_RMS_NORM_QUANT_FP8: y / scale in e4m3, a byte per element.
//
// The file of a fusion has three parts:
//   FUSION_ON_CPU   epilogue_SHORT, a norm_kernel of elements/kernels.h: the results of a row. Compiled once
//                   per data type and instruction set, within templates/bench/kernels.c.tmpl
//   FUSION_ON_GPU   a class for the kernels, as cuda/kernels/epilogue.h describes; its name is SHORT in camel
//                   case
//   FUSION_CHECK    check_SHORT, a result_check of calls/check_kernels.c: whether the results of a span of a
//                   row are right
#if defined FUSION_ON_CPU

// The codes of a block. Even and odd elements are in vectors of their own, so two codes fill the low half of
// a lane.
static inline void OF_TYPE(fp8_block)(uint8_t out[BLOCK_ELEMENTS], const char *residual, const char *gamma,
                                      float factor, float inverse_scale) {
    struct block y = OF_TYPE(norm_pairs)(residual, gamma, factor);
    vuint codes = e4m3_codes(y.part[0] * inverse_scale) | e4m3_codes(y.part[1] * inverse_scale) << 8;
    vhalf pairs = __builtin_convertvector(codes, vhalf);
    memcpy(out, &pairs, sizeof pairs);
}

static void OF_TYPE(epilogue_fp8)(const struct norm_row *row) {
    enum { BLOCK_BYTES = BLOCK_ELEMENTS * ELEMENT_BYTES };
    const char *residual = row->residual, *gamma = row->gamma;
    float factor = reciprocal_rms(row), inverse_scale = 1.0f / row->scale;
    uint8_t *out = row->out;
    size_t i = 0, count = row->hidden_size;
    for (; i + BLOCK_ELEMENTS <= count; i += BLOCK_ELEMENTS) {
        size_t at = i * ELEMENT_BYTES;
        OF_TYPE(fp8_block)(out + i, residual + at, gamma + at, factor, inverse_scale);
    }
    if (i < count) {
        uint8_t whole[BLOCK_ELEMENTS];
        char last_residual[BLOCK_BYTES], last_gamma[BLOCK_BYTES];
        copy_tail(last_residual, residual, i, count, ELEMENT_BYTES, BLOCK_BYTES);
        copy_tail(last_gamma, gamma, i, count, ELEMENT_BYTES, BLOCK_BYTES);
        OF_TYPE(fp8_block)(whole, last_residual, last_gamma, factor, inverse_scale);
        memcpy(out + i, whole, count - i);
    }
}

#elif defined FUSION_ON_GPU

struct Fp8 {
    static constexpr bool quantises = true;
    static constexpr bool needs_registers = false;
    static constexpr bool by_warp = false;
    template <class Type>
    static DEVICE_MEMBER void store(const Call &call, size_t at, Word4, const float *norm) {
        constexpr int n = Type::per_access;
        float inverse = 1.0f / call.scale;
        uint64_t codes = 0;
        for (int i = 0; i < n; i += 2) {
            uint64_t pair = e4m3_codes(norm[i] * inverse, norm[i + 1] * inverse);
            codes |= pair << 8 * i;
        }
        store_bytes(call.codes + at * n, codes, n);
    }
};

#elif defined FUSION_CHECK

static bool check_fp8(const struct cell *cell, const struct norm_span *span, struct report report) {
    double inverse = 1 / (double)fusion_facts[cell->shape.fusion].scale, scaled[SPAN], reaches[SPAN];
    for (size_t i = 0; i < span->count; i++) {
        scaled[i] = span->y[i] * inverse;
        reaches[i] = 1.001 * span->tolerances[i] * inverse;
    }
    return all_codes_fit(report, ranges_of(&minifloat_e4m3), span->first, span->count,
                         cell->out + span->first, scaled, reaches);
}

#endif
