// From the sum of a token to the results of the call: residual add, RMSNorm, and what the fusion stores of
// it, by all threads of a cluster of blocks together. bench/elements/strategy.h defines the results.
//
// The fusions are classes in bench/fusions:
//   quantises         its results are codes of the rounded norm, which is stored as well if checks need it
//   needs_registers   it leaves few registers to a kernel, as ptxas assembles it for GPUs before SM90
//   by_warp           false: store<Type>(call, at, rounded, norm) stores the results of the access with index
//                     `at`, from its norm, rounded to the data type, as a word and as floats
//                     true: store<Type>(call, token, column, active, norm) does, called by all threads of a
//                     warp together; threads without an access are not `active`
#ifndef BENCH_CUDA_EPILOGUE_H
#define BENCH_CUDA_EPILOGUE_H

#include "arguments.h"
#include "types.h"

struct None { // no epilogue
    static constexpr bool needs_registers = false;
};
template <class Fusion> inline constexpr bool is_none = false;
template <> inline constexpr bool is_none<None> = true;

constexpr int WARP = 32;
constexpr int MAX_WARPS = 32, MAX_CLUSTER = 8;        // of a block; blocks
constexpr int PARTIALS = 2 * MAX_CLUSTER * MAX_WARPS; // floats of shared memory that a RowSum has

// Every lane gets the same bits, because the two sums of a step have the same terms.
DEVICE_FUNCTION float warp_sum(float value) {
    for (int mask = WARP / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
    return value;
}

// Sums over the threads of a cluster. Each warp stores its sum into every block's shared memory. Two parts of
// that memory take turns: a block stores into a part again after the barrier of the next sum, which all
// threads reach after they have read that part.
struct RowSum {
    float *partials;
    unsigned turn;

    // Returns the sum to every thread, the same bits. All threads take part; block_size is a multiple of
    // WARP.
    DEVICE_MEMBER float of(float value) {
        float *part = partials + turn * (PARTIALS / 2), sum = 0;
        unsigned warp = thread_index() / WARP, lane = thread_index() % WARP, warps = block_size() / WARP;
#ifndef FAULT_ONE_TURN
        turn ^= 1;
#endif
        value = warp_sum(value);
        if (lane < cluster_size()) store_shared(part + cluster_rank() * warps + warp, lane, value);
#ifndef FAULT_NO_BLOCK_BARRIER
        cluster_barrier();
#endif
        for (unsigned i = lane; i < warps * cluster_size(); i += WARP) sum += part[i];
        return warp_sum(sum);
    }
};

// A block stores into another's shared memory only after that block has started. So each launch first calls
// announce_start, and gets its RowSum when it has sent what other ranks wait for.
template <class Fusion> DEVICE_FUNCTION bool shares_rows() {
#ifdef FAULT_NO_CLUSTER_START
    return false;
#else
    return !is_none<Fusion> && cluster_size() > 1;
#endif
}
template <class Fusion> DEVICE_FUNCTION void announce_start() {
    if (shares_rows<Fusion>()) cluster_arrive();
}
template <class Fusion> DEVICE_FUNCTION RowSum row_sums(float *partials) {
    if (shares_rows<Fusion>()) cluster_wait();
    return {partials, 0};
}

// Stores and returns r = round(sum + residual) at one access, and adds its squares to *squares.
template <class Type>
DEVICE_FUNCTION Word4 add_residual(const Call &call, size_t at, Word4 sum, Word4 residual, float *squares) {
    constexpr int n = Type::per_access;
    float values[n], terms[n];
    unpack<Type>(sum, values);
    unpack<Type>(residual, terms);
    for (int i = 0; i < n; i++) values[i] += terms[i];
    Word4 rounded = pack<Type>(values);
    store_plain(call.residual_out + at, rounded);
    unpack<Type>(rounded, values);
    for (int i = 0; i < n; i++) *squares += values[i] * values[i];
    return rounded;
}

// Computes y of one access from r, gamma and the row's factor, and stores what the fusion needs of it.
template <class Type, class Fusion>
DEVICE_FUNCTION void store_norm(const Call &call, size_t token, int column, bool active, Word4 r, Word4 gamma,
                                float factor) {
    constexpr int n = Type::per_access;
    float norm[n] = {};
    size_t at = token * static_cast<size_t>(call.accesses_per_token) + static_cast<size_t>(column);
    if (active) {
        float weights[n];
        unpack<Type>(r, norm);
        unpack<Type>(gamma, weights);
        for (int i = 0; i < n; i++) norm[i] = norm[i] * factor * weights[i];
        Word4 rounded = pack<Type>(norm);
        unpack<Type>(rounded, norm);
        if (Fusion::quantises && call.norm_out != nullptr) store_plain(call.norm_out + at, rounded);
        if constexpr (!Fusion::by_warp) Fusion::template store<Type>(call, at, rounded, norm);
    }
    if constexpr (Fusion::by_warp) Fusion::template store<Type>(call, token, column, active, norm);
}

// Accesses of a thread in a row that stay in registers; those beyond are loaded again. Fewer with a fusion
// that leaves fewer registers.
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
template <class Fusion> constexpr int kept_by = Fusion::needs_registers ? 1 : 2;
#else
template <class Fusion> constexpr int kept_by = 2;
#endif

// Finishes one token. sum_at(column) returns the sum at an access of it; the thread of that access calls it
// once. All threads of the cluster take part. Loads residual and gamma before the sums, which may have to
// wait for other ranks.
template <class Type, class Fusion, int kept = kept_by<Fusion>, class SumAt>
DEVICE_FUNCTION void finish_token(const Call &call, int token, RowSum &row_sum, SumAt sum_at) {
    const Columns columns = columns_of(call);
    const int block = static_cast<int>(block_size()), end = columns.end;
    const int mine = columns.begin + static_cast<int>(thread_index());
    const size_t row = static_cast<size_t>(token);
    const size_t first = row * static_cast<size_t>(call.accesses_per_token);
    auto at = [&](int column) { return first + static_cast<size_t>(column); };
    if constexpr (is_none<Fusion>) {
        for (int column = mine; column < end; column += block)
            store_plain(call.out + at(column), sum_at(column));
    } else {
        float squares = 0;
        Word4 sums[kept] = {}, r[kept] = {}, gamma[kept] = {};
        for (int i = 0, column = mine; i < kept; i++, column += block) {
            if (column >= end) continue;
            r[i] = load_plain(call.residual + at(column));
            gamma[i] = load_plain(call.gamma + column);
        }
        for (int i = 0, column = mine; i < kept; i++, column += block) {
            if (column < end) sums[i] = sum_at(column);
        }
        for (int i = 0, column = mine; i < kept; i++, column += block) {
            if (column < end) r[i] = add_residual<Type>(call, at(column), sums[i], r[i], &squares);
        }
        for (int column = mine + kept * block; column < end; column += block)
            add_residual<Type>(call, at(column), sum_at(column), load_plain(call.residual + at(column)),
                               &squares);
        float elements = static_cast<float>(call.accesses_per_token * Type::per_access);
        float factor = reciprocal_square_root(row_sum.of(squares) / elements + call.epsilon);
        for (int i = 0, from = columns.begin; i < kept && from < end; i++, from += block) {
            int column = mine + i * block;
            store_norm<Type, Fusion>(call, row, column, column < end, r[i], gamma[i], factor);
        }
        for (int from = columns.begin + kept * block; from < end; from += block) {
            int column = mine + (from - columns.begin);
            bool active = column < end;
            Word4 again{}, weights{};
            if (active) again = load_plain(call.residual_out + at(column));
            if (active) weights = load_plain(call.gamma + column);
            store_norm<Type, Fusion>(call, row, column, active, again, weights, factor);
        }
    }
}

#endif
