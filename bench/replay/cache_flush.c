// Cold caches; see cache_flush.h.
#include "cache_flush.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "parallel_for.h"

enum { LINE = 64, WORTH_A_THREAD = 4 << 20, ALIGNMENT = 2 << 20 };

// ---- other memory, read ---------------------------------------------------------------------------------

// Twice the largest cache.
static size_t size_of_other(void) {
    enum { OTHERWISE = 64 << 20, TIMES = 2 };
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return (cache > 0 ? (size_t)cache : OTHERWISE) * TIMES;
}

// Each thread reads all of it, since threads may have last-level caches of their own.
static void read_all(void *context, size_t from, size_t to) {
    const char *data = context;
    uint64_t total = 0;
    size_t size = to > from ? size_of_other() : 0;
    for (size_t i = 0; i + LINE <= size; i += LINE) {
        uint64_t word;
        memcpy(&word, data + i, sizeof word);
        total += word;
    }
    __asm__ volatile("" : : "r"(total)); // keeps the compiler from removing the loop
}

static void write_some(void *context, size_t from, size_t to) {
    memset((char *)context + from * LINE, 1, (to - from) * LINE);
}

static void read_other(int threads) {
    static char *other;
    size_t size = size_of_other();
    if (other == NULL) {
        other = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        if (other == NULL) return;
        madvise(other, size, MADV_HUGEPAGE);
        parallel_for(threads, size / LINE, write_some, other);
    }
    parallel_for(threads, (size_t)threads, read_all, other);
}

// ---- line by line ---------------------------------------------------------------------------------------

#if defined __x86_64__

#include <immintrin.h>

__attribute__((target("clflushopt"))) static void flush_lines(const char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) _mm_clflushopt((void *)(uintptr_t)(data + i));
}

static void flush_lines_in_order(const char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) _mm_clflush(data + i);
}

// CPUID leaf 7, EBX bit 23.
static bool has_clflushopt(void) {
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    return (b & (1u << 23)) != 0;
}

static void flush_some(void *context, size_t from, size_t to) {
    const struct range *range = context;
    const char *data = (const char *)range->data + from * LINE;
    size_t bytes = to * LINE < range->bytes ? (to - from) * LINE : range->bytes - from * LINE;
    if (has_clflushopt())
        flush_lines(data, bytes);
    else
        flush_lines_in_order(data, bytes);
    _mm_mfence();
}

static bool flush(const struct range *range, int threads) {
    struct range whole = *range;
    size_t lines = (range->bytes + LINE - 1) / LINE;
    parallel_for(range->bytes < WORTH_A_THREAD ? 1 : threads, lines, flush_some, &whole);
    return true;
}

#else

static bool flush(const struct range *range, int threads) {
    (void)range;
    (void)threads;
    return false;
}

#endif

// For such operands reading other memory is faster than flushing each line, and has the same effect.
static bool are_far_beyond_caches(const struct range ranges[], size_t count) {
    enum { TIMES = 4 };
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += ranges[i].bytes;
    return bytes > TIMES * size_of_other();
}

void flush_caches(const struct range ranges[], size_t count, int threads) {
    bool flushed = !are_far_beyond_caches(ranges, count);
    for (size_t i = 0; i < count && flushed; i++) {
        if (ranges[i].bytes > 0) flushed = flush(&ranges[i], threads);
    }
    if (!flushed) read_other(threads);
}
