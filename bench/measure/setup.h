// The harness: the candidates of a run, set up once for all of its requests. harness.h measures cells with
// it.
#ifndef BENCH_SETUP_H
#define BENCH_SETUP_H

#include "request.h"

struct harness {
    struct group *group;
    const char *at_work; // the candidate that this rank runs; "": none
    double roundtrip_us; // between two ranks; measured again after each request, unless ranks share cores, to
                         // detect changes of the machine's state
    char reasons[MAX_CANDIDATES][REASON_SIZE]; // of the last request; results point into them
    void *states[MAX_CANDIDATES];
    bool is_set_up[MAX_CANDIDATES];
    char unavailable[MAX_CANDIDATES][REASON_SIZE]; // "" where the set-up went well
    struct cell_memory memory;                     // of the cell that is measured
};

// Collective. Sets up the wanted candidates (NULL: all), and measures the round trip. -1: see group_failure.
int harness_open(struct harness *harness, struct group *group, const uint8_t wanted[]);

// Tears the candidates down; those of plug-ins have a deadline, and faults are reported with their names.
void harness_close(struct harness *harness);

// A lower bound of every call in microseconds: the round trip of a flag between the caches of two ranks, or
// one way of a message between two nodes.
double harness_latency_us(const struct harness *harness);

// Whether ranks note on one clock when a call starts. Several nodes have none.
bool harness_has_skews(const struct group *group);

// Why a candidate does not support this shape, or NULL. The same on all ranks.
const char *harness_refusal(const struct harness *harness, int index, const struct shape *shape,
                            const struct call *call);

#endif
