// The state of a trial. Private to this folder.
#ifndef BENCH_TRIAL_STATE_H
#define BENCH_TRIAL_STATE_H

#include <stdio.h>

#include "calls/backend.h"
#include "calls/exact_data.h"
#include "protocol/pass_input.h"

enum {
    LARGE_BYTES = 4 << 20, // larger shapes have fewer calls, with exact sums only
    LEAST_ALIGNMENT = 16,  // which vector code may assume without declaring it
};

struct returned_buffer;

struct trial {
    struct group *group;
    const struct pass_input *input;
    bool is_brief;
    FILE *out;
    uint64_t reported_ns;
    size_t calls; // so far
    struct pool pools[DTYPES];
    void *states[MAX_CANDIDATES];
    char work[MAX_CANDIDATES][80];
    char reasons[MAX_CANDIDATES][REASON_SIZE]; // why it failed; "" so far
    bool wanted[MAX_CANDIDATES];
    bool was_called[MAX_CANDIDATES];
    const char *refusals[MAX_CANDIDATES]; // why it did not support the last unsupported shape
    size_t untried[MAX_CANDIDATES];       // bytes of the smallest shape without enough memory; 0: none
    double free_bytes;                    // of the host's memory, for each rank, at the start
    int round;
    struct returned_buffer *first, **last; // the oldest; where the next one goes
    unsigned long kept_so_far;
    size_t kept_bytes;
};

static inline size_t shape_bytes(const struct shape *shape) {
    return shape->num_tokens * shape->hidden_size * dtype_sizes_bytes[shape->dtype];
}

// Records why a candidate failed on this rank; the first reason counts.
void trial_fail(struct trial *trial, int index, const char *reason);

// Collective. Sets the reason of the first rank that has one on all ranks.
void trial_share_reason(struct trial *trial, int index);

// Call it if there is no memory for a call. A large shape is skipped and reported as untried; with a small
// one the candidate fails.
void trial_lack_memory(struct trial *trial, int index, const struct shape *shape);

// Between two calls: prints progress at most once a second, since readers have a timeout for the next line.
void trial_report_progress(struct trial *trial);

#endif
