// Measures one cell after another with all candidates that apply: verified before they are timed and again on
// the timed calls, interleaved in random order, started together; the largest time over the ranks counts.
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "cell.h"
#include "elements/statistics.h"
#include "elements/strategy.h"
#include "ranks/group.h"

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

struct harness {
    struct group *group;
    const char *at_work; // the candidate whose turn it is, on this rank; "": none
    double roundtrip_us; // between two ranks, taken anew after each request: tells when the machine has
                         // changed under the ranks
    char reasons[MAX_CANDIDATES][REASON_SIZE]; // of the last request; results point into them
    void *states[MAX_CANDIDATES];
    bool is_set_up[MAX_CANDIDATES];
    char unavailable[MAX_CANDIDATES][REASON_SIZE]; // "" where the set-up went well
};

// Collective. Sets candidates up, those that are wanted (NULL: all), and takes the round trip. -1: see
// group_failure.
int harness_open(struct harness *harness, struct group *group, const uint8_t wanted[]);

// What a plug-in does then, each is blamed for by name, with a deadline of its own.
void harness_close(struct harness *harness);

// Why a candidate cannot do this shape here, or NULL. Decides alike on all ranks.
const char *harness_refusal(const struct harness *harness, int index, const struct shape *shape,
                            const struct call *call);

// Collective. Measures one cell; `results` has candidate_count() places and is filled on rank 0, for
// those that were wanted (others have candidate NULL). Texts in it live until the next call. -1: see
// group_failure.
int harness_measure(struct harness *harness, const struct request *request, struct result results[]);

#endif
