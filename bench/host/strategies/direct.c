// DIRECT: every rank copies its data to shared memory, and reads its own share from the memory of all ranks;
// sums are in rank order in fp32. For all ops but the allreduce, which has ONESHOT and TWOSHOT.
//
// The data of a rank go in rounds through four slots: a slot has a piece for each destination, or one piece
// for all. Every rank takes part in every round, also without data. A rank that publishes round c+1 has
// consumed c-1, so all ranks had published c-1 and so had consumed c-3: the slot of c-3 is free.
#include <stdlib.h>
#include <string.h>

#include "elements/kernels.h"
#include "elements/strategy.h"
#include "host/shared_copy.h"
#include "ranks/group.h"

enum {
    SLOTS = 4,
    SLOT_BYTES = 64 << 10,
    SLOT_BYTES_OVERSUBSCRIBED = 256 << 10, // every round costs a switch between ranks
    PAGE = 4096,
};

struct direct {
    struct group *group;
    unsigned char *shared; // of each rank: a page with its counter of published rounds, then its slots
    size_t slot_bytes, rank_bytes;
    uint32_t rounds; // so far, on every rank
    struct handover to_others;
};

// One call, cut into rounds.
struct plan {
    const struct call *call;
    const struct traffic *traffic;
    size_t element_bytes, piece_bytes, rounds;
    bool for_all; // one piece a round, instead of one for each destination
};

static struct counter *published_of(const struct direct *direct, int rank) {
    return (struct counter *)(direct->shared + (size_t)rank * direct->rank_bytes);
}

// The address of `rank`'s piece for `destination` in a round.
static unsigned char *piece_of(const struct direct *direct, const struct plan *plan, int rank,
                               int destination, uint32_t round) {
    unsigned char *slots = direct->shared + (size_t)rank * direct->rank_bytes + PAGE;
    size_t place = plan->for_all ? 0 : (size_t)destination * plan->piece_bytes;
    return slots + round % SLOTS * direct->slot_bytes + place;
}

static struct plan cut(const struct direct *direct, const struct call *call) {
    struct plan plan = {.call = call, .traffic = call->traffic};
    plan.element_bytes = dtype_sizes_bytes[call->dtype];
    plan.for_all = call->op == OP_ALLGATHER || call->op == OP_BROADCAST;
    size_t pieces = plan.for_all ? 1 : (size_t)direct->group->size;
    plan.piece_bytes = direct->slot_bytes / pieces / CACHE_LINE * CACHE_LINE;
    plan.rounds = (call->traffic->largest * plan.element_bytes + plan.piece_bytes - 1) / plan.piece_bytes;
    return plan;
}

// The bytes of a part of `elements` that are left for a round.
static size_t left_for(const struct plan *plan, size_t elements, size_t round) {
    size_t bytes = elements * plan->element_bytes, first = round * plan->piece_bytes;
    if (first >= bytes) return 0;
    return bytes - first < plan->piece_bytes ? bytes - first : plan->piece_bytes;
}

static void publish(struct direct *direct, const struct plan *plan, size_t round) {
    int me = direct->group->rank, ranks = direct->group->size;
    uint32_t number = direct->rounds + (uint32_t)round;
    for (int step = 1; step < (plan->for_all ? 2 : ranks); step++) {
        int to = (me + step) % ranks;
        size_t first = plan->traffic->send_at[to] * plan->element_bytes + round * plan->piece_bytes;
        handover_copy(&direct->to_others, piece_of(direct, plan, me, to, number),
                      (const char *)plan->call->input + first,
                      left_for(plan, plan->traffic->sent[to], round));
    }
    atomic_store_explicit(&published_of(direct, me)->value, number + 1, memory_order_release);
}

// This rank's own share, which is copied directly.
static void keep_own(const struct direct *direct, const struct plan *plan) {
    int me = direct->group->rank;
    const struct traffic *traffic = plan->traffic;
    const char *from = (const char *)plan->call->input + traffic->send_at[me] * plan->element_bytes;
    char *to = (char *)plan->call->out + traffic->receive_at[me] * plan->element_bytes;
    if (from != to) memcpy(to, from, traffic->received[me] * plan->element_bytes);
}

static int take(struct direct *direct, const struct plan *plan, size_t round) {
    struct group *group = direct->group;
    uint32_t number = direct->rounds + (uint32_t)round;
    for (int step = 1; step < group->size; step++) {
        int from = (group->rank + step) % group->size;
        if (!group_wait(group, &published_of(direct, from)->value, number + 1)) return -1;
        size_t first = plan->traffic->receive_at[from] * plan->element_bytes + round * plan->piece_bytes;
        memcpy((char *)plan->call->out + first, piece_of(direct, plan, from, group->rank, number),
               left_for(plan, plan->traffic->received[from], round));
    }
    return 0;
}

static int add(struct direct *direct, const struct plan *plan, size_t round) {
    struct group *group = direct->group;
    uint32_t number = direct->rounds + (uint32_t)round;
    size_t first = round * plan->piece_bytes, share = plan->traffic->send_at[group->rank];
    const void *sources[MAX_NODE_RANKS];
    for (int from = 0; from < group->size; from++) {
        if (!group_wait(group, &published_of(direct, from)->value, number + 1)) return -1;
        sources[from] = piece_of(direct, plan, from, group->rank, number);
    }
    sources[group->rank] = (const char *)plan->call->input + share * plan->element_bytes + first;
    size_t bytes = left_for(plan, plan->traffic->receive_elements, round);
    group->kernels->sum[plan->call->dtype][group->size]((char *)plan->call->out + first, sources, group->size,
                                                        bytes / plan->element_bytes);
    return 0;
}

static const char *direct_supports(const struct group *group, const struct call *call) {
    (void)group;
    (void)call;
    return NULL;
}

static int direct_setup(const struct candidate *candidate, struct group *group, void **state,
                        char reason[REASON_SIZE]) {
    (void)candidate;
    struct direct *direct = group_allocate(group, sizeof *direct, reason, REASON_SIZE);
    if (direct == NULL) return -1;
    direct->group = group;
    handover_begin(&direct->to_others, group);
    direct->slot_bytes = group->oversubscribed ? SLOT_BYTES_OVERSUBSCRIBED : SLOT_BYTES;
    direct->rank_bytes = PAGE + SLOTS * direct->slot_bytes;
    direct->shared = group_map(group, (size_t)group->size * direct->rank_bytes, reason, REASON_SIZE);
    *state = direct;
    if (direct->shared != NULL) return 0;
    free(direct);
    return -1;
}

static int direct_run(void *state, const struct call *call) {
    struct direct *direct = state;
    struct plan plan = cut(direct, call);
    bool adds = call->op == OP_REDUCESCATTER;
    publish(direct, &plan, 0);
    if (!adds) keep_own(direct, &plan);
    for (size_t round = 0; round < plan.rounds; round++) {
        if (round + 1 < plan.rounds) publish(direct, &plan, round + 1);
        int status = adds ? add(direct, &plan, round) : take(direct, &plan, round);
        if (status != 0) return -1;
    }
    direct->rounds += (uint32_t)plan.rounds;
    return 0;
}

static void direct_teardown(void *state) {
    struct direct *direct = state;
    group_unmap(direct->shared, (size_t)direct->group->size * direct->rank_bytes);
    free(direct);
}

const struct strategy strategy_direct = {
    .supports = direct_supports,
    .setup = direct_setup,
    .run = direct_run,
    .teardown = direct_teardown,
};
