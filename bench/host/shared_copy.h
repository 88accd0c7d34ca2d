// Copies data to shared memory for other ranks, with ordinary or with streaming stores.
//
// The old contents of that memory were last read by another rank. If that rank shares a cache with this one,
// ordinary stores are best: the reader finds the data in the cache. If it does not (another socket, another
// last-level cache), ordinary stores first fetch the old lines from there, and streaming stores do not: the
// reader finds the data in memory. The placement of ranks is not known reliably, and changes in virtual
// machines. So some copies are timed, and the kind of stores that is cheaper to write is used.
#ifndef BENCH_HOST_SHARED_COPY_H
#define BENCH_HOST_SHARED_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "ranks/group.h"

// The measurements of one rank for one destination.
struct handover {
    const struct kernels *kernels;
    bool tries;            // whether streaming is tried at all
    unsigned copies;       // so far
    double ns_per_byte[2]; // of ordinary and streaming stores: a recent minimum; 0: unknown
};

// Two ranks never stream: a rank writes to lines that it has read last (see the strategies), so that it
// already owns them.
void handover_begin(struct handover *handover, const struct group *group);

// Copies `bytes` to shared memory; a release store after it publishes them.
void handover_copy(struct handover *handover, void *to, const void *from, size_t bytes);

#endif
