// Plug-ins as candidates: loads shared libraries (plugin.h), checks what they say, and adapts them to
// elements/strategy.h.
#ifndef BENCH_PLUGINS_H
#define BENCH_PLUGINS_H

#include <stdint.h>

#include "elements/strategy.h"
#include "library.h"
#include "ranks/group.h"

enum { PLUGINS_MAX = 16 };

// Loads a library and appends those of its candidates to the backend's that work on its memory; before
// harnesses are opened. -1 and `reason` where it is none, or anything it says is not known.
int plugins_load(const char *path, char reason[PLUGIN_REASON_SIZE]);

// A hash of the files of all libraries that are loaded.
uint64_t plugins_hash(void);

// Why a candidate of a plug-in cannot do this call, or NULL. Alike on all ranks.
const char *plugins_refusal(const struct candidate *candidate, const struct group *group,
                            const struct call *call);

// Its parameters, for people; "" where it has none, or is one of ours.
const char *plugins_parameters(const struct candidate *candidate);

// Why it is not called with input and output apart, or (`in_place`) in the same place; NULL: it is.
const char *plugins_place_refusal(const struct candidate *candidate, const struct group *group,
                                  const struct call *call, bool in_place);

// Whether it is timed in place: it works nowhere else. And that as a word of rows, "in" or "out"; NULL: it is
// one of ours.
bool plugins_is_in_place(const struct candidate *candidate);
const char *plugins_place(const struct candidate *candidate);

// How its buffers have to be aligned, at least, in bytes.
size_t plugins_alignment(const struct candidate *candidate);

// Whether it is one whose epilogue is a kernel of ours behind its allreduce: NAME_EPILOGUE beside each NAME.
bool plugins_has_epilogue_apart(const struct candidate *candidate);

// "strategy NAME" of one of a plug-in, which may not come back (ranks/fault_report.h); NULL: it is one of
// ours.
const char *plugins_work(const struct candidate *candidate);

// Tells the library that a rank of this process called last that this work is no longer wanted.
void plugins_cancel(int rank);

// How many libraries are loaded.
int plugins_loaded(void);

// Frees a plan that a strategy left in call.plan. False: somebody wrote beyond its workspace.
bool plugins_release(const struct candidate *candidate, void *plan);

// Whether input and output of the call are in place, as NCCL defines it; and puts them in place so in
// `buffer`, which is as large as the larger one of them. No data move.
bool call_is_in_place(const struct call *call, int rank);
void call_put_in_place(struct call *call, int rank, void *buffer);

#endif
