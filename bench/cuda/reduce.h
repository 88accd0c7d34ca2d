// Sums over ranks, in rank order, so that all ranks get the same bits.
#ifndef BENCH_CUDA_REDUCE_H
#define BENCH_CUDA_REDUCE_H

#include "arguments.h"
#include "types.h"

// A sum over ranks at one access that takes its terms in rank order: in fp32, rounded once at the end, or
// rounded to the type at every step (native).
template <class Type, Accumulate accumulate> struct Sum {
    float values[Type::per_access];

    DEVICE_MEMBER void begin(Word4 term) { unpack<Type>(term, values); }

    DEVICE_MEMBER void add(Word4 term) {
        float terms[Type::per_access];
        unpack<Type>(term, terms);
        for (int i = 0; i < Type::per_access; i++) values[i] += terms[i];
#ifdef FAULT_NATIVE_ACCUMULATION
        unpack<Type>(pack<Type>(values), values);
#else
        if constexpr (accumulate == Accumulate::native) unpack<Type>(pack<Type>(values), values);
#endif
    }

    DEVICE_MEMBER Word4 rounded() const {
        return pack<Type>(values);
    }
};

// Ends a launch: its last block moves the rank's state on. All threads of all blocks call it, and have read
// the state before.
DEVICE_FUNCTION void end_launch(const Workspace &workspace, uint32_t epoch, uint32_t filled) {
    block_barrier();
    if (thread_index() == 0) {
        RankState *state = workspace.state;
        if (fetch_add(&state->blocks_done, 1) == grid_size() - 1) {
            state->filled[epoch % ROTATION] = filled;
            state->filled[(epoch + ROTATION - 1) % ROTATION] = 0;
            state->blocks_done = 0;
            state->epoch = epoch + 1;
        }
    }
}

#endif
