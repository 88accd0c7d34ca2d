// Cold caches: what a call reads and writes is put out of them before it.
#ifndef REPLAY_CACHE_FLUSH_H
#define REPLAY_CACHE_FLUSH_H

#include <stddef.h>

struct range {
    const void *data;
    size_t bytes;
};

// Puts this memory out of all caches: line by line where the processor can; else, and where it is many times
// as large as they are, by reading so much other memory that nothing is left of it.
void cold_forget(const struct range ranges[], size_t count, int threads);

#endif
