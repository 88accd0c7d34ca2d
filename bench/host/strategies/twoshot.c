// TWOSHOT: every rank reduces its own slice of the message, in rank order in fp32, and then gathers the other
// slices.
//
// Each pair of ranks has slots in which one passes its input to the other, the owner of the slice. The owner
// writes the sum to one more slot, which all read. Two ranks do not need that slot: the sum goes back in the
// slot of the input, so that a cache line crosses once each way; a rank prefetches a line that it reads for
// writing, since it writes it next.
//
// It is a pipeline over pieces of the slices: when piece p is reduced, the inputs of p+1 have been copied in,
// and the sums of p-1 are gathered after it. A rank that copies in p+1 has gathered p-2, so its owner has
// read the inputs of p-2; a rank that reduces p has seen the inputs of p of all ranks, so all have gathered
// p-3. Four slots are enough for both.
//
// With a fusion, slices are whole rows, so that every rank sums the squares of a row in the same order.
#include <stdlib.h>
#include <string.h>

#include "elements/strategy.h"
#include "host/epilogue.h"
#include "host/shared_copy.h"
#include "ranks/group.h"

enum {
    SLOTS = 4,
    ROUND_BYTES = 128 << 10,                // pieces of all slices together
    ROUND_BYTES_OVERSUBSCRIBED = 256 << 10, // every round costs two context switches between ranks
    PORTION_BYTES = 1 << 10,                // prefetched ahead: the capacity of the line fill buffers
    ALIGN_ELEMENTS = 64,
    PAGE = 4096,
};

// The progress of one rank, which the others read.
struct progress {
    struct counter copied_in; // pieces
    struct counter reduced;   // pieces
};

struct twoshot {
    struct group *group;
    unsigned char *shared; // struct progress of each rank, a page each; then the slots
    size_t piece_bytes;
    uint32_t pieces;                              // so far, on every rank
    struct handover to[MAX_NODE_RANKS];           // inputs to each owner; to[own rank]: sums to all
    _Alignas(CACHE_LINE) unsigned char own_sum[]; // a piece that is not written directly to the output
};

// The elements that each rank owns in one call.
struct slices {
    size_t first[MAX_NODE_RANKS + 1]; // rank r owns first[r] .. first[r+1]-1
    size_t piece_elements;
    size_t pieces; // of the longest slice
};

static struct progress *progress_of(const struct twoshot *twoshot, int rank) {
    return (struct progress *)(twoshot->shared + (size_t)rank * PAGE);
}

// The slot in which `writer` passes its input of piece `number` to `owner`.
static unsigned char *slot_of(const struct twoshot *twoshot, int writer, int owner, uint32_t number) {
    size_t ranks = (size_t)twoshot->group->size;
    size_t index = ((size_t)writer * ranks + (size_t)owner) * SLOTS + number % SLOTS;
    return twoshot->shared + ranks * PAGE + index * twoshot->piece_bytes;
}

// The slot of the sum of piece `number` of `owner`: the one for its own input, which is never passed.
static unsigned char *sums_of(const struct twoshot *twoshot, int owner, uint32_t number) {
    return slot_of(twoshot, twoshot->group->size == 2 ? 1 - owner : owner, owner, number);
}

static size_t shared_bytes(const struct twoshot *twoshot) {
    size_t ranks = (size_t)twoshot->group->size;
    return ranks * PAGE + ranks * ranks * SLOTS * twoshot->piece_bytes;
}

static const char *twoshot_supports(const struct group *group, const struct call *call) {
    if (call->fusion != FUSION_NONE && call->num_tokens < (size_t)group->size)
        return "fewer tokens than ranks";
    return NULL;
}

static int twoshot_setup(const struct candidate *candidate, struct group *group, void **state,
                         char reason[REASON_SIZE]) {
    (void)candidate;
    size_t round_bytes = group->oversubscribed ? ROUND_BYTES_OVERSUBSCRIBED : ROUND_BYTES;
    size_t piece_bytes = round_bytes / (size_t)group->size / PORTION_BYTES * PORTION_BYTES;
    struct twoshot *twoshot = group_allocate(group, sizeof *twoshot + piece_bytes, reason, REASON_SIZE);
    if (twoshot == NULL) return -1;
    twoshot->group = group;
    twoshot->piece_bytes = piece_bytes;
    for (int rank = 0; rank < group->size; rank++) handover_begin(&twoshot->to[rank], group);
    twoshot->shared = group_map(group, shared_bytes(twoshot), reason, REASON_SIZE);
    *state = twoshot;
    if (twoshot->shared != NULL) return 0;
    free(twoshot);
    return -1;
}

// Slices of whole units, as even as possible: the first ranks may have one unit more.
static struct slices cut(const struct twoshot *twoshot, const struct call *call) {
    struct slices slices = {.piece_elements = twoshot->piece_bytes / dtype_sizes_bytes[call->dtype]};
    size_t elements = call_elements(call), ranks = (size_t)twoshot->group->size;
    size_t unit = call->fusion == FUSION_NONE ? ALIGN_ELEMENTS : call->hidden_size;
    size_t units = (elements + unit - 1) / unit, longest = 0;
    for (size_t rank = 0; rank < ranks; rank++) {
        size_t before = units / ranks * (rank + 1) + (rank + 1 < units % ranks ? rank + 1 : units % ranks);
        size_t end = before * unit < elements ? before * unit : elements;
        slices.first[rank + 1] = end;
        if (end - slices.first[rank] > longest) longest = end - slices.first[rank];
    }
    slices.pieces = (longest + slices.piece_elements - 1) / slices.piece_elements;
    return slices;
}

// The first element of piece `piece` of `owner`'s slice, and its number of elements (0: past the end).
static size_t piece_of(const struct slices *slices, int owner, size_t piece, size_t *first) {
    size_t end = slices->first[owner + 1];
    *first = slices->first[owner] + piece * slices->piece_elements;
    if (*first >= end) return 0;
    return end - *first < slices->piece_elements ? end - *first : slices->piece_elements;
}

static void copy_in(struct twoshot *twoshot, const struct call *call, const struct slices *slices,
                    size_t piece) {
    int me = twoshot->group->rank;
    size_t element_bytes = dtype_sizes_bytes[call->dtype];
    uint32_t number = twoshot->pieces + (uint32_t)piece;
    for (int step = 1; step < twoshot->group->size; step++) {
        int owner = (me + step) % twoshot->group->size;
        size_t first, count = piece_of(slices, owner, piece, &first);
        handover_copy(&twoshot->to[owner], slot_of(twoshot, me, owner, number),
                      (const char *)call->input + first * element_bytes, count * element_bytes);
    }
    atomic_store_explicit(&progress_of(twoshot, me)->copied_in.value, number + 1, memory_order_release);
}

// Adds a piece of two ranks in portions, and writes the sum to the slot that is read here; its next portion
// is prefetched meanwhile.
static void reduce_in_place(struct twoshot *twoshot, enum dtype dtype, const void *const inputs[2],
                            unsigned char *sum, unsigned char *shared_sum, size_t bytes) {
    const struct kernels *kernels = twoshot->group->kernels;
    for (size_t at = 0; at < bytes; at += PORTION_BYTES) {
        size_t portion = bytes - at < PORTION_BYTES ? bytes - at : PORTION_BYTES;
        if (at + portion < bytes) kernels->claim(shared_sum + at + portion, PORTION_BYTES);
        const void *sources[2] = {(const char *)inputs[0] + at, (const char *)inputs[1] + at};
        kernels->sum[dtype][2](sum + at, sources, 2, portion / dtype_sizes_bytes[dtype]);
        memcpy(shared_sum + at, sum + at, portion);
    }
}

// Adds the inputs of all ranks for a piece of this rank's slice, and writes the sum to `sum` and to the slot
// that the others read.
static void reduce_piece(struct twoshot *twoshot, enum dtype dtype, const unsigned char *input,
                         unsigned char *sum, size_t bytes, uint32_t number) {
    struct group *group = twoshot->group;
    unsigned char *shared_sum = sums_of(twoshot, group->rank, number);
    const void *inputs[MAX_NODE_RANKS];
    for (int rank = 0; rank < group->size; rank++) {
        inputs[rank] = rank == group->rank ? input : slot_of(twoshot, rank, group->rank, number);
    }
    if (group->size == 2) {
        reduce_in_place(twoshot, dtype, inputs, sum, shared_sum, bytes);
        return;
    }
    group->kernels->sum[dtype][group->size](sum, inputs, group->size, bytes / dtype_sizes_bytes[dtype]);
    handover_copy(&twoshot->to[group->rank], shared_sum, sum, bytes);
}

// Passes one owner's sums to the epilogue, in portions that are the same on every rank, since the bits depend
// on them.
static void take_sums(const struct group *group, struct epilogue *epilogue, const unsigned char *sums,
                      size_t count) {
    size_t element_bytes = dtype_sizes_bytes[epilogue->call->dtype], bytes = count * element_bytes;
    for (size_t at = 0; at < bytes; at += PORTION_BYTES) {
        size_t portion = bytes - at < PORTION_BYTES ? bytes - at : PORTION_BYTES;
        if (group->size == 2 && at + portion < bytes) {
            group->kernels->claim(sums + at + portion, PORTION_BYTES);
        }
        epilogue_consume(epilogue, (const void *const[]){sums + at}, 1, portion / element_bytes);
    }
}

static int reduce(struct twoshot *twoshot, const struct call *call, const struct slices *slices, size_t piece,
                  struct epilogue *epilogue) {
    struct group *group = twoshot->group;
    uint32_t number = twoshot->pieces + (uint32_t)piece;
    size_t element_bytes = dtype_sizes_bytes[call->dtype];
    size_t first, count = piece_of(slices, group->rank, piece, &first);
    for (int rank = 0; rank < group->size; rank++) {
        if (rank == group->rank) continue;
        if (!group_wait(group, &progress_of(twoshot, rank)->copied_in.value, number + 1)) return -1;
    }
    bool straight = call->fusion == FUSION_NONE;
    unsigned char *sum = straight ? (unsigned char *)call->out + first * element_bytes : twoshot->own_sum;
    const unsigned char *input = (const unsigned char *)call->input + first * element_bytes;
    reduce_piece(twoshot, call->dtype, input, sum, count * element_bytes, number);
    atomic_store_explicit(&progress_of(twoshot, group->rank)->reduced.value, number + 1,
                          memory_order_release);
    if (!straight) take_sums(group, epilogue, sum, count);
    return 0;
}

static int gather(struct twoshot *twoshot, const struct slices *slices, size_t piece,
                  struct epilogue epilogues[]) {
    struct group *group = twoshot->group;
    uint32_t number = twoshot->pieces + (uint32_t)piece;
    for (int step = 1; step < group->size; step++) {
        int owner = (group->rank + step) % group->size;
        size_t first, count = piece_of(slices, owner, piece, &first);
        if (!group_wait(group, &progress_of(twoshot, owner)->reduced.value, number + 1)) return -1;
        take_sums(group, &epilogues[owner], sums_of(twoshot, owner, number), count);
    }
    return 0;
}

// Whether the inputs and outputs of all ranks together do not fit in the last-level cache: then streaming
// stores avoid reading the output from memory first. (With ranks on several such caches, streaming begins at
// smaller sizes than necessary.)
static bool outgrows_cache(const struct group *group, const struct call *call) {
    return group->cache_bytes > 0 && 2 * call_bytes(call) * (size_t)group->size >= group->cache_bytes;
}

static int twoshot_run(void *state, const struct call *call) {
    struct twoshot *twoshot = state;
    struct group *group = twoshot->group;
    struct slices slices = cut(twoshot, call);
    struct epilogue epilogues[MAX_NODE_RANKS];
    bool streams = outgrows_cache(group, call);
    for (int owner = 0; owner < group->size; owner++) {
        epilogue_begin(&epilogues[owner], group->kernels, call, slices.first[owner]);
        epilogues[owner].streams = streams;
    }
    copy_in(twoshot, call, &slices, 0);
    for (size_t piece = 0; piece < slices.pieces; piece++) {
        if (piece + 1 < slices.pieces) copy_in(twoshot, call, &slices, piece + 1);
        if (reduce(twoshot, call, &slices, piece, &epilogues[group->rank]) != 0) return -1;
        if (piece > 0 && gather(twoshot, &slices, piece - 1, epilogues) != 0) return -1;
    }
    if (gather(twoshot, &slices, slices.pieces - 1, epilogues) != 0) return -1;
    if (streams) group->kernels->stream_end();
    twoshot->pieces += (uint32_t)slices.pieces;
    return 0;
}

static void twoshot_teardown(void *state) {
    struct twoshot *twoshot = state;
    group_unmap(twoshot->shared, shared_bytes(twoshot));
    free(twoshot);
}

const struct strategy strategy_twoshot = {
    .supports = twoshot_supports,
    .setup = twoshot_setup,
    .run = twoshot_run,
    .teardown = twoshot_teardown,
};
