// ONESHOT: each rank stores its message into every rank's buffer and adds all messages itself. Ranks need
// neither barriers nor flags: an empty slot has the bits of -0.0f, and any other word has arrived (Lamport).
// The message's own words of these bits are sent as +0.0f.
//
// Three buffers take turns. Launch n writes buffer n and empties buffer n-1, which this rank finished reading
// in launch n-1. A peer stores into buffer n-1 again in its launch n+2, which begins after it has seen this
// rank's message of launch n+1, which was stored after this launch ended.
//
// ONESHOT_MULTICAST (oneshot_multicast.h) differs only in how messages are sent. That is a class:
//   send<tp>(arguments, at, value)  stores an access of a message at this offset of all ranks' slots
//   between_polls(polls)            is called after each poll in vain, of which there were so many
//   end()                           is called once the slots are read and emptied
#ifndef BENCH_CUDA_ONESHOT_H
#define BENCH_CUDA_ONESHOT_H

#include "epilogue.h"
#include "in_flight.h"
#include "reduce.h"
#include "state.h"

constexpr uint32_t EMPTY = 0x80000000u;
constexpr int POLLED_TOGETHER = 8; // ranks; more would cost registers

// A store to each rank, its own first.
struct StoreToEach {
    template <int tp> static DEVICE_MEMBER void send(const Arguments &arguments, size_t at, Word4 value) {
        for (int step = 0; step < tp; step++) {
            int peer = (arguments.rank + step) % tp;
            store_relaxed(arguments.workspace.slots[peer] + at, value);
        }
    }
    static DEVICE_MEMBER void between_polls(uint32_t) {}
    static DEVICE_MEMBER void end() {}
};

template <class Fusion, int tp> // accesses of a row
constexpr int kept_beside_polls = tp < POLLED_TOGETHER ? kept_by<Fusion> : 1;

DEVICE_FUNCTION Word4 without_empty(Word4 value) {
#ifndef FAULT_KEEP_EMPTY
    for (int i = 0; i < 4; i++) {
        if (value.word[i] == EMPTY) value.word[i] = 0;
    }
#endif
    return value;
}

DEVICE_FUNCTION bool has_arrived(Word4 value) {
#ifdef FAULT_POLL_ONE_WORD
    return value.word[0] != EMPTY;
#else
    return value.word[0] != EMPTY && value.word[1] != EMPTY && value.word[2] != EMPTY &&
           value.word[3] != EMPTY;
#endif
}

// Loads this thread's access of its block's first token, if there is one, together with the state: that saves
// one wait for memory in a launch of one token.
DEVICE_FUNCTION Word4 first_access(const Call &call) {
    Columns columns = columns_of(call);
    int token = static_cast<int>(cluster_index()), column = columns.begin + static_cast<int>(thread_index());
    if (token >= call.num_tokens || column >= columns.end) return Word4{};
    return load_plain(call.input + static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token) +
                      static_cast<size_t>(column));
}

// Stores this rank's tokens into every rank's buffer; `first_one` is loaded already.
template <class Sender, int tp>
DEVICE_FUNCTION void send_tokens(const Arguments &arguments, size_t buffer, Word4 first_one) {
    const Call &call = arguments.call;
    size_t mine = buffer + static_cast<size_t>(arguments.rank) * arguments.workspace.capacity;
    uint32_t first = cluster_index() * static_cast<uint32_t>(call.accesses_per_token) +
                     static_cast<uint32_t>(columns_of(call).begin) + thread_index();
    auto load = [&](uint32_t at, Word4 *values) {
        *values = at == first ? first_one : load_plain(call.input + at);
    };
    auto take = [&](uint32_t at, const Word4 *values) {
        Sender::template send<tp>(arguments, mine + at, without_empty(*values));
    };
    for_each_access(call, 0, call.num_tokens, load, take);
}

// Empties what the previous launch filled.
template <int tp>
DEVICE_FUNCTION void clear_buffer(const Arguments &arguments, size_t buffer, uint32_t filled) {
#ifndef FAULT_NO_CLEAR
    const Workspace &workspace = arguments.workspace;
    const Word4 empty = {{EMPTY, EMPTY, EMPTY, EMPTY}};
    for (uint32_t i = block_index() * block_size() + thread_index(); i < filled;
         i += grid_size() * block_size()) {
        for (int source = 0; source < tp; source++) {
            size_t of_source = static_cast<size_t>(source) * workspace.capacity;
            store_relaxed(workspace.slots[arguments.rank] + buffer + of_source + i, empty);
        }
    }
#endif
}

// Waits for one access of each of `count` ranks, from `first_rank`.
template <class Sender, int count>
DEVICE_FUNCTION void receive(const Workspace &workspace, const Word4 *slots, int first_rank, Word4 *values) {
    uint32_t polls = 0;
    bool all, wait = true;
    do {
        const Word4 *slot = slots + static_cast<size_t>(first_rank) * workspace.capacity;
        for (int i = 0; i < count; i++, slot += workspace.capacity) values[i] = load_relaxed(slot);
        all = true;
        for (int i = 0; i < count; i++) all = all && has_arrived(values[i]);
        if (!all) {
            wait = keep_waiting(workspace.give_up, &polls);
            Sender::between_polls(polls);
        }
    } while (!all && wait);
    if (!all) set_flag(&workspace.state->gave_up);
}

template <class Sender, class Type, Accumulate accumulate, int tp>
DEVICE_FUNCTION Word4 sum_of_ranks(const Arguments &arguments, size_t buffer, size_t at) {
    const Workspace &workspace = arguments.workspace;
    const Word4 *slots = workspace.slots[arguments.rank] + buffer + at;
    Sum<Type, accumulate> sum;
    constexpr int together = tp < POLLED_TOGETHER ? tp : POLLED_TOGETHER, rest = tp % together;
    for (int first = 0; first + together <= tp; first += together) {
        Word4 values[together];
        receive<Sender, together>(workspace, slots, first, values);
        if (first == 0) sum.begin(values[0]);
        for (int i = first == 0 ? 1 : 0; i < together; i++) sum.add(values[i]);
    }
    if constexpr (rest > 0) {
        Word4 values[rest];
        receive<Sender, rest>(workspace, slots, tp - rest, values);
        for (int i = 0; i < rest; i++) sum.add(values[i]);
    }
    return sum.rounded();
}

// Stores the sums of all tokens, without an epilogue. Polls several accesses at once, and adds those that
// have arrived.
template <class Sender, class Type, Accumulate accumulate, int tp>
DEVICE_FUNCTION void store_sums(const Arguments &arguments, size_t buffer) {
    const Workspace &workspace = arguments.workspace;
    const Word4 *slots = workspace.slots[arguments.rank] + buffer;
    auto load = [&](uint32_t at, Word4 *terms) {
        for (int rank = 0; rank < tp; rank++)
            terms[rank] = load_relaxed(slots + static_cast<size_t>(rank) * workspace.capacity + at);
    };
    auto take = [&](uint32_t at, const Word4 *terms) {
        bool all = true;
        for (int rank = 0; rank < tp; rank++) all = all && has_arrived(terms[rank]);
        Word4 sum = all ? sum_of_terms<Type, accumulate, tp>(terms)
                        : sum_of_ranks<Sender, Type, accumulate, tp>(arguments, buffer, at);
        store_plain(arguments.call.out + at, sum);
    };
    for_each_access<tp>(arguments.call, 0, arguments.call.num_tokens, load, take);
}

template <class Sender, class Type, Accumulate accumulate, int tp, class Fusion>
DEVICE_FUNCTION void oneshot_by(const Arguments &arguments) {
    SHARED_ARRAY(float, partial, PARTIALS);
    const Call &call = arguments.call;
    const Workspace &workspace = arguments.workspace;
    announce_start<Fusion>();
    wait_for_earlier_launches();
    const Word4 first_one = first_access(call);
    const State state = state_of(workspace);
    uint32_t before = (state.turn + ROTATION - 1) % ROTATION;
    size_t buffer_size = workspace.capacity * tp, buffer = state.turn * buffer_size;
    int first = static_cast<int>(cluster_index()), stride = static_cast<int>(cluster_count());
    send_tokens<Sender, tp>(arguments, buffer, first_one);
    let_next_launch_start();
    clear_buffer<tp>(arguments, before * buffer_size, state.filled);
    RowSum row_sum = row_sums<Fusion>(partial);
    constexpr bool stores_sums = is_none<Fusion> && tp < IN_FLIGHT; // else enough is in flight
    if constexpr (stores_sums) store_sums<Sender, Type, accumulate, tp>(arguments, buffer);
    for (int token = first; !stores_sums && token < call.num_tokens; token += stride) {
        size_t at = static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
        finish_token<Type, Fusion, kept_beside_polls<Fusion, tp>>(call, token, row_sum, [&](int column) {
            size_t access = at + static_cast<size_t>(column);
            return sum_of_ranks<Sender, Type, accumulate, tp>(arguments, buffer, access);
        });
    }
    Sender::end();
    end_launch(workspace, state,
               static_cast<uint32_t>(call.num_tokens) * static_cast<uint32_t>(call.accesses_per_token));
}

template <class Type, Accumulate accumulate, int tp, class Fusion>
DEVICE_FUNCTION void oneshot(const Arguments &arguments) {
    oneshot_by<StoreToEach, Type, accumulate, tp, Fusion>(arguments);
}

#endif
