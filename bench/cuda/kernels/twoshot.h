// TWOSHOT: each rank has a range of the tokens. It adds that range from all ranks' inputs and stores the sums
// into every rank's workspace; then each rank finishes all tokens from its own workspace. There are two
// barriers, by flags, each of the blocks b of all ranks, which handle the same tokens.
//
// After the second barrier all ranks have read a block's inputs, so the next launch may overwrite them. Sums
// are overwritten only after the first barrier of the next launch, which no block reaches before this launch
// has ended on its rank. All blocks must be resident together, and grids must be equal on all ranks.
#ifndef BENCH_CUDA_TWOSHOT_H
#define BENCH_CUDA_TWOSHOT_H

#include "epilogue.h"
#include "ranks.h"
#include "reduce.h"
#include "state.h"

// Stores the sums of this rank's range into all ranks' workspaces.
template <class Type, Accumulate accumulate, int tp>
DEVICE_FUNCTION void reduce_range(const Arguments &arguments) {
    const Workspace &workspace = arguments.workspace;
    auto load = [&](uint32_t at, Word4 *terms) {
        for (int rank = 0; rank < tp; rank++) terms[rank] = load_plain(workspace.slots[rank] + at);
    };
    auto take = [&](uint32_t at, const Word4 *terms) {
        Word4 sum = sum_of_terms<Type, accumulate, tp>(terms);
        for (int step = 0; step < tp; step++) {
            int peer = (arguments.rank + step) % tp;
            store_plain(workspace.slots[peer] + workspace.capacity + at, sum);
        }
    };
    for_range<tp>(arguments.call, tp, arguments.rank, load, take);
}

template <class Type, Accumulate accumulate, int tp, class Fusion>
DEVICE_FUNCTION void twoshot(const Arguments &arguments) {
    SHARED_ARRAY(float, partial, PARTIALS);
    const Call &call = arguments.call;
    const Workspace &workspace = arguments.workspace;
    announce_start<Fusion>();
    wait_for_earlier_launches();
    const State state = state_of(workspace);
    copy_in(arguments, tp, workspace.slots[arguments.rank]);
#ifndef FAULT_NO_RANKS_BARRIER
    ranks_barrier<tp>(arguments, 0, state.epoch + 1);
#endif
    reduce_range<Type, accumulate, tp>(arguments);
    ranks_barrier<tp>(arguments, 1, state.epoch + 1);
    let_next_launch_start();
    RowSum row_sum = row_sums<Fusion>(partial);
    const Word4 *sums = workspace.slots[arguments.rank] + workspace.capacity;
    finish_tokens<Type, tp, Fusion>(call, row_sum, [&](size_t at) { return load_plain(sums + at); });
    end_launch(workspace, state, 0);
}

#endif
