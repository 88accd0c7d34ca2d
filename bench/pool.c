// Exact data; see pool.h. Numbers are 1/8 to 7/8 with a sign: sums of 16 of them are multiples of 1/8 below
// 16, which 8 bits of significand hold. None is zero, so no sum is -0.
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "element.h"

enum {
    STRIDE = 2048,     // elements, whole pages: between the calls
    APART = 31 * 2048, // between the ranks
};

static uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

static void fill(struct pool *pool, size_t count) {
    unsigned char values[14][4];
    for (int i = 0; i < 14; i++) {
        element_store(pool->dtype, values[i], 0, (float)(i < 7 ? i + 1 : 6 - i) / 8);
    }
    size_t bytes = dtype_sizes_bytes[pool->dtype];
    for (size_t i = 0; i < count; i++) {
        const unsigned char *value = values[(uint64_t)mix((uint32_t)i * 0x9e3779b9u + 1) * 14 >> 32];
        if (bytes == 2)
            memcpy(pool->data + i * 2, value, 2);
        else
            memcpy(pool->data + i * 4, value, 4);
    }
}

int pool_open(struct pool *pool, enum dtype dtype, size_t elements, int ranks,
              const struct kernels *kernels) {
    size_t element_bytes = dtype_sizes_bytes[dtype];
    size_t sums = (elements + POOL_SHIFTS * STRIDE) / STRIDE * STRIDE, count = sums + (size_t)ranks * APART;
    *pool = (struct pool){.dtype = dtype, .ranks = ranks};
    pool->data = aligned_alloc(4096, count * element_bytes);
    pool->sums = aligned_alloc(4096, sums * element_bytes);
    if (pool->data == NULL || pool->sums == NULL) {
        pool_close(pool);
        return -1;
    }
    fill(pool, count);
    const void *inputs[MAX_RANKS];
    for (int rank = 0; rank < ranks; rank++) inputs[rank] = pool_input(pool, rank, 0);
    kernels->sum[dtype][ranks](pool->sums, inputs, ranks, sums);
    return 0;
}

void pool_close(struct pool *pool) {
    free(pool->data);
    free(pool->sums);
    *pool = (struct pool){0};
}

const void *pool_input(const struct pool *pool, int rank, size_t shift) {
    return pool->data + ((size_t)rank * APART + shift * STRIDE) * dtype_sizes_bytes[pool->dtype];
}

bool pool_is_right(const struct pool *pool, const struct call *call, int rank, size_t shift) {
    size_t element_bytes = dtype_sizes_bytes[pool->dtype];
    const struct traffic *traffic = call->traffic;
    const unsigned char *sums = pool->sums + shift * STRIDE * element_bytes, *out = call->out;
    if (traffic == NULL) return memcmp(out, sums, call_bytes(call)) == 0;
    size_t first = traffic->send_at[rank] * element_bytes;
    if (call->op == OP_REDUCESCATTER) {
        return memcmp(out, sums + first, traffic->receive_elements * element_bytes) == 0;
    }
    for (int from = 0; from < pool->ranks; from++) {
        const unsigned char *input = pool_input(pool, from, shift);
        if (memcmp(out + traffic->receive_at[from] * element_bytes, input + first,
                   traffic->received[from] * element_bytes) != 0)
            return false;
    }
    return true;
}
