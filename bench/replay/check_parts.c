// Functions for the checks of products and of convolutions; see check.h.
#include "check.h"

#include <stdio.h>

#include "check_parts.h"

double dot(size_t count, const double a[], const double b[]) {
    enum { LANES = 8 };
    double sums[LANES] = {0}, total = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (int k = 0; k < LANES; k++) sums[k] += a[i + (size_t)k] * b[i + (size_t)k];
    }
    for (; i < count; i++) total += a[i] * b[i];
    for (int k = 0; k < LANES; k++) total += sums[k];
    return total;
}

void fill_signs(double signs[], size_t count, uint64_t *random) {
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++, bits >>= 1) {
        if (i % 64 == 0) bits = random_64(random);
        signs[i] = (bits & 1) != 0 ? 1 : -1;
    }
}

int report_wrong(const char *what, double got, double want, char reason[]) {
    snprintf(reason, REASON_SIZE, "the library's result is wrong: %s is %.9g, not %.9g", what, got, want);
    return -1;
}

int report_no_memory(char reason[]) {
    snprintf(reason, REASON_SIZE, "no memory to check the result");
    return -1;
}

int check_elements(const struct op *op, const struct operands *operands, char reason[]) {
    if (op->kind == OP_GEMM) return check_gemm_elements(&op->gemm, operands, reason);
    return op->kind == OP_CONVOLUTION ? check_convolution_elements(&op->convolution, operands, reason)
                                      : check_gradients_elements(&op->convolution, operands, reason);
}

int check_result(const struct op *op, const struct operands *operands, int threads, char reason[]) {
    int status = op->kind == OP_GEMM          ? check_gemm(&op->gemm, operands, threads, reason)
                 : op->kind == OP_CONVOLUTION ? check_convolution(&op->convolution, operands, reason)
                                              : check_gradients(&op->convolution, operands, reason);
    return status == 0 ? check_elements(op, operands, reason) : status;
}
