// The times of a slice by shape, in the order of message sizes.
#ifndef GENTABLES_SIZE_TIMES_H
#define GENTABLES_SIZE_TIMES_H

#include "lists/names.h"

// A time of a strategy at a shape.
struct size_time {
    double time_us;
    uint64_t size_bytes;
    uint32_t num_tokens, hidden_size;
    uint8_t strategy;
    bool is_measured;
};

struct size_shape {
    uint64_t size_bytes;
    uint32_t num_tokens, hidden_size;
};

struct size_times {
    size_t count;                  // of shapes
    size_t width;                  // of strategies with a time
    uint8_t strategies[NAMES_MAX]; // by column, ascending
    struct size_shape *shape;      // ascending by size, tokens, hidden size; each once
    double *time_us;               // [shape][column]; NAN: none
    bool *is_measured;             // [shape][column]
};

// Sorts `count` times by shape. Of several times of one shape and strategy the last one is kept; is_measured
// is set if any of them is measured. False: out of memory. Call size_times_free in either case.
bool size_times_make(const struct size_time *times, size_t count, struct size_times *made);
void size_times_free(struct size_times *times);

#endif
