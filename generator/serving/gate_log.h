// One gate log of a mixture-of-experts model, as serving frameworks write it per layer: a JSON object
// {"step": [...], "num_tokens": [...], "expert_loads": [[load of each expert], ...]}, one entry per step.
#ifndef GENTABLES_GATE_LOG_H
#define GENTABLES_GATE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"

// What is kept of a log. All zero before it is read; gate_log_free afterwards, also where reading failed.
struct gate_log {
    size_t experts, steps; // experts: 0 where there is no step
    double *loads;         // of each expert over all steps: [0, experts), and what rounding took from each:
                           // [experts, 2 * experts)
    double *imbalance;     // of each step: the coefficient of variation over the experts; -1 without any load
    uint64_t idle;         // experts without load, counted in every step
    uint32_t most_idle;    // the most in one step
};

// Memory that reading the next log uses again. All zero before the first; gate_scratch_free at the end.
struct gate_scratch {
    char *text;
    double *numbers;
    size_t text_capacity, number_capacity;
};

// Reads the log at `path`. What is no such object, holds a number that is none (null, a text, NaN), lists of
// unequal length or steps of unequal numbers of experts, is refused; the message names path and byte.
bool gate_log_read(const char *path, struct gate_scratch *scratch, struct gate_log *log,
                   struct problem *problem);

// Adds `value` to a sum and what rounding takes from it to `lost`: *sum + *lost is exact to the last digit,
// and does not show the order of additions.
static inline void gate_add(double *sum, double *lost, double value) {
    double high = *sum + value;
    double part = high - *sum;
    *lost += (*sum - (high - part)) + (value - part);
    *sum = high;
}

void gate_log_free(struct gate_log *log);
void gate_scratch_free(struct gate_scratch *scratch);

#endif
