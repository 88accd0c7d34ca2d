// From the sum of a token to the results of the call: residual add, RMSNorm, and what the fusion stores of
// it, by all threads of a block together. bench/elements/strategy.h defines the results.
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
constexpr int MAX_WARPS = 32;

// Returns the sum over the block to every thread. All threads take part; block_size is a multiple of WARP.
// `partial` has MAX_WARPS floats of shared memory.
DEVICE_FUNCTION float block_sum(float value, float *partial) {
    for (int mask = WARP / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
    unsigned thread = thread_index();
    if (thread % WARP == 0) partial[thread / WARP] = value;
#ifndef FAULT_NO_BLOCK_BARRIER
    block_barrier();
#endif
    float sum = 0;
    for (unsigned warp = 0; warp < block_size() / WARP; warp++) sum += partial[warp];
    block_barrier(); // before `partial` is written again
    return sum;
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

// The maximum number of accesses of a thread in a row, which may be wider than the block.
DEVICE_FUNCTION int rounds_of(const Call &call) {
    int block = static_cast<int>(block_size());
    return (call.accesses_per_token + block - 1) / block;
}

// Accesses of a thread in a row that stay in registers; those beyond are loaded again. Fewer with a fusion
// that leaves fewer registers.
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
template <class Fusion> constexpr int kept_by = Fusion::needs_registers ? 1 : 2;
#else
template <class Fusion> constexpr int kept_by = 2;
#endif

// Finishes one token. sum_at(column) returns the sum at an access of it; the thread of that access calls it
// once. All threads of the block take part. Loads residual and gamma before the sums, which may have to wait
// for other ranks.
template <class Type, class Fusion, int kept = kept_by<Fusion>, class SumAt>
DEVICE_FUNCTION void finish_token(const Call &call, int token, float *partial, SumAt sum_at) {
    int block = static_cast<int>(block_size()), width = call.accesses_per_token;
    int thread = static_cast<int>(thread_index());
    size_t first = static_cast<size_t>(token) * static_cast<size_t>(width);
    if constexpr (is_none<Fusion>) {
        for (int column = thread; column < width; column += block)
            store_plain(call.out + first + static_cast<size_t>(column), sum_at(column));
    } else {
        float squares = 0;
        Word4 sums[kept] = {}, r[kept] = {}, gamma[kept] = {};
        auto at = [&](int column) { return first + static_cast<size_t>(column); };
        for (int i = 0; i < kept; i++) {
            int column = i * block + thread;
            if (column >= width) continue;
            r[i] = load_plain(call.residual + at(column));
            gamma[i] = load_plain(call.gamma + column);
        }
        for (int i = 0; i < kept; i++) {
            if (i * block + thread < width) sums[i] = sum_at(i * block + thread);
        }
        for (int i = 0; i < kept; i++) {
            int column = i * block + thread;
            if (column < width) r[i] = add_residual<Type>(call, at(column), sums[i], r[i], &squares);
        }
        for (int column = kept * block + thread; column < width; column += block)
            add_residual<Type>(call, at(column), sum_at(column), load_plain(call.residual + at(column)),
                               &squares);
        float elements = static_cast<float>(width * Type::per_access);
        float factor = reciprocal_square_root(block_sum(squares, partial) / elements + call.epsilon);
        size_t row = static_cast<size_t>(token);
        for (int i = 0; i < kept; i++) {
            int column = i * block + thread;
            if (i * block < width)
                store_norm<Type, Fusion>(call, row, column, column < width, r[i], gamma[i], factor);
        }
        for (int column = kept * block + thread; column - thread < width; column += block) {
            bool active = column < width;
            Word4 again{}, weights{};
            if (active) again = load_plain(call.residual_out + at(column));
            if (active) weights = load_plain(call.gamma + column);
            store_norm<Type, Fusion>(call, row, column, active, again, weights, factor);
        }
    }
}

#endif
