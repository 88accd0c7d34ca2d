// A rank's state in device memory, which a launch takes over from the one before and leaves to the next.
//
// Each block of a launch has a copy of its own, which no other block reads or writes before the launch ends.
// Then its blocks write all copies for the next launch, including those of blocks that this launch does not
// have. So no block depends on whether others have read theirs, and a launch needs no counter and no fence at
// its end.
#ifndef BENCH_CUDA_STATE_H
#define BENCH_CUDA_STATE_H

#include "arguments.h"

struct State {
    uint32_t epoch;  // launches so far; wraps around
    uint32_t turn;   // below ROTATION: this launch's buffer of ONESHOT
    uint32_t filled; // accesses per source rank in the previous buffer
};

DEVICE_FUNCTION Word4 *copies_of(const Workspace &workspace) {
    return reinterpret_cast<Word4 *>(workspace.state->copies);
}

DEVICE_FUNCTION State state_of(const Workspace &workspace) {
    Word4 copy = load_plain(copies_of(workspace) + block_index());
    return {copy.word[0], copy.word[1], copy.word[2]};
}

// Ends a launch in which this rank received `filled` accesses from each rank. All threads of all blocks call
// it.
DEVICE_FUNCTION void end_launch(const Workspace &workspace, State state, uint32_t filled) {
    Word4 next = {{state.epoch + 1, (state.turn + 1) % ROTATION, filled, 0}};
    block_barrier(); // all threads of this block have read its copy
#ifdef FAULT_OWN_STATE_ALONE
    if (thread_index() == 0) store_plain(copies_of(workspace) + block_index(), next);
#else
    for (unsigned block = block_index() + grid_size() * thread_index();
         block < static_cast<unsigned>(workspace.max_blocks); block += grid_size() * block_size()) {
        store_plain(copies_of(workspace) + block, next);
    }
#endif
}

#endif
