// Opens the shared libraries of plug-ins.
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include "plugins/plugin.h"

enum { PLUGIN_REASON_SIZE = 512 };

// Loads the library at `path`, and returns what its gentables_plugin() returns. NULL: `reason`. If the
// library crashes, the process ends with exit code 1 and a line on stderr that names it.
const gt_plugin *library_load(const char *path, char reason[PLUGIN_REASON_SIZE]);

#endif
