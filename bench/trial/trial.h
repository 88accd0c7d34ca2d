// The trial of plug-ins, in processes of its own, before they are timed together with others. Each candidate
// runs in each shape of the input, out of place and in place, on buffers that end, and in another round
// begin, at unmapped memory, with canaries in the gaps. Results are compared bit by bit at return, on a GPU
// on the stream right after the call; rounded sums and epilogues are compared with float64. Writes after the
// return are detected until fini. Threads, open files, shared memory, mapped bytes, the heap and device
// memory are counted over several init-run-fini.
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include <stdio.h>

#include "protocol/pass_input.h"

// Collective. Rank 0 prints a line for each wanted candidate of a plug-in: `trial strategy=NAME
// status=passed`, `status=failed reason=...`, or, if it supports no shape of the input, `status=uncalled
// reason=...`; after passed, `untried=BYTES` is the smallest shape for which memory did not suffice. Before
// these come lines `progress done=N` with the number of calls, at most one a second. `is_brief`: of each op
// only the first cell that a candidate does, and no leak detection, for tools that slow everything down. A
// candidate that crashes or hangs ends the process, with a message of ranks/fault_report.h. -1: see
// group_failure.
int trial_run(struct group *group, const struct pass_input *input, bool is_brief, FILE *out);

#endif
