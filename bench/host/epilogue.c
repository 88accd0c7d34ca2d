// The epilogue on CPUs; see epilogue.h.
#include "epilogue.h"

void epilogue_begin(struct epilogue *epilogue, const struct kernels *kernels, const struct call *call,
                    size_t at) {
    *epilogue = (struct epilogue){.call = call, .kernels = kernels, .at = at};
}

static void finish_row(struct epilogue *epilogue) {
    const struct call *call = epilogue->call;
    size_t row = epilogue->at / call->hidden_size - 1, first = row * call->hidden_size;
    struct norm_row norm = {
        .residual = (char *)call->residual_out + first * dtype_sizes_bytes[call->dtype],
        .gamma = call->gamma,
        .out = (char *)call->out + fusion_out_bytes(call->fusion, call->dtype, first),
        .block_scales = call->block_scales,
        .row = row,
        .hidden_size = call->hidden_size,
        .sum_of_squares = epilogue->sum_of_squares,
        .epsilon = call->epsilon,
        .scale = call->scale,
    };
    epilogue->kernels->norm[call->dtype][call->fusion](&norm);
    epilogue->sum_of_squares = 0;
    epilogue->column = 0;
}

void epilogue_consume(struct epilogue *epilogue, const void *const *sources, int n, size_t count) {
    const struct call *call = epilogue->call;
    const struct kernels *kernels = epilogue->kernels;
    size_t element_bytes = dtype_sizes_bytes[call->dtype];
    if (call->fusion == FUSION_NONE) {
        void *out = (char *)call->out + epilogue->at * element_bytes;
        if (n == 1 && epilogue->streams)
            kernels->stream(out, sources[0], count * element_bytes);
        else
            kernels->sum[call->dtype][n](out, sources, n, count);
        epilogue->at += count;
        return;
    }
    for (size_t done = 0; done < count;) {
        size_t left_in_row = call->hidden_size - epilogue->column;
        size_t piece = count - done < left_in_row ? count - done : left_in_row;
        const void *from[MAX_NODE_RANKS];
        for (int k = 0; k < n; k++) from[k] = (const char *)sources[k] + done * element_bytes;
        epilogue->sum_of_squares += kernels->sum_residual[call->dtype][n](
            (char *)call->residual_out + epilogue->at * element_bytes,
            (const char *)call->residual + epilogue->at * element_bytes, from, n, piece);
        done += piece;
        epilogue->at += piece;
        epilogue->column += piece;
        if (epilogue->column == call->hidden_size) finish_row(epilogue);
    }
}
