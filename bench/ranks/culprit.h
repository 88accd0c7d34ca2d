// Finds the rank of this node that holds the others up, from /proc and the shared memory of the group.
#ifndef BENCH_CULPRIT_H
#define BENCH_CULPRIT_H

#include <stdbool.h>
#include <stddef.h>

#include "group_state.h"

// culprit_among sets the group of possible culprits (NULL: none), and culprit_group returns it.
void culprit_among(const struct group *group);
const struct group *culprit_group(void);

// Finds the culprit and describes what it does in `text`; -1: no rank can be named. `caller`: the calling
// rank, which may be the culprit itself. *state: the culprit's state as in /proc.
int culprit_name(const struct group *group, int caller, char *state, char text[], size_t size);

// The rank of a stopped process that the same launcher started; -1: none.
int culprit_stopped_sibling(void);

// The rank that its launcher gave a process; -1: none.
int culprit_rank_of(int pid);

// Describes a phase, of the candidate `name` or "", for messages.
void culprit_phase(enum phase phase, const char *name, char text[], size_t size);

// Whether a state of /proc is that of a stopped process.
bool culprit_is_stopped(char state);

#endif
