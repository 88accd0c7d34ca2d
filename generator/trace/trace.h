// A profiler trace in memory: what every analysis of it is made from. Filled once by read (reader.cpp) and
// linked by link (tree.cpp); after that nobody changes it.
//
// Times are µs as doubles, exactly as the file has them: end = start + duration, and what is reported are
// differences of such doubles. Texts, argument sets and tracks stand once and are named by their number.
#ifndef GENTABLES_TRACE_H
#define GENTABLES_TRACE_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "texts.h"

extern "C" {
#include "../problem.h"
}

namespace trace {

constexpr uint32_t NONE = UINT32_MAX;      // no event, no arguments, no track
constexpr int64_t UNKNOWN = INT64_MIN;     // a number that the file does not tell
constexpr uint32_t EMPTY_TEXT = 0;         // the text ""

enum class kind : uint8_t { cpu_op, runtime, driver, kernel, memcpy, memset, mark };

inline bool is_gpu(kind kind) { return kind == kind::kernel || kind == kind::memcpy || kind == kind::memset; }

// A complete event. Of at most 100 bytes per event kept this is the most.
struct event {
    double start, duration; // µs
    int64_t link;           // what joins launch and GPU event: correlation, or External id; or UNKNOWN
    int64_t external;       // External id, or UNKNOWN
    uint32_t uid;           // 0-based place in traceEvents, all events counted
    uint32_t name;          // text
    uint32_t track;
    uint32_t arguments;     // cpu_op: argument set; GPU event: metadata of a collective; or NONE
    uint32_t parent;        // event: host: the op or call around it; GPU: what launched it; or NONE
    int32_t stream;         // GPU event: args.stream, else tid; -1: not told
    int32_t sequence;       // cpu_op: Sequence number, or -1
    trace::kind kind;

    double end() const { return start + duration; }
};

// What a cpu_op was called with: texts, the JSON of each argument as written, blanks left out.
struct argument_set {
    uint32_t dims, types, strides, concrete; // "Input Dims", "Input type", "Input Strides", "Concrete Inputs"
};

// What the args of a collective's kernel say; texts are EMPTY_TEXT and numbers UNKNOWN where they are silent.
struct collective {
    uint32_t name, dtype, group, ranks, in_split, out_split; // texts
    int64_t in_elements, out_elements, group_size;
};

// A pid and tid of the file, with what its metadata events call them ("Unknown" where they do not).
struct track {
    uint32_t pid, tid;                                // texts: as written, without quotes
    uint32_t process_name, process_label, thread_name; // texts
};

// What was mended, clipped or left out: a report says so. A row of the list in problems.h.
enum class flaw : uint8_t {
    malformed,     // events without a usable name, ts or dur: left out
    mended,        // texts with control characters or invalid UTF-8
    negative,      // durations below zero: taken as zero
    overlapping,   // host events that overlap without nesting: without parent
    unlinked,      // GPU events that no launch was found for
    count
};

struct trace {
    std::vector<event> events;  // in order of the file
    std::vector<uint32_t> host; // the host events by start, file order on ties: parents before children
    texts names;                // every distinct text
    std::vector<argument_set> argument_sets;
    std::vector<collective> collectives;
    std::vector<track> tracks;
    std::array<uint64_t, size_t(flaw::count)> flaws{};
    std::array<uint64_t, size_t(flaw::count)> first_flaw{}; // byte offset in the unpacked file
    uint64_t events_in_file = 0;
    int64_t rank = UNKNOWN, world_size = UNKNOWN, base_nanoseconds = 0, devices = 0;
    bool linked_by_correlation = true; // else by External id
};

// Reads the file at `path`: JSON, or gzip or zstd of it, with `workers` threads. On failure `problem` names
// the file, the byte offset and what is wrong.
bool read(const char *path, int workers, trace &to, problem &problem);

// Fills parents, host and the flaws of linking, by the rules of tree.cpp.
void link(trace &trace);

} // namespace trace

#endif
