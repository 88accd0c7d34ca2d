// RESIDUAL_RMS_NORM: y itself. fp8.h describes the parts of this file.
#if defined FUSION_ON_CPU

static void OF_TYPE(epilogue_rms_norm)(const struct norm_row *row) {
    float factor = reciprocal_rms(row);
    char *out = row->out;
    size_t i = 0, count = row->hidden_size;
    for (; i + BLOCK_ELEMENTS <= count; i += BLOCK_ELEMENTS) {
        struct block r = OF_TYPE(load_block)((const char *)row->residual + i * ELEMENT_BYTES);
        struct block gamma = OF_TYPE(load_block)((const char *)row->gamma + i * ELEMENT_BYTES);
        for (int k = 0; k < 2; k++) r.part[k] = r.part[k] * factor * gamma.part[k];
        OF_TYPE(store_block)(out + i * ELEMENT_BYTES, r);
    }
    for (; i + LANES <= count; i += LANES)
        OF_TYPE(store)(out + i * ELEMENT_BYTES, OF_TYPE(norm_at)(row, factor, i));
    if (i < count) {
        char whole[LANES * ELEMENT_BYTES];
        OF_TYPE(store)(whole, OF_TYPE(norm_tail)(row, factor, i));
        memcpy(out + i * ELEMENT_BYTES, whole, (count - i) * ELEMENT_BYTES);
    }
}

#elif defined FUSION_ON_GPU

// The norm is the result.
struct RmsNorm {
    static constexpr bool quantises = false;
    static constexpr bool needs_registers = false;
    static constexpr bool by_warp = false;
    template <class Type>
    static DEVICE_MEMBER void store(const Call &call, size_t at, Word4 rounded, const float *) {
        store_plain(call.out + at, rounded);
    }
};

#elif defined FUSION_CHECK

static bool check_rms_norm(const struct cell *cell, const struct norm_span *span, struct report report) {
    float out[SPAN];
    widen(cell->shape.dtype, cell->out, span->first, span->count, out);
    return all_within(report, "out", span->first, span->count, out, span->y, span->tolerances);
}

#endif
