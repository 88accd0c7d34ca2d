// Functions for the checks of products and of convolutions; see check.h.
#ifndef REPLAY_CHECK_PARTS_H
#define REPLAY_CHECK_PARTS_H

#include "check.h"
#include "elements/random.h"

enum { SINGLE_ELEMENTS = 64 };

// Errors of single elements meet random signs, so their sum is above so many standard deviations in at most
// one of 10^13 cases (Hoeffding's inequality).
#define SURE 8.0

double dot(size_t count, const double a[], const double b[]);
void fill_signs(double signs[], size_t count, uint64_t *random); // +1 and -1

// Both write `reason`, and return -1.
int report_wrong(const char *what, double got, double want, char reason[]);
int report_no_memory(char reason[]);

// The whole result; and single elements.
int check_gemm(const struct gemm *gemm, const struct operands *operands, int threads, char reason[]);
int check_gemm_elements(const struct gemm *gemm, const struct operands *operands, char reason[]);
int check_convolution(const struct convolution *at, const struct operands *operands, char reason[]);
int check_convolution_elements(const struct convolution *at, const struct operands *operands, char reason[]);
int check_gradients(const struct convolution *at, const struct operands *operands, char reason[]);
int check_gradients_elements(const struct convolution *at, const struct operands *operands, char reason[]);

#endif
