// Cholesky factors; see cholesky.h.
#include "cholesky.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

// Also compiles a version for wider registers. It gives the same bits, since it fuses no products and sums.
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#define ALSO_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define ALSO_WIDE
#endif

// Uses several sums, which a compiler can keep in vector registers.
ALSO_WIDE double cholesky_product(const double *a, const double *b, size_t n) {
    double sums[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) sums[lane] += a[i + lane] * b[i + lane];
    }
    for (; i < n; i++) sum += a[i] * b[i];
    for (size_t lane = 0; lane < LANES; lane++) sum += sums[lane];
    return sum;
}

bool cholesky_factor(double *a, size_t n) {
    for (size_t row = 0; row < n; row++) {
        double *of_row = a + row * n;
        for (size_t column = 0; column < row; column++) {
            const double *of_column = a + column * n;
            of_row[column] =
                (of_row[column] - cholesky_product(of_row, of_column, column)) / of_column[column];
        }
        double square = of_row[row] - cholesky_product(of_row, of_row, row);
        if (!(square > 0)) return false;
        of_row[row] = sqrt(square);
    }
    return true;
}

// Each row for all vectors, so that the factor is read once.
void cholesky_forward(const double *l, size_t n, double *b, size_t count) {
    for (size_t row = 0; row < n; row++) {
        for (double *x = b; x < b + count * n; x += n) {
            x[row] = (x[row] - cholesky_product(l + row * n, x, row)) / l[row * n + row];
        }
    }
}

void cholesky_backward(const double *l, size_t n, double *b) {
    for (size_t row = n; row-- > 0;) {
        b[row] /= l[row * n + row];
        for (size_t column = 0; column < row; column++) b[column] -= l[row * n + column] * b[row];
    }
}

void cholesky_invert(double *l, size_t n, double *inverse) {
    for (size_t i = 0; i < n; i++) {
        double *column = inverse + i * n;
        memset(column, 0, n * sizeof *column);
        column[i] = 1;
        cholesky_forward(l, n, column, 1);
        cholesky_backward(l, n, column);
    }
    memcpy(l, inverse, n * n * sizeof *l);
}
