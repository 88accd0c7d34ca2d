// One request's cell and those who are timed with it: opened, verified, called and checked; harness.c and
// cell_pass.c decide how often and in which order.
#ifndef BENCH_TIMED_CELL_H
#define BENCH_TIMED_CELL_H

#include "setup.h"

#define NO_BITS 0

// One who is timed: a candidate, or the probe of the physical bound (candidate NULL), which copies input to
// output.
struct contender {
    const struct candidate *candidate;
    void *state;
    bool is_dropped;
    char reason[REASON_SIZE];
    bool settled; // known well enough: sampled no more
    uint64_t hashes[MAX_SHIFTS];
    uint64_t bits; // of all results, the same on all ranks and in all calls; or NO_BITS
    double estimate_ns, floor_us;
    size_t count, wrong;
    double *times_us, *skews_us; // rank 0
};

// A result that passed the full comparison: its hash, and how strict the comparison was.
struct right_result {
    uint64_t hash;
    bool of_fp32_sums;
};

struct timed_cell {
    struct harness *harness;
    struct group *group;
    const struct request *request;
    struct cell cell;
    void *place; // of the cell; NULL: there is none
    struct contender contenders[MAX_IN_A_REQUEST + 1];
    int count;
    size_t calls;      // so far; decides which data the next call has
    double copy_us;    // what the probe took in a pass; 0: nothing that counts
    uint64_t since_ns; // when the request came
    bool is_late;      // all of its time is over
    struct right_result right[MAX_SHIFTS][MAX_CANDIDATES];
    int right_count[MAX_SHIFTS];
};

// Collective. Whether all ranks have the cell and its place; otherwise nobody is timed, with the reason.
// `timed` has its harness, group, request and when that came; its contenders are the probe, then those who
// are wanted.
bool timed_cell_open(struct timed_cell *timed);
void timed_cell_close(struct timed_cell *timed);

// How many there will be, if nobody is refused: with the probe.
size_t timed_cell_most_contenders(const struct request *request);

// What it takes of the host's memory on one rank while it is open.
size_t timed_cell_bytes(const struct request *request, int rank, int ranks);

// Collective. Prepares, verifies, and takes the floor under the times to come. -1: see group_failure.
int timed_cell_admit(struct timed_cell *timed, struct contender *contender);

// Its first part: whoever cannot do such a call drops out.
int timed_cell_prepare(struct timed_cell *timed, struct contender *contender);

// Collective. One sample with the data set `shift` first, after which whoever cannot be timed is out of the
// timed; and whether the results that it left are right on this rank. -1: see group_failure.
int timed_cell_call(struct timed_cell *timed, struct contender *contender, size_t shift, struct stamp *stamp);
bool timed_cell_results_are_right(struct timed_cell *timed, struct contender *contender, size_t shift);

// The data set of the next call.
size_t timed_cell_next_shift(struct timed_cell *timed);

// Times it no more; the first reason counts.
void timed_cell_drop(struct contender *contender, const char *reason);

// Who is at work, for those who look for a culprit.
void timed_cell_step(const struct timed_cell *timed, enum phase phase, const struct contender *contender);

// Whether all of the request's time is over: rank 0's word, on all ranks. -1: see group_failure.
int timed_cell_check_time(struct timed_cell *timed);

#endif
