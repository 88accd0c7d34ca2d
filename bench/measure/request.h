// A request to the harness, a cell and how long to sample it, and its results, one per candidate.
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "calls/backend.h"
#include "calls/cell.h"
#include "elements/statistics.h"
#include "elements/strategy.h"
#include "figures.h"

struct request {
    uint64_t id;
    struct shape shape;
    enum mode mode;
    uint32_t min_samples, max_samples;
    double budget_us; // for sampling all candidates
    double left_us;   // time limit of the whole request, after which no call is sampled; 0: no limit
    double precision; // sufficient half width of the interval, relative to the median; 0: none suffices
    uint32_t seed;
    uint8_t wanted[MAX_CANDIDATES]; // by index into backend->candidates
};

// The result of one candidate, on rank 0. Times are in microseconds.
struct result {
    const struct candidate *candidate;
    const char *reason; // why there is no time, or NULL
    struct summary time_us;
    double figures[FIGURES];
    uint64_t bits; // hash of the results, with -0 as +0, the same for strategies with equal bits; 0: the bits
                   // differ between ranks or calls
    size_t wrong;  // timed calls with a wrong result; then `reason` is set
};

#endif
