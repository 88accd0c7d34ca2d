// RESIDUAL_RMS_NORM: y itself. fp8.h describes the parts of this file.
#if defined FUSION_ON_CPU

static void OF_TYPE(epilogue_rms_norm)(const struct norm_row *row) {
    enum { BLOCK_BYTES = BLOCK_ELEMENTS * ELEMENT_BYTES };
    const char *residual = row->residual, *gamma = row->gamma;
    float factor = reciprocal_rms(row);
    char *out = row->out;
    size_t i = 0, count = row->hidden_size;
    for (; i + BLOCK_ELEMENTS <= count; i += BLOCK_ELEMENTS) {
        size_t at = i * ELEMENT_BYTES;
        OF_TYPE(store_block)(out + at, OF_TYPE(norm_block)(residual + at, gamma + at, factor));
    }
    if (i < count) {
        char whole[BLOCK_BYTES], last_residual[BLOCK_BYTES], last_gamma[BLOCK_BYTES];
        copy_tail(last_residual, residual, i, count, ELEMENT_BYTES, BLOCK_BYTES);
        copy_tail(last_gamma, gamma, i, count, ELEMENT_BYTES, BLOCK_BYTES);
        OF_TYPE(store_block)(whole, OF_TYPE(norm_block)(last_residual, last_gamma, factor));
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
