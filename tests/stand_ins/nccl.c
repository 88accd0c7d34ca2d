// A stand-in for libnccl.so.2 beside that of the driver: when the streams of all ranks have come to a call,
// it adds up in the host's memory, in rank order and in fp32, or copies there. All ranks are threads of one
// process: others get no communicator. Calls on non-blocking
// communicators first return ncclInProgress. Settings in STAND_IN:
//
//   nccl=VERSION           its version
//   nccl_without_windows   symmetric memory is not supported
//   nccl_falls_back        symmetric memory is registered, but not used
//   nccl_never_answers     all communicators stay in progress
//   nccl_lost=N            the first N communicators do, of any rank
//   nccl_first_s=S         each rank's first communicator is made so many seconds after the request
//   nccl_fails=BYTES:CODE,...   the first allreduce of BYTES on each rank fails: at once with a code for
//                          wrong use; else its communicator has the error from then on
//   nccl_breaks=N          allreduces of N elements fail
//   nccl_breaks_behind=M:N allreduces of N elements fail right after one of M
//   nccl_says              prints when communicators are made, aborted and destroyed
//   nccl_refuses_end       communicators cannot be finalized
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "elements/element.h"

struct CUstream_st;
void stand_in_meet(struct CUstream_st *stream, int ranks, void (*together)(void **, int), void *argument);
int stand_in_is_captured(int (*is)(void *argument, const void *of), const void *of);

struct ncclComm {
    struct ncclComm *next_aborted;
    int rank, ranks, polls, has_window, blocks, is_lost;
    time_t ready_s; // when it is made, on the monotonic clock
    ncclResult_t spoilt;
    size_t last_count; // of an allreduce
};

// One rank's part of a call, of `count` elements; never freed, because a graph may use it again.
struct part {
    struct ncclComm *comm;
    const void *from;
    void *to;
    size_t count;
    enum dtype dtype;
    int root;
};

static const char *setting(const char *name) {
    const char *text = getenv("STAND_IN");
    const char *found = text ? strstr(text, name) : NULL;
    return found ? found + strlen(name) : NULL;
}

static time_t now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void say(const char *what) {
    if (setting("nccl_says") != NULL) fprintf(stderr, "stand-in: a communicator is %s\n", what);
}

// The error that nccl_fails sets for calls of so many bytes, once on each rank; ncclSuccess: none.
static ncclResult_t failure_of(const struct ncclComm *comm, size_t bytes) {
    enum { RANKS = 16, MOST = 8 };
    static _Thread_local int done[RANKS][MOST];
    const char *at = setting("nccl_fails=");
    for (int i = 0; at != NULL && i < MOST; i++) {
        char *end;
        size_t of = strtoul(at, &end, 10);
        ncclResult_t code = *end == ':' ? (ncclResult_t)strtol(end + 1, &end, 10) : ncclSuccess;
        if (of == bytes && done[comm->rank][i]++ == 0) return code;
        at = *end == ',' ? end + 1 : NULL;
    }
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version) {
    const char *value = setting("nccl=");
    *version = value ? atoi(value) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    static _Thread_local char words[32];
    snprintf(words, sizeof words, "the stand-in's error %d", (int)result);
    return words;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    pid_t process = getpid();
    memset(id, 7, sizeof *id);
    memcpy(id, &process, sizeof process);
    return ncclSuccess;
}

// The call is done after so many polls of a non-blocking communicator.
static ncclResult_t answer(struct ncclComm *comm, int polls) {
    comm->polls = comm->blocks ? 0 : polls;
    return comm->blocks ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    static int made;
    pid_t process = getpid();
    if (memcmp(&id, &process, sizeof process) != 0) return ncclInvalidUsage;
    const char *lost = setting("nccl_lost="), *first_s = setting("nccl_first_s=");
    static _Thread_local int has_first;
    *comm = calloc(1, sizeof **comm);
    **comm = (struct ncclComm){.rank = rank, .ranks = ranks, .blocks = config->blocking != 0};
    if (first_s != NULL && !has_first++) (*comm)->ready_s = now_s() + atoi(first_s);
    say("made");
    (*comm)->is_lost = __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED) < (lost ? atoi(lost) : 0);
    return answer(*comm, 3);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    if (comm->polls > 0 && now_s() >= comm->ready_s && !comm->is_lost &&
        setting("nccl_never_answers") == NULL)
        comm->polls--;
    *result = comm->polls > 0 ? ncclInProgress : comm->spoilt;
    return ncclSuccess;
}

static int is_of(void *argument, const void *comm) {
    return *(struct ncclComm **)argument == comm; // struct part and struct messages begin with it
}

// Like the real NCCL, waits until no graph contains a call of the communicator.
static void end(struct ncclComm *comm, const char *how) {
    say(how);
    for (int times = 0; stand_in_is_captured(is_of, comm); times++) {
        if (times == 0) fprintf(stderr, "stand-in: a graph holds a communicator that is %s\n", how);
        usleep(1000);
    }
}

// The memory of the communicator stays, because streams may still contain its calls.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    static struct ncclComm *aborted;
    end(comm, "aborted");
    comm->next_aborted = __atomic_exchange_n(&aborted, comm, __ATOMIC_ACQ_REL);
    comm->spoilt = ncclInternalError;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    end(comm, "destroyed");
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    return setting("nccl_refuses_end") != NULL ? ncclInvalidUsage : answer(comm, 2);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                    int flags) {
    if ((uintptr_t)memory % NCCL_WIN_REQUIRED_ALIGNMENT != 0 || bytes == 0) return ncclInvalidArgument;
    if (flags != NCCL_WIN_COLL_SYMMETRIC) return ncclInvalidArgument;
    comm->has_window = setting("nccl_without_windows") == NULL;
    *window = comm->has_window ? (ncclWindow_t)memory : NULL;
    return answer(comm, 2);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    (void)window;
    comm->has_window = 0;
    return ncclSuccess;
}

static enum dtype dtype_of(ncclDataType_t type) {
    return type == ncclBfloat16 ? DTYPE_BFLOAT16 : type == ncclFloat16 ? DTYPE_FLOAT16 : DTYPE_FLOAT32;
}

// What a rank sends to `peer`, or receives from it; lists, in the order of the calls.
struct message {
    const void *from;
    void *to;
    size_t bytes;
    int peer;
    struct message *next;
};

// A group of calls of one rank.
struct messages {
    struct ncclComm *comm;
    struct CUstream_st *stream;
    struct message *sends, *receives;
};

static _Thread_local struct messages *open_group;

// Each receive gets the first message that its peer has for this rank.
static void deliver(void **arguments, int count) {
    struct messages **groups = (struct messages **)arguments;
    for (int of = 0; of < count; of++) {
        for (struct message *to = groups[of]->receives; to != NULL; to = to->next) {
            for (int other = 0; other < count; other++) {
                struct message *from = groups[other]->sends;
                if (groups[other]->comm->rank != to->peer) continue;
                while (from != NULL && from->peer != groups[of]->comm->rank) from = from->next;
                if (from == NULL || from->bytes != to->bytes) abort(); // the real NCCL would hang
                memcpy(to->to, from->from, to->bytes);
            }
        }
    }
}

ncclResult_t ncclGroupStart(void) {
    open_group = calloc(1, sizeof *open_group);
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    struct messages *group = open_group;
    open_group = NULL;
    if (group->comm == NULL) { // the group is empty
        free(group);
        return ncclSuccess;
    }
    stand_in_meet(group->stream, group->comm->ranks, deliver, group);
    return answer(group->comm, 2);
}

static ncclResult_t add_message(struct message **list, struct message message, ncclComm_t comm,
                                struct CUstream_st *stream) {
    if (open_group == NULL || comm->polls > 0) return ncclInvalidUsage;
    while (*list != NULL) list = &(*list)->next;
    *list = malloc(sizeof **list);
    **list = message;
    open_group->comm = comm;
    open_group->stream = stream;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      struct CUstream_st *stream) {
    struct message message = {.from = from, .bytes = count * dtype_sizes_bytes[dtype_of(type)], .peer = peer};
    return open_group == NULL ? ncclInvalidUsage : add_message(&open_group->sends, message, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      struct CUstream_st *stream) {
    struct message message = {.to = to, .bytes = count * dtype_sizes_bytes[dtype_of(type)], .peer = peer};
    return open_group == NULL ? ncclInvalidUsage : add_message(&open_group->receives, message, comm, stream);
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

static int breaks(const struct ncclComm *comm, size_t count) {
    const char *alone = setting("nccl_breaks="), *behind = setting("nccl_breaks_behind=");
    const char *second = behind != NULL ? strchr(behind, ':') : NULL;
    if (alone != NULL && strtoull(alone, NULL, 10) == count) return 1;
    return second != NULL && strtoull(behind, NULL, 10) == comm->last_count &&
           strtoull(second + 1, NULL, 10) == count;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, struct CUstream_st *stream) {
    enum dtype dtype = dtype_of(type);
    if (op != ncclSum || comm->polls > 0) return ncclInvalidArgument;
    ncclResult_t failure = failure_of(comm, count * dtype_sizes_bytes[dtype]);
    if (failure == ncclInvalidArgument || failure == ncclInvalidUsage) return failure;
    if (failure != ncclSuccess) {
        comm->spoilt = failure;
        return ncclInProgress;
    }
    if (breaks(comm, count)) return ncclSystemError;
    comm->last_count = count;
    struct part *part = malloc(sizeof *part);
    *part = (struct part){.comm = comm, .from = from, .to = to, .count = count, .dtype = dtype};
    log_kernel(comm, count * dtype_sizes_bytes[dtype]);
    stand_in_meet(stream, comm->ranks, add_up, part);
    return answer(comm, 2);
}

// The part of rank `rank`.
static struct part *part_of(struct part **parts, int count, int rank) {
    int of = 0;
    while (of < count - 1 && parts[of]->comm->rank != rank) of++;
    return parts[of];
}

static void gather(void **arguments, int count) {
    struct part **parts = (struct part **)arguments;
    size_t bytes = parts[0]->count * dtype_sizes_bytes[parts[0]->dtype];
    for (int of = 0; of < count; of++) {
        for (int rank = 0; rank < count; rank++) {
            memmove((char *)parts[of]->to + (size_t)rank * bytes, part_of(parts, count, rank)->from, bytes);
        }
    }
}

static void add_up_slices(void **arguments, int count) {
    struct part **parts = (struct part **)arguments;
    for (int of = 0; of < count; of++) {
        size_t first = (size_t)parts[of]->comm->rank * parts[of]->count;
        for (size_t i = 0; i < parts[of]->count; i++) {
            float sum = 0;
            for (int rank = 0; rank < count; rank++) {
                sum += (float)element_value(parts[of]->dtype, part_of(parts, count, rank)->from, first + i);
            }
            element_store(parts[of]->dtype, parts[of]->to, i, sum);
        }
    }
}

static void copy_from_root(void **arguments, int count) {
    struct part **parts = (struct part **)arguments;
    size_t bytes = parts[0]->count * dtype_sizes_bytes[parts[0]->dtype];
    const void *from = part_of(parts, count, parts[0]->root)->from;
    for (int of = 0; of < count; of++) memmove(parts[of]->to, from, bytes);
}

static ncclResult_t meet(struct part part, void (*together)(void **, int), struct CUstream_st *stream) {
    if (part.comm->polls > 0) return ncclInvalidUsage;
    struct part *kept = malloc(sizeof *kept);
    *kept = part;
    stand_in_meet(stream, part.comm->ranks, together, kept);
    return answer(part.comm, 2);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           struct CUstream_st *stream) {
    return meet((struct part){comm, from, to, count, dtype_of(type), 0}, gather, stream);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, struct CUstream_st *stream) {
    if (op != ncclSum) return ncclInvalidArgument;
    return meet((struct part){comm, from, to, count, dtype_of(type), 0}, add_up_slices, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, struct CUstream_st *stream) {
    return meet((struct part){comm, from, to, count, dtype_of(type), root}, copy_from_root, stream);
}
