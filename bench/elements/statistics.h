// The summary of the samples of one cell and strategy.
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>

struct summary {
    size_t samples;
    double median;
    double low, high; // 95% confidence interval of the median
    double min, p95, p99;
};

// Summarises `count` (at least 1) samples; sorts them in place. The interval is the nonparametric one from
// order statistics (Le Boudec, Performance Evaluation of Computer and Communication Systems, section 2.2);
// with fewer than six samples it is their range.
struct summary summarise(double *samples, size_t count);

// The median of `count` (at least 1) numbers; sorts them in place.
double median(double *numbers, size_t count);

#endif
