// The fewest borders along an ascending axis: which strategy each of its points gets. See borders.c.
#ifndef GENTABLES_BORDERS_H
#define GENTABLES_BORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a strategy costs at a point.
struct border_option {
    double badness; // a share of the best time; finite
    uint8_t strategy;
    bool allowed; // it stays within what the point may lose; select_allow sets it
};

// A point: a token count of a row, a message size. `options` have different strategies, in the order in which
// equal ones win.
struct border_point {
    const struct border_option *options;
    size_t count;
    size_t chosen; // out: the index of an option; BORDER_NONE where none is allowed
};

#define BORDER_NONE SIZE_MAX

// Chooses an allowed option for every point, so that neighbours differ as seldom as possible and, of all such
// choices, with the least total badness. A point without an allowed option parts the axis: what follows it
// begins anew. False: out of memory.
bool borders_choose(struct border_point *points, size_t count);

#endif
