// OpenBLAS, loaded at run time: nothing is linked, so that a program without GEMMs starts without it, and
// a machine that lacks it gets one clear line. Declares only the used part of its C interface (32-bit
// integers).
//
//   struct blas blas;
//   char reason[160];
//   if (blas_open(&blas, 1, reason, sizeof reason) != 0) fprintf(stderr, "gentables: %s\n", reason);
//   else blas.sgemm(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
#ifndef BENCH_BLAS_H
#define BENCH_BLAS_H

#include <stddef.h>

enum { BLAS_ROW_MAJOR = 101, BLAS_NO_TRANS = 111, BLAS_TRANS = 112 };

typedef void blas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                        int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void blas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                        const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);
struct blas {
    blas_sgemm *sgemm;
    blas_dgemm *dgemm;
    void (*set_threads)(int threads); // of every call from now on; 1 for calls of several threads
    int threads;                      // that one call uses
    char core[32];                    // the processor that the library took this one for: "Haswell"
    char version[64];                 // "OpenBLAS 0.3.21"
};

// Loads the library that GENTABLES_OPENBLAS names, else the system's, for calls that use `threads` threads
// each (blas->threads shows whether it was built for one alone). -1 with `reason` where there is none or
// it lacks a function. It stays loaded until the process ends. Changes the environment: call it before
// there are threads.
int blas_open(struct blas *blas, int threads, char reason[], size_t reason_size);

#endif
