// TWOSHOT_DIVIDED: every rank reduces its own tokens, computes their epilogue, and passes the results to the
// others: the residual, and the norm or codes with their scales. The ranks divide the epilogue's arithmetic,
// and each reads only its own tokens of the residual; more bytes are passed than the sums of TWOSHOT.
//
// Each pair of ranks has slots in which one passes its input to the other, the owner of the tokens, and each
// owner has slots for its results, which all others read. The pipeline is that of TWOSHOT: when piece p is
// finished, the inputs of p+1 have been copied in, and the results of p-1 are taken after it. A rank that
// copies in p+1 has taken p-2, so its owner has read the inputs of p-2; a rank that finishes p has seen the
// inputs of p of all ranks, so all have taken p-3. Four slots are enough for both. A piece is whole tokens.
#include <stdlib.h>
#include <string.h>

#include "elements/strategy.h"
#include "host/epilogue.h"
#include "host/shared_copy.h"
#include "ranks/group.h"

enum {
    SLOTS = 4,
    SLOT_BYTES = 64 << 10,         // of inputs: the largest token, of up to MANY_RANKS ranks
    SLOT_BYTES_OF_MANY = 32 << 10, // of more ranks, since slots grow with their square
    MANY_RANKS = 8,
    ROUND_BYTES = 128 << 10,                // pieces of all owners together, if tokens are small enough
    ROUND_BYTES_OVERSUBSCRIBED = 256 << 10, // every round costs two context switches between ranks
    SCALED_ELEMENTS = 16,                   // of a block scale
    SCALES_TOGETHER = 4,                    // block scales with places in a row
    PAGE = 4096,
};

// The progress of one rank, which the others read.
struct progress {
    struct counter copied_in; // pieces
    struct counter finished;  // pieces
};

struct divided {
    struct group *group;
    unsigned char *shared; // struct progress of each rank, a page each; slots of inputs; slots of results
    uint32_t pieces;       // so far, on every rank
    struct handover to[MAX_NODE_RANKS]; // inputs to each owner; to[own rank]: results to all
};

// How the tokens of one call are divided.
struct tokens {
    const struct call *call;
    size_t first[MAX_NODE_RANKS + 1]; // rank r owns first[r] .. first[r+1]-1
    size_t of_a_piece;
    size_t pieces;    // of the longest share
    size_t bytes;     // of a token of the input or of the residual
    size_t out_bytes; // of the result of a token: the norm or its codes
    size_t scales;    // of a token; 0: without block scales
};

static size_t slot_bytes(const struct group *group) {
    return group->size > MANY_RANKS ? SLOT_BYTES_OF_MANY : SLOT_BYTES;
}

static struct progress *progress_of(const struct divided *divided, int rank) {
    return (struct progress *)(divided->shared + (size_t)rank * PAGE);
}

// The slot in which `writer` passes its input of piece `number` to `owner`.
static unsigned char *input_slot(const struct divided *divided, int writer, int owner, uint32_t number) {
    size_t ranks = (size_t)divided->group->size;
    size_t index = ((size_t)writer * ranks + (size_t)owner) * SLOTS + number % SLOTS;
    return divided->shared + ranks * PAGE + index * slot_bytes(divided->group);
}

// The slot of the results of piece `number` of `owner`: the residual of all its tokens, then their norm or
// codes, then the scales of each token: together at most two slots of inputs.
static unsigned char *result_slot(const struct divided *divided, int owner, uint32_t number) {
    size_t ranks = (size_t)divided->group->size;
    size_t index = ((size_t)owner * SLOTS + number % SLOTS) * 2;
    return divided->shared + ranks * PAGE + (ranks * ranks * SLOTS + index) * slot_bytes(divided->group);
}

static size_t shared_bytes(const struct divided *divided) {
    size_t ranks = (size_t)divided->group->size;
    return ranks * PAGE + (ranks * ranks + 2 * ranks) * SLOTS * slot_bytes(divided->group);
}

static const char *divided_supports(const struct group *group, const struct call *call) {
    if (call->fusion == FUSION_NONE) return "without an epilogue it is TWOSHOT";
    if (call->num_tokens < (size_t)group->size) return "fewer tokens than ranks";
    if (call->hidden_size * dtype_sizes_bytes[call->dtype] > slot_bytes(group))
        return "its tokens are too large";
    return NULL;
}

static int divided_setup(const struct candidate *candidate, struct group *group, void **state,
                         char reason[REASON_SIZE]) {
    (void)candidate;
    struct divided *divided = group_allocate(group, sizeof *divided, reason, REASON_SIZE);
    if (divided == NULL) return -1;
    divided->group = group;
    for (int rank = 0; rank < group->size; rank++) handover_begin(&divided->to[rank], group);
    divided->shared = group_map(group, shared_bytes(divided), reason, REASON_SIZE);
    *state = divided;
    if (divided->shared != NULL) return 0;
    free(divided);
    return -1;
}

// Shares as even as possible: the first ranks may have one token more.
static struct tokens divide(const struct group *group, const struct call *call) {
    size_t ranks = (size_t)group->size, hidden_size = call->hidden_size, longest = 0;
    struct tokens tokens = {
        .call = call,
        .bytes = hidden_size * dtype_sizes_bytes[call->dtype],
        .out_bytes = fusion_out_bytes(call->fusion, call->dtype, hidden_size),
        .scales = call->block_scales == NULL ? 0 : hidden_size / SCALED_ELEMENTS,
    };
    for (size_t rank = 0; rank < ranks; rank++) {
        size_t share = call->num_tokens / ranks + (rank < call->num_tokens % ranks);
        tokens.first[rank + 1] = tokens.first[rank] + share;
        if (share > longest) longest = share;
    }
    size_t round_bytes = group->oversubscribed ? ROUND_BYTES_OVERSUBSCRIBED : ROUND_BYTES;
    size_t piece_bytes = round_bytes / ranks < slot_bytes(group) ? round_bytes / ranks : slot_bytes(group);
    tokens.of_a_piece = tokens.bytes < piece_bytes ? piece_bytes / tokens.bytes : 1;
    tokens.pieces = (longest + tokens.of_a_piece - 1) / tokens.of_a_piece;
    return tokens;
}

// The first token of piece `piece` of `owner`, and the number of its tokens (0: past the end).
static size_t piece_of(const struct tokens *tokens, int owner, size_t piece, size_t *first) {
    size_t end = tokens->first[owner + 1];
    *first = tokens->first[owner] + piece * tokens->of_a_piece;
    if (*first >= end) return 0;
    return end - *first < tokens->of_a_piece ? end - *first : tokens->of_a_piece;
}

static void copy_in(struct divided *divided, const struct tokens *tokens, size_t piece) {
    int me = divided->group->rank;
    uint32_t number = divided->pieces + (uint32_t)piece;
    for (int step = 1; step < divided->group->size; step++) {
        int owner = (me + step) % divided->group->size;
        size_t first, count = piece_of(tokens, owner, piece, &first);
        handover_copy(&divided->to[owner], input_slot(divided, me, owner, number),
                      (const char *)tokens->call->input + first * tokens->bytes, count * tokens->bytes);
    }
    atomic_store_explicit(&progress_of(divided, me)->copied_in.value, number + 1, memory_order_release);
}

// ---- results ------------------------------------------------------------------------------------

// Copies the block scales of a token between their layout and `packed`, without gaps.
static void copy_scales(const struct tokens *tokens, size_t token, unsigned char *packed, bool pack) {
    const struct call *call = tokens->call;
    for (size_t column = 0; column < tokens->scales; column += SCALES_TOGETHER) {
        size_t left = tokens->scales - column, count = left < SCALES_TOGETHER ? left : SCALES_TOGETHER;
        uint8_t *in_layout = call->block_scales + block_scale_offset(token, column, call->hidden_size);
        if (pack) {
            memcpy(packed + column, in_layout, count);
        } else {
            memcpy(in_layout, packed + column, count);
        }
    }
}

// Passes the results of `count` tokens from `first` on to the other ranks.
static void pass_results(struct divided *divided, const struct tokens *tokens, size_t first, size_t count,
                         uint32_t number) {
    const struct call *call = tokens->call;
    struct handover *handover = &divided->to[divided->group->rank];
    unsigned char *slot = result_slot(divided, divided->group->rank, number);
    handover_copy(handover, slot, (const char *)call->residual_out + first * tokens->bytes,
                  count * tokens->bytes);
    slot += count * tokens->bytes;
    handover_copy(handover, slot, (const char *)call->out + first * tokens->out_bytes,
                  count * tokens->out_bytes);
    slot += count * tokens->out_bytes;
    for (size_t i = 0; i < count && tokens->scales > 0; i++) {
        copy_scales(tokens, first + i, slot + i * tokens->scales, true);
    }
}

static void take_results(const struct divided *divided, const struct tokens *tokens, int owner, size_t first,
                         size_t count, uint32_t number) {
    const struct call *call = tokens->call;
    unsigned char *slot = result_slot(divided, owner, number);
    memcpy((char *)call->residual_out + first * tokens->bytes, slot, count * tokens->bytes);
    slot += count * tokens->bytes;
    memcpy((char *)call->out + first * tokens->out_bytes, slot, count * tokens->out_bytes);
    slot += count * tokens->out_bytes;
    for (size_t i = 0; i < count && tokens->scales > 0; i++) {
        copy_scales(tokens, first + i, slot + i * tokens->scales, false);
    }
}

// ---- a call -------------------------------------------------------------------------------------

static int finish(struct divided *divided, const struct tokens *tokens, size_t piece,
                  struct epilogue *epilogue) {
    struct group *group = divided->group;
    uint32_t number = divided->pieces + (uint32_t)piece;
    size_t first, count = piece_of(tokens, group->rank, piece, &first);
    const void *inputs[MAX_NODE_RANKS];
    for (int rank = 0; rank < group->size; rank++) {
        inputs[rank] = input_slot(divided, rank, group->rank, number);
        if (rank == group->rank) {
            inputs[rank] = (const char *)tokens->call->input + first * tokens->bytes;
        } else if (!group_wait(group, &progress_of(divided, rank)->copied_in.value, number + 1)) {
            return -1;
        }
    }
    epilogue_consume(epilogue, inputs, group->size, count * tokens->call->hidden_size);
    pass_results(divided, tokens, first, count, number);
    atomic_store_explicit(&progress_of(divided, group->rank)->finished.value, number + 1,
                          memory_order_release);
    return 0;
}

static int take(const struct divided *divided, const struct tokens *tokens, size_t piece) {
    struct group *group = divided->group;
    uint32_t number = divided->pieces + (uint32_t)piece;
    for (int step = 1; step < group->size; step++) {
        int owner = (group->rank + step) % group->size;
        size_t first, count = piece_of(tokens, owner, piece, &first);
        if (!group_wait(group, &progress_of(divided, owner)->finished.value, number + 1)) return -1;
        take_results(divided, tokens, owner, first, count, number);
    }
    return 0;
}

static int divided_run(void *state, const struct call *call) {
    struct divided *divided = state;
    struct group *group = divided->group;
    struct tokens tokens = divide(group, call);
    struct epilogue epilogue;
    epilogue_begin(&epilogue, group->kernels, call, tokens.first[group->rank] * call->hidden_size);
    copy_in(divided, &tokens, 0);
    for (size_t piece = 0; piece < tokens.pieces; piece++) {
        if (piece + 1 < tokens.pieces) copy_in(divided, &tokens, piece + 1);
        if (finish(divided, &tokens, piece, &epilogue) != 0) return -1;
        if (piece > 0 && take(divided, &tokens, piece - 1) != 0) return -1;
    }
    if (take(divided, &tokens, tokens.pieces - 1) != 0) return -1;
    divided->pieces += (uint32_t)tokens.pieces;
    return 0;
}

static void divided_teardown(void *state) {
    struct divided *divided = state;
    group_unmap(divided->shared, shared_bytes(divided));
    free(divided);
}

const struct strategy strategy_twoshot_divided = {
    .supports = divided_supports,
    .setup = divided_setup,
    .run = divided_run,
    .teardown = divided_teardown,
};
