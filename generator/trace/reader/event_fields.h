// The fields of one event of a trace, before its category and phase are known: the categories and the keys of
// args that are read.
#ifndef GENTABLES_TRACE_EVENT_FIELDS_H
#define GENTABLES_TRACE_EVENT_FIELDS_H

#include <cmath>
#include <cstring>
#include <string_view>

#include "trace.h"

namespace trace {

enum class category : uint8_t { none, other, kept, flow, frame };

inline constexpr struct {
    std::string_view name;
    ::trace::category category;
    ::trace::kind kind;
} CATEGORIES[] = {
    {"cpu_op", category::kept, kind::cpu_op},
    {"cuda_runtime", category::kept, kind::runtime},
    {"cuda_driver", category::kept, kind::driver},
    {"kernel", category::kept, kind::kernel},
    {"gpu_memcpy", category::kept, kind::memcpy},
    {"gpu_memset", category::kept, kind::memset},
    {"user_annotation", category::kept, kind::mark},
    {"ac2g", category::flow, kind::mark},
    {"python_function", category::frame, kind::frame}, // kept on request
    // as PyTorch before 2 wrote them
    {"Operator", category::kept, kind::cpu_op},
    {"Runtime", category::kept, kind::runtime},
    {"Kernel", category::kept, kind::kernel},
    {"Memcpy", category::kept, kind::memcpy},
    {"Memset", category::kept, kind::memset},
};

// Numbers of args.
struct numbers {
    int64_t correlation = UNKNOWN, external = UNKNOWN, stream = UNKNOWN, device = UNKNOWN, sequence = UNKNOWN,
            bytes = UNKNOWN, in_elements = UNKNOWN, out_elements = UNKNOWN, group_size = UNKNOWN;
};

// Texts of args, as written in the chunk; empty if they are missing.
struct tokens {
    std::string_view dims, types, strides, concrete, collective, dtype, group, ranks, in_split, out_split,
        name, labels, kernel;
};

// `phase` and `category` are apart: as neighbours they are read as one number, which waits for both writes.
struct fields {
    char phase = 0; // X, B, E, s, f, M; else '-'
    std::string_view name, pid, tid;
    double start = NAN, duration = NAN;
    int64_t id = UNKNOWN;
    ::trace::category category = category::none;
    ::trace::kind kind = kind::mark;
    bool has_arguments = false; // numbers or tokens may be set
    ::trace::numbers numbers;
    ::trace::tokens tokens;

    // Makes it as new. Most events have no arguments that are read.
    void clear() {
        if (has_arguments) {
            numbers = {};
            tokens = {};
        }
        has_arguments = false;
        name = {};
        pid = {};
        tid = {};
        start = duration = NAN;
        id = UNKNOWN;
        phase = 0;
        category = category::none;
        kind = kind::mark;
    }

    // Whether nothing of this event is kept, regardless of its other fields.
    bool is_unwanted() const {
        if (phase == '-' || category == category::other) return true;
        return phase == 'X' && category == category::flow;
    }
};

// The keys of args that are read, each with its closing quote.
inline constexpr struct {
    std::string_view key;
    int64_t numbers::*number;
    std::string_view tokens::*token;
} ARGUMENTS[] = {
    {"External id\"", &numbers::external, nullptr},
    {"external id\"", &numbers::external, nullptr},
    {"correlation\"", &numbers::correlation, nullptr},
    {"stream\"", &numbers::stream, nullptr},
    {"device\"", &numbers::device, nullptr},
    {"Sequence number\"", &numbers::sequence, nullptr},
    {"bytes\"", &numbers::bytes, nullptr},
    {"Input Dims\"", nullptr, &tokens::dims},
    {"Input type\"", nullptr, &tokens::types},
    {"Input Strides\"", nullptr, &tokens::strides},
    {"Concrete Inputs\"", nullptr, &tokens::concrete},
    {"Collective name\"", nullptr, &tokens::collective},
    {"In msg nelems\"", &numbers::in_elements, nullptr},
    {"Out msg nelems\"", &numbers::out_elements, nullptr},
    {"Group size\"", &numbers::group_size, nullptr},
    {"dtype\"", nullptr, &tokens::dtype},
    {"Process Group Name\"", nullptr, &tokens::group},
    {"Process Group Ranks\"", nullptr, &tokens::ranks},
    {"In split size\"", nullptr, &tokens::in_split},
    {"Out split size\"", nullptr, &tokens::out_split},
    {"name\"", nullptr, &tokens::name},
    {"labels\"", nullptr, &tokens::labels},
    {"kernel\"", nullptr, &tokens::kernel},
};
constexpr size_t ARGUMENT_COUNT = sizeof ARGUMENTS / sizeof *ARGUMENTS;

// Arguments by their first letter: for each letter the first, and for each argument the next.
struct by_letter {
    static constexpr uint8_t LAST = UINT8_MAX;
    uint8_t first[256], next[ARGUMENT_COUNT];

    by_letter() {
        std::memset(first, LAST, sizeof first);
        for (size_t i = ARGUMENT_COUNT; i-- > 0;) {
            auto letter = uint8_t(ARGUMENTS[i].key[0]);
            next[i] = first[letter];
            first[letter] = uint8_t(i);
        }
    }
};
inline const by_letter LETTERS;

} // namespace trace

#endif
