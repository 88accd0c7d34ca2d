// The allreduce in two levels; see two_level.h.
//
// A slice goes through these steps, each of which a rank reports in a counter of its own:
//   copied_in  every rank copies its input to a slot in shared memory;
//   reduced    every rank adds its share of the slice over the ranks of its domain, to the partial sum;
//   published  the partial sums are summed over the domains, to the result;
//   consumed   every rank has passed the result to its epilogue.
// A domain is a node, or a NUMA node. A rank begins a slice LAG slices before it waits for its result, so
// that messages travel meanwhile. Before a slot is used again, a rank waits for the counters of those that
// read it. A rank that is alone on its node needs neither slots for inputs nor partial sums.
#include "two_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/processor.h"
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

// The ranks of this node in domains of `size` ranks; ranks by their places among those of the node.
struct domains {
    int count, mine, size;
    int index;                                 // this rank's place in its domain
    int ranks[MAX_NODE_RANKS][MAX_NODE_RANKS]; // of each domain
};

struct two_level {
    struct group *group;
    enum upper_level upper;
    bool is_sender; // of messages
    struct domains domains;
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

static size_t shared_bytes(const struct two_level *level) {
    size_t ranks = (size_t)level->group->ranks_per_node, domains = (size_t)level->domains.count;
    return ranks * PAGE + (ranks + 2 * domains) * SLOTS * MOST_SLICE_BYTES;
}

// The rank of a domain with this place in it.
static struct progress *progress_in(const struct two_level *level, int domain, int index) {
    return (struct progress *)(level->shared + (size_t)level->domains.ranks[domain][index] * PAGE);
}

static struct progress *progress_of(const struct two_level *level, int index) {
    return progress_in(level, level->domains.mine, index);
}

// Slot `number` of a row of slots: a row of inputs for each rank, then of partial sums and of results for
// each domain.
static unsigned char *slot_in(const struct two_level *level, int row, uint32_t number) {
    size_t index = (size_t)row * SLOTS + number % SLOTS;
    return level->shared + (size_t)level->group->ranks_per_node * PAGE + index * MOST_SLICE_BYTES;
}

static unsigned char *partial_of(const struct two_level *level, int domain, uint32_t number) {
    return slot_in(level, level->group->ranks_per_node + domain, number);
}

static unsigned char *result_of(const struct two_level *level, uint32_t number) {
    const struct domains *domains = &level->domains;
    return slot_in(level, level->group->ranks_per_node + domains->count + domains->mine, number);
}

// Whether the input of this rank is the partial sum of its domain, which no other rank reads.
static bool is_alone(const struct two_level *level) {
    return level->domains.size == 1 && level->upper != OVER_NUMA_NODES;
}

// ---- ranges -------------------------------------------------------------------------------------

static struct range slice_of(const struct plan *plan, size_t slice) {
    size_t first = slice * plan->slice_elements, left = plan->elements - first;
    return (struct range){first, left < plan->slice_elements ? left : plan->slice_elements};
}

// The share of this rank, from the beginning of the slice.
static struct range share_of(const struct domains *domains, struct range slice) {
    size_t ranks = (size_t)domains->size, each = (slice.count + ranks - 1) / ranks;
    each = (each + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    size_t first = (size_t)domains->index * each < slice.count ? (size_t)domains->index * each : slice.count;
    return (struct range){first, slice.count - first < each ? slice.count - first : each};
}

static struct range sent_share(const struct two_level *level, struct range slice) {
    if (level->upper == OVER_NODES_BY_LEADERS) return (struct range){0, slice.count};
    return share_of(&level->domains, slice);
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
    const struct domains *domains = &level->domains;
    for (int i = 0; i < domains->size; i++) {
        if (!wait_for(level, &progress_of(level, i)->reduced, number + 1 - SLOTS)) return false;
    }
    handover_copy(&level->to_node, slot_in(level, level->group->local_index, number), input_of(plan, slice),
                  slice.count * plan->element_bytes);
    report(&progress_of(level, domains->index)->copied_in, number);
    return true;
}

// The partial sum of slot `number` is free once the ranks that read it have published the slice before in it.
static bool wait_for_partial(struct two_level *level, uint32_t number) {
    int reader = level->upper == OVER_NODES_BY_LEADERS ? 0 : level->domains.index;
    for (int domain = 0; domain < level->domains.count; domain++) {
        if (!wait_for(level, &progress_in(level, domain, reader)->published, number + 1 - SLOTS))
            return false;
    }
    return true;
}

static bool reduce(struct two_level *level, const struct plan *plan, struct range slice, uint32_t number) {
    const struct domains *domains = &level->domains;
    struct range share = share_of(domains, slice);
    size_t at = share.first * plan->element_bytes;
    const void *sources[MAX_NODE_RANKS];
    if (!wait_for_partial(level, number)) return false;
    for (int i = 0; i < domains->size; i++) {
        if (!wait_for(level, &progress_of(level, i)->copied_in, number + 1)) return false;
        sources[i] = slot_in(level, domains->ranks[domains->mine][i], number) + at;
    }
    sources[domains->index] = input_of(plan, slice) + at;
    level->group->kernels->sum[plan->call->dtype][domains->size](
        partial_of(level, domains->mine, number) + at, sources, domains->size, share.count);
    report(&progress_of(level, domains->index)->reduced, number);
    return true;
}

// The result of slot `number` is free once all ranks of the domain have consumed the slice before in it.
static bool wait_for_result(struct two_level *level, uint32_t number) {
    for (int i = 0; i < level->domains.size; i++) {
        if (!wait_for(level, &progress_of(level, i)->consumed, number + 1 - SLOTS)) return false;
    }
    return true;
}

// A leader sends what all ranks have reduced.
static bool begin_sum(struct two_level *level, const struct plan *plan, struct range slice, uint32_t number) {
    struct range share = sent_share(level, slice);
    size_t at = share.first * plan->element_bytes;
    const unsigned char *partial =
        is_alone(level) ? input_of(plan, slice) : partial_of(level, level->domains.mine, number);
    bool is_leader = !is_alone(level) && level->upper == OVER_NODES_BY_LEADERS;
    if (!wait_for_result(level, number)) return false;
    for (int i = 0; is_leader && i < level->domains.size; i++) {
        if (!wait_for(level, &progress_of(level, i)->reduced, number + 1)) return false;
    }
    node_sums_begin(&level->sums, (int)(number % SLOTS), plan->call->dtype, partial + at,
                    result_of(level, number) + at, share.count * plan->element_bytes);
    return true;
}

static bool begin_slice(struct two_level *level, const struct plan *plan, size_t slice) {
    struct range range = slice_of(plan, slice);
    uint32_t number = level->slices + (uint32_t)slice;
    if (!is_alone(level) && !(copy_in(level, plan, range, number) && reduce(level, plan, range, number)))
        return false;
    return !level->is_sender || begin_sum(level, plan, range, number);
}

// Sums the share of this rank over the NUMA nodes.
static bool sum_domains(struct two_level *level, const struct plan *plan, struct range slice,
                        uint32_t number) {
    const struct domains *domains = &level->domains;
    struct range share = share_of(domains, slice);
    size_t at = share.first * plan->element_bytes;
    const void *sources[MAX_NODE_RANKS];
    if (!wait_for_result(level, number)) return false;
    for (int domain = 0; domain < domains->count; domain++) {
        const struct progress *peer = progress_in(level, domain, domains->index);
        if (!wait_for(level, &peer->reduced, number + 1)) return false;
        sources[domain] = partial_of(level, domain, number) + at;
    }
    level->group->kernels->sum[plan->call->dtype][domains->count](result_of(level, number) + at, sources,
                                                                  domains->count, share.count);
    report(&progress_of(level, domains->index)->published, number);
    return true;
}

static bool publish(struct two_level *level, uint32_t number) {
    uint64_t polls = 0, since_ns = 0;
    while (!node_sums_is_over(&level->sums, (int)(number % SLOTS))) {
        advance(level);
        if (!group_poll(level->group, &polls, &since_ns)) return false;
    }
    report(&progress_of(level, level->domains.index)->published, number);
    return true;
}

static bool end_slice(struct two_level *level, struct plan *plan, size_t slice) {
    struct range range = slice_of(plan, slice);
    uint32_t number = level->slices + (uint32_t)slice;
    int publishers = level->upper == OVER_NODES_BY_LEADERS ? 1 : level->domains.size;
    if (level->is_sender && !publish(level, number)) return false;
    if (level->upper == OVER_NUMA_NODES && !sum_domains(level, plan, range, number)) return false;
    for (int i = 0; i < publishers; i++) {
        if (!wait_for(level, &progress_of(level, i)->published, number + 1)) return false;
    }
    epilogue_consume(&plan->epilogue, (const void *const[]){result_of(level, number)}, 1, range.count);
    report(&progress_of(level, level->domains.index)->consumed, number);
    return true;
}

// ---- the functions of a strategy ----------------------------------------------------------------

const char *two_level_supports(const struct group *group, const struct call *call) {
    (void)group;
    (void)call;
    return NULL;
}

// All ranks of this node as one domain.
static void set_one_domain(struct domains *domains, const struct group *group) {
    *domains = (struct domains){.count = 1, .size = group->ranks_per_node, .index = group->local_index};
    for (int i = 0; i < domains->size; i++) domains->ranks[0][i] = i;
}

// The NUMA nodes as domains, in the order of their first ranks. Returns whether there are several, all with
// the same number of ranks, and this number is at least two.
static bool set_numa_domains(struct domains *domains, const struct group *group, const int numa_nodes[]) {
    int sizes[MAX_NODE_RANKS] = {0}, nodes[MAX_NODE_RANKS];
    *domains = (struct domains){0};
    for (int rank = 0; rank < group->size; rank++) {
        int domain = 0;
        while (domain < domains->count && nodes[domain] != numa_nodes[rank]) domain++;
        if (domain == domains->count) nodes[domains->count++] = numa_nodes[rank];
        if (rank == group->rank) {
            domains->mine = domain;
            domains->index = sizes[domain];
        }
        domains->ranks[domain][sizes[domain]++] = rank;
    }
    domains->size = sizes[0];
    for (int domain = 0; domain < domains->count; domain++) {
        if (sizes[domain] != sizes[0] || nodes[domain] < 0) return false;
    }
    return domains->count > 1 && domains->size > 1;
}

// Sets the domains of all ranks; false with the reason on all ranks.
static bool find_domains(struct two_level *level, char reason[REASON_SIZE]) {
    struct group *group = level->group;
    int numa_nodes[MAX_NODE_RANKS];
    set_one_domain(&level->domains, group);
    if (level->upper != OVER_NUMA_NODES) return true;
    if (!group_is_on_one_node(group, reason, REASON_SIZE)) return false;
    int mine = processor_numa_node();
    bool exchanged = group_exchange(group, &mine, sizeof mine, numa_nodes);
    if (exchanged && set_numa_domains(&level->domains, group, numa_nodes)) return true;
    set_one_domain(&level->domains, group);
    snprintf(reason, REASON_SIZE, "ranks are not bound to several NUMA nodes, two or more on each");
    return false;
}

// Whether all ranks have their memory; `reason` otherwise.
static bool open_memory(struct two_level *level, char reason[REASON_SIZE]) {
    struct group *group = level->group;
    level->shared = group_map(group, shared_bytes(level), reason, REASON_SIZE);
    if (level->shared == NULL) return false;
    bool is_open =
        !level->is_sender || node_sums_open(&level->sums, level->comm, group->kernels, MOST_SLICE_BYTES);
    snprintf(reason, REASON_SIZE, "out of memory");
    return group_all_right(group, is_open, reason, REASON_SIZE);
}

int two_level_setup(struct group *group, enum upper_level upper, void **state, char reason[REASON_SIZE]) {
    struct two_level *level = group_allocate(group, sizeof *level, reason, REASON_SIZE);
    if (level == NULL) return -1;
    level->group = group;
    level->upper = upper;
    level->comm = MPI_COMM_NULL;
    *state = level;
    if (find_domains(level, reason)) {
        level->is_sender =
            upper == OVER_NODES_BY_ALL || (upper == OVER_NODES_BY_LEADERS && group->local_index == 0);
        handover_begin(&level->to_node, group);
        MPI_Comm_split(group_comm(group), level->is_sender ? group->local_index : MPI_UNDEFINED, group->node,
                       &level->comm);
        if (open_memory(level, reason)) return 0;
    }
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
    group_unmap(level->shared, shared_bytes(level));
    free(level);
}
