// A request to the harness, a cell and how long to sample it, and its results, one per candidate.
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "calls/backend.h"
#include "calls/cell.h"
#include "elements/statistics.h"
#include "elements/strategy.h"

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
    double skew_us;  // median over the calls: last start - first start
    double bound_us; // the physical bound of this cell
    double floor_us; // time of a call that does nothing, launched in the same way; 0: unknown
    int calls;       // in a sample
    uint64_t bits; // hash of the results, with -0 as +0, the same for strategies with equal bits; 0: the bits
                   // differ between ranks or calls
    size_t wrong;  // timed calls with a wrong result; then `reason` is set
};

#endif
