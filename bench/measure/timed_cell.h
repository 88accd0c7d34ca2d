// The cell of one request and its series, one for each candidate: opened, verified, called and checked.
// harness.c and cell_pass.c decide how often and in which order.
#ifndef BENCH_TIMED_CELL_H
#define BENCH_TIMED_CELL_H

#include "setup.h"

#define NO_BITS 0

// The samples of one candidate in the cell, or of the probe of the physical bound (candidate NULL), which
// copies input to output.
struct timed_series {
    const struct candidate *candidate;
    void *state;
    bool is_dropped;
    char reason[REASON_SIZE];
    bool settled; // clearly slower than the best, or known precisely enough: not sampled any more
    uint64_t hashes[MAX_DATA_SETS];
    uint64_t bits; // of all results, the same on all ranks and in all calls; or NO_BITS
    double estimate_ns, floor_us;
    size_t count, wrong;
    double *times_us, *skews_us; // rank 0
};

// A result that passed the full comparison: its hash and cell_bits, and how strict the comparison was.
struct right_result {
    uint64_t hash, bits;
    enum sum_rounding rounding;
};

struct timed_cell {
    struct harness *harness;
    struct group *group;
    const struct request *request;
    struct cell cell;
    struct cell_memory *memory; // for the cell; NULL: none
    void *buffers;              // of the cell; NULL: it has none
    struct timed_series series[MAX_IN_A_REQUEST + 1];
    int count;
    size_t calls;      // so far; selects the data of the next call
    double copy_us;    // the probe's time in a pass; 0: none
    uint64_t since_ns; // when the request arrived
    bool is_late;      // its time limit has passed
    struct right_result right[MAX_DATA_SETS][MAX_CANDIDATES];
    int right_count[MAX_DATA_SETS];
};

// Collective. Whether all ranks have the cell and its buffers; else all series are dropped, with the
// reason. `timed` must have its harness, group, request, memory and since_ns; its series become the probe,
// then the wanted candidates.
bool timed_cell_open(struct timed_cell *timed);
void timed_cell_close(struct timed_cell *timed);

// The number of series with the probe, if none is dropped.
size_t timed_cell_most_series(const struct request *request);

// The bytes of the host's memory on one rank while it is open.
size_t timed_cell_bytes(const struct request *request, int rank, int ranks);

// Collective. Prepares and verifies the candidate of a series, and measures its floor_us. -1: see
// group_failure.
int timed_cell_admit(struct timed_cell *timed, struct timed_series *series);

// The first part of timed_cell_admit: drops the series if its candidate cannot do such a call.
int timed_cell_prepare(struct timed_cell *timed, struct timed_series *series);

// Collective. Times one sample that begins with data set `data_set`; drops a series that cannot be timed. -1:
// see group_failure.
int timed_cell_call(struct timed_cell *timed, struct timed_series *series, size_t data_set,
                    struct stamp *stamp);

// Whether the results of that sample are right on this rank.
bool timed_cell_results_are_right(struct timed_cell *timed, struct timed_series *series, size_t data_set);

// The data set of the next call.
size_t timed_cell_next_data_set(struct timed_cell *timed);

// Ends a series without a result; the first reason counts.
void timed_cell_drop(struct timed_series *series, const char *reason);

// Notes the phase and series, for the watch (ranks/watch.h).
void timed_cell_step(const struct timed_cell *timed, enum phase phase, const struct timed_series *series);

// Sets is_late on all ranks if the time limit has passed on rank 0. -1: see group_failure.
int timed_cell_check_time(struct timed_cell *timed);

#endif
