// The name of this machine's processor. Traces and their replays contain it; both are compared only if it is
// the same.
#ifndef BENCH_PROCESSOR_NAME_H
#define BENCH_PROCESSOR_NAME_H

#include <stddef.h>

// "AMD EPYC 9654 96-Core Processor"; without a name the part number, else "CPU".
void processor_name(char name[], size_t size);

#endif
