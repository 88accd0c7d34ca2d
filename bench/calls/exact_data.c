// Exact data; see exact_data.h. Numbers are 1/8 to 7/8 with a sign: sums of 16 of them are multiples of 1/8
// below 16, which 8 bits of significand hold. None is zero, so no sum is -0.
//
// The numbers repeat after a period that fits in a core's own cache, so that a check reads only the result
// from farther away. Blocks of a power of two of elements repeat after 509 blocks at the earliest, so a block
// in another block's place is a wrong result.
#include "exact_data.h"

#include <stdlib.h>
#include <string.h>

#include "elements/element.h"
#include "elements/random.h"
#include "ranks/group.h"

enum {
    PERIOD = 32 * 509, // elements
    STRIDE = 2048,     // elements between the calls: whole pages
    APART = 31 * 2048, // elements between the ranks
};

static void fill(struct pool *pool, size_t count) {
    unsigned char values[14][4];
    for (int i = 0; i < 14; i++) {
        element_store(pool->dtype, values[i], 0, (float)(i < 7 ? i + 1 : 6 - i) / 8);
    }
    size_t bytes = dtype_sizes_bytes[pool->dtype];
    for (size_t i = 0; i < PERIOD; i++) {
        const unsigned char *value = values[(uint64_t)mix((uint32_t)i * 0x9e3779b9u + 1) * 14 >> 32];
        memcpy(pool->data + i * bytes, value, bytes);
    }
    for (size_t i = PERIOD; i < count; i += PERIOD) {
        memcpy(pool->data + i * bytes, pool->data, (count - i < PERIOD ? count - i : PERIOD) * bytes);
    }
}

static void *in_pages(size_t bytes) {
    return aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}

int pool_open(struct pool *pool, enum dtype dtype, size_t elements, int ranks,
              const struct kernels *kernels) {
    size_t element_bytes = dtype_sizes_bytes[dtype];
    size_t count = elements + POOL_DATA_SETS * STRIDE + (size_t)ranks * APART; // more than a period
    *pool = (struct pool){.dtype = dtype, .ranks = ranks};
    pool->data = in_pages(count * element_bytes);
    pool->sums = in_pages(PERIOD * element_bytes);
    if (pool->data == NULL || pool->sums == NULL) {
        pool_close(pool);
        return -1;
    }
    fill(pool, count);
    const void *inputs[MAX_RANKS];
    for (int rank = 0; rank < ranks; rank++) inputs[rank] = pool_input(pool, rank, 0);
    kernels->sum[dtype][ranks](pool->sums, inputs, ranks, PERIOD);
    return 0;
}

void pool_close(struct pool *pool) {
    free(pool->data);
    free(pool->sums);
    *pool = (struct pool){0};
}

const void *pool_input(const struct pool *pool, int rank, size_t data_set) {
    return pool->data + ((size_t)rank * APART + data_set * STRIDE) * dtype_sizes_bytes[pool->dtype];
}

// Handles some bytes of an output and their right values. False ends the visit.
typedef bool visitor(unsigned char *out, const unsigned char *should, size_t bytes);

static bool is_same(unsigned char *out, const unsigned char *should, size_t bytes) {
    return memcmp(out, should, bytes) == 0;
}

static bool take(unsigned char *out, const unsigned char *should, size_t bytes) {
    memcpy(out, should, bytes);
    return true;
}

// Visits `count` elements, of which the right values are those of the repeating `period` from `first` on.
static bool visit_period(unsigned char *out, const unsigned char *period, size_t first, size_t count,
                         size_t element_bytes, visitor *visit) {
    size_t at = first % PERIOD;
    while (count > 0) {
        size_t piece = count < PERIOD - at ? count : PERIOD - at;
        if (!visit(out, period + at * element_bytes, piece * element_bytes)) return false;
        out += piece * element_bytes;
        count -= piece;
        at = 0;
    }
    return true;
}

// Visits all of an output.
static bool visit_output(const struct pool *pool, const struct call *call, int rank, size_t data_set,
                         unsigned char *out, visitor *visit) {
    size_t element_bytes = dtype_sizes_bytes[pool->dtype], first = data_set * STRIDE;
    const struct traffic *traffic = call->traffic;
    if (traffic == NULL)
        return visit_period(out, pool->sums, first, call_elements(call), element_bytes, visit);
    first += traffic->send_at[rank];
    if (call->op == OP_REDUCESCATTER)
        return visit_period(out, pool->sums, first, traffic->receive_elements, element_bytes, visit);
    for (int from = 0; from < pool->ranks; from++) {
        if (!visit_period(out + traffic->receive_at[from] * element_bytes, pool->data,
                          (size_t)from * APART + first, traffic->received[from], element_bytes, visit))
            return false;
    }
    return true;
}

bool pool_is_right(const struct pool *pool, const struct call *call, int rank, size_t data_set) {
    return visit_output(pool, call, rank, data_set, call->out, is_same);
}

void pool_expect(const struct pool *pool, const struct call *call, int rank, size_t data_set, void *out) {
    visit_output(pool, call, rank, data_set, out, take);
}
