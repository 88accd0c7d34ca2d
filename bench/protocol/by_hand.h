// The bench by hand: measures all sizes one after another, and prints a table and writes JSON like
// nccl-tests.
#ifndef BENCH_BY_HAND_H
#define BENCH_BY_HAND_H

#include "measure/back_to_back.h"

struct by_hand {
    size_t from_bytes, to_bytes;
    size_t factor, increment; // from one size to the next: times `factor`, or with factor 0 plus `increment`
    size_t hidden_size;       // 0: the default, or one token with all of a shorter message
    struct request request;
    struct back_to_back calls; // iterations 0: each call is timed by itself
    const char *json_path;     // or NULL
    int argc;
    char **argv;
};

// Collective. -1: see group_failure; 1: the JSON could not be written, which a message reports.
int by_hand_run(struct harness *harness, const struct by_hand *options, struct result results[]);

#endif
