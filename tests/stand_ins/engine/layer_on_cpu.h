// The layer of bench/cuda/kernels/layer.h on a CPU: every CUDA thread is a fiber of engine.cpp. Unlike the
// engine, it is compiled with the sanitizer of the test.
#ifndef TESTS_CUDA_LAYER_ON_CPU_H
#define TESTS_CUDA_LAYER_ON_CPU_H

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define DEVICE_FUNCTION static inline
#define DEVICE_MEMBER   inline
#define SHARED_ARRAY(type, name, count)                                                                      \
    type *name = static_cast<type *>(engine_shared_memory(__COUNTER__, sizeof(type) * (count)))
#define KERNEL(threads, name, type) extern "C" void name(const type &parameters)

struct EngineThread {
    unsigned rank, block, thread, block_size, grid_size, cluster_size;
    bool may_access; // memory; else it has to wait for earlier launches first
};

extern "C" {
const EngineThread *engine_thread();
void engine_block_barrier();
float engine_shuffle_xor(float value, int mask);
void *engine_shared_memory(int site, size_t bytes); // the same for all threads of a block
void engine_cluster_arrive();
void engine_cluster_wait();
void *engine_shared_in_cluster(void *own, unsigned rank); // the same place in that block of the cluster
void engine_step(int wrote);                              // after an access: other threads may run
bool engine_keep_waiting();                               // lets others run; false: all threads wait
void engine_wait_for_earlier_launches();
void engine_let_next_launch_start();
}

DEVICE_FUNCTION unsigned thread_index() {
    return engine_thread()->thread;
}
DEVICE_FUNCTION unsigned block_index() {
    return engine_thread()->block;
}
DEVICE_FUNCTION unsigned block_size() {
    return engine_thread()->block_size;
}
DEVICE_FUNCTION unsigned grid_size() {
    return engine_thread()->grid_size;
}
// engine_joint: whether one launch is for all ranks; otherwise the rank in each launch is 0.
extern "C" bool engine_joint;
DEVICE_FUNCTION unsigned rank_index() {
    return engine_joint ? engine_thread()->rank : 0;
}
DEVICE_FUNCTION void block_barrier() {
    engine_block_barrier();
}
DEVICE_FUNCTION unsigned cluster_size() {
    return engine_thread()->cluster_size;
}
DEVICE_FUNCTION unsigned cluster_index() {
    return block_index() / cluster_size();
}
DEVICE_FUNCTION unsigned cluster_count() {
    return grid_size() / cluster_size();
}
DEVICE_FUNCTION unsigned cluster_rank() {
    return block_index() % cluster_size();
}
DEVICE_FUNCTION void cluster_arrive() {
    engine_cluster_arrive();
}
DEVICE_FUNCTION void cluster_wait() {
    engine_cluster_wait();
}
DEVICE_FUNCTION void cluster_barrier() {
    if (cluster_size() == 1) {
        block_barrier();
    } else {
        cluster_arrive();
        cluster_wait();
    }
}
DEVICE_FUNCTION void store_shared(float *to, unsigned rank, float value) {
    *static_cast<float *>(engine_shared_in_cluster(to, rank)) = value;
    engine_step(1);
}
DEVICE_FUNCTION float shuffle_xor(float value, int mask) {
    return engine_shuffle_xor(value, mask);
}

// A GPU accepts an access only if its size divides the address. The program ends as after a failed test:
// another end, such as by a signal, does not count as the detection of a planted fault.
DEVICE_FUNCTION void must_be_aligned(const volatile void *address, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
    std::printf("FAILED: misaligned access of %zu bytes\n", bytes);
    std::fflush(stdout);
    std::_Exit(1);
}

// Relaxed accesses of 32 bits each, between which others may run.
DEVICE_FUNCTION Word4 load_relaxed(const Word4 *from) {
    Word4 value;
    must_be_aligned(from, sizeof *from);
    for (int i = 0; i < 4; i++) {
        value.word[i] = __atomic_load_n(&from->word[i], __ATOMIC_RELAXED);
        engine_step(0);
    }
    return value;
}
DEVICE_FUNCTION void store_relaxed(Word4 *to, Word4 value) {
    must_be_aligned(to, sizeof *to);
    for (int i = 0; i < 4; i++) {
        __atomic_store_n(&to->word[i], value.word[i], __ATOMIC_RELAXED);
        engine_step(1);
    }
}
DEVICE_FUNCTION Word4 load_plain(const Word4 *from) {
    must_be_aligned(from, sizeof *from);
    Word4 value = *from;
    engine_step(0);
    return value;
}
DEVICE_FUNCTION void store_plain(Word4 *to, Word4 value) {
    must_be_aligned(to, sizeof *to);
    *to = value;
    engine_step(1);
}
DEVICE_FUNCTION void store_byte(uint8_t *to, uint8_t value) {
    *to = value;
    engine_step(1);
}
DEVICE_FUNCTION void store_bytes(void *to, uint64_t value, int bytes) {
    must_be_aligned(to, static_cast<size_t>(bytes));
    std::memcpy(to, &value, static_cast<size_t>(bytes));
    engine_step(1);
}
DEVICE_FUNCTION uint32_t load_bytes(const void *from, int bytes) {
    uint32_t value = 0;
    must_be_aligned(from, static_cast<size_t>(bytes));
    std::memcpy(&value, from, static_cast<size_t>(bytes));
    engine_step(0);
    return value;
}
DEVICE_FUNCTION uint8_t load_byte(const uint8_t *from) {
    uint8_t value = *from;
    engine_step(0);
    return value;
}
// The memory of each rank behind a multicast address; the address is that of rank 0.
struct EngineMulticast {
    int ranks;
    Word4 *base[16];
    bool rounds_like_a_switch; // else correctly
};
const EngineMulticast &engine_multicast_at(const Word4 *address);

// The sum as a switch may round it, to a type that has so many bits fewer than a float: two further bits
// decide, those after them are cut off, and ties go to the odd neighbour. The error is below 0.75 units in
// the last place.
inline float rounded_in_switch(float sum, int fewer_bits) {
    uint32_t bits;
    std::memcpy(&bits, &sum, sizeof bits);
    uint32_t unit = 1u << fewer_bits, quarters = bits >> (fewer_bits - 2) & 3u, rounded = bits & ~(unit - 1);
    if (quarters == 3 || (quarters == 2 && (rounded & unit) == 0)) rounded += unit;
    std::memcpy(&sum, &rounded, sizeof sum);
    return sum;
}

// The switch of this engine adds in rank order.
template <class Type> DEVICE_FUNCTION void unpack(Word4 from, float *values);
template <class Type> DEVICE_FUNCTION Word4 pack(const float *values);
template <class Type> DEVICE_FUNCTION Word4 multicast_load_sum(const Word4 *from) {
    constexpr int n = Type::per_access;
    const EngineMulticast &team = engine_multicast_at(from);
    float sum[n] = {};
    for (int rank = 0; rank < team.ranks; rank++) {
        float terms[n];
        unpack<Type>(load_plain(team.base[rank] + (from - team.base[0])), terms);
        for (int i = 0; i < n; i++) sum[i] = rank == 0 ? terms[i] : sum[i] + terms[i];
    }
    if constexpr (n == 8) {
        for (int i = 0; i < n && team.rounds_like_a_switch; i++)
            sum[i] = rounded_in_switch(sum[i], Type::is_bfloat16 ? 16 : 13);
    }
    return pack<Type>(sum);
}
DEVICE_FUNCTION void order_multicast() {}
DEVICE_FUNCTION void multicast_store(Word4 *to, Word4 value) {
    const EngineMulticast &team = engine_multicast_at(to);
    for (int rank = 0; rank < team.ranks; rank++) store_relaxed(team.base[rank] + (to - team.base[0]), value);
}

DEVICE_FUNCTION uint32_t load_acquire(const uint32_t *from) {
    must_be_aligned(from, sizeof *from);
    uint32_t value = __atomic_load_n(from, __ATOMIC_ACQUIRE);
    engine_step(0);
    return value;
}
DEVICE_FUNCTION void store_release(uint32_t *to, uint32_t value) {
#ifdef FAULT_RELAXED_FLAG
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
#else
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
    engine_step(1);
}
DEVICE_FUNCTION void set_flag(uint32_t *flag) {
    __atomic_store_n(flag, 1u, __ATOMIC_RELAXED);
    engine_step(1);
}
DEVICE_FUNCTION bool keep_waiting(const uint32_t *give_up, uint32_t *polls) {
    ++*polls;
    return engine_keep_waiting() && __atomic_load_n(give_up, __ATOMIC_RELAXED) == 0;
}

DEVICE_FUNCTION void add_to_hash(uint64_t *hash, uint64_t value) {
    __atomic_fetch_add(hash, value, __ATOMIC_RELAXED);
    engine_step(1);
}
// A clock that advances by a second at each reading, more than any delay.
DEVICE_FUNCTION uint64_t nanoseconds() {
    static uint64_t now;
    return now += 1000000000;
}

DEVICE_FUNCTION float float_of_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
DEVICE_FUNCTION uint32_t bits_of_float(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
DEVICE_FUNCTION float reciprocal_square_root(float value) {
#ifdef FAULT_RANKS_DIFFER // by less than float64 can distinguish from a rounding
    if (engine_thread()->rank == 1) return (1.0f + 0x1p-18f) / std::sqrt(value);
#endif
    return 1.0f / std::sqrt(value);
}

DEVICE_FUNCTION uint32_t bfloat16_bits(float value) {
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
DEVICE_FUNCTION uint32_t pack_bfloat16(float low, float high) {
    return bfloat16_bits(low) | bfloat16_bits(high) << 16;
}

// Rounds to the nearest, ties to even. Below 2^-14, adding 0.5 rounds to a multiple of 2^-24.
DEVICE_FUNCTION uint32_t float16_bits(float value) {
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00u; // 65520 and above
    if (magnitude < 0x38800000u) {                       // below 2^-14: in steps of 2^-24
        float steps = float_of_bits(magnitude) + 0.5f;
        return sign | (bits_of_float(steps) - 0x3f000000u);
    }
    uint32_t odd = magnitude >> 13 & 1u;
    return sign | ((magnitude + 0xfffu + odd - 0x38000000u) >> 13);
}
DEVICE_FUNCTION uint32_t pack_float16(float low, float high) {
    return float16_bits(low) | float16_bits(high) << 16;
}
DEVICE_FUNCTION float float_of_float16(uint32_t half) {
    uint32_t exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu, sign = (half & 0x8000u) << 16;
    if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000u | mantissa << 13);
    float magnitude = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-24f
                                    : float_of_bits((exponent + 112) << 23 | mantissa << 13);
    return float_of_bits(bits_of_float(magnitude) | sign);
}

DEVICE_FUNCTION void wait_for_earlier_launches() {
    engine_wait_for_earlier_launches();
}
DEVICE_FUNCTION void let_next_launch_start() {
    engine_let_next_launch_start();
}

#endif
