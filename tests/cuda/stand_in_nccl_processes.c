// A stand-in for libnccl.so.2 whose ranks are processes: they meet in shared memory, when their streams come
// to a call. Sums are rounded to their type after every rank's addend, as on the way round a ring. STAND_IN:
// nccl_refuses (its communicator, with a warning in the log) nccl_refuses_rank=1 (that of one rank).
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct CUstream_st;
void stand_in_meet(struct CUstream_st *stream, int ranks, void (*together)(void **, int), void *argument);
void stand_in_pass(float ms);
int stand_in_number(const char *name, int n, int otherwise);
double stand_in_load(int bytes, int is_brain, const void *array, size_t index);
void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value);

enum { MOST_RANKS = 8, SLOT_ELEMENTS = 1 << 20, MOST_PEERS = 2 * MOST_RANKS };

struct meeting {
    pthread_barrier_t barrier;
    int is_ready;
    float slots[MOST_RANKS][SLOT_ELEMENTS];
};

struct ncclComm {
    int rank, ranks;
    struct meeting *meeting;
};

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };

// One rank's part of a call; of a group, each of its parts.
struct part {
    enum kind kind;
    ncclDataType_t type;
    struct ncclComm *comm;
    const void *from;
    void *to;
    size_t count;
    int peer;
};

struct task {
    struct part parts[MOST_PEERS];
    int count;
    struct CUstream_st *stream;
};

static struct task *group;

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "invalid usage";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    snprintf(id->internal, sizeof id->internal, "/gentables-stand-in-%d", (int)getpid());
    shm_unlink(id->internal); // of one that was killed, and had this process's number
    int file = shm_open(id->internal, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct meeting)) != 0) return ncclSystemError;
    close(file);
    return ncclSuccess;
}

// What a real one says of itself.
static void write_log(int rank) {
    const char *path = getenv("NCCL_DEBUG_FILE"), *threads = getenv("NCCL_NTHREADS");
    FILE *log = path != NULL ? fopen(path, "a") : NULL;
    if (log == NULL) return;
    if (stand_in_number("nccl_refuses", 0, 0) != 0)
        fprintf(log, "h:1:1 [0] misc.cc:1 NCCL WARN no such thing\n");
    if (atoi(threads) % 32 != 0)
        fprintf(log, "h:1:1 [0] NCCL INFO Invalid NCCL_NTHREADS %s (must be a multiple of 32)\n", threads);
    int channels = atoi(getenv("NCCL_MIN_NCHANNELS")), most = stand_in_number("most_channels", 0, 64);
    fprintf(log, "h:1:1 [0] NCCL INFO NCCL_MIN_NCHANNELS set by environment to %d.\n", channels);
    if (rank == 0) {
        fprintf(log,
                "h:1:1 [0] NCCL INFO  Max NThreads |            512 |            640 |            512 |");
        fprintf(log, "            256 |            640 |            %s |\n", threads);
    }
    fprintf(log,
            "h:1:1 [0] NCCL INFO %d coll channels, 0 collnet channels, 0 nvls channels, 32 p2p channels\n",
            channels < most ? channels : most);
    fclose(log);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    write_log(rank);
    if (stand_in_number("nccl_refuses", 0, 0) != 0 || stand_in_number("nccl_refuses_rank", 0, -1) == rank) {
        if (rank == 0) shm_unlink(id.internal);
        return ncclInvalidUsage;
    }
    int file = shm_open(id.internal, O_RDWR, 0600);
    *comm = calloc(1, sizeof **comm);
    **comm = (struct ncclComm){rank, ranks, NULL};
    (*comm)->meeting = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (rank == 0) {
        pthread_barrierattr_t shared;
        pthread_barrierattr_init(&shared);
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&(*comm)->meeting->barrier, &shared, (unsigned)ranks);
        __atomic_store_n(&(*comm)->meeting->is_ready, 1, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&(*comm)->meeting->is_ready, __ATOMIC_ACQUIRE) == 0) usleep(100);
    pthread_barrier_wait(&(*comm)->meeting->barrier);
    if (rank == 0) shm_unlink(id.internal);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    munmap(comm->meeting, sizeof(struct meeting));
    free(comm);
    return ncclSuccess;
}

// ---- calls ----------------------------------------------------------------------------------------------

static float load(const struct part *part, const void *array, size_t index) {
    int bytes = part->type == ncclFloat32 ? 4 : 2;
    return (float)stand_in_load(bytes, part->type == ncclBfloat16, array, index);
}

static void store(const struct part *part, size_t index, float value) {
    int bytes = part->type == ncclFloat32 ? 4 : 2;
    stand_in_store(bytes, part->type == ncclBfloat16, part->to, index, (double)value);
}

static void give(const struct part *part, size_t count, float *slot) {
    for (size_t i = 0; i < count; i++) slot[i] = load(part, part->from, i);
}

static void take(const struct part *part, size_t at, const float *slot) {
    for (size_t i = 0; i < part->count; i++) store(part, at + i, slot[i]);
}

// What a rank gets of what all have given.
static void run_part(const struct part *part) {
    struct meeting *meeting = part->comm->meeting;
    int ranks = part->comm->ranks;
    size_t offset = part->kind == REDUCE_SCATTER ? (size_t)part->comm->rank * part->count : 0;
    for (int of = 0; part->kind == ALL_GATHER && of < ranks; of++)
        take(part, (size_t)of * part->count, meeting->slots[of]);
    for (size_t i = 0; part->kind != ALL_GATHER && i < part->count; i++) {
        store(part, i, meeting->slots[0][offset + i]);
        for (int of = 1; of < ranks; of++)
            store(part, i, load(part, part->to, i) + meeting->slots[of][offset + i]);
    }
}

// Each rank's slot begins with where the numbers for each receiver begin.
static void exchange(struct task *task) {
    struct ncclComm *comm = task->parts[0].comm;
    float *slot = comm->meeting->slots[comm->rank];
    size_t at = MOST_RANKS;
    for (int i = 0; i < task->count; i++) {
        const struct part *part = &task->parts[i];
        if (part->kind != SEND) continue;
        slot[part->peer] = (float)at;
        give(part, part->count, slot + at);
        at += part->count;
    }
    pthread_barrier_wait(&comm->meeting->barrier);
    for (int i = 0; i < task->count; i++) {
        const struct part *part = &task->parts[i];
        const float *theirs = comm->meeting->slots[part->peer];
        if (part->kind == RECEIVE) take(part, 0, theirs + (size_t)theirs[comm->rank]);
    }
    pthread_barrier_wait(&comm->meeting->barrier);
}

static void run(void **arguments, int count) {
    (void)count;
    struct task *task = arguments[0];
    const struct part *part = &task->parts[0];
    struct ncclComm *comm = part->comm;
    stand_in_pass(0.01f);
    if (part->kind >= SEND) {
        exchange(task);
    } else {
        size_t sent = part->kind == REDUCE_SCATTER ? part->count * (size_t)comm->ranks : part->count;
        give(part, sent, comm->meeting->slots[comm->rank]);
        pthread_barrier_wait(&comm->meeting->barrier);
        run_part(part);
        pthread_barrier_wait(&comm->meeting->barrier);
    }
    free(task);
}

static ncclResult_t enqueue(struct part part, struct CUstream_st *stream) {
    struct task *task = group != NULL ? group : calloc(1, sizeof *task);
    if (part.type != ncclFloat32 && part.type != ncclBfloat16 && part.type != ncclFloat16)
        return ncclInvalidArgument;
    if (part.count * (size_t)part.comm->ranks > SLOT_ELEMENTS / 2 || task->count == MOST_PEERS)
        return ncclInvalidArgument;
    task->parts[task->count++] = part;
    task->stream = stream;
    if (group == NULL) stand_in_meet(stream, 1, run, task);
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, struct CUstream_st *stream) {
    if (op != ncclSum) return ncclInvalidArgument;
    return enqueue((struct part){ALL_REDUCE, type, comm, from, to, count, 0}, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           struct CUstream_st *stream) {
    return enqueue((struct part){ALL_GATHER, type, comm, from, to, count, 0}, stream);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, struct CUstream_st *stream) {
    if (op != ncclSum) return ncclInvalidArgument;
    return enqueue((struct part){REDUCE_SCATTER, type, comm, from, to, count, 0}, stream);
}

ncclResult_t ncclGroupStart(void) {
    group = calloc(1, sizeof *group);
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    struct task *task = group;
    group = NULL;
    if (task->count > 0)
        stand_in_meet(task->stream, 1, run, task);
    else
        free(task);
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      struct CUstream_st *stream) {
    if (group == NULL) return ncclInvalidArgument;
    return enqueue((struct part){SEND, type, comm, from, NULL, count, peer}, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      struct CUstream_st *stream) {
    if (group == NULL) return ncclInvalidArgument;
    return enqueue((struct part){RECEIVE, type, comm, NULL, to, count, peer}, stream);
}
