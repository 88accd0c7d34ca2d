// The trial of plug-ins, before they are timed beside others, in processes of its own: each candidate in each
// shape of a plan, out of place and in place, on buffers that end, and in another round begin, at unmapped
// memory, with canaries in the gaps; results compared bit by bit at return, on a GPU right behind it on the
// stream; sums that are rounded, and epilogues, against float64; what is written after that found out, until
// fini; threads, open files, shared memory, mapped bytes, the heap and device memory counted over several
// init-run-fini.
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include <stdio.h>

#include "protocol/plan_file.h"

// Collective. Prints on rank 0, for each candidate of a plug-in that the plan wants, `trial strategy=NAME
// status=passed`, `status=failed reason=...` or, where no shape of the plan is one for it, `status=uncalled
// reason=...`; behind passed, `untried=BYTES` of the smallest shape that there was no memory for. Before
// these, one a second at most, `progress done=N`, the calls so far. `is_brief`: of each op only the first
// cell that a candidate does, and no look for leaks; for tools that make everything slower. A candidate that
// crashes or hangs ends the process, and is told by ranks/fault_report.h. -1: see group_failure.
int trial_run(struct group *group, const struct tune_plan *plan, bool is_brief, FILE *out);

#endif
