// Plug-ins as candidates: loads shared libraries (plugins/plugin.h), and checks what they declare.
#ifndef BENCH_PLUGINS_H
#define BENCH_PLUGINS_H

#include <stdint.h>

#include "elements/strategy.h"
#include "library.h"
#include "ranks/group.h"

enum { PLUGINS_MAX = 16 };

// Loads a library, and appends its candidates for this backend's memory to the backend's candidates. Call it
// before harness_open. -1: `reason`; the library is no valid plug-in, or declares something unknown.
int plugins_load(const char *path, char reason[PLUGIN_REASON_SIZE]);

// A hash of the files of all loaded libraries.
uint64_t plugins_hash(void);

// The declared parameters of a candidate, for people; "" if it has none, or is no plug-in's.
const char *plugins_parameters(const struct candidate *candidate);

// Whether it is NAME_EPILOGUE: the allreduce of a plug-in's candidate NAME, then the backend's own epilogue.
bool plugins_has_epilogue_apart(const struct candidate *candidate);

// "strategy NAME" for fault_work() if it is a plug-in's, which may hang or crash; NULL if it is not.
const char *plugins_work(const struct candidate *candidate);

// The number of loaded libraries.
int plugins_loaded(void);

#endif
