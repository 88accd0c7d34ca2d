// An op to replay: a matrix product or a convolution of a trace, and its request line.
// The words of a line are those of op_read; generator/replay/request.lua writes them.
#ifndef REPLAY_OP_H
#define REPLAY_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_SPATIAL = 3, MOST_SAMPLES = 1000000, ID_SIZE = 64, OP_NOTE_SIZE = 512, REASON_SIZE = 256 };
enum { MOST_THREADS = 1024 }; // of a call

// How elements are stored. The host computes in the first three; a line may have any.
enum data_type {
    FLOAT32,
    FLOAT64,
    BFLOAT16,
    FLOAT16,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2FNUZ,
    DATA_TYPES,
};
extern const char *const data_type_names[DATA_TYPES];

// What is added to the product: nothing, a row of N that is the same for all M, or a matrix of each product.
enum addend { ADD_NOTHING, ADD_ROW, ADD_MATRIX, ADDENDS };
extern const char *const addend_names[ADDENDS];

// What scales a product of small types: one number each, one for each row of A and column of B, or blocks.
enum scaling { SCALE_NOTHING, SCALE_TENSOR, SCALE_ROW, SCALE_BLOCK, SCALINGS };
extern const char *const scaling_names[SCALINGS];

// Elements that share a scale: so many rows of A, or columns of B, by so many along K.
enum block { BLOCK_UNKNOWN, BLOCK_1X128, BLOCK_128X128, BLOCK_1X32, BLOCKS };
extern const char *const block_names[BLOCKS];

// out[b] = alpha * A[b] * B[b] + beta * C[b]. Row-major, as PyTorch's strides are read: element (i, k) of A
// stands at i * lda + k, or at k * lda + i where A is transposed; B alike. C and out are contiguous.
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
    bool fast_accumulation;
};

// aten::convolution: NC<spatial> input, filters O(I/groups)<spatial>, or I(O/groups)<spatial> where it is
// transposed. The places beyond `spatial` hold 1 (sizes, steps) and 0 (padding).
struct convolution {
    int spatial;
    int64_t batch, in_channels, out_channels, groups;
    int64_t input[MOST_SPATIAL], filter[MOST_SPATIAL], output[MOST_SPATIAL];
    int64_t stride[MOST_SPATIAL], padding[MOST_SPATIAL], dilation[MOST_SPATIAL];
    int64_t output_padding[MOST_SPATIAL];
    bool transposed, has_bias;
    bool input_channels_last, filter_channels_last;
};

enum op_kind { OP_GEMM, OP_CONVOLUTION };

struct op {
    char id[ID_SIZE];
    char note[OP_NOTE_SIZE]; // what is not as it was traced; "": nothing
    enum op_kind kind;
    enum data_type type;
    union {
        struct gemm gemm;
        struct convolution convolution;
    };
    int threads;                     // of a call, when it was saved; 0: unknown
    size_t min_samples, max_samples; // of warm and of cold calls; a maximum below: a first look, marked so
    double sampling_us;              // beyond min_samples no more calls are made once this is used up
    double limit_us;                 // nor any once this is, but one of each; 0: there is no limit
};

// Reads a line, which it changes. -1, with `reason`: it is no request, or an impossible one.
int op_read(char *line, struct op *op, char reason[REASON_SIZE]);

// Floating-point operations of one call.
double op_flops(const struct op *op);

#endif
