// The cell of one request and the contenders that are timed with it: opened, verified, called and checked.
// harness.c and cell_pass.c decide how often and in which order.
#ifndef BENCH_TIMED_CELL_H
#define BENCH_TIMED_CELL_H

#include "setup.h"

#define NO_BITS 0

// A candidate that is timed, or the probe of the physical bound (candidate NULL), which copies input to
// output.
struct contender {
    const struct candidate *candidate;
    void *state;
    bool is_dropped;
    char reason[REASON_SIZE];
    bool settled; // known precisely enough: not sampled any more
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
    size_t calls;      // so far; selects the data of the next call
    double copy_us;    // the probe's time in a pass; 0: none
    uint64_t since_ns; // when the request arrived
    bool is_late;      // its time limit has passed
    struct right_result right[MAX_SHIFTS][MAX_CANDIDATES];
    int right_count[MAX_SHIFTS];
};

// Collective. Whether all ranks have the cell and its place; else all contenders are dropped, with the
// reason. `timed` must have its harness, group, request and since_ns; its contenders become the probe, then
// the wanted candidates.
bool timed_cell_open(struct timed_cell *timed);
void timed_cell_close(struct timed_cell *timed);

// The number of contenders with the probe, if none is dropped.
size_t timed_cell_most_contenders(const struct request *request);

// The bytes of the host's memory on one rank while it is open.
size_t timed_cell_bytes(const struct request *request, int rank, int ranks);

// Collective. Prepares and verifies a contender, and measures its floor_us. -1: see group_failure.
int timed_cell_admit(struct timed_cell *timed, struct contender *contender);

// The first part of it: drops a contender that cannot do such a call.
int timed_cell_prepare(struct timed_cell *timed, struct contender *contender);

// Collective. One sample that begins with data set `shift`; a contender that cannot be timed is dropped. And
// whether its results are right on this rank. -1: see group_failure.
int timed_cell_call(struct timed_cell *timed, struct contender *contender, size_t shift, struct stamp *stamp);
bool timed_cell_results_are_right(struct timed_cell *timed, struct contender *contender, size_t shift);

// The data set of the next call.
size_t timed_cell_next_shift(struct timed_cell *timed);

// Excludes a contender; the first reason counts.
void timed_cell_drop(struct contender *contender, const char *reason);

// Notes the phase and contender, for the watch (ranks/watch.h).
void timed_cell_step(const struct timed_cell *timed, enum phase phase, const struct contender *contender);

// Sets is_late on all ranks if the time limit has passed on rank 0. -1: see group_failure.
int timed_cell_check_time(struct timed_cell *timed);

#endif
