// Plans of candidates to try, as a program that tunes writes them.
#ifndef BENCH_PLANS_H
#define BENCH_PLANS_H

#include <stdbool.h>

struct group;

// Collective. `timeout_s` is what a candidate may take. Reads a plan, agrees on it with all ranks, sets up,
// and does what is asked. 1: there is no such plan, or no agreement, which is said; -1: see group_failure.
int plans_run(struct group *group, const char *path, bool is_trial, double timeout_s);

#endif
