// Shared libraries of plug-ins: opened, and asked what they have; one that crashes there is told by its path.
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include "plugins/plugin.h"

enum { PLUGIN_REASON_SIZE = 512 };

// What the library at `path` says of itself; NULL: `reason`. Where it crashes this ends the process, with
// exit code 1 and a line.
const gt_plugin *library_load(const char *path, char reason[PLUGIN_REASON_SIZE]);

#endif
