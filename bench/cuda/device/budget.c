// How much of a GPU's memory the data of calls get; see device.h. Free memory is divided among the ranks that
// share the GPU. A part of a rank's share is reserved for memory of unknown size: NCCL's buffers,
// graphs, plug-ins. Then come the workspaces of our own kernels, if they fit beside the minimum for the data;
// a strategy without room for its workspace fails in its setup.
#include "device.h"

#include <stdio.h>

enum { PART_OF_OTHERS = 8 }; // an eighth of a share is reserved

// This rank's share of its GPU's memory, the same on all ranks. 0: `reason`.
static size_t share_of(struct device *device, char reason[REASON_SIZE]) {
    size_t left = 0, all = 0;
    CUresult result = device->driver->cuMemGetInfo(&left, &all);
    driver_ok(device->driver, result, "querying free memory", reason, REASON_SIZE);
    if (!ranks_are_fine(device->group, reason)) return 0;
    size_t sharers = device->options.loopback ? (size_t)device->group->size : 1;
    return (size_t)group_min(device->group, (long)(left / sharers)); // all have read before any allocates
}

static bool has_use_for(const struct device *device, enum cuda_kernel kernel) {
    return device->modules[1] != NULL && device->reach != REACH_NONE &&
           (!cuda_kernel_facts[kernel].needs_multicast || device->can_multicast);
}

// The rest of a share, for the data of calls; `least` at least. Memory is allocated in pieces, which may
// be large.
static size_t room_for_data(const struct device *device, size_t share, size_t least) {
    size_t barriers = shared_memory_rounded(device, BARRIER_BYTES, false);
    size_t room = share - share / PART_OF_OTHERS;
    room = room < barriers + least ? least : room - barriers;
    for (int kernel = 0; kernel < CUDA_KERNELS; kernel++) {
        if (!has_use_for(device, (enum cuda_kernel)kernel)) continue;
        size_t bytes = shared_memory_rounded(device, workspace_bytes_of(device, (enum cuda_kernel)kernel),
                                             cuda_kernel_facts[kernel].needs_multicast);
        if (bytes <= room - least) room -= bytes;
    }
    return room;
}

// `wanted` bytes as whole pieces, or as many pieces as there is room for.
static size_t in_pieces(const struct device *device, size_t wanted, size_t room) {
    size_t bytes = shared_memory_rounded(device, wanted, false);
    if (bytes <= room) return bytes;
    return room / shared_memory_granularity(device, room, false) *
           shared_memory_granularity(device, room, false);
}

size_t arena_budget(struct device *device, size_t wanted, size_t least, char reason[REASON_SIZE]) {
    if (least > wanted) least = wanted;
    size_t share = share_of(device, reason);
    if (reason[0] != '\0') return 0;
    least = shared_memory_rounded(device, least, false);
    if (least > share) {
        snprintf(reason, REASON_SIZE,
                 "messages of %u KiB need %u MiB for their data, and a rank has %u of GPU %d; use a "
                 "smaller --workspace or --arena",
                 (unsigned)(device->workspace_bytes >> 10), (unsigned)(least >> 20), (unsigned)(share >> 20),
                 device->ordinal);
        return 0;
    }
    return in_pieces(device, wanted, room_for_data(device, share, least));
}
