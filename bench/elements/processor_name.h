// What this machine's processor calls itself. Traces that were written on a processor name it, and so do
// their replays, which are compared where both names are the same.
#ifndef BENCH_PROCESSOR_H
#define BENCH_PROCESSOR_H

#include <stddef.h>

// "AMD EPYC 9654 96-Core Processor"; the number of the part where the system tells no name, or "CPU".
void processor_name(char name[], size_t size);

#endif
