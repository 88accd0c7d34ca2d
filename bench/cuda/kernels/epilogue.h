// From the sum of a token to the results of the call: residual add, RMSNorm, quantisation, by all threads of
// a block together. bench/elements/strategy.h defines the results.
#ifndef BENCH_CUDA_EPILOGUE_H
#define BENCH_CUDA_EPILOGUE_H

#include "arguments.h"
#include "types.h"

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

// The offset of the scale of elements 16 * column .. 16 * column + 15 of a row in TensorRT-LLM's swizzled
// layout: tiles of 128 rows and 4 columns.
DEVICE_FUNCTION size_t swizzled_scale_offset(size_t row, size_t column, size_t hidden_size) {
    size_t tiles = (hidden_size + 63) / 64;
    return row / 128 * tiles * 512 + column / 4 * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
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

template <class Type> DEVICE_FUNCTION void store_fp8(const Call &call, size_t at, const float *norm) {
    constexpr int n = Type::per_access;
    float inverse = 1.0f / call.scale;
    uint64_t codes = 0;
    for (int i = 0; i < n; i++) codes |= static_cast<uint64_t>(e4m3_code(norm[i] * inverse)) << 8 * i;
    store_bytes(call.codes + at * n, codes, n);
}

// A block of 16 elements is spread over 16 / n neighbouring threads of one warp; all threads of the warp take
// part.
template <class Type>
DEVICE_FUNCTION void store_nvfp4(const Call &call, size_t token, int column, bool active, const float *norm) {
    constexpr int n = Type::per_access;
    float largest = 0;
    for (int i = 0; i < n; i++) {
        float magnitude = float_of_bits(bits_of_float(norm[i]) & 0x7fffffffu);
        if (magnitude > largest) largest = magnitude;
    }
    for (int mask = 1; mask < 16 / n; mask *= 2) {
        float other = shuffle_xor(largest, mask);
        if (other > largest) largest = other;
    }
    size_t hidden_size = static_cast<size_t>(call.accesses_per_token) * n;
    size_t first = static_cast<size_t>(column) * n;
    uint32_t block_scale = e4m3_code(call.scale * largest / 6.0f);
    float inverse = block_scale == 0 ? 0.0f : call.scale / e4m3_value(block_scale);
    if (active && first % 16 == 0) {
        size_t offset = call.linear_scales ? token * (hidden_size / 16) + first / 16
                                           : swizzled_scale_offset(token, first / 16, hidden_size);
        store_byte(call.block_scales + offset, static_cast<uint8_t>(block_scale));
    }
    uint64_t codes = 0;
    for (int i = 0; i < n; i++) codes |= static_cast<uint64_t>(e2m1_code(norm[i] * inverse)) << 4 * i;
    if (active) store_bytes(call.codes + (token * hidden_size + first) / 2, codes, n / 2);
}

// Computes y of one access from r, gamma and the row's factor, and stores what the fusion needs of it.
template <class Type, Fusion fusion>
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
        if constexpr (fusion == Fusion::rms_norm) store_plain(call.out + at, rounded);
        if (fusion != Fusion::rms_norm && call.norm_out != nullptr) store_plain(call.norm_out + at, rounded);
        if constexpr (fusion == Fusion::fp8) store_fp8<Type>(call, at, norm);
    }
    if constexpr (fusion == Fusion::nvfp4) store_nvfp4<Type>(call, token, column, active, norm);
}

// The maximum number of accesses of a thread in a row, which may be wider than the block.
DEVICE_FUNCTION int rounds_of(const Call &call) {
    int block = static_cast<int>(block_size());
    return (call.accesses_per_token + block - 1) / block;
}

// Finishes one token. sum_at(column) returns the sum at an access of it; the thread of that access calls it
// once. All threads of the block take part. `early`: loads the residual before the sum, which may have to
// wait for other ranks, and gamma before the block's barrier; that costs registers.
template <class Type, Fusion fusion, bool early = false, class SumAt>
DEVICE_FUNCTION void finish_token(const Call &call, int token, float *partial, SumAt sum_at) {
    int rounds = rounds_of(call), block = static_cast<int>(block_size());
    size_t first = static_cast<size_t>(token) * static_cast<size_t>(call.accesses_per_token);
    float squares = 0;
    Word4 kept{}, gamma{}; // of the first round; further rounds load theirs again
    for (int round = 0; round < rounds; round++) {
        int column = round * block + static_cast<int>(thread_index());
        if (column >= call.accesses_per_token) continue;
        size_t at = first + static_cast<size_t>(column);
        if constexpr (fusion == Fusion::none) {
            store_plain(call.out + at, sum_at(column));
        } else {
            Word4 residual{};
            if constexpr (early) residual = load_plain(call.residual + at);
            Word4 sum = sum_at(column);
            if constexpr (!early) residual = load_plain(call.residual + at);
            if (early && round == 0) gamma = load_plain(call.gamma + column);
            Word4 r = add_residual<Type>(call, at, sum, residual, &squares);
            if (round == 0) kept = r;
        }
    }
    if constexpr (fusion != Fusion::none) {
        float elements = static_cast<float>(call.accesses_per_token * Type::per_access);
        float factor = reciprocal_square_root(block_sum(squares, partial) / elements + call.epsilon);
        for (int round = 0; round < rounds; round++) {
            int column = round * block + static_cast<int>(thread_index());
            bool active = column < call.accesses_per_token;
            if (active && round > 0)
                kept = load_plain(call.residual_out + first + static_cast<size_t>(column));
            if (active && (!early || round > 0)) gamma = load_plain(call.gamma + column);
            store_norm<Type, fusion>(call, static_cast<size_t>(token), column, active, kept, gamma, factor);
        }
    }
}

#endif
