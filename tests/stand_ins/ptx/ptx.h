// The functions that translated PTX (translate.lua) calls. Its threads are fibers of tests/stand_ins/engine,
// through the functions of layer_on_cpu.h, which also has the conversions. An instruction that PTX leaves
// undefined, or that no kernel of ours may need, ends the program as a failed test does.
//
// With PTX_MODEL, accesses to global memory go through model.h, where memory is weaker than the host's.
#ifndef TESTS_PTX_H
#define TESTS_PTX_H

#include "cuda/kernels/types.h"
#include "ptx_kernels.h"
#ifdef PTX_MODEL
#include "model.h"
#endif

#include <type_traits>

namespace {

// A register has no initial value.
template <class T> constexpr T undefined = static_cast<T>(0xdeadbeefdeadbeefull);

[[noreturn]] inline void ptx_fail(const char *what, uint64_t number) {
    const EngineThread *self = engine_thread();
    std::printf("FAILED: PTX: %s: %llu; rank %u, block %u, thread %u\n", what,
                static_cast<unsigned long long>(number), self->rank, self->block, self->thread);
    std::fflush(stdout);
    std::_Exit(1);
}

// ---- arithmetic -------------------------------------------------------------------------------------------

template <class T> T shifted_left(T value, uint32_t by) {
    return by >= sizeof(T) * 8 ? T(0) : T(std::make_unsigned_t<T>(value) << by);
}
template <class T> T shifted_right(T value, uint32_t by) {
    if (by < sizeof(T) * 8) return T(value >> by);
    return value < T(0) ? T(-1) : T(0);
}
template <class T> T divided(T a, T b) {
    if (b == 0 || (T(-1) < T(0) && b == T(-1))) ptx_fail("a division by", uint64_t(b));
    return T(a / b);
}
template <class T> T smaller(T a, T b) {
    return b < a ? b : a;
}
template <class T> T larger(T a, T b) {
    if constexpr (std::is_floating_point<T>::value) {
        if (a == 0 && b == 0) return a + b; // +0 unless both are -0
        return std::fmax(a, b);             // with NaN, the other one
    }
    return a < b ? b : a;
}
inline uint64_t with_field(uint64_t into, uint64_t field, uint32_t at, uint32_t bits) {
    if (at >= 64 || bits >= 64 || at + bits > 64) ptx_fail("a field of bits that ends at", at + bits);
    uint64_t mask = ((uint64_t(1) << bits) - 1) << at;
    return (into & ~mask) | (field << at & mask);
}
inline uint32_t pack_e4m3(float low, float high) {
    return e4m3_code(low) | e4m3_code(high) << 8;
}

// ---- global memory ----------------------------------------------------------------------------------------

inline void check_access(uint64_t at, size_t bytes) {
    if (at % bytes != 0) ptx_fail("a misaligned access; bytes", bytes);
    ptx_check_range(at, unsigned(bytes));
}

template <Order order, Name name = Name::own, class T> T load_element(uint64_t at) {
#ifdef PTX_MODEL
    T value;
    model_load(at, sizeof value, order, name, &value);
    return value;
#else
    const T *from = reinterpret_cast<const T *>(at);
    if constexpr (order == Order::plain) return *from;
    return __atomic_load_n(from, order == Order::acquire ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED);
#endif
}
template <Order order, Name name = Name::own, class T> void store_element(uint64_t at, T value) {
#ifdef PTX_MODEL
    model_store(at, sizeof value, order, name, &value);
#else
    T *to = reinterpret_cast<T *>(at);
    if constexpr (order == Order::plain)
        *to = value;
    else
        __atomic_store_n(to, value, order == Order::release ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
#endif
}

// Between the elements of an access that is not plain, others may run. Such a load may be a poll.
template <Order order, class T, size_t n> void load_global(uint64_t at, T (&loaded)[n]) {
    check_access(at, sizeof loaded);
    for (size_t i = 0; i < n; i++) {
        loaded[i] = load_element<order, Name::own, T>(at + i * sizeof(T));
        if (order != Order::plain) engine_step(0);
    }
    if (order == Order::plain)
        engine_step(0);
    else if (!engine_keep_waiting())
        ptx_give_up();
}
template <Order order, class T, size_t n> void store_global(uint64_t at, const T (&stored)[n]) {
    check_access(at, sizeof stored);
    for (size_t i = 0; i < n; i++) {
        store_element<order>(at + i * sizeof(T), stored[i]);
        if (order != Order::plain) engine_step(1);
    }
    if (order == Order::plain) engine_step(1);
}
inline uint64_t atomic_add(uint64_t at, uint64_t value) {
    check_access(at, sizeof value);
    uint64_t before = __atomic_fetch_add(reinterpret_cast<uint64_t *>(at), value, __ATOMIC_RELAXED);
    engine_step(1);
    return before;
}

// ---- multicast: the address is that of rank 0's memory ----------------------------------------------------

inline const EngineMulticast &team_at(uint64_t at) {
    const EngineMulticast &team = engine_multicast_at(reinterpret_cast<const Word4 *>(at));
    if (team.ranks == 0) ptx_fail("no multicast memory is at", at);
    return team;
}
inline uint64_t of_rank(uint64_t at, const EngineMulticast &team, int rank) {
    const Word4 *of_first = reinterpret_cast<const Word4 *>(at);
    return reinterpret_cast<uint64_t>(team.base[rank] + (of_first - team.base[0]));
}

// The switch of this engine adds in rank order, in fp32, and rounds once.
template <class Type> void multimem_load_sum(uint64_t at, uint32_t (&loaded)[4]) {
    const EngineMulticast &team = team_at(at);
    float sum[Type::per_access], terms[Type::per_access];
    for (int rank = 0; rank < team.ranks; rank++) {
        uint64_t from = of_rank(at, team, rank);
        Word4 word;
        check_access(from, sizeof word);
        for (unsigned i = 0; i < 4; i++)
            word.word[i] =
                load_element<Order::relaxed, Name::multicast, uint32_t>(from + i * sizeof(uint32_t));
        unpack<Type>(word, terms);
        for (int i = 0; i < Type::per_access; i++) sum[i] = rank == 0 ? terms[i] : sum[i] + terms[i];
        engine_step(0);
    }
    const Word4 rounded = pack<Type>(sum);
    std::memcpy(loaded, rounded.word, sizeof loaded);
}
inline void multimem_store(uint64_t at, const uint32_t (&stored)[4]) {
    const EngineMulticast &team = team_at(at);
    for (int rank = 0; rank < team.ranks; rank++) {
        uint64_t to = of_rank(at, team, rank);
        check_access(to, sizeof stored);
        for (unsigned i = 0; i < 4; i++) {
            store_element<Order::relaxed, Name::multicast>(to + i * sizeof(uint32_t), stored[i]);
            engine_step(1);
        }
    }
}
inline void fence_of_aliases() {
#ifdef PTX_MODEL
    model_fence_of_aliases();
#endif
}

// ---- threads ----------------------------------------------------------------------------------------------

inline uint32_t shuffled(uint32_t value, uint32_t lanes, uint32_t clamp, uint32_t members) {
    if (members != 0xffffffffu || clamp != 31 || lanes > 31)
        ptx_fail("a shuffle of some lanes; lanes", lanes);
    return bits_of_float(engine_shuffle_xor(float_of_bits(value), int(lanes)));
}

// A thread of a kernel: the sizes of what it may access, and whether it has arrived at a barrier of its
// cluster. An address of shared memory has the rank of the block plus one in its upper byte, or 0 there: this
// block.
class Thread {
  public:
    Thread(const void *parameters, unsigned parameter_bytes, unsigned shared_bytes)
        : parameters_(static_cast<const char *>(parameters)), parameter_bytes_(parameter_bytes),
          shared_bytes_(shared_bytes) {
        if (shared_bytes > 0) shared_ = static_cast<char *>(engine_shared_memory(0, shared_bytes));
    }
    ~Thread() {
        if (has_arrived_) ptx_fail("the end of a thread before its wait in a cluster", 0);
    }
    Thread(const Thread &) = delete;
    Thread &operator=(const Thread &) = delete;

    template <class T, size_t n> void load_parameter(uint64_t at, T (&loaded)[n]) const {
        uint64_t offset = at - reinterpret_cast<uint64_t>(parameters_);
        if (offset % sizeof loaded != 0) ptx_fail("a misaligned parameter at", offset);
        if (offset > parameter_bytes_ || parameter_bytes_ - offset < sizeof loaded)
            ptx_fail("no parameter is at", offset);
        std::memcpy(loaded, parameters_ + offset, sizeof loaded);
    }
    template <class T, size_t n> void load_shared(uint32_t at, T (&loaded)[n]) const {
        std::memcpy(loaded, shared_at(at, sizeof loaded), sizeof loaded);
        engine_step(0);
    }
    template <class T, size_t n> void store_shared(uint32_t at, const T (&stored)[n]) const {
        std::memcpy(shared_at(at, sizeof stored), stored, sizeof stored);
        engine_step(1);
    }
    template <class T, size_t n> void store_in_cluster(uint32_t at, const T (&stored)[n]) const {
        char *to = shared_at(at & OFFSETS, sizeof stored);
        if (at > OFFSETS) to = static_cast<char *>(engine_shared_in_cluster(to, (at >> RANK_SHIFT) - 1));
        std::memcpy(to, stored, sizeof stored);
        engine_step(1);
    }
    uint32_t address_in_cluster(uint32_t at, uint32_t rank) const {
        if (rank >= cluster_size()) ptx_fail("no block of the cluster has the rank", rank);
        return (at & OFFSETS) | (rank + 1) << RANK_SHIFT;
    }

    void arrive() {
        has_arrived_ = true;
        cluster_arrive();
    }
    void wait() {
        has_arrived_ = false;
        cluster_wait();
    }

  private:
    static constexpr unsigned RANK_SHIFT = 24;
    static constexpr uint32_t OFFSETS = (1u << RANK_SHIFT) - 1;
    const char *parameters_;
    unsigned parameter_bytes_, shared_bytes_;
    char *shared_ = nullptr;
    bool has_arrived_ = false;

    char *shared_at(uint32_t at, size_t bytes) const {
        if (at % bytes != 0) ptx_fail("a misaligned access to shared memory at", at);
        if (at > shared_bytes_ || shared_bytes_ - at < bytes) ptx_fail("no shared memory is at", at);
        return shared_ + at;
    }
};

} // namespace

#endif
