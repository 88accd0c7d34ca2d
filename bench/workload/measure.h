// Measures a program with so many channels and threads: verified, warmed up, then rounds of its four kinds of
// steps, one of each, in an order that changes; verified again; the notes of the traced ones are written.
#ifndef BENCH_WORKLOAD_MEASURE_H
#define BENCH_WORKLOAD_MEASURE_H

#include <stdio.h>

#include "engine.h"

enum { PATH_SIZE = 3000, MOST_STEPS = 100000 };

struct measurement {
    size_t channels, threads, steps, warm_up;
    enum wait wait;
    double patience_s; // for a step of our own kernels on a GPU
    const struct engine *engine;
    const struct transport_kind *transport; // of the host
    char path[PATH_SIZE];                   // rank r's trace is PATH with %r for its number; "": no trace
};

// Reads a `run` line. -1: `reason` says what is wrong.
int measurement_read(struct measurement *measurement, const char *line, char reason[PROGRAM_REASON]);

// Collective. Rank 0 answers on stdout. -1: `reason` says why not, alike on all ranks; where a rank failed
// alone (group_failure), this process is to end, for what it worked on is not given back.
int measure(const struct measurement *measurement, struct program *program, struct group *group,
            const struct blas *blas, char reason[PROGRAM_REASON]);

#endif
