// Collectives by NCCL; see gpu_nccl.h.
#include "gpu_nccl.h"

#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libraries/functions.h"
#include "nccl_log.h"
#include "ranks/group_mpi.h"
#include "workload/engine.h"

#define NCCL_FUNCTIONS(X)                                                                                    \
    X(ncclGetVersion)                                                                                        \
    X(ncclGetErrorString)                                                                                    \
    X(ncclGetUniqueId)                                                                                       \
    X(ncclCommInitRank)                                                                                      \
    X(ncclCommDestroy)                                                                                       \
    X(ncclAllReduce)                                                                                         \
    X(ncclAllGather)                                                                                         \
    X(ncclReduceScatter)                                                                                     \
    X(ncclSend)                                                                                              \
    X(ncclRecv)                                                                                              \
    X(ncclGroupStart)                                                                                        \
    X(ncclGroupEnd)

static struct {
    NCCL_FUNCTIONS(FUNCTION_MEMBER)
    ncclComm_t comm;
    struct nccl_log log;
    int ranks;
    char problem[PROGRAM_REASON];
} nccl;

// ---- environment ----------------------------------------------------------------------------------------

static void set_count(const char *name, int count) {
    char text[16];
    snprintf(text, sizeof text, "%d", count);
    setenv(name, text, 1);
}

// ---- opening --------------------------------------------------------------------------------------------

int gpu_nccl_load(char reason[PROGRAM_REASON]) {
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    const char *missing =
        library != NULL ? functions_look_up(library, FUNCTION_NAMES(NCCL_FUNCTIONS), &nccl) : NULL;
    if (library == NULL) snprintf(reason, PROGRAM_REASON, "NCCL was not found (libnccl.so.2)");
    if (missing != NULL) snprintf(reason, PROGRAM_REASON, "NCCL is too old: it has no %s", missing);
    return library != NULL && missing == NULL ? 0 : -1;
}

// If NCCL fails on one rank, the others wait for it inside NCCL: see rank_fails.
static int make_communicator(struct group *group, char reason[PROGRAM_REASON]) {
    ncclUniqueId id = {{0}};
    int status = group->rank == 0 ? (int)nccl.ncclGetUniqueId(&id) : (int)ncclSuccess;
    MPI_Bcast(&status, 1, MPI_INT, 0, group_comm(group));
    MPI_Bcast(&id, sizeof id, MPI_CHAR, 0, group_comm(group));
    if (status == (int)ncclSuccess)
        status = (int)nccl.ncclCommInitRank(&nccl.comm, group->size, id, group->rank);
    if (status == (int)ncclSuccess) return 0;
    char why[PROGRAM_REASON];
    nccl_log_end(&nccl.log, stderr);
    snprintf(why, sizeof why, "NCCL makes no communicator: %s%s%s",
             nccl.ncclGetErrorString((ncclResult_t)status), nccl.log.answer[0] != '\0' ? "; " : "",
             nccl.log.answer);
    return rank_fails(group, why, reason);
}

int gpu_nccl_open(struct group *group, int *channels, int *threads, char library[], size_t library_size,
                  char reason[PROGRAM_REASON]) {
    int version = 0;
    set_count("NCCL_MIN_NCHANNELS", *channels);
    set_count("NCCL_MAX_NCHANNELS", *channels);
    set_count("NCCL_NTHREADS", *threads);
    set_count("RCCL_THREADS_PER_BLOCK", *threads);
    nccl_log_enable(&nccl.log);
    nccl.ranks = group->size;
    bool well = group_mpi_all(group, gpu_nccl_load(reason) == 0) && make_communicator(group, reason) == 0;
    if (!well) {
        nccl_log_end(&nccl.log, stderr);
        return -1;
    }
    nccl_log_read(&nccl.log, stderr);
    nccl_log_unlink(&nccl.log);
    *channels = nccl.log.channels;
    *threads = nccl.log.threads;
    MPI_Bcast(threads, 1, MPI_INT, 0, group_comm(group)); // only rank 0 logs it
    nccl.ncclGetVersion(&version);
    snprintf(library, library_size, "NCCL %d", version);
    return 0;
}

void gpu_nccl_close(void) {
    if (nccl.comm != NULL) nccl.ncclCommDestroy(nccl.comm);
    nccl.comm = NULL;
    nccl_log_end(&nccl.log, stderr);
}

const char *gpu_nccl_warning(void) {
    return nccl.log.answer;
}

// ---- collectives ----------------------------------------------------------------------------------------

static const ncclDataType_t types[DTYPES] = {
    [DTYPE_FLOAT32] = ncclFloat32, [DTYPE_BFLOAT16] = ncclBfloat16, [DTYPE_FLOAT16] = ncclFloat16};

static ncclResult_t exchange(const struct collective *collective, CUdeviceptr in, CUdeviceptr out,
                             cudaStream_t stream) {
    enum dtype dtype = collective->dtype;
    ncclResult_t result = nccl.ncclGroupStart();
    for (int peer = 0; peer < nccl.ranks && result == ncclSuccess; peer++) {
        size_t sent = collective->send[peer], received = collective->receive[peer];
        if (sent > 0) result = nccl.ncclSend((void *)in, sent, types[dtype], peer, nccl.comm, stream);
        if (received > 0 && result == ncclSuccess)
            result = nccl.ncclRecv((void *)out, received, types[dtype], peer, nccl.comm, stream);
        in += sent * dtype_sizes_bytes[dtype];
        out += received * dtype_sizes_bytes[dtype];
    }
    ncclResult_t ended = nccl.ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

int gpu_nccl_enqueue(const struct collective *collective, CUdeviceptr from, CUdeviceptr to, CUstream on) {
    const void *in = (const void *)from; // NOLINT: addresses of the GPU's
    void *out = (void *)to;              // NOLINT
    cudaStream_t stream = (cudaStream_t)on;
    ncclResult_t result = ncclSuccess;
    ncclDataType_t type = types[collective->dtype];
    size_t count = collective->elements;
    switch (collective->kind) {
    case ALLREDUCE: result = nccl.ncclAllReduce(in, out, count, type, ncclSum, nccl.comm, stream); break;
    case ALL_GATHER: result = nccl.ncclAllGather(in, out, count, type, nccl.comm, stream); break;
    case REDUCE_SCATTER:
        result = nccl.ncclReduceScatter(in, out, count, type, ncclSum, nccl.comm, stream);
        break;
    case ALL_TO_ALL: result = exchange(collective, from, to, stream); break;
    case COLLECTIVE_KINDS: break;
    }
    if (result == ncclSuccess) return 0;
    nccl_log_read(&nccl.log, stderr);
    snprintf(nccl.problem, sizeof nccl.problem, "NCCL, %s: %s", collective->name,
             nccl.ncclGetErrorString(result));
    return -1;
}

const char *gpu_nccl_problem(void) {
    return nccl.problem;
}
