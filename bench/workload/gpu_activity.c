// CUPTI's activity records; see gpu_activity.h. Kernels and copies have a correlation, and records of their
// own say for what id a correlation was; either may come first.
#include "workload/gpu_activity.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/group.h"

enum { BUFFER_BYTES = 1 << 20, ALIGNMENT = 8, CLOCK_READINGS = 16 };

#define CUPTI_FUNCTIONS(X)                                                                                   \
    X(cuptiGetVersion)                                                                                       \
    X(cuptiGetResultString)                                                                                  \
    X(cuptiGetTimestamp)                                                                                     \
    X(cuptiSubscribe)                                                                                        \
    X(cuptiUnsubscribe)                                                                                      \
    X(cuptiActivityRegisterCallbacks)                                                                        \
    X(cuptiActivityEnable)                                                                                   \
    X(cuptiActivityDisable)                                                                                  \
    X(cuptiActivityFlushAll)                                                                                 \
    X(cuptiActivityGetNextRecord)                                                                            \
    X(cuptiActivityPushExternalCorrelationId)                                                                \
    X(cuptiActivityPopExternalCorrelationId)

static struct {
#define MEMBER(name) __typeof__(&(name)) name;
    CUPTI_FUNCTIONS(MEMBER)
#undef MEMBER
    CUpti_SubscriberHandle subscriber;
} cupti;

// Both of what a launch was for and of what ran, by correlation.
struct record {
    uint32_t correlation;
    uint64_t id;      // 0: it tells of work
    struct work work; // its times are of CUPTI's clock
};

static struct {
    pthread_mutex_t mutex; // buffers are completed by a thread of CUPTI's
    struct record *records;
    size_t count, room;
    bool is_lost;
    char **names;
    size_t name_count;
} taken = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// ---- records --------------------------------------------------------------------------------------------

// A copy of a name that stays; there are few.
static const char *keep_name(const char *name) {
    for (size_t i = 0; i < taken.name_count; i++) {
        if (strcmp(taken.names[i], name) == 0) return taken.names[i];
    }
    char **names = realloc(taken.names, (taken.name_count + 1) * sizeof *names);
    if (names == NULL) return NULL;
    taken.names = names;
    names[taken.name_count] = strdup(name);
    return names[taken.name_count++];
}

static void add(struct record record) {
    if (taken.count == taken.room) {
        size_t room = taken.room > 0 ? 2 * taken.room : 1024;
        struct record *records = realloc(taken.records, room * sizeof *records);
        taken.is_lost = taken.is_lost || records == NULL;
        if (records == NULL) return;
        taken.records = records;
        taken.room = room;
    }
    taken.records[taken.count++] = record;
}

static void add_kernel(const CUpti_ActivityKernel9 *kernel) {
    add((struct record){
        .correlation = kernel->correlationId,
        .work = {.kind = WORK_KERNEL,
                 .begin_ns = kernel->start,
                 .end_ns = kernel->end,
                 .name = kernel->name != NULL ? keep_name(kernel->name) : NULL,
                 .context = kernel->contextId,
                 .grid = {kernel->gridX, kernel->gridY, kernel->gridZ},
                 .block = {kernel->blockX, kernel->blockY, kernel->blockZ},
                 .registers = kernel->registersPerThread,
                 .shared_bytes = (uint32_t)(kernel->staticSharedMemory + kernel->dynamicSharedMemory)}});
}

static void add_memcpy(const CUpti_ActivityMemcpy5 *copy) {
    add((struct record){.correlation = copy->correlationId,
                        .work = {.kind = WORK_MEMCPY,
                                 .begin_ns = copy->start,
                                 .end_ns = copy->end,
                                 .context = copy->contextId,
                                 .bytes = copy->bytes}});
}

static void add_memset(const CUpti_ActivityMemset4 *set) {
    add((struct record){.correlation = set->correlationId,
                        .work = {.kind = WORK_MEMSET,
                                 .begin_ns = set->start,
                                 .end_ns = set->end,
                                 .context = set->contextId,
                                 .bytes = set->bytes}});
}

static void add_any(const CUpti_Activity *activity) {
    const void *at = activity;
    if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        add_kernel(at);
    } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        add_memcpy(at);
    } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        add_memset(at);
    } else if (activity->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        const CUpti_ActivityExternalCorrelation *link = at;
        add((struct record){.correlation = link->correlationId, .id = link->externalId});
    }
}

static void give_buffer(uint8_t **buffer, size_t *bytes, size_t *most_records) {
    *buffer = aligned_alloc(ALIGNMENT, BUFFER_BYTES);
    *bytes = *buffer != NULL ? BUFFER_BYTES : 0;
    *most_records = 0;
}

static void take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
    (void)context;
    (void)stream;
    (void)bytes;
    CUpti_Activity *activity = NULL;
    pthread_mutex_lock(&taken.mutex);
    while (cupti.cuptiActivityGetNextRecord(buffer, valid, &activity) == CUPTI_SUCCESS) add_any(activity);
    pthread_mutex_unlock(&taken.mutex);
    free(buffer);
}

// ---- opening --------------------------------------------------------------------------------------------

static const char *look_up_functions(void *library) {
#define LOOK_UP(name)                                                                                        \
    *(void **)&cupti.name = dlsym(library, #name);                                                           \
    if (cupti.name == NULL) return #name;
    CUPTI_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return NULL;
}

static bool load(char reason[], size_t reason_size) {
    char name[32];
    snprintf(name, sizeof name, "libcupti.so.%d", CUDA_VERSION / 1000);
    void *library = dlopen(name, RTLD_NOW);
    if (library == NULL) {
        snprintf(reason, reason_size, "no CUPTI (%s)", name);
        return false;
    }
    const char *missing = look_up_functions(library);
    uint32_t version = 0;
    if (missing == NULL) cupti.cuptiGetVersion(&version);
    if (missing == NULL && version >= CUPTI_API_VERSION) return true;
    snprintf(reason, reason_size, "CUPTI is too old: version %u, and %d is needed", version,
             CUPTI_API_VERSION);
    return false;
}

static void no_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *what) {
    (void)data;
    (void)domain;
    (void)id;
    (void)what;
}

// CUPTI has one user at a time.
bool gpu_activity_open(char reason[], size_t reason_size) {
    const char *words = "it does not say why";
    if (!load(reason, reason_size)) return false;
    CUptiResult result = cupti.cuptiSubscribe(&cupti.subscriber, (CUpti_CallbackFunc)no_callback, NULL);
    if (result == CUPTI_SUCCESS) {
        result = cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
        if (result == CUPTI_SUCCESS && gpu_activity_begin() && gpu_activity_end()) return true;
        if (result == CUPTI_SUCCESS) result = CUPTI_ERROR_NOT_INITIALIZED;
        cupti.cuptiUnsubscribe(cupti.subscriber);
    }
    cupti.cuptiGetResultString(result, &words);
    snprintf(reason, reason_size, "%s: %s",
             result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI is held by another profiler"
                                                                      : "CUPTI does not start",
             words);
    return false;
}

void gpu_activity_close(void) {
    cupti.cuptiUnsubscribe(cupti.subscriber);
    for (size_t i = 0; i < taken.name_count; i++) free(taken.names[i]);
    free(taken.names);
    free(taken.records);
    taken.names = NULL;
    taken.records = NULL;
    taken.name_count = taken.count = taken.room = 0;
}

// ---- recording ------------------------------------------------------------------------------------------

static const CUpti_ActivityKind recorded[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                              CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                              CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
enum { RECORDED = sizeof recorded / sizeof recorded[0] };

bool gpu_activity_begin(void) {
    bool is_on = true;
    taken.count = 0;
    taken.is_lost = false;
    for (int i = 0; i < RECORDED; i++)
        is_on = cupti.cuptiActivityEnable(recorded[i]) == CUPTI_SUCCESS && is_on;
    return is_on;
}

bool gpu_activity_end(void) {
    bool is_well = cupti.cuptiActivityFlushAll(0) == CUPTI_SUCCESS;
    for (int i = RECORDED - 1; i >= 0; i--)
        is_well = cupti.cuptiActivityDisable(recorded[i]) == CUPTI_SUCCESS && is_well;
    return is_well && !taken.is_lost;
}

void gpu_activity_enter(uint64_t id) {
    cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
}

void gpu_activity_leave(void) {
    uint64_t id;
    cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
}

// Those of one correlation together, what it was for first.
static int by_correlation(const void *a, const void *b) {
    const struct record *one = a, *other = b;
    if (one->correlation != other->correlation) return one->correlation < other->correlation ? -1 : 1;
    return (one->id == 0) - (other->id == 0);
}

// Both clocks at one moment: of several readings of CUPTI's between two of the host's the one with the host's
// closest together, for a thread that is moved off its core between them reads two moments.
static bool read_clocks(uint64_t *here, uint64_t *there) {
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < CLOCK_READINGS; i++) {
        uint64_t reading = 0, before = clock_ns();
        if (cupti.cuptiGetTimestamp(&reading) != CUPTI_SUCCESS) return false;
        uint64_t width_ns = clock_ns() - before;
        if (width_ns >= least_ns) continue;
        least_ns = width_ns;
        *here = before + width_ns / 2;
        *there = reading;
    }
    return true;
}

void gpu_activity_each(void (*take)(void *context, const struct work *work), void *context) {
    uint64_t now = 0, id = 0, here = 0;
    if (!read_clocks(&here, &now)) return;
    pthread_mutex_lock(&taken.mutex);
    qsort(taken.records, taken.count, sizeof *taken.records, by_correlation);
    for (size_t i = 0; i < taken.count; i++) {
        const struct record *record = &taken.records[i];
        bool is_first = i == 0 || record[-1].correlation != record->correlation;
        if (is_first) id = 0;
        if (record->id != 0) id = record->id;
        if (record->id != 0 || id == 0) continue;
        struct work work = record->work;
        work.action = id;
        work.begin_ns = here - (now - work.begin_ns);
        work.end_ns = here - (now - work.end_ns);
        take(context, &work);
    }
    taken.count = 0;
    pthread_mutex_unlock(&taken.mutex);
}
