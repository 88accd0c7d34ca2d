// Runs the input of a pass or a trial (protocol/pass_input.h), which the verb tune writes.
#ifndef BENCH_RUN_INPUT_H
#define BENCH_RUN_INPUT_H

struct group;

enum input_use { INPUT_PASS, INPUT_TRIAL, INPUT_BRIEF_TRIAL };

// Collective. Reads the input, compares it between all ranks, and measures its requests in one pass or tries
// plug-ins with their shapes. `timeout_s`: the limit of a candidate. 1: the input cannot be read or differs,
// which a message reports; -1: see group_failure.
int run_input(struct group *group, const char *path, enum input_use use, double timeout_s);

#endif
