// The self-test of the machine: the stages of the backend (calls/stage.h), each in a process of its own, so
// that one that hangs or dies ends alone.
#ifndef BENCH_SELF_TEST_H
#define BENCH_SELF_TEST_H

#include "calls/backend.h"

// Prints a line for each stage, and how to run the bench without what failed. `only` names one stage, which
// runs after the first one; NULL: all run. `timeout_s` is the limit of a rank's wait; 0: the default.
// Deadlines of stages grow with it. Returns the exit code: 0: no stage failed; 1: a stage failed; 2: there is
// no device, or no self-test.
int self_test_run(const struct device_options *options, const char *only, double timeout_s);

#endif
