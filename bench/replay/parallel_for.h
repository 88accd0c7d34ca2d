// A loop over threads that are started for it and end with it: for loops of at least some milliseconds.
#ifndef REPLAY_PARALLEL_FOR_H
#define REPLAY_PARALLEL_FOR_H

#include <stddef.h>

// Calls work(context, from, to) for parts of 0 .. count, on at most so many threads, the calling one among
// them.
void parallel_for(int threads, size_t count, void (*work)(void *context, size_t from, size_t to),
                  void *context);

#endif
