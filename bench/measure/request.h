// What is asked of the harness, and what it answers: a cell and how long to sample it; a result per
// candidate.
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
    double budget_us; // of the sampling of all candidates together
    double left_us;   // for all of the request; what has no time by then has none. 0: as long as it takes
    double precision; // half an interval that is narrow enough, as a share of the median; 0: sample on
    uint32_t seed;
    uint8_t wanted[MAX_CANDIDATES]; // by index into backend->candidates
};

// What is known of one candidate after a request, on rank 0. Times are in microseconds.
struct result {
    const struct candidate *candidate;
    const char *reason; // why there is no time, or NULL
    struct summary time_us;
    double skew_us;  // median over the calls: last start - first start
    double bound_us; // the physical bound of this cell
    double floor_us; // what a call that does nothing takes, launched in the same way; 0: not told
    int calls;       // in a sample
    uint64_t bits; // a hash of the results, -0 as +0; equal of strategies with equal bits. 0: none, for ranks
                   // or calls differ
    size_t wrong;  // timed calls with a wrong result (then there is a reason too)
};

#endif
