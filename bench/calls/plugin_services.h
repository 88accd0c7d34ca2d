// What a backend gives plug-ins to stand on: a communicator, a device, the collective callbacks; and the
// memory of their trial and their workspaces, which lies between unmapped memory, with canaries in the gaps.
// host/host_services.c and cuda/cuda_services.c have one each; plugins.c and trial.c know no other
// difference.
#ifndef BENCH_PLUGIN_SERVICES_H
#define BENCH_PLUGIN_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elements/strategy.h"
#include "plugins/plugin.h"
#include "ranks/group.h"

// A buffer. `data` is an address of the memory that candidates work on, maybe of a GPU.
struct guarded {
    unsigned char *data;
    size_t bytes;
    unsigned char *reserved, *mapped; // all of its range of addresses; the part that is memory
    size_t reserved_bytes, mapped_bytes;
    unsigned long long handle; // of a GPU's memory
};

struct plugin_services {
    unsigned memory;       // GT_MEMORY_HOST or GT_MEMORY_CUDA
    const char *where;     // in words
    unsigned comms;        // kinds of communicators that there are: 1u << GT_COMM_MPI
    const char *comm_name; // and the words for that
    size_t alignment;      // of workspaces, at least

    // Collective. Fills what `rank` says of device, stream and communicator (of kind `comm`, 0: none is
    // needed), which live until close. -1: `reason`, maybe not on all ranks.
    int (*open)(struct group *group, unsigned comm, gt_rank *rank, void **own, char reason[REASON_SIZE]);
    void (*close)(void *own);
    // Collective. 0: done.
    int (*allgather)(void *own, const void *in, void *out, size_t bytes);
    int (*barrier)(void *own);

    void (*enter)(struct group *group); // before each call of a library: sets the device

    // Maps at least `bytes` amid a larger range of addresses. -1: there is no memory.
    int (*reserve)(struct group *group, struct guarded *buffer, size_t bytes);
    void (*give_back)(struct group *group, struct guarded *buffer);

    // On the stream of this rank, which has done it when they return. False: see group_failure.
    bool (*put)(struct group *group, void *to, const void *from, size_t bytes);
    bool (*get)(struct group *group, void *to, const void *from, size_t bytes);
    bool (*fill)(struct group *group, void *to, int byte, size_t bytes);

    // Right after a run, in order behind it: whether two arrays are the same.
    bool (*compare)(struct group *group, const void *is, const void *should, size_t bytes, bool *same);

    // Around a run that may only enqueue: nothing that is in the stream begins before `let_go`, which says
    // whether the run has waited for it. First then comes that `bytes` at `lost` are overwritten, so that a
    // result of work that does not wait for the stream is lost. NULL: runs do their work.
    bool (*hold)(struct group *group, void *lost, size_t bytes);
    bool (*let_go)(struct group *group, bool *has_waited);

    // Enqueues the epilogue of a call behind its sum, which lies where residual_out goes. NULL: whoever times
    // calls does it.
    bool (*epilogue)(struct group *group, const struct call *call);

    // What this rank has taken of its device's memory; 0 without one.
    size_t (*device_bytes)(const struct group *group);
};

// `bytes` that end, or begin, at memory that is not mapped, as far as the alignment allows. -1: there is no
// memory, and nothing is held.
int guarded_open(struct group *group, struct guarded *buffer, size_t bytes, size_t alignment, bool at_end);
void guarded_close(struct group *group, struct guarded *buffer);

// Whether nobody wrote into the gaps; and whether all of the buffer is `byte`. A buffer that was never opened
// is whole and holds anything.
bool guarded_is_whole(struct group *group, const struct guarded *buffer);
bool guarded_holds(struct group *group, const struct guarded *buffer, int byte);

#endif
