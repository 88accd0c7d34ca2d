// What the strategies with barriers share: who handles which accesses, and how blocks of all ranks meet.
#ifndef BENCH_CUDA_RANKS_H
#define BENCH_CUDA_RANKS_H

#include "epilogue.h"
#include "in_flight.h"

// The first token of a rank's range; those of the first ranks are longer by one.
DEVICE_FUNCTION int range_begin(int num_tokens, int tp, int rank) {
    int each = num_tokens / tp, rest = num_tokens % tp;
    return rank * each + (rank < rest ? rank : rest);
}

// Loads and takes what this block has of the accesses of a rank's range; see in_flight.h.
template <int loads = 1, class Load, class Take>
DEVICE_FUNCTION void for_range(const Call &call, int tp, int rank, Load load, Take take) {
    int begin = range_begin(call.num_tokens, tp, rank), end = range_begin(call.num_tokens, tp, rank + 1);
    for_each_access<loads>(call, begin, end, load, take);
}

// Copies this rank's message into its workspace.
DEVICE_FUNCTION void copy_in(const Arguments &arguments, int tp, Word4 *slots) {
    const Word4 *input = arguments.call.input;
    for (int rank = 0; rank < tp; rank++) {
        for_range(
            arguments.call, tp, rank, [&](uint32_t at, Word4 *values) { *values = load_plain(input + at); },
            [&](uint32_t at, const Word4 *values) { store_plain(slots + at, *values); });
    }
}

// Takes all tokens of this block to the results; sum_at(access) gives their sums.
template <class Type, int tp, Fusion fusion, class SumAt>
DEVICE_FUNCTION void finish_tokens(const Call &call, float *partial, SumAt sum_at) {
    for (int rank = 0; rank < tp; rank++) {
        if constexpr (fusion == Fusion::none) {
            for_range(
                call, tp, rank, [&](uint32_t at, Word4 *values) { *values = sum_at(at); },
                [&](uint32_t at, const Word4 *values) { store_plain(call.out + at, *values); });
            continue;
        }
        int end = range_begin(call.num_tokens, tp, rank + 1);
        int token = range_begin(call.num_tokens, tp, rank) + static_cast<int>(block_index());
        for (; token < end; token += static_cast<int>(grid_size())) {
            size_t at = static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
            finish_token<Type, fusion>(call, token, partial,
                                       [&](int column) { return sum_at(at + static_cast<size_t>(column)); });
        }
    }
}

// Whether a flag has come to an epoch, or to the next one: where a launch has one barrier, a rank that is
// through may be at the next launch's before others have looked. It is at most one ahead, for it passes that
// one only when all others have come to it, too, by when they had passed this one (tests/cuda/flags.pml tries
// all orders). Any other number is of an earlier launch, however long ago: the flags of a block stand still
// while grids are smaller, and epochs go on and round.
DEVICE_FUNCTION bool has_come(uint32_t flag, uint32_t epoch) {
#if defined FAULT_NO_LATER_EPOCH
    return flag == epoch;
#elif defined FAULT_HALF_OF_ALL_EPOCHS
    return static_cast<int32_t>(flag - epoch) >= 0;
#else
    return flag - epoch <= 1u;
#endif
}

// Block b of every rank meets block b of all others. What they wrote before is visible to all after.
template <int tp> DEVICE_FUNCTION void ranks_barrier(const Arguments &arguments, int phase, uint32_t epoch) {
    const Workspace &workspace = arguments.workspace;
#ifndef FAULT_NO_BLOCK_BARRIER
    block_barrier();
#endif
    int peer = static_cast<int>(thread_index());
    if (peer < tp) {
        size_t blocks = static_cast<size_t>(workspace.max_blocks), block = block_index();
        size_t mine =
            (static_cast<size_t>(phase) * tp + static_cast<size_t>(arguments.rank)) * blocks + block;
        size_t theirs = (static_cast<size_t>(phase) * tp + static_cast<size_t>(peer)) * blocks + block;
        store_release(workspace.flags[peer] + mine, epoch);
        uint32_t polls = 0;
        bool arrived, wait = true;
        do {
            arrived = has_come(load_acquire(workspace.flags[arguments.rank] + theirs), epoch);
            if (!arrived) wait = keep_waiting(workspace.give_up, &polls);
        } while (!arrived && wait);
        if (!arrived) set_flag(&workspace.state->gave_up);
    }
    block_barrier();
}

#endif
