// A stand-in for libnccl.so.2 beside that of the driver: adds up in the host's memory, in rank order and in
// fp32, when all ranks' streams have come to the call. It answers ncclInProgress first, as a communicator
// that does not block may. STAND_IN: nccl=VERSION nccl_without_windows nccl_falls_back nccl_never_answers.
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

struct CUstream_st;
void stand_in_meet(struct CUstream_st *stream, int ranks, void (*together)(void **, int), void *argument);

struct ncclComm {
    int rank, ranks, polls, has_window;
};

// One rank's part of an allreduce; kept, for a graph may come again.
struct part {
    struct ncclComm *comm;
    const void *from;
    void *to;
    size_t count;
    enum dtype dtype;
};

static const char *setting(const char *name) {
    const char *text = getenv("STAND_IN");
    const char *found = text ? strstr(text, name) : NULL;
    return found ? found + strlen(name) : NULL;
}

ncclResult_t ncclGetVersion(int *version) {
    const char *value = setting("nccl=");
    *version = value ? atoi(value) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "an error of the stand-in";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 7, sizeof *id);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    (void)id;
    if (config->blocking != 0) return ncclInvalidArgument;
    *comm = calloc(1, sizeof **comm);
    **comm = (struct ncclComm){.rank = rank, .ranks = ranks, .polls = 3};
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    if (comm->polls > 0 && setting("nccl_never_answers") == NULL) comm->polls--;
    *result = comm->polls > 0 ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    comm->polls = 2;
    return ncclInProgress;
}

ncclResult_t ncclGroupStart(void) {
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                    int flags) {
    if ((uintptr_t)memory % NCCL_WIN_REQUIRED_ALIGNMENT != 0 || bytes == 0) return ncclInvalidArgument;
    if (flags != NCCL_WIN_COLL_SYMMETRIC) return ncclInvalidArgument;
    comm->has_window = setting("nccl_without_windows") == NULL;
    *window = comm->has_window ? (ncclWindow_t)memory : NULL;
    comm->polls = 2;
    return ncclInProgress;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    (void)window;
    comm->has_window = 0;
    return ncclSuccess;
}

static void add_up(void **arguments, int count) {
    struct part **parts = (struct part **)arguments;
    for (size_t i = 0; i < parts[0]->count; i++) {
        float sum = 0;
        for (int rank = 0; rank < count; rank++) {
            for (int of = 0; of < count; of++) {
                if (parts[of]->comm->rank == rank)
                    sum += (float)element_value(parts[of]->dtype, parts[of]->from, i);
            }
        }
        for (int of = 0; of < count; of++) element_store(parts[of]->dtype, parts[of]->to, i, sum);
    }
}

static void log_kernel(const struct ncclComm *comm, size_t bytes) {
    const char *path = getenv("NCCL_DEBUG_FILE");
    FILE *log = path && comm->rank == 0 ? fopen(path, "a") : NULL;
    if (log == NULL) return;
    fprintf(log,
            comm->has_window && setting("nccl_falls_back") == NULL
                ? "NCCL INFO AllReduce [Symmetric]: %zu Bytes -> Kernel AllReduce_AGxLL_R nchannels 1\n"
                : "NCCL INFO AllReduce: %zu Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n",
            bytes);
    fclose(log);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, struct CUstream_st *stream) {
    struct part *part = malloc(sizeof *part);
    enum dtype dtype = type == ncclBfloat16  ? DTYPE_BFLOAT16
                       : type == ncclFloat16 ? DTYPE_FLOAT16
                                             : DTYPE_FLOAT32;
    if (op != ncclSum || comm->polls > 0) return ncclInvalidArgument;
    *part = (struct part){.comm = comm, .from = from, .to = to, .count = count, .dtype = dtype};
    log_kernel(comm, count * dtype_sizes_bytes[dtype]);
    stand_in_meet(stream, comm->ranks, add_up, part);
    comm->polls = 2;
    return ncclInProgress;
}
