// Calls on the processor: operands are used where they were filled; times are by the system's clock.
#include <malloc.h>
#include <time.h>

#include "elements/processor.h"
#include "replay/cache_flush.h"
#include "replay/compute_device.h"

static int open_threads;

double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

// Freed memory is kept for the next op: the system clears new memory page by page, and a library's scratch
// space would be new memory in every op.
static int open_host(int threads, char reason[REASON_SIZE]) {
    (void)reason;
    open_threads = threads;
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    return 0;
}

static int load(const struct operands *operands, struct operands *loaded, char reason[REASON_SIZE]) {
    (void)reason;
    *loaded = *operands;
    return 0;
}

static int poison(const struct operands *loaded) {
    tensor_poison(&loaded->out, open_threads);
    return 0;
}

static void make_cold(const struct operands *operands) {
    const struct tensor *const tensors[] = {&operands->a, &operands->b, &operands->c, &operands->out};
    enum { TENSORS = sizeof tensors / sizeof tensors[0] };
    struct range ranges[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        ranges[i] = (struct range){tensors[i]->data, tensors[i]->count * data_type_size(tensors[i]->type)};
    }
    flush_caches(ranges, TENSORS, open_threads);
}

static int time_call(const struct prepared_op *prepared, const struct operands *loaded, bool is_cold,
                     double *us) {
    if (is_cold) make_cold(loaded);
    double from = now_us();
    int status = prepared->run(prepared->state);
    *us = now_us() - from;
    return status;
}

static int fetch(const struct operands *loaded, const struct operands *operands) {
    (void)loaded;
    (void)operands;
    return 0;
}

static bool is_lost(void) {
    return false;
}

// For products in float32 oneDNN comes first. Over the 137 shapes of a training step it took 0.83 of
// OpenBLAS's time with AVX2 (AMD EPYC 7003, two cores); the faster library for each shape would take 2 %
// less than oneDNN. With AVX-512 oneDNN was faster, too.
static const struct library *library_at(int index) {
    static const struct library *const libraries[] = {&library_onednn, &library_openblas};
    return index < 2 ? libraries[index] : NULL;
}

const struct compute_device device_host = {
    .name = "host",
    .library = library_at,
    .open = open_host,
    .describe = processor_name,
    .load = load,
    .poison = poison,
    .time = time_call,
    .fetch = fetch,
    .is_lost = is_lost,
};
