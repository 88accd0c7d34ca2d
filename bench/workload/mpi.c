// The transport through MPI's non-blocking collectives; see transport.h. MPI has no 16-bit floating-point
// types: these are summed by operations of our own.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "ranks/group_mpi.h"
#include "ranks/mpi_sums.h"
#include "transport.h"

enum { UNIT = 64 };

struct by_mpi {
    MPI_Comm comms[MAX_CHANNELS];
    MPI_Request requests[MAX_CHANNELS][MAX_NODE_RANKS];
    int request_counts[MAX_CHANNELS];
    // Arguments that a call in progress still reads.
    int counts[MAX_CHANNELS][2][MAX_NODE_RANKS], places[MAX_CHANNELS][2][MAX_NODE_RANKS];
    struct mpi_sums sums;
};

static int mpi_level(int threads) {
    return threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
}

static int mpi_open(struct transport *transport, char reason[TRANSPORT_REASON]) {
    struct by_mpi *state = group_allocate(transport->group, sizeof *state, reason, TRANSPORT_REASON);
    if (state == NULL) return -1;
    for (int i = 0; i < transport->channels; i++)
        MPI_Comm_dup(group_comm(transport->group), &state->comms[i]);
    mpi_sums_make(&state->sums, transport->group->kernels);
    transport->state = state;
    return 0;
}

static void mpi_close(struct transport *transport) {
    struct by_mpi *state = transport->state;
    for (int i = 0; i < transport->channels; i++) MPI_Comm_free(&state->comms[i]);
    mpi_sums_free(&state->sums);
    free(state);
}

// Counts and offsets of the elements that are sent to (0) and received from (1) each peer.
static void set(struct by_mpi *state, int channel, int direction, int peer, size_t before, struct part part) {
    state->counts[channel][direction][peer] = (int)part.count;
    state->places[channel][direction][peer] = (int)(before + part.first);
}

static void begin_all_to_all(struct by_mpi *state, const struct slice *slice, int ranks) {
    const struct collective *collective = slice->collective;
    size_t slices = (size_t)slice->transport->channels, sent = 0, received = 0;
    int channel = slice->channel;
    for (int peer = 0; peer < ranks; peer++) {
        set(state, channel, 0, peer, sent, part_of(collective->send[peer], UNIT, slices, (size_t)channel));
        set(state, channel, 1, peer, received,
            part_of(collective->receive[peer], UNIT, slices, (size_t)channel));
        sent += collective->send[peer];
        received += collective->receive[peer];
    }
    MPI_Datatype type = state->sums.types[collective->dtype];
    MPI_Ialltoallv(collective->in, state->counts[channel][0], state->places[channel][0], type,
                   collective->out, state->counts[channel][1], state->places[channel][1], type,
                   state->comms[channel], &state->requests[channel][0]);
}

static void begin_all_gather(struct by_mpi *state, const struct slice *slice, struct part part, int ranks) {
    const struct collective *collective = slice->collective;
    int channel = slice->channel;
    for (int peer = 0; peer < ranks; peer++) {
        set(state, channel, 1, peer, (size_t)peer * collective->elements, part);
    }
    MPI_Datatype type = state->sums.types[collective->dtype];
    MPI_Iallgatherv(element_at(collective->in, collective->dtype, part.first), (int)part.count, type,
                    collective->out, state->counts[channel][1], state->places[channel][1], type,
                    state->comms[channel], &state->requests[channel][0]);
}

// A reduction to each rank: the pieces of a slice in the ranks' parts are not contiguous.
static void begin_reduce_scatter(struct by_mpi *state, const struct slice *slice, struct part part,
                                 int ranks) {
    const struct collective *collective = slice->collective;
    enum dtype dtype = collective->dtype;
    int channel = slice->channel;
    for (int root = 0; root < ranks; root++) {
        size_t first = (size_t)root * collective->elements + part.first;
        MPI_Ireduce(element_at(collective->in, dtype, first), element_at(collective->out, dtype, part.first),
                    (int)part.count, state->sums.types[dtype], state->sums.ops[dtype], root,
                    state->comms[channel], &state->requests[channel][root]);
    }
    state->request_counts[channel] = ranks;
}

static void mpi_begin(struct slice *slice) {
    struct by_mpi *state = slice->transport->state;
    const struct collective *collective = slice->collective;
    int ranks = slice->transport->group->size, channel = slice->channel;
    enum dtype dtype = collective->dtype;
    struct part part =
        part_of(collective->elements, UNIT, (size_t)slice->transport->channels, (size_t)channel);
    state->request_counts[channel] = 1;
    switch (collective->kind) {
    case ALLREDUCE:
        MPI_Iallreduce(element_at(collective->in, dtype, part.first),
                       element_at(collective->out, dtype, part.first), (int)part.count,
                       state->sums.types[dtype], state->sums.ops[dtype], state->comms[channel],
                       &state->requests[channel][0]);
        break;
    case ALL_GATHER: begin_all_gather(state, slice, part, ranks); break;
    case REDUCE_SCATTER: begin_reduce_scatter(state, slice, part, ranks); break;
    case ALL_TO_ALL: begin_all_to_all(state, slice, ranks); break;
    case COLLECTIVE_KINDS: break;
    }
    slice->active = true;
}

static bool mpi_progress(struct slice *slice) {
    struct by_mpi *state = slice->transport->state;
    int over = 0;
    MPI_Testall(state->request_counts[slice->channel], state->requests[slice->channel], &over,
                MPI_STATUSES_IGNORE);
    slice->active = !over;
    return over != 0;
}

const struct transport_kind transport_mpi = {
    .name = "mpi",
    .kernel = "MPI",
    .thread_level = mpi_level,
    .open = mpi_open,
    .close = mpi_close,
    .begin = mpi_begin,
    .progress = mpi_progress,
};
