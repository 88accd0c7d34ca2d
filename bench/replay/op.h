// An op to replay: a matrix product or a convolution of a trace, and its request line.
// op_read reads its fields; generator/replay/request.lua writes them.
#ifndef REPLAY_OP_H
#define REPLAY_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "element_types.h"

enum { MOST_SPATIAL = 3, MOST_SAMPLES = 1000000, ID_SIZE = 64, OP_NOTE_SIZE = 512, REASON_SIZE = 256 };
enum { MOST_THREADS = 1024 }; // of a call
enum { LARGEST_VALUE = 2 };   // of operands: -2 .. 2
enum { LARGEST_SCALE = 2 };   // of rows and blocks (scales.h)

// Types of at most 8 bits. Elements of FLOAT4_E2M1FN_X2 have 4, and two of them share a byte.
static inline bool is_small(enum data_type type) {
    return data_type_sizes[type] == 1;
}

static inline bool is_float4(enum data_type type) {
    return type == FLOAT4_E2M1FN_X2;
}

static inline bool is_float8(enum data_type type) {
    return is_small(type) && !is_float4(type);
}

// The addend of a product: nothing, a row of N elements for all rows, or a matrix for each product.
enum addend { ADD_NOTHING, ADD_ROW, ADD_MATRIX, ADDENDS };
extern const char *const addend_names[ADDENDS];

// The scales of a product of small types: one for each operand, one for each row of A and column of B, or one
// for each block.
enum scaling { SCALE_NOTHING, SCALE_TENSOR, SCALE_ROW, SCALE_BLOCK, SCALINGS };
extern const char *const scaling_names[SCALINGS];

// The elements that share a scale: rows of A, or columns of B, by elements along K.
enum block { BLOCK_UNKNOWN, BLOCK_1X128, BLOCK_128X128, BLOCK_1X32, BLOCK_1X16, BLOCKS };
extern const char *const block_names[BLOCKS];

// out[b] = alpha * A[b] * B[b] + beta * C[b], row-major: element (i, k) of A is at i * lda + k, or, if A is
// transposed, at k * lda + i; likewise B. C and out are contiguous.
struct gemm {
    int64_t batch, m, n, k;
    bool trans_a, trans_b;
    int64_t lda, ldb;
    int64_t stride_a, stride_b; // from one of the batch to the next, in elements; 0: the same for all
    enum addend addend;
    double alpha, beta;
    enum scaling scaling;        // of aten::_scaled_mm
    enum block block_a, block_b; // of SCALE_BLOCK
    enum data_type out_type;
    enum data_type addend_type; // of a product of small types; of any other it is the result's
    bool scales_out;            // the result has a scale, too
    bool fast_accumulation;
};

// aten::convolution: NC<spatial> input, filters O(I/groups)<spatial>, or, if transposed,
// I(O/groups)<spatial>. Entries beyond `spatial` are 1 (sizes, strides) or 0 (padding).
struct convolution {
    int spatial;
    int64_t batch, in_channels, out_channels, groups;
    int64_t input[MOST_SPATIAL], filter[MOST_SPATIAL], output[MOST_SPATIAL];
    int64_t stride[MOST_SPATIAL], padding[MOST_SPATIAL], dilation[MOST_SPATIAL];
    int64_t output_padding[MOST_SPATIAL];
    bool transposed, has_bias;
    bool input_channels_last, filter_channels_last;
    unsigned gradients; // of aten::convolution_backward, bits 1 << OF_...; 0: it is aten::convolution
};

// The gradients that aten::convolution_backward computes from that of the result.
enum gradient { OF_INPUT, OF_FILTER, OF_BIAS, GRADIENTS };
extern const char *const gradient_names[GRADIENTS];

static inline bool has_gradient(const struct convolution *at, enum gradient which) {
    return (at->gradients >> which & 1) != 0;
}

// The convolution, with the same filters, that computes the gradient of this one's input from that of its
// result: of a plain one it is transposed, and the other way round. One that is not transposed has the output
// padding of the other: so many elements of the padding after its input are left out.
struct convolution convolution_of_gradient(const struct convolution *at);

enum op_kind { OP_GEMM, OP_CONVOLUTION, OP_CONVOLUTION_BACKWARD, OP_KINDS };
extern const char *const op_kind_names[OP_KINDS]; // the first words of requests

struct op {
    char id[ID_SIZE];
    char note[OP_NOTE_SIZE]; // differences from the traced op; "": none
    enum op_kind kind;
    enum data_type type;
    union {
        struct gemm gemm;
        struct convolution convolution; // also of a backward one
    };
    int threads; // of a call, when it was saved; 0: unknown
    size_t min_samples,
        max_samples;    // of warm and of cold calls; a maximum below the minimum marks a first look
    double sampling_us; // budget of the samples beyond min_samples
    double limit_us;    // limit of the op, except for one sample of each kind; 0: none
};

// Reads a line, and changes it. -1, with `reason`: it is no valid request.
int op_read(char *line, struct op *op, char reason[REASON_SIZE]);

// Floating-point operations of one call.
double op_flops(const struct op *op);

#endif
