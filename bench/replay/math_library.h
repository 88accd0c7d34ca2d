// The libraries that compute, behind one interface. A library prepares a call of an op for operands that are
// there; what a call does is what PyTorch's op does: operands as they lie in memory -> a result as it lies in
// memory.
#ifndef REPLAY_MATH_LIBRARY_H
#define REPLAY_MATH_LIBRARY_H

#include "data.h"

// A prepared op.
struct call {
    int (*run)(void *state); // 0, or -1: the library refused
    void (*end)(void *state);
    void *state;
    char kernel[96]; // what the library says it runs: "jit:avx512_core_bf16"
    char note[160];  // limitations of its times; "": none
    // Algorithms that the library offers, in its own order; run has the first one. 0: it offers none.
    int algorithms;
    int (*choose)(void *state, int algorithm); // that run is to have. -1: the library refused
    // Whether the chosen algorithm transforms its operands: its sums are near the right ones. NULL: no.
    bool (*is_near)(void *state);
};

struct library {
    const char *name;      // "openblas"
    unsigned kinds, types; // what it computes: bits 1 << OP_..., 1 << FLOAT...
    // Loads it for so many threads; once. -1, with a reason: it is not there.
    int (*open)(int threads, char reason[REASON_SIZE]);
    // Writes name=value words of what was loaded.
    void (*describe)(char text[], size_t size);
    // Whether it computes in this type fast enough that one would want it to; NULL: in all of its types.
    bool (*is_fast)(enum data_type type);
    // -1, with a reason: it refuses this op.
    int (*prepare)(const struct op *op, const struct operands *operands, struct call *call,
                   char reason[REASON_SIZE]);
};

extern const struct library library_openblas, library_onednn, library_cublaslt, library_cudnn;

#endif
