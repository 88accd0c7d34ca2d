// How many accesses a thread has in flight. Large calls wait for memory, which is only as busy as loads are
// in flight: a GPU with 4.8 TB/s, half of them reads, and about 700 ns of latency (an H200) needs 1.7 MB in
// flight, 13 KiB on each of 132 multiprocessors. A block of 896 threads, of which a multiprocessor holds one
// (each thread has more than 32 registers), has 14 KiB in flight with one load of 16 bytes per thread, and
// nothing while it stores the values; with four loads it has 56 KiB. These numbers are calculated, not
// measured.
#ifndef BENCH_CUDA_IN_FLIGHT_H
#define BENCH_CUDA_IN_FLIGHT_H

#include "arguments.h"

constexpr int IN_FLIGHT = 4; // minimum number of loads of a thread, if it has so many

// The number of accesses in flight, if each of them has `loads` loads.
constexpr int accesses_in_flight(int loads) {
    return (IN_FLIGHT + loads - 1) / loads;
}

// For each access at, at + step, ... below `end`: load(at, values) loads its `loads` values, and take(at,
// values) uses them. A batch is loaded before its first access is taken; accesses that fill no batch go one
// by one. Returns the first of the sequence that is not below `end`.
template <int loads = 1, int together = accesses_in_flight(loads), class Index, class Load, class Take>
DEVICE_FUNCTION Index keep_in_flight(Index at, Index step, Index end, Load load, Take take) {
    for (; at + (together - 1) * step < end; at += together * step) {
        Word4 values[together][loads];
        for (int i = 0; i < together; i++) load(at + static_cast<Index>(i) * step, values[i]);
        for (int i = 0; i < together; i++) take(at + static_cast<Index>(i) * step, values[i]);
    }
    if constexpr (together > 1) at = keep_in_flight<loads, 1>(at, step, end, load, take);
    return at;
}

// The same for this block's accesses of the tokens from `begin` up to `end`: tokens are distributed over
// clusters of blocks, and the accesses of each token over their threads.
template <int loads = 1, class Load, class Take>
DEVICE_FUNCTION void for_each_access(const Call &call, int begin, int end, Load load, Take take) {
    uint32_t width = static_cast<uint32_t>(call.accesses_per_token);
    uint32_t first = (static_cast<uint32_t>(begin) + cluster_index()) * width;
    Columns columns = columns_of(call);
#ifdef FAULT_SKIP_LAST_ACCESS
    if (columns.end == call.accesses_per_token) columns.end -= 1;
#endif
    int block = static_cast<int>(block_size());
    for (int column = columns.begin + static_cast<int>(thread_index()); column < columns.end;
         column += block) {
        keep_in_flight<loads>(first + static_cast<uint32_t>(column), cluster_count() * width,
                              static_cast<uint32_t>(end) * width, load, take);
    }
}

#endif
