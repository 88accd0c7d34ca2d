// Chooses a strategy for each point of an ascending axis, with the fewest borders. See borders.c.
#ifndef GENTABLES_BORDERS_H
#define GENTABLES_BORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A strategy that a point may get, and its cost there.
struct border_option {
    double badness; // a share of the best time; finite
    uint8_t strategy;
    bool allowed; // its loss is within the limit; select_allow sets it
};

// A point: a token count of a row, or a message size. The `options` have different strategies; of equally
// good ones the first wins.
struct border_point {
    const struct border_option *options;
    size_t count;
    size_t chosen; // out: the index of an option; BORDER_NONE: none is allowed
};

#define BORDER_NONE SIZE_MAX

// Chooses an allowed option for every point: the choice with the fewest changes between neighbours and, of
// these, the least total badness. A point without an allowed option divides the axis into independent parts.
// False: out of memory.
bool borders_choose(struct border_point *points, size_t count);

#endif
