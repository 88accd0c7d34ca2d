// NCCL's library, which is loaded at run time, and communicators that do not block: a call may be in progress
// when it returns. Its result is known when the communicator's state is no longer "in progress"; if that does
// not happen before the deadline, the call has failed.
#ifndef BENCH_CUDA_COMMUNICATOR_H
#define BENCH_CUDA_COMMUNICATOR_H

#include <nccl.h>
#include <pthread.h>

#include "candidate.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 0) // its header has no windows; a library may
typedef struct ncclWindow *ncclWindow_t;
#define NCCL_WIN_COLL_SYMMETRIC 1
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                    int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
#endif

#define NCCL_FUNCTIONS(FUNCTION)                                                                             \
    FUNCTION(ncclGetVersion)                                                                                 \
    FUNCTION(ncclGetErrorString)                                                                             \
    FUNCTION(ncclGetUniqueId)                                                                                \
    FUNCTION(ncclCommInitRankConfig)                                                                         \
    FUNCTION(ncclCommGetAsyncError)                                                                          \
    FUNCTION(ncclCommAbort)                                                                                  \
    FUNCTION(ncclCommFinalize)                                                                               \
    FUNCTION(ncclCommDestroy)                                                                                \
    FUNCTION(ncclAllReduce)                                                                                  \
    FUNCTION(ncclAllGather)                                                                                  \
    FUNCTION(ncclReduceScatter)                                                                              \
    FUNCTION(ncclBroadcast)                                                                                  \
    FUNCTION(ncclSend)                                                                                       \
    FUNCTION(ncclRecv)                                                                                       \
    FUNCTION(ncclGroupStart)                                                                                 \
    FUNCTION(ncclGroupEnd)

// NULL in libraries before 2.27.
#define NCCL_WINDOW_FUNCTIONS(FUNCTION)                                                                      \
    FUNCTION(ncclCommWindowRegister)                                                                         \
    FUNCTION(ncclCommWindowDeregister)

extern struct nccl_library {
#define FUNCTION(name) __typeof__(&(name)) name;
    NCCL_FUNCTIONS(FUNCTION)
    NCCL_WINDOW_FUNCTIONS(FUNCTION)
#undef FUNCTION
    int version;
    char log_path[64]; // where NCCL logs its choices; "": the user's environment requests another log
} nccl;

// Loads NCCL. NULL, or why it cannot be used.
const char *nccl_refusal(void);

struct communicator {
    const struct nccl_detail *detail;
    struct device *device;
    pthread_mutex_t lock; // held in calls of a communicator that does not block, and to abort it
    ncclComm_t comm;
    ncclWindow_t window;
    ncclResult_t result; // of the last failure
    int lost;            // communicators lost in a row
    bool is_final;       // another communicator would fail as well
    bool blocks;
    bool is_first; // the rank's first one, which is being made
    char problem[REASON_SIZE];
    struct communicator *next;
};

// Adds one without an ncclComm_t. NULL: out of memory.
struct communicator *communicator_add(struct device *device, const struct nccl_detail *detail);
void communicator_drop(struct communicator *communicator);

// Collective. Whether all ranks have made it; else `problem`. The first one of a rank has longer than later
// calls.
bool communicator_make(struct communicator *communicator);

// Collective. Registers the data of all calls, which have the same offsets on all ranks. False: `problem`.
bool communicator_register_window(struct communicator *communicator);

// Aborts its ncclComm_t, after the graphs that have captured calls of it are destroyed.
void communicator_give_up(struct communicator *communicator);

// Ends its ncclComm_t, or aborts it, if that fails; then drops it.
void communicator_close(struct communicator *communicator);

// Surround a call of it. NULL: it was given up.
ncclComm_t communicator_enter(struct communicator *communicator);
void communicator_leave(struct communicator *communicator);

// The state of its ncclComm_t. An error stays.
ncclResult_t communicator_state(struct communicator *communicator);

// Waits for the result of a call of it, until the deadline. False: `result` and `problem`.
bool communicator_settled(struct communicator *communicator, ncclResult_t result, const char *what);

// Whether NCCL rejected the arguments of a call and did nothing.
bool communicator_is_refusal(ncclResult_t result);

// Whether another communicator may succeed: after a deadline, or a failure of CUDA, the system or another
// rank.
bool communicator_is_curable(ncclResult_t result);

// Collective. Whether all ranks are right; if only others are not, `problem` reports that.
bool communicator_all(struct communicator *communicator, bool right);

// NCCL's log: whether it is this process's, the offset of its end, and whether a line after that offset
// reports a kernel for symmetric memory.
bool nccl_has_log(void);
long communicator_log_end(void);
bool communicator_log_has_symmetric(long from);

#endif
