// A stand-in for libcupti.so beside that of the driver: records the work of the libraries' stand-ins, by the
// host's clock. Buffers have the records of kernels first. The external correlation of a launch comes before
// the record of its call; if calls of that kind are not recorded, there is none. Settings in STAND_IN:
//
//   cupti_old              its version is too old
//   cupti_held             another profiler uses it
//   cupti_slow_clock=N     all but every N-th reading of the clock take long, as on a busy machine
//   cupti_split            a launch is recorded as a memset and two kernels
//
// Settings for all ranks, or for the one of cupti_rank=R:
//
//   cupti_loses=N          the N-th record of work and all later ones are lost
//   cupti_loses_kernels    all records of kernels are lost, and those of memsets not
//   cupti_untimed=N        the N-th record of work and all later ones have no times
//   cupti_dropped=N        the N-th count of dropped records is 7
//   cupti_late=N           records of work are complete after N flushes, and come with the next one
//   cupti_second_late=N    the same for the second kernel of cupti_split alone
//   cupti_second_held      that kernel's records are complete, but come only with a forced flush
//   cupti_again            all records come once more with the next recording
//   cupti_past, cupti_jump=N, cupti_jumps=N   times are an hour too early: all; those of the N-th work; from
//                          the N-th on
//   cupti_off=US           times are too late by US
//   cupti_no_clock, cupti_unreadable   reading the clock, or records, fails
//   cupti_refuses=KIND     records of this kind cannot be enabled
#include <cupti.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void stand_in_watch(unsigned (*on_launch)(bool by_runtime),
                    void (*on_end)(unsigned, unsigned long long, unsigned long long));
int stand_in_number(const char *name, int n, int otherwise);

enum { MOST = 65536, KINDS = 64 };
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

// A record in a buffer: each has the size of the largest kind.
union place {
    CUpti_Activity any;
    kernel_record kernel;
    CUpti_ActivityMemset4 set;
    CUpti_ActivityExternalCorrelation link;
    CUpti_ActivityAPI call;
};
struct places {
    union place *places; // [MOST]
    size_t count;
};

static CUpti_BuffersCallbackRequestFunc ask;
static CUpti_BuffersCallbackCompleteFunc give;
// sent, old: for cupti_again, the records of this recording, and of the one before.
static struct places work, second, calls, sent, old;
static uint64_t id; // the external correlation id of launches; 0: none
static uint32_t correlation;
static bool is_enabled[KINDS];
static int works_seen; // records of work so far
static int flushes;    // since the last work

static bool is_here(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    int at = stand_in_number("cupti_rank", 0, -1);
    return at < 0 || (rank != NULL && atoi(rank) == at);
}

// A setting for this rank.
static int setting(const char *name) {
    return is_here() ? stand_in_number(name, 0, 0) : 0;
}

static unsigned long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

static union place *next_of(struct places *of) {
    if (of->places == NULL) of->places = calloc(MOST, sizeof *of->places);
    if (of->places == NULL || of->count == MOST) abort();
    union place *next = &of->places[of->count++];
    memset(next, 0, sizeof *next);
    return next;
}

static unsigned long long told(unsigned long long ns) {
    int from = setting("cupti_untimed");
    if (from > 0 && works_seen >= from) return 0;
    int jump = setting("cupti_jump"), jumps = setting("cupti_jumps");
    bool is_past = (jump > 0 && works_seen == jump) || (jumps > 0 && works_seen >= jumps);
    ns += (unsigned long long)setting("cupti_off") * 1000;
    return is_past || setting("cupti_past") ? ns - 3600000000000u : ns;
}

static bool is_lost(void) {
    int from = setting("cupti_loses");
    works_seen++;
    return from > 0 && works_seen >= from;
}

static void add_kernel(struct places *to, const char *name, unsigned of, unsigned long long from_ns,
                       unsigned long long to_ns, int32_t blocks) {
    if (!is_enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] || is_lost() || setting("cupti_loses_kernels"))
        return;
    kernel_record *kernel = &next_of(to)->kernel;
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->start = told(from_ns);
    kernel->end = told(to_ns);
    kernel->correlationId = of;
    kernel->name = name;
    kernel->contextId = 1;
    kernel->gridX = blocks;
    kernel->gridY = 3;
    kernel->gridZ = 1;
    kernel->blockX = 128;
    kernel->blockY = kernel->blockZ = 1;
    kernel->registersPerThread = 96;
    kernel->dynamicSharedMemory = 4096;
}

static void add_memset(unsigned of, unsigned long long at_ns) {
    if (!is_enabled[CUPTI_ACTIVITY_KIND_MEMSET] || is_lost()) return;
    CUpti_ActivityMemset4 *set = &next_of(&work)->set;
    set->kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set->start = set->end = told(at_ns);
    set->correlationId = of;
    set->contextId = 1;
    set->bytes = 512;
}

static int is_split(void) {
    return stand_in_number("cupti_split", 0, 0) != 0;
}

static void on_end(unsigned of, unsigned long long from_ns, unsigned long long to_ns) {
    unsigned long long middle_ns = is_split() ? from_ns + (to_ns - from_ns) / 2 : to_ns;
    flushes = 0;
    add_kernel(&work, "stand_in_kernel", of, from_ns, middle_ns, 2);
    if (!is_split()) return;
    add_memset(of + 1, from_ns);
    add_kernel(&second, "stand_in_reduce", of + 2, middle_ns, to_ns, 4);
}

// Records a call that launches, after its external correlation.
static void add_call(CUpti_ActivityKind kind) {
    correlation++;
    if (!is_enabled[kind]) return;
    if (is_enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] && id != 0) {
        CUpti_ActivityExternalCorrelation *link = &next_of(&calls)->link;
        link->kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        link->externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
        link->externalId = id;
        link->correlationId = correlation;
    }
    CUpti_ActivityAPI *call = &next_of(&calls)->call;
    call->kind = kind;
    call->start = now_ns();
    do call->end = now_ns();
    while (call->end < call->start + 1000);
    call->correlationId = correlation;
}

static unsigned on_launch(bool by_runtime) {
    CUpti_ActivityKind kind = by_runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
    int count = is_split() ? 3 : 1;
    for (int i = 0; i < count; i++) add_call(kind);
    return correlation - (unsigned)count + 1;
}

CUptiResult cuptiGetVersion(uint32_t *version) {
    *version = stand_in_number("cupti_old", 0, 0) != 0 ? 1 : CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **words) {
    *words = result == CUPTI_SUCCESS ? "no error" : "an error of the stand-in";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    static int count;
    int every = stand_in_number("cupti_slow_clock", 0, 0);
    if (every != 0 && ++count % every != 0) usleep(2000);
    if (setting("cupti_no_clock")) return CUPTI_ERROR_UNKNOWN;
    *timestamp = now_ns();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data) {
    (void)callback;
    (void)data;
    *subscriber = NULL;
    if (stand_in_number("cupti_held", 0, 0) != 0) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    stand_in_watch(on_launch, on_end);
    return CUPTI_SUCCESS;
}

// Ends the program if records are still enabled: neither unsubscribing nor the end of the program disables
// them.
static void check_disabled(const char *when) {
    for (int kind = 0; kind < KINDS; kind++) {
        if (!is_enabled[kind]) continue;
        fprintf(stderr, "stand-in for CUPTI: records of kind %d are still made %s\n", kind, when);
        abort();
    }
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    (void)subscriber;
    check_disabled("after unsubscribing");
    return CUPTI_SUCCESS;
}

__attribute__((destructor)) static void check_at_exit(void) {
    check_disabled("at exit");
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
    ask = requested;
    give = completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    bool is_known = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_MEMCPY ||
                    kind == CUPTI_ACTIVITY_KIND_MEMSET || kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION ||
                    kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
    if (is_known && (int)kind == setting("cupti_refuses")) return CUPTI_ERROR_NOT_COMPATIBLE;
    if (is_known) is_enabled[kind] = true;
    if (kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        struct places empty = old;
        old = sent;
        sent = empty;
        sent.count = 0;
    }
    return is_known ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    if ((int)kind < 0 || (int)kind >= KINDS) return CUPTI_ERROR_INVALID_KIND;
    is_enabled[kind] = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
    static int count;
    (void)context;
    (void)stream;
    *dropped = ++count == setting("cupti_dropped") ? 7 : 0;
    return CUPTI_SUCCESS;
}

static void send(struct places *of) {
    uint8_t *buffer;
    size_t room, most;
    for (size_t at = 0, count; at < of->count; at += count) {
        ask(&buffer, &room, &most);
        count = room / sizeof *of->places < of->count - at ? room / sizeof *of->places : of->count - at;
        if (count == 0) abort();
        memcpy(buffer, of->places + at, count * sizeof *of->places);
        give(NULL, 0, buffer, room, count * sizeof *of->places);
    }
    for (size_t i = 0; of != &old && setting("cupti_again") && i < of->count; i++)
        *next_of(&sent) = of->places[i];
    of->count = 0;
}

static void forget_times(struct places *of) {
    for (size_t i = 0; i < of->count; i++) {
        union place *place = &of->places[i];
        if (place->any.kind == CUPTI_ACTIVITY_KIND_MEMSET)
            place->set.start = place->set.end = 0;
        else
            place->kernel.start = place->kernel.end = 0;
    }
}

// Incomplete records come only with a forced flush, without times.
static void flush(struct places *of, bool is_whole, bool is_held, bool is_forced) {
    if (!is_whole && is_forced) forget_times(of);
    if (is_forced || (is_whole && !is_held)) send(of);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    bool is_forced = flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
    int late = setting("cupti_late"), second_late = setting("cupti_second_late");
    flushes++;
    send(&old);
    flush(&work, flushes > late, false, is_forced);
    flush(&second, flushes > late && flushes > second_late, setting("cupti_second_held"), is_forced);
    send(&calls);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, CUpti_Activity **record) {
    uint8_t *next = *record == NULL ? buffer : (uint8_t *)*record + sizeof(union place);
    if (setting("cupti_unreadable")) return CUPTI_ERROR_UNKNOWN;
    if (next + sizeof(union place) > buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t of) {
    (void)kind;
    id = of;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last) {
    (void)kind;
    *last = id;
    id = 0;
    return CUPTI_SUCCESS;
}
