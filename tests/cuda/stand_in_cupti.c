// A stand-in for libcupti.so beside that of the driver: tells of what the libraries' stand-ins ran, by the
// host's clock. Records come in buffers, kernels first. STAND_IN: cupti_old cupti_held cupti_slow_clock
// cupti_split (what was one launch is a memset and two kernels).
#include <cupti.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void stand_in_watch(unsigned (*on_launch)(void),
                    void (*on_end)(unsigned, unsigned long long, unsigned long long));
int stand_in_number(const char *name, int n, int otherwise);

enum { MOST = 4096 };

static CUpti_BuffersCallbackRequestFunc ask;
static CUpti_BuffersCallbackCompleteFunc give;
static CUpti_ActivityKernel9 kernels[MOST];
static CUpti_ActivityMemset4 memsets[MOST];
static CUpti_ActivityExternalCorrelation links[MOST];
static size_t kernel_count, memset_count, link_count;
static uint64_t id; // that launches are for; 0: none
static uint32_t correlation;
static int is_enabled;

static void add_kernel(const char *name, unsigned of, unsigned long long from_ns, unsigned long long to_ns,
                       int32_t blocks) {
    if (kernel_count == MOST) return;
    CUpti_ActivityKernel9 *kernel = &kernels[kernel_count++];
    memset(kernel, 0, sizeof *kernel);
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->start = from_ns;
    kernel->end = to_ns;
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
    if (memset_count == MOST) return;
    CUpti_ActivityMemset4 *set = &memsets[memset_count++];
    memset(set, 0, sizeof *set);
    set->kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set->start = set->end = at_ns;
    set->correlationId = of;
    set->contextId = 1;
    set->bytes = 512;
}

static int is_split(void) {
    return stand_in_number("cupti_split", 0, 0) != 0;
}

static void on_end(unsigned of, unsigned long long from_ns, unsigned long long to_ns) {
    if (!is_enabled) return;
    unsigned long long middle_ns = is_split() ? from_ns + (to_ns - from_ns) / 2 : to_ns;
    add_kernel("stand_in_kernel", of, from_ns, middle_ns, 2);
    if (!is_split()) return;
    add_memset(of + 1, from_ns);
    add_kernel("stand_in_reduce", of + 2, middle_ns, to_ns, 4);
}

static void add_link(void) {
    if (link_count == MOST) return;
    CUpti_ActivityExternalCorrelation *link = &links[link_count++];
    memset(link, 0, sizeof *link);
    link->kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    link->externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    link->externalId = id;
    link->correlationId = ++correlation;
}

static unsigned on_launch(void) {
    if (!is_enabled || id == 0) return 0;
    for (int i = is_split() ? 3 : 1; i > 0; i--) add_link();
    return is_split() ? correlation - 2 : correlation;
}

CUptiResult cuptiGetVersion(uint32_t *version) {
    *version = stand_in_number("cupti_old", 0, 0) != 0 ? 120000 : CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **words) {
    *words = result == CUPTI_SUCCESS ? "no error" : "an error of the stand-in";
    return CUPTI_SUCCESS;
}

// cupti_slow_clock=N: all but every Nth reading come late, as on a machine that has other things to do.
CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    static int count;
    struct timespec now;
    int every = stand_in_number("cupti_slow_clock", 0, 0);
    if (every != 0 && ++count % every != 0) usleep(2000);
    clock_gettime(CLOCK_MONOTONIC, &now);
    *timestamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    (void)subscriber;
    stand_in_watch(NULL, NULL);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
    ask = requested;
    give = completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    is_enabled = 1;
    bool is_known = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_MEMCPY ||
                    kind == CUPTI_ACTIVITY_KIND_MEMSET || kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    return is_known ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    (void)kind;
    is_enabled = 0;
    return CUPTI_SUCCESS;
}

// Whole records behind each other, each as large as a kernel's.
static void send(const void *records, size_t count, size_t size) {
    uint8_t *buffer;
    size_t room, most, filled = 0;
    ask(&buffer, &room, &most);
    for (size_t i = 0; i < count && filled + sizeof *kernels <= room; i++, filled += sizeof *kernels)
        memcpy(buffer + filled, (const char *)records + i * size, size);
    give(NULL, 0, buffer, room, filled);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    send(kernels, kernel_count, sizeof *kernels);
    send(memsets, memset_count, sizeof *memsets);
    send(links, link_count, sizeof *links);
    kernel_count = memset_count = link_count = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, CUpti_Activity **record) {
    uint8_t *next = *record == NULL ? buffer : (uint8_t *)*record + sizeof *kernels;
    if (next + sizeof *kernels > buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
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
