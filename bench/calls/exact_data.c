// Exact data; see exact_data.h. Numbers are 1/8 to 7/8 with a sign: sums of MOST_ADDENDS of them are
// multiples of 1/8 up to 32, which 8 bits of significand hold. None is -0, so no sum is -0.
//
// Of more ranks, addends are zeros in all but every `every`-th place: place p is block p * BLOCKS_APART, so
// that consecutive ranks read consecutive places, and at most MOST_ADDENDS of them add to an element.
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
    BLOCK = 32, // elements
    BLOCKS = 509,
    PERIOD = BLOCK * BLOCKS, // elements
    STRIDE = 2048,           // elements between the calls: whole pages
    APART = 31 * 2048,       // elements between the ranks
    BLOCKS_APART = APART / BLOCK,
    MOST_ADDENDS = 36,
    USUAL_ADDENDS = 32,      // of an element; the places at both ends may have two more
    AGAIN = STRIDE * BLOCKS, // elements, after which the data begin at the same number and in a page again
};

static void repeat(unsigned char *data, size_t count, size_t bytes) {
    for (size_t i = PERIOD; i < count; i += PERIOD) {
        memcpy(data + i * bytes, data, (count - i < PERIOD ? count - i : PERIOD) * bytes);
    }
}

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
    repeat(pool->data, count, bytes);
}

// The data with zeros in all but every `every`-th place.
static void fill_addends(struct pool *pool, size_t count, size_t every) {
    size_t bytes = dtype_sizes_bytes[pool->dtype], block_bytes = BLOCK * bytes;
    memset(pool->addends, 0, PERIOD * bytes);
    for (size_t place = 0; place < BLOCKS; place += every) {
        size_t at = place * BLOCKS_APART % BLOCKS * block_bytes;
        memcpy(pool->addends + at, pool->data + at, block_bytes);
    }
    repeat(pool->addends, count, bytes);
}

static void *in_pages(size_t bytes) {
    return aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}

int pool_open(struct pool *pool, enum dtype dtype, size_t elements, int ranks,
              const struct kernels *kernels) {
    size_t element_bytes = dtype_sizes_bytes[dtype];
    size_t starts = POOL_DATA_SETS * STRIDE + (size_t)ranks * APART;
    size_t longest = elements < PERIOD ? PERIOD : elements; // a period of each rank is summed below
    size_t count = longest + (starts < AGAIN ? starts : AGAIN);
    *pool = (struct pool){.dtype = dtype, .ranks = ranks};
    pool->data = in_pages(count * element_bytes);
    pool->sums = in_pages(PERIOD * element_bytes);
    pool->addends = ranks <= MOST_ADDENDS ? pool->data : in_pages(count * element_bytes);
    if (pool->data == NULL || pool->sums == NULL || pool->addends == NULL) {
        pool_close(pool);
        return -1;
    }
    fill(pool, count);
    if (pool->addends != pool->data)
        fill_addends(pool, count, ((size_t)ranks + USUAL_ADDENDS - 1) / USUAL_ADDENDS);
    const void *inputs[MAX_RANKS];
    for (int rank = 0; rank < ranks; rank++) inputs[rank] = pool_input(pool, OP_ALLREDUCE, rank, 0);
    kernels_sum(kernels, dtype, pool->sums, inputs, ranks, PERIOD);
    return 0;
}

void pool_close(struct pool *pool) {
    if (pool->addends != pool->data) free(pool->addends);
    free(pool->data);
    free(pool->sums);
    *pool = (struct pool){0};
}

const void *pool_input(const struct pool *pool, enum op op, int rank, size_t data_set) {
    const unsigned char *data = op_sums[op] ? pool->addends : pool->data;
    size_t start = ((size_t)rank * APART + data_set * STRIDE) % AGAIN;
    return data + start * dtype_sizes_bytes[pool->dtype];
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
