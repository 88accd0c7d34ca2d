// Measures a program with a number of channels and threads: verifies it, warms up, runs rounds of its kinds
// of steps, one of each kind, in an order that changes, verifies it again, and writes the traces.
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
    char path[PATH_SIZE];                   // of traces, with %r for the rank; "": no trace
};

// Reads a `run` line. -1: `reason`.
int measurement_read(struct measurement *measurement, const char *line, char reason[PROGRAM_REASON]);

// Collective. Rank 0 answers on stdout. -1: `reason`, the same on all ranks. If a rank failed alone
// (group_failure), this process must end, because memory that threads or GPUs may still use is not freed.
int measure(const struct measurement *measurement, struct program *program, struct group *group,
            const struct blas *blas, char reason[PROGRAM_REASON]);

#endif
