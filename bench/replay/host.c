// Calls on the processor: the operands are where they were filled, and the clock is that of the system.
#include <malloc.h>
#include <time.h>

#include "cold.h"
#include "machine.h"
#include "processor.h"

static int open_threads;

double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

// What an op used is kept for the next one: memory that comes anew from the system is cleared page by page,
// and a library's scratch space would be that in every op.
static int open_host(int threads, char reason[REASON_SIZE]) {
    (void)reason;
    open_threads = threads;
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    return 0;
}

static int place(const struct operands *operands, struct operands *placed, char reason[REASON_SIZE]) {
    (void)reason;
    *placed = *operands;
    return 0;
}

static int forget(const struct operands *placed) {
    tensor_forget(&placed->out, open_threads);
    return 0;
}

static void make_cold(const struct operands *operands) {
    const struct tensor *const tensors[] = {&operands->a, &operands->b, &operands->c, &operands->out};
    enum { TENSORS = sizeof tensors / sizeof tensors[0] };
    struct range ranges[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        ranges[i] = (struct range){tensors[i]->data, tensors[i]->count * data_type_size(tensors[i]->type)};
    }
    cold_forget(ranges, TENSORS, open_threads);
}

static int time_call(const struct call *call, const struct operands *placed, bool is_cold, double *us) {
    if (is_cold) make_cold(placed);
    double from = now_us();
    int status = call->run(call->state);
    *us = now_us() - from;
    return status;
}

static int fetch(const struct operands *placed, const struct operands *operands) {
    (void)placed;
    (void)operands;
    return 0;
}

static bool is_lost(void) {
    return false;
}

// oneDNN's products in float32 are made for processors with AVX-512; elsewhere OpenBLAS's are faster.
static const struct library *library_at(int index) {
    bool prefers_onednn = false;
#if defined __x86_64__
    prefers_onednn = __builtin_cpu_supports("avx512f");
#endif
    if (index > 1) return NULL;
    return (index == 0) == prefers_onednn ? &library_onednn : &library_openblas;
}

const struct machine machine_host = {
    .name = "host",
    .library = library_at,
    .open = open_host,
    .describe = processor_name,
    .place = place,
    .forget = forget,
    .time = time_call,
    .fetch = fetch,
    .is_lost = is_lost,
};
