// How many accesses a thread has under way. Those of large calls wait for memory, and what is under way is
// what memory can be busy with: a GPU of 4.8 TB/s, of which half is read, and some 700 ns from a load to its
// value (an H200) has to have 1.7 MB of loads under way, 13 KiB on each of 132 multiprocessors. A block of
// 896 threads, of which a multiprocessor holds one (they have more than 32 registers each), has 14 KiB with
// one load of 16 bytes each, and nothing while their values are stored; with four it has 56 KiB. That is
// reasoning: no GPU has measured it.
#ifndef BENCH_CUDA_IN_FLIGHT_H
#define BENCH_CUDA_IN_FLIGHT_H

#include "arguments.h"

constexpr int IN_FLIGHT = 4; // loads of a thread, at least, as long as there is so much for it

// Accesses to be under way, each of which is `loads` loads.
constexpr int accesses_in_flight(int loads) {
    return (IN_FLIGHT + loads - 1) / loads;
}

// For each access at, at + step, ... below `end`: load(at, values) brings its `loads` values, take(at,
// values) does something with them. So many are loaded before the first is taken; the last ones, where there
// are fewer, one by one.
template <int loads = 1, int together = accesses_in_flight(loads), class Index, class Load, class Take>
DEVICE_FUNCTION void keep_in_flight(Index at, Index step, Index end, Load load, Take take) {
    for (; at + (together - 1) * step < end; at += together * step) {
        Word4 values[together][loads];
        for (int i = 0; i < together; i++) load(at + static_cast<Index>(i) * step, values[i]);
        for (int i = 0; i < together; i++) take(at + static_cast<Index>(i) * step, values[i]);
    }
    if constexpr (together > 1) keep_in_flight<loads, 1>(at, step, end, load, take);
}

// The same for this block's accesses of the tokens from `begin` up to `end`, which are dealt out to blocks,
// and the accesses of each to threads.
template <int loads = 1, class Load, class Take>
DEVICE_FUNCTION void for_each_access(const Call &call, int begin, int end, Load load, Take take) {
    uint32_t width = static_cast<uint32_t>(call.accesses_per_token), columns = width;
    uint32_t first = (static_cast<uint32_t>(begin) + block_index()) * width;
#ifdef FAULT_SKIP_LAST_ACCESS
    columns -= 1;
#endif
    for (uint32_t column = thread_index(); column < columns; column += block_size()) {
        keep_in_flight<loads>(first + column, grid_size() * width, static_cast<uint32_t>(end) * width, load,
                              take);
    }
}

#endif
