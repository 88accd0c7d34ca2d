// The kernels of bench/cuda/kernels/exchange.h on a CPU: every kind of collective x data type x TP size, with
// sizes that change between launches and are often odd. Moved parts must be the same bits, sums exact, and
// the bytes behind them unchanged. Prints the seed; a run with the same seed is the same.
//
//   test_cuda_exchange [SEED]     SEED 0: see mix.h
//
// With more blocks than the GPU holds, a launch must end with a reported deadlock. With IN_PTX, only the TP
// size CASES_TP runs, in PTX (tests/bench/cuda/ptx).
#include "cuda/kernels/exchange.h"

#include "engine.h"
#include "mix.h"

extern "C" {
#include "elements/element.h"
}

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

static EngineMulticast engine_multicast;
const EngineMulticast &engine_multicast_at(const Word4 *) {
    return engine_multicast;
}
bool engine_joint = true; // one launch for all ranks

#ifdef IN_PTX
void exchange_in_ptx(const char *kernel, const ExchangeLaunch<CASES_TP> &launch);
#endif

namespace {

constexpr int LAUNCHES = 4;
constexpr size_t MOST_ELEMENTS = 1100, BEYOND = 32; // of a part; bytes behind the last part
constexpr unsigned char UNTOUCHED = 0xa5;

enum Kind { GATHER, ALL_TO_ALL, SCATTER, KINDS };
const char *const kind_names[] = {"all_gather", "all_to_all", "reduce_scatter"};

// The conditions of a run: see EngineRun.
struct Surroundings {
    const char *name;
    bool one_gpu, stalls;
    unsigned resident, blocks, threads;
};

// One rank's arrays of one launch, in whole accesses.
struct Arrays {
    std::vector<Word4> input, out;
};

template <int tp> class Workbench {
  public:
    Workbench(Kind kind, dtype type, const Surroundings &s, uint64_t seed)
        : kind_(kind), type_(type), surroundings_(s), seed_(seed) {
        bytes_ = dtype_sizes_bytes[type];
        for (int rank = 0; rank < tp; rank++) {
            slots_.emplace_back(tp * MOST_ELEMENTS * bytes_ / 16 + 1);
            flags_.emplace_back(PHASES * tp * s.blocks, 0u);
        }
        states_.assign(tp, RankState{});
        arrays_.resize(LAUNCHES * tp);
        for (int launch = 0; launch < LAUNCHES; launch++) prepare(launch);
    }

    // Runs all launches; returns how many bytes or sums are wrong, -1: deadlock.
    long run() {
        EngineRun engine;
        engine.ranks = tp;
        engine.launches = LAUNCHES;
        engine.seed = seed_;
        engine.programmatic = false;
        engine.resident = surroundings_.resident;
        engine.one_gpu = surroundings_.one_gpu;
        engine.preempts = true;
        engine.stalls = surroundings_.stalls;
        engine.shape = [this](int, int) { return EngineLaunch{surroundings_.blocks, surroundings_.threads}; };
        engine.body = [this](int, int launch) { body(launches_[size_t(launch)]); };
        if (engine_run(engine).end == EngineEnd::deadlock) return -1;
        long wrong = 0;
        for (const RankState &state : states_) wrong += state.gave_up;
        for (int launch = 0; launch < LAUNCHES; launch++) {
            for (int rank = 0; rank < tp; rank++) wrong += check(launch, rank);
        }
        return wrong;
    }

    bool gave_up() const {
        bool any = false;
        for (const RankState &state : states_) any = any || state.gave_up != 0;
        return any;
    }

  private:
    Kind kind_;
    dtype type_;
    const Surroundings &surroundings_;
    uint64_t seed_;
    size_t bytes_;
    std::unique_ptr<uint32_t> give_up_ = std::make_unique<uint32_t>(0u);
    std::vector<std::vector<Word4>> slots_;
    std::vector<std::vector<uint32_t>> flags_;
    std::vector<RankState> states_;
    std::vector<Arrays> arrays_;
    std::vector<ExchangeLaunch<tp>> launches_;
    size_t elements_[LAUNCHES][tp][tp];

    void body(const ExchangeLaunch<tp> &launch) {
#ifdef IN_PTX
        static const char *const of_dtypes[] = {"reduce_scatter_bf16", "reduce_scatter_fp16",
                                                "reduce_scatter_fp32"};
        exchange_in_ptx(kind_ == SCATTER ? of_dtypes[type_] : "exchange", launch);
#else
        if (kind_ != SCATTER)
            exchange<tp>(launch);
        else if (type_ == DTYPE_FLOAT32)
            reduce_scatter<Float32, tp>(launch);
        else if (type_ == DTYPE_BFLOAT16)
            reduce_scatter<Bfloat16, tp>(launch);
        else
            reduce_scatter<Float16, tp>(launch);
#endif
    }

    Arrays &arrays(int launch, int rank) {
        return arrays_[size_t(launch * tp + rank)];
    }
    unsigned char *input(int launch, int rank) {
        return reinterpret_cast<unsigned char *>(arrays(launch, rank).input.data());
    }
    unsigned char *out(int launch, int rank) {
        return reinterpret_cast<unsigned char *>(arrays(launch, rank).out.data());
    }

    // By launch: multiples of 16 bytes, of 4 bytes, or any number; of an all_to_all some are 0.
    size_t elements_of(int launch, int from, int to) const {
        size_t unit = launch % 3 == 0 ? 16 / bytes_ : launch % 3 == 1 ? 4 / bytes_ : 1;
        bool uneven = kind_ == ALL_TO_ALL;
        uint32_t x =
            mix(seed_ * 1009 + uint64_t(launch) * 31 + (uneven ? uint64_t(from) * 7 + uint64_t(to) : 0));
        if (uneven && x % 5 == 0) return 0;
        return (1 + x % (MOST_ELEMENTS / unit)) * unit;
    }

    // The elements that a rank sends to ranks before `to`, or gets from ranks before `from`.
    size_t sent_before(int launch, int from, int to) const {
        size_t sum = 0;
        for (int rank = 0; kind_ != GATHER && rank < to; rank++) sum += elements_[launch][from][rank];
        return sum;
    }
    size_t got_before(int launch, int from, int to) const {
        size_t sum = 0;
        for (int rank = 0; kind_ != SCATTER && rank < from; rank++) sum += elements_[launch][rank][to];
        return sum;
    }

    // Small whole numbers, with exact sums in every type.
    float value(int launch, int rank, size_t i) const {
        return float(int(mix(seed_ + uint64_t(launch) * 65537 + uint64_t(rank) * 104729 + i * 31) % 17) - 8);
    }

    void prepare(int launch) {
        ExchangeLaunch<tp> parameters{};
        parameters.call = {give_up_.get(), int32_t(surroundings_.blocks), kind_ == GATHER, kind_ == SCATTER,
                           0};
        for (int from = 0; from < tp; from++) {
            for (int to = 0; to < tp; to++) {
                elements_[launch][from][to] = elements_of(launch, from, to);
                parameters.bytes[from][to] = elements_[launch][from][to] * bytes_;
            }
        }
        for (int rank = 0; rank < tp; rank++) {
            size_t sent = kind_ == GATHER ? elements_[launch][rank][0] : sent_before(launch, rank, tp);
            size_t got = kind_ == SCATTER ? elements_[launch][rank][rank] : got_before(launch, tp, rank);
            Arrays &mine = arrays(launch, rank);
            mine.input.resize(sent * bytes_ / 16 + 1);
            mine.out.resize((got * bytes_ + BEYOND) / 16 + 1);
            std::memset(mine.out.data(), UNTOUCHED, mine.out.size() * 16);
            for (size_t i = 0; i < sent; i++)
                element_store(type_, mine.input.data(), i, value(launch, rank, i));
            parameters.slots[rank] = slots_[size_t(rank)].data();
            parameters.flags[rank] = flags_[size_t(rank)].data();
            parameters.ranks[rank].rank = rank;
            parameters.ranks[rank].input = mine.input.data();
            parameters.ranks[rank].out = mine.out.data();
            parameters.ranks[rank].state = &states_[size_t(rank)];
        }
        launches_.push_back(parameters);
    }

    long check_parts(int launch, int rank, size_t *end) {
        long wrong = 0;
        for (int from = 0; from < tp; from++) {
            size_t bytes = elements_[launch][from][rank] * bytes_,
                   to = got_before(launch, from, rank) * bytes_;
            const unsigned char *sent = input(launch, from) + sent_before(launch, from, rank) * bytes_;
            for (size_t i = 0; i < bytes; i++) wrong += out(launch, rank)[to + i] != sent[i];
            *end = to + bytes;
        }
        return wrong;
    }

    long check_sums(int launch, int rank, size_t *end) {
        long wrong = 0;
        size_t count = elements_[launch][rank][rank], first = count * size_t(rank);
        for (size_t i = 0; i < count; i++) {
            double sum = 0;
            for (int from = 0; from < tp; from++) sum += value(launch, from, first + i);
            wrong += std::fabs(element_value(type_, out(launch, rank), i) - sum) > 0;
        }
        *end = count * bytes_;
        return wrong;
    }

    long check(int launch, int rank) {
        size_t end = 0;
        long wrong = kind_ == SCATTER ? check_sums(launch, rank, &end) : check_parts(launch, rank, &end);
        for (size_t i = 0; i < BEYOND; i++) wrong += out(launch, rank)[end + i] != UNTOUCHED;
        return wrong;
    }
};

// Whether a grid of more blocks than fit at once is reported.
template <int tp> bool tells_too_large_a_grid(Kind kind, uint64_t seed) {
#ifdef WITHOUT_GIVING_UP
    return true; // a thread that gives up has no order of memory to test
#endif
    const Surroundings too_small = {"", true, false, unsigned(tp - 1), 1, 32};
    Workbench<tp> bench(kind, DTYPE_FLOAT32, too_small, seed);
    return bench.run() == -1 && bench.gave_up();
}

// Returns the number of failures of this kind, type and TP size.
template <int tp> int failures(Kind kind, dtype type, uint64_t seed) {
    const Surroundings surroundings[] = {
        {"one GPU, all resident", true, false, unsigned(2 * tp), 2, 64},
        {"a GPU for each, more blocks than there is work for", false, false, 0, 10, 32},
        {"threads with several accesses in flight", true, false, unsigned(tp), 1, 32},
        {"a rank that stalls", false, true, 4, 3, 32},
    };
    int failed = 0;
    for (const Surroundings &s : surroundings) {
        Workbench<tp> bench(kind, type, s, seed);
        long wrong = bench.run();
        if (wrong == 0) continue;
        failed++;
        std::printf("FAILED: %s %s tp%d, %s: ", kind_names[kind], dtype_names[type], tp, s.name);
        std::puts(wrong < 0 ? "deadlock" : (std::to_string(wrong) + " wrong").c_str());
    }
    if (tells_too_large_a_grid<tp>(kind, seed)) return failed;
    std::printf("FAILED: %s tp%d: a grid over the resident limit, no deadlock\n", kind_names[kind], tp);
    return failed + 1;
}

template <int tp> int all_failures(uint64_t seed) {
    int failed = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int type = 0; type < DTYPES; type++) failed += failures<tp>(Kind(kind), dtype(type), seed);
    }
    return failed;
}

} // namespace

int main(int argc, char **argv) {
    uint64_t seed = seed_of(argc > 1 ? argv[1] : "0");
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
#if defined IN_PTX
    int failed = all_failures<CASES_TP>(seed);
#elif defined FEW_CASES
    int failed = all_failures<3>(seed);
#else
    int failed = all_failures<2>(seed) + all_failures<3>(seed) + all_failures<8>(seed);
#endif
    std::printf("%d failed\n", failed);
    return failed == 0 ? 0 : 1;
}
