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

static void OF_TYPE(epilogue_fp8)(const struct norm_row *row) {
    float factor = reciprocal_rms(row), inverse_scale = 1.0f / row->scale;
    uint8_t *out = row->out;
    size_t i = 0, count = row->hidden_size;
    for (; i + LANES <= count; i += LANES) {
        vbyte codes =
            __builtin_convertvector(e4m3_codes(OF_TYPE(norm_at)(row, factor, i) * inverse_scale), vbyte);
        memcpy(out + i, &codes, sizeof codes);
    }
    if (i < count) {
        vbyte codes =
            __builtin_convertvector(e4m3_codes(OF_TYPE(norm_tail)(row, factor, i) * inverse_scale), vbyte);
        memcpy(out + i, &codes, count - i);
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
