// The kernels of bench/cuda on a CPU: every strategy x fusion x data type x accumulation of one TP size, with
// message and grid sizes that change between launches, compared with float64. Prints the seed; a run with the
// same seed is the same.
//
//   test_cuda_kernels [SEED [NAME]]     NAME: only cases with it in their names; SEED 0: see mix.h
//
// With more blocks than the GPU holds, every strategy that waits for other blocks must end with a reported
// deadlock, and its threads must give up. Sums and residual_out are compared with float64 and, bit for bit,
// with sums in rank order; the norm with float64 from the kernel's own residual_out; codes, bit for bit, with
// those of the kernel's own rounded norm. Each rank must store the same bits as rank 0.
#include "cuda/kernels/oneshot.h"
#include "kernel_cases.h"

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
bool engine_joint = false;

namespace {

constexpr int LAUNCHES = 7;
// Epochs of the first launch. STOOD_STILL: it is so late that older flags seem to be of later epochs.
// GOES_ROUND: epochs begin again at 0 during the launches.
constexpr uint32_t STOOD_STILL = 0x80000001u, GOES_ROUND = 0xfffffffcu;
constexpr float EPSILON = 1e-5f;

struct Shape {
    int max_tokens, hidden_size, clusters, threads, cluster = 1; // cluster: its number of blocks
};

// The conditions of a run: see EngineRun.
struct Surroundings {
    const char *name;
    bool programmatic, one_gpu, stalls;
    unsigned resident;
    Shape shape;
    uint32_t epoch; // of the first launch
};

// The arrays of one rank in one launch, as a host would allocate them.
struct RankData {
    std::vector<Word4> input, residual, residual_out, out, norm_out;
    std::vector<uint8_t> codes, block_scales;
};

double code_value(const minifloat *format, unsigned code) {
    static code_range e4m3[256], e2m1[16];
    code_range *ranges = format == &minifloat_e4m3 ? e4m3 : e2m1;
    if (ranges[1].value == 0) minifloat_ranges(format, ranges);
    return ranges[code].value;
}

// The code nearest to a value, by bisection: ties to even, saturating.
uint8_t nearest_code(const minifloat *format, double value) {
    double size = std::fabs(value);
    unsigned first = 0, above = format->codes; // the codes from `above` on have larger values
    while (first < above) {
        unsigned middle = (first + above) / 2;
        if (code_value(format, middle) > size)
            above = middle;
        else
            first = middle + 1;
    }
    unsigned best = above - 1; // that of 0 is never above
    if (above < format->codes) {
        double down = size - code_value(format, best), up = code_value(format, above) - size;
        if (up < down || (up == down && above % 2 == 0)) best = above;
    }
    return uint8_t(best | (std::signbit(value) ? 1u << format->sign_bit : 0));
}

std::string name_of(const Case &c) {
    return std::string(c.strategy) + " " + dtype_names[c.dtype] + " " + fusion_names[c.fusion] + " " +
           c.accumulate + " tp" + std::to_string(c.tp);
}

class Workbench {
  public:
    Workbench(const Case &c, const Surroundings &s, uint64_t seed)
        : case_(c), surroundings_(s), shape_(s.shape), seed_(seed) {
        bytes_ = dtype_sizes_bytes[c.dtype];
        accesses_ = shape_.hidden_size * int(bytes_) / 16;
        capacity_ = size_t(shape_.max_tokens) * size_t(accesses_);
        allocate();
    }

    // Runs all launches; returns how many elements are wrong, -1: deadlock.
    long run() {
        EngineRun engine;
        engine.ranks = case_.tp;
        engine.launches = LAUNCHES;
        engine.seed = seed_;
        engine.programmatic = surroundings_.programmatic;
        engine.resident = surroundings_.resident;
        engine.one_gpu = surroundings_.one_gpu;
        engine.preempts = true;
        engine.stalls = surroundings_.stalls;
        engine.shape = [this](int, int launch) {
            return EngineLaunch{unsigned(grid_of(launch)), unsigned(shape_.threads),
                                unsigned(shape_.cluster)};
        };
        engine_joint = surroundings_.one_gpu; // kernels of PTX: one launch for all ranks
        engine.body = [this](int rank, int launch) {
            case_.body(arguments_[size_t(launch * case_.tp + rank)]);
        };
        EngineResult result = engine_run(engine);
        switches = result.switches;
        if (result.end == EngineEnd::deadlock) return -1;
        long wrong = 0;
        for (int launch = 0; launch < LAUNCHES; launch++) wrong += check(launch);
        return wrong;
    }

    // Whether a rank left a wait because no thread had anything to do.
    bool gave_up() const {
        bool any = false;
        for (const RankState &state : states_) any = any || state.gave_up != 0;
        return any;
    }

    uint64_t switches = 0;

  private:
    const Case &case_;
    const Surroundings &surroundings_;
    Shape shape_;
    uint64_t seed_;
    size_t bytes_, capacity_;
    int accesses_;
    std::unique_ptr<uint32_t> give_up_ = std::make_unique<uint32_t>(0u);
    std::vector<std::vector<Word4>> slots_;
    std::vector<std::vector<uint32_t>> flags_;
    Word4 *slot_of_[MAX_TP];
    uint32_t *flag_of_[MAX_TP];
    std::vector<RankState> states_;
    std::vector<Word4> gamma_;
    std::vector<RankData> data_;
    std::vector<Arguments> arguments_;

    dtype type() const { return static_cast<dtype>(case_.dtype); }
    float scale() const { return fusion_facts[case_.fusion].scale; }
    int tokens_of(int launch) const {
        return launch % 2 ? shape_.max_tokens : shape_.max_tokens - launch / 2;
    }
    int grid_of(int launch) const {
        int clusters = launch % 3 == 2 && shape_.clusters > 1 ? shape_.clusters - 1 : shape_.clusters;
        return (tokens_of(launch) < clusters ? tokens_of(launch) : clusters) * shape_.cluster;
    }
    int max_blocks() const { return shape_.clusters * shape_.cluster; }
    // The least number that every fusion permits: the 16 elements of a block are in one warp.
    int accesses_per_block() const { return ((accesses_ + shape_.cluster - 1) / shape_.cluster + 3) / 4 * 4; }
    RankData &data(int launch, int rank) { return data_[size_t(launch * case_.tp + rank)]; }

    // A number to which 1 can be added in fp32, but not in the type: 256 in bfloat16, 4096 in float16. With
    // two ranks none subtracts it again.
    float large() const { return case_.dtype == DTYPE_FLOAT16 && case_.tp > 2 ? 4096.0f : 256.0f; }

    // Mostly small numbers; in places both zeros, and numbers that cancel; in one launch also Inf and NaN.
    float value(int launch, int rank, size_t i) const {
        uint32_t x =
            mix(seed_ * 1000003 + uint64_t(launch) * 7919 * 65537 + uint64_t(rank) * 104729 + i * 31);
        if (i % 64 < 2) return i % 64 == 0 ? 0.0f : -0.0f; // a pair that looks like an empty slot
        if (i % 64 < 4) return -0.0f;
        if (i % 64 == 4) return rank == 0 ? large() : rank == 1 ? 1.0f : rank == 2 ? -large() : 0.0f;
        if (launch == 5 && i % 97 == 50 && rank == 1) return i % 2 ? INFINITY : NAN;
        return float(int(x % 2001) - 1000) / 256.0f;
    }

    void allocate() {
        int tp = case_.tp;
        bool oneshot = case_.strategy[0] == 'O';
        Word4 empty = {{EMPTY, EMPTY, EMPTY, EMPTY}};
        gamma_.resize(size_t(accesses_));
        for (int i = 0; i < shape_.hidden_size; i++) {
            element_store(type(), gamma_.data(), size_t(i), 0.5f + float(i % 7) / 4);
        }
        for (int rank = 0; rank < tp; rank++) {
            slots_.emplace_back(oneshot ? ROTATION * size_t(tp) * capacity_ : 2 * capacity_, empty);
            flags_.emplace_back(size_t(PHASES * tp * max_blocks()), 0u);
        }
        engine_multicast.ranks = tp;
        for (int rank = 0; rank < tp; rank++) engine_multicast.base[rank] = slots_[size_t(rank)].data();
        states_.assign(size_t(tp), RankState{});
        for (RankState &state : states_) {
            for (auto &copy : state.copies) copy[0] = surroundings_.epoch;
        }
        data_.resize(size_t(LAUNCHES * tp));
        for (int launch = 0; launch < LAUNCHES; launch++) {
            for (int rank = 0; rank < tp; rank++) fill(launch, rank);
        }
        for (int launch = 0; launch < LAUNCHES; launch++) {
            for (int rank = 0; rank < tp; rank++) arguments_.push_back(make_arguments(launch, rank));
        }
    }

    void fill(int launch, int rank) {
        RankData &d = data(launch, rank);
        size_t elements = capacity_ * 16 / bytes_;
        for (auto *array : {&d.input, &d.residual, &d.residual_out, &d.out, &d.norm_out})
            array->resize(capacity_);
        d.codes.assign(elements, 0xee);
        d.block_scales.assign(scale_bytes(), 0xee);
        for (size_t i = 0; i < elements; i++) {
            element_store(type(), d.input.data(), i, value(launch, rank, i));
            element_store(type(), d.residual.data(), i,
                          float(int(mix(i * 77 + uint64_t(launch))) % 401) / 64.0f);
        }
    }

    size_t scale_bytes() const {
        return size_t((shape_.max_tokens + 127) / 128 * 128) * size_t((shape_.hidden_size + 63) / 64 * 4);
    }

    Arguments make_arguments(int launch, int rank) {
        RankData &d = data(launch, rank);
        Arguments a{};
        a.rank = rank;
        a.call = {tokens_of(launch),
                  accesses_,
                  accesses_per_block(),
                  d.input.data(),
                  d.out.data(),
                  d.residual.data(),
                  d.residual_out.data(),
                  gamma_.data(),
                  d.norm_out.data(),
                  d.codes.data(),
                  d.block_scales.data(),
                  launch % 2 == 1,
                  EPSILON,
                  scale()};
        for (int peer = 0; peer < case_.tp; peer++) {
            slot_of_[peer] = slots_[size_t(peer)].data();
            flag_of_[peer] = flags_[size_t(peer)].data();
        }
        a.workspace.slots = slot_of_;
        a.workspace.flags = flag_of_;
        a.workspace.multicast = engine_multicast.base[0];
        a.workspace.capacity = capacity_;
        a.workspace.max_blocks = max_blocks();
        a.workspace.state = &states_[size_t(rank)];
        a.workspace.give_up = give_up_.get();
        return a;
    }

    // ---- the check ----

    static bool near(double value, double expected, double tolerance) {
        if (std::isnan(expected)) return std::isnan(value);
        if (std::isinf(expected)) return value == expected;
        return std::fabs(value - expected) <= tolerance;
    }

    // A rank with the same bits as rank 0 is as right as rank 0.
    long check(int launch) {
        long wrong = 0;
        for (int rank = 0; rank < case_.tp; rank++) {
            wrong += states_[size_t(rank)].gave_up;
            for (int token = 0; token < tokens_of(launch); token++) {
                long others = differing(launch, rank, token);
                wrong += others;
                if (rank > 0 && others == 0) continue;
                wrong += case_.fusion == FUSION_NONE ? check_sum(launch, rank, token)
                                                     : check_fused(launch, rank, token);
            }
        }
        return wrong;
    }

    // Whether a rank has other bytes at a place of an array than rank 0.
    template <class Array>
    bool differs(int launch, int rank, Array RankData::*array, size_t at, size_t bytes) {
        auto *mine = reinterpret_cast<const char *>((data(launch, rank).*array).data());
        auto *first = reinterpret_cast<const char *>((data(launch, 0).*array).data());
        return std::memcmp(mine + at, first + at, bytes) != 0;
    }

    // The number of arrays in which a rank's data of a token differ from those of rank 0.
    long differing(int launch, int rank, int token) {
        size_t hidden = size_t(shape_.hidden_size), from = size_t(token) * hidden, row = hidden * bytes_;
        size_t bits = fusion_facts[case_.fusion].code_bits, block = fusion_facts[case_.fusion].block_elements;
        long wrong = case_.fusion == FUSION_NONE
                         ? 0
                         : differs(launch, rank, &RankData::residual_out, from * bytes_, row);
        if (bits == 0) return wrong + differs(launch, rank, &RankData::out, from * bytes_, row);
        wrong += differs(launch, rank, &RankData::norm_out, from * bytes_, row);
        wrong += differs(launch, rank, &RankData::codes, from * bits / 8, hidden * bits / 8);
        for (size_t column = 0; block > 0 && column < hidden / block; column++) {
            size_t at = scale_offset(launch, size_t(token), column);
            wrong += differs(launch, rank, &RankData::block_scales, at, 1);
        }
        return wrong;
    }

    // The exact sum, and the tolerance of a right result.
    double exact(int launch, size_t at, double *tolerance) {
        double sum = 0, sizes = 0;
        for (int rank = 0; rank < case_.tp; rank++) {
            double term = element_value(type(), data(launch, rank).input.data(), at);
            sum += term;
            sizes += std::fabs(term);
        }
        double unit = case_.accumulate[0] == 'n' ? dtype_unit_roundoff(type()) : 0x1p-24;
        *tolerance = dtype_unit_roundoff(type()) * std::fabs(sum) + unit * sizes * (case_.tp - 1) * 1.01;
        return sum;
    }

    float rounded(float value) const {
        Word4 word;
        element_store(type(), &word, 0, value);
        return float(element_value(type(), &word, 0));
    }

    // The sum as the kernels add it: in rank order, rounded once or, native, at every step.
    float in_rank_order(int launch, size_t at) {
        float sum = 0;
        for (int rank = 0; rank < case_.tp; rank++) {
            float term = float(element_value(type(), data(launch, rank).input.data(), at));
            sum = rank == 0 ? term : sum + term;
            if (case_.accumulate[0] == 'n') sum = rounded(sum);
        }
        return rounded(sum);
    }

    long check_sum(int launch, int rank, int token) {
        long wrong = 0;
        const Word4 *out = data(launch, rank).out.data();
        size_t from = size_t(token) * size_t(shape_.hidden_size);
        for (size_t at = from; at < from + size_t(shape_.hidden_size); at++) {
            double tolerance, expected = exact(launch, at, &tolerance);
            double value = element_value(type(), out, at);
            wrong += !near(value, expected, tolerance) || !near(value, double(in_rank_order(launch, at)), 0);
        }
        return wrong;
    }

    long check_fused(int launch, int rank, int token) {
        long wrong = 0;
        RankData &d = data(launch, rank);
        size_t hidden = size_t(shape_.hidden_size), from = size_t(token) * hidden;
        double squares = 0;
        for (size_t at = from; at < from + hidden; at++) {
            double tolerance, expected = exact(launch, at, &tolerance);
            expected += element_value(type(), d.residual.data(), at);
            double value = element_value(type(), d.residual_out.data(), at);
            double unit = dtype_unit_roundoff(type());
            bool is_near =
                near(value, expected, 1.01 * (tolerance + unit * std::fabs(expected)) + 0x1p-24 * 8);
            float sum = in_rank_order(launch, at) + float(element_value(type(), d.residual.data(), at));
            wrong += !is_near || !near(value, double(rounded(sum)), 0);
            squares += value * value;
        }
        double factor = 1 / std::sqrt(squares / double(hidden) + double(EPSILON));
        bool has_codes = fusion_facts[case_.fusion].code_bits > 0;
        const Word4 *norm = has_codes ? d.norm_out.data() : d.out.data();
        for (size_t at = from; at < from + hidden; at++) {
            double r = element_value(type(), d.residual_out.data(), at);
            double expected = r * factor * element_value(type(), gamma_.data(), at - from);
            double relative = dtype_unit_roundoff(type()) + (double(hidden) / 4 + 16) * 0x1p-24;
            double value = element_value(type(), norm, at);
            wrong += !near(value, expected, relative * std::fabs(expected) + 0x1p-24);
        }
        // Codes of other fusions are checked by the bench itself (cuda_strategies).
        if (case_.fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_FP8) wrong += check_fp8(d, from);
        if (case_.fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4) wrong += check_nvfp4(d, launch, token);
        return wrong;
    }

    long check_fp8(const RankData &d, size_t from) {
        long wrong = 0;
        for (size_t at = from; at < from + size_t(shape_.hidden_size); at++) {
            float y = float(element_value(type(), d.norm_out.data(), at));
            if (std::isnan(y)) {
                wrong += (d.codes[at] & 0x7f) != 0x7f;
                continue;
            }
            wrong += d.codes[at] != nearest_code(&minifloat_e4m3, double(y * (1.0f / scale())));
        }
        return wrong;
    }

    long check_nvfp4(const RankData &d, int launch, int token) {
        long wrong = 0;
        size_t hidden = size_t(shape_.hidden_size), from = size_t(token) * hidden;
        for (size_t column = 0; column < hidden / 16; column++) {
            float y[16], largest = 0;
            for (size_t i = 0; i < 16; i++) {
                y[i] = float(element_value(type(), d.norm_out.data(), from + column * 16 + i));
                if (std::fabs(y[i]) > largest) largest = std::fabs(y[i]);
            }
            if (std::isnan(y[0]) || std::isnan(y[7]) || std::isinf(largest)) continue;
            uint8_t code_of_scale = nearest_code(&minifloat_e4m3, double(scale() * largest / 6.0f));
            float inverse =
                code_of_scale == 0 ? 0.0f : scale() / float(code_value(&minifloat_e4m3, code_of_scale));
            wrong += d.block_scales[scale_offset(launch, size_t(token), column)] != code_of_scale;
            for (size_t i = 0; i < 16; i++) {
                if (std::isnan(y[i])) continue;
                uint8_t byte = d.codes[(from + column * 16 + i) / 2], code = i % 2 ? byte >> 4 : byte & 0xf;
                wrong += code != nearest_code(&minifloat_e2m1, double(y[i] * inverse));
            }
        }
        return wrong;
    }

    size_t scale_offset(int launch, size_t row, size_t column) const {
        size_t columns = size_t(shape_.hidden_size) / 16, tiles = (columns + 3) / 4;
        if (launch % 2 == 1) return row * columns + column;
        size_t tile = row / 128 * tiles + column / 4, inside = row % 128;
        return tile * 512 + inside % 32 * 16 + inside / 32 * 4 + column % 4;
    }
};

// Whether a grid of more blocks than fit at once is reported: the launch hangs, and its threads give up.
bool tells_too_large_a_grid(const Case &c, uint64_t seed) {
#ifdef WITHOUT_GIVING_UP
    return true; // a thread that gives up has no order of memory to test
#endif
    const Surroundings too_small = {"", false, true, false, unsigned(c.tp - 1), {9, 80, 1, 32}, 0};
    Workbench bench(c, too_small, seed);
    bool told = bench.run() == -1 && bench.gave_up();
    if (!told) std::printf("FAILED: %s: a grid over the resident limit, no deadlock\n", name_of(c).c_str());
    return told;
}

// Runs one case in several surroundings; returns whether it is right in all.
bool passes(const Case &c, uint64_t seed, uint64_t *switches) {
    const Surroundings surroundings[] = {
        {"one block more than threads need", false, false, false, 0, {9, 272, 2, 64}, 0},
        {"programmatic launch, room for a block beside",
         OF_SM90,
         false,
         false,
         3,
         {9, 544, 2, 32},
         STOOD_STILL},
        {"one GPU, all resident", false, true, false, unsigned(2 * c.tp), {10, 80, 2, 32}, GOES_ROUND},
        {"clusters of blocks, some of them empty",
         OF_SM90,
         false,
         false,
         8,
         {9, 272, 1, 32, OF_SM90 ? 4 : 1},
         0},
        {"a rank that stalls", OF_SM90, false, true, 4, {9, 80, 2, 32}, 0},
    };
    bool good = true;
    for (const Surroundings &s : surroundings) {
        Workbench bench(c, s, seed);
        long wrong = bench.run();
        *switches += bench.switches;
        if (wrong == 0) continue;
        good = false;
        std::printf("FAILED: %s, %s: ", name_of(c).c_str(), s.name);
        if (wrong < 0)
            std::puts("deadlock");
        else
            std::printf("%ld wrong elements\n", wrong);
    }
    return tells_too_large_a_grid(c, seed) && good;
}

} // namespace

int main(int argc, char **argv) {
    uint64_t seed = seed_of(argc > 1 ? argv[1] : "0");
    std::string wanted = argc > 2 ? argv[2] : "";
    std::vector<Case> cases;
    add_cases(cases);
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    int ran = 0, failed = 0;
    uint64_t switches = 0;
    for (const Case &c : cases) {
        if (name_of(c).find(wanted) == std::string::npos) continue;
        ran++;
        failed += !passes(c, seed, &switches);
    }
    std::printf("%d cases, %d failed, %.1f million switches\n", ran, failed, double(switches) / 1e6);
    return failed == 0 && ran > 0 ? 0 : 1;
}
