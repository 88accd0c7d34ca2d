// NVLS_ONESHOT and NVLS_TWOSHOT: the switch adds, through a multicast address of all ranks' workspaces.
//
// NVLS_ONESHOT: each rank copies its message in; after a barrier each has the switch add all of it. Two input
// buffers take turns, so that no second barrier is needed: a rank overwrites the inputs of launch n in launch
// n+2, after the barrier of launch n+1, which others reach only after they have ended launch n. NVLS_TWOSHOT:
// each rank has the switch add its range of tokens and stores the sums to all; another barrier follows. As in
// TWOSHOT, block b of each rank handles the same tokens, and all blocks must be resident together.
#ifndef BENCH_CUDA_NVLS_H
#define BENCH_CUDA_NVLS_H

#include "epilogue.h"
#include "ranks.h"
#include "reduce.h"
#include "state.h"

template <class Type, Accumulate accumulate, int tp, class Fusion>
DEVICE_FUNCTION void nvls_oneshot(const Arguments &arguments) {
    static_assert(accumulate == Accumulate::fp32, "the switch adds in fp32");
    SHARED_ARRAY(float, partial, PARTIALS);
    const Workspace &workspace = arguments.workspace;
    announce_start<Fusion>();
    wait_for_earlier_launches();
    const State state = state_of(workspace);
    size_t buffer = state.epoch % 2 * workspace.capacity;
    copy_in(arguments, tp, workspace.slots[arguments.rank] + buffer);
#ifndef FAULT_NO_RANKS_BARRIER
    ranks_barrier<tp>(arguments, 0, state.epoch + 1);
#endif
    order_multicast();
    let_next_launch_start();
    RowSum row_sum = row_sums<Fusion>(partial);
    finish_tokens<Type, tp, Fusion>(arguments.call, row_sum, [&](size_t at) {
        return multicast_load_sum<Type>(workspace.multicast + buffer + at);
    });
    end_launch(workspace, state, 0);
}

template <class Type, Accumulate accumulate, int tp, class Fusion>
DEVICE_FUNCTION void nvls_twoshot(const Arguments &arguments) {
    static_assert(accumulate == Accumulate::fp32, "the switch adds in fp32");
    SHARED_ARRAY(float, partial, PARTIALS);
    const Workspace &workspace = arguments.workspace;
    announce_start<Fusion>();
    wait_for_earlier_launches();
    const State state = state_of(workspace);
    copy_in(arguments, tp, workspace.slots[arguments.rank]);
#ifndef FAULT_NO_RANKS_BARRIER
    ranks_barrier<tp>(arguments, 0, state.epoch + 1);
#endif
    order_multicast();
    Word4 *sums = workspace.multicast + workspace.capacity;
    for_range(
        arguments.call, tp, arguments.rank,
        [&](uint32_t at, Word4 *values) { *values = multicast_load_sum<Type>(workspace.multicast + at); },
        [&](uint32_t at, const Word4 *values) { multicast_store(sums + at, *values); });
    ranks_barrier<tp>(arguments, 1, state.epoch + 1);
    order_multicast();
    let_next_launch_start();
    RowSum row_sum = row_sums<Fusion>(partial);
    const Word4 *own_sums = workspace.slots[arguments.rank] + workspace.capacity;
    finish_tokens<Type, tp, Fusion>(arguments.call, row_sum,
                                    [&](size_t at) { return load_plain(own_sums + at); });
    end_launch(workspace, state, 0);
}

#endif
