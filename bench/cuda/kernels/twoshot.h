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
#include "ranks.h"
#include "reduce.h"
#include "state.h"

// The sums of this rank's range, from all ranks' inputs into all ranks' workspaces.
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

template <class Type, Accumulate accumulate, int tp, Fusion fusion>
DEVICE_FUNCTION void twoshot(const Arguments &arguments) {
    SHARED_ARRAY(float, partial, MAX_WARPS);
    const Call &call = arguments.call;
    const Workspace &workspace = arguments.workspace;
    wait_for_earlier_launches();
    const State state = state_of(workspace);
    copy_in(arguments, tp, workspace.slots[arguments.rank]);
#ifndef FAULT_NO_RANKS_BARRIER
    ranks_barrier<tp>(arguments, 0, state.epoch + 1);
#endif
    reduce_range<Type, accumulate, tp>(arguments);
    ranks_barrier<tp>(arguments, 1, state.epoch + 1);
    let_next_launch_start();
    const Word4 *sums = workspace.slots[arguments.rank] + workspace.capacity;
    finish_tokens<Type, tp, fusion>(call, partial, [&](size_t at) { return load_plain(sums + at); });
    end_launch(workspace, state, 0);
}

#endif
