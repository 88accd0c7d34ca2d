// What the strategies with barriers share: who handles which accesses, and how blocks of all ranks meet.
#ifndef BENCH_CUDA_RANKS_H
#define BENCH_CUDA_RANKS_H

#include "epilogue.h"

// The first token of a rank's range; those of the first ranks are longer by one.
DEVICE_FUNCTION int range_begin(int num_tokens, int tp, int rank) {
    int each = num_tokens / tp, rest = num_tokens % tp;
    return rank * each + (rank < rest ? rank : rest);
}

// Calls each(access) for what this block has of the accesses of a rank's range.
template <class Each> DEVICE_FUNCTION void for_each_access(const Call &call, int tp, int rank, Each each) {
    int end = range_begin(call.num_tokens, tp, rank + 1), stride = static_cast<int>(grid_size());
    int first = range_begin(call.num_tokens, tp, rank) + static_cast<int>(block_index());
    int width = call.accesses_per_token;
#ifdef FAULT_SKIP_LAST_ACCESS
    width -= 1;
#endif
    for (int token = first; token < end; token += stride) {
        for (int column = static_cast<int>(thread_index()); column < width;
             column += static_cast<int>(block_size())) {
            each(static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token) +
                 static_cast<size_t>(column));
        }
    }
}

// Copies this rank's message into its workspace.
DEVICE_FUNCTION void copy_in(const Arguments &arguments, int tp, Word4 *slots) {
    for (int rank = 0; rank < tp; rank++) {
        for_each_access(arguments.call, tp, rank,
                        [&](size_t at) { store_plain(slots + at, load_plain(arguments.call.input + at)); });
    }
}

// Takes all tokens of this block to the results; sum_at(access) gives their sums.
template <class Type, int tp, Fusion fusion, class SumAt>
DEVICE_FUNCTION void finish_tokens(const Call &call, float *partial, SumAt sum_at) {
    for (int rank = 0; rank < tp; rank++) {
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
