// The bench by hand: all sizes, one after another, printed as nccl-tests does, and written as its JSON.
#ifndef BENCH_BY_HAND_H
#define BENCH_BY_HAND_H

#include "measure/back_to_back.h"

struct by_hand {
    size_t from_bytes, to_bytes;
    size_t factor,
        increment;      // from one size to the next: times the factor, or, where it is 0, plus the increment
    size_t hidden_size; // 0: the usual one, or one token with all of a shorter message
    struct request request;
    struct back_to_back calls; // iterations 0: each call by itself
    const char *json_path;     // or NULL
    int argc;
    char **argv;
};

// Collective. -1: see group_failure; 1: the JSON could not be written, which is said.
int by_hand_run(struct harness *harness, const struct by_hand *options, struct result results[]);

#endif
