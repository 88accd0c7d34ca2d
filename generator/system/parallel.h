// The same work on many pieces, on as many threads as there are cores.
#ifndef GENTABLES_PARALLEL_H
#define GENTABLES_PARALLEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Calls task(context, i) for every i below `count`, each once, in no order, on at most `threads` threads (0
// and 1: on this one). The tasks must not write to the same memory. Where no thread can be started, fewer do
// it all.
void parallel_run(size_t count, size_t threads, void (*task)(void *context, size_t index), void *context);

#ifdef __cplusplus
}
#endif

#endif
