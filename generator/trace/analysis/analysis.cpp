// From a linked trace to GPU events in order, and the timeline of the GPU: see analysis.h.
#include "analysis.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>
#include <unordered_map>

#include "collectives.h"
#include "intervals.h"

namespace trace {

namespace {

// GPU clocks tick in nanoseconds; with the times of day in some files, a double is off by up to half a
// nanosecond. An overlap up to this length is not counted.
constexpr double TICK = 0.002; // µs

bool holds(std::string_view text, const char *part) {
    return text.find(part) != std::string_view::npos;
}

bool starts(std::string_view text, std::string_view with) {
    return text.substr(0, with.size()) == with;
}

uint8_t flags_of(std::string_view name, std::string &lower) {
    lower.assign(name);
    for (char &c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
    uint8_t flags = 0;
    if (starts(name, "MEMORY_COPY_") || starts(name, "__amd_rocclr_copyBuffer")) flags |= COPY;
    if (holds(name, "at::native::direct_copy_kernel_cuda") || holds(name, "transpose_")) flags |= MOVES_DATA;
    if (name == "execute") flags |= EXECUTE;
    if (holds(lower, "graphlaunch") || holds(lower, "cudagraph")) flags |= GRAPH;
    return flags;
}

// Flags of the names of events only: texts of arguments are many and have no flags.
void flag_names(analysis &to) {
    to.name_flags.assign(to.of->names.size(), 0);
    std::vector<bool> is_done(to.of->names.size());
    std::string lower;
    for (const event &one : to.of->events) {
        if (is_done[one.name]) continue;
        is_done[one.name] = true;
        to.name_flags[one.name] = flags_of(to.of->names[one.name], lower);
    }
    for (uint32_t number : communication_kernels(*to.of)) {
        to.name_flags[to.of->events[number].name] |= COMMUNICATION;
    }
}

void gather(analysis &to) {
    const trace &of = *to.of;
    size_t count = 0;
    for (const event &one : of.events) count += is_gpu(one.kind);
    to.gpu.reserve(count);
    for (uint32_t i = 0; i < of.events.size(); i++) {
        const event &one = of.events[i];
        if (is_gpu(one.kind)) to.gpu.push_back({one.start, one.end(), one.duration, i});
    }
    auto earlier = [](const gpu_event &a, const gpu_event &b) {
        return a.start != b.start ? a.start < b.start : a.event < b.event;
    };
    if (!std::is_sorted(to.gpu.begin(), to.gpu.end(), earlier))
        std::sort(to.gpu.begin(), to.gpu.end(), earlier);
}

// Events of a stream overlap under programmatic launch, where a kernel begins before the last one has ended.
void count_overlaps(analysis &to) {
    std::vector<double> last_end(to.of->tracks.size(), -std::numeric_limits<double>::infinity());
    for (const gpu_event &one : to.gpu) {
        double &last = last_end[to.at(one).track];
        if (one.start < last - TICK) {
            to.overlapping++;
            to.first_overlapping = std::min(to.first_overlapping, one.event);
        }
        last = std::max(last, one.end);
    }
}

void order_by_launch(analysis &to) {
    for (uint32_t i = 0; i < to.gpu.size(); i++) {
        if (to.is_linked(to.gpu[i])) to.by_launch.push_back(i);
    }
    to.unlinked = to.gpu.size() - to.by_launch.size();
    std::stable_sort(to.by_launch.begin(), to.by_launch.end(), [&to](uint32_t a, uint32_t b) {
        return to.at(to.gpu[a]).parent < to.at(to.gpu[b]).parent;
    });
}

// A frame "execute" has a first kernel too, as sheets of kernels name the nearest op.
void find_first_kernels(analysis &to) {
    to.first_kernels.assign(to.of->events.size(), EMPTY_TEXT);
    for (const gpu_event &one : to.gpu) {
        if (to.is_communication(one)) continue;
        for (uint32_t op : {launcher_of(to, one), nearest_op(*to.of, to.at(one).parent)}) {
            if (op != NONE && to.first_kernels[op] == EMPTY_TEXT) to.first_kernels[op] = to.at(one).name;
        }
    }
}

} // namespace

void analyse(const trace &of, analysis &to) {
    to.of = &of;
    flag_names(to);
    gather(to);
    count_overlaps(to);
    order_by_launch(to);
    find_first_kernels(to);
}

uint32_t nearest_op(const trace &of, uint32_t event) {
    while (event != NONE && of.events[event].kind != kind::cpu_op) event = of.events[event].parent;
    return event;
}

uint32_t launcher_of(const analysis &analysis, const gpu_event &one) {
    const std::vector<event> &events = analysis.of->events;
    uint32_t launch = analysis.at(one).parent;
    if (launch == NONE) return NONE;
    uint32_t op = events[launch].kind == kind::cpu_op ? launch : events[launch].parent;
    if (op != NONE && analysis.has(events[op], EXECUTE) && events[op].parent != NONE) op = events[op].parent;
    return op != NONE && events[op].kind == kind::cpu_op ? op : launch;
}

// ---- Timeline ---------------------------------------------------------------------------------

namespace {

enum { COMPUTING, COMMUNICATING, COPYING, WHATS };

int what(const analysis &analysis, const gpu_event &one) {
    const event &event = analysis.at(one);
    if (event.kind == kind::memcpy || analysis.has(event, COPY)) return COPYING;
    return analysis.has(event, COMMUNICATION) ? COMMUNICATING : COMPUTING;
}

// GPU time by use: unions of intervals, which are added in order of their start.
struct uses {
    std::vector<span> spans[WHATS], all;
    uint64_t events = 0;

    void add(const analysis &analysis, const gpu_event &one) {
        events++;
        add_to_union(spans[what(analysis, one)], {one.start, one.end});
        add_to_union(all, {one.start, one.end});
    }

    // Without pauses, and `total` from the first start to the last end.
    timeline times() const {
        timeline result{};
        result.events = events;
        if (all.empty()) return result;
        result.computation = total_time(spans[COMPUTING]);
        result.communication = total_time(spans[COMMUNICATING]);
        result.copies = total_time(spans[COPYING]);
        result.exposed_communication = time_without(spans[COMMUNICATING], spans[COMPUTING]);
        result.exposed_copies = time_without(spans[COPYING], united(spans[COMPUTING], spans[COMMUNICATING]));
        result.busy = total_time(all);
        result.total = all.back().end - all.front().start;
        result.idle = result.total - result.busy;
        return result;
    }
};

// The GPU time of each kept window.
std::vector<span> kept_spans(const analysis &analysis, bool include_unlinked) {
    const trace &of = *analysis.of;
    std::vector<span> spans(of.kept.size(), {1, 0});
    for (const gpu_event &one : analysis.gpu) {
        size_t window = window_of(of, analysis.at(one), of.kept);
        if (window == spans.size() || (!include_unlinked && !analysis.is_linked(one))) continue;
        bool is_first = spans[window].start > spans[window].end;
        spans[window] = {is_first ? one.start : spans[window].start,
                         is_first ? one.end : std::max(spans[window].end, one.end)};
    }
    auto is_empty = [](const span &one) { return one.start > one.end; };
    spans.erase(std::remove_if(spans.begin(), spans.end(), is_empty), spans.end());
    return spans;
}

// The union of the traced or kept steps; empty for whole traces of other programs, which continue between
// their steps.
std::vector<span> traced_steps(const analysis &analysis, bool include_unlinked, uint64_t &count) {
    const trace &of = *analysis.of;
    std::vector<span> steps;
    if (!of.kept.empty()) steps = kept_spans(analysis, include_unlinked);
    for (const event &one : of.events) {
        if (!of.is_own || one.kind != kind::mark || !starts(of.names[one.name], "ProfilerStep#")) continue;
        if (of.kept.empty()) steps.push_back({one.start, one.end()});
    }
    count = steps.size();
    std::sort(steps.begin(), steps.end(), [](span a, span b) { return a.start < b.start; });
    std::vector<span> traced;
    for (const span &one : steps) add_to_union(traced, one);
    return traced;
}

// The parts of pauses between and around busy intervals that are within steps.
void split_idle_steps(const std::vector<span> &all, const std::vector<span> &steps, double limit,
                      timeline &to) {
    size_t next = 0;
    for (const span &step : steps) {
        double at = step.start;
        auto pause_until = [&](double end) {
            if (end > at) (end - at < limit ? to.micro_idle : to.macro_idle) += end - at;
        };
        while (next < all.size() && all[next].end <= at) next++;
        for (size_t i = next; i < all.size() && all[i].start < step.end; i++) {
            pause_until(all[i].start);
            at = std::max(at, all[i].end);
        }
        pause_until(step.end);
    }
}

// Splits the pauses between busy intervals.
void split_idle(const std::vector<span> &all, double limit, timeline &to) {
    for (size_t i = 1; i < all.size(); i++) {
        double pause = all[i].start - all[i - 1].end;
        (pause < limit ? to.micro_idle : to.macro_idle) += pause;
    }
}

} // namespace

timeline timeline_of(const analysis &analysis, bool include_unlinked, double micro_idle_limit) {
    uses uses;
    for (const gpu_event &one : analysis.gpu) {
        if (include_unlinked || analysis.is_linked(one)) uses.add(analysis, one);
    }
    timeline result = uses.times();
    if (uses.all.empty()) return result;
    std::vector<span> steps = traced_steps(analysis, include_unlinked, result.steps);
    if (steps.empty()) {
        split_idle(uses.all, micro_idle_limit, result);
    } else {
        std::vector<span> traced = united(steps, uses.all);
        result.total = total_time(traced);
        result.untraced = traced.back().end - traced.front().start - result.total;
        split_idle_steps(uses.all, steps, micro_idle_limit, result);
        result.idle = result.total - result.busy;
    }
    return result;
}

std::vector<timeline> timelines_within(const analysis &analysis, bool include_unlinked,
                                       const std::vector<window> &windows) {
    std::vector<uses> parts(windows.size() + 1);
    for (const gpu_event &one : analysis.gpu) {
        if (!include_unlinked && !analysis.is_linked(one)) continue;
        parts[window_of(*analysis.of, analysis.at(one), windows)].add(analysis, one);
    }
    std::vector<timeline> result;
    for (const uses &one : parts) result.push_back(one.times());
    return result;
}

} // namespace trace
