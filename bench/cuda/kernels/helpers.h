// Kernels that are launched around those of the strategies: a delay and a barrier before a call, copies for
// the bound, hashes for the checks, an empty kernel for the floor; and an epilogue after an allreduce, as one
// kernel or as three. Kernels of an epilogue wait for the launch ahead before they touch memory, and let the
// next one start.
#ifndef BENCH_CUDA_HELPERS_H
#define BENCH_CUDA_HELPERS_H

#include "epilogue.h"
#include "in_flight.h"
#include "ranks.h"

// Holds the stream until the host has enqueued what comes after.
DEVICE_FUNCTION void delay(const DelayParameters &parameters) {
    uint64_t since = nanoseconds();
    while (nanoseconds() - since < parameters.nanoseconds) {
    }
}

// What a launch of a chain does first, unless other ranks wait for it.
DEVICE_FUNCTION void take_turn() {
    wait_for_earlier_launches();
    let_next_launch_start();
}

DEVICE_FUNCTION void empty(const DelayParameters &) {
    take_turn();
}

// Barriers of the ranks: thread p sets this rank's flag in rank p's memory, and waits for rank p's flag in
// its own rank's memory. One block per rank.
DEVICE_FUNCTION void meet_ranks(const BarrierParameters &parameters) {
    uint32_t *epoch_of_rank = parameters.epochs[rank_index()];
    int rank = parameters.rank + static_cast<int>(rank_index()), peer = static_cast<int>(thread_index());
    uint32_t epoch = load_bytes(epoch_of_rank, sizeof epoch);
    block_barrier(); // all threads have read it
    for (int time = 0; time < parameters.times; time++) {
        epoch++;
        if (peer < parameters.tp) {
            uint32_t polls = 0;
            store_release(parameters.flags[peer] + rank, epoch);
            while (!has_come(load_acquire(parameters.flags[rank] + peer), epoch) &&
                   keep_waiting(parameters.give_up, &polls)) {
            }
        }
        block_barrier();
    }
    if (peer == 0) store_bytes(epoch_of_rank, epoch, sizeof epoch);
}

DEVICE_FUNCTION void copy_array(const ArrayParameters &parameters) {
    const Word4 *from = static_cast<const Word4 *>(parameters.from[rank_index()]);
    Word4 *to = static_cast<Word4 *>(parameters.to[rank_index()]);
    uint64_t first = static_cast<uint64_t>(block_index()) * block_size() + thread_index();
    keep_in_flight(
        first, static_cast<uint64_t>(grid_size()) * block_size(), parameters.words,
        [&](uint64_t at, Word4 *values) { *values = load_plain(from + at); },
        [&](uint64_t at, const Word4 *values) { store_plain(to + at, *values); });
}

DEVICE_FUNCTION uint64_t mixed(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

// Adds the hashes of each word and its index, in any order. Block b is for array b % count.
DEVICE_FUNCTION void hash_arrays(const HashParameters &parameters) {
    uint64_t array = block_index() % parameters.count, of_array = block_index() / parameters.count;
    const char *begin = static_cast<const char *>(parameters.arrays) + array * parameters.pitch;
    const Word4 *from = reinterpret_cast<const Word4 *>(begin);
    uint64_t stride = grid_size() / parameters.count * block_size(), sum = 0;
    for (uint64_t i = of_array * block_size() + thread_index(); i < parameters.words; i += stride) {
        Word4 word = load_plain(from + i);
        for (unsigned part = 0; part < 4; part++) {
            sum += mixed(mixed(parameters.salt + 4 * i + part) ^ word.word[part]);
        }
    }
    add_to_hash(parameters.hashes + array, sum);
}

// Counts the bytes that differ; `words` is a number of bytes here.
DEVICE_FUNCTION void compare_arrays(const ArrayParameters &parameters) {
    const uint8_t *is = static_cast<const uint8_t *>(parameters.from[0]);
    const uint8_t *should = static_cast<const uint8_t *>(parameters.from[1]);
    uint64_t stride = static_cast<uint64_t>(grid_size()) * block_size(), differing = 0;
    for (uint64_t i = static_cast<uint64_t>(block_index()) * block_size() + thread_index();
         i < parameters.words; i += stride) {
        differing += load_byte(is + i) != load_byte(should + i);
    }
    if (differing > 0) add_to_hash(static_cast<uint64_t *>(parameters.to[0]), differing);
}

// A whole epilogue, of sums in memory.
template <class Type, class Fusion> DEVICE_FUNCTION void finish_sums(const EpilogueParameters &parameters) {
    take_turn();
    SHARED_ARRAY(float, partial, PARTIALS);
    RowSum row_sum{partial, 0};
    Call call = call_of(parameters.call, parameters.ranks[rank_index()]);
    for (int token = static_cast<int>(block_index()); token < call.num_tokens;
         token += static_cast<int>(grid_size())) {
        const Word4 *sums =
            call.input + static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
        finish_token<Type, Fusion>(call, token, row_sum,
                                   [&](int column) { return load_plain(sums + column); });
    }
}

// An epilogue in three kernels: r, from sum and residual; y, from r; codes, from y. Each reads the output of
// the one before. `Norm` is the class of RESIDUAL_RMS_NORM.
template <class Type> DEVICE_FUNCTION void add_residuals(const EpilogueParameters &parameters) {
    take_turn();
    Call call = call_of(parameters.call, parameters.ranks[rank_index()]);
    float squares = 0;
    size_t count = static_cast<size_t>(call.num_tokens) * static_cast<size_t>(call.accesses_per_token);
    for (size_t at = static_cast<size_t>(block_index()) * block_size() + thread_index(); at < count;
         at += static_cast<size_t>(grid_size()) * block_size()) {
        add_residual<Type>(call, at, load_plain(call.input + at), load_plain(call.residual + at), &squares);
    }
}

template <class Type, class Norm> DEVICE_FUNCTION void normalise(const EpilogueParameters &parameters) {
    take_turn();
    SHARED_ARRAY(float, partial, PARTIALS);
    RowSum row_sum{partial, 0};
    Call call = call_of(parameters.call, parameters.ranks[rank_index()]);
    int block = static_cast<int>(block_size());
    for (int token = static_cast<int>(block_index()); token < call.num_tokens;
         token += static_cast<int>(grid_size())) {
        size_t first = static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
        float squares = 0, values[Type::per_access];
        for (int column = static_cast<int>(thread_index()); column < call.accesses_per_token;
             column += block) {
            unpack<Type>(load_plain(call.residual_out + first + static_cast<size_t>(column)), values);
            for (int i = 0; i < Type::per_access; i++) squares += values[i] * values[i];
        }
        float elements = static_cast<float>(call.accesses_per_token * Type::per_access);
        float factor = reciprocal_square_root(row_sum.of(squares) / elements + call.epsilon);
        for (int column = static_cast<int>(thread_index()); column < call.accesses_per_token;
             column += block) {
            Word4 r = load_plain(call.residual_out + first + static_cast<size_t>(column));
            Word4 gamma = load_plain(call.gamma + column);
            store_norm<Type, Norm>(call, static_cast<size_t>(token), column, true, r, gamma, factor);
        }
    }
}

// y is the input.
template <class Type, class Fusion> DEVICE_FUNCTION void quantise(const EpilogueParameters &parameters) {
    take_turn();
    Call call = call_of(parameters.call, parameters.ranks[rank_index()]);
    int thread = static_cast<int>(thread_index()), block = static_cast<int>(block_size());
    for (int token = static_cast<int>(block_index()); token < call.num_tokens;
         token += static_cast<int>(grid_size())) {
        size_t first = static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
        for (int column = thread; column - thread < call.accesses_per_token; column += block) {
            bool active = column < call.accesses_per_token;
            float norm[Type::per_access] = {};
            if (active) unpack<Type>(load_plain(call.input + first + static_cast<size_t>(column)), norm);
            if constexpr (Fusion::by_warp) {
                Fusion::template store<Type>(call, static_cast<size_t>(token), column, active, norm);
            } else if (active) {
                Fusion::template store<Type>(call, first + static_cast<size_t>(column), Word4{}, norm);
            }
        }
    }
}

#endif
