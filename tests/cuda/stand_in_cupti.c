// A stand-in for libcupti.so beside that of the driver: tells of what the libraries' stand-ins ran, by the
// host's clock. Records come in two buffers, kernels first. STAND_IN: cupti_old cupti_held
// cupti_slow_clock.
#include <cupti.h>
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
static CUpti_ActivityExternalCorrelation links[MOST];
static size_t kernel_count, link_count;
static uint64_t id; // that launches are for; 0: none
static uint32_t correlation;
static int is_enabled;

static void on_end(unsigned of, unsigned long long from_ns, unsigned long long to_ns) {
    if (!is_enabled || kernel_count == MOST) return;
    CUpti_ActivityKernel9 *kernel = &kernels[kernel_count++];
    memset(kernel, 0, sizeof *kernel);
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->start = from_ns;
    kernel->end = to_ns;
    kernel->correlationId = of;
    kernel->name = "stand_in_kernel";
}

static unsigned on_launch(void) {
    if (!is_enabled || id == 0 || link_count == MOST) return 0;
    CUpti_ActivityExternalCorrelation *link = &links[link_count++];
    memset(link, 0, sizeof *link);
    link->kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    link->externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    link->externalId = id;
    link->correlationId = ++correlation;
    return correlation;
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
    return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION
               ? CUPTI_SUCCESS
               : CUPTI_ERROR_INVALID_KIND;
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
    send(links, link_count, sizeof *links);
    kernel_count = link_count = 0;
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
