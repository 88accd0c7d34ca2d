// Levels of strategies at any shape, from the contrasts of measured cells.
//
// Over strategies s and shapes x = (log2 bytes, log2(tokens / hidden size), fusion) the level is a Gaussian
// process
//
//     f(s, x) = offset(s) + slope(s) * log2 bytes + fused(s, fusion) + rest(s, fusion) * remainder(x)
//               + family(s's library, x) + own(s, x) + cell(s, x)
//
// where family and own vary smoothly (Matern-3/2, with lengths of 2 octaves of bytes and 20 octaves of tokens
// / hidden size: bytes decide almost everything), all algorithms of one library share the family term, the
// terms of different fusions are strongly correlated, and `cell` varies from cell to cell. Times of
// strategies that pass a message in parts jump where the last part is short, which `rest` describes. Only
// differences between strategies of a cell are observed, so the speed of the machine or of a launch has no
// effect (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 2).
#ifndef GENTABLES_GAUSSIAN_PROCESS_H
#define GENTABLES_GAUSSIAN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contrasts.h"

struct process_shape {
    double log2_bytes, log2_ratio; // of the message; of tokens over hidden size
    double remainder;              // how much of the last part is missing, on a scale of the caller; 0: none
    uint32_t fusion;               // any number, the same for the same fusion
    uint32_t cell;                 // the same number as in the times of this shape; PROCESS_NO_CELL: none
};

enum { PROCESS_NO_CELL = UINT32_MAX };

// A strategy at a shape.
struct process_point {
    struct process_shape shape;
    uint8_t strategy;
};

struct process_strategy {
    uint8_t family; // its library; 0: none that others share
    uint8_t method; // the same number for variants of one method, which take nearly the same time
    bool has_parts; // whether it passes messages in parts
};

struct gaussian_process;

// The process of these times, sorted by cell, then by launch; shapes[cell] are those of their cells. Returns
// NULL if memory is short or the equations have no solution; process_free frees it.
struct gaussian_process *process_fit(const struct visit_time *times, size_t count,
                                     const struct process_shape *shapes,
                                     const struct process_strategy *strategies, size_t strategy_count);
void process_free(struct gaussian_process *process);

// The process near a shape. A process of up to PROCESS_WHOLE contrasts is used as a whole. Of a larger one
// only the cells that resemble the shape most are used, with about PROCESS_NEAR contrasts, because the time
// grows with the cube of their number.
enum { PROCESS_WHOLE = 1000, PROCESS_NEAR = 300 };
struct process_near;

// Returns NULL if memory is short or the equations have no solution. process_near_free frees it, before the
// process itself.
const struct process_near *process_near(const struct gaussian_process *process,
                                        const struct process_shape *shape);
void process_near_free(const struct process_near *near);

// The joint distribution of the levels at `count` points: mean[count], and the lower triangle of
// covariances[count * count]. The levels of a shape have a common unknown constant; only their differences
// are useful. Returns false if memory is short.
bool process_predict(const struct process_near *near, const struct process_point *points, size_t count,
                     double *mean, double *covariances);

// The means alone, which take far less time. Returns false if memory is short.
bool process_means(const struct process_near *near, const struct process_point *points, size_t count,
                   double *mean);

#endif
