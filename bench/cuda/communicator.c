// NCCL's library and communicators; see communicator.h.
#include "communicator.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cell_buffers.h"
#include "libraries/nccl_library.h"

enum {
    ABORT_AFTER_S = 1,   // how long an abort waits for a call of the communicator to return
    FIRST_S = 60,        // for the first communicator: NCCL loads its kernels and finds the network
    FIRST_DEADLINES = 6, // if that is less, with a short deadline: the watch of hung ranks has a few more
    POLL_US = 50,
    POLL_HARD_NS = 5000000, // enough for a call in a stream; making a communicator takes longer
};

// ---- the library -------------------------------------------------------------------------------------

struct nccl_library nccl;

static char refusal[REASON_SIZE]; // why NCCL cannot be used; "": it can
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Returns whether NCCL logs its choices for this process alone.
bool nccl_has_log(void) {
    return nccl.log_path[0] != '\0';
}

static void remove_log(void) {
    unlink(nccl.log_path);
}

// NCCL reads its environment once, when it starts.
static void request_log(void) {
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
    request_log();
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    if (library == NULL) {
        snprintf(refusal, sizeof refusal, "NCCL was not found (libnccl.so.2)");
        return;
    }
    const char *missing = look_up_functions(library);
    if (missing != NULL) {
        snprintf(refusal, sizeof refusal, "NCCL is too old: it has no %s", missing);
    } else if (nccl.ncclGetVersion(&nccl.version) != ncclSuccess) {
        snprintf(refusal, sizeof refusal, "NCCL does not report its version");
    }
}

int nccl_version(void) {
    pthread_once(&once, load);
    return refusal[0] == '\0' ? nccl.version : 0;
}

const char *nccl_refusal(void) {
    return nccl_version() == 0 ? refusal : NULL;
}

// ---- a communicator ----------------------------------------------------------------------------------

// All communicators of this process: those of strategies and plug-ins, on all ranks that are its threads.
static struct communicator *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

struct communicator *communicator_add(struct device *device, const struct nccl_detail *detail) {
    struct communicator *communicator = calloc(1, sizeof *communicator);
    if (communicator == NULL) return NULL;
    *communicator = (struct communicator){.device = device, .detail = detail};
    pthread_mutex_init(&communicator->lock, NULL);
    pthread_mutex_lock(&all_lock);
    communicator->next = all;
    all = communicator;
    pthread_mutex_unlock(&all_lock);
    return communicator;
}

void communicator_drop(struct communicator *communicator) {
    pthread_mutex_lock(&all_lock);
    struct communicator **at = &all;
    while (*at != communicator) at = &(*at)->next;
    *at = communicator->next;
    pthread_mutex_unlock(&all_lock);
    pthread_mutex_destroy(&communicator->lock);
    free(communicator);
}

static void abort_communicator(struct communicator *communicator) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_AFTER_S;
    bool locked = pthread_mutex_timedlock(&communicator->lock, &until) == 0;
    ncclComm_t comm = communicator->comm;
    communicator->comm = NULL;
    communicator->window = NULL;
    if (locked) pthread_mutex_unlock(&communicator->lock);
    if (comm != NULL) nccl.ncclCommAbort(comm);
}

void communicator_give_up(struct communicator *communicator) {
    device_drop_graphs(communicator->device);
    abort_communicator(communicator);
}

// NCCL's kernels wait for each other as ours do, and only aborting their communicator ends them. Any thread
// may call this; a thread that waits for such a kernel then gets an error, or its event.
void nccl_abort_all(void) {
    pthread_mutex_lock(&all_lock);
    for (struct communicator *communicator = all; communicator != NULL; communicator = communicator->next)
        abort_communicator(communicator);
    pthread_mutex_unlock(&all_lock);
}

ncclComm_t communicator_enter(struct communicator *communicator) {
    pthread_mutex_lock(&communicator->lock);
    return communicator->comm;
}

void communicator_leave(struct communicator *communicator) {
    pthread_mutex_unlock(&communicator->lock);
}

ncclResult_t communicator_state(struct communicator *communicator) {
    ncclResult_t state = ncclInvalidUsage;
    ncclComm_t comm = communicator_enter(communicator);
    if (comm != NULL && nccl.ncclCommGetAsyncError(comm, &state) != ncclSuccess) state = ncclInternalError;
    communicator_leave(communicator);
    return state;
}

// The seconds that a call may be in progress.
static double limit_s(const struct communicator *communicator) {
    double deadline_s = communicator->device->deadline_s;
    if (!communicator->is_first) return deadline_s;
    return fmax(deadline_s, fmin(FIRST_S, FIRST_DEADLINES * deadline_s));
}

// Returns the result of a call once it is no longer in progress; ncclInProgress: not before the deadline. The
// clock is read before the state, so that a thread that loses its processor in between reads the state again.
static ncclResult_t settle(struct communicator *communicator, ncclResult_t result) {
    uint64_t since_ns = clock_ns();
    while (result == ncclInProgress) {
        uint64_t waited_ns = clock_ns() - since_ns;
        result = communicator_state(communicator);
        if (result != ncclInProgress || (double)waited_ns * 1e-9 > limit_s(communicator)) break;
        if (waited_ns > POLL_HARD_NS) usleep(POLL_US);
    }
    return result;
}

bool communicator_is_refusal(ncclResult_t result) {
    return result == ncclInvalidArgument || result == ncclInvalidUsage;
}

bool communicator_is_curable(ncclResult_t result) {
    return result == ncclInProgress || result == ncclUnhandledCudaError || result == ncclSystemError ||
           result == ncclRemoteError;
}

bool communicator_settled(struct communicator *communicator, ncclResult_t result, const char *what) {
    result = settle(communicator, result);
    communicator->result = result;
    if (result == ncclSuccess) return true;
    if (result == ncclInProgress) {
        snprintf(communicator->problem, REASON_SIZE, "NCCL, %s: no answer within %g s", what,
                 limit_s(communicator));
    } else {
        snprintf(communicator->problem, REASON_SIZE, "NCCL, %s: %s", what, nccl.ncclGetErrorString(result));
    }
    return false;
}

// Sets an environment variable of NCCL to a word of a tuner's file, without the "_" that the word has there.
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

// Collective. The environment in which a communicator is made chooses its algorithm and protocol. Of ranks
// that are threads of a process, one sets it for all.
static void set_environment(const struct communicator *communicator, bool set) {
    struct group *group = communicator->device->group;
    bool mine = group->rank == 0 || !group->shares_process;
    if (communicator->detail->algorithm[0] == '\0') return;
    group_barrier(group);
    if (mine && set) {
        set_choice("NCCL_ALGO", communicator->detail->algorithm);
        set_choice("NCCL_PROTO", communicator->detail->protocol);
    } else if (mine) {
        unsetenv("NCCL_ALGO");
        unsetenv("NCCL_PROTO");
    }
    group_barrier(group);
}

static bool make(struct communicator *communicator) {
    struct group *group = communicator->device->group;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = {{0}};
    config.blocking = communicator->blocks;
    if (communicator->detail->channels > 0) config.minCTAs = config.maxCTAs = communicator->detail->channels;
    long status = group->rank == 0 ? (long)nccl.ncclGetUniqueId(&id) : (long)ncclSuccess;
    if (group_max(group, (double)status) > 0) {
        snprintf(communicator->problem, REASON_SIZE, "NCCL finds no address for its ranks");
        return false;
    }
    group_broadcast(group, 0, &id, sizeof id);
    set_environment(communicator, true);
    ncclComm_t comm = NULL;
    ncclResult_t result = nccl.ncclCommInitRankConfig(&comm, group->size, id, group->rank, &config);
    communicator_enter(communicator);
    communicator->comm = comm;
    communicator_leave(communicator);
    bool made = communicator_settled(communicator, result, "making a communicator");
    if (!made) communicator_give_up(communicator);
    set_environment(communicator, false);
    return made;
}

// A rank that failed at once waits for ranks that are still connecting.
bool communicator_make(struct communicator *communicator) {
    struct device *device = communicator->device;
    double timeout_s = device->group->timeout_s;
    communicator->is_first = !device->has_tried_nccl;
    device->has_tried_nccl = true;
    device->group->timeout_s = fmax(timeout_s, limit_s(communicator) + device->deadline_s);
    bool made = communicator_all(communicator, make(communicator));
    device->group->timeout_s = timeout_s;
    communicator->is_first = false;
    return made;
}

// ---- symmetric memory --------------------------------------------------------------------------------

long communicator_log_end(void) {
    FILE *log = fopen(nccl.log_path, "r");
    long end = 0;
    if (log == NULL) return 0;
    if (fseek(log, 0, SEEK_END) == 0) end = ftell(log);
    fclose(log);
    return end;
}

bool communicator_log_has_symmetric(long from) {
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

bool communicator_register_window(struct communicator *communicator) {
    struct device *device = communicator->device;
    void *arena = (void *)device->arena.of[device->group->rank];
    ncclResult_t result = ncclInvalidUsage;
    ncclComm_t comm = communicator_enter(communicator);
    if (comm != NULL) {
        nccl.ncclGroupStart();
        result = nccl.ncclCommWindowRegister(comm, arena, device->arena.bytes, &communicator->window,
                                             NCCL_WIN_COLL_SYMMETRIC);
        ncclResult_t ended = nccl.ncclGroupEnd();
        if (result == ncclSuccess) result = ended;
    }
    communicator_leave(communicator);
    if (!communicator_settled(communicator, result, "registering a window")) return false;
    if (communicator->window != NULL) return true;
    snprintf(communicator->problem, REASON_SIZE, "NCCL has no symmetric windows here");
    communicator->is_final = true;
    return false;
}

// Returns whether there is a communicator, without registered memory.
static bool end_window(struct communicator *communicator) {
    ncclResult_t result = ncclSuccess;
    ncclComm_t comm = communicator_enter(communicator);
    if (comm != NULL && communicator->window != NULL)
        result = nccl.ncclCommWindowDeregister(comm, communicator->window);
    communicator_leave(communicator);
    return comm != NULL && communicator_settled(communicator, result, "the window's end");
}

static bool finalize(struct communicator *communicator) {
    ncclComm_t comm = communicator_enter(communicator);
    ncclResult_t result = comm != NULL ? nccl.ncclCommFinalize(comm) : ncclInvalidUsage;
    communicator_leave(communicator);
    return communicator_settled(communicator, result, "the end");
}

void communicator_close(struct communicator *communicator) {
    device_drop_graphs(communicator->device);
    if (end_window(communicator) && finalize(communicator)) {
        ncclComm_t comm = communicator_enter(communicator);
        communicator->comm = NULL; // nccl_abort_all must not abort it
        communicator_leave(communicator);
        if (comm != NULL) nccl.ncclCommDestroy(comm);
    }
    communicator_give_up(communicator);
    communicator_drop(communicator);
}

bool communicator_all(struct communicator *communicator, bool right) {
    if (group_min(communicator->device->group, right) != 0) return true;
    if (right) snprintf(communicator->problem, REASON_SIZE, "NCCL failed on another rank");
    return false;
}
