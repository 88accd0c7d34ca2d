// A stand-in for libnccl.so.2 beside that of the driver. Ranks give their data to the others in shared memory
// when their streams come to a call: if they are threads of one process, together, when all have come; other
// processes then get no communicator. Compiled with RANKS_ARE_PROCESSES, no process blocks there: a call is
// tried again until all ranks have come, or its communicator is aborted; and sums are rounded to their type
// after each addend, as in a ring. Calls on non-blocking communicators first return ncclInProgress. Settings
// in STAND_IN:
//
//   nccl=VERSION             its version
//   nccl_without_windows     symmetric memory is not supported
//   nccl_falls_back          symmetric memory is registered, but not used
//   nccl_never_answers       all communicators stay in progress
//   nccl_lost=N              the first N communicators do, of any rank
//   nccl_first_s=S           each rank's first communicator is made so many seconds after the request
//   nccl_fails=BYTES,CODE,...   the first allreduce of BYTES on each rank fails: at once with a code for
//                            wrong use; else its communicator has the error from then on
//   nccl_breaks=N            allreduces of N elements fail
//   nccl_breaks_behind=M,N   allreduces of N elements fail right after one of M
//   nccl_says                prints when communicators are made, aborted and destroyed
//   nccl_refuses             communicators cannot be made; NCCL's log has a warning
//   nccl_refuses_rank=1      that of this rank cannot be made
//   nccl_refuses_end         communicators cannot be finalized
//   nccl_adds_wrong_rank=1   the addends of this rank are wrong
//   most_channels=N          the log reports at most N channels
#include <fcntl.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "elements/element.h"

struct CUstream_st;
void stand_in_meet(struct CUstream_st *stream, int ranks, void (*together)(void **, int), void *argument);
void stand_in_try(struct CUstream_st *stream, int (*attempt)(void *), void *argument);
int stand_in_is_captured(int (*is)(void *argument, const void *of), const void *of);
void stand_in_pass(float ms);
int stand_in_number(const char *name, int n, int otherwise);

#ifdef RANKS_ARE_PROCESSES
enum { ARE_PROCESSES = 1 };
#else
enum { ARE_PROCESSES = 0 };
#endif

enum { MOST_RANKS = 8, SLOT_ELEMENTS = 1 << 20, MOST_PEERS = 2 * MOST_RANKS };

// Memory that the ranks of a communicator share: a file without a name.
struct meeting {
    uint64_t arrived; // arrivals of all ranks at all meetings so far
    float slots[MOST_RANKS][SLOT_ELEMENTS];
};

struct ncclComm {
    struct ncclComm *next_aborted;
    int rank, ranks, blocks, has_window, is_lost;
    int polls;        // until a call is done
    uint64_t awaited; // arrivals, up to the current meeting
    time_t ready_s;   // when it is made, on the monotonic clock
    ncclResult_t spoilt;
    size_t last_count; // of an allreduce
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

static _Thread_local struct task *group;

static int has(const char *setting) {
    return stand_in_number(setting, 0, 0) != 0;
}

static time_t now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void say(const char *what) {
    if (has("nccl_says")) fprintf(stderr, "stand-in: a communicator is %s\n", what);
}

// The log of NCCL; NULL: it has none.
static FILE *open_log(void) {
    const char *path = getenv("NCCL_DEBUG_FILE");
    return path != NULL ? fopen(path, "a") : NULL;
}

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
    *version = stand_in_number("nccl", 0, NCCL_VERSION_CODE);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    static _Thread_local char words[32];
    snprintf(words, sizeof words, "the stand-in's error %d", (int)result);
    return words;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    int file = memfd_create("stand-in-nccl", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(struct meeting)) != 0) return ncclSystemError;
    snprintf(id->internal, sizeof id->internal, "/proc/%d/fd/%d", (int)getpid(), file);
    return ncclSuccess;
}

// Whether this process made the file, as *file.
static int is_own(const char *path, int *file) {
    int pid;
    return sscanf(path, "/proc/%d/fd/%d", &pid, file) == 2 && pid == (int)getpid();
}

// Rank 0 made the file, and closes it after all ranks have mapped it.
static void close_own(struct ncclComm *comm) {
    int file;
    if (comm->rank == 0 && is_own(comm->path, &file)) close(file);
    comm->path[0] = '\0';
}

// The lines of the real NCCL about its settings.
static void write_log(int rank) {
    const char *threads = getenv("NCCL_NTHREADS");
    FILE *log = threads != NULL ? open_log() : NULL;
    if (log == NULL) return;
    if (has("nccl_refuses")) fprintf(log, "h:1:1 [0] misc.cc:1 NCCL WARN no such thing\n");
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
    static int made_before;
    static _Thread_local int has_first;
    int own;
    struct ncclComm *made = calloc(1, sizeof *made);
    *made = (struct ncclComm){.rank = rank, .ranks = ranks, .blocks = blocks};
    snprintf(made->path, sizeof made->path, "%.63s", id->internal);
    write_log(rank);
    int is_refused = has("nccl_refuses") || stand_in_number("nccl_refuses_rank", 0, -1) == rank;
    if (is_refused || (!ARE_PROCESSES && !is_own(made->path, &own))) {
        close_own(made);
        free(made);
        return ncclInvalidUsage;
    }
    int file = open(made->path, O_RDWR | O_CLOEXEC);
    if (file < 0 || ranks > MOST_RANKS) return ncclSystemError;
    made->meeting = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (!has_first++) made->ready_s = now_s() + stand_in_number("nccl_first_s", 0, 0);
    made->is_lost =
        __atomic_fetch_add(&made_before, 1, __ATOMIC_RELAXED) < stand_in_number("nccl_lost", 0, 0);
    say("made");
    *comm = made;
    arrive(made);
    if (!blocks) return answer(made, 1);
    while (!all_have_arrived(made)) usleep(100);
    close_own(made);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    return open_communicator(comm, ranks, &id, rank, 1);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    return open_communicator(comm, ranks, &id, rank, config->blocking != 0);
}

// A communicator of processes exists when all ranks have arrived at its first meeting.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    int is_there = comm->awaited > (uint64_t)comm->ranks || all_have_arrived(comm);
    int answers = now_s() >= comm->ready_s && !comm->is_lost && !has("nccl_never_answers");
    if (is_there) close_own(comm);
    if ((is_there || !ARE_PROCESSES) && answers && comm->polls > 0) comm->polls--;
    *result = comm->spoilt != ncclSuccess ? comm->spoilt : comm->polls > 0 ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
}

static int is_of(void *argument, const void *comm) {
    return *(struct ncclComm **)argument == comm; // struct task begins with it
}

// Like the real NCCL, waits until no graph contains a call of the communicator.
static void end(struct ncclComm *comm, const char *how) {
    say(how);
    for (int times = 0; stand_in_is_captured(is_of, comm); times++) {
        if (times == 0) fprintf(stderr, "stand-in: a graph holds a communicator that is %s\n", how);
        usleep(1000);
    }
    close_own(comm);
}

// Unfinished calls end. The memory of the communicator stays, because streams may still contain its calls.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    static struct ncclComm *aborted;
    comm->spoilt = ncclInternalError;
    end(comm, "aborted");
    comm->next_aborted = __atomic_exchange_n(&aborted, comm, __ATOMIC_ACQ_REL);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    return has("nccl_refuses_end") ? ncclInvalidUsage : answer(comm, 2);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    end(comm, "destroyed");
    munmap(comm->meeting, sizeof(struct meeting));
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                    int flags) {
    if ((uintptr_t)memory % NCCL_WIN_REQUIRED_ALIGNMENT != 0 || bytes == 0) return ncclInvalidArgument;
    if (flags != NCCL_WIN_COLL_SYMMETRIC) return ncclInvalidArgument;
    comm->has_window = !has("nccl_without_windows");
    *window = comm->has_window ? (ncclWindow_t)memory : NULL;
    return answer(comm, 2);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    (void)window;
    comm->has_window = 0;
    return ncclSuccess;
}

// ---- calls ----------------------------------------------------------------------------------------------

static enum dtype dtype_of(ncclDataType_t type) {
    return type == ncclBfloat16 ? DTYPE_BFLOAT16 : type == ncclFloat16 ? DTYPE_FLOAT16 : DTYPE_FLOAT32;
}

static void copy_to(float *slot, const struct part *part, size_t count) {
    for (size_t i = 0; i < count; i++) slot[i] = (float)element_value(dtype_of(part->type), part->from, i);
}

static void take(const struct part *part, size_t at, const float *slot) {
    for (size_t i = 0; i < part->count; i++) element_store(dtype_of(part->type), part->to, at + i, slot[i]);
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
    size_t at =
        MOST_RANKS; // slot[i], i < MOST_RANKS: the index of the numbers for rank i, behind their count
    for (int i = 0; i < task->count; i++) {
        const struct part *part = &task->parts[i];
        if (part->kind != SEND) continue;
        slot[part->peer] = (float)at;
        slot[at++] = (float)part->count;
        copy_to(slot + at, part, part->count);
        at += part->count;
    }
}

static float rounded(const struct part *part, float sum) {
    float element;
    if (!ARE_PROCESSES) return sum;
    element_store(dtype_of(part->type), &element, 0, sum);
    return (float)element_value(dtype_of(part->type), &element, 0);
}

static void add_up(const struct part *part) {
    const struct meeting *meeting = part->comm->meeting;
    size_t offset = part->kind == REDUCE_SCATTER ? (size_t)part->comm->rank * part->count : 0;
    for (size_t i = 0; i < part->count; i++) {
        float sum = 0;
        for (int of = 0; of < part->comm->ranks; of++)
            sum = rounded(part, sum + meeting->slots[of][offset + i]);
        element_store(dtype_of(part->type), part->to, i, sum);
    }
}

static void receive(const struct part *part, const float *slot) {
    size_t at = (size_t)slot[part->comm->rank];
    if ((size_t)slot[at] != part->count) abort(); // the real NCCL would hang
    take(part, 0, slot + at + 1);
}

// Takes the results of this rank from the slots.
static void take_part(const struct part *part) {
    float(*slots)[SLOT_ELEMENTS] = part->comm->meeting->slots;
    switch (part->kind) {
    case ALL_GATHER:
        for (int of = 0; of < part->comm->ranks; of++) take(part, (size_t)of * part->count, slots[of]);
        break;
    case BROADCAST: take(part, 0, slots[part->peer]); break;
    case RECEIVE: receive(part, slots[part->peer]); break;
    case SEND: break;
    default: add_up(part); break;
    }
}

static void take_parts(const struct task *task) {
    for (int i = 0; i < task->count; i++) take_part(&task->parts[i]);
}

// The calls of all ranks, which are threads.
static void exchange(void **tasks, int count) {
    for (int of = 0; of < count; of++) give(tasks[of]);
    for (int of = 0; of < count; of++) take_parts(tasks[of]);
}

// Continues a call as far as possible without waiting for other processes. Returns whether it has ended.
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
        take_parts(task);
        arrive(comm);
        task->step = LEAVES;
    }
    if (comm->spoilt == ncclSuccess && !all_have_arrived(comm)) return 0;
    task->step = GIVES;
    return 1;
}

static void log_kernel(const struct ncclComm *comm, size_t bytes) {
    FILE *log = comm->rank == 0 ? open_log() : NULL;
    if (log == NULL) return;
    fprintf(log,
            comm->has_window && !has("nccl_falls_back")
                ? "NCCL INFO AllReduce [Symmetric]: %zu Bytes -> Kernel AllReduce_AGxLL_R nchannels 1\n"
                : "NCCL INFO AllReduce: %zu Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n",
            bytes);
    fclose(log);
}

static ncclResult_t start(struct task *task) {
    if (ARE_PROCESSES)
        stand_in_try(task->stream, attempt, task);
    else
        stand_in_meet(task->stream, task->comm->ranks, exchange, task);
    return answer(task->comm, 2);
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
    return group != NULL ? ncclSuccess : start(task);
}

// The error that nccl_fails sets for calls of so many bytes, once on each rank; ncclSuccess: none.
static ncclResult_t failure_of(const struct ncclComm *comm, size_t bytes) {
    enum { MOST = 8 };
    static _Thread_local int done[MOST_RANKS][MOST];
    for (int i = 0; i < MOST; i++) {
        if ((size_t)stand_in_number("nccl_fails", 2 * i, -1) == bytes && done[comm->rank][i]++ == 0)
            return (ncclResult_t)stand_in_number("nccl_fails", 2 * i + 1, 0);
    }
    return ncclSuccess;
}

static int breaks(const struct ncclComm *comm, size_t count) {
    return (size_t)stand_in_number("nccl_breaks", 0, -1) == count ||
           ((size_t)stand_in_number("nccl_breaks_behind", 0, -1) == comm->last_count &&
            (size_t)stand_in_number("nccl_breaks_behind", 1, -1) == count);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, struct CUstream_st *stream) {
    size_t bytes = count * dtype_sizes_bytes[dtype_of(type)];
    if (op != ncclSum || comm->polls > 0) return ncclInvalidArgument;
    ncclResult_t failure = failure_of(comm, bytes);
    if (failure == ncclInvalidArgument || failure == ncclInvalidUsage) return failure;
    if (failure != ncclSuccess) {
        comm->spoilt = failure;
        return ncclInProgress;
    }
    if (breaks(comm, count)) return ncclSystemError;
    comm->last_count = count;
    log_kernel(comm, bytes);
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
    return start(task);
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
