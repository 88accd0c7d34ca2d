// Plans of candidates to try, as a program that tunes writes them.
#ifndef BENCH_TRIAL_PLANS_H
#define BENCH_TRIAL_PLANS_H

struct group;

enum plan_use { PLAN_PASS, PLAN_TRIAL, PLAN_BRIEF_TRIAL };

// Collective. `timeout_s` is what a candidate may take. Reads a plan, agrees on it with all ranks, sets up,
// and does what is asked. 1: there is no such plan, or no agreement, which is said; -1: see group_failure.
int plans_run(struct group *group, const char *path, enum plan_use use, double timeout_s);

#endif
