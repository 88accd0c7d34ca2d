// The numbers that a replay computes with: small integers, so that every product and sum of them is exact in
// all types here, and a wrong result of a library is detected.
#ifndef REPLAY_DATA_H
#define REPLAY_DATA_H

#include "op.h"

struct tensor {
    enum data_type type;
    size_t count; // 0: no tensor
    void *data;
    bool is_near; // its elements are read as the nearest integers
};

// A and B: the factors of a product, or the input and the filters of a convolution. C: the addend or the
// bias. Of a backward convolution A is the gradient of the result, B are the filters, if the input's gradient
// is computed, C is the input, if the filters' is, and the result contains the gradients.
struct operands {
    struct tensor a, b, c, out;
};

// The gradients in the result of a backward convolution; those that are not computed have no elements.
struct gradients {
    struct tensor of[GRADIENTS];
};
struct gradients gradients_in(const struct tensor *out, const struct convolution *at);

// The bytes of an element; of two, if they share a byte.
static inline size_t data_type_size(enum data_type type) {
    return data_type_sizes[type];
}

static inline size_t tensor_bytes(const struct tensor *tensor) {
    return tensor->count * data_type_size(tensor->type) / (is_float4(tensor->type) ? 2 : 1);
}

// Largest relative error of a result of this type. Below the normal numbers of the type the error is larger:
// that of a number of this magnitude.
double data_type_error(enum data_type type);
double data_type_least(enum data_type type);

// Allocates an op's operands in this type, and fills them by `threads` threads; C and the result of a scaled
// product have types of their own. -1, with a reason: out of memory. The next op uses the same memory, so
// that one op exists at a time.
int operands_make(const struct op *op, enum data_type type, int threads, struct operands *operands,
                  char reason[]);

// Fills with NaN, so that unwritten elements are detected.
void tensor_poison(const struct tensor *tensor, int threads);

// The element at `index`, rounded to an integer if `is_near`.
double tensor_value(const struct tensor *tensor, size_t index);

// `count` elements, `step` apart, as doubles.
void tensor_load(const struct tensor *tensor, size_t from, size_t step, size_t count, double to[]);

#endif
