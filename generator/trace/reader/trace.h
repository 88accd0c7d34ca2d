// A profiler trace in memory, the base of every analysis. Filled once by read (reader.cpp) and linked by link
// (tree.cpp); after that it is not changed.
//
// Times are µs as doubles, exactly as the file has them: end = start + duration; reports contain differences
// of such doubles. Each distinct text, argument set and track is stored once and has a number.
#ifndef GENTABLES_TRACE_H
#define GENTABLES_TRACE_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "texts.h"

extern "C" {
#include "base/problem.h"
}

namespace trace {

constexpr uint32_t NONE = UINT32_MAX;  // no event, no arguments, no track
constexpr int64_t UNKNOWN = INT64_MIN; // a number that the file does not have
constexpr uint32_t EMPTY_TEXT = 0;     // the text ""

enum class kind : uint8_t { cpu_op, runtime, driver, kernel, memcpy, memset, mark, frame };

inline bool is_gpu(kind kind) {
    return kind == kind::kernel || kind == kind::memcpy || kind == kind::memset;
}

// A complete event.
struct event {
    double start, duration; // µs
    int64_t link;           // key of launch and GPU event: correlation, or External id; or UNKNOWN
    int64_t external;       // External id, or UNKNOWN
    uint32_t uid;           // 0-based index in traceEvents, all events counted
    uint32_t name;          // text
    uint32_t track;
    uint32_t arguments; // cpu_op: argument set; GPU event: metadata of a collective; or NONE
    uint32_t parent;    // event: host: the op or call around it; GPU: its launch; or NONE
    int32_t stream;     // GPU event: args.stream, else tid; -1: unknown
    int32_t sequence;   // cpu_op: Sequence number, or -1
    int16_t device;     // GPU event: args.device, else pid; -1: unknown
    trace::kind kind;

    double end() const { return start + duration; }
};

// The arguments of a cpu_op's call: texts, the JSON of each argument as written, without blanks.
struct argument_set {
    uint32_t dims, types, strides, concrete; // "Input Dims", "Input type", "Input Strides", "Concrete Inputs"
};

// The args of a collective's kernel; missing texts are EMPTY_TEXT, missing numbers UNKNOWN.
struct collective {
    uint32_t name, dtype, group, ranks, in_split, out_split; // texts
    int64_t in_elements, out_elements, group_size;
};

// A cpu_op with the metadata of a collective (record_param_comms).
struct announcement {
    uint32_t event, collective;
};

// The bytes that a GPU event copies or sets, if it has them.
struct event_size {
    int64_t bytes;
    uint32_t event;
};

// The kernel of a call of the runtime, by its args, as in traces of AMD's GPUs.
struct launched_kernel {
    uint32_t event, name;
};

// The functions of Python around a captured call, outermost first, for the copy of it that a replay has.
struct borrowed_stack {
    uint32_t event, stack; // stack: one of trace::stacks
};

// An arrow between host and GPU (category ac2g): its start at the launch, its finish at the GPU event.
struct flow {
    int64_t id;
    uint32_t track;
    bool is_finish;
};

// A pid and tid of the file, with their names from metadata events ("Unknown" if they have none).
struct track {
    uint32_t pid, tid;                                 // texts: as written, without quotes
    uint32_t process_name, process_label, thread_name; // texts
};

// Flaws: the events that were mended, clipped or left out, for reports. Their names are in
// trace/analysis/trace_lua.cpp.
enum class flaw : uint8_t {
    malformed,   // events without a usable name, ts or dur, or in halves: left out
    mended,      // texts with control characters or invalid UTF-8
    negative,    // durations below zero: taken as zero
    overlapping, // host events that overlap without nesting: without parent
    unlinked,    // GPU events without a launch
    // GPU events of replayed graphs (trace/analysis/captures.h):
    graph_unmatched, // without a captured call
    graph_ambiguous, // of calls with other ops or arguments
    graph_unaligned, // unmatched, and not compared with all graphs
    count
};

// A part of the time, µs; the end is not in it.
struct window {
    double start, end;
};

struct trace {
    std::vector<event> events;  // in order of the file
    std::vector<uint32_t> host; // the host events by start, file order on ties: parents before children

    texts names; // every distinct text
    std::vector<argument_set> argument_sets;
    std::vector<collective> collectives;
    std::vector<announcement> announced;   // in order of the events
    std::vector<event_size> sizes;         // likewise
    std::vector<launched_kernel> launched; // likewise; on request
    std::vector<track> tracks;
    std::vector<flow> flows; // until they are linked
    std::array<uint64_t, size_t(flaw::count)> flaws{};
    // The first of each flaw: byte offset in the unpacked file; of overlapping and the later ones: uid.
    std::array<uint64_t, size_t(flaw::count)> first_flaw{};
    uint64_t events_in_file = 0;
    // Copies of captured ops (trace/analysis/captures.h): their number and stacks; GPU events of graph
    // launches.
    bool is_attributed = false;
    uint64_t added_events = 0, graph_events = 0;
    std::vector<borrowed_stack> borrowed; // in order of the events
    std::vector<std::vector<uint32_t>> stacks;
    int64_t rank = UNKNOWN, world_size = UNKNOWN, base_nanoseconds = 0, devices = 0;
    bool is_own = false; // written by gentables, which traces only some steps
    // In such a trace: the types of operands with GEMMs that are computed in another type, and that type, as
    // the file names them.
    std::vector<std::pair<std::string, std::string>> computed_in;
    std::string device_name;           // of the first device; "": unknown
    int64_t multiprocessors = UNKNOWN; // of the first device
    bool linked_by_correlation = true; // else by External id
    std::vector<window> kept;          // what keep_within kept; empty: all
};

struct read_options {
    int workers = 1;                     // threads, this one included
    size_t chunk_size = size_t(1) << 18; // bytes that a thread takes at once
    bool frames = false;                 // also the functions of Python, kind::frame, as most analyses do not
    bool launched = false;               // also trace::launched
};

// Reads the file at `path`: JSON, or gzip or zstd of it. The trace is the same for any options. If it fails,
// `problem` has the file, the byte offset and the reason.
bool read(const char *path, const read_options &options, trace &to, problem &problem);

// Fills parents, host and the flaws of linking, by the rules of tree.cpp.
void link(trace &trace);

// The index of the window with the work of an event: it contains the event's start, or that of a GPU event's
// launch. windows.size(): none. `windows` are in order and do not overlap.
size_t window_of(const trace &trace, const event &event, const std::vector<window> &windows);

// Removes all events but frames of a linked trace that begin in none of these windows, GPU events by their
// launches. A removed parent is replaced by the next one above it that is kept.
void keep_within(trace &trace, std::vector<window> windows);

} // namespace trace

#endif
