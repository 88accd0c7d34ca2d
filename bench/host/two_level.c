// The allreduce in two levels; see two_level.h.
//
// A slice goes through these steps, each of which a rank reports in a counter of its own:
//   copied_in  every rank copies its input to a slot in shared memory;
//   reduced    every rank adds its share of the slice over the ranks of the node, to the partial sum;
//   published  the senders have summed the partial sums over the nodes, to the result;
//   consumed   every rank has passed the result to its epilogue.
// A rank begins a slice LAG slices before it waits for its result, so that messages travel meanwhile. Before
// a slot is used again, a rank waits for the counters of those that read it. A rank that is alone on its node
// needs neither slots for inputs nor partial sums.
#include "two_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/epilogue.h"
#include "host/node_sums.h"
#include "host/shared_copy.h"
#include "ranks/group_mpi.h"

enum {
    SLOTS = NODE_SUMS,
    LAG = SLOTS - 1,
    SLICES = 4, // of a message, if they are neither too small nor too large
    LEAST_SLICE_BYTES = 32 << 10,
    MOST_SLICE_BYTES = 512 << 10,
    ALIGN_ELEMENTS = 64,
    PAGE = 4096,
};

// The progress of one rank, which the others of its node read; slices so far.
struct progress {
    struct counter copied_in, reduced, published, consumed;
};

struct two_level {
    struct group *group;
    enum two_level_senders senders;
    bool is_sender;
    unsigned char *shared; // struct progress of each rank, a page each; then the slots
    uint32_t slices;       // so far, on every rank
    struct handover to_node;
    MPI_Comm comm; // of the senders with the same share, one on each node
    struct node_sums sums;
};

// One call, cut into slices.
struct plan {
    const struct call *call;
    size_t element_bytes, elements, slice_elements, slices;
    struct epilogue epilogue;
};

// Consecutive elements.
struct range {
    size_t first, count;
};

// ---- shared memory ------------------------------------------------------------------------------

static size_t shared_bytes(const struct group *group) {
    size_t ranks = (size_t)group->ranks_per_node;
    return ranks * PAGE + (ranks + 2) * SLOTS * MOST_SLICE_BYTES;
}

static struct progress *progress_of(const struct two_level *level, int index) {
    return (struct progress *)(level->shared + (size_t)index * PAGE);
}

// Slot `number` of a row of slots: a row of inputs for each rank, then one of partial sums, one of results.
static unsigned char *slot_in(const struct two_level *level, int row, uint32_t number) {
    size_t index = (size_t)row * SLOTS + number % SLOTS;
    return level->shared + (size_t)level->group->ranks_per_node * PAGE + index * MOST_SLICE_BYTES;
}

static unsigned char *partial_of(const struct two_level *level, uint32_t number) {
    return slot_in(level, level->group->ranks_per_node, number);
}

static unsigned char *result_of(const struct two_level *level, uint32_t number) {
    return slot_in(level, level->group->ranks_per_node + 1, number);
}

// ---- ranges -------------------------------------------------------------------------------------

static struct range slice_of(const struct plan *plan, size_t slice) {
    size_t first = slice * plan->slice_elements, left = plan->elements - first;
    return (struct range){first, left < plan->slice_elements ? left : plan->slice_elements};
}

// The share of the rank at `index`, from the beginning of the slice.
static struct range share_of(const struct group *group, struct range slice, int index) {
    size_t ranks = (size_t)group->ranks_per_node, each = (slice.count + ranks - 1) / ranks;
    each = (each + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    size_t first = (size_t)index * each < slice.count ? (size_t)index * each : slice.count;
    return (struct range){first, slice.count - first < each ? slice.count - first : each};
}

static struct range sent_share(const struct two_level *level, struct range slice) {
    if (level->senders == SENDERS_LEADERS) return (struct range){0, slice.count};
    return share_of(level->group, slice, level->group->local_index);
}

static struct plan cut(const struct two_level *level, const struct call *call) {
    struct plan plan = {.call = call, .elements = call_elements(call)};
    plan.element_bytes = dtype_sizes_bytes[call->dtype];
    size_t bytes = call_bytes(call) / SLICES;
    bytes = bytes < LEAST_SLICE_BYTES  ? LEAST_SLICE_BYTES
            : bytes > MOST_SLICE_BYTES ? MOST_SLICE_BYTES
                                       : bytes;
    plan.slice_elements = bytes / plan.element_bytes / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    plan.slices = (plan.elements + plan.slice_elements - 1) / plan.slice_elements;
    epilogue_begin(&plan.epilogue, level->group->kernels, call, 0);
    return plan;
}

// ---- waiting ------------------------------------------------------------------------------------

// Advances the sums in flight, so that their messages do not wait for this rank.
static void advance(struct two_level *level) {
    for (int slot = 0; level->is_sender && slot < SLOTS; slot++) node_sums_is_over(&level->sums, slot);
}

static bool wait_for(struct two_level *level, const struct counter *counter, uint32_t target) {
    uint64_t polls = 0, since_ns = 0;
    while (!counter_reached(atomic_load_explicit(&counter->value, memory_order_acquire), target)) {
        advance(level);
        if (!group_poll(level->group, &polls, &since_ns)) return false;
    }
    return true;
}

static void report(struct counter *counter, uint32_t number) {
    atomic_store_explicit(&counter->value, number + 1, memory_order_release);
}

// ---- the steps of a slice -----------------------------------------------------------------------

static const unsigned char *input_of(const struct plan *plan, struct range slice) {
    return (const unsigned char *)plan->call->input + slice.first * plan->element_bytes;
}

static bool copy_in(struct two_level *level, const struct plan *plan, struct range slice, uint32_t number) {
    struct group *group = level->group;
    for (int i = 0; i < group->ranks_per_node; i++) {
        if (!wait_for(level, &progress_of(level, i)->reduced, number + 1 - SLOTS)) return false;
    }
    handover_copy(&level->to_node, slot_in(level, group->local_index, number), input_of(plan, slice),
                  slice.count * plan->element_bytes);
    report(&progress_of(level, group->local_index)->copied_in, number);
    return true;
}

// The partial sum of slot `number` is free once the rank that sends it has published the slice before in it.
static bool reduce(struct two_level *level, const struct plan *plan, struct range slice, uint32_t number) {
    struct group *group = level->group;
    int me = group->local_index, sender = level->senders == SENDERS_ALL ? me : 0;
    struct range share = share_of(group, slice, me);
    size_t at = share.first * plan->element_bytes;
    const void *sources[MAX_RANKS];
    if (!wait_for(level, &progress_of(level, sender)->published, number + 1 - SLOTS)) return false;
    for (int i = 0; i < group->ranks_per_node; i++) {
        if (!wait_for(level, &progress_of(level, i)->copied_in, number + 1)) return false;
        sources[i] = slot_in(level, i, number) + at;
    }
    sources[me] = input_of(plan, slice) + at;
    group->kernels->sum[plan->call->dtype][group->ranks_per_node](partial_of(level, number) + at, sources,
                                                                  group->ranks_per_node, share.count);
    report(&progress_of(level, me)->reduced, number);
    return true;
}

// A leader sends what all ranks have reduced. The result of slot `number` is free once all have consumed the
// slice before in it.
static bool begin_sum(struct two_level *level, const struct plan *plan, struct range slice, uint32_t number) {
    struct group *group = level->group;
    bool is_alone = group->ranks_per_node == 1;
    struct range share = sent_share(level, slice);
    size_t at = share.first * plan->element_bytes;
    const unsigned char *partial = is_alone ? input_of(plan, slice) : partial_of(level, number);
    for (int i = 0; i < group->ranks_per_node; i++) {
        const struct progress *progress = progress_of(level, i);
        if (!wait_for(level, &progress->consumed, number + 1 - SLOTS)) return false;
        bool is_needed = !is_alone && level->senders == SENDERS_LEADERS;
        if (is_needed && !wait_for(level, &progress->reduced, number + 1)) return false;
    }
    node_sums_begin(&level->sums, (int)(number % SLOTS), plan->call->dtype, partial + at,
                    result_of(level, number) + at, share.count * plan->element_bytes);
    return true;
}

static bool begin_slice(struct two_level *level, const struct plan *plan, size_t slice) {
    struct range range = slice_of(plan, slice);
    uint32_t number = level->slices + (uint32_t)slice;
    bool is_alone = level->group->ranks_per_node == 1;
    if (!is_alone && !(copy_in(level, plan, range, number) && reduce(level, plan, range, number)))
        return false;
    return !level->is_sender || begin_sum(level, plan, range, number);
}

static bool publish(struct two_level *level, uint32_t number) {
    uint64_t polls = 0, since_ns = 0;
    while (!node_sums_is_over(&level->sums, (int)(number % SLOTS))) {
        advance(level);
        if (!group_poll(level->group, &polls, &since_ns)) return false;
    }
    report(&progress_of(level, level->group->local_index)->published, number);
    return true;
}

static bool end_slice(struct two_level *level, struct plan *plan, size_t slice) {
    struct range range = slice_of(plan, slice);
    uint32_t number = level->slices + (uint32_t)slice;
    int senders = level->senders == SENDERS_ALL ? level->group->ranks_per_node : 1;
    if (level->is_sender && !publish(level, number)) return false;
    for (int i = 0; i < senders; i++) {
        if (!wait_for(level, &progress_of(level, i)->published, number + 1)) return false;
    }
    epilogue_consume(&plan->epilogue, (const void *const[]){result_of(level, number)}, 1, range.count);
    report(&progress_of(level, level->group->local_index)->consumed, number);
    return true;
}

// ---- the functions of a strategy ----------------------------------------------------------------

const char *two_level_supports(const struct group *group, const struct call *call) {
    (void)group;
    (void)call;
    return NULL;
}

// Whether all ranks have their memory; `reason` otherwise.
static bool open_memory(struct two_level *level, char reason[REASON_SIZE]) {
    struct group *group = level->group;
    level->shared = group_map(group, shared_bytes(group), reason, REASON_SIZE);
    if (level->shared == NULL) return false;
    bool is_open =
        !level->is_sender || node_sums_open(&level->sums, level->comm, group->kernels, MOST_SLICE_BYTES);
    snprintf(reason, REASON_SIZE, "out of memory");
    return group_all_right(group, is_open, reason, REASON_SIZE);
}

int two_level_setup(struct group *group, enum two_level_senders senders, void **state,
                    char reason[REASON_SIZE]) {
    struct two_level *level = group_allocate(group, sizeof *level, reason, REASON_SIZE);
    if (level == NULL) return -1;
    level->group = group;
    level->senders = senders;
    level->is_sender = senders == SENDERS_ALL || group->local_index == 0;
    handover_begin(&level->to_node, group);
    MPI_Comm_split(group_comm(group), level->is_sender ? group->local_index : MPI_UNDEFINED, group->node,
                   &level->comm);
    *state = level;
    if (open_memory(level, reason)) return 0;
    two_level_teardown(level);
    return -1;
}

int two_level_run(void *state, const struct call *call) {
    struct two_level *level = state;
    struct plan plan = cut(level, call);
    for (size_t step = 0; step < plan.slices + LAG; step++) {
        if (step < plan.slices && !begin_slice(level, &plan, step)) return -1;
        if (step >= LAG && !end_slice(level, &plan, step - LAG)) return -1;
    }
    level->slices += (uint32_t)plan.slices;
    return 0;
}

void two_level_teardown(void *state) {
    struct two_level *level = state;
    node_sums_close(&level->sums);
    if (level->comm != MPI_COMM_NULL) MPI_Comm_free(&level->comm);
    group_unmap(level->shared, shared_bytes(level->group));
    free(level);
}
