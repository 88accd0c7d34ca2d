// One pass over many ops: every op x candidate x sample in one random order, the same on all ranks, and all
// times reduced once at the end; beside it, or in its place, one synchronisation per op. Who makes the calls
// (host/host_pass.c on the host, cell_pass.c where cells have a place) says who is timed, and checks what
// calls leave.
#ifndef BENCH_PASS_H
#define BENCH_PASS_H

#include <stdio.h>

#include "plan_file.h"

// One way to do one op, as one candidate does it.
struct entrant {
    uint64_t op;                    // what is synchronised by itself; those of one op follow each other
    size_t calls;                   // so far, in this order
    uint32_t wrong, wrong_anywhere; // calls of this rank; of all, on rank 0
    struct stamp *stamps;           // of the samples
    struct summary per_op;          // rank 0, where each op was synchronised by itself
};

// What all ranks together say of an entrant's samples.
struct reduced {
    struct summary time_us; // of the largest over ranks
    double skew_us, mean_of_max_us, max_of_means_us, mean_us;
};

// What passes took, microseconds: all of it, and the calls alone; the same where each op was synchronised.
struct pass_cost {
    double total_us, calls_us, reduce_us, op_total_us, op_calls_us;
};

struct pass {
    struct group *group;
    const struct tune_plan *plan;
    FILE *out; // rank 0 tells there how far it is: lines `progress done=N of=N`, one a second, and at its end
    void *of;
    // Collective: one call of entrant `index`, timed and checked. -1: see group_failure.
    int (*call)(void *of, size_t index, struct stamp *stamp, bool *is_right);
    // Rank 0: says what became of it; in order.
    void (*tell)(void *of, size_t index, const struct reduced *reduced);
    struct entrant *entrants;
    size_t count;
    struct pass_cost cost;
    struct stamp *stamps;
    uint64_t told_ns;
    size_t done, calls; // so far, in all that pass_run has had; of so many
};

// Takes the memory for `count` entrants. -1: there is none.
int pass_open(struct pass *pass, size_t count);
void pass_close(struct pass *pass);

// Says how many calls there will be: those of its entrants and of `others`, who come to it later, in another
// run.
void pass_expect(struct pass *pass, size_t others);

// Collective. What it took since `since_ns` is added to its cost. -1: see group_failure.
int pass_run(struct pass *pass, uint64_t since_ns);

// How far it is, where it is time to tell; also before a pass has begun, for whoever waits for the next line.
void pass_tell_progress(struct pass *pass);

// Rank 0: the line `pass`.
void pass_write_cost(FILE *out, const struct pass_cost *cost);

// The other reductions of a row, as fields of its line: max_of_means_us and mean_of_max_us over ranks and
// calls, mean_us over both, and op_us, the median with one synchronisation per op (0: there was none).
void pass_write_fields(FILE *out, const struct entrant *entrant, const struct reduced *reduced);

#endif
