// CUPTI's activity records; see gpu_activity.h. Kernels and copies have a correlation, and separate records
// assign an id to a correlation; either may come first. CUPTI writes an id's record only before that of a
// call of the runtime or the driver. So both kinds of calls are recorded: cuBLASLt launches by the runtime,
// NCCL by the driver.
#include "gpu_activity.h"

#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libraries/functions.h"
#include "ranks/group.h"

enum { BUFFER_BYTES = 1 << 20, ALIGNMENT = 8, CLOCK_READINGS = 16 };

// CUPTI may deliver records late, so they are flushed repeatedly, with pauses. An action may have launched
// more than it needs: after STILL_FLUSHES flushes without new records, a forced flush fetches the buffers
// that are held back.
enum { FLUSHES = 100, STILL_FLUSHES = 8, BETWEEN_FLUSHES_NS = 2000000 };

// The tolerance between the clocks of a GPU and of the host, as CUPTI converts them and as a busy host reads
// them. It concerns times only; ids show to which step a record belongs.
enum { CLOCKS_DIFFER_NS = 1000000 };

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
    X(cuptiActivityGetNumDroppedRecords)                                                                     \
    X(cuptiActivityPushExternalCorrelationId)                                                                \
    X(cuptiActivityPopExternalCorrelationId)

static struct {
    CUPTI_FUNCTIONS(FUNCTION_MEMBER)
    CUpti_SubscriberHandle subscriber;
} cupti;

// The id of a correlation, the call that launched it, and what ran; sorted in this order.
enum record_kind { RECORD_ID, RECORD_CALL, RECORD_ACTIVITY };
struct record {
    uint32_t correlation;
    enum record_kind kind;
    uint64_t id;
    struct gpu_activity activity; // with times of CUPTI's clock; of a call only the times
};

static struct {
    pthread_mutex_t mutex; // buffers are completed by a thread of CUPTI's
    struct record *records;
    size_t count, room;
    bool is_open;        // else buffers are ignored
    const char *problem; // NULL: all records were kept
    char **names;
    size_t name_count;
} taken = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// The number of this recording, in the upper half of the ids for CUPTI, so that no id occurs twice.
static uint64_t recording;

// One moment on both clocks.
static struct { uint64_t here, there; } moment;

// ---- records --------------------------------------------------------------------------------------------

static const char no_memory[] = "has no memory for its records";

// Returns a copy that stays; kernels have few names.
static const char *keep_name(const char *name) {
    for (size_t i = 0; i < taken.name_count; i++) {
        if (strcmp(taken.names[i], name) == 0) return taken.names[i];
    }
    char **names = realloc(taken.names, (taken.name_count + 1) * sizeof *names);
    if (names != NULL) taken.names = names;
    char *kept = names != NULL ? strdup(name) : NULL;
    if (kept == NULL)
        taken.problem = no_memory;
    else
        names[taken.name_count++] = kept;
    return kept;
}

static void add(struct record record) {
    if (taken.count == taken.room) {
        size_t room = taken.room > 0 ? 2 * taken.room : 1024;
        struct record *records = realloc(taken.records, room * sizeof *records);
        if (records == NULL) taken.problem = no_memory;
        if (records == NULL) return;
        taken.records = records;
        taken.room = room;
    }
    taken.records[taken.count++] = record;
}

// Newer records only extend older ones: the fields that are read here have the same offsets in records of
// this header's CUPTI and of newer ones.
#if CUPTI_API_VERSION >= 130000
#define STANDS(of, as_in, member)                                                                            \
    _Static_assert(offsetof(of, member) == offsetof(as_in, member), #of " has another " #member)
#define STANDS_AS_IN(of, as_in)                                                                              \
    STANDS(of, as_in, start);                                                                                \
    STANDS(of, as_in, end);                                                                                  \
    STANDS(of, as_in, contextId);                                                                            \
    STANDS(of, as_in, correlationId)
STANDS_AS_IN(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5);
STANDS(CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy5, bytes);
STANDS_AS_IN(CUpti_ActivityKernel10, CUpti_ActivityKernel9);
STANDS(CUpti_ActivityKernel10, CUpti_ActivityKernel9, name);
STANDS(CUpti_ActivityKernel10, CUpti_ActivityKernel9, gridX);
STANDS(CUpti_ActivityKernel10, CUpti_ActivityKernel9, blockZ);
STANDS(CUpti_ActivityKernel10, CUpti_ActivityKernel9, registersPerThread);
STANDS(CUpti_ActivityKernel10, CUpti_ActivityKernel9, staticSharedMemory);
STANDS(CUpti_ActivityKernel10, CUpti_ActivityKernel9, dynamicSharedMemory);
#endif

static void add_kernel(const CUpti_ActivityKernel9 *kernel) {
    add((struct record){
        .correlation = kernel->correlationId,
        .kind = RECORD_ACTIVITY,
        .activity = {.kind = ACTIVITY_KERNEL,
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
                        .kind = RECORD_ACTIVITY,
                        .activity = {.kind = ACTIVITY_MEMCPY,
                                     .begin_ns = copy->start,
                                     .end_ns = copy->end,
                                     .context = copy->contextId,
                                     .bytes = copy->bytes}});
}

static void add_memset(const CUpti_ActivityMemset4 *set) {
    add((struct record){.correlation = set->correlationId,
                        .kind = RECORD_ACTIVITY,
                        .activity = {.kind = ACTIVITY_MEMSET,
                                     .begin_ns = set->start,
                                     .end_ns = set->end,
                                     .context = set->contextId,
                                     .bytes = set->bytes}});
}

static void add_call(const CUpti_ActivityAPI *call) {
    add((struct record){.correlation = call->correlationId,
                        .kind = RECORD_CALL,
                        .activity = {.begin_ns = call->start, .end_ns = call->end}});
}

static void add_id(const CUpti_ActivityExternalCorrelation *link) {
    if (link->externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) return;
    add((struct record){.correlation = link->correlationId, .kind = RECORD_ID, .id = link->externalId});
}

static void add_any(const CUpti_Activity *activity) {
    const void *at = activity;
    switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: add_kernel(at); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: add_memcpy(at); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: add_memset(at); break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: add_call(at); break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: add_id(at); break;
    default: break;
    }
}

static void give_buffer(uint8_t **buffer, size_t *bytes, size_t *most_records) {
    *buffer = aligned_alloc(ALIGNMENT, BUFFER_BYTES);
    *bytes = *buffer != NULL ? BUFFER_BYTES : 0;
    *most_records = 0;
    if (*buffer != NULL) return;
    pthread_mutex_lock(&taken.mutex);
    taken.problem = no_memory;
    pthread_mutex_unlock(&taken.mutex);
}

static void take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
    (void)context;
    (void)stream;
    (void)bytes;
    CUpti_Activity *activity = NULL;
    CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED;
    pthread_mutex_lock(&taken.mutex);
    while (taken.is_open && valid > 0 &&
           (result = cupti.cuptiActivityGetNextRecord(buffer, valid, &activity)) == CUPTI_SUCCESS)
        add_any(activity);
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) taken.problem = "gave records that cannot be read";
    pthread_mutex_unlock(&taken.mutex);
    free(buffer);
}

// ---- recording ------------------------------------------------------------------------------------------

// Calls are last, because recording them ends first.
static const CUpti_ActivityKind recorded[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                              CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                              CUPTI_ACTIVITY_KIND_MEMCPY,
                                              CUPTI_ACTIVITY_KIND_MEMSET,
                                              CUPTI_ACTIVITY_KIND_RUNTIME,
                                              CUPTI_ACTIVITY_KIND_DRIVER};
enum { CALLS = 4, RECORDED = sizeof recorded / sizeof recorded[0] };

static int recorded_count; // how many of them are recorded now

static void record_up_to(int count) {
    for (; recorded_count < count; recorded_count++) {
        if (cupti.cuptiActivityEnable(recorded[recorded_count]) != CUPTI_SUCCESS) return;
    }
    for (; recorded_count > count; recorded_count--) {
        if (cupti.cuptiActivityDisable(recorded[recorded_count - 1]) != CUPTI_SUCCESS) return;
    }
}

// Disables all of them, even if one fails, and flushes the buffers that are held back while their callbacks
// exist.
static void stop_at_once(void) {
    while (recorded_count > 0) cupti.cuptiActivityDisable(recorded[--recorded_count]);
    cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

// How many records CUPTI has dropped since the last call.
static size_t count_dropped(void) {
    size_t count = 0;
    return cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &count) == CUPTI_SUCCESS ? count : 0;
}

bool gpu_activity_begin(void) {
    pthread_mutex_lock(&taken.mutex);
    taken.count = 0;
    taken.problem = NULL;
    pthread_mutex_unlock(&taken.mutex);
    recording++;
    count_dropped();
    record_up_to(RECORDED);
    if (recorded_count == RECORDED) return true;
    stop_at_once();
    return false;
}

void gpu_activity_enter(uint32_t id) {
    cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                                 recording << 32 | (id + 1));
}

void gpu_activity_leave(void) {
    uint64_t id;
    cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
}

void gpu_activity_launched(void) {
    record_up_to(CALLS);
}

static bool stop(void) {
    bool is_flushed = cupti.cuptiActivityFlushAll(0) == CUPTI_SUCCESS;
    record_up_to(0);
    return is_flushed && recorded_count == 0;
}

// ---- opening --------------------------------------------------------------------------------------------

static bool load(char reason[], size_t reason_size) {
    char name[32];
    snprintf(name, sizeof name, "libcupti.so.%d", CUDA_VERSION / 1000);
    void *library = dlopen(name, RTLD_NOW);
    if (library == NULL) {
        snprintf(reason, reason_size, "no CUPTI (%s)", name);
        return false;
    }
    const char *missing = functions_look_up(library, FUNCTION_NAMES(CUPTI_FUNCTIONS), &cupti);
    uint32_t version = 0;
    if (missing == NULL) cupti.cuptiGetVersion(&version);
    if (missing == NULL && version >= CUPTI_API_VERSION) return true;
    snprintf(reason, reason_size, "CUPTI is too old: version %u; version %d is required", version,
             CUPTI_API_VERSION);
    return false;
}

static void no_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *what) {
    (void)data;
    (void)domain;
    (void)id;
    (void)what;
}

// CUPTI allows one user at a time.
bool gpu_activity_open(char reason[], size_t reason_size) {
    const char *error = "unknown error";
    if (!load(reason, reason_size)) return false;
    CUptiResult result = cupti.cuptiSubscribe(&cupti.subscriber, (CUpti_CallbackFunc)no_callback, NULL);
    if (result == CUPTI_SUCCESS) {
        pthread_mutex_lock(&taken.mutex);
        taken.is_open = true;
        pthread_mutex_unlock(&taken.mutex);
        result = cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
        if (result == CUPTI_SUCCESS && gpu_activity_begin() && stop()) return true;
        if (result == CUPTI_SUCCESS) result = CUPTI_ERROR_NOT_INITIALIZED;
        gpu_activity_close();
    }
    cupti.cuptiGetResultString(result, &error);
    snprintf(reason, reason_size, "%s: %s",
             result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI is in use by another profiler"
                                                                      : "CUPTI does not start",
             error);
    return false;
}

// Unsubscribing does not stop recording, and buffers may still come later.
void gpu_activity_close(void) {
    stop_at_once();
    cupti.cuptiUnsubscribe(cupti.subscriber);
    pthread_mutex_lock(&taken.mutex);
    taken.is_open = false;
    for (size_t i = 0; i < taken.name_count; i++) free(taken.names[i]);
    free(taken.names);
    free(taken.records);
    taken.names = NULL;
    taken.records = NULL;
    taken.name_count = taken.count = taken.room = 0;
    pthread_mutex_unlock(&taken.mutex);
}

// ---- reading the records --------------------------------------------------------------------------------

static int by_correlation(const void *a, const void *b) {
    const struct record *one = a, *other = b;
    if (one->correlation != other->correlation) return one->correlation < other->correlation ? -1 : 1;
    return (int)one->kind - (int)other->kind;
}

// Reads both clocks at one moment: CUPTI's between two readings of the host's, several times; the closest
// pair counts, because a thread that loses its core between them reads two different moments.
static bool read_clocks(void) {
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < CLOCK_READINGS; i++) {
        uint64_t reading = 0, before = clock_ns();
        if (cupti.cuptiGetTimestamp(&reading) != CUPTI_SUCCESS) return false;
        uint64_t width_ns = clock_ns() - before;
        if (width_ns >= least_ns) continue;
        least_ns = width_ns;
        moment.here = before + width_ns / 2;
        moment.there = reading;
    }
    return true;
}

// Converts a time to the host's clock; a time that was not recorded stays 0.
static uint64_t here_of(uint64_t there_ns) {
    return there_ns > 0 ? moment.here - (moment.there - there_ns) : 0;
}

// Calls `take` for all kernels and copies of this recording.
static void walk(void (*take)(void *context, const struct gpu_activity *activity), void *context) {
    uint64_t id = 0;
    struct gpu_activity call = {0};
    pthread_mutex_lock(&taken.mutex);
    qsort(taken.records, taken.count, sizeof *taken.records, by_correlation);
    for (size_t i = 0; i < taken.count; i++) {
        const struct record *record = &taken.records[i];
        bool is_first = i == 0 || record[-1].correlation != record->correlation;
        if (is_first) id = 0;
        if (is_first) call = (struct gpu_activity){0};
        if (record->kind == RECORD_ID && record->id >> 32 == recording) id = record->id & UINT32_MAX;
        if (record->kind == RECORD_CALL) call = record->activity;
        if (record->kind != RECORD_ACTIVITY || id == 0) continue;
        struct gpu_activity activity = record->activity;
        activity.action = id - 1;
        activity.begin_ns = here_of(activity.begin_ns);
        activity.end_ns = here_of(activity.end_ns);
        activity.launch_ns = here_of(call.begin_ns);
        activity.launched_ns = here_of(call.end_ns);
        take(context, &activity);
    }
    pthread_mutex_unlock(&taken.mutex);
}

// The records of each id.
struct finding {
    const struct gpu_activity_needs *needs;
    unsigned char *found; // by id, flags of the next enum
};
enum { FOUND_ACTIVITY = 1, FOUND_KERNEL = 2, FOUND_NO_TIME = 4, FOUND_OUTSIDE = 8 };

static void find(void *context, const struct gpu_activity *activity) {
    const struct finding *finding = context;
    const struct gpu_activity_needs *needs = finding->needs;
    if (activity->action >= needs->count) return;
    bool has_times = activity->begin_ns > 0 && activity->begin_ns <= activity->end_ns;
    bool is_inside = activity->begin_ns + CLOCKS_DIFFER_NS >= needs->begin_ns &&
                     activity->end_ns <= needs->end_ns + CLOCKS_DIFFER_NS;
    int time = !has_times ? FOUND_NO_TIME : !is_inside ? FOUND_OUTSIDE : 0;
    finding->found[activity->action] |=
        (unsigned char)(time | FOUND_ACTIVITY | (activity->kind == ACTIVITY_KERNEL ? FOUND_KERNEL : 0));
}

static bool lacks(enum need need, unsigned char found) {
    static const unsigned char wanted[] = {
        [NEEDS_ACTIVITY] = FOUND_ACTIVITY, [NEEDS_KERNEL] = FOUND_KERNEL, [NEEDS_TIME] = 0};
    return (found & FOUND_NO_TIME) != 0 || (need != NEEDS_NOTHING && (found & wanted[need]) == 0);
}

// The need that remains of an id.
static enum need lacking(enum need need, unsigned char found) {
    if (lacks(need, found)) return need == NEEDS_NOTHING ? NEEDS_ACTIVITY : need;
    return (found & FOUND_OUTSIDE) != 0 ? NEEDS_TIME : NEEDS_NOTHING;
}

// Whether an id lacks what it needs in the records so far.
static bool any_lacks(const struct finding *finding) {
    const struct gpu_activity_needs *needs = finding->needs;
    memset(finding->found, 0, needs->count);
    walk(find, (void *)finding);
    for (size_t id = 0; id < needs->count; id++) {
        if (lacks(needs->needs[id], finding->found[id])) return true;
    }
    return false;
}

static size_t count_records(void) {
    pthread_mutex_lock(&taken.mutex);
    size_t count = taken.count;
    pthread_mutex_unlock(&taken.mutex);
    return count;
}

// Flushes buffers until no more come. CUPTI holds back buffers with incomplete records, which a forced flush
// at the end delivers as well.
static bool flush(const struct finding *finding) {
    static const struct timespec between = {.tv_nsec = BETWEEN_FLUSHES_NS};
    bool is_forced = false, is_lacking = true;
    size_t last = SIZE_MAX;
    for (int flushes = 1, still = 0; flushes < 2 * FLUSHES; flushes++) {
        uint32_t flag = is_forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0;
        if (cupti.cuptiActivityFlushAll(flag) != CUPTI_SUCCESS) return false;
        size_t count = count_records();
        still = count == last ? still + 1 : 0;
        if (count != last) is_lacking = any_lacks(finding);
        last = count;
        if (is_forced && still > 0) return true;
        bool force = !is_forced && (flushes >= FLUSHES || (still >= STILL_FLUSHES && !is_lacking));
        if (force) still = -1; // counts forced flushes from now on
        is_forced = is_forced || force;
        nanosleep(&between, NULL);
    }
    return false;
}

static const char *end(const struct finding *finding) {
    if (!read_clocks()) return "does not return the time";
    if (!flush(finding) || !stop()) return "does not end its recording";
    pthread_mutex_lock(&taken.mutex);
    const char *problem = taken.problem;
    pthread_mutex_unlock(&taken.mutex);
    return problem;
}

bool gpu_activity_end(const struct gpu_activity_needs *needs, char reason[], size_t reason_size) {
    struct finding finding = {.needs = needs, .found = calloc(needs->count + 1, 1)};
    const char *problem = finding.found != NULL ? end(&finding) : no_memory;
    if (problem != NULL) stop_at_once();
    size_t dropped = count_dropped();
    for (size_t id = 0; finding.found != NULL && id < needs->count; id++)
        needs->needs[id] = lacking(needs->needs[id], finding.found[id]);
    free(finding.found);
    if (problem != NULL) snprintf(reason, reason_size, "%s", problem);
    if (problem == NULL && dropped > 0) snprintf(reason, reason_size, "dropped %zu records", dropped);
    return problem == NULL && dropped == 0;
}

void gpu_activity_each(void (*take)(void *context, const struct gpu_activity *activity), void *context) {
    walk(take, context);
}
