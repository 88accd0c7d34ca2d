// How much memory this process may use: the machine's, or what a control group leaves of it.
#ifndef BENCH_MACHINE_MEMORY_H
#define BENCH_MACHINE_MEMORY_H

#include <stdint.h>

// In bytes. The machine's files are looked for below `root`, "" but in tests.
uint64_t machine_memory_bytes(const char *root);

// The smallest limit of the control groups that this process is in, of both versions and with all that these
// lie in; UINT64_MAX: there is none.
uint64_t machine_memory_limit(const char *root);

// What is left of it now: what the machine says is available, within what each of these groups has left; what
// it holds of files and may take back counts as left. Very much, where nothing says so.
uint64_t machine_memory_left(const char *root);

#endif
