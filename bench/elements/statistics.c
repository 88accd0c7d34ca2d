// Median, interval and percentiles; see statistics.h.
#include "statistics.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const double *sorted, size_t count) {
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

// Nearest rank: the smallest sample that at least `share` of the samples do not exceed.
static double percentile(const double *sorted, size_t count, double share) {
    size_t rank = (size_t)ceil(share * (double)count);
    return sorted[rank == 0 ? 0 : rank - 1];
}

double median(double *numbers, size_t count) {
    qsort(numbers, count, sizeof *numbers, ascending);
    return middle(numbers, count);
}

struct summary summarise(double *samples, size_t count) {
    qsort(samples, count, sizeof *samples, ascending);
    struct summary summary = {
        .samples = count,
        .median = middle(samples, count),
        .low = samples[0],
        .high = samples[count - 1],
        .min = samples[0],
        .p95 = percentile(samples, count, 0.95),
        .p99 = percentile(samples, count, 0.99),
    };
    if (count >= 6) {
        double half_width = 0.98 * sqrt((double)count); // 1.96 standard deviations of a binomial(count, 1/2)
        double low = floor((double)count / 2 - half_width), high = ceil((double)count / 2 + 1 + half_width);
        if (low >= 1) summary.low = samples[(size_t)low - 1];
        if (high <= (double)count) summary.high = samples[(size_t)high - 1];
    }
    return summary;
}
