// The libraries that compute, behind one interface. A library prepares an op for operands in memory. A call
// does the same as PyTorch's op: it reads operands, and writes a result, with the strides of the op.
#ifndef REPLAY_MATH_LIBRARY_H
#define REPLAY_MATH_LIBRARY_H

#include "data.h"

// An op that a library has prepared, with its functions.
struct prepared_op {
    int (*run)(void *state); // makes a call. -1: the library failed
    void (*end)(void *state);
    void *state;
    char kernel[96]; // the kernel's name by the library: "jit:avx512_core_bf16"
    char note[160];  // limitations of its times; "": none
    // The algorithms that the library offers, in its own order; by default run uses the first. 0: none.
    int algorithms;
    int (*choose)(void *state, int algorithm); // for run. -1: the library refused
    // Whether the chosen algorithm transforms its operands, so that its sums are rounded. NULL: no.
    bool (*is_near)(void *state);
    unsigned left_out; // of a backward convolution: the gradients that it does not compute, bits 1 << OF_...
};

struct library {
    const char *name;      // "openblas"
    unsigned kinds, types; // what it computes: bits 1 << OP_..., 1 << FLOAT...
    // Loads the library for so many threads; once. -1, with a reason: it cannot be loaded.
    int (*open)(int threads, char reason[REASON_SIZE]);
    // Writes the loaded version and settings as name=value fields.
    void (*describe)(char text[], size_t size);
    // Whether the processor has instructions for this type; NULL: for all of its types.
    bool (*is_fast)(enum data_type type);
    // Prepares an op. -1, with a reason: the library does not support it.
    int (*prepare)(const struct op *op, const struct operands *operands, struct prepared_op *prepared,
                   char reason[REASON_SIZE]);
};

extern const struct library library_openblas, library_onednn, library_cublaslt, library_cudnn;

#endif
