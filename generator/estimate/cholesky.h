// Cholesky factors of dense matrices. The kernels of a library depend on the processor. These functions add
// in a fixed order, so that the same input gives the same bits on every machine.
//
// A matrix of n rows is an array of n * n numbers, row by row; of a symmetric one only the lower triangle
// (column <= row) is read and written.
#ifndef GENTABLES_CHOLESKY_H
#define GENTABLES_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

// The inner product of two vectors of n numbers.
double cholesky_product(const double *a, const double *b, size_t n);

// Replaces the symmetric matrix A by its factor L, with A = L * transposed(L). Returns false, with an
// undefined `a`, if A is not positive definite.
bool cholesky_factor(double *a, size_t n);

// Replaces each of `count` vectors b, n numbers one after the other, by the solution x of L x = b.
void cholesky_forward(const double *l, size_t n, double *b, size_t count);

// Replaces b (n numbers) by the solution x of transposed(L) x = b.
void cholesky_backward(const double *l, size_t n, double *b);

// Replaces the factor L by the inverse of A = L * transposed(L), both triangles. `inverse` is working memory
// for n * n numbers.
void cholesky_invert(double *l, size_t n, double *inverse);

#endif
