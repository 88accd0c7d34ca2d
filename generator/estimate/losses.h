// Losses of choices over a bin of shapes, from the distribution of the strategies' levels.
//
// The loss of a strategy at a shape is its time beyond the fastest strategy's, as a share of the fastest
// time; over a bin, the mean of that, weighted by the shapes' weights. The distribution is drawn DRAWS times,
// with numbers that are the same in each run.
#ifndef GENTABLES_LOSSES_H
#define GENTABLES_LOSSES_H

#include <stdbool.h>
#include <stddef.h>

struct loss_figures {
    double expected;   // mean loss
    double confidence; // probability that the loss is at most LOSSES_RIGHT
    double worst;      // 95 % quantile of the loss
};

// A loss up to this is right.
#define LOSSES_RIGHT 0.02

// The figures of each strategy, into figures[strategies], over a bin of `shapes` shapes with weights. Levels
// are log2 of time: mean[shape * strategies + strategy], and the lower triangle of their covariance, which is
// overwritten. Returns false if memory is short, or the covariance is not positive definite.
bool losses_over_bin(const double *mean, double *covariance, size_t shapes, size_t strategies,
                     const double *weights, struct loss_figures *figures);

#endif
