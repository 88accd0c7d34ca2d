// A stand-in for libnccl.so.2 for ranks that are processes. When their streams come to a call, ranks meet in
// shared memory. No process blocks there: a call is tried again until all ranks have come, or its
// communicator is aborted. Sums are rounded to their type after each addend, as in a ring. Calls on
// non-blocking communicators first return ncclInProgress. Settings in STAND_IN:
//
//   nccl_refuses             communicators cannot be made; NCCL's log has a warning
//   nccl_refuses_rank=1      that of this rank cannot be made
//   nccl_adds_wrong_rank=1   the addends of this rank are wrong
//   most_channels=N          the log reports at most N channels
#include <fcntl.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct CUstream_st;
void stand_in_try(struct CUstream_st *stream, int (*attempt)(void *), void *argument);
int stand_in_is_captured(int (*is)(void *argument, const void *of), const void *of);
void stand_in_pass(float ms);
int stand_in_number(const char *name, int n, int otherwise);
double stand_in_load(int bytes, int is_brain, const void *array, size_t index);
void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value);

enum { MOST_RANKS = 8, SLOT_ELEMENTS = 1 << 20, MOST_PEERS = 2 * MOST_RANKS };

// Memory that the processes of a communicator share: a file without a name.
struct meeting {
    uint64_t arrived; // arrivals of all ranks at all meetings so far
    float slots[MOST_RANKS][SLOT_ELEMENTS];
};

struct ncclComm {
    int rank, ranks, blocks, has_window;
    int polls;        // until a call is done
    uint64_t awaited; // arrivals, up to the current meeting
    ncclResult_t spoilt;
    struct meeting *meeting;
    char path[64]; // of the file
};

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, SEND, RECEIVE };

// One rank's part of a call, or one call of a group.
struct part {
    enum kind kind;
    ncclDataType_t type;
    struct ncclComm *comm;
    const void *from;
    void *to;
    size_t count;
    int peer; // or the root
};

enum step { GIVES, TAKES, LEAVES };

// A call or group in a stream; never freed, because a graph may use it again.
struct task {
    struct ncclComm *comm;
    struct part parts[MOST_PEERS];
    int count;
    enum step step;
    struct CUstream_st *stream;
};

static struct task *group;

// ---- ranks meet -------------------------------------------------------------------------------------------

static void arrive(struct ncclComm *comm) {
    comm->awaited += (uint64_t)comm->ranks;
    __atomic_fetch_add(&comm->meeting->arrived, 1, __ATOMIC_ACQ_REL);
}

static int all_have_arrived(const struct ncclComm *comm) {
    return __atomic_load_n(&comm->meeting->arrived, __ATOMIC_ACQUIRE) >= comm->awaited;
}

// The call is done after so many polls of a non-blocking communicator.
static ncclResult_t answer(struct ncclComm *comm, int polls) {
    comm->polls = comm->blocks ? 0 : polls;
    return comm->blocks ? ncclSuccess : ncclInProgress;
}

// ---- communicators ----------------------------------------------------------------------------------------

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "invalid usage";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    int file = memfd_create("stand-in-nccl", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(struct meeting)) != 0) return ncclSystemError;
    snprintf(id->internal, sizeof id->internal, "/proc/%d/fd/%d", (int)getpid(), file);
    return ncclSuccess;
}

// The process that made the file closes it, after all ranks have mapped it.
static void close_own(const char *path) {
    int pid, file;
    if (sscanf(path, "/proc/%d/fd/%d", &pid, &file) == 2 && pid == (int)getpid()) close(file);
}

// The lines of the real NCCL about its settings.
static void write_log(int rank) {
    const char *path = getenv("NCCL_DEBUG_FILE"), *threads = getenv("NCCL_NTHREADS");
    FILE *log = path != NULL && threads != NULL ? fopen(path, "a") : NULL;
    if (log == NULL) return;
    if (stand_in_number("nccl_refuses", 0, 0) != 0)
        fprintf(log, "h:1:1 [0] misc.cc:1 NCCL WARN no such thing\n");
    if (atoi(threads) % 32 != 0)
        fprintf(log, "h:1:1 [0] NCCL INFO Invalid NCCL_NTHREADS %s (must be a multiple of 32)\n", threads);
    int channels = atoi(getenv("NCCL_MIN_NCHANNELS")), most = stand_in_number("most_channels", 0, 64);
    fprintf(log, "h:1:1 [0] NCCL INFO NCCL_MIN_NCHANNELS set by environment to %d.\n", channels);
    const char *of_rccl = getenv("RCCL_THREADS_PER_BLOCK");
    if (of_rccl != NULL)
        fprintf(log, "h:1:1 [0] NCCL INFO RCCL_THREADS_PER_BLOCK set by environment to %d.\n", atoi(of_rccl));
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

static ncclResult_t open_communicator(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
                                      int blocks) {
    write_log(rank);
    if (stand_in_number("nccl_refuses", 0, 0) != 0 || stand_in_number("nccl_refuses_rank", 0, -1) == rank) {
        close_own(id->internal);
        return ncclInvalidUsage;
    }
    int file = open(id->internal, O_RDWR | O_CLOEXEC);
    if (file < 0 || ranks > MOST_RANKS) return ncclSystemError;
    struct ncclComm *made = calloc(1, sizeof *made);
    *made = (struct ncclComm){.rank = rank, .ranks = ranks, .blocks = blocks};
    snprintf(made->path, sizeof made->path, "%.63s", id->internal);
    made->meeting = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    *comm = made;
    arrive(made);
    if (!blocks) return answer(made, 1);
    while (!all_have_arrived(made)) usleep(100);
    close_own(made->path);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    return open_communicator(comm, ranks, &id, rank, 1);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    return open_communicator(comm, ranks, &id, rank, config->blocking != 0);
}

// The communicator exists when all ranks have arrived at its first meeting.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    int is_there = comm->awaited > (uint64_t)comm->ranks || all_have_arrived(comm);
    if (is_there && comm->awaited == (uint64_t)comm->ranks && comm->path[0] != '\0') {
        close_own(comm->path);
        comm->path[0] = '\0';
    }
    if (is_there && comm->polls > 0) comm->polls--;
    *result = comm->spoilt != ncclSuccess ? comm->spoilt : comm->polls > 0 ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
}

static int is_of(void *argument, const void *comm) {
    return ((struct task *)argument)->comm == comm;
}

// Like the real NCCL, waits until no graph contains a call of the communicator. Unfinished calls end.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    comm->spoilt = ncclInternalError;
    while (stand_in_is_captured(is_of, comm)) usleep(1000);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    return answer(comm, 2);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    while (stand_in_is_captured(is_of, comm)) usleep(1000);
    munmap(comm->meeting, sizeof(struct meeting));
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                    int flags) {
    (void)flags;
    if ((uintptr_t)memory % 4096 != 0 || bytes == 0) return ncclInvalidArgument;
    comm->has_window = 1;
    *window = (ncclWindow_t)memory;
    return answer(comm, 2);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    (void)window;
    comm->has_window = 0;
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

static void copy_to(float *slot, const struct part *part, size_t count) {
    for (size_t i = 0; i < count; i++) slot[i] = load(part, part->from, i);
}

static void take(const struct part *part, size_t at, const float *slot) {
    for (size_t i = 0; i < part->count; i++) store(part, at + i, slot[i]);
}

// Stores the data of this rank for the others in its slot.
static void give(const struct task *task) {
    const struct part *first = &task->parts[0];
    struct ncclComm *comm = task->comm;
    float *slot = comm->meeting->slots[comm->rank];
    if (first->kind < SEND) {
        copy_to(slot, first,
                first->kind == REDUCE_SCATTER ? first->count * (size_t)comm->ranks : first->count);
        if (stand_in_number("nccl_adds_wrong_rank", 0, -1) == comm->rank) slot[0] += 1;
        return;
    }
    size_t at = MOST_RANKS; // slot[i], i < MOST_RANKS: the index of the first number for rank i
    for (int i = 0; i < task->count; i++) {
        const struct part *part = &task->parts[i];
        if (part->kind != SEND) continue;
        slot[part->peer] = (float)at;
        copy_to(slot + at, part, part->count);
        at += part->count;
    }
}

static void add_up(const struct part *part) {
    const struct meeting *meeting = part->comm->meeting;
    size_t offset = part->kind == REDUCE_SCATTER ? (size_t)part->comm->rank * part->count : 0;
    for (size_t i = 0; i < part->count; i++) {
        store(part, i, meeting->slots[0][offset + i]);
        for (int of = 1; of < part->comm->ranks; of++)
            store(part, i, load(part, part->to, i) + meeting->slots[of][offset + i]);
    }
}

// Takes the result of this rank from the slots.
static void take_part(const struct part *part) {
    float(*slots)[SLOT_ELEMENTS] = part->comm->meeting->slots;
    switch (part->kind) {
    case ALL_GATHER:
        for (int of = 0; of < part->comm->ranks; of++) take(part, (size_t)of * part->count, slots[of]);
        break;
    case BROADCAST: take(part, 0, slots[part->peer]); break;
    case RECEIVE: take(part, 0, slots[part->peer] + (size_t)slots[part->peer][part->comm->rank]); break;
    case SEND: break;
    default: add_up(part); break;
    }
}

// Continues a call as far as possible without waiting for other ranks. Returns whether it has ended.
static int attempt(void *argument) {
    struct task *task = argument;
    struct ncclComm *comm = task->comm;
    if (task->step == GIVES && comm->spoilt == ncclSuccess) {
        stand_in_pass(0.01f);
        give(task);
        arrive(comm);
        task->step = TAKES;
    }
    if (task->step == TAKES && comm->spoilt == ncclSuccess) {
        if (!all_have_arrived(comm)) return 0;
        for (int i = 0; i < task->count; i++) take_part(&task->parts[i]);
        arrive(comm);
        task->step = LEAVES;
    }
    if (comm->spoilt == ncclSuccess && !all_have_arrived(comm)) return 0;
    task->step = GIVES;
    return 1;
}

static void log_kernel(const struct ncclComm *comm) {
    const char *path = getenv("NCCL_DEBUG_FILE");
    FILE *log = path != NULL && comm->rank == 0 && comm->has_window ? fopen(path, "a") : NULL;
    if (log == NULL) return;
    fprintf(log, "NCCL INFO AllReduce [Symmetric]: -> Kernel AllReduce_AGxLL_R nchannels 1\n");
    fclose(log);
}

static ncclResult_t enqueue(struct part part, struct CUstream_st *stream) {
    if (part.type != ncclFloat32 && part.type != ncclBfloat16 && part.type != ncclFloat16)
        return ncclInvalidArgument;
    if (part.count * (size_t)part.comm->ranks > SLOT_ELEMENTS / 2) return ncclInvalidArgument;
    if (group != NULL && group->count == MOST_PEERS) return ncclInvalidArgument;
    if (part.comm->polls > 0) return ncclInvalidUsage;
    struct task *task = group != NULL ? group : calloc(1, sizeof *task);
    task->parts[task->count++] = part;
    task->comm = part.comm;
    task->stream = stream;
    if (group != NULL) return ncclSuccess;
    stand_in_try(stream, attempt, task);
    return answer(part.comm, 2);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, struct CUstream_st *stream) {
    if (op != ncclSum) return ncclInvalidArgument;
    log_kernel(comm);
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

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, struct CUstream_st *stream) {
    return enqueue((struct part){BROADCAST, type, comm, from, to, count, root}, stream);
}

ncclResult_t ncclGroupStart(void) {
    group = calloc(1, sizeof *group);
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    struct task *task = group;
    group = NULL;
    if (task->count == 0) { // the group is empty
        free(task);
        return ncclSuccess;
    }
    stand_in_try(task->stream, attempt, task);
    return answer(task->comm, 2);
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
