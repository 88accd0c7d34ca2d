// Collectives by NCCL; see gpu_nccl.h.
#include "workload/gpu_nccl.h"

#include <dlfcn.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/group_mpi.h"
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
#define MEMBER(name) __typeof__(&(name)) name;
    NCCL_FUNCTIONS(MEMBER)
#undef MEMBER
    ncclComm_t comm;
    int ranks;
    char problem[PROGRAM_REASON];
} nccl;

// ---- environment and log --------------------------------------------------------------------------------

static void set_count(const char *name, int count) {
    char text[16];
    snprintf(text, sizeof text, "%d", count);
    setenv(name, text, 1);
}

// A log of our own, unless somebody else has asked for one: "" then.
static void ask_for_log(char path[], size_t size) {
    const char *folder = getenv("TMPDIR");
    path[0] = '\0';
    if (getenv("NCCL_DEBUG") != NULL || getenv("NCCL_DEBUG_FILE") != NULL) return;
    snprintf(path, size, "%s/gentables-nccl-XXXXXX", folder != NULL ? folder : "/tmp");
    int file = mkstemp(path);
    if (file < 0) {
        path[0] = '\0';
        return;
    }
    close(file);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,ENV,TUNING", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
}

// The number before these words: "24 coll channels".
static int number_before(const char *line, const char *words) {
    const char *at = strstr(line, words);
    while (at != NULL && at > line && at[-1] == ' ') at--;
    while (at != NULL && at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    return at != NULL ? atoi(at) : 0;
}

// Of "Max NThreads | a | b ..." the sixth: those of a ring with the protocol Simple, which NCCL_NTHREADS
// sets.
static int threads_in(const char *line) {
    enum { RING_SIMPLE = 6 };
    const char *at = strstr(line, "Max NThreads");
    for (int i = 0; at != NULL && i < RING_SIMPLE; i++) {
        at = strchr(at, '|');
        if (at != NULL) at++;
    }
    return at != NULL ? atoi(at) : 0;
}

static void read_log(const char *path, int *channels, int *threads) {
    char line[1024];
    FILE *log = path[0] != '\0' ? fopen(path, "r") : NULL;
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        int found = number_before(line, " coll channels");
        if (found > 0) *channels = found;
        found = threads_in(line);
        if (found > 0 && *threads == 0) *threads = found;
    }
    if (log != NULL) fclose(log);
}

// What NCCL warned of, for whoever wonders why it failed.
static void last_warning(const char *path, char words[], size_t size) {
    char line[512];
    FILE *log = path[0] != '\0' ? fopen(path, "r") : NULL;
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        const char *at = strstr(line, "WARN ");
        line[strcspn(line, "\r\n")] = '\0';
        if (at != NULL) snprintf(words, size, "; %s", at + 5);
    }
    if (log != NULL) fclose(log);
}

// ---- opening --------------------------------------------------------------------------------------------

static const char *look_up_functions(void *library) {
#define LOOK_UP(name)                                                                                        \
    *(void **)&nccl.name = dlsym(library, #name);                                                            \
    if (nccl.name == NULL) return #name;
    NCCL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return NULL;
}

static int load(char reason[PROGRAM_REASON]) {
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    const char *missing = library != NULL ? look_up_functions(library) : NULL;
    if (library == NULL) snprintf(reason, PROGRAM_REASON, "NCCL is not here (libnccl.so.2)");
    if (missing != NULL) snprintf(reason, PROGRAM_REASON, "NCCL is too old: it has no %s", missing);
    return library != NULL && missing == NULL ? 0 : -1;
}

// All ranks have what they need, or none goes on.
static bool all_well(const struct group *group, int status) {
    int all;
    MPI_Allreduce(&status, &all, 1, MPI_INT, MPI_MIN, group_comm(group));
    return all == 0;
}

// Ranks whose NCCL has begun wait for one whose does not: see rank_fails.
static int make_communicator(struct group *group, const char *log, char reason[PROGRAM_REASON]) {
    ncclUniqueId id = {{0}};
    int status = group->rank == 0 ? (int)nccl.ncclGetUniqueId(&id) : (int)ncclSuccess;
    MPI_Bcast(&status, 1, MPI_INT, 0, group_comm(group));
    MPI_Bcast(&id, sizeof id, MPI_CHAR, 0, group_comm(group));
    if (status == (int)ncclSuccess)
        status = (int)nccl.ncclCommInitRank(&nccl.comm, group->size, id, group->rank);
    if (status == (int)ncclSuccess) return 0;
    char warning[100] = "", why[PROGRAM_REASON];
    last_warning(log, warning, sizeof warning);
    snprintf(why, sizeof why, "NCCL makes no communicator: %s%s",
             nccl.ncclGetErrorString((ncclResult_t)status), warning);
    return rank_fails(group, why, reason);
}

int gpu_nccl_open(struct group *group, int *channels, int *threads, char library[], size_t library_size,
                  char reason[PROGRAM_REASON]) {
    char log[128];
    int version = 0;
    set_count("NCCL_MIN_NCHANNELS", *channels);
    set_count("NCCL_MAX_NCHANNELS", *channels);
    set_count("NCCL_NTHREADS", *threads);
    set_count("RCCL_THREADS_PER_BLOCK", *threads);
    ask_for_log(log, sizeof log);
    nccl.ranks = group->size;
    bool well = all_well(group, load(reason)) && make_communicator(group, log, reason) == 0;
    *channels = *threads = 0;
    read_log(log, channels, threads);
    if (log[0] != '\0') unlink(log);
    if (!well) return -1;
    MPI_Bcast(threads, 1, MPI_INT, 0, group_comm(group)); // which rank 0 alone logs
    nccl.ncclGetVersion(&version);
    snprintf(library, library_size, "NCCL %d", version);
    return 0;
}

void gpu_nccl_close(void) {
    if (nccl.comm != NULL) nccl.ncclCommDestroy(nccl.comm);
    nccl.comm = NULL;
}

// ---- collectives ----------------------------------------------------------------------------------------

static const ncclDataType_t types[DTYPES] = {
    [DTYPE_FLOAT32] = ncclFloat32, [DTYPE_BFLOAT16] = ncclBfloat16, [DTYPE_FLOAT16] = ncclFloat16};

static ncclResult_t exchange(const struct collective *collective, enum dtype dtype, CUdeviceptr in,
                             CUdeviceptr out, cudaStream_t stream) {
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

int gpu_nccl_enqueue(const struct collective *collective, enum dtype dtype, CUdeviceptr from, CUdeviceptr to,
                     CUstream on) {
    const void *in = (const void *)from; // NOLINT: addresses of the GPU's
    void *out = (void *)to;              // NOLINT
    cudaStream_t stream = (cudaStream_t)on;
    ncclResult_t result = ncclSuccess;
    ncclDataType_t type = types[dtype];
    size_t count = collective->elements;
    switch (collective->kind) {
    case ALLREDUCE: result = nccl.ncclAllReduce(in, out, count, type, ncclSum, nccl.comm, stream); break;
    case ALL_GATHER: result = nccl.ncclAllGather(in, out, count, type, nccl.comm, stream); break;
    case REDUCE_SCATTER:
        result = nccl.ncclReduceScatter(in, out, count, type, ncclSum, nccl.comm, stream);
        break;
    case ALL_TO_ALL: result = exchange(collective, dtype, from, to, stream); break;
    case COLLECTIVE_KINDS: break;
    }
    if (result == ncclSuccess) return 0;
    snprintf(nccl.problem, sizeof nccl.problem, "NCCL, %s: %s", collective->name,
             nccl.ncclGetErrorString(result));
    return -1;
}

const char *gpu_nccl_problem(void) {
    return nccl.problem;
}
