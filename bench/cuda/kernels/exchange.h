// Collectives other than allreduce: EXCHANGE, in which each rank has a part for each other (all_gather: the
// same part for all; all_to_all: parts of any sizes), and REDUCE_SCATTER, which adds the parts. Each rank
// copies its input into its workspace; after a barrier each takes its parts from all workspaces; after
// another barrier the next launch may overwrite them. Grids must be equal on all ranks and in all launches on
// a workspace, and all blocks must be resident together.
//
// A part is distributed over blocks and threads in chunks of 16 bytes from its beginning, in the same way
// when it is copied in and when it is taken: block b needs only block b of the other ranks. A part that does
// not begin or end on 16 bytes is moved in smaller accesses.
#ifndef BENCH_CUDA_EXCHANGE_H
#define BENCH_CUDA_EXCHANGE_H

#include "ranks.h"
#include "reduce.h"
#include "state.h"

constexpr uint64_t CHUNK = sizeof(Word4);

// What one rank sends to another: its offset in the sender's input and workspace, its offset in the
// receiver's output, and its size.
struct Part {
    uint64_t from, to, bytes;
};

// What a kernel of TP ranks is launched with; see parameters.h.
template <int tp> struct ExchangeLaunch {
    ExchangeCall call;
    Word4 *slots[tp];
    uint32_t *flags[tp];
    RankParameters ranks[tp];
    uint64_t bytes[tp][tp]; // from rank, to rank
};

template <int tp> DEVICE_FUNCTION Part part_of(const ExchangeLaunch<tp> &launch, int sender, int receiver) {
    Part part = {0, 0, launch.bytes[sender][receiver]};
    for (int rank = 0; launch.call.gathers == 0 && rank < receiver; rank++)
        part.from += launch.bytes[sender][rank];
    for (int rank = 0; launch.call.reduces == 0 && rank < sender; rank++)
        part.to += launch.bytes[rank][receiver];
    return part;
}

// The widest access that can move the part, on both sides.
DEVICE_FUNCTION unsigned width_of(const Part &part) {
    uint64_t all = part.from | part.to | part.bytes;
#ifdef FAULT_WIDE_ACCESSES
    all = 0;
#endif
    return all % CHUNK == 0 ? 16 : all % 4 == 0 ? 4 : 2;
}

template <unsigned width> DEVICE_FUNCTION Word4 load_chunk(const unsigned char *from, uint64_t bytes) {
    if constexpr (width == CHUNK) {
        return load_plain(reinterpret_cast<const Word4 *>(from));
    } else {
        Word4 chunk = {};
        for (unsigned at = 0; at < CHUNK; at += width) {
            if (at < bytes) chunk.word[at / 4] |= load_bytes(from + at, width) << (at % 4 * 8);
        }
        return chunk;
    }
}

template <unsigned width> DEVICE_FUNCTION void store_chunk(unsigned char *to, Word4 chunk, uint64_t bytes) {
    if constexpr (width == CHUNK) {
        store_plain(reinterpret_cast<Word4 *>(to), chunk);
    } else {
        for (unsigned at = 0; at < CHUNK; at += width) {
            if (at < bytes) store_bytes(to + at, chunk.word[at / 4] >> (at % 4 * 8), width);
        }
    }
}

// Calls each(at, bytes) for this thread's chunks of a part.
template <class Each> DEVICE_FUNCTION void for_each_chunk(uint64_t bytes, Each each) {
    uint64_t stride = static_cast<uint64_t>(grid_size()) * block_size() * CHUNK;
#ifdef FAULT_SKIP_LAST_ACCESS
    bytes -= bytes < CHUNK ? bytes : CHUNK;
#endif
    uint64_t at = (static_cast<uint64_t>(block_index()) * block_size() + thread_index()) * CHUNK;
    for (; at < bytes; at += stride) each(at, bytes - at < CHUNK ? bytes - at : CHUNK);
}

template <unsigned width>
DEVICE_FUNCTION void copy_chunks(const unsigned char *from, unsigned char *to, uint64_t bytes) {
    for_each_chunk(bytes, [&](uint64_t at, uint64_t left) {
        store_chunk<width>(to + at, load_chunk<width>(from + at, left), left);
    });
}

DEVICE_FUNCTION void copy_part(const unsigned char *from, unsigned char *to, const Part &part) {
    unsigned width = width_of(part);
    if (width == CHUNK)
        copy_chunks<16>(from, to, part.bytes);
    else if (width == 4)
        copy_chunks<4>(from, to, part.bytes);
    else
        copy_chunks<2>(from, to, part.bytes);
}

// The sum of all ranks' parts, in rank order.
template <class Type, int tp, unsigned width>
DEVICE_FUNCTION void add_parts(const ExchangeLaunch<tp> &launch, const Part &part, unsigned char *to) {
    for_each_chunk(part.bytes, [&](uint64_t at, uint64_t left) {
        auto term = [&](int rank) {
            const Word4 *slot = launch.slots[rank];
            return load_chunk<width>(reinterpret_cast<const unsigned char *>(slot) + part.from + at, left);
        };
        Sum<Type, Accumulate::fp32> sum;
        sum.begin(term(0));
        for (int rank = 1; rank < tp; rank++) sum.add(term(rank));
        store_chunk<width>(to + at, sum.rounded(), left);
    });
}

// The arguments of this block's rank that ranks_barrier and end_launch use.
template <int tp> DEVICE_FUNCTION Arguments arguments_of(const ExchangeLaunch<tp> &launch) {
    const RankParameters &mine = launch.ranks[rank_index()];
    Arguments arguments{};
    arguments.rank = static_cast<int>(mine.rank);
    arguments.workspace = {launch.slots,           nullptr,    launch.flags,       0,
                           launch.call.max_blocks, mine.state, launch.call.give_up};
    return arguments;
}

template <int tp> DEVICE_FUNCTION void copy_parts_in(const ExchangeLaunch<tp> &launch, int rank) {
    const auto *input = static_cast<const unsigned char *>(launch.ranks[rank_index()].input);
    auto *slot = reinterpret_cast<unsigned char *>(launch.slots[rank]);
    for (int receiver = 0; receiver < (launch.call.gathers != 0 ? 1 : tp); receiver++) {
        Part part = part_of<tp>(launch, rank, receiver);
        copy_part(input + part.from, slot + part.from, part);
    }
}

// Copies in, waits for all ranks, calls takes(rank), and waits for all ranks again.
template <int tp, class Takes>
DEVICE_FUNCTION void exchange_by(const ExchangeLaunch<tp> &launch, Takes takes) {
    const Arguments arguments = arguments_of<tp>(launch);
    wait_for_earlier_launches();
    const State state = state_of(arguments.workspace);
    copy_parts_in<tp>(launch, arguments.rank);
#ifndef FAULT_NO_RANKS_BARRIER
    ranks_barrier<tp>(arguments, 0, state.epoch + 1);
#endif
    takes(arguments.rank);
#ifndef FAULT_NO_LAST_BARRIER
    ranks_barrier<tp>(arguments, 1, state.epoch + 1);
#endif
    end_launch(arguments.workspace, state, 0);
}

template <int tp> DEVICE_FUNCTION void exchange(const ExchangeLaunch<tp> &launch) {
    auto *out = static_cast<unsigned char *>(launch.ranks[rank_index()].out);
    exchange_by<tp>(launch, [&](int rank) {
        for (int step = 0; step < tp; step++) {
            int sender = (rank + step) % tp;
            Part part = part_of<tp>(launch, sender, rank);
            const auto *slot = reinterpret_cast<const unsigned char *>(launch.slots[sender]);
            copy_part(slot + part.from, out + part.to, part);
        }
    });
}

template <class Type, int tp> DEVICE_FUNCTION void reduce_scatter(const ExchangeLaunch<tp> &launch) {
    auto *out = static_cast<unsigned char *>(launch.ranks[rank_index()].out);
    exchange_by<tp>(launch, [&](int rank) {
        Part part = part_of<tp>(launch, rank, rank);
        unsigned width = width_of(part);
        if (width == CHUNK)
            add_parts<Type, tp, 16>(launch, part, out);
        else if (width == 4)
            add_parts<Type, tp, 4>(launch, part, out);
        else
            add_parts<Type, tp, 2>(launch, part, out);
    });
}

#endif
