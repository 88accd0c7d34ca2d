// The candidates of a run, set up once for all of its requests.
#ifndef BENCH_SETUP_H
#define BENCH_SETUP_H

#include "request.h"

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

#endif
