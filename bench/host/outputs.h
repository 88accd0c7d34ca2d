// Where the candidates of a pass write, and whether one of a plug-in writes there after it has returned.
#ifndef BENCH_HOST_OUTPUTS_H
#define BENCH_HOST_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

// Where a candidate's outputs go. Once one of a plug-in has returned, and its result was compared, it is
// poisoned, and has to stay so until the next call takes it. Where there are plug-ins every candidate has its
// own, so that it is clear who writes late, and caches are as warm for all; else all share those at SHARED.
struct output {
    unsigned char *data;
    int candidate;
    size_t poisoned_bytes;
};

// Two of a candidate, in turn, so that what comes late is found.
enum { OUTPUTS = 2 };
struct outputs {
    struct output of[OUTPUTS];
    unsigned calls;
};

// The output of the candidate's next call. If it did not leave it alone since, it does not come back from
// here.
struct output *outputs_next(struct outputs *outputs);

// Before a call: no right result is full of what is written to the first `bytes`.
void output_poison(struct output *output, size_t bytes);

// After a call of a plug-in: the same, and it has to stay so.
void output_poison_returned(struct output *output, size_t bytes);

// Ends the process where a candidate wrote there since.
void output_look_at(const struct output *output);

// Whether an array is as poison left it.
bool is_poisoned(unsigned char *at, size_t bytes);

_Noreturn void exit_for_late_write(int candidate);

#endif
