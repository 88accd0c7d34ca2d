// What the strategies with barriers share: the ranges of accesses, and the barrier of blocks of all ranks.
#ifndef BENCH_CUDA_RANKS_H
#define BENCH_CUDA_RANKS_H

#include "epilogue.h"
#include "in_flight.h"

// The first token of a rank's range. The ranges of the first ranks are longer by one, if ranges are uneven.
DEVICE_FUNCTION int range_begin(int num_tokens, int tp, int rank) {
    int each = num_tokens / tp, rest = num_tokens % tp;
    return rank * each + (rank < rest ? rank : rest);
}

// Loads and takes this block's accesses of a rank's range; see in_flight.h.
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

// Finishes all tokens of this block; sum_at(access) returns their sums.
template <class Type, int tp, class Fusion, class SumAt>
DEVICE_FUNCTION void finish_tokens(const Call &call, RowSum &row_sum, SumAt sum_at) {
    for (int rank = 0; rank < tp; rank++) {
        if constexpr (is_none<Fusion>) {
            for_range(
                call, tp, rank, [&](uint32_t at, Word4 *values) { *values = sum_at(at); },
                [&](uint32_t at, const Word4 *values) { store_plain(call.out + at, *values); });
            continue;
        }
        int end = range_begin(call.num_tokens, tp, rank + 1);
        int token = range_begin(call.num_tokens, tp, rank) + static_cast<int>(cluster_index());
        for (; token < end; token += static_cast<int>(cluster_count())) {
            size_t at = static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
            finish_token<Type, Fusion>(call, token, row_sum,
                                       [&](int column) { return sum_at(at + static_cast<size_t>(column)); });
        }
    }
}

// Whether a flag has this epoch or the next one. If a launch has one barrier, a rank that has passed it may
// reach the next launch's barrier before others have polled. It is at most one epoch ahead, because it passes
// that barrier only after all others have reached it, and so have passed this one (all orders are tried by
// tests/bench/cuda/kernels/flags.pml). Any other number is of an earlier launch, no matter how long ago: the
// flags of a block do not change while grids are smaller, and epochs wrap around.
DEVICE_FUNCTION bool has_come(uint32_t flag, uint32_t epoch) {
#if defined FAULT_NO_LATER_EPOCH
    return flag == epoch;
#elif defined FAULT_HALF_OF_ALL_EPOCHS
    return static_cast<int32_t>(flag - epoch) >= 0;
#else
    return flag - epoch <= 1u;
#endif
}

// A barrier of the blocks b of all ranks. What they wrote before is visible to all of them afterwards.
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
