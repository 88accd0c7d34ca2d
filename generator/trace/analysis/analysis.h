// The base of every sheet of a report: the GPU events of a trace in order of time, and the flags of their
// names. Made once per trace (analysis.cpp), then only read.
#ifndef GENTABLES_TRACE_ANALYSIS_H
#define GENTABLES_TRACE_ANALYSIS_H

#include <cstdint>
#include <vector>

#include "literal.h"
#include "trace/reader/trace.h"

namespace trace {

// A GPU event, as the file has it.
struct gpu_event {
    double start, end, duration; // µs; duration as written, end = start + duration
    uint32_t event;
};

// The flags of an event's name.
enum : uint8_t {
    COMMUNICATION = 1, // of a kernel: is_communication in collectives.h
    COPY = 2,          // a kernel that only copies memory
    EXECUTE = 4,       // it is "execute", a frame around an op
    GRAPH = 8,         // it launches a graph
    MOVES_DATA = 16,   // a kernel that copies or transposes
};

struct analysis {
    const trace *of = nullptr;
    std::vector<gpu_event> gpu;      // by start, file order on ties; unlinked ones too
    std::vector<uint32_t> by_launch; // indices in gpu of the linked ones, in order of launch
    std::vector<uint8_t> name_flags; // of each text
    uint64_t overlapping = 0;        // GPU events that began before the last one of their stream ended
    uint64_t unlinked = 0;
    uint32_t first_overlapping = NONE; // event
    // Of each host event, a text: the first GPU event by time that it launched, without communication. It
    // decides the category of an op if no list has the op's name. EMPTY_TEXT: it launched none.
    std::vector<uint32_t> first_kernels;
    argument_reader arguments; // of the trace

    const event &at(const gpu_event &one) const { return of->events[one.event]; }
    bool is_linked(const gpu_event &one) const { return at(one).parent != NONE; }
    bool has(const event &one, uint8_t flag) const { return (name_flags[one.name] & flag) != 0; }
    bool is_communication(const gpu_event &one) const { return has(at(one), COMMUNICATION); }
};

// Fills `to` from a linked trace, which must outlive it.
void analyse(const trace &of, analysis &to);

// The event, or the first one around it, that is a cpu_op; NONE: there is none.
uint32_t nearest_op(const trace &of, uint32_t event);

// The op that launched a GPU event, or the launch if no op did; a frame "execute" counts as the op around it.
// NONE: it has no launch.
uint32_t launcher_of(const analysis &analysis, const gpu_event &one);

// The GPU's time by use, µs. In traces of gentables (trace::is_own) `total` and `idle` are of the traced
// steps (ProfilerStep), and the time between them is `untraced`. If only some windows of a trace are kept,
// their GPU times, each from the first start to the last end, take the place of these steps. In others
// `total` is from the first start to the last end. Each use is a union of intervals: of kernels that
// communicate, by their names; of copies, and kernels that only copy; of all else, computation. Exposed is
// communication outside of computation, and copies outside of both.
struct timeline {
    double computation, exposed_communication, exposed_copies, busy, idle, total, communication, copies;
    double micro_idle, macro_idle; // pauses shorter than the limit, and the others
    double untraced;
    uint64_t steps; // traced ones; 0: all from the first start to the last end
    uint64_t events;
};

timeline timeline_of(const analysis &analysis, bool include_unlinked, double micro_idle_limit);

// The same for the work of each window (window_of), each from its first start to its last end, and, as the
// last one, for that of none; `windows` as of window_of.
std::vector<timeline> timelines_within(const analysis &analysis, bool include_unlinked,
                                       const std::vector<window> &windows);

} // namespace trace

#endif
