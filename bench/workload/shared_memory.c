// The transport through shared memory; see transport.h.
//
// Between each two ranks, each channel has two lanes in each direction, of a few slots each: data to be
// reduced or only moved go through the first lane, sums through the second. The writer counts written slots,
// the reader counts read slots; both only grow. A slice is complete when all its lanes are.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport.h"

enum { SLOTS = 4, SLOT_BYTES = 64 << 10, LANES = 2, UNIT = 64 };

// The counts of one direction of a lane between two ranks.
struct ends {
    struct counter written, read;
};

// The bytes of one slice through one lane to and from one peer, in total and so far.
struct flow {
    const unsigned char *from;
    unsigned char *to;
    size_t send, sent, receive, received;
};

struct channel {
    struct flow flows[LANES][MAX_NODE_RANKS];
    uint32_t written[LANES][MAX_NODE_RANKS], read[LANES][MAX_NODE_RANKS]; // slots, so far
    bool reduces;                                                         // the first lane is summed
    enum dtype dtype;
    const unsigned char *addend; // this rank's own
    unsigned char *sum;
    size_t reduced, to_reduce; // bytes
};

struct shared_state {
    struct ends *ends;    // shared: [channel][lane][writer][reader]
    unsigned char *slots; // shared, likewise, SLOTS each
    size_t shared_bytes;
    struct channel channels[MAX_CHANNELS];
};

static size_t index_of(const struct transport *transport, int channel, int lane, int writer, int reader) {
    size_t ranks = (size_t)transport->group->size;
    return (((size_t)channel * LANES + (size_t)lane) * ranks + (size_t)writer) * ranks + (size_t)reader;
}

static unsigned char *slot_at(const struct shared_state *shared, size_t index, uint32_t number) {
    return shared->slots + (index * SLOTS + number % SLOTS) * SLOT_BYTES;
}

static int own_level(int threads) {
    (void)threads;
    return MPI_THREAD_FUNNELED;
}

static int own_open(struct transport *transport, char reason[TRANSPORT_REASON]) {
    struct group *group = transport->group;
    size_t pairs = index_of(transport, transport->channels, 0, 0, 0);
    struct shared_state *shared = group_allocate(group, sizeof *shared, reason, TRANSPORT_REASON);
    if (shared == NULL) return -1;
    shared->shared_bytes = pairs * (sizeof(struct ends) + (size_t)SLOTS * SLOT_BYTES);
    shared->slots = group_map(group, shared->shared_bytes, reason, TRANSPORT_REASON);
    if (shared->slots == NULL) {
        free(shared);
        return -1;
    }
    shared->ends = (struct ends *)(void *)(shared->slots + pairs * SLOTS * SLOT_BYTES);
    transport->state = shared;
    return 0;
}

static void own_close(struct transport *transport) {
    struct shared_state *shared = transport->state;
    group_unmap(shared->slots, shared->shared_bytes);
    free(shared);
}

// ---- sizes of a slice ---------------------------------------------------------------------------

// The bytes of a slice in `count` elements of a collective.
static struct part bytes_of(const struct collective *collective, size_t count, size_t slices, size_t index) {
    struct part part = part_of(count, UNIT, slices, index);
    size_t size = dtype_sizes_bytes[collective->dtype];
    return (struct part){part.first * size, part.count * size};
}

static size_t all_bytes(const struct collective *collective, size_t count) {
    return count * dtype_sizes_bytes[collective->dtype];
}

static void flow(struct channel *channel, int lane, int peer, const unsigned char *from, size_t send,
                 unsigned char *to, size_t receive) {
    channel->flows[lane][peer] = (struct flow){.from = from, .to = to, .send = send, .receive = receive};
}

static void begin_all_to_all(struct channel *channel, const struct collective *collective, size_t slices,
                             size_t index, int me, int ranks) {
    const unsigned char *from = collective->in;
    unsigned char *to = collective->out;
    for (int peer = 0; peer < ranks; peer++) {
        struct part send = bytes_of(collective, collective->send[peer], slices, index);
        struct part receive = bytes_of(collective, collective->receive[peer], slices, index);
        if (peer == me)
            memcpy(to + send.first, from + send.first, send.count);
        else
            flow(channel, 0, peer, from + send.first, send.count, to + receive.first, receive.count);
        from += all_bytes(collective, collective->send[peer]);
        to += all_bytes(collective, collective->receive[peer]);
    }
}

static void begin_all_gather(struct channel *channel, const struct collective *collective, size_t slices,
                             size_t index, int me, int ranks) {
    struct part part = bytes_of(collective, collective->elements, slices, index);
    const unsigned char *from = (const unsigned char *)collective->in + part.first;
    unsigned char *to = (unsigned char *)collective->out + part.first;
    for (int peer = 0; peer < ranks; peer++) {
        if (peer == me)
            memcpy(to, from, part.count);
        else
            flow(channel, 0, peer, from, part.count, to, part.count);
        to += all_bytes(collective, collective->elements);
    }
}

// The first lane brings what this rank sums: as many bytes of each peer as of its own input.
static void begin_reduction(struct channel *channel, enum dtype dtype, const unsigned char *addend,
                            unsigned char *sum, size_t count) {
    channel->reduces = true;
    channel->dtype = dtype;
    channel->addend = addend;
    channel->sum = sum;
    channel->to_reduce = count;
}

static void begin_reduce_scatter(struct channel *channel, const struct collective *collective, size_t slices,
                                 size_t index, int me, int ranks) {
    struct part part = bytes_of(collective, collective->elements, slices, index);
    size_t each = all_bytes(collective, collective->elements);
    const unsigned char *in = (const unsigned char *)collective->in + part.first;
    for (int peer = 0; peer < ranks; peer++) {
        if (peer != me) flow(channel, 0, peer, in + (size_t)peer * each, part.count, NULL, part.count);
    }
    begin_reduction(channel, collective->dtype, in + (size_t)me * each,
                    (unsigned char *)collective->out + part.first, part.count);
}

static void begin_allreduce(struct channel *channel, const struct collective *collective, size_t slices,
                            size_t index, int me, int ranks) {
    struct part slice = part_of(collective->elements, UNIT, slices, index);
    struct part mine = bytes_of(collective, slice.count, (size_t)ranks, (size_t)me);
    const unsigned char *in = (const unsigned char *)collective->in + all_bytes(collective, slice.first);
    unsigned char *out = (unsigned char *)collective->out + all_bytes(collective, slice.first);
    for (int peer = 0; peer < ranks; peer++) {
        if (peer == me) continue;
        struct part theirs = bytes_of(collective, slice.count, (size_t)ranks, (size_t)peer);
        flow(channel, 0, peer, in + theirs.first, theirs.count, NULL, mine.count);
        flow(channel, 1, peer, out + mine.first, mine.count, out + theirs.first, theirs.count);
    }
    begin_reduction(channel, collective->dtype, in + mine.first, out + mine.first, mine.count);
}

static void own_begin(struct slice *slice) {
    static void (*const begin[COLLECTIVE_KINDS])(struct channel *, const struct collective *, size_t, size_t,
                                                 int, int) = {
        [ALLREDUCE] = begin_allreduce,
        [ALL_GATHER] = begin_all_gather,
        [REDUCE_SCATTER] = begin_reduce_scatter,
        [ALL_TO_ALL] = begin_all_to_all,
    };
    struct transport *transport = slice->transport;
    struct channel *channel = &((struct shared_state *)transport->state)->channels[slice->channel];
    memset(channel->flows, 0, sizeof channel->flows);
    channel->reduces = false;
    channel->reduced = channel->to_reduce = 0;
    begin[slice->collective->kind](channel, slice->collective, (size_t)transport->channels,
                                   (size_t)slice->channel, transport->group->rank, transport->group->size);
    slice->active = true;
}

// ---- moving a slice -----------------------------------------------------------------------------

static size_t piece(size_t moved, size_t all) {
    return all - moved < SLOT_BYTES ? all - moved : SLOT_BYTES;
}

// Sends the next piece, if a slot is free; a sum, only after it is complete.
static bool send_piece(struct transport *transport, int number, int lane, int peer) {
    struct shared_state *shared = transport->state;
    struct channel *channel = &shared->channels[number];
    struct flow *flow = &channel->flows[lane][peer];
    size_t count = piece(flow->sent, flow->send);
    if (count == 0 || (lane == 1 && flow->sent + count > channel->reduced)) return false;
    size_t index = index_of(transport, number, lane, transport->group->rank, peer);
    uint32_t *written = &channel->written[lane][peer];
    if (*written - atomic_load_explicit(&shared->ends[index].read.value, memory_order_acquire) == SLOTS)
        return false;
    memcpy(slot_at(shared, index, *written), flow->from + flow->sent, count);
    flow->sent += count;
    atomic_store_explicit(&shared->ends[index].written.value, ++*written, memory_order_release);
    return true;
}

// The next piece from a peer; NULL: it has not arrived.
static const unsigned char *next_slot(const struct transport *transport, int number, int lane, int peer) {
    const struct shared_state *shared = transport->state;
    size_t index = index_of(transport, number, lane, peer, transport->group->rank);
    uint32_t read = shared->channels[number].read[lane][peer];
    uint32_t written = atomic_load_explicit(&shared->ends[index].written.value, memory_order_acquire);
    return written == read ? NULL : slot_at(shared, index, read);
}

static void give_back_slot(struct transport *transport, int number, int lane, int peer) {
    struct shared_state *shared = transport->state;
    size_t index = index_of(transport, number, lane, peer, transport->group->rank);
    uint32_t read = ++shared->channels[number].read[lane][peer];
    atomic_store_explicit(&shared->ends[index].read.value, read, memory_order_release);
}

static bool receive_piece(struct transport *transport, int number, int lane, int peer) {
    struct shared_state *shared = transport->state;
    struct flow *flow = &shared->channels[number].flows[lane][peer];
    size_t count = piece(flow->received, flow->receive);
    if (count == 0) return false;
    const unsigned char *slot = next_slot(transport, number, lane, peer);
    if (slot == NULL) return false;
    memcpy(flow->to + flow->received, slot, count);
    flow->received += count;
    give_back_slot(transport, number, lane, peer);
    return true;
}

// Sums the next piece, if all peers' pieces have arrived.
static bool reduce_piece(struct transport *transport, int number) {
    struct group *group = transport->group;
    struct channel *channel = &((struct shared_state *)transport->state)->channels[number];
    size_t count = piece(channel->reduced, channel->to_reduce);
    const void *addends[MAX_NODE_RANKS];
    if (count == 0) return false;
    for (int rank = 0; rank < group->size; rank++) {
        addends[rank] =
            rank == group->rank ? channel->addend + channel->reduced : next_slot(transport, number, 0, rank);
        if (addends[rank] == NULL) return false;
    }
    group->kernels->sum[channel->dtype][group->size](channel->sum + channel->reduced, addends, group->size,
                                                     count / dtype_sizes_bytes[channel->dtype]);
    channel->reduced += count;
    for (int rank = 0; rank < group->size; rank++) {
        if (rank == group->rank) continue;
        channel->flows[0][rank].received += count;
        give_back_slot(transport, number, 0, rank);
    }
    return true;
}

static bool is_over(const struct channel *channel, int ranks) {
    if (channel->reduced < channel->to_reduce) return false;
    for (int lane = 0; lane < LANES; lane++) {
        for (int peer = 0; peer < ranks; peer++) {
            const struct flow *flow = &channel->flows[lane][peer];
            if (flow->sent < flow->send || flow->received < flow->receive) return false;
        }
    }
    return true;
}

static bool own_progress(struct slice *slice) {
    struct transport *transport = slice->transport;
    struct channel *channel = &((struct shared_state *)transport->state)->channels[slice->channel];
    int me = transport->group->rank, ranks = transport->group->size, number = slice->channel;
    bool any = false, moved[MAX_NODE_RANKS] = {false};
    bool reduced = channel->reduces && reduce_piece(transport, number);
    for (int step = 1; step < ranks; step++) {
        int peer = (me + step) % ranks;
        for (int lane = 0; lane < LANES; lane++) {
            bool takes = lane == 1 || !channel->reduces;
            moved[peer] |= send_piece(transport, number, lane, peer);
            moved[peer] |= takes && receive_piece(transport, number, lane, peer);
        }
        if (reduced || moved[peer])
            event_count_advance(event_count_of(transport, peer, number % transport->threads));
        any = any || reduced || moved[peer];
    }
    if (!any && is_over(channel, ranks)) {
        slice->active = false;
        return true;
    }
    return any;
}

const struct transport_kind transport_shared_memory = {
    .name = "builtin",
    .kernel = "TWOSHOT",
    .thread_level = own_level,
    .open = own_open,
    .close = own_close,
    .begin = own_begin,
    .progress = own_progress,
};
