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

// The parameters of a candidate of a plug-in, for people; "" where it has none, or is one of ours.
const char *plugins_parameters(const struct candidate *candidate);

// Whether it is one whose epilogue is a kernel of ours behind its allreduce: NAME_EPILOGUE beside each NAME.
bool plugins_has_epilogue_apart(const struct candidate *candidate);

// "strategy NAME" of one of a plug-in, which may not come back (ranks/fault_report.h); NULL: it is one of
// ours.
const char *plugins_work(const struct candidate *candidate);

// How many libraries are loaded.
int plugins_loaded(void);

#endif
