// Runs of a plan (protocol/pass_input.h), which the verb tune writes.
#ifndef BENCH_RUN_INPUT_H
#define BENCH_RUN_INPUT_H

struct group;

enum plan_use { PLAN_PASS, PLAN_TRIAL, PLAN_BRIEF_TRIAL };

// Collective. Reads a plan, compares it between all ranks, and measures it in one pass or tries its plug-ins.
// `timeout_s`: the limit of a candidate. 1: the plan cannot be read or differs, which a message reports; -1:
// see group_failure.
int plans_run(struct group *group, const char *path, enum plan_use use, double timeout_s);

#endif
