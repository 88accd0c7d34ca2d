// Copies into shared memory what other ranks read next: through the cache, or past it.
//
// What such memory held was last read by another rank. Where that rank shares a cache with this one, an
// ordinary store is best: the reader finds the data there. Where it does not (another socket, another
// last-level cache), an ordinary store first fetches the old lines from over there, and a streaming one does
// not: the readers find the data in memory. Who sits where is not told reliably, and less so in a virtual
// machine, where it changes. So now and then a copy is timed, and the kind that is cheaper to write is used.
#ifndef BENCH_HOST_HANDOVER_H
#define BENCH_HOST_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "ranks/group.h"

// What one rank knows of writing to one place.
struct handover {
    const struct kernels *kernels;
    bool tries;            // streaming at all
    unsigned copies;       // so far
    double ns_per_byte[2]; // by ordinary, by streaming stores: the least of late; 0: unknown
};

// Two ranks never stream: what one of them writes it has read last (see the strategies), so that it owns the
// cache lines already.
void handover_begin(struct handover *handover, const struct group *group);

// Copies `bytes` to shared memory; a release store may publish them then.
void handover_copy(struct handover *handover, void *to, const void *from, size_t bytes);

#endif
