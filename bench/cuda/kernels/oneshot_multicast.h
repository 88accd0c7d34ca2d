// ONESHOT_MULTICAST: ONESHOT with one store of each message, to the multicast address of all ranks' slots, in
// place of a store to each rank. Messages, slots and the order of sums, and so all results, are those of
// ONESHOT.
//
// Messages come by the multicast address; a rank polls and empties its slots by its own address, which is
// another name of the same memory (layer.h, order_multicast). Two orders are required:
//   - A slot is emptied before the next message arrives there. That message is sent after its sender has seen
//     this rank's next message, which is sent after the fence at the end of this launch.
//   - A poll sees a message at some time. PTX guarantees it only after a fence. GPUs need none: kernels of
//     NCCL poll multicast messages without one. A word that a poll sees is valid in any case.
#ifndef BENCH_CUDA_ONESHOT_MULTICAST_H
#define BENCH_CUDA_ONESHOT_MULTICAST_H

#include "oneshot.h"

constexpr uint32_t POLLS_PER_FENCE = 64; // a fence takes as long as several polls

struct StoreToAll {
    template <int tp> static DEVICE_MEMBER void send(const Arguments &arguments, size_t at, Word4 value) {
        multicast_store(arguments.workspace.multicast + at, value);
    }
    static DEVICE_MEMBER void between_polls(uint32_t polls) {
        if (polls % POLLS_PER_FENCE == 0) order_multicast();
    }
    static DEVICE_MEMBER void end() { order_multicast(); }
};

template <class Type, Accumulate accumulate, int tp, class Fusion>
DEVICE_FUNCTION void oneshot_multicast(const Arguments &arguments) {
    oneshot_by<StoreToAll, Type, accumulate, tp, Fusion>(arguments);
}

#endif
