// How the communication threads move data. A collective is cut into slices, one for each channel; a slice is
// begun and then advanced piece by piece, without waiting, so that one thread keeps several in flight.
// Its elements have the collective's dtype.
//
// builtin: through shared memory, in pieces; each rank owns a part of a reduction, sums it in rank order in
// fp32 and distributes the sum (two shots). mpi: its non-blocking collectives, with a communicator for each
// channel.
#ifndef BENCH_WORKLOAD_TRANSPORT_H
#define BENCH_WORKLOAD_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event_count.h"
#include "program.h"
#include "ranks/group.h"

enum { MAX_CHANNELS = 32, MAX_THREADS = 16, TRANSPORT_REASON = 160 };

struct transport;

// One channel's part of one collective.
struct slice {
    const struct collective *collective;
    struct transport *transport;
    int channel;
    bool active;
};

struct transport {
    const struct transport_kind *kind;
    struct group *group;
    int channels, threads;            // channel c belongs to thread c % threads, on every rank
    struct event_count *event_counts; // shared: [rank][thread]
    void *state;
};

struct transport_kind {
    const char *name;   // in requests
    const char *kernel; // in names of kernels
    // The minimum thread level of MPI, with so many threads.
    int (*thread_level)(int threads);
    // Collective. -1 with `reason`, the same on all ranks.
    int (*open)(struct transport *transport, char reason[TRANSPORT_REASON]);
    void (*close)(struct transport *transport);
    // Called by the channel's thread.
    void (*begin)(struct slice *slice);
    // Moves what can be moved. Returns whether there was anything. Ends the slice (active = false).
    bool (*progress)(struct slice *slice);
};

extern const struct transport_kind transport_shared_memory, transport_mpi;

// The elements of slice `index` of `slices`, of `count`: as even as whole units allow.
struct part {
    size_t first, count;
};

static inline struct part part_of(size_t count, size_t unit, size_t slices, size_t index) {
    size_t units = (count + unit - 1) / unit, each = units / slices, more = units % slices;
    size_t first = (each * index + (index < more ? index : more)) * unit;
    size_t end = first + (each + (index < more ? 1 : 0)) * unit;
    if (first > count) first = count;
    if (end > count) end = count;
    return (struct part){first, end - first};
}

// The event count of a rank's thread.
static inline struct event_count *event_count_of(const struct transport *transport, int rank, int thread) {
    return &transport->event_counts[(size_t)rank * MAX_THREADS + (size_t)thread];
}

#endif
