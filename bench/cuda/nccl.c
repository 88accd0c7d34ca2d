// NCCL's allreduce, and then an epilogue of our own: one kernel, or, as a strategy of its own, one for each
// step. One family of candidates: as NCCL decides, on symmetric memory, and each algorithm x protocol x
// channels. As NCCL decides, also the other ops: its own calls, and for what it has none (an alltoall)
// grouped sends and receives.
//
// The library is loaded at run time. Communicators do not block: every call may answer that it is in
// progress, and then what it gives is there when the communicator says so, or never, by the deadline. A
// communicator is made when a candidate is first called for. NCCL takes what it cannot do for something else
// in silence: that the kernel for symmetric memory has run is read in its own log.
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "candidate.h"
#include "libraries/nccl_library.h"
#include "place.h"

enum {
    SYMMETRIC_FROM = 22700,  // version
    MULTI_RANK_FROM = 23000, // several ranks on a GPU, where the environment allows it
    MOST_LOST = 2,           // communicators in a row, none of which did what it was made for
    LEAVES_WITHIN_S = 1,     // who is in a call that does not block, when its communicator is aborted
    POLL_US = 50,
    POLL_HARD_NS = 5000000, // what a call in a stream takes; a communicator takes longer
};

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 0) // whose header has no windows; a library may
typedef struct ncclWindow *ncclWindow_t;
#define NCCL_WIN_COLL_SYMMETRIC 1
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                    int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
#endif

// ---- the library -------------------------------------------------------------------------------------

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

// Newer than some libraries that are about; NULL there.
#define NCCL_WINDOW_FUNCTIONS(FUNCTION)                                                                      \
    FUNCTION(ncclCommWindowRegister)                                                                         \
    FUNCTION(ncclCommWindowDeregister)

static struct {
#define FUNCTION(name) __typeof__(&(name)) name;
    NCCL_FUNCTIONS(FUNCTION)
    NCCL_WINDOW_FUNCTIONS(FUNCTION)
#undef FUNCTION
    int version;
    char log_path[64]; // what NCCL says of its choices; "": somebody else reads that
} nccl;

static char refusal[REASON_SIZE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void remove_log(void) {
    unlink(nccl.log_path);
}

// NCCL reads its environment once, when it starts.
static void ask_for_log(void) {
    if (getenv("NCCL_DEBUG") != NULL || getenv("NCCL_DEBUG_FILE") != NULL) return;
    const char *folder = getenv("TMPDIR");
    int length =
        snprintf(nccl.log_path, sizeof nccl.log_path, "%s/gentables-nccl-XXXXXX", folder ? folder : "/tmp");
    int file = length < (int)sizeof nccl.log_path ? mkstemp(nccl.log_path) : -1;
    if (file < 0) {
        nccl.log_path[0] = '\0';
        return;
    }
    close(file);
    atexit(remove_log);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    setenv("NCCL_DEBUG_FILE", nccl.log_path, 1);
}

static const char *look_up_functions(void *library) {
#define FUNCTION(name)                                                                                       \
    *(void **)&nccl.name = dlsym(library, #name);                                                            \
    if (nccl.name == NULL) return #name;
    NCCL_FUNCTIONS(FUNCTION)
#undef FUNCTION
#define FUNCTION(name) *(void **)&nccl.name = dlsym(library, #name);
    NCCL_WINDOW_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return NULL;
}

static void load(void) {
    ask_for_log();
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    if (library == NULL) {
        snprintf(refusal, sizeof refusal, "NCCL is not here (libnccl.so.2)");
        return;
    }
    const char *missing = look_up_functions(library);
    if (missing != NULL) {
        snprintf(refusal, sizeof refusal, "NCCL is too old: it has no %s", missing);
    } else if (nccl.ncclGetVersion(&nccl.version) != ncclSuccess) {
        snprintf(refusal, sizeof refusal, "NCCL does not say its version");
    }
}

int nccl_version(void) {
    pthread_once(&once, load);
    return refusal[0] == '\0' ? nccl.version : 0;
}

// ---- a communicator ----------------------------------------------------------------------------------

struct channel {
    const struct nccl_detail *detail;
    struct device *device;
    pthread_mutex_t lock; // who is in a call of a communicator that does not block, or aborts it
    ncclComm_t comm;
    ncclWindow_t window;
    ncclResult_t result; // of what went wrong last
    int lost;            // communicators in a row
    bool is_final;       // no other communicator would do better
    bool blocks;
    char problem[REASON_SIZE];
    struct channel *next;
};

// All of this process: those of all strategies and plug-ins, on all ranks that are its threads.
static struct channel *channels;
static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;

static struct channel *add_channel(struct device *device, const struct nccl_detail *detail) {
    struct channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) return NULL;
    *channel = (struct channel){.device = device, .detail = detail};
    pthread_mutex_init(&channel->lock, NULL);
    pthread_mutex_lock(&channels_lock);
    channel->next = channels;
    channels = channel;
    pthread_mutex_unlock(&channels_lock);
    return channel;
}

static void drop_channel(struct channel *channel) {
    pthread_mutex_lock(&channels_lock);
    struct channel **at = &channels;
    while (*at != channel) at = &(*at)->next;
    *at = channel->next;
    pthread_mutex_unlock(&channels_lock);
    pthread_mutex_destroy(&channel->lock);
    free(channel);
}

static void abort_channel(struct channel *channel) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LEAVES_WITHIN_S;
    bool locked = pthread_mutex_timedlock(&channel->lock, &until) == 0;
    ncclComm_t comm = channel->comm;
    channel->comm = NULL;
    channel->window = NULL;
    if (locked) pthread_mutex_unlock(&channel->lock);
    if (comm != NULL) nccl.ncclCommAbort(comm);
}

// The same by the channel's own rank, while no call of it is being captured. Captured ones go first.
static void give_up_channel(struct channel *channel) {
    place_forget_graphs(channel->device);
    abort_channel(channel);
}

// Kernels of NCCL's wait for each other as ours do, and only their communicator makes them leave. Any thread
// may call this; whoever waits for one of them then gets an error, or his event.
void nccl_abort_all(void) {
    pthread_mutex_lock(&channels_lock);
    for (struct channel *channel = channels; channel != NULL; channel = channel->next) abort_channel(channel);
    pthread_mutex_unlock(&channels_lock);
}

// Within these a communicator that does not block is there, or NULL where it was given up.
static ncclComm_t enter(struct channel *channel) {
    pthread_mutex_lock(&channel->lock);
    return channel->comm;
}
static void leave(struct channel *channel) {
    pthread_mutex_unlock(&channel->lock);
}

// How the communicator is. What it says of itself stays so, once something went wrong in it.
static ncclResult_t ask(struct channel *channel) {
    ncclResult_t state = ncclInvalidUsage;
    ncclComm_t comm = enter(channel);
    if (comm != NULL && nccl.ncclCommGetAsyncError(comm, &state) != ncclSuccess) state = ncclInternalError;
    leave(channel);
    return state;
}

// What an answer comes to, once NCCL is no longer at it. ncclInProgress: not before the deadline. The clock
// is read before NCCL is asked, so that who gets no processor in between asks once more.
static ncclResult_t settle(struct channel *channel, ncclResult_t result) {
    uint64_t since_ns = clock_ns();
    while (result == ncclInProgress) {
        uint64_t waited_ns = clock_ns() - since_ns;
        result = ask(channel);
        if (result != ncclInProgress || (double)waited_ns * 1e-9 > channel->device->deadline_s) break;
        if (waited_ns > POLL_HARD_NS) usleep(POLL_US);
    }
    return result;
}

// What only the caller can mend: the call did nothing, and the communicator is as it was.
static bool is_refusal(ncclResult_t result) {
    return result == ncclInvalidArgument || result == ncclInvalidUsage;
}

// Whether another communicator may do what this one did not: where it was too late, or CUDA, the system or
// another rank failed it. Not where NCCL itself was wrong, or was asked what it does not do.
static bool is_curable(ncclResult_t result) {
    return result == ncclInProgress || result == ncclUnhandledCudaError || result == ncclSystemError ||
           result == ncclRemoteError;
}

// Whether it went well; else the channel says what did not.
static bool settled(struct channel *channel, ncclResult_t result, const char *what) {
    result = settle(channel, result);
    channel->result = result;
    if (result == ncclSuccess) return true;
    if (result == ncclInProgress) {
        snprintf(channel->problem, REASON_SIZE, "NCCL, %s: no answer within %g s", what,
                 channel->device->deadline_s);
    } else {
        snprintf(channel->problem, REASON_SIZE, "NCCL, %s: %s", what, nccl.ncclGetErrorString(result));
    }
    return false;
}

// A word of a tuner's file as NCCL's environment has it: without _.
static void set_choice(const char *variable, const char *word) {
    char value[32];
    size_t length = 0;
    if (word[0] == '\0') return;
    for (; *word != '\0' && length + 1 < sizeof value; word++) {
        if (*word != '_') value[length++] = *word;
    }
    value[length] = '\0';
    setenv(variable, value, 1);
}

// Collective. An algorithm and a protocol are chosen by the environment in which a communicator is made; of
// threads, one sets it for all.
static void set_environment(const struct channel *channel, bool set) {
    struct group *group = channel->device->group;
    bool mine = group->rank == 0 || !group->shares_process;
    if (channel->detail->algorithm[0] == '\0') return;
    group_barrier(group);
    if (mine && set) {
        set_choice("NCCL_ALGO", channel->detail->algorithm);
        set_choice("NCCL_PROTO", channel->detail->protocol);
    } else if (mine) {
        unsetenv("NCCL_ALGO");
        unsetenv("NCCL_PROTO");
    }
    group_barrier(group);
}

// Collective.
static bool make_communicator(struct channel *channel) {
    struct group *group = channel->device->group;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = {{0}};
    config.blocking = channel->blocks;
    if (channel->detail->channels > 0) config.minCTAs = config.maxCTAs = channel->detail->channels;
    long status = group->rank == 0 ? (long)nccl.ncclGetUniqueId(&id) : (long)ncclSuccess;
    if (group_max(group, (double)status) > 0) {
        snprintf(channel->problem, REASON_SIZE, "NCCL does not find its ranks an address");
        return false;
    }
    group_broadcast(group, 0, &id, sizeof id);
    set_environment(channel, true);
    ncclComm_t comm = NULL;
    ncclResult_t result = nccl.ncclCommInitRankConfig(&comm, group->size, id, group->rank, &config);
    enter(channel);
    channel->comm = comm;
    leave(channel);
    bool made = settled(channel, result, "making a communicator");
    if (!made) give_up_channel(channel);
    set_environment(channel, false);
    return made;
}

// ---- symmetric memory --------------------------------------------------------------------------------

// Where the log ends now.
static long log_end(void) {
    FILE *log = fopen(nccl.log_path, "r");
    long end = 0;
    if (log == NULL) return 0;
    if (fseek(log, 0, SEEK_END) == 0) end = ftell(log);
    fclose(log);
    return end;
}

// Whether NCCL says, from there on, that it took a kernel for symmetric memory.
static bool log_has_symmetric_kernel(long from) {
    char line[512];
    bool found = false;
    FILE *log = fopen(nccl.log_path, "r");
    if (log == NULL) return false;
    if (fseek(log, from, SEEK_SET) == 0) {
        while (!found && fgets(line, sizeof line, log) != NULL) {
            found = strstr(line, "[Symmetric]") != NULL && strstr(line, "Kernel") != NULL;
        }
    }
    fclose(log);
    return found;
}

// Collective. Registers all data of calls, which lie alike on all ranks.
static bool register_window(struct channel *channel) {
    struct device *device = channel->device;
    void *arena = (void *)device->arena.of[device->group->rank];
    ncclResult_t result = ncclInvalidUsage;
    ncclComm_t comm = enter(channel);
    if (comm != NULL) {
        nccl.ncclGroupStart();
        result = nccl.ncclCommWindowRegister(comm, arena, device->arena.bytes, &channel->window,
                                             NCCL_WIN_COLL_SYMMETRIC);
        ncclResult_t ended = nccl.ncclGroupEnd();
        if (result == ncclSuccess) result = ended;
    }
    leave(channel);
    if (!settled(channel, result, "registering a window")) return false;
    if (channel->window != NULL) return true;
    snprintf(channel->problem, REASON_SIZE, "NCCL has no symmetric windows here");
    channel->is_final = true;
    return false;
}

static const ncclDataType_t nccl_types[DTYPES] = {
    [DTYPE_BFLOAT16] = ncclBfloat16,
    [DTYPE_FLOAT16] = ncclFloat16,
    [DTYPE_FLOAT32] = ncclFloat32,
};

static ncclResult_t allreduce(struct channel *channel, const struct call *call, ncclComm_t comm) {
    void *to = call->fusion == FUSION_NONE ? call->out : call->residual_out;
    return nccl.ncclAllReduce(call->input, to, call_elements(call), nccl_types[call->dtype], ncclSum, comm,
                              channel->device->stream);
}

// The part of the buffer at `from` that begins `elements` farther on.
static void *part_at(const void *from, size_t elements, enum dtype dtype) {
    return (void *)((uintptr_t)from + elements * dtype_sizes_bytes[dtype]);
}

// Whether NCCL takes what comes next in a group.
static bool goes_on(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
}

// Every rank's part to every rank, all in one group; a part of nothing is not sent, as PyTorch has it.
static ncclResult_t exchange(struct channel *channel, const struct call *call, ncclComm_t comm) {
    const struct traffic *traffic = call->traffic;
    ncclDataType_t type = nccl_types[call->dtype];
    CUstream stream = channel->device->stream;
    ncclResult_t first = nccl.ncclGroupStart();
    for (int peer = 0; peer < channel->device->group->size; peer++) {
        ncclResult_t sent = ncclSuccess, received = ncclSuccess;
        if (traffic->sent[peer] > 0)
            sent = nccl.ncclSend(part_at(call->input, traffic->send_at[peer], call->dtype),
                                 traffic->sent[peer], type, peer, comm, stream);
        if (traffic->received[peer] > 0)
            received = nccl.ncclRecv(part_at(call->out, traffic->receive_at[peer], call->dtype),
                                     traffic->received[peer], type, peer, comm, stream);
        if (goes_on(first)) first = sent;
        if (goes_on(first)) first = received;
    }
    ncclResult_t ended = nccl.ncclGroupEnd();
    return goes_on(first) ? ended : first;
}

static ncclResult_t move(struct channel *channel, const struct call *call, ncclComm_t comm) {
    const struct traffic *traffic = call->traffic;
    ncclDataType_t type = nccl_types[call->dtype];
    CUstream stream = channel->device->stream;
    switch (call->op) {
    case OP_ALLREDUCE: return allreduce(channel, call, comm);
    case OP_ALLGATHER:
        return nccl.ncclAllGather(call->input, call->out, traffic->send_elements, type, comm, stream);
    case OP_REDUCESCATTER:
        return nccl.ncclReduceScatter(call->input, call->out, traffic->receive_elements, type, ncclSum, comm,
                                      stream);
    case OP_BROADCAST:
        return nccl.ncclBroadcast(call->input, call->out, traffic->receive_elements, type, call->root, comm,
                                  stream);
    default: return exchange(channel, call, comm);
    }
}

static bool enqueue_op(struct channel *channel, const struct call *call) {
    ncclComm_t comm = enter(channel);
    ncclResult_t result = comm != NULL ? move(channel, call, comm) : ncclInvalidUsage;
    leave(channel);
    return settled(channel, result, op_names[call->op]);
}

// Collective. The first call of a shape, which is neither timed nor captured: NCCL may connect in it.
static bool call_first(struct channel *channel, const struct call *call) {
    struct device *device = channel->device;
    if (!enqueue_op(channel, call)) return false;
    if (device_finish(device)) return true;
    snprintf(channel->problem, REASON_SIZE, "%s", group_failure(device->group));
    return false;
}

// Collective. Whether rank 0, who logs for all, finds in the log that this call was what it was to be: NCCL
// decides that anew for each shape.
static bool is_symmetric(struct channel *channel, long from) {
    uint64_t proven = log_has_symmetric_kernel(from);
    group_broadcast(channel->device->group, 0, &proven, sizeof proven);
    return proven != 0;
}

// ---- the functions of a strategy ---------------------------------------------------------------------

static const char *nccl_supports(const struct group *group, const struct call *call) {
    return call->fusion != FUSION_NONE ? call_refusal(group->device, call) : NULL;
}

// Why there can be no communicator, or NULL.
static const char *why_not(const struct device *device, const struct nccl_detail *detail) {
    if (nccl_version() == 0) return refusal;
    bool shared = device->options.loopback && device->group->size > 1;
    if (shared && nccl.version < MULTI_RANK_FROM) return "duplicate GPU: NCCL wants one for each rank";
    if (shared && getenv("NCCL_MULTI_RANK_GPU_ENABLE") == NULL) {
        return "duplicate GPU: NCCL takes one for several ranks with NCCL_MULTI_RANK_GPU_ENABLE=1";
    }
    if (shared && device->joint != NULL) return "NCCL launches for each rank: --streams would be right";
    bool has_windows = nccl.version >= SYMMETRIC_FROM && nccl.ncclCommWindowRegister != NULL;
    if (detail->symmetric && !has_windows)
        return "NCCL has no symmetric windows; 2.27 or later would be right";
    return NULL;
}

static int nccl_setup(const struct candidate *candidate, struct group *group, void **state,
                      char reason[REASON_SIZE]) {
    struct device *device = device_of(group);
    struct channel *channel = NULL;
    const char *why = why_not(device, candidate->detail);
    if (why == NULL && (channel = add_channel(device, candidate->detail)) == NULL) why = "out of memory";
    if (why != NULL) snprintf(reason, REASON_SIZE, "%s", why);
    if (group_min(group, why == NULL) == 0) {
        if (why == NULL) snprintf(reason, REASON_SIZE, "another rank has no NCCL for it");
        if (channel != NULL) drop_channel(channel);
        return -1;
    }
    *state = channel;
    return 0;
}

// Whether there is a communicator, and none of its memory is registered any more.
static bool end_window(struct channel *channel) {
    ncclResult_t result = ncclSuccess;
    ncclComm_t comm = enter(channel);
    if (comm != NULL && channel->window != NULL)
        result = nccl.ncclCommWindowDeregister(comm, channel->window);
    leave(channel);
    return comm != NULL && settled(channel, result, "the window's end");
}

static bool finalize(struct channel *channel) {
    ncclComm_t comm = enter(channel);
    ncclResult_t result = comm != NULL ? nccl.ncclCommFinalize(comm) : ncclInvalidUsage;
    leave(channel);
    return settled(channel, result, "the end");
}

// A communicator that does not come to its end is aborted.
static void nccl_teardown(void *state) {
    struct channel *channel = state;
    place_forget_graphs(channel->device);
    if (end_window(channel) && finalize(channel)) {
        ncclComm_t comm = enter(channel);
        channel->comm = NULL; // nobody aborts it any more
        leave(channel);
        if (comm != NULL) nccl.ncclCommDestroy(comm);
    }
    give_up_channel(channel);
    drop_channel(channel);
}

// Collective. Whether it went well on all ranks.
static bool all_are(struct channel *channel, bool right) {
    if (group_min(channel->device->group, right) != 0) return true;
    if (right) snprintf(channel->problem, REASON_SIZE, "NCCL failed on another rank");
    return false;
}

// Collective. The communicator, and, on symmetric memory, the window.
static void connect(struct channel *channel) {
    channel->result = ncclSuccess;
    bool made = all_are(channel, make_communicator(channel));
    if (made && channel->detail->symmetric && all_are(channel, register_window(channel)) &&
        !all_are(channel, nccl.log_path[0] != '\0')) {
        snprintf(channel->problem, REASON_SIZE,
                 "NCCL's log, which tells whether it fell back, is somebody else's; unset NCCL_DEBUG");
        channel->is_final = true;
    }
    if (channel->problem[0] != '\0' && channel->result != ncclSuccess && !is_curable(channel->result))
        channel->is_final = true;
}

// Collective. The cell has a reason. A communicator that did nothing because of what it was asked stays, if
// it says that it is well; any other one is given up, and the next cell gets another where that may help, and
// not as often as one likes.
static void judge(struct channel *channel) {
    struct group *group = channel->device->group;
    bool is_fine = channel->result == ncclSuccess || is_refusal(channel->result);
    if (group_min(group, is_fine && !channel->is_final && ask(channel) == ncclSuccess) != 0) return;
    bool is_curable_here = is_fine || is_curable(channel->result);
    channel->is_final = group_min(group, is_curable_here && !channel->is_final) == 0;
    channel->lost++;
    give_up_channel(channel);
}

static int nccl_prepare(void *state, const struct call *call, char reason[REASON_SIZE]) {
    struct channel *channel = state;
    if (channel->detail->epilogue == EPILOGUE_SEPARATE && call->fusion == FUSION_NONE) {
        snprintf(reason, REASON_SIZE, "there is no epilogue to separate");
        return -1;
    }
    bool may_connect = !channel->is_final && channel->lost < MOST_LOST;
    if (channel->comm != NULL || may_connect) {
        channel->problem[0] = '\0';
        if (channel->comm == NULL) connect(channel);
        long from = log_end();
        if (channel->problem[0] == '\0') all_are(channel, call_first(channel, call));
        if (channel->problem[0] == '\0') {
            channel->lost = 0;
            if (!channel->detail->symmetric || is_symmetric(channel, from)) return 0;
            snprintf(reason, REASON_SIZE,
                     "unavailable: NCCL fell back: it took no kernel for symmetric memory");
            return -1;
        }
        judge(channel);
    }
    snprintf(reason, REASON_SIZE, "unavailable: %.140s", channel->problem);
    return -1;
}

// ---- for plug-ins ----------------------------------------------------------------------------------------

struct channel *nccl_open(struct device *device, const void **comm, char reason[]) {
    static const struct nccl_detail usual = {.algorithm = "", .protocol = ""};
    const struct candidate as_usual = {.detail = &usual};
    void *state;
    if (nccl_setup(&as_usual, device->group, &state, reason) != 0) return NULL;
    struct channel *channel = state;
    channel->blocks = true;
    if (all_are(channel, make_communicator(channel))) {
        *comm = &channel->comm;
        return channel;
    }
    snprintf(reason, REASON_SIZE, "%s", channel->problem);
    give_up_channel(channel);
    drop_channel(channel);
    return NULL;
}

void nccl_close(struct channel *channel) {
    nccl_teardown(channel);
}

// ---- calls -------------------------------------------------------------------------------------------

static int nccl_run(void *state, const struct call *call) {
    struct channel *channel = state;
    struct device *device = channel->device;
    bool done = enqueue_op(channel, call) && epilogue_launch(device, channel->detail->epilogue, call);
    if (!done) group_fail(device->group, channel->problem[0] ? channel->problem : device->problem);
    return done ? 0 : -1;
}

const struct strategy strategy_cuda_nccl = {
    .supports = nccl_supports,
    .setup = nccl_setup,
    .run = nccl_run,
    .teardown = nccl_teardown,
    .prepare = nccl_prepare,
};
