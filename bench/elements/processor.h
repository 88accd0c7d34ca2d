// This machine's processor, by hwloc; without_hwloc.c is built where hwloc is missing. Traces and their
// replays contain its name; both are compared only if it is the same.
#ifndef BENCH_PROCESSOR_H
#define BENCH_PROCESSOR_H

#include <stddef.h>

// "AMD EPYC 9654 96-Core Processor"; without a name the part number, else "CPU".
void processor_name(char name[], size_t size);

// The bytes of the last-level cache of the first core; 0: unknown.
size_t processor_cache_bytes(void);

// The number of the NUMA node that has all CPUs of this thread; -1: there is none, or it is unknown.
int processor_numa_node(void);

#endif
