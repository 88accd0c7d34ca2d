// Cold caches: removes the data that a call reads and writes from the caches before it.
#ifndef REPLAY_CACHE_FLUSH_H
#define REPLAY_CACHE_FLUSH_H

#include <stddef.h>

struct range {
    const void *data;
    size_t bytes;
};

// Removes this memory from all caches: line by line if the processor has an instruction for it; else, and for
// memory many times larger than the caches, by reading enough other memory to replace it.
void flush_caches(const struct range ranges[], size_t count, int threads);

#endif
