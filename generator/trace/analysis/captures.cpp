// Each list of kernels that a launch replays is matched once with the captured graphs, and its ops are copied
// for each launch that replays it.
#include "captures.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <unordered_map>

namespace trace {

// ---- Functions of Python ----------------------------------------------------------------------

void thread_frames::sort() {
    std::stable_sort(frames_.begin(), frames_.end(), [](const event *a, const event *b) {
        return a->start != b->start ? a->start < b->start : a->end() > b->end();
    });
}

std::vector<uint32_t> thread_frames::at(double time) {
    for (; next_ < frames_.size() && frames_[next_]->start <= time; next_++) {
        leave(frames_[next_]->start);
        stack_.push_back(frames_[next_]);
    }
    leave(time);
    std::vector<uint32_t> names;
    for (const event *frame : stack_) names.push_back(frame->name);
    return names;
}

void thread_frames::leave(double time) {
    while (!stack_.empty() && stack_.back()->end() <= time) stack_.pop_back();
}

std::vector<thread_frames> frames_of(const trace &of) {
    std::vector<thread_frames> threads(of.tracks.size());
    for (const event &one : of.events) {
        if (one.kind == kind::frame) threads[one.track].add(one);
    }
    for (thread_frames &one : threads) one.sort();
    return threads;
}

namespace {

// ---- Captured graphs --------------------------------------------------------------------------

// A GPU event of a graph, or the call that captured it.
struct node {
    uint32_t event;
    uint32_t name; // text of the trace with the replays; EMPTY_TEXT: unknown
    ::trace::kind kind;
};
using graph = std::vector<node>;

bool is_call(const event &one) {
    return one.kind == kind::runtime || one.kind == kind::driver;
}

bool contains(std::string_view text, std::string_view word) {
    auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

bool launches_graph(const trace &of, const event &one) {
    return is_call(one) && contains(of.names[one.name], "graphlaunch");
}

// A captured trace: its graphs, and the numbers that its texts, arguments and stacks have in the trace with
// the replays.
class captured_trace {
  public:
    captured_trace(const trace &of, trace &to) : of_(of), to_(to), texts_(of.names.size(), NONE) {
        for (const launched_kernel &one : of.launched) name_of_[one.event] = one.name;
        for (const event &one : of.events) {
            if (is_gpu(one.kind) && one.parent != NONE) gpu_of_.emplace(one.parent, &one);
            has_frames_ = has_frames_ || one.kind == kind::frame;
        }
        find_graphs();
    }

    const trace &of() const { return of_; }
    const std::vector<graph> &graphs() const { return graphs_; }

    uint32_t text(uint32_t number) {
        if (texts_[number] == NONE) texts_[number] = to_.names.intern(of_.names[number]);
        return texts_[number];
    }

    uint32_t arguments(uint32_t number) {
        auto [at, is_new] = sets_.emplace(number, uint32_t(to_.argument_sets.size()));
        if (is_new) {
            argument_set set = of_.argument_sets[number];
            for (uint32_t *one : {&set.dims, &set.types, &set.strides, &set.concrete}) *one = text(*one);
            to_.argument_sets.push_back(set);
        }
        return at->second;
    }

    // The stack of a call, one of to.stacks; NONE: the trace has no functions of Python.
    uint32_t stack(uint32_t call) const {
        auto found = stack_of_.find(call);
        return found != stack_of_.end() ? found->second : NONE;
    }

  private:
    void find_graphs() {
        std::vector<thread_frames> threads = frames_of(of_);
        std::vector<uint32_t> open(of_.tracks.size(), NONE); // the graph that a track captures
        bool captures = std::any_of(of_.events.begin(), of_.events.end(), [&](const event &one) {
            return is_call(one) && contains(of_.names[one.name], "streambegincapture");
        });
        if (!captures) graphs_.emplace_back();
        for (uint32_t number : of_.host) {
            const event &one = of_.events[number];
            if (!is_call(one)) continue;
            std::string_view name = of_.names[one.name];
            if (contains(name, "streambegincapture")) {
                open[one.track] = uint32_t(graphs_.size());
                graphs_.emplace_back();
            } else if (contains(name, "streamendcapture")) {
                open[one.track] = NONE;
            } else if (!captures || open[one.track] != NONE) {
                add(graphs_[captures ? open[one.track] : 0], number, captures, threads[one.track]);
            }
        }
    }

    // Adds a call that launches, copies or sets; one without a GPU event only while a graph is captured.
    void add(graph &into, uint32_t number, bool captures, thread_frames &frames) {
        const event &one = of_.events[number];
        std::string_view name = of_.names[one.name];
        if (launches_graph(of_, one) || (one.parent != NONE && is_call(of_.events[one.parent]))) return;
        node added{number, EMPTY_TEXT, kind::kernel};
        auto gpu = gpu_of_.find(number);
        auto named = name_of_.find(number);
        if (gpu != gpu_of_.end()) {
            added.kind = gpu->second->kind;
            added.name = text(gpu->second->name);
        } else if (named != name_of_.end()) {
            added.name = text(named->second);
        } else if (!captures) {
            return;
        } else if (contains(name, "memcpy")) {
            added.kind = kind::memcpy;
        } else if (contains(name, "memset")) {
            added.kind = kind::memset;
        } else if (!contains(name, "launch")) {
            return;
        }
        into.push_back(added);
        if (!has_frames_) return;
        std::vector<uint32_t> stack = frames.at(one.start);
        for (uint32_t &frame : stack) frame = text(frame);
        stack_of_.emplace(number, uint32_t(to_.stacks.size()));
        to_.stacks.push_back(std::move(stack));
    }

    const trace &of_;
    trace &to_;
    std::vector<uint32_t> texts_;
    std::unordered_map<uint32_t, uint32_t> sets_, stack_of_, name_of_;
    std::unordered_map<uint32_t, const event *> gpu_of_;
    std::vector<graph> graphs_;
    bool has_frames_ = false;
};

// ---- Matching ---------------------------------------------------------------------------------

bool same(const node &replayed, const node &captured) {
    return replayed.kind == captured.kind && (captured.name == EMPTY_TEXT || captured.name == replayed.name);
}

// The call of each replayed GPU event, NONE without one, and their number.
struct match {
    std::vector<uint32_t> calls;
    size_t count = 0;
};

// The longest list of pairs in order, of `captured` from `begin` to `end`.
match aligned(const graph &replayed, const graph &captured, size_t begin, size_t end) {
    size_t rows = replayed.size(), columns = end - begin;
    std::vector<uint16_t> best((rows + 1) * (columns + 1), 0); // of the rest of both
    auto at = [&](size_t row, size_t column) -> uint16_t & { return best[row * (columns + 1) + column]; };
    for (size_t row = rows; row-- > 0;) {
        for (size_t column = columns; column-- > 0;) {
            bool is_same = same(replayed[row], captured[begin + column]);
            at(row, column) = is_same ? uint16_t(at(row + 1, column + 1) + 1)
                                      : std::max(at(row + 1, column), at(row, column + 1));
        }
    }
    match result{std::vector<uint32_t>(rows, NONE), at(0, 0)};
    for (size_t row = 0, column = 0; row < rows && column < columns;) {
        if (same(replayed[row], captured[begin + column])) {
            result.calls[row++] = captured[begin + column++].event;
        } else if (at(row + 1, column) >= at(row, column + 1)) {
            row++;
        } else {
            column++;
        }
    }
    return result;
}

// The calls of `captured` from `begin` on, if each is the same.
match exact(const graph &replayed, const graph &captured, size_t begin) {
    match result;
    for (size_t i = 0; i < replayed.size(); i++) {
        if (!same(replayed[i], captured[begin + i])) return {};
        result.calls.push_back(captured[begin + i].event);
    }
    result.count = replayed.size();
    return result;
}

match matched(const graph &replayed, const graph &captured) {
    constexpr size_t MOST = 4096; // GPU events of a launch that are aligned
    bool is_named = std::all_of(captured.begin(), captured.end(), [](const node &one) {
        return one.kind != kind::kernel || one.name != EMPTY_TEXT;
    });
    if (!is_named) return replayed.size() == captured.size() ? exact(replayed, captured, 0) : match{};
    for (size_t i = 0; i + replayed.size() <= captured.size(); i++) {
        match found = exact(replayed, captured, i);
        if (found.count > 0) return found;
    }
    match best;
    if (replayed.size() > MOST) return best;
    for (size_t i = 0; i < captured.size(); i += replayed.size()) { // pieces that overlap
        match found = aligned(replayed, captured, i, std::min(captured.size(), i + 2 * replayed.size()));
        if (found.count > best.count) best = std::move(found);
    }
    return best;
}

// ---- Copies -----------------------------------------------------------------------------------

class attribution {
  public:
    attribution(trace &to, const std::vector<const trace *> &captured) : to_(to) {
        for (const trace *one : captured) captured_.push_back(captured_trace(*one, to));
    }

    void run() {
        std::vector<std::vector<uint32_t>> replayed(to_.events.size());
        for (uint32_t i = 0; i < to_.events.size(); i++) {
            const event &one = to_.events[i];
            if (is_gpu(one.kind) && one.parent != NONE && launches_graph(to_, to_.events[one.parent]))
                replayed[one.parent].push_back(i);
        }
        std::vector<uint32_t> host;
        for (uint32_t launch : to_.host) {
            host.push_back(launch);
            if (!replayed[launch].empty()) attribute(launch, replayed[launch], host);
        }
        to_.host = std::move(host);
    }

  private:
    struct plan {
        size_t from = 0; // index in captured_
        match calls;
    };

    void attribute(uint32_t launch, std::vector<uint32_t> &gpu, std::vector<uint32_t> &host) {
        std::stable_sort(gpu.begin(), gpu.end(),
                         [&](uint32_t a, uint32_t b) { return to_.events[a].start < to_.events[b].start; });
        const plan &found = plan_of(gpu);
        to_.graph_events += gpu.size();
        to_.graph_events_matched += found.calls.count;
        if (found.calls.count == 0) return;
        copies_.clear();
        for (size_t i = 0; i < gpu.size(); i++) {
            uint32_t call = found.calls.calls[i];
            if (call == NONE) continue;
            uint32_t parent = copy(captured_[found.from], call, launch, host);
            to_.events[gpu[i]].parent = parent;
        }
    }

    const plan &plan_of(const std::vector<uint32_t> &gpu) {
        graph replayed;
        std::vector<uint32_t> key;
        for (uint32_t one : gpu) {
            replayed.push_back({one, to_.events[one].name, to_.events[one].kind});
            key.push_back(to_.events[one].name);
        }
        auto [at, is_new] = plans_.emplace(key, plan());
        if (!is_new) return at->second;
        for (size_t i = 0; i < captured_.size(); i++) {
            for (const graph &one : captured_[i].graphs()) {
                match found = matched(replayed, one);
                if (found.count > at->second.calls.count) at->second = {i, std::move(found)};
            }
        }
        return at->second;
    }

    // The copy of a captured call or op below this launch.
    uint32_t copy(captured_trace &from, uint32_t number, uint32_t launch, std::vector<uint32_t> &host) {
        auto known = copies_.find(number);
        if (known != copies_.end()) return known->second;
        event one = from.of().events[number];
        one.parent = one.parent != NONE ? copy(from, one.parent, launch, host) : launch;
        one.start = to_.events[launch].start;
        one.duration = 0;
        one.link = one.external = UNKNOWN;
        one.uid = uint32_t(to_.events_in_file + to_.added_events++);
        one.name = from.text(one.name);
        one.track = to_.events[launch].track;
        if (one.arguments != NONE) one.arguments = from.arguments(one.arguments);
        one.sequence = -1;
        auto added = uint32_t(to_.events.size());
        uint32_t stack = from.stack(number);
        if (stack != NONE) to_.borrowed.push_back({added, stack});
        to_.events.push_back(one);
        host.push_back(added);
        copies_.emplace(number, added);
        return added;
    }

    trace &to_;
    std::vector<captured_trace> captured_;
    std::map<std::vector<uint32_t>, plan> plans_;
    std::unordered_map<uint32_t, uint32_t> copies_; // of the launch that is attributed
};

} // namespace

void attribute_graphs(trace &to, const std::vector<const trace *> &captured) {
    attribution(to, captured).run();
}

} // namespace trace
