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
#ifdef FAULT_SKIP_LAST_ACCESS
    part.bytes -= part.bytes < CHUNK ? part.bytes : CHUNK;
#endif
    return part;
}

// Bytes that are copied.
struct Move {
    const unsigned char *from;
    unsigned char *to;
    uint64_t bytes;
};

// The widest access that can move bytes with these numbers, or sums of them, as addresses and size.
DEVICE_FUNCTION unsigned width_for(uint64_t all) {
#ifdef FAULT_WIDE_ACCESSES
    all = 0;
#endif
    return all % CHUNK == 0 ? 16 : all % 4 == 0 ? 4 : 2;
}

DEVICE_FUNCTION unsigned width_of(const Move &move) {
    return width_for(reinterpret_cast<uintptr_t>(move.from) | reinterpret_cast<uintptr_t>(move.to) |
                     move.bytes);
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

// This thread's first chunk of a part, and the distance to its next one, in bytes.
DEVICE_FUNCTION uint64_t first_chunk() {
    return (static_cast<uint64_t>(block_index()) * block_size() + thread_index()) * CHUNK;
}
DEVICE_FUNCTION uint64_t chunk_stride() {
    return static_cast<uint64_t>(grid_size()) * block_size() * CHUNK;
}

// Copies this thread's chunks from `at` on.
template <unsigned width> DEVICE_FUNCTION void copy_chunks(const Move &move, uint64_t at) {
    auto left = [&](uint64_t from) { return move.bytes - from < CHUNK ? move.bytes - from : CHUNK; };
    constexpr int together = width == CHUNK ? IN_FLIGHT : 1; // a narrow chunk has several loads
    keep_in_flight<1, together>(
        at, chunk_stride(), move.bytes,
        [&](uint64_t i, Word4 *values) { *values = load_chunk<width>(move.from + i, left(i)); },
        [&](uint64_t i, const Word4 *values) { store_chunk<width>(move.to + i, *values, left(i)); });
}

// The same with the widest access.
DEVICE_FUNCTION void copy_rest(const Move &move, uint64_t at) {
    unsigned width = width_of(move);
    if (width == CHUNK)
        copy_chunks<16>(move, at);
    else if (width == 4)
        copy_chunks<4>(move, at);
    else
        copy_chunks<2>(move, at);
}

// Does the moves move_of(first), ..., `count` of them: first the chunks that all of them have, with those of
// all moves in flight together.
template <int count, class MoveOf> DEVICE_FUNCTION void copy_together(int first, MoveOf move_of) {
    Move moves[count];
    uint64_t at = first_chunk(), common = ~uint64_t(0);
    bool is_wide = true;
    for (int i = 0; i < count; i++) {
        moves[i] = move_of(first + i);
        if (moves[i].bytes < common) common = moves[i].bytes;
        is_wide = is_wide && width_of(moves[i]) == CHUNK;
    }
    if (is_wide) {
        at = keep_in_flight<count, IN_FLIGHT / count>(
            at, chunk_stride(), common,
            [&](uint64_t from, Word4 *values) {
                for (int i = 0; i < count; i++) values[i] = load_chunk<16>(moves[i].from + from, CHUNK);
            },
            [&](uint64_t to, const Word4 *values) {
                for (int i = 0; i < count; i++) store_chunk<16>(moves[i].to + to, values[i], CHUNK);
            });
    }
    for (int i = first; i < first + count; i++) copy_rest(move_of(i), at);
}

// Does the moves move_of(0) to move_of(count - 1); `count` is at most `tp`. Short ones go one by one:
// together they took 5 to 20 % longer on an H200.
template <int tp, class MoveOf> DEVICE_FUNCTION void copy_all(int count, bool are_short, MoveOf move_of) {
    constexpr int together = tp < IN_FLIGHT ? tp : IN_FLIGHT;
    int first = 0;
    for (; !are_short && first + together <= count; first += together)
        copy_together<together>(first, move_of);
    for (; first < count; first++) copy_rest(move_of(first), first_chunk());
}

// Stores the sum of all ranks' parts, in rank order.
template <class Type, int tp, unsigned width>
DEVICE_FUNCTION void add_parts(const ExchangeLaunch<tp> &launch, const Part &part, unsigned char *to) {
    auto left = [&](uint64_t from) { return part.bytes - from < CHUNK ? part.bytes - from : CHUNK; };
    auto term = [&](int rank, uint64_t at) {
        const auto *slot = reinterpret_cast<const unsigned char *>(launch.slots[rank]);
        return load_chunk<width>(slot + part.from + at, left(at));
    };
    if constexpr (width == CHUNK) {
        keep_in_flight<tp>(
            first_chunk(), chunk_stride(), part.bytes,
            [&](uint64_t at, Word4 *terms) {
                for (int rank = 0; rank < tp; rank++) terms[rank] = term(rank, at);
            },
            [&](uint64_t at, const Word4 *terms) {
                store_chunk<width>(to + at, sum_of_terms<Type, Accumulate::fp32, tp>(terms), CHUNK);
            });
    } else {
        for (uint64_t at = first_chunk(); at < part.bytes; at += chunk_stride()) {
            Sum<Type, Accumulate::fp32> sum;
            sum.begin(term(0, at));
            for (int rank = 1; rank < tp; rank++) sum.add(term(rank, at));
            store_chunk<width>(to + at, sum.rounded(), left(at));
        }
    }
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

template <int tp> DEVICE_FUNCTION int sent_parts(const ExchangeLaunch<tp> &launch) {
    return launch.call.gathers != 0 ? 1 : tp;
}

// Whether a thread has at most one chunk of each part that a rank sends, on average.
template <int tp> DEVICE_FUNCTION bool has_short_parts(const ExchangeLaunch<tp> &launch, int rank) {
    Part last = part_of<tp>(launch, rank, tp - 1);
    return last.from + last.bytes <= static_cast<uint64_t>(sent_parts(launch)) * chunk_stride();
}

template <int tp>
DEVICE_FUNCTION void copy_parts_in(const ExchangeLaunch<tp> &launch, int rank, bool are_short) {
    const auto *input = static_cast<const unsigned char *>(launch.ranks[rank_index()].input);
    auto *slot = reinterpret_cast<unsigned char *>(launch.slots[rank]);
    copy_all<tp>(sent_parts(launch), are_short, [&](int receiver) {
        Part part = part_of<tp>(launch, rank, receiver);
        return Move{input + part.from, slot + part.from, part.bytes};
    });
}

// Copies in, waits for all ranks, calls takes(rank, are_short), and waits for all ranks again.
template <int tp, class Takes>
DEVICE_FUNCTION void exchange_by(const ExchangeLaunch<tp> &launch, Takes takes) {
    const Arguments arguments = arguments_of<tp>(launch);
    wait_for_earlier_launches();
    const State state = state_of(arguments.workspace);
    const bool are_short = has_short_parts(launch, arguments.rank);
    copy_parts_in<tp>(launch, arguments.rank, are_short);
#ifndef FAULT_NO_RANKS_BARRIER
    ranks_barrier<tp>(arguments, 0, state.epoch + 1);
#endif
    takes(arguments.rank, are_short);
#ifndef FAULT_NO_LAST_BARRIER
    ranks_barrier<tp>(arguments, 1, state.epoch + 1);
#endif
    end_launch(arguments.workspace, state, 0);
}

template <int tp> DEVICE_FUNCTION void exchange(const ExchangeLaunch<tp> &launch) {
    auto *out = static_cast<unsigned char *>(launch.ranks[rank_index()].out);
    exchange_by<tp>(launch, [&](int rank, bool are_short) {
        copy_all<tp>(tp, are_short, [&](int step) {
            int sender = (rank + step) % tp;
            Part part = part_of<tp>(launch, sender, rank);
            const auto *slot = reinterpret_cast<const unsigned char *>(launch.slots[sender]);
            return Move{slot + part.from, out + part.to, part.bytes};
        });
    });
}

template <class Type, int tp> DEVICE_FUNCTION void reduce_scatter(const ExchangeLaunch<tp> &launch) {
    auto *out = static_cast<unsigned char *>(launch.ranks[rank_index()].out);
    exchange_by<tp>(launch, [&](int rank, bool) {
        Part part = part_of<tp>(launch, rank, rank);
        unsigned width = width_for(part.from | part.to | part.bytes);
        if (width == CHUNK)
            add_parts<Type, tp, 16>(launch, part, out);
        else if (width == 4)
            add_parts<Type, tp, 4>(launch, part, out);
        else
            add_parts<Type, tp, 2>(launch, part, out);
    });
}

#endif
