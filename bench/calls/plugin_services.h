// The services of a backend for plug-ins: a communicator, a device, the collective callbacks; and the memory
// of trials and workspaces, which lies between unmapped memory, with canaries in the gaps.
// host/host_services.c and cuda/cuda_services.c implement them; plugin_loader/ and trial/ are the same for
// all backends.
#ifndef BENCH_PLUGIN_SERVICES_H
#define BENCH_PLUGIN_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elements/strategy.h"
#include "plugins/plugin.h"
#include "ranks/group.h"

// A buffer. `data` is an address in the memory of candidates, maybe of a GPU.
struct guarded {
    unsigned char *data;
    size_t bytes;
    unsigned char *reserved, *mapped; // the range of addresses; the mapped part of it
    size_t reserved_bytes, mapped_bytes;
    unsigned long long handle; // of a GPU's memory
};

struct plugin_services {
    unsigned memory;       // GT_MEMORY_HOST or GT_MEMORY_CUDA
    const char *where;     // that memory, for messages
    unsigned comms;        // mask of the available communicators: 1u << GT_COMM_MPI
    const char *comm_name; // their name, for messages
    size_t alignment;      // of workspaces

    // Collective. Sets device, stream and communicator (of kind `comm`; 0: none) in `rank`, valid until
    // close. -1: `reason`, possibly only on some ranks.
    int (*open)(struct group *group, unsigned comm, gt_rank *rank, void **own, char reason[REASON_SIZE]);
    void (*close)(void *own);
    // Collective. 0: done.
    int (*allgather)(void *own, const void *in, void *out, size_t bytes);
    int (*barrier)(void *own);

    void (*enter)(struct group *group); // sets the device; before each call of a library

    // Maps at least `bytes` inside a larger range of addresses. -1: out of memory.
    int (*reserve)(struct group *group, struct guarded *buffer, size_t bytes);
    void (*give_back)(struct group *group, struct guarded *buffer);

    // On the stream of this rank; they wait for it. False: see group_failure.
    bool (*put)(struct group *group, void *to, const void *from, size_t bytes);
    bool (*get)(struct group *group, void *to, const void *from, size_t bytes);
    bool (*fill)(struct group *group, void *to, int byte, size_t bytes);

    // Right after a run, in stream order: whether two arrays are equal.
    bool (*compare)(struct group *group, const void *is, const void *should, size_t bytes, bool *same);

    // Around a run that may only enqueue: `hold` blocks the stream until `let_go`, which sets *has_waited if
    // the run waited for the stream. When the stream continues, it first overwrites `bytes` at `lost`, so
    // that results are lost that were written without waiting for the stream. False: see group_failure. NULL:
    // runs return complete results.
    bool (*hold)(struct group *group, void *lost, size_t bytes);
    bool (*let_go)(struct group *group, bool *has_waited);

    // Enqueues the epilogue of a call after its sum, which is in residual_out. NULL: the code that times
    // calls does it.
    bool (*epilogue)(struct group *group, const struct call *call);

    // The bytes in use of this rank's device memory; 0 without a device.
    size_t (*device_bytes)(const struct group *group);
};

// A buffer of `bytes` that ends, or begins, at unmapped memory, as far as the alignment allows. -1: out of
// memory; nothing is allocated.
int guarded_open(struct group *group, struct guarded *buffer, size_t bytes, size_t alignment, bool at_end);
void guarded_close(struct group *group, struct guarded *buffer);

// Whether the canaries in the gaps are intact; and whether all of the buffer is `byte`. Both are true of a
// buffer that was never opened.
bool guarded_is_whole(struct group *group, const struct guarded *buffer);
bool guarded_holds(struct group *group, const struct guarded *buffer, int byte);

#endif
