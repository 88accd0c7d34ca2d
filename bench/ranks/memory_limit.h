// How much memory this process may use: the machine's, or the limit of its control groups.
#ifndef BENCH_MEMORY_LIMIT_H
#define BENCH_MEMORY_LIMIT_H

#include <stdint.h>

// In bytes. The machine's files are read below `root`, which is "" except in tests.
uint64_t machine_memory_bytes(const char *root);

// The smallest limit of the control groups (v1 and v2) of this process and of their parents; UINT64_MAX:
// none.
uint64_t machine_memory_limit(const char *root);

// The memory that is available now: the machine's MemAvailable, and at most what each of these groups has
// left, where reclaimable file pages count as left. A very large number if neither is known.
uint64_t machine_memory_left(const char *root);

#endif
