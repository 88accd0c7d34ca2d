// Strategies by NCCL: its allreduce, then our epilogue, in one kernel or, as another strategy, in a kernel
// for each step. One candidate lets NCCL choose algorithm, protocol and channels; one uses symmetric memory;
// the others force each combination. The first one also does the other ops by NCCL's calls; an alltoall
// consists of grouped sends and receives.
//
// A communicator is made when a candidate is first called. If NCCL cannot do what the environment requests,
// it silently does something else; only its log shows whether a kernel for symmetric memory has run.
#include <stdio.h>
#include <stdlib.h>

#include "cell_buffers.h"
#include "communicator.h"
#include "libraries/nccl_library.h"

enum {
    SYMMETRIC_FROM = 22700,  // version
    MULTI_RANK_FROM = 23000, // several ranks on a GPU, where the environment allows it
    MOST_LOST = 2,           // communicators in a row that failed
};

// ---- ops ---------------------------------------------------------------------------------------------

static const ncclDataType_t nccl_types[DTYPES] = {
    [DTYPE_BFLOAT16] = ncclBfloat16,
    [DTYPE_FLOAT16] = ncclFloat16,
    [DTYPE_FLOAT32] = ncclFloat32,
};

static ncclResult_t allreduce(struct communicator *communicator, const struct call *call, ncclComm_t comm) {
    void *to = call->fusion == FUSION_NONE ? call->out : call->residual_out;
    return nccl.ncclAllReduce(call->input, to, call_elements(call), nccl_types[call->dtype], ncclSum, comm,
                              communicator->device->stream);
}

// The address `elements` after `from`.
static void *part_at(const void *from, size_t elements, enum dtype dtype) {
    return (void *)((uintptr_t)from + elements * dtype_sizes_bytes[dtype]);
}

// Whether NCCL accepts more calls in the group.
static bool accepts_more(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
}

// Each rank's part to each rank, in one group; empty parts are not sent, as in PyTorch.
static ncclResult_t exchange(struct communicator *communicator, const struct call *call, ncclComm_t comm) {
    const struct traffic *traffic = call->traffic;
    ncclDataType_t type = nccl_types[call->dtype];
    CUstream stream = communicator->device->stream;
    ncclResult_t first = nccl.ncclGroupStart();
    for (int peer = 0; peer < communicator->device->group->size; peer++) {
        ncclResult_t sent = ncclSuccess, received = ncclSuccess;
        if (traffic->sent[peer] > 0)
            sent = nccl.ncclSend(part_at(call->input, traffic->send_at[peer], call->dtype),
                                 traffic->sent[peer], type, peer, comm, stream);
        if (traffic->received[peer] > 0)
            received = nccl.ncclRecv(part_at(call->out, traffic->receive_at[peer], call->dtype),
                                     traffic->received[peer], type, peer, comm, stream);
        if (accepts_more(first)) first = sent;
        if (accepts_more(first)) first = received;
    }
    ncclResult_t ended = nccl.ncclGroupEnd();
    return accepts_more(first) ? ended : first;
}

static ncclResult_t move(struct communicator *communicator, const struct call *call, ncclComm_t comm) {
    const struct traffic *traffic = call->traffic;
    ncclDataType_t type = nccl_types[call->dtype];
    CUstream stream = communicator->device->stream;
    switch (call->op) {
    case OP_ALLREDUCE: return allreduce(communicator, call, comm);
    case OP_ALLGATHER:
        return nccl.ncclAllGather(call->input, call->out, traffic->send_elements, type, comm, stream);
    case OP_REDUCESCATTER:
        return nccl.ncclReduceScatter(call->input, call->out, traffic->receive_elements, type, ncclSum, comm,
                                      stream);
    case OP_BROADCAST:
        return nccl.ncclBroadcast(call->input, call->out, traffic->receive_elements, type, call->root, comm,
                                  stream);
    default: return exchange(communicator, call, comm);
    }
}

static bool enqueue_op(struct communicator *communicator, const struct call *call) {
    ncclComm_t comm = communicator_enter(communicator);
    ncclResult_t result = comm != NULL ? move(communicator, call, comm) : ncclInvalidUsage;
    communicator_leave(communicator);
    return communicator_settled(communicator, result, op_names[call->op]);
}

// Collective. The first call of a shape is neither timed nor captured: NCCL may open connections in it.
static bool call_first(struct communicator *communicator, const struct call *call) {
    struct device *device = communicator->device;
    if (!enqueue_op(communicator, call)) return false;
    if (device_finish(device)) return true;
    snprintf(communicator->problem, REASON_SIZE, "%s", group_failure(device->group));
    return false;
}

// Collective. Whether the log of rank 0, which logs for all, reports a symmetric kernel for this call: NCCL
// decides that for each shape.
static bool is_symmetric(struct communicator *communicator, long from) {
    uint64_t proven = communicator_log_has_symmetric(from);
    group_broadcast(communicator->device->group, 0, &proven, sizeof proven);
    return proven != 0;
}

// ---- the functions of a strategy ---------------------------------------------------------------------

static const char *nccl_supports(const struct group *group, const struct call *call) {
    return call->fusion != FUSION_NONE ? call_refusal(group->device, call) : NULL;
}

// Why there can be no communicator, or NULL.
static const char *why_not(const struct device *device, const struct nccl_detail *detail) {
    const char *refusal = nccl_refusal();
    if (refusal != NULL) return refusal;
    bool shared = device->options.loopback && device->group->size > 1;
    if (shared && nccl.version < MULTI_RANK_FROM) return "duplicate GPU: this NCCL needs one for each rank";
    if (shared && getenv("NCCL_MULTI_RANK_GPU_ENABLE") == NULL) {
        return "duplicate GPU: NCCL takes one for several ranks with NCCL_MULTI_RANK_GPU_ENABLE=1";
    }
    if (shared && device->joint != NULL) return "NCCL launches for each rank; use --streams";
    bool has_windows = nccl.version >= SYMMETRIC_FROM && nccl.ncclCommWindowRegister != NULL;
    if (detail->symmetric && !has_windows)
        return "NCCL has no symmetric windows; version 2.27 or later is required";
    return NULL;
}

static int nccl_setup(const struct candidate *candidate, struct group *group, void **state,
                      char reason[REASON_SIZE]) {
    struct device *device = device_of(group);
    struct communicator *communicator = NULL;
    const char *why = why_not(device, candidate->detail);
    if (why == NULL && (communicator = communicator_add(device, candidate->detail)) == NULL)
        why = "out of memory";
    if (why != NULL) snprintf(reason, REASON_SIZE, "%s", why);
    if (group_min(group, why == NULL) == 0) {
        if (why == NULL) snprintf(reason, REASON_SIZE, "another rank has no NCCL for it");
        if (communicator != NULL) communicator_drop(communicator);
        return -1;
    }
    *state = communicator;
    return 0;
}

// Collective. Makes the communicator, and, on symmetric memory, the window.
static void connect(struct communicator *communicator) {
    communicator->result = ncclSuccess;
    bool made = communicator_make(communicator);
    if (made && communicator->detail->symmetric &&
        communicator_all(communicator, communicator_register_window(communicator)) &&
        !communicator_all(communicator, nccl_has_log())) {
        snprintf(communicator->problem, REASON_SIZE,
                 "NCCL's log, which shows whether it fell back, goes elsewhere; unset NCCL_DEBUG");
        communicator->is_final = true;
    }
    if (communicator->problem[0] != '\0' && communicator->result != ncclSuccess &&
        !communicator_is_curable(communicator->result))
        communicator->is_final = true;
}

// Collective. After a failure. A communicator stays if it only rejected arguments and its state is good. Any
// other one is given up; the next cell gets a new one if that may succeed, MOST_LOST times in a row at most.
static void handle_failure(struct communicator *communicator) {
    struct group *group = communicator->device->group;
    bool is_fine = communicator->result == ncclSuccess || communicator_is_refusal(communicator->result);
    if (group_min(group,
                  is_fine && !communicator->is_final && communicator_state(communicator) == ncclSuccess) != 0)
        return;
    bool is_curable_here = is_fine || communicator_is_curable(communicator->result);
    communicator->is_final = group_min(group, is_curable_here && !communicator->is_final) == 0;
    communicator->lost++;
    communicator_give_up(communicator);
}

static int nccl_prepare(void *state, const struct call *call, char reason[REASON_SIZE]) {
    struct communicator *communicator = state;
    if (communicator->detail->epilogue == EPILOGUE_SEPARATE && call->fusion == FUSION_NONE) {
        snprintf(reason, REASON_SIZE, "there is no epilogue to separate");
        return -1;
    }
    bool may_connect = !communicator->is_final && communicator->lost < MOST_LOST;
    if (communicator->comm != NULL || may_connect) {
        communicator->problem[0] = '\0';
        if (communicator->comm == NULL) connect(communicator);
        long from = communicator_log_end();
        if (communicator->problem[0] == '\0') communicator_all(communicator, call_first(communicator, call));
        if (communicator->problem[0] == '\0') {
            communicator->lost = 0;
            if (!communicator->detail->symmetric || is_symmetric(communicator, from)) return 0;
            snprintf(reason, REASON_SIZE,
                     "unavailable: NCCL fell back: it took no kernel for symmetric memory");
            return -1;
        }
        handle_failure(communicator);
    }
    snprintf(reason, REASON_SIZE, "unavailable: %.140s", communicator->problem);
    return -1;
}

// ---- for plug-ins ----------------------------------------------------------------------------------------

struct communicator *nccl_open(struct device *device, const void **comm, char reason[]) {
    static const struct nccl_detail usual = {.algorithm = "", .protocol = ""};
    const struct candidate as_usual = {.detail = &usual};
    void *state;
    if (nccl_setup(&as_usual, device->group, &state, reason) != 0) return NULL;
    struct communicator *communicator = state;
    communicator->blocks = true;
    if (communicator_make(communicator)) {
        *comm = &communicator->comm;
        return communicator;
    }
    snprintf(reason, REASON_SIZE, "%s", communicator->problem);
    communicator_give_up(communicator);
    communicator_drop(communicator);
    return NULL;
}

void nccl_close(struct communicator *communicator) {
    communicator_close(communicator);
}

// ---- calls -------------------------------------------------------------------------------------------

static int nccl_run(void *state, const struct call *call) {
    struct communicator *communicator = state;
    struct device *device = communicator->device;
    bool done =
        enqueue_op(communicator, call) && epilogue_launch(device, communicator->detail->epilogue, call);
    if (!done) group_fail(device->group, communicator->problem[0] ? communicator->problem : device->problem);
    return done ? 0 : -1;
}

static void nccl_teardown(void *state) {
    communicator_close(state);
}

const struct strategy strategy_cuda_nccl = {
    .supports = nccl_supports,
    .setup = nccl_setup,
    .run = nccl_run,
    .teardown = nccl_teardown,
    .prepare = nccl_prepare,
};
