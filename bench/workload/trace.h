// Writes a rank's notes of its steps as a trace for readers of profiler traces: Kineto's events, with the
// rank as the device, and a stream for each thread that computes or communicates. Times are of the threads'
// clock, which all ranks of a machine share; the trace declares that.
#ifndef BENCH_WORKLOAD_TRACE_H
#define BENCH_WORKLOAD_TRACE_H

#include "engine.h"

enum { COMPUTE_STREAM = 7, COMMUNICATION_STREAM = 20 }; // and one more for each further thread

struct trace {
    const struct program *program;
    const struct engine_description *description;
    const char *wait;
    int pid, tid;        // of this rank's process and of the thread that computes
    bool oversubscribed; // threads share cores
    uint64_t base_ns;    // on the clock of the notes: where times count from, the same for all ranks
    uint64_t base_unix_ns;
    const struct step_notes *steps;
    size_t step_count;
};

// Tests whether a file can be written there. 0, or an errno value.
int trace_try(const char *path);

// Writes the whole file or nothing. 0, or an errno value.
int trace_write(const struct trace *trace, const char *path);

#endif
