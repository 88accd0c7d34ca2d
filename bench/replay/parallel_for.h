// A loop spread over threads, which live for that long: for loops of milliseconds.
#ifndef REPLAY_PARALLEL_FOR_H
#define REPLAY_PARALLEL_FOR_H

#include <stddef.h>

// Calls work(context, from, to) for parts of 0 .. count, on so many threads at most; this one takes part.
void spread(int threads, size_t count, void (*work)(void *context, size_t from, size_t to), void *context);

#endif
