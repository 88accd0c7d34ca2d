// One pass over many ops: all calls of all candidates in one random order, the same on all ranks; all times
// are reduced once, at the end. With sync=op, each op is instead timed and reduced by itself; with sync=both,
// all ops are timed in both ways. host/host_pass.c on the host, and cell_pass.c for cells in device memory,
// list the series, make the calls and check the results.
#ifndef BENCH_PASS_H
#define BENCH_PASS_H

#include <stdio.h>

#include "measure/figures.h"
#include "pass_input.h"

// The calls of one candidate for one op.
struct pass_series {
    uint64_t op;                    // series of one op are adjacent
    size_t calls;                   // so far, in the current order
    uint32_t wrong, wrong_anywhere; // wrong calls on this rank; on all ranks (on rank 0)
    struct stamp *stamps;           // of the samples
    struct summary per_op;          // on rank 0, with one synchronisation per op
};

// The samples of a series, reduced over all ranks.
struct reduced {
    struct measurement measured; // without bound_us, floor_us and calls
    double mean_of_max_us, max_of_means_us, mean_us;
};

// The cost of passes in microseconds: in total, and the calls alone; and the same with one synchronisation
// per op.
struct pass_cost {
    double total_us, calls_us, reduce_us, op_total_us, op_calls_us;
};

struct pass {
    struct group *group;
    const struct pass_input *input;
    FILE *out;     // of rank 0: lines `progress done=N of=N`, at most one a second, and one at the end
    void *context; // the first argument of both functions
    // Collective: one call of series `index`, timed and checked. -1: see group_failure.
    int (*call)(void *context, size_t index, struct stamp *stamp, bool *is_right);
    // Rank 0: writes the result of series `index`; called in order.
    void (*report)(void *context, size_t index, const struct reduced *reduced);
    struct pass_series *series;
    size_t count;
    struct pass_cost cost;
    struct stamp *stamps;
    uint64_t reported_ns;
    size_t done, calls; // calls so far in all runs; calls in all
};

// Allocates `count` series. -1: out of memory.
int pass_open(struct pass *pass, size_t count);
void pass_close(struct pass *pass);

// Sets the expected number of calls: those of its series, and of `others` that come in later runs.
void pass_expect(struct pass *pass, size_t others);

// Collective. Makes all calls, and adds the time since `since_ns` to the cost. -1: see group_failure.
int pass_run(struct pass *pass, uint64_t since_ns);

// Writes a progress line if a second has passed since the last one; also used before a pass begins, since
// readers wait for the next line.
void pass_report_progress(struct pass *pass);

// Rank 0: the line `pass`.
void pass_write_cost(FILE *out, const struct pass_cost *cost);

// The other reductions as fields of a row: max_of_means_us and mean_of_max_us over ranks and calls, mean_us
// over both, and op_us, the median with one synchronisation per op (0: there was none).
void pass_write_fields(FILE *out, const struct pass_series *series, const struct reduced *reduced);

#endif
