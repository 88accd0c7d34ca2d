// The thin layer between kernels and the machine: on a GPU this file, in tests layer_on_cpu.h
// (tests/stand_ins/engine), which runs each CUDA thread as a fiber of one CPU thread.
//
// Kernels access memory that another rank or launch can see only through these functions. A communication
// access of 16 bytes is four relaxed accesses of 32 bits and may tear between them; flags are released and
// acquired. All waits call keep_waiting.
#ifndef BENCH_CUDA_LAYER_H
#define BENCH_CUDA_LAYER_H

#include <stddef.h>
#include <stdint.h>

// Sixteen bytes, as a thread moves them.
struct alignas(16) Word4 {
    uint32_t word[4];
};

#ifdef __CUDACC__

#define DEVICE_FUNCTION                 static __device__ __forceinline__
#define DEVICE_MEMBER                   __device__ __forceinline__
#define SHARED_ARRAY(type, name, count) __shared__ type name[count]
#define KERNEL(threads, name, type)                                                                          \
    extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ type parameters)

DEVICE_FUNCTION unsigned thread_index() {
    return threadIdx.x;
}
DEVICE_FUNCTION unsigned block_index() {
    return blockIdx.x;
}
DEVICE_FUNCTION unsigned block_size() {
    return blockDim.x;
}
DEVICE_FUNCTION unsigned grid_size() {
    return gridDim.x;
}
// The rank, among those of a launch, that this block works for.
DEVICE_FUNCTION unsigned rank_index() {
    return blockIdx.y;
}
// A barrier of the block's threads; what they wrote before is visible to all of them afterwards.
DEVICE_FUNCTION void block_barrier() {
    __syncthreads();
}
// Blocks in a cluster are neighbours, run at the same time, and write into each other's shared memory. Before
// SM90, and where a launch has none, each block is a cluster by itself.
DEVICE_FUNCTION unsigned cluster_index() {
    unsigned index = blockIdx.x;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));
#endif
    return index;
}
DEVICE_FUNCTION unsigned cluster_count() {
    unsigned count = gridDim.x;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
#endif
    return count;
}
DEVICE_FUNCTION unsigned cluster_rank() { // of this block, in its cluster
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(rank));
#endif
    return rank;
}
DEVICE_FUNCTION unsigned cluster_size() {
    unsigned size = 1;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
#endif
    return size;
}
// The two halves of a barrier of a cluster of several blocks; each thread arrives and waits by turns. An
// arrival waits for the thread's earlier stores, wherever they go, since the cluster has to see them.
DEVICE_FUNCTION void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
DEVICE_FUNCTION void cluster_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// A barrier of the cluster's threads, as block_barrier is one of the block's.
DEVICE_FUNCTION void cluster_barrier() {
    if (cluster_size() == 1) {
        __syncthreads();
    } else {
        cluster_arrive();
        cluster_wait();
    }
}
// Stores to this address of shared memory in the block with that rank of the cluster.
DEVICE_FUNCTION void store_shared(float *to, unsigned rank, float value) {
#if __CUDA_ARCH__ >= 900
    uint32_t own = static_cast<uint32_t>(__cvta_generic_to_shared(to)), there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
#else
    (void)rank;
    *to = value;
#endif
}
// The value of the lane with a number that differs in the bits of `mask`. All lanes of the warp take part.
DEVICE_FUNCTION float shuffle_xor(float value, int mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

DEVICE_FUNCTION Word4 load_relaxed(const Word4 *from) {
    Word4 value;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(value.word[0]), "=r"(value.word[1]), "=r"(value.word[2]), "=r"(value.word[3])
                 : "l"(from)
                 : "memory");
    return value;
}
DEVICE_FUNCTION void store_relaxed(Word4 *to, Word4 value) {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(value.word[0]),
                 "r"(value.word[1]), "r"(value.word[2]), "r"(value.word[3])
                 : "memory");
}
// Plain accesses; only barriers and flags order them.
DEVICE_FUNCTION Word4 load_plain(const Word4 *from) {
    return *from;
}
DEVICE_FUNCTION void store_plain(Word4 *to, Word4 value) {
    *to = value;
}
DEVICE_FUNCTION void store_byte(uint8_t *to, uint8_t value) {
    *to = value;
}
DEVICE_FUNCTION uint8_t load_byte(const uint8_t *from) {
    return *from;
}
DEVICE_FUNCTION void store_bytes(void *to, uint64_t value, int bytes) {
    if (bytes == 8)
        *static_cast<uint64_t *>(to) = value;
    else if (bytes == 4)
        *static_cast<uint32_t *>(to) = static_cast<uint32_t>(value);
    else
        *static_cast<uint16_t *>(to) = static_cast<uint16_t>(value);
}

// Accesses of two or four bytes.
DEVICE_FUNCTION uint32_t load_bytes(const void *from, int bytes) {
    return bytes == 4 ? *static_cast<const uint32_t *>(from) : *static_cast<const uint16_t *>(from);
}

// The sum over all ranks' memory at a multicast address. The switch adds in fp32, in an order of its own. PTX
// does not promise how it rounds the sum (.acc::f32): others measured either neighbour of the sum, and errors
// up to 0.75 units in the last place. Needs SM90.
template <class Type> DEVICE_FUNCTION Word4 multicast_load_sum(const Word4 *from) {
    Word4 value = {};
#if __CUDA_ARCH__ >= 900
    if constexpr (Type::per_access == 4) {
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(value.word[0]), "=r"(value.word[1]), "=r"(value.word[2]), "=r"(value.word[3])
                     : "l"(from)
                     : "memory");
    } else if constexpr (Type::is_bfloat16) {
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0,%1,%2,%3}, [%4];"
                     : "=r"(value.word[0]), "=r"(value.word[1]), "=r"(value.word[2]), "=r"(value.word[3])
                     : "l"(from)
                     : "memory");
    } else {
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0,%1,%2,%3}, [%4];"
                     : "=r"(value.word[0]), "=r"(value.word[1]), "=r"(value.word[2]), "=r"(value.word[3])
                     : "l"(from)
                     : "memory");
    }
#endif
    return value;
}
// A multicast address and a rank's own address are two names of the same memory. Accesses by one name are
// ordered before accesses by the other only if this is called between them (PTX: proxies).
DEVICE_FUNCTION void order_multicast() {
    asm volatile("fence.proxy.alias;" ::: "memory");
}
// Stores into all ranks' memory.
DEVICE_FUNCTION void multicast_store(Word4 *to, Word4 value) {
#if __CUDA_ARCH__ >= 900
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(value.word[0]),
                 "r"(value.word[1]), "r"(value.word[2]), "r"(value.word[3])
                 : "memory");
#endif
}

DEVICE_FUNCTION uint32_t load_acquire(const uint32_t *from) {
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
DEVICE_FUNCTION void store_release(uint32_t *to, uint32_t value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
// Stores a value that orders no other access.
DEVICE_FUNCTION void set_flag(uint32_t *flag) {
    asm volatile("st.relaxed.sys.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

DEVICE_FUNCTION void add_to_hash(uint64_t *hash, uint64_t value) {
    atomicAdd(reinterpret_cast<unsigned long long *>(hash), static_cast<unsigned long long>(value));
}
// A clock that does not depend on the GPU's frequency.
DEVICE_FUNCTION uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

enum { POLLS_BEFORE_LOOKING_UP = 1 << 12 }; // about a millisecond: a poll is some 250 ns

// Called between two polls, with `polls` 0 at first. False: the host has given up; leave the wait.
DEVICE_FUNCTION bool keep_waiting(const uint32_t *give_up, uint32_t *polls) {
    if (++*polls % POLLS_BEFORE_LOOKING_UP != 0) return true;
    uint32_t given_up;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(given_up) : "l"(give_up) : "memory");
    return given_up == 0;
}

DEVICE_FUNCTION float float_of_bits(uint32_t bits) {
    return __uint_as_float(bits);
}
DEVICE_FUNCTION uint32_t bits_of_float(float value) {
    return __float_as_uint(value);
}
DEVICE_FUNCTION float reciprocal_square_root(float value) {
    return rsqrtf(value);
}

// Two floats, rounded to nearest even, in one word, `low` in the low half. NaN becomes 0x7fff.
DEVICE_FUNCTION uint32_t pack_bfloat16(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
DEVICE_FUNCTION uint32_t pack_float16(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
// Two floats in e4m3, rounded to nearest even, saturating at 448, `low` in the low byte. NaN becomes 0x7f.
// Needs SM89.
DEVICE_FUNCTION uint32_t pack_e4m3(float low, float high) {
    uint16_t pair = 0;
#if __CUDA_ARCH__ >= 890
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
#endif
    return pair;
}
DEVICE_FUNCTION float float_of_float16(uint32_t half) {
    float value;
    asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "r"(half));
    return value;
}

// Programmatic launch: afterwards, what earlier launches wrote is visible.
DEVICE_FUNCTION void wait_for_earlier_launches() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets the next launch start. Call it only after wait_for_earlier_launches.
DEVICE_FUNCTION void let_next_launch_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#else
#include "layer_on_cpu.h" // tests/stand_ins/engine
#endif

#endif
