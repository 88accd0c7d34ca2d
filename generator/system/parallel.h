// The same work on many pieces, on several threads.
#ifndef GENTABLES_PARALLEL_H
#define GENTABLES_PARALLEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Calls task(context, i) once for every i below `count`, in any order, on at most `threads` threads (0 and 1:
// on the calling one), but not more than 8, or than there are cores. Tasks must not write to the same memory.
// If a thread cannot be started, the others do its work.
void parallel_run(size_t count, size_t threads, void (*task)(void *context, size_t index), void *context);

#ifdef __cplusplus
}
#endif

#endif
