// TWOSHOT: the tokens are dealt out; every rank adds up its range from all ranks' inputs, stores the sums
// into every rank's workspace, and all finish all tokens from their own. Two barriers between the ranks, by
// flags: block b of every rank meets block b of all others, which handles the same tokens.
//
// A block that passes the second barrier knows that all have read its inputs, so the next launch may
// overwrite them; sums are overwritten only after the first barrier of the next launch, which no block
// reaches before this launch has ended on its rank. All blocks have to be resident together, and grids to be
// equal on all ranks.
#ifndef BENCH_CUDA_TWOSHOT_H
#define BENCH_CUDA_TWOSHOT_H

#include "epilogue.h"
#include "reduce.h"

// The first token of a rank's range; those of the first ranks are longer by one.
DEVICE_FUNCTION int range_begin(int num_tokens, int tp, int rank) {
    int each = num_tokens / tp, rest = num_tokens % tp;
    return rank * each + (rank < rest ? rank : rest);
}

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
            arrived = load_acquire(workspace.flags[arguments.rank] + theirs) == epoch;
            if (!arrived) wait = keep_waiting(workspace.give_up, &polls);
        } while (!arrived && wait);
        if (!arrived) set_flag(&workspace.state->gave_up);
    }
    block_barrier();
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

// The sum of one access, from all ranks' inputs into all ranks' workspaces.
template <class Type, Accumulate accumulate, int tp>
DEVICE_FUNCTION void reduce_access(const Arguments &arguments, size_t at) {
    const Workspace &workspace = arguments.workspace;
    Sum<Type, accumulate> sum;
    sum.begin(load_plain(workspace.slots[0] + at));
    for (int rank = 1; rank < tp; rank++) sum.add(load_plain(workspace.slots[rank] + at));
    Word4 rounded = sum.rounded();
    for (int step = 0; step < tp; step++) {
        int peer = (arguments.rank + step) % tp;
        store_plain(workspace.slots[peer] + workspace.capacity + at, rounded);
    }
}

template <class Type, Accumulate accumulate, int tp, Fusion fusion>
DEVICE_FUNCTION void twoshot(const Arguments &arguments) {
    SHARED_ARRAY(float, partial, MAX_WARPS);
    const Call &call = arguments.call;
    const Workspace &workspace = arguments.workspace;
    wait_for_earlier_launches();
    uint32_t epoch = workspace.state->epoch;
    for (int rank = 0; rank < tp; rank++) {
        for_each_access(call, tp, rank, [&](size_t at) {
            store_plain(workspace.slots[arguments.rank] + at, load_plain(call.input + at));
        });
    }
#ifndef FAULT_NO_RANKS_BARRIER
    ranks_barrier<tp>(arguments, 0, epoch + 1);
#endif
    for_each_access(call, tp, arguments.rank,
                    [&](size_t at) { reduce_access<Type, accumulate, tp>(arguments, at); });
    ranks_barrier<tp>(arguments, 1, epoch + 1);
    let_next_launch_start();
    for (int rank = 0; rank < tp; rank++) {
        int end = range_begin(call.num_tokens, tp, rank + 1);
        int token = range_begin(call.num_tokens, tp, rank) + static_cast<int>(block_index());
        for (; token < end; token += static_cast<int>(grid_size())) {
            size_t at = static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
            finish_token<Type, fusion>(call, token, partial, [&](int column) {
                return load_plain(workspace.slots[arguments.rank] + workspace.capacity + at +
                                  static_cast<size_t>(column));
            });
        }
    }
    end_launch(workspace, epoch, 0);
}

#endif
