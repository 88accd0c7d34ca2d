// The outputs of the candidates of a pass, and the detection of writes after a call has returned.
#ifndef BENCH_HOST_OUTPUTS_H
#define BENCH_HOST_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

// An output. After a plug-in's candidate has returned and its result was compared, the output is poisoned,
// and must stay so until the next call uses it. Candidates of plug-ins have outputs of their own, so that a
// late writer can be named. In a pass with plug-ins the other candidates have their own as well, if outputs
// are so small that caches matter: then caches are equally warm for all. Otherwise they share one set.
struct output {
    unsigned char *data;
    int candidate;
    size_t poisoned_bytes;
};

// The outputs of a candidate are used in turn, so that each stays poisoned during the next call: a late write
// at that time is detected.
enum { OUTPUTS = 2 };
struct outputs {
    struct output of[OUTPUTS];
    unsigned calls;
};

// The output of the candidate's next call. Ends the process if a candidate wrote there late.
struct output *outputs_next(struct outputs *outputs);

// Before a call: fills `bytes` with poison, of which no right result consists.
void output_poison(struct output *output, size_t bytes);

// After a call of a plug-in: fills `bytes` with poison, which must stay until the next call.
void output_poison_returned(struct output *output, size_t bytes);

// Ends the process if a candidate has overwritten that poison.
void output_check(const struct output *output);

// Whether an array still consists of poison.
bool is_poisoned(unsigned char *at, size_t bytes);

// Reports that a candidate writes late, and ends the process.
_Noreturn void exit_for_late_write(int candidate);

#endif
